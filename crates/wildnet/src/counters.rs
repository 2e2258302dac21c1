//! Counters of a link.

use chappe_core::Drops;

/// Counters of one end of a link since it was made. A body carries one or several packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets accepted for sending.
    pub offered: u64,
    /// Packets refused: no room, too long, or empty.
    pub refused: u64,
    /// Packets dropped before their first transmission, because they could not meet their deadline.
    pub expired: u64,
    /// Packets put into bodies.
    pub packets: u64,
    /// Bodies sent for the first time.
    pub bodies: u64,
    /// Retransmissions of bodies, probes included.
    pub repeats: u64,
    /// Retransmissions of bodies whose frames had only been overtaken by later ones.
    pub needless: u64,
    /// Bodies sent on another path beside the one that carries them: copies of classes that take every path, and probes.
    pub twins: u64,
    /// Times that a path stopped as far as reports on other paths showed.
    pub doubts: u64,
    /// Repairs sent because a plan asked for them.
    pub repairs: u64,
    /// Repairs sent to fill the time of a slot.
    pub fills: u64,
    /// Frames that carried copies of small bodies.
    pub copies: u64,
    /// Notes sent (frames without body).
    pub notes: u64,
    /// Octets of all frames sent.
    pub octets_sent: u64,
    /// Bodies that the peer has reported.
    pub delivered: u64,
    /// Of these, bodies that may have arrived after their class's deadline; lost reports make it an upper bound.
    pub late: u64,
    /// Bodies given up: retries or deadline spent, or nothing recovers them. Where packets need no order, a body that a later
    /// report confirms is subtracted again.
    pub given_up: u64,
    /// Bodies given up because the peer has started over; some may have arrived.
    pub lost_by_restart: u64,
    /// Reports ignored because they are about frames that this end did not send to this start of the peer.
    pub strange_reports: u64,
    /// Frames received and used.
    pub frames_received: u64,
    /// Packets delivered to the owner.
    pub packets_received: u64,
    /// Packets not delivered since a part of them came and another one did not: bodies were given up, or an end has started over.
    pub torn: u64,
    /// Bodies recovered from repairs.
    pub recovered: u64,
    /// Restarts of the peer that were noticed.
    pub peer_restarts: u64,
    /// Frames dropped, by reason.
    pub drops: Drops,
}

impl Counters {
    /// Retransmissions and repairs sent per body.
    pub fn overhead(&self) -> f64 {
        let more = self.repeats + self.twins + self.repairs + self.fills;
        more as f64 / self.bodies.max(1) as f64
    }

    /// Share of settled bodies that did not arrive in time.
    pub fn residual(&self) -> f64 {
        let settled = self.delivered + self.given_up;
        (self.late + self.given_up) as f64 / settled.max(1) as f64
    }
}
