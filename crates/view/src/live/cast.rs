//! What `chappe cast` answers to `status json`.

use serde_json::Value;

use super::{Amount, Sighting, each, number, word};

/// Numbers of members are the group's own; a `part` is a transfer, in the order in which the member lists them.
pub fn read(json: &Value) -> Option<Sighting> {
    let own = number(json, "node")?;
    let name = word(json, "name").unwrap_or_default();
    let mut seen = Sighting {
        daemon: "cast",
        title: format!("member {own} ({name})"),
        nodes: vec![(own.to_string(), format!("{own} {name}"))],
        ..Sighting::default()
    };
    let mut known = vec![own];
    for member in each(json, "members") {
        let Some(node) = number(member, "node").filter(|node| *node != own) else {
            continue;
        };
        let name = word(member, "name").unwrap_or_default();
        known.push(node);
        seen.nodes
            .push((node.to_string(), format!("{node} {name}")));
    }
    let place = |node: f64| known.iter().position(|one| *one == node);
    for member in each(json, "members") {
        let Some(at) = number(member, "node").and_then(place) else {
            continue;
        };
        for (part, transfer) in (0u32..).zip(each(member, "transfers")) {
            seen.gauge(at, "batches_done", part, number(transfer, "batches_done"));
            if let Some(state) = word(transfer, "state") {
                seen.hold(at, "state", part, Amount::Word(state.to_owned()));
            }
        }
    }
    for link in each(json, "links") {
        let ends = |key| number(link, key).and_then(place);
        if let (Some(from), Some(to), Some(share)) =
            (ends("from"), ends("to"), number(link, "delivery"))
        {
            seen.links.push((from, to, share));
        }
    }
    seen.gauge(0, "pace_bps", 0, number(json, "pace_bps"));
    seen.gauge(0, "batches", 0, number(json, "batches"));
    for key in ["counters", "dropped"] {
        let counters = json.get(key).unwrap_or(&Value::Null);
        seen.hold_all(0, counters, |_, value| Some(Amount::Counter(value)));
    }
    Some(seen)
}
