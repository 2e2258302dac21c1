//! Frames of the driver between the node and the queue.

use chappe_core::{Class, Mode};

use crate::frame::Kind;
use crate::queue::Target;

/// A frame whose body stands in the queue's vacant slot.
pub(super) struct Outgoing {
    pub seal: Seal,
    pub to: Target,
    pub class: Class,
    /// The node's token, if the node is notified when the frame has left: of broadcasts only.
    pub token: Option<u32>,
    /// The mode that the node asked for, which a pace by airtime counts.
    pub mode: Option<Mode>,
}

/// Which counter seals a frame.
pub(super) enum Seal {
    Broadcast(Kind),
    Unicast { to: u16, number: u32, attempt: u8 },
    Confirmation { to: u16 },
    Notice,
}

impl Outgoing {
    /// A frame of the driver itself.
    pub fn control(seal: Seal, to: Target) -> Outgoing {
        Outgoing {
            seal,
            to,
            class: Class::Control,
            token: None,
            mode: None,
        }
    }
}
