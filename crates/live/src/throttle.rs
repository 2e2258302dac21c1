//! The closed loop of the pace: the rate at which a member sends on an interface.
//!
//! It starts with ten frames in a round trip, as hellos have shown it, and is doubled in each one, until something speaks against it.
//! Three things speak against it:
//!
//! - **Marks.** A host that cannot read what arrives ([`Backlog`](crate::backlog)) marks all its frames, as a router does whose queue
//!   is long (ECN, RFC 3168). The share of marked frames decides how much (DCTCP, RFC 8257).
//! - **Delay.** Neighbours [echo](crate::echo) how much longer frames take than at best. A queue that stands means that the path
//!   is full (LEDBAT, RFC 6817).
//! - **Losses** beyond the link's own ([`Path`]), since a queue may be too short to be noticed. If they do not fall with the rate, they
//!   are the link's own.
//!
//! Delay and losses show where the path ends. In a short queue a flow of TCP gives way to each loss, but a member that tolerates a
//! radio's losses does not notice that it is there. So a member leaves room instead of noticing: most of the time it stays below the end
//! ([`HEADROOM`]). Now and then it sends faster for a moment ([`Phase::Pulse`]), and looks for the end again if nothing is lost. Sometimes
//! it sends at half the rate ([`Phase::Quiet`]), and takes what is lost then for the link's own.
//!
//! On a channel that all neighbours share, carrier sense divides it, and what a member may send changes with each burst of another. There
//! a member starts at half of the channel's rate, as two that send at once have, leaves no room, and rises again at once.
//!
//! Of several neighbours the one with the worst path counts, as TFMCC's receiver with the lowest rate does (RFC 4654). Members end
//! at the same rate, since all rise by the same steps and fall in proportion (Chiu and Jain, 1989).

mod path;

use std::collections::{BTreeMap, VecDeque};

use chappe_core::{Bitrate, Duration, Instant};

use crate::backlog::PERIOD;
use crate::echo::{Echo, SOON};
use path::{Path, Rate, Verdict};

/// A frame of 1500 octets in a [`PERIOD`], in bits per second.
const FRAME_BITS: f64 = 1500.0 * 8.0;
const FRAME: u64 = 1500 * 8 * (1_000_000_000 / PERIOD.nanos());
/// The frames of the first round trip (RFC 6928). With three a relay, whose rate grows only once data arrive, started a second later.
const WINDOW: u64 = 10;
/// The rate at the start if the round trip is not known, or long.
const FIRST: u64 = WINDOW * FRAME;
/// At the start the rate is doubled in each round trip, as TCP's window is, but not more often than echoes come.
const START: Duration = SOON;
/// By how much the rate rises in a period: as TCP's in a round trip of that length (RFC 5681), so that TCP gets its share.
const STEP: u64 = FRAME;
/// The least rate: a member is never silent. Two frames in a period (RFC 6817, 2.4.2), or this share of a low ceiling.
const LEAST: u64 = 2 * FRAME;
const LEAST_SHARE: u64 = 64;
/// After this many periods without a reason to fall the step doubles: whoever caused it is gone.
/// Until then it is this part of the way back to the former rate, which is quick at first, as CUBIC's is (RFC 9438).
const CALM: u32 = 10;
/// A step is at most this part of the rate: what comes back in the round trip until a queue is noticed is then below CoDel's target.
const STEEP: u64 = 16;
/// The share of a path's capacity that a member uses most of the time, once it has found where the path ends: what a loss leaves of
/// CUBIC's window (RFC 9438, 4.6). A flow of TCP that gets the rest, and uses 85 % of it, has half of the half that is its share.
/// That is the mean with what the [quiet](QUIET_SHARE) half of the time in 33 leaves out.
const HEADROOM: f64 = 0.7 / (1.0 - 0.5 / (1.0 + QUIET_SHARE as f64));
/// The same where only delays tell of the end, this many times in a row: a flow of TCP would show, because it fills such a queue.
const ROOMY: f64 = 0.9;
const ALONE: u32 = 2;
/// What a rate that was doubled too often is multiplied by before that: it was at most the half that the path has carried.
const DOUBLED: f64 = 0.5;
/// In two round trips the rate is doubled twice.
const KNOWN: u64 = 4;
/// As many steps in a row ahead of the echoes are no chance: at 30 % lost one start in 120 has them.
const LOST_ECHOES: u32 = 4;
/// How much longer than the search for the end of the path the rate stays below it.
const HOLD: u64 = 10;
/// What CUBIC's window regains in a round trip, in frames, where it is as friendly as Reno's.
const REGAINED: f64 = 3.0 * (1.0 - 0.7) / (1.0 + 0.7);
/// The longest time for which the rate stays there because of that, and for any reason.
const HOLD_MAX: Duration = Duration::from_secs(10);
const HOLD_LONGEST: Duration = Duration::from_secs(60);
/// The time for which it stays where the path has not ended before.
const HOLD_LEAST: Duration = Duration::from_secs(1);
/// The longest time for measuring own losses, and how much longer nothing is measured thereafter.
const QUIET_MAX: Duration = Duration::from_secs(5);
const QUIET_SHARE: u64 = 32;
/// The shortest pulse: in it a neighbour that is asked echoes a few times. It is as long as what makes a judgement certain.
const PULSE_LEAST: Duration = Duration::from_millis(4 * SOON.nanos() / 1_000_000);
/// By how much a pulse is faster than the end at most.
const MOST: f64 = 0.5;
/// From which share of the former end on a path ends where it did.
const SAME: f64 = 0.9;
/// What remains of the rate when the own send queue is full: a queue of this host, which is short (RFC 8511, 4.1: 0.85).
const BLOCKED: f64 = 0.85;
/// The round trip is measured in steps of this, for up to this many of them.
const GRAIN: Duration = Duration::from_millis(2);
const SENT_MAX: usize = 1024;
/// A neighbour whose echoes stay away for so long is not waited for.
const ABSENT: Duration = Duration::from_millis(500);
/// When no neighbour echoes what is sent, the rate is halved each time this passes: four round trips of the longest usual path, as TFRC
/// does (RFC 5348, 4.3), but not below the rate of the start.
const UNHEARD: Duration = Duration::from_secs(1);

/// The rate of a member on an interface, between a step and its ceiling.
#[derive(Debug)]
pub struct Throttle {
    /// The ceiling; 0 if the throttle does nothing.
    ceiling: u64,
    /// The rate of the channel, if neighbours share it.
    shared: Option<u64>,
    rate: u64,
    /// The lowest rate since one first fell, and the highest.
    lowest: Option<u64>,
    highest: u64,
    /// Whether the rate was ever used, and the newest counter when it was not.
    begun: bool,
    idle: u64,
    /// Whether nothing has spoken against doubling yet.
    starting: bool,
    /// Whether the start went ahead of the echoes since the last step, and in how many steps in a row.
    ahead: bool,
    waits: u32,
    /// When the last step was.
    stepped: Instant,
    /// When a neighbour last echoed.
    echoed: Instant,
    /// Counters and when they were sent, for the round trip.
    sent: VecDeque<(u64, Instant)>,
    /// Octets sent since the last step.
    spent: u64,
    /// The newest counter of broadcasts.
    newest: u64,
    /// The counter when the rate last changed. After a fall it is that of a period later: queues have to drain.
    changed: Option<u64>,
    /// The same, of the last change that was no small step.
    leapt: Option<u64>,
    /// Frames heard of each neighbour since the last step, and how many of them were marked.
    marks: BTreeMap<u16, (u32, u32)>,
    paths: BTreeMap<u16, Path>,
    /// The neighbour because of which the rate last fell; none if this host was the cause, or losses were the link's own after all.
    decider: Option<u16>,
    /// The rate that half of the neighbours have let pass.
    carried: u64,
    blocked: bool,
    /// Steps since the rate fell, and what it was before.
    calm: u32,
    peak: u64,
    phase: Phase,
    /// The rate at which the path ended, 0 if that is not known.
    end: u64,
    /// How often it was found there again.
    sure: u32,
    /// How often in a row only delays have told of the end, and no frame below it waited.
    alone: u32,
    /// How many steps above the end the next pulse is.
    stride: u64,
    /// Since when it has been looked for.
    searched: Instant,
    /// From when on the own losses of paths are measured again.
    quiet_due: Instant,
    /// Until when queues drain after a fall.
    drained: Instant,
}

/// What a throttle does at present.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It rises until the path ends.
    Search,
    /// It measures the own losses of paths at half of the usual rate, since when; how long it stays at the usual one thereafter.
    Quiet { since: Instant, hold: Duration },
    /// It stays below the end of the path.
    Hold { until: Instant },
    /// For a moment it sends faster than what the path could carry. The rate before, and for how long.
    Pulse { under: u64, length: Duration },
    /// It waits for the fate of a pulse: its rate, its last counter, its length in ms.
    Verdict { top: u64, last: u64, length: f64 },
}

/// What all paths ask for.
struct Told {
    /// What should remain of the rate, which rate should be restored, whether chance cannot be excluded.
    left: f64,
    before: Option<u64>,
    doubt: bool,
    /// The neighbour that asks for the least.
    by: Option<u16>,
    /// The longest wait in a queue, in ms.
    wait: u8,
}

impl Default for Told {
    fn default() -> Told {
        Told {
            left: 1.0,
            before: None,
            doubt: false,
            by: None,
            wait: 0,
        }
    }
}

impl Throttle {
    /// A throttle that starts low, on a channel of that rate that neighbours share or on one of its own. Without a ceiling it does nothing.
    pub fn new(ceiling: Option<Bitrate>, shared: Option<Bitrate>) -> Throttle {
        let ceiling = ceiling.map_or(0, |rate| rate.0);
        let rate = ceiling.min(shared.map_or(FIRST, |rate| rate.0 / 2));
        let shared = shared.map(|rate| rate.0);
        Throttle {
            ceiling,
            shared,
            rate,
            lowest: None,
            highest: rate,
            begun: false,
            idle: 0,
            starting: shared.is_none_or(|shared| shared < ceiling),
            ahead: false,
            waits: 0,
            stepped: Instant::ZERO,
            echoed: Instant::ZERO,
            sent: VecDeque::new(),
            spent: 0,
            newest: 0,
            changed: Some(0),
            leapt: Some(0),
            marks: BTreeMap::new(),
            paths: BTreeMap::new(),
            decider: None,
            carried: 0,
            blocked: false,
            calm: 0,
            peak: 0,
            phase: Phase::Search,
            end: 0,
            sure: 0,
            alone: 0,
            stride: 1,
            searched: Instant::ZERO,
            quiet_due: Instant::ZERO,
            drained: Instant::ZERO,
        }
    }

    /// Notes a frame of a neighbour.
    pub fn hear(&mut self, from: u16, marked: bool) {
        let (all, with) = self.marks.entry(from).or_default();
        *all = all.saturating_add(1);
        *with = with.saturating_add(u32::from(marked));
    }

    /// Notes what a neighbour has heard of this member.
    pub fn echo(&mut self, now: Instant, from: u16, echo: Echo) {
        self.echoed = now;
        let (newest, leapt) = (self.newest, self.leapt);
        let pulsed = matches!(self.phase, Phase::Pulse { .. } | Phase::Verdict { .. });
        let path = self
            .paths
            .entry(from)
            .and_modify(|path| path.echo(now, newest, leapt, pulsed, echo))
            .or_insert_with(|| Path::new(now, newest, echo));
        // The frame heard last was sent in the grain before.
        let after = self
            .sent
            .partition_point(|(counter, _)| *counter <= path.latest());
        if let Some((_, at)) = after.checked_sub(1).and_then(|at| self.sent.get(at)) {
            path.note_round(now.saturating_since(*at));
        }
    }

    /// Notes a frame that was sent: its octets, and the newest counter of broadcasts.
    pub fn spend(&mut self, now: Instant, octets: usize, newest: u64) {
        if self.sent.back().is_none_or(|(_, at)| now >= *at + GRAIN) {
            self.sent.push_back((newest, now));
            if self.sent.len() > SENT_MAX {
                self.sent.pop_front();
            }
        }
        self.spent += octets as u64;
        self.newest = newest;
    }

    /// Notes that the kernel's send queue was full.
    pub fn block(&mut self) {
        self.blocked = true;
    }

    /// Forgets those who are no neighbours any more.
    pub fn keep(&mut self, neighbours: impl Fn(u16) -> bool) {
        self.paths.retain(|from, _| neighbours(*from));
    }

    /// The rate from now on.
    pub fn rate(&mut self, now: Instant) -> Bitrate {
        let period = match self.phase {
            Phase::Pulse { length, .. } => length,
            _ if self.starting => START,
            _ => PERIOD,
        };
        if self.ceiling > 0 && now >= self.stepped + period {
            if now >= self.drained {
                self.changed.get_or_insert(self.newest);
                self.leapt.get_or_insert(self.newest);
            }
            self.step(now);
        }
        let ahead = self.is_ahead(now);
        self.ahead |= ahead;
        Bitrate(if ahead { self.rate / KNOWN } else { self.rate })
    }

    /// Whether neighbours should echo soon, because the rate depends on it: at the start, while it is used, and in and after a pulse.
    pub fn asks(&self, now: Instant) -> bool {
        let starts = self.begun && self.starting && self.is_used(now);
        starts || matches!(self.phase, Phase::Pulse { .. } | Phase::Verdict { .. })
    }

    /// The lowest rate since it first fell (the present one if it never did), and the highest so far.
    pub fn range(&self) -> (Bitrate, Bitrate) {
        (
            Bitrate(self.lowest.unwrap_or(self.rate)),
            Bitrate(self.highest),
        )
    }

    /// The neighbour because of which the rate last fell, if it is still there and the rate below its ceiling.
    pub fn decider(&self) -> Option<u16> {
        let there = |from: &u16| self.paths.contains_key(from) && self.rate < self.ceiling;
        self.decider.filter(there)
    }

    /// The rate that half of the neighbours have let pass, in bits per second; 0 if there are none.
    pub fn carried(&self) -> u64 {
        self.carried
    }

    fn half(&self) -> u64 {
        let mut rates: Vec<u64> = self.paths.values().map(|path| path.carries).collect();
        rates.sort_unstable_by_key(|rate| std::cmp::Reverse(*rate));
        let half = rates.len().saturating_sub(1) / 2;
        rates.get(half).copied().unwrap_or(0)
    }

    /// The rate of a start: a window in the least round trip, of the neighbour for which that is longest.
    fn first(&self) -> u64 {
        if let Some(shared) = self.shared {
            return self.ceiling.min(shared / 2);
        }
        let longest = self.paths.values().map(Path::least_round).max();
        let longest = longest.map_or(PERIOD, |round| round.clamp(SOON, PERIOD));
        let rate = WINDOW as f64 * FRAME_BITS / longest.as_secs_f64();
        self.ceiling.min(rate as u64)
    }

    /// Whether the rate was used since the last step (RFC 7661).
    fn is_used(&self, now: Instant) -> bool {
        let elapsed = now.saturating_since(self.stepped).as_secs_f64();
        self.spent as f64 * 8.0 >= self.rate as f64 * elapsed / 2.0
    }

    /// Whether more is under way at the start than in two round trips, of which no neighbour has told: then a queue may be filling, and
    /// the path gets what it has carried before.
    fn is_ahead(&self, now: Instant) -> bool {
        if !self.begun || !self.starting {
            return false;
        }
        let present = |path: &&Path| now < path.seen + ABSENT;
        let mut present = self.paths.values().filter(present).peekable();
        let two = |path: &Path| 2.0 * path.least_round().max(SOON).as_secs_f64();
        let most = |path: &Path| WINDOW as f64 + self.rate as f64 / FRAME_BITS * two(path);
        let ahead = |path: &Path| self.newest.saturating_sub(path.latest()) as f64 > most(path);
        present.peek().is_some() && present.all(ahead)
    }

    /// Before the rate is used it is that of a start. Half of a window in a period uses it.
    fn prepare(&mut self, now: Instant) {
        self.rate = self.first();
        self.highest = self.highest.max(self.rate);
        self.begun = self.spent as f64 * 8.0 >= FRAME_BITS * WINDOW as f64 / 2.0;
        if self.begun {
            for path in self.paths.values_mut() {
                path.begin();
            }
            let idle = self.idle;
            self.change(now, self.rate);
            (self.changed, self.leapt) = (Some(idle), Some(idle));
        } else if now >= self.stepped + PERIOD {
            (self.stepped, self.spent, self.idle) = (now, 0, self.newest);
        }
    }

    fn step(&mut self, now: Instant) {
        if !self.begun {
            return self.prepare(now);
        }
        if let Phase::Pulse { under, .. } = self.phase {
            // Its frames are judged when their fate is known.
            self.phase = Phase::Verdict {
                top: self.rate,
                last: self.newest,
                length: now.saturating_since(self.stepped).as_secs_f64() * 1e3,
            };
            (self.rate, self.stepped, self.spent) = (under, now, 0);
            return;
        }
        let share = |&(all, with): &(u32, u32)| f64::from(with) / f64::from(all.max(1));
        let marked = self.marks.iter().map(|(from, marks)| (share(marks), *from));
        let (most, marker) = marked.fold((0.0, None), |most, (share, from)| match share > most.0 {
            true => (share, Some(from)),
            false => most,
        });
        let (mut factor, mut cause) = (1.0 - most / 2.0, marker);
        if std::mem::take(&mut self.blocked) && BLOCKED < factor {
            (factor, cause) = (BLOCKED, None);
        }
        let used = self.is_used(now);
        let awaited = self.is_awaited(now);
        let verdict = match awaited {
            true => Told::default(),
            false => self.judge(used),
        };
        if verdict.left < 1.0 {
            self.decider = if verdict.left <= factor {
                verdict.by
            } else {
                cause
            };
            if let Phase::Verdict { top, .. } = self.phase {
                self.rate = top;
            }
            self.find(now, verdict.left.min(factor));
            // At a part of the capacity a queue takes this much longer to drain than to wait for.
            let drains = f64::from(verdict.wait) / 1e3 / (1.0 - HEADROOM);
            self.drained = now + PERIOD.max(Duration::from_secs_f64(drains));
        } else if factor < 1.0 {
            self.decider = cause;
            self.fall(now, factor);
            self.search(now);
        } else if let Some(rate) = verdict.before {
            (self.end, self.decider) = (0, None);
            self.search(now);
            self.change(now, rate.max(self.rate));
            self.leapt = self.changed;
        } else if awaited {
            // Of the first frames of a pulse nothing follows yet.
        } else if !(verdict.doubt && self.starting) && self.is_confirmed(now) {
            // A rate that was not used is not confirmed (RFC 7661). Nor are periods that passed unnoticed a reason to rise.
            self.proceed(now, used);
        } else if self.spent > 0
            && self.rate > FIRST
            && now >= self.echoed.max(self.stepped) + UNHEARD
        {
            self.fall(now, 0.5);
            self.search(now);
            self.rate = self.rate.max(FIRST);
        }
    }

    /// What those paths ask for that have told of frames at the present rate, which was used or not.
    fn judge(&mut self, used: bool) -> Told {
        let mut all = Told::default();
        let changed = self.changed;
        let (rate, how) = match self.phase {
            Phase::Verdict { top, last, length } => (top, Rate::Pulse(last, length)),
            Phase::Search if self.starting => (self.rate, Rate::Doubled),
            Phase::Search if self.end > 0 && self.rate >= self.end => (self.rate, Rate::Raised),
            _ => (self.rate, Rate::Steady),
        };
        let told = |(_, path): &(&u16, &mut Path)| path.has_told(changed);
        for (from, path) in self.paths.iter_mut().filter(told) {
            let (verdict, delay) = path.judge(rate, how);
            all.wait = all.wait.max(delay);
            match verdict {
                Verdict::Clear if used => path.carries = path.carries.max(rate),
                Verdict::Clear => {}
                Verdict::Doubt => all.doubt = true,
                Verdict::Fall(left) => {
                    path.carries = (rate as f64 * left) as u64;
                    if left < all.left {
                        (all.left, all.by) = (left, Some(*from));
                    }
                }
                Verdict::Undo(rate) => all.before = all.before.max(Some(rate)),
            }
        }
        self.carried = self.half();
        all
    }

    /// Whether the fate of a pulse is not known yet.
    fn is_awaited(&self, now: Instant) -> bool {
        let Phase::Verdict { last, .. } = self.phase else {
            return false;
        };
        let present = |path: &&Path| now < path.seen + ABSENT;
        let mut present = self.paths.values().filter(present);
        now < self.stepped + ABSENT && present.any(|path| path.latest() < last)
    }

    /// Goes on after nothing spoke against the rate.
    fn proceed(&mut self, now: Instant, used: bool) {
        let ahead = std::mem::take(&mut self.ahead);
        self.waits = if ahead { self.waits + 1 } else { 0 };
        match self.phase {
            // Echoes may have been lost.
            _ if ahead && self.waits < LOST_ECHOES => self.change(now, self.rate),
            _ if ahead => self.find(now, DOUBLED * HEADROOM),
            _ if !used && self.starting => self.change(now, self.rate.max(self.first())),
            _ if !used => self.change(now, self.rate),
            // A search would push out a flow of TCP that regains slowly: it halves its window in each round trip of too much.
            Phase::Search if self.is_long() => self.climb(now, self.rate),
            Phase::Search => self.rise(now),
            Phase::Quiet { since, hold } => {
                let mut told = self.paths.values().filter(|path| now < path.seen + ABSENT);
                let done = told.all(Path::is_quiet) || now >= since + QUIET_MAX;
                if !done {
                    return self.change(now, self.rate);
                }
                let mut revised = false;
                for path in self.paths.values_mut() {
                    revised |= path.end_quiet();
                }
                self.quiet_due = now + now.saturating_since(since) * QUIET_SHARE;
                // The end was found by them.
                let hold = if revised { HOLD_LEAST } else { hold };
                self.phase = Phase::Hold { until: now + hold };
                self.change(now, (self.end as f64 * self.room()) as u64);
                self.leapt = self.changed;
            }
            Phase::Hold { until } if now < until && self.alone >= ALONE && now >= self.drained => {
                // What was lost beyond the usual may be another flow's doing.
                if !self.is_alone() {
                    self.alone = 0;
                }
                let rate = self.end as f64 * self.room();
                self.change(now, rate as u64);
            }
            Phase::Hold { until } if now >= until => {
                let (under, end) = (self.rate, self.end.max(self.rate) as f64);
                let length = self.pulse(self.end);
                self.phase = Phase::Pulse { under, length };
                self.searched = now;
                let more = PERIOD.as_secs_f64() / length.as_secs_f64() / STEEP as f64;
                let more = (more * self.stride as f64).min(MOST);
                self.change(now, (end * (1.0 + more)) as u64);
                self.leapt = self.changed;
            }
            Phase::Verdict { top, .. }
                if self.regain(self.end) > HOLD_MAX && top < self.ceiling =>
            {
                self.climb(now, top);
            }
            Phase::Verdict { top, .. } => {
                self.phase = Phase::Search;
                let end = self.end.max(self.rate);
                self.change(now, top.min(end / STEEP * (STEEP + 1)));
                self.highest = self.highest.max(self.rate);
            }
            _ => self.change(now, self.rate),
        }
    }

    /// Whether pulses cost a flow of TCP less than this search would: each lasts less than a round trip, of which many pass until such a
    /// flow has regained what one of them costs.
    fn is_long(&self) -> bool {
        let lasts = !self.starting && self.shared.is_none() && self.rate < self.ceiling;
        lasts && self.regain(self.rate) > HOLD_MAX && self.pulse(self.rate) < PERIOD
    }

    /// Goes on with a larger pulse above a rate that the path has carried.
    fn climb(&mut self, now: Instant, carried: u64) {
        self.end = carried;
        self.stride = (self.stride * 2).min(STEEP / 4);
        self.phase = Phase::Hold { until: now };
        self.change(now, (carried as f64 * HEADROOM) as u64);
        self.leapt = self.changed;
        self.highest = self.highest.max(self.rate);
    }

    /// Whether a flow of TCP on the path would have shown. A pulse needs as many frames as a judgement.
    fn is_alone(&self) -> bool {
        let pulse = self.end as f64 * PERIOD.as_secs_f64() / FRAME_BITS;
        self.alone >= ALONE && pulse >= path::FEW as f64 && self.paths.values().all(Path::is_roomy)
    }

    /// The share of the path's capacity that is used below its end.
    fn room(&self) -> f64 {
        match self.is_alone() {
            true => ROOMY,
            false => HEADROOM,
        }
    }

    /// How long a pulse lasts. All pulses bring the same into a queue: a [`STEEP`]th of a period. A flow of TCP falls once for all losses of
    /// a round trip, so that half a round trip costs it least.
    fn pulse(&self, end: u64) -> Duration {
        let longest = self.paths.values().map(Path::least_round).max();
        let half = longest.unwrap_or(PERIOD) / 2;
        let enough = Duration::from_secs_f64(path::MANY as f64 * FRAME_BITS / end.max(1) as f64);
        match half.max(enough) {
            short if half >= PULSE_LEAST => short.min(PERIOD),
            _ => PERIOD,
        }
    }

    /// Looks for the end of the path from now on.
    fn search(&mut self, now: Instant) {
        (self.phase, self.searched) = (Phase::Search, now);
    }

    /// Whether the neighbours have told what became of frames sent at the present rate.
    fn is_confirmed(&self, now: Instant) -> bool {
        let present = |path: &&Path| now < path.seen + ABSENT;
        let told = |path: &Path| path.has_told(self.changed);
        let mut present = self.paths.values().filter(present).map(told).peekable();
        let late = now >= self.stepped + ABSENT;
        present.peek().is_some()
            && match late {
                true => present.any(|told| told),
                false => present.all(|told| told),
            }
    }

    /// Falls below the end of the path. If the end is where it was before, the rate stays there while a flow of TCP that lost a frame
    /// too regains what it had; if not, the rate soon looks for it again.
    fn find(&mut self, now: Instant, share: f64) {
        if self.shared.is_some() {
            self.fall(now, share);
            return self.search(now);
        }
        let (before, started) = (self.end, self.starting);
        let pulsed = match self.phase {
            Phase::Verdict { top, length, .. } => {
                top as f64 * length / 1e3 >= FRAME_BITS * path::MANY as f64
            }
            _ => false,
        };
        self.end = (self.rate as f64 * (share / HEADROOM).min(1.0)) as u64;
        let lost = self.paths.values().any(|path| path.lost);
        self.alone = match self.phase {
            Phase::Verdict { .. } | Phase::Search if !lost => self.alone + 1,
            _ => 0,
        };
        let searched = now.saturating_since(self.searched);
        let regain = self.regain(self.end);
        self.stride = 1;
        self.fall(now, share);
        let (end, before) = (self.end as f64, before as f64);
        // A pulse that is certain and ends lower has met another flow, or a path that has become slower.
        let slow = regain > HOLD_MAX && lost;
        if started || end < SAME * before && !pulsed || before < SAME * end && !(pulsed && slow) {
            self.phase = Phase::Hold {
                until: now + HOLD_LEAST,
            };
            self.sure = 0;
            return;
        }
        // The more often the path has ended there, the longer.
        let most = match pulsed && slow {
            true => HOLD_LONGEST,
            false => (HOLD_MAX * (1 << self.sure.min(8))).min(HOLD_LONGEST),
        };
        self.sure += 1;
        let hold = (searched * HOLD).min(HOLD_MAX).max(regain.min(most));
        self.phase = Phase::Hold { until: now + hold };
        if now >= self.quiet_due {
            self.phase = Phase::Quiet { since: now, hold };
            self.rate /= 2;
            for path in self.paths.values_mut() {
                path.begin_quiet();
            }
        }
    }

    /// How long a flow of TCP takes to regain what a pulse above this rate costs it.
    fn regain(&self, end: u64) -> Duration {
        let round = self.paths.values().map(Path::round).fold(0.0, f64::max);
        // Beside a pulse a flow of TCP loses half of its window in each round trip, and regains less than a frame in each (RFC 9438, 4.3).
        // Because of that it should have a tenth less.
        let window = (1.0 - HEADROOM) * end as f64 * round / FRAME_BITS;
        let halvings = (PERIOD.as_secs_f64() / round.max(1e-3)).max(1.0);
        let lost = 1.0 - 0.5f64.powf(halvings);
        let regain = HOLD as f64 / 2.0 * lost * lost * window * round / REGAINED;
        Duration::from_secs_f64(regain)
    }

    fn rise(&mut self, now: Instant) {
        let step = match self.starting {
            true => self.rate,
            false => {
                let doubled = STEP << (self.calm / CALM).min(16);
                let back = self.peak.saturating_sub(self.rate) / u64::from(CALM);
                doubled.max(back).min(self.rate / STEEP).max(STEP)
            }
        };
        self.calm = self.calm.saturating_add(1);
        let rate = self.rate.saturating_add(step);
        // The ceiling is confirmed: the start has ended.
        self.starting &= self.rate < self.ceiling;
        self.change(now, rate);
        if self.starting {
            self.leapt = self.changed;
        }
        self.highest = self.highest.max(self.rate);
    }

    fn fall(&mut self, now: Instant, factor: f64) {
        let least = LEAST.min(self.ceiling / LEAST_SHARE);
        let rate = ((self.rate as f64 * factor) as u64).max(least);
        (self.starting, self.calm, self.peak) = (false, 0, self.rate);
        // Whoever measures own losses does so at a rate that stays.
        for path in self.paths.values_mut() {
            path.give_up_quiet();
        }
        self.change(now, rate);
        (self.changed, self.leapt) = (None, None);
        self.lowest = Some(
            self.lowest
                .map_or(self.rate, |lowest| lowest.min(self.rate)),
        );
    }

    fn change(&mut self, now: Instant, rate: u64) {
        self.rate = rate.min(self.ceiling);
        (self.stepped, self.spent) = (now, 0);
        self.changed = Some(self.newest);
        self.marks.clear();
    }
}

#[cfg(test)]
mod tests;
