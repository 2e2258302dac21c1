//! What a sender may put into a frame, and what it chose.

use crate::header::COVER;

/// The chance that one frame has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    /// Frames of full size that still fit, this one included.
    pub fits: usize,
    /// Octets of a body for which the frame has room; more than any body has where nothing limits it.
    pub room: usize,
    /// Octets by which the report exceeds what frames reserve for it. A packet that may be cut leaves them free.
    pub report: usize,
    /// Whether repairs may be sent that no plan asks for.
    pub fill: bool,
    /// A frame leaves in any case, so small packets need not wait for others.
    pub flush: bool,
    /// Whether what was lost may be sent again here, and what is new may be sent.
    pub again: bool,
    pub new: bool,
}

/// What the next frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The body with this number, for the first time or again.
    Body(u32),
    /// Two bodies that share a frame: a short one, and a new one beside it.
    Pair {
        first: u32,
        second: u32,
        /// Octets of both as [`put_among`](crate::header::put_among) writes them.
        len: usize,
    },
    /// A body beside another frame that carries it, on another path.
    Copy(u32),
    /// A repair. Its bitmap and its octets are in the buffers of [`Out`].
    Repair {
        first: u32,
        index: u8,
        /// Octets of the bitmap.
        cover: usize,
        /// Octets of the combination.
        len: usize,
    },
}

/// Buffers in which a repair is made.
pub(crate) struct Out<'a> {
    /// Room for the bitmap.
    pub cover: &'a mut [u8; COVER],
    /// Room for the combination.
    pub coded: &'a mut [u8],
}
