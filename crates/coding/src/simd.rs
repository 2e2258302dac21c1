//! The vector kernels: this module and its files are the only unsafe code of the crate.
//!
//! One engine, written once over the trait [`Lanes`](lanes::Lanes), is compiled for each instruction set. It
//! multiplies in one of two ways. With GFNI, a coefficient is an 8 x 8 bit matrix in a 64-bit
//! lane and one affine instruction multiplies a whole register by it. Without, a product is the
//! sum of two 16-entry table look-ups, one for each half of the byte, done by a byte shuffle.
//!
//! Packets are processed in columns two registers wide. All outputs of a column are computed
//! before the next column, so from the second group of outputs on the sources are in the
//! first-level cache. The outputs of a group stay in registers until all sources are summed.
#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod arm;
mod compile;
mod lanes;
mod many;
#[cfg(target_arch = "x86_64")]
mod matrices;
mod single;
mod span;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use arm::Path;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::Path;

use core::mem::MaybeUninit;

use crate::matrix::Matrix;
use crate::rows::{MAX_ROWS, Rows, RowsMut};

/// One multiplication of packets by a matrix, as the engine sees it.
struct Job<'a> {
    /// One row per destination, one column per source.
    coefficients: Matrix<'a>,
    from: &'a [*const u8],
    to: &'a [*mut u8],
    len: usize,
    /// Add to the destination instead of replacing it.
    add: bool,
    /// Sources and destinations are the same packets.
    in_place: bool,
}

/// Calls the engine compiled for `$path`.
macro_rules! dispatch {
    ($path:expr, $function:ident($($argument:expr),*)) => {
        // SAFETY: `Kernel` holds a path only after `is_supported` found its instructions, and all
        // callers below pass pointers into live slices of the lengths that they state.
        unsafe {
            match $path {
                #[cfg(target_arch = "x86_64")]
                Path::Ssse3 => x86::ssse3::$function($($argument),*),
                #[cfg(target_arch = "x86_64")]
                Path::Avx2 => x86::avx2::$function($($argument),*),
                #[cfg(target_arch = "x86_64")]
                Path::Avx512 => x86::avx512::$function($($argument),*),
                #[cfg(target_arch = "x86_64")]
                Path::Gfni256 => x86::gfni256::$function($($argument),*),
                #[cfg(target_arch = "x86_64")]
                Path::Gfni512 => x86::gfni512::$function($($argument),*),
                #[cfg(target_arch = "aarch64")]
                Path::Neon => arm::neon::$function($($argument),*),
            }
        }
    };
}

/// The vector form of [`crate::portable::combine`].
pub(crate) fn combine(
    path: Path,
    coefficients: Matrix<'_>,
    from: &Rows<'_>,
    to: &mut RowsMut<'_>,
    add: bool,
) {
    let len = from.row_len();
    if len == 0 {
        return;
    }
    let path = path.for_rows(len);
    let mut sources = Pointers::new();
    let from = sources.fill_from(from);
    if to.count() == 1 {
        let start = to.start(0).unwrap_or_default();
        let to = to.data_mut()[start..].as_mut_ptr();
        let factors = coefficients.row(0);
        dispatch!(path, combine_one(factors, from, (to, len, add)));
        return;
    }
    let mut targets = Pointers::new();
    let to = targets.fill_mut(to);
    let job = Job {
        coefficients,
        from,
        to,
        len,
        add,
        in_place: false,
    };
    dispatch!(path, combine(&job));
}

/// `to[j] = sum over i of (left * right)[j][i] * from[i]`, if the path has [products](lanes::Lanes::PRODUCTS); otherwise gives `false` and
/// does nothing.
pub(crate) fn combine_product(
    path: Path,
    (left, right): (Matrix<'_>, Matrix<'_>),
    from: &Rows<'_>,
    to: &mut RowsMut<'_>,
) -> bool {
    if !path.has_products() || !to.count().is_multiple_of(8) {
        return false;
    }
    let len = from.row_len();
    if len == 0 {
        return true;
    }
    let (mut sources, mut targets) = (Pointers::new(), Pointers::new());
    let job = Job {
        coefficients: right,
        from: sources.fill_from(from),
        to: targets.fill_mut(to),
        len,
        add: false,
        in_place: false,
    };
    dispatch!(path, combine_product(&job, left));
    true
}

/// Takes the entries of rows to other places, if the path has an instruction for that many: entry i of a row becomes the one at
/// `places[i]`. Otherwise gives `false` and does nothing.
pub(crate) fn reorder(path: Path, places: &[u8], rows: &[u8], into: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if path.has_products() && (1..=64).contains(&places.len()) {
        // SAFETY: paths that have products have these instructions; see `dispatch`.
        unsafe { matrices::reorder(places, rows, into) };
        return true;
    }
    let _ = (path, places, rows, into);
    false
}

/// The vector form of [`crate::portable::combine_in_place`].
pub(crate) fn combine_in_place(
    path: Path,
    coefficients: Matrix<'_>,
    rows: &mut RowsMut<'_>,
    order: &[u8],
) {
    let len = rows.row_len();
    let (mut all, mut sources, mut targets) = (Pointers::new(), Pointers::new(), Pointers::new());
    let all = all.fill_mut(rows);
    let from = sources.fill(all.len(), |index| all[index].cast_const());
    let to = targets.fill(order.len(), |index| all[usize::from(order[index])]);
    let job = Job {
        coefficients,
        from,
        to,
        len,
        add: false,
        in_place: true,
    };
    dispatch!(path, combine(&job));
}

/// The vector form of [`crate::portable::reduce`].
pub(crate) fn reduce(path: Path, factors: &[u8], rows: &[u8], to: &mut [u8]) {
    if to.is_empty() {
        return;
    }
    let factors = &factors[..factors.len().min(rows.len() / to.len())];
    let mut sources = Pointers::new();
    let next = steps(rows.as_ptr(), |at| at.wrapping_add(to.len()));
    let from = sources.fill(factors.len(), next);
    let to = (to.as_mut_ptr(), to.len(), true);
    dispatch!(path, combine_one(factors, from, to));
}

/// Inserts a vector into a basis in one go, if its rows have a length that registers fit well;
/// otherwise gives `None` and does nothing.
///
/// `rows` holds a row of the given length for each of `pivots`, at least twice as long as `vector`, and one more, to
/// which the vector is added before it is reduced. The answer is the new pivot, if the vector is
/// innovative; only then do the rows change.
#[inline]
pub(crate) fn insert(
    path: Path,
    vector: &[u8],
    pivots: &[u8],
    (rows, len): (&mut [u8], usize),
) -> Option<Option<u8>> {
    if !fits(vector, pivots, rows, len) {
        return None;
    }
    let rows = rows.as_mut_ptr();
    dispatch!(path, insert(vector, pivots, rows, len))
}

/// The answer that [`insert`] would give.
#[inline]
pub(crate) fn probe(
    path: Path,
    vector: &[u8],
    pivots: &[u8],
    (rows, len): (&[u8], usize),
) -> Option<Option<u8>> {
    if !fits(vector, pivots, rows, len) {
        return None;
    }
    let rows = rows.as_ptr();
    dispatch!(path, probe(vector, pivots, rows, len))
}

/// Whether a vector fits the rows of a basis, of which there is one more than pivots.
fn fits(vector: &[u8], pivots: &[u8], rows: &[u8], len: usize) -> bool {
    vector.len() <= len / 2 && len.saturating_mul(pivots.len() + 1) <= rows.len()
}

/// The vector form of [`crate::portable::scale`].
pub(crate) fn scale(path: Path, factor: u8, data: &mut [u8]) {
    let (len, data) = (data.len(), data.as_mut_ptr());
    dispatch!(path, scale(factor, data, len));
}

/// The vector form of [`crate::portable::eliminate`].
pub(crate) fn eliminate(path: Path, rows: &mut [u8], column: usize, pivot: &[u8]) {
    if column >= pivot.len() {
        return;
    }
    let count = rows.len() / pivot.len();
    let (rows, len, pivot) = (rows.as_mut_ptr(), pivot.len(), pivot.as_ptr());
    dispatch!(path, eliminate(rows, count, len, column, pivot));
}

/// The starts of up to [`MAX_ROWS`] packets. Only what is used is ever written: clearing the rest
/// would push packets out of the first-level cache.
struct Pointers<T>([MaybeUninit<T>; MAX_ROWS]);

impl<T> Pointers<T> {
    fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; MAX_ROWS])
    }

    fn fill(&mut self, count: usize, mut pointer: impl FnMut(usize) -> T) -> &[T] {
        for (index, slot) in self.0.iter_mut().enumerate().take(count) {
            slot.write(pointer(index));
        }
        let filled = &self.0[..count];
        // SAFETY: the loop has written the first `count` slots, or the line above has panicked.
        unsafe { &*(core::ptr::from_ref(filled) as *const [T]) }
    }
}

// A view's rows lie in its buffer, so these sums and products do not overflow. Unchecked, the compiler computes several at a time.
impl Pointers<*const u8> {
    fn fill_from(&mut self, rows: &Rows<'_>) -> &[*const u8] {
        let (data, stride) = (rows.data().as_ptr(), rows.stride());
        match rows.selection() {
            None => self.fill(rows.count(), steps(data, |at| at.wrapping_add(stride))),
            Some(list) => self.fill(list.len(), |index| {
                data.wrapping_add(usize::from(list[index]).wrapping_mul(stride))
            }),
        }
    }
}

impl Pointers<*mut u8> {
    /// All are derived from one pointer to the buffer.
    fn fill_mut(&mut self, rows: &mut RowsMut<'_>) -> &[*mut u8] {
        let (stride, selection) = (rows.stride(), rows.selection());
        let (count, data) = (rows.count(), rows.data_mut().as_mut_ptr());
        match selection {
            None => self.fill(count, steps(data, |at| at.wrapping_add(stride))),
            Some(list) => self.fill(count, |index| {
                data.wrapping_add(usize::from(list[index]).wrapping_mul(stride))
            }),
        }
    }
}

/// One value after the other, each made of the one before.
fn steps<T: Copy>(first: T, next: impl Fn(T) -> T) -> impl FnMut(usize) -> T {
    let mut value = first;
    move |_| {
        let this = value;
        value = next(this);
        this
    }
}
