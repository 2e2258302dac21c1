//! NetJSON NetworkGraph (netjson.org, draft 01): nodes with an `id`, links with `source`, `target` and `cost`.
//!
//! The standard leaves open what a cost means; the `metric` says it. `ETX` (OLSR) is 1 / (p forward x p back), so
//! p is its inverse square root in both directions. `TQ` (batman-adv) is written as 255 / TQ, so p is its inverse.
//! A link's `properties` may give the delivery ratio itself as `pdr`, `prr` or `delivery`.

use serde_json::Value;

use super::Collector;
use super::text::FileText;
use crate::input::InputError;

pub fn collect(file: &FileText, graph: &Value) -> Result<Collector, InputError> {
    let metric = graph["metric"].as_str().unwrap_or("").to_uppercase();
    let mut collector = Collector::default();
    for node in graph["nodes"].as_array().into_iter().flatten() {
        if let Some(id) = node["id"].as_str() {
            collector.node(id);
        }
    }
    let mut said = false;
    for link in graph["links"].as_array().into_iter().flatten() {
        let (Some(source), Some(target)) = (link["source"].as_str(), link["target"].as_str())
        else {
            return Err(file.error(format!("a link lacks its source or target: {link}")));
        };
        let given = ["pdr", "prr", "delivery"]
            .iter()
            .find_map(|key| link["properties"][key].as_f64());
        let cost = link["cost"].as_f64().filter(|cost| *cost >= 1.0);
        match (given, cost) {
            (Some(delivery), _) => collector.link(source, target, delivery, 1.0),
            (None, Some(cost)) if metric.contains("ETX") => {
                collector.link(source, target, 1.0 / cost.sqrt(), 1.0);
                collector.link(target, source, 1.0 / cost.sqrt(), 1.0);
            }
            (None, Some(cost)) if metric.contains("TQ") => {
                collector.link(source, target, 1.0 / cost, 1.0)
            }
            _ => continue,
        }
        said = true;
    }
    if !said {
        return Err(file.error("its links do not say how many frames they deliver").help(
            "give the graph \"metric\": \"ETX\" or \"TQ\" with costs from 1, or each link \"properties\": {\"pdr\": 0.9}",
        ));
    }
    Ok(collector)
}
