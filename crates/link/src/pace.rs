//! How fast frames leave: at a given rate, or at the rate that the path turns out to carry.
//!
//! Loss says nothing here, since the link is there to lose frames. What says that the path is full is delay: frames
//! queue, and the round trip grows. So there are two limits. Frames leave at a pace; and no more octets are under
//! way than the pace fills in the least round trip, and a little more. Without a given rate the pace itself goes up
//! while the queue is short and down when it is long.
//!
//! A given rate is what the medium carries, not what is left for us: reports come back over the same medium, and so does
//! whatever else is sent. So a share of it is used, whatever keeps a queue of few frames. Every further frame of queue
//! would lengthen every round of repetition, and with it the time that a flow waits for its oldest packet.
//!
//! A pace of thousands of frames a second is kept in steps: what a step holds leaves together, so that it costs one wake-up and
//! one system call.

use chappe_core::{Bitrate, Duration, Instant};

/// A step: frames leave together as long as they are not further ahead of their pace. As much as Linux's TCP sends together
/// at its own pace (`sk_pacing_shift` is 10, the rate's 1024th part of a second, since Wi-Fi and cable queues all take that).
/// The queue on the path empties within the step, so the least round trip does not see it. Up to 12 Mbit/s a
/// frame takes as long, and each leaves alone.
const STEP: Duration = Duration::from_millis(1);
/// How much a late wake-up may make good at once: a busy machine lets a program wait for a slice or two of its scheduler.
const BURST: Duration = Duration::from_millis(4);
/// Queue that is accepted on the path: acknowledgements come every 10 ms and some are lost.
const SLACK: Duration = Duration::from_millis(20);
/// Queue at which a measured pace is right.
const QUEUE: Duration = Duration::from_millis(15);
/// Frames of standing queue at which the share of a given rate is right: one bridges most of a
/// round's jitter; with half of one the medium is often empty. Where hardly anything is repeated, three cost
/// nothing and bridge it all.
const FRAMES_QUEUED: f64 = 1.0;
const FRAMES_QUEUED_CLEAN: f64 = 3.0;
/// Loss below which a path is clean.
const CLEAN: f64 = 0.02;
/// How much the share answers to a queue that is one whole too long, at once and with each round trip. The queue is the
/// sum of what was sent too much, so the second alone would swing for ever; with 2 to 4 ms of queue and 25 ms of round trip
/// these two settle within half a second (natural frequency 9 to 6.5 per second, damping 0.8 to 0.6).
const SHARE_NOW: f64 = 0.03;
const SHARE_STEP: f64 = 0.004;
/// What two ends have that fill a half-duplex medium both ways.
const SHARE_LEAST: f64 = 0.5;
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
    /// Share of a given rate that is used in the long run, and now.
    share: f64,
    share_now: f64,
    free_at: Instant,
    /// How far the pace may be run ahead of in the present step.
    step_until: Instant,
    /// Octets of a full frame, headers below included.
    frame: usize,
    judged_at: Instant,
    /// Until the first queue: the pace doubles with each round trip.
    starting: bool,
    /// Whether the pace has held something back since it was judged.
    used: bool,
}

impl Pace {
    /// A pace for frames of so many octets at most, headers below included.
    pub fn new(given: Option<Bitrate>, frame: usize) -> Pace {
        Pace {
            given,
            rate: given.unwrap_or(FIRST),
            share: 1.0,
            share_now: 1.0,
            free_at: Instant::ZERO,
            step_until: Instant::ZERO,
            frame,
            judged_at: Instant::ZERO,
            starting: true,
            used: false,
        }
    }

    /// Another rate from now on.
    pub fn give(&mut self, given: Option<Bitrate>) {
        self.rate = given.unwrap_or(self.rate());
        (self.given, self.share, self.share_now) = (given, 1.0, 1.0);
    }

    /// The pace in use.
    pub fn rate(&self) -> Bitrate {
        Bitrate((self.rate.0 as f64 * self.share_now) as u64)
    }

    /// When the next frame may leave: at its pace, or at once if even a full one belongs to the step that has begun.
    pub fn free_at(&self) -> Instant {
        let ahead = self.free_at + self.rate().time_of(self.frame as u64 * 8);
        match ahead <= self.step_until {
            true => self.step_until.saturating_before(STEP).min(self.free_at),
            false => self.free_at,
        }
    }

    /// A datagram of `octets`, headers below included, leaves.
    pub fn spend(&mut self, now: Instant, octets: usize) {
        if self.free_at <= now {
            self.step_until = now + STEP;
        }
        let time = self.rate().time_of(octets as u64 * 8);
        self.free_at = self.free_at.max(now.saturating_before(BURST)) + time;
        self.used |= self.free_at > now;
    }

    /// Whether `in_flight` octets are too many to add to.
    pub fn is_full(&self, in_flight: usize, frame_max: usize, least_rtt: Option<Duration>) -> bool {
        let span = least_rtt.unwrap_or(Duration::from_millis(50)) + SLACK;
        let octets = self.rate.0 as f64 / 8.0 * span.as_secs_f64();
        in_flight > octets as usize + FRAMES * frame_max
    }

    /// Something waits, since as much is under way as the path holds.
    pub fn hold(&mut self) {
        self.used = true;
    }

    /// Looks at the round trips, smoothed and least, and at the queue that stands on the path, if it is known, beside the
    /// one that should where a rate is given.
    pub fn judge(
        &mut self,
        now: Instant,
        rtt: Option<(Duration, Duration)>,
        (standing, right): (Option<Duration>, Duration),
    ) {
        let Some((smoothed, least)) = rtt else {
            return;
        };
        if now.saturating_since(self.judged_at) < smoothed.max(Duration::from_millis(20)) {
            return;
        }
        self.judged_at = now;
        if self.given.is_some() {
            return self.judge_share(standing.unwrap_or_default(), right);
        }
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

    /// A queue that is not of our making is no reason to give way: who has held nothing back sends little anyway.
    fn judge_share(&mut self, queue: Duration, right: Duration) {
        let over = queue.as_secs_f64() / right.as_secs_f64().max(1e-3) - 1.0;
        let over = if self.used { over.min(4.0) } else { -1.0 };
        self.share = (self.share - SHARE_STEP * over).clamp(SHARE_LEAST, 1.0);
        self.share_now = (self.share - SHARE_NOW * over).clamp(SHARE_LEAST, 1.0);
        self.used = false;
    }

    /// The queue to keep on a path of such loss, with frames of so many octets.
    pub fn queued(&self, loss: f64, frame: usize) -> Duration {
        let frames = match loss < CLEAN {
            true => FRAMES_QUEUED_CLEAN,
            false => FRAMES_QUEUED,
        };
        self.rate.time_of((frame as f64 * 8.0 * frames) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of 8 Mbit/s and 20 ms: the pace gets near it from below and stays, with a queue of some 15 ms.
    #[test]
    fn the_pace_converges_to_the_path() {
        let mut pace = Pace::new(None, 1500);
        let (path, least) = (8e6, Duration::from_millis(20));
        let (mut now, mut queue, mut last) = (Instant::ZERO, 0.0, Vec::new());
        for step in 0..6000 {
            now += Duration::from_millis(2);
            while pace.free_at() <= now {
                pace.spend(now, 1500);
            }
            queue = (queue + (pace.rate().0 as f64 - path) / path * 0.002).max(0.0);
            pace.judge(
                now,
                Some((least + Duration::from_secs_f64(queue), least)),
                (None, Duration::ZERO),
            );
            if step > 3000 {
                last.push(pace.rate().0 as f64 / path);
            }
        }
        let mean = last.iter().sum::<f64>() / last.len() as f64;
        assert!((0.9..1.1).contains(&mean), "{mean}");
        assert!(last.iter().all(|share| (0.6..1.6).contains(share)));
    }

    /// A medium of 6 Mbit/s of which others use a part: the pace becomes the rest, with a queue of some two frames here, and
    /// the whole again when they stop.
    #[test]
    fn a_given_rate_is_shared() {
        let given = Bitrate(6_000_000);
        let mut pace = Pace::new(Some(given), 1514);
        let least = Duration::from_millis(20);
        let (mut now, mut queue, mut smoothed) = (Instant::ZERO, 0.0f64, 0.0);
        for (others, share) in [(0.04, 0.96), (0.4, 0.6), (0.0, 1.0)] {
            let mut last: (f64, f64) = (0.0, 0.0);
            for step in 0..40_000 {
                now += Duration::from_micros(500);
                let mut sent = 0.0;
                // No more is under way than 40 ms hold, as the peer sees to.
                while pace.free_at() <= now && queue + sent < 0.02 {
                    pace.spend(now, 1514);
                    sent += 1514.0 * 8.0 / 6e6;
                }
                if queue + sent >= 0.02 {
                    pace.hold();
                }
                queue = (queue + sent - 0.0005 * (1.0 - others)).max(0.0);
                // An eighth of each of the samples that come every 6 ms.
                smoothed += (queue - smoothed) / 96.0;
                pace.judge(
                    now,
                    Some((least + Duration::from_secs_f64(smoothed), least)),
                    (
                        Some(Duration::from_secs_f64(smoothed)),
                        Duration::from_millis(4),
                    ),
                );
                if step > 20_000 {
                    last.0 = last.0.max((pace.rate().0 as f64 / 6e6 - share).abs());
                    last.1 = last.1.max(queue);
                }
            }
            println!("{others}: {last:?}");
            assert!(last.0 < 0.02 && last.1 < 0.009, "{others}: {last:?}");
        }
    }

    /// Goal: a fast pace needs a wake-up a millisecond, a slow one a wake-up for each frame; neither runs ahead of its rate by more than
    /// the step, and neither falls behind. Method: a program that wakes when it was told to, and sometimes in between.
    #[test]
    fn fast_frames_leave_in_batches() {
        for (rate, most) in [
            (60_000_000, 4u64),
            (600_000_000, 49),
            (13_000_000, 1),
            (6_000_000, 1),
        ] {
            let mut pace = Pace::new(Some(Bitrate(rate)), 1514);
            let (mut now, mut sent, mut wakes, mut largest) = (Instant::from_millis(5), 0u64, 0, 0);
            let begun = now;
            while now < begun + Duration::from_secs(1) {
                let mut together = 0;
                while pace.free_at() <= now {
                    pace.spend(now, 1514);
                    (sent, together) = (sent + 1514 * 8, together + 1);
                }
                // At first four milliseconds of the time before are made good.
                let allowed =
                    (now + STEP + BURST).saturating_since(begun).as_secs_f64() * rate as f64;
                let lower = (now.saturating_since(begun)).as_secs_f64() * rate as f64;
                assert!((sent as f64) < allowed + 1514.0 * 8.0, "{rate}: too much");
                assert!(sent as f64 >= lower, "{rate}: too little");
                if now > begun + STEP * 10 {
                    (wakes, largest) = (wakes + u64::from(together > 0), largest.max(together));
                }
                // In between something comes in: no reason to send more.
                now = pace
                    .free_at()
                    .min(now + Duration::from_micros(900))
                    .max(now + Duration::from_nanos(1));
            }
            assert_eq!(largest, most, "{rate}");
            let frames = sent / (1514 * 8);
            assert!(
                wakes * most <= frames + most,
                "{rate}: {wakes} for {frames}"
            );
        }
    }

    #[test]
    fn octets_in_flight_are_bounded_by_the_given_rate() {
        let pace = Pace::new(Some(Bitrate(6_000_000)), 1514);
        // 40 ms of 6 Mbit/s are 30,000 octets, and four frames.
        let least = Some(Duration::from_millis(20));
        assert!(pace.is_full(36_100, 1500, least) && !pace.is_full(35_900, 1500, least));
    }
}
