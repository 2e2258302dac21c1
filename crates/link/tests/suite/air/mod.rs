//! Two peers on a half-duplex medium in virtual time, with a transfer that behaves like TCP's: a limit on octets in flight,
//! and an acknowledgement for every second segment. Nothing here waits or sleeps: a minute takes a fraction of a second, and
//! the same seed gives the same run.
//!
//! The usual medium is that of `tests/medium`: one rate for both directions, which take turns, 100 frames of queue for each, a
//! delay, and losses ([`medium`]). It accounts for the use of the airtime. Paths of full duplex, with jitter, with steps of rate
//! and loss, and hosts that stand still now and then are settings of [`Air`].
#![allow(dead_code, reason = "each program uses a part")]

mod bbr;
pub mod cells;
pub mod fairness;
mod flow;
pub mod kcptun;
mod medium;
pub mod pairs;
pub mod plain;
pub mod rivals;
mod segment;
pub mod starts;

use bbr::Bbr;
use flow::Flow;
use medium::Medium;
use segment::{HEADERS, Segment, number, read, stamps};

use chappe_core::{Bitrate, Duration, Instant, Purpose, Seed, Stream};
use chappe_link::{BULK, Gate, IDLE_KEEPALIVE, PROTOCOL, PathConfig, Peer, PeerConfig, Secret};
use chappe_sys::Endpoint;
use chappe_wildnet::Service;

/// The medium and the transfer.
#[derive(Clone, Copy, Debug)]
pub struct Air {
    pub rate: Bitrate,
    pub delay: Duration,
    /// Losses in both directions.
    pub loss: f64,
    /// Mean run of losses; 0: independent.
    pub burst: f64,
    /// Octets of TCP's payload that may be under way.
    pub window: usize,
    /// When the transfer begins.
    pub source_from: Duration,
    /// A class's promise; bulk.
    pub service: Service,
    /// Octets that IP and UDP add, and Ethernet.
    pub below: usize,
    /// Whether the peers know the rate.
    pub told: bool,
    /// Whether the window is BBR's instead, and whether it paces as well.
    pub bbr: bool,
    pub paced: bool,
    /// The rate back; `None` if both directions share `rate` in turns.
    pub back: Option<Bitrate>,
    /// Most that a frame is late, uniformly from nothing: it may be overtaken.
    pub jitter: Duration,
    /// From when on rate and loss are others.
    pub steps: &'static [(Duration, Bitrate, f64)],
    /// Frames that wait for the medium in each direction; more are lost.
    pub queue: usize,
    /// How often both hosts stand still, and for how long.
    pub stall: Option<(Duration, Duration)>,
    /// By how much each turn of a host comes late at least and at most, uniformly: others use its processor. A turn begins when
    /// something arrives or is due, and ends when nothing more is.
    pub late: Option<(Duration, Duration)>,
    /// Whether the hosts know when a datagram arrived that they read later.
    pub stamped: bool,
    /// How often a small packet of each class is sent beside the transfer.
    pub ping_every: Duration,
    /// Octets of the largest frame that passes, with the headers below.
    pub largest: usize,
    /// From when until when frames of so many octets are the largest that pass.
    pub narrower: Option<(Duration, Duration, usize)>,
    /// The promise of the urgent class.
    pub urgent: Service,
    /// How a path among several is used: its cost, and whether it is a reserve.
    pub cost: Duration,
    pub reserve: bool,
    /// Whether the far host has no paths in its file, and learns them.
    pub learned: bool,
    /// So many flows of TCP that repeat what is dropped ([`flow`]), instead of the one whose window never runs out.
    pub flows: usize,
}

impl Air {
    /// 6 Mbit/s, 20 ms, UDP below.
    pub fn usual(loss: f64, burst: f64) -> Air {
        Air {
            rate: Bitrate(6_000_000),
            delay: Duration::from_millis(10),
            loss,
            burst,
            window: 130 * PAYLOAD,
            source_from: Duration::ZERO,
            service: BULK,
            below: 42,
            told: true,
            bbr: false,
            paced: false,
            back: None,
            jitter: Duration::ZERO,
            steps: &[],
            queue: QUEUE,
            stall: None,
            late: None,
            stamped: true,
            ping_every: Duration::from_millis(100),
            largest: usize::MAX,
            narrower: None,
            urgent: Service::PROMPT,
            cost: Duration::ZERO,
            reserve: false,
            learned: false,
            flows: 0,
        }
    }

    /// A path of full duplex with a round trip. TCP may have four times under way what it holds, and 6 MB (tcp_rmem of Linux) in
    /// any case.
    pub fn path(rate: Bitrate, round_trip: Duration, loss: f64) -> Air {
        let held = (rate.0 as f64 / 8.0 * round_trip.as_secs_f64()) as usize;
        Air {
            rate,
            back: Some(rate),
            delay: round_trip / 2,
            window: 6_000_000 + 4 * held,
            queue: QUEUE.max(held / 1514),
            ..Air::usual(loss, 0.0)
        }
    }

    /// Octets of a TCP window of so many times what the path holds, and 6 MB.
    pub fn window_of(&self, times: usize) -> usize {
        let held = self.rate.0 as f64 / 8.0 * (self.delay * 2).as_secs_f64();
        6_000_000 + times * held as usize
    }

    /// Plain TCP without loss on this medium, in bits of payload a second: a segment of 1514 octets with Ethernet's header,
    /// and half an acknowledgement of 66.
    pub fn capacity(&self) -> f64 {
        let acknowledgements = if self.back.is_none() { 33.0 } else { 0.0 };
        self.rate.0 as f64 * PAYLOAD as f64 / (1514.0 + acknowledgements)
    }
}

/// The use of the airtime, and the results of the transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Books {
    /// Payload that arrived, whether in order or not yet, in bits a second; and its share of (1 - loss) capacity.
    pub goodput: f64,
    pub share: f64,
    /// Shares of the time: frames away from the source and back, nothing.
    pub forth: f64,
    pub back: f64,
    pub idle: f64,
    /// Of the frames forth: bodies sent first, again, repairs, notes; and mean octets of a frame.
    pub first: f64,
    pub again: f64,
    pub repairs: f64,
    pub notes: f64,
    pub fills: f64,
    pub octets: f64,
    /// Share of the frames forth that the medium lost.
    pub lost: f64,
    /// Frames back a second, and their mean octets.
    pub back_rate: f64,
    pub back_octets: f64,
    /// Frames that came for nothing, of those that came; and frames that found the medium's queue full.
    pub useless: f64,
    pub overrun: u64,
    /// Longest wait of the transfer for the next octet in order; how often it was more than 200 ms, a minute.
    pub stall: Duration,
    pub stalls: f64,
    /// Delay of a small packet that is sent ten times a second beside the transfer: urgent, and of a flow of its own in
    /// bulk; the mean, and what 95 % stay below. Packets sent and arrived.
    pub probes: [Probe; 2],
    /// Smoothed and least round trip at the end.
    pub round_trip: [f64; 2],
    /// The pace at the end, bit/s.
    pub pace: f64,
}

/// What became of small packets beside the transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe {
    pub mean: Duration,
    pub most: Duration,
    /// What 95 % of all that had time to arrive stay below, lost ones included; [`FOREVER`] if more were lost.
    pub most_of_all: Duration,
    /// How many of all that had time to arrive took no longer than 1.5 round trips and 20 ms, half a round trip of it on the way back;
    /// and all of them.
    pub in_time: (usize, usize),
    pub sent: usize,
    pub arrived: usize,
}

/// TCP's payload in a segment: an MTU of 1500 less 52 octets.
pub const PAYLOAD: usize = 1448;
const QUEUE: usize = 100;
/// The delay of what never comes.
pub const FOREVER: Duration = Duration::from_secs(1_000_000);

/// Runs a transfer from peer 0 to peer 1 for `secs` seconds after two that do not count.
pub fn run(air: Air, seed: u64, secs: u64) -> Books {
    run_after(air, seed, 2_000, secs)
}

/// Runs a transfer from peer 0 to peer 1 for `secs` seconds after some milliseconds that do not count.
pub fn run_after(air: Air, seed: u64, settled: u64, secs: u64) -> Books {
    let mut run = Run::new(air, seed);
    run.until(Instant::from_millis(settled));
    let (before, held_before) = (run.tally(), run.held());
    run.until(Instant::from_millis(settled + secs * 1_000));
    let (after, held_after) = (run.tally(), run.held());
    let change = |place: usize| (after[place] - before[place]) as f64;
    let span = secs as f64;
    // What waits at the receiver counts: on a long path that is seconds of a transfer, and whether a run ends in such a wait is chance.
    let arrived = change(0) + held_after - held_before;
    let goodput = arrived * 8.0 / span;
    let frames = change(4).max(1.0);
    Books {
        goodput,
        share: goodput / (1.0 - air.loss) / air.capacity(),
        forth: change(1) * 8.0 / span / air.rate.0 as f64,
        back: change(2) * 8.0 / span / air.rate.0 as f64,
        idle: 1.0 - (change(1) + change(2)) * 8.0 / span / air.rate.0 as f64,
        first: change(6) / frames,
        again: change(7) / frames,
        repairs: change(8) / frames,
        notes: change(9) / frames,
        fills: change(12) / frames,
        octets: change(1) / frames,
        lost: change(13) / frames,
        back_rate: change(5) / span,
        back_octets: change(2) / change(5).max(1.0),
        useless: change(10) / change(11).max(1.0),
        overrun: after[3] - before[3],
        stall: run.stall,
        stalls: run.stalls as f64 * 60.0 / (span + 2.0),
        probes: [0, 1].map(|class| run.probe(class)),
        round_trip: run.peers[0]
            .link()
            .report()
            .rtt
            .map_or([0.0; 2], |rtt| [rtt.0.as_secs_f64(), rtt.1.as_secs_f64()]),
        pace: run.peers[0].rate().0 as f64,
    }
}

/// A transfer in progress.
pub struct Run {
    air: Air,
    pub now: Instant,
    pub peers: [Peer; 2],
    pub gates: [Gate; 2],
    /// What lies between them, path by path, and the octets that each adds to a datagram.
    pub media: Vec<Medium>,
    below: Vec<usize>,
    /// The end of the present pause of the hosts, and the next one.
    still_until: Instant,
    still_at: Instant,
    /// The turn that each host waits for, where turns are late, and how late.
    turn_at: [Option<Instant>; 2],
    lateness: Stream,
    /// TCP: next to send, acknowledged, received in order; segments since the last acknowledgement.
    next: u32,
    acked: u32,
    received: u32,
    unacked: u32,
    identification: [u16; 2],
    moved_at: Instant,
    stall: Duration,
    stalls: u64,
    probe_at: Instant,
    probes_sent: usize,
    probes: [Vec<Duration>; 2],
    bbr: Option<Bbr>,
    flows: Vec<Flow>,
}

fn secret(host: usize) -> Secret {
    Secret::new([5 + host as u8; 32])
}

/// The peer of a host in its life of this number.
fn made(
    air: &Air,
    host: usize,
    paths: Vec<PathConfig>,
    gate: &Gate,
    (life, seed): (u64, u64),
) -> Peer {
    let config = PeerConfig {
        name: format!("host{}", 1 - host),
        public: secret(1 - host).public(),
        psk: None,
        endpoint: Some(at(1 - host, 0)),
        networks: Vec::new(),
        datagram_max: 1514 - air.below,
        below: air.below,
        rate: air.told.then_some(air.rate),
        services: [air.urgent, air.service, air.service, air.service],
        queue: Duration::from_millis(100),
        keepalive: IDLE_KEEPALIVE,
        paths,
    };
    let mut drawn = [0; 32];
    Seed(seed)
        .stream(Purpose::Node(host as u32))
        .fill(&mut drawn);
    Peer::new(config, gate, 0, life, drawn).unwrap()
}

fn at(host: usize, path: usize) -> Endpoint {
    Endpoint::Udp(([10, 0, path as u8, 1 + host as u8], 1795).into())
}

/// A path as a host's file has it.
fn path(number: usize, host: usize, air: &Air) -> PathConfig {
    PathConfig {
        name: format!("path{number}"),
        endpoint: Some(at(1 - host, number)),
        interface: None,
        below: air.below,
        rate: air.told.then_some(air.rate),
        cost: air.cost,
        reserve: air.reserve,
    }
}

impl Run {
    pub fn new(air: Air, seed: u64) -> Run {
        Run::bonded(&[air], seed)
    }

    /// The same over several paths. What is not a path's is that of the first.
    pub fn bonded(airs: &[Air], seed: u64) -> Run {
        let air = airs[0];
        let paths = |host: usize| -> Vec<PathConfig> {
            let paths = airs.iter().enumerate();
            paths.map(|(number, air)| path(number, host, air)).collect()
        };
        let gates = [0, 1].map(|host| Gate::new(PROTOCOL, secret(host), [9; 32]));
        let peer = |host: usize| {
            let known = airs.len() > 1 && !(air.learned && host == 1);
            let paths = if known { paths(host) } else { Vec::new() };
            made(&air, host, paths, &gates[host], (host as u64, seed))
        };
        Run {
            air,
            now: Instant::from_millis(1),
            peers: [peer(0), peer(1)],
            gates,
            media: (airs.iter().zip((0..).map(|path| seed + path * 1_000_000)))
                .map(|(air, seed)| Medium::new(*air, seed))
                .collect(),
            below: airs.iter().map(|air| air.below).collect(),
            still_until: Instant::ZERO,
            still_at: air
                .stall
                .map_or(Instant::MAX, |(every, _)| Instant::ZERO + every),
            turn_at: [None; 2],
            lateness: Seed(seed).stream(Purpose::Node(2)),
            next: 0,
            acked: 0,
            received: 0,
            unacked: 0,
            identification: [0; 2],
            moved_at: Instant::ZERO,
            stall: Duration::ZERO,
            stalls: 0,
            probe_at: Instant::from_millis(2_000),
            probes_sent: 0,
            probes: Default::default(),
            bbr: air.bbr.then(Bbr::default),
            flows: vec![Flow::new(air.window / PAYLOAD); air.flows],
        }
    }

    /// Gives a datagram to a host. Its gate may drop it; what it would reply is lost.
    pub fn hear(&mut self, host: usize, from: Endpoint, datagram: &mut [u8]) {
        self.hear_late(host, self.now, from, datagram);
    }

    /// The same for one that arrived earlier.
    fn hear_late(&mut self, host: usize, arrived: Instant, from: Endpoint, datagram: &mut [u8]) {
        let (peer, gate) = (&mut self.peers[host], &mut self.gates[host]);
        let _ = peer.handle_late((self.now, arrived), gate, from, datagram, &mut [0; 256]);
    }

    fn probe(&self, class: usize) -> Probe {
        let mut delays = self.probes[class].clone();
        delays.sort_unstable();
        let total: f64 = delays.iter().map(|delay| delay.as_secs_f64()).sum();
        // Those sent last may be under way yet.
        let under_way = (self.air.delay * 2).steps(self.air.ping_every) as usize + 1;
        let sent = self.probes_sent.saturating_sub(under_way);
        let most = self.air.delay * 2 + Duration::from_millis(20);
        let in_time = delays.partition_point(|delay| *delay <= most);
        Probe {
            mean: Duration::from_secs_f64(total / delays.len().max(1) as f64),
            most: delays
                .get(delays.len() * 95 / 100)
                .copied()
                .unwrap_or_default(),
            most_of_all: delays.get(sent * 95 / 100).copied().unwrap_or(FOREVER),
            in_time: (in_time.min(sent), sent),
            sent: self.probes_sent,
            arrived: delays.len(),
        }
    }

    /// Octets of the transfer that have arrived and wait for an older body; a body has about a segment.
    fn held(&self) -> f64 {
        (self.peers[1].link().report().held * PAYLOAD) as f64
    }

    /// Segments that the transfer has under way.
    pub fn under_way(&self) -> usize {
        self.next.wrapping_sub(self.acked) as usize / PAYLOAD
    }

    /// Counts so far; [`run_after`] says of what.
    pub fn tally(&self) -> [u64; 14] {
        let (near, far) = (
            self.peers[0].link().counters(),
            self.peers[1].link().counters(),
        );
        let medium = &self.media[0];
        let useless = [
            chappe_core::DropReason::Duplicate,
            chappe_core::DropReason::NotInnovative,
            chappe_core::DropReason::Stale,
        ];
        [
            self.received.into(),
            medium.octets[0],
            medium.octets[1],
            medium.overrun,
            medium.frames[0],
            medium.frames[1],
            near.bodies,
            near.repeats,
            near.repairs,
            near.notes,
            useless.map(|why| far.drops.of(why)).iter().sum(),
            far.frames_received,
            near.fills,
            medium.lost[0],
        ]
    }

    /// A host starts over, with the paths that it had.
    pub fn restart(&mut self, host: usize) {
        let paths = self.peers[host].config().paths.clone();
        let life = 1_000 + host as u64;
        let air = self.air;
        self.peers[host] = made(&air, host, paths, &self.gates[host], (life, 99));
        let later = std::time::Duration::from_secs(1_000);
        self.peers[host].set_clock(self.now, later);
    }

    /// The share of a class's small packets that took longer.
    pub fn later_than(&self, class: usize, span: Duration) -> f64 {
        let delays = &self.probes[class];
        let later = delays.iter().filter(|delay| **delay > span).count();
        later as f64 / delays.len().max(1) as f64
    }

    /// What became of the small packets of a class so far.
    pub fn probe_of(&self, class: usize) -> Probe {
        self.probe(class)
    }

    /// The longest wait of the transfer for its next octet since the last call.
    pub fn gap(&mut self) -> Duration {
        // The present wait counts too.
        let wait = self.now.saturating_since(self.moved_at);
        std::mem::replace(&mut self.stall, Duration::ZERO).max(wait)
    }

    /// Payload that has arrived in order, in octets modulo 2^32.
    pub fn received(&self) -> u32 {
        self.received
    }

    /// Goes on until `end`.
    pub fn until(&mut self, end: Instant) {
        while self.now < end {
            if self.now >= self.still_at
                && let Some((every, length)) = self.air.stall
            {
                self.still_until = self.now + length;
                self.still_at = self.still_until + every;
            }
            let still = self.now < self.still_until;
            let turns = [0, 1].map(|host| !still && self.takes_turn(host));
            let late = self.air.late.is_some();
            for host in (0..2).filter(|host| late && turns[*host]) {
                self.land_at(host);
            }
            self.act(turns);
            let now = self.now;
            self.media.iter_mut().for_each(|medium| medium.serve(now));
            let hosts = (0..2).filter(|_| !still);
            let next = hosts
                .filter_map(|host| self.turn_at[host].or(self.due_at(host)))
                .chain((self.media.iter().filter_map(Medium::next_at)).filter(|_| !still))
                .chain(still.then_some(self.still_until))
                .min();
            // A wake-up takes some time on any machine.
            let soon = self.now + Duration::from_micros(20);
            self.now = next.map_or(soon, |next| next.max(soon)).min(end);
            if still {
                // The path goes on while the hosts stand still.
                let now = self.now;
                self.media.iter_mut().for_each(|medium| medium.serve(now));
            }
            if self.now >= self.still_until && self.air.late.is_none() {
                (0..2).rev().for_each(|host| self.land_at(host));
            }
        }
    }

    /// When something is next due on a host, whatever arrives.
    fn due_at(&self, host: usize) -> Option<Instant> {
        let own = (host == 0).then_some(self.probe_at);
        let source = self.source_at().filter(|_| host == 0);
        let peer = self.peers[host].deadline(self.now);
        let flows = self.flows.iter().filter_map(|flow| match host {
            0 => flow.sender.expires_at(),
            _ => flow.receiver.acks_at(),
        });
        [peer, own, source].into_iter().flatten().chain(flows).min()
    }

    /// Whether a host has its turn now. Where turns are late, one begins some time after there was a reason.
    fn takes_turn(&mut self, host: usize) -> bool {
        let Some((least, most)) = self.air.late else {
            return true;
        };
        let arrives = self
            .media
            .iter()
            .filter_map(|medium| medium.arrives_at(1 - host));
        let wanted = self.due_at(host).into_iter().chain(arrives).min();
        if self.turn_at[host].is_none() && wanted.is_some_and(|at| at <= self.now) {
            let late = least + most.saturating_sub(least).mul_f64(self.lateness.fraction());
            self.turn_at[host] = Some(self.now + late);
        }
        let has = self.turn_at[host].is_some_and(|at| at <= self.now);
        if has {
            self.turn_at[host] = None;
        }
        has
    }

    /// What programs and peers do at a moment, on the hosts that have their turn.
    fn act(&mut self, turns: [bool; 2]) {
        let mut datagram = vec![0; 2048];
        for host in (0..2).filter(|host| turns[*host]) {
            self.turn_flows(host);
        }
        if turns[0] {
            self.source();
            if self.now >= self.probe_at {
                self.probe_at += self.air.ping_every;
                self.probes_sent += 1;
                self.ping();
            }
        }
        for from in (0..2).filter(|host| turns[*host]) {
            while let Some((len, _, path)) = self.peers[from].poll_path(self.now, &mut datagram) {
                let mut frame = datagram[..len].to_vec();
                frame.resize(len + self.below[path], 0);
                self.media[path].offer(self.now, from, frame);
            }
        }
    }

    fn ping(&mut self) {
        let since = self.now.saturating_since(Instant::ZERO);
        let mut packet = [0; 84];
        packet[4..12].copy_from_slice(&since.nanos().to_be_bytes());
        for class in 0..2 {
            packet[12] = class as u8;
            // TCP would repeat what a full queue drops for it; this transfer does not.
            if self.peers[0].has_room(class) {
                self.peers[0].offer(self.now, class, 10 + class as u8, &packet);
            }
        }
    }

    /// A host reads what has arrived.
    fn land_at(&mut self, host: usize) {
        let from = 1 - host;
        for path in 0..self.media.len() {
            while let Some((arrived, mut frame)) = self.media[path].land(from, self.now) {
                frame.truncate(frame.len() - self.below[path]);
                let arrived = if self.air.stamped { arrived } else { self.now };
                self.hear_late(host, arrived, at(from, path), &mut frame);
            }
        }
        self.hand_up(from);
    }

    /// Takes what peer `from` has sent and the other one hands up.
    fn hand_up(&mut self, from: usize) {
        let mut packet = [0; 2048];
        while let Some(len) = self.peers[1 - from].deliver(&mut packet) {
            if packet[0] == 0 {
                let sent = packet[4..12]
                    .first_chunk()
                    .map_or(0, |octets| u64::from_be_bytes(*octets));
                let delay = self
                    .now
                    .saturating_since(Instant::ZERO + Duration::from_nanos(sent));
                self.probes[usize::from(packet[12])].push(delay);
                continue;
            }
            match from {
                _ if !self.flows.is_empty() => self.on_flow(from, &packet[..len]),
                0 => self.on_segment(&packet[..len]),
                _ => self.on_acknowledgement(number(&packet, 28)),
            }
        }
    }

    fn on_acknowledgement(&mut self, acked: u32) {
        self.acked = acked;
        if let Some(bbr) = &mut self.bbr {
            bbr.on_acknowledgement(self.now, acked);
        }
    }

    /// When the transfer goes on by itself: it begins, or its pace allows the next segment.
    fn source_at(&self) -> Option<Instant> {
        let begins = Instant::ZERO + self.air.source_from;
        let paced = self.bbr.as_ref().filter(|_| self.air.paced);
        let free_at = paced.map_or(Instant::ZERO, Bbr::free_at);
        Some(begins.max(free_at)).filter(|at| *at > self.now)
    }

    fn source(&mut self) {
        if self.source_at().is_some() || !self.flows.is_empty() {
            return;
        }
        let window = self.bbr.as_ref().map_or(self.air.window, Bbr::window);
        while self.next.wrapping_sub(self.acked) as usize + PAYLOAD <= window
            && self.peers[0].has_room(1)
        {
            let packet = self.segment(0, self.next, 1, PAYLOAD);
            self.next = self.next.wrapping_add(PAYLOAD as u32);
            if let Some(bbr) = &mut self.bbr {
                bbr.on_sent(self.now, self.next);
            }
            self.peers[0].offer(self.now, 1, 3, &packet);
            if self.source_at().is_some() {
                return;
            }
        }
    }

    fn on_segment(&mut self, packet: &[u8]) {
        assert_eq!(number(packet, 24), self.received, "a segment out of order");
        assert!(
            packet[52..]
                .iter()
                .all(|&octet| octet == self.received as u8)
        );
        self.received += (packet.len() - 52) as u32;
        let wait = self.now.saturating_since(self.moved_at);
        self.stalls += u64::from(wait > Duration::from_millis(200));
        (self.moved_at, self.stall) = (self.now, self.stall.max(wait));
        self.unacked += 1;
        if self.unacked == 2 {
            self.unacked = 0;
            let packet = self.segment(1, 1, self.received, 0);
            self.peers[1].offer(self.now, 1, 3, &packet);
        }
    }

    /// What the flows send at a host without having received anything: what their windows and their timers allow.
    fn turn_flows(&mut self, host: usize) {
        for place in 0..self.flows.len() {
            let now = self.now;
            if host == 1 {
                let late = self.flows[place].receiver.acks_at();
                if late.is_some_and(|at| at <= now) {
                    self.acknowledge(place);
                }
                continue;
            }
            self.flows[place].sender.expire(now);
            self.send_of_flow(place);
        }
    }

    /// Offers what a flow may send.
    fn send_of_flow(&mut self, place: usize) {
        while let Some(seq) = self.flows[place].sender.poll(self.now) {
            let seq = seq * PAYLOAD as u32;
            self.offer_of_flow(0, place, (seq, 1), (&[], PAYLOAD));
        }
    }

    /// A packet of a flow has arrived from a host.
    fn on_flow(&mut self, from: usize, packet: &[u8]) {
        let (flow, seq, ack, blocks) = read(packet);
        let place = usize::from(flow - 1);
        let segments = |octets: u32| octets / PAYLOAD as u32;
        if from == 1 {
            let blocks: Vec<(u32, u32)> = (blocks.into_iter())
                .map(|(first, behind)| (segments(first), segments(behind)))
                .collect();
            let sender = &mut self.flows[place].sender;
            let echo = stamps(packet).1;
            sender.on_acknowledgement(self.now, segments(ack), &blocks, echo);
            // Each acknowledgement lets segments leave before the next one is read, as in a kernel. In a recovery these are as many as
            // it brought, so of those that the link hands up together only the last one would count.
            self.send_of_flow(place);
            return;
        }
        assert!(packet[HEADERS..].iter().all(|&octet| octet == seq as u8));
        let at_once =
            self.flows[place]
                .receiver
                .on_segment(self.now, segments(seq), stamps(packet).0);
        if at_once {
            self.acknowledge(place);
        }
    }

    fn acknowledge(&mut self, place: usize) {
        let (acked, blocks) = self.flows[place].receiver.acknowledge();
        let octets = |segments: u32| segments * PAYLOAD as u32;
        let blocks = blocks.into_iter();
        let blocks: Vec<(u32, u32)> = blocks
            .map(|(first, behind)| (octets(first), octets(behind)))
            .collect();
        self.offer_of_flow(1, place, (1, octets(acked)), (&blocks, 0));
    }

    /// Offers a packet of a flow, whether the queue has room or not.
    fn offer_of_flow(
        &mut self,
        from: usize,
        place: usize,
        (seq, ack): (u32, u32),
        (blocks, payload): (&[(u32, u32)], usize),
    ) {
        let flow = place as u16 + 1;
        let echo = self.flows[place].receiver.echo();
        let echo = if from == 1 { echo } else { self.stamp() };
        let packet = self.packet(from, (flow, echo), (seq, ack), (blocks, payload));
        // The pings have the hashes 10 and 11.
        self.peers[from].offer(self.now, 1, 16 + place as u8, &packet);
    }

    /// Segments that each flow has received in order.
    pub fn received_by_flows(&self) -> Vec<u32> {
        let flows = self.flows.iter();
        flows.map(|flow| flow.receiver.received()).collect()
    }

    /// Segments that all flows have received, in order or not.
    pub fn arrived_of_flows(&self) -> u32 {
        let flows = self.flows.iter();
        flows.map(|flow| flow.receiver.arrived()).sum()
    }

    /// Timeouts of all flows, and how many of them were taken back.
    pub fn timeouts_of_flows(&self) -> (u64, u64) {
        let timeouts = self.flows.iter().map(|flow| flow.sender.timeouts);
        timeouts.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    }

    /// A segment as Linux makes it, with stamps in milliseconds.
    fn segment(&mut self, from: usize, seq: u32, ack: u32, payload: usize) -> Vec<u8> {
        let stamp = self.stamp();
        self.packet(from, (0, stamp - stamp % 7), (seq, ack), (&[], payload))
    }

    /// The clock of both hosts, in milliseconds.
    fn stamp(&self) -> u32 {
        flow::stamp(self.now)
    }

    fn packet(
        &mut self,
        from: usize,
        (flow, echo): (u16, u32),
        (seq, ack): (u32, u32),
        (blocks, payload): (&[(u32, u32)], usize),
    ) -> Vec<u8> {
        let identification = self.identification[from];
        self.identification[from] = identification.wrapping_add(1);
        let stamp = self.stamp();
        let segment = Segment {
            from,
            flow,
            identification,
            seq,
            ack,
            stamp,
            echo,
            blocks,
            payload,
        };
        segment.octets()
    }
}
