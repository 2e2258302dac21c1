//! The keys of `[protocol]` that one system reads: their types, defaults and documentation are the system's own.
//!
//! A system derives `Deserialize`, `Serialize` and `JsonSchema` for a struct of optional keys and hands it over with
//! [`Keys::of`]. This crate reads the table into it, keeps every value's place, and merges the schemas of all systems.

use std::any::Any;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::field_names::names;
use crate::format::Source;
use crate::input::InputError;

/// The keys of one system: how to read them, what they are called, and their schema.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    read: fn(&Source) -> Result<Given, InputError>,
    names: fn() -> &'static [&'static str],
    // Programs that are shipped hold the schema as a text: the code that makes it is a quarter of a megabyte.
    #[cfg(not(shipped))]
    schema: fn() -> Value,
}

/// What a scenario gives of a system's keys.
#[derive(Debug)]
pub(crate) struct Given {
    /// The system's own type.
    pub value: Box<dyn Any>,
    /// The same as JSON, for the text that results are filed under.
    pub json: Value,
}

/// Keys of a system that reads none.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoKeys {}

impl Keys {
    /// A system without keys.
    pub const NONE: Keys = Keys::of::<NoKeys>();

    /// The fields of `K`. It should refuse unknown fields, and its fields should be optional and
    /// [`Located`](crate::format::Located), so that an error can point at them.
    pub const fn of<K: Any + DeserializeOwned + Serialize + JsonSchema>() -> Keys {
        Keys {
            read: read::<K>,
            names: names::<K>,
            #[cfg(not(shipped))]
            schema: schema::<K>,
        }
    }

    /// Reads `[protocol]` without `system` and `variant`.
    pub(crate) fn read(self, source: &Source) -> Result<Given, InputError> {
        (self.read)(source)
    }

    /// The JSON Schema of the keys, as an object with `properties` and `$defs`.
    #[cfg(not(shipped))]
    pub fn schema(self) -> Value {
        (self.schema)()
    }

    /// The names of the keys.
    pub fn names(self) -> &'static [&'static str] {
        (self.names)()
    }
}

fn read<K: Any + DeserializeOwned + Serialize>(source: &Source) -> Result<Given, InputError> {
    let keys: K = source.parse_table("protocol", &["system", "variant", "name"])?;
    let json = serde_json::to_value(&keys).unwrap_or_default();
    Ok(Given {
        value: Box::new(keys),
        json,
    })
}

#[cfg(not(shipped))]
fn schema<K: JsonSchema>() -> Value {
    schemars::schema_for!(K).to_value()
}
