//! Reads parsed TOML as the types that serde describes.
//!
//! The `toml` crate does so too, but compiles each type for lists, tables and values again, and each type that is
//! [`Located`](super::Located) once more: 0.4 MB of a program. Here all of them are one [`Node`], so a type is compiled once.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::vec::IntoIter;

use serde::de::value::CowStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::misread::Misread;
use super::wording::wording;
use crate::input::{InputError, told};

/// The name by which a [`Located`](super::Located) value asks for its place.
pub(super) const LOCATED: &str = "Located";

/// Reads a whole TOML text as a `T`. Errors call the text `from`, and point into it.
pub fn read<T: DeserializeOwned>(from: &str, text: &Arc<str>) -> Result<T, InputError> {
    let root = DeTable::parse(text).map_err(Misread::from);
    let value = root.and_then(|root| T::deserialize(Node::from(root)));
    value.map_err(|why| explained(&why, from, text))
}

/// The error about a text that is called `from`.
fn explained(misread: &Misread, from: &str, text: &Arc<str>) -> InputError {
    let words = wording(misread, text, misread.span().unwrap_or(0..0));
    let mut error = InputError::new(from, words.message);
    error.help = words.help;
    match misread.span() {
        Some(_) => error.at(text, words.span, words.label),
        None => error,
    }
}

/// A value of the text and its place.
pub(super) struct Node<'de> {
    span: Range<usize>,
    value: Written<'de>,
}

enum Written<'de> {
    Toml(DeValue<'de>),
    /// One end of a place.
    Offset(usize),
}

/// A value as a visitor takes it.
enum Plain<'de> {
    Text(Cow<'de, str>),
    Whole(i64),
    Large(u64),
    Real(f64),
    Truth(bool),
    List(Items<'de>),
    Table(Entries<'de>),
}

impl<'de> From<Spanned<DeTable<'de>>> for Node<'de> {
    fn from(table: Spanned<DeTable<'de>>) -> Node<'de> {
        let span = table.span();
        let value = Written::Toml(DeValue::Table(table.into_inner()));
        Node { span, value }
    }
}

impl<'de> From<Spanned<DeValue<'de>>> for Node<'de> {
    fn from(value: Spanned<DeValue<'de>>) -> Node<'de> {
        let span = value.span();
        let value = Written::Toml(value.into_inner());
        Node { span, value }
    }
}

impl<'de> Node<'de> {
    fn offset(at: usize) -> Node<'de> {
        let value = Written::Offset(at);
        Node { span: 0..0, value }
    }

    fn plain(self) -> Result<Plain<'de>, Misread> {
        let value = match self.value {
            Written::Toml(value) => value,
            Written::Offset(at) => return Ok(Plain::Large(at as u64)),
        };
        Ok(match value {
            DeValue::String(text) => Plain::Text(text),
            DeValue::Integer(number) => {
                let (digits, radix) = (number.as_str(), number.radix());
                match i64::from_str_radix(digits, radix) {
                    Ok(number) => Plain::Whole(number),
                    Err(_) => Plain::Large(u64::from_str_radix(digits, radix).map_err(|_| {
                        Misread::custom(format_args!("{number} is out of the range of numbers"))
                    })?),
                }
            }
            DeValue::Float(number) => {
                let digits = number.as_str();
                let real = digits.parse().unwrap_or(f64::INFINITY);
                if real.is_infinite() && !digits.contains("inf") {
                    let why = format_args!("{digits} is out of the range of numbers");
                    return Err(Misread::custom(why));
                }
                Plain::Real(real)
            }
            DeValue::Boolean(truth) => Plain::Truth(truth),
            DeValue::Datetime(date) => Plain::Text(Cow::Owned(date.to_string())),
            DeValue::Array(list) => Plain::List(Items::of(list)),
            DeValue::Table(table) => Plain::Table(Entries::of(table)),
        })
    }

    /// The items of a list, or the place and then the value itself for one that is located.
    fn items(self, name: &str) -> Result<Items<'de>, Misread> {
        if name == LOCATED {
            let Range { start, end } = self.span;
            let parts = vec![Node::offset(start), Node::offset(end), self];
            return Ok(Items(parts.into_iter()));
        }
        match self.plain()? {
            Plain::List(items) => Ok(items),
            _ => Err(Misread::custom("expected a list")),
        }
    }

    /// The name of a variant, and what it holds.
    fn choice(self, names: &[&str]) -> Result<Choice<'de>, Misread> {
        match self.plain()? {
            Plain::Text(name) => Ok(Choice { name, holds: None }),
            Plain::Table(mut entries) if entries.rest.len() == 1 => {
                let entry = entries.rest.next();
                let (name, value) = entry.ok_or_else(|| Misread::custom("an empty table"))?;
                Ok(Choice {
                    name: name.into_inner(),
                    holds: Some(value),
                })
            }
            // `--set protocol.links=true` gives no name, but a truth value.
            Plain::Truth(truth) if names.contains(&truth.to_string().as_str()) => {
                let names = format!("expected one of the names {}", names.join(", "));
                let help = format!("quotes make a name of it: '\"{truth}\"'");
                Err(Misread::custom(told(names, help)))
            }
            _ => Err(Misread::custom(format_args!(
                "expected one of the names {}",
                names.join(", ")
            ))),
        }
    }
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Misread;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misread> {
        let span = self.span.clone();
        let read = self.plain().and_then(|plain| match plain {
            Plain::Text(text) => visitor.visit_str(&text),
            Plain::Whole(number) => visitor.visit_i64(number),
            Plain::Large(number) => visitor.visit_u64(number),
            Plain::Real(number) => visitor.visit_f64(number),
            Plain::Truth(truth) => visitor.visit_bool(truth),
            Plain::List(items) => visitor.visit_seq(items),
            Plain::Table(entries) => visitor.visit_map(entries),
        });
        read.map_err(|why| why.within(span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misread> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misread> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Misread> {
        let span = self.span.clone();
        let read = self.items(name).and_then(|items| visitor.visit_seq(items));
        read.map_err(|why| why.within(span))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misread> {
        let span = self.span.clone();
        let read = (self.choice(names)).and_then(|choice| visitor.visit_enum(choice));
        read.map_err(|why| why.within(span))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misread> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple map struct
        identifier
    }
}

/// The items of a list.
struct Items<'de>(IntoIter<Node<'de>>);

impl<'de> Items<'de> {
    fn of(list: DeArray<'de>) -> Items<'de> {
        let nodes: Vec<Node<'_>> = list.into_iter().map(Node::from).collect();
        Items(nodes.into_iter())
    }
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misread;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Misread> {
        self.0.next().map(|node| seed.deserialize(node)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The keys of a table and their values.
struct Entries<'de> {
    rest: IntoIter<(Spanned<Cow<'de, str>>, Node<'de>)>,
    key: String,
    value: Option<Node<'de>>,
}

impl<'de> Entries<'de> {
    fn of(table: DeTable<'de>) -> Entries<'de> {
        let entries = table.into_iter();
        let entries: Vec<_> = entries
            .map(|(key, value)| (key, Node::from(value)))
            .collect();
        Entries {
            rest: entries.into_iter(),
            key: String::new(),
            value: None,
        }
    }

    fn step(&mut self) -> Option<Spanned<Cow<'de, str>>> {
        let (key, value) = self.rest.next()?;
        self.value = Some(value);
        self.key = key.get_ref().to_string();
        Some(key)
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Misread;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Misread> {
        let Some(key) = self.step() else {
            return Ok(None);
        };
        let span = key.span();
        let read = seed.deserialize(CowStrDeserializer::new(key.into_inner()));
        read.map(Some).map_err(|why: Misread| why.within(span))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Misread> {
        let value = self.value.take();
        let value = value.ok_or_else(|| Misread::custom("a value before its key"))?;
        let read = seed.deserialize(value);
        read.map_err(|why: Misread| why.of_key(&self.key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A variant: its name alone, or a table of one key.
struct Choice<'de> {
    name: Cow<'de, str>,
    holds: Option<Node<'de>>,
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = Misread;
    type Variant = Held<'de>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Held<'de>), Misread> {
        let name = seed.deserialize(CowStrDeserializer::<Misread>::new(self.name))?;
        Ok((name, Held(self.holds)))
    }
}

/// What a variant holds.
struct Held<'de>(Option<Node<'de>>);

impl<'de> Held<'de> {
    fn node(self) -> Result<Node<'de>, Misread> {
        self.0.ok_or_else(|| {
            Misread::custom("this name needs a value: write { name = value } with it")
        })
    }
}

impl<'de> VariantAccess<'de> for Held<'de> {
    type Error = Misread;

    fn unit_variant(self) -> Result<(), Misread> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(Misread::custom("this name takes no value")),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Misread> {
        seed.deserialize(self.node()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misread> {
        self.node()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misread> {
        self.node()?.deserialize_any(visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use serde::Deserialize;

    use super::*;
    use crate::format::Located;
    use crate::quantity::Time;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        whole: Located<u8>,
        real: Option<f64>,
        path: Option<Located<PathBuf>>,
        pair: Option<Located<[Time; 2]>>,
        #[serde(default)]
        words: BTreeMap<String, String>,
        choice: Option<Choice>,
        either: Option<Either>,
        inner: Option<Located<Vec<Table>>>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "kebab-case")]
    enum Choice {
        Plain,
        Held(u32),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(untagged)]
    enum Either {
        Number(f64),
        Text(String),
    }

    fn table(text: &str) -> Result<Table, InputError> {
        read("t.toml", &text.into())
    }

    #[test]
    fn values_of_all_kinds_are_read_with_their_places() {
        let text = "whole = 0x11\nreal = 3\npath = 'a/b'\npair = ['1 s', '20 ms']\nwords = { a = 'b' }\n\
                    choice = { held = 7 }\neither = 'x'\n[[inner]]\nwhole = 2\nchoice = 'plain'\neither = 0.5\n";
        let table = table(text).unwrap();
        assert_eq!((*table.whole, &text[table.whole.span()]), (17, "0x11"));
        assert_eq!(table.real, Some(3.0));
        assert_eq!(**table.path.as_ref().unwrap(), PathBuf::from("a/b"));
        let pair = table.pair.unwrap();
        assert_eq!(pair[1].value(), 0.02);
        assert_eq!(&text[pair.span()], "['1 s', '20 ms']");
        assert_eq!(table.words["a"], "b");
        assert_eq!(table.choice, Some(Choice::Held(7)));
        assert_eq!(table.either, Some(Either::Text("x".into())));
        let inner = table.inner.unwrap();
        assert_eq!(&text[inner[0].whole.span()], "2");
        assert_eq!(inner[0].choice, Some(Choice::Plain));
        assert_eq!(inner[0].either, Some(Either::Number(0.5)));
    }

    /// Each mistake points at the value, the key or the table that holds it.
    #[test]
    fn mistakes_are_pointed_at() {
        for (text, message, at) in [
            (
                "whole = 300",
                "found `300`, expected a whole number from 0 to 255",
                "300",
            ),
            (
                "whole = 'x'",
                "found \"x\", expected a whole number from 0 to 255",
                "'x'",
            ),
            (
                "whole = 99999999999999999999",
                "99999999999999999999 is out of the range of numbers",
                "99999999999999999999",
            ),
            (
                "whole = 1\nreal = 1e999",
                "1e999 is out of the range of numbers",
                "1e999",
            ),
            (
                "whole = 1\nchoice = 'other'",
                "unknown name `other`",
                "'other'",
            ),
            (
                "whole = 1\nchoice = 3",
                "expected one of the names plain, held",
                "3",
            ),
            (
                "whole = 1\nchoice = { plain = 1 }",
                "this name takes no value",
                "{ plain = 1 }",
            ),
            (
                "whole = 1\npair = ['1 s', '2 m']",
                "`m` is not a unit of a time",
                "'2 m'",
            ),
            (
                "whole = 1\nwords = { a = 1 }",
                "found `1`, expected a text in quotes",
                "1",
            ),
            (
                "whole = 1\n[[inner]]\nwhole = true",
                "found `true`, expected a whole number from 0 to 255",
                "true",
            ),
        ] {
            let error = table(text).unwrap_err();
            let place = error.place.as_ref().unwrap();
            assert_eq!(
                (&*error.message, &text[place.span.clone()]),
                (message, at),
                "{text}"
            );
        }
        let unknown = table("whole = 1\nwohle = 2").unwrap_err();
        assert_eq!(unknown.line_column(), Some((2, 1)));
        assert!(unknown.message.starts_with("unknown key `wohle`"));
        let missing = table("whole = 1\n[[inner]]\nreal = 1").unwrap_err();
        assert_eq!(missing.message, "the key `whole` is missing");
        assert_eq!(missing.line_column().unwrap().0, 2);
        assert_eq!(table("whole = \n").unwrap_err().line_column().unwrap().0, 1);
    }
}
