//! The simulator against nature: what comes out of whole runs is compared with the published curves and with
//! integrals worked out here from the formulas, not with the simulator's own tables.

use crate::common;

use chappe_core::{Channel, Db, Dbm, Duration, Mode, Rate, Seed};
use chappe_sim::{
    AirTime, Counters, Fading, Lock, Loss, Medium, PathLoss, Position, Profile, Rule, Simulator,
    World, topology,
};
use common::{Outcomes, Probe, Told, probes, us};

/// Sends `frames` frames of `octets` (check sequence included) from node 0 to node 1 at a power; returns how many
/// arrived and the counters.
fn deliveries(
    medium: Medium,
    frames: u64,
    octets: usize,
    mode: Mode,
    power: Option<Dbm>,
) -> (f64, Counters) {
    let mut sender = Probe::default();
    let (psdu, spacing) = (
        vec![0x55; octets - 4],
        mode.airtime(octets).nanos() / 1000 + 1500,
    );
    for frame in 0..frames {
        sender = sender.send_at(100 + frame * spacing, mode, &psdu, power);
    }
    let nodes = vec![Box::new(sender), Box::new(Probe::default())];
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(7), ()).unwrap();
    simulator.run_until(us((frames + 2) * spacing));
    assert_eq!(simulator.counters().frames, frames);
    (
        simulator.counters().nodes[1].receptions as f64 / frames as f64,
        simulator.counters().clone(),
    )
}

fn pair(metres: f64, profile: &Profile) -> Medium {
    Medium::geometric(&topology::line(2, metres), profile, Seed(1)).unwrap()
}

/// Five standard deviations of a binomial share.
fn spread(share: f64, n: u64) -> f64 {
    5.0 * (share * (1.0 - share) / n as f64).sqrt() + 1e-9
}

/// Goal: PRR over SINR of 802.11b is the published one. Method: frames at the SINR for which the table in the
/// physics report (4.2) says 10, 50 and 90 %, 0.2 dB down and up: the shares found must lie on either side.
#[test]
fn prr_over_sinr_matches_the_table() {
    let table = [
        (Rate::Dsss1, 100, [-6.30, -5.39, -4.26]),
        (Rate::Dsss1, 1500, [-4.47, -3.85, -3.03]),
        (Rate::Dsss2, 100, [-2.08, -1.04, 0.24]),
        (Rate::Dsss2, 1500, [0.01, 0.70, 1.62]),
        (Rate::Cck5, 100, [0.74, 1.70, 2.88]),
        (Rate::Cck5, 1500, [2.67, 3.30, 4.14]),
        (Rate::Cck11, 100, [3.75, 4.71, 5.89]),
        (Rate::Cck11, 1500, [5.68, 6.31, 7.15]),
    ];
    let profile = Profile {
        fading: Fading::None,
        path_loss: PathLoss::LogDistance {
            exponent: 2.0,
            reference: Db(100.0),
        },
        power_max: Dbm(30.0),
        lock: Lock {
            sinr: Db(-30.0),
            power: Dbm(f64::NEG_INFINITY),
        },
        ..Profile::chappe_physical()
    };
    let frames = 3000;
    for (rate, octets, sinrs) in table {
        for (prr, sinr) in [0.1, 0.5, 0.9].into_iter().zip(sinrs) {
            let share = |sinr: f64| {
                let power = Dbm(profile.noise.0 + 100.0 + sinr);
                let medium = pair(1.0, &profile);
                let (share, counters) =
                    deliveries(medium, frames, octets, Mode::long(rate), Some(power));
                let noise = counters.lost.of(Loss::Noise);
                assert_eq!(
                    noise,
                    frames - counters.receptions,
                    "nothing but noise is to blame"
                );
                share
            };
            let (below, above) = (share(sinr - 0.2), share(sinr + 0.2));
            let slack = spread(prr, frames);
            assert!(
                below < prr + slack && above > prr - slack,
                "{rate} {octets} {prr}: {below} {above}"
            );
            assert!(
                below > 0.3 * prr - slack && above < 1.0 - 0.3 * (1.0 - prr) + slack,
                "{rate} {octets} {prr}: {below} {above}"
            );
        }
    }
}

/// Goal: the PRR of GloMoSim's radio over distance under its own fading law and under Rayleigh's. Method: the
/// table in the physics report (4.4), its closed forms, `Medium::prr`, and runs.
#[test]
fn glomosim_prr_over_distance_matches_the_table() {
    let table = [
        (50.0, 0.968, 0.999),
        (100.0, 0.877, 0.987),
        (150.0, 0.745, 0.934),
        (200.0, 0.593, 0.807),
        (250.0, 0.368, 0.457),
    ];
    let (mode, frames) = (Mode::long(Rate::Dsss2), 4000);
    for (metres, rayleigh, glomosim) in table {
        for (fading, published) in [
            (Fading::Rayleigh, rayleigh),
            (Fading::GlomosimRayleigh, glomosim),
        ] {
            let profile = Profile {
                power: Dbm(7.87),
                power_max: Dbm(7.87),
                fading,
                ..Profile::glomosim()
            };
            let medium = pair(metres, &profile);
            let needed = (profile.lock.power - medium.mean_power(0, 1)).to_linear();
            let closed = match fading {
                Fading::Rayleigh => (-needed).exp(),
                _ => (-std::f64::consts::PI * needed * needed / 4.0).exp(),
            };
            assert!(
                (closed - published).abs() < 0.002,
                "{metres} m {fading:?}: {closed} {published}"
            );
            let expected = medium.prr(0, 1, mode, 1536);
            assert!(
                (expected - closed).abs() < 3e-4,
                "{metres} m: {expected} {closed}"
            );
            let (found, _) = deliveries(medium, frames, 1536, mode, None);
            assert!(
                (found - closed).abs() < spread(closed, frames),
                "{metres} m {fading:?}: {found} {closed}"
            );
        }
    }
}

/// Goal: error curves under Rayleigh and Rician fading. Method: `Medium::prr` against an integral over the gain
/// with the DBPSK formula written out here, and runs against `Medium::prr`.
#[test]
fn physical_prr_over_distance_matches_the_integral() {
    let frames = 3000;
    for fading in [Fading::Rayleigh, Fading::Rician { k: 3.0 }] {
        let profile = Profile {
            fading,
            ..Profile::chappe_physical()
        };
        for metres in [300.0, 450.0, 600.0, 800.0] {
            let medium = pair(metres, &profile);
            let (mode, octets) = (Mode::long(Rate::Dsss1), 400);
            let snr = (medium.mean_power(0, 1) - profile.noise).to_linear();
            let success = |gain: f64| {
                let error = 0.5 * (-22.0 * snr * gain).exp();
                if 10.0 * (snr * gain).log10() < -8.0 {
                    0.0
                } else {
                    (1.0 - error).powi(3200 + 48)
                }
            };
            let integral = integrate(fading, success);
            let expected = medium.prr(0, 1, mode, octets);
            assert!(
                (integral - expected).abs() < 2e-3,
                "{fading:?} {metres} m: {integral} {expected}"
            );
            let (found, _) = deliveries(medium, frames, octets, mode, None);
            assert!(
                (found - expected).abs() < spread(expected, frames),
                "{fading:?} {metres} m: {found} {expected}"
            );
        }
    }
}

/// The mean of `value` over the density of the power gain: exp(-g), or Rice's with its Bessel function by series.
fn integrate(fading: Fading, value: impl Fn(f64) -> f64) -> f64 {
    let step = 1e-3;
    let density = |g: f64| match fading {
        Fading::Rician { k } => {
            let z = k * (k + 1.0) * g;
            let (mut term, mut sum) = (1.0, 1.0);
            for i in 1..200 {
                term *= z / f64::from(i * i);
                sum += term;
            }
            (k + 1.0) * (-k - (k + 1.0) * g).exp() * sum
        }
        _ => (-g).exp(),
    };
    (0..20_000)
        .map(|i| (f64::from(i) + 0.5) * step)
        .map(|g| value(g) * density(g) * step)
        .sum()
}

/// ns-2 hears at 250 m and not beyond, senses at 550 m and not beyond; ns-3 hears nothing under -82 dBm.
#[test]
fn threshold_profiles_have_sharp_edges() {
    let mode = Mode::long(Rate::Dsss2);
    let ns2 = Profile::ns2_threshold();
    let cases = [
        (249.0, 1.0, 1.0),
        (251.0, 0.0, 1.0),
        (549.0, 0.0, 1.0),
        (552.0, 0.0, 0.0),
    ];
    for (metres, prr, sensed) in cases {
        let medium = pair(metres, &ns2);
        assert_eq!(medium.prr(0, 1, mode, 228), prr, "{metres}");
        assert_eq!(medium.sense_probability(0, 1), sensed, "{metres}");
        let (found, counters) = deliveries(medium, 20, 228, mode, None);
        assert_eq!(found, prr, "{metres}");
        // Too weak to be decoded; beyond sensing there is no link to lose anything on.
        let lost = if prr == 0.0 && sensed == 1.0 { 20 } else { 0 };
        assert_eq!(counters.lost.of(Loss::TooWeak), lost, "{metres}");
    }
    let ns3 = Profile::ns3_yans();
    let reach = ns3.path_loss.reach(ns3.power - ns3.lock.power);
    assert_eq!(
        deliveries(pair(reach - 0.1, &ns3), 20, 1500, mode, None).0,
        1.0
    );
    assert_eq!(
        deliveries(pair(reach + 0.1, &ns3), 20, 1500, mode, None).0,
        0.0
    );
}

/// Sense probability over Rayleigh fading: exp(-threshold / mean) for whichever of energy and preamble is easier.
#[test]
fn sensing_follows_the_fading_law() {
    let profile = Profile {
        power: Dbm(7.87),
        fading: Fading::Rayleigh,
        ..Profile::glomosim()
    };
    for metres in [250.0, 445.0] {
        let medium = pair(metres, &profile);
        let closed = (-(profile.carrier_sense - medium.mean_power(0, 1)).to_linear()).exp();
        assert!(
            (medium.sense_probability(0, 1) - closed).abs() < 3e-4,
            "{metres}"
        );
    }
}

/// A frame ends at a receiver its airtime and its propagation delay after it left: 3.3356 us for each km.
#[test]
fn airtime_and_propagation_are_exact() {
    let profile = Profile {
        path_loss: PathLoss::Friis { hertz: 2.4e9 },
        fading: Fading::None,
        antennas: Db(48.0),
        ..Profile::chappe_physical()
    };
    // A WiLD link of 65 km and a node between: the nearer one hears it first.
    let positions = [0.0, 65_000.0, 20_000.0].map(|x| Position::new(x, 0.0));
    let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
    let mut nodes = probes(3);
    let mode = Mode::long(Rate::Cck11);
    *nodes[0] = Probe::default().send(1000, mode, &[7; 1532]);
    let mut simulator =
        Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(10));
    let airtime = 192_000 + (1536u64 * 8 * 1000).div_ceil(11_000) * 1000;
    for (node, delay) in [(1, 216_817), (2, 66_713)] {
        let (at, told) = &simulator.node(node).told[0];
        assert_eq!(*at, 1_000_000 + airtime + delay);
        assert!(
            matches!(told, Told::Got { started, .. } if *started == 1_000_000 + delay),
            "{told:?}"
        );
    }
    assert_eq!(simulator.node(0).told[1], (1_000_000 + airtime, Told::Sent));
    let order: Vec<usize> = simulator
        .recorder_mut()
        .0
        .iter()
        .map(|outcome| outcome.0)
        .collect();
    assert_eq!(order, [2, 1]);
}

/// Goal: fading is constant within a coherence block and independent between blocks. Method: a run with four
/// frames to each block under a bare threshold; all four must share their fate.
#[test]
fn fades_last_one_coherence_block() {
    let profile = Profile {
        fading: Fading::Rayleigh,
        coherence: Duration::from_millis(4),
        lock: Lock {
            sinr: Db(-100.0),
            power: Dbm(-75.0),
        },
        rule: Rule::SnrThreshold(Db(0.0)),
        capture: None,
        ..Profile::chappe_physical()
    };
    let medium = pair(250.0, &profile);
    let (mode, blocks) = (Mode::long(Rate::Cck11), 1000);
    let mut sender = Probe::default();
    for frame in 0..4 * blocks {
        sender = sender.send(50 + 1000 * frame, mode, &[0; 96]);
    }
    let expected = medium.prr(0, 1, mode, 100);
    let nodes = vec![Box::new(sender), Box::new(Probe::default())];
    let mut simulator =
        Simulator::new(World::new(medium), nodes, Seed(3), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_secs(5));
    let fates = simulator.recorder_mut().at(1, 0);
    assert_eq!(fates.len() as u64, 4 * blocks);
    assert!(
        fates
            .chunks(4)
            .all(|block| block.iter().all(|fate| *fate == block[0]))
    );
    let good: Vec<f64> = fates
        .chunks(4)
        .map(|block| f64::from(block[0].is_ok()))
        .collect();
    let share = good.iter().sum::<f64>() / good.len() as f64;
    assert!(
        (share - expected).abs() < spread(expected, blocks),
        "{share} {expected}"
    );
    let pairs = good
        .windows(2)
        .map(|pair| (pair[0] - share) * (pair[1] - share))
        .sum::<f64>();
    let correlation = pairs / good.len() as f64 / (share * (1.0 - share));
    assert!(
        correlation.abs() < 5.0 / (good.len() as f64).sqrt(),
        "{correlation}"
    );
}

/// The same seed meets the same air whatever else is sent: a bystander's frames on another channel change nothing.
#[test]
fn two_protocols_on_one_seed_meet_the_same_air() {
    let profile = Profile::chappe_physical();
    let run = |bystander: bool| {
        let positions = [0.0, 450.0, 5000.0, 5100.0].map(|x| Position::new(x, 0.0));
        let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
        let mode = Mode::long(Rate::Dsss1);
        let mut nodes = probes(4);
        for frame in 0..500 {
            *nodes[0] = std::mem::take(&mut *nodes[0]).send(50 + 8000 * frame, mode, &[0; 600]);
            if bystander {
                *nodes[2] = std::mem::take(&mut *nodes[2]).send(20 + 7000 * frame, mode, &[0; 700]);
            }
        }
        let mut simulator =
            Simulator::new(World::new(medium), nodes, Seed(3), Outcomes::default()).unwrap();
        simulator.run_until(AirTime::from_secs(5));
        simulator.recorder_mut().at(1, 0)
    };
    let (alone, beside) = (run(false), run(true));
    assert!(alone.iter().any(|fate| fate.is_ok()) && alone.iter().any(|fate| fate.is_err()));
    assert_eq!(alone, beside);
}

/// Interference next door counts by the rejection of its distance: on the same channel it kills, one channel away
/// with 30 dB of rejection it does not, and without a rejection it is not there at all.
#[test]
fn neighbouring_channels_are_rejected() {
    let kills = |channel: u8, rejection: Vec<Db>| {
        let profile = Profile {
            fading: Fading::None,
            rejection,
            ..Profile::chappe_physical()
        };
        let medium = Medium::geometric(&topology::grid(2, 2, 100.0), &profile, Seed(1)).unwrap();
        let mode = Mode::long(Rate::Cck11);
        let mut nodes = probes(4);
        *nodes[0] = Probe::default().send(1000, mode, &[1; 1000]);
        let tune = chappe_core::RadioRequest::Tune(Channel(channel));
        *nodes[3] = Probe::default().ask(10, tune).send(1400, mode, &[2; 1000]);
        let mut simulator =
            Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
        simulator.run_until(AirTime::from_millis(9));
        simulator.recorder_mut().at(1, 0)[0] == Err(Loss::Collision)
    };
    assert!(kills(1, vec![]));
    assert!(kills(2, vec![Db(0.0)]));
    assert!(!kills(2, vec![Db(30.0)]));
    assert!(!kills(2, vec![]));
    assert!(!kills(3, vec![Db(0.0)]));
}
