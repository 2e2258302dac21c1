//! The parameters that both protocols have, and what can be wrong with a configuration.

use core::fmt;

use chappe_core::{Caps, Duration, Missing, Mode, Rate};

use crate::store::K_MAX;

/// The parameters that [`paper::Config`](crate::paper::Config) and [`improved::Config`](crate::improved::Config)
/// share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    /// Packets in a batch, 1 to [`K_MAX`](crate::K_MAX), or [`improved::K_MAX`](crate::improved::K_MAX). Default 32
    /// (pacifier III-A.1).
    pub k: usize,
    /// Octets of file in a packet. Default 1500 (pacifier IV-A); the testbed used 1460 (V-C).
    pub payload: usize,
    /// How data frames are sent. Default 2 Mbit/s, long preamble (pacifier IV-A).
    pub mode: Mode,
    /// Octets that the link adds to each frame on the air. Default 36: 802.11 header 24, LLC/SNAP 8, FCS 4.
    pub link_overhead: usize,
    /// A relay that has heard nothing usable for this long treats any frame of its group as new, so that it follows a
    /// source that starts over. Default 10 s.
    pub forget: Duration,
    /// Groups that a node relays for at the same time; each takes the memory of one batch in the paper's protocol and
    /// of a window in the improved one. Default 4.
    pub groups_max: usize,
    /// Largest frame that the link carries, in octets. Default 2296, an 802.11 MSDU less 8 of LLC/SNAP.
    pub frame_max: usize,
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigError {
    /// `k` is 0, or larger than the protocol allows.
    BatchSize {
        /// The `k` that was given.
        given: usize,
        /// The largest that the protocol allows.
        most: usize,
    },
    /// The payload is empty, or larger than a frame can carry.
    Payload {
        /// The payload given, in octets.
        given: usize,
        /// The largest that `frame_max` leaves room for.
        most: usize,
    },
    /// The improved variant's window is larger than its reports can count.
    Window {
        /// The window given, in batches.
        given: u32,
        /// The largest that reports can count.
        most: u32,
    },
    /// A share, such as the knob or the pruning threshold, is not between 0 and 1.
    Share {
        /// The name of the parameter.
        name: &'static str,
        /// The value given, which may be NaN.
        given: f64,
    },
    /// A count or time that must not be 0 is 0.
    Zero {
        /// The name of the parameter.
        name: &'static str,
    },
    /// The node is not one of the network's.
    UnknownNode {
        /// The node number given.
        node: u16,
        /// How many nodes the network has.
        nodes: usize,
    },
    /// The link lacks something that the protocol needs.
    Link(Missing),
}

impl Default for Common {
    fn default() -> Common {
        Common {
            k: 32,
            payload: 1500,
            mode: Mode::long(Rate::Dsss2),
            link_overhead: 36,
            forget: Duration::from_secs(10),
            groups_max: 4,
            frame_max: 2296,
        }
    }
}

impl Common {
    /// Checks batches of at most `k_max` packets, and payloads that leave room for `overhead` octets in a frame.
    pub(crate) fn check(&self, k_max: usize, overhead: usize) -> Result<(), ConfigError> {
        if self.k == 0 || self.k > k_max {
            return Err(ConfigError::BatchSize {
                given: self.k,
                most: k_max,
            });
        }
        let most = self.frame_max.saturating_sub(overhead);
        if self.payload == 0 || self.payload > most {
            return Err(ConfigError::Payload {
                given: self.payload,
                most,
            });
        }
        require_nonzero(&[("groups_max", self.groups_max as u64)])
    }

    /// Checks that a link carries frames of `longest` octets, or of `frame_max` if that is less.
    pub(crate) fn check_link(&self, caps: &Caps, longest: usize) -> Result<(), ConfigError> {
        caps.need_frame(self.frame_max.min(longest))
            .map_err(ConfigError::Link)
    }
}

/// Refuses shares outside 0 to 1, NaN included.
pub(crate) fn require_shares(shares: &[(&'static str, f64)]) -> Result<(), ConfigError> {
    let wrong = shares
        .iter()
        .find(|(_, given)| !(0.0..=1.0).contains(given));
    match wrong {
        Some(&(name, given)) => Err(ConfigError::Share { name, given }),
        None => Ok(()),
    }
}

/// Refuses counts of 0.
pub(crate) fn require_nonzero(counts: &[(&'static str, u64)]) -> Result<(), ConfigError> {
    match counts.iter().find(|(_, count)| *count == 0) {
        Some(&(name, _)) => Err(ConfigError::Zero { name }),
        None => Ok(()),
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::BatchSize { given, most } => {
                let with = match *most < K_MAX {
                    true => " with this variant",
                    false => "",
                };
                write!(
                    f,
                    "a batch of {given} packets: 1 to {most} are possible{with}"
                )
            }
            ConfigError::Payload { given, most } => {
                write!(
                    f,
                    "a payload of {given} octets: 1 to {most} fit into a frame"
                )
            }
            ConfigError::Window { given, most } => {
                write!(f, "a window of {given} batches: 1 to {most} are possible")
            }
            ConfigError::Share { name, given } => {
                write!(f, "{name} = {given} is not between 0 and 1")
            }
            ConfigError::Zero { name } => write!(f, "{name} must be at least 1"),
            ConfigError::UnknownNode { node, nodes } => {
                write!(
                    f,
                    "node {node} in a network of {nodes} nodes, numbered from 0"
                )
            }
            ConfigError::Link(missing) => missing.fmt(f),
        }
    }
}

impl core::error::Error for ConfigError {}
