//! What a node counts: frames, ranks and acknowledgements.

use chappe_core::Drops;

/// What a [`Node`](crate::Node) has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data frames sent in all roles. The sum over the nodes is the paper's "total number of data packet
    /// transmissions".
    pub data_sent: u64,
    /// Of these, sent as the source. Times payload over object length: the paper's "source redundancy".
    pub source_sent: u64,
    /// Of these, sent as a relay.
    pub relay_sent: u64,
    /// Data frames heard in a group that the node relays or receives, and used.
    pub data_heard: u64,
    /// Data frames that raised a rank, in any role.
    pub innovative: u64,
    /// Data frames that raised no rank in any role.
    pub non_innovative: u64,
    /// Frames that raised the rank of the relay's current batch.
    pub relay_innovative: u64,
    /// Frames that raised the rank of a batch that the node receives.
    pub receiver_innovative: u64,
    /// Frames from upstream: each earned the relay its credit once.
    pub upstream_heard: u64,
    /// Times that a relay emptied its buffer for a new batch.
    pub flushes: u64,
    /// Batches decoded as a receiver.
    pub batches_decoded: u64,
    /// Reports of the improved variant: frames without data that list the ranks of their sender.
    pub reports_sent: u64,
    /// ACKs originated and handed to the link for the first time.
    pub acks_sent: u64,
    /// ACKs of others handed to the link for the first time.
    pub acks_forwarded: u64,
    /// ACKs, own or others', handed to the link again.
    pub ack_resends: u64,
    /// ACKs that a receiver sent anew, end to end.
    pub ack_repeats: u64,
    /// ACKs whose retries the link exhausted.
    pub ack_failures: u64,
    /// ACKs that arrived at the source and were new to it.
    pub acks_received: u64,
    /// Batches and plans that the source began.
    pub turns: u64,
    /// Waits of the source that ended because it overheard a child.
    pub children_heard: u64,
    /// Waits of the source that ended by its time limit.
    pub pace_timeouts: u64,
    /// Frames not used, by reason.
    pub drops: Drops,
}
