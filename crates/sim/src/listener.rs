//! What a cursor tells nodes while it is on its way.

use chappe_core::TraceEvent;

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

    /// Asks a node what it wants after it was notified at `at`.
    fn settle(&mut self, node: NodeId, at: AirTime) -> Wish;

    /// What a node recorded of itself since it was last asked, one event at a time.
    fn trace(&mut self, node: NodeId) -> Option<TraceEvent>;
}

/// What a node wants after it was notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    /// A deadline before the one that waits in the queue.
    Sooner,
    /// Something of its radio, which the listener keeps.
    Request,
}
