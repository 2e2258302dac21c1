//! A simple air for long links: delays, losses, half-duplex radios, drifting clocks, collisions.
#![allow(dead_code, reason = "each test program uses a part")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chappe_core::{
    Duration, Instant, Mode, Purpose, RadioEvent, RadioNode, RadioRequest, Rate, Reception, Seed,
    Stream,
};

/// Octets of the check sequence, which the radio adds.
const FCS: usize = 4;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The end of a frame reaches a receiver: receiver, transmission.
    End(usize, usize),
    /// A transmission begins: node, transmission.
    Begin(usize, usize),
    /// A node's transmission ends.
    Sent(usize),
    /// A node's timer may have expired.
    Wake(usize),
    /// The test inspects the nodes.
    Look,
}

struct Frame {
    psdu: Vec<u8>,
    mode: Mode,
    begin: u64,
    end: u64,
}

/// A path from one radio to another.
#[derive(Clone, Copy)]
pub struct Path {
    pub from: usize,
    pub to: usize,
    pub delay: Duration,
    pub loss: f64,
}

/// Radios and the air between them. Times are the air's, in nanoseconds.
pub struct Air<N> {
    pub nodes: Vec<N>,
    pub paths: Vec<Path>,
    /// For each node how fast its clock runs, in parts per billion, and its offset in nanoseconds.
    pub drift: Vec<(i64, u64)>,
    pub now: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    frames: Vec<Frame>,
    /// When to wake each node; other wake-ups are outdated.
    wake_at: Vec<u64>,
    /// (from, to) of the latest own transmission, and recent arrivals.
    on_air: Vec<(u64, u64)>,
    arriving: Vec<Vec<(u64, u64, usize)>>,
    random: Stream,
}

impl<N: RadioNode> Air<N> {
    pub fn new(nodes: Vec<N>, paths: Vec<Path>, seed: u64) -> Air<N> {
        let n = nodes.len();
        let mut air = Air {
            nodes,
            paths,
            drift: (0..n).map(|i| (0, 1_000 * i as u64)).collect(),
            now: 0,
            queue: BinaryHeap::new(),
            count: 0,
            frames: Vec::new(),
            wake_at: vec![0; n],
            on_air: vec![(0, 0); n],
            arriving: vec![Vec::new(); n],
            random: Seed(seed).stream(Purpose::Reception),
        };
        (0..n).for_each(|i| air.push(0, Event::Wake(i)));
        air
    }

    pub fn local(&self, node: usize, at: u64) -> Instant {
        let (ppb, offset) = self.drift[node];
        let drifted = at as i128 + at as i128 * i128::from(ppb) / 1_000_000_000;
        Instant::from_nanos(drifted as u64 + offset)
    }

    fn global(&self, node: usize, local: Instant) -> u64 {
        let (ppb, offset) = self.drift[node];
        let local = local.nanos().saturating_sub(offset);
        let mut at = (i128::from(local) * 1_000_000_000 / (1_000_000_000 + i128::from(ppb))) as u64;
        while self.local(node, at) < Instant::from_nanos(local + offset) {
            at += 1;
        }
        at
    }

    fn push(&mut self, at: u64, event: Event) {
        self.count += 1;
        self.queue
            .push(Reverse((at.max(self.now), self.count, event)));
    }

    /// Calls `act` on a node, as an application would, and serves the node.
    pub fn with<T>(&mut self, node: usize, act: impl FnOnce(&mut N, Instant) -> T) -> T {
        let now = self.local(node, self.now);
        let result = act(&mut self.nodes[node], now);
        self.nodes[node].handle_timeout(now);
        self.serve(node);
        result
    }

    /// Runs until `until` of the air's time; `look` is called each `every`.
    pub fn run(&mut self, until: Duration, every: Duration, mut look: impl FnMut(&mut Air<N>)) {
        self.push(self.now, Event::Look);
        while let Some(Reverse((at, _, event))) = self.queue.pop() {
            if at > until.nanos() {
                self.now = until.nanos();
                self.push(at, event);
                return;
            }
            self.now = at;
            match event {
                Event::Look => {
                    look(self);
                    self.push(self.now + every.nanos(), Event::Look);
                }
                Event::Wake(node) if self.wake_at[node] != at => {}
                Event::Wake(node) => {
                    self.wake_at[node] = u64::MAX;
                    let now = self.local(node, at);
                    self.nodes[node].handle_timeout(now);
                    self.serve(node);
                }
                Event::Sent(node) => {
                    let now = self.local(node, at);
                    self.nodes[node].handle_radio(now, RadioEvent::Sent);
                    self.serve(node);
                }
                Event::Begin(node, frame) => self.begin(node, frame),
                Event::End(node, frame) => self.end(node, frame),
            }
        }
    }

    fn serve(&mut self, node: usize) {
        let mut psdu = [0; 2400];
        let now = self.local(node, self.now);
        while let Some(request) = self.nodes[node].poll_radio(now, &mut psdu) {
            let RadioRequest::Transmit(transmit) = request else {
                continue;
            };
            let begin = self.global(node, transmit.at).max(self.now);
            let end = begin + transmit.airtime(FCS).nanos();
            let frame = Frame {
                psdu: psdu[..transmit.len].to_vec(),
                mode: transmit.mode,
                begin,
                end,
            };
            self.frames.push(frame);
            self.push(begin, Event::Begin(node, self.frames.len() - 1));
        }
        if let Some(wake) = self.nodes[node].poll_timeout() {
            let at = self.global(node, wake.at).max(self.now);
            if self.wake_at[node] != at {
                self.wake_at[node] = at;
                self.push(at, Event::Wake(node));
            }
        }
    }

    fn begin(&mut self, node: usize, frame: usize) {
        let (begin, end) = (self.frames[frame].begin, self.frames[frame].end);
        self.on_air[node] = (begin, end);
        self.push(end, Event::Sent(node));
        for path in self.paths.clone() {
            if path.from == node {
                let (from, to) = (begin + path.delay.nanos(), end + path.delay.nanos());
                let lost = self.random.chance(path.loss);
                let arriving = &mut self.arriving[path.to];
                arriving.retain(|&(_, end, _)| end + 100_000_000 > begin);
                arriving.push((from, to, frame));
                if !lost {
                    self.push(to, Event::End(path.to, frame));
                }
            }
        }
    }

    fn end(&mut self, node: usize, frame: usize) {
        let all = &self.arriving[node];
        let &(from, to, _) = all.iter().find(|arrival| arrival.2 == frame).unwrap();
        let overlaps = |begin: u64, end: u64| begin < to && end > from;
        let collided = all
            .iter()
            .any(|&(begin, end, other)| other != frame && overlaps(begin, end));
        let (begin, end) = self.on_air[node];
        if collided || overlaps(begin, end) {
            return;
        }
        let started = self.local(node, from);
        let now = self.local(node, self.now);
        let Frame { psdu, mode, .. } = &self.frames[frame];
        let reception = Reception {
            psdu,
            started,
            mode: *mode,
            power: None,
        };
        self.nodes[node].handle_radio(now, RadioEvent::Received(reception));
        self.serve(node);
    }
}

/// The mode of all data frames.
pub fn mode() -> Mode {
    Mode::long(Rate::Cck11)
}

/// Propagation delay over `km` kilometres.
pub fn light(km: f64) -> Duration {
    Duration::from_secs_f64(km / 299_792.458)
}
