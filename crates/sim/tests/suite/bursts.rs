//! Bursts of energy from nodes: heard by carrier sense, never received, and they disturb.

use crate::common;

use chappe_core::{Burst, Duration, Instant, Mode, RadioRequest, Rate, Seed};
use chappe_sim::{AirTime, Fading, Loss, Medium, Position, Profile, Simulator, World};
use common::{Probe, Told, probes};

const MODE: Mode = Mode::long(Rate::Dsss2);

fn burst(micros: u64, lasts_us: u64) -> RadioRequest {
    RadioRequest::Burst(Burst {
        at: Instant::from_micros(micros),
        lasts: Duration::from_micros(lasts_us),
        power: None,
    })
}

/// Nodes on a line, at these metres.
#[allow(clippy::vec_box)] // What a simulator takes.
fn run(nodes: Vec<Box<Probe>>, at_m: &[f64]) -> Simulator<Probe, ()> {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let positions: Vec<Position> = at_m.iter().map(|&x| Position::new(x, 0.0)).collect();
    let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), ()).unwrap();
    simulator.run_until(AirTime::from_millis(30));
    simulator
}

/// 30 m are 100 ns: the carrier is busy for exactly 20 us, and no node receives a frame. The sender is notified of its
/// end, and counts airtime but no frame.
#[test]
fn a_burst_is_energy_and_no_frame() {
    let mut nodes = probes(2);
    *nodes[0] = Probe::default().ask(1000, burst(1000, 20));
    *nodes[1] = Probe::default().ask(10, RadioRequest::Sense(true));
    let simulator = run(nodes, &[0.0, 30.0]);
    let hearer = simulator.node(1);
    assert_eq!(
        hearer.carrier(),
        [(false, 0), (true, 1_000_100), (false, 1_020_100)]
    );
    assert_eq!((hearer.got(), hearer.failed()), (0, 0));
    let sent = simulator
        .node(0)
        .told
        .iter()
        .find(|(_, told)| *told == Told::Sent);
    assert_eq!(sent.map(|(at, _)| *at), Some(1_020_000));
    let counters = simulator.counters();
    assert_eq!((counters.frames, counters.nodes[0].frames), (0, 0));
    assert_eq!(counters.nodes[0].airtime, Duration::from_micros(20));
}

/// One that waits for its moment is replaced by a frame, and gives way to a cancellation.
#[test]
fn a_waiting_burst_can_be_replaced() {
    let mut nodes = probes(2);
    *nodes[0] = Probe::default()
        .ask(1000, burst(3000, 20))
        .send(2000, MODE, &[1; 96])
        .ask(8000, burst(9000, 20))
        .ask(8500, RadioRequest::Cancel);
    *nodes[1] = Probe::default().ask(10, RadioRequest::Sense(true));
    let simulator = run(nodes, &[0.0, 30.0]);
    assert_eq!(simulator.node(1).got(), 1);
    assert_eq!(simulator.node(1).carrier().len(), 3);
}

/// Much nearer than the sender of a frame, it spoils that frame; the loss is a collision and the radio says so at the frame's end.
#[test]
fn a_burst_spoils_a_frame() {
    let mut nodes = probes(3);
    *nodes[0] = Probe::default().send(1000, MODE, &[1; 496]);
    *nodes[2] = Probe::default().ask(2000, burst(2000, 200));
    let simulator = run(nodes, &[0.0, 60.0, 70.0]);
    let middle = simulator.node(1);
    assert_eq!((middle.got(), middle.failed()), (0, 1));
    let lost = simulator.counters().lost;
    assert!(lost.of(Loss::Collision) >= 1, "{lost:?}");
}
