//! Goal: next hops never form a loop, and no packet dies of its hop limit. Method: random meshes, losses, cuts, partitions and
//! neighbours that lie, on an ideal medium and on the simulator's 802.11.

use crate::common::{Flow, Mesh};

use chappe_core::{Duration, Purpose, Seed, Stream};
use chappe_dpclo::header::{Metric, Route, Routes};
use chappe_dpclo::{KMax, Settings};

const NODES: u16 = 12;

/// The improved variant with up to three next hops, whatever the neighbourhood.
fn improved() -> Settings {
    let mut settings = Settings::improved();
    settings.next_hops.limit = KMax::Fixed(3);
    settings
}

/// The paper's variant with its best next hop only: with several it may make detours through loops.
fn paper() -> Settings {
    let mut settings = Settings::paper();
    settings.next_hops.limit = KMax::Fixed(1);
    settings
}

/// Links of a connected random graph, each with a delivery ratio of 0.3 to 1.
fn random_links(random: &mut Stream) -> Vec<(u16, u16, f64)> {
    let mut links = Vec::new();
    for b in 1..NODES {
        let tree = random.below(b.into()) as u16;
        for a in 0..b {
            if a == tree || random.chance(0.2) {
                links.push((a, b, 0.3 + 0.7 * random.fraction()));
            }
        }
    }
    links
}

/// A loop of next hops, if there is one: nodes that can reach themselves.
fn find_loop(mesh: &Mesh, destination: u16) -> Option<Vec<u16>> {
    let count = mesh.nodes.len();
    let mut reach = vec![vec![false; count]; count];
    for node in &mesh.nodes {
        for next in node.next_hops(destination) {
            reach[usize::from(node.number())][usize::from(next)] = true;
        }
    }
    for by in 0..count {
        for from in 0..count {
            if reach[from][by] {
                let onward = reach[by].clone();
                let row = reach[from].iter_mut().zip(onward);
                row.for_each(|(own, onward)| *own |= onward);
            }
        }
    }
    let looped: Vec<u16> = (0..count as u16)
        .filter(|&node| node != destination && reach[usize::from(node)][usize::from(node)])
        .collect();
    (!looped.is_empty()).then_some(looped)
}

fn hop_limit_deaths(mesh: &Mesh) -> u64 {
    mesh.losses().iter().map(|losses| losses.hop_limit).sum()
}

/// Runs a random mesh whose links change at random, under load. `after` sees it after each tenth of a second.
fn flapping(settings: Settings, seed: u64, seconds: u64, mut after: impl FnMut(&Mesh)) -> Mesh {
    let mut random = Seed(seed).stream(Purpose::Trial(5));
    let links = random_links(&mut random);
    let mut mesh = Mesh::new(settings, NODES, &links, seed);
    mesh.flows = (1..4).map(|source| Flow::new(NODES - source, 0)).collect();
    for step in 0..10 * seconds {
        mesh.run_until(mesh.now + Duration::from_millis(100));
        after(&mesh);
        // After the routes are there, every link changes about each five seconds: it is cut, comes back, or changes.
        for &(a, b, _) in links.iter().filter(|_| step > 200) {
            if random.chance(0.02) {
                mesh.link(a, b, [0.0, 0.3, 0.6, 1.0][random.below(4) as usize]);
            }
        }
    }
    mesh
}

/// Defect: the newest sequence number was advertised with an older route's metric, so routes had loops under load.
#[test]
fn next_hops_have_no_loop_at_any_moment() {
    for settings in [improved(), paper()] {
        for seed in 1..=8 {
            let mesh = flapping(settings, seed, 60, |mesh| {
                for destination in 0..NODES {
                    let found = find_loop(mesh, destination);
                    assert_eq!(found, None, "seed {seed}, {}, to {destination}", mesh.now);
                }
            });
            assert_eq!(hop_limit_deaths(&mesh), 0, "seed {seed}");
            assert!(mesh.got.len() > 500, "seed {seed}: {}", mesh.got.len());
        }
    }
}

/// The mesh falls apart and comes together, several times.
#[test]
fn partitions_heal_without_loops() {
    for seed in 1..=4 {
        let mut random = Seed(seed).stream(Purpose::Trial(6));
        let links = random_links(&mut random);
        let mut mesh = Mesh::new(improved(), NODES, &links, seed);
        mesh.flows = (1..4).map(|source| Flow::new(NODES - source, 0)).collect();
        mesh.seconds(40);
        for _ in 0..3 {
            let side: Vec<bool> = (0..NODES).map(|_| random.chance(0.5)).collect();
            let across = |a: u16, b: u16| side[usize::from(a)] != side[usize::from(b)];
            for &(a, b, _) in links.iter().filter(|&&(a, b, _)| across(a, b)) {
                mesh.cut(a, b);
            }
            for _ in 0..200 {
                mesh.run_until(mesh.now + Duration::from_millis(100));
                assert_eq!(find_loop(&mesh, 0), None, "seed {seed}, {}", mesh.now);
            }
            links
                .iter()
                .for_each(|&(a, b, ratio)| mesh.link(a, b, ratio));
            let before = mesh.got.len();
            for _ in 0..200 {
                mesh.run_until(mesh.now + Duration::from_millis(100));
                assert_eq!(find_loop(&mesh, 0), None, "seed {seed}, {}", mesh.now);
            }
            assert!(mesh.got.len() > before, "seed {seed}: packets flow again");
        }
        assert_eq!(hop_limit_deaths(&mesh), 0, "seed {seed}");
    }
}

/// What a lying neighbour says of every destination.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// That it is there already.
    MetricZero,
    /// That there is no way.
    Infinity,
    /// That it has sequence numbers that the destination has not given out.
    Future,
}

/// A neighbour that lies, while its router goes on forwarding honestly what it attracts.
#[test]
fn lies_make_no_packet_circle() {
    for lie in [Lie::MetricZero, Lie::Infinity, Lie::Future] {
        for seed in 1..=4 {
            let mut random = Seed(seed).stream(Purpose::Trial(7));
            let links = random_links(&mut random);
            let mut mesh = Mesh::new(improved(), NODES, &links, seed);
            mesh.flows = (1..4).map(|source| Flow::new(NODES - source, 0)).collect();
            mesh.seconds(40);
            let liar = NODES / 2;
            for round in 0..30u16 {
                let route = |destination| Route {
                    destination,
                    seq: match lie {
                        Lie::Future => 1000 + 500 * round,
                        Lie::MetricZero | Lie::Infinity => 6 + 2 * (round / 8),
                    },
                    metric: match lie {
                        Lie::Infinity => Metric::NONE,
                        Lie::MetricZero | Lie::Future => Metric::ZERO,
                    },
                    via: destination,
                };
                let mut frame = [0; 256];
                let others = (0..NODES).filter(|&node| node != liar);
                let len = Routes::emit(&mut others.map(route), &mut frame).unwrap();
                mesh.say(liar, &frame[..len]);
                mesh.seconds(2);
            }
            assert_eq!(hop_limit_deaths(&mesh), 0, "{lie:?}, seed {seed}");
            // Once it is quiet the mesh carries again.
            mesh.seconds(60);
            let late = mesh.now;
            mesh.seconds(10);
            let after = mesh.got.iter().filter(|got| got.at >= late).count();
            assert!(after > 100, "{lie:?}, seed {seed}: {after}");
        }
    }
}

/// A node that has unfeasible routes only asks for a newer number and has a route in seconds, not at the next period.
#[test]
fn a_starved_node_asks_for_a_newer_number() {
    // 0 - 1 - 2, and the longer way 0 - 3 - 4 - 5 - 2: no node of it is feasible for 2 once the short way is lost.
    let links = [(0, 1), (1, 2), (0, 3), (3, 4), (4, 5), (5, 2)].map(|(a, b)| (a, b, 1.0));
    let mut mesh = Mesh::new(improved(), 6, &links, 1);
    mesh.seconds(31);
    mesh.flows = vec![Flow::new(2, 0)];
    mesh.seconds(2);
    assert_eq!(mesh.nodes[2].next_hops(0).collect::<Vec<_>>(), [1]);
    mesh.cut(1, 2);
    let cut = mesh.now;
    while mesh.nodes[2].next_hops(0).next() != Some(5) {
        mesh.run_until(mesh.now + Duration::from_millis(100));
        assert!(mesh.now < cut + Duration::from_secs(30), "no route");
    }
    let requests: u64 = mesh
        .nodes
        .iter()
        .map(|node| node.counters().requests_sent)
        .sum();
    assert!(requests > 0, "the route came by itself");
}
