//! Random values for keys, by their types in a JSON Schema.

use chappe_core::Stream;
use serde_json::Value;

use crate::draft::{Line, plain, quoted};

/// Draws some of a table's keys, each with probability `share`. Values are of the right type, and often out of range: what
/// a plan refuses is drawn again.
pub fn draw(schema: &Value, definitions: &Value, share: f64, random: &mut Stream) -> Vec<Line> {
    let Some(properties) = schema["properties"].as_object() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (key, property) in properties {
        if random.chance(share) {
            lines.extend(value(key, property, definitions, random));
        }
    }
    lines
}

/// A value of a property; `None` for a type that is not known here.
fn value(key: &str, property: &Value, definitions: &Value, random: &mut Stream) -> Option<Line> {
    if let Some(name) = property["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return match quantity(name, random) {
            Some(text) => Some(quoted(key, text)),
            None => value(key, &definitions[name], definitions, random),
        };
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(forms) = property[several].as_array() {
            let is_value = |form: &&Value| form["type"] != "null";
            let forms: Vec<&Value> = forms.iter().filter(is_value).collect();
            let form = forms.get(random.below(forms.len() as u64) as usize)?;
            return value(key, form, definitions, random);
        }
    }
    if let Some(word) = property["const"].as_str() {
        return Some(quoted(key, word));
    }
    if let Some(words) = property["enum"].as_array() {
        let word = words.get(random.below(words.len() as u64) as usize)?;
        return Some(quoted(key, word.as_str()?));
    }
    let kinds = match &property["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        Value::String(kind) => vec![kind.as_str()],
        _ => Vec::new(),
    };
    match kinds.first().copied()? {
        "boolean" => Some(plain(key, random.chance(0.5))),
        "integer" => Some(plain(key, logarithmic(1.0, 300.0, random) as u64)),
        "number" => {
            let shares = ["0.0", "0.01", "0.1", "0.3", "0.5", "0.9", "1.0"];
            Some(plain(key, shares[random.below(7) as usize]))
        }
        // The only lists are of pairs of nodes that join them to a tree. With another number of nodes than the network's they are refused.
        "array" => {
            let nodes = 2 + random.below(4);
            let pairs: Vec<String> = (1..nodes)
                .map(|node| format!("[{}, {node}]", random.below(node)))
                .collect();
            Some(plain(key, format!("[{}]", pairs.join(", "))))
        }
        _ => None,
    }
}

/// A quantity with its unit, over the range in which scenarios use it.
fn quantity(name: &str, random: &mut Stream) -> Option<String> {
    Some(match name {
        "size" => format!("{} B", logarithmic(1.0, 2000.0, random) as u64),
        "time" => format!("{} us", logarithmic(100.0, 1e8, random) as u64),
        "bit_rate" => format!("{} kbit/s", logarithmic(1.0, 20_000.0, random) as u64),
        "length" => format!("{} m", logarithmic(1.0, 1e5, random) as u64),
        "ratio" => format!("{} dB", random.below(20)),
        "power" => format!("-{} dBm", random.below(110)),
        "clock_error" => format!("{} ppm", random.below(100)),
        _ => return None,
    })
}

/// A number between two others whose logarithm is evenly distributed.
pub fn logarithmic(low: f64, high: f64, random: &mut Stream) -> f64 {
    low * (high / low).powf(random.fraction())
}

#[cfg(test)]
mod tests {
    use chappe::systems;
    use chappe_core::{Purpose, Seed};

    use super::*;

    /// Goal: every key of every system is drawn at some time, so a new key joins by itself.
    #[test]
    fn every_key_of_every_system_is_drawn() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        for system in systems::scenarios() {
            let schema = system.keys.schema();
            let drawn = draw(&schema, &schema["$defs"], 1.0, &mut random);
            let mut names = system.keys.names().to_vec();
            names.retain(|name| !drawn.iter().any(|(key, _)| key == name));
            assert_eq!(names, Vec::<&str>::new(), "{}: {schema}", system.name);
        }
    }
}
