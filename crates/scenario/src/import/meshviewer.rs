//! Meshviewer's maps: `meshviewer.json` with `source_tq` and `target_tq` from 0 to 1 on each link, and the older
//! `graph.json`, whose `tq` is 255 / TQ, from 1 upwards. Facts of the formats only.

use serde_json::Value;

use super::text::FileText;
use super::{Collector, Select};
use crate::input::InputError;

pub fn collect(file: &FileText, map: &Value, select: &Select) -> Result<Collector, InputError> {
    if let Some(key) = select.keys().find(|key| *key != "type") {
        let message = format!("links of a meshviewer map cannot be chosen by `{key}`");
        return Err(file
            .error(message)
            .help("only by type, such as type = \"wifi\""));
    }
    let old = map["batadv"].is_object();
    let graph = if old { &map["batadv"] } else { map };
    let nodes: Vec<&Value> = graph["nodes"].as_array().into_iter().flatten().collect();
    let mut collector = Collector::default();
    for link in graph["links"].as_array().into_iter().flatten() {
        if select
            .get("type")
            .is_some_and(|wanted| link["type"] != wanted.as_str())
        {
            continue;
        }
        let (Some(source), Some(target)) =
            (end(&link["source"], &nodes), end(&link["target"], &nodes))
        else {
            return Err(file.error(format!("a link lacks its source or target: {link}")));
        };
        if old {
            let Some(tq) = link["tq"].as_f64().filter(|tq| *tq >= 1.0) else {
                continue;
            };
            collector.link(&source, &target, 1.0 / tq, 1.0);
            if link["bidirect"] == true {
                collector.link(&target, &source, 1.0 / tq, 1.0);
            }
        } else if let Some(forward) = link["source_tq"].as_f64() {
            collector.link(&source, &target, forward, 1.0);
            collector.link(
                &target,
                &source,
                link["target_tq"].as_f64().unwrap_or(forward),
                1.0,
            );
        }
    }
    Ok(collector)
}

/// The name of a link's end: itself, or the node at that place of the list.
fn end(value: &Value, nodes: &[&Value]) -> Option<String> {
    if let Some(name) = value.as_str() {
        return Some(name.to_string());
    }
    let node = nodes.get(usize::try_from(value.as_u64()?).ok()?)?;
    let name = ["node_id", "id"].iter().find_map(|key| node[key].as_str());
    Some(name.map_or_else(|| value.to_string(), str::to_string))
}
