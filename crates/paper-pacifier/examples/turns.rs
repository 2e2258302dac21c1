//! Where turns lose, on the paper's outdoor networks, or with `day=1` and `day=2` on the indoor one: what the plan promises, and what its slots carry without any protocol.
//!
//! ```text
//! cargo run --release -p chappe-paper-pacifier --example turns [-- FIRST_SEED [NETWORKS [BYTES]]] [day=1]
//! ```
//!
//! One row for each seed, in kbit/s: what the plan promises if each slot took an undisturbed frame's time (`frames`); the same with the slots that it
//! has (`slots`); what the slots carry with the true powers, once packets arrive everywhere (`steady`), and for the whole object (`object`). Every
//! node sends a random combination of all that it has in each of its turns, over two elements, and knows nothing of the others.

use chappe_core::{Purpose, Seed, Stream};
use chappe_lab::run::{Meter, RunError};
use chappe_lab_pacifier::{Depth, Pacifier, Prepared, ProtocolPlan, Variant, prepare, turns};
use chappe_pacifier::Config;
use chappe_pacifier::improved::turns::Turns;
use chappe_paper_pacifier::indoor;
use chappe_paper_pacifier::outdoor::{self, Setting};
use chappe_sim::Fading;
use chappe_testkit::Words;

const USAGE: &str = "turns [FIRST_SEED [NETWORKS [BYTES]]] [day=1]";

/// What GloMoSim's radio needs over noise and other frames: 10 dB.
const RATIO: f64 = 10.0;
/// What a frame of 1.5 kB at 2 Mbit/s needs over noise by the error curve, in dB.
const NEEDED_DB: f64 = 0.8;
/// A plan that carries nothing ends here.
const SLOTS_MAX: u64 = 1_000_000;

fn main() -> Result<(), RunError> {
    let mut words = Words::of_process(USAGE);
    let day = words.key("day=");
    let first: u64 = words.next("seed").unwrap_or(9001);
    let networks: u64 = words.next("number of networks").unwrap_or(10);
    let bytes = words.next("number of bytes").unwrap_or(1_440_000);
    words.end();
    println!("seed   frames    slots   steady   object");
    for seed in first..first + networks {
        row(seed, bytes, day)?;
    }
    Ok(())
}

fn row(seed: u64, bytes: usize, day: Option<u8>) -> Result<(), RunError> {
    let (plan, network) = match day {
        Some(day) => indoor::planned(bytes, day, seed)?,
        None => outdoor::planned(bytes, Setting::FIGURES, seed)?,
    };
    let mut with = Pacifier::of(&plan)?.carried_by(&ProtocolPlan::paper(Variant::Improved));
    with.protocol.turns = true;
    let prepared = prepare(&with, network, Depth::Slowest, &Meter::default())?;
    let Some((source, turns)) = turns(&with, &prepared) else {
        println!("{seed} has no turns");
        return Ok(());
    };
    let payload = with.protocol.config.common().payload;
    let packets = bytes.div_ceil(payload);
    let frame = with.protocol.frame_octets();
    let alone = with.mode.airtime(frame).as_secs_f64();
    let Config::Improved(config) = &with.protocol.config else {
        return Ok(());
    };
    let slot = config.slot_s(prepared.network.medium.nodes(), bytes);
    let kbps = |packets: f64, slots: f64, slot: f64| packets * payload as f64 * 8e-3 / slots / slot;
    let own = (0..turns.period()).filter(|&slot| turns.is_turn(slot, source));
    let promised = own.count() as f64 / f64::from(turns.own(source));
    let period = turns.period() as f64;
    let receivers = &prepared.network.transfers[0].receivers;
    let air = Air::of(&prepared);
    let mut random = Seed(seed).child(u64::from(source)).stream(Purpose::Node(0));
    let mut taken = |packets| air.slots(&turns, (source.into(), receivers), packets, &mut random);
    let (whole, half) = (taken(packets) as f64, taken(packets / 2) as f64);
    let rest = (packets - packets / 2) as f64;
    println!(
        "{seed:4} {:8.1} {:8.1} {:8.1} {:8.1}",
        kbps(promised, period, alone),
        kbps(promised, period, slot),
        kbps(rest, whole - half, slot),
        kbps(packets as f64, whole, slot),
    );
    Ok(())
}

/// The radios of a network: powers over the least that is received.
struct Air {
    nodes: usize,
    /// Mean powers over the least that is received, by sender times the number of nodes plus hearer.
    power: Vec<f64>,
    noise: f64,
    /// What a frame needs over noise and frames that came later, and over those that came before.
    ratio: (f64, f64),
    /// The least power of a frame that holds a radio.
    found: f64,
    /// Expected transmissions from the source, by node.
    distance: Vec<f64>,
    /// The power of a gain that is exponential, and its mean: P(gain > x) = exp(-x), or exp(-pi x^2 / 4) with GloMoSim's fading.
    law: (f64, f64),
}

impl Air {
    fn of(prepared: &Prepared) -> Air {
        let medium = &prepared.network.medium;
        let (nodes, profile) = (medium.nodes(), medium.profile());
        let indoor = profile.fading == Fading::Rayleigh;
        let least = match indoor {
            true => profile.noise.0 + NEEDED_DB,
            false => profile.lock.power.0,
        };
        let over = |dbm: f64| 10f64.powf((dbm - least) / 10.0);
        let power = |pair: usize| match pair / nodes == pair % nodes {
            true => 0.0,
            false => over(medium.mean_power(pair / nodes, pair % nodes).0),
        };
        let source = prepared.network.transfers[0].source as u16;
        let paths = prepared.links.etx_paths(source);
        let plain = |db: f64| 10f64.powf(db / 10.0);
        Air {
            nodes,
            power: (0..nodes * nodes).map(power).collect(),
            noise: over(profile.noise.0),
            ratio: match (indoor, profile.capture) {
                (true, Some(capture)) => (plain(NEEDED_DB), plain(capture.margin.0)),
                _ => (RATIO, RATIO),
            },
            found: over(profile.noise.0 + profile.lock.sinr.0),
            distance: (0..nodes as u16).map(|node| paths.cost(node)).collect(),
            law: match indoor {
                true => (1.0, 1.0),
                false => (2.0, std::f64::consts::FRAC_2_PI * 2.0),
            },
        }
    }

    /// Who hears whom in a slot of these senders: (place of the sender, hearer).
    fn heard(&self, set: &[usize], random: &mut Stream) -> Vec<(usize, usize)> {
        let mut heard = Vec::new();
        for to in (0..self.nodes).filter(|to| !set.contains(to)) {
            let mut power = |&from: &usize| {
                let (power, mean) = self.law;
                let drawn = -(1.0 - random.fraction()).ln() * mean;
                self.power[from * self.nodes + to] * drawn.powf(1.0 / power)
            };
            let powers: Vec<f64> = set.iter().map(&mut power).collect();
            let all = self.noise + powers.iter().sum::<f64>();
            let received = |place: usize| {
                let (power, own) = (powers[place], self.distance[set[place]]);
                // Members set their clocks by those nearer to the source, whose frames come first and hold a radio that finds them.
                let earlier = |other: usize| self.distance[set[other]] < own;
                let holds = |other: usize| earlier(other) && powers[other] >= self.found;
                let ratio = match (0..set.len()).any(holds) {
                    true => self.ratio.1,
                    false => self.ratio.0,
                };
                power >= 1.0 && power >= ratio * (all - power)
            };
            let place = (0..set.len()).find(|&place| received(place));
            heard.extend(place.map(|place| (place, to)));
        }
        heard
    }

    /// Slots until all receivers have `packets`.
    fn slots(
        &self,
        turns: &Turns,
        (source, receivers): (usize, &[usize]),
        packets: usize,
        random: &mut Stream,
    ) -> u64 {
        let mut spaces: Vec<Space> = (0..self.nodes).map(|_| Space::of(packets)).collect();
        for packet in 0..packets {
            let mut vector = vec![0; packets.div_ceil(64)];
            vector[packet / 64] = 1 << (packet % 64);
            spaces[source].insert(vector);
        }
        let mut slot = 0;
        while slot < SLOTS_MAX && receivers.iter().any(|&at| spaces[at].rank() < packets) {
            let senders = (0..self.nodes).filter(|&node| turns.is_turn(slot, node as u16));
            let set: Vec<usize> = senders.filter(|&node| spaces[node].rank() > 0).collect();
            let sent: Vec<Vec<u64>> = set.iter().map(|&node| spaces[node].draw(random)).collect();
            for (place, to) in self.heard(&set, random) {
                spaces[to].insert(sent[place].clone());
            }
            slot += 1;
        }
        slot
    }
}

/// What a node has, over two elements.
struct Space {
    /// By the first packet that a combination contains.
    rows: Vec<Option<usize>>,
    all: Vec<Vec<u64>>,
}

impl Space {
    fn of(packets: usize) -> Space {
        Space {
            rows: vec![None; packets],
            all: Vec::new(),
        }
    }

    fn rank(&self) -> usize {
        self.all.len()
    }

    fn insert(&mut self, mut vector: Vec<u64>) {
        for word in 0..vector.len() {
            while vector[word] != 0 {
                let first = word * 64 + vector[word].trailing_zeros() as usize;
                let Some(row) = self.rows[first] else {
                    self.rows[first] = Some(self.all.len());
                    self.all.push(vector);
                    return;
                };
                add(&mut vector, &self.all[row]);
            }
        }
    }

    fn draw(&self, random: &mut Stream) -> Vec<u64> {
        let mut drawn = vec![0; self.rows.len().div_ceil(64)];
        for rows in self.all.chunks(64) {
            let bits = random.next_u64();
            let chosen = rows
                .iter()
                .enumerate()
                .filter(|(bit, _)| bits >> bit & 1 == 1);
            chosen.for_each(|(_, row)| add(&mut drawn, row));
        }
        drawn
    }
}

fn add(to: &mut [u64], row: &[u64]) {
    to.iter_mut().zip(row).for_each(|(to, row)| *to ^= row);
}
