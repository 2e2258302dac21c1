//! Estimates the loss of a channel and the length of its bursts from the totals in the peer's acknowledgements.
//!
//! The receiver counts frames by their numbers, so its totals are exact and cover every kind of frame. The difference of two
//! acknowledgements gives the loss between them, even if acknowledgements between them were lost.

use crate::gilbert::{Channel, LOSS_MAX};
use crate::header::{Ack, before};

//= wildnet 3.3.2: the mean over the last M = 10 slots
/// Number of slots, or stretches of time, over which the paper's redundancy averages.
const PAPER_BINS: usize = 10;
/// Number over which plans average while the channel does not change. At 30 % loss the mean of ten slots of 13 frames is off by
/// 4 points, that of fifty by 2.
const BINS: usize = 50;
/// Standard deviations by which the latest one or two bins must differ from the older ones to discard these. At 3 a steady
/// link is misjudged once in some 200 bins, and then averages over fewer counts for a while.
const SURPRISE: f64 = 3.0;
/// The same as a probability (normal distribution).
const SELDOM: f64 = 0.0027;
/// Runs of losses over which the burst length is averaged.
const RUNS: f64 = 50.0;

/// The running estimate for one direction.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Frames and losses of each bin, the open one first.
    bins: [(u32, u32); BINS],
    filled: usize,
    last: Option<Totals>,
    runs: f64,
    lost_in_runs: f64,
    totals: Totals,
    changes: u32,
}

/// Totals of one direction since the link began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Highest frame number reported as received.
    pub highest: u32,
    /// Frames received in all.
    pub received: u64,
    /// Frames lost in all.
    pub lost: u64,
    /// Runs of consecutive losses.
    pub runs: u64,
}

impl Default for Estimate {
    fn default() -> Estimate {
        Estimate {
            bins: [(0, 0); BINS],
            filled: 0,
            last: None,
            runs: 0.0,
            lost_in_runs: 0.0,
            totals: Totals::default(),
            changes: 0,
        }
    }
}

impl Estimate {
    /// Takes the counts of an acknowledgement. `first` is the number of the sender's first frame.
    pub fn on_ack(&mut self, ack: &Ack<'_>, first: u32) {
        let last = self.last.get_or_insert(Totals {
            highest: first.wrapping_sub(1),
            ..Totals::default()
        });
        if !before(last.highest, ack.highest) {
            return;
        }
        let frames = ack.highest.wrapping_sub(last.highest);
        let received = u32::from(ack.received.wrapping_sub(last.received as u16));
        // More than were sent since: earlier ones that counted as lost have come late.
        let late = u64::from(received.saturating_sub(frames)).min(last.lost) as u32;
        let received = received.min(frames);
        let runs = u32::from(ack.runs.wrapping_sub(last.runs as u16));
        last.highest = ack.highest;
        last.received = last.received.wrapping_add((received + late).into());
        last.runs = last.runs.wrapping_add(runs.into());
        last.lost += u64::from(frames - received);
        last.lost -= u64::from(late);
        self.totals = *last;
        self.count(frames, frames - received, runs);
        self.take_back(late);
    }

    /// So many frames that counted as lost have come late: the latest losses were none.
    fn take_back(&mut self, late: u32) {
        let mut left = late;
        for bin in self.bins.iter_mut().take(self.filled + 1) {
            let taken = left.min(bin.1);
            bin.1 -= taken;
            left -= taken;
        }
        // A run of losses is as long as before, but there are fewer.
        let share = 1.0 - (f64::from(late) / self.lost_in_runs.max(1.0)).min(1.0);
        self.runs *= share;
        self.lost_in_runs *= share;
    }

    /// Closes the open bin at the end of a slot or stretch of time. An empty bin stays open. `ordered`: frames come in order.
    /// Otherwise the latest losses may be frames that are late, and no change of the channel is seen in them. `in_slots`: the bin is a
    /// slot. There a change that is seen too often costs less than one that is seen late; a stretch of time may have few frames.
    pub fn close_bin(&mut self, ordered: bool, in_slots: bool) {
        if self.bins.first().is_none_or(|open| open.0 == 0) {
            return;
        }
        for latest in (1..=2).filter(|_| ordered) {
            let counted = self.bins.get(..=self.filled).unwrap_or(&self.bins);
            let Some((latest_bins, past)) = counted.split_at_checked(latest) else {
                break;
            };
            if self.surprises(sum(latest_bins), sum(past), in_slots) {
                // Older counts would hide the change for ten more slots.
                self.filled = latest - 1;
                self.changes = self.changes.wrapping_add(1);
                break;
            }
        }
        self.bins.rotate_right(1);
        if let Some(open) = self.bins.first_mut() {
            *open = (0, 0);
        }
        self.filled = (self.filled + 1).min(BINS - 1);
    }

    /// The present estimate of the channel; without losses as long as nothing was counted.
    pub fn channel(&self) -> Channel {
        self.channel_of(self.long_loss())
    }

    /// The channel to plan for: worse than the estimate by half a standard error, since planning for too little loss costs
    /// more packets than planning for too much costs air time.
    pub fn planned_channel(&self) -> Channel {
        let (loss, frames) = (self.long_loss(), f64::from(self.counted(BINS).0.max(1)));
        self.channel_of(loss + 0.5 * libm::sqrt(loss * (1.0 - loss) / frames))
    }

    /// Whether all bins are filled: for so long the channel has not changed noticeably.
    pub fn is_full(&self) -> bool {
        self.filled + 1 >= BINS
    }

    /// Share of frames lost over at most ten bins: the paper's estimate.
    pub fn loss(&self) -> f64 {
        share(self.counted(PAPER_BINS))
    }

    fn long_loss(&self) -> f64 {
        share(self.counted(BINS))
    }

    fn channel_of(&self, loss: f64) -> Channel {
        match self.runs >= 3.0 {
            true => Channel::bursty(loss, self.burst()),
            false => Channel::independent(loss),
        }
    }

    /// Frames and losses in the open bin and up to `most` closed ones.
    fn counted(&self, most: usize) -> (u32, u32) {
        sum(self
            .bins
            .get(..=self.filled.min(most))
            .unwrap_or(&self.bins))
    }

    /// Mean length of a run of losses in frames; 1 before the first loss.
    pub fn burst(&self) -> f64 {
        if self.runs < 1.0 {
            1.0
        } else {
            (self.lost_in_runs / self.runs).max(1.0)
        }
    }

    /// The totals since the link began.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Number of changes of the channel that made older counts be discarded.
    pub fn changes(&self) -> u32 {
        self.changes
    }

    fn count(&mut self, frames: u32, lost: u32, runs: u32) {
        if let Some(open) = self.bins.first_mut() {
            open.0 = open.0.saturating_add(frames);
            open.1 = open.1.saturating_add(lost);
        }
        // Both sums decay alike, so their ratio is a mean over the latest runs.
        let keep = (1.0 - f64::from(runs) / RUNS).max(0.0);
        self.runs = self.runs * keep + f64::from(runs);
        self.lost_in_runs = self.lost_in_runs * keep + f64::from(lost);
    }

    /// Whether the latest counts do not fit those before them.
    fn surprises(&self, latest: (u32, u32), past: (u32, u32), in_slots: bool) -> bool {
        let (n, seen) = (f64::from(latest.0), f64::from(past.0));
        if past.0 == 0 {
            return false;
        }
        // Half a loss more: after a past without losses, a single loss must not count as a change.
        let mean = (f64::from(past.1) + 0.5) / (seen + 1.0);
        // Bursts increase the variance: neighbouring frames have the correlation rho in Gilbert's channel.
        let burst = self.burst().max(1.0 / (1.0 - mean));
        let rho = (1.0 - 1.0 / burst - mean / (burst * (1.0 - mean))).max(0.0);
        let spread = (1.0 + rho) / (1.0 - rho);
        let variance = mean * (1.0 - mean) * spread * (1.0 / n + 1.0 / seen);
        let difference = f64::from(latest.1) / n - mean;
        let far = difference * difference > SURPRISE * SURPRISE * variance;
        // The law of large numbers says nothing of a few frames: one run of losses may take them all.
        far && (in_slots || difference < 0.0 || one_run(mean, burst, latest) < SELDOM)
    }
}

/// The chance that a single run of losses takes so many of so many frames: it lasts from before, or begins with one of them.
fn one_run(loss: f64, burst: f64, (frames, lost): (u32, u32)) -> f64 {
    let begins = loss / (burst * (1.0 - loss));
    let lasts = libm::pow(1.0 - 1.0 / burst, f64::from(lost.saturating_sub(1)));
    (loss + f64::from(frames) * begins) * lasts
}

fn share((frames, lost): (u32, u32)) -> f64 {
    (f64::from(lost) / f64::from(frames.max(1))).min(LOSS_MAX)
}

fn sum(bins: &[(u32, u32)]) -> (u32, u32) {
    bins.iter().fold((0, 0), |(frames, lost), bin| {
        (frames.saturating_add(bin.0), lost.saturating_add(bin.1))
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use chappe_core::{Purpose, Seed, Stream};

    /// A receiver that counts as ours does.
    #[derive(Default)]
    struct Counter {
        highest: u32,
        received: u16,
        runs: u16,
    }

    impl Counter {
        fn slot(&mut self, random: &mut Stream, channel: Channel, frames: u32) {
            let (mut bad, mut in_run) = (random.chance(channel.loss), false);
            for _ in 0..frames {
                self.highest += 1;
                let leave = 1.0 / channel.burst;
                let enter = channel.loss / (channel.burst * (1.0 - channel.loss));
                bad = random.chance(if bad { 1.0 - leave } else { enter });
                if !bad {
                    self.received = self.received.wrapping_add(1);
                    self.runs += u16::from(in_run);
                }
                in_run = bad;
            }
        }

        fn ack(&self) -> Ack<'static> {
            Ack {
                highest: self.highest,
                received: self.received,
                runs: self.runs,
                held: 0,
                next: 0,
                spare: 0,
                cut: false,
                packed: None,
                bitmap: &[],
            }
        }
    }

    fn run(slots: &[(f64, f64, u32)], losing_acks: bool) -> Estimate {
        let mut random = Seed(5).stream(Purpose::Trial(0));
        let (mut counter, mut estimate) = (Counter::default(), Estimate::default());
        for &(loss, burst, count) in slots {
            for _ in 0..count {
                counter.slot(&mut random, Channel::bursty(loss, burst), 13);
                if !losing_acks || random.chance(0.5) {
                    estimate.on_ack(&counter.ack(), 1);
                    estimate.close_bin(true, true);
                }
            }
        }
        estimate
    }

    #[test]
    fn losses_and_bursts_are_estimated() {
        for losing_acks in [false, true] {
            let estimate = run(&[(0.3, 1.0 / 0.7, 400)], losing_acks);
            assert!((estimate.loss() - 0.3).abs() < 0.12, "{}", estimate.loss());
            assert!((estimate.burst() - 1.0 / 0.7).abs() < 0.3);
            let totals = estimate.totals();
            let loss = totals.lost as f64 / (totals.lost + totals.received) as f64;
            assert!((loss - 0.3).abs() < 0.02, "{loss}");
        }
        let bursty = run(&[(0.2, 6.0, 600)], false);
        assert!((bursty.burst() - 6.0).abs() < 1.5, "{}", bursty.burst());
    }

    /// Goal: the estimate follows a step 5 % -> 40 % -> 5 % within two or three slots; the plain mean would need ten.
    #[test]
    fn a_step_is_followed_in_two_slots() {
        let indep = |loss: f64| (loss, 1.0 / (1.0 - loss));
        let (low, high) = (indep(0.05), indep(0.4));
        let up = run(&[(low.0, low.1, 100), (high.0, high.1, 2)], false);
        assert!(up.loss() > 0.25, "{}", up.loss());
        let down = run(
            &[(low.0, low.1, 50), (high.0, high.1, 50), (low.0, low.1, 3)],
            false,
        );
        assert!(down.loss() < 0.15, "{}", down.loss());
        assert!(down.changes() >= 2);
    }

    /// Goal: with bins of three frames, as 40 ms hold at 1 Mbit/s, a steady channel that loses in bursts is hardly ever taken for a changed
    /// one. Before, one burst that filled a bin did so every hundred bins, and what was planned then was for a loss of 90 %.
    #[test]
    fn a_run_of_losses_is_no_change_of_the_channel() {
        for (loss, burst) in [(0.05, 4.0), (0.15, 4.0), (0.3, 4.0), (0.1, 8.0)] {
            let mut random = Seed(11).stream(Purpose::Trial(0));
            let (mut counter, mut estimate) = (Counter::default(), Estimate::default());
            let bins = 20_000;
            for _ in 0..bins {
                counter.slot(&mut random, Channel::bursty(loss, burst), 3);
                estimate.on_ack(&counter.ack(), 1);
                estimate.close_bin(true, false);
            }
            std::println!("{loss} {burst}: {} changes", estimate.changes());
            assert!(estimate.changes() < bins / 300, "{loss} {burst}");
        }
    }
}
