//! How fast P³'s traffic is: stages of relays that repeat a packet together, two groups that take turns, four channels.
//!
//! Scenario: 139 nodes at random with about 20 good neighbours each, a source in one corner, the farthest node as the
//! destination, up to eight node-distinct shortest paths in between; 500 packets of 127 octets,
//! one each 4.537 ms. A relay repeats a packet of its group one turnaround (281 us) after it has heard it, on the next
//! stage's channel; frames of the other group or another stage it gives up at the header. Nodes without a part sleep.
//! No wake-up, no NACKs: the transfer's data only, which is what costs.
//!
//! ```text
//! cargo bench -p chappe-sim --bench pipeline
//! ```

use std::time::Instant as Wall;

use chappe_core::{
    Channel, Duration, Instant, Mode, RadioEvent, RadioNode, RadioRequest, Rate, Seed, Transmit,
    Wake,
};
use chappe_sim::{AirTime, Medium, Profile, Simulator, World, topology};
use chappe_testkit::processor::thread_time;

const MODE: Mode = Mode::long(Rate::Oqpsk250);
const CHANNELS: [u8; 4] = [15, 26, 20, 25];
const CYCLE: Duration = Duration::from_micros(4537);
const GAP: Duration = Duration::from_micros(281);
const PACKETS: u64 = 500;
const OCTETS: usize = 125;
const PATHS: usize = 8;

/// What a node does in the transfer.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Asleep,
    Source,
    /// A relay, with its stage and group.
    Relay(u8, u8),
    Destination(u8),
}

struct Node {
    part: Part,
    next: Instant,
    count: u64,
    due: Option<(Instant, [u8; 3])>,
    requests: Vec<RadioRequest>,
    received: u64,
}

fn channel(stage: u8) -> Channel {
    Channel(CHANNELS[usize::from(stage - 1) % 4])
}

impl Node {
    fn new(part: Part) -> Node {
        let mut requests = Vec::new();
        match part {
            Part::Asleep => requests.push(RadioRequest::Listen(false)),
            Part::Source => requests.push(RadioRequest::Tune(channel(1))),
            Part::Relay(stage, _) | Part::Destination(stage) => {
                requests.push(RadioRequest::Tune(channel(stage)));
                requests.push(RadioRequest::Peek(7));
            }
        }
        let next = match part {
            Part::Source => Instant::from_millis(10),
            _ => Instant::MAX,
        };
        Node {
            part,
            next,
            count: 0,
            due: None,
            requests,
            received: 0,
        }
    }

    /// Whether a frame of `hop` and packet `number` is for this node.
    fn wants(&self, hop: u8, number: u8) -> bool {
        match self.part {
            Part::Relay(stage, group) => hop + 1 == stage && number % 2 == group,
            Part::Destination(stage) => hop + 1 == stage,
            _ => false,
        }
    }
}

impl RadioNode for Node {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        match event {
            RadioEvent::Head(head) if !self.wants(head.octets[0], head.octets[1]) => {
                self.requests.push(RadioRequest::Abort);
            }
            RadioEvent::Received(heard) if self.wants(heard.psdu[0], heard.psdu[1]) => {
                self.received += 1;
                if let Part::Relay(stage, _) = self.part {
                    self.requests.push(RadioRequest::Tune(channel(stage + 1)));
                    self.due = Some((now + GAP, [stage, heard.psdu[1], heard.psdu[2]]));
                }
            }
            RadioEvent::Sent => {
                if let Part::Relay(stage, _) = self.part {
                    self.requests.push(RadioRequest::Tune(channel(stage)));
                }
            }
            _ => {}
        }
    }

    fn poll_radio(&mut self, _: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        if let Some(request) = self.requests.pop() {
            return Some(request);
        }
        let (at, front) = self.due.take()?;
        psdu[..OCTETS].fill(7);
        psdu[..3].copy_from_slice(&front);
        Some(RadioRequest::Transmit(Transmit {
            at,
            len: OCTETS,
            mode: MODE,
            power: None,
        }))
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next {
            let [low, high, ..] = self.count.to_le_bytes();
            self.due = Some((self.next, [0, low, high]));
            self.count += 1;
            self.next = if self.count < PACKETS {
                self.next + CYCLE
            } else {
                Instant::MAX
            };
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Some(Wake {
            at: self.next,
            why: "next packet",
        })
    }
}

/// Each node's hops from `from` over links that are good both ways.
fn hops(good: &[Vec<usize>], from: usize) -> Vec<usize> {
    let mut hops = vec![usize::MAX; good.len()];
    hops[from] = 0;
    let mut reached = vec![from];
    let mut place = 0;
    while let Some(&at) = reached.get(place) {
        place += 1;
        for &next in &good[at] {
            if hops[next] == usize::MAX {
                hops[next] = hops[at] + 1;
                reached.push(next);
            }
        }
    }
    hops
}

/// Source, destination and relays by shortest paths.
fn parts(medium: &Medium) -> (Vec<Part>, usize, usize) {
    let nodes = medium.nodes();
    let prr = |a, b| {
        medium
            .prr(a, b, MODE, OCTETS + 2)
            .min(medium.prr(b, a, MODE, OCTETS + 2))
    };
    let good: Vec<Vec<usize>> = (0..nodes)
        .map(|a| {
            (0..nodes)
                .filter(|&b| a != b && prr(a, b) > 0.9999)
                .collect()
        })
        .collect();
    let corner = |i: &usize| {
        let at = medium.positions()[*i];
        (at.x + at.y) as u64
    };
    let source = (0..nodes).min_by_key(corner).unwrap_or(0);
    let out = hops(&good, source);
    let reached = |i: &usize| out[*i] != usize::MAX;
    let destination = (0..nodes)
        .filter(reached)
        .max_by_key(|&i| out[i])
        .unwrap_or(0);
    let last = out[destination];
    let mut parts = vec![Part::Asleep; nodes];
    parts[source] = Part::Source;
    parts[destination] = Part::Destination(last as u8);
    // Node-distinct shortest paths, greedily from the end; they take turns between the groups.
    for path in 0..PATHS {
        let mut found = vec![destination];
        while let Some(&at) = found.last()
            && out[at] > 1
            && let Some(&next) = good[at]
                .iter()
                .find(|&&next| out[next] + 1 == out[at] && parts[next] == Part::Asleep)
        {
            found.push(next);
        }
        for &node in &found[1..] {
            parts[node] = Part::Relay(out[node] as u8, (path % 2) as u8);
        }
    }
    let degree = good.iter().map(Vec::len).sum::<usize>() / nodes;
    (parts, destination, degree)
}

fn run(name: &str, side: f64, seed: u64) {
    let seed = Seed(seed);
    let positions = topology::random(139, side, side, seed);
    let mut profile = Profile::named(name).expect("a profile");
    // All channels alike: the stages were chosen on one.
    if let Some(radio) = &mut profile.dot15d4 {
        radio.selectivity = None;
    }
    let medium = Medium::geometric(&positions, &profile, seed).expect("a medium");
    let (parts, destination, degree) = parts(&medium);
    let relays = parts
        .iter()
        .filter(|part| matches!(part, Part::Relay(..)))
        .count();
    let nodes = parts
        .iter()
        .map(|&part| Box::new(Node::new(part)))
        .collect();
    let mut simulator = Simulator::new(World::new(medium), nodes, seed, ()).expect("a run");
    let span = CYCLE * (PACKETS + 8);
    let (wall, cpu) = (Wall::now(), thread_time());
    simulator.run_until(AirTime::ZERO + span);
    let cpu = thread_time().zip(cpu).map(|(now, then)| now - then);
    let spent = cpu.unwrap_or(wall.elapsed()).as_secs_f64();
    let Part::Destination(stages) = parts[destination] else {
        return;
    };
    println!(
        "{name:>14} seed {} | degree {degree}, {stages} hops, {relays} relays | {:>7.1} sim s / CPU s | {} frames, {} events | {} of {PACKETS} delivered | {:016x}",
        seed.0,
        span.as_secs_f64() / spent,
        simulator.counters().frames,
        simulator.counters().events,
        simulator.node(destination).received,
        simulator.digest(),
    );
}

fn main() {
    for seed in 1..=4 {
        run("cc2420-indoor", 260.0, seed);
    }
}
