//! What `chappe link` answers to `status json`.

use serde_json::Value;

use super::{Amount, Sighting, each, number, word};

/// Names of values that go up and down end so (`docs/link.md`, "JSON and Prometheus"); all others only go up.
const GAUGES: [&str; 10] = [
    "_ratio", "_bps", "_s", "_m", "_octets", "_frames", "_bodies", "_packets", "_class", "_needed",
];

/// This host is the first node, peers follow.
pub fn read(json: &Value) -> Option<Sighting> {
    let device = word(json, "device")?;
    let mut seen = Sighting {
        daemon: "link",
        title: device.to_owned(),
        nodes: vec![(String::new(), device.to_owned())],
        ..Sighting::default()
    };
    seen.hold_all(0, json, |name, value| {
        let setting = ["at_s", "mtu"].contains(&name);
        (!setting).then_some(Amount::Counter(value))
    });
    for peer in each(json, "peers") {
        let (name, place) = (word(peer, "peer")?, seen.nodes.len());
        seen.nodes.push((name.to_owned(), name.to_owned()));
        seen.hold_all(place, peer, |name, value| Some(amount(name, value)));
        if let Some(state) = word(peer, "state") {
            seen.hold(place, "state", 0, Amount::Word(state.to_owned()));
        }
        let up = number(peer, "up").unwrap_or(0.0);
        for (key, from, to) in [("loss_out_ratio", 0, place), ("loss_in_ratio", place, 0)] {
            if let Some(loss) = number(peer, key) {
                seen.links.push((from, to, up * (1.0 - loss)));
            }
        }
    }
    Some(seen)
}

fn amount(name: &str, value: f64) -> Amount {
    match name == "up" || GAUGES.iter().any(|end| name.ends_with(end)) {
        true => Amount::Gauge(value),
        false => Amount::Counter(value),
    }
}
