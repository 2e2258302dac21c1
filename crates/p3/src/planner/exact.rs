//! The exact answer: branch and bound, with the largest flow as the bound.
//!
//! Where the length is the hop distance every node fits one stage, a flow through places is a set of
//! node-distinct paths, and one max-flow is the proof. With slack, a flow may use a node in two stages. Then
//! that node is fixed to each of its stages in turn; the flow can only fall, so a branch whose flow does not
//! beat the best set found so far is closed.

use alloc::vec;
use alloc::vec::Vec;

use super::stages::Stages;
use super::{LinkGraph, PathSet};

/// The largest set of node-distinct paths of exactly `hops` hops. Gives up the proof, not the answer, after
/// `budget` flows (0.02 to 0.2 ms each for 139 nodes); 10,000 is plenty for the networks of the paper.
///
/// Empty where no such path exists or where source and destination are the same or unknown.
pub fn largest_path_set(
    graph: &LinkGraph,
    source: usize,
    destination: usize,
    hops: usize,
    budget: usize,
) -> PathSet {
    let Some(stages) = Stages::open(graph, source, destination, hops) else {
        return PathSet {
            paths: Vec::new(),
            proven: true,
        };
    };
    let mut search = Search {
        graph,
        best: Vec::new(),
        flows_left: budget.max(1),
        cut_off: false,
    };
    search.visit(stages);
    PathSet {
        paths: search.best,
        proven: !search.cut_off,
    }
}

struct Search<'a> {
    graph: &'a LinkGraph,
    best: Vec<Vec<usize>>,
    flows_left: usize,
    cut_off: bool,
}

impl Search<'_> {
    /// Depth first; the explicit stack keeps the most promising child on top.
    fn visit(&mut self, root: Stages) {
        let mut open = vec![root];
        while let Some(stages) = open.pop() {
            if self.flows_left == 0 {
                self.cut_off = true;
                return;
            }
            self.flows_left -= 1;
            let flow = stages.largest_flow(self.graph);
            if flow.len() <= self.best.len() {
                continue;
            }
            let repeated = most_repeated(self.graph.nodes(), &flow);
            self.keep_distinct(&flow);
            let Some(node) = repeated else { continue };
            let choices = stages.allowed[node];
            // The stage in which the flow uses the node first goes last on the stack, so it is tried first.
            let used = flow
                .iter()
                .find_map(|path| path.iter().position(|&relay| relay == node));
            let first = used.map_or(0, |place| place + 1);
            let others = (1..stages.hops).filter(|&stage| stage != first);
            for stage in others
                .chain([first])
                .filter(|stage| choices >> stage & 1 == 1)
            {
                let mut child = stages.clone();
                child.allowed[node] = 1 << stage;
                open.push(child);
            }
        }
    }

    /// Keeps the paths of a flow that share no node, if they are more than the best so far.
    fn keep_distinct(&mut self, flow: &[Vec<usize>]) {
        let mut taken = vec![false; self.graph.nodes()];
        let mut distinct = Vec::new();
        for path in flow {
            let alone = path.iter().all(|&relay| !taken[relay]);
            let simple = path
                .iter()
                .enumerate()
                .all(|(at, relay)| !path[..at].contains(relay));
            if alone && simple {
                path.iter().for_each(|&relay| taken[relay] = true);
                distinct.push(path.clone());
            }
        }
        if distinct.len() > self.best.len() {
            self.best = distinct;
        }
    }
}

/// The node that stands in most places of the flow, if any stands in more than one.
fn most_repeated(nodes: usize, flow: &[Vec<usize>]) -> Option<usize> {
    let mut places = vec![0u32; nodes];
    for &relay in flow.iter().flatten() {
        places[relay] += 1;
    }
    let most = (0..nodes).max_by_key(|&node| (places[node], usize::MAX - node))?;
    (places[most] > 1).then_some(most)
}
