//! The bound under interference against networks solved by hand and against all subsets of small ones.

use chappe_bound::{
    Error, Interference, Network, Options, Rayleigh, Schedule, ScheduleOptions, multicast, schedule,
};
use chappe_testkit::SplitMix64;

/// `links` with their probabilities, and the survival of every frame beside any other.
fn model(nodes: usize, links: &[(usize, usize, f64)], survival: f64) -> Interference {
    let mut delivery = vec![0.0; nodes * nodes];
    for &(from, to, p) in links {
        delivery[from * nodes + to] = p;
    }
    let beside = vec![survival; nodes * nodes * nodes];
    Interference::new(nodes, delivery, beside, 1e-3, 125).unwrap()
}

fn solved(model: &Interference, receivers: &[usize]) -> Schedule {
    schedule(model, 0, receivers, &ScheduleOptions::default()).unwrap()
}

/// A chain of four: one frame at a time needs three for a packet. Without interference 0 and 2 send at once and 1 alone, so
/// two. Where half of the frames of such a pair survive, three again: a pair brings half a packet over each of two hops.
#[test]
fn a_chain_by_hand() {
    let chain = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)];
    for (survival, frames) in [(0.0, 3.0), (1.0, 2.0), (0.5, 3.0)] {
        let found = solved(&model(4, &chain, survival), &[3]);
        let expected = 1e3 / frames;
        assert!(
            found.certified_fps >= expected * (1.0 - 1e-6),
            "{survival}: {found:?}"
        );
        assert!(
            found.rate_fps <= expected * (1.0 + 1e-6),
            "{survival}: {found:?}"
        );
        assert!(found.gap() < 0.1, "{survival}: {found:?}");
        assert!((found.goodput_bps() / found.certified_fps - 1000.0).abs() < 1e-9);
    }
}

/// The proof stands alone, holds for any values, and a receiver out of reach makes the bound zero.
#[test]
fn proofs_and_dead_ends() {
    let chain = [(0, 1, 0.5), (1, 2, 1.0)];
    let model = model(4, &chain, 0.0);
    let found = solved(&model, &[2]);
    let again = Schedule::prove(&found.values, &[2], &model, 1e-3, 1000);
    assert!(again <= found.certified_fps * (1.0 + 1e-9));
    assert!(again >= found.rate_fps);
    // By hand: two frames over the first hop, one over the second.
    for value in [0.1, 0.5, 0.9] {
        let proven = Schedule::prove(&[vec![0.0, value, 1.0, 0.0]], &[2], &model, 1e-3, 1000);
        assert!(proven >= 1e3 / 3.0, "{value} {proven}");
    }
    assert_eq!(solved(&model, &[2, 3]).certified_fps, 0.0);
    let asked = |receivers: &[usize]| schedule(&model, 0, receivers, &ScheduleOptions::default());
    assert_eq!(asked(&[]).unwrap_err(), Error::NoReceivers);
    assert_eq!(asked(&[0]).unwrap_err(), Error::BadReceiver { node: 0 });
    assert_eq!(
        asked(&[9]).unwrap_err(),
        Error::NoSuchNode { node: 9, nodes: 4 }
    );
}

/// Random places with Rayleigh fading, strong and weak interference.
fn random(nodes: usize, seed: u64) -> Interference {
    let mut random = SplitMix64(seed);
    let places: Vec<(f64, f64)> = (0..nodes).map(|_| (random.unit(), random.unit())).collect();
    let power = |pair: usize| {
        let (a, b) = (places[pair / nodes], places[pair % nodes]);
        0.02 / (1e-3 + f64::hypot(a.0 - b.0, a.1 - b.1).powi(4))
    };
    let power: Vec<f64> = (0..nodes * nodes).map(power).collect();
    let radio = Rayleigh {
        power: &power,
        noise: 0.05,
        ratio: 4.0,
        least: 0.3,
    };
    Interference::rayleigh(nodes, &radio, 1e-3, 125).unwrap()
}

/// Goal: flows say which way packets go, without rings and dead ends. Method: random networks of nine nodes. What goes to one receiver leaves no ring, and
/// goes on at all other nodes; so does what goes to three, at nodes that are none of them.
#[test]
fn flows_reach_their_receivers() {
    for seed in 0..20 {
        let model = random(9, seed);
        for receivers in [&[8][..], &[4, 6, 8]] {
            let found = solved(&model, receivers);
            let flow = |from: usize, to: usize| found.flows[from * 9 + to];
            let rate = found.rate_fps * 1e-3;
            for node in 0..9 {
                let into: f64 = (0..9).map(|from| flow(from, node)).sum();
                let out: f64 = (0..9).map(|to| flow(node, to)).sum();
                let kept = into - out;
                match node {
                    0 => assert!(-kept >= receivers.len() as f64 * rate * (1.0 - 1e-9)),
                    _ if receivers.contains(&node) => assert!(kept >= rate * (1.0 - 1e-9)),
                    _ => assert!(kept.abs() < 1e-9, "{seed} {node}: {kept}"),
                }
            }
            let mut left: Vec<usize> = (0..9).collect();
            while receivers.len() == 1 && !left.is_empty() {
                let before = left.len();
                let fed: Vec<usize> = (left.iter().copied())
                    .filter(|&to| left.iter().any(|&from| flow(from, to) > 0.0))
                    .collect();
                assert!(fed.len() < before, "{seed}: a ring among {left:?}");
                left = fed;
            }
        }
    }
}

/// Goal: the search misses no set. Method: all 511 sets of nine nodes, twenty networks with random values; all 32,767 of fifteen, four networks, where the
/// search needs several groups.
#[test]
fn no_set_is_heavier_than_the_search_says() {
    for seed in 0..24 {
        let nodes = if seed < 20 { 9 } else { 15 };
        let model = random(nodes, seed);
        let mut numbers = SplitMix64(seed + 100);
        let values: Vec<Vec<f64>> = (0..3)
            .map(|_| (0..nodes).map(|_| numbers.unit()).collect())
            .collect();
        let earned = |set: &[usize]| -> f64 {
            let of = |from: usize, row: &Vec<f64>| {
                let mut order: Vec<usize> = (0..nodes).filter(|&to| row[to] > row[from]).collect();
                order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
                let mut missed = 1.0;
                order.iter().fold(0.0, |sum, &to| {
                    let p = model.received(from, to, set);
                    let gain = missed * p * (row[to] - row[from]);
                    missed *= 1.0 - p;
                    sum + gain
                })
            };
            let each = set.iter();
            each.map(|&from| values.iter().map(|row| of(from, row)).sum::<f64>())
                .sum()
        };
        let all = (1u32..1 << nodes).map(|mask| {
            let set: Vec<usize> = (0..nodes).filter(|at| mask >> at & 1 == 1).collect();
            earned(&set)
        });
        let most = all.fold(0.0, f64::max);
        for (tolerance, sets_max) in [(1e-6, 100_000), (0.05, 100_000), (0.01, 3)] {
            let found = model.heaviest(&values, tolerance, sets_max);
            assert!(
                (earned(&found.set) - found.earned).abs() < 1e-9,
                "seed {seed}"
            );
            assert!(found.earned <= most * (1.0 + 1e-9), "seed {seed}");
            assert!(found.at_most >= most, "seed {seed}: {found:?} {most}");
            if tolerance == 1e-6 {
                assert!(
                    found.doubt() < 1e-5 && found.earned > most * (1.0 - 1e-9),
                    "seed {seed}"
                );
            }
        }
    }
}

/// The bound lies between what one frame at a time carries and what frames carry that never disturb each other.
#[test]
fn interference_lies_between_one_at_a_time_and_none() {
    let mut apart = 0;
    for seed in 0..8 {
        let (nodes, model) = (10, random(10, seed));
        let delivery: Vec<f64> = (0..nodes * nodes)
            .map(|pair| model.received(pair / nodes, pair % nodes, &[pair / nodes]))
            .collect();
        let bound = |sensing: f64| {
            let sensing = vec![sensing; nodes * nodes];
            let network = Network::new(delivery.clone(), vec![1e-3; nodes], 125, sensing);
            let found = multicast(&network.unwrap(), 0, &[1, 2, 3], &Options::default());
            found.unwrap().certified_fps
        };
        let found = solved(&model, &[1, 2, 3]);
        let (serial, free) = (bound(1.0), bound(0.0));
        assert!(
            found.certified_fps >= serial * (1.0 - 1e-3),
            "seed {seed}: {found:?} {serial}"
        );
        assert!(
            found.rate_fps <= free * (1.0 + 1e-3),
            "seed {seed}: {found:?} {free}"
        );
        assert!(found.gap() <= 0.1, "seed {seed}: {found:?}");
        apart += usize::from(found.rate_fps > serial * 1.05);
    }
    assert!(apart > 0, "no network carries two frames at once");
}
