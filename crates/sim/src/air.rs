//! The physics of a run: the medium, the frames in flight, the radios, and the laws of reception, joined.
//!
//! A frame is two cursors in the event queue. Each visits the frame's receivers in the order in which the signal
//! reaches them, the first one where it begins, the second where it ends. It goes on without touching the queue while
//! no other event comes earlier, and stops when a node that was notified wants something.
//!
//! [`cursor`](crate::cursor) moves through the receivers; [`reception`](crate::reception) decides what a signal means for those
//! for which it is more than energy.

use chappe_core::{Duration, Seed};

use crate::arrival::Arrival;
use crate::bit_errors::Heard;
use crate::cursor::{Cursor, CursorEvent, Limits};
use crate::digest::Digest;
use crate::duty::Duty;
use crate::event::Key;
use crate::frame::{Bits, Frame, Frames};
use crate::id::{NodeId, Slot};
use crate::ledger::Ledger;
use crate::link_loss::LinkLosses;
use crate::listener::Listener;
use crate::radio::{Radio, flag::*};
use crate::receiver::{Receiver, Receivers};
use crate::reception::{GoodHead, Reception, interrupt};
use crate::spread::Departure;
use crate::{Accounts, AirTime, Loss, Medium, Position, Power, Recorder};

/// The air with all radios in it.
#[derive(Debug)]
pub(crate) struct Air<R> {
    medium: Medium,
    frames: Frames,
    receivers: Receivers,
    reception: Reception,
    duty: Duty,
    /// Pairs between which no signal passes, both directions, sorted.
    cuts: Vec<(NodeId, NodeId)>,
    pub(crate) ledger: Ledger<R>,
}

impl<R: Recorder> Air<R> {
    pub(crate) fn new(
        medium: Medium,
        link_losses: Option<LinkLosses>,
        frame_max: usize,
        seed: Seed,
        recorder: R,
    ) -> Air<R> {
        let nodes = medium.nodes();
        Air {
            reception: Reception::new(&medium, link_losses, seed),
            receivers: Receivers::new(medium.profile().channel.0, nodes),
            medium,
            frames: Frames::new(frame_max),
            duty: Duty::new(nodes),
            cuts: Vec::new(),
            ledger: Ledger::new(nodes, recorder),
        }
    }

    #[inline]
    pub(crate) fn medium(&self) -> &Medium {
        &self.medium
    }

    #[inline]
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    #[inline]
    pub(crate) fn frame(&self, slot: Slot) -> &Frame {
        self.frames.get(slot)
    }

    #[inline]
    pub(crate) fn frame_mut(&mut self, slot: Slot) -> &mut Frame {
        self.frames.get_mut(slot)
    }

    /// A slot for a new frame.
    pub(crate) fn take_slot(&mut self) -> Slot {
        self.frames.take()
    }

    pub(crate) fn release_slot(&mut self, slot: Slot) {
        self.frames.release(slot);
    }

    #[inline]
    pub(crate) fn radio(&self, node: NodeId) -> &Radio {
        self.receivers.radio(node)
    }

    #[inline]
    pub(crate) fn receiver(&mut self, node: NodeId) -> Receiver<'_> {
        let carrier_sense = self.reception.rules.carrier_sense;
        self.receivers.look(node, carrier_sense)
    }

    /// Whether weak signals pass a node unseen.
    #[cfg(test)]
    pub(crate) fn is_passed(&self, node: NodeId) -> bool {
        !self.receivers.is_looked_at(node)
    }

    /// Power of all signals present at a node.
    #[cfg(test)]
    pub(crate) fn energy(&self, node: NodeId) -> Power {
        self.receivers
            .energy(node, self.reception.rules.carrier_sense)
    }

    /// How late a transmission starts by itself.
    pub(crate) fn jitter(&self, node: NodeId, number: u64) -> Duration {
        let joint = self.reception.joint.as_ref();
        joint.map_or(Duration::ZERO, |joint| joint.jitter(node, number))
    }

    /// Brings a radio's carrier up to date and returns whether its node must be notified.
    #[inline]
    pub(crate) fn refresh_carrier(&mut self, node: NodeId, at: AirTime) -> bool {
        // Nothing has changed since signals pass it, or they would not.
        self.receivers.is_looked_at(node) && self.refresh_looked_at(node, at)
    }

    #[inline(never)]
    fn refresh_looked_at(&mut self, node: NodeId, at: AirTime) -> bool {
        let carrier_sense = self.reception.rules.carrier_sense;
        let mut receiver = self.receivers.look(node, carrier_sense);
        let is_due = receiver.refresh(at, carrier_sense);
        self.reception.look_away(&mut receiver, at);
        is_due
    }

    /// Puts the frame in `slot` on the air: it leaves the antenna at `at`. A reception in progress is lost.
    pub(crate) fn transmit(&mut self, slot: Slot, at: AirTime) {
        let frame = self.frames.get_mut(slot);
        frame.begin = at;
        frame.flying = true;
        frame.bits = Bits::new(frame.mode, frame.octets, self.reception.rules.curves);
        // Hashing every PSDU costs, so only where frames can add up.
        if self.reception.joint.is_some() {
            frame.content = content(frame);
        }
        let departure = Departure {
            source: frame.source,
            channel: frame.channel,
            begin: at,
            scale: frame.scale,
            number: frame.number,
            octets: frame.octets,
        };
        let (arrivals, ratios) = (&mut frame.own_arrivals, &mut frame.ratios);
        let vanish = self.reception.rules.vanish;
        let spread = self.medium.spread(departure, vanish, arrivals, ratios);
        (frame.row, frame.latest) = (spread.row, spread.latest);
        if let Some(row) = spread.row {
            touch(self.medium.steady(row));
        }
        let (source, foreign) = (frame.source, frame.foreign);
        self.ledger.digest.mix(at.0);
        let numbers = source.number() << 40 ^ frame.number << 16 ^ frame.octets as u64;
        self.ledger.digest.mix(numbers);
        let cut = match self.cuts.is_empty() {
            true => 0,
            false => self.drop_cut(slot),
        };
        if foreign {
            return self.report_interference(slot, self.medium.place(source));
        }
        let frame = self.frames.get(slot);
        let arrivals = arrivals_of(&self.medium, frame).len();
        self.ledger.sent(frame, arrivals, [spread.vanished, cut]);
        // Half duplex. Booked after the frame's own digest words: the order is part of the digest.
        self.give_up(source, at, Loss::Transmitting);
        self.switch(source, at, TRANSMITTING, true);
        self.ledger.report_sent(self.frames.get(slot));
        self.report_interference(slot, None);
    }

    fn report_interference(&mut self, slot: Slot, place: Option<Position>) {
        let frame = self.frames.get(slot);
        let arrivals = arrivals_of(&self.medium, frame);
        self.ledger.report_interference((frame, arrivals), place);
    }

    /// The receivers that a frame in flight reaches.
    #[inline]
    pub(crate) fn arrivals<'a>(&'a self, frame: &'a Frame) -> &'a [Arrival] {
        arrivals_of(&self.medium, frame)
    }

    /// No signal passes between two nodes from now on, or signals do again.
    pub(crate) fn cut(&mut self, a: NodeId, b: NodeId, cut: bool) {
        let pair = (a.min(b), a.max(b));
        match (self.cuts.binary_search(&pair), cut) {
            (Err(place), true) => self.cuts.insert(place, pair),
            (Ok(place), false) => {
                self.cuts.remove(place);
            }
            _ => {}
        }
    }

    /// From now on each bit that a node receives is wrong with probability `rate`.
    pub(crate) fn corrupt(&mut self, node: NodeId, rate: f64, detected: bool) {
        let nodes = self.receivers.len();
        self.reception.bit_errors.set(node, nodes, rate, detected);
    }

    /// Takes the receivers behind cut links out of a frame, and says how many there were.
    fn drop_cut(&mut self, slot: Slot) -> u64 {
        let (frame, cuts) = (self.frames.get_mut(slot), &self.cuts);
        let source = frame.source;
        if let Some(row) = frame.row.take() {
            frame.own_arrivals.clear();
            frame
                .own_arrivals
                .extend_from_slice(self.medium.steady(row));
        }
        let open = |receiver: NodeId| {
            let pair = (source.min(receiver), source.max(receiver));
            cuts.binary_search(&pair).is_err()
        };
        let before = frame.own_arrivals.len();
        // The ratios first: which of them belong to open links shows only beside all arrivals.
        if !frame.ratios.is_empty() {
            let mut receivers = frame.own_arrivals.iter();
            frame.ratios.retain(|_| {
                receivers
                    .next()
                    .is_some_and(|arrival| open(arrival.receiver))
            });
        }
        frame.own_arrivals.retain(|arrival| open(arrival.receiver));
        (before - frame.own_arrivals.len()) as u64
    }

    /// What became of all frames so far. Walks over all radios and frames in flight.
    pub(crate) fn accounts(&self) -> Accounts {
        let counters = &self.ledger.counters;
        let counts = |frame: &&Frame| frame.counts();
        let coming = self.frames.flying().filter(counts);
        let coming = coming.map(|frame| self.arrivals(frame).len() - frame.started as usize);
        let locks = self.receivers.iter().filter(|radio| !radio.lock.is_none());
        let held = locks.filter(|radio| self.frames.get(radio.lock).counts());
        Accounts {
            owed: counters.owed,
            received: counters.receptions,
            lost: counters.lost.total(),
            in_flight: (coming.sum::<usize>() + held.count()) as u64,
        }
    }

    /// Moves a frame's first cursor from `key` on. `bounds` are the next other event, and the next other event that
    /// can switch or tune a radio.
    pub(crate) fn advance_starts(
        &mut self,
        (slot, key): (Slot, Key),
        bounds: [Key; 2],
        listener: &mut dyn Listener,
    ) -> CursorEvent {
        let Some(limits) = limits(key, bounds) else {
            return CursorEvent::Pause(key);
        };
        let (place, event) = self.cursor((slot, key), limits, listener).begin();
        self.frames.get_mut(slot).started = place;
        if event == CursorEvent::Done {
            self.ledger.counters.arrivals += u64::from(place);
        }
        event
    }

    /// Moves a frame's second cursor, after the transmitter's own end.
    pub(crate) fn advance_ends(
        &mut self,
        (slot, key): (Slot, Key),
        bounds: [Key; 2],
        listener: &mut dyn Listener,
    ) -> CursorEvent {
        let Some(limits) = limits(key, bounds) else {
            return CursorEvent::Pause(key);
        };
        let (place, event) = self.cursor((slot, key), limits, listener).end();
        self.frames.get_mut(slot).ended = place;
        event
    }

    #[inline]
    fn cursor<'a>(
        &'a mut self,
        (slot, key): (Slot, Key),
        limits: Limits,
        listener: &'a mut dyn Listener,
    ) -> Cursor<'a, R> {
        Cursor {
            slot,
            key,
            limits,
            frames: &self.frames,
            arrivals: arrivals_of(&self.medium, self.frames.get(slot)),
            receivers: &mut self.receivers,
            reception: &mut self.reception,
            ledger: &mut self.ledger,
            listener,
            powers_are_real: self.medium.powers_are_real(),
        }
    }

    /// The transmitter's own end of a frame: it may listen again after its turnaround. `None` if no node sent it to
    /// this end.
    pub(crate) fn finish(&mut self, slot: Slot, at: AirTime) -> Option<NodeId> {
        let frame = self.frames.get(slot);
        // A crashed transmitter has no end of its own: its radio was reset when it crashed.
        if frame.foreign || frame.truncated {
            return None;
        }
        let node = frame.source;
        let turnaround = self.reception.rules.turnaround;
        self.receiver(node).turn_around(at, turnaround);
        self.book_duty(node, at);
        Some(node)
    }

    /// Ends a reception in progress, if there is one, for a reason of the node's own.
    pub(crate) fn give_up(&mut self, node: NodeId, at: AirTime, why: Loss) {
        let mut radio = self.receiver(node);
        let energy = radio.level.energy;
        if let Some(lost) = interrupt(&mut radio) {
            let frame = self.frames.get(lost.slot);
            self.ledger.interrupt(frame, (node, at), lost, energy, why);
        }
    }

    /// The head of the frame in `slot` has arrived at a radio: what it sees of it, if it is still locked on to it.
    pub(crate) fn head(
        &mut self,
        slot: Slot,
        node: NodeId,
        octets: usize,
        at: AirTime,
    ) -> Option<GoodHead> {
        let carrier_sense = self.reception.rules.carrier_sense;
        let mut radio = self.receivers.look(node, carrier_sense);
        self.reception
            .head(&self.frames, &mut radio, (slot, node), octets, at)
    }

    /// A frame's PSDU as a node hears it: as it was sent, or a copy in `space` with wrong bits.
    pub(crate) fn psdu_heard<'a>(
        &'a self,
        slot: Slot,
        node: NodeId,
        heard: Heard,
        space: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        self.reception
            .bit_errors
            .apply(self.frames.get(slot), node, heard, space)
    }

    /// Switches one of a radio's flags that say what it does.
    pub(crate) fn switch(&mut self, node: NodeId, at: AirTime, flag: u8, on: bool) {
        self.receiver(node).set(flag, on);
        self.book_duty(node, at);
    }

    /// A radio stops with its node. What passes it still counts, so that its energy is right when it starts again.
    pub(crate) fn crash(&mut self, node: NodeId, at: AirTime) {
        let mut radio = self.receiver(node);
        // BUSY stays until `refresh_carrier`, which notes when the channel became idle.
        radio.flags = radio.flags & BUSY | DOWN;
        radio.peeks = false;
        self.refresh_carrier(node, at);
        self.book_duty(node, at);
    }

    /// Books a radio's time up to `at`. From there on it does what its flags say.
    fn book_duty(&mut self, node: NodeId, at: AirTime) {
        let radio = self.receivers.radio(node);
        self.duty.change(node, radio, self.ledger.node(node), at);
    }

    /// Books all radios' time up to `at`.
    pub(crate) fn settle_duty(&mut self, at: AirTime) {
        (0..self.receivers.len()).for_each(|node| self.book_duty(NodeId::of(node), at));
    }

    /// The power of all frames in flight at a node, summed up, for a radio on `channel`.
    pub(crate) fn sum(&self, node: NodeId, channel: u8) -> Power {
        // The signals that have begun here and not ended are those between a frame's two cursors.
        let present = |frame: &Frame| {
            let passing = frame.ended as usize..frame.started as usize;
            let here = self.arrivals(frame)[passing]
                .iter()
                .filter(|arrival| arrival.receiver == node);
            here.fold(Power::ZERO, |sum, arrival| {
                let rejection = &self.reception.rejection;
                sum.plus(rejection.across(arrival.power, frame.channel, channel))
            })
        };
        let frames = self.frames.flying();
        frames.map(present).fold(Power::ZERO, Power::plus)
    }

    /// Moves a radio to another channel: its reception is lost, and it hears what is on the air there.
    pub(crate) fn tune(&mut self, node: NodeId, at: AirTime, channel: u8) {
        if self.radio(node).channel == channel {
            return;
        }
        self.give_up(node, at, Loss::OtherChannel);
        self.medium.open(channel);
        let energy = self.sum(node, channel);
        let mut radio = self.receiver(node);
        radio.channel = channel;
        radio.level.energy = energy;
    }
}

/// Reads a row before the first cursor walks it. In a large network it lies far away in memory, and comes much faster as a whole than
/// to a cursor whose next step nothing can foresee.
#[inline]
fn touch(row: &[Arrival]) {
    const LINE: usize = 64 / size_of::<Arrival>();
    let receivers = row.iter().step_by(LINE).map(|arrival| arrival.receiver.0);
    std::hint::black_box(receivers.fold(0, |all, one| all ^ one));
}

/// The receivers that a frame reaches.
#[inline]
fn arrivals_of<'a>(medium: &'a Medium, frame: &'a Frame) -> &'a [Arrival] {
    match frame.row {
        Some(row) => medium.steady(row),
        None => &frame.own_arrivals,
    }
}

/// How far a cursor at `key` may go; `None` if a bound comes first.
fn limits(key: Key, [next, next_switch]: [Key; 2]) -> Option<Limits> {
    Some(Limits {
        last: key.last_before(next)?,
        far: key.last_before(next_switch)?,
    })
}

/// A number that is the same for frames that add up: of PSDU, mode and channel. Foreign frames never do.
fn content(frame: &Frame) -> u64 {
    let mut content = Digest::default();
    content.bytes(frame.psdu());
    content
        .mix((frame.len as u64) << 16 ^ (frame.mode.rate as u64) << 8 ^ u64::from(frame.channel));
    if frame.foreign {
        content.mix(frame.source.number() << 32 ^ frame.number);
    }
    content.value()
}
