//! Masts with radios on them, in a line: one link, or several that disturb each other.
//!
//! Each radio is a node of the simulator; the two radios of a mast stand at one place, hear each other through what
//! their dishes leave ([`MAST_ISOLATION`]), share their slots if they have some, and hand packets to each other. The line
//! zigzags, so that no dish points past its peer at the next mast.

use std::cell::RefCell;
use std::rc::Rc;

use chappe_core::{Address, Channel, Db, Instant, OverMac, Seed};
use chappe_mac::dot11::{self, Dot11};
use chappe_sim::{
    AirTime, Antenna, Antennas, Capture, Fault, Jammer, LinkLoss, LinkTrace, Loss, LossLaw, Medium,
    Position, Profile, Recorder, Simulator, Window, World,
};
use chappe_tcplp::tcp::Local;
use chappe_wildnet::baseline::{Snoop, SnoopConfig};
use chappe_wildnet::{Link, Radio, Site};

use super::faults::Mishaps;
use super::hosts::{Lent, Mail, Stack, local, nudge, start, tcp_host};
use super::lives::Life;
use super::station::{Mounted, Slots, Station, Wire};
use super::stream::Tunnel;
use super::traffic::{Passage, Relay, Source, Traffic, UDP_PAYLOAD, Udp};
use super::trial::{Experiment, Form, Load, Measured, Scheme};
use crate::run::RunError;
use crate::statistics::{mean, quantile};
use chappe_core::Duration;

/// Before anything is counted: slots settle, TCP leaves slow start.
pub const WARM_UP: Duration = Duration::from_secs(2);
/// After a steady source's time: what is still under way arrives.
const WIND_DOWN: Duration = Duration::from_secs(1);
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
    fn peer(&self, radio: usize) -> Option<usize> {
        let last = self.radios() - 1;
        match self.way {
            Way::Outward => Some(radio ^ 1),
            Way::Through if radio == 0 => Some(last),
            Way::Through if radio == last => Some(0),
            Way::Through => None,
        }
    }

    /// Whether a radio's host sends.
    fn sends(&self, radio: usize) -> bool {
        let first = match self.way {
            Way::Through => radio == 0,
            // The nearer end to the middle: the right one of the left half, the left one of the right half.
            Way::Outward => (radio % 2 == 1) == (radio / 2 < self.hops.len() / 2),
        };
        (first || self.both) && self.peer(radio).is_some()
    }

    fn source(&self, radio: usize) -> Source {
        match self.load {
            _ if !self.sends(radio) => Source::Silent,
            Load::Steady(rate) => {
                let every = Duration::from_nanos((UDP_PAYLOAD as f64 * 8e9 / rate) as u64);
                // Not at once: a slot's beginning and a packet's must not fall together.
                Source::Steady(Instant::from_micros(1_237), every)
            }
            _ => Source::Full,
        }
    }

    fn medium(&self, seed: Seed) -> Result<Medium, chappe_sim::Error> {
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

    fn losses(&self) -> Vec<LinkLoss> {
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

/// What the hosts of a run are lent for as long as it lasts.
pub struct Ground {
    memory: Vec<Lent>,
    locals: Vec<Local>,
}

impl Ground {
    /// For one run.
    pub fn of(masts: &Masts) -> Ground {
        Ground {
            memory: (0..masts.radios())
                .map(|_| Lent::new(masts.tcp.window))
                .collect(),
            locals: (1..=masts.radios() as u16)
                .map(|number| local(number, masts.tcp))
                .collect(),
        }
    }
}

impl Experiment for Masts {
    fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let errors = Errors {
            from: 0,
            to: 1,
            ..Errors::default()
        };
        let mut ground = Ground::of(self);
        let endless = |radio| Mail {
            to_send: if self.sends(radio) { u64::MAX } else { 0 },
            ..Mail::default()
        };
        let mut run = self.launch(&mut ground, seed, endless, errors)?;
        let begin = AirTime::from_nanos(WARM_UP.nanos());
        run.until(begin);
        let before = run.received();
        run.idle = 0.0;
        let recorder = run.simulator.recorder_mut();
        (recorder.hidden, recorder.destroyed) = (0, 0);
        run.until(begin + self.time);
        let octets = run.received() - before;
        if let Load::Steady(_) = self.load {
            run.until(begin + self.time + WIND_DOWN);
        }
        Ok(self.read(&mut run, octets))
    }
}

impl Masts {
    /// Puts all radios on the air, hosts with what `mail` gives for their radio, and opens their connections.
    pub fn launch<'a, R: Recorder>(
        &self,
        ground: &'a mut Ground,
        seed: Seed,
        mail: impl Fn(usize) -> Mail,
        recorder: R,
    ) -> Result<Run<'a, R>, RunError> {
        let locals: &'a [Local] = &ground.locals;
        let passages: Vec<Relay> = self.passages();
        let nodes = self.nodes(&mut ground.memory, locals, (&passages, mail), seed);
        let defect = |error: chappe_sim::Error| RunError::Defect(error.to_string());
        let mut world = World::new(self.medium(seed).map_err(defect)?);
        world.link_losses = self.losses();
        let jammers = self.jammer.iter().cloned();
        world.faults = jammers
            .map(|jammer| (AirTime::ZERO, Fault::Jammer(jammer)))
            .chain(self.mishaps.strikes.iter().cloned())
            .collect();
        let mut simulator = Simulator::new(world, nodes, seed, recorder).map_err(defect)?;
        for radio in 0..self.radios() {
            let peer = self.peer(radio).filter(|_| self.sends(radio));
            let peer = peer.map(|peer| &locals[peer]);
            simulator.with_node(radio, |node, now| start(&mut node.station, now, peer));
        }
        Ok(Run {
            simulator,
            passages,
            turn: (0, Instant::ZERO),
            idle: 0.0,
            masts: self.clone(),
            seed,
            restarted: Vec::new(),
            ended: Vec::new(),
        })
    }

    /// What lies between the radios of each mast, from each radio's side; those of ends lead nowhere.
    fn passages(&self) -> Vec<Relay> {
        let mut all = vec![Relay::default(); self.radios()];
        for left in (1..self.radios() - 1).step_by(2) {
            let passage = || Rc::new(RefCell::new(Passage::default()));
            let (there, back) = (passage(), passage());
            all[left] = Relay {
                take: back.clone(),
                give: there.clone(),
            };
            all[left + 1] = Relay {
                take: there,
                give: back,
            };
        }
        all
    }

    fn nodes<'a>(
        &self,
        memory: &'a mut [Lent],
        locals: &'a [Local],
        (passages, mail): (&[Relay], impl Fn(usize) -> Mail),
        seed: Seed,
    ) -> Vec<Box<Mounted<'a>>> {
        let life = Life { number: 0, seed };
        let masts = 0..=self.hops.len();
        let sites: Vec<Option<Site>> = masts.map(|mast| self.site(mast, &life)).collect();
        let mut nodes = Vec::new();
        for (radio, (memory, local)) in memory.iter_mut().zip(locals).enumerate() {
            let traffic = self.traffic(radio, (memory, local), mail(radio), &passages[radio]);
            let site = sites[radio.div_ceil(2)].as_ref();
            nodes.push(Box::new(self.mounted(radio, site, &life, traffic)));
        }
        nodes
    }

    /// What the radios of a mast share, if they have slots.
    pub(super) fn site(&self, mast: usize, life: &Life) -> Option<Site> {
        let (slots, _) = self.scheme.slot_configs()?;
        let ends = mast == 0 || mast == self.hops.len();
        let first = 2 * mast - usize::from(mast > 0);
        Some(Site::new(
            slots,
            if ends { 1 } else { 2 },
            life.random(first),
        ))
    }

    pub(super) fn mounted<'a>(
        &self,
        radio: usize,
        site: Option<&Site>,
        life: &Life,
        traffic: Traffic<'a>,
    ) -> Mounted<'a> {
        let addresses = [radio, radio ^ 1].map(|radio| Address::node(radio as u16 + 1));
        let station = match site {
            Some(site) => {
                let place = usize::from(radio > 0 && radio.is_multiple_of(2));
                let random = life.random(radio + self.radios());
                let epoch = (radio as u8).wrapping_add(life.number);
                self.slots(epoch, (site.clone(), place), addresses, random, traffic)
            }
            None => self.plain((radio, addresses), life.random(radio), traffic),
        };
        Mounted::new(station, self.hops[radio / 2].channel)
    }

    fn traffic<'a>(
        &self,
        radio: usize,
        (memory, local): (&'a mut Lent, &'a Local),
        mail: Mail,
        passage: &Relay,
    ) -> Traffic<'a> {
        if self.peer(radio).is_none() {
            return Traffic::Relay(passage.clone());
        }
        match self.load {
            Load::Tcp if self.snoop => {
                let agent = Snoop::new(SnoopConfig::default());
                Traffic::Snooped(Box::new(agent), tcp_host(memory, local, mail))
            }
            Load::Tcp => Traffic::Tcp(tcp_host(memory, local, mail)),
            Load::Kcp(config) => Traffic::Kcp(Box::new(Tunnel::new(config, self.sends(radio)))),
            _ => {
                let since = Instant::ZERO + WARM_UP;
                Traffic::Udp(Udp::new(self.source(radio), since, since + self.time))
            }
        }
    }

    fn slots<'a>(
        &self,
        epoch: u8,
        (site, place): (Site, usize),
        [me, peer]: [Address; 2],
        random: chappe_core::Stream,
        traffic: Traffic<'a>,
    ) -> Station<'a> {
        let config = self.scheme.slot_configs().map(|(_, config)| config);
        let link = config.map(|config| Link::new(config, epoch));
        let Some(Ok(link)) = link else {
            unreachable!("the lab's own configurations are sound")
        };
        let radio = Radio::new(link, site, place, (me, peer), random);
        let by_size = matches!(
            self.scheme,
            Scheme::Slots {
                form: Form::Demand,
                ..
            }
        );
        Station::Slots(Box::new(Slots::new(radio, traffic, by_size)))
    }

    fn plain<'a>(
        &self,
        (radio, [me, peer]): (usize, [Address; 2]),
        random: chappe_core::Stream,
        traffic: Traffic<'a>,
    ) -> Station<'a> {
        let longest = self.hops.iter().map(|hop| hop.km).fold(0.0, f64::max);
        let Some(mut config) = self.scheme.dcf(longest) else {
            unreachable!("a scheme has slots, or contends")
        };
        (self.odd)(radio, &mut config);
        let Scheme::Csma { retries, .. } = self.scheme else {
            unreachable!("it contends")
        };
        let mac = Dot11::new(config, me, random);
        let to = retries.map_or(Address::BROADCAST, |_| peer);
        Station::Plain(Box::new(OverMac::new(mac, Wire::new(traffic, to))))
    }

    fn read(&self, run: &mut Run<'_, Errors>, octets: f64) -> Measured {
        let mut measured = Measured {
            bps: octets * 8.0 / self.time.as_secs_f64(),
            idle: run.idle,
            hidden: run.simulator.recorder_mut().hidden,
            destroyed: run.simulator.recorder_mut().destroyed,
            ..Measured::default()
        };
        let deadline = match self.scheme {
            Scheme::Slots { service, .. } => service.deadline,
            Scheme::Csma { .. } => None,
        };
        let deadline = deadline.map_or(f64::INFINITY, |deadline| deadline.as_secs_f64());
        let (mut offered, mut came, mut in_time) = (0, 0, 0);
        let (mut taken, mut received) = (0, 0);
        for radio in 0..self.radios() {
            let Traffic::Udp(udp) = run.simulator.node(radio).station.traffic() else {
                continue;
            };
            offered += udp.offered;
            received += udp.received;
            if let Station::Plain(plain) = &run.simulator.node(radio).station {
                taken += plain.link.sent;
            }
            came += udp.delays.len();
            in_time += udp
                .delays
                .iter()
                .filter(|delay| **delay <= deadline)
                .count();
            if udp.delays.len() > 1 {
                measured.delay = mean(&udp.delays);
                measured.p99 = quantile(&udp.delays, 0.99).unwrap_or(0.0);
                let steps = udp.delays.windows(2).map(|pair| (pair[1] - pair[0]).abs());
                measured.jitter = steps.sum::<f64>() / (udp.delays.len() - 1) as f64;
            }
        }
        measured.undelivered = (1.0 - received as f64 / taken.max(1) as f64).max(0.0);
        let missing = |came: usize| (1.0 - came as f64 / offered.max(1) as f64).max(0.0);
        (measured.residual, measured.late) = (missing(came), missing(in_time));
        if let Station::Slots(slots) = &run.simulator.node(0).station {
            let counters = slots.radio.link.counters();
            measured.overhead = counters.overhead();
            let settled = counters.delivered + counters.given_up;
            measured.given_up = counters.given_up as f64 / settled.max(1) as f64;
        }
        measured
    }
}

/// A run on its way.
pub struct Run<'a, R: Recorder> {
    /// The radios and the air.
    pub simulator: Simulator<Mounted<'a>, R>,
    pub(super) passages: Vec<Relay>,
    /// The latest slot of the first mast: its number and when it ends.
    turn: (u64, Instant),
    /// The longest time from one end of its slots to the next begin, less the length of a slot, s.
    idle: f64,
    pub(super) masts: Masts,
    pub(super) seed: Seed,
    /// The masts that have started again, one after the other.
    pub restarted: Vec<usize>,
    /// Stations that ended with their masts, for what they had counted.
    pub ended: Vec<Station<'a>>,
}

impl<R: Recorder> Run<'_, R> {
    /// Goes on to `end`; masts start again when it is time.
    pub fn until(&mut self, end: AirTime) {
        while let Some(&(at, mast)) = self.masts.mishaps.restarts.get(self.restarted.len())
            && at <= end
        {
            self.go_on(at);
            self.restart(mast);
        }
        self.go_on(end);
    }

    /// Goes on to `end`; at each event packets are handed on within masts.
    fn go_on(&mut self, end: AirTime) {
        if self.passages.len() == 2 {
            return self.simulator.run_until(end);
        }
        while self.simulator.next_at() <= end {
            let at = self.simulator.next_at();
            self.simulator.run_until(at);
            for (radio, relay) in self.passages.iter().enumerate() {
                if relay.take.borrow_mut().take_fresh() {
                    let wake = |node: &mut Mounted<'_>, now| nudge(&mut node.station, now);
                    self.simulator.with_node(radio, wake);
                }
            }
            self.watch_turns();
        }
        self.simulator.run_until(end);
    }

    fn watch_turns(&mut self) {
        let Station::Slots(slots) = &self.simulator.node(0).station else {
            return;
        };
        let turn = slots.radio.turn();
        if turn.index == self.turn.0 {
            return;
        }
        if self.turn.0 > 0 {
            let gap = turn.start.saturating_since(self.turn.1).as_secs_f64();
            self.idle = self.idle.max(gap - turn.length.as_secs_f64());
        }
        self.turn = (turn.index, turn.start + turn.length);
    }

    /// Octets of payload that all ends have received so far.
    fn received(&self) -> f64 {
        let of = |node: &Mounted<'_>| match node.station.traffic() {
            Traffic::Udp(udp) => udp.received as f64 * UDP_PAYLOAD as f64,
            Traffic::Kcp(tunnel) => tunnel.flow.received as f64,
            traffic => traffic
                .host()
                .map_or(0.0, |host| host.app().received as f64),
        };
        self.simulator.nodes().map(of).sum()
    }
}

/// How one link's frames were lost to an interferer.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    from: usize,
    to: usize,
    hidden: u64,
    destroyed: u64,
}

impl Recorder for Errors {
    const NODES: bool = false;

    fn heard(&mut self, frame: &chappe_sim::Heard<'_>) {
        if (frame.from, frame.node) != (self.from, self.to) {
            return;
        }
        match frame.outcome {
            Err(Loss::PreambleMissed) => self.hidden += 1,
            // Known when its first bit came: there was nothing to lock on to. Otherwise its check sequence failed.
            Err(Loss::Collision) if frame.at == frame.started => self.hidden += 1,
            Err(Loss::Collision | Loss::Captured) => self.destroyed += 1,
            _ => {}
        }
    }
}
