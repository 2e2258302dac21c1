//! Repairs that do not suffice yet, as a system of linear equations solved as far as possible.
//!
//! A repair is a sum of bodies, each multiplied by a coefficient that follows from the repair's index i and the
//! body's sequence number s: 1 / (u + v) with u = 128 + i mod 128 and v = s mod 128. These are entries of a Cauchy
//! matrix: u and v are never equal, so repairs of the same bodies are independent, and any n of them recover n bodies.
//!
//! Rows are kept reduced: each has a pivot, an unknown body that no other row contains.

use alloc::boxed::Box;
use alloc::vec::Vec;

use chappe_coding::{Kernel, field};

use crate::header::{before, bit};
use crate::store::Store;

/// Repairs kept: more than one slot brings, and a part of the next.
const ROWS: usize = 48;
/// Numbers from the oldest missing body on that a kept repair may cover.
const REACH: u32 = 256;

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
    /// Right-hand sides, by [`Row::place`].
    sides: Store,
    body_max: usize,
    kernel: Kernel,
}

#[derive(Clone, Debug)]
struct Row {
    place: usize,
    /// Number of the unknown that only this row contains.
    pivot: u32,
    /// By sequence number modulo [`REACH`].
    coefficients: Box<[u8; REACH as usize]>,
}

impl Row {
    fn at(&self, seq: u32) -> u8 {
        let place = (seq % REACH) as usize;
        self.coefficients.get(place).copied().unwrap_or(0)
    }

    fn set(&mut self, seq: u32, value: u8) {
        if let Some(cell) = self.coefficients.get_mut((seq % REACH) as usize) {
            *cell = value;
        }
    }

    /// The unknowns in it, oldest first, given the oldest that there can be.
    fn unknowns(&self, oldest: u32) -> impl Iterator<Item = u32> + '_ {
        (0..REACH)
            .map(move |i| oldest.wrapping_add(i))
            .filter(|&seq| self.at(seq) != 0)
    }
}

impl Decoder {
    pub fn new(body_max: usize) -> Decoder {
        Decoder {
            rows: Vec::with_capacity(ROWS),
            sides: Store::new(ROWS, body_max),
            body_max,
            kernel: Kernel::best(),
        }
    }

    /// Number of independent repairs that do not suffice yet.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    pub fn clear(&mut self) {
        self.rows.clear();
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
        let Some(place) = (0..ROWS).find(|place| self.rows.iter().all(|row| row.place != *place))
        else {
            return Taken::Full;
        };
        let mut row = Row {
            place,
            pivot: 0,
            coefficients: Box::new([0; REACH as usize]),
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
            } else if before(seq, known.next()) || seq.wrapping_sub(known.next()) >= REACH {
                return Taken::Stale;
            } else {
                row.set(seq, factor);
            }
        }
        // Rows stay fully reduced: no pivot of another row may remain in this one.
        for i in 0..self.rows.len() {
            self.reduce(&mut row, i);
        }
        if !self.adopt(row, known.next()) {
            return Taken::Redundant;
        }
        Taken::Innovative
    }

    /// Eliminates a body that has become known from all equations.
    pub fn learn(&mut self, seq: u32, body: &[u8], oldest: u32) {
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
            if self.adopt(row, oldest) {
                // The row stands at the end now, reduced; the one that took its place is next.
                continue;
            }
        }
    }

    /// Drops the equations of a body that will never come.
    pub fn forget(&mut self, seq: u32) {
        self.rows.retain(|row| row.at(seq) == 0);
    }

    /// Takes out an equation with one unknown: the number of that body, and the place of its octets, padded with zeros.
    pub fn solved(&mut self, oldest: u32) -> Option<(u32, usize)> {
        let place = self.rows.iter().position(|row| {
            let mut unknowns = row.unknowns(oldest);
            unknowns.next().is_some() && unknowns.next().is_none()
        })?;
        let row = self.rows.swap_remove(place);
        Some((row.pivot, row.place))
    }

    /// The octets at a place that [`solved`](Self::solved) returned.
    pub fn side(&mut self, place: usize) -> &[u8] {
        self.sides.whole_mut(place)
    }

    /// Takes the pivot of row `i` out of `row`.
    fn reduce(&mut self, row: &mut Row, i: usize) {
        let Some(other) = self.rows.get(i) else {
            return;
        };
        let factor = row.at(other.pivot);
        if factor == 0 {
            return;
        }
        let (from, to) = (other.place, row.place);
        let _ = self
            .kernel
            .axpy(factor, &other.coefficients[..], &mut row.coefficients[..]);
        self.combine(factor, from, to);
    }

    /// Gives a reduced row a pivot and takes that out of all others; false if the row is empty.
    fn adopt(&mut self, mut row: Row, oldest: u32) -> bool {
        let Some(pivot) = row.unknowns(oldest).next() else {
            return false;
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
            if factor != 0 {
                let _ =
                    self.kernel
                        .axpy(factor, &row.coefficients[..], &mut other.coefficients[..]);
                let to = other.place;
                self.combine(factor, row.place, to);
            }
        }
        self.rows.push(row);
        true
    }

    /// `side[to] += factor * side[from]`.
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
