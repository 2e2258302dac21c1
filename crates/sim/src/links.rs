//! Link tables: for each transmitter its receivers, in the order in which its signal reaches them.

use std::ops::Range;

use chappe_core::{Db, Dbm, Purpose, SPEED_OF_LIGHT, Seed, Stream};

use crate::arrival::Arrival;
use crate::fading::Pair;
use crate::id::NodeId;
use crate::position::distance;
use crate::power::MILLIWATT;
use crate::{Antennas, Fading, LinkPowers, Position, Power, Profile, Selectivity};

/// Compressed rows, one for each transmitter; within a row ordered by (delay, receiver).
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// Where each row begins; one more at the end.
    first: Vec<u32>,
    /// How many links of each row are near: those up to the last one whose signals mostly survive the vanishing point. The
    /// far ones after it are tested by `least` first.
    near: Vec<u32>,
    /// Delay of the last link of each row, zero where there is none.
    latest: Vec<u32>,
    /// For each link, where a profile has a vanishing point: the least upper half of its random bits with which its signal
    /// may not vanish. Zero lets all pass.
    pub(crate) least: Vec<u32>,
    /// The ends of each link that fades.
    pub(crate) pair: Vec<Pair>,
    /// Propagation delay of each link that fades, in nanoseconds.
    pub(crate) delay: Vec<u32>,
    /// Mean power at the receiver in zeptowatts, at the transmitter's usual power.
    pub(crate) mean: Vec<f64>,
    /// Without fading, the signals of all frames that are sent at the usual power. They take the place of the three columns above,
    /// and a frame in flight does not copy them.
    pub(crate) steady: Vec<Arrival>,
    /// The least power of these.
    pub(crate) weakest: Power,
    fading: Fading,
}

/// A transmitter: a node, or an external interferer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) position: Position,
    pub(crate) power: Dbm,
    /// The power at which the floor is judged.
    pub(crate) power_max: Dbm,
}

/// How receivers in reach are found. Both give the same links; a test compares whole runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// Through a grid of cells as wide as the longest link.
    #[default]
    Grid,
    /// By testing every pair.
    Brute,
}

/// `least` of a link whose signals survive every other time. Below that, looking at the bits first costs less than
/// the logarithms that it saves.
const RATHER: u32 = 1 << 31;

/// Shadowing beyond this many deviations is cut: the cells of the grid are as wide as the longest link.
const SHADOWING_MAX: f64 = 4.0;

impl Default for Links {
    fn default() -> Links {
        Links::with_rows(0, Fading::None)
    }
}

impl Links {
    /// The links between `row..row + 1` as a range into the columns.
    #[inline]
    pub(crate) fn row(&self, transmitter: u32) -> Range<usize> {
        let at = transmitter as usize;
        self.first[at] as usize..self.first[at + 1] as usize
    }

    /// When the signals of a row are over, after the transmitter's own.
    #[inline]
    pub(crate) fn latest(&self, transmitter: u32) -> u32 {
        self.latest[transmitter as usize]
    }

    /// The two parts of a row.
    #[inline]
    pub(crate) fn near_and_far(&self, transmitter: u32) -> (Range<usize>, Range<usize>) {
        let row = self.row(transmitter);
        let split = row.start + self.near[transmitter as usize] as usize;
        (row.start..split, split..row.end)
    }

    pub(crate) fn len(&self) -> usize {
        self.mean.len()
    }

    /// Whether links do not fade.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.fading == Fading::None
    }

    /// The node at which a link of `transmitter` ends, and how late signals are there.
    #[inline]
    pub(crate) fn end(&self, transmitter: NodeId, link: usize) -> (NodeId, u32) {
        match self.is_steady() {
            true => (self.steady[link].receiver, self.steady[link].delay),
            false => (self.pair[link].other(transmitter), self.delay[link]),
        }
    }

    pub(crate) fn rows(&self) -> u32 {
        self.first.len().saturating_sub(1) as u32
    }

    /// The place of the link from `transmitter` to `receiver`, if there is one.
    pub(crate) fn find(&self, transmitter: u32, receiver: u32) -> Option<usize> {
        self.row(transmitter)
            .find(|&link| self.end(NodeId(transmitter), link).0 == NodeId(receiver))
    }

    /// Starts a table whose rows are added in order by [`Links::push_row`].
    pub(crate) fn with_rows(rows: usize, fading: Fading) -> Links {
        let mut first = Vec::with_capacity(rows + 1);
        first.push(0);
        Links {
            first,
            near: Vec::new(),
            latest: Vec::new(),
            least: Vec::new(),
            pair: Vec::new(),
            delay: Vec::new(),
            mean: Vec::new(),
            steady: Vec::new(),
            weakest: Power(u64::MAX),
            fading,
        }
    }

    /// Appends the next row, that of `transmitter`; `row` holds (delay, receiver, mean power) and is sorted here. `least`
    /// gives a link's bits by its mean power.
    pub(crate) fn push_row(
        &mut self,
        transmitter: usize,
        row: &mut [(u32, u32, f64)],
        least: impl Fn(f64) -> u32,
    ) {
        // By receiver too, so that equal delays do not leave the order to the search.
        row.sort_unstable_by_key(|&(delay, receiver, _)| (delay, receiver));
        let mut near = 0;
        for (place, &(delay, receiver, mean)) in row.iter().enumerate() {
            let bits = least(mean);
            if bits < RATHER {
                near = place as u32 + 1;
            }
            self.mean.push(mean);
            if self.is_steady() {
                let power = Power::rounded_down(mean);
                self.weakest = self.weakest.min(power);
                self.steady.push(Arrival {
                    receiver: NodeId(receiver),
                    delay,
                    power,
                });
            } else {
                let ends = Pair::of(NodeId::of(transmitter), NodeId(receiver));
                self.pair.push(ends);
                self.delay.push(delay);
                self.least.push(bits);
            }
        }
        self.near.push(near);
        self.latest.push(row.last().map_or(0, |&(delay, ..)| delay));
        self.first.push(self.mean.len() as u32);
    }

    /// All links from `sources` to nodes at `receivers` on one channel.
    ///
    /// The first sources are the receivers themselves. A link exists if its mean power at `power_max` is not
    /// more than [`Profile::floor`] under the noise; one that no fade can lift over the vanishing point is
    /// omitted too, which changes no run.
    pub(crate) fn geometric(
        profile: &Profile,
        (receivers, antennas): (&[Position], Option<&Antennas>),
        sources: &[Source],
        channel: u8,
        seed: Seed,
        search: Search,
    ) -> Links {
        let law = Law::new(profile, antennas, channel, seed);
        let grid = match search {
            Search::Grid => Grid::new(receivers, law.reach(sources)),
            Search::Brute => Grid::single(receivers.len()),
        };
        let mut links = Links::with_rows(sources.len(), profile.fading);
        let mut row = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            row.clear();
            grid.around(source.position, |receiver| {
                let Some(&position) = receivers
                    .get(receiver as usize)
                    .filter(|_| receiver as usize != number)
                else {
                    return;
                };
                row.extend(law.link((number, source), (receiver, position)));
            });
            links.push_row(number, &mut row, |mean| law.least(mean));
        }
        links.pair.shrink_to_fit();
        links.delay.shrink_to_fit();
        links.least.shrink_to_fit();
        links.mean.shrink_to_fit();
        links.steady.shrink_to_fit();
        links
    }

    /// The links of one channel whose mean powers are given; those under the floor do not exist.
    pub(crate) fn given(profile: &Profile, powers: &LinkPowers, channel: u8) -> Links {
        let floor = least_mean(profile);
        let vanish = profile
            .vanish_below
            .map_or(0.0, |power| power.to_milliwatt().0 * MILLIWATT);
        let nodes = powers.nodes();
        let (mut links, mut row) = (Links::with_rows(nodes, profile.fading), Vec::new());
        for from in 0..nodes {
            row.clear();
            for (to, &power) in powers.row(channel, from).iter().enumerate() {
                let power = Dbm(power.into());
                if power.0 >= floor.0 {
                    row.push((0, to as u32, power.to_milliwatt().0 * MILLIWATT));
                }
            }
            let least = |mean| profile.fading.least_bits(vanish / mean);
            links.push_row(from, &mut row, least);
        }
        links
    }

    /// Takes all rows out and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.first.clear();
        self.first.push(0);
        self.near.clear();
        self.latest.clear();
        self.pair.clear();
        self.delay.clear();
        self.mean.clear();
        self.steady.clear();
        self.weakest = Power(u64::MAX);
        self.least.clear();
    }

    /// Octets that the table takes.
    pub(crate) fn octets(&self) -> usize {
        let columns = self.pair.capacity() + self.delay.capacity() + self.least.capacity();
        let steady = self.steady.capacity() * size_of::<Arrival>();
        self.first.capacity() * 12 + columns * 4 + self.mean.capacity() * 8 + steady
    }
}

/// What decides on one channel whether two places have a link, and how strong it is.
pub(crate) struct Law<'a> {
    profile: &'a Profile,
    antennas: Option<&'a Antennas>,
    channel: u8,
    shadowing: Shadowing,
    selected: Stream,
    floor: Dbm,
    /// The vanishing point in zeptowatts; 0 if there is none.
    vanish: f64,
}

impl<'a> Law<'a> {
    pub(crate) fn new(
        profile: &'a Profile,
        antennas: Option<&'a Antennas>,
        channel: u8,
        seed: Seed,
    ) -> Law<'a> {
        // 802.15.4 has its own law of what channels share.
        let shadowed = if profile.dot15d4.is_some() {
            0
        } else {
            channel
        };
        let vanish = profile.vanish_below;
        Law {
            profile,
            antennas,
            channel,
            shadowing: Shadowing::new(profile, shadowed, seed),
            selected: Selectivity::stream(seed),
            floor: least_mean(profile),
            vanish: vanish.map_or(0.0, |power| power.to_milliwatt().0 * MILLIWATT),
        }
    }

    fn selectivity(&self) -> Option<Selectivity> {
        self.profile.dot15d4.and_then(|radio| radio.selectivity)
    }

    /// The longest link that the strongest of these sources can have, in metres.
    pub(crate) fn reach(&self, sources: &[Source]) -> f64 {
        let strongest = sources
            .iter()
            .map(|source| source.power_max.0)
            .fold(f64::MIN, f64::max);
        let gain_max = self.profile.antennas.0
            + self.antennas.map_or(0.0, Antennas::gain_max)
            + SHADOWING_MAX * self.profile.shadowing.0
            + self.selectivity().map_or(0.0, Selectivity::gain_max);
        let path_loss = &self.profile.path_loss;
        path_loss.reach(Dbm(strongest + gain_max) - self.floor)
    }

    /// The link from a source to a receiver as (delay, receiver, mean power), if there is one.
    pub(crate) fn link(
        &self,
        (number, source): (usize, &Source),
        (receiver, position): (u32, Position),
    ) -> Option<(u32, u32, f64)> {
        let profile = self.profile;
        let metres = distance(source.position, position);
        let spread = match self.antennas {
            None => -profile.path_loss.loss(metres).0,
            Some(antennas) => antennas.gain(
                profile,
                (number, source.position),
                (receiver as usize, position),
            ),
        };
        let selected = self.selectivity().map_or(0.0, |law| {
            law.gain(&self.selected, number as u32, receiver, self.channel)
        });
        let gain = profile.antennas.0 + spread + self.shadowed(number as u32, receiver) + selected;
        // The floor is judged at the highest power a frame may ask for: power control must never create a link.
        (source.power_max.0 + gain >= self.floor.0).then(|| {
            let delay = libm::round(metres / SPEED_OF_LIGHT * 1e9) as u32;
            let mean = Dbm(source.power.0 + gain).to_milliwatt().0 * MILLIWATT;
            (delay, receiver, mean)
        })
    }

    /// Shadowing between two nodes, or between their masts.
    fn shadowed(&self, a: u32, b: u32) -> f64 {
        let Some(antennas) = self.antennas.filter(|antennas| !antennas.sites.is_empty()) else {
            return self.shadowing.gain(a, b);
        };
        match (antennas.site(a), antennas.site(b)) {
            (here, there) if here == there => 0.0,
            (here, there) => self.shadowing.gain(here, there),
        }
    }

    /// The bits of a link of this mean power, see [`Links::push_row`].
    pub(crate) fn least(&self, mean: f64) -> u32 {
        self.profile.fading.least_bits(self.vanish / mean)
    }
}

/// The least mean power of a link that can matter: the profile's floor, or what no fade lifts over the vanishing
/// point. The hundredth of a dB covers all roundings.
fn least_mean(profile: &Profile) -> Dbm {
    let floor = profile.noise - profile.floor;
    let hopeless = profile.vanish_below.map_or(f64::NEG_INFINITY, |vanish| {
        (vanish - Db::from_linear(profile.fading.gain_max())).0 - 0.01
    });
    Dbm(floor.0.max(hopeless))
}

/// Log-normal shadowing in dB: a normal number for each unordered pair and channel, read by position.
struct Shadowing {
    deviation: f64,
    channel: u8,
    stream: Stream,
}

impl Shadowing {
    fn new(profile: &Profile, channel: u8, seed: Seed) -> Shadowing {
        Shadowing {
            deviation: profile.shadowing.0,
            channel,
            stream: seed.stream(Purpose::Shadowing),
        }
    }

    fn gain(&self, a: u32, b: u32) -> f64 {
        if self.deviation == 0.0 {
            return 0.0;
        }
        let (low, high) = (u64::from(a.min(b)), u64::from(a.max(b)));
        // Ordered: shadowing is the same in both directions.
        let position = low << 40 | high << 16 | u64::from(self.channel) << 1;
        let radius = libm::sqrt(-2.0 * libm::log(self.stream.fraction_at(position)));
        let angle = 2.0 * std::f64::consts::PI * self.stream.fraction_at(position | 1);
        let normal = radius * libm::cos(angle);
        self.deviation * normal.clamp(-SHADOWING_MAX, SHADOWING_MAX)
    }
}

/// Nodes sorted into square cells (positions are taken in the plane: height only shortens no distance).
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    cell: f64,
    west: f64,
    south: f64,
    columns: usize,
    rows: usize,
    /// Where each cell's nodes begin in `nodes`; one more at the end.
    first: Vec<u32>,
    nodes: Vec<u32>,
}

/// Cells along one axis; more do not make the search faster.
const CELLS_MAX: f64 = 1024.0;

impl Grid {
    pub(crate) fn single(nodes: usize) -> Grid {
        Grid {
            cell: f64::INFINITY,
            west: 0.0,
            south: 0.0,
            columns: 1,
            rows: 1,
            first: vec![0, nodes as u32],
            nodes: (0..nodes as u32).collect(),
        }
    }

    pub(crate) fn new(positions: &[Position], reach: f64) -> Grid {
        let bounds = |axis: fn(&Position) -> f64| {
            let low = positions.iter().map(axis).fold(f64::INFINITY, f64::min);
            let high = positions.iter().map(axis).fold(f64::NEG_INFINITY, f64::max);
            (low, high - low)
        };
        let ((west, width), (south, depth)) = (bounds(|p| p.x), bounds(|p| p.y));
        if positions.is_empty() || !(width + depth).is_finite() {
            return Grid::single(positions.len());
        }
        let cell = reach.max(width / CELLS_MAX).max(depth / CELLS_MAX);
        let columns = (width / cell) as usize + 1;
        let rows = (depth / cell) as usize + 1;
        let mut grid = Grid {
            cell,
            west,
            south,
            columns,
            rows,
            first: vec![0; columns * rows + 1],
            nodes: vec![0; positions.len()],
        };
        let cells: Vec<usize> = positions.iter().map(|&p| grid.cell_of(p)).collect();
        for &cell in &cells {
            grid.first[cell + 1] += 1;
        }
        for cell in 0..columns * rows {
            grid.first[cell + 1] += grid.first[cell];
        }
        let mut next = grid.first.clone();
        for (node, &cell) in cells.iter().enumerate() {
            grid.nodes[next[cell] as usize] = node as u32;
            next[cell] += 1;
        }
        grid
    }

    fn axis(offset: f64, cell: f64, cells: usize) -> usize {
        ((offset / cell).max(0.0) as usize).min(cells - 1)
    }

    fn cell_of(&self, position: Position) -> usize {
        let column = Grid::axis(position.x - self.west, self.cell, self.columns);
        let row = Grid::axis(position.y - self.south, self.cell, self.rows);
        row * self.columns + column
    }

    /// Calls `each` with every node that may be within one cell's width of `position`.
    pub(crate) fn around(&self, position: Position, mut each: impl FnMut(u32)) {
        let range = |offset: f64, cells| {
            // A cell is as wide as the longest link, so the cells around are enough.
            let near = Grid::axis(offset - self.cell, self.cell, cells);
            near..=Grid::axis(offset + self.cell, self.cell, cells)
        };
        if self.cell.is_infinite() {
            self.nodes.iter().copied().for_each(each);
            return;
        }
        for row in range(position.y - self.south, self.rows) {
            for column in range(position.x - self.west, self.columns) {
                let cell = row * self.columns + column;
                let nodes = self.first[cell] as usize..self.first[cell + 1] as usize;
                self.nodes[nodes].iter().copied().for_each(&mut each);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    fn links(profile: &Profile, search: Search, channel: u8) -> Links {
        let positions = topology::random(300, 3000.0, 3000.0, Seed(8));
        let sources: Vec<Source> = positions
            .iter()
            .map(|&position| Source {
                position,
                power: profile.power,
                power_max: profile.power_max,
            })
            .collect();
        Links::geometric(
            profile,
            (&positions, None),
            &sources,
            channel,
            Seed(8),
            search,
        )
    }

    /// Culled and brute-force search find the same links, with and without shadowing.
    #[test]
    fn the_grid_leaves_nothing_out() {
        for shadowing in [0.0, 6.0] {
            let profile = Profile {
                shadowing: Db(shadowing),
                floor: Db(5.0),
                ..Profile::chappe_physical()
            };
            let (grid, brute) = (
                links(&profile, Search::Grid, 1),
                links(&profile, Search::Brute, 1),
            );
            assert!(grid.len() > 1000 && grid.len() < 300 * 299);
            assert_eq!(grid.first, brute.first);
            let ends = |links: &Links| {
                let row = |from| links.row(from).map(move |link| (from, link));
                let all = (0..links.rows()).flat_map(row);
                Vec::from_iter(all.map(|(from, link)| links.end(NodeId(from), link)))
            };
            assert_eq!(ends(&grid), ends(&brute));
            assert_eq!(grid.mean, brute.mean);
        }
    }

    /// Shadowing is the same in both directions, differs between channels, and has its deviation.
    #[test]
    fn shadowing_belongs_to_pair_and_channel() {
        let profile = Profile {
            shadowing: Db(6.0),
            ..Profile::chappe_physical()
        };
        let shadowing = Shadowing::new(&profile, 3, Seed(1));
        assert_eq!(shadowing.gain(4, 9), shadowing.gain(9, 4));
        assert_ne!(
            shadowing.gain(4, 9),
            Shadowing::new(&profile, 4, Seed(1)).gain(4, 9)
        );
        let n = 40_000;
        let squares: f64 = (0..n).map(|i| shadowing.gain(i, i + 70_000).powi(2)).sum();
        assert!((squares / f64::from(n) / 36.0 - 1.0).abs() < 0.04);
    }
}
