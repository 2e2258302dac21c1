//! Counters of what a station has sent, received and dropped.

use chappe_core::{Drops, Duration};

/// Counts since the station was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Unicast data frames put on the air, further attempts included.
    pub data_sent: u64,
    /// Data frames of [`data_sent`](Self::data_sent) that were further attempts.
    pub retries: u64,
    /// Broadcast data frames put on the air.
    pub broadcast_sent: u64,
    /// Data requests put on the air, further attempts included.
    pub requests_sent: u64,
    /// Acknowledgements put on the air, those for duplicates included.
    pub acks_sent: u64,
    /// Data frames and requests for which no acknowledgement arrived in time.
    pub ack_timeouts: u64,
    /// Assessments that found the channel busy.
    pub busy: u64,
    /// Channel access failures: the channel was busy at every assessment of an attempt.
    pub access_failures: u64,
    /// Unicast data frames confirmed.
    pub acknowledged: u64,
    /// Unicast data frames given up.
    pub failed: u64,
    /// Frames held for a child and given up because it did not ask in time or did not get them.
    pub expired: u64,
    /// Frames in hand that were put aside to serve a child that asked.
    pub preempted: u64,
    /// Data frames handed up.
    pub received: u64,
    /// Data requests received from children.
    pub requests_received: u64,
    /// Data requests that the parent granted (frame pending) and did not follow with a frame.
    pub requests_in_vain: u64,
    /// Frames received before; acknowledged, not handed up.
    pub duplicates: u64,
    /// Frames that the radio found but could not decode.
    pub undecodable: u64,
    /// Time the radio was on, up to the last time it was switched off; see
    /// [`Dot15d4::radio_on`](super::Dot15d4::radio_on).
    pub radio_on: Duration,
    /// Time for which a frame was loaded or a back-off ran while the receiver was off, up to the last time that this
    /// ended; see [`Dot15d4::radio_awake`](super::Dot15d4::radio_awake).
    pub contending: Duration,
    /// Frames not used, by reason.
    pub drops: Drops,
}
