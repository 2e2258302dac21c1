//! Counters of a run and of each node.

use std::fmt;

use chappe_core::Duration;

use crate::Losses;

/// Counts since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames put on the air.
    pub frames: u64,
    /// Receptions with a good check sequence, summed over receivers.
    pub receptions: u64,
    /// Losses at receivers that have a link from the transmitter, by reason.
    pub lost: Losses,
    /// Outcomes that these frames owe: one for each receiver that has a link from the transmitter. See
    /// [`Accounts`](crate::Accounts).
    pub owed: u64,
    /// Events taken from the queue.
    pub events: u64,
    /// Pairs of a frame and a receiver that its signal reached.
    pub arrivals: u64,
    /// Calls into nodes: events and deadlines.
    pub calls: u64,
    /// Receptions with bit errors of a fault that the check sequence did not detect.
    pub falsified: u64,
    /// Frames that nodes got from an attacker: [`Fault::Forge`](crate::Fault::Forge).
    pub forged: u64,
    /// The counters of each node, in their order.
    pub nodes: Vec<NodeCounters>,
}

/// What became of the frames of a run: every receiver with a link from the transmitter receives a frame, loses it for one
/// reason, or still waits for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounts {
    /// Pairs of a frame and a receiver that has a link from its transmitter.
    pub owed: u64,
    /// Frames received, summed over receivers.
    pub received: u64,
    /// Frames lost, summed over receivers.
    pub lost: u64,
    /// Frames whose outcome at a receiver is not known yet.
    pub in_flight: u64,
}

impl Accounts {
    /// Whether no outcome is missing and none was booked twice.
    pub fn balance(&self) -> bool {
        self.owed == self.received + self.lost + self.in_flight
    }
}

impl fmt::Display for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Accounts {
            owed,
            received,
            lost,
            in_flight,
        } = self;
        write!(
            f,
            "{owed} outcomes owed, {received} received, {lost} lost, {in_flight} in flight"
        )
    }
}

/// Counters of one node's radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Frames that it transmitted.
    pub frames: u64,
    /// Octets of these frames, check sequences included.
    pub octets: u64,
    /// Time on the air of these frames.
    pub airtime: Duration,
    /// Frames that it received with a good check sequence.
    pub receptions: u64,
    /// Frames of other networks that it received whole; they are not delivered to the node.
    pub foreign: u64,
    /// Frames that it locked on to and lost, including those that it aborted.
    pub failures: u64,
    /// How long its radio transmitted, in air time up to now. This span and the next two add up to the air time.
    pub transmitting: Duration,
    /// How long it listened or received, turning around included.
    pub listening: Duration,
    /// How long its receiver was off, or the node down, and it did not transmit.
    pub off: Duration,
}
