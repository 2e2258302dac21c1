//! What all networks in real time answer alike to those who ask over their socket.

use serde_json::{Value, json};

/// The answer to what is no question.
pub const UNKNOWN: &str = "unknown request: write status json or frames json\n";

/// The links of a network of `nodes` nodes, of which `neighbours` gives each node's, with the share of frames that they deliver.
pub fn links<N: Iterator<Item = (usize, f64)>>(
    nodes: usize,
    neighbours: impl Fn(usize) -> N,
) -> Value {
    let links = (0..nodes).flat_map(|from| {
        let others = neighbours(from).filter(move |(to, _)| *to != from);
        others.map(move |(to, share)| json!({ "from": from, "to": to, "delivery": share }))
    });
    links.collect()
}
