//! What differs between two results: keys of their scenarios, programs, seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::document::Document;

/// One thing in which two results differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// A key of the scenario such as `radio.tx_power`, or `commit`, `seeds`.
    pub what: String,
    /// It in A; empty if A does not have it.
    pub a: String,
    /// It in B; empty if B does not have it.
    pub b: String,
    /// Whether it makes the two unlike: another network or another task, so that one seed is not the same case in both.
    pub unlike: bool,
}

/// Tables of a scenario that say what must be done, and where. The others say how.
const TASK: [&str; 5] = ["network", "transfer", "flow", "fault", "links_blake3"];

/// What differs between two documents, the scenario's keys first. `swept` keys were varied on purpose, so they make nothing unlike.
pub fn differences(a: &Document, b: &Document, swept: &[String]) -> Vec<Difference> {
    let (of_a, of_b) = (keys(&a.scenario_text), keys(&b.scenario_text));
    let names: BTreeSet<&String> = of_a.keys().chain(of_b.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let (in_a, in_b) = (of_a.get(name), of_b.get(name));
        if in_a != in_b {
            let table = name.split('.').next().unwrap_or_default();
            let text = |value: Option<&String>| value.cloned().unwrap_or_default();
            found.push(Difference {
                what: name.clone(),
                a: text(in_a),
                b: text(in_b),
                unlike: TASK.contains(&table) && !swept.contains(name),
            });
        }
    }
    let mut beside = |what: &str, a: String, b: String| {
        if a != b {
            found.push(Difference {
                what: what.into(),
                a,
                b,
                unlike: false,
            });
        }
    };
    beside("version", a.chappe.clone(), b.chappe.clone());
    beside("commit", a.commit.clone(), b.commit.clone());
    beside("seeds", seeds(a), seeds(b));
    found
}

/// The leaves of a scenario by their keys: `transfer.0.bytes`.
fn keys(scenario: &str) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    match serde_json::from_str(scenario) {
        Ok(value) => walk(&value, "", &mut keys),
        // A document of an unknown make still differs if its text does.
        Err(_) => {
            keys.insert("scenario".into(), scenario.into());
        }
    }
    // The title is not what is run.
    keys.remove("title");
    keys
}

fn walk(value: &Value, at: &str, keys: &mut BTreeMap<String, String>) {
    let below = |key: &str| match at {
        "" => key.to_string(),
        at => format!("{at}.{key}"),
    };
    match value {
        Value::Object(object) => object
            .iter()
            .for_each(|(key, value)| walk(value, &below(key), keys)),
        // A list of numbers is one value: a matrix of links would be thousands of lines.
        Value::Array(list) if list.iter().any(Value::is_object) => {
            let places = list.iter().enumerate();
            places.for_each(|(place, value)| walk(value, &below(&place.to_string()), keys));
        }
        Value::Null => {}
        Value::String(text) => {
            keys.insert(at.into(), text.clone());
        }
        other => {
            keys.insert(at.into(), other.to_string());
        }
    }
}

/// Seeds as people write them: `1..20`, or a list.
fn seeds(document: &Document) -> String {
    let all: Vec<u64> = document.runs.iter().map(|run| run.seed).collect();
    match (all.first(), all.last()) {
        (Some(first), Some(last)) if all.len() > 2 && last - first == all.len() as u64 - 1 => {
            format!("{first}..{last}")
        }
        _ => all.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Run;
    use crate::provenance::{Program, Provenance};

    fn document(
        scenario: &str,
        commit: &'static str,
        seeds: std::ops::RangeInclusive<u64>,
    ) -> Document {
        let program = Program {
            commit,
            dirty: false,
            command: "chappe",
        };
        let from = Provenance::here(program, scenario);
        Document::new("s", &from, seeds.map(Run::new).collect(), false)
    }

    #[test]
    fn differences_have_their_keys() {
        let a = document(
            r#"{"title":"x","radio":{"tx_power":"10 dBm"},"transfer":[{"bytes":"1 kB"}]}"#,
            "aa",
            1..=20,
        );
        let b = document(
            r#"{"title":"y","radio":{"tx_power":"15 dBm"},"transfer":[{"bytes":"2 kB"}],"mac":{"cw_min":7}}"#,
            "bb",
            1..=9,
        );
        let found = differences(&a, &b, &[]);
        let lines: Vec<String> = found
            .iter()
            .map(|found| format!("{} {} {} {}", found.what, found.a, found.b, found.unlike))
            .collect();
        assert_eq!(
            lines,
            [
                "mac.cw_min  7 false",
                "radio.tx_power 10 dBm 15 dBm false",
                "transfer.0.bytes 1 kB 2 kB true",
                "commit aa bb false",
                "seeds 1..20 1..9 false",
            ]
        );
        let swept = differences(&a, &b, &["transfer.0.bytes".to_string()]);
        assert!(swept.iter().all(|found| !found.unlike));
        assert_eq!(differences(&a, &a, &[]), []);
    }
}
