//! An exact, ideal channel for a few stations: enough to hold the DCF against analysis.
//!
//! Zero propagation; one range for reception, carrier sense and interference; any overlap at a receiver destroys
//! both frames (no capture); a station that sends hears nothing. Events at one instant are ordered: ends of
//! frames, then timeouts, then beginnings of frames, so that two stations whose slots coincide collide.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chappe_core::{
    Address, Class, Duration, Failure, Instant, Mac, Mode, OverMac, Purpose, RadioEvent, RadioNode,
    RadioRequest, Rate, Reception, Seed, Stream, Transmit,
};
use chappe_mac::dot11::{Claiming, Config, Counters, Dot11, PSDU_MAX};
use chappe_testkit::{Backlog, Saturated};

const FCS: usize = 4;

/// Which lost frames a radio reports as [`RadioEvent::Failed`], which is what EIFS follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Undecodable {
    /// Frames whose beginning was heard alone.
    Locked,
    /// Frames whose beginning was heard, alone or over others.
    Begun,
}

/// How the radios behave where the standard leaves it to them.
#[derive(Clone, Copy, Debug)]
pub struct Radios {
    pub undecodable: Undecodable,
    /// At the end of a frame, report the frame before the carrier.
    pub frame_first: bool,
}

impl Default for Radios {
    fn default() -> Radios {
        Radios {
            undecodable: Undecodable::Begun,
            frame_first: false,
        }
    }
}

/// A channel access method whose figures can be read.
pub trait Access: Mac {
    fn counters(&self) -> &Counters;
}

impl<const N: usize, C: Claiming> Access for Dot11<N, C> {
    fn counters(&self) -> &Counters {
        self.counters()
    }
}

/// Who hears whom, and who sends to whom.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// `edges`: pairs that hear each other; one-sided hearing is not modelled here.
    pub edges: Vec<(usize, usize)>,
    /// Sender and receiver of each saturated flow.
    pub flows: Vec<(usize, usize)>,
    /// The class of each flow; those that are missing are of class `Data`.
    pub classes: Vec<Class>,
}

impl Scene {
    fn stations(&self) -> usize {
        let all = self.edges.iter().chain(&self.flows);
        all.map(|&(a, b)| a.max(b) + 1).max().unwrap_or(0)
    }

    fn class(&self, flow: usize) -> Class {
        self.classes.get(flow).copied().unwrap_or(Class::Data)
    }

    /// What station `at` has to send.
    fn backlog(&self, at: usize) -> Vec<Backlog> {
        let own = self.flows.iter().enumerate().filter(|(_, f)| f.0 == at);
        let backlog = |(flow, &(_, to))| Backlog::new(Address::node(to as u16), self.class(flow));
        own.map(backlog).collect()
    }
}

/// What came out for one flow.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Acknowledged payload over the measured time, in kbit/s.
    pub kbps: f64,
    pub counters: Counters,
    /// Longest and mean runs of successes without one of another flow in between.
    pub run_longest: u64,
    pub run_mean: f64,
}

impl Flow {
    /// Share of attempts that failed.
    pub fn collisions(&self) -> f64 {
        let c = &self.counters;
        let lost = c.ack_timeouts + c.cts_timeouts;
        lost as f64 / (lost + c.acknowledged) as f64
    }
    /// Share of frames given up.
    pub fn dropped(&self) -> f64 {
        let c = &self.counters;
        c.failed as f64 / (c.failed + c.acknowledged) as f64
    }
}

/// Runs a scene under the DCF for `seconds` with SDUs of `len` octets.
pub fn run(
    scene: &Scene,
    config: Config,
    radios: Radios,
    len: usize,
    limits: (u64, u64),
) -> Vec<Flow> {
    let make = |_, address, random| Dot11::new(config, address, random);
    run_with(scene, make, radios, len, limits)
}

/// The same under any channel access method: `make` gives station `n` with its address and random numbers.
pub fn run_with<M: Access>(
    scene: &Scene,
    make: impl Fn(usize, Address, Stream) -> M,
    radios: Radios,
    len: usize,
    (seed, seconds): (u64, u64),
) -> Vec<Flow> {
    let mut air = Air::new(scene, make, radios, len, Seed(seed));
    let mut runs = Runs::new(scene.flows.len());
    let end = Instant::from_millis(seconds * 1000);
    while air.next() <= end {
        let winner = air.step();
        let Some(winner) = winner else { continue };
        for (flow, &(from, to)) in scene.flows.iter().enumerate() {
            if from == winner {
                let backlog = backlog(&air.nodes[from].link, to, scene.class(flow));
                runs.won(flow, backlog.acknowledged);
            }
        }
    }
    let flow = |(at, &(from, to)): (usize, &(usize, usize))| {
        let node = &air.nodes[from];
        let backlog = backlog(&node.link, to, scene.class(at));
        Flow {
            kbps: backlog.acknowledged as f64 * len as f64 * 8.0 / seconds as f64 / 1e3,
            counters: *node.mac.counters(),
            run_longest: runs.longest[at],
            run_mean: runs.total[at] as f64 / runs.count[at].max(1) as f64,
        }
    };
    scene.flows.iter().enumerate().map(flow).collect()
}

/// The flow of `class` from a station to node `to`.
fn backlog(station: &Saturated, to: usize, class: Class) -> &Backlog {
    let to = Address::node(to as u16);
    let mut flows = station.flows.iter();
    let found = flows.find(|flow| flow.to == to && flow.class == class);
    found.expect("the flow begins here")
}

/// Lengths of runs of successes.
struct Runs {
    seen: Vec<u64>,
    last: usize,
    length: u64,
    longest: Vec<u64>,
    total: Vec<u64>,
    count: Vec<u64>,
}

impl Runs {
    fn new(flows: usize) -> Runs {
        let zeros = vec![0; flows];
        Runs {
            seen: zeros.clone(),
            last: usize::MAX,
            length: 0,
            longest: zeros.clone(),
            total: zeros.clone(),
            count: zeros,
        }
    }

    fn won(&mut self, flow: usize, acknowledged: u64) {
        if self.seen[flow] == acknowledged {
            return;
        }
        self.seen[flow] = acknowledged;
        if self.last != flow {
            self.last = flow;
            self.length = 0;
            self.count[flow] += 1;
        }
        self.length += 1;
        self.total[flow] += 1;
        self.longest[flow] = self.longest[flow].max(self.length);
    }
}

/// Order at one instant, top to bottom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    End,
    Timeout,
    Begin,
}

struct Air<M> {
    now: Instant,
    nodes: Vec<OverMac<M, Saturated>>,
    radios: Radios,
    listeners: Vec<Vec<usize>>,
    ears: Vec<Ear>,
    flights: Vec<Flight>,
    events: BinaryHeap<Reverse<(Instant, Kind, u64, usize)>>,
    count: u64,
    buffer: Vec<u8>,
}

/// What one station's antenna receives and senses now.
#[derive(Clone, Default)]
struct Ear {
    sensing: bool,
    sending: bool,
    /// Frames that arrive now.
    arriving: Vec<Arriving>,
    since: Instant,
    wake: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Arriving {
    from: usize,
    clean: bool,
    begun: bool,
    alone: bool,
}

#[derive(Clone)]
struct Flight {
    psdu: Vec<u8>,
    mode: Mode,
    started: Instant,
    /// Of energy that is not a frame, how long it lasts.
    burst: Option<Duration>,
}

impl<M: Access> Air<M> {
    fn new(
        scene: &Scene,
        make: impl Fn(usize, Address, Stream) -> M,
        radios: Radios,
        len: usize,
        seed: Seed,
    ) -> Air<M> {
        let n = scene.stations();
        let node = |at: usize| {
            let random = seed.stream(Purpose::Node(at as u32));
            let flows = scene.backlog(at);
            let link = Saturated {
                flows,
                len,
                received: 0,
            };
            OverMac::new(make(at, Address::node(at as u16), random), link)
        };
        let mut listeners = vec![Vec::new(); n];
        for &(a, b) in &scene.edges {
            listeners[a].push(b);
            listeners[b].push(a);
        }
        let flight = Flight {
            psdu: Vec::new(),
            mode: Mode::long(Rate::Dsss1),
            started: Instant::ZERO,
            burst: None,
        };
        let mut air = Air {
            now: Instant::ZERO,
            nodes: (0..n).map(node).collect(),
            radios,
            listeners,
            ears: vec![Ear::default(); n],
            flights: vec![flight; n],
            events: BinaryHeap::new(),
            count: 0,
            buffer: vec![0; PSDU_MAX],
        };
        for at in 0..n {
            air.nodes[at].handle_timeout(Instant::ZERO);
            air.drain(at);
        }
        air
    }

    fn push(&mut self, at: Instant, kind: Kind, node: usize) {
        self.count += 1;
        self.events.push(Reverse((at, kind, self.count, node)));
    }

    /// When the next event comes.
    fn next(&self) -> Instant {
        self.events
            .peek()
            .map_or(Instant::MAX, |Reverse((at, ..))| *at)
    }

    /// Handles one event. Returns the station whose frame may just have been acknowledged.
    fn step(&mut self) -> Option<usize> {
        let Reverse((at, kind, _, node)) = self.events.pop().expect("saturated stations go on");
        self.now = at;
        match kind {
            Kind::End => return self.end(node),
            Kind::Begin => self.begin(node),
            Kind::Timeout if self.ears[node].wake == Some(at) => {
                self.ears[node].wake = None;
                self.nodes[node].handle_timeout(at);
                self.drain(node);
            }
            Kind::Timeout => {}
        }
        None
    }

    fn begin(&mut self, from: usize) {
        let flight = &mut self.flights[from];
        flight.started = self.now;
        let frame = flight.mode.airtime(flight.psdu.len() + FCS);
        let burst = flight.burst;
        let end = self.now + burst.unwrap_or(frame);
        self.push(end, Kind::End, from);
        for arriving in &mut self.ears[from].arriving {
            (arriving.clean, arriving.begun) = (false, false);
        }
        let was_busy = self.ears[from].is_busy();
        self.ears[from].sending = true;
        self.carrier(from, was_busy);
        for to in self.listeners[from].clone() {
            let ear = &mut self.ears[to];
            let was_busy = ear.is_busy();
            ear.arriving
                .iter_mut()
                .for_each(|other| other.clean = false);
            ear.arriving.push(Arriving {
                from,
                clean: !was_busy && burst.is_none(),
                begun: !ear.sending && burst.is_none(),
                alone: !was_busy,
            });
            self.carrier(to, was_busy);
        }
    }

    fn end(&mut self, from: usize) -> Option<usize> {
        self.ears[from].sending = false;
        if !self.radios.frame_first {
            self.carrier(from, true);
        }
        self.ears[from].settle(self.now, true);
        self.nodes[from].handle_radio(self.now, RadioEvent::Sent);
        self.drain(from);
        if self.radios.frame_first {
            self.carrier(from, true);
        }
        let flight = self.flights[from].clone();
        let mut heard = None;
        for to in self.listeners[from].clone() {
            let ear = &mut self.ears[to];
            let place = ear.arriving.iter().position(|a| a.from == from);
            let arriving = ear.arriving.swap_remove(place.expect("it began"));
            ear.settle(self.now, true);
            if arriving.clean && flight.psdu.get(4..10) == Some(&address_of(to)) {
                heard = Some(to);
            }
            if self.radios.frame_first {
                self.report(to, &flight, arriving);
                self.carrier(to, true);
            } else {
                self.carrier(to, true);
                self.report(to, &flight, arriving);
            }
        }
        heard
    }

    fn report(&mut self, to: usize, flight: &Flight, arriving: Arriving) {
        let failed = match self.radios.undecodable {
            Undecodable::Locked => arriving.begun && arriving.alone,
            Undecodable::Begun => arriving.begun,
        };
        let started = flight.started;
        let mode = flight.mode;
        let event = if arriving.clean && arriving.begun {
            RadioEvent::Received(Reception {
                psdu: &flight.psdu,
                started,
                mode,
                power: None,
            })
        } else if failed && !self.ears[to].sending {
            RadioEvent::Failed(Failure {
                started,
                mode: None,
            })
        } else {
            return;
        };
        self.nodes[to].handle_radio(self.now, event);
        self.drain(to);
    }

    fn carrier(&mut self, at: usize, was_busy: bool) {
        let now = self.now;
        let ear = &mut self.ears[at];
        let busy = ear.is_busy();
        if ear.settle(now, was_busy) && ear.sensing {
            self.nodes[at].handle_radio(now, RadioEvent::Carrier { busy, since: now });
            self.drain(at);
        }
    }

    fn drain(&mut self, at: usize) {
        let now = self.now;
        while let Some(request) = self.nodes[at].poll_radio(now, &mut self.buffer) {
            match request {
                RadioRequest::Transmit(transmit) => self.take_off(at, transmit),
                RadioRequest::Burst(burst) => {
                    assert!(!self.ears[at].sending, "one at a time");
                    self.flights[at].burst = Some(burst.lasts);
                    self.push(burst.at.max(self.now), Kind::Begin, at);
                }
                RadioRequest::Sense(on) => {
                    let ear = &mut self.ears[at];
                    ear.sensing = on;
                    let (busy, since) = (ear.is_busy(), ear.since);
                    if on {
                        self.nodes[at].handle_radio(now, RadioEvent::Carrier { busy, since });
                    }
                }
                other => panic!("no MAC here asks for {other:?}"),
            }
        }
        let wake = self.nodes[at].poll_timeout().map(|wake| wake.at);
        if wake != self.ears[at].wake {
            self.ears[at].wake = wake;
            if let Some(wake) = wake {
                self.push(wake, Kind::Timeout, at);
            }
        }
    }

    fn take_off(&mut self, at: usize, transmit: Transmit) {
        assert!(!self.ears[at].sending, "one frame at a time");
        let flight = &mut self.flights[at];
        flight.psdu.clear();
        flight.psdu.extend_from_slice(&self.buffer[..transmit.len]);
        flight.mode = transmit.mode;
        flight.burst = None;
        self.push(transmit.at.max(self.now), Kind::Begin, at);
    }
}

impl Ear {
    /// Notes since when the antenna is in its present state; true if that state is new.
    fn settle(&mut self, now: Instant, was_busy: bool) -> bool {
        let changed = self.is_busy() != was_busy;
        if changed {
            self.since = now;
        }
        changed
    }

    fn is_busy(&self) -> bool {
        self.sending || !self.arriving.is_empty()
    }
}

fn address_of(node: usize) -> [u8; 6] {
    Address::node(node as u16).to_eui48()
}

pub fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
