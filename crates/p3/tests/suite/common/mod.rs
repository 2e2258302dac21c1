//! Test code: an ideal air for synchronous radios.
//!
//! Identical frames that start within 0.5 us of each other on one channel count as one frame, which arrives with the
//! best link's probability. Any other overlap of frames that a radio could hear destroys all of them. Nodes have
//! clocks of their own. There is no propagation delay, no power and no capture: that physics is the simulator's.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod faults;
mod setting;

#[allow(unused_imports, reason = "each test file uses its own part")]
pub use setting::{DESTINATION, SOURCE, Setting, finish, object, start, transfer, with_gateway};

use std::cell::RefCell;
use std::rc::Rc;

use chappe_core::{
    Caps, Channel, Duration, Failure, Head, Instant, Ppm, Purpose, RadioEvent, RadioNode,
    RadioRequest, Reception, Seed, Stream, Wake,
};
use chappe_p3::survey::{Heard, Ledger, Member, Surveyor};
use chappe_p3::timing::{MODE, airtime};
use chappe_p3::{
    ChannelOrder, Checkpoint, Config, Destination, Gateway, ImprovedPart, Place, Plan, Planner,
    Profile, Progress, Relay, Source, Stages, Store, Trial, Variant, Wanted,
};

pub const CAPS: Caps = Caps {
    frame_max: 125,
    schedules: true,
    start_error: Duration::ZERO,
    reports_power: false,
    overhears: true,
    confirms_broadcast: true,
    hastens: false,
};

/// Bytes that grow as they are written.
#[derive(Clone, Debug, Default)]
pub struct Growing {
    pub bytes: Vec<u8>,
    pub finished: bool,
    pub writes: usize,
    /// Offsets of what was written.
    pub written: Vec<usize>,
}

impl Store for Growing {
    fn write(&mut self, offset: u32, octets: &[u8]) -> bool {
        let (from, to) = (offset as usize, offset as usize + octets.len());
        self.bytes.resize(self.bytes.len().max(to), 0);
        self.bytes[from..to].copy_from_slice(octets);
        self.writes += 1;
        self.written.push(from);
        true
    }

    fn read(&self, offset: u32, to: &mut [u8]) -> bool {
        let from = self.bytes.get(offset as usize..offset as usize + to.len());
        from.map(|from| to.copy_from_slice(from)).is_some()
    }

    fn finish(&mut self, len: u32) {
        self.bytes.truncate(len as usize);
        self.finished = true;
    }
}

pub type Bytes = &'static [u8];

/// A node of the test network, so that tests can look inside.
#[allow(clippy::large_enum_variant, reason = "a few dozen nodes in a test")]
pub enum Node {
    Source(Source<Bytes>),
    Relay(Relay),
    Destination(Destination<Growing>),
    Gateway(Gateway<Growing, Fixed>),
    Member(Member<Relay>),
    Surveyor(Surveyor<Links>),
}

/// A gateway's planner that knows one plan, and keeps what it learns.
pub struct Fixed {
    pub plan: Plan,
    pub trials: Vec<Trial>,
}

impl Planner for Fixed {
    fn plan(&mut self, last: Option<&Trial>) -> Option<Plan> {
        self.trials.extend(last);
        Some(self.plan)
    }
}

/// What a gateway has collected: the node that heard, and whom.
#[derive(Default)]
pub struct Links(pub Vec<(u16, Heard)>);

impl Ledger for Links {
    fn take(&mut self, at: u16, heard: Heard) {
        self.0.push((at, heard));
    }
}

impl Node {
    fn radio(&mut self) -> &mut dyn RadioNode {
        match self {
            Node::Source(node) => node,
            Node::Relay(node) => node,
            Node::Destination(node) => node,
            Node::Gateway(node) => node,
            Node::Member(node) => node,
            Node::Surveyor(node) => node,
        }
    }
}

/// A frame on the air, times on the air's own clock.
#[derive(Clone, Debug)]
pub struct Flight {
    pub from: usize,
    pub channel: Channel,
    pub start: u64,
    pub end: u64,
    pub psdu: Vec<u8>,
    /// When its first octets, those that the nodes ask for, have arrived; `None` once they have been told.
    head: Option<u64>,
    /// Not a node's, but a stranger's beside it.
    forged: bool,
    over: bool,
}

struct Radio {
    node: Option<Node>,
    channel: Channel,
    listening: bool,
    /// Since when it could hear: the last change of channel, receiver or direction.
    hears_since: u64,
    waiting: Option<(u64, Vec<u8>)>,
    sending: bool,
    /// Start of the last frame that was decided for this radio.
    decided: Option<u64>,
    /// Start of the last frame whose head was reported or not, and which of the two.
    glanced: Option<(u64, bool)>,
    peek: usize,
    /// For how long it has been receiving or waiting, and sending, up to `counted`.
    on: u64,
    sent: u64,
    counted: u64,
    drift: Ppm,
    offset: u64,
}

/// Success probability of a link on a channel.
pub type Prr = Box<dyn Fn(Channel, usize, usize) -> f64>;
/// Whether a frame is lost for a receiver on top of that: (frame, receiver).
pub type Fault = Box<dyn FnMut(&Flight, usize) -> bool>;

/// What a receiver hears in the place of a frame, since a stranger beside it is stronger: (frame, receiver).
pub type Tamper = Box<dyn FnMut(&Flight, usize) -> Option<Vec<u8>>>;

pub struct Net {
    radios: Vec<Radio>,
    flights: Vec<Flight>,
    prr: Prr,
    pub fault: Fault,
    pub tamper: Tamper,
    random: Stream,
    pub now: u64,
    /// Sources make their next frame as soon as the one before is on the air.
    pub prepares: bool,
    /// Every frame that was sent.
    pub log: Rc<RefCell<Vec<Flight>>>,
    pub collisions: u64,
}

const SYNCHRONOUS: u64 = 500;

impl Net {
    pub fn new(nodes: Vec<Node>, prr: Prr, seed: u64) -> Net {
        let radios = nodes.into_iter().map(|node| Radio {
            node: Some(node),
            channel: Channel(0),
            listening: true,
            hears_since: 0,
            waiting: None,
            sending: false,
            decided: None,
            glanced: None,
            peek: 0,
            on: 0,
            sent: 0,
            counted: 0,
            drift: Ppm(0.0),
            offset: 0,
        });
        let mut net = Net {
            radios: radios.collect(),
            flights: Vec::new(),
            prr,
            fault: Box::new(|_, _| false),
            tamper: Box::new(|_, _| None),
            random: Seed(seed).stream(Purpose::Reception),
            now: 0,
            prepares: false,
            log: Rc::default(),
            collisions: 0,
        };
        (0..net.radios.len()).for_each(|node| net.drain(node));
        net
    }

    /// Gives every node a clock with a phase of its own and an error of up to `ppm`.
    pub fn drift(&mut self, ppm: f64, seed: u64) {
        let mut random = Seed(seed).stream(Purpose::Clock);
        for radio in &mut self.radios {
            radio.drift = Ppm((random.fraction() * 2.0 - 1.0) * ppm);
            radio.offset = random.below(1_000_000_000);
        }
    }

    pub fn kill(&mut self, node: usize) {
        self.count(node);
        self.radios[node].node = None;
        self.radios[node].waiting = None;
    }

    pub fn place(&mut self, node: usize, fresh: Node) {
        self.count(node);
        self.radios[node].listening = true;
        self.radios[node].node = Some(fresh);
        self.radios[node].hears_since = self.now;
        self.radios[node].sending = false;
        self.drain(node);
    }

    /// How long the radio has been on, receiving or sending.
    pub fn radio_on(&mut self, node: usize) -> Duration {
        self.count(node);
        Duration::from_nanos(self.radios[node].on + self.radios[node].sent)
    }

    /// Books a radio's time before what it does changes.
    fn count(&mut self, node: usize) {
        let radio = &mut self.radios[node];
        let span = self.now - radio.counted;
        radio.counted = self.now;
        match (radio.node.is_some(), radio.sending, radio.listening) {
            (false, ..) => {}
            (_, true, _) => radio.sent += span,
            (_, _, true) => radio.on += span,
            _ => {}
        }
    }

    pub fn source(&mut self, node: usize) -> &mut Source<Bytes> {
        match &mut self.radios[node].node {
            Some(Node::Source(source)) => source,
            _ => panic!("node {node} is no source"),
        }
    }

    pub fn relay(&mut self, node: usize) -> &mut Relay {
        match &mut self.radios[node].node {
            Some(Node::Relay(relay)) => relay,
            _ => panic!("node {node} is no relay"),
        }
    }

    pub fn node(&mut self, node: usize) -> Option<&mut Node> {
        self.radios[node].node.as_mut()
    }

    pub fn surveyor(&mut self, node: usize) -> &mut Surveyor<Links> {
        match &mut self.radios[node].node {
            Some(Node::Surveyor(surveyor)) => surveyor,
            _ => panic!("node {node} is no surveyor"),
        }
    }

    pub fn gateway(&mut self, node: usize) -> &mut Gateway<Growing, Fixed> {
        match &mut self.radios[node].node {
            Some(Node::Gateway(gateway)) => gateway,
            _ => panic!("node {node} is no gateway"),
        }
    }

    pub fn destination(&mut self, node: usize) -> &mut Destination<Growing> {
        match &mut self.radios[node].node {
            Some(Node::Destination(destination)) => destination,
            _ => panic!("node {node} is no destination"),
        }
    }

    /// A node's own time now.
    pub fn clock(&self, node: usize) -> Instant {
        let radio = &self.radios[node];
        let error = (self.now as f64 * radio.drift.0 * 1e-6).round() as i64;
        Instant::from_nanos((self.now + radio.offset).wrapping_add_signed(error))
    }

    /// The air's time at a node's own time.
    fn air(&self, node: usize, at: Instant) -> u64 {
        let radio = &self.radios[node];
        let own = at.nanos().saturating_sub(radio.offset) as f64;
        let error = own * radio.drift.0 * 1e-6 / (1.0 + radio.drift.0 * 1e-6);
        (own as u64).wrapping_add_signed(-(error.round() as i64))
    }

    /// Runs until `stop` or for at most `limit`.
    pub fn run(&mut self, limit: Duration, mut stop: impl FnMut(&mut Net) -> bool) {
        let end = self.now + limit.nanos();
        while !stop(self) {
            let Some(next) = self.next().filter(|&at| at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn next(&self) -> Option<u64> {
        let flights = self.flights.iter().filter(|f| !f.over);
        let flights = flights.map(|f| f.head.unwrap_or(f.end));
        let starts = self
            .radios
            .iter()
            .filter_map(|r| Some(r.waiting.as_ref()?.0));
        let wakes = (0..self.radios.len()).filter_map(|node| {
            let wake = self.deadline(node)?;
            Some(self.air(node, wake.at).max(self.now))
        });
        flights.chain(starts).chain(wakes).min()
    }

    fn deadline(&self, node: usize) -> Option<Wake> {
        match self.radios[node].node.as_ref()? {
            Node::Source(node) => node.poll_timeout(),
            Node::Relay(node) => node.poll_timeout(),
            Node::Destination(node) => node.poll_timeout(),
            Node::Gateway(node) => node.poll_timeout(),
            Node::Member(node) => node.poll_timeout(),
            Node::Surveyor(node) => node.poll_timeout(),
        }
    }

    /// All that happens now: ends of frames, then deadlines, then starts.
    fn step(&mut self) {
        for at in 0..self.flights.len() {
            if !self.flights[at].over && self.flights[at].end <= self.now {
                self.flights[at].over = true;
                self.end(at);
            }
        }
        for at in 0..self.flights.len() {
            let due = self.flights[at].head.take_if(|head| *head <= self.now);
            if due.is_some() {
                let flight = self.flights[at].clone();
                (0..self.radios.len()).for_each(|node| self.glance(&flight, node));
            }
        }
        let recent = self.now.saturating_sub(20_000_000);
        self.flights.retain(|flight| flight.end > recent);
        for node in 0..self.radios.len() {
            let Some(wake) = self.deadline(node) else {
                continue;
            };
            if self.air(node, wake.at) <= self.now {
                let clock = self.clock(node).max(wake.at);
                if let Some(node) = &mut self.radios[node].node {
                    node.radio().handle_timeout(clock);
                }
                self.drain(node);
            }
        }
        for node in 0..self.radios.len() {
            let due = self.radios[node].waiting.take_if(|(at, _)| *at <= self.now);
            if let Some((_, psdu)) = due {
                self.begin(node, psdu);
            }
        }
    }

    fn begin(&mut self, node: usize, psdu: Vec<u8>) {
        assert!(!self.radios[node].sending, "node {node} sends already");
        self.count(node);
        let octets = psdu.len().min(4) as u64;
        let flight = Flight {
            head: Some(self.now + 192_000 + octets * 32_000),
            from: node,
            channel: self.radios[node].channel,
            start: self.now,
            end: self.now + airtime(psdu.len()).nanos(),
            psdu,
            forged: false,
            over: false,
        };
        self.radios[node].sending = true;
        self.log.borrow_mut().push(flight.clone());
        self.flights.push(flight);
        if let (true, Some(Node::Source(source))) = (self.prepares, &mut self.radios[node].node) {
            source.prepare();
            self.drain(node);
        }
    }

    /// A stranger who stands beside `node` sends a frame now.
    pub fn inject(&mut self, node: usize, channel: Channel, psdu: Vec<u8>) {
        let octets = psdu.len().min(4) as u64;
        self.flights.push(Flight {
            head: Some(self.now + 192_000 + octets * 32_000),
            from: node,
            channel,
            start: self.now,
            end: self.now + airtime(psdu.len()).nanos(),
            psdu,
            forged: true,
            over: false,
        });
    }

    fn end(&mut self, at: usize) {
        let flight = self.flights[at].clone();
        for node in 0..self.radios.len() {
            self.arrive(&flight, node);
        }
        if flight.forged {
            return;
        }
        self.count(flight.from);
        let sender = &mut self.radios[flight.from];
        if !std::mem::take(&mut sender.sending) {
            return; // restarted meanwhile
        }
        sender.hears_since = self.now;
        let clock = self.clock(flight.from);
        if let Some(node) = &mut self.radios[flight.from].node {
            node.radio().handle_radio(clock, RadioEvent::Sent);
        }
        self.drain(flight.from);
    }

    /// Whether a radio is there for a frame.
    fn is_with(&self, flight: &Flight, node: usize) -> bool {
        let radio = &self.radios[node];
        let hears = radio.node.is_some() && radio.listening && !radio.sending;
        let in_time = radio.channel == flight.channel && radio.hears_since <= flight.start;
        hears && in_time && (self.prr)(flight.channel, flight.from, node) > 0.0
    }

    /// Tells one radio the first octets of a frame, once for all its synchronous copies.
    fn glance(&mut self, flight: &Flight, node: usize) {
        let near = |start: u64| start.abs_diff(flight.start) <= SYNCHRONOUS;
        let radio = &self.radios[node];
        let told = radio.glanced.is_some_and(|(start, _)| near(start));
        if radio.peek == 0 || told || !self.is_with(flight, node) {
            return;
        }
        let (best, collides) = self.chance(flight, node);
        let good = !collides && self.random.chance(best);
        self.radios[node].glanced = Some((flight.start, good));
        if !good || (self.fault)(flight, node) {
            return;
        }
        let octets = self.radios[node].peek.min(flight.psdu.len());
        let clock = self.clock(node);
        let head = Head {
            octets: &flight.psdu[..octets],
            len: flight.psdu.len(),
            started: clock.saturating_before(Duration::from_nanos(self.now - flight.start)),
            mode: MODE,
        };
        if let Some(node) = &mut self.radios[node].node {
            node.radio().handle_radio(clock, RadioEvent::Head(head));
        }
        self.drain(node);
    }

    /// The best link over which a frame arrives, and whether another frame overlaps it.
    fn chance(&self, flight: &Flight, node: usize) -> (f64, bool) {
        let near = |a: u64, b: u64| a.abs_diff(b) <= SYNCHRONOUS;
        let (mut best, mut collides) = (0.0f64, false);
        for other in &self.flights {
            let reached = (self.prr)(flight.channel, other.from, node);
            let apart = other.end <= flight.start || other.start >= flight.end;
            if other.channel != flight.channel || reached <= 0.0 || apart {
                continue;
            }
            if near(other.start, flight.start) && other.psdu == flight.psdu {
                best = best.max(reached);
            } else {
                collides = true;
            }
        }
        (best, collides)
    }

    /// Decides for one radio about a frame that ends now, once for all its synchronous copies.
    fn arrive(&mut self, flight: &Flight, node: usize) {
        let near = |start: u64| start.abs_diff(flight.start) <= SYNCHRONOUS;
        let radio = &self.radios[node];
        if radio.decided.is_some_and(near) || !self.is_with(flight, node) {
            return;
        }
        let glanced = radio.glanced.filter(|(start, _)| near(*start));
        let (best, collides) = self.chance(flight, node);
        self.radios[node].decided = Some(flight.start);
        self.collisions += u64::from(collides);
        let good = match glanced {
            Some((_, good)) => good,
            None => self.random.chance(best),
        };
        let clock = self.clock(node);
        let started = clock.saturating_before(Duration::from_nanos(self.now - flight.start));
        if (self.fault)(flight, node) {
            return;
        }
        if collides || !good {
            let mode = Some(MODE);
            if let Some(node) = &mut self.radios[node].node {
                let failure = Failure { started, mode };
                node.radio()
                    .handle_radio(clock, RadioEvent::Failed(failure));
            }
            return self.drain(node);
        }
        let forged = (self.tamper)(flight, node);
        let heard = Reception {
            psdu: forged.as_ref().unwrap_or(&flight.psdu),
            started,
            mode: MODE,
            power: None,
        };
        if let Some(node) = &mut self.radios[node].node {
            node.radio()
                .handle_radio(clock, RadioEvent::Received(heard));
        }
        self.drain(node);
    }

    pub fn drain(&mut self, node: usize) {
        let clock = self.clock(node);
        let mut psdu = [0; 127];
        loop {
            let Some(request) = self.radios[node]
                .node
                .as_mut()
                .and_then(|node| node.radio().poll_radio(clock, &mut psdu))
            else {
                return;
            };
            let now = self.now;
            match request {
                RadioRequest::Transmit(transmit) => {
                    let at = self.air(node, transmit.at).max(now);
                    self.radios[node].waiting = Some((at, psdu[..transmit.len].to_vec()));
                }
                RadioRequest::Cancel => self.radios[node].waiting = None,
                RadioRequest::Sense(_) => {}
                RadioRequest::Burst(burst) => panic!("node {node} asks for {burst:?}"),
                RadioRequest::Peek(octets) => self.radios[node].peek = octets,
                RadioRequest::Abort => self.radios[node].hears_since = now,
                RadioRequest::Tune(channel) => {
                    let radio = &mut self.radios[node];
                    assert!(
                        !radio.sending,
                        "node {node} tunes to {channel} while it sends, at {now} ns"
                    );
                    (radio.channel, radio.hears_since) = (channel, now);
                }
                RadioRequest::Listen(on) => {
                    self.count(node);
                    let radio = &mut self.radios[node];
                    (radio.listening, radio.hears_since) = (on, now);
                }
            }
        }
    }
}
