//! In place of the vector kernels, on processors for which there are none.

use crate::matrix::Matrix;
use crate::rows::{Rows, RowsMut};

/// An instruction set; there is none on this processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Path {}

impl Path {
    pub(crate) const ALL: [Self; 0] = [];

    pub(crate) const fn name(self) -> &'static str {
        match self {}
    }

    pub(crate) fn is_supported(self) -> bool {
        match self {}
    }
}

pub(crate) fn combine(path: Path, _: Matrix<'_>, _: &Rows<'_>, _: &mut RowsMut<'_>, _: bool) {
    match path {}
}

pub(crate) fn combine_product(
    path: Path,
    _: (Matrix<'_>, Matrix<'_>),
    _: &Rows<'_>,
    _: &mut RowsMut<'_>,
) -> bool {
    match path {}
}

pub(crate) fn reorder(path: Path, _: &[u8], _: &[u8], _: &mut [u8]) -> bool {
    match path {}
}

pub(crate) fn combine_in_place(path: Path, _: Matrix<'_>, _: &mut RowsMut<'_>, _: &[u8]) {
    match path {}
}

pub(crate) fn reduce(path: Path, _: &[u8], _: &[u8], _: &mut [u8]) {
    match path {}
}

pub(crate) fn insert(path: Path, _: &[u8], _: &[u8], _: (&mut [u8], usize)) -> Option<Option<u8>> {
    match path {}
}

pub(crate) fn probe(path: Path, _: &[u8], _: &[u8], _: (&[u8], usize)) -> Option<Option<u8>> {
    match path {}
}

pub(crate) fn scale(path: Path, _: u8, _: &mut [u8]) {
    match path {}
}

pub(crate) fn eliminate(path: Path, _: &mut [u8], _: usize, _: &[u8]) {
    match path {}
}
