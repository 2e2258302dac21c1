//! The newest rows of a kind.

/// Keeps the newest `limit` rows and counts the others.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    rows: Vec<T>,
    limit: usize,
    /// Where the oldest row stands once there are `limit`.
    oldest: usize,
    dropped: u64,
}

/// The largest ring whose memory is reserved at the start.
const RESERVED: usize = 1 << 20;

impl<T> Ring<T> {
    pub(crate) fn new(limit: usize) -> Ring<T> {
        Ring {
            // Memory that is not written to takes none; without a limit rows are moved as they become more.
            rows: Vec::with_capacity(if limit > RESERVED { 0 } else { limit }),
            limit: limit.max(1),
            oldest: 0,
            dropped: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, row: T) {
        if self.rows.len() < self.limit {
            self.rows.push(row);
            return;
        }
        self.rows[self.oldest] = row;
        self.dropped += 1;
        self.oldest += 1;
        if self.oldest == self.limit {
            self.oldest = 0;
        }
    }

    /// Pushes one row after the other.
    pub(crate) fn extend(&mut self, rows: &[T])
    where
        T: Copy,
    {
        let kept = &rows[rows.len().saturating_sub(self.limit)..];
        let free = self.limit - self.rows.len();
        let (first, others) = kept.split_at(kept.len().min(free));
        self.rows.extend_from_slice(first);
        self.dropped += (rows.len() - first.len()) as u64;
        // The others replace the oldest up to the end of the memory, and from its beginning on.
        let (upper, lower) = others.split_at(others.len().min(self.limit - self.oldest));
        self.rows[self.oldest..][..upper.len()].copy_from_slice(upper);
        self.rows[..lower.len()].copy_from_slice(lower);
        self.oldest = (self.oldest + others.len()) % self.limit;
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The row that was pushed last.
    pub(crate) fn newest_mut(&mut self) -> Option<&mut T> {
        let place = self
            .oldest
            .checked_sub(1)
            .unwrap_or(self.rows.len().checked_sub(1)?);
        self.rows.get_mut(place)
    }

    /// The rows as they lie in memory.
    pub(crate) fn rows(&self) -> &[T] {
        &self.rows
    }

    /// Their places there, from the oldest to the newest.
    pub(crate) fn places(&self) -> Vec<u32> {
        let (oldest, rows) = (self.oldest as u32, self.rows.len() as u32);
        (oldest..rows).chain(0..oldest).collect()
    }

    /// From the oldest to the newest.
    pub(crate) fn into_rows(mut self) -> Vec<T> {
        self.rows.rotate_left(self.oldest);
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay() {
        const LIMIT: usize = 7;
        for count in [
            0,
            1,
            LIMIT,
            LIMIT + 1,
            2 * LIMIT,
            2 * LIMIT + 1,
            10 * LIMIT + 5,
        ] {
            let mut ring = Ring::new(LIMIT);
            (0..count).for_each(|row| ring.push(row));
            let dropped = ring.dropped() as usize;
            assert_eq!(dropped, count.saturating_sub(LIMIT));
            assert_eq!(ring.newest_mut().copied(), count.checked_sub(1));
            let placed: Vec<usize> = (ring.places().iter())
                .map(|&place| ring.rows()[place as usize])
                .collect();
            assert!(placed.iter().copied().eq(dropped..count), "{count}");
            assert_eq!(ring.into_rows(), placed);
        }
    }

    /// Rows that are pushed together stand where they would one by one: pieces of none to twice the limit.
    #[test]
    fn rows_come_together_as_one_by_one() {
        const LIMIT: usize = 7;
        for size in 0..=2 * LIMIT {
            let (mut one_by_one, mut together) = (Ring::new(LIMIT), Ring::new(LIMIT));
            for piece in 0..10 {
                let rows: Vec<usize> = (piece * size..(piece + 1) * size).collect();
                rows.iter().for_each(|&row| one_by_one.push(row));
                together.extend(&rows);
                assert_eq!(together.dropped(), one_by_one.dropped());
                let kept = together.clone().into_rows();
                assert_eq!(kept, one_by_one.clone().into_rows(), "{size}");
            }
        }
    }
}
