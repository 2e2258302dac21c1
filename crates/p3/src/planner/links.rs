//! Links as the gateway measured them, and what it believes of them.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{Channel, Dbm};

use super::wish::Wish;
use crate::sizes::CHANNELS;

/// Links as the gateway measured them.
pub trait Links {
    /// How many nodes there are.
    fn nodes(&self) -> usize;

    /// The share of frames of one node that another receives on a channel.
    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64;

    /// The mean received power, where it was measured. Without it the planner assumes that overlapping senders are
    /// equally strong, and that a frame of another stage collides as often as it could be received.
    fn power(&self, channel: Channel, from: usize, to: usize) -> Option<Dbm> {
        let _ = (channel, from, to);
        None
    }
}

/// 6 dB: from there a CC2420 loses nothing to noise.
const SAFE_MARGIN: f64 = 4.0;
/// Weight of the prior for links received 6 dB above the sensitivity, of which nearly all are perfect: our choice.
const DOUBT_STRONG: f64 = 0.005;
/// A PRR below this counts as no link, but as noise of the measurement.
const FAINT: f64 = 0.05;

/// What the gateway believes of every link on every channel. Worked out once for a plan: a search asks for the same links
/// millions of times.
pub(super) struct Tables {
    nodes: usize,
    /// The estimated PRR of each link: by channel, sender and receiver.
    believed: Vec<f64>,
    /// The received power in milliwatts; negative where it was not measured.
    milliwatts: Vec<f64>,
}

impl Tables {
    pub fn new(links: &impl Links, wish: &Wish) -> Tables {
        let nodes = links.nodes();
        let size = CHANNELS.len() * nodes * nodes;
        let mut tables = Tables {
            nodes,
            believed: vec![0.0; size],
            milliwatts: vec![-1.0; size],
        };
        let (beacons, sensitivity) = (f64::from(wish.beacons), wish.sensitivity.to_milliwatt().0);
        let milliwatts = Milliwatts::new();
        for (at, channel) in CHANNELS.into_iter().enumerate() {
            for from in 0..nodes {
                for to in (0..nodes).filter(|&to| to != from) {
                    let place = (at * nodes + from) * nodes + to;
                    let power = links.power(channel, from, to);
                    let power = power.map_or(-1.0, |power| milliwatts.of(power));
                    tables.milliwatts[place] = power;
                    let share = links.prr(channel, from, to);
                    if share < FAINT {
                        continue;
                    }
                    // Power well above the sensitivity says more about a link without losses than a few beacons do.
                    let strong = power > sensitivity * SAFE_MARGIN;
                    let doubt = if strong { DOUBT_STRONG } else { 0.5 };
                    tables.believed[place] = (share * beacons + doubt) / (beacons + 2.0 * doubt);
                }
            }
        }
        tables
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    fn place(&self, channel: Channel, from: usize, to: usize) -> usize {
        let at = match channel {
            Channel(20) => 1,
            Channel(25) => 2,
            Channel(26) => 3,
            _ => 0,
        };
        (at * self.nodes + from) * self.nodes + to
    }

    /// The estimated PRR of a link.
    pub fn believed(&self, channel: Channel, from: usize, to: usize) -> f64 {
        self.believed[self.place(channel, from, to)]
    }

    /// The received power in milliwatts, if it was measured.
    pub fn milliwatts(&self, channel: Channel, from: usize, to: usize) -> Option<f64> {
        let power = self.milliwatts[self.place(channel, from, to)];
        (power >= 0.0).then_some(power)
    }

    /// The better of its channels for a link that must work both ways on the same one.
    pub fn both_ways(&self, from: usize, to: usize) -> f64 {
        let tables = self.believed.chunks_exact((self.nodes * self.nodes).max(1));
        let (there, back) = (from * self.nodes + to, to * self.nodes + from);
        let both = |table: &[f64]| table[there].min(table[back]);
        tables.map(both).fold(0.0, f64::max)
    }
}

/// Milliwatts of powers that are whole dBm, as radios report them: of a hundred thousand links few differ in theirs.
struct Milliwatts(Vec<f64>);

/// The lowest power in the table, in dBm, and how many there are.
const WHOLE_MIN: i32 = -128;
const WHOLE: usize = 160;

impl Milliwatts {
    fn new() -> Milliwatts {
        let one = |at: usize| Dbm(f64::from(WHOLE_MIN + at as i32)).to_milliwatt().0;
        Milliwatts((0..WHOLE).map(one).collect())
    }

    fn of(&self, power: Dbm) -> f64 {
        let at = power.0 - f64::from(WHOLE_MIN);
        // A power that is no whole number, or that no radio reports, is worked out.
        let place = Some(at as usize).filter(|&place| place as f64 == at);
        let known = place.and_then(|place| self.0.get(place)).copied();
        known.unwrap_or_else(|| power.to_milliwatt().0)
    }
}

// The order in which `Tables::place` counts the channels.
const _: () = assert!(
    CHANNELS[0].0 == 15 && CHANNELS[1].0 == 20 && CHANNELS[2].0 == 25 && CHANNELS[3].0 == 26
);
