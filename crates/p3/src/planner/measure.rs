//! The cost and the outcome of measuring the links.

use chappe_core::{Duration, Stream};

use crate::timing::{airtime, flood_slots};

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
    /// Whether a node that is called sends on all channels, and reports all of them in one frame. Otherwise the gateway goes
    /// around once for each channel, as the paper's does for its one.
    pub together: bool,
}

/// Octets of a report on one channel (paper, IV-D.1).
const REPORT: usize = 30;
/// Slots of the flood that carries a report: six hops, three transmissions.
const REPORT_SLOTS: u64 = flood_slots(6, 3);

impl Measurement {
    /// The paper's example: 10 ms, 100 ms, 10 beacons, channel 26 alone.
    pub const PAPER: Measurement = Measurement {
        call: Duration::from_millis(10),
        interval: Duration::from_millis(100),
        beacons: 10,
        channels: 1,
        together: false,
    };

    /// Six beacons of full length back to back (a frame, a turnaround and 52 us) on each of four channels, and one report:
    /// 26 s for 139 nodes, where a hundred beacons and a report for each channel take 305 s. Six beacons do not tell a link
    /// of 0.95 from one of 0.99, but the received power does, and a gateway that was wrong tries again.
    pub const SHORT: Measurement = Measurement {
        call: Duration::from_millis(10),
        interval: Duration::from_micros(4_500),
        beacons: 6,
        channels: 4,
        together: true,
    };

    /// How long `nodes` nodes take: the paper's equation 1, (T_o + IPI * N_b) n, for each channel.
    pub fn duration(&self, nodes: u64) -> Duration {
        let beacons = self.interval * u64::from(self.beacons) * u64::from(self.channels);
        let calls = if self.together { 1 } else { self.channels };
        (self.call * u64::from(calls) + beacons) * nodes
    }

    /// How long the gateway takes to collect the reports of `nodes` nodes. A report on several channels is longer, by the
    /// airtime of its further octets in each slot of the flood that carries it.
    pub fn collection_time(&self, nodes: u64) -> Duration {
        let reports = u64::from(self.channels);
        if !self.together {
            return collection_time(nodes) * reports;
        }
        let one = airtime(REPORT);
        let all = airtime(REPORT * self.channels as usize);
        collection_time(nodes) + all.saturating_sub(one) * REPORT_SLOTS * nodes
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
        assert_eq!(four.collection_time(260), Duration::from_secs(40));
        // 118 ms a node, and 38.5 ms and eleven times 90 octets for its report.
        let short = Measurement::SHORT;
        assert_eq!(short.duration(139), Duration::from_millis(118 * 139));
        let whole = short.duration(139) + short.collection_time(139);
        assert!((26.0..26.2).contains(&whole.as_secs_f64()), "{whole}");
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
