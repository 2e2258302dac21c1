//! A node's knowledge of a batch: the span of the coefficient vectors that it has received.

use crate::error::BatchError;
use crate::field;
use crate::kernel::Kernel;
use crate::matrix::Matrix;
use crate::rows::{INDICES, Rows, RowsMut, Shape, ShapeError};

/// Most packets in a batch: a coefficient vector is counted in one byte.
pub const MAX_BATCH: usize = 255;

/// The result of inserting a coefficient vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Insertion {
    /// It raised the rank by one.
    Innovative,
    /// It lies in the span of those before; the all-zero vector always does.
    NotInnovative,
    /// Its length, or the payload's, is not that of this batch.
    Malformed,
}

impl Insertion {
    /// Whether the rank went up.
    #[must_use]
    pub fn is_innovative(self) -> bool {
        self == Self::Innovative
    }
}

/// The span of the coefficient vectors inserted so far, in reduced row echelon form, for a batch
/// of up to `K` packets (at most [`MAX_BATCH`]). It holds 2 K² bytes and no payload.
///
/// Row r has a pivot: a column where it is 1 and every other row is 0. So the multipliers that
/// reduce a new vector are its own entries at the pivots, and the products do not depend on each
/// other. Each row also has its weights over the packets in order of arrival. At full rank the
/// rows are the unit vectors and the weights are the inverse matrix.
///
/// Any vectors are allowed, in any order: unit vectors, copies, leading zeros, zero itself.
#[derive(Clone)]
#[repr(align(64))]
pub struct Basis<const K: usize> {
    /// Each row: coefficients over the source packets, then weights over the stored packets in order
    /// of arrival. A row not in use yet is zero but for weight 1 of the packet to be stored next.
    rows: [[[u8; K]; 2]; K],
    /// The pivot column of each row.
    pivots: [u8; K],
    rank: usize,
    packets: usize,
    kernel: Kernel,
}

impl<const K: usize> Basis<K> {
    /// An empty basis for a batch of `packets` packets, 1 to `K`.
    #[inline]
    pub fn new(packets: usize) -> Result<Self, ShapeError> {
        const { assert!(K >= 1 && K <= MAX_BATCH, "a batch has 1 to 255 packets") };
        if packets == 0 || packets > K {
            return Err(ShapeError::Count {
                given: packets,
                most: K,
            });
        }
        let mut basis = Self {
            rows: [[[0; K]; 2]; K],
            pivots: [0; K],
            rank: 0,
            packets,
            kernel: Kernel::best(),
        };
        for (index, [_, weights]) in basis.rows.iter_mut().enumerate() {
            if let Some(own) = weights.get_mut(index) {
                *own = 1;
            }
        }
        Ok(basis)
    }

    /// The same basis, computed by the given kernel.
    #[must_use]
    #[inline]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// The kernel in use.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The number of packets in the batch.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// The number of linearly independent vectors inserted, 0 to [`packets`](Self::packets).
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many innovative vectors are still needed.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.packets - self.rank
    }

    /// Whether the vectors span everything.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rank == self.packets
    }

    /// Forgets everything; the next batch may have another number of packets.
    pub fn reset(&mut self, packets: usize) -> Result<(), ShapeError> {
        *self = Self::new(packets)?.with_kernel(self.kernel);
        Ok(())
    }

    /// Whether inserting this vector would raise the rank. `false` also for a wrong length.
    #[must_use]
    pub fn is_innovative(&self, coefficients: &[u8]) -> bool {
        if self.is_full() || coefficients.len() != self.packets {
            return false;
        }
        let pivots = self.pivots.get(..self.rank).unwrap_or_default();
        let rows = (self.flat(self.rank + 1), 2 * K);
        match self.kernel.probe(coefficients, pivots, rows) {
            Some(pivot) => pivot.is_some(),
            None => self
                .reduced(coefficients)
                .is_some_and(|row| leading(&row[0]).is_some()),
        }
    }

    /// Inserts a vector of [`packets`](Self::packets) coefficients. The caller that stores
    /// payloads puts that of the n-th innovative vector at index n.
    #[inline]
    pub fn insert(&mut self, coefficients: &[u8]) -> Insertion {
        if coefficients.len() != self.packets {
            return Insertion::Malformed;
        }
        if self.is_full() {
            return Insertion::NotInnovative;
        }
        let (Some(pivots), Some(rows)) = (
            self.pivots.get(..self.rank),
            self.rows.get_mut(..self.rank + 1),
        ) else {
            return Insertion::NotInnovative;
        };
        let rows = (rows.as_flattened_mut().as_flattened_mut(), 2 * K);
        let pivot = match self.kernel.insert(coefficients, pivots, rows) {
            Some(pivot) => pivot,
            None => self.insert_by_steps(coefficients),
        };
        let (Some(pivot), Some(column)) = (pivot, self.pivots.get_mut(self.rank)) else {
            return Insertion::NotInnovative;
        };
        *column = pivot;
        self.rank += 1;
        Insertion::Innovative
    }

    /// The insertion in separate steps, for kernels and lengths without a fused one. Changes the rows
    /// and returns the pivot.
    fn insert_by_steps(&mut self, coefficients: &[u8]) -> Option<u8> {
        let mut new = self.reduced(coefficients)?;
        let (pivot, value) = leading(&new[0])?;
        // With 1 at the pivot, the entries in its column are the multipliers of the elimination.
        self.kernel
            .scale(field::inv(value)?, new.as_flattened_mut());
        let (known, free) = self.rows.split_at_mut_checked(self.rank)?;
        let known = known.as_flattened_mut().as_flattened_mut();
        // The older rows are reduced by the new one too, so that each pivot stays the only entry of its column.
        self.kernel
            .eliminate(known, pivot.into(), new.as_flattened());
        *free.first_mut()? = new;
        Some(pivot)
    }

    /// Computes the source packets from the packets whose vectors were innovative, in their order
    /// of arrival. For callers that keep the payloads themselves; [`Batch`](crate::Batch) does both.
    pub fn solve(&self, stored: Rows<'_>, sources: RowsMut<'_>) -> Result<(), BatchError> {
        let inverse = self.inverse()?;
        if self.is_ordered() {
            return Ok(self.kernel.combine_matrix(inverse, stored, sources)?);
        }
        // Row r of the inverse gives the source packet of its pivot.
        let mut order = [0; K];
        let order = order.get_mut(..self.packets).unwrap_or_default();
        for (place, &pivot) in order.iter_mut().zip(&self.pivots) {
            *place = sources.index(pivot.into()).unwrap_or(pivot);
        }
        Ok(self
            .kernel
            .combine_matrix(inverse, stored, sources.select(order)?)?)
    }

    /// As [`solve`](Self::solve), in place.
    pub(crate) fn solve_in_place(&mut self, rows: &mut RowsMut<'_>) -> Result<(), BatchError> {
        let inverse = self.inverse()?;
        let order = self.pivots.get(..self.packets).unwrap_or_default();
        inverse.check(order.len(), rows.count())?;
        self.kernel.permuted_in_place(inverse, rows, order);
        self.become_identity();
        Ok(())
    }

    /// The inverse matrix, its rows in the order of the pivots.
    fn inverse(&self) -> Result<Matrix<'_>, BatchError> {
        if !self.is_full() {
            return Err(BatchError::Incomplete {
                missing: self.missing(),
            });
        }
        Ok(self.weights()?)
    }

    /// The sum of the rows, each times its factor: a vector of the span and its weights.
    pub(crate) fn combination(&self, factors: &[u8]) -> [[u8; K]; 2] {
        let mut sum = [[0; K]; 2];
        self.kernel
            .reduce(factors, self.flat(self.rank), sum.as_flattened_mut());
        sum
    }

    /// The vectors of many sums of the rows, written one after the other: `factors` has a row for each vector and a column for
    /// each row in use.
    pub(crate) fn vectors(
        &self,
        factors: Matrix<'_>,
        vectors: &mut [u8],
    ) -> Result<(), ShapeError> {
        if !self.is_full() {
            let to = RowsMut::new(Shape::new(factors.rows(), self.packets)?, vectors)?;
            let shape = Shape::new(self.rank, self.packets)?.with_stride(2 * K)?;
            let known = Rows::new(shape, self.flat(self.rank))?;
            return self.kernel.combine_matrix(factors, known, to);
        }
        // The rows are unit vectors, so a factor is the entry at its row's pivot.
        let mut places = [0; K];
        let pivots = self.pivots.iter().take(self.packets);
        for (row, &pivot) in pivots.enumerate() {
            if let Some(place) = places.get_mut(usize::from(pivot)) {
                *place = row as u8;
            }
        }
        let places = places.get(..self.packets).unwrap_or_default();
        let factors = factors.as_rows()?.data();
        self.kernel.reorder(places, factors, vectors);
        Ok(())
    }

    /// Whether the rows are the unit vectors in order: then vectors of the span are their own factors.
    pub(crate) fn is_ordered(&self) -> bool {
        let pivots = self.pivots.get(..self.packets).unwrap_or_default();
        self.is_full() && INDICES.starts_with(pivots)
    }

    /// The weights of the rows in use over the packets stored, a row for each.
    pub(crate) fn weights(&self) -> Result<Matrix<'_>, ShapeError> {
        let weights = self.flat(self.rank).get(K..).unwrap_or_default();
        Matrix::strided(weights, self.rank, self.rank, 2 * K)
    }

    /// The weights that make source packet `index` out of the stored packets, if the span holds
    /// that packet alone.
    pub(crate) fn weights_of(&self, index: usize) -> Option<&[u8; K]> {
        let pivots = self.pivots.get(..self.rank)?;
        let row = pivots
            .iter()
            .position(|&pivot| usize::from(pivot) == index)?;
        let [coefficients, weights] = self.rows.get(row)?;
        let alone = coefficients.iter().filter(|&&c| c != 0).count() == 1;
        alone.then_some(weights)
    }

    /// Declares that the stored packets are now the source packets themselves, in order.
    fn become_identity(&mut self) {
        for (index, (row, pivot)) in self.rows.iter_mut().zip(&mut self.pivots).enumerate() {
            *row = [[0; K]; 2];
            for half in row.iter_mut() {
                if let Some(one) = half.get_mut(index).filter(|_| index < self.packets) {
                    *one = 1;
                }
            }
            *pivot = index as u8;
        }
        self.rank = self.packets;
    }

    /// The first `count` rows, one after the other.
    fn flat(&self, count: usize) -> &[u8] {
        self.rows
            .get(..count)
            .unwrap_or_default()
            .as_flattened()
            .as_flattened()
    }

    /// The vector minus its part in the span, with its weights if it were stored next. `None` for
    /// a wrong length.
    fn reduced(&self, coefficients: &[u8]) -> Option<[[u8; K]; 2]> {
        let mut row = *self.rows.get(self.rank)?;
        row[0]
            .get_mut(..self.packets)?
            .copy_from_slice(coefficients.get(..self.packets)?);
        // The multiplier of each row is the vector's own coefficient at the row's pivot.
        let mut factors = [0; K];
        for (factor, &pivot) in factors.iter_mut().zip(self.pivots.get(..self.rank)?) {
            *factor = *coefficients.get(usize::from(pivot))?;
        }
        let factors = factors.get(..self.rank)?;
        self.kernel
            .reduce(factors, self.flat(self.rank), row.as_flattened_mut());
        Some(row)
    }
}

impl<const K: usize> core::fmt::Debug for Basis<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Basis(rank {}/{}, {})",
            self.rank, self.packets, self.kernel
        )
    }
}

/// The index of the first non-zero entry, and the entry.
#[inline(always)]
pub(crate) fn leading(vector: &[u8]) -> Option<(u8, u8)> {
    let (words, rest) = vector.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let bits = u64::from_le_bytes(*word);
        if bits != 0 {
            let byte = bits.trailing_zeros() / 8;
            return Some((8 * index as u8 + byte as u8, (bits >> (8 * byte)) as u8));
        }
    }
    let index = rest.iter().position(|&c| c != 0)?;
    Some(((8 * words.len() + index) as u8, *rest.get(index)?))
}
