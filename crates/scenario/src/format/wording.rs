//! What serde and the TOML parser say about a value, in words of a scenario file.

use std::ops::Range;

use super::misread::Misread;
use super::unclosed::unclosed;
use crate::input::telling;
use crate::nearest::nearest;

/// What an error says, and where in its text.
pub(super) struct Wording {
    pub message: String,
    pub label: &'static str,
    pub help: Option<String>,
    pub span: Range<usize>,
    /// The key that nothing of this name was known for, if that is what is wrong.
    pub unknown: Option<String>,
}

/// The words for an error of a value that stands at `span` of `text`.
pub(super) fn wording(misread: &Misread, text: &str, span: Range<usize>) -> Wording {
    let (message, help) = telling(misread.message());
    let mut words = Wording {
        message: message.to_string(),
        label: "here",
        help: help.map(str::to_string),
        span,
        unknown: None,
    };
    let value = text.get(words.span.clone()).unwrap_or("").trim();
    if misread.is_syntax() {
        syntax(&mut words, text);
    } else if message.starts_with("unknown ") {
        unknown(&mut words, message);
    } else if let Some(rest) = message.strip_prefix("missing field ") {
        words.label = "in this table";
        words.message = format!("the key {rest} is missing");
    } else if let Some((found, expected)) = types(message) {
        words.message = format!("found {}, expected {}", given(found), wanted(expected));
        words.help = advice(found, expected, misread.key().unwrap_or("key"), value);
    } else if let Some((length, list)) = message
        .strip_prefix("invalid length ")
        .and_then(|rest| rest.split_once(", expected "))
    {
        let values = if length == "1" { "value" } else { "values" };
        words.message = format!("found {length} {values}, expected {}", wanted(list));
    }
    words
}

/// `unknown field` or `unknown variant`, with the names that are known.
fn unknown(words: &mut Wording, message: &str) {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let [wrong, known @ ..] = names.as_slice() else {
        return;
    };
    let is_key = message.starts_with("unknown field");
    let what = if is_key { "key" } else { "name" };
    words.label = if is_key {
        "unknown key"
    } else {
        "unknown name"
    };
    words.help = Some(match nearest(wrong, known.iter().copied()) {
        Some(right) => format!("did you mean `{right}`?"),
        None if known.is_empty() => "no key is allowed here".to_string(),
        None => {
            words.unknown = is_key.then(|| wrong.to_string());
            format!("known here: {}", known.join(", "))
        }
    });
    words.message = format!("unknown {what} `{wrong}`");
}

/// What was found and what was expected.
fn types(message: &str) -> Option<(&str, &str)> {
    let rest = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))?;
    rest.split_once(", expected ")
}

/// A value that was found, without serde's name of its type.
fn given(found: &str) -> &str {
    match found {
        "map" => "a table",
        "sequence" => "a list",
        _ => ["integer ", "floating point ", "boolean ", "string "]
            .iter()
            .find_map(|kind| found.strip_prefix(kind))
            .unwrap_or(found),
    }
}

/// What was expected, without Rust's names of types.
fn wanted(expected: &str) -> String {
    let whole = |most: u64| format!("a whole number from 0 to {most}");
    match expected {
        "u8" => whole(u8::MAX.into()),
        "u16" => whole(u16::MAX.into()),
        "u32" => whole(u32::MAX.into()),
        "u64" | "usize" => "a whole number from 0 on".into(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" => "a text in quotes".into(),
        "path string" => "a path in quotes".into(),
        "a sequence" => "a list".into(),
        "a map" => "a table".into(),
        _ => match expected.strip_prefix("an array of length ") {
            Some(length) => format!("a list of {length} values"),
            None if expected.starts_with("struct ") => "a table".into(),
            None => expected.into(),
        },
    }
}

/// The right form of a value that has another type.
fn advice(found: &str, expected: &str, key: &str, value: &str) -> Option<String> {
    let is_list = expected == "a sequence" || expected.starts_with("an array of length ");
    let is_table = expected == "a map" || expected.starts_with("struct ");
    let is_number = wanted(expected).contains("number") || expected == "a boolean";
    let bare = value.trim_matches(['"', '\'']);
    match found {
        "map" if expected == "a sequence" => Some(format!("write [[{key}]]: there may be several")),
        "sequence" if is_table => Some(format!("write [{key}]: there is one")),
        "map" | "sequence" => None,
        _ if expected == "a sequence" => Some(format!("write {key} = [{value}]")),
        _ if is_list || is_table => None,
        _ if is_number && bare != value && bare.parse::<f64>().is_ok() => {
            Some(format!("leave out the quotes: {key} = {bare}"))
        }
        _ if expected == "a string" || expected == "path string" => {
            Some(format!("write {key} = \"{value}\""))
        }
        _ => None,
    }
}

/// An error of the parser: what is not closed, or lacks quotes.
fn syntax(words: &mut Wording, text: &str) {
    let at = words.span.start;
    if let Some(open) = unclosed(text).filter(|open| open.at <= at) {
        words.message = format!("this {} is not closed", open.what());
        words.label = "opens here";
        words.help = Some(format!("add {} where it ends", open.closing()));
        words.span = open.at..open.at + open.mark.len();
        return;
    }
    let line = text.get(at..).and_then(|rest| rest.lines().next());
    let value = line.and_then(|line| line.split('#').next());
    let value = value.unwrap_or("").trim().trim_matches(['"', '\'']);
    if words.message.starts_with("string values must be quoted") {
        words.message = format!("`{value}` is no number, and a text stands in quotes");
        words.label = "no quotes";
    } else if words.message.starts_with("missing opening quote") {
        words.message = "this text has no opening quote".into();
        words.span.end = words.span.end.max(at + value.len());
    } else {
        return;
    }
    words.help = Some(format!("write \"{value}\""));
}
