//! Where turns lose, on the paper's outdoor networks: what the plan promises, and what its slots carry without any protocol.
//!
//! ```text
//! cargo run --release -p chappe-paper-pacifier --example turns [-- FIRST_SEED [NETWORKS [BYTES]]]
//! ```
//!
//! One row for each seed, in kbit/s: what the plan promises if each slot took an undisturbed frame's time (`frames`); the same with the slots that it
//! has (`slots`); what the slots carry with the true powers, once packets arrive everywhere (`steady`), and for the whole object (`object`). Every
//! node sends a random combination of all that it has in each of its turns, over two elements, and knows nothing of the others.

use chappe_core::{Duration, Purpose, Seed, Stream};
use chappe_lab::run::{Meter, RunError};
use chappe_lab_pacifier::{Depth, Pacifier, Prepared, ProtocolPlan, Variant, prepare, turns};
use chappe_pacifier::improved::turns::Turns;
use chappe_paper_pacifier::outdoor::{self, Setting};
use chappe_testkit::Words;

const USAGE: &str = "turns [FIRST_SEED [NETWORKS [BYTES]]]";

/// Octets that a data frame in a slot has beside those of the paper's frame: a vector of 64 instead of 32 packets, sets, states and the slot.
const MORE_OCTETS: usize = 62;
/// What a slot has beside a frame, and the open one after 48 (`crates/pacifier/src/improved/group/slots.rs`).
const GUARD: Duration = Duration::from_micros(100);
const OPEN: f64 = 49.0 / 48.0;
/// What GloMoSim's radio needs over noise and other frames: 10 dB.
const RATIO: f64 = 10.0;
/// A plan that carries nothing ends here.
const SLOTS_MAX: u64 = 1_000_000;

fn main() -> Result<(), RunError> {
    let mut words = Words::of_process(USAGE);
    let first: u64 = words.next("seed").unwrap_or(9001);
    let networks: u64 = words.next("number of networks").unwrap_or(10);
    let bytes = words.next("number of bytes").unwrap_or(1_440_000);
    words.end();
    println!("seed   frames    slots   steady   object");
    for seed in first..first + networks {
        row(seed, bytes)?;
    }
    Ok(())
}

fn row(seed: u64, bytes: usize) -> Result<(), RunError> {
    let plan = outdoor::plan(bytes, Setting::FIGURES)?;
    let network = outdoor::network(&plan, seed)?;
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
    let slot = (with.mode.airtime(frame + MORE_OCTETS) + GUARD).as_secs_f64() * OPEN;
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
}

impl Air {
    fn of(prepared: &Prepared) -> Air {
        let medium = &prepared.network.medium;
        let (nodes, profile) = (medium.nodes(), medium.profile());
        let over = |dbm: f64| 10f64.powf((dbm - profile.lock.power.0) / 10.0);
        let power = |pair: usize| match pair / nodes == pair % nodes {
            true => 0.0,
            false => over(medium.mean_power(pair / nodes, pair % nodes).0),
        };
        Air {
            nodes,
            power: (0..nodes * nodes).map(power).collect(),
            noise: over(profile.noise.0),
        }
    }

    /// Who hears whom in a slot of these senders: (place of the sender, hearer).
    fn heard(&self, set: &[usize], random: &mut Stream) -> Vec<(usize, usize)> {
        let mut heard = Vec::new();
        for to in (0..self.nodes).filter(|to| !set.contains(to)) {
            // P(gain > x) = exp(-pi x^2 / 4).
            let mut power = |&from: &usize| {
                let drawn = -(1.0 - random.fraction()).ln() / std::f64::consts::FRAC_PI_4;
                self.power[from * self.nodes + to] * drawn.sqrt()
            };
            let powers: Vec<f64> = set.iter().map(&mut power).collect();
            let all = self.noise + powers.iter().sum::<f64>();
            let received = |power: f64| power >= 1.0 && power >= RATIO * (all - power);
            let place = powers.iter().position(|&power| received(power));
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
