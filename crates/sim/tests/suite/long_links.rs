//! Links of tens of kilometres: the speed of light, dishes and masts, losses that come in bursts, foreign networks.

// Boxed nodes are what a simulator takes.
#![allow(clippy::vec_box)]

use crate::common;

use chappe_core::{Db, Duration, Mode, RadioRequest, Rate, SPEED_OF_LIGHT, Seed};
use chappe_sim::{
    AirTime, Antenna, Antennas, Bursts, Error, Fault, Gilbert, Jammer, LinkLoss, LinkTrace, Loss,
    LossLaw, Medium, Place, Position, Profile, Simulator, World,
};
use common::{Outcomes, Probe, Told, probes};

const MODE: Mode = Mode::long(Rate::Cck11);
fn long() -> Profile {
    Profile::named("long-link").unwrap()
}

/// Dishes that look at each other in pairs: (node, node).
fn facing(positions: &[Position], pairs: &[(usize, usize)]) -> Antennas {
    let mut of = vec![Antenna::ISOTROPIC; positions.len()];
    for &(a, b) in pairs {
        of[a] = Antenna::GRID_24DBI.towards(positions[a], positions[b]);
        of[b] = Antenna::GRID_24DBI.towards(positions[b], positions[a]);
    }
    Antennas {
        of,
        mast: 20.0,
        isolation: Db(60.0),
        sites: Vec::new(),
    }
}

fn link(metres: f64) -> Medium {
    let positions = [Position::new(0.0, 0.0), Position::new(metres, 0.0)];
    let antennas = facing(&positions, &[(0, 1)]);
    Medium::directed(&positions, &antennas, &long(), Seed(1)).unwrap()
}

/// Carrier, frame and its end arrive with the speed of light, to the nanosecond, at any distance of the figures.
#[test]
fn everything_arrives_with_the_delay_of_its_path() {
    for kilometres in [0.001, 8.0, 15.0, 60.0, 100.0, 110.1, 200.0] {
        let metres = kilometres * 1e3;
        let delay = (metres / SPEED_OF_LIGHT * 1e9).round() as u64;
        let mut nodes = probes(2);
        *nodes[0] = Probe::default().send(1000, MODE, &[1; 100]);
        *nodes[1] = Probe::default().ask(5, RadioRequest::Sense(true));
        let world = World::new(link(metres));
        let mut simulator = Simulator::new(world, nodes, Seed(1), ()).unwrap();
        simulator.run_until(AirTime::from_millis(10));
        let (begin, lasts) = (1_000_000 + delay, MODE.airtime(104).nanos());
        let far = simulator.node(1);
        assert_eq!(
            far.carrier(),
            [(false, 0), (true, begin), (false, begin + lasts)]
        );
        let times: Vec<u64> = far.told.iter().map(|told| told.0).collect();
        assert_eq!(times[2..], [begin, begin + lasts, begin + lasts]);
        let sent = simulator
            .node(0)
            .told
            .iter()
            .find(|told| told.1 == Told::Sent);
        assert_eq!(sent.map(|told| told.0), Some(1_000_000 + lasts));
    }
    assert_eq!((100e3f64 / SPEED_OF_LIGHT * 1e9).round(), 333_564.0);
}

/// Two ends that begin within the delay of each other do not hear each other's carrier first: both send, and each
/// hears the other's frame from its middle on, too late to receive it. 50 km are 166.8 us.
#[test]
fn carrier_sense_lags_by_the_propagation_delay() {
    let mut nodes = probes(2);
    *nodes[0] = Probe::default().send(1000, MODE, &[1; 400]);
    *nodes[1] = Probe::default()
        .ask(5, RadioRequest::Sense(true))
        .send(1160, MODE, &[2; 400]);
    let world = World::new(link(50e3));
    let mut simulator = Simulator::new(world, nodes, Seed(1), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(10));
    let transmitting = Err(Loss::Transmitting);
    assert_eq!(simulator.recorder_mut().at(1, 0), [transmitting]);
    assert_eq!(simulator.recorder_mut().at(0, 1), [transmitting]);
    // Busy by its own frame first; 6.8 us later it would have heard the other one.
    assert_eq!(simulator.node(1).carrier()[1], (true, 1_160_000));
}

/// Power at 60 km with two dishes is transmit power, both gains, Friis; a dish that looks away by half its beam loses
/// 3 dB on that end only; a third party far off the axis gets both side lobes.
#[test]
fn the_link_budget_has_both_antennas() {
    let positions =
        [(0.0, 0.0), (60e3, 0.0), (0.0, 30e3), (20e3, 40e3)].map(|(x, y)| Position::new(x, y));
    let mut antennas = facing(&positions, &[(0, 1), (2, 3)]);
    let power = |antennas: &Antennas, from, to| {
        let medium = Medium::directed(&positions, antennas, &long(), Seed(1)).unwrap();
        medium.mean_power(from, to).0
    };
    let friis =
        |metres: f64| 20.0 * (4.0 * std::f64::consts::PI * metres * 2.4e9 / SPEED_OF_LIGHT).log10();
    let own = long().power.0;
    let expected = own + 24.0 + 24.0 - friis(60e3);
    assert!((power(&antennas, 0, 1) - expected).abs() < 1e-9);
    // Node 2 looks 27 degrees north of east; nodes 0 and 1 see it, and it them, through side lobes.
    let side = own - 1.0 - 1.0 - friis(30e3);
    assert!((power(&antennas, 0, 2) - side).abs() < 1e-9);
    assert!((power(&antennas, 2, 0) - side).abs() < 1e-9);
    antennas.of[1].azimuth += 4.0;
    assert!((power(&antennas, 0, 1) - (expected - 3.0)).abs() < 1e-6);
    assert!((power(&antennas, 1, 0) - (expected - 3.0)).abs() < 1e-6);
    antennas.of.pop();
    let refused = Medium::directed(&positions, &antennas, &long(), Seed(1)).map(|_| ());
    assert_eq!(
        refused,
        Err(Error::Antenna("give one antenna for each node"))
    );
}

/// Shadowing belongs to two masts: all radios of the one are as far below or above the law at all radios of the other, and
/// radios of one mast hear each other by its isolation alone.
#[test]
fn radios_of_one_mast_share_their_shadowing() {
    // Radios 0 and 1 stand on mast 5, 2 and 3 on mast 9.
    let positions = [0.0, 0.0, 50e3, 50e3].map(|x| Position::new(x, 0.0));
    let mut antennas = facing(&positions, &[(0, 2)]);
    antennas.sites = vec![5, 5, 9, 9];
    let profile = Profile {
        shadowing: Db(6.0),
        floor: Db(200.0),
        ..long()
    };
    let unshadowed = Profile {
        shadowing: Db(0.0),
        ..profile.clone()
    };
    let below = |from: usize, to: usize, profile: &Profile| {
        let clear = Medium::directed(&positions, &antennas, &unshadowed, Seed(1)).unwrap();
        let shadowed = Medium::directed(&positions, &antennas, profile, Seed(1)).unwrap();
        clear.mean_power(from, to).0 - shadowed.mean_power(from, to).0
    };
    let first = below(0, 2, &profile);
    assert!(first.abs() > 1e-3, "{first}");
    for (from, to) in [(2, 0), (1, 2), (0, 3), (3, 1)] {
        assert!(
            (below(from, to, &profile) - first).abs() < 1e-9,
            "{from} {to}"
        );
    }
    assert_eq!(below(0, 1, &profile), 0.0);
    // Ten nodes of which the sixth and the tenth stand there have the same between these two.
    let mut places = vec![Position::new(1e6, 1e6); 10];
    (places[5], places[9]) = (positions[0], positions[2]);
    let single = Medium::geometric(&places, &profile, Seed(1)).unwrap();
    let plain = Medium::geometric(&places, &unshadowed, Seed(1)).unwrap();
    let same = plain.mean_power(5, 9).0 - single.mean_power(5, 9).0;
    assert!((same - first).abs() < 1e-9, "{same} {first}");
    let mut short = antennas.clone();
    short.sites.pop();
    let refused = Medium::directed(&positions, &short, &long(), Seed(1)).map(|_| ());
    assert_eq!(
        refused,
        Err(Error::Antenna("give one mast for each node, or none"))
    );
}

/// Two radios of one mast, whose links stand at a right angle. On one channel the one that sends deafens the other, which hears its
/// own far end at a ratio under one; six channels apart it does not.
#[test]
fn radios_of_one_mast_disturb_each_other() {
    let positions =
        [(-40e3, 0.0), (0.0, 0.0), (0.0, 2.0), (0.0, 40e3)].map(|(x, y)| Position::new(x, y));
    let antennas = facing(&positions, &[(0, 1), (2, 3)]);
    let fates = |channel: u8| {
        let medium = Medium::directed(&positions, &antennas, &long(), Seed(1)).unwrap();
        let mut nodes = probes(4);
        *nodes[0] = Probe::default().send(1000, MODE, &[1; 400]);
        let tune = RadioRequest::Tune(chappe_core::Channel(channel));
        *nodes[2] = Probe::default().ask(1, tune).send(1400, MODE, &[2; 400]);
        *nodes[3] = Probe::default().ask(1, tune);
        let world = World::new(medium);
        let mut simulator = Simulator::new(world, nodes, Seed(1), Outcomes::default()).unwrap();
        simulator.run_until(AirTime::from_millis(10));
        let recorder = simulator.recorder_mut();
        (recorder.at(1, 0), recorder.at(3, 2))
    };
    assert_eq!(fates(1), (vec![Err(Loss::Collision)], vec![Ok(())]));
    assert_eq!(fates(7), (vec![Ok(())], vec![Ok(())]));
}

/// The fates of `count` frames a millisecond apart over 10 km, under a law for one direction.
fn under(law: LossLaw, unheard: f64, count: u64) -> (Vec<Result<(), Loss>>, usize) {
    let mut nodes = probes(2);
    *nodes[0] = (0..count).fold(Probe::default(), |probe, frame| {
        probe.send(1000 * (frame + 1), MODE, &[frame as u8; 60])
    });
    let mut world = World::new(link(10e3));
    let (from, to) = (0, 1);
    world.link_losses = vec![LinkLoss {
        from,
        to,
        law,
        unheard,
    }];
    let mut simulator = Simulator::new(world, nodes, Seed(3), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(count + 10));
    let fates = simulator.recorder_mut().at(1, 0);
    let failed = simulator.node(1).failed();
    (fates, failed)
}

/// The two-state process has the loss and the length of bursts that its states say, and the rest of the medium none:
/// mean sojourns of 40 and 160 ms give one frame in five lost; runs of losses in a sequence sampled every millisecond
/// last 40.5 on average, since 1 / (1 - exp(-1 / 40)) = 40.5.
#[test]
fn a_two_state_link_loses_its_stated_share() {
    let law = Gilbert::bursts(0.2, Duration::from_millis(40));
    assert_eq!(law.good, Duration::from_millis(160));
    assert!((law.loss() - 0.2).abs() < 1e-12);
    let count = 60_000;
    let (fates, failed) = under(LossLaw::Gilbert(law), 0.5, count);
    assert_eq!(fates.len() as u64, count);
    let lost = fates
        .iter()
        .filter(|fate| **fate == Err(Loss::Link))
        .count();
    assert_eq!(lost, fates.iter().filter(|fate| fate.is_err()).count());
    let runs = fates
        .windows(2)
        .filter(|pair| pair[0].is_ok() && pair[1].is_err())
        .count();
    // 300 bursts: 6 % of relative error each of number and length.
    let (share, burst) = (lost as f64 / count as f64, lost as f64 / runs as f64);
    assert!((share - 0.2).abs() < 0.2 * 0.25, "{share}");
    assert!((burst / 40.5 - 1.0).abs() < 0.2, "{burst} in {runs}");
    // Of half of the lost frames the radio finds the preamble, and fails at their end.
    assert!(
        (failed as f64 / lost as f64 - 0.5).abs() < 0.02,
        "{failed} of {lost}"
    );
}

/// States with losses of their own: 1 in 100 and 3 in 10 of frames.
#[test]
fn both_states_may_lose() {
    let law = Gilbert {
        good: Duration::from_millis(3),
        bad: Duration::from_millis(1),
        good_loss: 0.01,
        bad_loss: 0.3,
    };
    assert!((law.loss() - (0.75 * 0.01 + 0.25 * 0.3)).abs() < 1e-12);
    let count = 20_000;
    let (fates, _) = under(LossLaw::Gilbert(law), 1.0, count);
    let lost = fates.iter().filter(|fate| fate.is_err()).count() as f64 / count as f64;
    assert!((lost - law.loss()).abs() < 0.01, "{lost}");
}

/// A recording of frames is followed to the letter, in one direction only; one of ratios in its steps.
#[test]
fn traces_are_followed() {
    let kept = vec![true, true, false, true, false];
    let (fates, _) = under(LossLaw::Trace(LinkTrace::Packets(kept.clone())), 0.0, 12);
    let expected = (0..12).map(|frame| {
        if kept[frame % 5] {
            Ok(())
        } else {
            Err(Loss::Link)
        }
    });
    assert_eq!(fates, expected.collect::<Vec<_>>());
    let steps = vec![
        (AirTime::from_millis(1001), 0.5),
        (AirTime::from_millis(3001), 0.0),
    ];
    let (fates, _) = under(LossLaw::Trace(LinkTrace::Steps(steps)), 0.0, 4000);
    let got = |from: usize, to: usize| fates[from..to].iter().filter(|fate| fate.is_ok()).count();
    assert_eq!((got(0, 1000), got(3000, 4000)), (1000, 0));
    assert!((got(1000, 3000) as f64 / 2000.0 - 0.5).abs() < 0.05);
}

/// A link's process belongs to the link: another seed or the other direction has another one, the same has the same.
#[test]
fn processes_are_seeded_and_checked() {
    let loss = |from, to| LinkLoss {
        from,
        to,
        law: LossLaw::Gilbert(Gilbert::bursts(0.5, Duration::from_millis(10))),
        unheard: 0.0,
    };
    let world = |losses: Vec<LinkLoss>| World {
        link_losses: losses,
        ..World::new(link(10e3))
    };
    let refused = |losses| Simulator::new(world(losses), probes(2), Seed(1), ()).err();
    assert_eq!(refused(vec![loss(0, 1), loss(1, 0)]), None);
    assert!(matches!(
        refused(vec![loss(0, 1), loss(0, 1)]),
        Some(Error::LinkLoss(_))
    ));
    assert!(matches!(
        refused(vec![loss(0, 2)]),
        Some(Error::LinkLoss(_))
    ));
    let (mut wrong, mut empty) = (loss(0, 1), loss(0, 1));
    wrong.unheard = 1.5;
    empty.law = LossLaw::Trace(LinkTrace::Packets(Vec::new()));
    assert!(refused(vec![wrong]).is_some() && refused(vec![empty]).is_some());
    let run = |seed| {
        let mut nodes = probes(2);
        for (node, first) in [(0, 0), (1, 500)] {
            *nodes[node] = (0..200u64).fold(Probe::default(), |probe, frame| {
                probe.send(first + 1000 * (frame + 1), MODE, &[frame as u8; 60])
            });
        }
        let both = world(vec![loss(0, 1), loss(1, 0)]);
        let mut simulator = Simulator::new(both, nodes, Seed(seed), Outcomes::default()).unwrap();
        simulator.run_until(AirTime::from_millis(300));
        let recorder = simulator.recorder_mut();
        (recorder.at(1, 0), recorder.at(0, 1))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert_ne!(run(1).0, run(1).1);
}

/// Frames of a network that the transmitter does not hear, as strong at the receiver as its own: a frame that begins
/// while one of them is being received misses its preamble (their share of the time), one during which one of them
/// begins collides, and the receiver's node is notified of both kinds of failures, not of whole ones.
#[test]
fn foreign_frames_cost_preambles_and_check_sequences() {
    let positions = [-1000.0, 0.0].map(|x| Position::new(x, 0.0));
    let medium = Medium::geometric(&positions, &long(), Seed(1)).unwrap();
    let (count, mode, octets) = (4000u64, MODE, 1000);
    let gap = Duration::from_micros(3000);
    let jammer = Jammer {
        place: Place::At(Position::new(1000.0, 0.0)),
        power: long().power,
        channel: Some(long().channel),
        bursts: Bursts::Frames { gap, mode, octets },
        lasts: Duration::from_secs(100),
    };
    let mut nodes = probes(2);
    *nodes[0] = (0..count).fold(Probe::default(), |probe, frame| {
        probe.send(5003 * (frame + 1), MODE, &[frame as u8; 496])
    });
    let mut world = World::new(medium);
    world.faults = vec![(AirTime::ZERO, Fault::Jammer(jammer.clone()))];
    let mut simulator = Simulator::new(world.clone(), nodes, Seed(1), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(5003 * (count + 2) / 1000));
    let fates = simulator.recorder_mut().at(1, 0);
    let share = |fate| fates.iter().filter(|seen| **seen == fate).count() as f64 / count as f64;
    let close = |found: f64, expected: f64| {
        let spread = (expected * (1.0 - expected) / count as f64).sqrt();
        assert!(
            (found - expected).abs() < 5.0 * spread,
            "{found} {expected}"
        );
    };
    let airtime = |octets: usize| MODE.airtime(octets).as_secs_f64();
    let busy = airtime(octets) / (airtime(octets) + gap.as_secs_f64());
    let alone = (1.0 - busy) * (-airtime(500) / gap.as_secs_f64()).exp();
    close(share(Err(Loss::PreambleMissed)), busy);
    close(share(Ok(())), alone);
    close(share(Err(Loss::Collision)), 1.0 - busy - alone);
    let own = simulator.counters().nodes[1];
    assert_eq!(own.receptions as usize, simulator.node(1).got());
    assert_eq!(own.failures as usize, simulator.node(1).failed());
    // Each own frame that missed its preamble hit a foreign one.
    assert!(
        own.failures as f64 > count as f64 * 0.9 * (1.0 - alone),
        "{own:?}"
    );
    assert!(own.foreign > 1000, "{own:?}");
    let nowhere = Jammer {
        channel: None,
        ..jammer
    };
    world.faults = vec![(AirTime::ZERO, Fault::Jammer(nowhere))];
    assert!(matches!(
        Simulator::new(world, probes(2), Seed(1), ()).err(),
        Some(Error::Fault(_))
    ));
}
