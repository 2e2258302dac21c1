//! A deterministic model of the networks of `chappe cast` on one machine: segments with a separate rate for each host, or one
//! shared channel; losses at each listener; and the time that a frame spends in queues and waiting processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::object;
use chappe_core::{
    Address, Arrival, Bitrate, Class, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome,
    Purpose, Seed, Stream,
};
use chappe_pacifier::improved::Settings;
use chappe_pacifier::{Common, Config, Links, Node, Object, paper};

/// Octets that sealing, Ethernet and the like add to a frame.
pub const AROUND: usize = 14 + 16 + 14;
/// Attempts for a unicast frame.
const ATTEMPTS: u8 = 7;
/// The serial of the one transfer.
const SERIAL: u8 = 1;

/// A network and a transfer on it. Node 0 is the source.
#[derive(Clone)]
pub struct Plan {
    /// The delivery ratios of all links, known to every node.
    pub links: Arc<Links>,
    pub receivers: Vec<u16>,
    pub rate: Bitrate,
    /// Mean time from the end of a frame until its listener handles it; drawn between half and three halves of that.
    pub latency: Duration,
    /// Time that a listener takes for each frame; others wait meanwhile. If it is zero, frames may overtake each other.
    pub handling: Duration,
    /// One frame at a time in the whole network; a waiting node is chosen at random.
    pub shared: bool,
    /// Batches that a receiver holds at most.
    pub partial_max: usize,
    pub octets: usize,
    pub seed: u64,
    /// When each receiver joins; those without a time are there from the start.
    pub joins: Vec<Duration>,
}

/// The results of a transfer.
#[derive(Debug)]
pub struct Outcomes {
    /// When the last receiver was complete.
    pub seconds: Option<f64>,
    /// When each receiver was complete.
    pub each: Vec<Option<f64>>,
    /// Data frames and reports of each node.
    pub data: Vec<u64>,
    pub reports: Vec<u64>,
    /// Octets of a node's frames on the wire, in the mean.
    pub octets: Vec<f64>,
    /// Data frames of the source over packets of the object.
    pub source_redundancy: f64,
    /// The same of all nodes.
    pub redundancy: f64,
    /// Data frames that reached a receiver over those that raised its rank.
    pub heard_per_gain: f64,
    /// The time of a source alone if every packet that it sends is useful: every packet arrives with the best delivery ratio
    /// of its links, at the rate, with its headers.
    pub floor: f64,
}

#[derive(Debug)]
struct Bytes(Arc<[u8]>);

impl Object for Bytes {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn read(&self, start: usize, into: &mut [u8]) -> bool {
        into.copy_from_slice(&self.0[start..start + into.len()]);
        true
    }
}

/// A frame in flight: the listener, the sender, the address, the octets.
type Flying = (usize, usize, Address, Arc<[u8]>);

struct Wired<'a> {
    plan: &'a Plan,
    /// Nodes that are not there yet.
    absent: Vec<bool>,
    nodes: Vec<Node>,
    now: Instant,
    free: Vec<Instant>,
    /// Frames of each node with data in them, and their octets on the wire.
    sent: Vec<(u64, u64)>,
    /// When each listener will have handled what has arrived.
    handled: Vec<Instant>,
    /// Frames in flight, by time and order of arrival.
    flying: BTreeMap<(Instant, u64), Flying>,
    count: u64,
    random: Stream,
}

/// Runs one transfer to its end, or for at most `limit`.
pub fn run(plan: &Plan, config: &Config, file: &Arc<[u8]>, limit: Duration) -> Outcomes {
    let mut nodes = super::nodes(config, &plan.links, plan.seed);
    let joins = plan
        .joins
        .iter()
        .copied()
        .chain(std::iter::repeat(Duration::ZERO));
    let joins: Vec<(Instant, u16)> = joins
        .map(|join| Instant::ZERO + join)
        .zip(plan.receivers.iter().copied())
        .collect();
    let here = |now: Instant| -> Vec<u16> {
        let here = joins.iter().filter(|(at, _)| *at <= now);
        here.map(|(_, receiver)| *receiver).collect()
    };
    for &receiver in &plan.receivers {
        nodes[usize::from(receiver)]
            .expect_checked(0, SERIAL, plan.octets, plan.partial_max, |_| false)
            .unwrap();
    }
    let object = Arc::new(Bytes(file.clone()));
    nodes[0]
        .offer_read(object, SERIAL, &here(Instant::ZERO))
        .unwrap();
    let count = nodes.len();
    let mut absent = vec![false; count];
    for (at, receiver) in &joins {
        absent[usize::from(*receiver)] = *at > Instant::ZERO;
    }
    let mut wired = Wired {
        plan,
        absent,
        nodes,
        now: Instant::ZERO,
        free: vec![Instant::ZERO; count],
        sent: vec![(0, 0); count],
        handled: vec![Instant::ZERO; count],
        flying: BTreeMap::new(),
        count: 0,
        random: Seed(plan.seed).stream(Purpose::Reception),
    };
    let batch_len = config.common().k * config.common().payload;
    let (mut done_at, mut batch) = (None, Vec::new());
    let mut left: Vec<usize> = vec![plan.octets.div_ceil(batch_len); plan.receivers.len()];
    let mut each = vec![None; plan.receivers.len()];
    while wired.now < Instant::ZERO + limit && done_at.is_none() {
        for &(at, receiver) in &joins {
            let absent = &mut wired.absent[usize::from(receiver)];
            if at <= wired.now && std::mem::take(absent) {
                // The source serves those that lack something.
                let lacks = |of: &u16| {
                    let place = plan.receivers.iter().position(|other| other == of);
                    place.is_none_or(|place| left[place] > 0)
                };
                let served: Vec<u16> = here(wired.now).into_iter().filter(lacks).collect();
                wired.nodes[0].serve(&served);
            }
        }
        wired.step();
        for (left, &receiver) in left.iter_mut().zip(&plan.receivers) {
            let node = &mut wired.nodes[usize::from(receiver)];
            while let Some(number) = node.decoded(0, &mut batch) {
                let start = number as usize * batch_len;
                assert_eq!(
                    batch[..],
                    file[start..start + batch.len()],
                    "batch {number}"
                );
                node.accept(wired.now, 0, number);
                *left -= 1;
            }
        }
        for (each, left) in each.iter_mut().zip(&left) {
            let now = wired.now.saturating_since(Instant::ZERO).as_secs_f64();
            *each = each.or((*left == 0).then_some(now));
        }
        if left.iter().all(|&left| left == 0) {
            done_at = Some(wired.now.saturating_since(Instant::ZERO).as_secs_f64());
        }
    }
    wired.outcomes(config, done_at, each)
}

impl Wired<'_> {
    /// Handles all events at this instant and moves to the next.
    fn step(&mut self) {
        while let Some(frame) = self.flying.first_entry().filter(|f| f.key().0 <= self.now) {
            let (to, from, address, sdu) = frame.remove();
            let from = Address::node(from as u16);
            let (sdu, power) = (&sdu[..], None);
            let arrival = Arrival {
                from,
                to: address,
                sdu,
                power,
            };
            if !self.absent[to] {
                self.nodes[to].handle_link(self.now, LinkEvent::Received(arrival));
            }
        }
        for node in &mut self.nodes {
            if node.poll_timeout().is_some_and(|wake| wake.at <= self.now) {
                node.handle_timeout(self.now);
            }
        }
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        self.random.shuffle(&mut order);
        for sender in order {
            let ready = !self.absent[sender] && !self.nodes[sender].pending().is_empty();
            if self.free[sender] <= self.now && ready {
                self.transmit(sender);
            }
        }
        let waiting = (0..self.nodes.len())
            .filter(|&n| !self.absent[n] && !self.nodes[n].pending().is_empty());
        let free = waiting.map(|n| self.free[n]);
        let arrival = self.flying.first_key_value().map(|(key, _)| key.0);
        let wakes = self.nodes.iter().filter_map(|node| node.poll_timeout());
        let next = free.chain(arrival).chain(wakes.map(|wake| wake.at));
        let soonest = self.now + Duration::from_nanos(1);
        let joins = self.plan.joins.iter().map(|join| Instant::ZERO + *join);
        let next = next.chain(joins.filter(|at| *at > self.now));
        self.now = next
            .min()
            .map_or(self.now + Duration::from_secs(1), |at| at.max(soonest));
    }

    fn transmit(&mut self, sender: usize) {
        let mut sdu = vec![0; 2304];
        let Some(send) = self.nodes[sender].poll_link(self.now, Classes::ALL, &mut sdu) else {
            return;
        };
        sdu.truncate(send.len);
        if send.class == Class::Data {
            let (frames, octets) = &mut self.sent[sender];
            (*frames, *octets) = (*frames + 1, *octets + (send.len + AROUND) as u64);
        }
        let mut took = self.plan.rate.time_of(8 * (send.len + AROUND) as u64);
        let mut outcome = Outcome::Unconfirmed;
        let target = send.to.node_number();
        let mut reached = Vec::new();
        for other in (0..self.nodes.len()).filter(|&other| other != sender) {
            let ratio = self.plan.links.ratio(sender as u16, other as u16);
            if target.is_none() && self.random.chance(ratio) {
                reached.push(other);
            }
        }
        if let Some(target) = target {
            let ratio = self.plan.links.ratio(sender as u16, target);
            let arrived = (1..=ATTEMPTS).find(|_| self.random.chance(ratio));
            let attempts = arrived.unwrap_or(ATTEMPTS);
            took = took * u64::from(attempts);
            outcome = Outcome::Failed { attempts };
            if arrived.is_some() {
                outcome = Outcome::Acknowledged { attempts };
                reached.push(target.into());
            }
        }
        let end = self.now + took;
        match self.plan.shared {
            true => self.free.fill(end),
            false => self.free[sender] = end,
        }
        let sdu: Arc<[u8]> = sdu.into();
        for listener in reached {
            let late = self.plan.latency.mul_f64(0.5 + self.random.fraction());
            self.count += 1;
            let mut at = end + late;
            if self.plan.handling > Duration::ZERO {
                at = at.max(self.handled[listener]) + self.plan.handling;
                self.handled[listener] = at;
            }
            let key = (at, self.count);
            self.flying
                .insert(key, (listener, sender, send.to, sdu.clone()));
        }
        let token = send.token;
        self.nodes[sender].handle_link(self.now, LinkEvent::Sent { token, outcome });
    }

    fn outcomes(&self, config: &Config, seconds: Option<f64>, each: Vec<Option<f64>>) -> Outcomes {
        let counters: Vec<_> = self.nodes.iter().map(|node| *node.counters()).collect();
        let data: Vec<u64> = counters.iter().map(|c| c.data_sent).collect();
        let reports = counters.iter().map(|c| c.reports_sent + c.acks_sent);
        let packets = self.plan.octets.div_ceil(config.common().payload) as f64;
        let receivers = self.plan.receivers.iter();
        let (heard, gained) = receivers
            .map(|&n| counters[usize::from(n)])
            .fold((0, 0), |(heard, gained), c| {
                (heard + c.data_heard, gained + c.receiver_innovative)
            });
        let best = (1..self.nodes.len() as u16).map(|n| self.plan.links.ratio(0, n));
        let best = best.fold(0.0, f64::max);
        let packet = self
            .plan
            .rate
            .time_of(8 * (config.common().payload + AROUND) as u64);
        Outcomes {
            seconds,
            each,
            source_redundancy: data[0] as f64 / packets,
            redundancy: data.iter().sum::<u64>() as f64 / packets,
            data,
            octets: self
                .sent
                .iter()
                .map(|&(frames, octets)| octets as f64 / frames.max(1) as f64)
                .collect(),
            reports: reports.collect(),
            heard_per_gain: heard as f64 / gained.max(1) as f64,
            floor: packets * packet.as_secs_f64() / best,
        }
    }
}

/// Every node hears every other.
pub fn star(receivers: usize, delivery: f64) -> Arc<Links> {
    let ratio = |from, to| if from == to { 0.0 } else { delivery };
    Arc::new(Links::measured(receivers + 1, ratio).unwrap())
}

pub const PAYLOAD: usize = 1370;
const K: usize = 32;

/// What `chappe cast` sets at 20 Mbit/s on a switch.
fn common() -> Common {
    Common {
        k: K,
        payload: PAYLOAD,
        groups_max: 1,
        ..Common::default()
    }
}

/// Pacifier as in `chappe cast`.
pub fn pacifier() -> Config {
    Config::Paper(paper::Config {
        common: common(),
        window: 1000,
        ack_retry_min: Duration::from_millis(100),
        ..paper::Config::default()
    })
}

/// The improved variant as in `chappe cast`.
pub fn improved() -> Config {
    let usual = Settings::default();
    let quick = |time: Duration| time.mul_f64(0.25);
    let settings = Settings {
        nodes_max: 64,
        data_states: 12,
        gate: 0.0,
        lag: Duration::from_millis(40),
        timed: true,
        report_interval: quick(usual.report_interval),
        gossip: quick(usual.gossip),
        repeat_min: quick(usual.repeat_min),
        repeat_max: quick(usual.repeat_max),
        doubt_min: quick(usual.doubt_min),
        doubt_max: quick(usual.doubt_max),
        yielding: quick(usual.yielding),
        ..usual
    };
    let common = common();
    Config::Improved(chappe_pacifier::improved::Config { common, settings })
}

/// A transfer of `octets` at 20 Mbit/s to each host, or over one `shared` channel.
pub fn carry(
    config: &Config,
    network: (&Arc<Links>, &[u16]),
    shared: bool,
    octets: usize,
    seed: u64,
) -> Outcomes {
    // On one channel a listener has a frame when it ends; a process waits until the scheduler runs it.
    let latency = Duration::from_millis(if shared { 0 } else { 2 });
    carry_late(
        config,
        network,
        (shared, latency, Duration::ZERO),
        octets,
        seed,
    )
}

/// The same with a mean `latency` until a frame is handled, and a time of `handling` for each.
pub fn carry_late(
    config: &Config,
    (links, receivers): (&Arc<Links>, &[u16]),
    (shared, latency, handling): (bool, Duration, Duration),
    octets: usize,
    seed: u64,
) -> Outcomes {
    let plan = Plan {
        links: links.clone(),
        receivers: receivers.to_vec(),
        rate: Bitrate(20_000_000),
        latency,
        handling,
        shared,
        partial_max: 1000,
        octets,
        seed,
        joins: Vec::new(),
    };
    let file = object(octets, seed);
    let limit = Duration::from_secs(300);
    run(&plan, config, &file, limit)
}

/// Transmissions for each packet until each of `receivers` has `K` of a batch, if only the source sends and it stops at the
/// right moment: the mean of the largest of that many negative binomial variables.
pub fn least(receivers: usize, delivery: f64) -> f64 {
    let all_by = |frames: usize| {
        // The distribution of one receiver's receptions among this many frames.
        let mut of = vec![1.0];
        for _ in 0..frames {
            let mut next = vec![0.0; of.len() + 1];
            for (count, share) in of.iter().enumerate() {
                next[count] += share * (1.0 - delivery);
                next[count + 1] += share * delivery;
            }
            of = next;
        }
        of.iter().skip(K).sum::<f64>().powi(receivers as i32)
    };
    let frames: f64 = (0..400).map(|frames| 1.0 - all_by(frames)).sum();
    frames / K as f64
}
