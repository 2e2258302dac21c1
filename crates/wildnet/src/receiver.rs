//! The receiving half of a link: which bodies it has, which are missing, and in which order packets leave.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{DropReason, Instant};

use crate::body::{body_len, first_part, head};
use crate::config::{Config, FLOWS, Order};
use crate::decoder::{Decoder, Known, Taken};
use crate::fragments::Fragments;
use crate::gilbert::Channel;
use crate::header::{Ack, BODY, HELD_UNIT, PARTS_BELOW, PLAIN_MAX, before, pack};
use crate::memory::Share;
use crate::paths::Paths;
use crate::store::Store;

/// A packet that leaves the link at its receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Number of its octets, at the front of the buffer.
    pub len: usize,
    /// The flow to which it belongs.
    pub flow: u8,
    /// The sequence number of the body that carried it.
    pub seq: u32,
}

/// Factor by which older counts decay with each frame, so that some 500 frames count.
const RECENT: f64 = 0.998;

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    held: Held,
    decoder: Decoder,
    /// The next number expected in each flow.
    flows: [u16; FLOWS],
    /// Bodies ready for delivery, and how many octets of the first have been delivered.
    ready: VecDeque<u32>,
    taken: usize,
    fragments: Fragments,
    /// Whether packets may come in parts. Both ends know it from their frames' length.
    in_parts: bool,
    pub frames: Paths<Frames>,
    /// Bodies recovered from repairs.
    pub recovered: u64,
    /// Bodies that wait for an older one.
    pub waiting: usize,
}

/// The bodies, in a ring by sequence number.
#[derive(Clone, Debug)]
struct Held {
    bodies: Store,
    slots: Vec<Slot>,
    next: u32,
    /// One above the highest number received.
    top: u32,
    /// Most places that there may be.
    most: usize,
    /// What the places have taken of a memory that several links share.
    share: Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// The number of the body that it holds.
    seq: Option<u32>,
    /// It waits for an older body.
    waits: bool,
    /// It is ready for delivery but not delivered yet.
    ready: bool,
}

/// Totals over the frame numbers of one path, and the report that it is owed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frames {
    started: bool,
    highest: u32,
    received: u16,
    runs: u16,
    last_at: Instant,
    /// Frames, losses and runs of losses, decaying by [`RECENT`].
    recent: [f64; 3],
    /// Frames received since the last acknowledgement, and when the first of them came.
    pub owed: u16,
    pub owed_since: Option<Instant>,
}

impl Frames {
    /// Counts from this number on.
    fn from(number: u32) -> Frames {
        Frames {
            started: true,
            highest: number.wrapping_sub(1),
            ..Frames::default()
        }
    }

    /// The channel over some 500 frames.
    pub fn channel(&self) -> Channel {
        let [frames, lost, runs] = self.recent;
        let loss = if frames > 0.0 { lost / frames } else { 0.0 };
        match runs > 3.0 {
            true => Channel::bursty(loss, lost / runs),
            false => Channel::independent(loss),
        }
    }
}

impl Held {
    fn place(&self, seq: u32) -> usize {
        seq as usize & self.slots.len().wrapping_sub(1)
    }

    fn slot(&self, seq: u32) -> Option<&Slot> {
        self.slots
            .get(self.place(seq))
            .filter(|slot| slot.seq == Some(seq))
    }

    fn slot_mut(&mut self, seq: u32) -> Option<&mut Slot> {
        let place = self.place(seq);
        self.slots
            .get_mut(place)
            .filter(|slot| slot.seq == Some(seq))
    }

    fn has(&self, seq: u32) -> bool {
        self.slot(seq).is_some()
    }

    fn octets_of_place(&self) -> usize {
        self.bodies.octets_of_place() + size_of::<Slot>()
    }

    /// Places that there are or could be now.
    fn places_at_most(&self) -> usize {
        let more = self.share.left() / self.octets_of_place();
        let mut places = self.slots.len();
        while places < self.most && places <= more {
            places *= 2;
        }
        places
    }

    /// Makes places until number `next + ahead` has one, as far as memory may go.
    fn make_room(&mut self, ahead: usize) {
        let old = self.slots.len();
        let mut places = old;
        while places <= ahead && places < self.most {
            places *= 2;
        }
        if places == old || !self.share.take((places - old) * self.octets_of_place()) {
            return;
        }
        self.bodies.grow(places);
        self.slots.resize(places, Slot::EMPTY);
        for place in 0..old {
            let Some(&slot) = self.slots.get(place) else {
                return;
            };
            // Of a power of two places a number keeps its own or gets the one as far behind as there were places before.
            let to = slot.seq.map_or(place, |seq| self.place(seq));
            if to != place {
                self.bodies.shift(place, to);
                self.slots.swap(place, to);
            }
        }
    }

    /// Octet `i` of the bitmap that begins behind `next`.
    fn shown(&self, i: usize) -> u8 {
        let from = self.next.wrapping_add(1 + i as u32 * 8);
        (0..8).fold(0, |octet, bit| {
            octet | u8::from(self.has(from.wrapping_add(bit))) << bit
        })
    }
}

impl Slot {
    const EMPTY: Slot = Slot {
        seq: None,
        waits: false,
        ready: false,
    };
}

impl Known for Held {
    fn body(&self, seq: u32) -> Option<&[u8]> {
        self.has(seq).then(|| self.bodies.get(self.place(seq)))
    }

    fn next(&self) -> u32 {
        self.next
    }

    fn reach(&self) -> u32 {
        self.most as u32
    }
}

impl Receiver {
    pub fn new(config: &Config) -> Receiver {
        let body_max = config.body_max();
        Receiver {
            held: Held {
                bodies: Store::new(config.window, body_max),
                slots: vec![Slot::EMPTY; config.window],
                next: 0,
                top: 0,
                most: config.window_max,
                share: Share::default(),
            },
            decoder: Decoder::new(body_max),
            flows: [0; FLOWS],
            ready: VecDeque::with_capacity(config.window),
            taken: 0,
            fragments: Fragments::new(config.packet_max()),
            in_parts: config.frame_max <= PARTS_BELOW,
            frames: Paths::one(Frames::default()),
            recovered: 0,
            waiting: 0,
        }
    }

    /// Takes memory for more bodies from what several links share.
    pub fn share(&mut self, memory: Share) {
        self.held.share = memory;
    }

    /// Bodies that may be open at the sender, as far as memory goes now.
    pub fn window(&self) -> usize {
        self.held.places_at_most()
    }

    /// The channel from the peer, over some 500 frames.
    pub fn channel(&self) -> Channel {
        self.frames.channel()
    }

    /// Whether anything was received since the start.
    pub fn has_started(&self) -> bool {
        self.frames.started
    }

    /// The sender has started over, or is heard for the first time; it sends from `base` on. Bodies that are ready for
    /// delivery stay.
    pub fn restart(&mut self, base: u32, number: u32) {
        for slot in &mut self.held.slots {
            (slot.seq, slot.waits) = (None, false);
        }
        self.held.next = base;
        self.held.top = base;
        self.decoder.clear();
        self.flows = [0; FLOWS];
        self.fragments.clear();
        self.waiting = 0;
        // The frame that shows the start is the first one that counts. What is owed stays owed.
        for frames in self.frames.iter_mut() {
            *frames = Frames {
                owed: frames.owed,
                owed_since: frames.owed_since,
                ..Frames::default()
            };
        }
        let (owed, owed_since) = (self.frames.owed, self.frames.owed_since);
        *self.frames = Frames {
            owed,
            owed_since,
            ..Frames::from(number)
        };
    }

    /// Counts a frame by its number.
    pub fn on_frame(&mut self, now: Instant, number: u32) {
        let frames = &mut *self.frames;
        if !frames.started {
            // The first one on a further path.
            *frames = Frames::from(number);
        }
        frames.received = frames.received.wrapping_add(1);
        // A late frame adds to the total received, and is no loss any more. The recent runs shrink with the losses.
        let late = before(number, frames.highest);
        if let [_, lost, runs] = &mut frames.recent
            && late
            && *lost >= 1.0
        {
            *runs *= 1.0 - 1.0 / *lost;
            *lost -= 1.0;
        }
        if before(frames.highest, number) {
            let lost = number.wrapping_sub(frames.highest) - 1;
            if lost > 0 {
                frames.runs = frames.runs.wrapping_add(1);
            }
            let counted = [f64::from(lost) + 1.0, lost.into(), f64::from(lost.min(1))];
            for (recent, more) in frames.recent.iter_mut().zip(counted) {
                *recent = *recent * RECENT + more;
            }
            (frames.highest, frames.last_at) = (number, now);
        }
    }

    /// Takes a body, and recovers what it completes.
    pub fn on_data(&mut self, seq: u32, body: &[u8]) -> Result<(), DropReason> {
        self.insert(seq, body)?;
        // A body may leave an equation with one unknown.
        self.decoder.learn(seq, body);
        self.solve();
        Ok(())
    }

    /// Takes a repair, and recovers what it completes.
    pub fn on_repair(
        &mut self,
        id: (u32, u8),
        cover: &[u8],
        coded: &[u8],
    ) -> Result<(), DropReason> {
        let taken = self.decoder.insert(&self.held, id, cover, coded);
        self.solve();
        match taken {
            Taken::Innovative => Ok(()),
            Taken::Redundant => Err(DropReason::NotInnovative),
            Taken::Stale => Err(DropReason::Stale),
            Taken::Full => Err(DropReason::QueueFull),
        }
    }

    /// The sender has settled everything before `base`: what is missing there never comes.
    pub fn on_base(&mut self, base: u32) {
        // A base beyond the window is invalid, or that of a sender which has lost its state.
        if base.wrapping_sub(self.held.next) > self.held.most as u32 {
            return;
        }
        while before(self.held.next, base) {
            // A repair over a body that never comes can never be solved.
            if !self.held.has(self.held.next) {
                self.decoder.forget(self.held.next);
            }
            self.pass();
        }
        if before(self.held.top, base) {
            self.held.top = base;
        }
        self.advance();
    }

    /// Writes the next packet in order to the front of `packet`.
    pub fn deliver(&mut self, packet: &mut [u8]) -> Option<Delivery> {
        loop {
            let &seq = self.ready.front()?;
            let place = self.held.place(seq);
            let body = self.held.bodies.get(place);
            let (_, flow, number) = head(body);
            let rest = body.get(BODY + self.taken..).unwrap_or_default();
            if let Some((part, used)) = first_part(rest, self.in_parts) {
                self.taken += used;
                let Some(octets) = self.fragments.join(flow, number, part) else {
                    continue;
                };
                if let Some(to) = packet.get_mut(..octets.len()) {
                    to.copy_from_slice(octets);
                    let (len, flow) = (octets.len(), flow as u8);
                    return Some(Delivery { len, flow, seq });
                }
                continue;
            }
            self.taken = 0;
            self.ready.pop_front();
            if let Some(slot) = self.held.slots.get_mut(place) {
                slot.ready = false;
            }
        }
    }

    /// Packets of which a part came and another one did not.
    pub fn torn(&self) -> u64 {
        self.fragments.torn
    }

    /// The acknowledgement to send, with as much of the bitmap as fits.
    pub fn ack<'a>(&self, now: Instant, bitmap: &'a mut [u8]) -> Ack<'a> {
        let wanted = self.bitmap_len();
        let (shown, octets, packed) = match wanted <= PLAIN_MAX {
            true => {
                let octets = wanted.min(bitmap.len());
                let shown = bitmap.get_mut(..octets).unwrap_or_default();
                for (i, octet) in shown.iter_mut().enumerate() {
                    *octet = self.held.shown(i);
                }
                (octets, octets, None)
            }
            false => {
                let shown = (0..wanted).map(|i| self.held.shown(i));
                let (used, octets) = pack(shown, bitmap);
                (used, octets, Some(octets as u16))
            }
        };
        let held = now.saturating_since(self.frames.last_at).steps(HELD_UNIT);
        Ack {
            highest: self.frames.highest,
            received: self.frames.received,
            runs: self.frames.runs,
            held: held.min(u16::MAX.into()) as u16,
            next: self.held.next,
            spare: self.decoder.rank().min(255) as u8,
            cut: octets < wanted,
            packed,
            bitmap: bitmap.get(..shown).unwrap_or_default(),
        }
    }

    /// Octets of the bitmap of a complete acknowledgement, before it is packed.
    pub fn bitmap_len(&self) -> usize {
        // The first bit is for next + 1, since next itself is missing by definition.
        let ahead = self.held.top.wrapping_sub(self.held.next) as usize;
        ahead.saturating_sub(1).div_ceil(8)
    }

    fn insert(&mut self, seq: u32, body: &[u8]) -> Result<(), DropReason> {
        if before(seq, self.held.next) || self.held.has(seq) {
            return Err(DropReason::Duplicate);
        }
        let ahead = seq.wrapping_sub(self.held.next) as usize;
        if ahead >= self.held.slots.len() {
            self.held.make_room(ahead);
            self.decoder.grow(self.held.slots.len());
        }
        let place = self.held.place(seq);
        let taken = self
            .held
            .slots
            .get(place)
            .is_none_or(|slot| slot.ready || slot.waits);
        // An undelivered body must not be overwritten. The new one counts as lost, so the sender sends it again.
        if ahead >= self.held.slots.len() || taken || !self.held.bodies.put(place, &[body]) {
            return Err(DropReason::QueueFull);
        }
        if let Some(slot) = self.held.slots.get_mut(place) {
            (slot.seq, slot.waits) = (Some(seq), true);
            self.waiting += 1;
        }
        if !before(seq, self.held.top) {
            self.held.top = seq.wrapping_add(1);
        }
        let (order, flow, number) = head(body);
        match order {
            Order::None => self.release(seq),
            Order::Flow if self.flows.get(flow) == Some(&number) => self.release_flow(flow, seq),
            _ => {}
        }
        self.advance();
        Ok(())
    }

    /// Recovers bodies from the equations; each recovered one may complete another equation.
    fn solve(&mut self) {
        while let Some((seq, place)) = self.decoder.solved() {
            let side = self.decoder.side(place);
            let len = body_len(side, self.in_parts);
            let mut copy = side.get(..len).unwrap_or_default().to_vec();
            if self.insert(seq, &copy).is_ok() {
                self.recovered = self.recovered.saturating_add(1);
            }
            self.decoder.learn(seq, &copy);
            copy.clear();
        }
    }

    fn advance(&mut self) {
        while self.held.has(self.held.next) {
            self.pass();
        }
    }

    /// Moves `next` past one number and delivers the body there, even if its flow lacks older ones: those never come.
    fn pass(&mut self) {
        let seq = self.held.next;
        self.held.next = seq.wrapping_add(1);
        if self.held.slot(seq).is_some_and(|slot| slot.waits) {
            let (_, flow, number) = head(self.held.bodies.get(self.held.place(seq)));
            if let Some(expected) = self.flows.get_mut(flow) {
                *expected = number.wrapping_add(1);
            }
            self.release(seq);
            self.release_followers(flow, seq);
        }
    }

    /// Delivers body `seq`, the next of its flow, and those that waited for it.
    fn release_flow(&mut self, flow: usize, seq: u32) {
        if let Some(expected) = self.flows.get_mut(flow) {
            *expected = expected.wrapping_add(1);
        }
        self.release(seq);
        self.release_followers(flow, seq);
    }

    /// Delivers the bodies of the flow after `seq` that have become next.
    fn release_followers(&mut self, flow: usize, seq: u32) {
        let mut seq = seq.wrapping_add(1);
        // Mostly nothing waits, and then nothing is looked through.
        while self.waiting > 0 && before(seq, self.held.top) {
            if self.held.slot(seq).is_some_and(|slot| slot.waits) {
                let (order, own, number) = head(self.held.bodies.get(self.held.place(seq)));
                let expected = self
                    .flows
                    .get_mut(flow)
                    .filter(|expected| **expected == number);
                if own == flow && order == Order::Flow {
                    let Some(expected) = expected else { return };
                    *expected = number.wrapping_add(1);
                    self.release(seq);
                }
            }
            seq = seq.wrapping_add(1);
        }
    }

    fn release(&mut self, seq: u32) {
        if let Some(slot) = self.held.slot_mut(seq)
            && slot.waits
        {
            (slot.waits, slot.ready) = (false, true);
            self.waiting = self.waiting.saturating_sub(1);
            self.ready.push_back(seq);
        }
    }
}
