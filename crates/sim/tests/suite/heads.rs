//! Frames that are looked at while they arrive, and given up; how long radios were on.

// Boxed nodes are what a simulator takes.
#![allow(clippy::vec_box)]

use crate::common;

use chappe_core::{Channel, Db, Dbm, Duration, Mode, Ppm, RadioRequest, Rate, Seed};
use chappe_sim::{
    AirTime, Clock, Fading, Fault, Loss, Matrix, Medium, Profile, Simulator, Synchronous, World,
    topology,
};
use common::{Outcomes, Probe, Told, probes, us};

const MODE: Mode = Mode::long(Rate::Dsss1);
const FAST: Mode = Mode::long(Rate::Cck11);

fn quiet() -> Profile {
    Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    }
}

fn line(nodes: usize) -> Medium {
    Medium::geometric(&topology::line(nodes, 30.0), &quiet(), Seed(1)).unwrap()
}

/// A sender of `count` frames of `octets`, one each 3 ms; the first octet of frame i is i.
fn sender(count: u64, octets: usize, mode: Mode, power: Option<Dbm>) -> Probe {
    (0..count).fold(Probe::default(), |probe, frame| {
        let mut psdu = vec![7; octets];
        psdu[0] = frame as u8;
        probe.send_at(1000 + 3000 * frame, mode, &psdu, power)
    })
}

fn peeking(octets: usize) -> Probe {
    Probe::default().ask(1, RadioRequest::Peek(octets))
}

fn run(
    medium: Medium,
    nodes: Vec<Box<Probe>>,
    faults: Vec<(AirTime, Fault)>,
    millis: u64,
) -> Simulator<Probe, Outcomes> {
    let mut world = World::new(medium);
    world.faults = faults;
    let mut simulator = Simulator::new(world, nodes, Seed(2), Outcomes::default()).unwrap();
    simulator.run_until(AirTime::from_millis(millis));
    simulator
}

/// The head comes when its last bit has, is the front of the frame, and is the whole of a shorter one; a node
/// that does not ask, or no longer asks, gets no event.
#[test]
fn a_head_is_delivered_when_it_has_arrived() {
    let mut world = World::new(line(3));
    let ahead = Duration::from_millis(5);
    world.clocks = vec![Clock::IDEAL, Clock::new(ahead, Ppm(0.0)), Clock::IDEAL];
    let frames = Probe::default()
        .send(10_000, MODE, &[1, 2, 3, 4, 5, 6])
        .send(13_000, MODE, &[8, 9])
        .send(19_000, MODE, &[1; 30]);
    let listener = peeking(4).ask(5000 + 16_000, RadioRequest::Peek(0));
    let nodes = vec![
        Box::new(frames),
        Box::new(listener),
        Box::new(Probe::default()),
    ];
    let mut simulator = Simulator::new(world, nodes, Seed(1), ()).unwrap();
    simulator.run_until(AirTime::from_millis(30));
    // 30 m are 100 ns; the clock shows 5 ms more; the PHY header takes 192 us and an octet 8.
    let head = |sent: u64, octets: &[u8], len| {
        let started = (sent + 5000) * 1000 + 100;
        let at = started + (192 + 8 * octets.len() as u64) * 1000;
        let octets = octets.to_vec();
        (
            at,
            Told::Head {
                octets,
                len,
                started,
            },
        )
    };
    let told = &simulator.node(1).told;
    let heads: Vec<_> = told
        .iter()
        .filter(|told| matches!(told.1, Told::Head { .. }))
        .cloned()
        .collect();
    assert_eq!(
        heads,
        [head(10_000, &[1, 2, 3, 4], 6), head(13_000, &[8, 9], 2)]
    );
    assert_eq!((simulator.node(1).got(), simulator.node(2).heads()), (3, 0));
}

/// At a ratio where noise destroys many frames: a frame that arrives whole had a good head, heads are as frequent as
/// their bits survive, and looking changes nothing for the frames.
#[test]
fn heads_and_frames_share_one_draw() {
    let (count, octets, front) = (3000u64, 100, 20);
    // Noise that spoils CCK does nothing to the PHY header at 1 Mbit/s.
    let power = quiet().noise.0 + 4.5;
    let loss = quiet().power.0 - line(2).mean_power(0, 1).0;
    let nodes = |listener: Probe| {
        vec![
            Box::new(sender(count, octets, FAST, Some(Dbm(power + loss)))),
            Box::new(listener),
        ]
    };
    let millis = 3 * count + 5;
    let mut plain = run(line(2), nodes(Probe::default()), Vec::new(), millis);
    let mut looked = run(line(2), nodes(peeking(front)), Vec::new(), millis);
    assert_eq!(plain.digest(), looked.digest());
    assert_eq!(plain.recorder_mut().0, looked.recorder_mut().0);
    let listener = looked.node(1);
    let (mut heads, mut whole, mut open) = (0, 0, None);
    for (_, told) in &listener.told {
        match told {
            Told::Head {
                octets,
                len,
                started,
            } => {
                assert_eq!((octets.len(), *len), (front, 100));
                (heads, open) = (heads + 1, Some(*started));
            }
            Told::Got { started, .. } => {
                assert_eq!(open, Some(*started), "a whole frame without a head");
                whole += 1;
            }
            _ => {}
        }
    }
    let (heads, whole) = (
        f64::from(heads) / count as f64,
        f64::from(whole) / count as f64,
    );
    assert!(whole > 0.1 && whole < 0.9, "{whole}");
    let expected = whole.powf(front as f64 / 104.0);
    let spread = (expected * (1.0 - expected) / count as f64).sqrt();
    assert!(
        (heads - expected).abs() < 5.0 * spread,
        "{heads} {expected}"
    );
}

/// A frame given up at its head frees the radio for the one that follows while the first is still on the air: the
/// node hears no more of the first, which stays on the channel as energy.
#[test]
fn an_aborted_frame_frees_the_radio() {
    let fates = |picky: Option<u8>| {
        let mut nodes = probes(3);
        *nodes[0] = Probe::default().send_at(1000, MODE, &[1; 200], Some(Dbm(0.0)));
        *nodes[2] = Probe::default().send_at(1800, MODE, &[2; 20], Some(Dbm(16.0)));
        *nodes[1] = peeking(2).ask(2, RadioRequest::Sense(true));
        nodes[1].picky = picky;
        let mut simulator = run(line(3), nodes, Vec::new(), 20);
        let both = [0, 2].map(|from| simulator.recorder_mut().at(1, from));
        (both, simulator.into_parts().0.swap_remove(1))
    };
    let (both, _) = fates(None);
    assert_eq!(
        both,
        [vec![Err(Loss::Collision)], vec![Err(Loss::PreambleMissed)]]
    );
    let (both, listener) = fates(Some(2));
    assert_eq!(both, [vec![Err(Loss::Aborted)], vec![Ok(())]]);
    assert_eq!(
        (listener.heads(), listener.got(), listener.failed()),
        (2, 1, 0)
    );
    // Busy from the first frame's start to its end, by energy: 192 us and 204 octets.
    let end = 1_000_100 + (192 + 8 * 204) * 1000;
    assert_eq!(
        listener.carrier(),
        [(false, 0), (true, 1_000_100), (false, end)]
    );
}

/// Identical frames of two senders at once: looking at heads changes no fate, and a frame that arrives had a head.
#[test]
fn heads_of_identical_frames() {
    let profile = Profile {
        shadowing: Db(0.0),
        fading: Fading::None,
        ..Profile::named("cc2420-indoor").unwrap()
    };
    assert!(
        profile
            .dot15d4
            .unwrap()
            .synchronous
            .is_some_and(|law| law == Synchronous::USUAL)
    );
    let mode = Mode::long(Rate::Oqpsk250);
    let rounds = 200;
    let run = |listener: Probe| {
        let medium = Medium::geometric(&topology::line(3, 4.0), &profile, Seed(1)).unwrap();
        let mut nodes = probes(3);
        for sender in [0, 2] {
            *nodes[sender] = (0..rounds).fold(Probe::default(), |probe, round| {
                probe.send_at(
                    6000 * round + 1000,
                    mode,
                    &[round as u8; 120],
                    Some(Dbm(-33.0)),
                )
            });
        }
        *nodes[1] = listener;
        run(medium, nodes, Vec::new(), 6 * rounds + 10)
    };
    let (mut plain, mut looked) = (run(Probe::default()), run(peeking(7)));
    assert_eq!(plain.recorder_mut().0, looked.recorder_mut().0);
    let (heads, got) = (looked.node(1).heads(), looked.node(1).got());
    assert!(
        got > 20 && heads > got && heads <= rounds as usize,
        "{heads} {got}"
    );
    let mut picky = peeking(7);
    picky.picky = Some(0);
    let counters = run(picky).into_parts().2;
    assert_eq!(counters.lost.of(Loss::Aborted), heads as u64 - 1);
}

/// Bit errors of a fault: where the check sequence shows them a head is spoilt as seldom as its bits; where it does
/// not, the head has the wrong bits of the frame.
#[test]
fn bit_errors_hit_heads_as_they_hit_frames() {
    let (count, octets, front, rate) = (1000u64, 150, 30, 1e-3);
    let spoil = |detected| {
        let nodes = vec![
            Box::new(sender(count, octets, MODE, None)),
            Box::new(peeking(front)),
        ];
        let fault = Fault::CorruptBits {
            node: 1,
            rate,
            detected,
        };
        run(line(2), nodes, vec![(us(5), fault)], 3 * count + 5)
    };
    let heads = spoil(true).node(1).heads() as f64 / count as f64;
    let expected = (1.0 - rate).powi(8 * front as i32);
    let spread = (expected * (1.0 - expected) / count as f64).sqrt();
    assert!(
        (heads - expected).abs() < 5.0 * spread,
        "{heads} {expected}"
    );
    let bent = spoil(false);
    let (mut head, mut wrong) = (Vec::new(), 0);
    for (_, told) in &bent.node(1).told {
        match told {
            Told::Head { octets, .. } => head.clone_from(octets),
            Told::Got { psdu, .. } => {
                assert_eq!(psdu[..front], head[..]);
                wrong += u32::from(head[1..].iter().any(|&octet| octet != 7));
            }
            _ => {}
        }
    }
    assert!(wrong > 100, "{wrong}");
}

/// In a measured medium errors are as frequent in the head as its share of the frame.
#[test]
fn heads_in_a_measured_medium() {
    let matrix = Matrix::silent(2).with_link(0, 1, 0.4);
    let medium = Medium::matrix(&matrix).unwrap();
    let count = 2000u64;
    let nodes = vec![
        Box::new(sender(count, 96, MODE, None)),
        Box::new(peeking(25)),
    ];
    let simulator = run(medium, nodes, Vec::new(), 3 * count + 5);
    let (heads, got) = (simulator.node(1).heads(), simulator.node(1).got());
    let expected = 0.4f64.powf(0.25);
    let spread = (expected * (1.0 - expected) / count as f64).sqrt();
    assert!(
        (heads as f64 / count as f64 - expected).abs() < 5.0 * spread,
        "{heads}"
    );
    assert!(
        (got as f64 / count as f64 - 0.4).abs() < 5.0 * spread,
        "{got}"
    );
}

/// Every nanosecond of a radio is booked once: sending (asleep or not), listening, asleep, down.
#[test]
fn radio_time_is_exact() {
    let mut nodes = probes(3);
    let long = MODE.airtime(104).nanos();
    *nodes[0] = Probe::default()
        .send(1000, MODE, &[1; 100])
        .ask(4000, RadioRequest::Listen(false))
        .ask(4000, RadioRequest::Tune(Channel(6)))
        .send(5000, MODE, &[1; 100])
        .ask(8000, RadioRequest::Listen(true));
    *nodes[1] = Probe::default().send(9000, MODE, &[2; 100]);
    let faults = vec![(us(9500), Fault::Crash(1)), (us(10_500), Fault::Restart(1))];
    let mut world = World::new(line(3));
    world.faults = faults;
    let mut simulator = Simulator::new(world, nodes, Seed(1), ()).unwrap();
    simulator.set_reviver(|_| Box::new(Probe::default()));
    let spans = |simulator: &Simulator<Probe>, node: usize| {
        let own = simulator.counters().nodes[node];
        [own.transmitting, own.listening, own.off].map(Duration::nanos)
    };
    simulator.run_until(us(4500));
    assert_eq!(spans(&simulator, 0), [long, 4_000_000 - long, 500_000]);
    simulator.run_until(us(12_000));
    let off = 4_000_000 - long;
    assert_eq!(spans(&simulator, 0), [2 * long, 8_000_000 - long, off]);
    assert_eq!(spans(&simulator, 1), [500_000, 10_500_000, 1_000_000]);
    assert_eq!(spans(&simulator, 2), [0, 12_000_000, 0]);
}
