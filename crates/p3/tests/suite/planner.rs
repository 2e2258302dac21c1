//! The planner against brute force, against the properties of a path set, and against the paper's search.

use chappe_core::{Purpose, Seed, Stream};
use chappe_p3::planner::{
    LinkGraph, PathSet, choose_length, depth_first_path_set, largest_path_set, with_extra_nodes,
};

fn stream(trial: u32) -> Stream {
    Seed(11).stream(Purpose::Trial(trial))
}

/// Nodes at random in a unit square, linked when nearer than `range`.
fn random_geometric(nodes: usize, range: f64, random: &mut Stream) -> LinkGraph {
    let at: Vec<(f64, f64)> = (0..nodes)
        .map(|_| (random.fraction(), random.fraction()))
        .collect();
    LinkGraph::from_prr(nodes, 0.9, |a, b| {
        let (dx, dy) = (at[a].0 - at[b].0, at[a].1 - at[b].1);
        if dx.hypot(dy) < range { 1.0 } else { 0.0 }
    })
}

/// Asserts every property of a set of paths.
fn assert_sound(
    graph: &LinkGraph,
    source: usize,
    destination: usize,
    hops: usize,
    found: &PathSet,
) {
    let mut seen = vec![source, destination];
    for path in &found.paths {
        assert_eq!(path.len(), hops - 1, "length is exact");
        let mut before = source;
        for &relay in path {
            assert!(
                graph.linked(before, relay),
                "{before}-{relay} is not a link"
            );
            assert!(!seen.contains(&relay), "relay {relay} stands on two paths");
            seen.push(relay);
            before = relay;
        }
        assert!(graph.linked(before, destination));
    }
}

/// The size of the largest set by trying every path at every step.
fn brute_force(graph: &LinkGraph, source: usize, destination: usize, hops: usize) -> usize {
    fn paths(
        graph: &LinkGraph,
        at: usize,
        to: usize,
        left: usize,
        path: &mut Vec<usize>,
        all: &mut Vec<Vec<usize>>,
    ) {
        if left == 1 {
            if graph.linked(at, to) {
                all.push(path[1..].to_vec());
            }
            return;
        }
        for &next in graph.neighbours(at) {
            if next != to && !path.contains(&next) {
                path.push(next);
                paths(graph, next, to, left - 1, path, all);
                path.pop();
            }
        }
    }
    fn pack(all: &[Vec<usize>], taken: &mut Vec<usize>) -> usize {
        let Some((path, rest)) = all.split_first() else {
            return 0;
        };
        let without = pack(rest, taken);
        if path.iter().any(|relay| taken.contains(relay)) {
            return without;
        }
        let len = taken.len();
        taken.extend(path);
        let with = 1 + pack(rest, taken);
        taken.truncate(len);
        with.max(without)
    }
    let mut all = Vec::new();
    paths(
        graph,
        source,
        destination,
        hops,
        &mut vec![source],
        &mut all,
    );
    if all.len() > 22 {
        usize::MAX
    } else {
        pack(&all, &mut Vec::new())
    }
}

#[test]
fn the_exact_planner_equals_brute_force_on_small_networks() {
    let (mut compared, mut with_slack) = (0, 0);
    for trial in 0..1500 {
        let mut random = stream(trial);
        let graph = random_geometric(9 + (trial % 5) as usize, 0.42, &mut random);
        for hops in 2..=5 {
            let best = brute_force(&graph, 0, 1, hops);
            if best == usize::MAX {
                continue;
            }
            let found = largest_path_set(&graph, 0, 1, hops, 100_000);
            assert_sound(&graph, 0, 1, hops, &found);
            assert!(found.proven);
            assert_eq!(found.paths.len(), best, "trial {trial}, {hops} hops");
            compared += 1;
            with_slack += usize::from(graph.distances(0)[1].is_some_and(|d| hops > d) && best > 1);
        }
    }
    assert!(
        compared > 3000 && with_slack > 100,
        "{compared} compared, {with_slack} with slack"
    );
}

#[test]
fn the_exact_planner_never_finds_fewer_than_the_papers_search() {
    for trial in 0..40 {
        let mut random = stream(10_000 + trial);
        let graph = random_geometric(139, 0.22, &mut random);
        let Some(distance) = graph.distances(0)[1].filter(|&d| d > 1) else {
            continue;
        };
        for hops in distance..=distance + 2 {
            let greedy = depth_first_path_set(&graph, 0, 1, hops, &mut random);
            assert_sound(&graph, 0, 1, hops, &greedy);
            let exact = largest_path_set(&graph, 0, 1, hops, 2_000);
            assert_sound(&graph, 0, 1, hops, &exact);
            assert!(
                !exact.proven || exact.paths.len() >= greedy.paths.len(),
                "trial {trial}"
            );
            assert!(exact.proven || hops > distance, "no slack is one flow");
        }
    }
}

#[test]
fn degenerate_networks_have_the_obvious_paths() {
    let line = LinkGraph::from_edges(3, &[(0, 1), (1, 2)]);
    assert!(largest_path_set(&line, 0, 0, 2, 10).paths.is_empty());
    assert!(largest_path_set(&line, 0, 9, 2, 10).paths.is_empty());
    assert!(largest_path_set(&line, 0, 2, 40, 10).paths.is_empty());
    assert_eq!(largest_path_set(&line, 0, 1, 1, 10).paths, [vec![]]);
    assert_eq!(largest_path_set(&line, 0, 2, 2, 10).paths, [vec![1]]);
    let cut = LinkGraph::from_edges(3, &[(0, 1)]);
    assert_eq!(
        choose_length(&cut, 0, 2, 6, 3, |_| PathSet::default()),
        None
    );
}

#[test]
fn the_length_grows_until_there_are_enough_paths() {
    let mut random = stream(77);
    let graph = random_geometric(139, 0.22, &mut random);
    let mut tried = Vec::new();
    let chosen = choose_length(&graph, 0, 1, 4, 3, |hops| {
        tried.push(hops);
        largest_path_set(&graph, 0, 1, hops, 2_000)
    });
    let (hops, found) = chosen.expect("connected");
    assert!(tried.contains(&hops) && tried.len() <= 4);
    assert!(found.paths.len() >= 4 || tried.len() == 4);
}

/// Two paths of three hops, and beside them: a node between the first stages, one that hears only the source, one next
/// to the destination.
#[test]
fn extra_nodes_join_the_stages_that_they_link() {
    use chappe_p3::{ChannelOrder, Part, Plan, Profile, Wanted};
    let paths = [(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5)];
    let beside = [(6, 0), (6, 2), (7, 0), (8, 1), (8, 5)];
    let edges: Vec<_> = paths.iter().chain(&beside).copied().collect();
    let graph = LinkGraph::from_edges(9, &edges);
    let wanted = Wanted {
        transfer: 1,
        payload: 118,
        source: 0,
        destination: 5,
        channels: ChannelOrder::default(),
    };
    let found = [vec![1, 2], vec![3, 4]];
    let profile = Profile::PAPER;
    let plan = Plan::from_paths(wanted, &profile, &found, &mut stream(1), 0.8, |_| 1.0).unwrap();
    let larger = with_extra_nodes(&plan, &graph, 0.8, |_| 0.5);
    let stage = |node| match larger.part_of(node)? {
        Part::Paper(part) => Some((part.place.stage, part.sends)),
        part => panic!("{part:?}"),
    };
    assert_eq!(larger.relays().len(), 6);
    assert_eq!((stage(6), stage(7)), (Some((1, true)), None));
    assert_eq!(
        stage(8),
        Some((2, false)),
        "it hears stage 1, and reaches the destination badly"
    );
    let mut frame = vec![0; larger.encoded_len()];
    larger.emit(&mut frame).unwrap();
    assert_eq!(Plan::parse(1, &frame).unwrap().relays(), larger.relays());
}
