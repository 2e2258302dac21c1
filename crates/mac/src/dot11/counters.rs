//! Counters of what a station has sent, received and dropped.

use chappe_core::Drops;

/// Counts since the station was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Unicast data frames put on the air, retransmissions included.
    pub data_sent: u64,
    /// Data frames of [`data_sent`](Self::data_sent) that were retransmissions.
    pub retries: u64,
    /// Broadcast data frames put on the air.
    pub broadcast_sent: u64,
    /// RTS frames put on the air.
    pub rts_sent: u64,
    /// CTS frames put on the air in answer to an RTS.
    pub cts_sent: u64,
    /// ACK frames put on the air, those for duplicates included.
    pub acks_sent: u64,
    /// RTS frames left unanswered because the medium was reserved.
    pub cts_withheld: u64,
    /// Data frames for which no ACK arrived in time.
    pub ack_timeouts: u64,
    /// RTS frames for which no CTS arrived in time.
    pub cts_timeouts: u64,
    /// Unicast data frames that were acknowledged.
    pub acknowledged: u64,
    /// Unicast frames given up at a retry limit.
    pub failed: u64,
    /// Channel accesses that the link node declined: it had nothing to send when asked.
    pub declined: u64,
    /// Data frames for this station or for a group, handed up.
    pub received: u64,
    /// Data frames for others, handed up.
    pub overheard: u64,
    /// Retransmissions of frames received before; acknowledged, not handed up.
    pub duplicates: u64,
    /// Frames that the radio found but could not decode.
    pub undecodable: u64,
    /// Internal collisions: two access categories reached their boundary together, and the less urgent one drew anew.
    pub internal_collisions: u64,
    /// Frames sent a SIFS after the exchange before, within one transmission opportunity.
    pub txop_frames: u64,
    /// A-MPDUs put on the air; their frames count in [`data_sent`](Self::data_sent).
    pub aggregates_sent: u64,
    /// BlockAcks put on the air.
    pub block_acks_sent: u64,
    /// A-MPDUs and requests for which no BlockAck arrived in time.
    pub block_ack_timeouts: u64,
    /// Requests for a missing BlockAck.
    pub block_ack_requests: u64,
    /// Bursts that claimed the channel (ZMAC+).
    pub bursts_sent: u64,
    /// Claims lost: another station transmitted first (ZMAC+).
    pub claims_lost: u64,
    /// Notifications of contention sent or passed on (ZMAC+).
    pub notices_sent: u64,
    /// Transmissions that went ahead because energy began less than `cca_time` before their slot boundary.
    pub committed: u64,
    /// Frames not used, by reason.
    pub drops: Drops,
}
