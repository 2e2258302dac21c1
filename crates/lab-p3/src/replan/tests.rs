use chappe_p3::Tally;
use chappe_scenario::Plan as Scenario;

use super::*;
use crate::plan::{P3, Variant};
use crate::prepare::prepare;
use crate::route::{route, wanted, wish};

/// A planner for a transfer across a generated building, and its first plan's attempt: half of the object came by all groups.
fn attempted() -> (Replan, Trial) {
    let text = "title = 'replan'\n[network]\ngenerator = 'building'\nnodes = 60\n[protocol]\nsystem = 'p3'\n\
                [[transfer]]\nreceivers = 1\nbytes = '59 kB'\n";
    let scenario = Scenario::parse(&[&crate::SYSTEM], "replan", text).unwrap();
    let prepared = prepare(scenario.network(3).unwrap());
    let with = P3::paper(Variant::Improved);
    let transfer = &prepared.network.transfers[0];
    let (source, destination, packets) = (transfer.source, transfer.receivers[0], 500);
    let known = prepared.learn(&with);
    let first = route(&with, &known, (3, source, destination), packets);
    let first = first.unwrap().unwrap().plan;
    let (wanted, wish) = (wanted(&with, source, destination), wish(&with, packets));
    let replan = Replan::new(known.ratios, with.config.clone(), wish, wanted, first);
    let groups = usize::from(first.groups());
    let trial = Trial {
        plan: first,
        heard: std::array::from_fn(|group| if group < groups { 80 } else { 0 }),
        gained: 250,
        unheard: 0,
        told: Tally::default(),
    };
    (replan, trial)
}

/// Goal: a plan is not tried again once its questions came and its answers did not. An attempt that brought as much, and whose answers came,
/// is repeated.
#[test]
fn a_plan_whose_answers_are_lost_is_not_repeated() {
    let (mut replan, trial) = attempted();
    assert!(trial.plan.hops() > 1, "one hop has no other way");
    assert_eq!(replan.plan(None), Some(trial.plan));
    for (unheard, repeated) in [(0, true), (UNHEARD - 1, true), (UNHEARD, false)] {
        let mut replan = replan.clone();
        let next = replan.plan(Some(&Trial { unheard, ..trial }));
        let same = next.is_some_and(|next| next.relays() == trial.plan.relays());
        assert_eq!(same, repeated, "{unheard} answers lost");
        let doubted = replan.failures.len();
        assert_eq!(doubted == 0, repeated, "{unheard}: {doubted} links doubted");
    }
}
