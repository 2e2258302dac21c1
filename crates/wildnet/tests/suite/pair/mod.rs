//! Two ends and the path between them (rate, delay, losses, reordering), and a check of what arrives.
#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::{BTreeMap, VecDeque};

use chappe_core::{Bitrate, Duration, Instant, Purpose, Seed, Stream, Wake};
use chappe_wildnet::{Config, Link, Opportunity};

/// The path in one direction.
#[derive(Clone, Debug)]
pub struct Way {
    pub rate: Bitrate,
    pub delay: Duration,
    pub loss: f64,
    /// Mean run of losses; 0 for independent ones.
    pub burst: f64,
    /// Share of frames that are 6 ms late, and so reordered.
    pub late: f64,
    /// Most that a frame is late, uniformly from nothing.
    pub jitter: Duration,
    pub random: Stream,
    pub bad: bool,
    pub free_at: Instant,
    pub flying: BTreeMap<(Instant, u64), Vec<u8>>,
    pub count: u64,
}

impl Way {
    pub fn new(seed: u64, loss: f64) -> Way {
        Way {
            rate: Bitrate(6_000_000),
            delay: Duration::from_millis(10),
            loss,
            burst: 0.0,
            late: 0.0,
            jitter: Duration::ZERO,
            random: Seed(seed).stream(Purpose::Trial(7)),
            bad: false,
            free_at: Instant::ZERO,
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    fn send(&mut self, now: Instant, frame: &[u8]) {
        self.free_at = self.free_at.max(now) + self.rate.time_of(frame.len() as u64 * 8);
        let chance = match self.burst {
            0.0 => self.loss,
            burst if self.bad => 1.0 - 1.0 / burst,
            burst => self.loss / (burst * (1.0 - self.loss)),
        };
        self.bad = self.random.chance(chance);
        self.count += 1;
        if self.bad {
            return;
        }
        let mut at = self.free_at + self.delay;
        if self.random.chance(self.late) {
            at += Duration::from_millis(6);
        }
        if self.jitter > Duration::ZERO {
            at += self.jitter.mul_f64(self.random.fraction());
        }
        self.flying.insert((at, self.count), frame.to_vec());
    }
}

/// One end with its traffic.
pub struct End {
    pub link: Link,
    /// Packets to offer: time, class, flow, octets. A packet waits until the link has room.
    pub traffic: VecDeque<(Instant, usize, u8, Vec<u8>)>,
    /// Packets delivered: time, flow, octets.
    pub heard: Vec<(Instant, u8, Vec<u8>)>,
}

impl End {
    pub fn new(config: Config, epoch: u8) -> End {
        End {
            link: Link::new(config, epoch).unwrap(),
            traffic: VecDeque::new(),
            heard: Vec::new(),
        }
    }

    fn feed(&mut self, now: Instant) {
        while let Some((at, service, flow, packet)) = self.traffic.front() {
            if *at > now || self.link.room(*service) == 0 {
                return;
            }
            assert!(self.link.offer(now, *service, *flow, packet));
            self.traffic.pop_front();
        }
    }
}

/// Two ends with a path in each direction. Path `i` leads away from end `i`.
pub struct Pair {
    pub ends: [End; 2],
    pub ways: [Way; 2],
    pub now: Instant,
}

impl Pair {
    pub fn new(config: Config, ways: [Way; 2]) -> Pair {
        Pair {
            ends: [End::new(config, 3), End::new(config, 9)],
            ways,
            now: Instant::ZERO,
        }
    }

    /// Runs until `until`, or until `done`.
    pub fn run(&mut self, until: Instant, mut done: impl FnMut(&Pair) -> bool) {
        let mut frame = [0; 2400];
        while self.now < until && !done(self) {
            for i in 0..2 {
                let now = self.now;
                let (end, way) = (&mut self.ends[i], &mut self.ways[i]);
                end.link.handle_timeout(now);
                end.feed(now);
                while way.free_at <= now {
                    let Some(len) = end.link.poll(now, Opportunity::ALWAYS, &mut frame) else {
                        break;
                    };
                    way.send(now, &frame[..len]);
                    end.feed(now);
                }
            }
            self.now = self
                .next_moment()
                .min(until)
                .max(self.now + Duration::from_nanos(1));
            for i in 0..2 {
                let (way, end) = (&mut self.ways[1 - i], &mut self.ends[i]);
                while let Some(entry) = way.flying.first_entry() {
                    if entry.key().0 > self.now {
                        break;
                    }
                    let octets = entry.remove();
                    end.link.handle(self.now, &octets).unwrap();
                    while let Some(delivery) = end.link.deliver(&mut frame) {
                        end.heard
                            .push((self.now, delivery.flow, frame[..delivery.len].to_vec()));
                    }
                }
            }
        }
    }

    fn next_moment(&self) -> Instant {
        let flights = self
            .ways
            .iter()
            .filter_map(|way| way.flying.keys().next().map(|key| key.0));
        let wakes = self
            .ends
            .iter()
            .filter_map(|end| end.link.poll_timeout().map(|wake: Wake| wake.at));
        let traffic = self
            .ends
            .iter()
            .filter_map(|end| end.traffic.front().map(|next| next.0));
        let ways = (0..2)
            .filter(|&i| self.ends[i].link.wants(self.now))
            .map(|i| self.ways[i].free_at);
        let all = flights.chain(wakes).chain(traffic).chain(ways);
        all.filter(|&at| at > self.now)
            .min()
            .unwrap_or(self.now + Duration::from_millis(1))
    }
}

/// Packet `number` of a flow, of `len` octets. Its content follows from flow and number.
pub fn packet(flow: u8, number: u32, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len.max(8)];
    Seed(u64::from(number))
        .stream(Purpose::Traffic(flow.into()))
        .fill(&mut octets);
    octets[..4].copy_from_slice(&number.to_be_bytes());
    octets
}

/// Checks that every packet was sent, came once and, if `ordered`, in order within its flow; returns their number.
pub fn check(heard: &[(Instant, u8, Vec<u8>)], ordered: bool) -> usize {
    let mut last: BTreeMap<u8, u32> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for (_, flow, octets) in heard {
        let number = u32::from_be_bytes(octets[..4].try_into().unwrap());
        assert_eq!(
            *octets,
            packet(*flow, number, octets.len()),
            "a wrong packet"
        );
        assert!(
            seen.insert((*flow, number)),
            "packet {number} of flow {flow} came twice"
        );
        if ordered && let Some(before) = last.insert(*flow, number) {
            assert!(before < number, "flow {flow}: {number} after {before}");
        }
    }
    heard.len()
}
