//! Importers of networks: NetJSON, meshviewer and CSV link lists, plain or gzip, become delivery ratios; files of ns-2, ns-3,
//! BonnMotion and OMNeT++ become positions and movements.
//!
//! The format is detected from the contents. Missing values are not invented: a link without a quality is omitted, and
//! a file in which no link has one is refused.

mod bonnmotion;
mod links;
mod matrix;
mod meshviewer;
mod netjson;
mod places;
mod text;
mod ways;

use std::collections::BTreeMap;
use std::path::Path;

pub use matrix::read_matrix;
pub use places::Places;
pub use text::FileText;

use crate::input::InputError;

/// The most nodes that an imported network may have: the matrix of delivery ratios grows with their square.
pub const NODES_MAX: usize = 4096;

/// A network as delivery ratios between named nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// The nodes' names in the file; a scenario refers to them by their places in this list.
    pub names: Vec<String>,
    /// Row-major: entry `i * n + j` is the share of i's frames that j receives.
    pub delivery: Vec<f64>,
    /// In how many directions the file gives its links.
    pub directions: Directions,
}

/// How many pairs of nodes a file gives a quality for, by whether it does so in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    /// Pairs with a value in each direction.
    pub both: usize,
    /// Pairs with a value in one direction only.
    pub one: usize,
}

/// Which rows of a link list to use: column name and wanted value.
pub type Select = BTreeMap<String, String>;

/// Which part of a file is used, and how it is understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The rows of a link list.
    pub select: Select,
    /// A link that is given in one direction is alike in the other.
    pub undirected: bool,
}

/// Where the nodes stand, if the file says that; `None` for files of links.
pub fn places(file: &FileText) -> Result<Option<Places>, InputError> {
    match places::parse(file)? {
        Some(places) => Ok(Some(places)),
        None => bonnmotion::parse(file),
    }
}

/// The links of a file of any of the formats.
pub fn links(file: &FileText, reading: &Reading) -> Result<Map, InputError> {
    parse(file, reading)
}

/// The names of a file's nodes, in the order of their numbers.
pub fn names(path: &Path, select: &Select) -> Result<Vec<String>, InputError> {
    let file = FileText::read(path)?;
    if let Some(places) = places(&file)? {
        return Ok(places.names);
    }
    let found = collect(&file, select)?;
    Ok(found.names.iter().map(Name::text).collect())
}

/// A network measured channel by channel, between named nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channels {
    /// The nodes' names in the file.
    pub names: Vec<String>,
    /// For each channel, row-major: the delivery ratio and the mean power in dBm at which frames came, not-a-number
    /// where nothing was measured. Channel 0 stands for all channels that are not listed.
    tables: BTreeMap<u8, Vec<(f32, f32)>>,
    /// In how many directions the file gives its links, counted on each channel.
    pub directions: Directions,
}

impl Channels {
    /// Delivery ratio and received power of a link; `None` where nothing came.
    pub fn link(&self, channel: u8, from: usize, to: usize) -> Option<(f64, Option<f64>)> {
        let table = self.tables.get(&channel).or(self.tables.get(&0))?;
        let &(prr, rssi) = table.get(from * self.names.len() + to)?;
        let rssi = (!rssi.is_nan()).then_some(f64::from(rssi));
        (!prr.is_nan()).then_some((f64::from(prr), rssi))
    }

    /// The same ratios on all channels, as of a matrix.
    pub fn alike(rows: &[Vec<f64>]) -> Channels {
        let ratios = rows.iter().flatten();
        let table = ratios.map(|&prr| (prr as f32, f32::NAN)).collect();
        Channels {
            names: (0..rows.len()).map(|node| node.to_string()).collect(),
            tables: BTreeMap::from([(0, table)]),
            directions: Directions::default(),
        }
    }

    /// A digest of all ratios and powers.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (channel, table) in &self.tables {
            hasher.update(&[*channel]);
            for (prr, rssi) in table {
                hasher.update(&prr.to_le_bytes());
                hasher.update(&rssi.to_le_bytes());
            }
        }
        hasher.finalize().to_hex()[..16].to_string()
    }
}

/// The links of a file, which may be measured channel by channel (a link list with a column `channel`, and perhaps the
/// power). Any other file holds for all channels.
pub fn channels(file: &FileText, reading: &Reading) -> Result<Channels, InputError> {
    if let Some(channels) = links::parse_channels(file, reading)? {
        return Ok(channels);
    }
    let map = parse(file, reading)?;
    let rows: Vec<Vec<f64>> = map
        .delivery
        .chunks(map.names.len().max(1))
        .map(<[f64]>::to_vec)
        .collect();
    Ok(Channels {
        names: map.names,
        directions: map.directions,
        ..Channels::alike(&rows)
    })
}

fn parse(file: &FileText, reading: &Reading) -> Result<Map, InputError> {
    collect(file, &reading.select)?.finish(file, reading.undirected)
}

fn collect(file: &FileText, select: &Select) -> Result<Collector, InputError> {
    // A link list may have one line of JSON before its header, so a first line in braces proves nothing by itself.
    let first_line = file.text.trim_start().lines().next().unwrap_or("");
    let is_json = first_line.starts_with('{')
        && serde_json::from_str::<serde_json::Value>(&file.text).is_ok();
    let looks_json = first_line.starts_with('{') && !first_line.ends_with('}');
    if !is_json && !looks_json {
        return links::collect(file, select);
    }
    let json: serde_json::Value =
        serde_json::from_str(&file.text).map_err(|error| file.json_error(&error))?;
    if json["type"] == "NetworkGraph" {
        netjson::collect(file, &json)
    } else if json["links"].is_array() || json["batadv"]["links"].is_array() {
        meshviewer::collect(file, &json, select)
    } else {
        Err(file.error("this JSON is neither a NetJSON NetworkGraph nor a meshviewer map").help(
            "a NetworkGraph has \"type\": \"NetworkGraph\"; a meshviewer map has \"nodes\" and \"links\"",
        ))
    }
}

/// Collects links by name; several measurements of one link count by their mean.
#[derive(Default)]
struct Collector {
    sums: BTreeMap<(Name, Name), (f64, f64)>,
    names: std::collections::BTreeSet<Name>,
}

/// Names that are numbers stand in the order of numbers, before those that are not. `07` is a word: `7` is another node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Number(u64),
    Word(String),
}

impl Name {
    fn new(text: &str) -> Name {
        let plain = text == "0" || !text.starts_with(['0', '+']);
        let number = text.parse().ok().filter(|_| plain);
        number.map_or_else(|| Name::Word(text.to_string()), Name::Number)
    }

    fn text(&self) -> String {
        match self {
            Name::Number(number) => number.to_string(),
            Name::Word(word) => word.clone(),
        }
    }
}

impl Collector {
    fn node(&mut self, name: &str) {
        self.names.insert(Name::new(name));
    }

    fn link(&mut self, from: &str, to: &str, delivery: f64, weight: f64) {
        let (from, to) = (Name::new(from), Name::new(to));
        self.names.insert(from.clone());
        self.names.insert(to.clone());
        if from != to {
            let entry = self.sums.entry((from, to)).or_insert((0.0, 0.0));
            entry.0 += delivery.clamp(0.0, 1.0) * weight;
            entry.1 += weight;
        }
    }

    /// The mean of each link's values, with the link's place in a table of these nodes, a row for each sender. Links of other
    /// nodes are left out.
    fn means(&self, places: &BTreeMap<&Name, usize>) -> impl Iterator<Item = (usize, f32)> {
        let place = |from, to| Some(places.get(from)? * places.len() + places.get(to)?);
        let links = self.sums.iter();
        links.filter_map(move |((from, to), (sum, weight))| {
            Some((place(from, to)?, (sum / weight) as f32))
        })
    }

    /// Any value of a link; several count by their mean.
    fn value(&mut self, from: &str, to: &str, value: f64) {
        let (from, to) = (Name::new(from), Name::new(to));
        let entry = self.sums.entry((from, to)).or_insert((0.0, 0.0));
        entry.0 += value;
        entry.1 += 1.0;
    }

    /// How many pairs have values in both directions, and in one.
    fn directions(&self) -> Directions {
        let mut directions = Directions::default();
        for (from, to) in self.sums.keys() {
            match self.sums.contains_key(&(to.clone(), from.clone())) {
                // Each pair is met twice here.
                true => directions.both += usize::from(from < to),
                false => directions.one += 1,
            }
        }
        directions
    }

    /// Gives every link that has a value in one direction the same value in the other.
    fn mirror(&mut self) {
        for ((from, to), sum) in self.sums.clone() {
            self.sums.entry((to, from)).or_insert(sum);
        }
    }

    /// Whether a quality was found.
    fn check(&self, file: &FileText) -> Result<(), InputError> {
        match self.sums.is_empty() {
            true => Err(file.error("no link with a quality was found in it")),
            false => Ok(()),
        }
    }

    fn finish(mut self, file: &FileText, undirected: bool) -> Result<Map, InputError> {
        let nodes = self.names.len();
        self.check(file)?;
        let directions = self.directions();
        if undirected {
            self.mirror();
        }
        if nodes > NODES_MAX {
            return Err(file.error(format!(
                "it has {nodes} nodes; at most {NODES_MAX} can be imported"
            )));
        }
        let mut delivery = vec![0.0; nodes * nodes];
        let place: BTreeMap<&Name, usize> = self.names.iter().zip(0..).collect();
        for ((from, to), (sum, weight)) in &self.sums {
            delivery[place[from] * nodes + place[to]] = sum / weight;
        }
        Ok(Map {
            names: self.names.iter().map(Name::text).collect(),
            delivery,
            directions,
        })
    }
}

#[cfg(test)]
mod tests;
