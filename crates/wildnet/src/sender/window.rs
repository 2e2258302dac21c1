//! The send window: bodies that are in flight, lost or in doubt, with their octets.
//!
//! ```text
//!             wire_base          base                  next
//!  settled for   |   given up, but  |  in flight, lost,   |  not sent yet
//!  the peer too  |   in doubt, done |  done               |
//! ```
//!
//! TCP would call `base` SND.UNA and `next` SND.NXT (RFC 9293, 3.3.1), except that both count bodies. A body keeps its number
//! when it is sent again; each of its frames has a number of its own, as packets of QUIC do.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Instant;

use crate::header::before;
use crate::memory::Share;
use crate::paths::FrameId;
use crate::store::Store;

/// The bodies of one direction, in a ring by sequence number.
#[derive(Clone, Debug)]
pub(super) struct SendWindow {
    bodies: Store,
    entries: Vec<Entry>,
    /// The oldest body that is neither done nor given up.
    base: u32,
    /// The number of the next new body.
    next: u32,
    /// The base that frames carry: [`base`](Self::base), or less while a body before it is in doubt.
    wire_base: u32,
    /// Most open bodies that the peer allows, and for which there may be places here.
    limit: u32,
    most: u32,
    /// What the window has taken of a memory that it shares.
    share: Share,
    /// Lost bodies in the order in which their losses became known.
    lost: VecDeque<u32>,
}

/// What is known of one body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub state: State,
    pub service: u8,
    /// How often it has been sent.
    pub transmissions: u8,
    pub offered: Instant,
    /// The first and the latest frame that carried it.
    pub first_frame: FrameId,
    pub frame: FrameId,
    /// Whether repairs or copies may have brought it as well.
    pub copied: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    InFlight,
    /// Waits to be sent again, or for its block's repairs.
    Lost,
    /// Reported by the peer.
    Done,
    GivenUp,
    /// Given up before any report covered the frames up to `newest`, so that it may have arrived.
    InDoubt {
        newest: FrameId,
    },
}

impl SendWindow {
    /// Places for `bodies` now, and for `most` when they are needed.
    pub fn new(bodies: usize, most: usize, body_max: usize) -> SendWindow {
        let entry = Entry {
            state: State::Done,
            service: 0,
            transmissions: 0,
            offered: Instant::ZERO,
            first_frame: FrameId::NONE,
            frame: FrameId::NONE,
            copied: false,
        };
        SendWindow {
            bodies: Store::new(bodies, body_max),
            entries: vec![entry; bodies],
            base: 0,
            next: 0,
            wire_base: 0,
            limit: most as u32,
            most: (most as u32).min(u16::MAX.into()),
            share: Share::default(),
            lost: VecDeque::with_capacity(bodies),
        }
    }

    /// Bodies for which there are places now.
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    /// The oldest open body.
    pub fn base(&self) -> u32 {
        self.base
    }

    pub fn next(&self) -> u32 {
        self.next
    }

    pub fn wire_base(&self) -> u32 {
        self.wire_base
    }

    /// Limits the open bodies, at most to the places that there may be.
    pub fn set_limit(&mut self, bodies: u32) {
        self.limit = bodies.clamp(1, self.most);
    }

    /// Grows only as far as a shared memory allows from now on.
    pub fn share(&mut self, memory: Share) {
        self.share = memory;
    }

    /// Octets that the window takes for each body, beside `others`.
    pub fn octets_of_body(&self) -> usize {
        self.bodies.octets_of_place() + size_of::<Entry>()
    }

    /// Doubles the places if the next body has none and there is memory: how many there are now, if they have become more. Each new
    /// place takes `others` octets elsewhere.
    pub fn grow(&mut self, others: usize) -> Option<usize> {
        let old = self.entries.len();
        // From `wire_base`: bodies in doubt keep their places.
        let used = self.next.wrapping_sub(self.wire_base) as usize;
        if used < old || old >= self.most as usize {
            return None;
        }
        if !self.share.take(old * (self.octets_of_body() + others)) {
            // Until the peer says again how many it takes: then there may be more.
            self.limit = self.limit.min(old as u32);
            self.advance_wire_base();
            return None;
        }
        let placed = self.placed();
        self.bodies.grow(old * 2);
        let entry = self.entries.first().copied()?;
        self.entries.resize(old * 2, entry);
        for seq in placed {
            let (from, to) = (seq as usize & (old - 1), self.place(seq));
            if from != to {
                self.bodies.shift(from, to);
                self.entries.swap(from, to);
            }
        }
        Some(old * 2)
    }

    /// Whether the next body has a place.
    pub fn has_room(&self) -> bool {
        let used = self.next.wrapping_sub(self.wire_base) as usize;
        used < self.entries.len() && !self.is_full()
    }

    /// Open bodies, those behind the oldest one that are done included.
    pub fn len(&self) -> u32 {
        self.next.wrapping_sub(self.base)
    }

    pub fn has_open(&self) -> bool {
        self.base != self.next
    }

    pub fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// The open numbers, oldest first, as they are now.
    pub fn open(&self) -> impl Iterator<Item = u32> + use<> {
        let (base, count) = (self.base, self.len());
        (0..count).map(move |i| base.wrapping_add(i))
    }

    /// The numbers that have a place, oldest first, as they are now: the open ones and those since the first in doubt.
    pub fn placed(&self) -> impl Iterator<Item = u32> + use<> {
        let (base, count) = (self.wire_base, self.next.wrapping_sub(self.wire_base));
        (0..count).map(move |i| base.wrapping_add(i))
    }

    /// The entry of a body that has a place.
    pub fn entry(&self, seq: u32) -> Option<&Entry> {
        // Another body may have the place: a number selects one by its low bits.
        self.entries
            .get(self.place(seq))
            .filter(|_| self.has_place(seq))
    }

    pub fn state(&self, seq: u32) -> Option<State> {
        self.entry(seq).map(|entry| entry.state)
    }

    /// Whether the peer lacks the body, as far as is known, and it matters still.
    pub fn is_missing(&self, seq: u32) -> bool {
        matches!(self.state(seq), Some(State::InFlight | State::Lost))
    }

    pub fn body(&self, seq: u32) -> &[u8] {
        self.bodies.get(self.place(seq))
    }

    /// Begins the next new body with `parts`.
    pub fn begin_body(&mut self, parts: &[&[u8]]) {
        self.bodies.put(self.place(self.next), parts);
    }

    /// Adds to the body that was begun.
    pub fn extend_body(&mut self, part: &[u8]) {
        self.bodies.append(self.place(self.next), part);
    }

    /// Octets of the body that was begun.
    pub fn begun_len(&self) -> usize {
        self.body(self.next).len()
    }

    /// Opens the body that was begun, which leaves in `frame`: its number.
    pub fn open_body(&mut self, service: u8, offered: Instant, frame: FrameId) -> u32 {
        let seq = self.next;
        self.next = seq.wrapping_add(1);
        self.advance_wire_base();
        if let Some(entry) = self.entry_mut(seq) {
            *entry = Entry {
                state: State::InFlight,
                service,
                transmissions: 1,
                offered,
                first_frame: frame,
                frame,
                copied: false,
            };
        }
        seq
    }

    /// A body leaves in `frame`.
    pub fn sent_in(&mut self, seq: u32, frame: FrameId) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.frame = frame;
        }
    }

    /// A repair or another frame carries a body as well.
    pub fn note_copy(&mut self, seq: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.copied = true;
        }
    }

    /// A lost body is sent again.
    pub fn send_again(&mut self, seq: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::InFlight;
            entry.transmissions = entry.transmissions.saturating_add(1);
        }
    }

    /// A body is lost and waits in the queue of [`pop_lost`](Self::pop_lost).
    pub fn lose(&mut self, seq: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::Lost;
            self.lost.push_back(seq);
        }
    }

    /// A body is lost, and its block decides what becomes of it.
    pub fn lose_in_block(&mut self, seq: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::Lost;
        }
    }

    pub fn done(&mut self, seq: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::Done;
        }
    }

    /// Gives a body up; with `doubt`, the newest frame sent, the peer may report it yet.
    pub fn give_up(&mut self, seq: u32, doubt: Option<FrameId>) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = match doubt {
                Some(newest) => State::InDoubt { newest },
                None => State::GivenUp,
            };
        }
    }

    /// Gives up all open bodies: how many there were, those that were done already included.
    pub fn give_up_all(&mut self) -> u64 {
        let mut count = 0;
        for seq in self.open() {
            if let Some(entry) = self.entry_mut(seq) {
                entry.state = State::GivenUp;
                count += 1;
            }
        }
        self.lost.clear();
        (self.base, self.wire_base) = (self.next, self.next);
        count
    }

    /// Moves both bases to where the first body still matters.
    pub fn advance(&mut self) {
        while self.has_open() && !self.is_missing(self.base) {
            self.base = self.base.wrapping_add(1);
        }
        self.advance_wire_base();
    }

    /// The base in frames stops at the first body in doubt, but not so long that it would close half of the window.
    fn advance_wire_base(&mut self) {
        while self.wire_base != self.base
            && !matches!(self.state(self.wire_base), Some(State::InDoubt { .. }))
        {
            self.wire_base = self.wire_base.wrapping_add(1);
        }
        if self.next.wrapping_sub(self.wire_base) >= self.limit / 2 {
            self.wire_base = self.base;
        }
    }

    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    pub fn lost_count(&self) -> usize {
        self.lost.len()
    }

    /// Lost bodies in the order in which their losses became known.
    pub fn lost(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.lost.iter().copied()
    }

    /// The lost body that is taken next.
    pub fn first_lost(&self) -> Option<u32> {
        self.lost().min_by_key(|&seq| self.turn_of_lost(seq))
    }

    /// Lost bodies of a more urgent class go first, and of the same class the older ones. By number and not by arrival: the receiver may
    /// hold everything later until this one comes.
    fn turn_of_lost(&self, seq: u32) -> (u8, u32) {
        let class = self.entry(seq).map_or(0, |entry| entry.service);
        (class, seq.wrapping_sub(self.base))
    }

    /// Takes the first lost body from the queue.
    pub fn pop_lost(&mut self) -> Option<u32> {
        loop {
            let place = (0..self.lost.len()).min_by_key(|&i| {
                let seq = self.lost.get(i);
                seq.map(|&seq| self.turn_of_lost(seq))
            })?;
            let seq = self.lost.remove(place)?;
            // A late report or a repair may have settled it meanwhile.
            if self.state(seq) == Some(State::Lost) {
                return Some(seq);
            }
        }
    }

    /// The oldest body in flight whose latest frame left before `frame` on the same path.
    pub fn oldest_sent_before(&self, frame: FrameId) -> Option<u32> {
        self.open().find(|&seq| {
            self.in_flight_on(seq, frame.path)
                .is_some_and(|number| before(number, frame.number))
        })
    }

    /// The number of the latest frame of a body that is in flight on a path.
    pub fn in_flight_on(&self, seq: u32, path: u8) -> Option<u32> {
        let entry = self.entry(seq)?;
        let here = entry.state == State::InFlight && entry.frame.path == path;
        here.then_some(entry.frame.number)
    }

    fn place(&self, seq: u32) -> usize {
        // The window is a power of two, so places stay right when numbers wrap.
        seq as usize & self.entries.len().wrapping_sub(1)
    }

    fn has_place(&self, seq: u32) -> bool {
        seq.wrapping_sub(self.wire_base) < self.next.wrapping_sub(self.wire_base)
    }

    fn entry_mut(&mut self, seq: u32) -> Option<&mut Entry> {
        let (place, open) = (self.place(seq), self.has_place(seq));
        self.entries.get_mut(place).filter(|_| open)
    }
}
