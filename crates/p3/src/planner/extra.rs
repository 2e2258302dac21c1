//! Nodes beside the paths that may help a stage.

use crate::part::{PaperPart, Place};
use crate::plan::Plan;

use super::LinkGraph;

//= p3 IV-C.3: unused nodes with links to the stages before and after join a stage
/// The plan with every unused node of `graph` that has a link to some node of the stage before and to some node of the
/// stage after a stage: it joins the smaller group there. Nodes are asked in ascending order, and join the emptiest stage
/// that takes them, until the plan is full.
///
/// In the last stage a node sends to the destination if `last_prr` reaches `threshold`, as in
/// [`Plan::from_paths`]. The paper's evaluation used no such nodes: its Table IV has exactly those of the paths.
pub fn with_extra_nodes(
    plan: &Plan,
    graph: &LinkGraph,
    threshold: f64,
    last_prr: impl Fn(u16) -> f64,
) -> Plan {
    let mut plan = *plan;
    for node in 0..graph.nodes() {
        let Ok(number) = u16::try_from(node) else {
            break;
        };
        let ends = number == plan.source() || number == plan.destination();
        if ends || plan.part_of(number).is_some() {
            continue;
        }
        let fits = |stage: &u8| {
            let before = stage_links(&plan, graph, node, stage - 1);
            before && stage_links(&plan, graph, node, stage + 1)
        };
        let members = |stage: u8| plan.relays().iter().filter(move |part| part.stage == stage);
        let Some(stage) = (1..plan.hops())
            .filter(fits)
            .min_by_key(|&stage| members(stage).count())
        else {
            continue;
        };
        let in_group = |group: u8| members(stage).filter(|part| part.group == group).count();
        let group = u8::from(!plan.is_single() && in_group(1) < in_group(0));
        let place = Place {
            node: number,
            stage,
            group,
        };
        let part = PaperPart {
            place,
            sends: stage + 1 < plan.hops() || last_prr(number) >= threshold,
        };
        match plan.joined(part) {
            Ok(larger) => plan = larger,
            // Full.
            Err(_) => break,
        }
    }
    plan
}

/// Whether a node has a link to a stage, whose ends are source and destination.
fn stage_links(plan: &Plan, graph: &LinkGraph, node: usize, stage: u8) -> bool {
    let linked = |other: u16| graph.linked(node, usize::from(other));
    match stage {
        0 => linked(plan.source()),
        stage if stage == plan.hops() => linked(plan.destination()),
        stage => (plan.relays().iter()).any(|part| part.stage == stage && linked(part.node)),
    }
}
