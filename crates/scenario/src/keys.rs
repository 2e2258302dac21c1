//! The keys of `[protocol]` that one system reads: their types, defaults and documentation are the system's own.
//!
//! A system derives `Deserialize`, `Serialize` and `JsonSchema` for a struct of optional keys and hands it over with
//! [`Keys::of`]. This crate reads the table into it, keeps every value's place, and merges the schemas of all systems.

use std::any::Any;

use schemars::JsonSchema;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Deserialize, Serialize, forward_to_deserialize_any};
use serde_json::Value;

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

/// The fields that a type asks for.
pub(crate) fn names<K: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // It never gives a value, so reading one fails.
    let _ = K::deserialize(Fields(&mut names));
    names
}

/// Takes note of the fields that a struct asks for.
struct Fields<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(not(shipped))]
fn schema<K: JsonSchema>() -> Value {
    schemars::schema_for!(K).to_value()
}
