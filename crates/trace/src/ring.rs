//! The newest rows of a kind.

use std::collections::VecDeque;

/// Rows that are taken from the allocator at a time, so that nothing is ever copied to a larger place.
const CHUNK: usize = 4096;

/// Keeps at least the newest `limit` rows, and at most one chunk more, and counts the others.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    full: VecDeque<Vec<T>>,
    last: Vec<T>,
    /// Full chunks to keep.
    chunks: usize,
    dropped: u64,
}

impl<T> Ring<T> {
    pub(crate) fn new(limit: usize) -> Ring<T> {
        Ring {
            full: VecDeque::new(),
            last: Vec::with_capacity(CHUNK),
            chunks: limit.div_ceil(CHUNK).max(1),
            dropped: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, row: T) {
        if self.last.len() == CHUNK {
            self.turn();
        }
        self.last.push(row);
    }

    /// Begins a chunk: the oldest one's memory, if there are enough.
    #[cold]
    fn turn(&mut self) {
        let mut next = Vec::new();
        if self.full.len() == self.chunks
            && let Some(oldest) = self.full.pop_front()
        {
            self.dropped += oldest.len() as u64;
            next = oldest;
            next.clear();
        }
        next.reserve_exact(CHUNK);
        self.full.push_back(std::mem::replace(&mut self.last, next));
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn into_rows(self) -> Vec<T> {
        let rows = self.full.iter().map(Vec::len).sum::<usize>() + self.last.len();
        let mut all = Vec::with_capacity(rows);
        // A chunk is freed as soon as it is copied.
        self.full
            .into_iter()
            .chain([self.last])
            .for_each(|mut chunk| all.append(&mut chunk));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay() {
        for count in [0, 1, CHUNK, 2 * CHUNK, 2 * CHUNK + 1, 10 * CHUNK + 7] {
            let mut ring = Ring::new(CHUNK + 1);
            (0..count).for_each(|row| ring.push(row));
            let dropped = ring.dropped() as usize;
            let rows = ring.into_rows();
            assert!(rows.iter().copied().eq(dropped..count), "{count}");
            assert!(rows.len() <= 3 * CHUNK && rows.len() >= count.min(CHUNK + 1));
        }
    }
}
