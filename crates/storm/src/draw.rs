//! What a seed makes of a system: a random scenario that the system accepts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use chappe::systems;
use chappe_core::{Purpose, Seed, Stream};
use chappe_lab::system::System;
use chappe_scenario::{self as scenario, Plan, Radios};
use chappe_sim::{Medium, Position};
use serde_json::Value;

use crate::draft::{Draft, Line, Network, Receivers, Transfer, plain, quoted};
use crate::{options, troubles, turns};

/// So many drafts may be refused before a seed is given up.
const ATTEMPTS: u64 = 40;
/// The share of scenarios with many nodes and long objects. The others are mostly small: of 295 runs of other draws, the
/// dearest tenth took 39 to 46 % of each system's time. What two nodes and a few packets show need not be looked for among forty.
const LARGE: f64 = 1.0 / 16.0;
/// A link of this share is a good one: distances are measured by the length of such links.
const GOOD: f64 = 0.9;

/// The draft of a seed that the system accepts; `None` if it refuses them all. The same one each time.
pub fn accepted(system: &System, seed: u64) -> Option<Draft> {
    let drafts = (0..ATTEMPTS).map(|attempt| draft(system.scenario, seed, attempt));
    let known = systems::scenarios();
    drafts.into_iter().find(|draft| {
        let plan = Plan::parse(&known, "storm.toml", &draft.text());
        plan.is_ok_and(|plan| plan.network(draft.seed).is_ok())
    })
}

/// The `attempt`-th draft of a seed, acceptable or not. Later ones ask for less.
pub fn draft(system: &'static scenario::System, seed: u64, attempt: u64) -> Draft {
    // The system's name keeps two systems' scenarios of one seed apart.
    let name = system.name.bytes();
    let name = name.fold(0, |sum: u64, octet| {
        sum.wrapping_mul(31).wrapping_add(octet.into())
    });
    let of_system = Seed(seed).child(name);
    let mut random = of_system.child(attempt).stream(Purpose::Trial(0));
    let random = &mut random;
    let share = 0.25 / (1 + attempt / 4) as f64;
    let variants = system.variants;
    let variant = variants[random.below(variants.len() as u64) as usize].name;
    let schemas = Schemas::of(system);
    let (schema, whole) = (&schemas.keys, &schemas.whole);
    let protocol = options::draw(schema, &schema["$defs"], share, random);
    let radio = radio(system, random);
    let range = known_range(system, &radio);
    let is_large = random.chance(LARGE);
    let network = network(system, range, is_large, random);
    let nodes = network.nodes();
    let mac = match system.has_mac {
        true => {
            let table = &whole["$defs"]["MacTable"];
            let mut lines = options::draw(table, &whole["$defs"], share * 0.4, random);
            // Slots and pauses of seconds are accepted, and nothing arrives in time.
            lines.retain(|(_, value)| !is_long(value));
            lines
        }
        false => Vec::new(),
    };
    let flows = match system.carries_flows && random.chance(0.4) {
        true => (0..1 + random.below(3))
            .map(|_| flow(nodes, random))
            .collect(),
        false => Vec::new(),
    };
    let transfers = match flows.is_empty() {
        true => transfers(system, nodes, is_large, random),
        false => Vec::new(),
    };
    let run = match flows.is_empty() {
        true => Vec::new(),
        false => vec![quoted("limit", format!("{} s", 70 + random.below(60)))],
    };
    let mut draft = Draft {
        system: system.name,
        variant,
        network,
        radio,
        mac,
        protocol,
        transfers,
        flows,
        troubles: troubles::draw(nodes, system.has_link_loss, random),
        run,
        seed,
    };
    if turns::are_drawn(system, of_system) {
        turns::apply(&mut draft, system, range, random);
    }
    draft
}

/// Whether a value is a time above a millisecond: the longest slot, over 150 km, is shorter.
fn is_long(value: &str) -> bool {
    let micros = value.trim_matches('"').strip_suffix(" us");
    micros.is_some_and(|micros| micros.parse::<f64>().is_ok_and(|micros| micros > 1000.0))
}

/// One of the radios that the system is made for, sometimes with other laws.
fn radio(system: &scenario::System, random: &mut Stream) -> Vec<Line> {
    let mut lines = Vec::new();
    let profiles = system.radios.profiles();
    if random.chance(0.3) {
        let name = profiles[random.below(profiles.len() as u64) as usize];
        lines.push(quoted("profile", name));
    }
    if system.radios == Radios::Dot11 && random.chance(0.3) {
        let rate = ["1", "2", "5.5", "11"][random.below(4) as usize];
        lines.push(quoted("rate", format!("{rate} Mbit/s")));
    }
    if random.chance(0.2) {
        let law = ["none", "rayleigh", "rician", "glomosim"][random.below(4) as usize];
        lines.push(quoted("fading", law));
    }
    if random.chance(0.1) {
        lines.push(quoted("shadowing", format!("{} dB", random.below(8))));
    }
    if random.chance(0.1) {
        let law = ["never", "preamble", "frame"][random.below(3) as usize];
        lines.push(quoted("capture", law));
    }
    lines
}

/// The schemas of a system's keys and of its whole scenarios. Making them took most of the time of drawing.
struct Schemas {
    keys: Value,
    whole: Value,
}

impl Schemas {
    fn of(system: &'static scenario::System) -> Arc<Schemas> {
        static KNOWN: Mutex<BTreeMap<&str, Arc<Schemas>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let schemas = known.entry(system.name).or_insert_with(|| {
            let (keys, whole) = (system.keys.schema(), scenario::schema(&[system]));
            Arc::new(Schemas { keys, whole })
        });
        schemas.clone()
    }
}

/// [`range`], which is looked for once for each system and radio.
fn known_range(system: &'static scenario::System, radio: &[Line]) -> f64 {
    type Known = BTreeMap<(&'static str, Vec<Line>), f64>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (system.name, radio.to_vec());
    if let Some(&metres) = known().get(&key) {
        return metres;
    }
    // Two threads may both look for it, and find the same.
    let metres = range(system, radio);
    known().insert(key, metres);
    metres
}

/// How far a good link reaches, in metres, where a system has such radios.
fn range(system: &'static scenario::System, radio: &[Line]) -> f64 {
    let usual = match system.radios {
        Radios::Dot11 => 200.0,
        Radios::Dot15d4 => 25.0,
    };
    let places = vec![[0.0, 0.0], [1.0, 0.0]];
    let probe = Draft {
        radio: radio.to_vec(),
        ..Draft::transfer(system.name, system.variants[0].name, places, 1)
    };
    let Ok(plan) = Plan::parse(&systems::scenarios(), "range.toml", &probe.text()) else {
        return usual;
    };
    let (mode, octets) = plan.settings.frame();
    let is_good = |metres: f64| {
        let places = [0.0, metres].map(|x| Position::new(x, 0.0));
        let medium = Medium::geometric(&places, &plan.profile, Seed(1));
        medium.is_ok_and(|medium| medium.prr(0, 1, mode, octets) >= GOOD)
    };
    let (mut low, mut high) = (0.5, 2e5);
    for _ in 0..24 {
        let middle = f64::sqrt(low * high);
        match is_good(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

fn network(system: &scenario::System, range: f64, is_large: bool, random: &mut Stream) -> Network {
    let most = (system.nodes_max.0 as u64).min(if is_large { 40 } else { 20 });
    // Evenly distributed in large scenarios, and by their logarithms in the others.
    let count = |most: u64, random: &mut Stream| match is_large {
        true => 2 + random.below(most - 1) as usize,
        false => (options::logarithmic(2.0, most as f64 + 1.0, random) as usize).min(most as usize),
    };
    let metres = |x: f64| (x * 10.0).round() / 10.0;
    match random.below(6) {
        0 | 1 => {
            let (nodes, step) = (
                count(most.min(6), random),
                range * (0.05 + 1.1 * random.fraction()),
            );
            let place = |node: usize| [metres(node as f64 * step), 0.0];
            Network::Places((0..nodes).map(place).collect())
        }
        2 => {
            let nodes = count(most.min(8), random);
            let mut link = |from: usize, to: usize| match from == to || random.chance(0.2) {
                true => 0.0,
                false => (random.fraction() * 20.0).round() / 20.0,
            };
            let row = |from: usize, link: &mut dyn FnMut(usize, usize) -> f64| {
                (0..nodes).map(|to| link(from, to)).collect()
            };
            Network::Links((0..nodes).map(|from| row(from, &mut link)).collect())
        }
        3 if system.radios == Radios::Dot15d4 => {
            let lines = vec![quoted("generator", "building")];
            Network::Generated(lines, count(most, random))
        }
        kind => {
            let nodes = count(most, random);
            let side = metres(range * f64::sqrt(nodes as f64) * (0.3 + random.fraction()));
            let area = plain("area", format!("[\"{side} m\", \"{side} m\"]"));
            let mut lines = match kind {
                4 => vec![
                    quoted("generator", "grid"),
                    quoted(
                        "spacing",
                        format!("{} m", metres(range * (0.2 + random.fraction()))),
                    ),
                ],
                5 if random.chance(0.4) => vec![
                    quoted("generator", "clustered"),
                    area,
                    plain("clusters", 1 + random.below(4)),
                    quoted("spread", format!("{} m", metres(range * 0.4))),
                ],
                _ => vec![quoted("generator", "random"), area],
            };
            if random.chance(0.7) {
                lines.push(plain("connected", 0.3));
            }
            Network::Generated(lines, nodes)
        }
    }
}

fn transfers(
    system: &scenario::System,
    nodes: usize,
    is_large: bool,
    random: &mut Stream,
) -> Vec<Transfer> {
    let largest = match system.radios {
        Radios::Dot11 => 200_000.0,
        Radios::Dot15d4 => 20_000.0,
    };
    let largest = if is_large { largest } else { largest / 10.0 };
    let count = if random.chance(0.75) {
        1
    } else {
        2 + random.below(2)
    };
    let one = |random: &mut Stream| {
        let node = |random: &mut Stream| random.below(nodes as u64) as usize;
        let octets = options::logarithmic(1.0, largest, random) as u64;
        let source = node(random);
        let one_receiver = random.chance(0.5);
        if random.chance(0.3) {
            let receivers = if one_receiver {
                1
            } else {
                1 + random.below(nodes as u64 - 1) as usize
            };
            let source = random.chance(0.5).then_some(source);
            return Transfer {
                source,
                receivers: Receivers::Count(receivers),
                octets,
            };
        }
        // The last nodes are far from the first ones on lines; systems with a fixed end ask for one of those.
        let (source, sink) = match random.below(3) {
            0 => (0, nodes - 1),
            1 => (nodes - 1, 0),
            _ => (
                source,
                (source + 1 + random.below(nodes as u64 - 1) as usize) % nodes,
            ),
        };
        let mut receivers = vec![sink];
        if !one_receiver {
            let more =
                (0..nodes).filter(|&node| node != source && node != sink && random.chance(0.4));
            receivers.extend(more);
        }
        Transfer {
            source: Some(source),
            receivers: Receivers::Nodes(receivers),
            octets,
        }
    };
    (0..count).map(|_| one(random)).collect()
}

/// Traffic that ends before the run does.
fn flow(nodes: usize, random: &mut Stream) -> Vec<Line> {
    let source = random.below(nodes as u64);
    let sink = (source + 1 + random.below(nodes as u64 - 1)) % nodes as u64;
    let mut lines = vec![plain("source", source), plain("sink", sink)];
    if random.chance(0.6) {
        let rate = options::logarithmic(1.0, 500.0, random) as u64;
        lines.push(quoted("rate", format!("{rate} kbit/s")));
    }
    if random.chance(0.5) {
        lines.push(quoted("end", format!("{} s", 1 + random.below(60))));
    }
    lines
}
