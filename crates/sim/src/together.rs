//! Identical frames at a receiver: which belong together, and what their sum is worth while it lasts.
//!
//! Exists only under a profile with [`Synchronous`]; without one no path of the receiver comes here.

use chappe_core::{Purpose, Seed, Stream};

use crate::air::Air;
use crate::dot15d4::carrier;
use crate::frame::Frame;
use crate::oqpsk::{SYMBOL_BITS, SYMBOL_NANOS};
use crate::radio::{NONE, Radio, flag::INTERFERED};
use crate::reception::draw_position;
use crate::synchronous::{Group, Signal};
use crate::{Clock, Loss, Medium, Recorder, Rule, Synchronous};

/// What receivers know of identical frames.
#[derive(Debug)]
pub(crate) struct Together {
    law: Synchronous,
    /// Each node's crystal error in ppm.
    crystals: Vec<f64>,
    /// Phase of each transmission, and of each path.
    phases: Stream,
    paths: Stream,
    late: Stream,
    /// Of each node the sets of frames that it heard the beginnings of lately.
    sets: Vec<Vec<Set>>,
    /// Memory to use again.
    spare: Vec<Vec<Part>>,
    signals: Vec<Signal>,
    group: Group,
}

/// Frames with the same content that began together at one receiver.
#[derive(Debug)]
struct Set {
    content: u64,
    /// When the first of them began.
    started: u64,
    /// Sum of their powers.
    power: u64,
    /// The frame that stands for them in the receiver and when that began, once locked.
    slot: u32,
    locked: u64,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    slot: u32,
    source: u32,
    number: u64,
    power: u64,
    at: u64,
}

impl Set {
    fn is_locked(&self, radio: &Radio) -> bool {
        radio.lock != NONE && self.slot == radio.lock && self.locked == radio.lock_started
    }
}

impl Together {
    /// For a medium whose profile asks for it.
    pub(crate) fn new(medium: &Medium, seed: Seed) -> Option<Box<Together>> {
        let profile = medium.profile();
        let law = profile.dot15d4?.synchronous?;
        if profile.rule != Rule::ErrorCurves {
            return None;
        }
        let part = |number: u64| seed.child(0x5700 + number);
        Some(Box::new(Together {
            law,
            crystals: Clock::crystal_errors(seed, medium.nodes(), law.crystal),
            phases: part(0).stream(Purpose::Fading),
            paths: part(1).stream(Purpose::Fading),
            late: part(2).stream(Purpose::Clock),
            sets: (0..medium.nodes()).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            signals: Vec::new(),
            group: Group::default(),
        }))
    }

    /// How late a node's transmission starts, in nanoseconds.
    pub(crate) fn jitter(&self, node: u32, number: u64) -> u64 {
        match self.law.jitter.nanos() {
            0 => 0,
            most => self.late.at(u64::from(node) << 40 ^ number) % (most + 1),
        }
    }

    /// Puts a frame that begins at a node with those it belongs to; returns the place of the set and the power of
    /// those that were there.
    fn put(
        &mut self,
        node: u32,
        radio: &Radio,
        slot: u32,
        frame: &Frame,
        power: u64,
        at: u64,
    ) -> (usize, u64) {
        let sets = &mut self.sets[node as usize];
        let window = self.law.window.nanos();
        let mut place = 0;
        while place < sets.len() {
            if at.saturating_sub(sets[place].started) > window && !sets[place].is_locked(radio) {
                let mut parts = sets.swap_remove(place).parts;
                parts.clear();
                self.spare.push(parts);
            } else {
                place += 1;
            }
        }
        let part = Part {
            slot,
            source: frame.source,
            number: frame.number,
            power,
            at,
        };
        let content = frame.content;
        let fits = |set: &Set| set.content == content && at.saturating_sub(set.started) <= window;
        if let Some(place) = sets.iter().position(fits) {
            let before = sets[place].power;
            sets[place].power = before.saturating_add(power);
            sets[place].parts.push(part);
            return (place, before);
        }
        let mut parts = self.spare.pop().unwrap_or_default();
        parts.push(part);
        sets.push(Set {
            content,
            started: at,
            power,
            slot: NONE,
            locked: 0,
            parts,
        });
        (sets.len() - 1, 0)
    }

    /// The set that a radio is receiving.
    fn locked(&self, node: u32, radio: &Radio) -> Option<&Set> {
        self.sets[node as usize]
            .iter()
            .find(|set| set.is_locked(radio))
    }

    /// Power of one frame of the set being received, if it is in it.
    pub(crate) fn share(&self, node: u32, radio: &Radio, slot: u32) -> Option<u64> {
        let set = self.locked(node, radio)?;
        let part = set.parts.iter().find(|part| part.slot == slot)?;
        Some(part.power)
    }

    /// Power of all of the set being received.
    pub(crate) fn whole(&self, node: u32, radio: &Radio) -> Option<u64> {
        Some(self.locked(node, radio)?.power)
    }

    /// The frames of the set that a radio receives as the model takes them.
    fn gather(&mut self, node: u32, radio: &Radio, channel: u8) {
        self.signals.clear();
        let hertz = carrier(channel) * 1e-6;
        let Some(set) = self.sets[node as usize]
            .iter()
            .find(|set| set.is_locked(radio))
        else {
            return;
        };
        for part in &set.parts {
            let transmission = u64::from(part.source) << 40 ^ part.number;
            let path = u64::from(part.source) << 20 ^ u64::from(node);
            let turns = self.phases.fraction_at(transmission) + self.paths.fraction_at(path);
            self.signals.push(Signal {
                power: part.power as f64,
                offset: self.crystals[part.source as usize] * hertz,
                arrival: part.at.saturating_sub(set.started) as f64 * 1e-3,
                phase: 2.0 * std::f64::consts::PI * turns,
            });
        }
        self.group.set(&self.law.mixing, &self.signals);
    }
}

impl Air {
    /// A frame's first bit reaches a radio that can hear it, under a profile with synchronous transmissions.
    #[cold]
    pub(crate) fn arrive_together<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        place: u32,
        power: u64,
        node: u32,
        at: u64,
    ) {
        let radio = self.radios[node as usize];
        let Some(together) = &mut self.together else {
            return;
        };
        let (set, before) = together.put(node, &radio, slot, self.frames.get(slot), power, at);
        let joins = together.sets[node as usize][set].is_locked(&radio);
        if joins {
            return self.join(recorder, slot, power, node, at);
        }
        if radio.lock != NONE {
            self.arrive_locked(recorder, slot, place, power, before, node, at);
        } else {
            self.try_lock(recorder, slot, power, before, node, at);
        }
        let radio = &mut self.radios[node as usize];
        if radio.lock == slot
            && let Some(together) = &mut self.together
        {
            let set = &mut together.sets[node as usize][set];
            (set.slot, set.locked) = (slot, radio.lock_started);
            radio.grouped = set.parts.len() > 1;
        }
    }

    /// One more frame of the set being received.
    fn join<R: Recorder>(&mut self, recorder: &mut R, slot: u32, power: u64, node: u32, at: u64) {
        self.close_node(node, at);
        let radio = &mut self.radios[node as usize];
        radio.energy = radio.energy.wrapping_add(power);
        radio.lock_power = radio.lock_power.wrapping_add(power);
        radio.grouped = true;
        radio.flags |= INTERFERED;
        self.lose(recorder, slot, node, at, at, power, Loss::PreambleMissed);
    }

    /// An idle radio may lock on to a frame that `allies` arrived together with.
    fn try_lock<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        power: u64,
        allies: u64,
        node: u32,
        at: u64,
    ) {
        let radio = &mut self.radios[node as usize];
        let others = radio.energy.wrapping_sub(allies);
        radio.energy = radio.energy.wrapping_add(power);
        let sum = power.saturating_add(allies);
        let why = match () {
            _ if sum < self.rules.heard => Some(Loss::TooWeak),
            _ if !self.rules.locks(sum, others) => Some(Loss::Collision),
            _ => self.header_lost(slot, node, sum, others),
        };
        match why {
            Some(why) => self.lose(recorder, slot, node, at, at, power, why),
            None => self.radios[node as usize].lock(slot, sum, at, others != 0 || allies != 0),
        }
    }

    /// Closes a stretch of constant interference of a set being received.
    pub(crate) fn close_group(&mut self, node: u32, at: u64) {
        let Air {
            radios,
            frames,
            rules,
            together,
            reception,
            ..
        } = self;
        let radio = &mut radios[node as usize];
        let Some(together) = together else {
            return;
        };
        let frame = frames.get(radio.lock);
        let from = radio
            .segment
            .saturating_sub(radio.lock_started)
            .max(frame.bits.header);
        let to = at.saturating_sub(radio.lock_started).min(frame.airtime);
        radio.segment = at;
        if from >= to {
            return;
        }
        // The die that decides over the frame is cast already: once the probability is under it, nothing that follows
        // changes the frame's fate.
        let draw = reception.fraction_at(draw_position(frame, node));
        let sealed = HOPELESS.max(libm::log(draw) - 1e-9);
        if radio.ln_success < sealed {
            return;
        }
        together.gather(node, radio, frame.channel);
        let others = rules.noise.wrapping_add(radio.interference()) as f64;
        let (signal, lost) = together.group.worst();
        if signal >= frame.bits.perfect * (others + lost) {
            return;
        }
        let curve = rules.curves.of(frame.mode.rate);
        let (first, last) = (from / SYMBOL_NANOS, to.div_ceil(SYMBOL_NANOS));
        let ln_success = &mut radio.ln_success;
        together
            .group
            .symbols(first as usize, last as usize, |symbol, signal, lost| {
                let begin = symbol as u64 * SYMBOL_NANOS;
                let inside = to.min(begin + SYMBOL_NANOS) - from.max(begin);
                let part = inside as f64 / SYMBOL_NANOS as f64;
                *ln_success += SYMBOL_BITS * part * curve.ln_success(signal / (others + lost));
                *ln_success >= sealed
            });
    }
}

/// Below this logarithm a frame is lost anyhow.
const HOPELESS: f64 = -40.0;
