//! The paper's parameters: each with its unit, its default and the section it comes from.

use chappe_core::{Caps, Duration};

use crate::common::{Common, ConfigError, require_nonzero, require_shares};
use crate::links::NODES_MAX;
use crate::paper::header::frame_len;
use crate::store::K_MAX;

/// Which of the paper's protocols runs (Table I). All nodes of a network run the same one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variant {
    /// MORE: belts of forwarding nodes, batches one after the other, no pacing.
    More {
        /// The share of all transmissions below which a node is pruned, 0 to 1. Published: 0.10. The paper
        /// tunes it per scenario: [`tuned_prune_percent`](crate::paper::more::tuned_prune_percent).
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
}

/// What proves to a node that the next hop has its ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckProof {
    /// Only the piggybacked ACK in a data frame of the next hop, as on the paper's testbed, whose
    /// implementation got no confirmation from its MAC (V-B.2). Costs resends wherever the next hop sends no data.
    Overheard,
    /// That, or the MAC's own confirmation. The default: our links report it, and in the paper's simulations
    /// the number of ACKs is one per receiver and batch (footnote 3), which rules out routine resends.
    MacOrOverheard,
}

/// How long the source waits for a child after each packet (III-B): at most `factor` T_p, the airtime of a data frame in
/// the configured mode, for each transmission that its packet is expected to cause at its children.
///
/// The paper prints 8 T_p times the sum of the children's TX_credit, and says that a transmission of the source triggers
/// that many on average. Both cannot be meant: TX_credit is earned by packets that a child *hears*, one in three or four
/// here. `docs/pacifier.md` compares the readings with the paper's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pacing {
    /// T_p for each expected transmission, at least 1.
    pub factor: u32,
    /// What counts as an expected transmission.
    pub expects: Expects,
    /// From when on the source waits.
    pub from: PaceFrom,
}

/// What one packet of the source is expected to cause at its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expects {
    /// The sum of their credits, as printed.
    Credits,
    /// The sum of their credits, each times the probability that the child hears the packet: the transmissions that it
    /// triggers on average.
    Triggered,
}

/// From when on the source waits, and which frames of its children end the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PaceFrom {
    /// From the moment at which its frame has left the air. A child that is overheard before, while the frame still
    /// waits for the channel, forwards an earlier packet and does not count.
    Sent,
    /// From the moment at which it hands the packet to the channel access, as a network layer above a queue does. Every
    /// frame of a child that it overhears since puts the next packet into the queue.
    HandOver,
}

impl Pacing {
    /// 3 T_p for each transmission that the packet triggers: the factor of the unicast form of BMCC, which the paper
    /// builds on (III-B, reference 44). The default, because it gives the paper's figures.
    pub const TRIGGERED: Pacing = Pacing {
        factor: 3,
        expects: Expects::Triggered,
        from: PaceFrom::Sent,
    };

    /// The printed formula: 8 T_p times the sum of the credits.
    pub const PRINTED: Pacing = Pacing {
        factor: 8,
        expects: Expects::Credits,
        from: PaceFrom::Sent,
    };

    /// The printed factor for each transmission that the packet triggers, counted from the hand-over.
    pub const QUEUED: Pacing = Pacing {
        factor: 8,
        expects: Expects::Triggered,
        from: PaceFrom::HandOver,
    };
}

/// The parameters of a node that runs one of the paper's protocols.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The parameters that the improved variant has, too. `forget` and `frame_max` are ours.
    pub common: Common,
    /// Which protocol runs. Default: Pacifier with knob 1.
    pub variant: Variant,
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
    /// How long the source waits for its children. Default [`Pacing::TRIGGERED`].
    pub pacing: Pacing,
    /// Batches that a forwarding node keeps packets of. Default 1 (III-C: it flushes its buffer when a new batch begins).
    /// With more, what it heard in an earlier round still serves in the next. The oldest is dropped first.
    pub relay_batches: u32,
    /// Batches that take turns, counted from the first one that a receiver lacks; the others wait. Receivers need
    /// memory for as many. Default all: the paper's rounds go over the whole file (III-C).
    pub window: u32,
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
            common: Common::default(),
            variant,
            ack_overheard_next_hop: 10,
            ack_overheard_other: 20,
            ack_proof: AckProof::MacOrOverheard,
            ack_retry_min: Duration::from_millis(200),
            ack_retry_max: Duration::from_millis(6400),
            ack_repeat: 320,
            ack_cache: 128,
            pacing: Pacing::TRIGGERED,
            relay_batches: 1,
            window: u32::MAX,
        }
    }

    /// Checks the values that have limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.common.check(K_MAX, frame_len(0, self.common.k, 0))?;
        match self.variant {
            Variant::More { prune } => require_shares(&[("prune", prune)])?,
            Variant::Pacifier { knob } => require_shares(&[("knob", knob)])?,
            Variant::Tree | Variant::TreeRl => {}
        }
        require_nonzero(&[
            ("ack_overheard_next_hop", self.ack_overheard_next_hop.into()),
            ("ack_overheard_other", self.ack_overheard_other.into()),
            ("ack_repeat", self.ack_repeat.into()),
            ("ack_cache", self.ack_cache as u64),
            ("window", self.window.into()),
            ("pacing.factor", self.pacing.factor.into()),
            ("relay_batches", self.relay_batches.into()),
            ("ack_retry_min", self.ack_retry_min.nanos()),
        ])
    }

    /// Checks that a link can carry the frames of this configuration. Overhearing and the confirmation of
    /// broadcasts are used where they exist: broadcasts reach every neighbour anyway, and without confirmation the
    /// source measures its waiting time from the moment the link took the frame.
    pub fn check_link(&self, caps: &Caps) -> Result<(), ConfigError> {
        self.common.check_link(caps, self.frame_len(NODES_MAX))
    }

    /// Octets of a data frame with `forwarders` forwarding nodes.
    pub fn frame_len(&self, forwarders: usize) -> usize {
        frame_len(forwarders, self.common.k, self.common.payload)
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
        assert_eq!(
            check(|c| c.common.k = 129),
            ConfigError::BatchSize {
                given: 129,
                most: 128
            }
        );
        assert_eq!(
            check(|c| c.common.payload = 2248),
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
