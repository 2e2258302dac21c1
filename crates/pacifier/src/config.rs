//! Parameters: what each one is, its unit, its default and where that comes from.

use core::fmt;

use chappe_core::{Caps, Duration, Missing, Mode, Rate};

use crate::improved::{self, Settings};
use crate::links::NODES_MAX;

/// Most packets in a batch that this crate has memory layouts for.
pub const K_MAX: usize = 128;

/// Octets of a data frame before the lists of nodes.
pub(crate) const FIXED_HEADER: usize = 17;

/// Which protocol runs: the paper's Table I. All nodes of a network run the same one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variant {
    /// MORE: belts of forwarding nodes, batches one after the other, no pacing.
    More {
        /// The share of all transmissions below which a node is pruned, 0 to 1. Published: 0.10. The paper
        /// tunes it per scenario: [`tuned_prune_percent`](crate::baseline::more::tuned_prune_percent).
        prune: f64,
    },
    /// Pacifier's tree and credits with MORE's batches.
    Tree,
    /// TREE and a source that waits for its children.
    TreeRl,
    /// TREE+RL with round-robin batches: the complete protocol.
    Pacifier {
        /// Eq. 3 between the best child (0) and every child (1). The paper settles on 1 (IV-B.5).
        knob: f64,
    },
    /// Our own variant: ranks in every frame, many batches in flight ([`improved`](crate::improved)).
    Improved,
}

/// What proves to a node that the next hop has its ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckProof {
    /// Only the piggybacked ACK in a data frame of the next hop, as on the paper's testbed, whose
    /// implementation got no word from its MAC (V-B.2). Costs resends wherever the next hop sends no data.
    Overheard,
    /// That, or the MAC's own confirmation. The default: our links report it, and in the paper's simulations
    /// the number of ACKs is one per receiver and batch (footnote 3), which rules out routine resends.
    MacOrOverheard,
}

/// The parameters of a [`Node`](crate::Node).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which protocol runs. Default: Pacifier with knob 1.
    pub variant: Variant,
    /// Packets in a batch, 1 to [`K_MAX`]. Default 32 (III-A.1).
    pub k: usize,
    /// Octets of file in a packet. Default 1500 (IV-A); the testbed used 1460 (V-C).
    pub payload: usize,
    /// M: frames overheard from an ACK's next hop, none of which confirms it, after which it is sent again.
    /// Default 10 (V-B.2).
    pub ack_overheard_next_hop: u32,
    /// N: frames overheard from other nodes after which an unconfirmed ACK is sent again. Default 20 (V-B.2).
    pub ack_overheard_other: u32,
    /// What confirms an ACK.
    pub ack_proof: AckProof,
    /// An unconfirmed ACK is sent again after this time even if nothing is overheard, and after twice the time
    /// each further time. The paper has no such timer: in a silent neighbourhood, neither M nor N would ever
    /// be reached. Default 200 ms, the airtime of N + 8 data frames at 2 Mbit/s: where there is traffic, N
    /// comes first.
    pub ack_retry_min: Duration,
    /// The longest such time. Default 6.4 s.
    pub ack_retry_max: Duration,
    /// Frames of a batch that it already acknowledged after which a receiver acknowledges it anew, end to end;
    /// twice as many each further time. The paper's scheme works hop by hop, and an ACK that a crashed hop
    /// had confirmed would be lost for good. Default 320, ten batches' worth.
    pub ack_repeat: u32,
    /// Places of the ACK cache of a node. Default 128.
    pub ack_cache: usize,
    /// How data frames are sent, which gives T_p, the airtime of one. Default 2 Mbit/s, long preamble (IV-A).
    pub mode: Mode,
    /// Octets that the link adds to each frame on the air. Default 36: 802.11 header 24, LLC/SNAP 8, FCS 4.
    pub link_overhead: usize,
    /// The source waits at most this many T_p for each transmission that its frame is to trigger at its
    /// children. Default 8 (III-B).
    pub pace_factor: u32,
    /// A relay that for this long has heard nothing that it could use takes any frame of its group as new, so
    /// that a source that starts over is heard. Default 10 s.
    pub forget: Duration,
    /// Groups that a node relays for at the same time; each takes the memory of one batch. Default 4.
    pub groups_max: usize,
    /// Batches from the first one that somebody lacks on which take turns; the others wait. Receivers need memory
    /// for as many. Default all: the paper's rounds go over the whole file (III-C).
    pub window: u32,
    /// What only [`Variant::Improved`] uses.
    pub improved: Settings,
    /// Largest frame that the link carries, in octets. Default 2296, an 802.11 MSDU less 8 of LLC/SNAP.
    pub frame_max: usize,
}

/// What is wrong with a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigError {
    /// `k` is not from 1 to [`K_MAX`], or [`improved::K_MAX`].
    BatchSize {
        /// The value given.
        given: usize,
    },
    /// A packet without payload, or more than a frame can carry.
    Payload {
        /// The value given.
        given: usize,
        /// The largest that `frame_max` leaves room for.
        most: usize,
    },
    /// The variant's window is larger than its reports can count.
    Window {
        /// The value given.
        given: u32,
    },
    /// Knob or pruning threshold outside 0 to 1.
    Share {
        /// Which.
        name: &'static str,
        /// The value given.
        given: f64,
    },
    /// A count that must be at least 1 is 0.
    Zero {
        /// Which.
        name: &'static str,
    },
    /// The node is not one of the network's.
    UnknownNode {
        /// Its number.
        node: u16,
        /// How many nodes the network has.
        nodes: usize,
    },
    /// The link cannot do what is needed.
    Link(Missing),
}

impl Default for Config {
    fn default() -> Self {
        Config::new(Variant::Pacifier { knob: 1.0 })
    }
}

impl Config {
    /// The paper's parameters for a variant.
    pub fn new(variant: Variant) -> Config {
        Config {
            variant,
            k: 32,
            payload: 1500,
            ack_overheard_next_hop: 10,
            ack_overheard_other: 20,
            ack_proof: AckProof::MacOrOverheard,
            ack_retry_min: Duration::from_millis(200),
            ack_retry_max: Duration::from_millis(6400),
            ack_repeat: 320,
            ack_cache: 128,
            mode: Mode::long(Rate::Dsss2),
            link_overhead: 36,
            pace_factor: 8,
            forget: Duration::from_secs(10),
            groups_max: 4,
            window: u32::MAX,
            improved: Settings::default(),
            frame_max: 2296,
        }
    }

    /// Checks the values that have limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        let improved = self.variant == Variant::Improved;
        if self.k == 0 || self.k > K_MAX || improved && self.k > improved::K_MAX {
            return Err(ConfigError::BatchSize { given: self.k });
        }
        let header = match improved {
            true => self.improved_overhead(),
            false => FIXED_HEADER + self.k,
        };
        let most = self.frame_max.saturating_sub(header);
        if self.payload == 0 || self.payload > most {
            return Err(ConfigError::Payload {
                given: self.payload,
                most,
            });
        }
        let (name, given) = match self.variant {
            Variant::More { prune } => ("prune", prune),
            Variant::Pacifier { knob } => ("knob", knob),
            Variant::Tree | Variant::TreeRl | Variant::Improved => ("", 0.0),
        };
        if !(0.0..=1.0).contains(&given) {
            return Err(ConfigError::Share { name, given });
        }
        let counts = [
            (
                "ack_overheard_next_hop",
                self.ack_overheard_next_hop as usize,
            ),
            ("ack_overheard_other", self.ack_overheard_other as usize),
            ("ack_repeat", self.ack_repeat as usize),
            ("ack_cache", self.ack_cache),
            ("groups_max", self.groups_max),
            ("window", self.window as usize),
            ("ack_retry_min", self.ack_retry_min.nanos() as usize),
        ];
        match counts.iter().find(|(_, count)| *count == 0) {
            Some(&(name, _)) => Err(ConfigError::Zero { name }),
            None => self.improved.check(),
        }
    }

    /// Checks that a link can carry the frames of this configuration. Overhearing and the confirmation of
    /// broadcasts are used where they exist (broadcasts reach everybody anyway; without confirmation the
    /// source measures its waiting time from the moment the link took the frame).
    pub fn check_link(&self, caps: &Caps) -> Result<(), ConfigError> {
        let longest = match self.variant {
            Variant::Improved => self.improved_overhead() + self.payload,
            _ => self.frame_len(NODES_MAX),
        };
        caps.need_frame(self.frame_max.min(longest))
            .map_err(ConfigError::Link)
    }

    /// Octets beside the payload in a data frame of [`Variant::Improved`].
    fn improved_overhead(&self) -> usize {
        let states = self.improved.data_states.min(improved::report::STATES_MAX);
        let times = match self.improved.timed {
            true => improved::header::TIMES,
            false => 0,
        };
        times + improved::header::overhead(self.improved.nodes_max.min(NODES_MAX), states, self.k)
    }

    /// Octets of a data frame with `forwarders` forwarding nodes.
    pub fn frame_len(&self, forwarders: usize) -> usize {
        FIXED_HEADER + 3 * forwarders + self.k + self.payload
    }

    /// Whether the source sends batches in turns and not one after the other.
    pub(crate) fn round_robin(&self) -> bool {
        matches!(self.variant, Variant::Pacifier { .. })
    }

    /// Whether the source waits for its children.
    pub(crate) fn paced(&self) -> bool {
        matches!(self.variant, Variant::Pacifier { .. } | Variant::TreeRl)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::BatchSize { given } => {
                let (most, with) = match *given > K_MAX || *given == 0 {
                    true => (K_MAX, ""),
                    false => (improved::K_MAX, " with the variant improved"),
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
            ConfigError::Window { given } => {
                let most = Settings::WINDOW_MAX;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_values_are_valid() {
        for variant in [
            Variant::More { prune: 0.1 },
            Variant::Tree,
            Variant::TreeRl,
            Variant::Pacifier { knob: 0.0 },
        ] {
            assert_eq!(Config::new(variant).check(), Ok(()));
        }
        assert_eq!(Config::default().frame_len(0), 17 + 32 + 1500);
    }

    #[test]
    fn values_out_of_range_are_named() {
        let check = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert_eq!(check(|c| c.k = 129), ConfigError::BatchSize { given: 129 });
        assert_eq!(
            check(|c| c.payload = 2248),
            ConfigError::Payload {
                given: 2248,
                most: 2247
            }
        );
        assert_eq!(
            check(|c| c.ack_cache = 0),
            ConfigError::Zero { name: "ack_cache" }
        );
        assert!(matches!(
            check(|c| c.variant = Variant::Pacifier { knob: f64::NAN }),
            ConfigError::Share { name: "knob", .. }
        ));
    }
}
