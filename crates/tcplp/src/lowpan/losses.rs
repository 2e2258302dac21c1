//! The reasons for which frames and packets are lost, and their counters.

use core::fmt;

/// Why a frame or a packet was lost. Each loss is counted under one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// A frame with invalid headers or lengths.
    Malformed,
    /// A further fragment of a datagram whose first fragment is missing, or which was given up.
    NoFirst,
    /// A fragment overlaps another one of its datagram, which is discarded (RFC 4944, 5.3).
    Overlap,
    /// A datagram or frame larger than its buffer.
    TooBig,
    /// A first fragment found no free slot.
    NoSlot,
    /// A datagram was evicted for another: its sender started a new one, or it had made no progress.
    Evicted,
    /// A datagram whose next fragment did not arrive in time.
    Expired,
    /// A packet without a route, or that this node does not forward.
    NoRoute,
    /// A packet whose hop limit was exhausted.
    HopLimit,
    /// The relay queue was full.
    QueueFull,
    /// Dropped before the queue was full, by RED.
    Early,
    /// The link gave up a frame, and with it its datagram is lost.
    LinkFailed,
    /// A compressed TCP header whose anchor is unknown.
    NoAnchor,
}

const COUNT: usize = 13;

/// Losses by reason. Counters saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u32; COUNT]);

impl Lost {
    /// All reasons, in the order of the counters.
    pub const ALL: [Lost; COUNT] = [
        Lost::Malformed,
        Lost::NoFirst,
        Lost::Overlap,
        Lost::TooBig,
        Lost::NoSlot,
        Lost::Evicted,
        Lost::Expired,
        Lost::NoRoute,
        Lost::HopLimit,
        Lost::QueueFull,
        Lost::Early,
        Lost::LinkFailed,
        Lost::NoAnchor,
    ];

    /// The reason in `snake_case`, as in results.
    pub const fn name(self) -> &'static str {
        match self {
            Lost::Malformed => "malformed",
            Lost::NoFirst => "no_first_fragment",
            Lost::Overlap => "overlap",
            Lost::TooBig => "too_big",
            Lost::NoSlot => "no_slot",
            Lost::Evicted => "evicted",
            Lost::Expired => "expired",
            Lost::NoRoute => "no_route",
            Lost::HopLimit => "hop_limit",
            Lost::QueueFull => "queue_full",
            Lost::Early => "early",
            Lost::LinkFailed => "link_failed",
            Lost::NoAnchor => "no_anchor",
        }
    }
}

impl Losses {
    pub(super) fn count(&mut self, why: Lost) {
        if let Some(counter) = self.0.get_mut(why as usize) {
            *counter = counter.saturating_add(1);
        }
    }

    /// The number of losses for this reason.
    pub fn of(&self, why: Lost) -> u32 {
        self.0.get(why as usize).copied().unwrap_or(0)
    }

    /// The number of losses for all reasons together.
    pub fn total(&self) -> u32 {
        self.0.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
