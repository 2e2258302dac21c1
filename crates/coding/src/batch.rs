//! A batch at a relay or receiver.

use crate::basis::{Basis, Insertion};
use crate::draw;
use crate::encoder::unit;
use crate::error::BatchError;
use crate::kernel::Kernel;
use crate::matrix::Matrix;
use crate::rows::{Rows, RowsMut, Shape, ShapeError};

/// Packets that [`Batch::recode_many`] makes per pass over the payloads.
const RECODED_AT_ONCE: usize = 32;

/// The innovative packets of a batch of up to `K`, stored as received, with the matrices to recode
/// and decode them.
///
/// One type serves relays, receivers, and nodes that are both: a relay can continue to recode after
/// it has decoded. `B` is the memory for payloads and belongs to the caller: a `Vec<u8>`, an array, a
/// `&mut [u8]` of [`Shape::bytes`] bytes.
#[derive(Debug, Clone)]
pub struct Batch<const K: usize, B> {
    basis: Basis<K>,
    shape: Shape,
    payloads: B,
    decoded: bool,
}

impl<const K: usize, B: AsRef<[u8]> + AsMut<[u8]>> Batch<K, B> {
    /// An empty batch of `shape.count()` packets (1 to `K`) of `shape.len()` bytes, whose payloads
    /// will lie in `payloads`.
    pub fn new(shape: Shape, payloads: B) -> Result<Self, ShapeError> {
        let basis = Basis::new(shape.count())?;
        Rows::new(shape, payloads.as_ref())?;
        Ok(Self {
            basis,
            shape,
            payloads,
            decoded: false,
        })
    }

    /// The same batch, computed by the given kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self {
            basis: self.basis.with_kernel(kernel),
            ..self
        }
    }

    /// Forgets everything and starts a batch of another shape in the same memory. On an error
    /// nothing changes.
    pub fn reset(&mut self, shape: Shape) -> Result<(), ShapeError> {
        Rows::new(shape, self.payloads.as_ref())?;
        self.basis.reset(shape.count())?;
        self.shape = shape;
        self.decoded = false;
        Ok(())
    }

    /// Returns the memory; after [`decode`](Self::decode) it holds the source packets.
    pub fn into_payloads(self) -> B {
        self.payloads
    }

    /// The packets of the batch: number, length, stride.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The coefficient side of the batch, without payloads.
    #[must_use]
    pub fn basis(&self) -> &Basis<K> {
        &self.basis
    }

    /// The number of linearly independent packets stored.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.basis.rank()
    }

    /// How many innovative packets are still needed to decode.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.basis.missing()
    }

    /// Whether [`decode`](Self::decode) can succeed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.basis.is_full()
    }

    /// Whether a packet with these coefficients would raise the rank. Its payload is not needed.
    #[must_use]
    pub fn is_innovative(&self, coefficients: &[u8]) -> bool {
        self.basis.is_innovative(coefficients)
    }

    /// Inserts a packet. The payload is copied if the coefficients are innovative, and not read
    /// otherwise.
    pub fn insert(&mut self, coefficients: &[u8], payload: &[u8]) -> Insertion {
        if payload.len() != self.shape.len() {
            return Insertion::Malformed;
        }
        // Read first: inserting raises it.
        let index = self.basis.rank();
        let insertion = self.basis.insert(coefficients);
        if insertion.is_innovative()
            && let Ok(mut rows) = RowsMut::new(self.shape, self.payloads.as_mut())
            && let Some(row) = rows.row_mut(index)
        {
            row.copy_from_slice(payload);
        }
        insertion
    }

    /// Makes a fresh random combination of everything stored: its coefficients over the source
    /// packets, never all zero, and its payload. `random` fills a slice with independent uniform
    /// bytes.
    ///
    /// The combination is uniform over the non-zero vectors of the span, whatever packets it was
    /// built from: the factors are drawn over the rows of the reduced basis.
    pub fn recode(
        &self,
        mut random: impl FnMut(&mut [u8]),
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), BatchError> {
        self.check_coefficients(coefficients.len(), 1)?;
        let from = self.stored()?;
        let mut factors = [0; K];
        let sum = self.draw(&mut factors, &mut random);
        self.write(sum, from, coefficients, payload)
    }

    /// As [`recode`](Self::recode) for as many packets as `payloads` has; `coefficients` takes one
    /// vector for each, one after the other. Two to three times as fast per packet.
    pub fn recode_many(
        &self,
        mut random: impl FnMut(&mut [u8]),
        coefficients: &mut [u8],
        shape: Shape,
        payloads: &mut [u8],
    ) -> Result<(), BatchError> {
        self.check_coefficients(coefficients.len(), shape.count())?;
        // Only the check: an error must come before anything is written.
        RowsMut::new(shape, payloads)?;
        let from = self.stored()?;
        let (packets, rank) = (self.basis.packets(), self.rank());
        let ordered = self.basis.is_ordered();
        let vectors = coefficients.chunks_mut(packets * RECODED_AT_ONCE);
        for (chunk, vectors) in vectors.enumerate() {
            let count = vectors.len() / packets;
            let start = chunk * RECODED_AT_ONCE * shape.stride();
            let Some(shape) = shape.first(count) else {
                break;
            };
            let to = RowsMut::new(shape, payloads.get_mut(start..).unwrap_or_default())?;
            if ordered {
                draw::non_zero_rows(vectors, rank, &mut random);
                self.combine(Matrix::dense(vectors, count, rank)?, from, to)?;
            } else {
                let mut factors = [[0; K]; RECODED_AT_ONCE];
                let factors = factors.as_flattened_mut();
                let factors = factors.get_mut(..count * rank).unwrap_or_default();
                draw::non_zero_rows(factors, rank, &mut random);
                let factors = Matrix::dense(factors, count, rank)?;
                self.basis.vectors(factors, vectors)?;
                self.combine(factors, from, to)?;
            }
        }
        Ok(())
    }

    /// Sums of the rows of the basis, as payloads.
    #[inline]
    fn combine(
        &self,
        factors: Matrix<'_>,
        from: Rows<'_>,
        mut to: RowsMut<'_>,
    ) -> Result<(), ShapeError> {
        let rows = self.basis.weights()?;
        let kernel = self.kernel();
        if kernel.combine_product((factors, rows), from, to.reborrow())? {
            return Ok(());
        }
        let mut product = [[0; K]; RECODED_AT_ONCE];
        let shape = Shape::new(factors.rows(), rows.columns())?;
        let product = product.as_flattened_mut();
        let product = product.get_mut(..shape.bytes()).unwrap_or_default();
        kernel.combine_matrix(factors, rows.as_rows()?, RowsMut::new(shape, product)?)?;
        let weights = Matrix::dense(product, factors.rows(), rows.columns())?;
        kernel.combine_matrix(weights, from, to)
    }

    /// Computes the source packets in place of the stored packets. Afterwards [`source`](Self::source)
    /// returns all of them, and recoding continues to work. A second call does nothing.
    pub fn decode(&mut self) -> Result<(), BatchError> {
        if self.decoded {
            return Ok(());
        }
        let mut rows = RowsMut::new(self.shape, self.payloads.as_mut())?;
        self.basis.solve_in_place(&mut rows)?;
        self.decoded = true;
        Ok(())
    }

    /// Computes the source packets into another place and leaves the batch as it is.
    pub fn decode_into(&self, sources: RowsMut<'_>) -> Result<(), BatchError> {
        let missing = BatchError::Incomplete {
            missing: self.missing(),
        };
        self.basis
            .solve(self.stored().map_err(|_| missing)?, sources)
    }

    /// Source packet `index`, once the batch is [decoded](Self::decode).
    #[must_use]
    pub fn source(&self, index: usize) -> Option<&[u8]> {
        let rows = Rows::new(self.shape, self.payloads.as_ref()).ok()?;
        rows.row(index).filter(|_| self.decoded)
    }

    /// Whether source packet `index` can be read already: it came as it was, or the packets so far
    /// happen to give it.
    #[must_use]
    pub fn can_read(&self, index: usize) -> bool {
        self.basis.weights_of(index).is_some()
    }

    /// Computes source packet `index` alone, before the batch is full if
    /// [`can_read`](Self::can_read) says so.
    pub fn read(&self, index: usize, payload: &mut [u8]) -> Result<(), BatchError> {
        let missing = BatchError::Incomplete {
            missing: self.missing().max(1),
        };
        let weights = self.basis.weights_of(index).ok_or(missing)?;
        let weights = weights.get(..self.rank()).unwrap_or_default();
        Ok(self
            .kernel()
            .combine(weights, self.stored()?, RowsMut::single(payload))?)
    }

    /// Writes row `index` of the reduced basis, below the rank: its coefficients and its payload. All rows together span what the batch
    /// knows, and no fewer do.
    pub fn reduced(
        &self,
        index: usize,
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), BatchError> {
        self.check_coefficients(coefficients.len(), 1)?;
        let from = self.stored()?;
        let mut factors = [0; K];
        let factors = factors.get_mut(..self.rank()).unwrap_or_default();
        unit(index, factors);
        let sum = self.basis.combination(factors);
        self.write(sum, from, coefficients, payload)
    }

    /// Writes a vector of the span, and the payload that its weights make of the stored packets.
    #[inline]
    fn write(
        &self,
        [vector, weights]: [[u8; K]; 2],
        from: Rows<'_>,
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), BatchError> {
        coefficients.copy_from_slice(vector.get(..self.basis.packets()).unwrap_or_default());
        let weights = weights.get(..self.rank()).unwrap_or_default();
        let to = RowsMut::single(payload);
        Ok(self.kernel().combine(weights, from, to)?)
    }

    fn kernel(&self) -> Kernel {
        self.basis.kernel()
    }

    /// The payloads stored so far.
    fn stored(&self) -> Result<Rows<'_>, BatchError> {
        let shape = self.shape.first(self.rank()).ok_or(BatchError::Empty)?;
        Ok(Rows::new(shape, self.payloads.as_ref())?)
    }

    fn check_coefficients(&self, given: usize, vectors: usize) -> Result<(), ShapeError> {
        let needed = self.basis.packets() * vectors;
        if given == needed {
            Ok(())
        } else {
            Err(ShapeError::Buffer { given, needed })
        }
    }

    /// A random vector of the span and its weights over the stored packets.
    fn draw(&self, factors: &mut [u8; K], random: &mut impl FnMut(&mut [u8])) -> [[u8; K]; 2] {
        let factors = factors.get_mut(..self.rank()).unwrap_or_default();
        draw::non_zero(factors, random);
        self.basis.combination(factors)
    }
}

/// A coded packet kept ready for the next chance to send, in the caller's memory.
///
/// Making a combination takes longer than a short frame on the air. MORE therefore makes it
/// beforehand, and mixes in each packet that arrives in the meantime, so that it is as fresh as
/// one made at the last moment (Chachulski et al., SIGCOMM 2007, "pre-coding").
#[derive(Debug)]
pub struct Precoded<'a> {
    /// Coefficients over the source packets.
    pub coefficients: &'a mut [u8],
    /// The combination of the payloads.
    pub payload: &'a mut [u8],
}

impl Precoded<'_> {
    /// Adds `factor` times a packet that has just come in. For a uniform combination the factor is
    /// a random byte, 0 included, and the packet innovative.
    pub fn update(
        &mut self,
        kernel: Kernel,
        factor: u8,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<(), ShapeError> {
        if payload.len() != self.payload.len() {
            let (given, needed) = (payload.len(), self.payload.len());
            return Err(ShapeError::Buffer { given, needed });
        }
        kernel.axpy(factor, coefficients, self.coefficients)?;
        kernel.axpy(factor, payload, self.payload)
    }
}
