//! The two cursors of a frame in flight, as tight loops over its receivers.
//!
//! Most signals meet a radio that they do not matter to, and only change the energy there ([`level`](crate::level)). Of the others
//! most are examined without leaving the loop, and nodes are notified from within it. It ends when a node that was notified wants
//! something, or another event comes first.

use std::slice;

use crate::arrival::{Arrival, timely};
use crate::event::Key;
use crate::frame::{Edge, Frame, Frames};
use crate::id::{NodeId, Slot};
use crate::ledger::{Ledger, Meeting};
use crate::level::{NEVER, Passage};
use crate::listener::{Carrier, Ending, Listener, Wish};
use crate::radio::flag::*;
use crate::receiver::Receivers;
use crate::reception::{Arrived, Completed, Reception};
use crate::{AirTime, Loss, Power, Recorder};

/// Why a cursor stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CursorEvent {
    /// A node was notified of its carrier, and has to be served.
    Carrier { at: AirTime, node: NodeId },
    /// A node was notified of the end of a reception, and has to be served. Its carrier may be due.
    Ended { at: AirTime, node: NodeId },
    /// The receiver locked on to the frame and its node asked to see the head early. Whether its carrier is due.
    Locked {
        at: AirTime,
        node: NodeId,
        carrier: bool,
    },
    /// Another event comes first: go on at this key.
    Pause(Key),
    /// The frame is past all receivers.
    Done,
}

/// How far a cursor may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The last moment before the next other event.
    pub(crate) last: AirTime,
    /// The same without the events that cannot switch or tune a radio. What passes a radio that is off or on another
    /// channel only counts, so a cursor need not stop there for the other frames that begin or end at the same time.
    pub(crate) far: AirTime,
}

/// A cursor on its way, with all that it reads and changes.
pub(crate) struct Cursor<'a, R> {
    pub(crate) slot: Slot,
    pub(crate) key: Key,
    pub(crate) limits: Limits,
    pub(crate) frames: &'a Frames,
    /// The receivers of the frame.
    pub(crate) arrivals: &'a [Arrival],
    pub(crate) receivers: &'a mut Receivers,
    pub(crate) reception: &'a mut Reception,
    pub(crate) ledger: &'a mut Ledger<R>,
    pub(crate) listener: &'a mut dyn Listener,
    /// Whether powers are those of radios, and no symbols.
    pub(crate) powers_are_real: bool,
}

/// What holds at all receivers that a cursor visits.
#[derive(Clone, Copy)]
struct Terms {
    /// Whether radios on the usual channel go by powers and bits alone.
    is_plain: bool,
    /// The channel that most radios are on.
    home: u8,
    /// How many channels away a radio's energy still counts.
    reach: u8,
    /// Signals of this power or more are examined.
    examined: Power,
    /// Whether weak signals are reported.
    reports: bool,
}

impl<'a, R: Recorder> Cursor<'a, R> {
    /// Moves a frame's first cursor: signals begin. Returns the place of the next receiver, and why it stopped.
    #[inline]
    pub(crate) fn begin(&mut self) -> (u32, CursorEvent) {
        let frame = self.frames.get(self.slot);
        // Noise bursts cannot be received, but they decide what else is: every signal is examined.
        let examined = match frame.noise {
            true => Power::ZERO,
            false => self.reception.rules.examined,
        };
        let terms = Terms {
            reports: frame.counts() && self.ledger.reports_unheard(),
            ..self.terms(frame, examined)
        };
        // A recorder hears of more than the nodes do, so nothing passes it unseen.
        let unseen = frame.channel == terms.home && !self.ledger.reports_frames();
        let passage = self.passage(frame.begin, if unseen { examined } else { Power::ZERO });
        let first = frame.started as usize;
        let (count, mut rest) = self.in_time(frame, first, frame.begin);
        // Those that booked their losses themselves.
        let mut booked = 0;
        let stop = loop {
            let Some(arrival) = passage.rise(self.receivers.levels(), &mut rest) else {
                break None;
            };
            let edge = self.edge(arrival, count.wrapping_sub(rest.len() + 1), frame.begin);
            if let Some(event) = self.rise_at(frame, edge, terms, &mut booked) {
                break Some(event);
            }
        };
        let mut place = count - rest.len();
        let event = stop.unwrap_or_else(|| self.pass_away(frame, (&mut place, &mut booked)));
        if frame.counts() {
            // Losses are counted once for the whole stretch.
            let weak = place - first - booked;
            self.ledger.counters.lost.add(Loss::TooWeak, weak as u64);
        }
        (place as u32, event)
    }

    /// A signal begins at a radio that has to be looked at. `booked` counts those that book their losses themselves.
    #[inline]
    fn rise_at(
        &mut self,
        frame: &Frame,
        edge: Edge,
        terms: Terms,
        booked: &mut usize,
    ) -> Option<CursorEvent> {
        let radio = self.receivers.radio(edge.node);
        let is_heard = edge.power >= terms.examined;
        if terms.is_plain && radio.hears(terms.home) {
            let is_locked = !radio.lock.is_none();
            if is_locked != is_heard && (is_locked || !radio.is_deaf(edge.at)) {
                *booked += 1;
                return match is_locked {
                    true => self.disturb(frame, edge),
                    false => self.find(frame, edge),
                };
            }
        }
        if radio.is_away(frame.channel, terms.reach) {
            *booked += 1;
            self.pass_by(frame, edge);
            return None;
        }
        if is_heard || !radio.is_idle(frame.channel, edge.at) {
            *booked += 1;
            return self.meet(frame, edge);
        }
        if terms.reports {
            self.ledger.report_weak(frame, beginning(edge, Power::ZERO));
        }
        // Too weak to lock on to: only the carrier can change.
        self.shift_free(edge, Power::plus)
    }

    /// Goes on past the limit of other events, as long as the receivers are radios that are off or elsewhere.
    fn pass_away(
        &mut self,
        frame: &Frame,
        (place, booked): (&mut usize, &mut usize),
    ) -> CursorEvent {
        let reach = self.reception.rejection.reach();
        while let Some(arrival) = self.arrivals.get(*place) {
            let edge = self.edge(arrival, *place, frame.begin);
            let radio = self.receivers.radio(edge.node);
            let passes = radio.is_away(frame.channel, reach) && !radio.reports_carrier();
            if !passes || edge.at > self.limits.far {
                return CursorEvent::Pause(self.key.at_time(edge.at));
            }
            *place += 1;
            *booked += 1;
            self.pass_by(frame, edge);
        }
        CursorEvent::Done
    }

    /// Moves a frame's second cursor, after the transmitter's own end: signals end. Returns as [`begin`](Self::begin).
    #[inline]
    pub(crate) fn end(&mut self) -> (u32, CursorEvent) {
        let frame = self.frames.get(self.slot);
        let (rules, end) = (&self.reception.rules, frame.end());
        // What a radio may have locked on to is examined, since its reception ends with it; unless radios that receive examine
        // everything anyway.
        let weaker = match rules.adds_up {
            true => NEVER,
            false => rules.examined,
        };
        let terms = self.terms(frame, weaker);
        let unseen = frame.channel == terms.home;
        let passage = self.passage(end, if unseen { weaker } else { Power::ZERO });
        let (count, mut rest) = self.in_time(frame, frame.ended as usize, end);
        let stop = loop {
            let Some(arrival) = passage.fall(self.receivers.levels(), &mut rest) else {
                break None;
            };
            let edge = self.edge(arrival, count.wrapping_sub(rest.len() + 1), end);
            if let Some(event) = self.fall_at(frame, edge, terms) {
                break Some(event);
            }
        };
        let mut place = count - rest.len();
        let event = stop.unwrap_or_else(|| self.leave_away(frame, &mut place));
        (place as u32, event)
    }

    /// A signal ends at a radio that has to be looked at.
    #[inline]
    fn fall_at(&mut self, frame: &Frame, edge: Edge, terms: Terms) -> Option<CursorEvent> {
        let radio = self.receivers.radio(edge.node);
        if terms.is_plain && radio.channel == terms.home && !radio.lock.is_none() {
            return match radio.lock == self.slot {
                true => self.complete(frame, edge),
                false => self.relieve(edge),
            };
        }
        if radio.is_away(frame.channel, terms.reach) {
            self.shift_energy(frame, edge, Power::minus);
            return None;
        }
        // A radio that receives or transmits must close a stretch first; another channel needs the rejection.
        if !radio.is_free() || radio.channel != frame.channel {
            return self.leave(frame, edge);
        }
        self.shift_free(edge, Power::minus)
    }

    /// The same for signals that end.
    fn leave_away(&mut self, frame: &Frame, place: &mut usize) -> CursorEvent {
        let reach = self.reception.rejection.reach();
        while let Some(arrival) = self.arrivals.get(*place) {
            let edge = self.edge(arrival, *place, frame.end());
            let radio = self.receivers.radio(edge.node);
            let is_away = radio.is_away(frame.channel, reach);
            // A signal ends nowhere before it has begun there. On links longer than a frame, the first cursor may still be on
            // its way to a radio that is off, where this one would not wait for it.
            let has_begun = *place < frame.started as usize;
            let passes = has_begun && is_away && radio.lock.is_none() && !radio.reports_carrier();
            if !passes || edge.at > self.limits.far {
                return CursorEvent::Pause(self.key.at_time(edge.at));
            }
            *place += 1;
            self.shift_energy(frame, edge, Power::minus);
        }
        CursorEvent::Done
    }

    #[inline]
    fn terms(&self, frame: &Frame, examined: Power) -> Terms {
        Terms {
            is_plain: self.is_plain(frame),
            home: self.reception.rules.home,
            reach: self.reception.rejection.reach(),
            examined,
            reports: false,
        }
    }

    /// How a bit that left its transmitter at `sent` passes radios that signals below `weaker` do not matter to.
    #[inline]
    fn passage(&self, sent: AirTime, weaker: Power) -> Passage {
        Passage {
            sent,
            weaker,
            carrier_sense: self.reception.rules.carrier_sense,
        }
    }

    /// The receivers that a bit reaches before other events, from the place `first` on, and the place after them.
    #[inline]
    fn in_time(
        &self,
        frame: &Frame,
        first: usize,
        sent: AirTime,
    ) -> (usize, slice::Iter<'a, Arrival>) {
        let known = (self.arrivals, frame.latest);
        let count = timely(known, first, sent, self.limits.last);
        let rest = self.arrivals[..count].get(first..);
        (count, rest.unwrap_or_default().iter())
    }

    #[inline]
    fn edge(&self, arrival: &Arrival, place: usize, sent: AirTime) -> Edge {
        Edge {
            slot: self.slot,
            place: place as u32,
            node: arrival.receiver,
            power: arrival.power,
            at: arrival.time(sent),
        }
    }

    /// A signal begins at a radio that is off or elsewhere.
    fn pass_by(&mut self, frame: &Frame, edge: Edge) {
        let why = self.receivers.radio(edge.node).away_why();
        self.shift_energy(frame, edge, Power::plus);
        self.ledger.pass(frame, beginning(edge, Power::ZERO), why);
    }

    /// The energy changes at a radio that listens and locks on to nothing.
    #[inline]
    fn shift_free(
        &mut self,
        Edge {
            node, at, power, ..
        }: Edge,
        shift: impl Fn(Power, Power) -> Power,
    ) -> Option<CursorEvent> {
        let carrier_sense = self.reception.rules.carrier_sense;
        let mut radio = self.receivers.look(node, carrier_sense);
        radio.level.energy = shift(radio.level.energy, power);
        let is_due = radio.refresh_free(at, carrier_sense);
        radio.look_away(at, &self.reception.rules);
        self.tell_if(is_due, node, at)
    }

    /// The radio may be switched on while the signal lasts, so its energy must be right all the time.
    #[inline]
    fn shift_energy(&mut self, frame: &Frame, edge: Edge, shift: impl Fn(Power, Power) -> Power) {
        if !self.receivers.radio(edge.node).is(ASLEEP | DOWN) {
            return;
        }
        let carrier_sense = self.reception.rules.carrier_sense;
        let mut radio = self.receivers.look(edge.node, carrier_sense);
        let rejection = &self.reception.rejection;
        let power = rejection.across(edge.power, frame.channel, radio.channel);
        radio.level.energy = shift(radio.level.energy, power);
        radio.refresh(edge.at, carrier_sense);
    }

    /// Whether radios on the usual channel that hear the frame go by powers and bits alone.
    fn is_plain(&self, frame: &Frame) -> bool {
        let rules = &self.reception.rules;
        let is_usual = frame.channel == rules.home && !frame.noise;
        rules.plain && is_usual && frame.parts.is_empty()
    }

    /// A frame begins at an idle radio that hears it, under plain laws. Returns an event if a node has to be served.
    #[inline]
    fn find(&mut self, frame: &Frame, edge: Edge) -> Option<CursorEvent> {
        let Edge { node, at, .. } = edge;
        let carrier_sense = self.reception.rules.carrier_sense;
        let mut radio = self.receivers.look(node, carrier_sense);
        let carrier = match self.reception.find::<true>(frame, &mut radio, edge) {
            Ok(()) => {
                let carrier = radio.hold(at);
                if radio.peeks {
                    return Some(CursorEvent::Locked { at, node, carrier });
                }
                carrier
            }
            Err(why) => {
                let others = radio.level.energy.minus(edge.power);
                let carrier = radio.rest(at, carrier_sense);
                self.ledger.lose(frame, beginning(edge, others), why);
                carrier
            }
        };
        self.tell_if(carrier, node, at)
    }

    /// A weak signal begins at a radio that receives another frame, under plain laws.
    #[inline]
    fn disturb(&mut self, frame: &Frame, edge: Edge) -> Option<CursorEvent> {
        let Edge { node, at, .. } = edge;
        let mut radio = self.receivers.locked(node);
        let others = radio.level.energy;
        let energy = others.plus(edge.power);
        self.reception
            .disturb_plainly(self.frames, &mut radio, (node, at), energy);
        radio.flags |= INTERFERED;
        let is_due = radio.hold(at);
        self.ledger
            .lose(frame, beginning(edge, others), Loss::TooWeak);
        self.tell_if(is_due, node, at)
    }

    /// A signal ends at a radio that receives another frame, under plain laws.
    #[inline]
    fn relieve(&mut self, edge: Edge) -> Option<CursorEvent> {
        let Edge { node, at, .. } = edge;
        let mut radio = self.receivers.locked(node);
        let energy = radio.level.energy.minus(edge.power);
        self.reception
            .disturb_plainly(self.frames, &mut radio, (node, at), energy);
        let is_due = radio.hold(at);
        self.tell_if(is_due, node, at)
    }

    /// A frame ends at a radio that received it, under plain laws.
    #[inline]
    fn complete(&mut self, frame: &Frame, edge: Edge) -> Option<CursorEvent> {
        let Edge { node, at, .. } = edge;
        let carrier_sense = self.reception.rules.carrier_sense;
        let mut radio = self.receivers.locked(node);
        let completed = self
            .reception
            .complete_plainly(frame, &mut radio, (node, at));
        let others = radio.level.energy;
        let is_due = radio.rest(at, carrier_sense);
        if self.book(frame, edge, completed, others) && !self.settles(node, at) {
            return Some(CursorEvent::Ended { at, node });
        }
        self.tell_if(is_due, node, at)
    }

    /// A signal begins at any radio, under any laws. Returns an event if a node has to be served.
    #[inline(never)]
    fn meet(&mut self, frame: &Frame, edge: Edge) -> Option<CursorEvent> {
        let Edge { node, at, slot, .. } = edge;
        let carrier_sense = self.reception.rules.carrier_sense;
        let mut radio = self.receivers.look(node, carrier_sense);
        let arrived = self
            .reception
            .arrive((self.frames, frame), &mut radio, edge);
        let is_locked = radio.lock == slot;
        let carrier = radio.refresh(at, carrier_sense);
        self.reception.look_away(&mut radio, at);
        let (energy, peeks) = (radio.level.energy, radio.peeks);
        match arrived {
            Arrived::Locked | Arrived::Noise => {}
            Arrived::Lost(power, why) => {
                let meeting = beginning(Edge { power, ..edge }, energy.minus(power));
                self.ledger.lose(frame, meeting, why);
            }
            Arrived::LostBoth(lost, power) => {
                let meeting = beginning(Edge { power, ..edge }, energy.minus(power));
                self.ledger.lose(frame, meeting, Loss::Collision);
                let old = self.frames.get(lost.slot);
                self.ledger
                    .interrupt(old, (node, at), lost, energy, Loss::Collision);
            }
            Arrived::TookOver(lost, why) => {
                let old = self.frames.get(lost.slot);
                self.ledger.interrupt(old, (node, at), lost, energy, why);
            }
        }
        if peeks && is_locked {
            return Some(CursorEvent::Locked { at, node, carrier });
        }
        self.tell_if(carrier, node, at)
    }

    /// A signal ends at any radio, under any laws. Returns an event if a node has to be served.
    #[inline(never)]
    fn leave(&mut self, frame: &Frame, edge: Edge) -> Option<CursorEvent> {
        let Edge { node, at, .. } = edge;
        let carrier_sense = self.reception.rules.carrier_sense;
        let mut radio = self.receivers.look(node, carrier_sense);
        let completed = self.reception.leave((self.frames, frame), &mut radio, edge);
        let is_due = radio.refresh(at, carrier_sense);
        self.reception.look_away(&mut radio, at);
        let energy = radio.level.energy;
        if let Some(completed) = completed
            && self.book(frame, edge, completed, energy)
            && !self.settles(node, at)
        {
            return Some(CursorEvent::Ended { at, node });
        }
        self.tell_if(is_due, node, at)
    }

    /// Books the end of a reception, where all other power is `others` then. Returns whether the node was notified.
    #[inline]
    fn book(
        &mut self,
        frame: &Frame,
        Edge { node, at, .. }: Edge,
        completed: Completed,
        others: Power,
    ) -> bool {
        let (started, power) = (completed.started, completed.power);
        let meeting = Meeting {
            node,
            at,
            started,
            power,
            others,
        };
        let heard = match completed.outcome {
            Ok(_) if frame.foreign => {
                self.ledger.node(node).foreign += 1;
                return false;
            }
            Ok(heard) => {
                // Aggregates alone can lose a part: digests of other runs are as before.
                if heard.lost != 0 {
                    self.ledger.digest.mix(heard.lost);
                }
                self.ledger.keep(frame, meeting);
                self.ledger.counters.falsified += u64::from(heard.falsified.is_some());
                Some(heard)
            }
            Err(why) => {
                self.ledger.node(node).failures += 1;
                self.ledger.lose(frame, meeting, why);
                None
            }
        };
        self.ledger.counters.calls += 1;
        self.listener.ended(Ending {
            node,
            at,
            started,
            frame,
            heard,
            power: self.powers_are_real.then_some(power),
            bit_errors: &self.reception.bit_errors,
        });
        true
    }

    /// Tells a node its carrier if that is due. Returns an event if the node has to be served.
    #[inline]
    fn tell_if(&mut self, is_due: bool, node: NodeId, at: AirTime) -> Option<CursorEvent> {
        match is_due {
            true => self.tell_carrier(node, at),
            false => None,
        }
    }

    #[inline(never)]
    fn tell_carrier(&mut self, node: NodeId, at: AirTime) -> Option<CursorEvent> {
        let rules = &self.reception.rules;
        let mut radio = self.receivers.look(node, rules.carrier_sense);
        let (busy, since) = (radio.is(BUSY), radio.since);
        radio.set(REPORTED_BUSY, busy);
        self.reception.look_away(&mut radio, at);
        self.ledger.counters.calls += 1;
        self.listener.carrier(Carrier {
            node,
            at,
            busy,
            since,
        });
        (!self.settles(node, at)).then_some(CursorEvent::Carrier { at, node })
    }

    /// Whether a node that was notified wants nothing.
    #[inline]
    fn settles(&mut self, node: NodeId, at: AirTime) -> bool {
        let wish = self.listener.settle(node, at);
        // A node with a request is asked for more first, by the one who serves it.
        if R::NODES && wish != Wish::Request {
            while let Some(event) = self.listener.trace(node) {
                self.ledger.recorder.traced(at, node.index(), event);
            }
        }
        wish == Wish::Nothing
    }
}

/// A frame whose outcome is known when its first bit arrives.
#[inline]
fn beginning(edge: Edge, others: Power) -> Meeting {
    Meeting {
        node: edge.node,
        at: edge.at,
        started: edge.at,
        power: edge.power,
        others,
    }
}
