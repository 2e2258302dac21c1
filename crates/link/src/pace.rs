//! Pacing and congestion control: at a given rate, or at the rate that the path is found to carry.
//!
//! Loss is no congestion signal here, since the link exists for paths that lose frames. Delay is: when the path is full,
//! frames queue and the round trip grows. So there are two limits. Frames leave at a pace, and the octets in flight are
//! bounded by the pace times the least round trip, plus some slack. Without a given rate the pace is found ([`found`]). Where
//! frames overtake each other their delays differ without any queue: what they differ by counts neither as queue nor as full.
//!
//! A given rate is the rate of the medium, not this sender's share: reports come back over the same medium, and other
//! traffic uses it too. So the pace is the share of it that keeps a queue of a few frames. Each further queued frame
//! would lengthen every round of repetition, and so the time that a flow waits for its oldest packet.
//!
//! A pace of thousands of frames a second is kept in steps. The frames of a step leave together and cost one wake-up and
//! one system call.

mod bursts;
mod found;
mod losses;

use chappe_core::{Bitrate, Duration, Instant};
use chappe_wildnet::gilbert::Channel;

use bursts::Bursts;
use found::Found;
pub(crate) use found::Sight;
use losses::Losses;

/// A step: frames may leave together if they are not further ahead of the pace than this. Linux's TCP paces in the same
/// steps (`sk_pacing_shift` is 10, 1/1024 s), which the queues of Wi-Fi and cable devices take. The queue on the path
/// empties within the step, so it does not raise the least round trip. Up to 12 Mbit/s one frame takes a step, so each
/// leaves alone.
const STEP: Duration = Duration::from_millis(1);
/// The burst that may follow a wake-up that is hardly late.
const BURST: Duration = Duration::from_millis(4);
/// The longest lateness of a turn that a burst makes good: a queue that is kept short lets a burst of so long pass (RFC 8289, 4.3:
/// CoDel's interval of 100 ms). Others that use the processor delay a turn by tens of milliseconds.
const LATE_MOST: Duration = Duration::from_millis(100);
/// What a round trip leaves of the length of a burst, as of the smoothed round trip (RFC 6298, 2).
const BUNCH_KEPT: f64 = 0.875;
/// How often reports come ([`chappe_wildnet::Config::ack_delay`]), and how seldom more of them may be lost in a row than the limit in
/// flight allows for: as seldom as a bulk packet may be late.
const REPORTS_EVERY: Duration = Duration::from_millis(10);
const SELDOM: f64 = 0.01;
/// Most reports in a row that the limit allows for: what is lost for longer is an outage.
const LOST_MOST: f64 = 30.0;
/// Frames of standing queue at which the share of a given rate stays the same. One frame bridges most of a round's
/// jitter; with half a frame the medium is often idle. On a clean path three cost nothing and bridge all of it.
const FRAMES_QUEUED: f64 = 1.0;
const FRAMES_QUEUED_CLEAN: f64 = 3.0;
/// Loss ratio below which a path counts as clean.
const CLEAN: f64 = 0.02;
/// Proportional and integral gain of the share, for a queue of twice the right length. The queue integrates the excess
/// rate, so integral control alone would oscillate permanently. With 2 to 4 ms of queue and a round trip of 25 ms both
/// together settle within half a second (natural frequency 9 to 6.5 per second, damping 0.8 to 0.6).
const SHARE_NOW: f64 = 0.03;
const SHARE_STEP: f64 = 0.004;
/// The longest round trip, in seconds, for which these gains hold; they shrink for longer ones.
const GAINED: f64 = 0.1;
/// The smallest share: that of each of two hosts that fill a half-duplex medium in both directions.
const SHARE_LEAST: f64 = 0.5;
/// Shortest time between two adjustments: two reports of 10 ms.
const ROUND_LEAST: Duration = Duration::from_millis(20);
/// Frames in flight that are always allowed.
const FRAMES: usize = 4;

/// The pace and the limit in flight of one peer.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    given: Option<Bitrate>,
    found: Found,
    /// The share of a given rate: its integral part, and the share in use.
    share: f64,
    share_now: f64,
    free_at: Instant,
    /// The end of the present step, up to which frames may leave ahead of the pace.
    step_until: Instant,
    /// Octets of a full frame, headers below included.
    frame: usize,
    /// When the present turn should have begun: what could have left since then makes no burst too long.
    due_at: Instant,
    /// The longest recent burst of a late turn: the last of its frames waits for the first ones, on a path that it fills.
    bunch: Duration,
    bursts: Bursts,
    losses: Losses,
    judged_at: Instant,
    /// By how much longer than the least a round trip may be though nothing queues, and how long frames may be overtaken.
    spread: Duration,
    /// Whether the pace has held a frame back since it was last judged.
    used: bool,
    /// Whether the path was full since a pace that is found was last judged.
    held: bool,
    /// Octets sent on the medium, and those of them that the link's frames have.
    sent: (u64, u64),
}

impl Pace {
    /// A pace for frames of up to `frame` octets, with the headers of the layers below.
    pub fn new(given: Option<Bitrate>, frame: usize) -> Pace {
        Pace {
            given,
            found: Found::new(None),
            share: 1.0,
            share_now: 1.0,
            free_at: Instant::ZERO,
            step_until: Instant::ZERO,
            frame,
            due_at: Instant::MAX,
            bunch: Duration::ZERO,
            bursts: Bursts::new(),
            losses: Losses::new(),
            judged_at: Instant::ZERO,
            spread: Duration::ZERO,
            used: false,
            held: false,
            sent: (0, 0),
        }
    }

    /// Changes the given rate.
    pub fn give(&mut self, given: Option<Bitrate>) {
        self.found = Found::new(Some(self.rate()));
        (self.given, self.share, self.share_now) = (given, 1.0, 1.0);
    }

    /// The pace in use.
    pub fn rate(&self) -> Bitrate {
        match self.given {
            Some(rate) => Bitrate((rate.0 as f64 * self.share_now) as u64),
            None => self.found.rate(),
        }
    }

    /// The rate that the path is taken to have.
    fn whole(&self) -> Bitrate {
        self.given.unwrap_or_else(|| self.found.rate())
    }

    /// When the next frame may leave: at its pace, or at once if even a full one still fits the present step.
    pub fn free_at(&self) -> Instant {
        let ahead = self.free_at + self.rate().time_of(self.frame as u64 * 8);
        match ahead <= self.step_until {
            true => self.step_until.saturating_before(STEP).min(self.free_at),
            false => self.free_at,
        }
    }

    /// Charges a datagram of `octets`, with the headers of the layers below, which carries a frame of `framed`.
    pub fn spend(&mut self, now: Instant, octets: usize, framed: usize) {
        self.sent.0 += octets as u64;
        self.sent.1 += framed as u64;
        if self.free_at <= now {
            self.step_until = now + STEP;
        }
        let time = self.rate().time_of(octets as u64 * 8);
        self.free_at = self.free_at.max(self.since(now));
        let behind = now.saturating_since(self.free_at);
        if behind > BURST {
            self.bunch = self.bunch.max(behind);
        }
        if behind >= BURST {
            self.bursts.leave(behind);
        }
        self.free_at += time;
        self.used |= self.free_at > now;
    }

    /// Since when a pace that has not been used may be used now.
    fn since(&self, now: Instant) -> Instant {
        let usual = now.saturating_before(BURST);
        match now.saturating_since(self.due_at) <= LATE_MOST {
            true => {
                let longest = now.saturating_before(self.bursts.most());
                self.due_at.max(longest).min(usual)
            }
            // The host stood still, and what was under way has gone: it begins gently.
            false => usual,
        }
    }

    /// A turn begins that was due then; `Instant::MAX` once it is over.
    pub fn turn(&mut self, due_at: Instant) {
        self.due_at = self.due_at.min(due_at);
        if due_at == Instant::MAX {
            self.due_at = due_at;
        }
    }

    /// Whether the path has no room for more octets in flight. `reports`: the channel on which reports come.
    pub fn is_full(
        &self,
        in_flight: usize,
        frame_max: usize,
        least_rtt: Option<Duration>,
        reports: &Channel,
    ) -> bool {
        let slack = REPORTS_EVERY.mul_f64(1.0 + lost_in_a_row(reports));
        let span = least_rtt.unwrap_or(Duration::from_millis(50)) + slack + self.spread;
        let octets = self.whole().0 as f64 / 8.0 * span.as_secs_f64();
        in_flight > octets as usize + FRAMES * frame_max
    }

    /// Notes that a frame waits because the path is full.
    pub fn hold(&mut self) {
        (self.used, self.held) = (true, true);
    }

    /// Adjusts the pace, once per round trip, to what a report says. `reordering`: how long frames may be overtaken.
    pub fn judge(&mut self, now: Instant, sight: &Sight, reordering: Duration) {
        self.bursts.judge(now, sight, &mut self.losses);
        // Frames that are overtaken count as in flight until they must have come, and all until a report is read.
        self.spread = match reordering > Duration::ZERO {
            true => sight.smoothed.saturating_sub(sight.lately) + reordering,
            false => Duration::ZERO,
        } + sight.host_delay
            + self.bunch;
        let sight = &Sight {
            jitter: sight.jitter + self.bunch,
            bursts: self.bursts.seen(),
            ..*sight
        };
        if self.given.is_none() {
            // Reports count the link's frames; on the medium a frame has more octets.
            let share = self.sent.0 as f64 / self.sent.1.max(1) as f64;
            let sent = (self.sent.0, self.held);
            if (self.found).judge(now, sight, sent, (share, &mut self.losses)) {
                self.held = false;
                self.bunch = self.bunch.mul_f64(BUNCH_KEPT);
            }
            return;
        }
        if now.saturating_since(self.judged_at) < sight.smoothed.max(ROUND_LEAST) {
            return;
        }
        self.judged_at = now;
        self.bunch = self.bunch.mul_f64(BUNCH_KEPT);
        let standing = sight.lately.saturating_sub(sight.least + sight.jitter);
        // On a long path what is changed shows late: smaller steps, or the share swings.
        let gained = (GAINED / sight.smoothed.as_secs_f64().max(1e-3)).min(1.0);
        self.judge_share(standing, sight.right, gained);
    }

    /// Notes what a report says without drawing conclusions: this end has stood still.
    pub fn skip(&mut self, now: Instant, sight: &Sight) {
        self.found.skip(now, sight, self.sent.0);
        (self.judged_at, self.used, self.held) = (now, false, false);
    }

    /// Adjusts the share of a given rate. A sender whose pace held nothing back did not cause the queue, so it does not slow
    /// down.
    fn judge_share(&mut self, queue: Duration, right: Duration, gained: f64) {
        let over = queue.as_secs_f64() / right.as_secs_f64().max(1e-3) - 1.0;
        let over = if self.used { over.min(4.0) } else { -1.0 };
        self.share = (self.share - SHARE_STEP * gained * over).clamp(SHARE_LEAST, 1.0);
        self.share_now = (self.share - SHARE_NOW * gained * over).clamp(SHARE_LEAST, 1.0);
        self.used = false;
    }

    /// The queue to keep on a path with this loss ratio, for frames of `frame` octets. On a slow path each frame of it delays a ping by
    /// much: it need not be longer than what passes between two reports, but for a frame.
    pub fn queued(&self, loss: f64, frame: usize) -> Duration {
        let of = |frames: f64| self.whole().time_of((frame as f64 * 8.0 * frames) as u64);
        match loss < CLEAN {
            true => of(FRAMES_QUEUED_CLEAN).min(REPORTS_EVERY.max(of(2.0 * FRAMES_QUEUED))),
            false => of(FRAMES_QUEUED),
        }
    }
}

/// Frames of a channel that are lost in a row at most, but for [`SELDOM`]; one at least.
fn lost_in_a_row(channel: &Channel) -> f64 {
    let again = (1.0 - 1.0 / channel.burst.max(1.0)).min(0.99);
    if channel.loss <= SELDOM || again <= 0.0 {
        return 1.0;
    }
    (1.0 + (SELDOM / channel.loss).ln() / again.ln()).clamp(1.0, LOST_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(least: Duration, queue: f64, right: Duration) -> Sight {
        let seen = least + Duration::from_secs_f64(queue);
        Sight {
            smoothed: seen,
            least,
            latest: seen,
            lately: seen,
            passed: (0, Instant::ZERO),
            frames: (0, 0),
            heard: 0,
            jitter: Duration::ZERO,
            host_delay: Duration::ZERO,
            right,
            bunched: 1.0,
            frame: 1500,
            bursts: (Duration::ZERO, Duration::ZERO),
        }
    }

    /// A path of 8 Mbit/s and 20 ms that loses 30 %: the pace gets near it within half a second and stays, with a queue of some
    /// frames.
    #[test]
    fn the_pace_converges_to_the_path() {
        let mut pace = Pace::new(None, 1500);
        let (path, least) = (8e6f64, Duration::from_millis(20));
        let (mut now, mut queue, mut last) = (Instant::ZERO, 0.0f64, Vec::new());
        let (mut sent, mut passed) = (0.0f64, 0.0f64);
        for step in 0..6000 {
            now += Duration::from_millis(2);
            while pace.free_at() <= now {
                let carried = path.min(pace.rate().0 as f64) * 0.02;
                let in_flight = (sent - passed + carried) / 8.0;
                if pace.is_full(
                    in_flight as usize,
                    1500,
                    Some(least),
                    &Channel::independent(0.0),
                ) {
                    pace.hold();
                    break;
                }
                pace.spend(now, 1500, 1426);
                sent += 1426.0 * 8.0;
            }
            // What waits leaves at the rate of the path, of which 5 % are headers.
            passed += (path * 0.002 * 1426.0 / 1500.0).min(sent - passed);
            queue = (sent - passed) / path;
            let frames = passed / 8.0 / 1426.0;
            let sight = Sight {
                passed: ((passed / 8.0) as u64, now),
                frames: ((frames * 0.7) as u64, (frames * 0.3) as u64),
                ..sight(least, queue, Duration::from_millis(2))
            };
            pace.judge(now, &sight, Duration::ZERO);
            if step > 250 {
                last.push(pace.rate().0 as f64 / path);
            }
        }
        let mean = last.iter().sum::<f64>() / last.len() as f64;
        println!("{mean} {queue}");
        assert!((0.95..1.05).contains(&mean), "{mean}");
        assert!(last.iter().all(|share| (0.6..1.3).contains(share)));
        assert!(queue < 0.02, "{queue}");
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
                    pace.spend(now, 1514, 1440);
                    sent += 1514.0 * 8.0 / 6e6;
                }
                if queue + sent >= 0.02 {
                    pace.hold();
                }
                queue = (queue + sent - 0.0005 * (1.0 - others)).max(0.0);
                // An eighth of each of the samples that come every 6 ms.
                smoothed += (queue - smoothed) / 96.0;
                let sight = sight(least, smoothed, Duration::from_millis(4));
                pace.judge(now, &sight, Duration::ZERO);
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
    /// the step, and neither falls behind. Method: a program that wakes at the given time, and sometimes in between.
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
                    pace.spend(now, 1514, 1440);
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
        let full = |octets: usize, reports: Channel| pace.is_full(octets, 1500, least, &reports);
        let clean = Channel::independent(0.0);
        assert!(full(36_100, clean) && !full(35_900, clean));
        // Of independent reports 3.8 in a row are lost once in a hundred, of those lost in bursts 12.8: 48 ms and 138.
        let lost = Channel::independent(0.3);
        assert!(full(57_500, lost) && !full(57_000, lost));
        let bursts = Channel::bursty(0.3, 4.0);
        assert!(full(125_200, bursts) && !full(124_500, bursts));
    }
}
