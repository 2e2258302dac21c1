//! `[network]`: where the nodes stand, or which links they have.

mod generated;

use std::cell::Cell;
use std::sync::Arc;

use chappe_core::{Mode, Seed};
use chappe_sim::{Matrix, Motion, Position, Profile, RandomWaypoint, topology};

use generated::{generated, unused};

use super::channels::{ChannelGround, Origin};
use super::imported::{self, Given};
use crate::check::Check;
use crate::format::{Generator, Links, Located, NetworkTable, span_of};
use crate::import;
use crate::input::InputError;
use crate::radios::Radios;

/// Share of frames above which two nodes of a measured network sense each other, unless the scenario says
/// otherwise: a node that decodes one frame in ten finds the channel busy during most of the others too.
const SENSES_ABOVE: f64 = 0.1;

/// Links of this share, both ways, connect a generated building unless the scenario says otherwise.
const CONNECTED: f64 = 0.9;

/// How often places are drawn before giving up on connected ones.
const DRAWS: u64 = 1000;

/// Where the nodes stand, or their links.
#[derive(Clone, Debug)]
pub enum Topology {
    /// Placed by a rule; the seed is the run's unless one is given.
    Generated {
        /// How many nodes are placed.
        nodes: usize,
        /// The rule that places them.
        rule: Placing,
        /// The seed that places them whatever the run's seed.
        seed: Option<u64>,
        /// Links of at least this delivery ratio must connect all of them.
        connected: Option<f64>,
    },
    /// Positions that the scenario gives.
    Positions {
        /// Where the nodes stand at the start.
        places: Vec<Position>,
        /// Where they go from there, if they move.
        motion: Option<Arc<Motion>>,
        /// The seed of the shadowing whatever the run's seed.
        seed: Option<u64>,
    },
    /// Delivery ratios instead of places.
    Measured(Matrix),
    /// Links that differ between the channels of 802.15.4.
    Channels(ChannelGround),
}

/// A rule that places nodes, lengths in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placing {
    /// Uniformly in a rectangle.
    Random {
        /// Width and depth of the rectangle, in metres.
        area: [f64; 2],
    },
    /// On a square grid with this spacing, filled row by row.
    Grid {
        /// Metres between neighbours of a row or column.
        spacing: f64,
    },
    /// In a line with this spacing.
    Line {
        /// Metres between neighbours on the line.
        spacing: f64,
    },
    /// In clusters around random centres.
    Clustered {
        /// Width and depth of the rectangle of the centres.
        area: [f64; 2],
        /// How many centres the nodes are placed around.
        clusters: usize,
        /// Standard deviation around them.
        spread: f64,
    },
    /// On their ways in a rectangle.
    RandomWaypoint(RandomWaypoint),
}

/// Where the nodes of one seed stand, and how they move.
pub struct Placed {
    /// The places at the start.
    pub places: Vec<Position>,
    /// The ways from there, if nodes move.
    pub motion: Option<Motion>,
}

impl Topology {
    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        match self {
            Topology::Generated { nodes, .. } => *nodes,
            Topology::Positions { places, .. } => places.len(),
            Topology::Measured(matrix) => matrix.prr.len(),
            Topology::Channels(topology) => topology.nodes,
        }
    }

    /// Whether another seed means another network.
    pub fn varies(&self) -> bool {
        if let Topology::Channels(topology) = self {
            return topology.seed.is_none();
        }
        matches!(
            self,
            Topology::Generated {
                seed: None,
                rule: Placing::Random { .. }
                    | Placing::Clustered { .. }
                    | Placing::RandomWaypoint(_),
                ..
            }
        )
    }

    /// Whether any node moves during a run.
    pub fn moves(&self) -> bool {
        match self {
            Topology::Generated { rule, .. } => matches!(rule, Placing::RandomWaypoint(_)),
            Topology::Positions { motion, .. } => motion.is_some(),
            Topology::Measured(_) | Topology::Channels(_) => false,
        }
    }

    /// The seed of the network in a run of this seed: it decides places and shadowing.
    pub fn seed(&self, run: u64) -> Seed {
        match self {
            Topology::Generated {
                seed: Some(seed), ..
            }
            | Topology::Positions {
                seed: Some(seed), ..
            } => Seed(*seed),
            _ => Seed(run),
        }
    }

    /// The places; `None` if the scenario gives links instead.
    pub fn positions(&self, run: u64) -> Option<Vec<Position>> {
        match self {
            Topology::Positions { places, .. } => Some(places.clone()),
            Topology::Measured(_) | Topology::Channels(_) => None,
            Topology::Generated { nodes, rule, .. } => Some(rule.place(*nodes, self.seed(run))),
        }
    }

    /// The places and ways, drawn again until the places are connected for frames that are sent by this mode and have this
    /// number of octets, if they must be. `None` if no draw is, or if the scenario gives links instead.
    pub fn placed(
        &self,
        run: u64,
        profile: &Profile,
        (mode, octets): (Mode, usize),
    ) -> Option<Placed> {
        let seed = Cell::new(self.seed(run));
        let places = match self {
            Topology::Generated {
                nodes,
                rule,
                connected: Some(prr),
                ..
            } => {
                let ask = (mode, octets, *prr);
                topology::until_connected(profile, ask, (seed.get(), DRAWS), |drawn| {
                    seed.set(drawn);
                    rule.place(*nodes, drawn)
                })?
            }
            _ => self.positions(run)?,
        };
        let motion = match self {
            Topology::Generated {
                nodes,
                rule: Placing::RandomWaypoint(law),
                ..
            } => law.motion(*nodes, seed.get()).ok(),
            Topology::Positions { motion, .. } => motion.as_deref().cloned(),
            _ => None,
        };
        Some(Placed { places, motion })
    }

    /// A digest of links, or of the `places` of a file: what the scenario's own text does not hold.
    pub fn digest(&self, places_of_file: bool) -> Option<String> {
        if let Topology::Positions { places, motion, .. } = self {
            let mut hasher = blake3::Hasher::new();
            for place in places {
                hasher.update(&place.x.to_le_bytes());
                hasher.update(&place.y.to_le_bytes());
            }
            for waypoints in motion.iter().flat_map(|motion| motion.waypoints()) {
                hasher.update(&(waypoints.len() as u64).to_le_bytes());
                for waypoint in waypoints {
                    hasher.update(&waypoint.at.nanos().to_le_bytes());
                    hasher.update(&waypoint.place.x.to_le_bytes());
                    hasher.update(&waypoint.place.y.to_le_bytes());
                }
            }
            return places_of_file.then(|| hasher.finalize().to_hex()[..16].to_string());
        }
        if let Topology::Channels(ChannelGround {
            origin: Origin::Measured(measured),
            ..
        }) = self
        {
            return Some(measured.digest());
        }
        let Topology::Measured(matrix) = self else {
            return None;
        };
        let mut hasher = blake3::Hasher::new();
        for ratio in matrix.prr.iter().flatten() {
            hasher.update(&ratio.to_le_bytes());
        }
        Some(hasher.finalize().to_hex()[..16].to_string())
    }
}

impl Placing {
    fn place(self, nodes: usize, seed: Seed) -> Vec<Position> {
        match self {
            Placing::Random {
                area: [width, depth],
            } => topology::random(nodes, width, depth, seed),
            Placing::Line { spacing } => topology::line(nodes, spacing),
            Placing::Grid { spacing } => {
                let columns = (1..=nodes).find(|c| c * c >= nodes).unwrap_or(1);
                let mut places = topology::grid(columns, nodes.div_ceil(columns), spacing);
                places.truncate(nodes);
                places
            }
            Placing::Clustered {
                area: [width, depth],
                clusters,
                spread,
            } => topology::clustered(nodes, clusters, spread, width, depth, seed),
            // The law was checked when the scenario was read.
            Placing::RandomWaypoint(law) => law
                .motion(nodes, seed)
                .map(|motion| motion.start())
                .unwrap_or_default(),
        }
    }
}

/// A topology, and what the scenario's author should know about it.
pub struct Planned {
    pub topology: Topology,
    /// The nodes' names, by number; none if they have none but their numbers.
    pub names: Vec<String>,
    pub notes: Vec<String>,
}

impl From<Topology> for Planned {
    fn from(topology: Topology) -> Planned {
        Planned {
            topology,
            names: Vec::new(),
            notes: Vec::new(),
        }
    }
}

pub fn plan(
    network: &Located<NetworkTable>,
    radios: Radios,
    check: &Check<'_>,
) -> Result<Planned, InputError> {
    let given = [
        ("generator", network.generator.as_ref().map(Located::span)),
        ("positions", network.positions.as_ref().map(Located::span)),
        ("links", network.links.as_ref().map(Located::span)),
        ("file", network.file.as_ref().map(Located::span)),
    ];
    let mut ways = given
        .iter()
        .filter_map(|(name, span)| Some((*name, span.clone()?)));
    let Some((first, _)) = ways.next() else {
        let message = "this does not say where the nodes stand";
        return Err(check
            .at(network, "this table", message)
            .help("give one of `generator`, `positions`, `links` and `file`"));
    };
    if let Some((second, span)) = ways.next() {
        let message = format!("`{second}` and `{first}` both say where the nodes stand");
        return Err(check
            .error(span, "the second one", message)
            .help("leave out one of them"));
    }
    if let Some(undirected) = network
        .undirected
        .as_ref()
        .filter(|_| network.file.is_none())
    {
        let message = "`undirected` changes nothing here: it is about the links of `file`";
        return Err(check.at(undirected, "no use here", message));
    }
    refuse_unused(network, first, check)?;
    if let Some(generator) = &network.generator {
        return Ok(generated(network, **generator, radios, check)?.into());
    }
    if let Some(positions) = &network.positions {
        let places = positions
            .iter()
            .map(|[x, y]| Position::new(x.value(), y.value()))
            .collect();
        let seed = network.seed;
        let motion = None;
        return Ok(Topology::Positions {
            places,
            motion,
            seed,
        }
        .into());
    }
    if let Some(span) = span_of(&network.bad_links).filter(|_| radios != Radios::Dot15d4) {
        return Err(channels_only(span, check));
    }
    measured(network, radios, check)
}

/// Refuses a key that belongs to another way of saying where the nodes are.
fn refuse_unused(network: &NetworkTable, way: &str, check: &Check<'_>) -> Result<(), InputError> {
    const OF_GENERATORS: [&str; 6] = ["area", "clusters", "pause", "spacing", "speed", "spread"];
    let of_links = |key: &str| match key {
        "senses_above" => way != "links" && way != "file",
        "select" => way != "file",
        "connected" => way == "positions",
        "nodes" => way == "positions" || way == "links",
        _ => false,
    };
    let mut keys = check.source().keys_of("network")?.iter();
    let useless =
        |key: &str| of_links(key) || network.generator.is_none() && OF_GENERATORS.contains(&key);
    match keys.find(|(key, _)| useless(key)) {
        None => Ok(()),
        Some((key, span)) => {
            let message = format!("`{key}` changes nothing beside `{way}`");
            Err(check.error(span.clone(), "no use here", message))
        }
    }
}

/// The error for a key that only 802.15.4 has.
fn channels_only(span: std::ops::Range<usize>, check: &Check<'_>) -> InputError {
    let message = "this is for networks of 802.15.4, whose channels differ";
    let error = check.error(span, "no use here", message);
    error.help("take it out, or name a system with 802.15.4 radios")
}

/// A network whose channels differ.
fn channels(
    network: &Located<NetworkTable>,
    origin: Origin,
    nodes: usize,
    check: &Check<'_>,
) -> Result<Topology, InputError> {
    if let Some(unused) = unused(network, Generator::Building) {
        let message = "this kind of network does not use this key";
        return Err(check.error(unused, "no use here", message));
    }
    let share = |key: &Option<Located<f64>>, usual: f64| match key {
        Some(share) if !(0.0..=1.0).contains(&**share) => {
            Err(check.at(share, "out of range", "a share lies between 0 and 1"))
        }
        key => Ok(key.as_ref().map_or(usual, |share| **share)),
    };
    let connected = match &origin {
        Origin::Building => CONNECTED,
        Origin::Measured(_) => 0.0,
    };
    Ok(Topology::Channels(ChannelGround {
        origin,
        nodes,
        bad_links: share(&network.bad_links, 0.0)?,
        seed: network.seed,
        connected: share(&network.connected, connected)?,
    }))
}

/// Links from the scenario, a matrix file, or an imported map.
fn measured(
    network: &Located<NetworkTable>,
    radios: Radios,
    check: &Check<'_>,
) -> Result<Planned, InputError> {
    if let Some(file) = &network.file {
        let imported = imported::read(file, network, radios, check)?;
        let topology = match imported.given {
            Given::Ratios(rows) => ratios(network, rows),
            Given::Channels(measured) => drawn(network, measured, check)?,
            Given::Places { places, motion } => Topology::Positions {
                places,
                motion: motion.map(Arc::new),
                seed: network.seed,
            },
        };
        // Drawn nodes are others at each seed, and the numbers of a plain list say all.
        let mut names = imported.names;
        let numbers = names.iter().enumerate();
        let plain = numbers.fold(true, |all, (at, name)| all && *name == at.to_string());
        if plain || topology.nodes() < names.len() {
            names.clear();
        }
        return Ok(Planned {
            topology,
            names,
            notes: imported.notes,
        });
    }
    let rows = match &network.links {
        Some(links) => match &**links {
            Links::Matrix(rows) => square(links, rows.clone(), check)?,
            Links::File(path) => {
                let path = check.source().beside(path);
                let rows = import::read_matrix(&path).map_err(|e| check.instead(links, e))?;
                square(links, rows, check)?
            }
        },
        None => Vec::new(),
    };
    Ok(match radios {
        Radios::Dot11 => ratios(network, rows),
        Radios::Dot15d4 => {
            let (measured, nodes) = (import::Channels::alike(&rows), rows.len());
            channels(network, Origin::Measured(Arc::new(measured)), nodes, check)?
        }
    }
    .into())
}

/// All nodes of a file of measurements, or as many as `nodes` says.
fn drawn(
    network: &Located<NetworkTable>,
    measured: Arc<import::Channels>,
    check: &Check<'_>,
) -> Result<Topology, InputError> {
    let all = measured.names.len();
    let nodes = network.nodes.as_ref().map_or(all, |nodes| **nodes);
    if let Some(given) = network.nodes.as_ref().filter(|_| nodes > all) {
        let message = format!("{nodes} nodes cannot be drawn from {all}");
        return Err(check.at(given, "too many", message));
    }
    channels(network, Origin::Measured(measured), nodes, check)
}

/// Links with these delivery ratios, row by row.
fn ratios(network: &NetworkTable, rows: Vec<Vec<f64>>) -> Topology {
    let above = network
        .senses_above
        .as_ref()
        .map_or(SENSES_ABOVE, |share| **share);
    let senses = (0..rows.len())
        .map(|i| {
            (0..rows.len())
                .map(|j| i != j && rows[i][j] >= above)
                .collect()
        })
        .collect();
    Topology::Measured(Matrix {
        prr: rows,
        senses,
        ..Matrix::default()
    })
}

fn square(
    links: &Located<Links>,
    rows: Vec<Vec<f64>>,
    check: &Check<'_>,
) -> Result<Vec<Vec<f64>>, InputError> {
    let nodes = rows.len();
    for (index, row) in rows.iter().enumerate() {
        if row.len() != nodes {
            let message = format!(
                "row {index} has {} ratios, but there are {nodes} rows",
                row.len()
            );
            return Err(check
                .at(links, "not square", message)
                .help("one row for each sender, with one ratio for each receiver"));
        }
        if let Some((to, ratio)) = row
            .iter()
            .enumerate()
            .find(|(_, ratio)| !(0.0..=1.0).contains(*ratio))
        {
            let message =
                format!("the ratio from node {index} to node {to} is {ratio}, not from 0 to 1");
            return Err(check.at(links, "out of range", message));
        }
    }
    Ok(rows)
}
