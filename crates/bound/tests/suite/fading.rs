//! Carrier sense by chance: the rows themselves, the search for them, and the bound with them.

use crate::support;

use chappe_bound::Medium::{CarrierSense, CarrierSenseOneRadio, OneRadio};
use chappe_bound::{Network, SensedSet, overfull_sets};
use chappe_testkit::SplitMix64;
use support::bound;

/// Random links, airtimes and probabilities of sensing, some of them 0 or 1, not symmetric.
fn fading(random: &mut SplitMix64, nodes: usize) -> Network {
    let sensing = (0..nodes * nodes)
        .map(|_| match (random.unit() * 8.0) as u32 {
            0 => 0.0,
            1 => 1.0,
            _ => 1.0 - 0.5 * random.unit() * random.unit(),
        })
        .collect();
    let delivery = (0..nodes * nodes)
        .map(|_| {
            if random.unit() < 0.6 {
                random.unit()
            } else {
                0.0
            }
        })
        .collect();
    let airtime = (0..nodes).map(|_| 1e-3 * (0.5 + random.unit())).collect();
    Network::new(delivery, airtime, 1000, sensing).unwrap()
}

/// The heaviest row of all sets and all numbers of misses.
fn heaviest(network: &Network, transmissions: &[f64]) -> f64 {
    let nodes = network.nodes();
    let sets = (1u32..1 << nodes).flat_map(|mask| {
        let nodes: Vec<usize> = (0..nodes).filter(|i| mask >> i & 1 == 1).collect();
        (0..nodes.len()).map(move |misses| SensedSet {
            nodes: nodes.clone(),
            misses,
        })
    });
    sets.map(|set| set.load(network, transmissions))
        .fold(0.0, f64::max)
}

/// The weights are probabilities over all 2^n outcomes of one frame's fades.
#[test]
fn weights_match_all_outcomes() {
    let mut random = SplitMix64(31);
    for round in 0..60 {
        let network = fading(&mut random, 6);
        let misses = round % 4;
        let set = SensedSet {
            nodes: (0..6).filter(|i| (round + i) % 5 > 0).collect(),
            misses,
        };
        for (from, weight) in set.weights(&network) {
            let others: Vec<usize> = set.nodes.iter().copied().filter(|&i| i != from).collect();
            let plain: f64 = (0u32..1 << others.len())
                .filter(|missed| missed.count_ones() as usize <= misses)
                .map(|missed| {
                    let chance = |(k, &to): (usize, &usize)| {
                        let q = network.sensing(from, to);
                        if missed >> k & 1 == 1 { 1.0 - q } else { q }
                    };
                    others.iter().enumerate().map(chance).product::<f64>()
                })
                .sum();
            assert!((weight - plain / (misses + 1) as f64).abs() < 1e-12);
            // Never below Bonferroni's.
            let missed: f64 = others
                .iter()
                .map(|&to| 1.0 - network.sensing(from, to))
                .sum();
            assert!(misses > 0 || weight >= 1.0 - missed - 1e-12);
        }
    }
}

/// On 300 random answers the search finds the heaviest of all rows, or nearly so.
#[test]
fn the_search_finds_nearly_the_heaviest_row() {
    let mut random = SplitMix64(32);
    let (mut worst, mut found_exactly): (f64, u32) = (1.0, 0);
    for _ in 0..300 {
        let network = fading(&mut random, 7);
        let sent: Vec<f64> = (0..7)
            .map(|i| random.unit() / network.channel_s(i))
            .collect();
        let best = heaviest(&network, &sent);
        let found = overfull_sets(&network, &sent, -1.0);
        assert!((found[0].0.load(&network, &sent) - found[0].1).abs() < 1e-9);
        worst = worst.min(found[0].1 / best);
        found_exactly += u32::from(found[0].1 > best * (1.0 - 1e-9));
    }
    println!("heaviest row found in {found_exactly} of 300, else at worst {worst:.4} of it");
    assert!(
        found_exactly >= 285 && worst > 0.95,
        "{found_exactly} {worst}"
    );
}

/// The transmissions of a bound fit all rows there are, nearly: so the bound is nearly the optimum
/// of the program with all of them.
#[test]
fn the_bound_is_near_that_of_all_rows() {
    let mut random = SplitMix64(33);
    let mut worst: f64 = 0.0;
    for _ in 0..40 {
        let network = fading(&mut random, 6);
        for medium in [CarrierSense, CarrierSenseOneRadio] {
            let found = bound(&network, &[4, 5], medium);
            worst = worst.max(heaviest(&network, &found.transmissions));
        }
    }
    println!("heaviest row of any answer: {worst:.6}");
    assert!(worst < 1.01, "{worst}");
}

/// Both assumptions at once leave no more than each; the better nodes sense, the less is left.
#[test]
fn tighter_together_and_with_better_sensing() {
    let mut random = SplitMix64(34);
    for _ in 0..40 {
        let network = fading(&mut random, 6);
        let receivers = [3, 4, 5];
        let both = bound(&network, &receivers, CarrierSenseOneRadio);
        for alone in [CarrierSense, OneRadio] {
            assert!(both.rate_fps <= bound(&network, &receivers, alone).certified_fps);
        }
        let better = |part: f64| {
            let pairs = || (0..36).map(|pair| (pair / 6, pair % 6));
            let q = |(a, b)| 1.0 - part * (1.0 - network.sensing(a, b));
            let p = pairs().map(|(a, b)| network.delivery(a, b)).collect();
            let airtime = (0..6).map(|i| network.airtime_s(i)).collect();
            let network = Network::new(p, airtime, 1000, pairs().map(q).collect()).unwrap();
            bound(&network, &receivers, CarrierSense)
        };
        let steps = [better(1.0), better(0.6), better(0.2), better(0.0)];
        for pair in steps.windows(2) {
            // What the search misses may hide a little.
            assert!(pair[1].rate_fps <= pair[0].certified_fps * 1.01);
        }
    }
}

/// A source and a relay that sense each other with probability q: y0 q + y1 q <= 1, so with equal
/// shares each gets 1 / (2 q), up to all its time; the relay's one radio leaves it half.
#[test]
fn a_pair_by_hand() {
    let relay = |q: f64| {
        let mut delivery = vec![0.0; 9];
        (delivery[1], delivery[5]) = (1.0, 1.0);
        let mut sensing = vec![0.0; 9];
        (sensing[1], sensing[3]) = (q, q);
        Network::new(delivery, vec![1e-3; 3], 1000, sensing).unwrap()
    };
    for (medium, q, expected) in [
        (CarrierSense, 1.0, 500.0),
        (CarrierSense, 0.8, 625.0),
        (CarrierSense, 0.4, 1000.0),
        (CarrierSenseOneRadio, 0.8, 500.0),
        (CarrierSenseOneRadio, 0.4, 500.0),
    ] {
        let found = bound(&relay(q), &[2], medium).certified_fps;
        assert!((found - expected).abs() < 0.1, "{medium:?} {q}: {found}");
    }
}

/// The gap counts for carrier sense, not for the radio.
#[test]
fn a_gap_between_frames() {
    let link = Network::new(vec![0.0, 1.0, 0.0, 0.0], vec![1e-3; 2], 1000, vec![1.0; 4]);
    let link = link.unwrap().with_gap(0.25e-3).unwrap();
    for (medium, expected) in [
        (CarrierSense, 800.0),
        (OneRadio, 1000.0),
        (CarrierSenseOneRadio, 800.0),
    ] {
        let found = bound(&link, &[1], medium).certified_fps;
        assert!((found - expected).abs() < 0.1, "{medium:?}: {found}");
    }
}

/// Stations that always have a frame, wait a random time, and begin unless they sense one: in
/// continuous time, so without ties. No row is exceeded, though the sum over all stations is above 1.
#[test]
fn stations_keep_every_row() {
    for (nodes, q) in [(2, 0.5), (2, 0.8), (3, 0.7), (6, 0.8), (6, 0.95)] {
        let network = Network::new(
            vec![0.0; nodes * nodes],
            vec![1.0; nodes],
            1,
            vec![q; nodes * nodes],
        );
        let network = network.unwrap();
        let sent = stations(&network, 0.01, 200_000.0);
        let worst = heaviest(&network, &sent);
        println!(
            "{nodes} stations, q = {q}: {:.3} on the air, heaviest row {worst:.4}",
            sent.iter().sum::<f64>()
        );
        // Three standard deviations of 200,000 frames are below 1 %.
        assert!(worst < 1.01, "{nodes} {q}: {worst}");
        // Not idle, and more than a clique could have.
        let total: f64 = sent.iter().sum();
        assert!(worst > 0.5 && total > 1.0 + 0.5 * (1.0 - q), "{nodes} {q}");
    }
}

/// Frames/s of stations with frames of one second each, that wait `wait` seconds on average.
fn stations(network: &Network, wait: f64, seconds: f64) -> Vec<f64> {
    let nodes = network.nodes();
    let mut random = SplitMix64(35);
    let mut until = vec![0.0f64; nodes];
    // Whether each hears the present frame of each.
    let mut sensed = vec![false; nodes * nodes];
    let mut sent = vec![0.0; nodes];
    let mut now = 0.0;
    while now < seconds {
        let free: Vec<usize> = (0..nodes)
            .filter(|&i| until[i] <= now)
            .filter(|&i| !(0..nodes).any(|j| until[j] > now && sensed[j * nodes + i]))
            .collect();
        let end = until
            .iter()
            .copied()
            .filter(|&at| at > now)
            .fold(f64::INFINITY, f64::min);
        // Waiting times are exponential, so they may be drawn anew at every event.
        let next = now - (1.0 - random.unit()).ln() * wait / free.len() as f64;
        if free.is_empty() || next > end {
            now = end;
            continue;
        }
        now = next;
        let from = free[(random.unit() * free.len() as f64) as usize];
        until[from] = now + 1.0;
        sent[from] += 1.0 / seconds;
        for to in (0..nodes).filter(|&to| to != from) {
            sensed[from * nodes + to] = random.unit() < network.sensing(from, to);
        }
    }
    sent
}
