//! Why something was lost: one reason each.

use core::fmt;

/// A reason. Outside data never causes more than one of these and a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// A frame whose headers make no sense, or lie about lengths.
    Malformed,
    /// A further fragment of a datagram whose first one did not come, or which was given up.
    NoFirst,
    /// A fragment overlaps another one of its datagram: all of it is given up (RFC 4944, 5.3).
    Overlap,
    /// A datagram larger than the buffers.
    TooBig,
    /// A first fragment found no free slot.
    NoSlot,
    /// A datagram gave its slot to another: its sender began anew, or it had made no progress.
    Evicted,
    /// A datagram whose next fragment did not come in time.
    Expired,
    /// Nobody to hand a packet to.
    NoRoute,
    /// A packet that would have passed too many nodes.
    HopLimit,
    /// The relay queue was full.
    QueueFull,
    /// Dropped before the queue was full, by RED.
    Early,
    /// The link gave a frame up, and with it its datagram.
    LinkFailed,
    /// A compressed TCP header whose anchor is not here.
    NoAnchor,
}

const COUNT: usize = 13;

/// How many were lost, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u32; COUNT]);

impl Lost {
    /// All reasons.
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

    /// The reason in `snake_case`, as it stands in results.
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

    /// How many for this reason.
    pub fn of(&self, why: Lost) -> u32 {
        self.0.get(why as usize).copied().unwrap_or(0)
    }

    /// How many altogether.
    pub fn total(&self) -> u32 {
        self.0.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
