//! What `chappe border` answers to `status json`.

use serde_json::Value;

use super::{Amount, Sighting, each, number, word};

/// Values of a mote that go up and down.
const GAUGES: [&str; 3] = ["hops", "radio_duty", "open"];
/// What is no value: numbers of nodes.
const NUMBERS: [&str; 2] = ["node", "parent"];

/// Numbers of nodes are the scenario's; node 0 is the border router.
pub fn read(json: &Value) -> Option<Sighting> {
    let mut seen = Sighting {
        daemon: "border",
        title: word(json, "scenario").unwrap_or_default().to_owned(),
        ..Sighting::default()
    };
    for node in each(json, "nodes") {
        let (at, number) = (seen.nodes.len(), number(node, "node")?);
        seen.nodes
            .push((number.to_string(), format!("node {number}")));
        seen.hold_all(at, node, |name, value| match name {
            _ if NUMBERS.contains(&name) => None,
            _ if GAUGES.contains(&name) => Some(Amount::Gauge(value)),
            _ => Some(Amount::Counter(value)),
        });
    }
    seen.link(json);
    if !seen.nodes.is_empty() {
        for key in ["gateway", "lost"] {
            let counters = json.get(key).unwrap_or(&Value::Null);
            seen.hold_all(0, counters, |_, value| Some(Amount::Counter(value)));
        }
        if let Some(frames) = number(json, "frames") {
            seen.hold(0, "frames", 0, Amount::Counter(frames));
        }
    }
    Some(seen)
}
