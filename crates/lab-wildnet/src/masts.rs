//! Masts with radios on them, in a line: one link, or several that disturb each other.
//!
//! Each radio is a node of the simulator; the two radios of a mast stand at one place, hear each other through what
//! their dishes leave ([`MAST_ISOLATION`]), share their slots if they have some, and hand packets to each other. The line
//! zigzags, so that no dish points past its peer at the next mast. Here is what a line is; [`mounting`](super::mounting)
//! puts it on the air, and a [`Run`](super::run::Run) is one on its way.

use chappe_core::{Channel, Db, Duration, Instant, Seed};
use chappe_mac::dot11;
use chappe_sim::{
    AirTime, Antenna, Antennas, Capture, Jammer, LinkLoss, LinkTrace, LossLaw, Medium, Position,
    Profile, Window,
};

use super::faults::Mishaps;
use super::hosts::Stack;
use super::traffic::{Source, UDP_PAYLOAD};
use super::trial::{Load, Scheme};

/// Between two parallel dishes of one mast: they have 40 to 80 dB (sim's `Antennas`), so the middle.
pub const MAST_ISOLATION: Db = Db(60.0);
/// Cards of the paper's make leave a frame for a stronger one at any time (Lee and others, "An experimental study on the
/// capture effect in 802.11a networks", WiNTECH 2007, measured on Atheros); without that the two radios of a mast could
/// not receive at once, as those of the paper's could (2.2). The margin is GloMoSim's.
const CAPTURE: Capture = Capture {
    margin: Db(10.0),
    window: Window::Frame,
};
/// Half the angle by which the line turns at a mast, in degrees: far outside of a dish's main lobe of 8.
const TURN: f64 = 30.0;

/// A run over a line of masts, all but the seed.
#[derive(Clone, Debug)]
pub struct Masts {
    /// What carries the traffic.
    pub scheme: Scheme,
    /// From each mast to the next.
    pub hops: Vec<Hop>,
    /// From where to where.
    pub way: Way,
    /// What is sent.
    pub load: Load,
    /// Whether it is sent back as well.
    pub both: bool,
    /// Whether a Snoop agent stands before each radio of a host.
    pub snoop: bool,
    /// The hosts' TCP.
    pub tcp: Stack,
    /// What is unlike the usual card, where cards contend: given a radio's number and its configuration.
    pub odd: fn(usize, &mut dot11::Config),
    /// Gain of each dish.
    pub gain: Db,
    /// The radios' physics.
    pub profile: Profile,
    /// Where the masts stand, if not in a zigzag.
    pub sites: Option<Vec<Position>>,
    /// Somebody else's transmitter.
    pub jammer: Option<Jammer>,
    /// What goes wrong.
    pub mishaps: Mishaps,
    /// For how long it is counted.
    pub time: Duration,
}

/// A link from one mast to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// Its length.
    pub km: f64,
    /// How it loses frames, in either direction, besides what the radios do.
    pub law: Option<LossLaw>,
    /// Its channel.
    pub channel: Channel,
}

/// From where to where packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the first mast to the last, handed on by those between.
    Through,
    /// Over each link from its end that is nearer to the middle.
    Outward,
}

impl Hop {
    /// On channel 1, with this share of frames lost, each for itself.
    pub fn new(km: f64, loss: f64) -> Hop {
        let steps = LinkTrace::Steps(vec![(AirTime::ZERO, 1.0 - loss)]);
        Hop {
            km,
            law: (loss > 0.0).then_some(LossLaw::Trace(steps)),
            channel: Channel(1),
        }
    }
}

impl Masts {
    /// Losses of an emulated link are those of its law alone: at 200 km a usual dish's budget would add its own.
    pub const EMULATED: Db = Db(30.0);

    /// Masts with the paper's dishes (24 dBi, 8 degrees), traffic from the first to the last.
    pub fn line(scheme: Scheme, hops: Vec<Hop>, load: Load, time: Duration) -> Masts {
        Masts {
            scheme,
            hops,
            way: Way::Through,
            load,
            both: false,
            snoop: false,
            tcp: Stack::USUAL,
            odd: |_, _| (),
            gain: Antenna::GRID_24DBI.gain,
            profile: Masts::profile(Profile::long_link()),
            sites: None,
            jammer: None,
            mishaps: Mishaps::default(),
            time,
        }
    }

    /// A profile's physics with receivers that capture; the dishes are the masts' own.
    pub fn profile(profile: Profile) -> Profile {
        Profile {
            capture: Some(CAPTURE),
            antennas: Db(0.0),
            ..profile
        }
    }

    /// Where each radio stands: radios 2 h and 2 h + 1 are the ends of hop h.
    pub fn places(&self) -> Vec<Position> {
        if let Some(sites) = &self.sites {
            let ends = sites.windows(2).flat_map(|pair| [pair[0], pair[1]]);
            return ends.collect();
        }
        let (mut x, mut y, mut places) = (0.0, 0.0, Vec::new());
        for (number, hop) in self.hops.iter().enumerate() {
            // A link of no length has no direction.
            let metres = (hop.km * 1e3).max(1.0);
            let degrees = match (self.hops.len(), number % 2) {
                (1, _) => 0.0,
                (_, 0) => TURN,
                _ => -TURN,
            };
            let radians = degrees * std::f64::consts::PI / 180.0;
            places.push(Position::new(x, y));
            x += metres * libm::cos(radians);
            y += metres * libm::sin(radians);
            places.push(Position::new(x, y));
        }
        places
    }

    /// How many radios there are: two for each hop.
    pub fn radios(&self) -> usize {
        2 * self.hops.len()
    }

    /// The other end of what a radio's host talks to; `None` for a radio that only hands on.
    pub(super) fn peer(&self, radio: usize) -> Option<usize> {
        let last = self.radios() - 1;
        match self.way {
            Way::Outward => Some(radio ^ 1),
            Way::Through if radio == 0 => Some(last),
            Way::Through if radio == last => Some(0),
            Way::Through => None,
        }
    }

    /// Whether a radio's host sends.
    pub(super) fn sends(&self, radio: usize) -> bool {
        let first = match self.way {
            Way::Through => radio == 0,
            // The nearer end to the middle: the right one of the left half, the left one of the right half.
            Way::Outward => (radio % 2 == 1) == (radio / 2 < self.hops.len() / 2),
        };
        (first || self.both) && self.peer(radio).is_some()
    }

    pub(super) fn source(&self, radio: usize) -> Source {
        match self.load {
            _ if !self.sends(radio) => Source::Silent,
            Load::Ping { beside: false, .. } => Source::Silent,
            Load::Steady(rate) => {
                let every = Duration::from_nanos((UDP_PAYLOAD as f64 * 8e9 / rate) as u64);
                // Not at once: a slot's beginning and a packet's must not fall together.
                Source::Steady(Instant::from_micros(1_237), every)
            }
            _ => Source::Full,
        }
    }

    pub(super) fn medium(&self, seed: Seed) -> Result<Medium, chappe_sim::Error> {
        let places = self.places();
        let dish = Antenna {
            gain: self.gain,
            ..Antenna::GRID_24DBI
        };
        let aimed = |radio: usize| dish.towards(places[radio], places[radio ^ 1]);
        let antennas = Antennas {
            of: (0..places.len()).map(aimed).collect(),
            mast: 0.0,
            isolation: MAST_ISOLATION,
        };
        Medium::directed(&places, &antennas, &self.profile, seed)
    }

    pub(super) fn losses(&self) -> Vec<LinkLoss> {
        let mut losses = self.mishaps.losses.clone();
        let changes: Vec<_> = losses.iter().map(|loss| (loss.from, loss.to)).collect();
        for (number, hop) in self.hops.iter().enumerate() {
            let (a, b) = (2 * number, 2 * number + 1);
            for (from, to) in [(a, b), (b, a)] {
                if changes.contains(&(from, to)) {
                    continue;
                }
                losses.extend(hop.law.iter().map(|law| LinkLoss {
                    from,
                    to,
                    law: law.clone(),
                    unheard: 0.0,
                }));
            }
        }
        losses
    }
}
