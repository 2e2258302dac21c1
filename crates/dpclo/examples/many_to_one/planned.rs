//! What a channel access carries of the optimum when a plan with full knowledge says every route and every rate: nodes that forward
//! packets along fixed paths, at even intervals, without probes, updates, prices or full queues.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use chappe_bound::{MeshBound, Objective};
use chappe_core::{
    Address, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Outcome, Stream,
    Wake,
};
use chappe_mac::dot11::Config;

use super::on_air::{Access, play};
use super::optimum::{self, Rule, geometric};
use super::scene::Scene;

/// Octets of a packet: with the MAC's headers the 252 that the optimum counts.
const PACKET: usize = 216;
/// How often a packet that the MAC gave up is given to it again, as in the improved variant.
const FAILURES_MAX: u8 = 4;
/// Seconds before counting begins, and after it has ended, in which packets on their way arrive.
const AROUND_S: u64 = 5;
/// Time between two broadcasts of a node, where control is imitated.
const CONTROL_EVERY: Duration = Duration::from_secs(1);
/// The share of accepted packets that may be missing.
const MISSING: f64 = 0.005;

/// Fixed paths and their rates.
struct Plan {
    ways: Vec<Way>,
    class: Class,
    /// Octets of the broadcast that every node sends each second, if any: as much control as DPCLO's.
    control: Option<usize>,
    /// Which packets count: those offered between these times.
    counted: (Instant, Instant),
}

/// A path of a flow.
#[derive(Clone)]
struct Way {
    flow: usize,
    nodes: Vec<u16>,
    /// How many packets a second take it.
    rate: f64,
}

/// A packet on its way.
#[derive(Clone, Copy)]
struct Packet {
    way: u16,
    number: u32,
    offered: Instant,
    failures: u8,
}

/// A node that follows the plan.
#[derive(Clone)]
struct Planned {
    me: u16,
    plan: Arc<Plan>,
    queue: VecDeque<Packet>,
    /// Packets that the MAC holds, by token.
    held: Vec<(u32, Packet)>,
    tokens: u32,
    /// The paths that begin here: the next packet's number, and when it is due.
    sources: Vec<(u16, u32, Instant)>,
    seen: BTreeSet<(u16, u32)>,
    /// When the next broadcast is due.
    control_at: Instant,
    /// The time of the last event.
    now: Instant,
    counts: Counts,
}

/// What a node has counted.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Packets of each flow, offered and arrived.
    offered: Vec<u64>,
    arrived: Vec<u64>,
    /// The time that the arrived packets of each flow took together.
    waited: Vec<Duration>,
    /// Transmissions, and frames that were acknowledged.
    attempts: u64,
    acknowledged: u64,
}

impl Planned {
    fn new(me: u16, plan: &Arc<Plan>, start: Instant, mut random: Stream) -> Planned {
        let flows = plan.ways.iter().map(|way| way.flow + 1).max().unwrap_or(0);
        let mut sources = Vec::new();
        for (number, way) in plan.ways.iter().enumerate() {
            if way.nodes.first() == Some(&me) {
                // Paths begin at any part of their interval.
                let first = start + interval(way).mul_f64(random.fraction());
                sources.push((number as u16, 0, first));
            }
        }
        Planned {
            me,
            plan: plan.clone(),
            queue: VecDeque::new(),
            held: Vec::new(),
            tokens: 0,
            sources,
            seen: BTreeSet::new(),
            control_at: start + CONTROL_EVERY.mul_f64(random.fraction()),
            now: start,
            counts: Counts {
                offered: vec![0; flows],
                arrived: vec![0; flows],
                waited: vec![Duration::ZERO; flows],
                ..Counts::default()
            },
        }
    }

    fn way(&self, packet: Packet) -> &Way {
        &self.plan.ways[usize::from(packet.way)]
    }

    fn counts(&self, packet: Packet) -> bool {
        let (from, to) = self.plan.counted;
        from <= packet.offered && packet.offered < to
    }

    fn on_packet(&mut self, packet: Packet) {
        // An acknowledgement that was lost brings it again.
        if !self.seen.insert((packet.way, packet.number)) {
            return;
        }
        let way = self.way(packet);
        let (flow, ends) = (way.flow, way.nodes.last() == Some(&self.me));
        if !ends {
            return self.queue.push_back(packet);
        }
        if self.counts(packet) {
            self.counts.arrived[flow] += 1;
            self.counts.waited[flow] += self.now.saturating_since(packet.offered);
        }
    }

    fn on_sent(&mut self, token: u32, outcome: Outcome) {
        let Some(at) = self.held.iter().position(|held| held.0 == token) else {
            return;
        };
        let (_, packet) = self.held.swap_remove(at);
        match outcome {
            Outcome::Acknowledged { attempts } => {
                self.counts.attempts += u64::from(attempts);
                self.counts.acknowledged += 1;
            }
            Outcome::Failed { attempts } => {
                self.counts.attempts += u64::from(attempts);
                let failures = packet.failures + 1;
                if failures < FAILURES_MAX {
                    self.queue.push_front(Packet { failures, ..packet });
                }
            }
            Outcome::Unconfirmed => {}
        }
    }
}

fn interval(way: &Way) -> Duration {
    Duration::from_secs_f64(1.0 / way.rate)
}

impl LinkNode for Planned {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        self.now = now;
        match event {
            LinkEvent::Received(arrival) if arrival.to == Address::node(self.me) => {
                let Some(head) = arrival.sdu.first_chunk::<14>() else {
                    return;
                };
                let [w0, w1, n0, n1, n2, n3, time @ ..] = *head;
                self.on_packet(Packet {
                    way: u16::from_be_bytes([w0, w1]),
                    number: u32::from_be_bytes([n0, n1, n2, n3]),
                    offered: Instant::from_nanos(u64::from_be_bytes(time)),
                    failures: 0,
                });
            }
            LinkEvent::Received(_) => {}
            LinkEvent::Sent { token, outcome } => self.on_sent(token, outcome),
        }
    }

    fn pending(&self) -> Classes {
        let owes = self.plan.control.is_some() && self.control_at <= self.now;
        let packets = Classes::NONE.with_if(self.plan.class, !self.queue.is_empty());
        packets.with_if(Class::Control, owes)
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        self.now = now;
        let due = self.control_at <= now && allowed.contains(Class::Control);
        if let Some(octets) = self.plan.control.filter(|_| due) {
            self.control_at += CONTROL_EVERY;
            sdu[..octets].fill(0xff);
            return Some(LinkSend {
                to: Address::BROADCAST,
                ..LinkSend::unicast(Address::BROADCAST, octets, Class::Control)
            });
        }
        let class = self.plan.class;
        if !allowed.contains(class) {
            return None;
        }
        let packet = self.queue.pop_front()?;
        let nodes = &self.way(packet).nodes;
        let here = nodes.iter().position(|&node| node == self.me)?;
        let to = Address::node(*nodes.get(here + 1)?);
        sdu[..2].copy_from_slice(&packet.way.to_be_bytes());
        sdu[2..6].copy_from_slice(&packet.number.to_be_bytes());
        sdu[6..14].copy_from_slice(&packet.offered.nanos().to_be_bytes());
        sdu[14..PACKET].fill(0);
        self.tokens += 1;
        self.held.push((self.tokens, packet));
        Some(LinkSend {
            token: self.tokens,
            ..LinkSend::unicast(to, PACKET, class)
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        for place in 0..self.sources.len() {
            while self.sources[place].2 <= now {
                let (way, number, due) = self.sources[place];
                let interval = interval(&self.plan.ways[usize::from(way)]);
                self.sources[place] = (way, number + 1, due + interval);
                let packet = Packet {
                    way,
                    number,
                    offered: due,
                    failures: 0,
                };
                let flow = self.way(packet).flow;
                self.counts.offered[flow] += u64::from(self.counts(packet));
                self.queue.push_back(packet);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let packets = self.sources.iter().map(|source| source.2);
        // One that is due already waits for the MAC.
        let control =
            Some(self.control_at).filter(|&at| self.plan.control.is_some() && at > self.now);
        let at = packets.chain(control).min()?;
        Some(Wake {
            at,
            why: "the plan has a packet",
        })
    }
}

/// What a run of a plan gave.
struct Carried {
    /// The share of the packets that did not arrive, of all and of the flow that lost most.
    missing: f64,
    worst: f64,
    /// Transmissions for each frame that was acknowledged.
    attempts: f64,
    /// The mean delay of each flow's packets in seconds. Where it grows with the time counted, queues grow.
    delays_s: Vec<f64>,
}

/// A network, a MAC, and how long packets are counted.
pub struct Trial<'a> {
    pub scene: &'a Scene,
    pub access: Access,
    pub station: Config,
    /// When nodes begin, and for how long packets count, in seconds.
    pub slots_s: u64,
    pub for_s: u64,
    pub class: Class,
    /// Octets of a broadcast of each node a second.
    pub control: Option<usize>,
    /// Whether single rates are raised then.
    pub climbs: bool,
    pub seed: u64,
}

impl Trial<'_> {
    /// Plays the ways with all rates times the factors of their flows.
    fn carried(&self, ways: &[Way], factors: &[f64]) -> Carried {
        let scaled = |way: &Way| Way {
            rate: way.rate * factors[way.flow],
            ..way.clone()
        };
        let at = |seconds: u64| Instant::from_millis(1000 * (self.slots_s + seconds));
        let plan = Arc::new(Plan {
            ways: ways.iter().map(scaled).collect(),
            class: self.class,
            control: self.control,
            counted: (at(AROUND_S), at(AROUND_S + self.for_s)),
        });
        let nodes = play(
            (&self.scene.medium, self.seed),
            (self.access, self.station),
            self.for_s + 2 * AROUND_S,
            |me, start, random| Planned::new(me, &plan, start, random),
        );
        let sum = |of: &dyn Fn(&Counts) -> u64| -> u64 {
            nodes.iter().map(|node| of(&node.counts)).sum()
        };
        let flow = |flow: usize| {
            let offered = sum(&|counts| counts.offered[flow]);
            let arrived = sum(&|counts| counts.arrived[flow]);
            (offered as f64, arrived as f64)
        };
        let flows: Vec<(f64, f64)> = (0..factors.len()).map(flow).collect();
        let missing = |(offered, arrived): (f64, f64)| 1.0 - arrived / offered.max(1.0);
        let all = flows
            .iter()
            .fold((0.0, 0.0), |sum, flow| (sum.0 + flow.0, sum.1 + flow.1));
        let delay = |flow: usize| {
            let waited = nodes.iter().map(|node| node.counts.waited[flow]);
            waited.map(Duration::as_secs_f64).sum::<f64>() / flows[flow].1.max(1.0)
        };
        Carried {
            delays_s: (0..flows.len()).map(delay).collect(),
            missing: missing(all),
            worst: flows.iter().map(|&flow| missing(flow)).fold(0.0, f64::max),
            attempts: sum(&|counts| counts.attempts) as f64
                / sum(&|counts| counts.acknowledged).max(1) as f64,
        }
    }

    /// Prints the largest share of the proportionally fair rates that the MAC carries, along the optimum's paths under each rule, and
    /// what it carries after the rates have been raised one by one.
    pub fn print(&self) -> Result<(), Box<dyn std::error::Error>> {
        let aware = Rule::Interference.mesh(self.scene)?;
        let aim = optimum::best(self.scene, &aware, Objective::SumLog)?;
        for rule in Rule::ALL {
            let mesh = rule.mesh(self.scene)?;
            let best = optimum::best(self.scene, &mesh, Objective::SumLog)?;
            let ways = ways(&mesh, &best);
            let flows = best.rates_bps.len();
            let share = self.largest(&ways, flows);
            let mut factors = vec![share; flows];
            self.report(rule.name(), &best, &ways, &factors, &aim);
            if self.climbs {
                self.climb(&best, &ways, &mut factors);
                self.report("raised one by one", &best, &ways, &factors, &aim);
            }
        }
        Ok(())
    }

    /// The largest share of all rates of which less than [`MISSING`] is missing, to a hundredth.
    fn largest(&self, ways: &[Way], flows: usize) -> f64 {
        let (mut low, mut high) = (0.0, 1.28);
        while high - low > 0.011 {
            let middle = f64::midpoint(low, high);
            match self.carried(ways, &vec![middle; flows]).missing < MISSING {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    /// Raises the rates of single flows, the least first, as long as the MAC carries them.
    fn climb(&self, best: &MeshBound, ways: &[Way], factors: &mut [f64]) {
        for step in [1.4, 1.2, 1.1, 1.05] {
            let mut order: Vec<usize> = (0..factors.len()).collect();
            let rate = |factors: &[f64], flow: usize| factors[flow] * best.rates_bps[flow];
            order.sort_by(|&a, &b| rate(factors, a).total_cmp(&rate(factors, b)));
            for flow in order {
                let before = factors[flow];
                factors[flow] *= step;
                if self.carried(ways, factors).missing >= MISSING {
                    factors[flow] = before;
                }
            }
        }
    }

    fn report(&self, name: &str, best: &MeshBound, ways: &[Way], factors: &[f64], aim: &MeshBound) {
        let carried = self.carried(ways, factors);
        let rates = factors.iter().zip(&best.rates_bps);
        let rates: Vec<f64> = rates.map(|(factor, rate)| factor * rate).collect();
        let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), &rate| {
            (sum + rate, squares + rate * rate)
        });
        let least = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "{name}: geometric {:.2}, {:.1} % of the optimum under interference, {:.1} % under its own rule; Jain {:.3}; least \
             {:.1}, {:.1} % of the optimum's; {:.2} % missing, {:.2} % of the worst flow; {:.2} transmissions a hop; {rates:.1?}; \
             delays {:.2?} s",
            geometric(&rates),
            100.0 * geometric(&rates) / geometric(&aim.rates_bps),
            100.0 * geometric(&rates) / geometric(&best.rates_bps),
            sum * sum / (rates.len() as f64 * squares),
            least(&rates),
            100.0 * least(&rates) / least(&aim.rates_bps),
            100.0 * carried.missing,
            100.0 * carried.worst,
            carried.attempts,
            carried.delays_s,
        );
    }
}

/// The optimum's paths as lists of nodes.
fn ways(mesh: &chappe_bound::Mesh, best: &MeshBound) -> Vec<Way> {
    let links = mesh.links();
    // Less than a packet in ten seconds is the solver's noise.
    let paths = best.paths.iter().filter(|path| path.rate_bps > 0.1);
    paths
        .map(|path| {
            let first = path.links.first().map(|&link| links[link].from);
            let rest = path.links.iter().map(|&link| links[link].to);
            let nodes = first.into_iter().chain(rest);
            Way {
                flow: path.flow,
                nodes: nodes.map(|node| node as u16).collect(),
                rate: path.rate_bps,
            }
        })
        .collect()
}
