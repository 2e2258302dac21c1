//! A lossy broadcast medium without a MAC: one transmission at a time, losses drawn from a seed, and sources that always
//! have something to send.
#![allow(dead_code, reason = "each test takes of it what it needs")]

pub mod bench;

use chappe_core::{
    Address, Arrival, Caps, Class, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome,
    Purpose, Seed, Stream,
};
use chappe_dpclo::{Delivery, Losses, Refused, Router, Settings};

/// Attempts that the link makes for a unicast frame (802.11's short retry limit).
const ATTEMPTS: u8 = 7;

/// The same without overhearing.
pub const DEAF: Caps = Caps {
    overhears: false,
    ..CAPS
};

pub const CAPS: Caps = Caps {
    frame_max: 2296,
    schedules: false,
    start_error: Duration::ZERO,
    reports_power: false,
    overhears: true,
    confirms_broadcast: true,
    hastens: false,
};

/// A flow whose source always has a packet ready.
#[derive(Clone, Copy)]
pub struct Flow {
    pub source: u16,
    pub sink: u16,
    pub name: u16,
    pub octets: usize,
    pub begin: Instant,
    pub end: Instant,
}

impl Flow {
    /// 200-octet packets from 30 s on, when the routes are there.
    pub fn new(source: u16, sink: u16) -> Flow {
        Flow {
            source,
            sink,
            name: 1,
            octets: 200,
            begin: Instant::from_millis(30_000),
            end: Instant::MAX,
        }
    }
}

/// A packet that arrived, and when.
#[derive(Clone, Copy, Debug)]
pub struct Got {
    pub at: Instant,
    pub node: u16,
    pub delivery: Delivery,
    /// Since it was accepted.
    pub delay: Duration,
}

pub struct Mesh {
    pub nodes: Vec<Router>,
    pub now: Instant,
    pub flows: Vec<Flow>,
    pub got: Vec<Got>,
    pub frames: u64,
    /// Whether acknowledgements are lost as frames are.
    pub lossy_acks: bool,
    /// Whether the more urgent class always goes first.
    pub prioritised: bool,
    /// Packets that may wait for one destination.
    limit: u16,
    /// Nodes that are switched off.
    pub off: Vec<bool>,
    /// Delivery ratios, 0 to 1: `ratio[from][to]`.
    ratio: Vec<Vec<f64>>,
    random: Stream,
}

impl Mesh {
    /// Nodes 0 to n-1 with links `(a, b, ratio)` in both directions.
    pub fn new(settings: Settings, n: u16, links: &[(u16, u16, f64)], seed: u64) -> Mesh {
        let count = usize::from(n);
        let mut ratio = vec![vec![0.0; count]; count];
        for &(a, b, p) in links {
            ratio[usize::from(a)][usize::from(b)] = p;
            ratio[usize::from(b)][usize::from(a)] = p;
        }
        Mesh {
            nodes: (0..n)
                .map(|me| router(settings, me, 0, Instant::ZERO, seed))
                .collect(),
            now: Instant::ZERO,
            flows: vec![],
            got: vec![],
            frames: 0,
            lossy_acks: false,
            prioritised: true,
            limit: settings.queues.limit,
            off: vec![false; count],
            ratio,
            random: Seed(seed).stream(Purpose::Reception),
        }
    }

    pub fn cut(&mut self, a: u16, b: u16) {
        self.ratio[usize::from(a)][usize::from(b)] = 0.0;
        self.ratio[usize::from(b)][usize::from(a)] = 0.0;
    }

    /// Sets the delivery ratio of a link, in both directions.
    pub fn link(&mut self, a: u16, b: u16, ratio: f64) {
        self.ratio[usize::from(a)][usize::from(b)] = ratio;
        self.ratio[usize::from(b)][usize::from(a)] = ratio;
    }

    /// A node broadcasts a frame that its router has not written.
    pub fn say(&mut self, from: u16, sdu: &[u8]) {
        let mut heard = vec![false; self.nodes.len()];
        self.spread(usize::from(from), Address::BROADCAST, sdu, &mut heard);
    }

    /// Replaces a node by one that knows nothing.
    pub fn restart(&mut self, settings: Settings, me: u16, epoch: u8) {
        self.nodes[usize::from(me)] = router(settings, me, epoch, self.now, 99);
        self.off[usize::from(me)] = false;
    }

    pub fn run_until(&mut self, end: Instant) {
        while self.now < end {
            self.serve();
            let waiting: Vec<usize> = (0..self.nodes.len())
                .filter(|&n| !self.off[n] && !self.nodes[n].pending().is_empty())
                .collect();
            match self.pick(&waiting) {
                Some(sender) => self.transmit(sender),
                None => self.now = self.next_deadline().min(end),
            }
        }
    }

    pub fn seconds(&mut self, seconds: u64) {
        self.run_until(self.now + Duration::from_secs(seconds));
    }

    fn next_deadline(&self) -> Instant {
        let live = (0..self.nodes.len()).filter(|&n| !self.off[n]);
        let wakes = live
            .filter_map(|n| self.nodes[n].poll_timeout())
            .map(|wake| wake.at);
        let begins = self
            .flows
            .iter()
            .map(|flow| flow.begin)
            .filter(|&at| at > self.now);
        wakes
            .chain(begins)
            .min()
            .unwrap_or(Instant::MAX)
            .max(self.now + Duration::from_nanos(1))
    }

    /// Deadlines, offers and deliveries.
    fn serve(&mut self) {
        for n in 0..self.nodes.len() {
            if self.off[n] {
                continue;
            }
            let due = self.nodes[n]
                .poll_timeout()
                .is_some_and(|wake| wake.at <= self.now);
            if due {
                self.nodes[n].handle_timeout(self.now);
            }
        }
        for flow in self.flows.clone() {
            let node = &mut self.nodes[usize::from(flow.source)];
            if self.off[usize::from(flow.source)] || self.now < flow.begin || self.now >= flow.end {
                continue;
            }
            let mut payload = vec![flow.source as u8; flow.octets];
            payload[..8].copy_from_slice(&self.now.nanos().to_be_bytes());
            // One at a time and not when the queue is full: the application waits for room.
            let room = node.queue(flow.sink) < self.limit;
            if room
                && matches!(
                    node.offer(self.now, flow.sink, flow.name, &payload),
                    Ok(()) | Err(Refused::Rate { .. })
                )
            {
                node.handle_timeout(self.now);
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        let mut buffer = [0; 2304];
        for node in &mut self.nodes {
            while let Some(delivery) = node.poll_delivery(&mut buffer) {
                let offered = u64::from_be_bytes(buffer[..8].try_into().unwrap());
                let delay = self.now.saturating_since(Instant::from_nanos(offered));
                self.got.push(Got {
                    at: self.now,
                    node: node.number(),
                    delivery,
                    delay,
                });
            }
        }
    }

    fn pick(&mut self, waiting: &[usize]) -> Option<usize> {
        if waiting.is_empty() {
            return None;
        }
        let urgency = |n: &usize| self.nodes[*n].pending().most_urgent();
        let top = waiting.iter().map(urgency).max()?;
        let among: Vec<usize> = match self.prioritised {
            true => waiting
                .iter()
                .copied()
                .filter(|n| urgency(n) == top)
                .collect(),
            false => waiting.to_vec(),
        };
        Some(among[self.random.below(among.len() as u64) as usize])
    }

    fn transmit(&mut self, sender: usize) {
        let mut buffer = vec![0; 2304];
        let Some(send) = self.nodes[sender].poll_link(self.now, Classes::ALL, &mut buffer) else {
            return;
        };
        let sdu = &buffer[..send.len];
        let (mut outcome, mut attempts) = (Outcome::Unconfirmed, 0);
        let target = send.to.node_number().map(usize::from);
        // The MAC hands a frame up once, however often it was repeated.
        let mut heard = vec![false; self.nodes.len()];
        loop {
            attempts += 1;
            self.frames += 1;
            self.now += Duration::from_micros(400 + 4 * sdu.len() as u64);
            self.spread(sender, send.to, sdu, &mut heard);
            let Some(target) = target else { break };
            let back = if self.lossy_acks {
                self.ratio[target][sender]
            } else {
                1.0
            };
            if heard[target] && self.random.chance(back) {
                outcome = Outcome::Acknowledged { attempts };
                break;
            }
            if attempts == ATTEMPTS {
                outcome = Outcome::Failed { attempts };
                break;
            }
        }
        let token = send.token;
        self.nodes[sender].handle_link(self.now, LinkEvent::Sent { token, outcome });
    }

    fn spread(&mut self, sender: usize, to: Address, sdu: &[u8], heard: &mut [bool]) {
        let from = Address::node(sender as u16);
        for listener in (0..self.nodes.len()).filter(|&listener| listener != sender) {
            if !self.random.chance(self.ratio[sender][listener]) || self.off[listener] {
                continue;
            }
            if !std::mem::replace(&mut heard[listener], true) {
                let arrival = Arrival {
                    from,
                    to,
                    sdu,
                    power: None,
                };
                self.nodes[listener].handle_link(self.now, LinkEvent::Received(arrival));
            }
        }
    }

    /// Packets a second of a flow from `begin` to now.
    pub fn rate(&self, source: u16, begin: Instant) -> f64 {
        let since = self
            .got
            .iter()
            .filter(|got| got.at >= begin && got.delivery.source == source);
        since.count() as f64 / self.now.saturating_since(begin).as_secs_f64()
    }

    /// Mean delay in seconds of what arrived of a flow since `begin`.
    pub fn delay(&self, source: u16, begin: Instant) -> f64 {
        let since = self
            .got
            .iter()
            .filter(|got| got.at >= begin && got.delivery.source == source);
        let delays: Vec<f64> = since.map(|got| got.delay.as_secs_f64()).collect();
        delays.iter().sum::<f64>() / delays.len().max(1) as f64
    }

    /// What was accepted, and what became of it: delivered, lost for a reason, still in the mesh.
    pub fn account(&self) -> (u64, u64, u64, u64) {
        let sum = |of: fn(&Router) -> u64| self.nodes.iter().map(of).sum();
        (
            sum(|node| node.counters().accepted),
            sum(|node| node.counters().delivered),
            sum(|node| node.counters().losses.total()),
            sum(|node| node.waiting()),
        )
    }

    pub fn losses(&self) -> Vec<Losses> {
        self.nodes
            .iter()
            .map(|node| node.counters().losses)
            .collect()
    }
}

pub fn router(settings: Settings, me: u16, epoch: u8, now: Instant, seed: u64) -> Router {
    router_over(&CAPS, settings, me, epoch, now, seed)
}

pub fn router_over(
    caps: &Caps,
    settings: Settings,
    me: u16,
    epoch: u8,
    now: Instant,
    seed: u64,
) -> Router {
    let random = Seed(seed).stream(Purpose::Node(u32::from(me)));
    Router::new(settings, me, epoch, caps, now, random).expect("settings are valid")
}

pub fn at(seconds: u64) -> Instant {
    Instant::from_millis(1000 * seconds)
}

/// Nodes in a row, each hearing its neighbours only.
pub fn chain(n: u16, ratio: f64) -> Vec<(u16, u16, f64)> {
    (1..n).map(|b| (b - 1, b, ratio)).collect()
}

/// The six nodes of the paper's Fig. 2 in our reading: A-D-E is the short way, A-B-C-E the other one, F hangs on E.
pub fn figure2() -> Vec<(u16, u16, f64)> {
    let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5];
    [(a, d), (d, e), (a, b), (b, c), (c, e), (e, f)]
        .map(|(a, b)| (a, b, 1.0))
        .to_vec()
}

/// Whether any class of data waits.
pub fn wants_data(node: &Router) -> bool {
    let data = [Class::Urgent, Class::Data, Class::Background];
    data.into_iter().any(|class| node.pending().contains(class))
}
