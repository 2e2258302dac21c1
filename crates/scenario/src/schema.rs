//! The JSON Schema of scenario files, for editors and for checking.

use serde_json::{Map, Value, json};

use crate::format::Scenario;
use crate::system::System;

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

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests;
