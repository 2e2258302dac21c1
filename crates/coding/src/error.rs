//! Why an operation on a batch fails.

use crate::rows::ShapeError;

/// Why a batch could not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchError {
    /// No packet is stored, so there is nothing to recode.
    Empty,
    /// More innovative packets are needed.
    Incomplete {
        /// How many are missing.
        missing: usize,
    },
    /// A buffer does not fit.
    Shape(ShapeError),
}

impl From<ShapeError> for BatchError {
    fn from(error: ShapeError) -> Self {
        Self::Shape(error)
    }
}

impl core::fmt::Display for BatchError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Empty => f.write_str("no packet of the batch is stored"),
            Self::Incomplete { missing } => write!(f, "{missing} innovative packets missing"),
            Self::Shape(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for BatchError {}
