//! The receiver's part: collect innovative packets of every batch until the object is whole.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Instant;

use crate::config::Config;
use crate::header::Data;
use crate::layout::Layout;
use crate::store::Store;

/// Decoded batches' memory kept for the next batch; more is given back to the allocator.
const SPARE: usize = 2;

/// Receives one object from one source.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    layout: Layout,
    /// The source's transfer, known from its first frame on.
    serial: Option<u8>,
    /// The transfer that was received before this one: its late frames are not part of the new one.
    former: Option<u8>,
    /// The object, filled up to whole packets; decoded batches stand at their places.
    object: Vec<u8>,
    batches: Vec<State>,
    spare: Vec<Store>,
    done: u32,
    octets: usize,
    complete_at: Option<Instant>,
    repeat_after: u32,
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing heard yet: no memory either.
    Empty,
    /// Some packets are here. They stay across the source's rounds.
    Partial(Store),
    /// Decoded. Frames heard since it was last acknowledged, how many it takes to acknowledge it again, and
    /// how often that happened.
    Done { heard: u32, limit: u32, repeat: u8 },
}

/// What a frame did for the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Of another transfer, or a batch that the object does not have.
    Foreign,
    /// It added nothing.
    NotInnovative,
    /// It added something.
    Innovative,
    /// It completed its batch, which has this many octets of the object.
    Decoded { octets: usize },
    /// It belongs to a batch that the source should know to be complete. Acknowledge it once more.
    AckAgain { repeat: u8 },
}

impl Receiver {
    /// Ready to receive `len` octets. `None` if a frame cannot count their batches.
    pub fn new(config: &Config, len: usize, former: Option<u8>) -> Option<Receiver> {
        let layout = Layout {
            len,
            k: config.k,
            payload: config.payload,
        };
        let batches = layout.batches()?;
        Some(Receiver {
            layout,
            serial: None,
            former,
            object: vec![0; layout.padded_len()],
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

    /// Octets decoded.
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

    /// Takes in a data frame of the group.
    pub fn on_data(&mut self, now: Instant, frame: &Data<'_>) -> Taken {
        let ours = match self.serial {
            Some(serial) => serial == frame.object(),
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
            match Receiver::fresh(&mut self.spare, &self.layout, batch) {
                Some(store) => *state = State::Partial(store),
                None => return Taken::Foreign,
            }
        }
        let State::Partial(store) = state else {
            return Taken::Foreign;
        };
        if !store.insert(frame.vector(), frame.payload()) {
            return Taken::NotInnovative;
        }
        if !store.is_full() {
            return Taken::Innovative;
        }
        //= pacifier III-A.1: any k linearly independent packets decode the batch
        let place = self
            .object
            .get_mut(self.layout.range(batch))
            .unwrap_or_default();
        if !store.decode_into(place) {
            return Taken::Foreign;
        }
        let done = State::Done {
            heard: 0,
            limit: self.repeat_after,
            repeat: 0,
        };
        if let State::Partial(store) = core::mem::replace(state, done)
            && self.spare.len() < SPARE
        {
            self.spare.push(store);
        }
        self.done = self.done.saturating_add(1);
        let octets = self.layout.octets(batch);
        self.octets = self.octets.saturating_add(octets);
        if self.done as usize == self.batches.len() {
            self.complete_at = Some(now);
        }
        Taken::Decoded { octets }
    }

    /// Memory for a batch, used before if possible.
    fn fresh(spare: &mut Vec<Store>, layout: &Layout, batch: u32) -> Option<Store> {
        let shape = layout.shape(batch)?;
        match spare.pop() {
            Some(mut store) => store.reset(shape).then_some(store),
            None => Store::new(layout.k, layout.payload, shape),
        }
    }
}
