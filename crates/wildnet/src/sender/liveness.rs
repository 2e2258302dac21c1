//! Whether a path still carries anything, by what the reports of all paths show.
//!
//! A report names every body that has arrived, whichever path it took. So a report on one path shows within a short time that
//! another path has stopped, long before that path's own probe timeout. The path is then *in doubt*: what is in flight on it is
//! sent again on the others, and it carries nothing but probes until one of them is reported.
//!
//! Bodies that are lost by chance are no reason for doubt: as many must be missing in a row as chance explains once in ten
//! thousand times.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use super::Sender;
use super::rtt::Stretches;
use super::window::{Entry, State};
use crate::header::{Ack, before};
use crate::paths::{FrameId, PATHS};

/// Chance of a false doubt by losses that follow each other.
const CHANCE: f64 = 1e-4;
/// Fewest and most bodies in a row that must be missing.
const MISSING: (u32, u32) = (3, 64);
/// How long the shortest way of a body into a report counts.
const KEPT: Duration = Duration::from_secs(10);
/// Shortest and longest pause between probes of a path in doubt. It doubles.
const PROBE_LEAST: Duration = Duration::from_millis(20);
const PROBE_MOST: Duration = Duration::from_secs(1);
/// Later bodies that must have come before one counts as lost (RFC 9002, 6.1.1: kPacketThreshold).
const PASSED: usize = 3;
/// Most that false doubts add to the wait, which they do for [`KEPT`] after the last one.
const PATIENCE_MOST: Duration = Duration::from_secs(1);

/// What a path may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No bodies at all: only reports leave.
    Closed,
    /// What its owner asks for, but no copies of what another path carries.
    Reserve,
    /// All bodies and copies that suit it.
    Open,
}

/// What is known of one path.
#[derive(Clone, Debug)]
pub(super) struct Liveness {
    role: Role,
    /// Since when it is in doubt.
    doubted_at: Option<Instant>,
    /// When the newest frame left whose body is known to have arrived by it.
    shown: Instant,
    /// The shortest time from sending a body to a report that shows it, by the path of the report.
    shortest: Vec<Stretches>,
    /// What false doubts have added to the wait, and when the last one ended.
    patience: (Duration, Instant),
    probe_at: Instant,
    pause: Duration,
    /// Bodies that are to leave on this path too.
    twins: VecDeque<u32>,
}

impl Liveness {
    pub fn new(role: Role) -> Liveness {
        Liveness {
            role,
            doubted_at: None,
            shown: Instant::ZERO,
            shortest: Vec::new(),
            patience: (Duration::ZERO, Instant::ZERO),
            probe_at: Instant::ZERO,
            pause: PROBE_LEAST,
            twins: VecDeque::new(),
        }
    }

    /// Whether bodies may take it.
    pub fn carries(&self) -> bool {
        self.role != Role::Closed && self.doubted_at.is_none()
    }

    fn on_shown(&mut self, now: Instant, by: usize, sent: Instant) {
        if by >= self.shortest.len() && by < PATHS {
            self.shortest.resize(by + 1, Stretches::default());
        }
        if let Some(shortest) = self.shortest.get_mut(by) {
            shortest.note(now, now.saturating_since(sent), KEPT);
        }
        self.shown = self.shown.max(sent);
    }

    /// What false doubts add to the wait.
    fn patience(&self, now: Instant) -> Duration {
        let (more, since) = self.patience;
        match now.saturating_since(since) <= KEPT {
            true => more,
            false => Duration::ZERO,
        }
    }

    /// The path carried all the time what made it doubted: it has taken so much longer than was waited for.
    fn end_false_doubt(&mut self, now: Instant) {
        let Some(doubted) = self.doubted_at.take() else {
            return;
        };
        let more = self.patience(now) + now.saturating_since(doubted);
        self.patience = (more.min(PATIENCE_MOST), now);
        self.shown = now;
    }
}

impl Sender {
    /// Sets what the selected path may carry. What is in flight on one that is closed is sent again on the others.
    pub fn set_role(&mut self, now: Instant, role: Role) {
        let before = core::mem::replace(&mut self.liveness.role, role);
        if before == role {
            return;
        }
        if role == Role::Closed {
            self.liveness.doubted_at = None;
            self.leave_path();
        } else if before == Role::Closed {
            self.liveness.shown = now;
        }
    }

    /// Whether the selected path is in doubt.
    pub fn is_doubted(&self, path: usize) -> bool {
        self.liveness.of(path).doubted_at.is_some()
    }

    /// When a path in doubt is to be probed, if anything is open that can serve.
    pub fn doubt_probe_at(&self, path: usize) -> Option<Instant> {
        let liveness = self.liveness.of(path);
        let doubted = liveness.role != Role::Closed && liveness.doubted_at.is_some();
        let waits = doubted && self.window.has_open();
        waits.then_some(liveness.probe_at)
    }

    /// Whether another path than the selected one carries bodies.
    pub fn has_other_path(&self) -> bool {
        let here = self.liveness.at();
        let mut others = self.liveness.iter().enumerate();
        others.any(|(path, liveness)| path != here && liveness.carries())
    }

    /// A body is reported for the first time, by the selected path: notes that its own path has carried it.
    pub(super) fn note_shown(&mut self, now: Instant, frame: FrameId) {
        let path = usize::from(frame.path);
        let by = self.liveness.at();
        if self.loss.count() > 1
            && let Some(sent) = self.loss.of(path).sent_at(frame.number)
        {
            self.liveness.of_mut(path).on_shown(now, by, sent);
        }
    }

    /// A report has come on the selected path: it carries something, and others may not.
    pub(super) fn judge_paths(&mut self, now: Instant, ack: &Ack<'_>) {
        if self.loss.count() == 1 {
            return;
        }
        self.end_doubt(now, ack);
        let here = self.liveness.at();
        for path in (0..self.loss.count()).filter(|path| *path != here) {
            if self.liveness.of(path).carries() && self.has_stopped(now, here, path) {
                self.doubt(now, path);
            }
        }
    }

    /// A report on one path shows bodies of the others as well. One that several later ones of its path have passed is lost, and
    /// that path's own report need not be awaited.
    pub(super) fn lose_passed(&mut self, now: Instant) {
        let here = self.liveness.at();
        for path in (0..self.loss.count()).filter(|path| *path != here) {
            let loss = self.loss.of(path);
            // Where frames come out of order, its own reports say how long to wait.
            if loss.reordering(now) > Duration::ZERO {
                continue;
            }
            let Some(passed) = self.passed_on(path) else {
                continue;
            };
            for seq in self.window.open() {
                let number = self.window.in_flight_on(seq, path as u8);
                if number.is_some_and(|number| before(number, passed)) {
                    self.lose_or_give_up(now, seq);
                }
            }
        }
    }

    /// The frame of a path that as many later ones have passed as the packet threshold asks for: by bodies that came with
    /// their only frame.
    fn passed_on(&self, path: usize) -> Option<u32> {
        let mut newest = [None; PASSED];
        for seq in self.window.open() {
            let entry = self.window.entry(seq);
            let came = |entry: &&Entry| {
                let sole = entry.transmissions == 1 && !entry.copied;
                sole && entry.state == State::Done && usize::from(entry.frame.path) == path
            };
            let Some(mut number) = entry.filter(came).map(|entry| entry.frame.number) else {
                continue;
            };
            for place in &mut newest {
                match *place {
                    Some(held) if !before(held, number) => {}
                    Some(held) => (*place, number) = (Some(number), held),
                    None => {
                        *place = Some(number);
                        break;
                    }
                }
            }
        }
        newest.last().copied().flatten()
    }

    /// A report on a path in doubt ends it. If it is about a frame from before, the doubt was false.
    fn end_doubt(&mut self, now: Instant, ack: &Ack<'_>) {
        let Some(doubted) = self.liveness.doubted_at else {
            return;
        };
        let Some(sent) = self.loss.sent_at(ack.highest) else {
            return;
        };
        // An older one was on its way when the path stopped.
        if sent <= self.liveness.shown {
            return;
        }
        if sent <= doubted {
            return self.liveness.end_false_doubt(now);
        }
        self.liveness.doubted_at = None;
        self.liveness.shown = now;
    }

    /// A body that was sent again has come, though nothing as new as its repetition has: it came by its first path. If that is in
    /// doubt, the doubt was false. Its own reports would say so much later.
    pub(super) fn note_spurious(&mut self, now: Instant, first: FrameId) {
        let path = usize::from(first.path);
        let Some(doubted) = self.liveness.of(path).doubted_at else {
            return;
        };
        let sent = self.loss.of(path).sent_at(first.number);
        // An older one was on its way when the path stopped.
        if sent.is_some_and(|sent| sent > self.liveness.of(path).shown && sent <= doubted) {
            self.liveness.of_mut(path).end_false_doubt(now);
        }
    }

    /// Whether so many bodies are missing on `path` that a report on path `by` should have shown by now.
    fn has_stopped(&self, now: Instant, by: usize, path: usize) -> bool {
        let (liveness, loss) = (self.liveness.of(path), self.loss.of(path));
        let half = |path: usize| self.loss.of(path).rtt().least().map(|least| least / 2);
        let measured = liveness.shortest.get(by).and_then(Stretches::min);
        let (Some(own), Some(others)) = (half(path), half(by)) else {
            return false;
        };
        let way = measured.unwrap_or(own + others);
        let spread = (loss.rtt().variation + self.loss.of(by).rtt().variation) * 2;
        let wait = way + spread.min(way) + loss.reordering(now) + liveness.patience(now);
        let until = now.saturating_before(wait);
        let channel = self.conditions.channel_of(path);
        let lasting = channel.loss.max(1.0 - 1.0 / channel.burst.max(1.0));
        let most = libm::ceil(libm::log(CHANCE) / libm::log(lasting.clamp(0.01, 0.9))) as u32;
        let most = most.clamp(MISSING.0, MISSING.1);
        let mut missing = 0;
        for seq in self.window.open() {
            let entry = self.window.entry(seq);
            let Some(entry) = entry.filter(|entry| usize::from(entry.frame.path) == path) else {
                continue;
            };
            let sent = loss.sent_at(entry.frame.number);
            let due = sent.is_some_and(|sent| sent <= until);
            match entry.state {
                State::InFlight if due => missing += 1,
                // Something newer has come.
                State::Done if due => missing = 0,
                _ => {}
            }
        }
        missing >= most
    }

    /// A path is in doubt: what is in flight on it goes another way. Without another way it stays as it is.
    pub fn doubt(&mut self, now: Instant, path: usize) {
        let others = |other: usize| other != path && self.liveness.of(other).carries();
        if !self.liveness.of(path).carries() || !(0..self.liveness.count()).any(others) {
            return;
        }
        self.counters.doubts += 1;
        let here = self.liveness.at();
        self.select(path);
        let pause = self.loss.rtt().smoothed.max(PROBE_LEAST);
        let liveness = &mut *self.liveness;
        liveness.doubted_at = Some(now);
        (liveness.probe_at, liveness.pause) = (now, pause);
        self.leave_path();
        self.select(here);
    }

    /// Everything in flight on the selected path is to be sent again, wherever there is room.
    fn leave_path(&mut self) {
        let path = self.liveness.at() as u8;
        for seq in self.window.open() {
            if self.window.in_flight_on(seq, path).is_some() {
                self.window.lose(seq);
            }
        }
        self.returned.begin(self.window.next());
        self.liveness.twins.clear();
        self.loss.abandon();
    }

    /// The body to send on the selected path although another one carries it: a copy that its class asks for, or a probe of
    /// a path in doubt.
    pub(super) fn next_twin(&mut self, now: Instant) -> Option<u32> {
        while let Some(seq) = self.liveness.twins.pop_front() {
            if self.window.is_missing(seq) {
                return Some(seq);
            }
        }
        let path = self.liveness.at();
        if self.doubt_probe_at(path).is_none_or(|at| at > now) {
            return None;
        }
        let seq = self
            .window
            .open()
            .find(|&seq| self.window.is_missing(seq))?;
        let liveness = &mut *self.liveness;
        liveness.probe_at = now + liveness.pause;
        liveness.pause = (liveness.pause * 2).min(PROBE_MOST);
        Some(seq)
    }

    /// A new body of a class that takes every path: it leaves on the others as well.
    pub(super) fn add_twins(&mut self, seq: u32) {
        let here = self.liveness.at();
        for (path, liveness) in self.liveness.iter_mut().enumerate() {
            if path != here && liveness.carries() && liveness.role == Role::Open {
                liveness.twins.push_back(seq);
            }
        }
    }

    /// Whether the selected path owes a copy of a body.
    pub fn owes_twin(&self, path: usize) -> bool {
        let mut twins = self.liveness.of(path).twins.iter();
        twins.any(|&seq| self.window.is_missing(seq))
    }
}
