//! `[sweep]`: the values of keys that are varied together.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde::{Serialize, Serializer};

/// The table `[sweep]`. Its keys are those of the whole scenario, so [`crate::sweep`] reads it; here it is known only to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepTable;

impl<'de> Deserialize<'de> for SweepTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| SweepTable)
    }
}

impl Serialize for SweepTable {
    /// Never filed with a scenario: one cell of a sweep is the same scenario as without the sweep.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl JsonSchema for SweepTable {
    fn schema_name() -> Cow<'static, str> {
        "SweepTable".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let value = serde_json::json!({ "type": ["string", "number", "boolean"] });
        json_schema!({
            "type": "object",
            "description": "The values of keys that `chappe sweep` varies together.",
            "additionalProperties": false,
            "properties": {
                "grid": {
                    "type": "object",
                    "description": "Keys of this file, such as radio.tx_power, each with its values: a list, or a range A..B UNIT/STEP.",
                    "additionalProperties": {
                        "anyOf": [
                            { "type": "array", "items": value, "minItems": 1, "description": "The values." },
                            { "type": "string", "description": "A range with both ends, `10..20 dBm/5`, or values between commas." },
                            { "type": "object", "description": "The keys of a table, each with its values." },
                        ],
                    },
                },
                "reference": {
                    "type": "object",
                    "description": "Keys of the grid, each with the value that the others are compared with; default: the first value of the first key.",
                    "additionalProperties": {
                        "anyOf": [value, { "type": "object", "description": "The keys of a table." }],
                    },
                },
            },
        })
    }
}
