//! The counters of a node.

use chappe_core::Drops;

/// Counters of a [`Router`](crate::Router) since it was created.
///
/// Every accepted packet is delivered, waits somewhere, or is in one count of [`Losses`]. A link that loses acknowledgements
/// makes copies, which are counted in addition.
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
    /// Packets that arrived here as their destination, without copies.
    pub delivered: u64,
    /// Octets of payload of the packets in `delivered`.
    pub delivered_octets: u64,
    /// Packets handed to the link. A packet that the link gave up and that is sent again counts again.
    pub data_sent: u64,
    /// Transmissions that the link made for them, repetitions included, as far as it has reported.
    pub attempts: u64,
    /// Empty packets sent to move floating queue length.
    pub empty_sent: u64,
    /// Empty packets received from neighbours.
    pub empty_received: u64,
    /// Link probes that were sent.
    pub probes_sent: u64,
    /// Link probes received from neighbours.
    pub probes_heard: u64,
    /// Routing updates that were sent.
    pub updates_sent: u64,
    /// Routing updates received from neighbours.
    pub updates_heard: u64,
    /// Requests for newer sequence numbers that were sent or passed on.
    pub requests_sent: u64,
    /// Requests for newer sequence numbers that were received.
    pub requests_heard: u64,
    /// Next hops given up because a packet came back: they had advertised a route that leads through this node.
    pub returned: u64,
    /// Reports of changed queues that were sent.
    pub reports_sent: u64,
    /// Reports of changed queues received.
    pub reports_heard: u64,
    /// Rounds that have begun (DCLO).
    pub rounds: u64,
    /// Pairing messages sent (DCLO).
    pub pairing_sent: u64,
    /// Rounds at whose end this node was in a pair (DCLO).
    pub paired: u64,
    /// Octets of control frames of all kinds.
    pub control_octets: u64,
    /// Data frames for other nodes that were overheard.
    pub overheard: u64,
    /// Packets that the link gave up, each time counted.
    pub link_failures: u64,
    /// Times that K grew.
    pub k_grew: u64,
    /// Times that K shrank.
    pub k_shrank: u64,
    /// Packets sent to another than the best next hop.
    pub detours: u64,
    /// Changes of a busy flow's next hop.
    pub repinned: u64,
    /// Packets held at the destination because an earlier one was missing.
    pub held: u64,
    /// Frames from neighbours for which the table had no place.
    pub neighbours_refused: u64,
    /// Packets lost at this node, by reason.
    pub losses: Losses,
    /// Frames dropped, by reason.
    pub drops: Drops,
}

/// Packets lost at a node, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The queue for their destination was full.
    pub queue_full: u64,
    /// The node's store was full, or the packet too long for it.
    pub store_full: u64,
    /// The table of destinations was full.
    pub no_destination: u64,
    /// The hop limit was reached.
    pub hop_limit: u64,
    /// The link gave the packet up `failures_max` times.
    pub link: u64,
    /// The packet waited longer than `age_max`.
    pub age: u64,
    /// Copies of packets that were received before.
    pub copies: u64,
    /// At the destination, from before the window of packet numbers or from a past epoch.
    pub old: u64,
    /// The link never reported the outcome.
    pub unanswered: u64,
    /// Pushed out by newer ones (LIFO).
    pub pushed_out: u64,
    /// Arrived, but the application took no packets.
    pub inbox_full: u64,
}

impl Losses {
    /// The sum of all losses.
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
