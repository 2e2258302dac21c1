//! Reads the text of a scenario and the `--set` options on top of it, and keeps every value's place.
//!
//! Spans are positions in one imagined text: the file, then each option's text after it. TOML is parsed once
//! per text with as many line ends in front as the texts before it are long, which shifts its spans.

mod nodes;

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::misread::Misread;
use super::reader::Node;
use super::wording::wording;
use super::{
    FaultTable, FlowTable, MacTable, NetworkTable, RadioTable, RunTable, Scenario, TransferTable,
};
use crate::field_names::names;
use crate::input::{InputError, read_limited, take_limited};

pub use nodes::NodeName;

/// Octets of the largest scenario file: a matrix of a thousand nodes takes 6 MB. Parsing takes seven times the text's memory.
const SCENARIO_MAX: u64 = 32 << 20;
/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// The texts that a scenario is made of.
#[derive(Clone, Debug)]
pub struct Source {
    texts: Vec<Text>,
    /// Kept from the first reading, so that the checks of keys do not parse the text again.
    keys: OnceLock<Vec<TableKeys>>,
}

/// A top-level table: its name and its keys with their places; no keys if it is not a table.
type TableKeys = (String, Vec<(String, Range<usize>)>);

#[derive(Clone, Debug)]
struct Text {
    from: String,
    text: Arc<str>,
    start: usize,
    /// Where the user wrote it, if not as this text.
    written: Option<Assignment>,
}

/// A key and a value that stand in another form than `key=value`: in `--grid`, or in the table `[sweep]`.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    /// What errors call the text: an option, or the file.
    pub from: String,
    /// The text that the user wrote.
    pub text: Arc<str>,
    /// The octets of it that are the key.
    pub key: Range<usize>,
    /// The octets of it that are the value, or that it was made of.
    pub value: Range<usize>,
}

impl Assignment {
    /// The octets of the written text that `span` of the assignment `made` is about.
    fn place(&self, made: &str, span: Range<usize>) -> Range<usize> {
        let equals = made.find('=').unwrap_or(made.len());
        let (part, start) = match span.start <= equals {
            true => (&self.key, 0),
            false => (&self.value, equals + 1),
        };
        let end = start + part.len();
        // A value of a range, or a key of a table within the table, stands nowhere word for word.
        match made.get(start..end) == self.text.get(part.clone()) && span.end <= end {
            true => part.start + (span.start - start)..part.start + (span.end - start),
            false => part.clone(),
        }
    }
}

/// What standard input holds, read once: a command may ask for its scenario several times.
fn standard_input() -> Result<Vec<u8>, InputError> {
    static READ: OnceLock<Result<Vec<u8>, InputError>> = OnceLock::new();
    let path = Path::new(STANDARD_INPUT);
    READ.get_or_init(|| take_limited(std::io::stdin().lock(), path, SCENARIO_MAX))
        .clone()
}

impl Source {
    /// A text and the options `key=value` on top of it. `from` is what errors call the text, such as its path.
    pub fn new(from: &str, text: &str, set: &[String]) -> Source {
        let mut source = Source {
            texts: Vec::new(),
            keys: OnceLock::new(),
        };
        source.push(from, text, None);
        for option in set {
            source.push(&format!("--set {option}"), option, None);
        }
        source
    }

    /// The same with one more option on top, `made` of the form `key=value`, which the user wrote elsewhere.
    pub(crate) fn with(&self, made: &str, written: Assignment) -> Source {
        let mut source = self.clone();
        source.push("", made, Some(written));
        source
    }

    /// The keys that `--set` gives.
    pub(crate) fn options(&self) -> impl Iterator<Item = &str> {
        let options = self
            .texts
            .iter()
            .skip(1)
            .filter(|text| text.written.is_none());
        options.filter_map(|text| text.text.split_once('=').map(|(key, _)| key.trim()))
    }

    /// A scenario file with options on top; `-` is standard input.
    pub fn read(path: &Path, set: &[String]) -> Result<Source, InputError> {
        let text = match path == Path::new(STANDARD_INPUT) {
            true => standard_input()?,
            false => read_limited(path, SCENARIO_MAX)?,
        };
        let text = String::from_utf8(text).map_err(|_| {
            let error = std::io::Error::from(std::io::ErrorKind::InvalidData);
            InputError::unreadable(path, &error)
        })?;
        Ok(Source::new(&path.display().to_string(), &text, set))
    }

    /// The text of the file itself.
    pub fn text(&self) -> &str {
        self.texts.first().map_or("", |text| &text.text)
    }

    /// What the file is called.
    pub fn name(&self) -> &str {
        self.texts.first().map_or("", |text| &text.from)
    }

    /// A path in the scenario, which counts from the folder of its file.
    pub fn beside(&self, path: &Path) -> PathBuf {
        let folder = Path::new(self.name()).parent();
        folder.map_or_else(|| path.to_path_buf(), |folder| folder.join(path))
    }

    fn push(&mut self, from: &str, text: &str, written: Option<Assignment>) {
        let start = self
            .texts
            .last()
            .map_or(0, |last| last.start + last.text.len() + 1);
        self.texts.push(Text {
            from: from.to_string(),
            text: text.into(),
            start,
            written,
        });
    }

    /// An error about the octets `span` of the imagined text.
    pub fn error(&self, span: Range<usize>, label: &str, message: impl Into<String>) -> InputError {
        let Some(text) = self.text_at(span.start) else {
            return InputError::new("", message);
        };
        let clip = |at: usize| at.saturating_sub(text.start).min(text.text.len());
        let span = clip(span.start)..clip(span.end);
        match &text.written {
            None => InputError::new(&text.from, message).at(&text.text, span, label),
            Some(written) => InputError::new(&written.from, message).at(
                &written.text,
                written.place(&text.text, span),
                label,
            ),
        }
    }

    /// The scenario that the texts make together.
    ///
    /// Not generic: reading all tables is much code, and a generic function would be compiled in every crate that calls it.
    pub fn scenario(&self) -> Result<Scenario, InputError> {
        let padded = self.padded();
        let digits: Vec<String>;
        let mut root = self.root(&padded)?;
        if let Some(at) = nodes::first(root.get_mut()) {
            let network = self.parse_table("network", &[])?;
            let names = nodes::names(&network, self, at)?;
            digits = (0..names.len()).map(|node| node.to_string()).collect();
            nodes::number(root.get_mut(), &names, &digits, self)?;
        }
        self.keys.get_or_init(|| keys_in(root.get_ref()));
        Scenario::deserialize(Node::from(root)).map_err(|error| self.explain(&error))
    }

    /// Reads the whole as a `T`.
    #[cfg(test)]
    fn parse<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        let padded = self.padded();
        let root = self.root(&padded)?;
        self.keys.get_or_init(|| keys_in(root.get_ref()));
        T::deserialize(Node::from(root)).map_err(|error| self.explain(&error))
    }

    /// Reads one top-level table, without some of its keys, as a `T`. A missing table is an empty one.
    pub(crate) fn parse_table<T: DeserializeOwned>(
        &self,
        table: &str,
        without: &[&'static str],
    ) -> Result<T, InputError> {
        let padded = self.padded();
        let table = self.table(&padded, table, without)?;
        T::deserialize(Node::from(table)).map_err(|error| self.explain(&error))
    }

    /// The keys of a top-level table, each with its place; none if there is no such table.
    pub(crate) fn keys_of(&self, table: &str) -> Result<&[(String, Range<usize>)], InputError> {
        let all = match self.keys.get() {
            Some(all) => all,
            None => {
                let padded = self.padded();
                let root = self.root(&padded)?;
                self.keys.get_or_init(|| keys_in(root.get_ref()))
            }
        };
        let found = all.iter().find(|(name, _)| name == table);
        Ok(found.map_or(&[], |(_, keys)| keys))
    }

    pub(crate) fn table<'p>(
        &self,
        padded: &'p [String],
        name: &str,
        without: &[&'static str],
    ) -> Result<Spanned<DeTable<'p>>, InputError> {
        let root = self.root(padded)?.into_inner();
        let found = root.into_iter().find(|(key, _)| key.get_ref() == name);
        let Some((key, value)) = found else {
            return Ok(Spanned::new(0..0, DeTable::new()));
        };
        let span = value.span();
        let DeValue::Table(mut table) = value.into_inner() else {
            let message = format!("[{name}] is a table");
            return Err(self.error(key.span(), "not a table", message));
        };
        for &key in without {
            // Keys are equal wherever they stand.
            table.remove(&Spanned::new(0..0, Cow::Borrowed(key)));
        }
        Ok(Spanned::new(span, table))
    }

    /// The texts as TOML, each behind as many line ends as the texts before it are long.
    pub(crate) fn padded(&self) -> Vec<String> {
        let mut padded = Vec::new();
        for (number, text) in self.texts.iter().enumerate() {
            let (line, shift) = match number {
                0 => (text.text.to_string(), 0),
                _ => option_as_toml(&text.text),
            };
            padded.push("\n".repeat(text.start.saturating_sub(shift)) + &line);
        }
        padded
    }

    /// The file's tables with the options applied.
    fn root<'p>(&self, padded: &'p [String]) -> Result<Spanned<DeTable<'p>>, InputError> {
        let mut tables = padded.iter().zip(&self.texts);
        let Some((first, _)) = tables.next() else {
            return Err(InputError::new("", "there is no scenario"));
        };
        let mut root = DeTable::parse(first).map_err(|error| self.explain(&error.into()))?;
        for (option, text) in tables {
            let value = self.option_value(option, text)?;
            self.set(root.get_mut(), text, value)?;
        }
        Ok(root)
    }

    /// The value of a padded option line.
    fn option_value<'a>(
        &self,
        line: &'a str,
        text: &Text,
    ) -> Result<Spanned<DeValue<'a>>, InputError> {
        let whole = text.start..text.start + text.text.len();
        let bad = || {
            self.error(
                whole.clone(),
                "not of the form key=value",
                "expected key=value",
            )
            .help("for example --set radio.rate=\"11 Mbit/s\" or --set transfer.0.source=3")
        };
        let (key, _) = text.text.split_once('=').ok_or_else(bad)?;
        if key.trim().is_empty() {
            return Err(bad());
        }
        let table = DeTable::parse(line).map_err(|error| self.explain(&error.into()))?;
        let (_, value) = table.into_inner().into_iter().next().ok_or_else(bad)?;
        let span = value.span();
        // Quotes that were added here are not in what the user wrote.
        let moved = option_as_toml(&text.text).1;
        let span = span.start + moved..span.end - moved;
        Ok(Spanned::new(span, value.into_inner()))
    }

    /// Puts `value` where the option's dotted key points.
    fn set<'a>(
        &self,
        root: &mut DeTable<'a>,
        text: &Text,
        value: Spanned<DeValue<'a>>,
    ) -> Result<(), InputError> {
        let key = text.text.split('=').next().unwrap_or("");
        let mut places = Vec::new();
        let mut at = text.start;
        for part in key.split('.') {
            let lead = part.len() - part.trim_start().len();
            places.push((
                part.trim().to_string(),
                at + lead..at + lead + part.trim().len(),
            ));
            at += part.len() + 1;
        }
        let mut here = Here::Table(root);
        let last = places.len() - 1;
        for (place, (part, span)) in places.into_iter().enumerate() {
            let fill = (place == last).then(|| value.clone());
            here = self.step(here, part, span, fill)?;
        }
        Ok(())
    }

    fn step<'t, 'a>(
        &self,
        here: Here<'t, 'a>,
        part: String,
        span: Range<usize>,
        fill: Option<Spanned<DeValue<'a>>>,
    ) -> Result<Here<'t, 'a>, InputError> {
        let next = match here {
            Here::Table(table) => {
                let key = Spanned::new(span.clone(), Cow::Owned(part));
                let empty = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
                if let Some(value) = fill {
                    // An insert alone keeps the old key, and errors would point at its place in the file.
                    table.remove(&key);
                    table.insert(key, value);
                    return Ok(Here::Done);
                }
                table.entry(key).or_insert(empty)
            }
            Here::Array(array) => {
                let length = array.len();
                let index = part.parse::<usize>().ok().filter(|&index| index < length);
                let Some(place) = index.and_then(|index| array.get_mut(index)) else {
                    let message =
                        format!("`{part}` is not one of the {length} elements of this list");
                    let help = format!("elements count from 0 to {}", length.saturating_sub(1));
                    return Err(self.error(span, "no such element", message).help(help));
                };
                if let Some(value) = fill {
                    *place = value;
                    return Ok(Here::Done);
                }
                place
            }
            Here::Done => return Ok(Here::Done),
        };
        match next.get_mut() {
            DeValue::Table(table) => Ok(Here::Table(table)),
            DeValue::Array(array) => Ok(Here::Array(array)),
            _ => Err(self.error(span, "a plain value", "this key has no parts")),
        }
    }

    /// A parser's error in words of the scenario, with the nearest right name.
    fn explain(&self, misread: &Misread) -> InputError {
        let span = misread.span().unwrap_or(0..0);
        let Some(text) = self.text_at(span.start) else {
            return InputError::new("", misread.message());
        };
        let local = |at: usize| at.saturating_sub(text.start).min(text.text.len());
        let words = wording(misread, &text.text, local(span.start)..local(span.end));
        let span = text.start + words.span.start..text.start + words.span.end;
        let mut error = self.error(span.clone(), words.label, words.message);
        error.help = words.help;
        if let Some(tables) = words.unknown.as_deref().map(tables_with)
            && !tables.is_empty()
        {
            let is_first = span.start == text.start;
            let is_option = self
                .texts
                .first()
                .is_some_and(|file| file.start != text.start);
            error.help = Some(homes(
                &tables,
                words.unknown.as_deref(),
                is_first && is_option,
            ));
        }
        error
    }

    /// The text that holds a place of the imagined text.
    fn text_at(&self, at: usize) -> Option<&Text> {
        let found = self.texts.iter().rev().find(|text| text.start <= at);
        found.or(self.texts.first())
    }
}

/// The tables of a scenario that have a key of this name, and whether there may be several of each.
fn tables_with(key: &str) -> Vec<(&'static str, bool)> {
    let tables: [(&str, bool, &[&str]); 8] = [
        ("network", false, names::<NetworkTable>()),
        ("radio", false, names::<RadioTable>()),
        ("mac", false, names::<MacTable>()),
        ("protocol", false, &["system", "variant"]),
        ("transfer", true, names::<TransferTable>()),
        ("flow", true, names::<FlowTable>()),
        ("fault", true, names::<FaultTable>()),
        ("run", false, names::<RunTable>()),
    ];
    let having = tables.into_iter().filter(|(.., keys)| keys.contains(&key));
    having.map(|(table, several, _)| (table, several)).collect()
}

/// The help that names the tables of a key: as an option writes them, or as a file.
fn homes(tables: &[(&str, bool)], key: Option<&str>, as_option: bool) -> String {
    let key = key.unwrap_or_default();
    let one = |&(table, several): &(&str, bool)| match (as_option, several) {
        (true, false) => format!("`{table}.{key}`"),
        (true, true) => format!("`{table}.0.{key}`"),
        (false, false) => format!("[{table}]"),
        (false, true) => format!("[[{table}]]"),
    };
    let all: Vec<String> = tables.iter().map(one).collect();
    match as_option {
        true => format!("did you mean {}?", all.join(" or ")),
        false => format!("it belongs to {}", all.join(" or ")),
    }
}

/// Where a dotted key has led so far.
enum Here<'t, 'a> {
    Table(&'t mut DeTable<'a>),
    Array(&'t mut toml::de::DeArray<'a>),
    Done,
}

/// The keys of each top-level table.
fn keys_in(root: &DeTable<'_>) -> Vec<TableKeys> {
    let of = |(name, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let keys = match value.get_ref() {
            DeValue::Table(table) => table
                .keys()
                .map(|key| (key.get_ref().to_string(), key.span()))
                .collect(),
            _ => Vec::new(),
        };
        (name.get_ref().to_string(), keys)
    };
    root.iter().map(of).collect()
}

/// `radio.rate=11 Mbit/s` as one line of TOML, and by how many octets its value was moved to the right. A value
/// that is no TOML stands for itself as a string, so that a shell's quotes need no quotes.
fn option_as_toml(option: &str) -> (String, usize) {
    let Some((key, value)) = option.split_once('=') else {
        return (String::new(), 0);
    };
    let blank = "v".to_string() + &" ".repeat(key.len().saturating_sub(1));
    let plain = format!("{blank}={value}");
    if DeTable::parse(&plain).is_ok() || value.contains('\'') {
        return (plain, 0);
    }
    (format!("{blank}='{value}'"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading a scenario keeps the keys of its tables, so that no check parses the text again.
    #[test]
    fn keys_are_kept_from_the_first_reading() {
        let set = ["radio.rate=\"11 Mbit/s\"".to_string()];
        let source = Source::new(
            "a.toml",
            "title = 'a'\n[network]\nlinks = [[0, 1], [1, 0]]\n[run]\nseed = 1\n",
            &set,
        );
        source.scenario().unwrap();
        assert!(source.keys.get().is_some());
        let names = |table| -> Vec<&str> {
            let keys = source.keys_of(table).unwrap();
            keys.iter().map(|(key, _)| key.as_str()).collect()
        };
        assert_eq!((names("run"), names("radio")), (vec!["seed"], vec!["rate"]));
        assert_eq!((names("title"), names("mac")), (vec![], vec![]));
        // Without a reading before it, the keys are the same.
        let fresh = Source::new("a.toml", source.text(), &set);
        assert_eq!(
            fresh.keys_of("run").unwrap(),
            source.keys_of("run").unwrap()
        );
    }

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Doc {
        name: Option<String>,
        #[serde(default)]
        part: Vec<Part>,
        inner: Option<Part>,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Part {
        size: u32,
    }

    const TEXT: &str = "name = 'n'\n[[part]]\nsize = 1\n[[part]]\nsize = 2\n";

    fn parse(set: &[&str]) -> Result<Doc, InputError> {
        let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
        Source::new("f.toml", TEXT, &set).parse()
    }

    #[test]
    fn options_change_any_key() {
        let doc = parse(&["part.1.size=7", "name=two words", "inner.size=3"]).unwrap();
        assert_eq!(doc.part[1].size, 7);
        assert_eq!(doc.name.unwrap(), "two words");
        assert_eq!(doc.inner.unwrap().size, 3);
    }

    #[test]
    fn errors_point_into_the_option() {
        let at = |set: &str| {
            let error = parse(&[set]).unwrap_err();
            let place = error.place.clone().unwrap();
            (
                error.from.clone(),
                place.text[place.span.clone()].to_string(),
                error.help.clone(),
            )
        };
        let (from, text, help) = at("inner.sise=3");
        assert_eq!(
            (from.as_str(), text.as_str()),
            ("--set inner.sise=3", "sise")
        );
        assert_eq!(help.unwrap(), "did you mean `size`?");
        assert_eq!(at("part.5.size=1").1, "5");
        assert_eq!(at("part.0.size=big one").1, "big one");
        assert_eq!(at("nonsense").1, "nonsense");
    }

    #[test]
    fn errors_point_into_the_file() {
        let error = Source::new("f.toml", "name = 'n'\nnaem = 'm'\n", &[])
            .parse::<Doc>()
            .unwrap_err();
        assert_eq!(error.line_column(), Some((2, 1)));
        assert_eq!(
            error.to_string(),
            "f.toml:2:1: unknown key `naem` (did you mean `name`?)"
        );
        let error = Source::new("f.toml", "name = \n", &[])
            .parse::<Doc>()
            .unwrap_err();
        assert_eq!(error.line_column().unwrap().0, 1);
    }
}
