//! `[protocol]`: what carries the data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Located;
use crate::quantity::{Size, Time};

/// What carries the data, and its parameters. What is left out is as in the paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Which system.
    #[serde(default)]
    pub name: ProtocolName,
    /// Which form of it: the paper's, or one of the paper's baselines.
    #[serde(default)]
    pub variant: Located<Variant>,
    /// Pacifier's share between the best child (0) and every child (1) in the transmission credits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knob: Option<Located<f64>>,
    /// MORE drops forwarders with less than this share of all transmissions, or `"tuned"`: the largest share from
    /// 0.10 down in steps of 0.01 that leaves no receiver without a forwarder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<Located<Prune>>,
    /// Packets coded together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Located<usize>>,
    /// Data in one packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Located<Size>>,
    /// How the nodes learn the delivery ratios of their links.
    #[serde(default)]
    pub links: LinkKnowledge,
    /// How long probes are sent before the transfer, one a second from each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probing: Option<Located<Time>>,
    /// An acknowledgement is sent again after this many frames overheard from its next hop that do not confirm it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_overheard_next_hop: Option<u32>,
    /// An acknowledgement is sent again after this many frames overheard from other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_overheard_other: Option<u32>,
}

/// Which system carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolName {
    /// Reliable multicast by tree opportunistic routing and network coding.
    #[default]
    Pacifier,
}

/// Which form of Pacifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The whole protocol of the paper: TREE+RL+RRB.
    #[default]
    Paper,
    /// MORE, the baseline: belts of forwarders, one batch until everybody has it.
    More,
    /// Tree-based opportunistic routing only.
    Tree,
    /// The tree and the source's rate limit.
    TreeRl,
}

impl Variant {
    /// Its name in files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Paper => "paper",
            Variant::More => "more",
            Variant::Tree => "tree",
            Variant::TreeRl => "tree-rl",
        }
    }

    /// Its name in tables and figures.
    pub const fn label(self) -> &'static str {
        match self {
            Variant::Paper => "Pacifier",
            Variant::More => "MORE",
            Variant::Tree => "TREE",
            Variant::TreeRl => "TREE+RL",
        }
    }
}

/// MORE's pruning threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a share such as 0.1, or \"tuned\"")]
pub enum Prune {
    /// This share of all transmissions.
    Share(f64),
    /// Found for each network.
    Rule(PruneRule),
}

/// How a pruning threshold is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PruneRule {
    /// From 0.10 down by 0.01 until no receiver is cut off.
    Tuned,
}

/// How the nodes learn the delivery ratios of their links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKnowledge {
    /// By probes on the same air, before the transfer.
    #[default]
    Probed,
    /// They are told the true ratios, which no real network can know.
    True,
}
