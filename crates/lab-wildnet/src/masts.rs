//! Masts with radios: one link, or several that interfere with each other.
//!
//! Each radio is a node of the simulator. The radios of a mast stand at one place and hear each other through the isolation of
//! their dishes ([`MAST_ISOLATION`]). They share their slots, if they have slots, and hand packets to each other. A line of masts
//! zigzags, so that no dish points past its peer at the next mast. This module describes masts; `mounting` builds their stations, and
//! `running_masts` simulates them.

use chappe_core::{Channel, Db, Duration, Instant, Seed};
use chappe_mac::dot11;
use chappe_sim::{
    AirTime, Antenna, Antennas, Capture, Jammer, LinkLoss, LinkTrace, LossLaw, Medium, Position,
    Profile, Window,
};

use crate::faults::MastFaults;
use crate::hosts::Stack;
use crate::layout::Layout;
use crate::rate_control::RateControl;
use crate::scheme::{Load, Scheme};
use crate::udp::{Source, UDP_PAYLOAD};

/// Isolation between two parallel dishes of one mast: the middle of 40 to 80 dB (the simulator's `Antennas`).
pub const MAST_ISOLATION: Db = Db(60.0);
/// Cards of the paper's make abandon a frame for a stronger one at any time (Lee and others, "An experimental study on the
/// capture effect in 802.11a networks", WiNTECH 2007, measured on Atheros). Without it the two radios of a mast could not
/// receive at the same time, as the paper's could (2.2). The margin is GloMoSim's.
const CAPTURE: Capture = Capture {
    margin: Db(10.0),
    window: Window::Frame,
};
/// Half the angle by which the line turns at a mast, in degrees: far outside of a dish's main lobe of 8.
const TURN: f64 = 30.0;

/// A trial over masts and the links between them.
#[derive(Clone, Debug)]
pub struct Masts {
    /// Channel access and recovery of all links.
    pub scheme: Scheme,
    /// Which masts are linked: link `h` has the properties of `hops[h]`.
    pub layout: Layout,
    /// The links, in a line those from each mast to the next.
    pub hops: Vec<Hop>,
    /// The ends of the traffic.
    pub path: Path,
    /// The kind of traffic.
    pub load: Load,
    /// Whether both ends send.
    pub both: bool,
    /// Whether a Snoop agent stands between each host and its radio.
    pub snoop: bool,
    /// Settings of the hosts' TCP.
    pub tcp: Stack,
    /// Changes the configuration of a radio's DCF, given the number of the radio.
    pub adjust_card: fn(usize, &mut dot11::Config),
    /// How cards under the DCF choose the rate of a packet.
    pub rate_control: RateControl,
    /// Gain of each dish in its main lobe.
    pub gain: Db,
    /// Physical properties of radios and medium.
    pub profile: Profile,
    /// Positions of the masts, if not in a line that is a zigzag.
    pub sites: Option<Vec<Position>>,
    /// The seed of what stands between the masts, if it is not the run's: a scenario's network may have one of its own.
    pub terrain: Option<Seed>,
    /// A foreign transmitter, if there is one.
    pub jammer: Option<Jammer>,
    /// Crashes, restarts and changes of loss.
    pub faults: MastFaults,
    /// How long the run is measured, after the warm-up.
    pub time: Duration,
}

/// A link from one mast to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// Length of the link in km.
    pub km: f64,
    /// Loss of frames in either direction, in addition to losses of the radios.
    pub law: Option<LossLaw>,
    /// The channel of both its radios.
    pub channel: Channel,
}

/// The ends of the traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// Of a line, from the first mast to the last, forwarded by those between.
    EndToEnd,
    /// Over each link of a line, away from the middle.
    Outward,
    /// Between pairs of masts, on the shortest way.
    Pairs(Vec<Pair>),
}

/// Two masts whose hosts communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The masts where the two hosts stand.
    pub masts: [usize; 2],
    /// Whether the host of the first sends, and that of the second.
    pub sends: [bool; 2],
}

/// A host at a mast, behind the radio on which its traffic leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The radio on which its packets leave.
    pub radio: usize,
    /// The place of the other host among [`Masts::seats`].
    pub peer: usize,
    /// Whether it has data to send.
    pub sends: bool,
}

impl Hop {
    /// A link on channel 1 that loses the share `loss` of frames independently.
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
    /// Dish gain of an emulated link, which loses only what its law says. The budget of a usual dish would add losses at 200 km.
    pub const EMULATED: Db = Db(30.0);

    /// Masts with the paper's dishes (24 dBi, 8 degrees), and traffic from the first to the last.
    pub fn line(scheme: Scheme, hops: Vec<Hop>, load: Load, time: Duration) -> Masts {
        Masts {
            scheme,
            layout: Layout::line(hops.len()),
            hops,
            path: Path::EndToEnd,
            load,
            both: false,
            snoop: false,
            tcp: Stack::USUAL,
            adjust_card: |_, _| (),
            rate_control: RateControl::Fixed,
            gain: Antenna::GRID_24DBI.gain,
            profile: Masts::profile(Profile::long_link()),
            sites: None,
            terrain: None,
            jammer: None,
            faults: MastFaults::default(),
            time,
        }
    }

    /// A profile with receivers that capture, and without antenna gain: dishes add theirs by direction.
    pub fn profile(profile: Profile) -> Profile {
        Profile {
            capture: Some(CAPTURE),
            antennas: Db(0.0),
            ..profile
        }
    }

    /// The position of each radio: radios 2 h and 2 h + 1 are the ends of hop h.
    pub fn places(&self) -> Vec<Position> {
        if let Some(sites) = &self.sites {
            let links = self.layout.links().iter();
            return links.flat_map(|&(a, b)| [sites[a], sites[b]]).collect();
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

    /// The number of radios: two for each link.
    pub fn radios(&self) -> usize {
        self.layout.radios()
    }

    /// All hosts. Those of a pair stand next to each other, in its order.
    pub fn seats(&self) -> Vec<Seat> {
        let last = self.radios() - 1;
        let mut seats = Vec::new();
        let mut sit = |ends: [(usize, bool); 2]| {
            let first = seats.len();
            for (place, (radio, sends)) in ends.into_iter().enumerate() {
                let peer = first + (place ^ 1);
                seats.push(Seat { radio, peer, sends });
            }
        };
        match &self.path {
            Path::EndToEnd => sit([(0, true), (last, self.both)]),
            Path::Outward => {
                // The end nearer to the middle: the right one in the left half of the line, the left one in the right half.
                let first = |radio: usize| (radio % 2 == 1) == (radio / 2 < self.hops.len() / 2);
                let end = |radio: usize| (radio, first(radio) || self.both);
                (0..self.hops.len()).for_each(|hop| sit([end(2 * hop), end(2 * hop + 1)]));
            }
            Path::Pairs(pairs) => {
                for pair in pairs {
                    let way = self.layout.way(pair.masts[0], pair.masts[1]);
                    if let (Some(first), Some(last)) = (way.first(), way.last()) {
                        sit([(*first, pair.sends[0]), (last ^ 1, pair.sends[1])]);
                    }
                }
            }
        }
        seats
    }

    /// The numbers of the hosts' addresses: the first at a radio has that of the radio, further ones lie beyond those of all radios.
    pub fn numbers(&self) -> Vec<u16> {
        let seats = self.seats();
        let number = |place: usize| {
            let radio = seats[place].radio;
            let before = seats[..place].iter().filter(|seat| seat.radio == radio);
            (before.count() * self.radios() + radio + 1) as u16
        };
        (0..seats.len()).map(number).collect()
    }

    /// When a host offers datagrams.
    pub(super) fn source(&self, seat: &Seat) -> Source {
        match self.load {
            _ if !seat.sends => Source::Silent,
            Load::Ping { beside: false, .. } => Source::Silent,
            Load::Steady(rate) => {
                let every = Duration::from_nanos((UDP_PAYLOAD as f64 * 8e9 / rate) as u64);
                // Not at zero, so that no packet coincides with the start of a slot.
                Source::Steady(Instant::from_micros(1_237), every)
            }
            _ => Source::Full,
        }
    }

    /// The medium with dishes aimed at their peers. Between two masts it has the shadowing that a scenario's network shows.
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
            sites: (0..places.len())
                .map(|radio| self.layout.mast_of(radio) as u32)
                .collect(),
        };
        let terrain = self.terrain.unwrap_or(seed);
        Medium::directed(&places, &antennas, &self.profile, terrain)
    }

    /// Two radios of one mast whose dishes look almost the same way: at the far end of each the other's frames are not weak enough for a
    /// receiver to keep them apart when both send at once.
    pub(super) fn alike(&self) -> Option<(usize, usize)> {
        let places = self.places();
        let weaker = |radio: usize, other: usize| {
            let dish = Antenna::GRID_24DBI.towards(places[radio], places[radio ^ 1]);
            dish.gain.0 - dish.gain_towards(places[radio], places[other ^ 1]).0
        };
        let pairs = (0..self.radios()).flat_map(|one| (0..one).map(move |other| (other, one)));
        pairs
            .filter(|&(one, other)| self.layout.mast_of(one) == self.layout.mast_of(other))
            .find(|&(one, other)| weaker(one, other) < CAPTURE.margin.0)
    }

    /// Loss of all directions: those that a fault changes, then the hops' own.
    pub(super) fn losses(&self) -> Vec<LinkLoss> {
        let mut losses = self.faults.losses.clone();
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
