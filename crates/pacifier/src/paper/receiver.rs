//! The receiver's part: collect innovative packets of every batch until the object is complete.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Instant;

use crate::layout::Layout;
use crate::paper::config::Config;
use crate::paper::header::Data;
use crate::store::Store;

/// Stores of decoded batches kept for the next ones; the allocator gets the others back.
const SPARE: usize = 2;

/// Receives one object from one source.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    layout: Layout,
    /// The source's transfer, known from its first frame on.
    serial: Option<u8>,
    /// The transfer that was received before this one: its late frames are not part of the new one.
    former: Option<u8>,
    /// The object, padded to whole packets, with decoded batches in place. Empty if the application checks batches.
    object: Vec<u8>,
    keep: Keep,
    /// Batches that have memory, and those of them that are full and wait for the application.
    stores: usize,
    ready: VecDeque<u32>,
    batches: Vec<State>,
    spare: Vec<Store>,
    done: u32,
    octets: usize,
    complete_at: Option<Instant>,
    repeat_after: u32,
}

/// What becomes of decoded batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// They are acknowledged at once and kept in memory.
    Memory,
    /// The application gets them, and the node acknowledges those that it accepts.
    Checked {
        /// Batches in memory at a time.
        partial_max: usize,
    },
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing heard yet, so it has no memory either.
    Empty,
    /// Some packets are here. They stay across the source's rounds.
    Partial(Store),
    /// All packets are here; the application has neither accepted nor rejected it yet.
    Full(Store),
    /// Decoded. Frames heard since it was last acknowledged, how many it takes to acknowledge it again, and
    /// how often that happened.
    Done { heard: u32, limit: u32, repeat: u8 },
}

/// What a frame did for the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Of another transfer, or a batch that the object does not have.
    Foreign,
    /// It is a combination of packets that are here already, or there is no room for it.
    NotInnovative,
    /// It raised the rank of its batch.
    Innovative,
    /// It completed its batch, which has this many octets of the object.
    Decoded { octets: usize },
    /// It completed its batch, which the application is to check.
    Full,
    /// Its batch was acknowledged long ago, so the ACK seems lost: acknowledge it once more.
    AckAgain { repeat: u8 },
}

impl Receiver {
    /// A receiver for `len` octets; `None` if a frame cannot count their batches.
    pub fn new(config: &Config, len: usize, former: Option<u8>, keep: Keep) -> Option<Receiver> {
        let layout = Layout {
            len,
            k: config.common.k,
            payload: config.common.payload,
        };
        let batches = layout.batches()?;
        Some(Receiver {
            layout,
            serial: None,
            former,
            object: match keep {
                Keep::Memory => vec![0; layout.padded_len()],
                Keep::Checked { .. } => Vec::new(),
            },
            keep,
            stores: 0,
            ready: VecDeque::new(),
            batches: vec![State::Empty; batches as usize],
            spare: Vec::with_capacity(SPARE),
            done: 0,
            octets: 0,
            // An object without octets is complete before anything is heard; no ACK is owed for it.
            complete_at: (batches == 0).then_some(Instant::ZERO),
            repeat_after: config.ack_repeat,
        })
    }

    /// The transfer that this receiver has heard of.
    pub fn serial(&self) -> Option<u8> {
        self.serial
    }

    /// Batches decoded and batches in all.
    pub fn batches(&self) -> (u32, u32) {
        (self.done, self.batches.len() as u32)
    }

    /// Batches that have begun and are not decoded, with their ranks.
    pub fn ranks(&self, each: &mut dyn FnMut(u32, usize)) {
        for (batch, state) in (0u32..).zip(&self.batches) {
            if let State::Partial(store) | State::Full(store) = state {
                each(batch, store.rank());
            }
        }
    }

    /// Octets of the object in decoded batches, padding not counted.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// When the last batch was decoded.
    pub fn complete_at(&self) -> Option<Instant> {
        self.complete_at
    }

    /// The object, once it is complete.
    pub fn object(&self) -> Option<&[u8]> {
        self.complete_at.and(self.object.get(..self.layout.len))
    }

    /// Listens to transfer `serial` only, and has some batches already.
    pub fn resume(&mut self, serial: u8, held: impl Fn(u32) -> bool) {
        self.serial = Some(serial);
        for batch in (0..self.batches.len() as u32).filter(|&batch| held(batch)) {
            self.finish(Instant::ZERO, batch);
        }
    }

    /// The next batch that waits to be checked, written to `into`.
    pub fn decoded(&mut self, into: &mut Vec<u8>) -> Option<u32> {
        let batch = self.ready.pop_front()?;
        let Some(State::Full(store)) = self.batches.get(batch as usize) else {
            return None;
        };
        into.clear();
        into.resize(self.layout.range(batch).len(), 0);
        if !store.decode_into(into) {
            return None;
        }
        into.truncate(self.layout.octets(batch));
        Some(batch)
    }

    /// Accepts a checked batch; returns whether it was waiting for that.
    pub fn accept(&mut self, now: Instant, batch: u32) -> bool {
        let waits = matches!(self.batches.get(batch as usize), Some(State::Full(_)));
        if waits {
            self.finish(now, batch);
        }
        waits
    }

    /// Rejects a checked batch: all its packets go.
    pub fn reject(&mut self, batch: u32) {
        if let Some(state @ State::Full(_)) = self.batches.get_mut(batch as usize) {
            *state = State::Empty;
            self.stores = self.stores.saturating_sub(1);
        }
    }

    /// Marks a batch as done; its memory becomes free.
    fn finish(&mut self, now: Instant, batch: u32) {
        let done = State::Done {
            heard: 0,
            limit: self.repeat_after,
            repeat: 0,
        };
        let Some(state) = self.batches.get_mut(batch as usize) else {
            return;
        };
        match core::mem::replace(state, done) {
            State::Partial(store) | State::Full(store) => {
                self.stores = self.stores.saturating_sub(1);
                if self.spare.len() < SPARE {
                    self.spare.push(store);
                }
            }
            State::Empty => {}
            State::Done { .. } => return,
        }
        self.done = self.done.saturating_add(1);
        self.octets = self.octets.saturating_add(self.layout.octets(batch));
        if self.done as usize == self.batches.len() {
            self.complete_at = Some(now);
        }
    }

    /// Takes in a data frame of the group.
    pub fn on_data(&mut self, now: Instant, frame: &Data<'_>) -> Taken {
        let ours = match self.serial {
            Some(serial) => serial == frame.object(),
            // Before its first frame a receiver joins any transfer but the former one, whose frames may be late.
            None => self.former != Some(frame.object()),
        };
        let batch = frame.batch();
        let fits = frame.vector().len() == self.layout.packets(batch)
            && frame.payload().len() == self.layout.payload;
        let (Some(state), true, true) = (self.batches.get_mut(batch as usize), ours, fits) else {
            return Taken::Foreign;
        };
        self.serial = Some(frame.object());
        if let State::Done {
            heard,
            limit,
            repeat,
        } = state
        {
            *heard = heard.saturating_add(1);
            if *heard < *limit {
                return Taken::NotInnovative;
            }
            *repeat = repeat.wrapping_add(1);
            (*heard, *limit) = (0, limit.saturating_mul(2));
            return Taken::AckAgain { repeat: *repeat };
        }
        if matches!(state, State::Empty) {
            // Not lost: the source comes back to the batch in a later round.
            if matches!(self.keep, Keep::Checked { partial_max } if self.stores >= partial_max) {
                return Taken::NotInnovative;
            }
            match Receiver::fresh(&mut self.spare, &self.layout, batch) {
                Some(store) => *state = State::Partial(store),
                None => return Taken::Foreign,
            }
            self.stores += 1;
        }
        let State::Partial(store) = state else {
            // Full, and being checked.
            return Taken::NotInnovative;
        };
        if !store.insert(frame.vector(), frame.payload()) {
            return Taken::NotInnovative;
        }
        if !store.is_full() {
            return Taken::Innovative;
        }
        //= pacifier III-A.1: any k linearly independent packets decode the batch
        if self.keep != Keep::Memory {
            if let State::Partial(store) = core::mem::replace(state, State::Empty) {
                *state = State::Full(store);
                self.ready.push_back(batch);
            }
            return Taken::Full;
        }
        let place = self
            .object
            .get_mut(self.layout.range(batch))
            .unwrap_or_default();
        if !store.decode_into(place) {
            return Taken::Foreign;
        }
        self.finish(now, batch);
        Taken::Decoded {
            octets: self.layout.octets(batch),
        }
    }

    /// Memory for a batch, from `spare` if possible: the frame path then does not allocate.
    fn fresh(spare: &mut Vec<Store>, layout: &Layout, batch: u32) -> Option<Store> {
        let shape = layout.shape(batch)?;
        match spare.pop() {
            Some(mut store) => store.reset(shape).then_some(store),
            None => Store::new(layout.k, layout.payload, shape),
        }
    }
}
