//! `[[flow]]`: traffic without an end from one node to another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Located, NodeName};
use crate::quantity::{Rate, Time};

/// Traffic without an end from one node to another: packets of `protocol.payload`. What arrives is counted, and how long it
/// took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTable {
    /// Its name in the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The node that sends.
    #[schemars(with = "NodeName")]
    pub source: Located<usize>,
    /// The node that receives.
    #[schemars(with = "NodeName")]
    pub sink: Located<usize>,
    /// Payload offered at even intervals; without it the source always has something to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Located<Rate>>,
    /// When it begins, counted from the end of probing; at once if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Located<Time>>,
    /// When its source stops, counted in the same way; with the run if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Located<Time>>,
}
