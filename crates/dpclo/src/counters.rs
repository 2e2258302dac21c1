//! What a node counts.

use chappe_core::Drops;

/// What a [`Router`](crate::Router) has done since it was made.
///
/// A packet that was accepted is delivered, waits somewhere, or is in one count of [`Losses`]; with copies (a link that loses
/// its confirmation makes them) there is more of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets accepted from the application.
    pub accepted: u64,
    /// Packets refused because the rate did not allow them yet.
    pub refused_rate: u64,
    /// Packets refused because the queue or the store was full.
    pub refused_full: u64,
    /// Packets accepted from neighbours to be forwarded.
    pub relayed: u64,
    /// Packets that arrived here as their destination, copies left out.
    pub delivered: u64,
    /// Octets of payload of these.
    pub delivered_octets: u64,
    /// Packets handed to the link; one that the link gave up and that goes again counts again.
    pub data_sent: u64,
    /// Empty packets sent for queues that only exist as a number.
    pub empty_sent: u64,
    /// Empty packets received.
    pub empty_received: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes heard.
    pub probes_heard: u64,
    /// Updates sent.
    pub updates_sent: u64,
    /// Updates heard.
    pub updates_heard: u64,
    /// Reports of changed queues sent.
    pub reports_sent: u64,
    /// Reports heard.
    pub reports_heard: u64,
    /// Rounds begun (DCLO).
    pub rounds: u64,
    /// Messages that make pairs sent (DCLO).
    pub pairing_sent: u64,
    /// Rounds in which this node was half of a pair when they ended (DCLO).
    pub paired: u64,
    /// Octets of frames without data, all kinds.
    pub control_octets: u64,
    /// Data frames to others that were overheard and told a queue's length.
    pub overheard: u64,
    /// Times that the link gave a packet up.
    pub link_failures: u64,
    /// Times that K grew.
    pub k_grew: u64,
    /// Times that K shrank.
    pub k_shrank: u64,
    /// Packets that left for another than the best next hop.
    pub detours: u64,
    /// Times that a flow changed its next hop.
    pub repinned: u64,
    /// Packets that waited at the destination for one before them.
    pub held: u64,
    /// Neighbours for which there was no place.
    pub neighbours_refused: u64,
    /// Packets that ended here without being delivered.
    pub losses: Losses,
    /// Frames not used, by reason.
    pub drops: Drops,
}

/// Packets that a node had and has no more, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The queue for their destination was full.
    pub queue_full: u64,
    /// No place in the node's store, or too long for it.
    pub store_full: u64,
    /// No place in the table of destinations.
    pub no_destination: u64,
    /// They had been forwarded too often.
    pub hop_limit: u64,
    /// The link gave them up too often.
    pub link: u64,
    /// They had waited too long.
    pub age: u64,
    /// Copies of packets that were here already.
    pub copies: u64,
    /// At the destination, too late to tell whether they are copies.
    pub old: u64,
    /// The link never said what became of them.
    pub unanswered: u64,
    /// Pushed out by newer ones (LIFO).
    pub pushed_out: u64,
    /// Delivered, but the application did not take them.
    pub inbox_full: u64,
}

impl Losses {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.queue_full
            + self.store_full
            + self.no_destination
            + self.hop_limit
            + self.link
            + self.age
            + self.copies
            + self.old
            + self.unanswered
            + self.pushed_out
            + self.inbox_full
    }
}
