//! A bad network between two hosts: it delays, loses, duplicates, reorders, corrupts and marks packets, by seed.

use chappe_core::{Duration, HostNode, Instant, Purpose, Seed, Stream, Wake};

use super::host::Host;

/// The faults of the network, as probabilities per packet.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub loss: f64,
    pub duplicate: f64,
    pub reorder: f64,
    pub corrupt: f64,
    pub mark: f64,
    /// One-way delay, and the largest additional delay of a reordered packet.
    pub delay: Duration,
    pub jitter: Duration,
    /// Transmission time of an octet in each direction; packets queue for it.
    pub octet: Duration,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            mark: 0.0,
            delay: Duration::from_millis(40),
            jitter: Duration::from_millis(80),
            octet: Duration::ZERO,
        }
    }
}

struct Flying {
    at: Instant,
    order: u64,
    to: usize,
    packet: Vec<u8>,
}

/// The link between two hosts: packets in flight, and their faults.
pub struct Air {
    pub faults: Faults,
    random: Stream,
    flying: Vec<Flying>,
    /// Until when each direction is busy.
    busy: [Instant; 2],
    count: u64,
}

impl Air {
    pub fn new(faults: Faults, seed: u64) -> Air {
        Air {
            faults,
            random: Seed(seed).stream(Purpose::Fault),
            flying: Vec::new(),
            busy: [Instant::ZERO; 2],
            count: 0,
        }
    }

    /// Takes a packet to host `to`.
    pub fn fly(&mut self, now: Instant, to: usize, mut packet: Vec<u8>) {
        let faults = self.faults;
        let lost = self.random.chance(faults.loss);
        let twice = self.random.chance(faults.duplicate);
        let late = self.random.chance(faults.reorder);
        let bent = self.random.chance(faults.corrupt);
        let marked = self.random.chance(faults.mark);
        let jitter = faults.jitter.nanos().max(1);
        if bent {
            let bit = self.random.below(packet.len() as u64 * 8);
            packet[bit as usize / 8] ^= 1 << (bit % 8);
        }
        if marked {
            super::ip::mark(&mut packet);
        }
        let start = self.busy[to].max(now);
        let left = start + faults.octet * packet.len() as u64;
        self.busy[to] = left;
        if lost {
            return;
        }
        for copy in 0..1 + u64::from(twice) {
            let mut at = left + faults.delay;
            if late || copy > 0 {
                at += Duration::from_nanos(self.random.below(jitter));
            }
            self.count += 1;
            let (order, packet) = (self.count, packet.clone());
            self.flying.push(Flying {
                at,
                order,
                to,
                packet,
            });
        }
    }

    /// When the next packet arrives.
    pub fn next(&self) -> Option<Instant> {
        self.flying.iter().map(|flying| flying.at).min()
    }

    /// The next packet that has arrived, and its host.
    pub fn land(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        let key = |flying: &Flying| (flying.at, flying.order);
        let landed = self
            .flying
            .iter()
            .enumerate()
            .filter(|(_, flying)| flying.at <= now);
        let (index, _) = landed.min_by_key(|(_, flying)| key(flying))?;
        let flying = self.flying.swap_remove(index);
        Some((flying.to, flying.packet))
    }
}

/// Two hosts and the packets between them, in virtual time.
pub struct Network {
    pub hosts: [Host; 2],
    pub now: Instant,
    pub air: Air,
    pub packets: u64,
    pub octets: u64,
    /// A digest of all packets and their times.
    pub digest: u64,
    steps: u64,
    /// Print every packet, to debug a failure.
    pub verbose: bool,
}

/// A run with more steps than this is in a loop.
const STEPS_MAX: u64 = 3_000_000;

impl Network {
    pub fn new(hosts: [Host; 2], faults: Faults, seed: u64) -> Network {
        Network {
            hosts,
            now: Instant::from_millis(1),
            air: Air::new(faults, seed),
            packets: 0,
            octets: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            steps: 0,
            verbose: false,
        }
    }

    /// Takes the hosts' packets and puts them on the link.
    pub fn drain(&mut self) {
        for from in 0..2 {
            let mut buffer = [0; 2048];
            while let Some(len) = self.hosts[from].poll_packet(self.now, &mut buffer) {
                self.steps += 1;
                assert!(self.steps < STEPS_MAX, "the run does not end");
                self.record(from, &buffer[..len]);
                self.air.fly(self.now, 1 - from, buffer[..len].to_vec());
            }
        }
    }

    fn record(&mut self, from: usize, packet: &[u8]) {
        if self.verbose {
            let segment = super::ip::parse(packet).map(|packet| packet.segment);
            if let Some(Ok(segment)) = segment.map(chappe_tcplp::tcp::Segment::parse) {
                println!(
                    "{} {from} {segment} {:?}",
                    self.now,
                    segment.options.sack.as_slice()
                );
            }
        }
        self.packets += 1;
        self.octets += packet.len() as u64;
        let time = self.now.nanos().to_le_bytes();
        for octet in time.iter().chain(&[from as u8]).chain(packet) {
            self.digest = (self.digest ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// The time of the next event.
    fn next(&self) -> Option<Instant> {
        let air = self.air.next();
        let hosts = self.hosts.iter().map(HostNode::poll_timeout);
        let wake = hosts.fold(None, Wake::earlier).map(|wake| wake.at);
        [air, wake].into_iter().flatten().min()
    }

    /// Processes the next event, if it is not after `limit`. False if there is none.
    pub fn step(&mut self, limit: Instant) -> bool {
        self.step_with(limit, |_, _| {})
    }

    /// The same with applications that serve their sockets after each packet and before anything is sent, so that an
    /// acknowledgement already offers the room that reading makes.
    pub fn step_with(
        &mut self,
        limit: Instant,
        mut application: impl FnMut(usize, &mut Host),
    ) -> bool {
        self.drain();
        let Some(next) = self.next().filter(|&at| at <= limit) else {
            return false;
        };
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "the run does not end");
        self.now = self.now.max(next);
        while let Some((to, packet)) = self.air.land(self.now) {
            self.hosts[to].handle_packet(self.now, &packet);
            application(to, &mut self.hosts[to]);
            self.drain();
        }
        for host in &mut self.hosts {
            host.handle_timeout(self.now);
        }
        self.drain();
        for wake in self.hosts.iter().filter_map(HostNode::poll_timeout) {
            assert!(wake.at > self.now, "{wake:?} is not after {}", self.now);
        }
        true
    }
}
