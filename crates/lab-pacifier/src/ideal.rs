//! Runs on an ideal channel access: the medium of the bound as a simulator.
//!
//! The bound (`chappe_bound::Medium::CarrierSense`) models loss, broadcast and carrier sense, but neither collisions nor
//! back-off. Runs here use the same model:
//!
//! - a frame reaches each other node with the link's delivery ratio, whatever else is on the air, except nodes that
//!   transmit meanwhile;
//! - a node with a frame transmits once it has sensed no other frame for DIFS; whether it senses a frame is drawn for
//!   each frame, with the network's probability;
//! - nodes that are ready at the same instant transmit in random order, and each senses those before it: there are no
//!   ties and no back-off;
//! - unicast frames are sent up to seven times, until they arrive, and acknowledgements take no airtime.
//!
//! Such a MAC cannot be built. It separates the losses of a protocol from those of collisions.

use chappe_core::{
    Address, Arrival, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed,
    Stream,
};
use chappe_lab::carry::Report;
use chappe_lab::run::{Meter, RunError, WORK};
use chappe_pacifier::Node;
use chappe_results::{DATA_TRANSMISSIONS, Run};
use chappe_scenario::{Network, Settings, Transfer};

use super::carry::receipt;
use super::{Pacifier, Prepared, SYSTEM};

/// Largest frame of the protocol.
const FRAME_MAX: usize = 2304;

/// Attempts for a unicast frame: 802.11's short retry limit.
const ATTEMPTS: u8 = 7;

/// Node n draws coding vectors from random stream `CODING + n`, which no other part of a seed uses.
const CODING: u32 = 1 << 17;

/// A run ends after ten minutes plus this many times its duration at the bound.
const PATIENCE: f64 = 100.0;

/// Carries the first transfer of a prepared seed on ideal channel access.
pub fn carry_ideally(with: &Pacifier, prepared: &Prepared, meter: &Meter) -> Result<Run, RunError> {
    let network = &prepared.network;
    let Some(transfer) = network.transfers.first() else {
        return Err(RunError::Defect("a network without a transfer".into()));
    };
    meter.expect(WORK);
    let nodes = nodes(with, prepared, transfer)?;
    let mut air = Air::new(with, network, nodes);
    let bound = prepared
        .bounds
        .first()
        .map_or(1.0, |bound| bound.worst_bps.max(1.0));
    let least = transfer.object.len() as f64 * 8.0 / bound;
    let limit = Instant::ZERO + Duration::from_secs_f64(600.0 + PATIENCE * least);
    let mut steps = 0u32;
    while air.now < limit && !air.is_done(transfer) && air.step() {
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(4096) {
            meter.spend(4096);
            if meter.stopped() {
                return Err(RunError::Interrupted);
            }
        }
    }
    meter.advance(WORK);
    Ok(air.report(with, transfer))
}

/// The nodes, ready to send and to receive.
fn nodes(with: &Pacifier, prepared: &Prepared, transfer: &Transfer) -> Result<Vec<Node>, RunError> {
    let defect = |error: &dyn std::fmt::Debug| RunError::Defect(format!("{error:?}"));
    let seed = Seed(prepared.network.seed);
    let mut nodes = Vec::new();
    for number in 0..prepared.network.medium.nodes() {
        let random = seed.stream(Purpose::Node(CODING + number as u32));
        let config = with.protocol.config.clone();
        let links = prepared.links.clone();
        let mut node =
            Node::new(config, number as u16, links, random).map_err(|error| defect(&error))?;
        if transfer.receivers.contains(&number) {
            node.expect(transfer.source as u16, transfer.object.len())
                .map_err(|error| defect(&error))?;
        }
        nodes.push(node);
    }
    let receivers: Vec<u16> = transfer.receivers.iter().map(|&node| node as u16).collect();
    if let Some(source) = nodes.get_mut(transfer.source) {
        source
            .offer(transfer.object.clone(), &receivers)
            .map_err(|error| defect(&error))?;
    }
    Ok(nodes)
}

/// The nodes and the frames on the air.
struct Air<'a> {
    network: &'a Network,
    nodes: Vec<Node>,
    now: Instant,
    gap: Duration,
    with: &'a Pacifier,
    /// Begin and end of each node's last transmission.
    own: Vec<(Instant, Instant)>,
    /// When the channel becomes free for each node: the end of the last sensed frame plus DIFS.
    busy: Vec<Instant>,
    flying: Vec<Flying>,
    sensing: Vec<f64>,
    random: Stream,
    frames: u64,
}

struct Flying {
    from: usize,
    to: Address,
    token: u32,
    end: Instant,
    outcome: Outcome,
    sdu: Vec<u8>,
}

impl<'a> Air<'a> {
    fn new(with: &'a Pacifier, network: &'a Network, nodes: Vec<Node>) -> Air<'a> {
        let count = nodes.len();
        let sensing = (0..count * count)
            .map(|pair| network.medium.sense_probability(pair / count, pair % count));
        Air {
            network,
            now: Instant::ZERO,
            gap: with.mac.sifs + with.mac.slot * 2,
            with,
            own: vec![(Instant::ZERO, Instant::ZERO); count],
            busy: vec![Instant::ZERO; count],
            flying: Vec::new(),
            sensing: sensing.collect(),
            random: Seed(network.seed).stream(Purpose::Reception),
            nodes,
            frames: 0,
        }
    }

    fn is_done(&self, transfer: &Transfer) -> bool {
        let complete = |&node: &usize| self.nodes[node].received().complete_at.is_some();
        transfer.receivers.iter().all(complete) && self.nodes[transfer.source].source_done()
    }

    /// Handles this instant and advances to the next one. Returns false if no event is left.
    fn step(&mut self) -> bool {
        // Frames that end now are delivered before any node chooses its next frame.
        self.land();
        for node in &mut self.nodes {
            if node.poll_timeout().is_some_and(|wake| wake.at <= self.now) {
                node.handle_timeout(self.now);
            }
        }
        self.begin();
        let waiting = |n: usize| !self.nodes[n].pending().is_empty();
        let free = (0..self.nodes.len())
            .filter(|&n| waiting(n))
            .map(|n| self.busy[n].max(self.own[n].1 + self.gap));
        let ends = self.flying.iter().map(|frame| frame.end);
        let wakes = self.nodes.iter().filter_map(|node| node.poll_timeout());
        let next = free
            .chain(ends)
            .chain(wakes.map(|wake| wake.at))
            .filter(|&at| at > self.now)
            .min();
        match next {
            Some(at) => self.now = at,
            None => return false,
        }
        true
    }

    /// Starts the transmissions of ready nodes in random order: each one sets the later nodes' channel busy.
    fn begin(&mut self) {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        self.random.shuffle(&mut order);
        for from in order {
            let free = self.busy[from] <= self.now && self.own[from].1 <= self.now;
            if free && !self.nodes[from].pending().is_empty() {
                self.transmit(from);
            }
        }
    }

    fn transmit(&mut self, from: usize) {
        let mut sdu = vec![0; FRAME_MAX];
        let Some(send) = self.nodes[from].poll_link(self.now, Classes::ALL, &mut sdu) else {
            return;
        };
        sdu.truncate(send.len);
        let mode = send.mode.unwrap_or(self.with.mode);
        let octets = send.len + self.with.protocol.config.common().link_overhead;
        let mut airtime = mode.airtime(octets);
        let mut outcome = Outcome::Unconfirmed;
        if let Some(to) = send.to.node_number().map(usize::from) {
            let delivery = self.delivery(from, to);
            let arrived = (1..=ATTEMPTS).find(|_| self.random.chance(delivery));
            let attempts = arrived.unwrap_or(ATTEMPTS);
            // All attempts take place back to back, and the channel stays busy until the last one ends.
            airtime = airtime * u64::from(attempts);
            outcome = match arrived {
                Some(attempts) => Outcome::Acknowledged { attempts },
                None => Outcome::Failed { attempts },
            };
        }
        self.frames += 1;
        let end = self.now + airtime;
        self.own[from] = (self.now, end);
        self.busy[from] = self.busy[from].max(end + self.gap);
        for other in (0..self.nodes.len()).filter(|&other| other != from) {
            let sensed = self.sensing[from * self.nodes.len() + other];
            if self.random.chance(sensed) {
                self.busy[other] = self.busy[other].max(end + self.gap);
            }
        }
        self.flying.push(Flying {
            from,
            to: send.to,
            token: send.token,
            end,
            outcome,
            sdu,
        });
    }

    /// Delivers the frames that end now.
    fn land(&mut self) {
        while let Some(place) = self.flying.iter().position(|frame| frame.end <= self.now) {
            let frame = self.flying.remove(place);
            let began = self.own[frame.from].0;
            for listener in (0..self.nodes.len()).filter(|&n| n != frame.from) {
                let delivery = self.delivery(frame.from, listener);
                let target = frame.to.node_number().map(usize::from) == Some(listener);
                let arrives = match frame.outcome {
                    Outcome::Acknowledged { .. } if target => true,
                    Outcome::Failed { .. } if target => false,
                    _ => self.random.chance(delivery),
                };
                let deaf = self.own[listener].1 > began;
                // The outcome of a unicast frame was drawn when it began, so its destination receives it in any case.
                if arrives && (!deaf || target) {
                    let arrival = Arrival {
                        from: Address::node(frame.from as u16),
                        to: frame.to,
                        sdu: &frame.sdu,
                        power: None,
                    };
                    self.nodes[listener].handle_link(self.now, LinkEvent::Received(arrival));
                }
            }
            let event = LinkEvent::Sent {
                token: frame.token,
                outcome: frame.outcome,
            };
            self.nodes[frame.from].handle_link(self.now, event);
        }
    }

    fn delivery(&self, from: usize, to: usize) -> f64 {
        self.network.delivery[from * self.nodes.len() + to]
    }

    fn report(&self, with: &Pacifier, transfer: &Transfer) -> Run {
        let mut report = Report::begin((&SYSTEM, with.variant()), self.network.seed);
        for &node in &transfer.receivers {
            let receipt = receipt(&self.nodes[node]);
            report.receipt(0, transfer, node, receipt, false);
        }
        for node in &self.nodes {
            let of = node.counters();
            report.count(DATA_TRANSMISSIONS, of.data_sent);
            report.count("source_transmissions", of.source_sent);
            report.count("innovative", of.innovative);
            report.count("non_innovative", of.non_innovative);
            report.count("reports_sent", of.reports_sent);
        }
        report.count("frames", self.frames);
        Run {
            simulated_s: self.now.as_secs_f64(),
            wall_s: 0.0,
            ..report.finish().run
        }
    }
}
