//! A systematic erasure code: n data packets, m parity packets, any n of the n + m suffice.
//!
//! # Why any n suffice
//!
//! Give parity packet i the field element u_i = n + i and data packet j the element v_j = j; all
//! are different, as n + m <= 256. The Cauchy matrix C with entries 1 / (u_i + v_j) has only
//! non-singular square submatrices: the determinant of one with rows I and columns J is the product
//! of (u_i + u_k)(v_j + v_l) over pairs i < k of I and j < l of J, divided by the product of all
//! u_i + v_j (Cauchy 1841; signs vanish in characteristic 2), and no factor is zero. Our matrix is
//! C with column j multiplied by u_0 + v_j, which is not zero, so the property stays; it makes the
//! first parity row all ones, so one parity packet is the plain exclusive or.
//!
//! If e data packets are missing and e parity packets have come, subtracting the present data from
//! the parity leaves e equations in the missing packets whose matrix is such a submatrix.

use crate::field;
use crate::kernel::Kernel;
use crate::rows::{INDICES, MAX_ROWS, Rows, RowsMut, ShapeError};

/// Rows of coefficients made at a time.
const BLOCK: usize = 16;

/// Why packets could not be reconstructed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconstructError {
    /// Fewer parity packets have come than data packets are missing.
    TooFew {
        /// The number of data packets missing.
        missing: usize,
        /// The number of parity packets received.
        parity: usize,
    },
    /// The buffers or lists do not fit the code.
    Shape(ShapeError),
}

impl From<ShapeError> for ReconstructError {
    fn from(error: ShapeError) -> Self {
        Self::Shape(error)
    }
}

impl core::fmt::Display for ReconstructError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooFew { missing, parity } => {
                write!(
                    f,
                    "{missing} data packets missing, {parity} parity packets received"
                )
            }
            Self::Shape(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReconstructError {}

/// The code with n data and m parity packets. It is two numbers; coefficients are computed when
/// needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Erasure {
    data: usize,
    parity: usize,
    kernel: Kernel,
}

impl Erasure {
    /// The code with `data` (at least 1) and `parity` (at least 1) packets, together at most 256.
    pub fn new(data: usize, parity: usize) -> Result<Self, ShapeError> {
        if data == 0 || data >= MAX_ROWS {
            return Err(ShapeError::Count {
                given: data,
                most: MAX_ROWS - 1,
            });
        }
        if parity == 0 || parity > MAX_ROWS - data {
            return Err(ShapeError::Count {
                given: parity,
                most: MAX_ROWS - data,
            });
        }
        Ok(Self {
            data,
            parity,
            kernel: Kernel::best(),
        })
    }

    /// The same code, computed by the given kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// The number of data packets, n.
    #[must_use]
    pub fn data(&self) -> usize {
        self.data
    }

    /// The number of parity packets, m.
    #[must_use]
    pub fn parity(&self) -> usize {
        self.parity
    }

    /// The coefficient of data packet `column` in parity packet `row`; 0 outside the code. It does
    /// not depend on m, so more parity packets can be made later.
    #[must_use]
    pub fn coefficient(&self, row: usize, column: usize) -> u8 {
        if row >= self.parity || column >= self.data {
            return 0;
        }
        let column = column as u8;
        field::div(self.point(0) ^ column, self.point(row) ^ column).unwrap_or_default()
    }

    /// Computes all parity packets from all data packets.
    pub fn encode(&self, data: Rows<'_>, mut parity: RowsMut<'_>) -> Result<(), ShapeError> {
        expect(data.count(), self.data)?;
        expect(parity.count(), self.parity)?;
        expect(parity.row_len(), data.row_len())?;
        self.for_blocks(
            &INDICES[..self.parity],
            &INDICES[..self.data],
            |matrix, rows| {
                self.kernel
                    .combine(matrix, data, parity.reborrow().select(rows)?)
            },
        )
    }

    /// Fills in the missing data packets where they belong.
    ///
    /// `missing` lists the indices of the data packets to compute, `received` those of the parity
    /// packets that are there; both without repetition. The first as many parity packets of
    /// `received` as packets are missing are used, and their content is spent: afterwards the
    /// parity packets are of no use. On an error nothing has changed.
    pub fn reconstruct(
        &self,
        mut data: RowsMut<'_>,
        missing: &[u8],
        mut parity: RowsMut<'_>,
        received: &[u8],
    ) -> Result<(), ReconstructError> {
        expect(data.count(), self.data)?;
        expect(parity.count(), self.parity)?;
        expect(parity.row_len(), data.row_len())?;
        let lost = members(missing, self.data)?;
        members(received, self.parity)?;
        if missing.is_empty() {
            return Ok(());
        }
        // The last check: from here on packets change, and no error may leave them half done.
        let Some(used) = received.get(..missing.len()) else {
            let (missing, parity) = (missing.len(), received.len());
            return Err(ReconstructError::TooFew { missing, parity });
        };
        let mut present = [0; MAX_ROWS];
        let mut count = 0;
        for &index in INDICES[..self.data]
            .iter()
            .filter(|&&index| !lost[usize::from(index)])
        {
            present[count] = index;
            count += 1;
        }
        self.subtract(&data, &present[..count], &mut parity, used)?;
        self.solve(&mut data, missing, &parity, used)?;
        Ok(())
    }

    /// Leaves in the used parity packets only the part of the missing data packets.
    fn subtract(
        &self,
        data: &RowsMut<'_>,
        present: &[u8],
        parity: &mut RowsMut<'_>,
        used: &[u8],
    ) -> Result<(), ShapeError> {
        if present.is_empty() {
            return Ok(());
        }
        let from = data.as_rows().select(present)?;
        self.for_blocks(used, present, |matrix, rows| {
            self.kernel
                .combine_onto(matrix, from, parity.reborrow().select(rows)?)
        })
    }

    /// Calls `action` with the coefficients of the listed columns in [`BLOCK`] of the listed rows
    /// after the other, and with those rows.
    fn for_blocks(
        &self,
        rows: &[u8],
        columns: &[u8],
        mut action: impl FnMut(&[u8], &[u8]) -> Result<(), ShapeError>,
    ) -> Result<(), ShapeError> {
        let mut numerators = [0; MAX_ROWS];
        // Equal in all rows, so their logarithms are looked up once and not for each entry.
        for (numerator, column) in numerators.iter_mut().zip(columns) {
            *numerator = field::log(self.point(0) ^ column).unwrap_or_default();
        }
        let mut coefficients = [0; BLOCK * MAX_ROWS];
        for rows in rows.chunks(BLOCK) {
            let matrix = &mut coefficients[..rows.len() * columns.len()];
            for (matrix, &row) in matrix.chunks_mut(columns.len()).zip(rows) {
                let point = self.point(row.into());
                for ((entry, column), &numerator) in matrix.iter_mut().zip(columns).zip(&numerators)
                {
                    *entry = field::exp_over(numerator, point ^ column);
                }
            }
            action(matrix, rows)?;
        }
        Ok(())
    }

    /// Multiplies what is left of the parity packets by the inverse of the Cauchy submatrix.
    fn solve(
        &self,
        data: &mut RowsMut<'_>,
        missing: &[u8],
        parity: &RowsMut<'_>,
        used: &[u8],
    ) -> Result<(), ShapeError> {
        let from = parity.as_rows().select(used)?;
        let mut left = [0; MAX_ROWS];
        for (factor, &row) in left.iter_mut().zip(used) {
            *factor = self.row_factor(row, used, missing);
        }
        let mut coefficients = [0; BLOCK * MAX_ROWS];
        for columns in missing.chunks(BLOCK) {
            let matrix = &mut coefficients[..columns.len() * used.len()];
            for (matrix, &column) in matrix.chunks_mut(used.len()).zip(columns) {
                let right = self.column_factor(column, used, missing);
                for ((entry, &row), &left) in matrix.iter_mut().zip(used).zip(&left) {
                    *entry = field::exp_over(
                        ((u16::from(left) + u16::from(right)) % 255) as u8,
                        self.point(row.into()) ^ column,
                    );
                }
            }
            self.kernel
                .combine(matrix, from, data.reborrow().select(columns)?)?;
        }
        Ok(())
    }

    /// The part of the inverse's entries that depends on the parity packet i only: the product of
    /// u_i + v_l over the missing l, divided by that of u_i + u_k over the other used k. All
    /// factors are given by their logarithms, in which a product is a sum.
    fn row_factor(&self, row: u8, used: &[u8], missing: &[u8]) -> u8 {
        let point = self.point(row.into());
        let above = missing.iter().map(|column| point ^ column);
        let others = used.iter().filter(|&&other| other != row);
        let below = others.map(|&other| point ^ self.point(other.into()));
        log_quotient(above, below)
    }

    /// The part that depends on the missing data packet j only: the product of u_k + v_j over the
    /// used k, divided by that of v_j + v_l over the other missing l, and by the factor u_0 + v_j
    /// that our matrix has more than Cauchy's.
    fn column_factor(&self, column: u8, used: &[u8], missing: &[u8]) -> u8 {
        let above = used.iter().map(|&row| self.point(row.into()) ^ column);
        let others = missing.iter().filter(|&&other| other != column);
        let below = others.map(|other| column ^ other);
        log_quotient(above, below.chain([self.point(0) ^ column]))
    }

    /// The field element u of a parity packet.
    fn point(&self, row: usize) -> u8 {
        (self.data + row) as u8
    }
}

/// The logarithm of the product of some elements over that of others. None is zero.
fn log_quotient(above: impl Iterator<Item = u8>, below: impl Iterator<Item = u8>) -> u8 {
    let log = |element| u32::from(field::log(element).unwrap_or_default());
    let above: u32 = above.map(log).sum();
    // The group has 255 elements, so subtracting a logarithm is adding its complement.
    let below: u32 = below.map(|element| 255 - log(element)).sum();
    ((above + below) % 255) as u8
}

/// Which of `count` packets are listed; an error if one does not exist or is listed twice.
fn members(list: &[u8], count: usize) -> Result<[bool; MAX_ROWS], ShapeError> {
    let mut listed = [false; MAX_ROWS];
    for &index in list {
        let given = usize::from(index);
        if given >= count || core::mem::replace(&mut listed[given], true) {
            return Err(ShapeError::Index { given, count });
        }
    }
    Ok(listed)
}

fn expect(given: usize, needed: usize) -> Result<(), ShapeError> {
    if given == needed {
        Ok(())
    } else {
        Err(ShapeError::Buffer { given, needed })
    }
}
