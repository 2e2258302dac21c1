//! What a link has done so far.

use chappe_core::Drops;

/// Counts of one link at one end since it was made. Bodies are what packets travel in, one or several to a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets taken for sending.
    pub offered: u64,
    /// Packets refused: no room, too long, or empty.
    pub refused: u64,
    /// Packets that waited past their deadline and were never sent.
    pub expired: u64,
    /// Packets put into bodies.
    pub packets: u64,
    /// Bodies sent for the first time.
    pub bodies: u64,
    /// Bodies sent again.
    pub repeats: u64,
    /// Repairs sent because a plan asked for them.
    pub repairs: u64,
    /// Repairs sent because there was room.
    pub fills: u64,
    /// Frames in which copies of small bodies rode along.
    pub copies: u64,
    /// Frames without body.
    pub notes: u64,
    /// Octets of all frames sent.
    pub octets_sent: u64,
    /// Bodies that the peer has reported.
    pub delivered: u64,
    /// Of these, later than their class's deadline, or maybe so: reports are lost, too.
    pub late: u64,
    /// Bodies given up: retries or deadline spent, or nothing recovers them. One that a later report tells of is taken
    /// back, where packets need no order.
    pub given_up: u64,
    /// Bodies of which nobody knows, as the peer has started over.
    pub lost_by_restart: u64,
    /// Reports about frames that were never sent.
    pub strange_reports: u64,
    /// Frames received that were used.
    pub frames_received: u64,
    /// Packets handed up.
    pub packets_received: u64,
    /// Bodies received by way of repairs.
    pub recovered: u64,
    /// Times the peer was found to have started over.
    pub peer_restarts: u64,
    /// Frames not used, by reason.
    pub drops: Drops,
}

impl Counters {
    /// Frames sent for each body, less one: what repetition and redundancy cost.
    pub fn overhead(&self) -> f64 {
        let more = self.repeats + self.repairs + self.fills;
        more as f64 / self.bodies.max(1) as f64
    }

    /// Share of settled bodies that did not arrive, or not in time.
    pub fn residual(&self) -> f64 {
        let settled = self.delivered + self.given_up;
        (self.late + self.given_up) as f64 / settled.max(1) as f64
    }
}
