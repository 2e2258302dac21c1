//! `[[transfer]]`: one object from one source to its receivers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Located, NodeName};
use crate::quantity::Size;

/// One object from one source to its receivers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferTable {
    /// Its name in the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The node that has it; drawn from the seed if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NodeName>")]
    pub source: Option<Located<usize>>,
    /// The nodes that want it, or how many nodes to draw from the seed.
    pub receivers: Located<Receivers>,
    /// Its size; the contents are drawn from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Located<Size>>,
    /// A file to carry instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Located<PathBuf>>,
}

/// Who wants an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a list of nodes such as [3, 7], or how many to draw"
)]
pub enum Receivers {
    /// This number of nodes, drawn from the seed.
    Count(usize),
    /// The nodes that are listed, by number.
    Nodes(#[schemars(with = "Vec<NodeName>")] Vec<usize>),
}

impl Default for Receivers {
    fn default() -> Self {
        Receivers::Count(1)
    }
}
