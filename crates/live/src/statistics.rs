//! What the driver has done so far.

use chappe_core::{DropReason, Drops, Duration};

use crate::neighbours::Neighbour;

/// Counters of one [`Live`](crate::Live). Frames are those of this driver, SDUs and confirmations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Frames that the kernel took.
    pub frames_sent: u64,
    /// Their octets, without the layers below.
    pub octets_sent: u64,
    /// SDUs handed to the node.
    pub frames_received: u64,
    /// Octets of all frames of ours that arrived.
    pub octets_received: u64,
    /// Confirmations sent for unicast frames that arrived.
    pub confirmations_sent: u64,
    /// Own unicast frames that were confirmed.
    pub confirmed: u64,
    /// Unicast frames sent again.
    pub retries: u64,
    /// Unicast frames given up.
    pub given_up: u64,
    /// Times that the kernel's queue was full.
    pub queue_full: u64,
    /// Frames that the kernel refused.
    pub refused: u64,
    /// The kernel's last refusal, in words.
    pub last_refusal: Option<String>,
    /// Times that receiving failed: the interface went down, for instance.
    pub receive_errors: u64,
    /// Own broadcasts that came back.
    pub echoes: u64,
    /// Times that a member who is alive proved to have our own address: two nodes have one number.
    pub address_conflicts: u64,
    /// Hellos of lives that had not proved to be alive: newcomers, or recordings.
    pub unproved: u64,
    /// Hellos sent.
    pub hellos_sent: u64,
    /// The neighbours and how well each hears the other, brought up to date before the application is called.
    pub neighbours: Vec<Neighbour>,
    /// This node's life, which its neighbours see; another number after a restart.
    pub life: u64,
    /// Frames thrown away by [`Loss`](crate::Loss).
    pub injected_losses: u64,
    /// Everything else that was not used, by reason.
    pub drops: Drops,
    /// How late the driver has met a deadline of its node, at worst.
    pub latest: Duration,
}

impl Statistics {
    /// How many frames were dropped for this reason.
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.drops.of(why)
    }
}
