//! What must hold on every network, on hundreds of random ones.

use crate::support;

use chappe_bound::Medium::{CarrierSense, CarrierSenseOneRadio, IndependentSets, OneRadio};
use chappe_bound::anypath::anypath;
use chappe_bound::{
    Network, Options, fluid_rate, max_flow, mean_bound_cheap, mean_bound_exact, multicast,
    single_receivers,
};
use chappe_testkit::SplitMix64;
use support::{bound, least_cut, random};

/// Fixed transmissions: the program's flow is the smallest of all cuts. 600 networks of 2 to 6 nodes.
#[test]
fn flow_equals_the_smallest_cut() {
    let mut seeded = SplitMix64(11);
    let mut positive = 0;
    for round in 0..600 {
        let nodes = 2 + round % 5;
        let density = 0.3 + 0.6 * seeded.unit();
        let network = random(&mut seeded, nodes, density, 1.0);
        let transmissions: Vec<f64> = (0..nodes)
            .map(|_| {
                if seeded.unit() < 0.2 {
                    0.0
                } else {
                    100.0 * seeded.unit()
                }
            })
            .collect();
        for receiver in 1..nodes {
            let cut = least_cut(&network, &transmissions, receiver);
            let flow = max_flow(&network, &transmissions, 0, receiver).unwrap();
            assert!(
                (flow - cut).abs() <= 2e-6 * cut,
                "round {round}: flow {flow}, cut {cut}"
            );
            positive += usize::from(cut > 0.0);
        }
    }
    assert!(positive > 800, "{positive} connected pairs");
}

/// The transmissions of a bound carry its rate: their smallest cut is at least the rate, and
/// scaled to a full medium they carry no more than the bound.
#[test]
fn the_bound_s_transmissions_carry_its_rate() {
    let mut seeded = SplitMix64(12);
    for round in 0..60 {
        let network = random(&mut seeded, 6, 0.5, 0.6);
        let receivers = [3, 4, 5];
        let found = bound(&network, &receivers, CarrierSense);
        for &receiver in &receivers {
            let cut = least_cut(&network, &found.transmissions, receiver);
            assert!(
                cut >= found.rate_fps * (1.0 - 1e-9),
                "round {round}: {cut} {found:?}"
            );
        }
        let airtime: Vec<f64> = (0..6)
            .map(|node| found.transmissions[node] * network.airtime_s(node))
            .collect();
        assert!(network.senses().heaviest_clique(&airtime) <= 1.0 + 1e-9);
        let fluid = fluid_rate(&network, &found.transmissions, 0, &receivers).unwrap();
        assert!(fluid.rate_fps() <= found.certified_fps * (1.0 + 2e-6));
        assert!(fluid.rate_fps() >= found.rate_fps * (1.0 - 2e-6));
    }
}

/// No transmissions beat the bound: random ones, scaled to a full medium, stay below it.
#[test]
fn nothing_beats_the_bound() {
    let mut seeded = SplitMix64(13);
    for _ in 0..40 {
        let network = random(&mut seeded, 6, 0.6, 0.5);
        let receivers = [4, 5];
        let best = bound(&network, &receivers, CarrierSense).certified_fps;
        let strict = bound(&network, &receivers, IndependentSets).certified_fps;
        assert!(strict <= best * (1.0 + 1e-4));
        for _ in 0..20 {
            let sent: Vec<f64> = (0..6).map(|_| seeded.unit()).collect();
            let airtime: Vec<f64> = (0..6)
                .map(|node| sent[node] * network.airtime_s(node))
                .collect();
            let full = network.senses().heaviest_clique(&airtime);
            for receiver in [receivers.as_slice(), &[4], &[5]] {
                let rate = receiver
                    .iter()
                    .map(|&receiver| least_cut(&network, &sent, receiver) / full)
                    .fold(f64::INFINITY, f64::min);
                if receiver.len() == 2 {
                    assert!(rate <= best * (1.0 + 1e-9));
                }
            }
        }
    }
}

/// One collision domain, one receiver: the bound is 1 / (expected anypath airtime), in closed form.
#[test]
fn one_domain_matches_anypath() {
    let mut seeded = SplitMix64(14);
    for _ in 0..80 {
        let network = random(&mut seeded, 7, 0.4, 1.0);
        let expected = 1.0 / anypath(&network, 6).airtime_s[0];
        for medium in [CarrierSense, IndependentSets] {
            let found = bound(&network, &[6], medium).certified_fps;
            assert!(
                (found - expected).abs() <= 1e-4 * expected,
                "{found}, expected {expected}"
            );
        }
    }
}

/// Another receiver never raises the bound; another link, or less sensing, never lowers it.
#[test]
fn more_receivers_less_links_more() {
    let mut seeded = SplitMix64(15);
    for round in 0..60 {
        let nodes = 7;
        let network = random(&mut seeded, nodes, 0.45, 0.6);
        for medium in [
            CarrierSense,
            OneRadio,
            CarrierSenseOneRadio,
            IndependentSets,
        ] {
            let two = bound(&network, &[5, 6], medium);
            let three = bound(&network, &[4, 5, 6], medium);
            assert!(
                three.rate_fps <= two.certified_fps,
                "round {round} {medium:?}"
            );
            let (from, to) = (
                (seeded.unit() * 7.0) as usize,
                (seeded.unit() * 7.0) as usize,
            );
            let better = bound(&with_link(&network, from, to, 0.9), &[4, 5, 6], medium);
            assert!(
                better.certified_fps >= three.rate_fps,
                "round {round} {medium:?}"
            );
            let freer = bound(&deaf(&network), &[4, 5, 6], medium);
            assert!(
                freer.certified_fps >= three.rate_fps,
                "round {round} {medium:?}"
            );
        }
    }
}

/// If everyone senses everyone, carrier sense is the stricter assumption: whatever node j sends and
/// hears then fits into the one domain's airtime, so OneRadio's constraint at j is implied. (On
/// other networks neither region contains the other: hidden terminals may overlap under carrier sense.)
#[test]
fn one_domain_is_stricter_than_one_radio() {
    let mut seeded = SplitMix64(16);
    for _ in 0..60 {
        let network = random(&mut seeded, 6, 0.5, 1.0);
        let sense = bound(&network, &[4, 5], CarrierSense);
        let radio = bound(&network, &[4, 5], OneRadio);
        assert!(sense.rate_fps <= radio.certified_fps);
    }
}

/// A stranger's certificate proves nothing false: damaged values still give a valid bound.
#[test]
fn a_damaged_certificate_is_still_a_proof() {
    let mut seeded = SplitMix64(17);
    for _ in 0..40 {
        let network = random(&mut seeded, 6, 0.5, 0.5);
        for medium in [
            CarrierSense,
            OneRadio,
            CarrierSenseOneRadio,
            IndependentSets,
        ] {
            let found = bound(&network, &[4, 5], medium);
            let mut damaged = found.certificate.clone();
            for value in damaged.potentials.iter_mut().flatten() {
                *value += 0.3 * (seeded.unit() - 0.5);
            }
            assert!(damaged.bound_fps(&network) >= found.rate_fps);
            damaged.potentials[0][1] = f64::NAN;
            assert!(damaged.bound_fps(&network).is_infinite());
        }
    }
}

/// The mean bounds: exact matches all subsets, cheap is never below it, both fall with m.
#[test]
fn mean_bounds_against_all_subsets() {
    let mut seeded = SplitMix64(18);
    let options = Options::default();
    for _ in 0..12 {
        let network = random(&mut seeded, 7, 0.5, 0.5);
        let receivers = [3, 4, 5, 6];
        let exact = mean_bound_exact(&network, 0, &receivers, &options).unwrap();
        for size in 1..=4 {
            let best = (1u32..16)
                .filter(|set| set.count_ones() == size)
                .map(|set| {
                    let members: Vec<usize> = (0..4)
                        .filter(|i| set >> i & 1 == 1)
                        .map(|i| receivers[i])
                        .collect();
                    multicast(&network, 0, &members, &options)
                        .unwrap()
                        .certified_fps
                })
                .fold(0.0, f64::max);
            let found = exact.best_of_fps[size as usize - 1];
            assert!(
                (found - best).abs() <= 1e-4 * best,
                "{size}: {found}, expected {best}"
            );
        }
        let singles = single_receivers(&network, 0, &receivers, &options).unwrap();
        let worst = multicast(&network, 0, &receivers, &options).unwrap();
        let cheap = mean_bound_cheap(&singles, Some(&worst));
        for (cheap, exact) in cheap.best_of_fps.iter().zip(&exact.best_of_fps) {
            assert!(cheap * (1.0 + 1e-4) >= *exact);
        }
        assert!(exact.best_of_fps.is_sorted_by(|a, b| a >= b));
        assert!(exact.programs <= 15);
    }
}

fn rebuilt(network: &Network, p: impl Fn(usize, usize) -> f64, deaf: bool) -> Network {
    let nodes = network.nodes();
    let pairs = || (0..nodes * nodes).map(|pair| (pair / nodes, pair % nodes));
    let delivery = pairs().map(|(a, b)| p(a, b)).collect();
    let sensing = pairs()
        .map(|(a, b)| if deaf { 0.0 } else { network.sensing(a, b) })
        .collect();
    let airtime = (0..nodes).map(|node| network.airtime_s(node)).collect();
    Network::new(delivery, airtime, 1000, sensing).unwrap()
}

fn with_link(network: &Network, from: usize, to: usize, p: f64) -> Network {
    let better = |a, b| {
        let old = network.delivery(a, b);
        if (a, b) == (from, to) {
            old.max(p)
        } else {
            old
        }
    };
    rebuilt(network, better, false)
}

fn deaf(network: &Network) -> Network {
    rebuilt(network, |a, b| network.delivery(a, b), true)
}

/// With many receivers only those that matter enter the program. The bound is that of all: at most each single receiver's and that of
/// every few of them, proven, and reached by transmissions that serve all.
#[test]
fn a_crowd_has_the_bound_of_all_its_receivers() {
    let mut seeded = SplitMix64(17);
    for medium in [CarrierSense, IndependentSets] {
        let mut tight = 0;
        for round in 0..6 {
            let network = random(&mut seeded, 18, 0.35, 0.5);
            let receivers: Vec<usize> = (1..18).collect();
            let found = bound(&network, &receivers, medium);
            let proven = found.certificate.bound_fps(&network);
            assert!(
                (proven - found.certified_fps).abs() <= 1e-9 * proven,
                "{round}: {proven}"
            );
            for few in receivers.chunks(5) {
                let of_few = bound(&network, few, medium);
                let most = of_few.certified_fps * (1.0 + 1e-6);
                assert!(found.rate_fps <= most, "{round}: {} {most}", found.rate_fps);
            }
            for &receiver in &receivers {
                let cut = max_flow(&network, &found.transmissions, 0, receiver).unwrap();
                assert!(cut >= found.rate_fps * (1.0 - 1e-3), "{round}: {cut}");
            }
            tight += usize::from(found.certified_fps > 0.0 && found.gap() < 1e-3);
        }
        assert!(tight >= 3, "{tight} of 6");
    }
}

/// A computation that ends early leaves a valid bound.
#[test]
fn little_work_gives_a_looser_bound() {
    let mut seeded = SplitMix64(18);
    let mut looser = 0;
    for _ in 0..6 {
        let network = random(&mut seeded, 18, 0.35, 0.5);
        let receivers: Vec<usize> = (1..18).collect();
        let whole = bound(&network, &receivers, CarrierSense);
        let options = Options {
            work_max: 1,
            ..Options::default()
        };
        let early = multicast(&network, 0, &receivers, &options).unwrap();
        assert!(early.certified_fps >= whole.rate_fps * (1.0 - 1e-9));
        assert_eq!(early.rate_fps, 0.0, "the others were not looked at");
        looser += usize::from(early.certified_fps > whole.certified_fps * 1.001);
    }
    assert!(looser > 0);
}
