//! What happened in a run, counted.

use chappe_core::Duration;

use crate::Losses;

/// Counts since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames put on the air.
    pub frames: u64,
    /// Receptions with a good check sequence, all receivers together.
    pub receptions: u64,
    /// Losses at receivers that a link exists for, by reason.
    pub lost: Losses,
    /// Events taken from the queue.
    pub events: u64,
    /// Arrivals at a receiver that were worked through.
    pub arrivals: u64,
    /// Calls into nodes: events told and deadlines met.
    pub calls: u64,
    /// Receptions whose bits a fault had changed without the check sequence showing it.
    pub falsified: u64,
    /// Each node's own share.
    pub nodes: Vec<NodeCounters>,
}

/// One node's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Frames it put on the air.
    pub frames: u64,
    /// Their octets, check sequences included.
    pub octets: u64,
    /// The time they took.
    pub airtime: Duration,
    /// Frames it received.
    pub receptions: u64,
    /// Frames of other networks that it received whole; it is not told of them.
    pub foreign: u64,
    /// Frames it began to receive and lost, those included that it gave up itself.
    pub failures: u64,
    /// How long its radio transmitted, in air time up to the present of the run. The three spans add up to it.
    pub transmitting: Duration,
    /// How long it listened or received, turning around included.
    pub listening: Duration,
    /// How long its receiver was off, or the node down, and it did not transmit.
    pub off: Duration,
}
