//! What a scenario file says: a network, its radios, a protocol, what it must carry, and what goes wrong.
//!
//! The types here are the file, word for word: the JSON Schema of `chappe sim --schema` is made from them.
//! They say nothing about whether the scenario makes sense; [`crate::plan`] does, and makes of it what a run
//! needs. Every quantity is written with its unit, and every value that can be wrong in a way that only
//! shows later is [`Located`], so that the message can point at it.

mod fault;
mod flow;
mod located;
mod mac;
mod network;
mod protocol;
mod radio;
mod run;
mod source;
mod transfer;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::system::System;

pub use fault::{Fault, FaultKind};
pub use flow::Flow;
pub use located::Located;
pub use mac::{AccessName, Mac};
pub use network::{Generator, Links, Network};
pub use protocol::{Headers, LinkKnowledge, Protocol, Prune, PruneRule, SystemName, VariantName};
pub use radio::{
    CaptureName, FadingName, PathLossName, PreambleName, ProfileName, Radio, ReceptionName,
};
pub use run::Run;
pub use source::Source;
pub use transfer::{Receivers, Transfer};

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a few words; stands over the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the nodes stand, or which links they have.
    pub network: Located<Network>,
    /// The radios and the air between them.
    #[serde(default)]
    pub radio: Radio,
    /// Channel access, for systems on 802.11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Located<Mac>>,
    /// What carries the data.
    #[serde(default)]
    pub protocol: Located<Protocol>,
    /// What must be carried; at least one, if there is no flow.
    #[serde(default)]
    pub transfer: Vec<Located<Transfer>>,
    /// Traffic without an end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Located<Flow>>,
    /// What goes wrong, and when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<Located<Fault>>,
    /// Seeds and limits.
    #[serde(default)]
    pub run: Run,
}

/// The JSON Schema of a scenario file that may name these systems, for editors and for checking.
pub fn schema(systems: &[&System]) -> serde_json::Value {
    let mut schema = schemars::schema_for!(Scenario).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "Chappe scenario".into());
    }
    let names: Vec<&str> = systems.iter().map(|system| system.name).collect();
    let variants = systems.iter().flat_map(|system| system.variants);
    let mut variants: Vec<&str> = variants.map(|variant| variant.name).collect();
    variants.sort_unstable();
    variants.dedup();
    for (definition, names) in [("SystemName", names), ("VariantName", variants)] {
        schema["$defs"][definition]["enum"] = names.into();
    }
    schema
}
