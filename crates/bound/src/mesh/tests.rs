//! Mesh bounds against closed forms, and against listing every path and every independent set.

use super::*;
use crate::graph::Graph;
use crate::program::{Program, Row};
use chappe_testkit::SplitMix64;

fn links(pairs: &[(usize, usize)], rate_bps: f64) -> Vec<MeshLink> {
    let link = |&(from, to): &(usize, usize)| MeshLink { from, to, rate_bps };
    pairs.iter().map(link).collect()
}

fn flows(pairs: &[(usize, usize)]) -> Vec<MeshFlow> {
    let flow = |&(source, sink): &(usize, usize)| MeshFlow { source, sink };
    pairs.iter().map(flow).collect()
}

/// In range of each other: `edges`, both ways.
fn mesh(
    nodes: usize,
    pairs: &[(usize, usize)],
    edges: &[(usize, usize)],
    conflict: Conflict,
) -> Mesh {
    let near = |a: usize, b: usize| edges.contains(&(a, b)) || edges.contains(&(b, a));
    Mesh::new(nodes, links(pairs, 900e3), conflict, near).unwrap()
}

fn solve(mesh: &Mesh, flows: &[MeshFlow], objective: Objective) -> MeshBound {
    let bound = mesh_bound(mesh, flows, objective, &MeshOptions::default()).unwrap();
    assert!(bound.gap >= -1e-9 && bound.gap <= 2e-3, "{bound:?}");
    check_feasible(mesh, flows, &bound);
    bound
}

/// The schedule is one of independent sets, and carries the paths, which lead from source to sink.
fn check_feasible(mesh: &Mesh, flows: &[MeshFlow], bound: &MeshBound) {
    let mut capacity = vec![0.0; mesh.links().len()];
    let mut total = 0.0;
    for (set, share) in &bound.schedule {
        total += share;
        for (index, &a) in set.iter().enumerate() {
            capacity[a] += share * mesh.links()[a].rate_bps;
            assert!(
                set[..index]
                    .iter()
                    .all(|&b| !mesh.conflicts().adjacent(a, b))
            );
        }
    }
    assert!(total <= 1.0 + 1e-9);
    let mut rates = vec![0.0; flows.len()];
    for path in &bound.paths {
        let mut at = flows[path.flow].source;
        for &link in &path.links {
            assert_eq!(mesh.links()[link].from, at);
            at = mesh.links()[link].to;
            capacity[link] -= path.rate_bps;
        }
        assert_eq!(at, flows[path.flow].sink);
        rates[path.flow] += path.rate_bps;
    }
    assert!(capacity.iter().all(|&left| left > -1e-3), "{capacity:?}");
    assert_eq!(rates, bound.rates_bps);
}

#[track_caller]
fn near(ours: &[f64], expected: &[f64]) {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 2.5e-3 * b.abs();
    assert!(
        ours.len() == expected.len() && ours.iter().zip(expected).all(close),
        "{ours:?}, expected {expected:?}"
    );
}

/// The starvation topologies of Garetto, Salonidis and Knightly: what a schedule gives where the DCF starves. Information
/// asymmetry, hidden senders and the flow in the middle all have 450 each in them.
#[test]
fn starvation_topologies_have_enough_for_all() {
    let chain = [(0, 1), (1, 2), (2, 3)];
    for pairs in [[(0, 1), (2, 3)], [(0, 1), (3, 2)]] {
        let mesh = mesh(4, &pairs, &chain, Conflict::Symmetric);
        let bound = solve(&mesh, &flows(&pairs), Objective::MaxMin);
        near(&bound.rates_bps, &[450e3; 2]);
        assert_eq!(bound.bottleneck, [0, 1]);
    }
    let pairs = [(0, 1), (2, 3), (4, 5)];
    let edges = [(0, 1), (2, 3), (4, 5), (0, 2), (2, 4)];
    let mesh = mesh(6, &pairs, &edges, Conflict::Symmetric);
    near(
        &solve(&mesh, &flows(&pairs), Objective::MaxMin).rates_bps,
        &[450e3; 3],
    );
    // Proportional fairness gives the middle a third: maximise log m + 2 log (c - m).
    near(
        &solve(&mesh, &flows(&pairs), Objective::SumLog).rates_bps,
        &[600e3, 300e3, 600e3],
    );
    // And the largest sum leaves it out.
    let sum = solve(&mesh, &flows(&pairs), Objective::Sum);
    near(&[sum.value], &[1800e3]);
    assert!(sum.jain() < 0.67);
}

/// The six-node network of DPCLO's second figure in one collision domain, single path: a third of a link each, and a
/// quarter where the second flow shares the last hop.
#[test]
fn one_collision_domain_is_arithmetic() {
    let everyone = |_: usize, _: usize| true;
    for (pairs, share) in [
        (vec![(0, 3), (3, 4), (5, 3)], 3.0),
        (vec![(0, 3), (3, 4), (3, 4), (4, 5)], 4.0),
    ] {
        let ends = match share as usize {
            3 => flows(&[(0, 4), (5, 3)]),
            _ => flows(&[(0, 4), (3, 5)]),
        };
        let mesh = Mesh::new(6, links(&pairs, 900e3), Conflict::Symmetric, everyone).unwrap();
        let bound = solve(&mesh, &ends, Objective::MaxMin);
        near(&bound.rates_bps, &[900e3 / share; 2]);
    }
}

/// In one collision domain with h hops for flow s, proportional fairness gives each flow the same airtime: c / (n h).
#[test]
fn proportional_fairness_shares_the_airtime() {
    let pairs = [(0, 1), (1, 2), (2, 3)];
    let mesh = Mesh::new(4, links(&pairs, 900e3), Conflict::Symmetric, |_, _| true).unwrap();
    let ends = flows(&[(0, 3), (1, 3), (2, 3)]);
    let bound = solve(&mesh, &ends, Objective::SumLog);
    near(&bound.rates_bps, &[100e3, 150e3, 300e3]);
    let fair = solve(&mesh, &ends, Objective::MaxMin);
    near(&fair.rates_bps, &[150e3; 3]);
    let sum = solve(&mesh, &ends, Objective::Sum);
    near(&[sum.value], &[900e3]);
    let share = |bound: &MeshBound| bound.airtime.iter().sum::<f64>();
    near(&[share(&bound), share(&fair), share(&sum)], &[1.0; 3]);
}

/// Five links in a ring, each in conflict with its neighbours: at most two at once, though no clique says so.
#[test]
fn an_odd_ring_separates_the_two_bounds() {
    let mut ring = Graph::new(5);
    (0..5).for_each(|link| ring.connect(link, (link + 1) % 5));
    let pairs: Vec<(usize, usize)> = (0..5).map(|link| (2 * link, 2 * link + 1)).collect();
    let mesh = Mesh::with_conflicts(10, links(&pairs, 1e6), ring).unwrap();
    let ends = flows(&pairs);
    near(
        &solve(&mesh, &ends, Objective::MaxMin).rates_bps,
        &[400e3; 5],
    );
    let cliques = clique_bound(&mesh, &ends, Objective::MaxMin).unwrap();
    near(&[cliques.bound], &[500e3]);
    let logs = clique_bound(&mesh, &ends, Objective::SumLog).unwrap();
    near(&[logs.bound], &[5.0 * 500e3_f64.ln()]);
}

/// Every simple path of every flow and every independent set, in one program: small random meshes with different rates
/// must agree, under all objectives and all kinds of conflict, and the clique bound must not be lower.
#[test]
fn random_meshes_match_listing_everything() {
    let mut random = SplitMix64(11);
    let mut seen = 0;
    while seen < 40 {
        let (mesh, ends) = random_mesh(&mut random);
        if mesh.check(&ends).is_err() {
            continue;
        }
        seen += 1;
        for objective in [Objective::Sum, Objective::MaxMin, Objective::SumLog] {
            let bound = solve(&mesh, &ends, objective);
            let listed = list_everything(&mesh, &ends, objective);
            let gap = objective.gap(bound.value, listed, ends.len());
            assert!((-1e-4..2e-3).contains(&gap), "{gap} in {mesh:?}");
            assert!(objective.gap(listed, bound.bound, ends.len()) > -1e-4);
            let cliques = clique_bound(&mesh, &ends, objective).unwrap();
            assert!(objective.gap(listed, cliques.bound, ends.len()) > -1e-4);
        }
    }
}

fn random_mesh(random: &mut SplitMix64) -> (Mesh, Vec<MeshFlow>) {
    let nodes = 4 + (random.unit() * 2.0) as usize;
    let places: Vec<(f64, f64)> = (0..nodes).map(|_| (random.unit(), random.unit())).collect();
    let distance = |a: usize, b: usize| {
        let (a, b): ((f64, f64), (f64, f64)) = (places[a], places[b]);
        (a.0 - b.0).hypot(a.1 - b.1)
    };
    let mut links = Vec::new();
    for from in 0..nodes {
        for to in (0..nodes).filter(|&to| to != from) {
            if distance(from, to) < 0.5 && links.len() < 12 {
                let rate_bps = 1e6 * (0.3 + 0.7 * random.unit());
                links.push(MeshLink { from, to, rate_bps });
            }
        }
    }
    let kinds = [
        Conflict::NodeExclusive,
        Conflict::DataOnly,
        Conflict::Symmetric,
    ];
    let conflict = kinds[(random.unit() * 3.0) as usize % 3];
    let reach = 0.3 + 0.4 * random.unit();
    let mesh = Mesh::new(nodes, links, conflict, |a, b| distance(a, b) < reach).unwrap();
    (
        mesh,
        flows(&[(0, nodes - 1), (1, nodes - 1), (nodes - 1, 0)]),
    )
}

fn list_everything(mesh: &Mesh, ends: &[MeshFlow], objective: Objective) -> f64 {
    let unit = 1e6;
    let mut program = Program::default();
    let gain = if objective == Objective::Sum {
        1.0
    } else {
        0.0
    };
    let rates: Vec<usize> = ends.iter().map(|_| program.column(gain)).collect();
    if objective == Objective::SumLog {
        program.logs = rates.clone();
    }
    if objective == Objective::MaxMin {
        let least = program.column(1.0);
        for &rate in &rates {
            let terms = vec![(least, 1.0), (rate, -1.0)];
            program.at_most.push(Row { terms, limit: 0.0 });
        }
    }
    let mut capacity: Vec<Vec<(usize, f64)>> = vec![Vec::new(); mesh.links().len()];
    for (flow, &rate) in ends.iter().zip(&rates) {
        let mut sum = vec![(rate, 1.0)];
        for path in simple_paths(mesh, *flow) {
            let column = program.column(0.0);
            sum.push((column, -1.0));
            path.iter()
                .for_each(|&link| capacity[link].push((column, 1.0)));
        }
        program.at_most.push(Row {
            terms: sum,
            limit: 0.0,
        });
    }
    let mut shares = Vec::new();
    for mask in 1u32..1 << mesh.links().len() {
        let set: Vec<usize> = (0..mesh.links().len())
            .filter(|&l| mask >> l & 1 == 1)
            .collect();
        let clash = |&a: &usize| set.iter().any(|&b| mesh.conflicts().adjacent(a, b));
        if set.iter().any(clash) {
            continue;
        }
        let column = program.column(0.0);
        shares.push((column, 1.0));
        for link in set {
            capacity[link].push((column, -mesh.links()[link].rate_bps / unit));
        }
    }
    program.at_most.push(Row {
        terms: shares,
        limit: 1.0,
    });
    let rows = capacity.into_iter().map(|terms| Row { terms, limit: 0.0 });
    program.at_most.extend(rows);
    let solution = program.solve(1e-9).unwrap();
    let rates: Vec<f64> = rates
        .iter()
        .map(|&rate| solution.values[rate] * unit)
        .collect();
    objective.of(&rates)
}

fn simple_paths(mesh: &Mesh, flow: MeshFlow) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let mut open = vec![(flow.source, Vec::new(), vec![flow.source])];
    while let Some((node, links, seen)) = open.pop() {
        if node == flow.sink {
            found.push(links);
            continue;
        }
        for (number, link) in mesh.links().iter().enumerate() {
            if link.from == node && !seen.contains(&link.to) {
                let (mut links, mut seen) = (links.clone(), seen.clone());
                links.push(number);
                seen.push(link.to);
                open.push((link.to, links, seen));
            }
        }
    }
    found
}

/// Any potentials prove a bound: random ones are never below what was found feasible.
#[test]
fn any_potentials_are_a_proof() {
    let mut random = SplitMix64(12);
    let pairs = [(0, 1), (1, 2), (2, 3), (0, 2)];
    let mesh = mesh(4, &pairs, &[(0, 1), (1, 2), (2, 3)], Conflict::Symmetric);
    let ends = flows(&[(0, 3), (1, 3)]);
    for objective in [Objective::Sum, Objective::MaxMin, Objective::SumLog] {
        let best = solve(&mesh, &ends, objective);
        for _ in 0..100 {
            let certificate = MeshCertificate {
                sinks: vec![3],
                potentials: vec![(0..4).map(|_| random.unit()).collect()],
            };
            let bound = certificate.bound(&mesh, &ends, objective, 0.0);
            assert!(bound >= best.value - 1e-6 * best.value.abs());
        }
        for nothing in [vec![], vec![3]] {
            let potentials = nothing.iter().map(|_| vec![0.0; 4]).collect();
            let nothing = MeshCertificate {
                sinks: nothing,
                potentials,
            };
            assert_eq!(nothing.bound(&mesh, &ends, objective, 0.0), f64::INFINITY);
        }
    }
}

/// Goal: no one reads an optimum that the solver did not come close to. Method: a path in one domain after the first, rough program.
#[test]
fn a_wide_gap_is_refused() {
    let pairs = [(0, 1), (1, 2), (2, 3)];
    let mesh = Mesh::new(4, links(&pairs, 900e3), Conflict::Symmetric, |_, _| true).unwrap();
    let ends = flows(&[(0, 3), (1, 3), (2, 3)]);
    let hasty = MeshOptions {
        rounds: 1,
        ..MeshOptions::default()
    };
    let bound = mesh_bound(&mesh, &ends, Objective::SumLog, &hasty).unwrap();
    let gap = bound.gap;
    assert!(gap > 1e-3, "{gap}");
    assert!(bound.clone().within(gap).is_ok());
    let limit = gap / 2.0;
    let refused = bound.within(limit).unwrap_err();
    assert_eq!(refused, crate::Error::Unproven { gap, limit });
}

#[test]
fn bad_questions_are_refused() {
    let one = links(&[(0, 1)], 1e6);
    let far = |_: usize, _: usize| false;
    let mesh = Mesh::new(3, one.clone(), Conflict::Symmetric, far).unwrap();
    let ask = |pairs: &[(usize, usize)]| {
        let options = MeshOptions::default();
        mesh_bound(&mesh, &flows(pairs), Objective::Sum, &options).unwrap_err()
    };
    use crate::error::Error;
    assert_eq!(ask(&[]), Error::NoFlows);
    assert_eq!(ask(&[(1, 0)]), Error::NoRoute { source: 1, sink: 0 });
    assert_eq!(ask(&[(0, 0)]), Error::NoRoute { source: 0, sink: 0 });
    assert_eq!(ask(&[(0, 9)]), Error::NoSuchNode { node: 9, nodes: 3 });
    let bad = |link| Mesh::new(3, vec![link], Conflict::Symmetric, far).unwrap_err();
    let link = one[0];
    assert_eq!(
        bad(MeshLink { to: 0, ..link }),
        Error::LoopLink { link: 0, node: 0 }
    );
    let slow = MeshLink {
        rate_bps: 0.0,
        ..link
    };
    assert_eq!(
        bad(slow),
        Error::LinkRate {
            link: 0,
            value: 0.0
        }
    );
    let shape = Mesh::with_conflicts(3, one, Graph::new(2)).unwrap_err();
    assert!(shape.to_string().contains("conflicts"));
}
