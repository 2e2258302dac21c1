//! `[protocol]`: the system that carries the data.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::Located;

/// What carries the data. In addition to these two keys the table has the system's own, see
/// [`Keys`](crate::Keys). Omitted keys have the values of the system's paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolTable {
    /// The system; `pacifier` if omitted. Files of version 0.1 call it `name`.
    #[serde(alias = "name", skip_serializing_if = "Option::is_none")]
    pub system: Option<Located<SystemName>>,
    /// The variant of the system: the paper's if omitted, one of the paper's baselines, or an improved one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Located<VariantName>>,
}

/// The name of a system. Whether there is such a one is checked when the plan is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SystemName(String);

impl Deref for SystemName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for SystemName {
    fn schema_name() -> Cow<'static, str> {
        "SystemName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Which system carries the data.", "type": "string" })
    }
}

/// The name of a system's variant. Whether the system has it is checked when the plan is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VariantName(String);

impl Deref for VariantName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for VariantName {
    fn schema_name() -> Cow<'static, str> {
        "VariantName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "A form of the system.", "type": "string" })
    }
}

/// How the nodes learn the delivery ratios of their links. Several systems have a key of this type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKnowledge {
    /// By probes on the same air, before the transfer.
    #[default]
    Probed,
    /// They know the true ratios, which no real network can.
    True,
}
