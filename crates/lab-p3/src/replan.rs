//! The gateway's plans after the first: links that brought nothing are doubted.
//!
//! The gateway has one measurement. What it learns afterwards comes from its attempts: a group that brought less than half of
//! what the best one brought has a link that is not what was measured. Which one is not known, so all links of the group
//! are doubted, and the next plan takes others where these are nearly as good. A link is trusted again once a group that
//! has it brings packets. Links and not relays, because a relay that its stage before does not reach may still hear others.

use std::collections::BTreeMap;
use std::sync::Arc;

use chappe_core::{Channel, Dbm};
use chappe_p3::planner::{Links, Wish};
use chappe_p3::{Config, Place, Plan, Planner, Trial, Wanted};

use super::prepare::Ratios;
use super::route::planned;

/// The share that is left of the trust in a link after each failure. 0.8: our choice; two failures make a perfect link worse
/// than one that loses a third.
const TRUST: f64 = 0.8;

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
    /// Every plan so far.
    plans: Vec<Plan>,
    tried: u32,
}

impl Replan {
    /// A planner whose first plan is known.
    pub fn new(ratios: Ratios, config: Config, wish: Wish, wanted: Wanted, first: Plan) -> Replan {
        Replan {
            failures: BTreeMap::new(),
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
        // What is lost most often is the flood, and an attempt that gained packets had a plan that works.
        if self.tried == 1 || last.gained > 0 && self.tried < 3 {
            return last.plan;
        }
        for group in 0..last.plan.groups() {
            for link in links(&last.plan, group) {
                if last.has_failed(group) {
                    let failures = self.failures.entry(link).or_default();
                    *failures = failures.saturating_add(1);
                } else {
                    self.failures.remove(&link);
                }
            }
        }
        let doubted = Doubted {
            ratios: &self.ratios,
            failures: &self.failures,
        };
        let found = planned(&doubted, self.wanted, &self.config, &self.wish);
        // Without another way the last one is as good as any.
        found.ok().flatten().unwrap_or(last.plan)
    }
}

impl Planner for Replan {
    fn plan(&mut self, last: Option<&Trial>) -> Option<Plan> {
        // Its own choice, not what the gateway made of the last plan.
        let plan = self.next(last).at_length(self.first.is_long());
        self.plans.push(plan);
        Some(plan)
    }
}

/// The links over which a group's packets travel, from stage to stage; the lower node first, since answers return over them.
fn links(plan: &Plan, group: u8) -> Vec<(u16, u16)> {
    let stage = |stage: u8| -> Vec<u16> {
        match stage {
            0 => vec![plan.source()],
            last if last >= plan.hops() => vec![plan.destination()],
            _ => {
                let own = |place: &&Place| place.stage == stage && place.group == group;
                plan.relays()
                    .iter()
                    .filter(own)
                    .map(|place| place.node)
                    .collect()
            }
        }
    };
    let mut all = Vec::new();
    for hop in 0..plan.hops() {
        for &from in &stage(hop) {
            all.extend(stage(hop + 1).iter().map(|&to| pair(from, to)));
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
}

impl Links for Doubted<'_> {
    fn nodes(&self) -> usize {
        self.ratios.nodes()
    }

    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64 {
        let failures = self.failures.get(&pair(from as u16, to as u16));
        let doubt = failures.map_or(1.0, |&failures| TRUST.powi(failures.into()));
        self.ratios.prr(channel, from, to) * doubt
    }

    fn power(&self, channel: Channel, from: usize, to: usize) -> Option<Dbm> {
        self.ratios.power(channel, from, to)
    }
}
