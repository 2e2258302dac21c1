//! How fast frames may leave.
//!
//! A socket takes frames as fast as memory can be copied, long before they are on the air. Without a pace, frames wait
//! and get lost in the card's queue, and a frame that the node built at the last moment is old when it leaves.

use chappe_core::{Bitrate, Duration, Instant, Mode};

use crate::queue::SLOTS;

/// The limit on the rate of outgoing frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The socket alone: for tests, and for cards that push back.
    Unlimited,
    /// At most this many bits per second on each port, headers of all layers included. It follows what the path carries.
    Rate(Bitrate),
    /// One frame after the other, each for its airtime in the mode that the node asked for, or else in this mode.
    Airtime(Mode),
}

/// Computes when the next frame may leave.
#[derive(Debug)]
pub struct Pacer {
    pace: Pace,
    /// Octets that the layers below add to a frame.
    overhead: usize,
    free_at: Instant,
}

/// The burst that may follow a late wake-up. A busy machine delays a program by two or three slices of its scheduler
/// (EEVDF: 3 ms each), and the pace loses what it does not make up. 8 ms at 20 Mbit/s are 13 frames of 1500 octets,
/// well below a card's queue.
const BURST: Duration = Duration::from_millis(8);

/// At high rates frames leave in groups, since each wake-up of a process costs as much as several frames. A group has at most the
/// frames of this time, as Linux groups the segments of TCP (`sk_pacing_shift` of 10: a 1024th of a second), and at most those of the
/// queue. Below 12 Mbit/s each frame leaves alone.
const GROUP: Duration = Duration::from_nanos(1_000_000_000 / 1024);
/// Octets of a usual frame.
const USUAL: u64 = 1500;

impl Pacer {
    /// Starts with a full burst. `overhead` is what the layers below add to each frame, in octets.
    pub fn new(pace: Pace, overhead: usize) -> Pacer {
        Pacer {
            pace,
            overhead,
            free_at: Instant::ZERO,
        }
    }

    /// The rate that is set, if the pace is one.
    pub fn rate(&self) -> Option<Bitrate> {
        match self.pace {
            Pace::Rate(rate) => Some(rate),
            _ => None,
        }
    }

    /// Changes the rate, if the pace is one.
    pub fn set_rate(&mut self, rate: Bitrate) {
        if let Pace::Rate(of) = &mut self.pace {
            *of = rate;
        }
    }

    /// When the next frame may leave; in the past if it may leave now.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// When the next group of frames may begin to leave; the others of it may follow until [`free_at`](Self::free_at) says no.
    pub fn opens_at(&self) -> Instant {
        let Pace::Rate(rate) = self.pace else {
            return self.free_at;
        };
        let each = rate.time_of(USUAL * 8);
        let more = (GROUP.nanos() / each.nanos().max(1)).min(SLOTS as u64 - 1);
        self.free_at + each * more
    }

    /// Charges a frame of `len` octets, sent in `mode` if the node chose one. Returns its octets on the wire.
    pub fn spend(&mut self, now: Instant, len: usize, mode: Option<Mode>) -> usize {
        let octets = len + self.overhead;
        let cost = match self.pace {
            Pace::Unlimited => return octets,
            Pace::Rate(rate) => rate.time_of(octets as u64 * 8),
            Pace::Airtime(usual) => mode.unwrap_or(usual).airtime(octets),
        };
        self.free_at = self.free_at.max(now.saturating_before(BURST)) + cost;
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Rate;

    /// Frames of 1000 octets at 8 Mbit/s take 1 ms each, whether the driver wakes in time or a little late.
    #[test]
    fn the_rate_is_kept_and_bursts_are_bounded() {
        let mut pacer = Pacer::new(Pace::Rate(Bitrate(8_000_000)), 28);
        let (mut now, mut sent) = (Instant::from_millis(100), 0);
        while now < Instant::from_millis(200) {
            while pacer.free_at() <= now {
                pacer.spend(now, 972, None);
                sent += 1;
            }
            now += Duration::from_micros(1_900);
        }
        // The first eight make good a burst of time before the first look.
        assert!((106..=110).contains(&sent), "{sent}");
        // After a long silence, no more than the burst and the one that is due.
        let later = Instant::from_millis(10_000);
        let burst = (0..).take_while(|_| {
            let free = pacer.free_at() <= later;
            pacer.spend(later, 972, None);
            free
        });
        assert_eq!(burst.count(), 9);
    }

    /// Goal: frames leave in groups of up to a system call's at a high rate and one by one at a low one, and the rate is kept. Method:
    /// a driver that wakes when a group may begin, in virtual time.
    #[test]
    fn a_high_rate_needs_few_wake_ups() {
        for (mbits, group) in [(1, 1), (10, 1), (20, 2), (100, 9), (1000, 64), (10_000, 64)] {
            let rate = Bitrate(mbits * 1_000_000);
            let mut pacer = Pacer::new(Pace::Rate(rate), 28);
            let (mut now, mut sent, mut wakes) = (Instant::from_millis(1000), 0u64, 0u64);
            let end = now + Duration::from_secs(1);
            // The burst of the start does not count.
            while pacer.free_at() <= now {
                pacer.spend(now, 1472, None);
            }
            while now < end {
                now = now.max(pacer.opens_at());
                wakes += 1;
                let before = sent;
                while pacer.free_at() <= now {
                    pacer.spend(now, 1472, None);
                    sent += 1;
                }
                assert!(sent - before <= group, "{mbits} Mbit/s: {}", sent - before);
            }
            let due = mbits * 1_000_000 / (1500 * 8);
            assert!(
                sent.abs_diff(due) <= group,
                "{mbits} Mbit/s: {sent}, due {due}"
            );
            assert!(wakes <= sent.div_ceil(group) + 1, "{mbits} Mbit/s: {wakes}");
        }
    }

    #[test]
    fn airtime_follows_the_mode_of_the_frame() {
        let usual = Mode::long(Rate::Dsss1);
        let mut pacer = Pacer::new(Pace::Airtime(usual), 36);
        let now = Instant::from_millis(50);
        pacer.spend(now, 1500, Some(Mode::long(Rate::Dsss2)));
        let free = now.saturating_before(BURST) + Mode::long(Rate::Dsss2).airtime(1536);
        assert_eq!(pacer.free_at(), free);
    }
}
