//! What 108 random nodes can carry from seven sources to one sink, under three goals, with the time it takes.
//!
//! ```text
//! cargo run --release -p chappe-bound --example mesh [-- FIRST_SEED [NETWORKS]] [many]
//! ```
//!
//! The model is that of DPCLO's larger experiment: nodes uniform in 1250 m by 1250 m, range 250 m. Node 0 is the sink; the
//! sources are seven nodes spread over the distances in hops, farthest first. Rates are shares of one link. Conflicts: any
//! two ends within 550 m (`550`), a sender within 550 m of a receiver (`data`), or any two ends within 250 m (`2hop`); with `many`, seven flows
//! to seven sinks as well (550 m), which takes some 20 s.
//!
//! Columns: total of the optimum and of the proven bound's gap in %; the flows' rates; Jain's index; the clique bound's
//! total (for max-min, seven times the smallest); linear programs, exact searches and sets; seconds of each.

use chappe_bound::{
    Conflict, Error, Mesh, MeshFlow, MeshLink, MeshOptions, Objective, clique_bound, mesh_bound,
};
use chappe_testkit::{SplitMix64, Words};
use std::time::Instant;

const NODES: usize = 108;
const SIDE_M: f64 = 1250.0;
const RANGE_M: f64 = 250.0;

fn main() -> Result<(), Error> {
    let mut words = Words::of_process("mesh [FIRST_SEED [NETWORKS]] [many]");
    let many = words.flag("many");
    let mut number = |usual: u64| words.next("number").unwrap_or(usual);
    let (first, networks) = (number(1), number(1));
    words.end();
    for seed in first..first + networks {
        network(seed, many)?;
    }
    Ok(())
}

fn network(seed: u64, many: bool) -> Result<(), Error> {
    let places = connected(seed);
    let distance = |a: usize, b: usize| {
        let (a, b): ((f64, f64), (f64, f64)) = (places[a], places[b]);
        (a.0 - b.0).hypot(a.1 - b.1)
    };
    let mut links = Vec::new();
    for from in 0..NODES {
        for to in (0..NODES).filter(|&to| to != from && distance(from, to) <= RANGE_M) {
            let rate_bps = 1.0;
            links.push(MeshLink { from, to, rate_bps });
        }
    }
    let hops = hops(&places);
    let mut order: Vec<usize> = (1..NODES).collect();
    order.sort_by_key(|&node| (std::cmp::Reverse(hops[node]), node));
    // The farthest, the nearest, and five evenly between.
    let sources: Vec<usize> = (0..7).map(|n| order[n * (NODES - 2) / 6]).collect();
    let flows: Vec<MeshFlow> = (sources.iter())
        .map(|&source| MeshFlow { source, sink: 0 })
        .collect();
    let depth: Vec<usize> = sources.iter().map(|&source| hops[source]).collect();
    println!(
        "seed {seed}: {} links, mean degree {:.1}, sources {depth:?} hops away",
        links.len(),
        links.len() as f64 / NODES as f64
    );
    let disturbs = |reach: f64| move |a: usize, b: usize| distance(a, b) <= reach;
    for (name, conflict, reach) in [
        ("550", Conflict::Symmetric, 550.0),
        ("data", Conflict::DataOnly, 550.0),
        ("2hop", Conflict::Symmetric, RANGE_M),
    ] {
        let mesh = Mesh::new(NODES, links.clone(), conflict, disturbs(reach))?;
        for objective in [Objective::Sum, Objective::MaxMin, Objective::SumLog] {
            row(name, &mesh, &flows, objective)?;
        }
    }
    if !many {
        return Ok(());
    }
    // Many to many: each source sends to another one of the spread-out nodes. Seven sinks, seven times the loads.
    let pairs: Vec<MeshFlow> = (0..7)
        .map(|n| MeshFlow {
            source: sources[n],
            sink: order[(n * 31 + 17) % order.len()],
        })
        .filter(|flow| flow.source != flow.sink)
        .collect();
    let mesh = Mesh::new(NODES, links, Conflict::Symmetric, disturbs(550.0))?;
    row("many", &mesh, &pairs, Objective::MaxMin)
}

fn row(name: &str, mesh: &Mesh, flows: &[MeshFlow], objective: Objective) -> Result<(), Error> {
    let started = Instant::now();
    let bound = mesh_bound(mesh, flows, objective, &MeshOptions::default())?;
    let solved = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let cliques = clique_bound(mesh, flows, objective)?;
    let relaxed = started.elapsed().as_secs_f64();
    let total = match objective {
        Objective::SumLog => cliques.rates_bps.iter().sum(),
        Objective::MaxMin => cliques.bound * flows.len() as f64,
        Objective::Sum => cliques.bound,
    };
    let rates: Vec<String> = (bound.rates_bps.iter())
        .map(|rate| format!("{rate:.3}"))
        .collect();
    println!(
        "  {name:4} {:7} total {:.3} gap {:5.2} %  {}  jain {:.2}  cliques {total:.3}  \
         {:3} lp {:2} exact {:4} sets  {solved:5.1} s, {relaxed:5.1} s; bottleneck of {} links",
        format!("{objective:?}"),
        bound.total_bps(),
        100.0 * bound.gap,
        rates.join(" "),
        bound.jain(),
        bound.effort.programs,
        bound.effort.searches,
        bound.effort.sets,
        bound.bottleneck.len(),
    );
    Ok(())
}

fn connected(seed: u64) -> Vec<(f64, f64)> {
    let mut random = SplitMix64(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    loop {
        let places: Vec<(f64, f64)> = (0..NODES)
            .map(|_| (random.unit() * SIDE_M, random.unit() * SIDE_M))
            .collect();
        if hops(&places).iter().all(|&hops| hops < usize::MAX) {
            return places;
        }
    }
}

/// Distance to node 0 in hops.
fn hops(places: &[(f64, f64)]) -> Vec<usize> {
    let mut hops = vec![usize::MAX; NODES];
    hops[0] = 0;
    let mut open = std::collections::VecDeque::from([0]);
    while let Some(at) = open.pop_front() {
        for next in 0..NODES {
            let (a, b) = (places[at], places[next]);
            if hops[next] == usize::MAX && (a.0 - b.0).hypot(a.1 - b.1) <= RANGE_M {
                hops[next] = hops[at] + 1;
                open.push_back(next);
            }
        }
    }
    hops
}
