//! Values that know where in the file they stand.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use toml::Spanned;

use super::reader::LOCATED;

/// A value and its place in the file, so that a mistake found later still points at it. [`read`](super::read) reads it, other
/// deserializers do not know places.
#[derive(Clone, Debug)]
pub struct Located<T>(Spanned<T>);

impl<T> Located<T> {
    /// A value that stands in no file.
    pub fn nowhere(value: T) -> Located<T> {
        Located(Spanned::new(0..0, value))
    }

    /// Another value at the same place.
    pub fn replaced<U>(&self, value: U) -> Located<U> {
        Located(Spanned::new(self.span(), value))
    }

    /// The value without its place.
    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    /// The octets of the file that hold the value.
    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }
}

/// The place of an optional key in the scenario, if it is given.
pub fn span_of<T>(key: &Option<Located<T>>) -> Option<Range<usize>> {
    key.as_ref().map(Located::span)
}

impl<T> Deref for Located<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.get_ref()
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    /// Values are compared, places are not.
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Default> Default for Located<T> {
    fn default() -> Self {
        Located::nowhere(T::default())
    }
}

impl<T> From<T> for Located<T> {
    fn from(value: T) -> Self {
        Located::nowhere(value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Located<T>, D::Error> {
        deserializer.deserialize_tuple_struct(LOCATED, 3, Parts(PhantomData))
    }
}

/// Takes where a value begins, where it ends, and the value.
struct Parts<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
    type Value = Located<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Located<T>, A::Error> {
        let (start, end) = (parts.next_element()?, parts.next_element()?);
        match (start, end, parts.next_element()?) {
            (Some(start), Some(end), Some(value)) => Ok(Located(Spanned::new(start..end, value))),
            _ => Err(A::Error::custom("a value without its place")),
        }
    }
}

impl<T: Serialize> Serialize for Located<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
