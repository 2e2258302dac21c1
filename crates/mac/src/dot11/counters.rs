//! What a station has done so far.

use chappe_core::Drops;

/// Counts since the station was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Unicast data frames put on the air, retransmissions included.
    pub data_sent: u64,
    /// Of these, retransmissions.
    pub retries: u64,
    /// Broadcast data frames put on the air.
    pub broadcast_sent: u64,
    /// RTS frames sent.
    pub rts_sent: u64,
    /// CTS frames sent.
    pub cts_sent: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// RTS frames left unanswered because the medium was reserved.
    pub cts_withheld: u64,
    /// Data frames that no ACK followed.
    pub ack_timeouts: u64,
    /// RTS frames that no CTS followed.
    pub cts_timeouts: u64,
    /// Unicast frames confirmed.
    pub acknowledged: u64,
    /// Unicast frames given up at a retry limit.
    pub failed: u64,
    /// Turns that the link node did not use: it had nothing to send when the moment came.
    pub declined: u64,
    /// Data frames for this station or for everybody, handed up.
    pub received: u64,
    /// Data frames for others, handed up.
    pub overheard: u64,
    /// Retransmissions of frames received before; acknowledged, not handed up.
    pub duplicates: u64,
    /// Frames that the radio found but could not decode.
    pub undecodable: u64,
    /// Times two access categories of this station reached their boundary together and the less urgent one drew anew.
    pub internal_collisions: u64,
    /// Frames sent a SIFS after the exchange before, within one transmission opportunity.
    pub txop_frames: u64,
    /// Bursts that claimed the channel (ZMAC+).
    pub bursts_sent: u64,
    /// Claims that ended without an own transmission, because somebody else's came first (ZMAC+).
    pub claims_lost: u64,
    /// Notifications of contention sent or passed on (ZMAC+).
    pub notices_sent: u64,
    /// Times energy began too late before the own transmission to be noticed.
    pub committed: u64,
    /// Frames not used, by reason.
    pub drops: Drops,
}

impl Counters {
    /// One more.
    pub(super) fn add(counter: &mut u64) {
        *counter = counter.saturating_add(1);
    }
}
