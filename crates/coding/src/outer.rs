//! An outer code over the batches of an object, in the manner of BATS codes.
//!
//! Without it every receiver needs the full rank of every batch, so batches in which it was unlucky are repaired. With it the source
//! goes on with *coded batches*, whose packets are combinations of all packets of the object, and a receiver needs only as much rank in
//! all batches together as the object has packets (Yang, Yeung: "Batched sparse codes", IEEE Trans. Inf. Theory 60(9), 2014; coefficients
//! there are sparse, for objects of any size. Here they are dense and objects short, so nothing beyond that rank is needed but by chance:
//! one object in 255 needs one packet more).
//!
//! # Coefficients
//!
//! They are made by a fixed rule, so frames need not carry them. Octets 8n to 8n + 7 of the coefficients of packet `i` of coded batch `b`
//! are output number 2^32 b + 2^16 i + n of SplitMix64 with seed 0, counted from 0, least octet first (Steele, Lea, Flood: "Fast splittable
//! pseudorandom number generators", OOPSLA 2014; java.util.SplittableRandom).

use crate::field;
use crate::kernel::Kernel;
use crate::rows::{MAX_ROWS, Rows, RowsMut, Shape, ShapeError};

/// Most packets of an object. To solve for so many takes 2048^2 / 2 sums of rows, about a second.
pub const MAX_SOURCES: usize = 2048;

/// Coefficients made at a time.
const PIECE: usize = 256;

/// The outer code of an object with a number of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outer {
    sources: usize,
    kernel: Kernel,
}

impl Outer {
    /// The code over 1 to [`MAX_SOURCES`] packets.
    pub fn new(sources: usize) -> Result<Self, ShapeError> {
        if sources == 0 || sources > MAX_SOURCES {
            return Err(ShapeError::Count {
                given: sources,
                most: MAX_SOURCES,
            });
        }
        Ok(Self {
            sources,
            kernel: Kernel::best(),
        })
    }

    /// Packets of the object.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// Writes the coefficients, over the packets of the object, of a combination of the packets of coded batch `batch`: `vector` has one
    /// for each packet of the batch. Both are cut to what fits; a batch has at most 256 packets.
    pub fn coefficients(&self, batch: u32, vector: &[u8], into: &mut [u8]) {
        let into = into.get_mut(..self.sources).unwrap_or_default();
        into.fill(0);
        let mut made = [0; PIECE];
        for (piece, into) in into.chunks_mut(PIECE).enumerate() {
            let made = made.get_mut(..into.len()).unwrap_or_default();
            for (packet, &factor) in (0u8..=u8::MAX).zip(vector) {
                if factor != 0 {
                    make(batch, packet, piece * PIECE / 8, made);
                    // Of equal length by construction.
                    let _ = self.kernel.axpy(factor, made, into);
                }
            }
        }
    }

    /// Adds to `payload` the sum of packets, which lie one after the other in `packets`, times their coefficients. Packets are as long as
    /// `payload`; they and coefficients are counted by the shorter list.
    pub fn add(
        &self,
        coefficients: &[u8],
        packets: &[u8],
        payload: &mut [u8],
    ) -> Result<(), ShapeError> {
        let len = payload.len();
        let pieces = packets.chunks(MAX_ROWS * len.max(1));
        for (coefficients, packets) in coefficients.chunks(MAX_ROWS).zip(pieces) {
            let count = (packets.len() / len.max(1)).min(coefficients.len());
            let Some(coefficients) = coefficients.get(..count).filter(|_| count > 0) else {
                break;
            };
            let rows = Rows::new(Shape::new(count, len)?, packets)?;
            let to = RowsMut::single(payload);
            self.kernel.combine_onto(coefficients, rows, to)?;
        }
        Ok(())
    }
}

/// Coefficients of a packet from the `first` group of eight on.
fn make(batch: u32, packet: u8, first: usize, into: &mut [u8]) {
    let start = u64::from(batch) << 32 | u64::from(packet) << 16;
    for (octets, number) in into.chunks_mut(8).zip(start + first as u64..) {
        let made = splitmix(number).to_le_bytes();
        octets.copy_from_slice(made.get(..octets.len()).unwrap_or_default());
    }
}

/// Output `number` of SplitMix64 with seed 0.
fn splitmix(number: u64) -> u64 {
    let mut state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

/// Equations in packets that are unknown, solved by Gaussian elimination. The memory is the caller's.
#[derive(Debug)]
pub struct Equations<'a> {
    unknowns: usize,
    len: usize,
    /// The row with its pivot in column c is row c, and is all zero while there is none: coefficients, then a payload.
    rows: &'a mut [u8],
    rank: usize,
    kernel: Kernel,
}

impl<'a> Equations<'a> {
    /// Octets of memory for so many unknown packets of `len` octets.
    #[must_use]
    pub const fn bytes(unknowns: usize, len: usize) -> usize {
        unknowns.saturating_mul(unknowns.saturating_add(len))
    }

    /// No equation yet, in memory of at least [`bytes`](Self::bytes).
    pub fn new(unknowns: usize, len: usize, memory: &'a mut [u8]) -> Result<Self, ShapeError> {
        let (given, needed) = (memory.len(), Self::bytes(unknowns, len));
        let Some(rows) = memory.get_mut(..needed) else {
            return Err(ShapeError::Buffer { given, needed });
        };
        rows.fill(0);
        Ok(Self {
            unknowns,
            len,
            rows,
            rank: 0,
            kernel: Kernel::best(),
        })
    }

    /// Independent equations that are still needed.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.unknowns - self.rank
    }

    fn width(&self) -> usize {
        self.unknowns + self.len
    }

    fn row(&self, column: usize) -> &[u8] {
        let start = column * self.width();
        self.rows
            .get(start..start + self.width())
            .unwrap_or_default()
    }

    /// Adds an equation, coefficients before the payload; spends what it is given. Returns whether it was independent of those before;
    /// false for a wrong length.
    pub fn insert(&mut self, equation: &mut [u8]) -> bool {
        if equation.len() != self.width() {
            return false;
        }
        for column in 0..self.unknowns {
            let factor = equation.get(column).copied().unwrap_or(0);
            let Some(inverse) = field::inv(factor) else {
                continue;
            };
            let kernel = self.kernel;
            let known = self.row(column).get(column..).unwrap_or_default();
            let rest = equation.get_mut(column..).unwrap_or_default();
            if known.first().is_some_and(|&pivot| pivot != 0) {
                // Of equal length by construction.
                let _ = kernel.axpy(factor, known, rest);
                continue;
            }
            kernel.scale(inverse, rest);
            let start = column * self.width();
            if let Some(row) = self.rows.get_mut(start..start + equation.len()) {
                row.copy_from_slice(equation);
            }
            self.rank += 1;
            return true;
        }
        false
    }

    /// Solves. False while equations are missing.
    pub fn solve(&mut self) -> bool {
        if self.missing() > 0 {
            return false;
        }
        let (width, unknowns) = (self.width(), self.unknowns);
        for column in (1..unknowns).rev() {
            let (above, below) = self.rows.split_at_mut(column * width);
            let known = below.get(unknowns..width).unwrap_or_default();
            for row in above.chunks_exact_mut(width) {
                let factor = row.get(column).copied().unwrap_or(0);
                if factor != 0 {
                    let payload = row.get_mut(unknowns..).unwrap_or_default();
                    let _ = self.kernel.axpy(factor, known, payload);
                }
            }
        }
        true
    }

    /// A packet, once [`solve`](Self::solve) has said true; empty beyond the unknowns.
    #[must_use]
    pub fn packet(&self, unknown: usize) -> &[u8] {
        self.row(unknown).get(self.unknowns..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const LEN: usize = 10;

    fn packets(count: usize) -> Vec<u8> {
        (0..count * LEN)
            .map(|at| splitmix(at as u64) as u8)
            .collect()
    }

    /// The rule for coefficients is part of the wire format. The expected numbers are the first outputs of SplitMix64 with seed 0, as
    /// other implementations print them.
    #[test]
    fn coefficients_are_those_of_splitmix64() {
        assert_eq!(splitmix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix(1), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(splitmix(2), 0x06c4_5d18_8009_454f);
        let mut row = [0; 11];
        let outer = Outer::new(11).unwrap();
        outer.coefficients(0, &[1], &mut row);
        assert_eq!(row[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        assert_eq!(row[8..], 0x6e78_9e6a_a1b9_65f4_u64.to_le_bytes()[..3]);
        let mut far = [0; 11];
        outer.coefficients(7, &[0, 0, 1], &mut far);
        assert_eq!(far[..8], splitmix(7 << 32 | 2 << 16).to_le_bytes());
    }

    /// Goal: coefficients of pieces join, and combinations are sums. Method: over more packets than a piece has, a combination of two
    /// packets against the packets themselves.
    #[test]
    fn combinations_are_sums_of_packets() {
        let outer = Outer::new(700).unwrap();
        let row = |vector: &[u8]| {
            let mut row = vec![0; 700];
            outer.coefficients(3, vector, &mut row);
            row
        };
        let (first, second, both) = (row(&[1]), row(&[0, 1]), row(&[5, 9]));
        for place in 0..700 {
            let sum = field::mul(5, first[place]) ^ field::mul(9, second[place]);
            assert_eq!(both[place], sum);
        }
        let sources = packets(700);
        let mut payload = [0; LEN];
        outer.add(&both, &sources, &mut payload).unwrap();
        for (at, &octet) in payload.iter().enumerate() {
            let each = (0..700).map(|j| field::mul(both[j], sources[j * LEN + at]));
            assert_eq!(octet, each.fold(0, |sum, part| sum ^ part));
        }
    }

    /// Goal: as much rank as there are unknowns suffices. Method: packets of coded batches until all are known, for several counts; at
    /// most two more than there are unknowns are needed, since one in 255 squared needs three.
    #[test]
    fn coded_packets_solve_for_all() {
        for count in [1, 2, 31, 300] {
            let outer = Outer::new(count).unwrap();
            let sources = packets(count);
            let mut memory = vec![1; Equations::bytes(count, LEN)];
            let mut equations = Equations::new(count, LEN, &mut memory).unwrap();
            let mut used = 0;
            while equations.missing() > 0 {
                let mut row = vec![0; count + LEN];
                let mut vector = [0; 32];
                vector[used % 32] = 1;
                let (coefficients, payload) = row.split_at_mut(count);
                outer.coefficients((used / 32) as u32, &vector, coefficients);
                outer.add(coefficients, &sources, payload).unwrap();
                assert!(!equations.solve());
                equations.insert(&mut row);
                used += 1;
            }
            assert!(used <= count + 2, "{used} of {count}");
            assert!(equations.solve());
            for place in 0..count {
                assert_eq!(equations.packet(place), &sources[place * LEN..][..LEN]);
            }
        }
    }

    #[test]
    fn wrong_lengths_are_refused() {
        assert!(Outer::new(0).is_err() && Outer::new(MAX_SOURCES + 1).is_err());
        let mut memory = [0; 24];
        assert!(Equations::new(3, 6, &mut memory).is_err());
        let mut equations = Equations::new(2, 6, &mut memory).unwrap();
        assert!(!equations.insert(&mut [1; 7]));
        assert!(!equations.insert(&mut [0; 8]));
        assert!(equations.insert(&mut [1; 8]) && !equations.insert(&mut [1; 8]));
        assert!(!equations.solve());
    }
}
