//! Faults, clocks and measured media: what goes wrong on purpose goes wrong as told.

// Boxed nodes are what a simulator takes.
#![allow(clippy::vec_box)]

use crate::common;

use chappe_core::{
    Db, Dbm, Duration, Instant, Mode, Ppm, RadioEvent, RadioNode, RadioRequest, Rate, Seed,
    Transmit, Wake,
};
use chappe_sim::{
    AirTime, Bursts, Clock, Error, Fading, Fault, Jammer, LinkTrace, Loss, Matrix, Medium, Place,
    Position, Profile, Simulator, World, topology,
};
use common::{Outcomes, Probe, Told, probes, us};

const MODE: Mode = Mode::long(Rate::Cck11);

fn quiet() -> Profile {
    Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    }
}

/// Node 0 sends 100-octet frames every millisecond from 1 ms on, `count` of them; node 1 listens.
fn stream(count: u64) -> Vec<Box<Probe>> {
    let mut nodes = probes(2);
    for frame in 0..count {
        *nodes[0] =
            std::mem::take(&mut *nodes[0]).send(1000 * (frame + 1), MODE, &[frame as u8; 96]);
    }
    nodes
}

fn run(
    medium: Medium,
    nodes: Vec<Box<Probe>>,
    faults: Vec<(AirTime, Fault)>,
    until: AirTime,
) -> Simulator<Probe, Outcomes> {
    let mut world = World::new(medium);
    world.faults = faults;
    let mut simulator = Simulator::new(world, nodes, Seed(2), Outcomes::default()).unwrap();
    simulator.run_until(until);
    simulator
}

fn line(nodes: usize) -> Medium {
    Medium::geometric(&topology::line(nodes, 30.0), &quiet(), Seed(1)).unwrap()
}

/// A timer of one second on a clock that gains 40 ppm fires 39.998 us early in air time; a drift step moves a
/// deadline that is already set; the node's own view of it stays exact.
#[test]
fn timers_run_on_the_nodes_own_clock() {
    let script = || Box::new(Probe::default().ask(1_000_000, RadioRequest::Listen(true)));
    let mut world = World::new(line(2));
    world.clocks = vec![Clock::new(Duration::ZERO, Ppm(40.0)), Clock::IDEAL];
    world.faults = vec![(
        AirTime::from_millis(500),
        Fault::Drift {
            node: 1,
            ppm: Ppm(-40.0),
        },
    )];
    let mut simulator = Simulator::new(world, vec![script(), script()], Seed(1), ()).unwrap();
    simulator.run_until(AirTime::from_nanos(999_960_001));
    assert!(simulator.node(0).told.is_empty());
    simulator.run_until(AirTime::from_nanos(999_960_002));
    assert_eq!(simulator.node(0).told, [(1_000_000_000, Told::Woken)]);
    // Half a second at -40 ppm takes 20.0008 us longer.
    simulator.run_until(AirTime::from_nanos(1_000_020_000));
    assert!(simulator.node(1).told.is_empty());
    simulator.run_until(AirTime::from_nanos(1_000_020_001));
    assert_eq!(simulator.node(1).told, [(1_000_000_000, Told::Woken)]);
}

/// Times that a node noted by its own clock are those of the run again, before, between and after changes of its drift.
#[test]
fn what_a_drifting_node_noted_has_a_time_on_the_air() {
    let drift = |millis, ppm| {
        let ppm = Ppm(ppm);
        (AirTime::from_millis(millis), Fault::Drift { node: 1, ppm })
    };
    let mut world = World::new(line(2));
    world.clocks = vec![Clock::IDEAL, Clock::new(Duration::from_secs(3), Ppm(80.0))];
    world.faults = vec![drift(500, -40.0), drift(1500, 100.0), drift(1500, 20_000.0)];
    let nodes = vec![Box::new(Probe::default()), Box::new(Probe::default())];
    let mut simulator = Simulator::new(world, nodes, Seed(1), ()).unwrap();
    for millis in [0, 250, 500, 750, 1499, 1500, 1501, 2500] {
        let now = AirTime::from_millis(millis);
        simulator.run_until(now);
        let shown = simulator.clock(1).local(now);
        // Clocks show whole nanoseconds, so a slow one shows the same for two.
        let noted = simulator.air_time(1, shown);
        assert!(
            noted <= now && now.nanos() - noted.nanos() < 2,
            "{now:?}: {noted:?}"
        );
        assert_eq!(simulator.air_time(0, Instant::from_millis(millis)), now);
    }
    // The second before the last drift is not converted by the present rate.
    let early = Instant::from_nanos(3_500_040_000 + 499_980_000);
    assert_eq!(simulator.air_time(1, early), AirTime::from_millis(1000));
}

/// Frames scheduled on two clocks of different drift arrive that much apart.
#[test]
fn scheduled_frames_start_on_the_nodes_own_clock() {
    let mut world = World::new(line(2));
    world.clocks = vec![
        Clock::new(Duration::from_millis(5), Ppm(100.0)),
        Clock::IDEAL,
    ];
    let nodes = vec![
        Box::new(Probe::default().send(105_000, MODE, &[0; 96])),
        Box::new(Probe::default()),
    ];
    let mut simulator = Simulator::new(world, nodes, Seed(1), ()).unwrap();
    simulator.run_until(AirTime::from_millis(200));
    // 100 ms / 1.0001 = 99.990001 ms on the air, and 100 ns on the way.
    assert!(
        matches!(
            simulator.node(1).told[0].1,
            Told::Got {
                started: 99_990_101,
                ..
            }
        ),
        "{:?}",
        simulator.node(1).told
    );
}

#[test]
fn a_crashed_node_is_dead_until_it_is_revived() {
    let faults = vec![
        (us(3500), Fault::Crash(1)),
        (us(6500), Fault::Restart(1)),
        (us(8050), Fault::Crash(0)),
    ];
    let mut world = World::new(line(2));
    world.faults = faults;
    let mut simulator = Simulator::new(world, stream(10), Seed(1), Outcomes::default()).unwrap();
    simulator.set_reviver(|_| Box::new(Probe::default()));
    simulator.run_until(AirTime::from_millis(12));
    let down = Err(Loss::Down);
    let fates = simulator.recorder_mut().at(1, 0);
    // The eighth frame is cut short by its sender's crash; the ninth and tenth never leave.
    assert_eq!(
        fates,
        [
            Ok(()),
            Ok(()),
            Ok(()),
            down,
            down,
            down,
            Ok(()),
            Err(Loss::Truncated)
        ]
    );
    assert_eq!(
        (simulator.node(1).got(), simulator.node(1).failed()),
        (1, 1),
        "a fresh node"
    );
}

#[test]
fn a_cut_link_passes_nothing_either_way() {
    let faults = vec![
        (us(2500), Fault::CutLink(1, 0)),
        (us(4500), Fault::RestoreLink(0, 1)),
    ];
    let mut simulator = run(line(2), stream(6), faults, AirTime::from_millis(9));
    assert_eq!(simulator.recorder_mut().at(1, 0), [Ok(()); 4]);
    assert_eq!(simulator.counters().lost.of(Loss::LinkCut), 2);
    assert_eq!(simulator.node(1).got(), 4);
}

/// Detected bit errors fail frames with probability 1 - (1 - rate)^bits; undetected ones change what is handed up.
#[test]
fn bit_errors_come_at_their_rate() {
    let (frames, rate) = (3000, 1e-3);
    for detected in [true, false] {
        let faults = vec![(
            us(0),
            Fault::CorruptBits {
                node: 1,
                rate,
                detected,
            },
        )];
        let simulator = run(line(2), stream(frames), faults, AirTime::from_secs(4));
        let clean = simulator
            .node(1)
            .told
            .iter()
            .filter(|(at, told)| match told {
                Told::Got { psdu, .. } => psdu
                    .iter()
                    .all(|&octet| octet == (at / 1_000_000 - 1) as u8),
                _ => false,
            });
        let (clean, expected) = (clean.count() as f64, frames as f64 * (1.0 - rate).powi(800));
        assert!(
            (clean - expected).abs() < 5.0 * (expected * 0.55).sqrt(),
            "{clean} {expected}"
        );
        let counters = simulator.counters();
        let wrong = frames - clean as u64;
        assert_eq!(
            (counters.lost.of(Loss::Corrupted), counters.falsified),
            if detected { (wrong, 0) } else { (0, wrong) }
        );
    }
}

/// A jammer that is on a quarter of the time takes the frames that overlap its bursts, and only those; none after.
#[test]
fn a_jammer_takes_its_share() {
    let jammer = |bursts| Jammer {
        place: Place::At(Position::new(30.0, 1.0)),
        power: Dbm(15.0),
        channel: None,
        bursts,
        lasts: Duration::from_secs(2),
    };
    let frames = 4000;
    let lost = |bursts| {
        let faults = vec![(us(0), Fault::Jammer(jammer(bursts)))];
        let mut simulator = run(line(2), stream(frames), faults, AirTime::from_secs(5));
        let fates = simulator.recorder_mut().at(1, 0);
        assert!(
            fates[2000..].iter().all(|fate| fate.is_ok()),
            "it has stopped"
        );
        fates[..1999].iter().filter(|fate| fate.is_err()).count() as f64 / 1999.0
    };
    assert_eq!(lost(Bursts::Constant), 1.0);
    // Bursts of 2.3 ms every 9.1 ms against frames of 265 us every ms: (2.3 + 0.265) / 9.1 overlap.
    let bursts = Bursts::Periodic {
        period: Duration::from_micros(9100),
        on: Duration::from_micros(2300),
    };
    let share = (2300.0 + 265.0) / 9100.0;
    assert!(
        (lost(bursts) - share).abs() < 0.01,
        "{} {share}",
        lost(bursts)
    );
    // Poisson gaps of mean 8 ms and bursts of 2 ms: clear with probability 8/10 exp(-265 us / 8 ms).
    let bursts = Bursts::Poisson {
        gap: Duration::from_millis(8),
        on: Duration::from_millis(2),
    };
    let share = 1.0 - 0.8 * (-0.265f64 / 8.0).exp();
    assert!(
        (lost(bursts) - share).abs() < 0.06,
        "{} {share}",
        lost(bursts)
    );
}

#[test]
fn a_matrix_delivers_by_its_ratios() {
    let frames = 4000;
    for (prr, octets, expected) in [
        (0.7, None, 0.7f64),
        (0.7, Some(100), 0.7),
        (0.7, Some(50), 0.49),
        (1.0, None, 1.0),
    ] {
        let matrix = Matrix {
            measured_octets: octets,
            ..Matrix::silent(2).with_link(0, 1, prr)
        };
        let medium = Medium::matrix(&matrix).unwrap();
        assert!((medium.prr(0, 1, MODE, 100) - expected).abs() < 1e-6);
        assert_eq!(
            (medium.sense_probability(1, 0), medium.prr(0, 0, MODE, 100)),
            (1.0, 0.0)
        );
        let simulator = run(medium, stream(frames), vec![], AirTime::from_secs(5));
        let found = simulator.node(1).got() as f64 / frames as f64;
        assert!(
            (found - expected).abs() <= 5.0 * (expected * (1.0 - expected) / frames as f64).sqrt(),
            "{prr} {found}"
        );
    }
}

/// In a matrix any overlap of audible frames kills, an inaudible frame does not, and carrier follows `senses`.
#[test]
fn overlap_kills_in_a_matrix() {
    let mut matrix = Matrix::silent(4).with_link(0, 1, 1.0).with_link(2, 1, 1.0);
    // Node 3 only makes node 1 busy; it delivers nothing.
    matrix.senses[3][1] = true;
    for (other, expected) in [(2, Err(Loss::Collision)), (3, Err(Loss::Collision))] {
        let mut nodes = probes(4);
        *nodes[0] = Probe::default()
            .send(1000, MODE, &[0; 96])
            .send(5000, MODE, &[0; 96]);
        *nodes[other] = Probe::default().send(1200, MODE, &[0; 96]);
        *nodes[1] = Probe::default().ask(1, RadioRequest::Sense(true));
        let mut simulator = run(
            Medium::matrix(&matrix).unwrap(),
            nodes,
            vec![],
            AirTime::from_millis(9),
        );
        assert_eq!(simulator.recorder_mut().at(1, 0), [expected, Ok(())]);
        let airtime = MODE.airtime(100).nanos();
        let carrier = simulator.node(1).carrier();
        assert_eq!(
            carrier[1..3],
            [(true, 1_000_000), (false, 1_200_000 + airtime)]
        );
    }
    let mut nodes = probes(4);
    *nodes[0] = Probe::default().send(1000, MODE, &[0; 96]);
    *nodes[3] = Probe::default().send(1200, MODE, &[0; 96]);
    matrix.senses[3][1] = false;
    let mut simulator = run(
        Medium::matrix(&matrix).unwrap(),
        nodes,
        vec![],
        AirTime::from_millis(9),
    );
    assert_eq!(simulator.recorder_mut().at(1, 0), [Ok(())]);
}

#[test]
fn traces_replace_ratios() {
    let steps = LinkTrace::Steps(vec![(us(3500), 0.0), (us(6500), 1.0)]);
    let packets = LinkTrace::Packets(vec![true, false, false]);
    for (trace, expected) in [(steps, "111000111111"), (packets, "100100100100")] {
        let mut matrix = Matrix::silent(2).with_link(0, 1, 1.0);
        matrix.traces = vec![((0, 1), trace)];
        let mut simulator = run(
            Medium::matrix(&matrix).unwrap(),
            stream(12),
            vec![],
            AirTime::from_secs(1),
        );
        let fates = simulator.recorder_mut().at(1, 0);
        let text: String = fates
            .iter()
            .map(|fate| if fate.is_ok() { '1' } else { '0' })
            .collect();
        assert_eq!(text, expected);
        assert!(
            fates
                .iter()
                .all(|fate| matches!(fate, Ok(()) | Err(Loss::Noise)))
        );
    }
}

/// What cannot be simulated is refused with what is wrong.
#[test]
fn worlds_are_checked() {
    let new =
        |world: World, nodes| Simulator::<Probe>::new(world, probes(nodes), Seed(1), ()).err();
    assert_eq!(
        new(World::new(line(3)), 2),
        Some(Error::NodeCount {
            medium: 3,
            nodes: 2
        })
    );
    let faulty = |fault| World {
        faults: vec![(us(1), fault)],
        ..World::new(line(2))
    };
    assert_eq!(new(faulty(Fault::Crash(2)), 2), Some(Error::FaultNode(2)));
    let everywhere = Jammer {
        place: Place::Over(vec![0]),
        power: Dbm(0.0),
        channel: None,
        bursts: Bursts::Constant,
        lasts: Duration::from_secs(1),
    };
    assert!(matches!(
        new(faulty(Fault::Jammer(everywhere)), 2),
        Some(Error::Fault(_))
    ));
    let clocks = World {
        clocks: vec![Clock::IDEAL],
        ..World::new(line(2))
    };
    assert_eq!(
        new(clocks, 2),
        Some(Error::ClockCount {
            clocks: 1,
            nodes: 2
        })
    );
    let nowhere = [Position::new(f64::NAN, 0.0)];
    assert_eq!(
        Medium::geometric(&nowhere, &quiet(), Seed(1)).err(),
        Some(Error::NotFinite("a position"))
    );
    let lopsided = Matrix {
        prr: vec![vec![0.0, 2.0], vec![0.0, 0.0]],
        ..Matrix::silent(2)
    };
    assert!(matches!(
        Medium::matrix(&lopsided).err(),
        Some(Error::Matrix(_))
    ));
}

/// Sends a short frame each two milliseconds.
struct Beacon {
    next: Instant,
    due: bool,
}

impl RadioNode for Beacon {
    fn handle_radio(&mut self, _: Instant, _: RadioEvent<'_>) {}
    fn poll_radio(&mut self, now: Instant, _: &mut [u8]) -> Option<RadioRequest> {
        std::mem::take(&mut self.due).then_some(RadioRequest::Transmit(Transmit {
            at: now,
            len: 14,
            mode: Mode::long(Rate::Cck11),
            power: None,
        }))
    }
    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next {
            (self.next, self.due) = (now + Duration::from_millis(2), true);
        }
    }
    fn poll_timeout(&self) -> Option<Wake> {
        Some(Wake {
            at: self.next,
            why: "beacon",
        })
    }
}

/// Goal: a signal that ends at a radio has begun there. Method: links on which a frame has left its antenna long before it
/// arrives, and a crashed radio at their far end; the end of the frame once overtook its beginning there, and no outcome
/// was booked.
#[test]
fn on_long_links_every_frame_has_an_outcome_at_a_crashed_radio() {
    let places = [0.0, 1.0, 150_000.0, 300_000.0].map(|x| Position::new(x, 0.0));
    let mut profile = Profile::long_link();
    profile.antennas = Db(60.0);
    let mut world = World::new(Medium::geometric(&places, &profile, Seed(1)).unwrap());
    world.faults = vec![(us(3000), Fault::Crash(3))];
    let beacon = |offset: u64| {
        Box::new(Beacon {
            next: Instant::from_micros(300 * offset),
            due: false,
        })
    };
    let nodes = (0..4).map(beacon).collect();
    let mut simulator = Simulator::new(world, nodes, Seed(1), ()).unwrap();
    for step in 1..200 {
        simulator.run_until(us(step * 777));
        let accounts = simulator.accounts();
        assert!(accounts.balance(), "{accounts} at {:?}", simulator.now());
    }
    assert!(simulator.counters().lost.of(Loss::Down) > 50);
}
