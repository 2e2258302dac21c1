//! Results and errors of transfers, for the application.

use alloc::vec::Vec;
use core::fmt;

use chappe_core::Instant;

/// The progress of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Batches decoded, and accepted if the application checks them.
    pub batches_done: u32,
    /// Batches of the object.
    pub batches: u32,
    /// Octets of the object decoded.
    pub bytes: usize,
    /// When the last batch was decoded. An empty object is complete at once.
    pub complete_at: Option<Instant>,
}

/// What [`Node::offer`](crate::Node::offer) reports about the receivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Receivers that no path reaches, or from which no path leads back for their ACKs. They are omitted;
    /// the transfer serves the rest.
    pub unreachable: Vec<u16>,
    /// MORE: receivers that pruning has cut off. They are *not* omitted: MORE waits for them forever, which is
    /// the paper's Fig. 2. Offer without them, or with a smaller threshold, to finish.
    pub cut_off: Vec<u16>,
    /// Forwarding nodes of the first plan, which serves all receivers; the source is not counted.
    pub forwarders: usize,
}

/// Why an object cannot be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferError {
    /// The object offered before is not finished.
    Busy,
    /// A receiver that is not a node of the network, or the source itself.
    Receiver(u16),
    /// More batches than a frame can count.
    TooLarge,
    /// The list of forwarding nodes does not fit into a frame.
    Header {
        /// Octets of a data frame.
        needed: usize,
        /// The largest frame that is allowed.
        frame_max: usize,
    },
}

/// Why an object cannot be expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectError {
    /// The source is not a node of the network, or this node itself.
    Source(u16),
    /// More batches than a frame can count.
    TooLarge,
}

impl fmt::Display for OfferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OfferError::Busy => f.write_str("the object offered before is still being sent"),
            OfferError::Receiver(node) => {
                write!(
                    f,
                    "node {node} cannot be a receiver: it is the source or does not exist"
                )
            }
            OfferError::TooLarge => f.write_str("the object has more than 4,294,967,295 batches"),
            OfferError::Header { needed, frame_max } => write!(
                f,
                "with its list of forwarding nodes a frame has {needed} octets, {frame_max} allowed"
            ),
        }
    }
}

impl core::error::Error for OfferError {}

impl fmt::Display for ExpectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectError::Source(node) => {
                write!(
                    f,
                    "node {node} cannot be the source: it is this node or does not exist"
                )
            }
            ExpectError::TooLarge => f.write_str("the object has more than 4,294,967,295 batches"),
        }
    }
}

impl core::error::Error for ExpectError {}
