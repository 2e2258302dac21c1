//! Networks small enough to solve on paper.

use crate::support;

use chappe_bound::Medium::{CarrierSense, IndependentSets, OneRadio};
use chappe_bound::closed::chain;
use chappe_bound::{Medium, Network};
use support::{bound, everyone, network};

/// Frames/s in units of one node's full airtime (1000 frames/s).
fn check(network: &Network, receivers: &[usize], medium: Medium, expected: f64) {
    let bound = bound(network, receivers, medium);
    let got = bound.certified_fps / 1000.0;
    assert!(
        (got - expected).abs() <= 1e-4 * expected,
        "{medium:?}: {got}, expected {expected}"
    );
}

fn check_all(network: &Network, receivers: &[usize], expected: f64) {
    check(network, receivers, CarrierSense, expected);
    check(network, receivers, IndependentSets, expected);
}

#[test]
fn a_lossy_link_carries_p_per_airtime() {
    let link = network(2, &[(0, 1, 0.3)], everyone);
    check_all(&link, &[1], 0.3);
    check(&link, &[1], OneRadio, 0.3);
    let found = bound(&link, &[1], CarrierSense);
    assert!((found.goodput_bps() - 0.3 * 1000.0 * 8000.0).abs() < 300.0);
    assert!((found.transmissions[0] - 1000.0).abs() < 0.2);
}

/// Both hops share the air: 1 / (1/0.5 + 1/0.8). With a radio that only must not do two things at
/// once, the relay hears 0.5 z0 = R and sends R / 0.8.
#[test]
fn two_hops_share_one_clique() {
    let line = network(3, &[(0, 1, 0.5), (1, 2, 0.8)], everyone);
    check_all(&line, &[2], 1.0 / (1.0 / 0.5 + 1.0 / 0.8));
    check(
        &line,
        &[2],
        OneRadio,
        f64::min(0.5, 1.0 / (1.0 + 1.0 / 0.8)),
    );
}

/// s - {a, b} - t, all in one clique: a frame of s is heard by at least one relay with 3/4, and
/// relays need 1 more transmission each: D = (1 + 3/4) / (3/4).
#[test]
fn a_diamond_uses_both_relays() {
    let links = [(0, 1, 0.5), (0, 2, 0.5), (1, 3, 1.0), (2, 3, 1.0)];
    check_all(&network(4, &links, everyone), &[3], 3.0 / 7.0);
}

/// Broadcast to two receivers is as fast as to the worse of them, not half of it.
#[test]
fn a_broadcast_is_heard_by_both() {
    let star = network(3, &[(0, 1, 0.4), (0, 2, 0.9)], everyone);
    check_all(&star, &[1, 2], 0.4);
    check(&star, &[1, 2], OneRadio, 0.4);
    // If the better one repeats to the other with certainty: u frames of s and v of 2, u + v = 1;
    // receiver 2 hears 0.9 u, and at most 0.4 u + v crosses to receiver 1: equal at u = 2/3.
    let helped = network(3, &[(0, 1, 0.4), (0, 2, 0.9), (2, 1, 1.0)], everyone);
    check_all(&helped, &[1, 2], 0.6);
}

/// The butterfly, over the air: s (0) is heard by a (1) and b (2); receiver 4 hears a and c (3),
/// receiver 5 hears b and c, and c hears both a and b. All certain, one clique. Two packets take five
/// transmissions: s twice, a one of them, b the other, and c their sum. Forwarding alone would take
/// six: s, s, and each packet from both sides.
#[test]
fn the_butterfly_needs_coding() {
    let links = [
        (0, 1, 1.0),
        (0, 2, 1.0),
        (1, 3, 1.0),
        (2, 3, 1.0),
        (1, 4, 1.0),
        (2, 5, 1.0),
        (3, 4, 1.0),
        (3, 5, 1.0),
    ];
    check_all(&network(6, &links, everyone), &[4, 5], 0.4);
}

/// A chain of five hops, each sensing two hops on: windows of three share the air.
#[test]
fn a_chain_with_spatial_reuse_matches_its_formula() {
    let p = [0.9, 0.5, 0.7, 0.6, 0.8];
    let links: Vec<(usize, usize, f64)> = (0..5).map(|hop| (hop, hop + 1, p[hop])).collect();
    let hops: Vec<(f64, f64)> = p.iter().map(|&p| (1e-3, p)).collect();
    for reach in 1..5 {
        let line = network(6, &links, |a, b| a.abs_diff(b) <= reach);
        check_all(
            &line,
            &[5],
            chain::with_reuse_fps(&hops, reach + 1) / 1000.0,
        );
    }
}

/// Five transmitters in a ring, neighbours sense each other: cliques (edges) allow 1/2 each, but no
/// two and a half of five can be active at once: independent sets allow 2/5. Each has its own
/// receiver, and the source feeds all five on the side without disturbing anyone.
#[test]
fn an_odd_ring_separates_cliques_from_independent_sets() {
    let mut links = Vec::new();
    for k in 0..5 {
        links.push((0, 1 + k, 1.0));
        links.push((1 + k, 6 + k, 1.0));
    }
    let ring = |a: usize, b: usize| {
        (1..6).contains(&a) && (1..6).contains(&b) && matches!(a.abs_diff(b), 1 | 4)
    };
    let star = network(11, &links, ring);
    check(&star, &[6, 7, 8, 9, 10], CarrierSense, 0.5);
    check(&star, &[6, 7, 8, 9, 10], IndependentSets, 0.4);
}

/// A receiver that nothing reaches: the bound is zero, and the certificate proves it.
#[test]
fn an_island_gets_nothing() {
    let island = network(4, &[(0, 1, 1.0), (3, 2, 1.0)], everyone);
    for medium in [CarrierSense, IndependentSets, OneRadio] {
        let found = bound(&island, &[1, 2], medium);
        assert_eq!((found.rate_fps, found.certified_fps), (0.0, 0.0));
    }
}
