//! What lies between the antennas: which links exist, how strong and how long they are.

use std::sync::{Arc, OnceLock};

use chappe_core::{Channel, Db, Dbm, Duration, Mode, Seed};

use crate::arrival::Arrival;
use crate::fading::{Fader, Pair, average_rising};
use crate::id::NodeId;
use crate::links::{Law, Links, Source};
use crate::moving::Moving;
use crate::power::MILLIWATT;
use crate::rules::Rules;
use crate::spread::{Departure, NEVER, Row, Spread, SteadyRow};
use crate::{
    AirTime, Antennas, Capture, Error, Fading, LinkPowers, LinkTrace, Lock, Matrix, Motion,
    PathLoss, Position, Power, Profile, Rule, Search,
};

/// Most nodes of a run, set by the bits of an event's key and of a fading position.
pub(crate) const NODES_MAX: usize = 65_535;

/// Gains by which [`Medium::prr_about`] takes a mean.
const FEW_GAINS: usize = 256;

/// The medium of one network: geometry and a profile, or a measured matrix.
#[derive(Clone, Debug)]
pub struct Medium {
    nodes: usize,
    profile: Profile,
    seed: Seed,
    fader: Fader,
    space: Space,
    tables: Vec<Links>,
    gains: OnceLock<Vec<f64>>,
    rules: OnceLock<Rules>,
    /// Which table each channel uses, plus one; zero where none has been made yet.
    table_of: Box<[u8; 256]>,
    /// The nodes' ways, if they move: the tables are then those of the start.
    moving: Option<Box<Moving>>,
}

#[derive(Clone, Debug)]
enum Space {
    Geometric {
        positions: Vec<Position>,
        sources: Vec<Source>,
        antennas: Option<Antennas>,
        search: Search,
    },
    /// Mean powers are given, channel by channel.
    Given(Arc<LinkPowers>),
    Measured {
        /// Of each link: its delivery ratio, or `NEVER` where it only makes the channel busy.
        ratio: Vec<f32>,
        /// Of each link: its trace plus one, or zero.
        trace: Vec<u32>,
        traces: Vec<LinkTrace>,
        octets: Option<usize>,
    },
}

/// A link between two nodes on one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkView {
    /// The node that transmits.
    pub from: usize,
    /// The node that receives from it.
    pub to: usize,
    /// The mean power, without fading; not a number in a matrix.
    pub power: Dbm,
    /// The share of frames that arrives without other signals.
    pub prr: f64,
}

/// Powers that stand for "sensed" and "not sensed, but delivers" in a matrix; the threshold lies between.
const SENSED: f64 = 1e12;
const UNSENSED: f64 = 1e6;

impl Medium {
    /// Nodes at `positions` under a profile's physics. `seed` decides the static shadowing; the run's seed decides fading.
    pub fn geometric(
        positions: &[Position],
        profile: &Profile,
        seed: Seed,
    ) -> Result<Medium, Error> {
        Medium::geometric_by(positions, profile, seed, Search::Grid)
    }

    /// [`geometric`](Self::geometric) with a choice of how links are found, for tests: the result is the same.
    pub fn geometric_by(
        positions: &[Position],
        profile: &Profile,
        seed: Seed,
        search: Search,
    ) -> Result<Medium, Error> {
        Medium::placed(positions, None, profile, seed, search)
    }

    /// Nodes at `positions`, each with its own antenna, under a profile's physics. A site with several links is several
    /// nodes on one mast, one for each radio. The profile's [`antennas`](Profile::antennas) still count, so they should be
    /// 0 dB.
    pub fn directed(
        positions: &[Position],
        antennas: &Antennas,
        profile: &Profile,
        seed: Seed,
    ) -> Result<Medium, Error> {
        antennas.check(positions.len())?;
        Medium::placed(positions, Some(antennas), profile, seed, Search::Grid)
    }

    /// Nodes that move, under a profile's physics. A frame's links are those of the places at which its transmitter and
    /// receivers are when it begins; during a frame nothing moves. Shadowing is of a pair of nodes, wherever they are. What is
    /// asked of the medium outside a run ([`prr`](Self::prr), [`hearers`](Self::hearers)) holds at the start.
    pub fn moving(motion: &Motion, profile: &Profile, seed: Seed) -> Result<Medium, Error> {
        Medium::moving_by(motion, profile, seed, Search::Grid)
    }

    /// [`moving`](Self::moving) with a choice of how links are found, for tests: the result is the same.
    pub fn moving_by(
        motion: &Motion,
        profile: &Profile,
        seed: Seed,
        search: Search,
    ) -> Result<Medium, Error> {
        let mut medium = Medium::geometric_by(&motion.start(), profile, seed, search)?;
        medium.moving = Some(Box::new(Moving::new(
            motion.clone(),
            search,
            profile.fading,
        )));
        Ok(medium)
    }

    /// How the nodes move, if they do.
    pub fn motion(&self) -> Option<&Motion> {
        self.moving.as_deref().map(Moving::motion)
    }

    fn placed(
        positions: &[Position],
        antennas: Option<&Antennas>,
        profile: &Profile,
        seed: Seed,
        search: Search,
    ) -> Result<Medium, Error> {
        if positions.iter().any(|p| !(p.x + p.y + p.z).is_finite()) {
            return Err(Error::NotFinite("a position"));
        }
        if !(profile.power.0 + profile.power_max.0 + profile.noise.0 + profile.floor.0).is_finite()
        {
            return Err(Error::NotFinite("power, noise or floor of the profile"));
        }
        let power_max = Dbm(profile.power_max.0.max(profile.power.0));
        let sources = positions.iter().map(|&position| Source {
            position,
            power: profile.power,
            power_max,
        });
        let space = Space::Geometric {
            positions: positions.to_vec(),
            sources: sources.collect(),
            antennas: antennas.cloned(),
            search,
        };
        let mut medium = Medium::over(space, positions.len(), profile.clone(), seed)?;
        medium.profile.power_max = power_max;
        medium.open(profile.channel.0);
        Ok(medium)
    }

    /// Nodes with measured delivery ratios. Propagation delay, power and fading do not exist in it.
    pub fn matrix(matrix: &Matrix) -> Result<Medium, Error> {
        let nodes = matrix.check()?;
        let mut links = Links::with_rows(nodes, Fading::None);
        let (mut ratio, mut trace) = (Vec::new(), Vec::new());
        for from in 0..nodes {
            let mut row = Vec::new();
            for to in 0..nodes {
                let traced = matrix
                    .traces
                    .iter()
                    .position(|&(link, _)| link == (from, to));
                let (prr, sensed) = (matrix.prr[from][to], matrix.senses[from][to]);
                let delivers = prr > 0.0 || traced.is_some();
                if from == to || !(delivers || sensed) {
                    continue;
                }
                row.push((0, to as u32, if sensed { SENSED } else { UNSENSED }));
                ratio.push(if delivers { prr as f32 } else { NEVER });
                trace.push(traced.map_or(0, |place| place as u32 + 1));
            }
            links.push_row(from, &mut row, |_| 0);
        }
        let space = Space::Measured {
            ratio,
            trace,
            traces: matrix
                .traces
                .iter()
                .map(|(_, trace)| trace.clone())
                .collect(),
            octets: matrix.measured_octets,
        };
        let mut medium = Medium::over(space, nodes, measured_profile(), Seed(0))?;
        medium.tables.push(links);
        medium.table_of.fill(1);
        Ok(medium)
    }

    /// Nodes with given mean powers, under a profile's physics. `seed` seeds only fading, and a run replaces it by its own.
    pub fn given(powers: &LinkPowers, profile: &Profile, seed: Seed) -> Result<Medium, Error> {
        powers.check(profile)?;
        let space = Space::Given(Arc::new(powers.clone()));
        let mut medium = Medium::over(space, powers.nodes(), profile.clone(), seed)?;
        medium.open(profile.channel.0);
        Ok(medium)
    }

    fn over(space: Space, nodes: usize, profile: Profile, seed: Seed) -> Result<Medium, Error> {
        if nodes > NODES_MAX {
            return Err(Error::TooManyNodes(nodes));
        }
        Ok(Medium {
            nodes,
            fader: Fader::new(profile.fading, profile.coherence, seed),
            profile,
            seed,
            space,
            tables: Vec::new(),
            gains: OnceLock::new(),
            rules: OnceLock::new(),
            table_of: Box::new([0; 256]),
            moving: None,
        })
    }

    /// The number of nodes, without interferers.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The profile whose physics hold.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Where the nodes stand at the start; empty for a matrix.
    pub fn positions(&self) -> &[Position] {
        match &self.space {
            Space::Geometric { positions, .. } => positions,
            Space::Given(_) | Space::Measured { .. } => &[],
        }
    }

    /// Where the transmitter of a row stands, be it a node or an interferer; `None` without geometry.
    pub(crate) fn place(&self, row: NodeId) -> Option<Position> {
        match &self.space {
            Space::Geometric { sources, .. } => sources.get(row.index()).map(|at| at.position),
            Space::Given(_) | Space::Measured { .. } => None,
        }
    }

    /// The number of directed links on the profile's channel.
    pub fn links(&self) -> usize {
        self.table(self.profile.channel.0).len()
    }

    /// Octets of memory that the link tables take.
    pub fn octets(&self) -> usize {
        let measured = match &self.space {
            Space::Geometric { .. } | Space::Given(_) => 0,
            Space::Measured { ratio, .. } => ratio.len() * 8,
        };
        self.tables.iter().map(Links::octets).sum::<usize>() + measured
    }

    /// The nodes that a node's signal reaches above the floor, nearest first.
    pub fn hearers(&self, tx: usize) -> impl Iterator<Item = usize> + '_ {
        let table = self.table(self.profile.channel.0);
        let row = if tx < self.nodes {
            table.row(tx as u32)
        } else {
            0..0
        };
        row.map(move |link| table.end(NodeId::of(tx), link).0.index())
    }

    /// Mean power at `rx` of a frame from `tx`, without fading; minus infinity where no link exists. A matrix
    /// knows no powers and gives not-a-number for a link.
    pub fn mean_power(&self, tx: usize, rx: usize) -> Dbm {
        match (self.link(tx, rx), &self.space) {
            (None, _) => Dbm(f64::NEG_INFINITY),
            (Some(_), Space::Measured { .. }) => Dbm(f64::NAN),
            (Some(link), _) => {
                Dbm(10.0 * libm::log10(self.table(self.profile.channel.0).mean[link] / MILLIWATT))
            }
        }
    }

    /// The probability that `rx` receives a frame of `octets` (check sequence included) from `tx` without
    /// other signals: the mean over the fading law. A trace's ratio is that of the run's start.
    pub fn prr(&self, tx: usize, rx: usize, mode: Mode, octets: usize) -> f64 {
        self.prr_in(self.profile.channel.0, tx, rx, mode, octets)
    }

    /// [`prr`](Self::prr) to within 0.002, at a thirtieth of the work or less: by 256 of the fading law's gains. For drawings of all links.
    pub fn prr_about(&self, tx: usize, rx: usize, mode: Mode, octets: usize) -> f64 {
        let channel = self.profile.channel.0;
        let Some(link) = self.link_in(channel, tx, rx) else {
            return 0.0;
        };
        let all = self.gains();
        let step = all.len().div_ceil(FEW_GAINS);
        // Each stands for those around it.
        let few: Vec<f64> = (all.iter().skip(step / 2).step_by(step).copied()).collect();
        self.prr_by(&few, self.table(channel), link, mode, octets)
    }

    /// [`prr`](Self::prr) on any channel. Makes that channel's links if they do not exist yet.
    pub fn prr_on(
        &mut self,
        channel: Channel,
        tx: usize,
        rx: usize,
        mode: Mode,
        octets: usize,
    ) -> f64 {
        self.open(channel.0);
        self.prr_in(channel.0, tx, rx, mode, octets)
    }

    /// Mean power on a channel at `rx` of a frame from `tx`, as [`mean_power`](Self::mean_power) on the profile's.
    /// Makes that channel's links if they do not exist yet.
    pub fn power_on(&mut self, channel: Channel, tx: usize, rx: usize) -> Dbm {
        self.open(channel.0);
        match (self.link_in(channel.0, tx, rx), &self.space) {
            (None, _) => Dbm(f64::NEG_INFINITY),
            (Some(_), Space::Measured { .. }) => Dbm(f64::NAN),
            (Some(link), _) => {
                Dbm(10.0 * libm::log10(self.table(channel.0).mean[link] / MILLIWATT))
            }
        }
    }

    /// All links between nodes on a channel, by transmitter: what [`power_on`](Self::power_on) and [`prr_on`](Self::prr_on) say of
    /// each, without a search for it. Makes that channel's links if they do not exist yet.
    pub fn links_on(
        &mut self,
        channel: Channel,
        mode: Mode,
        octets: usize,
    ) -> impl Iterator<Item = LinkView> + '_ {
        self.open(channel.0);
        let (medium, table) = (&*self, self.table(channel.0));
        let measured = matches!(self.space, Space::Measured { .. });
        let nodes = 0..table.rows().min(self.nodes as u32);
        let links = nodes.flat_map(move |from| table.row(from).map(move |link| (from, link)));
        links.map(move |(from, link)| LinkView {
            from: from as usize,
            to: table.end(NodeId(from), link).0.index(),
            power: match measured {
                true => Dbm(f64::NAN),
                false => Dbm(10.0 * libm::log10(table.mean[link] / MILLIWATT)),
            },
            prr: medium.prr_of(table, link, mode, octets),
        })
    }

    /// The delivery ratios of all links between nodes on the profile's channel, as [`prr`](Self::prr) has them: transmitter,
    /// receiver, ratio.
    pub fn ratios(
        &self,
        mode: Mode,
        octets: usize,
    ) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let table = self.table(self.profile.channel.0);
        let nodes = 0..table.rows().min(self.nodes as u32);
        let links = nodes.flat_map(move |from| table.row(from).map(move |link| (from, link)));
        links.map(move |(from, link)| {
            let prr = self.prr_of(table, link, mode, octets);
            (from as usize, table.end(NodeId(from), link).0.index(), prr)
        })
    }

    fn prr_in(&self, channel: u8, tx: usize, rx: usize, mode: Mode, octets: usize) -> f64 {
        let link = self.link_in(channel, tx, rx);
        link.map_or(0.0, |link| {
            self.prr_of(self.table(channel), link, mode, octets)
        })
    }

    fn prr_of(&self, table: &Links, link: usize, mode: Mode, octets: usize) -> f64 {
        self.prr_by(self.gains(), table, link, mode, octets)
    }

    /// The mean over these gains.
    fn prr_by(&self, gains: &[f64], table: &Links, link: usize, mode: Mode, octets: usize) -> f64 {
        if let Space::Measured { .. } = self.space {
            return f64::from(self.ratio(link, AirTime::ZERO, 0, octets)).max(0.0);
        }
        // The rules of the run itself, so that this expectation and a simulated delivery ratio agree.
        let (rules, mean) = (self.rules(), table.mean[link]);
        let success = |gain: f64| rules.alone(Power::rounded_down(mean * gain), mode, octets);
        average_rising(gains, success)
    }

    /// The probability that a frame from `tx`, alone on the air, makes the channel busy at `rx`.
    pub fn sense_probability(&self, tx: usize, rx: usize) -> f64 {
        let Some(link) = self.link(tx, rx) else {
            return 0.0;
        };
        let mean = self.table(self.profile.channel.0).mean[link];
        if let Space::Measured { .. } = self.space {
            return f64::from(mean == SENSED);
        }
        let rules = self.rules();
        average_rising(self.gains(), |gain| {
            rules.sensed(Power::rounded_down(mean * gain))
        })
    }

    /// Whether powers are those of an antenna, not a matrix's symbols.
    pub(crate) fn powers_are_real(&self) -> bool {
        matches!(self.space, Space::Geometric { .. } | Space::Given(_))
    }

    /// Equally likely gains of the fading law, made when first asked for.
    fn gains(&self) -> &[f64] {
        self.gains.get_or_init(|| self.profile.fading.grid())
    }

    /// The profile prepared, when first asked for: a network has many links, and its least power is found by bisection.
    fn rules(&self) -> &Rules {
        self.rules.get_or_init(|| Rules::new(&self.profile))
    }

    fn link(&self, tx: usize, rx: usize) -> Option<usize> {
        self.link_in(self.profile.channel.0, tx, rx)
    }

    fn link_in(&self, channel: u8, tx: usize, rx: usize) -> Option<usize> {
        let inside = tx < self.nodes && rx < self.nodes;
        inside.then(|| self.table(channel).find(tx as u32, rx as u32))?
    }

    fn table(&self, channel: u8) -> &Links {
        table(&self.tables, &self.table_of, channel)
    }

    /// Makes the links of a channel if it has none yet. Channels differ by shadowing or selectivity only.
    pub(crate) fn open(&mut self, channel: u8) {
        if self.table_of[usize::from(channel)] != 0 {
            return;
        }
        // Channels that are equal share one table: memory is in links, and there are millions in large networks.
        let alike = match (&self.space, self.profile.dot15d4) {
            (Space::Given(_), _) => false,
            (_, Some(radio)) => radio.selectivity.is_none(),
            (_, None) => self.profile.shadowing == Db(0.0),
        };
        if alike && !self.tables.is_empty() {
            self.table_of[usize::from(channel)] = 1;
            return;
        }
        let links = self.geometric_links(channel);
        self.tables.push(links);
        self.table_of[usize::from(channel)] = self.tables.len() as u8;
    }

    fn geometric_links(&self, channel: u8) -> Links {
        match &self.space {
            Space::Geometric {
                positions,
                sources,
                antennas,
                search,
            } => Links::geometric(
                &self.profile,
                (positions, antennas.as_ref()),
                sources,
                channel,
                self.seed,
                *search,
            ),
            Space::Given(powers) => Links::given(&self.profile, powers, channel),
            Space::Measured { .. } => Links::default(),
        }
    }

    /// Adds an external transmitter and returns its row; `None` in a matrix, which has no places.
    pub(crate) fn add_source(&mut self, position: Position, power: Dbm) -> Option<NodeId> {
        let Space::Geometric { sources, .. } = &mut self.space else {
            return None;
        };
        sources.push(Source {
            position,
            power,
            power_max: power,
        });
        let row = NodeId::of(sources.len() - 1);
        if let Some(moving) = &mut self.moving {
            moving.sources_changed();
        }
        let made: Vec<u8> = (0..=255)
            .filter(|&channel| self.table_of[usize::from(channel)] != 0)
            .collect();
        // Rows are stored one after another, so a new source means new tables.
        self.tables.clear();
        self.table_of.fill(0);
        made.into_iter().for_each(|channel| self.open(channel));
        Some(row)
    }

    /// Adds an external transmitter that `receivers` sense, to a matrix.
    pub(crate) fn add_measured_source(&mut self, receivers: &[usize]) -> Option<NodeId> {
        let Space::Measured { ratio, trace, .. } = &mut self.space else {
            return None;
        };
        let links = self.tables.first_mut()?;
        let mut row: Vec<_> = receivers
            .iter()
            .map(|&receiver| (0, receiver as u32, SENSED))
            .collect();
        let number = links.rows() as usize;
        links.push_row(number, &mut row, |_| 0);
        ratio.resize(links.len(), NEVER);
        trace.resize(links.len(), 0);
        Some(NodeId(links.rows() - 1))
    }

    /// The powers of the signals of a run with this seed; `None` for a table of delivery ratios, which has none.
    pub fn powers(&self, seed: Seed) -> Option<Powers<'_>> {
        self.powers_are_real().then(|| Powers {
            medium: self,
            fader: Fader::new(self.profile.fading, self.profile.coherence, seed),
        })
    }

    /// Fading is of the run's seed, not of the medium's.
    pub(crate) fn set_run_seed(&mut self, seed: Seed) {
        self.fader = Fader::new(self.profile.fading, self.profile.coherence, seed);
    }

    /// Fills in who a transmission arrives at and how strongly, in order of arrival, unless that stands in a table.
    /// `ratios` is filled for a matrix only.
    pub(crate) fn spread(
        &mut self,
        departure: Departure,
        vanish: Power,
        arrivals: &mut Vec<Arrival>,
        ratios: &mut Vec<f32>,
    ) -> Spread {
        arrivals.clear();
        ratios.clear();
        if let Space::Measured { .. } = self.space {
            self.spread_measured(departure, arrivals, ratios);
            return Spread::default();
        }
        match self.steady_row(departure, vanish) {
            Some(row) => Spread {
                row: Some(row),
                latest: self.table(departure.channel).latest(departure.source.0),
                vanished: 0,
            },
            None => self.spread_row(departure, vanish, arrivals),
        }
    }

    /// The same without a measured medium, where powers have to be worked out.
    #[inline]
    fn spread_row(
        &mut self,
        departure: Departure,
        vanish: Power,
        arrivals: &mut Vec<Arrival>,
    ) -> Spread {
        let Departure {
            source,
            channel,
            begin,
            scale,
            ..
        } = departure;
        let (table, number) = match (&mut self.moving, &self.space) {
            (Some(moving), Space::Geometric { sources, .. }) => {
                // A jammer's noise on all channels has the links of the usual one, as with nodes that stand.
                let known = self.table_of[usize::from(channel)] != 0;
                let channel = if known {
                    channel
                } else {
                    self.profile.channel.0
                };
                let law = Law::new(&self.profile, None, channel, self.seed);
                (moving.row(&law, sources, source.index(), begin), 0)
            }
            _ => (table(&self.tables, &self.table_of, channel), source.0),
        };
        // Rows beyond the nodes are interferers. They are outside the pairs that fade: noise has no phase to add up.
        let law = if source.index() >= self.nodes {
            Fading::None
        } else {
            self.fader.law
        };
        let block = self.fader.block(begin, channel);
        // The table's bounds on bits hold for the usual power and less. With more, every link is tested by its power.
        let (near, far) = match table.near_and_far(number) {
            (near, far) if scale > 1.0 => (near.start..far.end, far.end..far.end),
            parts => parts,
        };
        let links = far.end - near.start;
        let row = Row {
            table,
            from: source,
            vanish,
        };
        row.fill_by(law, (near, far), arrivals, (&self.fader, block), scale);
        Spread {
            row: None,
            latest: arrivals.last().map_or(0, |arrival| arrival.delay),
            vanished: (links - arrivals.len()) as u64,
        }
    }

    /// The row of a source that stands and has its usual power, whose signals do not fade, if none of the table vanishes.
    #[inline]
    fn steady_row(&self, departure: Departure, vanish: Power) -> Option<SteadyRow> {
        let Departure {
            source, channel, ..
        } = departure;
        if self.moving.is_some() || departure.scale != 1.0 {
            return None;
        }
        let table = self.table(channel);
        if !table.is_steady() || table.weakest < vanish {
            return None;
        }
        let row = table.row(source.0);
        Some(SteadyRow {
            table: self.table_of[usize::from(channel)].saturating_sub(1),
            first: row.start as u32,
            end: row.end as u32,
        })
    }

    /// The signals of a row.
    #[inline]
    pub(crate) fn steady(&self, row: SteadyRow) -> &[Arrival] {
        let table = &self.tables[usize::from(row.table)];
        &table.steady[row.first as usize..row.end as usize]
    }

    fn spread_measured(
        &self,
        departure: Departure,
        arrivals: &mut Vec<Arrival>,
        ratios: &mut Vec<f32>,
    ) {
        let table = self.table(departure.channel);
        for link in table.row(departure.source.0) {
            let (receiver, delay) = table.end(departure.source, link);
            arrivals.push(Arrival {
                receiver,
                delay,
                power: Power(table.mean[link] as u64),
            });
            ratios.push(self.ratio(link, departure.begin, departure.number, departure.octets));
        }
    }

    /// The delivery ratio of a measured link for one frame.
    fn ratio(&self, link: usize, at: AirTime, number: u64, octets: usize) -> f32 {
        let Space::Measured {
            ratio,
            trace,
            traces,
            octets: measured,
        } = &self.space
        else {
            return NEVER;
        };
        let traced = trace[link]
            .checked_sub(1)
            .and_then(|place| traces.get(place as usize));
        let ratio = match traced.and_then(|trace| trace.ratio(at, number)) {
            Some(ratio) => ratio as f32,
            None => ratio[link],
        };
        match measured {
            // If bits are lost independently, a frame survives with the power of its length.
            Some(measured) if ratio > 0.0 && ratio < 1.0 && octets != *measured => {
                libm::pow(f64::from(ratio), octets as f64 / (*measured).max(1) as f64) as f32
            }
            _ => ratio,
        }
    }
}

/// The links of a channel.
#[inline]
fn table<'a>(tables: &'a [Links], table_of: &[u8; 256], channel: u8) -> &'a Links {
    let index = table_of[usize::from(channel)].saturating_sub(1);
    &tables[usize::from(index)]
}

/// The profile behind a matrix: its powers are symbols.
fn measured_profile() -> Profile {
    let dbm = |zeptowatts: f64| Dbm(10.0 * libm::log10(zeptowatts / MILLIWATT));
    Profile {
        name: "matrix",
        path_loss: PathLoss::Friis { hertz: 2.4e9 },
        fading: Fading::None,
        noise: dbm(1.0),
        vanish_below: None,
        lock: Lock {
            sinr: Db(f64::NEG_INFINITY),
            power: Dbm(f64::NEG_INFINITY),
        },
        capture: None::<Capture>,
        rule: Rule::Overlap,
        carrier_sense: dbm(1e9),
        turnaround: Duration::ZERO,
        ..Profile::chappe_physical()
    }
}
/// The powers of the signals of one run, which follow from its medium and its seed.
#[derive(Clone, Copy, Debug)]
pub struct Powers<'m> {
    medium: &'m Medium,
    fader: Fader,
}

impl Powers<'_> {
    /// The power at node `to` of a frame that node `from` began to send at `begin`, at its usual power. `None` if there is no link between
    /// them, or none on this channel yet.
    pub fn of(&self, from: usize, to: usize, channel: u8, begin: AirTime) -> Option<Power> {
        if self.medium.table_of[usize::from(channel)] == 0 {
            return None;
        }
        let link = self.medium.link_in(channel, from, to)?;
        let mean = self.medium.table(channel).mean[link];
        let fader = &self.fader;
        let bits = || {
            let ends = Pair::of(NodeId::of(from), NodeId::of(to));
            fader.bits(fader.block(begin, channel), ends)
        };
        let gain = match fader.law {
            Fading::None => 1.0,
            Fading::Rayleigh => fader.rayleigh(bits()),
            Fading::GlomosimRayleigh | Fading::Rician { .. } => fader.gain_of(bits()),
        };
        Some(Power::rounded_down(mean * gain))
    }
}
