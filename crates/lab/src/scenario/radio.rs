//! `[radio]`: the radios and the air between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Located;
use crate::quantity::Rate;

/// The radios and the air between them: a named profile and what is different from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Radio {
    /// Rate of data frames: 1, 2, 5.5 or 11 Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Located<Rate>>,
}
