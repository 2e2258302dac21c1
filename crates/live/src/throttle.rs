//! The closed loop of the pace: the rate at which a member sends on an interface.
//!
//! It starts low and is doubled in each round trip, until something speaks against it, and then grows slowly, as TCP does. Three things
//! speak against it:
//!
//! - **Marks.** A host that cannot read what arrives ([`Backlog`](crate::backlog)) marks all its frames, as a router does whose queue
//!   is long (ECN, RFC 3168). The share of marked frames decides how much (DCTCP, RFC 8257).
//! - **Delay.** Neighbours [echo](crate::echo) how much longer frames take than at best. A queue that stands means that the path
//!   is full (LEDBAT, RFC 6817), so that flows which fill queues get their share.
//! - **Losses** beyond the link's own ([`Path`]), since a queue may be too short to be noticed. If they do not fall with the rate, they
//!   are the link's own.
//!
//! Of several neighbours the one with the worst path counts, as TFMCC's receiver with the lowest rate does (RFC 4654). Members end
//! at the same rate, since all rise by the same steps and fall in proportion (Chiu and Jain, 1989).

mod path;

use std::collections::BTreeMap;

use chappe_core::{Bitrate, Duration, Instant};

use crate::backlog::PERIOD;
use crate::echo::Echo;
use path::{Path, Verdict};

/// A frame of 1500 octets in a [`PERIOD`], in bits per second.
const FRAME: u64 = 1500 * 8 * (1_000_000_000 / PERIOD.nanos());
/// The rate at the start: ten frames in a round trip (RFC 6928).
const FIRST: u64 = 10 * FRAME;
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
/// What remains of the rate when the own send queue is full: a queue of this host, which is short (RFC 8511, 4.1: 0.85).
const BLOCKED: f64 = 0.85;
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
    rate: u64,
    /// The lowest rate since one first fell, and the highest.
    lowest: Option<u64>,
    highest: u64,
    /// Whether nothing has spoken against doubling yet.
    starting: bool,
    /// When the last step was.
    stepped: Instant,
    /// When a neighbour last echoed.
    echoed: Instant,
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
    blocked: bool,
    /// Steps since the rate fell, and what it was before.
    calm: u32,
    peak: u64,
}

impl Throttle {
    /// A throttle that starts low. Without a ceiling it does nothing.
    pub fn new(ceiling: Option<Bitrate>) -> Throttle {
        let ceiling = ceiling.map_or(0, |rate| rate.0);
        let rate = ceiling.min(FIRST);
        Throttle {
            ceiling,
            rate,
            lowest: None,
            highest: rate,
            starting: true,
            stepped: Instant::ZERO,
            echoed: Instant::ZERO,
            spent: 0,
            newest: 0,
            changed: Some(0),
            leapt: Some(0),
            marks: BTreeMap::new(),
            paths: BTreeMap::new(),
            blocked: false,
            calm: 0,
            peak: 0,
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
        self.paths
            .entry(from)
            .and_modify(|path| path.echo(now, newest, leapt, echo))
            .or_insert_with(|| Path::new(now, newest, echo));
    }

    /// Notes a frame that was sent: its octets, and the newest counter of broadcasts.
    pub fn spend(&mut self, octets: usize, newest: u64) {
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
        if self.ceiling > 0 && now >= self.stepped + PERIOD {
            self.changed.get_or_insert(self.newest);
            self.leapt.get_or_insert(self.newest);
            self.step(now);
        }
        Bitrate(self.rate)
    }

    /// The lowest rate since it first fell (the present one if it never did), and the highest so far.
    pub fn range(&self) -> (Bitrate, Bitrate) {
        (
            Bitrate(self.lowest.unwrap_or(self.rate)),
            Bitrate(self.highest),
        )
    }

    fn step(&mut self, now: Instant) {
        let share = |&(all, with): &(u32, u32)| f64::from(with) / f64::from(all.max(1));
        let most = self.marks.values().map(share).fold(0.0, f64::max);
        let mut factor = 1.0 - most / 2.0;
        if std::mem::take(&mut self.blocked) {
            factor = factor.min(BLOCKED);
        }
        let mut before = None;
        let (changed, mut doubt) = (self.changed, false);
        let told = |path: &&mut Path| path.has_told(changed);
        for path in self.paths.values_mut().filter(told) {
            match path.judge(self.rate) {
                Verdict::Clear => {}
                Verdict::Doubt => doubt = true,
                Verdict::Fall(fall) => factor = factor.min(fall),
                Verdict::Undo(rate) => before = before.max(Some(rate)),
            }
        }
        let elapsed = now.saturating_since(self.stepped);
        if factor < 1.0 {
            self.fall(now, factor);
        } else if let Some(rate) = before {
            self.change(now, rate.max(self.rate));
            self.leapt = self.changed;
        } else if !(doubt && self.starting) && self.is_confirmed(now) {
            // A rate that was not used is not confirmed (RFC 7661). Nor are periods that passed unnoticed a reason to rise.
            let used = self.spent as f64 * 8.0 >= self.rate as f64 * elapsed.as_secs_f64() / 2.0;
            match used {
                true => self.rise(now),
                false => self.change(now, self.rate),
            }
        } else if self.spent > 0
            && self.rate > FIRST
            && now >= self.echoed.max(self.stepped) + UNHEARD
        {
            self.fall(now, 0.5);
            self.rate = self.rate.max(FIRST);
        }
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
        self.change(now, self.rate.saturating_add(step));
        if self.starting {
            self.leapt = self.changed;
        }
        self.highest = self.highest.max(self.rate);
    }

    fn fall(&mut self, now: Instant, factor: f64) {
        let least = LEAST.min(self.ceiling / LEAST_SHARE);
        let rate = ((self.rate as f64 * factor) as u64).max(least);
        (self.starting, self.calm, self.peak) = (false, 0, self.rate);
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
