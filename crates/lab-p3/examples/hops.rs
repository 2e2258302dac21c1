//! Where a transfer of the improved variant loses frames: by attempt, the nodes that missed the flood, and by group and hop
//! what was sent, what arrived, and why the rest did not. At the end the mean and the least of all seeds, as they are and as they would be
//! without the attempts of which no packet arrived, whose flood or question was lost.
//!
//! `cargo run --release -p chappe-lab-p3 --example hops -- SCENARIO FIRST_SEED LAST_SEED [SLOWER_THAN_KBIT]`

use std::collections::{BTreeMap, BTreeSet};

use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab_p3::{Knowledge, P3, Prepared, Ratios, SYSTEM, Variant, prepare, watched};
use chappe_p3::header::{Header, Kind};
use chappe_p3::planner::Links;
use chappe_p3::{Place, Plan as RoutePlan, Tagging};
use chappe_scenario::Plan;
use chappe_sim::{Heard, Loss, Recorder, Sent};
use chappe_testkit::Words;

/// Octets of a tag at the end of a plan's frame.
const TAG: usize = 4;

fn main() -> Result<(), RunError> {
    let mut words = Words::of_process("hops SCENARIO FIRST_SEED LAST_SEED [SLOWER_THAN_KBIT]");
    let file: String = words.need("scenario");
    let (first, last) = (words.need("first seed"), words.need("last seed"));
    let slower = words.next("rate in kbit/s").unwrap_or(u64::MAX);
    let text = std::fs::read_to_string(&file);
    let text = text.unwrap_or_else(|why| words.refuse(&file, &format!("is no scenario: {why}")));
    words.end();
    let plan = Plan::parse(&[&SYSTEM], "hops", &text)?;
    let mut all = Vec::new();
    for seed in first..=last {
        all.push(show(&plan, seed, slower)?);
    }
    for (at, what) in ["as it is", "without attempts that brought nothing"]
        .into_iter()
        .enumerate()
    {
        let least = all.iter().map(|one| one[at]).fold(f64::INFINITY, f64::min);
        let mean = all.iter().map(|one| one[at]).sum::<f64>() / all.len().max(1) as f64;
        println!(
            "{what}: mean {mean:.1}, least {least:.1} kbit/s, n = {}",
            all.len()
        );
    }
    Ok(())
}

/// Carries one seed's transfer and prints it if it is slower than `slower` kbit/s. Returns its rate, and that without the attempts that
/// brought nothing.
fn show(plan: &Plan, seed: u64, slower: u64) -> Result<[f64; 2], RunError> {
    let prepared = prepare(plan.network(seed)?);
    let with = P3::paper(Variant::Improved).tagged_by(Tagging::Segments);
    let spec = RunSpec::plain(plan, &prepared.network);
    let known = prepared.learn(&with);
    let (outcome, air) = watched(&with, &prepared, spec, Air::default(), &Meter::default())?;
    let run = &outcome.run;
    let kbit = run.mean_goodput() / 1e3;
    let count = |name| run.counter(name);
    println!(
        "seed {seed}: {kbit:.1} kbit/s, hops {}, attempts {}, rounds {}, single {}, source data {}",
        count("hops"),
        count("attempts"),
        count("rounds"),
        count("single_rounds"),
        count("source_data"),
    );
    if kbit < slower as f64 {
        for attempt in &air.attempts {
            attempt.print(&prepared, &known);
        }
    }
    let bits = prepared.network.transfers[0].object.len() as f64 * 8e-3;
    let rate = |wasted: f64| {
        if kbit > 0.0 {
            bits / (bits / kbit - wasted)
        } else {
            0.0
        }
    };
    Ok([kbit, rate(air.wasted())])
}

/// Frames of one hop and group.
#[derive(Default)]
struct Hop {
    sent: u32,
    heard: u32,
    lost: BTreeMap<String, u32>,
}

/// What happened under one plan.
struct Attempt {
    plan: RoutePlan,
    at: f64,
    /// The nodes that heard the plan, with the slot of the first frame.
    woken: BTreeMap<usize, u8>,
    /// Frames of the flood that a node lost, by slot and why.
    lost: BTreeMap<usize, Vec<String>>,
    /// By slot, how many nodes sent.
    slots: BTreeMap<u8, u32>,
    /// By the node that sends and the one that hears: frames with packets.
    hops: BTreeMap<(u8, u8, usize), Hop>,
    /// Questions and answers that were heard, by stage.
    turns: BTreeMap<(&'static str, u16, usize), u32>,
}

#[derive(Default)]
struct Air {
    attempts: Vec<Attempt>,
}

impl Attempt {
    /// Whether any packet arrived.
    fn brought(&self) -> bool {
        let last = self.plan.hops();
        let mut hops = self.hops.iter();
        hops.any(|((stage, ..), hop)| *stage == last && hop.heard > 0)
    }

    fn place(&self, node: usize) -> Option<Place> {
        let node = node as u16;
        let end = |stage| Place {
            node,
            stage,
            group: 0,
        };
        match node {
            _ if node == self.plan.source() => Some(end(0)),
            _ if node == self.plan.destination() => Some(end(self.plan.hops())),
            _ => self
                .plan
                .relays()
                .iter()
                .find(|place| place.node == node)
                .copied(),
        }
    }

    /// What was measured and what is true of the links into a node, and the power of each.
    fn links(&self, prepared: &Prepared, known: &Knowledge, to: Place, hops: u8) {
        let own = self.plan.channels().of_stage(to.stage);
        let senders = self.plan.relays().iter().copied();
        let source = self.place(self.plan.source().into());
        for from in senders.chain(source) {
            let channel = self.plan.channels().of_stage(from.stage + 1);
            let power = prepared
                .truth
                .power(channel, from.node.into(), to.node.into());
            let shown = power.map_or(-99.0, |power| power.0);
            let due = from.stage + 1 == to.stage;
            let mine = due && (from.stage == 0 || from.group == to.group || to.stage == hops);
            let near = channel.0.abs_diff(own.0) < 2 && !due && shown > -96.0;
            if mine || near {
                let of = |ratios: &Ratios| ratios.get(channel, from.node.into(), to.node.into());
                println!(
                    "        {} node {} (stage {}, group {}, channel {}): measured {:.2}, true {:.2}, {shown} dBm",
                    if mine { "from" } else { "beside" },
                    from.node,
                    from.stage,
                    from.group,
                    channel.0,
                    of(&known.ratios),
                    of(&prepared.truth),
                );
            }
        }
    }

    fn print(&self, prepared: &Prepared, known: &Knowledge) {
        let plan = &self.plan;
        println!(
            "  at {:.3} s: {} hops, {} groups, channels {:?}, {} relays, repair {}, first {}",
            self.at,
            plan.hops(),
            plan.groups(),
            (1..=4)
                .map(|stage| plan.channels().of_stage(stage).0)
                .collect::<Vec<_>>(),
            plan.relays().len(),
            plan.repair(),
            plan.first(),
        );
        let all: BTreeSet<usize> = plan
            .relays()
            .iter()
            .map(|place| place.node.into())
            .collect();
        let deaf: Vec<_> = all
            .iter()
            .chain([&usize::from(plan.source())])
            .filter(|node| !self.woken.contains_key(node))
            .map(|&node| {
                self.place(node)
                    .map(|place| (node, place.stage, place.group))
            })
            .collect();
        println!("    missed the flood (node, stage, group): {deaf:?}");
        if !deaf.is_empty() {
            let last = self.woken.values().max();
            println!(
                "      {} nodes heard it, the last in slot {last:?}; senders by slot: {:?}",
                self.woken.len(),
                self.slots
            );
        }
        for (node, ..) in deaf.iter().flatten() {
            println!("      {node} lost {:?}", self.lost.get(node));
        }
        for group in 0..plan.groups() {
            for ((stage, _, node), hop) in self.hops.iter().filter(|(key, _)| key.1 == group) {
                let share = f64::from(hop.heard) / f64::from(hop.sent.max(1));
                if share < 0.97 {
                    println!(
                        "    group {group}, stage {stage}, node {node}: {} of {} ({share:.2}) {:?}",
                        hop.heard, hop.sent, hop.lost
                    );
                    if let Some(place) = self.place(*node) {
                        self.links(prepared, known, place, plan.hops());
                    }
                }
            }
        }
        let ends = [usize::from(plan.source()), usize::from(plan.destination())];
        let turns: Vec<_> = self
            .turns
            .iter()
            .filter(|(key, _)| ends.contains(&key.2))
            .collect();
        println!("    turns at the ends: {turns:?}");
        if !turns.iter().any(|(key, _)| key.0 == "NACK") {
            self.way_back(prepared, known);
        }
    }

    /// What was measured and what is true of the links of each answer's way: from each stage to the one before, on that one's channel.
    fn way_back(&self, prepared: &Prepared, known: &Knowledge) {
        let (plan, nodes) = (&self.plan, self.plan.relays().iter());
        let ends = [plan.source(), plan.destination()].map(|node| self.place(node.into()));
        let all: Vec<Place> = nodes.copied().chain(ends.into_iter().flatten()).collect();
        for to in (0..plan.hops()).rev() {
            let channel = plan.channels().of_stage(to);
            for receiver in all.iter().filter(|place| place.stage == to) {
                let of = |sender: &Place, ratios: &Ratios| {
                    ratios.get(channel, sender.node.into(), receiver.node.into())
                };
                let from = all.iter().filter(|place| place.stage == to + 1);
                let links: Vec<String> = from
                    .map(|sender| {
                        let (measured, truly) =
                            (of(sender, &known.ratios), of(sender, &prepared.truth));
                        format!("group {} {measured:.2} true {truly:.2}", sender.group)
                    })
                    .collect();
                println!(
                    "    answers to stage {to}, group {}: {}",
                    receiver.group,
                    links.join(", ")
                );
            }
        }
    }
}

/// Kind and group of a frame; group 3 is all of them.
fn kind(psdu: &[u8]) -> Option<(&'static str, u8, u16)> {
    let first = *psdu.first()?;
    if first & 0x80 == 0 {
        return Some(("DATA", first >> 4 & 3, 0));
    }
    let (header, _) = Header::parse(psdu).ok()?;
    let name = match header.kind {
        Kind::Plan => "PLAN",
        Kind::Ctrl => "CTRL",
        Kind::Nack => "NACK",
        Kind::Tally => "TALLY",
        Kind::Data | Kind::Coded => "DATA",
    };
    Some((name, header.flags.group, header.round.into()))
}

impl Air {
    /// Seconds that went to attempts of which no packet arrived.
    fn wasted(&self) -> f64 {
        let next = self.attempts.iter().skip(1);
        let pairs = self.attempts.iter().zip(next);
        let in_vain = pairs.filter(|(attempt, _)| !attempt.brought());
        in_vain.map(|(attempt, next)| next.at - attempt.at).sum()
    }
}

impl Recorder for Air {
    const NODES: bool = false;

    fn sent(&mut self, frame: &Sent<'_>) {
        let Some((name, group, _)) = kind(frame.psdu) else {
            return;
        };
        if name == "PLAN" {
            let known = self.attempts.last().map(|last| last.plan.transfer());
            let Ok((header, body)) = Header::parse(frame.psdu) else {
                return;
            };
            let body = &body[..body.len().saturating_sub(TAG)];
            let parsed = RoutePlan::parse(header.transfer, body);
            if let Some(plan) = parsed.ok().filter(|plan| Some(plan.transfer()) != known) {
                self.attempts.push(Attempt {
                    plan,
                    at: frame.at.as_secs_f64(),
                    woken: BTreeMap::new(),
                    lost: BTreeMap::new(),
                    slots: BTreeMap::new(),
                    hops: BTreeMap::new(),
                    turns: BTreeMap::new(),
                });
            }
            if let Some(last) = self.attempts.last_mut() {
                *last.slots.entry(header.hop).or_default() += 1;
            }
            return;
        }
        if name != "DATA" {
            return;
        }
        let Some(last) = self.attempts.last_mut() else {
            return;
        };
        // What the stage sends, counted at each receiver of the next one.
        let Some(from) = last.place(frame.node) else {
            return;
        };
        let to = from.stage + 1;
        let receivers: Vec<(u8, usize)> = if to == last.plan.hops() {
            vec![(group, last.plan.destination().into())]
        } else {
            let own = last.plan.relays().iter().filter(|place| place.stage == to);
            own.filter(|place| group == 3 || place.group == group)
                .map(|place| (group, place.node.into()))
                .collect()
        };
        for (group, node) in receivers {
            last.hops.entry((to, group, node)).or_default().sent += 1;
        }
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        let Some((name, group, round)) = kind(frame.psdu) else {
            return;
        };
        let Some(last) = self.attempts.last_mut() else {
            return;
        };
        if name == "PLAN" {
            if frame.outcome.is_ok() {
                let slot = Header::parse(frame.psdu).map_or(0, |(header, _)| header.hop);
                last.woken.entry(frame.node).or_insert(slot);
            } else if let (Err(why), Ok((header, _))) = (frame.outcome, Header::parse(frame.psdu))
                && !matches!(why, Loss::TooWeak | Loss::Transmitting)
            {
                let db = frame.power.to_dbm().0;
                let lost = last.lost.entry(frame.node).or_default();
                lost.push(format!("{}:{}:{why:?}:{db:.0}", header.hop, frame.from));
            }
            return;
        }
        if name != "DATA" {
            if frame.outcome.is_ok() {
                *last.turns.entry((name, round, frame.node)).or_default() += 1;
            }
            return;
        }
        let (Some(to), Some(from)) = (last.place(frame.node), last.place(frame.from)) else {
            return;
        };
        let due = from.stage + 1 == to.stage
            && (group == 3 || to.group == group || to.stage == last.plan.hops());
        if !due {
            return;
        }
        let hop = last.hops.entry((to.stage, group, frame.node)).or_default();
        match frame.outcome {
            Ok(()) => hop.heard += 1,
            Err(Loss::PreambleMissed) => {}
            Err(loss) => *hop.lost.entry(format!("{loss:?}")).or_default() += 1,
        }
    }
}
