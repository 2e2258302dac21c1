//! What `chappe mesh` answers to `status json`.

use serde_json::Value;

use super::{Amount, Sighting, each, number};

/// Node numbers are the mesh's own; a `part` is the node that a packet goes to.
pub fn read(json: &Value) -> Option<Sighting> {
    let own = number(json, "node")?;
    let mut seen = Sighting {
        daemon: "mesh",
        title: format!("node {own}"),
        ..Sighting::default()
    };
    let numbers = [own].into_iter().chain(
        each(json, "routes")
            .chain(each(json, "neighbours"))
            .filter_map(|one| number(one, "node")),
    );
    let mut known: Vec<f64> = Vec::new();
    for node in numbers {
        if !known.contains(&node) {
            known.push(node);
            seen.nodes.push((node.to_string(), format!("node {node}")));
        }
    }
    let place = |node: f64| known.iter().position(|one| *one == node);
    seen.gauge(0, "airtime", 0, number(json, "airtime"));
    seen.gauge(0, "price", 0, number(json, "price"));
    for near in each(json, "neighbours") {
        let Some((node, at)) = number(near, "node").and_then(|node| Some((node, place(node)?)))
        else {
            continue;
        };
        for (key, link) in [("from", (at, 0)), ("to", (0, at))] {
            if let Some(share) = number(near, key) {
                seen.links.push((link.0, link.1, share));
            }
        }
        seen.gauge(0, "etx", node as u32, number(near, "etx"));
        seen.gauge(0, "round_s", node as u32, number(near, "round_s"));
    }
    for route in each(json, "routes") {
        let Some(node) = number(route, "node") else {
            continue;
        };
        seen.gauge(0, "queue", node as u32, number(route, "waiting"));
        seen.gauge(0, "rate", node as u32, number(route, "rate"));
        seen.gauge(0, "cost_s", node as u32, number(route, "cost_s"));
        seen.gauge(0, "distance", node as u32, number(route, "etx"));
    }
    let counters = json.get("counters").unwrap_or(&Value::Null);
    seen.hold_all(0, counters, |_, value| Some(Amount::Counter(value)));
    Some(seen)
}
