//! The gateway's plans after the first: links that brought nothing are doubted.
//!
//! The gateway has one measurement. What it learns afterwards comes from its attempts. Where a group brought too little, it asks the nodes
//! what they heard, and a link over which less than half arrived counts as what it was seen to be. A node that missed the flood
//! proves nothing of its links. Where no answer came, all links of the group
//! are doubted, and the next plan takes others where these are nearly as good. A link is trusted again once a group that
//! has it brings packets. Links and not relays, because a relay that its stage before does not reach may still hear others.

use std::collections::BTreeMap;
use std::sync::Arc;

use chappe_core::{Channel, Dbm};
use chappe_p3::planner::{Links, Wish};
use chappe_p3::{Config, Place, Plan, Planner, Told, Trial, Wanted};

use super::prepare::Ratios;
use super::route::planned;

/// The share that is left of the trust in a link after each failure. 0.8: our choice; two failures make a perfect link worse
/// than one that loses a third.
const TRUST: f64 = 0.8;
/// The least number of frames from which a link's share follows. 16: our choice; by chance a good link does not lose half of them.
const FRAMES_MIN: u32 = 16;
/// Answers in a row that the source did not hear, after which a plan counts as broken backwards. 4: our choice; one that brings half of
/// the answers loses as many once in sixteen times.
const UNHEARD: u8 = 4;
/// The share below which a link has failed, as in [`Trial::has_failed`].
const HALF: f64 = 0.5;

/// A planner for the attempts of one transfer.
#[derive(Clone, Debug)]
pub struct Replan {
    ratios: Arc<Ratios>,
    config: Config,
    wish: Wish,
    wanted: Wanted,
    first: Plan,
    /// How often each pair of nodes was a link of a group that failed, since it last worked.
    failures: BTreeMap<(u16, u16), u8>,
    /// The share that each link was last told to have brought, of those that failed.
    seen: BTreeMap<(u16, u16), f64>,
    /// Every plan so far.
    plans: Vec<Plan>,
    tried: u32,
}

impl Replan {
    /// A planner whose first plan is known.
    pub fn new(ratios: Ratios, config: Config, wish: Wish, wanted: Wanted, first: Plan) -> Replan {
        Replan {
            failures: BTreeMap::new(),
            seen: BTreeMap::new(),
            ratios: Arc::new(ratios),
            config,
            wish,
            wanted,
            first,
            plans: Vec::new(),
            tried: 0,
        }
    }

    /// Every plan so far, in order.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    fn next(&mut self, last: Option<&Trial>) -> Plan {
        let Some(last) = last else { return self.first };
        self.tried += 1;
        let told = self.learn(last);
        // What is lost most often is the flood, and an attempt that gained packets had a plan that works.
        let again = self.tried == 1 || last.gained > 0 && self.tried < 3;
        match told {
            Lesson::Failed => {}
            Lesson::Missed if self.tried < 3 => return last.plan,
            // Questions came and no answer did, by one relay of each stage, then by each group and by all: another flood mends nothing.
            _ if last.unheard >= UNHEARD => self.doubt_all(last),
            Lesson::Missed | Lesson::Nothing if again => return last.plan,
            Lesson::Missed | Lesson::Nothing => self.doubt(last),
        }
        let doubted = Doubted {
            ratios: &self.ratios,
            failures: &self.failures,
            seen: &self.seen,
        };
        let found = planned(&doubted, self.wanted, &self.config, &self.wish);
        // Without another way the last one is as good as any.
        found.ok().flatten().unwrap_or(last.plan)
    }

    /// Takes in what the nodes told of the groups that failed.
    fn learn(&mut self, last: &Trial) -> Lesson {
        let mut lesson = Lesson::Nothing;
        for group in (0..last.plan.groups()).filter(|&group| last.has_failed(group)) {
            for hop in 0..last.plan.hops() {
                for from in stage(&last.plan, hop, group) {
                    for to in stage(&last.plan, hop + 1, group) {
                        let link = pair(from, to);
                        match share(last, group, from, to) {
                            Seen::Share(share) if share < HALF => {
                                self.seen.insert(link, share);
                                lesson = Lesson::Failed;
                            }
                            Seen::Share(_) => {
                                self.seen.remove(&link);
                                self.failures.remove(&link);
                            }
                            Seen::Missed if lesson == Lesson::Nothing => lesson = Lesson::Missed,
                            Seen::Missed | Seen::Nothing => {}
                        }
                    }
                }
            }
        }
        lesson
    }

    /// Doubts all links of a plan on whose way back every answer was lost: no node tells which of them loses answers.
    fn doubt_all(&mut self, last: &Trial) {
        for link in (0..last.plan.groups()).flat_map(|group| links(&last.plan, group)) {
            let failures = self.failures.entry(link).or_default();
            *failures = failures.saturating_add(1);
        }
    }

    /// Doubts all links of the groups that failed.
    fn doubt(&mut self, last: &Trial) {
        for group in 0..last.plan.groups() {
            for link in links(&last.plan, group) {
                if last.has_failed(group) {
                    let failures = self.failures.entry(link).or_default();
                    *failures = failures.saturating_add(1);
                } else {
                    self.failures.remove(&link);
                    self.seen.remove(&link);
                }
            }
        }
    }
}

/// What an attempt's nodes told of the groups that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lesson {
    /// Links that brought less than half.
    Failed,
    /// Only that nodes missed the flood.
    Missed,
    Nothing,
}

/// What is known of one link of an attempt.
enum Seen {
    /// The share of frames that arrived.
    Share(f64),
    /// One of its ends missed the flood.
    Missed,
    Nothing,
}

/// What the ends of a link told of it.
fn share(last: &Trial, group: u8, from: u16, to: u16) -> Seen {
    match (told(last, group, from), told(last, group, to)) {
        (Some(Told::Absent), _) | (_, Some(Told::Absent)) => Seen::Missed,
        (Some(Told::Frames(sent)), Some(Told::Frames(heard))) if sent >= FRAMES_MIN => {
            Seen::Share(f64::from(heard) / f64::from(sent))
        }
        _ => Seen::Nothing,
    }
}

/// What a node of a group told; the destination knows itself what came by the group.
fn told(last: &Trial, group: u8, node: u16) -> Option<Told> {
    let plan = &last.plan;
    if node == plan.destination() {
        let came = last.heard.get(usize::from(group)).copied();
        return came.map(Told::Frames);
    }
    if node == plan.source() {
        // It counts the frames of all groups, which take turns.
        return last.told.source().map(|told| match told {
            Told::Frames(all) => Told::Frames(all / u32::from(plan.groups().max(1))),
            Told::Absent => Told::Absent,
        });
    }
    let at = plan.relays().iter().position(|place| place.node == node)?;
    last.told.relay(at)
}

impl Planner for Replan {
    fn plan(&mut self, last: Option<&Trial>) -> Option<Plan> {
        // Its own choice, not what the gateway made of the last plan.
        let plan = self.next(last).at_length(self.first.is_long());
        self.plans.push(plan);
        Some(plan)
    }
}

/// The nodes of a stage and group; the source is stage 0, the destination the last one.
fn stage(plan: &Plan, stage: u8, group: u8) -> Vec<u16> {
    match stage {
        0 => vec![plan.source()],
        last if last >= plan.hops() => vec![plan.destination()],
        _ => {
            let own = |place: &&Place| place.stage == stage && place.group == group;
            let relays = plan.relays().iter().filter(own);
            relays.map(|place| place.node).collect()
        }
    }
}

/// The links over which a group's packets travel, from stage to stage; the lower node first, since answers return over them.
fn links(plan: &Plan, group: u8) -> Vec<(u16, u16)> {
    let mut all = Vec::new();
    for hop in 0..plan.hops() {
        for from in stage(plan, hop, group) {
            all.extend(
                stage(plan, hop + 1, group)
                    .into_iter()
                    .map(|to| pair(from, to)),
            );
        }
    }
    all
}

fn pair(a: u16, b: u16) -> (u16, u16) {
    (a.min(b), a.max(b))
}

/// Links that failed, trusted less.
struct Doubted<'a> {
    ratios: &'a Ratios,
    failures: &'a BTreeMap<(u16, u16), u8>,
    seen: &'a BTreeMap<(u16, u16), f64>,
}

impl Links for Doubted<'_> {
    fn nodes(&self) -> usize {
        self.ratios.nodes()
    }

    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64 {
        let link = pair(from as u16, to as u16);
        let (failures, seen) = (self.failures.get(&link), self.seen.get(&link));
        let doubt = failures.map_or(1.0, |&failures| TRUST.powi(failures.into()));
        self.ratios.prr(channel, from, to) * doubt * seen.copied().unwrap_or(1.0)
    }

    fn power(&self, channel: Channel, from: usize, to: usize) -> Option<Dbm> {
        self.ratios.power(channel, from, to)
    }
}

#[cfg(test)]
mod tests;
