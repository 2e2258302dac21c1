//! The contract of a node that sits on a MAC, or on a network card that is one.

use crate::{Address, Dbm, Instant, Mode, TraceEvent, Wake};

/// Sits on a MAC. It is *asked* for a frame when the link can take one, so that what goes out is made of all
/// that is known at that moment (a fresh coded packet, the newest acknowledgement).
///
/// The driver looks at [`pending`](Self::pending) to learn whether to contend for the channel, and calls
/// [`poll_link`](Self::poll_link) when the frame can really leave. Between the two the node may change its mind:
/// `poll_link` may return `None` although `pending` said otherwise before.
pub trait LinkNode {
    /// A frame arrived, or one of the node's own was dealt with.
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>);

    /// The classes in which a frame is waiting right now. Cheap: it is read after every event.
    fn pending(&self) -> Classes;

    /// The frame to send now, the most urgent of the `allowed` classes, written to the front of `sdu`. `sdu` holds
    /// at least [`Caps::frame_max`](crate::Caps::frame_max) octets.
    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend>;

    /// The deadline of [`poll_timeout`](Self::poll_timeout) has come, or not: calling early changes nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// When the node must be woken next, and why.
    fn poll_timeout(&self) -> Option<Wake>;

    /// What the node expects of the link soon. A sleeping radio asks its parent for frames accordingly.
    fn expects(&self) -> Expect {
        Expect::Nothing
    }

    /// What the node recorded about itself since the last call; `None` when there is no more.
    fn poll_trace(&mut self) -> Option<TraceEvent> {
        None
    }
}

/// What a transport expects: it decides how often a sleepy radio wakes. A state that is read, not an event, so that
/// none can be missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expect {
    /// Idle: nothing is under way, or the batch is done. The radio may sleep for long.
    #[default]
    Nothing,
    /// A peer's opening was answered: its request is likely to follow.
    Request,
    /// Something was sent whose acknowledgement or answer is due.
    Answer,
}

/// What a link tells its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkEvent<'a> {
    /// A frame for this node, for everybody, or (where the link overhears) for somebody else.
    Received(Arrival<'a>),
    /// A frame of this node has been dealt with.
    Sent {
        /// The token it was sent with.
        token: u32,
        /// What became of it.
        outcome: Outcome,
    },
}

/// A frame handed up by the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival<'a> {
    /// The neighbour that transmitted it.
    pub from: Address,
    /// To whom; compare with the own address to tell an overheard frame.
    pub to: Address,
    /// The payload. Outside data: parse it, never trust it.
    pub sdu: &'a [u8],
    /// Received power, where the radio reports it.
    pub power: Option<Dbm>,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went out once, and nobody was asked to confirm it (broadcast).
    Unconfirmed,
    /// The neighbour confirmed it after this many attempts.
    Acknowledged {
        /// Transmissions made, at least one.
        attempts: u8,
    },
    /// Given up after this many attempts.
    Failed {
        /// Transmissions made.
        attempts: u8,
    },
}

/// A frame that a node hands to its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSend {
    /// The neighbour, or [`Address::BROADCAST`].
    pub to: Address,
    /// How many octets of the buffer are the SDU.
    pub len: usize,
    /// How urgent it is.
    pub class: Class,
    /// How to send it; `None` leaves it to the MAC.
    pub mode: Option<Mode>,
    /// Comes back in [`LinkEvent::Sent`].
    pub token: u32,
}

/// How urgent a frame is, least first. 802.11e's access categories in other words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// After everything else.
    Background,
    /// Ordinary data.
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
    /// No class.
    pub const NONE: Classes = Classes(0);
    /// Every class.
    pub const ALL: Classes = Classes(0b1111);

    /// This set and `class`.
    pub const fn with(self, class: Class) -> Classes {
        Classes(self.0 | 1 << class as u8)
    }

    /// This set and `class` if `condition` holds.
    pub const fn with_if(self, class: Class, condition: bool) -> Classes {
        if condition { self.with(class) } else { self }
    }

    /// Only `class`.
    pub const fn only(class: Class) -> Classes {
        Classes::NONE.with(class)
    }

    /// Whether `class` is in the set.
    pub const fn contains(self, class: Class) -> bool {
        self.0 & 1 << class as u8 != 0
    }

    /// What is in both sets.
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
