//! The cost and the outcome of measuring the links.

use chappe_core::{Duration, Stream};

/// A measurement phase: the gateway calls one node after the other by a flood; each sends beacons, which all others count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// To call a node (the paper's T_o).
    pub call: Duration,
    /// From one beacon to the next (its IPI).
    pub interval: Duration,
    /// Beacons per node and channel (its N_b).
    pub beacons: u32,
    /// Channels that are measured, one after the other.
    pub channels: u32,
}

impl Measurement {
    /// The paper's example: 10 ms, 100 ms, 10 beacons, channel 26 alone.
    pub const PAPER: Measurement = Measurement {
        call: Duration::from_millis(10),
        interval: Duration::from_millis(100),
        beacons: 10,
        channels: 1,
    };

    /// How long `nodes` nodes take: the paper's equation 1, (T_o + IPI * N_b) n, for each channel.
    pub fn duration(&self, nodes: u64) -> Duration {
        let one = self.call + self.interval * u64::from(self.beacons);
        one * nodes * u64::from(self.channels)
    }

    /// A measurement of a link with this PRR: the share of beacons received, each drawn independently.
    pub fn sample(&self, prr: f64, random: &mut Stream) -> f64 {
        if self.beacons == 0 {
            return 0.0;
        }
        let came = (0..self.beacons).filter(|_| random.chance(prr)).count();
        came as f64 / f64::from(self.beacons)
    }
}

/// How long the gateway takes to collect a report of 30 octets from each of `nodes` nodes.
///
/// The paper's estimate (IV-D.1) of a low-power wireless bus: 260 nodes in 10 s, so one report in 38.5 ms.
pub fn collection_time(nodes: u64) -> Duration {
    Duration::from_secs(10) * nodes / 260
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    #[test]
    fn the_cost_is_that_of_equation_1() {
        let paper = Measurement::PAPER;
        assert_eq!(paper.duration(100), Duration::from_secs(101));
        let four = Measurement {
            channels: 4,
            ..paper
        };
        assert_eq!(four.duration(100), Duration::from_secs(404));
        let dense = Measurement {
            interval: Duration::from_millis(5),
            ..four
        };
        assert_eq!(dense.duration(100), Duration::from_secs(24));
        assert_eq!(collection_time(260), Duration::from_secs(10));
    }

    /// Mean and variance of a binomial share, within five standard errors.
    #[test]
    fn samples_are_binomial() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        for prr in [0.0, 0.3, 0.9, 1.0] {
            let n = 20_000;
            let draws = (0..n).map(|_| Measurement::PAPER.sample(prr, &mut random));
            let (sum, squares) = draws.fold((0.0, 0.0), |(sum, squares), x| {
                (sum + x, squares + (x - prr) * (x - prr))
            });
            let variance: f64 = prr * (1.0 - prr) / 10.0;
            let n = f64::from(n);
            assert!((sum / n - prr).abs() <= 5.0 * (variance / n).sqrt());
            assert!((squares / n - variance).abs() <= 0.1 * variance);
        }
    }
}
