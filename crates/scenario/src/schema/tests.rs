//! The schema for two small systems, by a validator of the few words that `[protocol]` uses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::format::Located;
use crate::keys::Keys;
use crate::plan::Plan;
use crate::system::{NoSettings, Variant};

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FloodKeys {
    /// How often each node repeats a packet.
    repeats: Option<Located<u8>>,
    /// Whether nodes wait before they repeat it.
    jitter: Option<Located<bool>>,
}

static FLOOD: System = System {
    name: "flood",
    title: "Flood",
    variants: &[
        Variant::new("plain", "Flood"),
        Variant::new("gossip", "Gossip"),
    ],
    keys: Keys::of::<FloodKeys>(),
    plan: |checked| {
        let frame = (chappe_core::Mode::long(chappe_core::Rate::Dsss2), 1564);
        Ok(std::sync::Arc::new(NoSettings::new(checked, frame)))
    },
    ..System::DOT11B
};

static TREE: System = System {
    name: "tree",
    title: "Tree",
    variants: &[Variant::new("paper", "Tree")],
    plan: FLOOD.plan,
    ..System::DOT11B
};

const SYSTEMS: [&System; 2] = [&FLOOD, &TREE];

/// Whether `value` is valid. A word of JSON Schema that this does not know fails the test.
fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(words) = schema.as_object() else {
        return schema
            .as_bool()
            .expect("a schema is an object or a boolean");
    };
    let all = |list: &Value| -> Vec<bool> {
        let schemas = list.as_array().unwrap().iter();
        schemas.map(|one| valid(root, one, value)).collect()
    };
    words.iter().all(|(word, of)| match word.as_str() {
        "$ref" => {
            let pointer = of.as_str().unwrap().trim_start_matches('#');
            valid(root, root.pointer(pointer).unwrap(), value)
        }
        "const" => value == of,
        "enum" => of.as_array().unwrap().contains(value),
        "not" => !valid(root, of, value),
        "anyOf" => all(of).contains(&true),
        "allOf" => !all(of).contains(&false),
        "if" => {
            let then = words.get("then").unwrap_or(&Value::Bool(true));
            !valid(root, of, value) || valid(root, then, value)
        }
        "required" => {
            let names = of.as_array().unwrap().iter();
            names
                .map(|name| name.as_str().unwrap())
                .all(|name| !value[name].is_null())
        }
        "properties" => {
            let properties = of.as_object().unwrap().iter();
            properties
                .filter(|(name, _)| !value[name.as_str()].is_null())
                .all(|(name, of)| valid(root, of, &value[name.as_str()]))
        }
        "additionalProperties" => {
            let known = schema["properties"].as_object().unwrap();
            let mut given = value.as_object().unwrap().keys();
            *of != Value::Bool(false) || given.all(|name| known.contains_key(name))
        }
        "type" => {
            let is = |name: &Value| match name.as_str().unwrap() {
                "object" => value.is_object(),
                "string" => value.is_string(),
                "integer" => value.is_u64(),
                "boolean" => value.is_boolean(),
                "null" => value.is_null(),
                other => panic!("the type {other}"),
            };
            of.as_array()
                .map_or_else(|| is(of), |types| types.iter().any(is))
        }
        "minimum" => value.as_f64() >= of.as_f64(),
        "maximum" => value.as_f64() <= of.as_f64(),
        "then" | "description" | "default" | "format" | "$schema" | "title" => true,
        other => panic!("the word {other}"),
    })
}

/// Whether `[protocol]` with these lines is valid by the schema, and whether the reader accepts it.
fn judged(protocol: &str) -> (bool, bool) {
    let schema = schema(&SYSTEMS);
    let table: Value = toml::from_str::<Value>(protocol).unwrap();
    let text = format!(
        "[network]\nlinks = [[0, 1], [1, 0]]\n[[transfer]]\nreceivers = 1\nbytes = \"1 kB\"\n[protocol]\n{protocol}\n"
    );
    (
        valid(&schema, &schema["$defs"]["ProtocolTable"], &table),
        Plan::parse(&SYSTEMS, "test", &text).is_ok(),
    )
}

#[test]
fn a_system_has_its_own_keys_and_variants_only() {
    for (protocol, right) in [
        ("system = \"flood\"", true),
        ("system = \"flood\"\nrepeats = 3\njitter = true", true),
        ("system = \"flood\"\nvariant = \"gossip\"", true),
        ("system = \"flood\"\nvariant = \"paper\"", false),
        ("system = \"flood\"\nrepeats = \"often\"", false),
        ("system = \"flood\"\nrepeats = 300", false),
        ("system = \"flood\"\ncolour = 1", false),
        ("system = \"tree\"\nvariant = \"paper\"", true),
        ("system = \"tree\"\nvariant = \"gossip\"", false),
        ("system = \"tree\"\nrepeats = 3", false),
        ("system = \"ring\"", false),
        // Files of version 0.1.
        ("name = \"tree\"", true),
        ("name = \"tree\"\nrepeats = 3", false),
    ] {
        assert_eq!(judged(protocol), (right, right), "{protocol}");
    }
}

#[test]
fn the_first_system_is_meant_where_none_is_named() {
    for (protocol, right) in [
        ("", true),
        ("repeats = 3", true),
        ("variant = \"gossip\"", true),
        ("variant = \"paper\"", false),
        ("colour = 1", false),
    ] {
        assert_eq!(judged(protocol), (right, right), "{protocol}");
    }
}

/// An editor offers what stands in the branch of the named system.
#[test]
fn each_branch_offers_one_system() {
    let schema = schema(&SYSTEMS);
    let branches = schema["$defs"]["ProtocolTable"]["allOf"]
        .as_array()
        .unwrap();
    let offered = branches.iter().map(|branch| {
        let properties = branch["then"]["properties"].as_object().unwrap();
        properties.keys().map(String::as_str).collect::<Vec<_>>()
    });
    let offered: Vec<Vec<&str>> = offered.collect();
    assert_eq!(
        offered,
        [
            vec!["jitter", "name", "repeats", "system", "variant"],
            vec!["name", "system", "variant"]
        ]
    );
    assert_eq!(
        schema["$defs"]["SystemName"]["enum"],
        json!(["flood", "tree"])
    );
}
