//! Channel access of the mesh's nodes: the DCF, EDCA or ZMAC+, selected at run time.

use chappe_core::{
    Address, Caps, Duration, Instant, LinkNode, Mac, Mode, Purpose, RadioEvent, RadioRequest, Seed,
    Stream, TraceEvent, Wake,
};
use chappe_mac::dot11::{self, Category, Counters, Dot11, Edca, NoClaims, ZmacPlus};
use chappe_mac::zmac::{self, Schedule, colour};
use chappe_sim::Medium;

/// Two nodes are neighbours if the link between them delivers at least this share of frames in each direction. This is
/// the router's own limit ([`Probes::ratio_min`](chappe_dpclo::Probes)).
pub const NEIGHBOUR_PRR: f64 = 0.1;

/// The most frames in an A-MPDU: DPCLO's queues hold 50, and its routers have 32 packets at the link at once.
pub const AMPDU: usize = 16;

/// A method of channel access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// 802.11's distributed coordination function, without priorities.
    Dcf,
    /// 802.11e's enhanced distributed channel access, with four categories.
    Edca,
    /// Bursts that announce priorities, and time slots among nodes of equal priority.
    ZmacPlus,
}

/// A method with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// The method of channel access.
    pub method: Method,
    /// Frames, rates, slot time, SIFS, retry limits and RTS; the contention windows of the DCF.
    pub station: dot11::Config,
    /// The duration of a burst (ZMAC+).
    pub burst: Duration,
    /// The duration of a time slot (ZMAC+).
    pub time_slot: Duration,
    /// Whether stations send A-MPDUs of up to [`AMPDU`] frames (802.11n by DCF).
    pub aggregate: bool,
    /// Whether stations notify and claim as the improved variant wants it ([`zmac::Config::sparing`], ZMAC+).
    pub sparing: bool,
}

impl Method {
    /// All methods of channel access.
    pub const ALL: [Method; 3] = [Method::Dcf, Method::Edca, Method::ZmacPlus];

    /// Its name in tables and figures.
    pub const fn label(self) -> &'static str {
        match self {
            Method::Dcf => "DCF",
            Method::Edca => "802.11e",
            Method::ZmacPlus => "ZMAC+",
        }
    }
}

impl Access {
    /// A method with the standard's parameters. `mode` is the mode of data frames.
    pub fn new(method: Method, mode: Mode) -> Access {
        let station = dot11::Config {
            data: mode,
            ..dot11::Config::of_rate(mode.rate)
        };
        Access::on(method, station)
    }

    /// A method on a station with these parameters. Stations overhear: DPCLO reads its neighbours' queue lengths from
    /// frames to other nodes.
    pub fn on(method: Method, station: dot11::Config) -> Access {
        let usual = zmac::Config::of_rate(station.data.rate);
        Access {
            method,
            station: dot11::Config {
                overhear: true,
                ..station
            },
            burst: usual.beacon,
            time_slot: usual.slot,
            aggregate: false,
            sparing: false,
        }
    }

    /// The same with notifications that reserve time slots for the station that suffers alone, and with cheaper claims (ZMAC+).
    pub fn sparing(mut self) -> Access {
        self.sparing = true;
        self
    }

    /// The same with RTS and CTS before every data frame, which is ns-2's default.
    pub fn with_rts(mut self) -> Access {
        self.station.rts_threshold = 0;
        self
    }

    fn zmac(&self) -> zmac::Config {
        let usual = zmac::Config::of_rate(self.station.data.rate);
        let own = zmac::Config {
            station: self.station,
            beacon: self.burst,
            wait: self.station.sifs,
            slot: self.time_slot,
            ..usual
        };
        match self.sparing {
            true => own.sparing(),
            false => own,
        }
    }

    /// Creates the station of each node of a medium.
    pub fn stations(&self, medium: &Medium, octets: usize, seed: Seed) -> Vec<Channel> {
        let slots = match self.method {
            Method::ZmacPlus => schedules(medium, (self.station.data, octets), seed),
            Method::Dcf | Method::Edca => Vec::new(),
        };
        let schedule = |node: usize| slots.get(node).copied().unwrap_or(Schedule::new(None));
        let nodes = 0..medium.nodes();
        nodes
            .map(|node| {
                let random = seed.stream(Purpose::Node(node as u32));
                self.station(node, schedule(node), random)
            })
            .collect()
    }

    fn station(&self, node: usize, schedule: Schedule, random: Stream) -> Channel {
        let address = Address::node(node as u16);
        match self.method {
            Method::Dcf if self.aggregate => {
                let station = Dot11::aggregating(self.station, address, random);
                Channel::Aggregating(Box::new(station))
            }
            Method::Dcf => Channel::Dcf(Box::new(Dot11::new(self.station, address, random))),
            Method::Edca => {
                let station = Edca::edca(
                    self.station,
                    Category::of_rate(self.station.data.rate),
                    address,
                    random,
                );
                Channel::Edca(Box::new(station))
            }
            Method::ZmacPlus => {
                let station = Dot11::zmac_plus(self.zmac(), schedule, address, random);
                Channel::ZmacPlus(Box::new(station))
            }
        }
    }

    /// What a router on one of the stations can rely on.
    pub fn caps(&self) -> Caps {
        Caps {
            hastens: self.method == Method::Edca
                && Category::hastens(&Category::of_rate(self.station.data.rate)),
            ..self.station.caps()
        }
    }

    /// The longest frame on the air, in octets without check sequence.
    pub fn frame_max(&self) -> usize {
        dot11::Config::ampdu_len(if self.aggregate { AMPDU } else { 1 })
    }

    /// The duration of a data frame of `octets` (check sequence included), SIFS and acknowledgement: a lower bound for
    /// every method of access.
    pub fn exchange(&self, octets: usize) -> Duration {
        let station = &self.station;
        station.data.airtime(octets) + station.control.airtime(ACK) + station.sifs * 2
    }

    /// The mean duration of an exchange on an unshared link, with the waiting time of the method of access.
    pub fn mean_exchange(&self, octets: usize) -> Duration {
        let station = &self.station;
        let announced = match octets >= station.rts_threshold {
            true => station.control.airtime(RTS) + station.control.airtime(ACK) + station.sifs * 2,
            false => Duration::ZERO,
        };
        let waits = match self.method {
            // DIFS and the mean of the first window. An urgent frame's AIFS equals DIFS, and its window is half as long.
            Method::Dcf => self.first_wait(),
            Method::Edca => station.slot * 2 + mean_of(station.cw_min / 2, station.slot),
            // The slot's owner at the highest priority: the burst, and the mean of its window. The paper's, so that variants have one bound.
            Method::ZmacPlus => {
                let usual = zmac::Config::of_rate(station.data.rate);
                self.burst + mean_of(usual.owner_window - 1, station.slot)
            }
        };
        self.exchange(octets) + announced + waits
    }

    /// What an exchange by DCF takes on average beside the octets of its packet, and what one octet takes.
    pub fn airtimes(&self) -> (Duration, Duration) {
        let station = &self.station;
        let octets = |count: u64| station.data.rate.bitrate().time_of(8 * count);
        let header = station.data.header_time() + octets(HEADERS);
        let around = header + station.control.airtime(ACK) + station.sifs * 2;
        (around + self.first_wait(), octets(1))
    }

    /// DIFS without its SIFS, and the mean of the first window.
    fn first_wait(&self) -> Duration {
        let station = &self.station;
        station.slot * 2 + mean_of(station.cw_min, station.slot)
    }
}

/// Octets of a data frame around its packet: 24 of MAC header, 8 of LLC/SNAP, 4 of check sequence.
const HEADERS: u64 = 24 + 8 + 4;

/// Octets of ACK and CTS, and of RTS (IEEE 802.11-2020, 9.3.1).
const ACK: usize = 14;
const RTS: usize = 20;

/// The mean duration of a back-off of 0 to `window` slots.
fn mean_of(window: u16, slot: Duration) -> Duration {
    slot * u64::from(window) / 2
}

/// Which nodes are neighbours: row a, column b.
pub fn neighbours(medium: &Medium, (mode, octets): (Mode, usize)) -> Vec<Vec<bool>> {
    let nodes = medium.nodes();
    let mut hears = vec![vec![false; nodes]; nodes];
    for (from, row) in hears.iter_mut().enumerate() {
        for to in medium.hearers(from) {
            row[to] = medium.prr(from, to, mode, octets) >= NEIGHBOUR_PRR;
        }
    }
    let both = |a: usize, b: usize| hears[a][b] && hears[b][a];
    (0..nodes)
        .map(|a| (0..nodes).map(|b| both(a, b)).collect())
        .collect()
}

/// Time slots for ZMAC+: a colouring of the network in random order. The distributed protocol ([`zmac::Drand`]) arrives at
/// the same kind of colouring by messages.
fn schedules(medium: &Medium, ask: (Mode, usize), seed: Seed) -> Vec<Schedule> {
    let near = neighbours(medium, ask);
    let adjacent = |a: usize, b: usize| near[a][b];
    let mut order: Vec<usize> = (0..near.len()).collect();
    seed.stream(Purpose::Topology).shuffle(&mut order);
    let mut slots = vec![0; near.len()];
    colour(&order, &mut slots, adjacent);
    (0..near.len())
        .map(|node| Schedule::of(node, &slots, adjacent))
        .collect()
}

/// A station with any method of channel access.
#[derive(Clone, Debug)]
pub enum Channel {
    /// A station of the DCF.
    Dcf(Box<Dot11>),
    /// A station of the DCF that sends A-MPDUs.
    Aggregating(Box<Dot11<1, NoClaims, AMPDU>>),
    /// A station of EDCA.
    Edca(Box<Edca>),
    /// A station of ZMAC+.
    ZmacPlus(Box<ZmacPlus>),
}

impl Channel {
    /// The station's counters of frames, retries and failures.
    pub fn counters(&self) -> &Counters {
        match self {
            Channel::Dcf(mac) => mac.counters(),
            Channel::Aggregating(mac) => mac.counters(),
            Channel::Edca(mac) => mac.counters(),
            Channel::ZmacPlus(mac) => mac.counters(),
        }
    }
}

impl Mac for Channel {
    fn handle_radio<L: LinkNode>(&mut self, now: Instant, event: RadioEvent<'_>, link: &mut L) {
        match self {
            Channel::Dcf(mac) => mac.handle_radio(now, event, link),
            Channel::Aggregating(mac) => mac.handle_radio(now, event, link),
            Channel::Edca(mac) => mac.handle_radio(now, event, link),
            Channel::ZmacPlus(mac) => mac.handle_radio(now, event, link),
        }
    }

    fn poll_radio<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<RadioRequest> {
        match self {
            Channel::Dcf(mac) => mac.poll_radio(now, psdu, link),
            Channel::Aggregating(mac) => mac.poll_radio(now, psdu, link),
            Channel::Edca(mac) => mac.poll_radio(now, psdu, link),
            Channel::ZmacPlus(mac) => mac.poll_radio(now, psdu, link),
        }
    }

    fn handle_timeout<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        match self {
            Channel::Dcf(mac) => mac.handle_timeout(now, link),
            Channel::Aggregating(mac) => mac.handle_timeout(now, link),
            Channel::Edca(mac) => mac.handle_timeout(now, link),
            Channel::ZmacPlus(mac) => mac.handle_timeout(now, link),
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        match self {
            Channel::Dcf(mac) => mac.poll_timeout(),
            Channel::Aggregating(mac) => mac.poll_timeout(),
            Channel::Edca(mac) => mac.poll_timeout(),
            Channel::ZmacPlus(mac) => mac.poll_timeout(),
        }
    }

    fn link_changed<L: LinkNode>(&mut self, now: Instant, link: &L) {
        match self {
            Channel::Dcf(mac) => mac.link_changed(now, link),
            Channel::Aggregating(mac) => mac.link_changed(now, link),
            Channel::Edca(mac) => mac.link_changed(now, link),
            Channel::ZmacPlus(mac) => mac.link_changed(now, link),
        }
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        match self {
            Channel::Dcf(mac) => mac.poll_trace(),
            Channel::Aggregating(mac) => mac.poll_trace(),
            Channel::Edca(mac) => mac.poll_trace(),
            Channel::ZmacPlus(mac) => mac.poll_trace(),
        }
    }
}
