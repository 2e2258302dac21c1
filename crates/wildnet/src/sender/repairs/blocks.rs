//! Blocks: bodies that are sent in one round and share their repairs.

use alloc::collections::VecDeque;

use chappe_core::Instant;

use crate::header::before;
use crate::paths::FrameId;
use crate::policy::BLOCK_MAX;

/// Bodies that are sent in one round, at most 64 numbers apart.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Block {
    first: u32,
    /// Bit i: `first + i` belongs to it.
    mask: u64,
    open: bool,
    pub service: usize,
    pub deadline: Option<Instant>,
    /// Rounds that were left when it was first sent; its policy is made for these.
    pub rounds: u8,
    /// Repairs still to be sent in this round.
    pub owed: usize,
    /// The last frame that was sent for it.
    pub last: FrameId,
    /// Whether it is in a further round, in which its bodies are sent again.
    pub extended: bool,
    /// Its round has ended, and the next one begins with the next slot.
    pub ended: bool,
    /// Its turn, by which it follows one of two policies in all its rounds ([`Mixture::of`](crate::policy::Mixture::of)).
    pub turn: f64,
}

impl Block {
    pub fn members(self) -> impl Iterator<Item = u32> {
        (0..64)
            .filter(move |i| self.mask >> i & 1 != 0)
            .map(move |i| self.first.wrapping_add(i))
    }

    pub fn size(&self) -> usize {
        self.mask.count_ones() as usize
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    fn has(&self, seq: u32) -> bool {
        let place = seq.wrapping_sub(self.first);
        place < 64 && self.mask >> place & 1 != 0
    }
}

/// Blocks for which there is memory from the start: more exist only if thousands of bodies are in flight.
const USUAL: usize = 256;

/// Blocks that are not settled, oldest first. Only the last one may be open.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    blocks: VecDeque<Block>,
}

impl Blocks {
    pub fn new() -> Blocks {
        Blocks {
            blocks: VecDeque::with_capacity(USUAL),
        }
    }

    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    pub fn get(&self, i: usize) -> Option<Block> {
        self.blocks.get(i).copied()
    }

    pub fn remove(&mut self, i: usize) {
        self.blocks.remove(i);
    }

    pub fn remove_last(&mut self) {
        self.blocks.pop_back();
    }

    /// Adds a body to the open block, or opens one with this turn; true if the block is full now.
    pub fn add(
        &mut self,
        seq: u32,
        (service, deadline, rounds): (usize, Option<Instant>, u8),
        turn: f64,
    ) -> bool {
        match self.blocks.back_mut().filter(|block| block.open) {
            Some(block) => {
                block.mask |= 1u64.checked_shl(seq.wrapping_sub(block.first)).unwrap_or(0)
            }
            None => self.blocks.push_back(Block {
                first: seq,
                mask: 1,
                open: true,
                service,
                deadline,
                rounds,
                owed: 0,
                last: FrameId::NONE,
                extended: false,
                ended: false,
                turn,
            }),
        }
        self.open_block().is_some_and(|(_, size)| size >= BLOCK_MAX)
    }

    /// Whether another block fits without new memory, with room for the successor of the open one.
    pub fn have_room(&self) -> bool {
        self.blocks.len() + 1 < USUAL
    }

    /// Adds a cohort, closed from the start: bodies that are sent again together, and the repairs that they share.
    pub fn gather(&mut self, service: usize, (first, mask): (u32, u64), owed: usize) {
        let block = Block {
            first,
            mask,
            open: false,
            service,
            deadline: None,
            rounds: 0,
            owed,
            last: FrameId::NONE,
            extended: true,
            ended: false,
            turn: 0.0,
        };
        // The open block stays the last one.
        let open = usize::from(self.open_block().is_some());
        self.blocks
            .insert(self.blocks.len().saturating_sub(open), block);
    }

    /// The block whose last repair left in `frame`.
    pub fn paid_with(&self, frame: FrameId) -> Option<usize> {
        let paid = |block: &Block| !block.open && block.owed == 0 && block.last == frame;
        self.blocks.iter().position(paid)
    }

    /// The open block's class and size.
    pub fn open_block(&self) -> Option<(usize, usize)> {
        let block = self.blocks.back().filter(|block| block.open)?;
        Some((block.service, block.size()))
    }

    pub fn open_service(&self) -> Option<usize> {
        self.open_block().map(|(service, _)| service)
    }

    /// The turn of the open block.
    pub fn open_turn(&self) -> f64 {
        let open = self.blocks.back().filter(|block| block.open);
        open.map_or(0.0, |block| block.turn)
    }

    /// When the first body of the open block is due, and the rounds that were left when it was sent.
    pub fn open_deadline(&self) -> Option<(Option<Instant>, u8)> {
        let block = self.blocks.back().filter(|block| block.open)?;
        Some((block.deadline, block.rounds))
    }

    /// Closes the open block, which gets `repairs` and has `rounds` left.
    pub fn close(&mut self, (repairs, rounds): (usize, u8)) {
        if let Some(block) = self.blocks.back_mut().filter(|block| block.open) {
            (block.open, block.owed, block.rounds) = (false, repairs, rounds);
        }
    }

    /// A slot has ended: drops the repairs of first rounds that did not fit into it.
    pub fn close_all(&mut self) {
        for block in self.blocks.iter_mut().filter(|block| !block.extended) {
            (block.open, block.owed) = (false, 0);
        }
    }

    /// The place of the first block with repairs to send.
    pub fn owing(&self) -> Option<usize> {
        self.blocks.iter().position(|block| block.owed > 0)
    }

    /// Notes that a repair of block `i` leaves in `frame`.
    pub fn pay(&mut self, i: usize, frame: FrameId) {
        if let Some(block) = self.blocks.get_mut(i) {
            block.owed = block.owed.saturating_sub(1);
            block.last = frame;
        }
    }

    /// Notes that a body leaves in `frame`.
    pub fn sent(&mut self, seq: u32, frame: FrameId) {
        // From the newest: most bodies that are sent are in the open block.
        if let Some(block) = self.blocks.iter_mut().rev().find(|block| block.has(seq)) {
            block.last = frame;
        }
    }

    /// Marks block `i` as waiting for the next slot.
    pub fn end_round(&mut self, i: usize) {
        if let Some(block) = self.blocks.get_mut(i) {
            block.ended = true;
        }
    }

    /// Begins another round of block `i` with `extra` repairs; its frames begin with `frame`.
    pub fn next_round(&mut self, i: usize, extra: usize, frame: FrameId) {
        if let Some(block) = self.blocks.get_mut(i) {
            block.owed = extra;
            (block.extended, block.ended) = (true, false);
            if block.last.path != frame.path || before(block.last.number, frame.number) {
                block.last = frame;
            }
        }
    }
}
