//! The abilities of a radio or link, which a protocol checks when it is created.

use core::fmt;

use crate::Duration;

/// The abilities of the radio or link below a node. A protocol that cannot work on it returns [`Missing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Largest frame (radio: PSDU without FCS; link: SDU) in octets.
    pub frame_max: usize,
    /// Whether a frame can be sent at an exact future instant.
    pub schedules: bool,
    /// Largest error of a scheduled start; meaningless without `schedules`.
    pub start_error: Duration,
    /// Whether received frames carry their power.
    pub reports_power: bool,
    /// Whether frames for other nodes are handed up too.
    pub overhears: bool,
    /// Whether the end of each own broadcast is reported, so that the sender can pace itself on the air.
    pub confirms_broadcast: bool,
    /// Whether frames of [`Class::Urgent`](crate::Class::Urgent) wait for less than those of [`Class::Data`](crate::Class::Data), also
    /// after collisions: windows of their own, as 802.11e's categories have. A mere order among those who wait is not meant.
    pub hastens: bool,
}

/// An ability that a protocol needs and the medium lacks: a configuration error. Its `Display` explains it in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Frames of a certain size.
    FrameSize {
        /// Octets the protocol needs.
        needed: usize,
        /// Octets the medium can carry.
        available: usize,
    },
    /// Transmission at exact instants.
    Scheduling,
    /// The power of received frames.
    Power,
    /// Overhearing of frames for other nodes.
    Overhearing,
    /// Confirmation that a broadcast has left the antenna.
    BroadcastConfirmation,
}

impl Caps {
    /// Checks that the medium carries frames of `needed` octets.
    pub fn need_frame(&self, needed: usize) -> Result<(), Missing> {
        if self.frame_max >= needed {
            Ok(())
        } else {
            Err(Missing::FrameSize {
                needed,
                available: self.frame_max,
            })
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::FrameSize { needed, available } => write!(
                f,
                "the protocol needs frames of {needed} octets, but this link carries at most {available}"
            ),
            Missing::Scheduling => f.write_str("the protocol must send at exact instants, and this radio cannot"),
            Missing::Power => f.write_str("the protocol needs the power of each received frame, and this radio does not report it"),
            Missing::Overhearing => f.write_str("the protocol needs to overhear frames to others, and this link filters them out"),
            Missing::BroadcastConfirmation => f.write_str("the protocol needs to know when a broadcast has been sent, and this link does not say"),
        }
    }
}

impl core::error::Error for Missing {}
