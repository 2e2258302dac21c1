//! The gateway's plans after the first: links that brought nothing are doubted.
//!
//! The gateway has one measurement. What it learns afterwards comes from its attempts: a group that brought less than half of
//! what the best one brought has a link that is not what was measured. Which one is not known, so all relays of the group
//! are doubted, and the next plan takes others where these are nearly as good.

use std::sync::Arc;

use chappe_core::{Channel, Dbm};
use chappe_p3::planner::{Links, Wish};
use chappe_p3::{Config, Plan, Planner, Trial, Wanted};

use super::prepare::Ratios;
use super::route::planned;

/// The share that is left of the trust in a relay's links after each failure. 0.8: our choice; two failures make a relay of
/// perfect links worse than one that loses a third.
const TRUST: f64 = 0.8;

/// A planner for the attempts of one transfer.
#[derive(Clone, Debug)]
pub struct Replan {
    ratios: Arc<Ratios>,
    config: Config,
    wish: Wish,
    wanted: Wanted,
    first: Plan,
    /// How often each node was a relay of a group that failed.
    failures: Vec<u8>,
    /// Every plan so far.
    plans: Vec<Plan>,
    tried: u32,
}

impl Replan {
    /// A planner whose first plan is known.
    pub fn new(ratios: Ratios, config: Config, wish: Wish, wanted: Wanted, first: Plan) -> Replan {
        Replan {
            failures: vec![0; ratios.nodes()],
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
        for relay in last.plan.relays() {
            if last.has_failed(relay.group) {
                let failures = &mut self.failures[usize::from(relay.node)];
                *failures = failures.saturating_add(1);
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
        let plan = self.next(last);
        self.plans.push(plan);
        Some(plan)
    }
}

/// Links of relays that failed, trusted less.
struct Doubted<'a> {
    ratios: &'a Ratios,
    failures: &'a [u8],
}

impl Links for Doubted<'_> {
    fn nodes(&self) -> usize {
        self.ratios.nodes()
    }

    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64 {
        let of = |node: usize| i32::from(self.failures.get(node).copied().unwrap_or(0));
        self.ratios.prr(channel, from, to) * TRUST.powi(of(from) + of(to))
    }

    fn power(&self, channel: Channel, from: usize, to: usize) -> Option<Dbm> {
        self.ratios.power(channel, from, to)
    }
}
