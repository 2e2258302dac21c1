//! The rows of a basis.

use super::lanes::Lanes;

/// Inserts a vector into a basis whose rows are `W` registers long: see [`super::insert`]. `other` finishes an insertion whose pivot
/// is not the next free column.
///
/// Each insertion waits for the one before, so what counts is how long it takes until the new row is known. Vectors are dense
/// or come in order, nearly all, and then the pivot is the column of the row's number. It is taken for that before the reduced vector
/// is there to be looked at: the processor goes on with the guess, and checks it meanwhile.
#[inline(always)]
pub(super) unsafe fn insert<V: Lanes, const W: usize>(
    vector: &[u8],
    pivots: &[u8],
    rows: *mut u8,
    other: unsafe fn(*mut u8, usize, usize, usize),
) -> Option<u8> {
    let len = W * V::BYTES;
    let guess = pivots.len();
    // SAFETY: there is one row more than pivots, of `len` bytes, and the new pivot is an index of the vector, which is
    // at most half as long.
    unsafe {
        let sums = reduced::<V, W>(vector, pivots, rows);
        let pivot = first::<V, W>(&sums, vector.len())?;
        if pivot == guess {
            finish::<V, W>(sums, guess, rows, pivots.len());
        } else {
            let new = rows.add(pivots.len() * len);
            for (at, sum) in sums.into_iter().enumerate() {
                V::store(new.add(at * V::BYTES), sum);
            }
            other(rows, len, pivots.len(), pivot);
        }
        Some(pivot as u8)
    }
}

/// Finishes the insertion of a reduced vector that lies where its row will be.
#[inline(always)]
pub(super) unsafe fn finish_stored<V: Lanes, const W: usize>(
    rows: *mut u8,
    count: usize,
    pivot: usize,
) {
    // SAFETY: there is one row more than `count`, of `W` registers, and the pivot is an index of a row's first half.
    unsafe {
        let new = rows.add(count * W * V::BYTES);
        let mut sums = [V::zero(); W];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = V::load(new.add(at * V::BYTES));
        }
        finish::<V, W>(sums, pivot, rows, count);
    }
}

/// Makes a reduced vector the row after `count` others, and clears its pivot column in them, so that the form stays reduced.
#[inline(always)]
unsafe fn finish<V: Lanes, const W: usize>(
    sums: [V::Vector; W],
    pivot: usize,
    rows: *mut u8,
    count: usize,
) {
    let len = W * V::BYTES;
    // SAFETY: as for `finish_stored`.
    unsafe {
        let sums = V::monic::<W>(sums, pivot);
        let mut row = rows;
        for _ in 0..count {
            let factor = V::factor_of(*row.add(pivot));
            for (at, &sum) in sums.iter().enumerate() {
                let to = row.add(at * V::BYTES);
                V::store(to, V::mul_add(V::load(to), V::source(sum), factor));
            }
            row = row.add(len);
        }
        for (at, sum) in sums.into_iter().enumerate() {
            V::store(row.add(at * V::BYTES), sum);
        }
    }
}

/// The pivot that [`insert`] would find.
#[inline(always)]
pub(super) unsafe fn probe<V: Lanes, const W: usize>(
    vector: &[u8],
    pivots: &[u8],
    rows: *const u8,
) -> Option<u8> {
    // SAFETY: passed on to the caller.
    let pivot = unsafe { first::<V, W>(&reduced::<V, W>(vector, pivots, rows), vector.len()) };
    pivot.map(|pivot| pivot as u8)
}

/// The index of the first of `len` bytes that is not zero.
#[inline(always)]
unsafe fn first<V: Lanes, const W: usize>(sums: &[V::Vector; W], len: usize) -> Option<usize> {
    for (at, &sum) in sums.iter().enumerate() {
        let start = at * V::BYTES;
        if start >= len {
            break;
        }
        // SAFETY: the caller has the instructions.
        let bits = unsafe { V::nonzero(sum) };
        let index = start + bits.trailing_zeros() as usize;
        if bits != 0 {
            return (index < len).then_some(index);
        }
    }
    None
}

/// A vector less its part in the span of a basis, with its weights if it were stored next.
#[allow(
    clippy::needless_range_loop,
    reason = "over two zipped arrays the compiler stores the sums after each step"
)]
#[inline(always)]
unsafe fn reduced<V: Lanes, const W: usize>(
    vector: &[u8],
    pivots: &[u8],
    rows: *const u8,
) -> [V::Vector; W] {
    let len = W * V::BYTES;
    // SAFETY: there is one row more than pivots, of `len` bytes, and the vector is at most half as long as a row.
    unsafe {
        let new = rows.add(pivots.len() * len);
        let mut sums = [V::zero(); W];
        for (index, sum) in sums.iter_mut().enumerate() {
            let rest = vector.len().saturating_sub(index * V::BYTES).min(V::BYTES);
            let from = vector.as_ptr().wrapping_add(index * V::BYTES);
            let part = if rest == V::BYTES {
                V::load(from)
            } else {
                V::load_part(from, rest)
            };
            *sum = V::xor(V::load(new.add(index * V::BYTES)), part);
        }
        // The factors come from the vector as it arrived, not from the running sum: in reduced form no row has an
        // entry at another row's pivot. So the products do not wait for each other.
        // Each index is checked here: the largest pivot, looked for beforehand, took a seventh of an insertion.
        let entry = |pivot: u8| vector.get(usize::from(pivot)).map_or(0, |&c| c);
        // Two sums, since each addition waits for the one before.
        let mut others = [V::zero(); W];
        let mut row = rows;
        let (fours, rest) = pivots.as_chunks::<4>();
        for &[p, q, r, s] in fours {
            // All entries before the first factor: with a check between them, a factor is loaded in two steps.
            let (f, g, h, i) = (entry(p), entry(q), entry(r), entry(s));
            let (f, g) = (V::factor_of(f), V::factor_of(g));
            let (h, i) = (V::factor_of(h), V::factor_of(i));
            let load =
                |index: usize, at: usize| V::source(V::load(row.add(index * len + at * V::BYTES)));
            for at in 0..W {
                sums[at] = V::mul_add_pair(sums[at], (load(0, at), f), (load(1, at), g));
                others[at] = V::mul_add_pair(others[at], (load(2, at), h), (load(3, at), i));
            }
            row = row.add(4 * len);
        }
        for &pivot in rest {
            let f = V::factor_of(entry(pivot));
            for at in 0..W {
                let x = V::source(V::load(row.add(at * V::BYTES)));
                others[at] = V::mul_add(others[at], x, f);
            }
            row = row.add(len);
        }
        for at in 0..W {
            sums[at] = V::xor(sums[at], others[at]);
        }
        sums
    }
}

#[inline(always)]
pub(super) unsafe fn scale<V: Lanes>(factor: u8, data: *mut u8, len: usize) {
    // SAFETY: `len` bytes can be read and written.
    unsafe {
        let factor = V::factor_of(factor);
        let mut at = 0;
        while at + V::BYTES <= len {
            let product = V::mul(V::source(V::load(data.add(at))), factor);
            V::store(data.add(at), product);
            at += V::BYTES;
        }
        if at < len {
            let data = data.add(at);
            let product = V::mul(V::source(V::load_part(data, len - at)), factor);
            V::store_part(data, len - at, product);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn eliminate<V: Lanes>(
    rows: *mut u8,
    count: usize,
    len: usize,
    column: usize,
    pivot: *const u8,
) {
    // SAFETY: there are `count` rows of `len` bytes, and `column` is less than `len`.
    unsafe {
        for index in 0..count {
            let row = rows.add(index * len);
            let factor = V::factor_of(*row.add(column));
            let mut at = 0;
            while at + V::BYTES <= len {
                let x = V::source(V::load(pivot.add(at)));
                let to = row.add(at);
                V::store(to, V::mul_add(V::load(to), x, factor));
                at += V::BYTES;
            }
            if at < len {
                let x = V::source(V::load_part(pivot.add(at), len - at));
                let to = row.add(at);
                let sum = V::mul_add(V::load_part(to, len - at), x, factor);
                V::store_part(to, len - at, sum);
            }
        }
    }
}
