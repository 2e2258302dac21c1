//! The packets of one batch at a relay or receiver.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use chappe_coding::{Batch, Insertion, RowsMut, Shape};

/// Most packets in a batch that this crate has memory layouts for.
pub const K_MAX: usize = 128;

/// A batch in one of two memory layouts: the arithmetic on code vectors costs as much as the layout is wide.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// Up to 32 packets, the paper's size.
    To32(Box<Batch<32, Vec<u8>>>),
    /// Up to [`K_MAX`] packets.
    ToMax(Box<Batch<K_MAX, Vec<u8>>>),
}

/// Evaluates the same expression on either layout.
macro_rules! each {
    ($store:expr, $batch:ident => $body:expr) => {
        match $store {
            Store::To32($batch) => $body,
            Store::ToMax($batch) => $body,
        }
    };
}

impl Store {
    /// Memory for batches of up to `k` packets of `payload` octets, set up for one of `shape`. `None` if that is
    /// beyond the layouts; the configuration has ruled it out.
    pub fn new(k: usize, payload: usize, shape: Shape) -> Option<Store> {
        let memory = vec![0; k.checked_mul(payload)?];
        if k <= 32 {
            let batch = Batch::new(shape, memory).ok()?;
            Some(Store::To32(Box::new(batch)))
        } else {
            let batch = Batch::new(shape, memory).ok()?;
            Some(Store::ToMax(Box::new(batch)))
        }
    }

    /// Forgets all packets; the next batch has `shape`. False if it does not fit.
    pub fn reset(&mut self, shape: Shape) -> bool {
        each!(self, batch => batch.reset(shape).is_ok())
    }

    /// Adds a packet; returns whether it was innovative.
    pub fn insert(&mut self, vector: &[u8], payload: &[u8]) -> bool {
        each!(self, batch => batch.insert(vector, payload)) == Insertion::Innovative
    }

    /// Packets in the batch.
    pub fn packets(&self) -> usize {
        each!(self, batch => batch.shape().count())
    }

    /// Linearly independent packets stored.
    pub fn rank(&self) -> usize {
        each!(self, batch => batch.rank())
    }

    /// Whether the batch can be decoded.
    pub fn is_full(&self) -> bool {
        each!(self, batch => batch.is_full())
    }

    /// Writes a fresh random combination of all packets; false if there is none.
    pub fn recode(
        &self,
        random: impl FnMut(&mut [u8]),
        vector: &mut [u8],
        payload: &mut [u8],
    ) -> bool {
        each!(self, batch => batch.recode(random, vector, payload).is_ok())
    }

    /// Writes row `index` of what is known in reduced form, below the rank: its vector and its payload. False if there is none.
    pub fn reduced(&self, index: usize, vector: &mut [u8], payload: &mut [u8]) -> bool {
        index < self.rank() && each!(self, batch => batch.reduced(index, vector, payload).is_ok())
    }

    /// Writes the decoded packets one after the other; false if packets are missing.
    pub fn decode_into(&self, to: &mut [u8]) -> bool {
        each!(self, batch => RowsMut::new(batch.shape(), to)
            .is_ok_and(|rows| batch.decode_into(rows).is_ok()))
    }
}
