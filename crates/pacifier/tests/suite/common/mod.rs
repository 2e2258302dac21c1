//! A lossy broadcast medium without a MAC: one transmission at a time, losses drawn from a seed.
#![allow(dead_code, reason = "each test takes of it what it needs")]

pub mod wired;

use std::sync::Arc;

use chappe_core::{
    Address, Arrival, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed,
    Stream,
};
use chappe_pacifier::{Config, Links, Node};

/// Attempts that the link makes for a unicast frame.
const ATTEMPTS: u8 = 7;

/// Nodes on one medium, with a delivery ratio for each link.
pub struct Network<N> {
    pub nodes: Vec<N>,
    pub now: Instant,
    pub frames: u64,
    /// Node 0 sends only when no other node has anything to send.
    pub relays_first: bool,
    links: Arc<Links>,
    losses: Stream,
    buffer: Vec<u8>,
}

impl<N: LinkNode> Network<N> {
    pub fn new(links: Arc<Links>, seed: u64, nodes: Vec<N>) -> Network<N> {
        let losses = Seed(seed).stream(Purpose::Reception);
        let buffer = vec![0; 2304];
        Network {
            nodes,
            now: Instant::ZERO,
            frames: 0,
            relays_first: false,
            links,
            losses,
            buffer,
        }
    }

    /// Runs until `done` or `limit`; returns whether it was `done`.
    pub fn run(&mut self, limit: Duration, done: impl Fn(&[N]) -> bool) -> bool {
        let end = self.now + limit;
        while self.now < end {
            if done(&self.nodes) {
                return true;
            }
            self.meet_deadlines();
            let waiting: Vec<usize> = (0..self.nodes.len())
                .filter(|&n| !self.nodes[n].pending().is_empty())
                .collect();
            if waiting.is_empty() {
                let next = self
                    .nodes
                    .iter()
                    .filter_map(|node| node.poll_timeout())
                    .map(|w| w.at);
                match next.min() {
                    Some(at) => self.now = self.now.max(at),
                    None => return done(&self.nodes),
                }
                continue;
            }
            let skip = usize::from(self.relays_first && waiting.len() > 1 && waiting[0] == 0);
            let choice = self.losses.below((waiting.len() - skip) as u64) as usize;
            let sender = waiting[skip + choice];
            self.transmit(sender);
        }
        done(&self.nodes)
    }

    fn meet_deadlines(&mut self) {
        for node in &mut self.nodes {
            if node.poll_timeout().is_some_and(|wake| wake.at <= self.now) {
                node.handle_timeout(self.now);
            }
        }
    }

    fn transmit(&mut self, sender: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        if let Some(send) = self.nodes[sender].poll_link(self.now, Classes::ALL, &mut buffer) {
            let sdu = &buffer[..send.len];
            let target = send.to.node_number().map(usize::from);
            let (mut outcome, mut attempts) = (Outcome::Unconfirmed, 0);
            loop {
                attempts += 1;
                self.frames += 1;
                self.now += Duration::from_micros(500 + 4 * sdu.len() as u64);
                let arrived = self.spread(sender, send.to, sdu);
                match target {
                    None => break,
                    Some(target) if arrived.contains(&target) => {
                        let back = self.links.ratio(target as u16, sender as u16);
                        if self.losses.chance(back) {
                            outcome = Outcome::Acknowledged { attempts };
                            break;
                        }
                    }
                    Some(_) => {}
                }
                if attempts == ATTEMPTS {
                    outcome = Outcome::Failed { attempts };
                    break;
                }
            }
            let event = LinkEvent::Sent {
                token: send.token,
                outcome,
            };
            self.nodes[sender].handle_link(self.now, event);
        }
        self.buffer = buffer;
    }

    /// One transmission; returns the nodes that heard it.
    fn spread(&mut self, sender: usize, to: Address, sdu: &[u8]) -> Vec<usize> {
        let from = Address::node(sender as u16);
        let mut heard = vec![];
        for listener in (0..self.nodes.len()).filter(|&listener| listener != sender) {
            if self
                .losses
                .chance(self.links.ratio(sender as u16, listener as u16))
            {
                let arrival = Arrival {
                    from,
                    to,
                    sdu,
                    power: None,
                };
                self.nodes[listener].handle_link(self.now, LinkEvent::Received(arrival));
                heard.push(listener);
            }
        }
        heard
    }
}

/// The nodes of a network, all with one configuration.
pub fn nodes(config: &Config, links: &Arc<Links>, seed: u64) -> Vec<Node> {
    let node = |number: u16| {
        let random = Seed(seed).stream(Purpose::Node(number.into()));
        Node::new(config.clone(), number, links.clone(), random).unwrap()
    };
    (0..links.nodes() as u16).map(node).collect()
}

/// A graph: each edge works in both directions.
pub fn graph(nodes: usize, edges: &[(u16, u16, f64)]) -> Arc<Links> {
    let ratio = |from, to| {
        let edge = edges
            .iter()
            .find(|e| (e.0, e.1) == (from, to) || (e.1, e.0) == (from, to));
        edge.map_or(0.0, |edge| edge.2)
    };
    Arc::new(Links::measured(nodes, ratio).unwrap())
}

/// Random places on a square, with delivery ratios that fall with distance: multi-hop, lossy, asymmetric.
pub fn scatter(nodes: usize, side: f64, seed: u64) -> Arc<Links> {
    let mut place = Seed(seed).stream(Purpose::Topology);
    let at: Vec<(f64, f64)> = (0..nodes)
        .map(|_| (place.fraction() * side, place.fraction() * side))
        .collect();
    let ratio = |from: u16, to: u16| {
        let (a, b) = (at[usize::from(from)], at[usize::from(to)]);
        let distance = (a.0 - b.0).hypot(a.1 - b.1);
        let ratio =
            (-(distance * distance * distance * distance)).exp() * (0.8 + 0.2 * place.fraction());
        if ratio < 0.02 { 0.0 } else { ratio }
    };
    Arc::new(Links::measured(nodes, ratio).unwrap())
}

/// Octets that no packet boundary can hide.
pub fn object(len: usize, seed: u64) -> Arc<[u8]> {
    let mut bytes = vec![0; len];
    Seed(seed).stream(Purpose::Traffic(0)).fill(&mut bytes);
    bytes.into()
}

/// Gives a node a broadcast of another one.
pub fn hear(node: &mut Node, now: Instant, from: u16, sdu: &[u8]) {
    let arrival = Arrival {
        from: Address::node(from),
        to: Address::BROADCAST,
        sdu,
        power: None,
    };
    node.handle_link(now, LinkEvent::Received(arrival));
}
