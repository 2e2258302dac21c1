//! Repairs that do not suffice yet, as a system of linear equations solved as far as possible.
//!
//! A repair is a sum of bodies, each multiplied by a coefficient that follows from the repair's index i and the
//! body's sequence number s: 1 / (u + v) with u = 128 + i mod 128 and v = s mod 128. These are entries of a Cauchy
//! matrix: u and v are never equal, so repairs of the same bodies are independent, and any n of them recover n bodies.
//!
//! Rows are kept reduced: each has a pivot, an unknown body that no other row contains.

use alloc::vec;
use alloc::vec::Vec;

use chappe_coding::{Kernel, field};

use crate::header::{before, bit};
use crate::store::Store;

/// Repairs kept: more than one slot brings, and a part of the next.
const ROWS: usize = 48;
/// With larger windows one for each so many bodies, since more repairs are under way; and the most.
const BODIES_PER_ROW: usize = 16;
const ROWS_MOST: usize = 256;
/// Numbers that the unknowns of one equation may span. A repair covers 128; equations with a common unknown are combined.
const SPREAD: usize = 512;

/// The coefficient of body `seq` in repair `index`.
pub(crate) fn coefficient(index: u8, seq: u32) -> u8 {
    let (u, v) = (0x80 | index & 0x7f, (seq & 0x7f) as u8);
    field::inv(u ^ v).unwrap_or(1)
}

/// The bodies that a receiver has.
pub(crate) trait Known {
    /// The body, if the receiver still has it.
    fn body(&self, seq: u32) -> Option<&[u8]>;
    /// The oldest number that is neither received nor given up.
    fn next(&self) -> u32;
    /// Numbers from there on for which the receiver may have places.
    fn reach(&self) -> u32;
}

/// The outcome of inserting a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Independent of the other repairs.
    Innovative,
    /// A combination of what is known already.
    Redundant,
    /// It covers a body that is gone or too far ahead.
    Stale,
    /// All places for repairs are taken.
    Full,
}

/// The equations of the repairs that do not suffice yet.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    rows: Vec<Row>,
    /// Right-hand sides, by [`Row::place`], and the places that no row has.
    sides: Store,
    free: Vec<usize>,
    body_max: usize,
    kernel: Kernel,
}

#[derive(Clone, Debug)]
struct Row {
    place: usize,
    /// Number of the unknown that only this row contains.
    pivot: u32,
    /// Of the numbers from `first` on.
    first: u32,
    coefficients: Vec<u8>,
}

impl Row {
    fn at(&self, seq: u32) -> u8 {
        let place = seq.wrapping_sub(self.first) as usize;
        self.coefficients.get(place).copied().unwrap_or(0)
    }

    fn set(&mut self, seq: u32, value: u8) {
        let place = seq.wrapping_sub(self.first) as usize;
        if let Some(cell) = self.coefficients.get_mut(place) {
            *cell = value;
        }
    }

    /// The unknowns in it, oldest first.
    fn unknowns(&self) -> impl Iterator<Item = u32> + '_ {
        let numbers = self.coefficients.iter().zip(0..);
        let unknown = numbers.filter(|(factor, _)| **factor != 0);
        unknown.map(|(_, i)| self.first.wrapping_add(i))
    }

    /// Drops what is zero at both ends.
    fn trim(&mut self) {
        let len = self.coefficients.iter().rposition(|&factor| factor != 0);
        self.coefficients.truncate(len.map_or(0, |last| last + 1));
        let front = self.coefficients.iter().position(|&factor| factor != 0);
        let front = front.unwrap_or(0);
        self.coefficients.drain(..front);
        self.first = self.first.wrapping_add(front as u32);
    }

    /// `self += factor * other`; false, and nothing is changed, if the unknowns would lie too far apart.
    fn add(&mut self, kernel: Kernel, factor: u8, other: &Row) -> bool {
        self.trim();
        let first = match before(other.first, self.first) {
            true => other.first,
            false => self.first,
        };
        let end = |row: &Row| row.first.wrapping_sub(first) as usize + row.coefficients.len();
        let len = end(self).max(end(other));
        if len > SPREAD {
            return false;
        }
        let front = self.first.wrapping_sub(first) as usize;
        self.coefficients
            .splice(..0, core::iter::repeat_n(0, front));
        self.coefficients.resize(len, 0);
        self.first = first;
        let from = other.first.wrapping_sub(first) as usize;
        let to = self.coefficients.get_mut(from..).unwrap_or_default();
        add(kernel, factor, &other.coefficients, to);
        true
    }
}

impl Decoder {
    pub fn new(body_max: usize) -> Decoder {
        Decoder {
            rows: Vec::with_capacity(ROWS),
            sides: Store::new(ROWS, body_max),
            free: (0..ROWS).rev().collect(),
            body_max,
            kernel: Kernel::best(),
        }
    }

    /// Number of independent repairs that do not suffice yet.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    pub fn clear(&mut self) {
        while let Some(row) = self.rows.pop() {
            self.free.push(row.place);
        }
    }

    /// The receiver has places for `bodies` now.
    pub fn grow(&mut self, bodies: usize) {
        let rows = (bodies / BODIES_PER_ROW).min(ROWS_MOST);
        let old = self.sides.places();
        if rows > old {
            self.sides.grow(rows);
            self.free.extend(old..rows);
        }
    }

    /// Adds a repair, reduced by the bodies and repairs known.
    pub fn insert(
        &mut self,
        known: &impl Known,
        (first, index): (u32, u8),
        cover: &[u8],
        coded: &[u8],
    ) -> Taken {
        // Longer than any body of ours: the peer has other settings.
        if coded.len() > self.body_max {
            return Taken::Stale;
        }
        let Some(place) = self.free.pop() else {
            return Taken::Full;
        };
        let taken = self.insert_at(place, known, (first, index), (cover, coded));
        if taken != Taken::Innovative {
            self.free.push(place);
        }
        taken
    }

    fn insert_at(
        &mut self,
        place: usize,
        known: &impl Known,
        (first, index): (u32, u8),
        (cover, coded): (&[u8], &[u8]),
    ) -> Taken {
        let mut row = Row {
            place,
            pivot: 0,
            first,
            coefficients: vec![0; cover.len() * 8],
        };
        let side = self.sides.whole_mut(place);
        side.fill(0);
        if let Some(front) = side.get_mut(..coded.len()) {
            front.copy_from_slice(coded);
        }
        let covered = (0..cover.len() as u32 * 8).filter(|&i| bit(cover, i));
        for seq in covered.map(|i| first.wrapping_add(i)) {
            let factor = coefficient(index, seq);
            if let Some(body) = known.body(seq) {
                add(self.kernel, factor, body, self.sides.whole_mut(place));
            } else if before(seq, known.next()) || seq.wrapping_sub(known.next()) >= known.reach() {
                return Taken::Stale;
            } else {
                row.set(seq, factor);
            }
        }
        // Rows stay fully reduced: no pivot of another row may remain in this one.
        for i in 0..self.rows.len() {
            if !self.reduce(&mut row, i) {
                return Taken::Full;
            }
        }
        match self.adopt(row) {
            Ok(()) => Taken::Innovative,
            Err(_) => Taken::Redundant,
        }
    }

    /// Eliminates a body that has become known from all equations.
    pub fn learn(&mut self, seq: u32, body: &[u8]) {
        let mut i = 0;
        while let Some(row) = self.rows.get_mut(i) {
            let factor = row.at(seq);
            if factor == 0 {
                i += 1;
                continue;
            }
            row.set(seq, 0);
            add(self.kernel, factor, body, self.sides.whole_mut(row.place));
            if row.pivot != seq {
                i += 1;
                continue;
            }
            // It needs another pivot, which others may contain; or it is empty now and goes.
            let row = self.rows.swap_remove(i);
            // If it stays, it stands at the end now, reduced; the one that took its place is next.
            if let Err(row) = self.adopt(row) {
                self.free.push(row.place);
            }
        }
    }

    /// Drops the equations of a body that will never come.
    pub fn forget(&mut self, seq: u32) {
        let free = &mut self.free;
        self.rows.retain(|row| {
            let keeps = row.at(seq) == 0;
            if !keeps {
                free.push(row.place);
            }
            keeps
        });
    }

    /// Takes out an equation with one unknown: the number of that body, and the place of its octets, padded with zeros. The
    /// place is free again, so read it before another repair comes.
    pub fn solved(&mut self) -> Option<(u32, usize)> {
        let place = self.rows.iter().position(|row| {
            let mut unknowns = row.unknowns();
            unknowns.next().is_some() && unknowns.next().is_none()
        })?;
        let row = self.rows.swap_remove(place);
        self.free.push(row.place);
        Some((row.pivot, row.place))
    }

    /// The octets at a place that [`solved`](Self::solved) returned.
    pub fn side(&mut self, place: usize) -> &[u8] {
        self.sides.whole_mut(place)
    }

    /// Takes the pivot of row `i` out of `row`; false if the unknowns would lie too far apart.
    fn reduce(&mut self, row: &mut Row, i: usize) -> bool {
        let Some(other) = self.rows.get(i) else {
            return true;
        };
        let factor = row.at(other.pivot);
        if factor == 0 {
            return true;
        }
        let (from, to) = (other.place, row.place);
        let added = row.add(self.kernel, factor, other);
        if added {
            self.combine(factor, from, to);
        }
        added
    }

    /// Gives a reduced row a pivot and takes that out of all others; an empty row comes back.
    fn adopt(&mut self, mut row: Row) -> Result<(), Row> {
        let Some(pivot) = row.unknowns().next() else {
            return Err(row);
        };
        let factor = field::inv(row.at(pivot)).unwrap_or(1);
        self.kernel.scale(factor, &mut row.coefficients[..]);
        self.kernel.scale(factor, self.sides.whole_mut(row.place));
        row.pivot = pivot;
        for i in 0..self.rows.len() {
            let Some(other) = self.rows.get_mut(i) else {
                break;
            };
            let factor = other.at(pivot);
            // One whose unknowns would lie too far apart keeps the pivot: it is as true as before, only solved later.
            if factor != 0 && other.add(self.kernel, factor, &row) {
                let to = other.place;
                self.combine(factor, row.place, to);
            }
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds a multiple of a row of side information: `side[to] += factor * side[from]`.
    fn combine(&mut self, factor: u8, from: usize, to: usize) {
        self.sides.axpy(self.kernel, factor, from, to);
    }
}

/// `to += factor * body`, as far as the body goes.
pub(crate) fn add(kernel: Kernel, factor: u8, body: &[u8], to: &mut [u8]) {
    if let Some(front) = to.get_mut(..body.len()) {
        let _ = kernel.axpy(factor, body, front);
    }
}
