//! The contract of a node that sits on a MAC, or on a network card that is one.

use crate::{Address, Dbm, Instant, Mode, TraceEvent, Wake};

/// A node that sits on a MAC. The MAC *asks* it for a frame at the moment the frame can leave, so that the frame can
/// contain the latest state (a fresh coded packet, the newest acknowledgement).
///
/// The driver reads [`pending`](Self::pending) to learn whether to contend for the channel, and calls
/// [`poll_link`](Self::poll_link) when the frame can leave. The node may change its mind in between: `poll_link` may
/// return `None` although `pending` was not empty.
pub trait LinkNode {
    /// Handles a received frame, or the outcome of one of the node's own.
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>);

    /// The classes in which a frame is waiting now. Must be cheap: it is read after every event.
    fn pending(&self) -> Classes;

    /// Writes the frame to send now, the most urgent of the `allowed` classes, to the front of `sdu`, which holds at
    /// least [`Caps::frame_max`](crate::Caps::frame_max) octets. `None`: there is nothing to send after all.
    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend>;

    /// Handles the deadline of [`poll_timeout`](Self::poll_timeout), if it has come; calling early changes nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// The next deadline, and the reason for it.
    fn poll_timeout(&self) -> Option<Wake>;

    /// What the node expects of the link soon. It decides how often a sleepy radio asks its parent for frames.
    fn expects(&self) -> Expect {
        Expect::Nothing
    }

    /// The next trace event of the node; `None` when there is no more.
    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}

/// What a transport expects of its peer, which decides how often a sleepy radio wakes. It is a state that is read, not
/// an event, so that no change can be missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expect {
    /// Idle: nothing is in progress. The radio may sleep long.
    #[default]
    Nothing,
    /// A peer opened a connection and was answered: its request is likely to follow.
    Request,
    /// An acknowledgement or an answer is due.
    Answer,
}

/// An event that a link reports to its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkEvent<'a> {
    /// A frame was received: for this node, broadcast, or (where the link overhears) for another node.
    Received(Arrival<'a>),
    /// A frame of this node was sent or given up.
    Sent {
        /// The token it was sent with.
        token: u32,
        /// How the transmission ended.
        outcome: Outcome,
    },
}

/// A frame handed up by the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival<'a> {
    /// The neighbour that transmitted it.
    pub from: Address,
    /// The destination; a frame is overheard if this is neither the own address nor broadcast.
    pub to: Address,
    /// The payload. Outside data: parse it, never trust it.
    pub sdu: &'a [u8],
    /// Received power, where the radio reports it.
    pub power: Option<Dbm>,
}

/// How the transmission of a frame ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was sent once, and no acknowledgement was requested (broadcast).
    Unconfirmed,
    /// The neighbour acknowledged it.
    Acknowledged {
        /// Transmissions made, at least one.
        attempts: u8,
    },
    /// It was given up at the retry limit.
    Failed {
        /// Transmissions made, zero if none was possible.
        attempts: u8,
    },
}

/// A frame that a node hands to its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSend {
    /// The destination: a neighbour, or [`Address::BROADCAST`].
    pub to: Address,
    /// Length of the SDU in the buffer, in octets.
    pub len: usize,
    /// The urgency of the frame.
    pub class: Class,
    /// Rate and preamble; `None` leaves them to the MAC.
    pub mode: Option<Mode>,
    /// Chosen by the node; returned in [`LinkEvent::Sent`].
    pub token: u32,
}

impl LinkSend {
    /// A broadcast of the first `len` octets of the buffer. The MAC chooses rate and preamble; the token is 0.
    pub const fn broadcast(len: usize, class: Class) -> LinkSend {
        LinkSend::unicast(Address::BROADCAST, len, class)
    }

    /// The first `len` octets of the buffer to one neighbour. The MAC chooses rate and preamble; the token is 0.
    pub const fn unicast(to: Address, len: usize, class: Class) -> LinkSend {
        LinkSend {
            to,
            len,
            class,
            mode: None,
            token: 0,
        }
    }
}

/// The urgency of a frame, least first: 802.11e's access categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Bulk traffic that yields to all other classes.
    Background,
    /// Ordinary data: 802.11e's best effort.
    Data,
    /// Data with a deadline.
    Urgent,
    /// Acknowledgements and other control frames.
    Control,
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(u8);

impl Class {
    /// All classes, most urgent first.
    pub const BY_URGENCY: [Class; 4] = [
        Class::Control,
        Class::Urgent,
        Class::Data,
        Class::Background,
    ];
}

impl Classes {
    /// The set without any class.
    pub const NONE: Classes = Classes(0);
    /// The set of all four classes.
    pub const ALL: Classes = Classes(0b1111);

    /// This set with `class` added.
    pub const fn with(self, class: Class) -> Classes {
        Classes(self.0 | 1 << class as u8)
    }

    /// This set, with `class` added if `condition` holds.
    pub const fn with_if(self, class: Class, condition: bool) -> Classes {
        if condition { self.with(class) } else { self }
    }

    /// The set that contains only `class`.
    pub const fn only(class: Class) -> Classes {
        Classes::NONE.with(class)
    }

    /// Whether `class` is in the set.
    pub const fn contains(self, class: Class) -> bool {
        self.0 & 1 << class as u8 != 0
    }

    /// The intersection of both sets.
    pub const fn and(self, other: Classes) -> Classes {
        Classes(self.0 & other.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The most urgent class in the set.
    pub fn most_urgent(self) -> Option<Class> {
        Class::BY_URGENCY
            .into_iter()
            .find(|&class| self.contains(class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_class_wins() {
        let classes = Classes::NONE.with(Class::Data).with(Class::Control);
        assert_eq!(classes.most_urgent(), Some(Class::Control));
        assert_eq!(
            classes.and(Classes::only(Class::Data)).most_urgent(),
            Some(Class::Data)
        );
        assert_eq!(Classes::NONE.most_urgent(), None);
        assert!(Classes::ALL.contains(Class::Background));
    }
}
