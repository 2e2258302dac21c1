//! The choice of instructions for the arithmetic: one small value that the caller may set.

use core::fmt;

use crate::matrix::Matrix;
use crate::portable;
use crate::rows::{INDICES, Rows, RowsMut, ShapeError};
use crate::simd::{self, Path};

/// An implementation of the packet arithmetic for one instruction set of this processor.
///
/// All kernels give the same bytes for the same input. A `Kernel` can be obtained only for
/// instructions that the processor and the operating system support, so using one is always safe.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kernel(Option<Path>);

/// Whether the old content of the destination is kept in the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Old {
    Replaced,
    Added,
}

impl Kernel {
    /// Plain Rust on 64-bit words; works on every processor.
    pub const PORTABLE: Self = Self(None);

    /// The fastest kernel of this processor. The first call queries the processor; later calls read
    /// a byte.
    #[inline]
    #[must_use]
    pub fn best() -> Self {
        Self(Path::ALL.into_iter().rev().find(|path| path.is_supported()))
    }

    /// All kernels that work on this processor, slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        let vectors = Path::ALL.into_iter().filter(|path| path.is_supported());
        core::iter::once(Self::PORTABLE).chain(vectors.map(|path| Self(Some(path))))
    }

    /// The kernel of that [`name`](Self::name), if it works on this processor.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::available().find(|kernel| kernel.name() == name)
    }

    /// `portable`, `ssse3`, `avx2`, `avx512`, `gfni256`, `gfni512` or `neon`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            None => "portable",
            Some(path) => path.name(),
        }
    }

    /// `to[j] = sum over i of coefficients[j][i] * from[i]`.
    ///
    /// `coefficients` is a matrix stored row by row: one row of `from.count()` bytes for each
    /// packet of `to`. One call with many outputs costs less than one call for each. If `to` selects
    /// a packet twice, the later row of coefficients decides.
    pub fn combine(
        self,
        coefficients: &[u8],
        from: Rows<'_>,
        mut to: RowsMut<'_>,
    ) -> Result<(), ShapeError> {
        let matrix = Matrix::dense(coefficients, to.count(), from.count())?;
        self.multiply(matrix, from, &mut to, Old::Replaced)
    }

    /// `to[j] += sum over i of coefficients[j][i] * from[i]`: as [`combine`](Self::combine), but
    /// added to the old content.
    pub fn combine_onto(
        self,
        coefficients: &[u8],
        from: Rows<'_>,
        mut to: RowsMut<'_>,
    ) -> Result<(), ShapeError> {
        let matrix = Matrix::dense(coefficients, to.count(), from.count())?;
        self.multiply(matrix, from, &mut to, Old::Added)
    }

    /// `rows[j] = sum over i of coefficients[j][i] * rows[i]`, all from the old content: a square
    /// matrix applied where the packets lie.
    pub fn combine_in_place(
        self,
        coefficients: &[u8],
        mut rows: RowsMut<'_>,
    ) -> Result<(), ShapeError> {
        let count = rows.count();
        let matrix = Matrix::dense(coefficients, count, count)?;
        self.permuted_in_place(matrix, &mut rows, INDICES.get(..count).unwrap_or_default());
        Ok(())
    }

    /// `rows[order[j]] = sum over i of coefficients[j][i] * rows[i]`. The order is a permutation.
    pub(crate) fn permuted_in_place(
        self,
        coefficients: Matrix<'_>,
        rows: &mut RowsMut<'_>,
        order: &[u8],
    ) {
        match self.0 {
            None => portable::combine_in_place(coefficients, rows, order),
            Some(path) => simd::combine_in_place(path, coefficients, rows, order),
        }
    }

    /// `to += factor * from`, both of the same length.
    pub fn axpy(self, factor: u8, from: &[u8], to: &mut [u8]) -> Result<(), ShapeError> {
        exact(from.len(), to.len())?;
        match self.0 {
            None => portable::reduce(&[factor], from, to),
            Some(path) => simd::reduce(path, &[factor], from, to),
        }
        Ok(())
    }

    /// Multiplies each byte: `data = factor * data`.
    pub fn scale(self, factor: u8, data: &mut [u8]) {
        match self.0 {
            None => portable::scale(factor, data),
            Some(path) => simd::scale(path, factor, data),
        }
    }

    /// `to += sum over i of factors[i] * rows[i]`, where the rows lie one after the other, each as
    /// long as `to`. Rows and factors are counted by the shorter list.
    #[inline]
    pub(crate) fn reduce(self, factors: &[u8], rows: &[u8], to: &mut [u8]) {
        match self.0 {
            None => portable::reduce(factors, rows, to),
            Some(path) => simd::reduce(path, factors, rows, to),
        }
    }

    /// All steps of an insertion into a basis at once: see [`simd::insert`]. `None`: not for this
    /// length or kernel.
    #[inline]
    pub(crate) fn insert(
        self,
        vector: &[u8],
        pivots: &[u8],
        rows: (&mut [u8], usize),
    ) -> Option<Option<u8>> {
        match self.0 {
            None => None,
            Some(path) => simd::insert(path, vector, pivots, rows),
        }
    }

    /// The answer that [`insert`](Self::insert) would give.
    #[inline]
    pub(crate) fn probe(
        self,
        vector: &[u8],
        pivots: &[u8],
        rows: (&[u8], usize),
    ) -> Option<Option<u8>> {
        match self.0 {
            None => None,
            Some(path) => simd::probe(path, vector, pivots, rows),
        }
    }

    /// `rows[i] += rows[i][column] * pivot` for all the rows, each as long as `pivot`.
    #[inline]
    pub(crate) fn eliminate(self, rows: &mut [u8], column: usize, pivot: &[u8]) {
        match self.0 {
            None => portable::eliminate(rows, column, pivot),
            Some(path) => simd::eliminate(path, rows, column, pivot),
        }
    }

    /// [`combine`](Self::combine) with coefficients that need not lie close together.
    pub(crate) fn combine_matrix(
        self,
        coefficients: Matrix<'_>,
        from: Rows<'_>,
        mut to: RowsMut<'_>,
    ) -> Result<(), ShapeError> {
        self.multiply(coefficients, from, &mut to, Old::Replaced)
    }

    /// As [`combine_matrix`](Self::combine_matrix) with the product of two matrices. `false`: not for this kernel or number of
    /// packets.
    #[inline]
    pub(crate) fn combine_product(
        self,
        (left, right): (Matrix<'_>, Matrix<'_>),
        from: Rows<'_>,
        mut to: RowsMut<'_>,
    ) -> Result<bool, ShapeError> {
        left.check(to.count(), right.rows())?;
        right.check(left.columns(), from.count())?;
        exact(from.row_len(), to.row_len())?;
        Ok(match self.0 {
            None => false,
            Some(path) => simd::combine_product(path, (left, right), &from, &mut to),
        })
    }

    /// Rows with their entries at other places: entry i of each becomes the one at `places[i]`. All have an entry for each place.
    pub(crate) fn reorder(self, places: &[u8], rows: &[u8], into: &mut [u8]) {
        if let Some(path) = self.0
            && simd::reorder(path, places, rows, into)
        {
            return;
        }
        let len = places.len().max(1);
        for (row, into) in rows.chunks_exact(len).zip(into.chunks_exact_mut(len)) {
            for (entry, &place) in into.iter_mut().zip(places) {
                *entry = row.get(usize::from(place)).copied().unwrap_or_default();
            }
        }
    }

    fn multiply(
        self,
        coefficients: Matrix<'_>,
        from: Rows<'_>,
        to: &mut RowsMut<'_>,
        old: Old,
    ) -> Result<(), ShapeError> {
        coefficients.check(to.count(), from.count())?;
        exact(from.row_len(), to.row_len())?;
        let add = old == Old::Added;
        match self.0 {
            None => portable::combine(coefficients, &from, to, add),
            Some(path) => simd::combine(path, coefficients, &from, to, add),
        }
        Ok(())
    }
}

impl Default for Kernel {
    fn default() -> Self {
        Self::best()
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn exact(given: usize, needed: usize) -> Result<(), ShapeError> {
    if given == needed {
        Ok(())
    } else {
        Err(ShapeError::Buffer { given, needed })
    }
}
