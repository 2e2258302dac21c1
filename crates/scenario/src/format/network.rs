//! `[network]`: generated, given by positions, given by links, or imported.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Located;
use crate::quantity::{Length, Speed, Time};

/// Where the nodes stand, or which links they have. Exactly one of `generator`, `positions`, `links` and
/// `file` is given; each other key belongs to one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkTable {
    /// Places nodes by a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<Located<Generator>>,
    /// How many nodes the generator places, or are drawn from `file` (802.15.4 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Located<usize>>,
    /// Width and depth for `random`, `clustered` and `random-waypoint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub area: Option<Located<[Length; 2]>>,
    /// Distance between neighbours for `grid` and `line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spacing: Option<Located<Length>>,
    /// How many clusters for `clustered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Located<usize>>,
    /// Standard deviation of the distance from the cluster's centre, for `clustered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Located<Length>>,
    /// Least and greatest speed of a way, for `random-waypoint`. The least is above zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Located<[Speed; 2]>>,
    /// Shortest and longest stay between two ways, for `random-waypoint`; none if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Located<[Time; 2]>>,
    /// Places the nodes by this seed whatever the run's seed; without it, every seed has its own network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Draws the places again until links of at least this delivery ratio, in both directions, connect all nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected: Option<Located<f64>>,
    /// One `["x", "y"]` for each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<Located<Vec<[Length; 2]>>>,
    /// Delivery ratios from each node (row) to each node (column), in the scenario or in a separate CSV file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Located<Links>>,
    /// Nodes sense each other's transmissions if one delivers at least this share of them to the other. Only
    /// for `links` and `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senses_above: Option<Located<f64>>,
    /// A map or link list: NetJSON NetworkGraph, meshviewer, or CSV with columns such as `src,dst,pdr`; or positions: a script of
    /// ns-2 or ns-3 with its movements, a trace of BonnMotion, or an ini file of OMNeT++.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Located<PathBuf>>,
    /// The share of good links whose other channels are as bad as those of ten inter-floor links that were measured in
    /// a testbed (Table I of the P³ paper). Only for 802.15.4, with `building`, `links` and `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_links: Option<Located<f64>>,
    /// Which rows of a link list in `file` to use: column and value, such as `{ channel = "26" }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub select: BTreeMap<String, String>,
    /// Whether a link that `file` gives in one direction is alike in the other; false if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undirected: Option<Located<bool>>,
}

/// A rule that places nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// Uniformly at random in an area.
    Random,
    /// On a square grid.
    Grid,
    /// One behind the other.
    Line,
    /// In clusters in an area.
    Clustered,
    /// Uniformly at random in an area, and from there to random places in it.
    RandomWaypoint,
    /// Along the corridors of a building, with channels that differ; only for 802.15.4.
    Building,
}

/// A matrix of delivery ratios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a matrix of delivery ratios, or the path of a CSV file"
)]
pub enum Links {
    /// Row by row in the scenario.
    Matrix(Vec<Vec<f64>>),
    /// One line of comma-separated numbers for each row, in a file.
    File(PathBuf),
}
