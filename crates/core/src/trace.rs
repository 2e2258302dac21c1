//! Trace events of a node: one closed set, and counters of dropped frames by reason.

use core::fmt;

use crate::Address;

/// One event inside a node. Small and `Copy`: recording it costs a few stores, and one test when tracing is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A frame or packet was handed to the layer below.
    Sent {
        /// The layer that sent it.
        layer: Layer,
        /// The address of the receiver.
        to: Address,
        /// Its size in octets.
        bytes: u32,
    },
    /// A frame or packet was accepted from the layer below.
    Received {
        /// The layer that accepted it.
        layer: Layer,
        /// The address of the sender.
        from: Address,
        /// Its size in octets.
        bytes: u32,
    },
    /// A frame or packet was dropped.
    Dropped {
        /// The layer that dropped it.
        layer: Layer,
        /// The reason for the drop.
        why: DropReason,
    },
    /// A deadline expired and was handled.
    Timer {
        /// The deadline's name, as in [`Wake::why`](crate::Wake::why).
        why: &'static str,
    },
    /// Data reached the application for good.
    Delivered {
        /// Number of the flow, batch or object.
        flow: u32,
        /// The number of octets delivered.
        bytes: u32,
    },
    /// A state machine changed its state.
    State {
        /// Name of the state machine.
        machine: &'static str,
        /// The state it left.
        from: &'static str,
        /// The state it entered.
        to: &'static str,
    },
}

/// The part of a node that records an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The MAC: channel access.
    Mac,
    /// The protocol on the link (a link node).
    Link,
    /// The transport protocol above the link.
    Transport,
    /// The application above the transport.
    Application,
}

/// Why a frame was dropped. Outside data never causes more than one of these and a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Not a valid frame of this protocol: too short, unknown version, fields out of range.
    Malformed,
    /// Addressed to another node or network.
    NotForUs,
    /// Received before, and recognised as a duplicate.
    Duplicate,
    /// Belongs to a past or an unknown batch, round, session or window.
    Stale,
    /// Adds nothing to what is known: a linear combination of packets already held.
    NotInnovative,
    /// No room in a queue or table.
    QueueFull,
    /// Given up after the last allowed attempt.
    RetryLimit,
    /// It failed authentication, or was not protected.
    Unauthentic,
}

impl DropReason {
    const COUNT: usize = 8;

    /// Every reason, in the order of [`Drops::iter`].
    pub const ALL: [DropReason; DropReason::COUNT] = [
        DropReason::Malformed,
        DropReason::NotForUs,
        DropReason::Duplicate,
        DropReason::Stale,
        DropReason::NotInnovative,
        DropReason::QueueFull,
        DropReason::RetryLimit,
        DropReason::Unauthentic,
    ];

    /// The reason in `snake_case`, as written in results.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Malformed => "malformed",
            DropReason::NotForUs => "not_for_us",
            DropReason::Duplicate => "duplicate",
            DropReason::Stale => "stale",
            DropReason::NotInnovative => "not_innovative",
            DropReason::QueueFull => "queue_full",
            DropReason::RetryLimit => "retry_limit",
            DropReason::Unauthentic => "unauthentic",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counters of dropped frames, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; DropReason::COUNT]);

impl Drops {
    /// Counts one more drop for this reason.
    pub fn count(&mut self, why: DropReason) {
        if let Some(counter) = self.0.get_mut(why as usize) {
            *counter = counter.saturating_add(1);
        }
    }

    /// The number of drops for this reason.
    pub fn of(&self, why: DropReason) -> u64 {
        self.0.get(why as usize).copied().unwrap_or(0)
    }

    /// All reasons with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.into_iter().map(|why| (why, self.of(why)))
    }
}

/// A node's queue of trace events. It is off until [`TraceRing::on`]. A full ring counts the events it loses.
///
/// The driver drains it after every input, so a small ring suffices.
#[derive(Clone, Debug)]
pub struct TraceRing<const N: usize = 8> {
    events: [Option<TraceEvent>; N],
    first: usize,
    len: usize,
    lost: u64,
    on: bool,
}

impl<const N: usize> Default for TraceRing<N> {
    fn default() -> Self {
        TraceRing {
            events: [None; N],
            first: 0,
            len: 0,
            lost: 0,
            on: false,
        }
    }
}

impl<const N: usize> TraceRing<N> {
    /// Turns recording on or off.
    pub fn on(&mut self, on: bool) {
        self.on = on;
    }

    /// Records an event, if recording is on.
    #[inline]
    pub fn push(&mut self, event: TraceEvent) {
        if !self.on {
            return;
        }
        if self.len == N {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        let place = (self.first + self.len) % N.max(1);
        if let Some(slot) = self.events.get_mut(place) {
            *slot = Some(event);
            self.len += 1;
        }
    }

    /// Removes and returns the oldest event.
    pub fn pop(&mut self) -> Option<TraceEvent> {
        if self.len == 0 {
            return None;
        }
        let event = self.events.get_mut(self.first).and_then(Option::take);
        self.first = (self.first + 1) % N.max(1);
        self.len -= 1;
        event
    }

    /// The number of events that did not fit since the node was created.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_counts_lost_events() {
        let mut ring = TraceRing::<2>::default();
        ring.push(TraceEvent::Timer { why: "off" });
        assert_eq!(ring.pop(), None);
        ring.on(true);
        for why in ["a", "b", "c"] {
            ring.push(TraceEvent::Timer { why });
        }
        assert_eq!(ring.lost(), 1);
        assert_eq!(ring.pop(), Some(TraceEvent::Timer { why: "a" }));
        ring.push(TraceEvent::Timer { why: "d" });
        assert_eq!(ring.pop(), Some(TraceEvent::Timer { why: "b" }));
        assert_eq!(ring.pop(), Some(TraceEvent::Timer { why: "d" }));
        assert_eq!(ring.pop(), None);
    }

    #[test]
    fn every_reason_has_its_counter() {
        let mut drops = Drops::default();
        for (times, why) in DropReason::ALL.into_iter().enumerate() {
            (0..=times).for_each(|_| drops.count(why));
        }
        assert!(
            drops
                .iter()
                .enumerate()
                .all(|(times, (_, count))| count == times as u64 + 1)
        );
    }
}
