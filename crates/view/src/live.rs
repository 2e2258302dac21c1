//! Running daemons over time: what each said when it was asked, in bounded memory, as the tables of a run.
//!
//! A [`Sighting`] is one answer of one daemon, a [`History`] what is kept of them. Nodes of a daemon's table are the daemon itself, then
//! everyone whom it knows. A counter becomes a rate per second.

mod border;
mod cast;
mod emu;
pub mod frames;
mod link;
mod mesh;
mod series;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chappe_core::Duration;
use chappe_sim::AirTime;
use chappe_trace::{About, Column, Data, Table, Tables};
use serde_json::Value;

use frames::Frames;
use series::Series;

/// Daemons that are shown at most; as many as a page holds runs.
pub const DAEMONS: usize = 16;
/// Nodes of a daemon, and values of it, that are kept at most.
const NODES: usize = 1024;
const SERIES: usize = 4096;
/// Changes of nodes, from there to gone and back, that are kept of a daemon.
const CHANGES: usize = 4096;

/// One answer of a daemon.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sighting {
    /// `cast`, `link`, `mesh`, `border` or `emu`.
    pub daemon: &'static str,
    /// What distinguishes it from others of its kind.
    pub title: String,
    /// A key for each node, which it keeps from answer to answer, and its name. The first is the daemon itself.
    pub nodes: Vec<(String, String)>,
    /// Directed links between these nodes: from, to, share of frames that arrive.
    pub links: Vec<(usize, usize, f64)>,
    /// The values that its nodes hold.
    pub values: Vec<Held>,
    /// Its newest frames, of a daemon whose air is simulated. Nodes are called by their keys there, which are numbers.
    pub frames: Option<Frames>,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The node's place among those of the sighting.
    pub node: usize,
    /// What it is, in `snake_case`.
    pub name: String,
    /// Which one of them: a destination, a transfer.
    pub part: u32,
    /// The value, by how it changes.
    pub value: Amount,
}

/// A value, by how it changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// A number that goes up and down.
    Gauge(f64),
    /// A number that only goes up: its rate per second is shown.
    Counter(f64),
    /// The name of a state.
    Word(String),
}

impl Sighting {
    /// Reads a daemon's answer. `None` if it is none of a daemon that is known here.
    pub fn read(answer: &str) -> Option<Sighting> {
        let json: Value = serde_json::from_str(answer).ok()?;
        match json.get("daemon").and_then(Value::as_str) {
            Some("cast") => cast::read(&json),
            Some("border") => border::read(&json),
            Some("emu") => emu::read(&json),
            _ if json.get("peers").is_some() => link::read(&json),
            _ if json.get("routes").is_some() => mesh::read(&json),
            _ => None,
        }
    }

    fn gauge(&mut self, node: usize, name: &str, part: u32, value: Option<f64>) {
        if let Some(value) = value {
            self.hold(node, name, part, Amount::Gauge(value));
        }
    }

    fn hold(&mut self, node: usize, name: &str, part: u32, value: Amount) {
        let name = name.to_owned();
        self.values.push(Held {
            node,
            name,
            part,
            value,
        });
    }

    /// Links as `border` and `emu` list them, by the places of their nodes.
    fn link(&mut self, json: &Value) {
        for link in each(json, "links") {
            let end = |key| number(link, key).map(|node| node as usize);
            if let (Some(from), Some(to), Some(share)) =
                (end("from"), end("to"), number(link, "delivery"))
                && from.max(to) < self.nodes.len()
            {
                self.links.push((from, to, share));
            }
        }
    }

    /// Every number of a JSON object that `is` accepts, as a counter or a gauge.
    fn hold_all(&mut self, node: usize, of: &Value, amount: impl Fn(&str, f64) -> Option<Amount>) {
        for (name, value) in of.as_object().into_iter().flatten() {
            if let Some(amount) = value.as_f64().and_then(|value| amount(name, value)) {
                self.hold(node, name, 0, amount);
            }
        }
    }
}

/// The members of a JSON array; none where it is missing.
fn each<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    json.get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn number(json: &Value, key: &str) -> Option<f64> {
    json.get(key)?.as_f64()
}

fn word<'a>(json: &'a Value, key: &str) -> Option<&'a str> {
    json.get(key)?.as_str()
}

/// What is kept of the daemons of this machine.
#[derive(Debug, Default)]
pub struct History {
    daemons: BTreeMap<String, Daemon>,
}

/// What is kept of one daemon.
#[derive(Debug, Default)]
struct Daemon {
    kind: &'static str,
    title: String,
    places: BTreeMap<String, u32>,
    names: Vec<String>,
    links: Vec<(u32, u32, f64)>,
    series: BTreeMap<(u32, String, u32), Series>,
    there: BTreeSet<u32>,
    /// When a node came or went.
    changes: VecDeque<(AirTime, u32, bool)>,
    /// The newest frames that it handed over, and how far our clock is ahead of its, in nanoseconds.
    frames: Option<(i64, Frames)>,
    first: AirTime,
    last: AirTime,
}

/// An answer takes a moment, so a clock that seems to have moved by less has not.
const MOMENT_NS: u64 = 500_000_000;

impl History {
    /// Adds what the daemons said at `at`, by the paths of their sockets. One that has not answered is gone; its past is kept.
    pub fn add(&mut self, at: Duration, sightings: Vec<(String, Sighting)>) {
        let at = AirTime::from_nanos(at.nanos());
        let answered: BTreeSet<&String> = sightings.iter().map(|(path, _)| path).collect();
        for (path, daemon) in &mut self.daemons {
            if !answered.contains(path) {
                daemon.leave(at);
            }
        }
        for (path, sighting) in sightings {
            if !self.daemons.contains_key(&path) && self.daemons.len() >= DAEMONS {
                self.forget_one();
            }
            if self.daemons.len() < DAEMONS || self.daemons.contains_key(&path) {
                self.daemons.entry(path).or_default().add(at, sighting);
            }
        }
    }

    /// Forgets the daemon that has been gone for longest, if one is gone.
    fn forget_one(&mut self) {
        let gone = self.daemons.iter().filter(|one| one.1.there.is_empty());
        let oldest = gone.min_by_key(|(_, daemon)| daemon.last);
        if let Some(path) = oldest.map(|(path, _)| path.clone()) {
            self.daemons.remove(&path);
        }
    }

    /// The daemons as runs: a name and tables for each.
    pub fn runs(&self) -> Vec<(String, Tables)> {
        let runs = self.daemons.iter();
        runs.map(|(path, daemon)| {
            (
                format!("{}: {}, {path}", daemon.kind, daemon.title),
                daemon.tables(),
            )
        })
        .collect()
    }
}

impl Daemon {
    fn add(&mut self, at: AirTime, sighting: Sighting) {
        if self.names.is_empty() {
            self.first = at;
        }
        (self.kind, self.last) = (sighting.daemon, at);
        self.title = sighting.title;
        let places: Vec<Option<u32>> = sighting
            .nodes
            .iter()
            .map(|(key, name)| self.place(key, name))
            .collect();
        let place = |node: usize| places.get(node).copied().flatten();
        let links = sighting.links.iter();
        self.links = links
            .filter_map(|&(from, to, share)| Some((place(from)?, place(to)?, share)))
            .collect();
        for held in sighting.values {
            if let Some(node) = place(held.node) {
                self.hold(at, node, held);
            }
        }
        self.meet(at, places.into_iter().flatten().collect());
        if let Some(frames) = sighting.frames {
            let ahead = (at.nanos() as i64).saturating_sub(frames.now_ns);
            let before = self.frames.as_ref().map(|(ahead, _)| *ahead);
            let same = before.filter(|before| before.abs_diff(ahead) < MOMENT_NS);
            self.frames = Some((same.unwrap_or(ahead), frames));
        }
    }

    /// The number of a node, a new one for one that is new; `None` if there are too many.
    fn place(&mut self, key: &str, name: &str) -> Option<u32> {
        let next = self.names.len();
        match self.places.get(key) {
            Some(&place) => {
                self.names[place as usize] = name.to_owned();
                Some(place)
            }
            None if next < NODES => {
                self.places.insert(key.to_owned(), next as u32);
                self.names.push(name.to_owned());
                Some(next as u32)
            }
            None => None,
        }
    }

    fn hold(&mut self, at: AirTime, node: u32, held: Held) {
        let name = match held.value {
            Amount::Counter(_) => format!("{}_per_s", held.name),
            _ => held.name,
        };
        let key = (node, name, held.part);
        if let Some(series) = self.series.get_mut(&key) {
            series.add(at, held.value);
        } else if self.series.len() < SERIES {
            self.series.entry(key).or_default().add(at, held.value);
        }
    }

    fn meet(&mut self, at: AirTime, there: BTreeSet<u32>) {
        let changed = self.there.symmetric_difference(&there);
        self.changes
            .extend(changed.map(|&node| (at, node, there.contains(&node))));
        while self.changes.len() > CHANGES {
            self.changes.pop_front();
        }
        self.there = there;
    }

    /// It does not answer any more.
    fn leave(&mut self, at: AirTime) {
        if !self.there.is_empty() {
            self.meet(at, BTreeSet::new());
            self.series.values_mut().for_each(Series::pause);
        }
        self.last = at;
    }

    fn tables(&self) -> Tables {
        Tables {
            about: About {
                scenario: format!("{} {}", self.kind, self.title),
                system: self.kind.to_owned(),
                variant: self.title.clone(),
                end: self.last,
                nodes: self.names.len(),
                names: self.names.clone(),
                ..About::default()
            },
            tables: [self.switches(), self.readings(), self.link_table()]
                .into_iter()
                .chain(self.frame_tables())
                .collect(),
        }
    }

    fn frame_tables(&self) -> Vec<Table> {
        let Some((ahead, frames)) = &self.frames else {
            return Vec::new();
        };
        let numbered = self.places.iter();
        let numbers: BTreeMap<i64, u32> = numbered
            .filter_map(|(key, place)| Some((key.parse().ok()?, *place)))
            .collect();
        frames.shown(*ahead, |node| numbers.get(&node).copied())
    }

    fn switches(&self) -> Table {
        // A node that came later is off until then.
        let mut met = BTreeSet::new();
        let first = self.changes.iter().filter(|change| met.insert(change.1));
        let late = first.filter(|change| change.2 && change.0 > self.first);
        let mut rows: Vec<_> = late
            .map(|change| (AirTime::ZERO, change.1, false))
            .collect();
        rows.extend(&self.changes);
        let at = rows.iter().map(|row| row.0.nanos() as i64);
        let words = rows.iter().map(|row| if row.2 { "on" } else { "down" });
        table(
            "switches",
            vec![
                ("at_ns", Data::Whole(at.collect())),
                (
                    "node",
                    Data::Whole(rows.iter().map(|row| row.1.into()).collect()),
                ),
                ("to", Data::of_words(words)),
            ],
        )
    }

    fn readings(&self) -> Table {
        let rows = || {
            let series = self.series.iter();
            series.flat_map(|(key, series)| series.rows().map(move |row| (key, row)))
        };
        table(
            "readings",
            vec![
                (
                    "at_ns",
                    Data::Whole(rows().map(|(_, row)| row.at.nanos() as i64).collect()),
                ),
                (
                    "node",
                    Data::Whole(rows().map(|(key, _)| key.0.into()).collect()),
                ),
                (
                    "name",
                    Data::of_words(rows().map(|(key, _)| key.1.as_str())),
                ),
                (
                    "part",
                    Data::Whole(rows().map(|(key, _)| key.2.into()).collect()),
                ),
                (
                    "value",
                    Data::Real(rows().map(|(_, row)| row.number).collect()),
                ),
                (
                    "word",
                    Data::of_words(rows().map(|(_, row)| row.word.as_str())),
                ),
            ],
        )
    }

    fn link_table(&self) -> Table {
        let rows = || self.links.iter();
        table(
            "links",
            vec![
                (
                    "from",
                    Data::Whole(rows().map(|row| row.0.into()).collect()),
                ),
                ("to", Data::Whole(rows().map(|row| row.1.into()).collect())),
                ("delivery", Data::Real(rows().map(|row| row.2).collect())),
            ],
        )
    }
}

fn table(name: &str, columns: Vec<(&str, Data)>) -> Table {
    let column = |(name, data): (&str, Data)| Column {
        name: name.to_owned(),
        data,
    };
    Table {
        name: name.to_owned(),
        columns: columns.into_iter().map(column).collect(),
    }
}

#[cfg(test)]
mod tests;
