//! All keys of a scenario as a page of Markdown, made of the schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::schema::{object, schema};
use crate::system::System;

const BEGIN: &str = "\
# The keys of a scenario

All sections and keys of a scenario file. `chappe new FILE --system NAME` writes a file that runs, with the keys that are changed first.
`chappe sim --schema` prints the same as this page for an editor. A key that is left out has the default that its text names, or that of
the profile in `[radio]`. A wrong key or value is reported with its line.

Quantities are texts with a unit: `\"2 Mbit/s\"`, `\"150 m\"`, `\"20 ms\"`, `\"10 dB\"`, `\"-91 dBm\"`, `\"500 kB\"`. (This page is written by
`CHAPPE_BLESS=1 cargo test --release -p chappe --lib systems`.)
";

/// The sections in the order of a file. Those in double brackets may stand several times.
const SECTIONS: [(&str, &str); 8] = [
    ("network", "[network]"),
    ("radio", "[radio]"),
    ("mac", "[mac]"),
    ("transfer", "[[transfer]]"),
    ("flow", "[[flow]]"),
    ("fault", "[[fault]]"),
    ("run", "[run]"),
    ("sweep", "[sweep]"),
];

/// All keys of a scenario that may name these systems, as Markdown.
pub fn reference(systems: &[&System]) -> String {
    let schema = schema(systems);
    let page = Page {
        definitions: &schema["$defs"],
    };
    let mut text = BEGIN.to_owned();
    for (name, heading) in SECTIONS {
        let section = &schema["properties"][name];
        let _ = write!(text, "\n## `{heading}`\n\n{}\n", described(section));
        page.table(&mut text, &page.properties(section));
    }
    text += "\n## `[protocol]`\n\nWhat carries the data. `system` names it; each system has keys of its own.\n";
    let conditions = schema["$defs"]["ProtocolTable"]["allOf"].as_array();
    for (system, condition) in systems.iter().zip(conditions.into_iter().flatten()) {
        let _ = write!(
            text,
            "\n### {}: `system = \"{}\"`\n\n{}.\n",
            system.title,
            system.name,
            capital(system.about)
        );
        let mut keys = object(condition["then"]["properties"].clone());
        keys.remove("system");
        keys.remove("name");
        page.table(&mut text, &keys);
    }
    text
}

struct Page<'a> {
    definitions: &'a Value,
}

impl Page<'_> {
    /// The keys of a section, which may be a table, a table or nothing, or a list of tables.
    fn properties(&self, section: &Value) -> Map<String, Value> {
        let alternatives = section["anyOf"].as_array().into_iter().flatten();
        let mut places = alternatives.chain([section, &section["items"]]);
        let named = places.find_map(|place| self.definition(place));
        named
            .map(|definition| object(definition["properties"].clone()))
            .unwrap_or_default()
    }

    fn definition(&self, place: &Value) -> Option<&Value> {
        let name = place["$ref"].as_str()?.rsplit('/').next()?;
        self.definitions.get(name)
    }

    /// A row for each key, and below them what the names mean that a key may have as its value.
    fn table(&self, text: &mut String, keys: &Map<String, Value>) {
        text.push_str("\n| key | value | meaning |\n|---|---|---|\n");
        for (key, schema) in keys {
            let (value, about) = (self.value(schema), described(schema));
            let _ = writeln!(text, "| `{key}` | {value} | {about} |");
        }
        for (key, schema) in keys {
            let names = self.names(schema);
            if !names.is_empty() {
                let _ = write!(text, "\nValues of `{key}`:\n\n");
                text.extend(
                    names
                        .iter()
                        .map(|(name, about)| format!("- `\"{name}\"`: {about}\n")),
                );
            }
        }
    }

    /// How a value is written.
    fn value(&self, schema: &Value) -> String {
        if let Some(definition) = self.definition(schema) {
            return match definition["examples"][0].as_str() {
                Some(example) => format!("`\"{example}\"`"),
                None if !self.names(schema).is_empty() => "a name below".to_owned(),
                None => self.value(definition),
            };
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            let some = alternatives.iter().filter(|one| one["type"] != "null");
            return some
                .map(|one| self.value(one))
                .collect::<Vec<_>>()
                .join(" or ");
        }
        if let Some(names) = schema["enum"].as_array() {
            return names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ");
        }
        match kind(schema) {
            Some("integer") => "a whole number".to_owned(),
            Some("number") => "a number".to_owned(),
            Some("boolean") => "`true` or `false`".to_owned(),
            Some("string") => "a text".to_owned(),
            Some("array") => self.list(schema),
            Some("object") => "a table".to_owned(),
            _ => String::new(),
        }
    }

    fn list(&self, schema: &Value) -> String {
        let item = self.value(&schema["items"]);
        // A pair of quantities, such as width and depth.
        let is_pair = schema["minItems"] == 2 && schema["maxItems"] == 2;
        match item
            .strip_prefix('`')
            .and_then(|item| item.strip_suffix('`'))
        {
            Some(example) if is_pair => format!("`[{example}, {example}]`"),
            _ => format!("a list of {item}"),
        }
    }

    /// The names that a key may have as its value, each with its meaning.
    fn names(&self, schema: &Value) -> Vec<(String, String)> {
        let alternatives = schema["anyOf"].as_array().into_iter().flatten();
        let definitions = alternatives
            .chain([schema])
            .filter_map(|place| self.definition(place));
        let all = definitions
            .filter_map(|definition| definition["oneOf"].as_array())
            .flatten();
        let named = all.filter_map(|one| Some((one["const"].as_str()?.to_owned(), described(one))));
        named.collect()
    }
}

/// The type of a value that may also be missing.
fn kind(schema: &Value) -> Option<&str> {
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        Value::String(kind) => vec![kind.as_str()],
        _ => vec![],
    };
    kinds.into_iter().find(|kind| *kind != "null")
}

/// The description on one line, fit for a cell.
fn described(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
