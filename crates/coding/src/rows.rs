//! Views of equally long rows (packets) inside one flat buffer.

use core::fmt;

/// Most rows that a view, a batch or an erasure code may have: the number of field elements.
pub const MAX_ROWS: usize = 256;

/// The numbers of rows, 0, 1, 2, ...: the order that permutes nothing.
pub(crate) static INDICES: [u8; MAX_ROWS] = {
    let mut indices = [0; MAX_ROWS];
    let mut index = 0;
    while index < MAX_ROWS {
        indices[index] = index as u8;
        index += 1;
    }
    indices
};

/// Why buffers and numbers given by the caller do not fit each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapeError {
    /// A number of packets outside what the operation allows.
    Count {
        /// The number of packets given.
        given: usize,
        /// The largest number allowed; the smallest is 1.
        most: usize,
    },
    /// A stride shorter than the row itself.
    Stride {
        /// The stride given, in bytes.
        given: usize,
        /// The length of a row, in bytes.
        row: usize,
    },
    /// A buffer of the wrong size.
    Buffer {
        /// The size given, in bytes.
        given: usize,
        /// The size needed, in bytes (the least for packet buffers, the exact one for
        /// coefficients and single packets).
        needed: usize,
    },
    /// An index of a packet that does not exist, or that stands twice in a list.
    Index {
        /// The packet index given.
        given: usize,
        /// The number of packets: indices run from 0 to one less.
        count: usize,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Count { given, most } => write!(f, "{given} packets given, 1 to {most} allowed"),
            Self::Stride { given, row } => write!(f, "stride of {given} B for rows of {row} B"),
            Self::Buffer { given, needed } => write!(f, "buffer of {given} B, {needed} B needed"),
            Self::Index { given, count } => {
                write!(
                    f,
                    "packet {given} of {count} does not exist or is listed twice"
                )
            }
        }
    }
}

impl core::error::Error for ShapeError {}

/// How many packets of what length lie at what distance in a buffer. All lengths in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    count: usize,
    len: usize,
    stride: usize,
}

impl Shape {
    /// `count` packets (1 to [`MAX_ROWS`]) of `len` bytes, one directly after the other.
    pub const fn new(count: usize, len: usize) -> Result<Self, ShapeError> {
        if count == 0 || count > MAX_ROWS {
            return Err(ShapeError::Count {
                given: count,
                most: MAX_ROWS,
            });
        }
        Ok(Self {
            count,
            len,
            stride: len,
        })
    }

    /// The same packets, each starting `stride` bytes after the one before.
    pub const fn with_stride(self, stride: usize) -> Result<Self, ShapeError> {
        if stride < self.len {
            return Err(ShapeError::Stride {
                given: stride,
                row: self.len,
            });
        }
        Ok(Self { stride, ..self })
    }

    /// The same packets at the next multiple of 64 bytes. In a buffer that is itself aligned to
    /// 64 bytes no vector load then straddles a cache line, which is worth most where one packet
    /// at a time is coded.
    #[must_use]
    pub const fn padded(self) -> Self {
        let stride = self.len.div_ceil(64).saturating_mul(64);
        Self { stride, ..self }
    }

    /// The number of packets.
    #[must_use]
    pub const fn count(self) -> usize {
        self.count
    }

    /// The length of a packet in bytes.
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether the packets have no bytes.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The distance of one packet's start from the next one's, in bytes.
    #[must_use]
    pub const fn stride(self) -> usize {
        self.stride
    }

    /// The bytes a buffer must have at least. The padding after the last packet is not needed.
    #[must_use]
    pub const fn bytes(self) -> usize {
        (self.count - 1)
            .saturating_mul(self.stride)
            .saturating_add(self.len)
    }

    /// The same packets, but only the first `count` of them (at most as many as there are).
    pub(crate) const fn first(self, count: usize) -> Option<Self> {
        if count == 0 || count > self.count {
            None
        } else {
            Some(Self { count, ..self })
        }
    }

    /// Where the packet at `index` of a selection, or of all, starts.
    #[inline]
    fn start(self, selection: Option<&[u8]>, index: usize) -> Option<usize> {
        let row = match selection {
            Some(selection) => usize::from(*selection.get(index)?),
            None if index < self.count => index,
            None => return None,
        };
        Some(row * self.stride)
    }

    const fn check(self, buffer: usize) -> Result<(), ShapeError> {
        if buffer < self.bytes() {
            return Err(ShapeError::Buffer {
                given: buffer,
                needed: self.bytes(),
            });
        }
        Ok(())
    }

    fn check_selection(self, selection: &[u8]) -> Result<(), ShapeError> {
        if selection.is_empty() || selection.len() > MAX_ROWS {
            return Err(ShapeError::Count {
                given: selection.len(),
                most: MAX_ROWS,
            });
        }
        match selection
            .iter()
            .find(|&&row| usize::from(row) >= self.count)
        {
            Some(&row) => Err(ShapeError::Index {
                given: row.into(),
                count: self.count,
            }),
            None => Ok(()),
        }
    }
}

/// A read-only view of packets in a flat buffer.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    data: &'a [u8],
    shape: Shape,
    selection: Option<&'a [u8]>,
}

impl<'a> Rows<'a> {
    /// The packets of `shape` in `data`, which may be longer than needed.
    #[inline]
    pub const fn new(shape: Shape, data: &'a [u8]) -> Result<Self, ShapeError> {
        match shape.check(data.len()) {
            Ok(()) => Ok(Self {
                data,
                shape,
                selection: None,
            }),
            Err(error) => Err(error),
        }
    }

    /// Only the packets with the listed indices, in that order.
    pub fn select(self, selection: &'a [u8]) -> Result<Self, ShapeError> {
        self.shape.check_selection(selection)?;
        Ok(Self {
            selection: Some(selection),
            ..self
        })
    }

    /// The number of packets in the view.
    #[must_use]
    pub fn count(&self) -> usize {
        self.selection.map_or(self.shape.count, <[u8]>::len)
    }

    /// The length of a packet in bytes.
    #[must_use]
    pub fn row_len(&self) -> usize {
        self.shape.len
    }

    /// The whole buffer, gaps between rows included.
    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The distance of the packets in the buffer.
    pub(crate) fn stride(&self) -> usize {
        self.shape.stride
    }

    /// The packets of the buffer that are in the view, if not all.
    pub(crate) fn selection(&self) -> Option<&'a [u8]> {
        self.selection
    }

    /// The packet at `index` of the view, or `None` beyond its end.
    #[inline]
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&'a [u8]> {
        let start = self.shape.start(self.selection, index)?;
        self.data.get(start..start + self.shape.len)
    }
}

/// A writable view of packets in a flat buffer.
#[derive(Debug)]
pub struct RowsMut<'a> {
    data: &'a mut [u8],
    shape: Shape,
    selection: Option<&'a [u8]>,
}

impl<'a> RowsMut<'a> {
    /// The packets of `shape` in `data`, which may be longer than needed.
    #[inline]
    pub fn new(shape: Shape, data: &'a mut [u8]) -> Result<Self, ShapeError> {
        shape.check(data.len())?;
        Ok(Self {
            data,
            shape,
            selection: None,
        })
    }

    /// One packet, of the length of `data`.
    pub fn single(data: &'a mut [u8]) -> Self {
        let shape = Shape {
            count: 1,
            len: data.len(),
            stride: data.len(),
        };
        Self {
            data,
            shape,
            selection: None,
        }
    }

    /// Only the packets with the listed indices, in that order.
    pub fn select<'b>(self, selection: &'b [u8]) -> Result<RowsMut<'b>, ShapeError>
    where
        'a: 'b,
    {
        self.shape.check_selection(selection)?;
        Ok(RowsMut {
            data: self.data,
            shape: self.shape,
            selection: Some(selection),
        })
    }

    /// The same packets for a shorter time, so that the view can be used again.
    #[inline]
    pub fn reborrow(&mut self) -> RowsMut<'_> {
        RowsMut {
            data: self.data,
            shape: self.shape,
            selection: self.selection,
        }
    }

    /// The number of packets in the view.
    #[must_use]
    pub fn count(&self) -> usize {
        self.selection.map_or(self.shape.count, <[u8]>::len)
    }

    /// The length of a packet in bytes.
    #[must_use]
    pub fn row_len(&self) -> usize {
        self.shape.len
    }

    /// The same packets to read.
    #[must_use]
    pub fn as_rows(&self) -> Rows<'_> {
        Rows {
            data: self.data,
            shape: self.shape,
            selection: self.selection,
        }
    }

    /// The packet at `index` of the view, or `None` beyond its end.
    #[inline]
    pub fn row_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        let start = self.shape.start(self.selection, index)?;
        self.data.get_mut(start..start + self.shape.len)
    }

    /// Where the packet at `index` of the view starts in [`data_mut`](Self::data_mut).
    #[inline]
    pub(crate) fn start(&self, index: usize) -> Option<usize> {
        self.shape.start(self.selection, index)
    }

    /// The distance of the packets in the buffer.
    pub(crate) fn stride(&self) -> usize {
        self.shape.stride
    }

    /// The packets of the buffer that are in the view, if not all.
    pub(crate) fn selection(&self) -> Option<&'a [u8]> {
        self.selection
    }

    /// Which packet of the buffer is at `index` of the view.
    pub(crate) fn index(&self, index: usize) -> Option<u8> {
        match self.selection {
            Some(selection) => selection.get(index).copied(),
            None => u8::try_from(index).ok(),
        }
    }

    /// The whole buffer, gaps between rows included.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        self.data
    }
}
