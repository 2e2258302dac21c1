//! What `chappe emu` answers to `status json`.

use serde_json::Value;

use super::{Amount, Sighting, each, number, word};

/// What is no value: the number of a node.
const NUMBER: &str = "node";
/// What all nodes share, and is shown at node 0: quantiles of the emulator's lateness.
const LATENESS: [&str; 2] = ["p50_s", "p99_s"];

/// Numbers of nodes are the scenario's.
pub fn read(json: &Value) -> Option<Sighting> {
    let mut seen = Sighting {
        daemon: "emu",
        title: word(json, "scenario").unwrap_or_default().to_owned(),
        ..Sighting::default()
    };
    let counter = |_: &str, value| Some(Amount::Counter(value));
    for node in each(json, "nodes") {
        let (at, number) = (seen.nodes.len(), number(node, NUMBER)?);
        seen.nodes.push((number.to_string(), format!("n{number}")));
        seen.hold_all(at, node, |name, value| {
            (name != NUMBER).then_some(Amount::Counter(value))
        });
        seen.hold_all(at, node.get("lost").unwrap_or(&Value::Null), counter);
    }
    seen.link(json);
    if !seen.nodes.is_empty() {
        let air = json.get("air").unwrap_or(&Value::Null);
        seen.hold_all(0, air, counter);
        seen.hold_all(0, air.get("lost").unwrap_or(&Value::Null), counter);
        for key in LATENESS {
            let late = json.get("lateness").and_then(|late| number(late, key));
            seen.gauge(0, &format!("late_{key}"), 0, late);
        }
    }
    Some(seen)
}
