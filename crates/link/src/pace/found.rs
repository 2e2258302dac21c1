//! The pace where no rate is given: found from the path's delay and from the rate at which reports pass frames.
//!
//! Two lessons of BBR (draft-ietf-ccwg-bbr) without its cycle. The start doubles the pace each round trip until a queue stands
//! (HyStart++, RFC 9406) or the delivered rate no longer grows (BBR's full pipe), then takes over the delivered rate. It looks
//! four times in a round trip: at its end only, the pace would follow what was delivered a round trip late, and a queue would
//! be seen after another one. And a long queue sets the pace to the delivered rate at once. In between a short queue is kept, as with a given rate: while one stands,
//! the path is never idle, whatever it loses.

use chappe_core::{Bitrate, Duration, Instant};

use super::losses::Losses;
use super::{GAINED, ROUND_LEAST, SHARE_NOW, SHARE_STEP};

/// The pace before the first measurement, and the slowest one.
const FIRST: Bitrate = Bitrate(1_000_000);
const LEAST: Bitrate = Bitrate(64_000);
/// Delay that ends the start: an eighth of the round trip within these bounds (RFC 9406, 4.3: RttThresh).
const QUEUE_LEAST: Duration = Duration::from_millis(4);
const QUEUE_MOST: Duration = Duration::from_millis(16);
/// Growth of the delivered rate that a doubled pace must show, and rounds in which it may not (BBR, 5.3.1.2: full pipe).
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;
/// The most that the pace of the start is of the delivered rate (BBR, 5.3.1.1: 4 ln 2).
const START: f64 = 2.77;
/// Looks in a round trip of the start.
const LOOKS: u64 = 4;
/// How old the lowest round trip may be that says what stands ([`chappe_wildnet::Report::rtt_lately`]).
const LATELY: Duration = Duration::from_millis(150);
/// Steps by which the pace grows while no queue stands, each for as long as a queue takes to show. BBR probes with the largest.
const UP_LEAST: f64 = 0.005;
const UP_MOST: f64 = 0.25;
/// Share of the pace that a sender must use before it says something of the path.
const USED: f64 = 0.8;
/// What a round leaves of the counts before it: some twenty rounds count.
const KEEP: f64 = 0.95;
/// The longest round that counts, in seconds: before the first one, and after a pause, rounds say nothing.
const ROUND_MOST: f64 = 2.0;
/// How often the queue is let run empty, so that the least round trip stays known: once in each of the stretches of ten seconds over
/// which the minimum is taken, and done before its end. BBR's ProbeRTT comes after 10 s, the life of its minimum.
const EMPTY_EVERY: Duration = Duration::from_secs(8);

/// A direction is thin if this many times as much comes the other way: acknowledgements. Round trips show the queues of both directions
/// together, and those that stand are then not of its making. Only rates of up and down that differ by as much could deceive it.
const THIN: f64 = 16.0;

/// What one report says of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    /// Smoothed, least, and latest round trip, and the least of the latest 100 to 200 ms.
    pub smoothed: Duration,
    pub least: Duration,
    pub latest: Duration,
    pub lately: Duration,
    /// Octets passed, headers below not included, and up to when.
    pub passed: (u64, Instant),
    /// Frames received and lost so far.
    pub frames: (u64, u64),
    /// Octets received on the path so far, with all headers.
    pub heard: u64,
    /// By how much the least of the latest round trips exceeds the least of all although nothing queues.
    pub jitter: Duration,
    /// How long reports wait at the hosts at both ends, as far as is likely.
    pub host_delay: Duration,
    /// The queue to keep.
    pub right: Duration,
    /// The mean length of a run of losses, in frames.
    pub bunched: f64,
    /// Octets of a full frame, headers below included.
    pub frame: usize,
    /// How long the bursts of late turns were at the pace, and the longest queue that round trips showed.
    pub bursts: (Duration, Duration),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Doubles; the delivered rate that was last a growth, and since when a pace that was used has not brought another one.
    Start(f64, Instant),
    /// Lets the queue of the start run empty, until then.
    Empty(Instant),
    Hold,
}

/// The pace of a path of unknown rate.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    rate: f64,
    /// What the proportional part makes of it.
    factor: f64,
    phase: Phase,
    round_at: Instant,
    /// The least round trip of this round, and what had been passed at its begin.
    round_least: Option<Duration>,
    passed: (u64, Instant),
    frames: (u64, u64),
    /// Octets sent and received by then.
    sent: u64,
    heard: u64,
    /// The same of some twenty rounds, and the seconds that these took.
    both: (f64, f64, f64),
    /// When the delivered rate was last seen not to grow with the pace: the path carries no more.
    full_at: Option<Instant>,
    /// Rounds in a row in which more was lost, what share in the first of them, and the rate before it.
    over: (u32, f64, f64),
    /// The present step upwards, and since when.
    up: f64,
    up_at: Instant,
    /// When the pace was last set to the delivered rate, and how often in a row that shortened nothing.
    cut_at: Instant,
    cut_for_nothing: u32,
    standing_at_cut: Duration,
    /// What has become of the path's delay since the least round trip was measured.
    longer: (Duration, Duration),
    emptied_at: Instant,
}

impl Found {
    pub fn new(rate: Option<Bitrate>) -> Found {
        Found {
            rate: rate.unwrap_or(FIRST).0 as f64,
            factor: 1.0,
            phase: Phase::Start(0.0, Instant::ZERO),
            round_at: Instant::ZERO,
            round_least: None,
            passed: (0, Instant::ZERO),
            frames: (0, 0),
            sent: 0,
            heard: 0,
            both: (0.0, 0.0, 0.0),
            full_at: None,
            over: (0, 0.0, 0.0),
            up: UP_LEAST,
            up_at: Instant::ZERO,
            cut_at: Instant::ZERO,
            cut_for_nothing: 0,
            standing_at_cut: Duration::ZERO,
            longer: (Duration::ZERO, Duration::ZERO),
            emptied_at: Instant::ZERO,
        }
    }

    pub fn rate(&self) -> Bitrate {
        Bitrate((self.rate * self.factor) as u64).max(LEAST)
    }

    /// Takes a report. `sent`: octets sent so far, and whether the path was full in this round; `share`: octets on the medium for
    /// one that is counted as passed. Returns whether a round has ended.
    pub fn judge(
        &mut self,
        now: Instant,
        sight: &Sight,
        sent: (u64, bool),
        (share, losses): (f64, &mut Losses),
    ) -> bool {
        let least = self
            .round_least
            .map_or(sight.latest, |least| least.min(sight.latest));
        self.round_least = Some(least);
        // Not the smoothed one: a queue that grows fast would put off what ends it.
        if now.saturating_since(self.round_at) < self.look(sight) {
            return false;
        }
        let (octets, since) = (sight.passed.0.wrapping_sub(self.passed.0), self.passed.1);
        let span = sight.passed.1.saturating_since(since).as_secs_f64();
        let delivered = if span > 1e-3 {
            octets as f64 * 8.0 * share / span
        } else {
            0.0
        };
        let new = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let lost = new(sight.frames.1, self.frames.1);
        let counts = (new(sight.frames.0, self.frames.0) + lost, lost);
        let came = came(counts, losses);
        let delivered = delivered * came;
        // A sender with little to say learns nothing of the path.
        let round = now.saturating_since(self.round_at).as_secs_f64();
        let could = self.rate().0 as f64 * round / 8.0;
        let used = sent.1 || sent.0.saturating_sub(self.sent) as f64 > USED * could;
        let (went, heard) = (
            sent.0.saturating_sub(self.sent),
            sight.heard.saturating_sub(self.heard),
        );
        let (all_went, all_heard, all_span) = self.both;
        self.both = (
            all_went * KEEP + went as f64,
            all_heard * KEEP + heard as f64,
            all_span * KEEP + round.min(ROUND_MOST),
        );
        (self.round_at, self.round_least, self.passed) = (now, None, sight.passed);
        (self.frames, self.sent, self.heard) = (sight.frames, sent.0, sight.heard);
        self.round(now, sight, (least, delivered), used);
        if self.phase == Phase::Hold && used && !self.is_thin() {
            self.judge_losses(now, sight, (counts, came), losses);
        }
        self.rate = self.rate.max(LEAST.0 as f64);
        if self.is_thin() {
            // What acknowledges must not wait: it may use what would still be thin.
            let heard = self.both.1 * 8.0 / self.both.2.max(1e-3);
            self.rate = self.rate.max(heard / THIN);
        }
        true
    }

    /// Whether hardly anything goes this way ([`THIN`]).
    fn is_thin(&self) -> bool {
        self.both.1 > THIN * self.both.0
    }

    /// Time between two looks at the path.
    fn look(&self, sight: &Sight) -> Duration {
        let round = match self.phase {
            Phase::Start(..) => sight.least / LOOKS,
            _ => sight.least,
        };
        // Two reports at least, which hosts that get their turns late send and read less often.
        round.max(ROUND_LEAST + sight.host_delay)
    }

    /// Begins a round anew.
    pub fn skip(&mut self, now: Instant, sight: &Sight, sent: u64) {
        (self.round_at, self.round_least, self.passed) = (now, None, sight.passed);
        (self.frames, self.sent, self.heard) = (sight.frames, sent, sight.heard);
    }

    /// A queue that is too short to be seen drops what does not fit: the pace falls by as much. What is lost no less then is the path's own.
    fn judge_losses(
        &mut self,
        now: Instant,
        sight: &Sight,
        (counts, came): ((f64, f64), f64),
        losses: &mut Losses,
    ) {
        let (rounds, first, before) = self.over;
        let more = counts.1 / counts.0.max(1.0) - losses.own();
        // A burst takes as much longer on the path as less of it comes. What did not fit is lost, about.
        let (burst, queued) = sight.bursts;
        let fits = queued.as_secs_f64() * came / burst.as_secs_f64().max(1e-3);
        let unseen = burst > Duration::ZERO && more > (1.0 - fits) / 2.0 && fits < 0.9;
        if !unseen || !losses.exceeds(counts, sight.bunched) {
            self.over.0 = 0;
            return;
        }
        self.up = UP_LEAST;
        if rounds == 0 {
            self.over = (1, more, self.rate);
            self.rate *= came;
        } else if rounds < ROUNDS {
            self.over.0 += 1;
        } else {
            self.over.0 = 0;
            if more > first / 2.0 {
                losses.learn(now, counts);
                self.rate = self.rate.max(before);
            }
        }
    }

    fn round(&mut self, now: Instant, sight: &Sight, seen: (Duration, f64), used: bool) {
        let base = self.base(sight.least) + sight.jitter;
        match self.phase {
            Phase::Start(largest, grown_at) => {
                let standing = seen.0.saturating_sub(base);
                self.start(now, sight, standing, (largest, grown_at, seen.1), used);
            }
            Phase::Empty(until) if now < until => {}
            Phase::Empty(_) => {
                (self.phase, self.factor) = (Phase::Hold, 1.0);
                (self.up, self.up_at) = (UP_LEAST, now);
                self.emptied_at = now;
            }
            Phase::Hold => {
                let standing = sight.lately.saturating_sub(base);
                let quiet = seen.0.saturating_sub(base) <= self.own_time(sight);
                self.hold(now, sight, (standing, seen.1), (used, quiet));
            }
        }
    }

    /// The round trip without queues.
    fn base(&mut self, least: Duration) -> Duration {
        if self.longer.0 != least {
            self.longer = (least, Duration::ZERO);
        }
        least + self.longer.1
    }

    fn start(
        &mut self,
        now: Instant,
        sight: &Sight,
        standing: Duration,
        (largest, grown_at, delivered): (f64, Instant, f64),
        used: bool,
    ) {
        let threshold = (sight.least / 8)
            .clamp(QUEUE_LEAST, QUEUE_MOST)
            .max(sight.right);
        let grows = delivered >= largest * GROWTH;
        let (look, round) = (self.look(sight), sight.least.max(ROUND_LEAST));
        // What is delivered now left a round trip ago.
        let stands = now.saturating_since(grown_at) >= round * u64::from(ROUNDS) + look;
        if (standing <= threshold || self.is_thin()) && (grows || !used || !stands) {
            let grown_at = if grows || !used { now } else { grown_at };
            self.phase = Phase::Start(if grows { delivered } else { largest }, grown_at);
            if used {
                // Doubled once a round trip: what is delivered is on average that old and half of a look.
                let looks = look.as_secs_f64() / round.as_secs_f64();
                let gain = 2f64.powf(1.0 + looks).min(START);
                // What has not been delivered yet may not be deliverable.
                let most = largest.max(delivered) * gain;
                self.rate = (self.rate * 2.0).min(most.max(self.rate));
            }
            return;
        }
        if stands {
            self.full_at = Some(now);
        }
        self.rate = delivered.max(largest).min(self.rate);
        self.empty(now, standing, sight);
    }

    /// Sends less for a round, or as many as it takes, until what stands is gone.
    fn empty(&mut self, now: Instant, standing: Duration, sight: &Sight) {
        let round = sight.smoothed.max(ROUND_LEAST);
        let excess = standing.as_secs_f64() / round.as_secs_f64();
        self.factor = (1.0 - excess).max(0.5);
        let rounds = (excess / (1.0 - self.factor).max(1e-3)).max(1.0);
        self.phase = Phase::Empty(now + round.mul_f64(rounds.min(8.0)));
    }

    fn hold(
        &mut self,
        now: Instant,
        sight: &Sight,
        (standing, delivered): (Duration, f64),
        (used, quiet): (bool, bool),
    ) {
        if self.is_thin() {
            return self.hold_thin(now, delivered, used);
        }
        let round = sight.smoothed.max(ROUND_LEAST);
        let right = sight.right.max((sight.least / 16).min(QUEUE_MOST));
        let over = standing.as_secs_f64() / right.as_secs_f64().max(1e-3) - 1.0;
        let alone = standing <= self.own_time(sight);
        if standing > right * 4 + QUEUE_MOST && now.saturating_since(self.cut_at) > round + LATELY {
            return self.cut(now, sight, (standing, delivered));
        }
        if standing <= right * 2 {
            self.cut_for_nothing = 0;
        }
        if !used {
            (self.factor, self.up) = (1.0, (self.up / 2.0).max(UP_LEAST));
            return;
        }
        let gained = (GAINED / round.as_secs_f64()).min(1.0);
        if over >= -0.5 && !alone && now.saturating_since(self.emptied_at) >= EMPTY_EVERY {
            return self.empty(now, right * 2, sight);
        }
        if over < -0.5 || alone {
            // No queue stands, so none needs to be let run empty.
            self.emptied_at = now;
            if quiet && delivered >= self.rate * GROWTH {
                return self.start_again(now, delivered);
            }
            self.rise(now, round, quiet.then(|| self.look(sight)));
        } else {
            (self.up, self.up_at) = (UP_LEAST, now);
            self.rate *= 1.0 - SHARE_STEP * gained * over.min(4.0);
        }
        self.factor = 1.0 - SHARE_NOW * gained * over.clamp(-1.0, 4.0);
    }

    /// More was delivered than the pace, by as much as a start must show, and the queue that this came from is gone: the path's rate has
    /// risen. By steps the pace would take 0.4 s to six times the rate.
    fn start_again(&mut self, now: Instant, delivered: f64) {
        (self.rate, self.factor) = (delivered, 1.0);
        self.phase = Phase::Start(delivered, now);
    }

    /// The queue that stands is the other direction's. If there is more to send than the pace allows, looks again how much passes.
    fn hold_thin(&mut self, now: Instant, delivered: f64, used: bool) {
        self.factor = 1.0;
        let full = self
            .full_at
            .is_some_and(|at| now.saturating_since(at) < EMPTY_EVERY);
        if used && !full {
            self.phase = Phase::Start(delivered, now);
        }
    }

    /// A full frame takes its own time on the path, which the least round trip, that of a small one, does not have: no queue.
    fn own_time(&self, sight: &Sight) -> Duration {
        self.rate().time_of(sight.frame as u64 * 8)
    }

    /// No queue stands: the path may carry more. `look`: how long the latest look took, if no frame in it met a queue either; else
    /// a queue may be about to show.
    fn rise(&mut self, now: Instant, round: Duration, look: Option<Duration>) {
        if look.is_none() {
            self.up = (self.up / 2.0).max(UP_LEAST);
        }
        self.rate *= 1.0 + self.up;
        if now.saturating_since(self.up_at) >= round + look.unwrap_or(LATELY) {
            (self.up, self.up_at) = ((self.up * 2.0).min(UP_MOST), now);
        }
    }

    /// A long queue stands: no more than is delivered, and less until it is gone.
    fn cut(&mut self, now: Instant, sight: &Sight, (standing, delivered): (Duration, f64)) {
        // What was sent less did not shorten it: the path itself has become longer.
        let same = standing + standing / 4 >= self.standing_at_cut;
        let same = same && self.standing_at_cut > Duration::ZERO;
        let soon = now.saturating_since(self.cut_at) < Duration::from_secs(4);
        self.cut_for_nothing = if same && soon {
            self.cut_for_nothing + 1
        } else {
            0
        };
        if self.cut_for_nothing >= ROUNDS {
            self.longer.1 += standing;
            self.cut_for_nothing = 0;
            return;
        }
        if delivered > 0.0 {
            self.rate = self.rate.min(delivered);
        }
        (self.cut_at, self.standing_at_cut) = (now, standing);
        self.empty(now, standing, sight);
    }
}

/// The share of these frames that a full queue has not dropped.
fn came((all, lost): (f64, f64), losses: &Losses) -> f64 {
    let came = if all > 0.0 { 1.0 - lost / all } else { 1.0 };
    (came / (1.0 - losses.own())).min(1.0)
}
