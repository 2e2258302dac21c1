//! The distribution of losses among n frames: exact, for independent losses and for bursts.
//!
//! The two-state channel of Gilbert (1960): in the good state every frame comes through, in the bad one none. It has
//! two parameters that a receiver can count: the share of lost frames p and the mean length of a run of losses L. The
//! chance to leave the bad state is 1/L, to enter it p / (L (1 - p)). With L = 1 / (1 - p) the frames are independent.

use alloc::vec;
use alloc::vec::Vec;

/// A channel by the two numbers that its receiver can count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Channel {
    /// Share of frames lost, 0 to 1.
    pub loss: f64,
    /// Mean length of a run of losses in frames, 1 / (1 - loss) where losses are independent.
    pub burst: f64,
}

/// Largest loss planned for; beyond it a link counts as dead.
pub const LOSS_MAX: f64 = 0.95;

impl Channel {
    /// A channel that loses each frame independently with probability `loss`, at most [`LOSS_MAX`].
    pub fn independent(loss: f64) -> Channel {
        let loss = loss.clamp(0.0, LOSS_MAX);
        Channel {
            loss,
            burst: 1.0 / (1.0 - loss),
        }
    }

    /// A channel whose losses come in runs of `burst` frames on average.
    pub fn bursty(loss: f64, burst: f64) -> Channel {
        let loss = loss.clamp(0.0, LOSS_MAX);
        // With shorter bursts the channel would lose less than `loss` even if it left the good state after every frame.
        let shortest = (loss / (1.0 - loss)).max(1.0);
        Channel {
            loss,
            burst: burst.max(shortest),
        }
    }

    /// The least overhead of any code: frames sent for each packet, less one, if the share `residual` may be lost.
    pub fn overhead_bound(&self, residual: f64) -> f64 {
        ((1.0 - residual) / (1.0 - self.loss) - 1.0).max(0.0)
    }

    /// Chance that the frame after one in this state (0 good, 1 bad) is lost.
    fn lost_after(&self, state: usize) -> f64 {
        if state == 1 {
            1.0 - 1.0 / self.burst
        } else {
            (self.loss / (self.burst * (1.0 - self.loss))).min(1.0)
        }
    }
}

/// The probabilities of (how many of n frames are lost, state of the last one) for all n up to a limit.
#[derive(Clone, Debug)]
pub struct Losses {
    most: usize,
    /// `[from][n][lost][state]`; from: 0 and 1 after a frame of that state, 2 at any time.
    table: Vec<f64>,
}

impl Losses {
    /// Computes the table for up to `most` frames: about 6 most² numbers.
    pub fn new(channel: &Channel, most: usize) -> Losses {
        let side = most.saturating_add(1);
        let mut losses = Losses {
            most,
            table: vec![0.0; side * side * 6],
        };
        for from in 0..3 {
            let start = match from {
                0 => [1.0, 0.0],
                1 => [0.0, 1.0],
                _ => [1.0 - channel.loss, channel.loss],
            };
            losses.set(from, 0, 0, start);
            for n in 0..most {
                for lost in 0..=n {
                    let now = losses.at(from, n, lost);
                    for (state, weight) in now.into_iter().enumerate() {
                        // From the stationary distribution, one step leads to the stationary distribution.
                        let bad = weight * channel.lost_after(state);
                        losses.add(from, n + 1, lost + 1, 1, bad);
                        losses.add(from, n + 1, lost, 0, weight - bad);
                    }
                }
            }
        }
        losses
    }

    /// Probability that exactly `lost` of `n` frames are lost, for the last one received (0) and lost (1).
    pub fn of(&self, n: usize, lost: usize) -> [f64; 2] {
        self.at(2, n, lost)
    }

    /// Probability that fewer than `least` of `n` frames are received after one in `state`.
    pub fn fewer_after(&self, state: usize, n: usize, least: usize) -> f64 {
        let first = (n + 1).saturating_sub(least);
        let each = (first..=n).map(|lost| {
            let [good, bad] = self.at(state, n, lost);
            good + bad
        });
        if least == 0 { 0.0 } else { each.sum() }
    }

    /// Mean share of source packets that a systematic code leaves lost if any `sources` of `total` frames suffice: the lost
    /// share of frames in the cases in which more are lost than there are repairs.
    pub fn residual(&self, sources: usize, total: usize) -> f64 {
        let from = total.saturating_sub(sources) + 1;
        let each = (from..=total).map(|lost| {
            let [good, bad] = self.of(total, lost);
            (good + bad) * lost as f64 / total.max(1) as f64
        });
        each.sum()
    }

    fn place(&self, from: usize, n: usize, lost: usize) -> usize {
        let side = self.most + 1;
        ((from * side + n) * side + lost) * 2
    }

    fn at(&self, from: usize, n: usize, lost: usize) -> [f64; 2] {
        if n > self.most || lost > n {
            return [0.0; 2];
        }
        let place = self.place(from, n, lost);
        let get = |state| self.table.get(place + state).copied().unwrap_or(0.0);
        [get(0), get(1)]
    }

    fn set(&mut self, from: usize, n: usize, lost: usize, value: [f64; 2]) {
        self.add(from, n, lost, 0, value[0]);
        self.add(from, n, lost, 1, value[1]);
    }

    fn add(&mut self, from: usize, n: usize, lost: usize, state: usize, value: f64) {
        let place = self.place(from, n, lost);
        if let Some(cell) = self.table.get_mut(place + state) {
            *cell += value;
        }
    }
}

//= wildnet 3.3.2: N is chosen from the loss that was measured
/// Fewest frames, repairs included, with which a systematic code over `sources` packets leaves at most the share `residual`
/// lost to independent losses; `None` if `most` frames do not suffice.
pub fn block_length(loss: f64, sources: usize, residual: f64, most: usize) -> Option<usize> {
    let losses = Losses::new(&Channel::independent(loss), most);
    (sources..=most).find(|&total| losses.residual(sources, total) <= residual)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Independent losses follow the binomial distribution.
    #[test]
    fn independent_losses_are_binomial() {
        let losses = Losses::new(&Channel::independent(0.3), 20);
        let mut choose = 1.0;
        for lost in 0..=20 {
            let exact = choose * 0.3f64.powi(lost) * 0.7f64.powi(20 - lost);
            let [good, bad] = losses.of(20, lost as usize);
            assert!((good + bad - exact).abs() < 1e-12, "{lost}");
            choose = choose * f64::from(20 - lost) / f64::from(lost + 1);
        }
    }

    /// The table of exact minima (loss, residual, overhead for K = 1, 4, 10, 13, 26, 40), computed independently;
    /// among them the paper's "100 % for 30 % to 1 %", which is K = 10.
    #[test]
    fn shortest_blocks_match_the_exact_table() {
        let table: [(f64, f64, [f64; 6]); 4] = [
            (0.1, 0.01, [2.0, 0.50, 0.40, 0.31, 0.23, 0.20]),
            (0.2, 0.01, [2.0, 1.00, 0.70, 0.62, 0.50, 0.42]),
            (0.3, 0.01, [3.0, 1.50, 1.00, 0.92, 0.77, 0.70]),
            (0.5, 0.01, [6.0, 3.00, 2.20, 2.00, 1.65, 1.52]),
        ];
        for (loss, residual, overheads) in table {
            for (sources, overhead) in [1, 4, 10, 13, 26, 40].into_iter().zip(overheads) {
                let total = block_length(loss, sources, residual, 110).unwrap();
                let ours = (total - sources) as f64 / sources as f64;
                assert!((ours - overhead).abs() < 0.0051, "{loss} {sources}: {ours}");
            }
        }
        assert_eq!(block_length(0.5, 40, 0.01, 60), None);
    }

    /// Bursts keep the mean and increase the variance by about (2 L - 1).
    #[test]
    fn bursts_keep_the_mean_and_increase_the_variance() {
        let moments = |channel| {
            let losses = Losses::new(&channel, 60);
            let law = (0..=60).map(|lost| {
                let [good, bad] = losses.of(60, lost);
                (lost as f64, good + bad)
            });
            let (mut mean, mut square) = (0.0, 0.0);
            for (lost, weight) in law {
                mean += lost * weight;
                square += lost * lost * weight;
            }
            (mean, square - mean * mean)
        };
        let (mean, variance) = moments(Channel::independent(0.2));
        let (bursty_mean, bursty_variance) = moments(Channel::bursty(0.2, 6.0));
        assert!((mean - 12.0).abs() < 1e-9 && (bursty_mean - 12.0).abs() < 1e-9);
        assert!((variance - 9.6).abs() < 1e-9);
        // Correlation of neighbours rho = 1 - 1/L - p/(L(1-p)); the variance grows by (1+rho)/(1-rho) for long n.
        let rho: f64 = 1.0 - 1.0 / 6.0 - 0.2 / (6.0 * 0.8);
        let growth = (1.0 + rho) / (1.0 - rho);
        assert!(bursty_variance > 0.75 * growth * variance && bursty_variance < growth * variance);
    }
}
