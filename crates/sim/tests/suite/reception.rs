//! What a receiver makes of overlapping frames, under each profile, in tables of two frames.

use crate::common;

use chappe_core::{Channel, Dbm, Mode, RadioRequest, Rate, Seed};
use chappe_sim::{AirTime, Fading, Loss, Medium, Position, Profile, Simulator, World, topology};
use common::{Outcomes, Probe, Told, probes};

const MODE: Mode = Mode::long(Rate::Dsss2);

/// The fates at a receiver between two transmitters: the first sends at 1 ms, the second `later` microseconds after
/// with `stronger` dB more power. 0: first, 1: second, 2: receiver. The transmitters cannot hear each other.
fn fates(profile: &Profile, later: u64, stronger: f64) -> (Result<(), Loss>, Result<(), Loss>) {
    let profile = Profile {
        fading: Fading::None,
        power_max: profile.power,
        ..profile.clone()
    };
    let base = profile.power.0 - 30.0;
    let positions = [-60.0, 60.0, 0.0].map(|x| Position::new(x, 0.0));
    let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
    let mut nodes = probes(3);
    *nodes[0] = Probe::default().send_at(1000, MODE, &[1; 496], Some(Dbm(base)));
    *nodes[1] = Probe::default().send_at(1000 + later, MODE, &[2; 496], Some(Dbm(base + stronger)));
    let mut simulator =
        Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(20));
    let outcomes = simulator.recorder_mut();
    let fate = |from| match outcomes.at(2, from)[..] {
        [fate] => fate,
        ref other => panic!("{other:?}"),
    };
    (fate(0), fate(1))
}

/// Power at the receiver with `base`: 15 - 30 - 75.6 = -90.6 dBm would be too weak for glomosim's -81; these tables
/// use the profiles with thresholds low enough that only the rules of overlap are seen.
fn open(profile: Profile) -> Profile {
    let low = Dbm(f64::NEG_INFINITY);
    let lock = chappe_sim::Lock {
        power: low,
        ..profile.lock
    };
    Profile {
        lock,
        decode_power: low,
        noise: Dbm(-120.0),
        vanish_below: None,
        floor: chappe_core::Db(0.0),
        ..profile
    }
}

const LOST: Result<(), Loss> = Err(Loss::Collision);
const MISSED: Result<(), Loss> = Err(Loss::PreambleMissed);
const TAKEN: Result<(), Loss> = Err(Loss::Captured);

/// 5 dB stronger within preamble and header takes the receiver; later, or weaker, it only destroys or is nothing.
#[test]
fn chappe_physical_restarts_in_the_preamble() {
    let profile = open(Profile::chappe_physical());
    let table = [
        (50, 6.0, (TAKEN, Ok(()))),
        (190, 6.0, (TAKEN, Ok(()))),
        (193, 6.0, (LOST, MISSED)),
        (50, 4.0, (LOST, MISSED)),
        (50, -12.0, (Ok(()), MISSED)),
        (500, 30.0, (LOST, MISSED)),
        (500, -12.0, (Ok(()), MISSED)),
    ];
    for (later, stronger, expected) in table {
        assert_eq!(
            fates(&profile, later, stronger),
            expected,
            "{later} us, {stronger} dB"
        );
    }
}

/// 5 dB within the first 16 us, and never after.
#[test]
fn ns3_captures_in_its_window() {
    let profile = open(Profile::ns3_yans());
    let table = [
        (15, 6.0, (TAKEN, Ok(()))),
        (17, 6.0, (LOST, MISSED)),
        (15, 4.0, (LOST, MISSED)),
        (300, 30.0, (LOST, MISSED)),
    ];
    for (later, stronger, expected) in table {
        assert_eq!(
            fates(&profile, later, stronger),
            expected,
            "{later} us, {stronger} dB"
        );
    }
}

/// In the first 4 us the strongest preamble is found if it stands out by 4 dB; otherwise the receiver stays with neither frame.
#[test]
fn ns3_searches_for_a_preamble() {
    let profile = Profile {
        capture: None,
        // So that noise decides nothing, however weak the second frame is.
        noise: Dbm(-140.0),
        ..open(Profile::ns3_yans())
    };
    let table = [
        (3, 8.0, (TAKEN, Ok(()))),
        (3, -8.0, (Ok(()), MISSED)),
        (3, 2.0, (LOST, LOST)),
        (3, -2.0, (LOST, LOST)),
        (5, 2.0, (LOST, MISSED)),
        (5, 8.0, (LOST, MISSED)),
    ];
    for (later, stronger, expected) in table {
        assert_eq!(
            fates(&profile, later, stronger),
            expected,
            "{later} us, {stronger} dB"
        );
    }
}

/// Goal: a receiver stays with a frame only if its PHY header survives. Method: frames at -7 dB, whose preamble is
/// found and whose payload is hopeless; those that are reported to the node are those whose 48 header bits at 1 Mbit/s
/// survived, (1 - exp(-22 SINR) / 2)^48 by the DBPSK formula; all of them are lost to noise.
#[test]
fn receivers_stay_only_with_frames_whose_header_survives() {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let medium = Medium::geometric(&topology::line(2, 50.0), &profile, Seed(1)).unwrap();
    let loss = profile.power.0 - medium.mean_power(0, 1).0;
    let power = Some(Dbm(profile.noise.0 - 7.0 + loss));
    let (mode, frames) = (Mode::long(Rate::Dsss1), 2000);
    let send = |probe: Probe, frame| probe.send_at(1000 + 5000 * frame, mode, &[1; 496], power);
    let nodes = vec![
        Box::new((0..frames).fold(Probe::default(), send)),
        Box::new(Probe::default()),
    ];
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), ()).unwrap();
    simulator.run_until(AirTime::from_secs(11));
    assert_eq!(simulator.counters().lost.of(Loss::Noise), frames);
    let sinr = 10f64.powf(-0.7);
    let header = (1.0 - 0.5 * (-22.0 * sinr).exp()).powi(48);
    let stayed = simulator.node(1).failed() as f64 / frames as f64;
    let deviation = (header * (1.0 - header) / frames as f64).sqrt();
    assert!(
        (stayed - header).abs() < 5.0 * deviation,
        "{stayed} {header}"
    );
}

/// 10 dB over noise and frame takes the receiver at any time; less than 10 dB under kills.
#[test]
fn glomosim_captures_at_any_time() {
    let profile = open(Profile::glomosim());
    let table = [
        (50, 11.0, (TAKEN, Ok(()))),
        (1500, 11.0, (TAKEN, Ok(()))),
        (1500, 9.0, (LOST, MISSED)),
        (1500, -9.0, (LOST, MISSED)),
        (1500, -11.0, (Ok(()), MISSED)),
    ];
    for (later, stronger, expected) in table {
        assert_eq!(
            fates(&profile, later, stronger),
            expected,
            "{later} us, {stronger} dB"
        );
    }
}

/// The first frame survives if it is 10 dB stronger; otherwise both die, however strong the second.
#[test]
fn ns2_judges_pairs_and_never_captures() {
    let profile = open(Profile::ns2_threshold());
    let table = [
        (50, 11.0, (LOST, LOST)),
        (50, 0.0, (LOST, LOST)),
        (1500, -9.0, (LOST, LOST)),
        (1500, -11.0, (Ok(()), MISSED)),
    ];
    for (later, stronger, expected) in table {
        assert_eq!(
            fates(&profile, later, stronger),
            expected,
            "{later} us, {stronger} dB"
        );
    }
}

/// While two frames of ns-2's destroy each other, a third that is 10 dB weaker than the one the receiver holds is
/// missed, and does not keep the receiver busy beyond their end: the frame after them is received.
#[test]
fn ns2_ignores_weak_frames_during_a_collision() {
    let profile = open(Profile {
        fading: Fading::None,
        ..Profile::ns2_threshold()
    });
    let positions =
        [(-60.0, 0.0), (60.0, 0.0), (0.0, 60.0), (0.0, 0.0)].map(|(x, y)| Position::new(x, y));
    let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
    let mut nodes = probes(4);
    *nodes[0] = Probe::default()
        .send(1000, MODE, &[1; 496])
        .send(3500, MODE, &[1; 496]);
    *nodes[1] = Probe::default().send(1100, MODE, &[2; 496]);
    let weaker = Some(Dbm(profile.power.0 - 11.0));
    *nodes[2] = Probe::default().send_at(1200, MODE, &[3; 996], weaker);
    let mut simulator =
        Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(20));
    let outcomes = simulator.recorder_mut();
    assert_eq!(
        (outcomes.at(3, 0), outcomes.at(3, 1)),
        (vec![LOST, Ok(())], vec![LOST])
    );
    assert_eq!(outcomes.at(3, 2), [MISSED]);
}

/// ns-2 sums nothing: two interferers 11 dB down leave the frame alone, and kill it under GloMoSim's rule, where
/// together they are only 8 dB down.
#[test]
fn interference_adds_up_except_in_ns2() {
    for (profile, expected) in [
        (Profile::ns2_threshold(), Ok(())),
        (Profile::glomosim(), LOST),
    ] {
        let profile = open(Profile {
            fading: Fading::None,
            ..profile
        });
        let positions =
            [(-60.0, 0.0), (60.0, 0.0), (0.0, 60.0), (0.0, 0.0)].map(|(x, y)| Position::new(x, y));
        let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
        let mut nodes = probes(4);
        *nodes[0] = Probe::default().send(1000, MODE, &[1; 496]);
        for other in [1, 2] {
            let weaker = Some(Dbm(profile.power.0 - 11.0));
            *nodes[other] = Probe::default().send_at(1300, MODE, &[2; 496], weaker);
        }
        let mut simulator =
            Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
        simulator.run_until(AirTime::from_millis(20));
        assert_eq!(
            simulator.recorder_mut().at(3, 0),
            [expected],
            "{}",
            profile.name
        );
    }
}

/// A radio that transmits hears nothing, one that begins to transmit loses what it was receiving, and one that has
/// just transmitted is deaf for its turnaround.
#[test]
fn radios_are_half_duplex() {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let airtime = MODE.airtime(500).nanos() / 1000;
    // (when node 1 sends, what becomes of node 0's frame of 100 ms at node 1)
    let table = [
        (99_900, Err(Loss::Transmitting)),
        (100_000, Err(Loss::Transmitting)),
        (100_000 + airtime - 1, Err(Loss::Transmitting)),
        (100_000 + airtime + 1, Ok(())),
        // Its own frame ends 4 us before the other one begins: it is still turning around. At 6 us it is not.
        (100_000 - airtime - 4, Err(Loss::Transmitting)),
        (100_000 - airtime - 6, Ok(())),
    ];
    for (at, expected) in table {
        let mut nodes = probes(2);
        *nodes[0] = Probe::default().send(100_000, MODE, &[1; 496]);
        *nodes[1] = Probe::default().send(at, MODE, &[2; 496]);
        let medium = Medium::geometric(&topology::line(2, 30.0), &profile, Seed(1)).unwrap();
        let mut simulator =
            Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
        simulator.run_until(AirTime::from_millis(150));
        assert_eq!(simulator.recorder_mut().at(1, 0), [expected], "{at}");
    }
}

/// Turning carrier sensing on is answered at once; then each change is reported, with its beginning; off means silence.
#[test]
fn carrier_events_come_from_sense_on_to_sense_off() {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let medium = Medium::geometric(&topology::line(2, 30.0), &profile, Seed(1)).unwrap();
    let mut nodes = probes(2);
    let airtime = MODE.airtime(500).nanos();
    *nodes[0] = Probe::default()
        .send(1000, MODE, &[1; 496])
        .send(8000, MODE, &[1; 496])
        .send(16_000, MODE, &[1; 496]);
    let sense = RadioRequest::Sense;
    *nodes[1] = Probe::default()
        .ask(500, sense(true))
        .ask(1500, sense(false))
        .ask(8500, sense(true))
        .ask(15_000, sense(false));
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), ()).unwrap();
    simulator.run_until(AirTime::from_millis(30));
    // 30 m are 100 ns.
    let expected = [
        (false, 0),
        (true, 1_000_100),
        (true, 8_000_100),
        (false, 8_000_100 + airtime),
    ];
    assert_eq!(simulator.node(1).carrier(), expected);
    assert_eq!(simulator.node(1).got(), 3);
    // The reception is told before the channel turns idle.
    let told = &simulator.node(1).told;
    let got = told
        .iter()
        .rposition(|(at, told)| matches!(told, Told::Got { .. }) && *at < 15_000_000)
        .unwrap();
    assert!(matches!(told[got + 1].1, Told::Busy { busy: false, .. }));
}

/// Two signals that are each under the threshold make the channel busy together, and a transmitter finds its own
/// channel busy.
#[test]
fn energy_adds_up_for_carrier_sense() {
    let deaf = chappe_sim::Lock {
        sinr: chappe_core::Db(0.0),
        power: Dbm(0.0),
    };
    let profile = Profile {
        fading: Fading::None,
        lock: deaf,
        ..Profile::chappe_physical()
    };
    let power = Dbm(profile.carrier_sense.0 - 2.0 + 80.05 - 15.0 + 15.0);
    let positions = [(-100.0, 0.0), (100.0, 0.0), (0.0, 0.0)].map(|(x, y)| Position::new(x, y));
    let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
    let alone = medium.mean_power(0, 2).0 - profile.power.0 + power.0;
    assert!(alone < profile.carrier_sense.0 && alone + 3.0 > profile.carrier_sense.0);
    let mut nodes = probes(3);
    *nodes[0] = Probe::default().send_at(1000, MODE, &[1; 496], Some(power));
    *nodes[1] = Probe::default().send_at(2000, MODE, &[1; 496], Some(power));
    *nodes[2] = Probe::default()
        .ask(10, RadioRequest::Sense(true))
        .send(9000, MODE, &[3; 96]);
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), ()).unwrap();
    simulator.run_until(AirTime::from_millis(30));
    let (long, short) = (MODE.airtime(500).nanos(), MODE.airtime(100).nanos());
    let expected = [
        (false, 0),
        (true, 2_000_334),
        (false, 1_000_334 + long),
        (true, 9_000_000),
        (false, 9_000_000 + short),
    ];
    assert_eq!(simulator.node(2).carrier(), expected);
}

/// A sleeping radio loses what it was receiving, hears nothing, and learns the carrier's state when it wakes.
#[test]
fn sleeping_radios_hear_nothing() {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let medium = Medium::geometric(&topology::line(2, 30.0), &profile, Seed(1)).unwrap();
    let mut nodes = probes(2);
    let frame = |probe: Probe, at| probe.send(at, MODE, &[1; 496]);
    *nodes[0] = [1000, 6000, 11_000, 16_000]
        .into_iter()
        .fold(Probe::default(), frame);
    let listen = RadioRequest::Listen;
    *nodes[1] = Probe::default()
        .ask(10, RadioRequest::Sense(true))
        .ask(1500, listen(false))
        .ask(12_000, listen(true));
    let mut simulator =
        Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(30));
    let asleep = Err(Loss::Asleep);
    assert_eq!(
        simulator.recorder_mut().at(1, 0),
        [asleep, asleep, asleep, Ok(())]
    );
    assert!(simulator.node(1).carrier().contains(&(true, 11_000_100)));
}

/// A radio that tunes away loses its frame, hears nothing of the old channel and the rest of the energy of the new.
#[test]
fn tuning_changes_what_is_heard() {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let medium = Medium::geometric(&topology::line(3, 30.0), &profile, Seed(1)).unwrap();
    let mut nodes = probes(3);
    let tune = |channel| RadioRequest::Tune(Channel(channel));
    *nodes[0] = Probe::default()
        .send(1000, MODE, &[1; 496])
        .send(6000, MODE, &[1; 496]);
    *nodes[2] = Probe::default()
        .ask(5, tune(6))
        .send(1200, MODE, &[2; 496])
        .send(7000, MODE, &[2; 496]);
    *nodes[1] = Probe::default()
        .ask(8, RadioRequest::Sense(true))
        .ask(1500, tune(6))
        .ask(9500, tune(1));
    let mut simulator =
        Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(30));
    let away = Err(Loss::OtherChannel);
    assert_eq!(simulator.recorder_mut().at(1, 0), [away, away]);
    assert_eq!(simulator.recorder_mut().at(1, 2), [away, Ok(())]);
    // From one busy channel to another that is busy still: told only when that ends.
    let airtime = MODE.airtime(500).nanos();
    let carrier = simulator.node(1).carrier();
    assert_eq!(
        carrier[..3],
        [(false, 0), (true, 1_000_100), (false, 1_200_100 + airtime)]
    );
}

/// A frame asked for while another is on the air follows it; a second wish replaces the first; a wish can be taken back.
#[test]
fn one_transmission_waits() {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let medium = Medium::geometric(&topology::line(2, 30.0), &profile, Seed(1)).unwrap();
    let mut nodes = probes(2);
    *nodes[0] = Probe::default()
        .send(1000, MODE, &[1; 496])
        .send(1500, MODE, &[2; 96])
        .send(1600, MODE, &[3; 96])
        .send(9000, MODE, &[4; 96])
        .ask(9000, RadioRequest::Cancel)
        .send(9900, MODE, &[5; 96]);
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), ()).unwrap();
    simulator.run_until(AirTime::from_millis(30));
    let got: Vec<(u8, u64)> = simulator
        .node(1)
        .told
        .iter()
        .filter_map(|(_, told)| match told {
            Told::Got { psdu, started, .. } => Some((psdu[0], *started)),
            _ => None,
        })
        .collect();
    let end = 1_000_100 + MODE.airtime(500).nanos();
    // Frame 4 leaves the moment it is asked for, too early to be taken back.
    assert_eq!(
        got,
        [(1, 1_000_100), (3, end), (4, 9_000_100), (5, 9_900_100)]
    );
}
