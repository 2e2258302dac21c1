//! A matrix of coefficients inside a flat buffer.

use crate::rows::{Rows, Shape, ShapeError};

/// Coefficients: one row for each output, one column for each source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    entries: &'a [u8],
    rows: usize,
    columns: usize,
    stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix that fills its buffer exactly.
    pub(crate) fn dense(
        entries: &'a [u8],
        rows: usize,
        columns: usize,
    ) -> Result<Self, ShapeError> {
        let (given, needed) = (entries.len(), rows * columns);
        if given != needed {
            return Err(ShapeError::Buffer { given, needed });
        }
        Ok(Self {
            entries,
            rows,
            columns,
            stride: columns,
        })
    }

    /// A matrix whose rows start `stride` bytes apart, with other content between them.
    pub(crate) fn strided(
        entries: &'a [u8],
        rows: usize,
        columns: usize,
        stride: usize,
    ) -> Result<Self, ShapeError> {
        let (given, needed) = (entries.len(), rows.saturating_sub(1) * stride + columns);
        if given < needed || stride < columns {
            return Err(ShapeError::Buffer { given, needed });
        }
        Ok(Self {
            entries,
            rows,
            columns,
            stride,
        })
    }

    /// An error if the matrix has other numbers of rows and columns.
    pub(crate) fn check(&self, rows: usize, columns: usize) -> Result<(), ShapeError> {
        if (self.rows, self.columns) == (rows, columns) {
            return Ok(());
        }
        Err(ShapeError::Buffer {
            given: self.rows * self.columns,
            needed: rows * columns,
        })
    }

    /// The coefficients of one output; empty beyond the last.
    #[inline]
    pub(crate) fn row(&self, index: usize) -> &'a [u8] {
        let rest = self.entries.get(index * self.stride..).unwrap_or_default();
        rest.get(..self.columns).unwrap_or_default()
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// The rows, to be multiplied themselves.
    pub(crate) fn as_rows(&self) -> Result<Rows<'a>, ShapeError> {
        let shape = Shape::new(self.rows, self.columns)?.with_stride(self.stride)?;
        Rows::new(shape, self.entries)
    }

    /// The distance between the rows, in bytes.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }
}
