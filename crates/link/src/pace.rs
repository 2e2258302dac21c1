//! How fast frames leave: at a given rate, or at the rate that the path turns out to carry.
//!
//! Loss says nothing here, since the link is there to lose frames. What says that the path is full is delay: frames
//! queue, and the round trip grows. So there are two limits. Frames leave at a pace; and no more octets are under
//! way than the pace fills in the least round trip, and a little more. Without a given rate the pace itself goes up
//! while the queue is short and down when it is long.

use chappe_core::{Bitrate, Duration, Instant};

/// How much a late wake-up may make good at once: a busy machine lets a program wait for a slice or two of its scheduler.
const BURST: Duration = Duration::from_millis(4);
/// Queue that is accepted on the path: acknowledgements come every 10 ms and some are lost.
const SLACK: Duration = Duration::from_millis(20);
/// Queue at which a measured pace is right.
const QUEUE: Duration = Duration::from_millis(15);
/// The pace before anything was measured.
const FIRST: Bitrate = Bitrate(1_000_000);
const LEAST: Bitrate = Bitrate(64_000);
/// Frames under way that are always allowed.
const FRAMES: usize = 4;

/// Limits of one peer.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    given: Option<Bitrate>,
    rate: Bitrate,
    free_at: Instant,
    judged_at: Instant,
    /// Until the first queue: the pace doubles with each round trip.
    starting: bool,
    /// Whether the pace has held something back since it was judged.
    used: bool,
}

impl Pace {
    pub fn new(given: Option<Bitrate>) -> Pace {
        Pace {
            given,
            rate: given.unwrap_or(FIRST),
            free_at: Instant::ZERO,
            judged_at: Instant::ZERO,
            starting: true,
            used: false,
        }
    }

    /// Another rate from now on.
    pub fn give(&mut self, given: Option<Bitrate>) {
        self.given = given;
        self.rate = given.unwrap_or(self.rate);
    }

    pub fn rate(&self) -> Bitrate {
        self.rate
    }

    /// When the next frame may leave.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// A datagram of `octets`, headers below included, leaves.
    pub fn spend(&mut self, now: Instant, octets: usize) {
        self.free_at =
            self.free_at.max(now.saturating_before(BURST)) + self.rate.time_of(octets as u64 * 8);
        self.used |= self.free_at > now;
    }

    /// Whether `in_flight` octets are too many to add to.
    pub fn is_full(&self, in_flight: usize, frame_max: usize, least_rtt: Option<Duration>) -> bool {
        let span = least_rtt.unwrap_or(Duration::from_millis(50)) + SLACK;
        let octets = self.rate.0 as f64 / 8.0 * span.as_secs_f64();
        in_flight > octets as usize + FRAMES * frame_max
    }

    /// Looks at the round trips; only where no rate is given.
    pub fn judge(&mut self, now: Instant, rtt: Option<(Duration, Duration)>) {
        let (None, Some((smoothed, least))) = (self.given, rtt) else {
            return;
        };
        if now.saturating_since(self.judged_at) < smoothed.max(Duration::from_millis(20)) {
            return;
        }
        self.judged_at = now;
        let queue = smoothed.saturating_sub(least).as_secs_f64() / QUEUE.as_secs_f64();
        let factor = match queue {
            queue if queue > 1.0 => {
                self.starting = false;
                (1.0 - 0.2 * (queue - 1.0)).max(0.7)
            }
            _ if !self.used => 1.0,
            _ if self.starting => 1.5,
            queue => 1.0 + 0.06 * (1.0 - queue),
        };
        self.used = false;
        self.rate = Bitrate((self.rate.0 as f64 * factor) as u64).max(LEAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of 8 Mbit/s and 20 ms: the pace gets near it from below and stays, with a queue of some 15 ms.
    #[test]
    fn the_pace_finds_the_path() {
        let mut pace = Pace::new(None);
        let (path, least) = (8e6, Duration::from_millis(20));
        let (mut now, mut queue, mut last) = (Instant::ZERO, 0.0, Vec::new());
        for step in 0..6000 {
            now += Duration::from_millis(2);
            while pace.free_at() <= now {
                pace.spend(now, 1500);
            }
            queue = (queue + (pace.rate().0 as f64 - path) / path * 0.002).max(0.0);
            pace.judge(now, Some((least + Duration::from_secs_f64(queue), least)));
            if step > 3000 {
                last.push(pace.rate().0 as f64 / path);
            }
        }
        let mean = last.iter().sum::<f64>() / last.len() as f64;
        assert!((0.9..1.1).contains(&mean), "{mean}");
        assert!(last.iter().all(|share| (0.6..1.6).contains(share)));
    }

    #[test]
    fn a_given_rate_stays() {
        let mut pace = Pace::new(Some(Bitrate(6_000_000)));
        pace.judge(
            Instant::from_millis(500),
            Some((Duration::from_millis(500), Duration::from_millis(20))),
        );
        assert_eq!(pace.rate(), Bitrate(6_000_000));
        // 40 ms of 6 Mbit/s are 30,000 octets, and four frames.
        let least = Some(Duration::from_millis(20));
        assert!(pace.is_full(36_100, 1500, least) && !pace.is_full(35_900, 1500, least));
    }
}
