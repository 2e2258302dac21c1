//! The cost of the engine alone: two peers in one thread, in virtual time, without sockets or devices. The sender always has
//! packets. Sealing and opening are included; system calls and wake-ups are not (`--example ceiling` has both).
//!
//! `cargo run --release -p chappe-link --example engine [PACKETS]` measures without losses, and with three frames of ten lost
//! and a deadline too near for a repeat, so that every block gets its repairs at once, about as many as it has packets
//! (K = R). Each number is the least of several runs, since other load only adds to it.

use std::collections::VecDeque;
use std::time::Instant as Watch;

use chappe_core::{Bitrate, Duration, Instant, Purpose, Seed, Stream};
use chappe_link::{Gate, IDLE_KEEPALIVE, PROTOCOL, Peer, PeerConfig, Secret};
use chappe_sys::Endpoint;
use chappe_testkit::Words;
use chappe_wildnet::Service;

const DELAY: Duration = Duration::from_millis(2);
const RATE: Bitrate = Bitrate(500_000_000);
const PACKET: usize = 1400;
const RUNS: usize = 7;

fn main() {
    let mut words = Words::of_process("engine [PACKETS]");
    let packets = words.next("number of packets").unwrap_or(40_000);
    words.end();
    println!("losses | repairs and repeats for a packet | us for a packet: sender, receiver");
    for loss in [0.0, 0.3] {
        let runs: Vec<Run> = (0..RUNS).map(|_| run(loss, packets)).collect();
        let least = |side: usize| {
            let each = runs.iter().map(|run| run.micros[side]);
            each.fold(f64::INFINITY, f64::min)
        };
        let (repairs, repeats) = (runs[0].repairs, runs[0].repeats);
        println!(
            "{:4.0} % | {repairs:.2} and {repeats:.2} | {:.2}, {:.2}",
            loss * 100.0,
            least(0),
            least(1)
        );
    }
}

struct Run {
    repairs: f64,
    repeats: f64,
    /// For each packet that was delivered.
    micros: [f64; 2],
}

/// Two ends, what flies between them, and the time that each has taken.
struct Pair {
    ends: [End; 2],
    flying: VecDeque<(Instant, usize, Vec<u8>)>,
    spent: [std::time::Duration; 2],
    random: Stream,
    loss: f64,
    delivered: u64,
}

fn run(loss: f64, packets: u64) -> Run {
    let mut pair = Pair {
        ends: [0, 1].map(end),
        flying: VecDeque::new(),
        spent: [std::time::Duration::ZERO; 2],
        random: Seed(1).stream(Purpose::Reception),
        loss,
        delivered: 0,
    };
    let (mut now, mut buffer) = (Instant::ZERO, vec![0; 1 << 16]);
    let packet = packet();
    let mut begin = None;
    while pair.delivered < packets {
        if pair.delivered >= packets / 10 && begin.is_none() {
            begin = Some((pair.delivered, *pair.ends[0].peer.link().counters()));
            pair.spent = Default::default();
        }
        pair.load(now, &packet);
        pair.send(now, &mut buffer);
        now = pair.next(now);
        pair.receive(now, &mut buffer);
    }
    let (first, before) = begin.unwrap_or_default();
    let after = pair.ends[0].peer.link().counters();
    let bodies = (after.bodies - before.bodies) as f64;
    let each = (pair.delivered - first) as f64;
    Run {
        repairs: (after.repairs + after.fills - before.repairs - before.fills) as f64 / bodies,
        repeats: (after.repeats - before.repeats) as f64 / bodies,
        micros: pair.spent.map(|spent| spent.as_secs_f64() * 1e6 / each),
    }
}

fn endpoint(host: usize) -> Endpoint {
    Endpoint::Udp(([192, 0, 2, host as u8], 1795).into())
}

/// A host and its only peer.
struct End {
    gate: Gate,
    peer: Peer,
}

fn end(host: usize) -> End {
    let service = Service {
        // Nothing can be asked for again in time.
        deadline: Some(DELAY),
        residual: 1e-3,
        ..Service::RELIABLE
    };
    let config = PeerConfig {
        name: "other".into(),
        public: Secret::new([2 - host as u8; 32]).public(),
        psk: None,
        endpoint: Some(endpoint(1 - host)),
        networks: Vec::new(),
        datagram_max: 1472,
        below: 42,
        rate: Some(RATE),
        services: [service; 4],
        queue: Duration::from_millis(100),
        keepalive: IDLE_KEEPALIVE,
        paths: Vec::new(),
    };
    let gate = Gate::new(
        PROTOCOL,
        Secret::new([1 + host as u8; 32]),
        [3 + host as u8; 32],
    );
    let peer = Peer::new(config, &gate, 0, host as u64 + 1, [5 + host as u8; 32]);
    let peer = peer.unwrap_or_else(|error| panic!("{error}"));
    End { gate, peer }
}

/// A datagram of UDP, as the host would hand it over.
fn packet() -> Vec<u8> {
    let mut packet = vec![0; PACKET];
    packet[..4].copy_from_slice(&[0x45, 0, (PACKET >> 8) as u8, PACKET as u8]);
    packet[8..10].copy_from_slice(&[64, 17]);
    packet
}

impl Pair {
    /// Calls an end and adds up the time that it takes.
    fn timed<T>(&mut self, host: usize, call: impl FnOnce(&mut End) -> T) -> T {
        let watch = Watch::now();
        let result = call(&mut self.ends[host]);
        self.spent[host] += watch.elapsed();
        result
    }

    /// Keeps packets waiting at the sender.
    fn load(&mut self, now: Instant, packet: &[u8]) {
        while self.ends[0].peer.waiting() < 64 {
            self.timed(0, |end| end.peer.offer(now, 1, 1, packet));
        }
    }

    fn send(&mut self, now: Instant, buffer: &mut [u8]) {
        for host in [0, 1] {
            while let Some((len, _)) = self.timed(host, |end| end.peer.poll(now, buffer)) {
                if !self.random.chance(self.loss) {
                    let datagram = buffer[..len].to_vec();
                    self.flying.push_back((now + DELAY, 1 - host, datagram));
                }
            }
        }
    }

    fn next(&self, now: Instant) -> Instant {
        let arrives = self.flying.front().map(|flying| flying.0);
        let wakes = self.ends.iter().filter_map(|end| end.peer.deadline(now));
        let next = wakes.chain(arrives).min();
        next.unwrap_or(now).max(now + Duration::from_nanos(1))
    }

    fn receive(&mut self, now: Instant, buffer: &mut [u8]) {
        while self.flying.front().is_some_and(|flying| flying.0 <= now) {
            let Some((_, to, mut datagram)) = self.flying.pop_front() else {
                return;
            };
            self.timed(to, |End { gate, peer }| {
                let from = endpoint(1 - to);
                peer.handle(now, gate, from, &mut datagram, &mut [0; 256])
            })
            .ok();
            while self.timed(to, |end| end.peer.deliver(buffer)).is_some() {
                self.delivered += 1;
            }
        }
    }
}
