//! Joint reception: identical frames at a receiver, which of them belong together, and what their sum is worth.
//!
//! Exists only under a profile with [`Synchronous`]; without one no path of the receiver comes here.

use std::ops::Range;

use chappe_core::{Duration, Purpose, Seed, Stream};

use crate::chips::{Chorus, Tuning, symbol_of};
use crate::dot15d4::carrier;
use crate::frame::{Edge, Frame};
use crate::id::{NodeId, Slot};
use crate::oqpsk::{SYMBOL_BITS, SYMBOL_NANOS};
use crate::radio::Radio;
use crate::receiver::Receiver;
use crate::rules::Rules;
use crate::survival::{Draws, HOPELESS};
use crate::synchronous::{Group, Signal};
use crate::{AirTime, Clock, Medium, Power, Synchronous};

/// The identical frames that all receivers hear.
#[derive(Debug)]
pub(crate) struct Joint {
    law: Synchronous,
    /// Each node's crystal error in ppm.
    crystals: Vec<f64>,
    /// Phase of each transmission, and of each path.
    phases: Stream,
    paths: Stream,
    late: Stream,
    /// Of each node the sets of frames whose beginnings it heard lately.
    sets: Vec<Vec<Set>>,
    /// Empty lists of members that keep their memory for the next set.
    spare: Vec<Vec<Member>>,
    signals: Vec<Signal>,
    group: Group,
    chorus: Chorus,
}

/// Frames with the same content that began together at one receiver.
#[derive(Debug)]
struct Set {
    content: u64,
    /// When the first of them began.
    started: AirTime,
    /// Sum of their powers.
    power: Power,
    /// The frame that stands for the set in [`Radio::lock`] and when that reception began. Both, because slots are reused.
    slot: Slot,
    locked: AirTime,
    members: Vec<Member>,
    /// What the receiver that is worked out chip by chip took from the preamble of these members.
    tuning: Option<Tuning>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    slot: Slot,
    source: NodeId,
    number: u64,
    power: Power,
    at: AirTime,
}

/// A set as an arriving frame finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    /// Its place among the node's sets.
    place: usize,
    /// Power of the members that were there before.
    pub(crate) allies: Power,
    /// Whether the radio is receiving it.
    pub(crate) is_locked: bool,
}

impl Set {
    fn is_locked(&self, radio: &Radio) -> bool {
        !radio.lock.is_none() && self.slot == radio.lock && self.locked == radio.lock_started
    }
}

impl Joint {
    /// For a medium whose profile asks for it.
    pub(crate) fn new(medium: &Medium, seed: Seed) -> Option<Box<Joint>> {
        let law = medium.profile().synchronous()?;
        let part = |number: u64| seed.child(0x5700 + number);
        Some(Box::new(Joint {
            law,
            // The same crystals as in `Clock::crystals`: a node's carrier and timer share one.
            crystals: Clock::crystal_errors(seed, medium.nodes(), law.crystal),
            phases: part(0).stream(Purpose::Fading),
            paths: part(1).stream(Purpose::Fading),
            late: part(2).stream(Purpose::Clock),
            sets: (0..medium.nodes()).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            signals: Vec::new(),
            group: Group::default(),
            chorus: Chorus::default(),
        }))
    }

    /// How late a node's transmission starts.
    pub(crate) fn jitter(&self, node: NodeId, number: u64) -> Duration {
        match self.law.jitter.nanos() {
            0 => Duration::ZERO,
            most => Duration::from_nanos(self.late.at(node.number() << 40 ^ number) % (most + 1)),
        }
    }

    /// Puts a frame that begins at a node into the set that it belongs to.
    pub(crate) fn put(&mut self, radio: &Radio, frame: &Frame, edge: Edge) -> Joined {
        let sets = &mut self.sets[edge.node.index()];
        let (window, at) = (self.law.window, edge.at);
        // A set that no frame can join any more is only kept while the radio receives it.
        let mut place = 0;
        while place < sets.len() {
            if at.saturating_since(sets[place].started) > window && !sets[place].is_locked(radio) {
                let mut members = sets.swap_remove(place).members;
                members.clear();
                self.spare.push(members);
            } else {
                place += 1;
            }
        }
        let member = Member {
            slot: edge.slot,
            source: frame.source,
            number: frame.number,
            power: edge.power,
            at,
        };
        // Physics report 5.3: a group is the frames with the same payload that begin within 8 us.
        let content = frame.content;
        let fits = |set: &Set| set.content == content && at.saturating_since(set.started) <= window;
        if let Some(place) = sets.iter().position(fits) {
            let set = &mut sets[place];
            let allies = set.power;
            // Saturating: this sum only grows and need not return to zero.
            set.power = Power(allies.0.saturating_add(edge.power.0));
            set.members.push(member);
            set.tuning = None;
            return Joined {
                place,
                allies,
                is_locked: set.is_locked(radio),
            };
        }
        let mut members = self.spare.pop().unwrap_or_default();
        members.push(member);
        sets.push(Set {
            content,
            started: at,
            power: edge.power,
            slot: Slot::NONE,
            locked: AirTime::ZERO,
            members,
            tuning: None,
        });
        Joined {
            place: sets.len() - 1,
            allies: Power::ZERO,
            is_locked: false,
        }
    }

    /// The radio has locked on to a set by its frame in `slot`.
    pub(crate) fn lock(&mut self, joined: Joined, node: NodeId, slot: Slot, radio: &mut Radio) {
        let set = &mut self.sets[node.index()][joined.place];
        (set.slot, set.locked) = (slot, radio.lock_started);
        radio.grouped = set.members.len() > 1;
    }

    /// The set that a radio is receiving.
    fn locked(&self, node: NodeId, radio: &Radio) -> Option<&Set> {
        self.sets[node.index()]
            .iter()
            .find(|set| set.is_locked(radio))
    }

    /// Power of one frame of the set being received; `None` for a frame outside it.
    pub(crate) fn share(&self, node: NodeId, radio: &Radio, slot: Slot) -> Option<Power> {
        let set = self.locked(node, radio)?;
        let member = set.members.iter().find(|member| member.slot == slot)?;
        Some(member.power)
    }

    /// Power of all of the set being received.
    pub(crate) fn whole(&self, node: NodeId, radio: &Radio) -> Option<Power> {
        Some(self.locked(node, radio)?.power)
    }

    /// Sets `group` to the members of the set that a radio receives.
    fn gather(&mut self, node: NodeId, radio: &Radio, channel: u8) {
        self.signals.clear();
        let hertz = carrier(channel) * 1e-6;
        let Some(set) = self.sets[node.index()]
            .iter()
            .find(|set| set.is_locked(radio))
        else {
            return;
        };
        for member in &set.members {
            let transmission = member.source.number() << 40 ^ member.number;
            let path = member.source.number() << 20 ^ node.number();
            // Physics report 5.3: one phase for each transmission, shared by all receivers, and one for each path.
            let turns = self.phases.fraction_at(transmission) + self.paths.fraction_at(path);
            self.signals.push(Signal {
                power: member.power.as_f64(),
                // In ppm of the carrier: one crystal gives another offset on another channel.
                offset: self.crystals[member.source.index()] * hertz,
                arrival: member.at.saturating_since(set.started).nanos() as f64 * 1e-3,
                phase: 2.0 * std::f64::consts::PI * turns,
            });
        }
        match &self.law.mixing {
            Some(mixing) => self.group.set(mixing, &self.signals),
            None => self.chorus.set_tuned(&self.signals, set.tuning),
        }
    }

    /// Closes a stretch of constant interference of a set being received.
    pub(crate) fn close_stretch(
        &mut self,
        (rules, draws): (&Rules, &Draws),
        radio: &mut Receiver<'_>,
        (frame, node): (&Frame, NodeId),
        at: AirTime,
    ) {
        let from = radio
            .segment
            .saturating_since(radio.lock_started)
            .max(frame.bits.header)
            .nanos();
        let to = at
            .saturating_since(radio.lock_started)
            .min(frame.airtime)
            .nanos();
        radio.segment = at;
        if from >= to {
            return;
        }
        // The draw that decides over the frame is fixed by its position. Once the probability is below it, nothing that
        // follows changes the frame's fate, and following the beat symbol by symbol is what costs here.
        let sealed = HOPELESS.max(libm::log(draws.of(frame, node)) - 1e-9);
        if radio.ln_success < sealed {
            return;
        }
        self.gather(node, radio, frame.channel);
        let others = rules.noise.plus(radio.interference()).as_f64();
        if self.law.mixing.is_none() {
            return self.follow_chips(sealed, radio, (frame, node), others, from..to);
        }
        // If even the worst phases leave the signal perfect, the beat need not be followed.
        let (signal, lost) = self.group.worst();
        if signal >= frame.bits.perfect * (others + lost) {
            return;
        }
        let curve = frame.bits.payload_curve;
        let (first, last) = (from / SYMBOL_NANOS, to.div_ceil(SYMBOL_NANOS));
        let ln_success = &mut radio.ln_success;
        self.group
            .symbols(first as usize, last as usize, |symbol, signal, lost| {
                // The first and the last symbol may lie in the stretch only in part.
                let begin = symbol as u64 * SYMBOL_NANOS;
                let inside = to.min(begin + SYMBOL_NANOS) - from.max(begin);
                let part = inside as f64 / SYMBOL_NANOS as f64;
                *ln_success += SYMBOL_BITS * part * curve.ln_success(signal / (others + lost));
                *ln_success >= sealed
            });
    }

    /// The symbols between two times of the frame, in nanoseconds, by the receiver that is worked out chip by chip.
    fn follow_chips(
        &mut self,
        sealed: f64,
        radio: &mut Radio,
        (frame, node): (&Frame, NodeId),
        others: f64,
        Range {
            start: from,
            end: to,
        }: Range<u64>,
    ) {
        if self.chorus.sure() >= frame.bits.perfect * others {
            return;
        }
        let tuning = Some(self.chorus.tuning());
        if let Some(set) = self.sets[node.index()]
            .iter_mut()
            .find(|set| set.is_locked(radio))
        {
            set.tuning = tuning;
        }
        let curve = frame.bits.payload_curve;
        let symbols = (
            (from / SYMBOL_NANOS) as usize,
            to.div_ceil(SYMBOL_NANOS) as usize,
        );
        let sent = |symbol| symbol_of(frame.content, frame.octets, symbol);
        let ln_success = &mut radio.ln_success;
        self.chorus.symbols(symbols, sent, |symbol, power| {
            let begin = symbol as u64 * SYMBOL_NANOS;
            let inside = to.min(begin + SYMBOL_NANOS) - from.max(begin);
            let part = inside as f64 / SYMBOL_NANOS as f64;
            *ln_success += SYMBOL_BITS * part * curve.ln_success(power / others);
            *ln_success >= sealed
        });
    }
}
