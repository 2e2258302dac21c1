//! What a neighbour's echoes say of the way to it.

use chappe_core::{Duration, Instant};

use super::{DOUBLED, HEADROOM};
use crate::backlog::PERIOD;
use crate::echo::{Echo, GRAIN};

/// Frames that a judgement on losses needs, and those that make it certain without a second one.
pub(super) const FEW: u64 = 16;
pub(super) const MANY: u64 = 256;
/// How many deviations from a link's own losses are none of its own (RFC 6298: K = 4).
const DEVIATIONS: f64 = 4.0;
/// From how many deviations on a rate is not doubled. One round in 40 has so many by chance.
const SUSPICIOUS: f64 = 2.0;
/// The weight of a period in the link's own losses: a change takes as long as a cycle of the loop.
const LEARN: f64 = 1.0 / 64.0;
/// The delay in ms from which on a queue stands. CoDel's target (RFC 8289, 4.2), and on paths that jitter up to what mac80211 sets for
/// CoDel, because access to a channel takes longer than a wire.
const TARGET: (f64, f64) = (5.0, 20.0);
/// The weight of a difference in the jitter (RFC 3550, 6.4.1).
const JITTER: f64 = 1.0 / 16.0;
/// A shorter pulse, in ms, is a moment in which access to a channel may not be had at once: less than a period and the lateness of a turn.
const PULSE_LONG: f64 = 90.0;
/// By how much more arrives at twice the rate, at least, unless the path is full, and how often in a row it may be less (BBR's start:
/// draft-ietf-ccwg-bbr, 5.3.1.2).
const GROWTH: f64 = 1.25;
const IN_VAIN: u32 = 3;
/// What losses leave of the rate at least: in a long round trip the rate may have been doubled twice too often.
const LEAST_LEFT: f64 = 0.25;

/// What was sent and what of it was lost.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sent: u64,
    lost: u64,
}

impl Tally {
    fn share(self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    fn add(&mut self, other: Tally) {
        (self.sent, self.lost) = (self.sent + other.sent, self.lost + other.lost);
    }
}

/// The deviation of the difference between the losses of two samples, if both have the same.
fn both_deviate(one: Tally, other: Tally) -> f64 {
    let mut both = one;
    both.add(other);
    let share = both.share();
    (share * (1.0 - share) * (1.0 / one.sent.max(1) as f64 + 1.0 / other.sent.max(1) as f64)).sqrt()
}

/// The way to one neighbour.
#[derive(Debug)]
pub(super) struct Path {
    /// The latest counter that it has echoed, and how many it had heard.
    latest: u64,
    heard: u16,
    /// When its latest echo came.
    pub seen: Instant,
    /// The smoothed round trip in s (RFC 6298), 0 if none was measured.
    round_trip: f64,
    /// The least round trip that was measured.
    least: Duration,
    delay: Option<u8>,
    /// How much two echoes in a row differ in their delay, in ms, and the latest.
    jitter: f64,
    latest_delay: f64,
    /// Since when all echoes have told of a queue.
    queued: Option<Instant>,
    /// The counter from which on its losses count.
    leapt: Option<u64>,
    /// How many frames it has told about since then, and the longest delay in ms that two echoes in a row have told of.
    told: u64,
    longest: u8,
    /// The same since the first echo.
    deepest: u8,
    /// What is not judged yet, and what was judged lately.
    round: Tally,
    long: Tally,
    /// What was judged since the rate is above the end, and the sum of its frames' rates.
    beyond: (Tally, f64),
    /// What was judged since the rate is low, so that the own losses show.
    quiet: Option<Tally>,
    /// What was judged at the usual rate, below the end of the path, since the own losses were measured or the rate fell from there.
    usual: Tally,
    /// The losses that the link has by itself, once they are known.
    own: Option<f64>,
    /// How many frames have told that.
    known: f64,
    /// How much its losses vary, in deviations of independent ones.
    spread: f64,
    /// Whether the latest round lost too much.
    suspected: bool,
    /// The rate and the losses at which the rate began to fall.
    fell: Option<(u64, f64)>,
    /// At the start, the most that arrived, in bits per second, and how often the rate was doubled since without more arriving.
    arrived: (f64, u32),
    /// The rate that was judged last at the start.
    doubled: u64,
    /// Whether losses told where it ended last, and not delays alone.
    pub lost: bool,
    /// The highest rate, in bits per second, at which it told of nothing suspicious, since it last asked for less: what it asked for.
    pub carries: u64,
}

/// How the judged rate came about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rate {
    /// It was doubled, so that the path may carry half of it.
    Doubled,
    /// It was raised a little.
    Raised,
    /// It was raised for a moment, whose last frame had this counter, and which lasted for so many ms.
    Pulse(u64, f64),
    /// It is below the end of the path.
    Steady,
}

/// What a path asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Nothing suspicious was lost, or too little is known yet.
    Clear,
    /// More than usual was lost, which may be chance.
    Doubt,
    /// The rate should be multiplied by this.
    Fall(f64),
    /// The losses do not depend on the rate, which may be as before.
    Undo(u64),
}

impl Path {
    /// A path at its first echo.
    pub fn new(now: Instant, newest: u64, echo: Echo) -> Path {
        Path {
            latest: newest - u64::from((newest as u16).wrapping_sub(echo.latest)).min(newest),
            heard: echo.heard,
            seen: now,
            round_trip: 0.0,
            least: Duration::MAX,
            delay: echo.delay,
            jitter: TARGET.1 / DEVIATIONS,
            latest_delay: echo.delay.map_or(0.0, f64::from),
            queued: None,
            leapt: None,
            told: 0,
            longest: 0,
            deepest: 0,
            round: Tally::default(),
            long: Tally::default(),
            beyond: (Tally::default(), 0.0),
            quiet: None,
            usual: Tally::default(),
            own: None,
            known: 0.0,
            spread: 1.0,
            suspected: false,
            fell: None,
            arrived: (0.0, 0),
            doubled: 0,
            lost: false,
            carries: 0,
        }
    }

    /// Takes an echo. One of frames that were never sent, or of an earlier time, says nothing. Losses before the counter `leapt` do not
    /// judge the present rate.
    /// In and after a pulse it tells of some frames before it too, which had the link's own losses, and a queue that fills is no jitter.
    pub fn echo(
        &mut self,
        now: Instant,
        newest: u64,
        leapt: Option<u64>,
        pulsed: bool,
        echo: Echo,
    ) {
        let sent = u64::from(echo.latest.wrapping_sub(self.latest as u16));
        if sent > newest.saturating_sub(self.latest) {
            return;
        }
        let heard = u64::from(echo.heard.wrapping_sub(self.heard));
        if leapt != self.leapt {
            (self.leapt, self.told, self.round) = (leapt, 0, Tally::default());
            self.longest = 0;
        }
        let pure = leapt.is_some_and(|leapt| self.latest >= leapt);
        let before = leapt.map_or(0, |leapt| leapt.saturating_sub(self.latest));
        (self.latest, self.heard) = (self.latest + sent, echo.heard);
        (self.seen, self.delay) = (now, echo.delay);
        let before_it = self.latest_delay as u8;
        if let Some(delay) = echo.delay.map(f64::from) {
            let change = (delay - self.latest_delay).abs();
            if !pulsed {
                self.jitter += (change - self.jitter) * JITTER;
            }
            self.latest_delay = delay;
            self.queued = match delay > self.target() {
                true => self.queued.or(Some(now)),
                false => None,
            };
        }
        // Frames that overtook others were counted as lost before.
        let lost = sent.saturating_sub(heard);
        if pure {
            self.deepest = self.deepest.max(echo.delay.unwrap_or(0).min(before_it));
            // One echo may tell of jitter, two in a row tell of a queue.
            self.longest = self.longest.max(echo.delay.unwrap_or(0).min(before_it));
            self.told += sent;
            self.round.add(Tally { sent, lost });
        } else if let Some(own) = self.own
            && pulsed
            && sent > before
        {
            let sent = sent - before;
            let others = (own * before as f64).round() as u64;
            let lost = lost.saturating_sub(others).min(sent);
            self.told += sent;
            self.round.add(Tally { sent, lost });
        }
    }

    /// Begins to measure the losses that the link has by itself.
    pub fn begin_quiet(&mut self) {
        self.quiet = Some(Tally::default());
    }

    /// Ends that early: the rate changes before enough frames have told of them, so that losses are judged again.
    pub fn give_up_quiet(&mut self) {
        self.quiet = None;
    }

    /// Whether enough frames have told of them.
    pub fn is_quiet(&self) -> bool {
        self.quiet.is_none_or(|quiet| quiet.sent >= MANY)
    }

    /// Takes the measured losses for the link's own. Whether they are certainly not what was thought.
    pub fn end_quiet(&mut self) -> bool {
        let (Some(quiet), Some(own)) = (self.quiet.take(), self.own) else {
            return false;
        };
        let usual = std::mem::take(&mut self.usual);
        if quiet.sent < FEW {
            return false;
        }
        // Losses that grow when this member sends less are not the link's: another flow takes what it leaves, and overfills the queue.
        let more = quiet.share() - usual.share();
        if usual.sent >= MANY && more > SUSPICIOUS * both_deviate(quiet, usual) {
            return false;
        }
        let deviation = (own * (1.0 - own) * (1.0 / quiet.sent as f64)).sqrt();
        let apart = (quiet.share() - own) / deviation.max(1e-9);
        // Losses that stay at half the rate are the link's.
        let revised = apart < -SUSPICIOUS || apart > DEVIATIONS * self.spread;
        let weight = match revised {
            true => 1.0,
            false => quiet.sent as f64 / (self.known + quiet.sent as f64),
        };
        self.own = Some((own + (quiet.share() - own) * weight).clamp(1e-4, 0.99));
        self.known = match revised {
            // The former sample counts no more.
            true => quiet.sent as f64,
            false => self.known.max(quiet.sent as f64),
        };
        self.fell = None;
        revised
    }

    /// Whether its queue holds so much that a flow of TCP in it would not remain unnoticed, and the latest round lost no more than usual.
    pub fn is_roomy(&self) -> bool {
        f64::from(self.deepest) >= TARGET.1 && !self.suspected
    }

    /// The latest counter of which it has told.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// The losses that the link has by itself, if they are known.
    #[cfg(test)]
    pub fn own(&self) -> Option<f64> {
        self.own
    }

    /// Notes how long ago the frame was sent of which it has told last.
    pub fn note_round(&mut self, ago: Duration) {
        self.least = self.least.min(ago);
        let ago = ago.as_secs_f64();
        self.round_trip += match self.round_trip > 0.0 {
            true => (ago - self.round_trip) / 8.0,
            false => ago,
        };
    }

    /// The least round trip. It includes how long the neighbour took until it echoed.
    pub fn least_round(&self) -> Duration {
        self.least
    }

    /// The rate is used from now on: what was lost before, of hellos, is the link's own.
    pub fn begin(&mut self) {
        let hellos = std::mem::take(&mut self.round);
        if hellos.sent >= FEW {
            self.begin_with(hellos);
        }
    }

    /// The round trip in s.
    pub fn round(&self) -> f64 {
        self.round_trip
    }

    /// Whether its echoes tell what became of enough frames from the counter `changed` on.
    pub fn has_told(&self, changed: Option<u64>) -> bool {
        self.told >= FEW && changed.is_some_and(|changed| self.latest >= changed + FEW)
    }

    /// What its echoes since the last call ask for, at this rate.
    pub fn judge(&mut self, rate: u64, how: Rate) -> (Verdict, u8) {
        let losses = self.judge_losses(rate, how);
        self.lost = matches!(losses, Verdict::Fall(_));
        let is_short = matches!(how, Rate::Pulse(_, length) if length < PULSE_LONG);
        let wait = self.delay.take().unwrap_or(0);
        // LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus, 4.2): in proportion to the excess, and to half at most.
        let queue = match self.queued {
            // At the start echoes tell of queues that may not last: then the rate is not doubled (RFC 9406).
            Some(since) if how == Rate::Doubled => match self.seen >= since + PERIOD {
                true => DOUBLED * HEADROOM,
                false => 1.0,
            },
            // The least delay of a short moment is seldom the least of all where access to a channel takes time.
            _ if is_short && f64::from(wait) <= 2.0 * TARGET.0 => 1.0,
            _ if f64::from(wait) > self.target() => HEADROOM,
            _ => 1.0,
        };
        let verdict = match losses {
            // Of the frames that tell, the first have filled the queue.
            Verdict::Fall(factor) if how == Rate::Doubled => {
                Verdict::Fall(queue.min(factor.min(DOUBLED) * HEADROOM))
            }
            Verdict::Fall(factor) => {
                Verdict::Fall(queue.min(factor * HEADROOM) * self.drained(how))
            }
            _ if queue < 1.0 => Verdict::Fall(queue * self.drained(how)),
            Verdict::Clear if how == Rate::Doubled && self.queued.is_some() => Verdict::Doubt,
            losses => losses,
        };
        (verdict, wait)
    }

    /// The part of what a pulse has brought into the path that the path has carried meanwhile: its queue has taken the rest.
    fn drained(&self, how: Rate) -> f64 {
        // Jitter is no queue. Echoes round delays down to their grain.
        let longest = f64::from(self.longest) + f64::from(GRAIN) / 2.0;
        let wait = (longest - DEVIATIONS * self.jitter).max(0.0);
        match how {
            Rate::Pulse(_, length) => length / (length + wait),
            _ => 1.0,
        }
    }

    /// What is left of a round without the frames behind a pulse, which were sent at the usual rate.
    fn within(&self, round: Tally, how: Rate, own: f64) -> Tally {
        let Rate::Pulse(last, _) = how else {
            return round;
        };
        let behind = self.latest.saturating_sub(last).min(round.sent / 2);
        let lost = (own * behind as f64).round() as u64;
        Tally {
            sent: round.sent - behind,
            lost: round.lost.saturating_sub(lost),
        }
    }

    /// The delay in ms from which on a queue stands.
    fn target(&self) -> f64 {
        (DEVIATIONS * self.jitter).clamp(TARGET.0, TARGET.1)
    }

    /// What is left of a rate that was doubled in vain: a queue drops what the path does not carry, so that no more arrives. Of a link's own
    /// losses a rate that is doubled makes twice as much arrive.
    fn fill(&mut self, rate: u64, round: Tally) -> Option<f64> {
        let arrives = rate as f64 * (1.0 - round.share());
        let (most, vain) = self.arrived;
        let again = std::mem::replace(&mut self.doubled, rate) >= rate;
        if arrives >= most * GROWTH {
            self.arrived = (arrives, 0);
            return None;
        }
        self.arrived = (most.max(arrives), vain + u32::from(!again));
        if self.arrived.1 < IN_VAIN {
            return None;
        }
        let most = self.arrived.0 / (1.0 - self.own.unwrap_or(0.0)).max(LEAST_LEFT);
        Some((most / rate as f64).clamp(0.0, DOUBLED))
    }

    fn judge_losses(&mut self, rate: u64, how: Rate) -> Verdict {
        if self.round.sent < FEW {
            return Verdict::Clear;
        }
        let round = std::mem::take(&mut self.round);
        if let Some(quiet) = &mut self.quiet {
            quiet.add(round);
            return Verdict::Clear;
        }
        if how == Rate::Doubled
            && let Some(left) = self.fill(rate, round)
        {
            return Verdict::Fall(left);
        }
        self.long.add(round);
        let Some(own) = self.own else {
            // The first rounds are at a low rate.
            if self.long.sent >= 2 * FEW {
                let seen = std::mem::take(&mut self.long);
                self.begin_with(seen);
            }
            return Verdict::Clear;
        };
        let round = self.within(round, how, own);
        let apart = (round.share() - own) / self.deviation(own, round).max(1e-9);
        let limit = DEVIATIONS * self.spread;
        let granular = 2.0 / round.sent as f64;
        let much = apart > limit && round.share() >= own + granular;
        let certain = much && matches!(how, Rate::Pulse(..))
            || much && apart > 2.0 * limit && round.share() > own + 0.1;
        let long = self.long.sent >= MANY
            && self.long.share()
                > own + 4.0 / self.long.sent as f64 + limit * self.deviation(own, self.long);
        let again = std::mem::replace(&mut self.suspected, much);
        let slowly = match how {
            Rate::Raised => self.sum_up(own, round, rate),
            _ => {
                self.beyond = (Tally::default(), 0.0);
                None
            }
        };
        if self.long.sent >= 4 * MANY.max(round.sent) {
            self.long = Tally::default();
        }
        if how == Rate::Steady {
            self.usual.add(round);
        }
        if !(certain || long || slowly.is_some() || much && again) {
            self.learn(own, round, apart, how);
            return match much || apart > SUSPICIOUS {
                true => Verdict::Doubt,
                false => Verdict::Clear,
            };
        }
        self.suspected = false;
        if how == Rate::Steady {
            // What was usual is no more.
            self.usual = Tally::default();
        }
        let before = std::mem::take(&mut self.long);
        // Of a pulse its own losses tell where the path ends, also if those before it made them certain.
        let lost = match long && !matches!(how, Rate::Pulse(..)) {
            true => before.share(),
            false => round.share(),
        };
        match slowly {
            Some(left) if !(certain || much && again) => Verdict::Fall(left),
            _ => self.blame(own, lost, rate),
        }
    }

    /// What is left of a rate that was raised step by step above the end, when the losses of all steps together are certainly not the
    /// link's own. At a few Mbit/s the frames of one step are too few to tell, until the rate is far above what the path carries.
    fn sum_up(&mut self, own: f64, round: Tally, rate: u64) -> Option<f64> {
        let (mut all, mut rates) = self.beyond;
        all.add(round);
        rates += rate as f64 * round.sent as f64;
        self.beyond = (all, rates);
        let certain = own + DEVIATIONS * self.spread * self.deviation(own, all);
        if all.sent <= round.sent || all.share() <= certain + 4.0 / all.sent as f64 {
            return None;
        }
        self.beyond = (Tally::default(), 0.0);
        // These are the losses at the mean rate.
        let mean = rates / all.sent as f64;
        let left = mean / rate as f64 * (1.0 - all.share()) / (1.0 - own);
        Some(left.clamp(LEAST_LEFT, 1.0))
    }

    /// The deviation of what was seen, and of what is known of the link, if both have the same losses (a score test): the variance at a
    /// share that was underestimated makes chance look like certainty.
    fn deviation(&self, own: f64, seen: Tally) -> f64 {
        let (known, sent) = (self.known.max(1.0), seen.sent as f64);
        let both = (own * known + seen.lost as f64) / (known + sent);
        (both * (1.0 - both) * (1.0 / sent + 1.0 / known)).sqrt()
    }

    /// Takes these losses for the link's own: a half more than was lost, so that a perfect link may lose one later.
    fn begin_with(&mut self, seen: Tally) {
        self.own = Some((seen.lost as f64 + 0.5) / (seen.sent as f64 + 1.0));
        self.known = seen.sent as f64;
    }

    /// Takes a usual round into account.
    fn learn(&mut self, own: f64, round: Tally, apart: f64, how: Rate) {
        // While the rate is doubled, losses that grow may be a queue's.
        let steady = how == Rate::Steady || how == Rate::Doubled && self.arrived.1 == 0;
        if apart < -DEVIATIONS * self.spread {
            // So few losses are certainly not chance: what was known was learnt while a queue was full.
            (self.own, self.known) = (Some(round.share().max(1e-4)), round.sent as f64);
            (self.long, self.fell) = (Tally::default(), None);
            return;
        }
        let (share, sent) = (round.share(), round.sent as f64);
        if steady {
            // Losses that are not usual teach little. Beyond the end of the path nothing is learnt: its losses may be the queue's, and to
            // take only the fewer ones would make the link look better than it is.
            let taught = sent / apart.max(1.0);
            let weight = (taught / (self.known + taught)).max(LEARN);
            self.known = (self.known + taught).min(sent / LEARN);
            self.own = Some((own + (share - own) * weight).clamp(1e-4, 0.99));
        }
        if share <= own {
            // 0.8 is the mean deviation of a normal variable.
            let fresh = -apart / 0.8;
            // Where nothing is learnt, a link that was thought to lose too much would seem to vary.
            if steady {
                self.spread = (self.spread + (fresh - self.spread) * LEARN).max(1.0);
            }
            self.fell = None;
        }
    }

    /// Whether the rate is to blame for the losses. If the rate has been halved since they began, it shows: losses of a full queue
    /// fall with the rate, those of a link do not.
    fn blame(&mut self, own: f64, lost: f64, rate: u64) -> Verdict {
        let (before, at) = *self.fell.get_or_insert((rate, lost));
        let less = before as f64 / rate.max(1) as f64;
        let arrived = (1.0 - at).max(1e-3);
        if less >= 2.0 {
            let queue = (arrived * less).min(1.0 - own);
            // In doubt it is the queue's: then the rate falls once more, and the next judgement is surer.
            if 1.0 - lost < arrived + (queue - arrived) / 4.0 {
                (self.own, self.fell) = (Some(lost.min(0.99)), None);
                self.known = MANY as f64;
                return Verdict::Undo(before);
            }
            self.fell = Some((rate, lost));
        }
        Verdict::Fall(((1.0 - lost) / (1.0 - own)).clamp(LEAST_LEFT, 1.0))
    }
}
