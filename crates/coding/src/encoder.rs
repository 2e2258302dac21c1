//! Coded packets at the source.

use crate::basis::MAX_BATCH;
use crate::draw;
use crate::kernel::Kernel;
use crate::rows::{Rows, RowsMut, ShapeError};

/// Makes coded packets of a batch whose source packets are all at hand. It borrows them and keeps
/// nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Encoder<'a> {
    sources: Rows<'a>,
    kernel: Kernel,
}

impl<'a> Encoder<'a> {
    /// An encoder of the 1 to [`MAX_BATCH`] packets of one batch.
    pub fn new(sources: Rows<'a>) -> Result<Self, ShapeError> {
        if sources.count() > MAX_BATCH {
            return Err(ShapeError::Count {
                given: sources.count(),
                most: MAX_BATCH,
            });
        }
        Ok(Self {
            sources,
            kernel: Kernel::best(),
        })
    }

    /// The same encoder, computing by the given kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// The number of packets in the batch, which is the length of a coefficient vector.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.sources.count()
    }

    /// Source packet `index` as it is: the payload of a systematic packet, whose coefficients are
    /// [`unit(index, ..)`](unit()). `None` beyond the batch.
    #[must_use]
    pub fn source(&self, index: usize) -> Option<&'a [u8]> {
        self.sources.row(index)
    }

    /// The payload of one coded packet with the given coefficients.
    pub fn encode(&self, coefficients: &[u8], payload: &mut [u8]) -> Result<(), ShapeError> {
        self.kernel
            .combine(coefficients, self.sources, RowsMut::single(payload))
    }

    /// The payloads of many coded packets; `coefficients` holds a row of [`packets`](Self::packets)
    /// bytes for each. This is two to three times as fast as one packet at a time.
    pub fn encode_many(
        &self,
        coefficients: &[u8],
        payloads: RowsMut<'_>,
    ) -> Result<(), ShapeError> {
        self.kernel.combine(coefficients, self.sources, payloads)
    }

    /// One coded packet with random coefficients, written to `coefficients`. `random` fills a
    /// slice with independent uniform bytes; the all-zero vector is never used.
    pub fn encode_random(
        &self,
        mut random: impl FnMut(&mut [u8]),
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), ShapeError> {
        if coefficients.len() != self.packets() {
            let (given, needed) = (coefficients.len(), self.packets());
            return Err(ShapeError::Buffer { given, needed });
        }
        draw::non_zero(coefficients, &mut random);
        self.encode(coefficients, payload)
    }
}

/// Writes the coefficients of the systematic packet `index`: 1 there and 0 elsewhere. Beyond the
/// vector it writes zeros only, which no receiver takes for innovative.
pub fn unit(index: usize, coefficients: &mut [u8]) {
    for (at, coefficient) in coefficients.iter_mut().enumerate() {
        *coefficient = u8::from(at == index);
    }
}
