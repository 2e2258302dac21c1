//! `[run]`: seeds and limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Located;
use crate::quantity::Time;

/// The seeds to run, and when a run ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTable {
    /// The number that decides everything random; with `repeat`, the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Located<u64>>,
    /// How many runs, each with the next seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Located<u64>>,
    /// The seeds themselves, instead of the two above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Located<Vec<u64>>>,
    /// A run ends here, finished or not. If omitted, it ends when nothing has moved for minutes, or after ten minutes
    /// and 300 times the least possible time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Located<Time>>,
}
