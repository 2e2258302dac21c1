//! The longest burst that makes good a late turn without overflowing the path's queue.
//!
//! How much that queue takes is not known, and no loss says by itself where it comes from. A queue that overflowed shows twice: the last
//! frame that arrived waited for less than the burst was long, and about as much as did not fit is lost beyond what the path has been
//! losing. Then a burst may be as long as the longest queue that round trips showed, which the path did take, and grows by a
//! sixteenth in each round without such losses. If shorter bursts do not help for some rounds, the path itself loses more than before.

use chappe_core::{Duration, Instant};

use super::found::Sight;
use super::losses::Losses;
use super::{BURST, LATE_MOST, ROUND_LEAST};

/// Part of its length by which a burst grows in a round.
const GROWTH: u64 = 16;
/// Standard deviations by which more frames than usual must be lost: by chance they are once in 740 times (normal distribution).
const DEVIATIONS: f64 = 3.0;
/// Part of a burst by which the queue must be shorter: round trips are not measured of each frame.
const LEFT_OUT: f64 = 0.1;
/// What a round leaves of the counts before it: some twenty rounds count.
const KEPT: f64 = 0.95;
/// The longest mean run of losses that counts as chance: a queue or an outage makes longer ones.
const RUN_MOST: f64 = 10.0;
/// Rounds after which losses are the path's own if shorter bursts did not help.
const ROUNDS: u32 = 3;

#[derive(Clone, Debug)]
pub(super) struct Bursts {
    most: Duration,
    /// Whether a burst was as long as that since the last look; the longest since then, and between the two looks before.
    cut: bool,
    longest: [Duration; 2],
    /// The longest queue since then, and between the two looks before.
    queued: [Duration; 2],
    looked_at: Instant,
    /// Frames received and lost by then.
    frames: (u64, u64),
    /// Frames and losses of earlier rounds in which no queue can have overflowed.
    usual: (f64, f64),
    /// The mean length of a run of losses by then: one that a queue makes is no measure of chance.
    run: f64,
    /// Rounds in a row that lost more.
    over: u32,
}

impl Bursts {
    pub fn new() -> Bursts {
        Bursts {
            most: LATE_MOST,
            cut: false,
            longest: [Duration::ZERO; 2],
            queued: [Duration::ZERO; 2],
            looked_at: Instant::ZERO,
            frames: (0, 0),
            usual: (0.0, 0.0),
            run: 1.0,
            over: 0,
        }
    }

    /// The longest that may leave.
    pub fn most(&self) -> Duration {
        self.most
    }

    /// A burst leaves that makes up for so long.
    pub fn leave(&mut self, length: Duration) {
        self.longest[0] = self.longest[0].max(length);
        self.cut |= length >= self.most;
    }

    /// Takes what a report says of queues and losses.
    pub fn judge(&mut self, now: Instant, sight: &Sight, losses: &mut Losses) {
        let queued = sight.latest.saturating_sub(sight.least);
        self.queued[0] = self.queued[0].max(queued);
        let round = sight.smoothed.max(ROUND_LEAST) + sight.host_delay;
        if now.saturating_since(self.looked_at) < round {
            return;
        }
        let new = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let lost = new(sight.frames.1, self.frames.1);
        let all = new(sight.frames.0, self.frames.0) + lost;
        (self.looked_at, self.frames) = (now, sight.frames);
        let burst = self.longest[0].max(self.longest[1]) > BURST;
        losses.note(now, (all, lost), sight.bunched, burst);
        if self.is_overflow((all, lost), losses.own()) {
            self.over += 1;
            self.most = self.most.min(self.queued().max(BURST));
        } else {
            self.over = 0;
            if self.cut {
                self.most = (self.most + self.most / GROWTH).min(LATE_MOST);
            }
        }
        let [present, before] = self.longest;
        if present.max(before) <= BURST || self.left_out(present.max(before)) <= LEFT_OUT {
            // Nothing can have overflowed.
            self.usual = (self.usual.0 * KEPT + all, self.usual.1 * KEPT + lost);
            self.run = sight.bunched.min(RUN_MOST);
        }
        if self.over > ROUNDS {
            (self.over, self.usual) = (0, (all, lost));
            losses.learn(now, (all, lost));
            self.run = sight.bunched.min(RUN_MOST);
        }
        self.cut = false;
        self.queued = [Duration::ZERO, self.queued[0]];
        self.longest = [Duration::ZERO, self.longest[0]];
    }

    /// The length of the bursts of which a report tells now, if they make good more than a usual turn, and the longest queue.
    pub fn seen(&self) -> (Duration, Duration) {
        let burst = self.longest[0].min(self.longest[1]);
        let burst = if burst > BURST { burst } else { Duration::ZERO };
        (burst, self.queued())
    }

    fn queued(&self) -> Duration {
        self.queued[0].max(self.queued[1])
    }

    /// The part of a burst of so long that is not in the longest queue.
    fn left_out(&self, burst: Duration) -> f64 {
        1.0 - self.queued().as_secs_f64() / burst.as_secs_f64().max(1e-3)
    }

    /// Whether so many of all frames are lost because bursts did not fit. `own`: the least share that was lost of late.
    fn is_overflow(&self, (all, lost): (f64, f64), own: f64) -> bool {
        // What is reported now left about a round ago.
        let burst = self.longest[0].min(self.longest[1]);
        let left_out = self.left_out(burst);
        let share = (self.usual.1 / self.usual.0.max(1.0)).min(own);
        // Losses in runs vary as fewer independent ones do.
        let runs = (2.0 * self.run - 1.0).max(1.0);
        let spread = (all * share * (1.0 - share) * runs).sqrt();
        let more = lost - all * share;
        burst > BURST
            && left_out > LEFT_OUT
            && more > DEVIATIONS * spread + self.run.max(1.0)
            && more > all * left_out / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs rounds of 30 ms with bursts as long as allowed, 20 ms at most, over a queue that takes `queue` of a path with 8 frames a
    /// millisecond that loses every `own`th frame; the mean length of the last bursts in ms.
    fn length(queue: f64, own: u64, wanted: f64) -> f64 {
        let mut bursts = Bursts::new();
        let (mut now, mut frames, mut sum) = (Instant::ZERO, (0, 0), 0.0);
        let mut losses = Losses::new();
        for round in 0..600u64 {
            now += Duration::from_millis(50);
            let length = bursts.most().as_secs_f64().min(wanted / 1e3) * 1e3;
            bursts.leave(Duration::from_secs_f64(length / 1e3));
            let passed = (length.min(queue) * 8.0) as u64;
            let over = (length * 8.0) as u64 - passed;
            let lost = passed.checked_div(own).map_or(0, |lost| lost + round % 2);
            frames = (frames.0 + passed - lost.min(passed), frames.1 + lost + over);
            let least = Duration::from_millis(20);
            let seen = least + Duration::from_secs_f64(length.min(queue) / 1e3);
            let sight = Sight {
                smoothed: least,
                least,
                latest: seen,
                lately: least,
                passed: (0, now),
                frames,
                heard: 0,
                jitter: Duration::ZERO,
                host_delay: Duration::ZERO,
                right: Duration::from_millis(1),
                bunched: 1.0,
                frame: 1500,
                bursts: (Duration::ZERO, Duration::ZERO),
            };
            bursts.judge(now, &sight, &mut losses);
            sum += if round >= 300 { length } else { 0.0 };
        }
        sum / 300.0
    }

    /// Goal: bursts are nearly as long as the queue takes, whatever the path loses besides, and nothing limits them where the queue takes all.
    #[test]
    fn bursts_are_as_long_as_the_queue_takes() {
        for own in [0, 20, 3] {
            for queue in [8.0, 20.0, 40.0] {
                let mean = length(queue, own, 100.0);
                println!("{own} {queue}: {mean}");
                assert!(
                    (queue * 0.85..queue * 1.25).contains(&mean),
                    "{own} {queue}: {mean}"
                );
            }
            let mean = length(200.0, own, 50.0);
            assert!(mean > 49.0, "{own}: {mean}");
        }
    }
}
