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
use serde_json::{Map, Value, json};

use crate::system::System;

pub use fault::{FaultKind, FaultTable};
pub use flow::FlowTable;
pub use located::Located;
pub use mac::{AccessName, MacTable};
pub use network::{Generator, Links, NetworkTable};
pub use protocol::{LinkKnowledge, ProtocolTable, SystemName, VariantName};
pub use radio::{
    CaptureName, FadingName, PathLossName, PreambleName, ProfileName, RadioTable, ReceptionName,
};
pub use run::RunTable;
pub use source::Source;
pub use transfer::{Receivers, TransferTable};

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a few words; stands over the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the nodes stand, or which links they have.
    pub network: Located<NetworkTable>,
    /// The radios and the air between them.
    #[serde(default)]
    pub radio: RadioTable,
    /// Channel access, for systems on 802.11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Located<MacTable>>,
    /// What carries the data.
    #[serde(default)]
    pub protocol: Located<ProtocolTable>,
    /// What must be carried; at least one, if there is no flow.
    #[serde(default)]
    pub transfer: Vec<Located<TransferTable>>,
    /// Traffic without an end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Located<FlowTable>>,
    /// What goes wrong, and when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<Located<FaultTable>>,
    /// Seeds and limits.
    #[serde(default)]
    pub run: RunTable,
}

/// The JSON Schema of a scenario file that may name these systems, for editors and for checking.
///
/// `[protocol]` has the keys and variants of the system that it names: a conditional for each system, so that an editor
/// proposes no key of another one.
pub fn schema(systems: &[&System]) -> Value {
    let mut schema = schemars::schema_for!(Scenario).to_value();
    schema["title"] = "Chappe scenario".into();
    let names: Vec<&str> = systems.iter().map(|system| system.name).collect();
    schema["$defs"]["SystemName"]["enum"] = names.into();
    let mut conditions = Vec::new();
    for (place, system) in systems.iter().enumerate() {
        let mut keys = system.keys.schema();
        for (name, definition) in object(keys["$defs"].take()) {
            schema["$defs"][name] = definition;
        }
        let mut properties = object(keys["properties"].take());
        let variants: Vec<&str> = system.variants.iter().map(|variant| variant.name).collect();
        properties.insert("variant".into(), json!({ "enum": variants }));
        for common in ["system", "name"] {
            properties.insert(common.into(), json!({ "const": system.name }));
        }
        let named = |key: &str| json!({ "required": [key], "properties": { key: { "const": system.name } } });
        let mut when = vec![named("system"), named("name")];
        if place == 0 {
            // The first system is meant where none is named.
            let unnamed =
                json!({ "anyOf": [{ "required": ["system"] }, { "required": ["name"] }] });
            when.push(json!({ "not": unnamed }));
        }
        conditions.push(json!({
            "if": { "anyOf": when },
            "then": { "properties": properties, "additionalProperties": false },
        }));
    }
    schema["$defs"]["ProtocolTable"]["allOf"] = conditions.into();
    schema
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
