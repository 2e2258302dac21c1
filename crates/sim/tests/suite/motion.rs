//! Nodes that move: powers, delays and reach at each moment, worked out here from the places.

use crate::common;

use chappe_core::{Duration, Mode, Rate, Seed};
use chappe_sim::{
    AirTime, Fading, Heard, Medium, Motion, PathLoss, Position, Profile, Recorder, Simulator,
    Waypoint, World,
};
use common::Probe;

/// Moment and power of what a node received.
#[derive(Default)]
struct Arrivals(Vec<(AirTime, f64)>);

impl Recorder for Arrivals {
    const NODES: bool = false;
    fn heard(&mut self, frame: &Heard<'_>) {
        if frame.outcome.is_ok() {
            self.0.push((frame.started, frame.power.to_dbm().0));
        }
    }
}

fn waypoint(millis: u64, x: f64) -> Waypoint {
    Waypoint {
        at: AirTime::from_millis(millis),
        place: Position::new(x, 0.0),
    }
}

/// Goal: each frame's power and delay are those of the distance at which it begins. Method: a receiver goes away from 100 m at
/// 1 km/s for ten seconds, a frame leaves each 100 ms, and Friis' law and the speed of light say what comes.
#[test]
fn power_and_delay_follow_the_distance() {
    let profile = Profile {
        fading: Fading::None,
        path_loss: PathLoss::Friis { hertz: 2.4e9 },
        ..Profile::chappe_physical()
    };
    let away = vec![waypoint(0, 100.0), waypoint(10_000, 10_100.0)];
    let motion = Motion::given(vec![vec![waypoint(0, 0.0)], away]).unwrap();
    let medium = Medium::moving(&motion, &profile, Seed(1)).unwrap();
    let mut sender = Probe::default();
    for frame in 1..100 {
        sender = sender.send(frame * 100_000, Mode::long(Rate::Dsss1), &[1; 60]);
    }
    let nodes = vec![Box::new(sender), Box::new(Probe::default())];
    let mut simulator =
        Simulator::new(World::new(medium), nodes, Seed(7), Arrivals::default()).unwrap();
    simulator.run_until(AirTime::from_secs(10));
    let arrivals = std::mem::take(&mut simulator.recorder_mut().0);
    assert!(arrivals.len() > 10, "{} frames came", arrivals.len());
    for &(at, power) in &arrivals {
        // No link is 100 ms long.
        let sent = AirTime::from_millis(at.nanos() / 100_000_000 * 100);
        let metres = 100.0 + 1000.0 * sent.as_secs_f64();
        let delay = at.saturating_since(sent).nanos() as f64;
        assert!(sent > AirTime::ZERO);
        assert!((delay - metres / 0.299_792_458).abs() <= 0.5, "{delay} ns");
        let wavelengths = 4.0 * std::f64::consts::PI * metres * 2.4e9 / 299_792_458.0;
        let expected = profile.power.0 + profile.antennas.0 - 20.0 * wavelengths.log10();
        // Powers are whole zeptowatts, and the weakest here has some hundred thousand of them.
        assert!((power - expected).abs() < 1e-4, "{power} {expected}");
    }
    assert!(arrivals.len() < 99, "it never went out of reach");
}

/// A node that jumps far away is out of reach from that moment on, and in reach when it is back.
#[test]
fn a_jump_takes_effect_at_once() {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let jumps = vec![
        waypoint(0, 20.0),
        waypoint(300, 20.0),
        waypoint(300, 9e5),
        waypoint(600, 9e5),
        waypoint(600, 20.0),
    ];
    let motion = Motion::given(vec![vec![waypoint(0, 0.0)], jumps]).unwrap();
    let medium = Medium::moving(&motion, &profile, Seed(1)).unwrap();
    let mut sender = Probe::default();
    for frame in 0..9 {
        sender = sender.send(frame * 100_000, Mode::long(Rate::Dsss1), &[1; 60]);
    }
    let nodes = vec![Box::new(sender), Box::new(Probe::default())];
    let mut simulator =
        Simulator::new(World::new(medium), nodes, Seed(7), Arrivals::default()).unwrap();
    simulator.run_until(AirTime::from_secs(1));
    let arrivals = simulator.recorder_mut().0.iter();
    let came: Vec<u64> = arrivals.map(|(at, _)| at.nanos() / 1_000_000).collect();
    assert_eq!(came, [0, 100, 200, 600, 700, 800]);
}

/// A run in pieces is the run in one: places do not depend on when the caller looks.
#[test]
fn steps_of_a_run_change_nothing() {
    let law = chappe_sim::RandomWaypoint {
        area: [600.0, 600.0],
        speed: [50.0, 400.0],
        pause: [0.0, 0.2],
    };
    let motion = law.motion(8, Seed(2)).unwrap();
    let run = |step: Duration| {
        let medium = Medium::moving(&motion, &Profile::chappe_physical(), Seed(2)).unwrap();
        let node = |me: u64| {
            let mut node = Probe::default();
            for frame in 0..200 {
                let micros = frame * 20_000 + me * 2_111;
                node = node.send(micros, Mode::long(Rate::Dsss2), &[me as u8; 90]);
            }
            Box::new(node)
        };
        let nodes = (0..8).map(node).collect();
        let mut simulator = Simulator::new(World::new(medium), nodes, Seed(2), ()).unwrap();
        while simulator.now() < AirTime::from_secs(4) {
            let next = simulator.now() + step;
            simulator.run_until(next);
        }
        (simulator.digest(), simulator.counters().receptions)
    };
    let whole = run(Duration::from_secs(4));
    assert!(whole.1 > 1000, "{} receptions", whole.1);
    assert_eq!(run(Duration::from_millis(4)).0, whole.0);
}
