//! How fast frames may leave.
//!
//! A socket takes frames as fast as memory is copied, long before they are on the air. Without a pace the queue of
//! the card is where packets wait and are lost, and what a node makes "at the last moment" is old when it leaves.

use chappe_core::{Bitrate, Duration, Instant, Mode};

/// What limits the frames that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Only the socket: for tests, and where the card pushes back.
    Unlimited,
    /// A share of the medium in bits per second, headers included.
    Rate(Bitrate),
    /// Each frame takes its airtime, one after the other: in the mode that the node asked for, else in this one.
    Airtime(Mode),
}

/// Lets frames out at a pace.
#[derive(Debug)]
pub struct Pacer {
    pace: Pace,
    /// Octets that the layers below add to a frame.
    overhead: usize,
    free_at: Instant,
}

/// How much a late wake-up may make good at once. A busy machine lets a program wait for two or three slices of its
/// scheduler (EEVDF: 3 ms each), and what is not made good then is lost to the pace; 8 ms at 20 Mbit/s are 13 frames
/// of 1500 octets, well below a card's queue.
const BURST: Duration = Duration::from_millis(8);

impl Pacer {
    /// `overhead`: octets that the layers below add to each frame.
    pub fn new(pace: Pace, overhead: usize) -> Pacer {
        Pacer {
            pace,
            overhead,
            free_at: Instant::ZERO,
        }
    }

    /// When the next frame may leave.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// A frame of `len` octets leaves.
    pub fn spend(&mut self, now: Instant, len: usize, mode: Option<Mode>) {
        let octets = len + self.overhead;
        let cost = match self.pace {
            Pace::Unlimited => return,
            Pace::Rate(rate) => rate.time_of(octets as u64 * 8),
            Pace::Airtime(usual) => mode.unwrap_or(usual).airtime(octets),
        };
        self.free_at = self.free_at.max(now.saturating_before(BURST)) + cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Rate;

    /// Frames of 1000 octets at 8 Mbit/s take 1 ms each, whether the driver wakes in time or a little late.
    #[test]
    fn the_pace_is_kept_and_bursts_are_short() {
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

    #[test]
    fn airtime_is_the_modes() {
        let usual = Mode::long(Rate::Dsss1);
        let mut pacer = Pacer::new(Pace::Airtime(usual), 36);
        let now = Instant::from_millis(50);
        pacer.spend(now, 1500, Some(Mode::long(Rate::Dsss2)));
        let free = now.saturating_before(BURST) + Mode::long(Rate::Dsss2).airtime(1536);
        assert_eq!(pacer.free_at(), free);
    }
}
