//! What a cursor tells nodes while it is on its way.

use crate::bit_errors::{BitErrors, Heard};
use crate::frame::Frame;
use crate::id::NodeId;
use crate::{AirTime, Power};

/// The end of a frame at a node whose radio was locked on to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) node: NodeId,
    pub(crate) at: AirTime,
    pub(crate) started: AirTime,
    pub(crate) frame: &'a Frame,
    /// What the node hears of the frame; `None` if that was lost.
    pub(crate) heard: Option<Heard>,
    /// `None` where powers are symbols.
    pub(crate) power: Option<Power>,
    pub(crate) bit_errors: &'a BitErrors,
}

/// The carrier at a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier {
    pub(crate) node: NodeId,
    pub(crate) at: AirTime,
    pub(crate) busy: bool,
    pub(crate) since: AirTime,
}

/// Who hears of receptions and carriers. Behind a pointer: a cursor's loops are compiled once for all kinds of nodes.
pub(crate) trait Listener {
    /// Tells a node the end of a frame; the caller settles it.
    fn ended(&mut self, ending: Ending<'_>);

    /// Tells a node its carrier; the caller settles it.
    fn carrier(&mut self, carrier: Carrier);

    /// Asks a node what it wants after it was notified at `at`. Returns false if it has to be served: it asks for something of
    /// its radio, or for an earlier deadline than the one that waits in the queue.
    fn settle(&mut self, node: NodeId, at: AirTime) -> bool;
}
