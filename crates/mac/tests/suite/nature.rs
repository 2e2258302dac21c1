//! The DCF against arithmetic, Bianchi's model and published and independent simulation figures.
//!
//! Setting A: 2 Mbit/s, SDU of 200 octets; setting B: 11 Mbit/s, 1500 octets. Control frames at 1 Mbit/s, long
//! preambles, no LLC, an ideal channel (see `ideal`). The reference numbers are those of the project's own
//! specification, made by another simulation; what they imply about its rules is written beside each test.
//!
//! Nothing here is adjusted: the parameters are the standard's, and tolerances are stated before the numbers.

use crate::bianchi;
use crate::ideal;

use chappe_core::{Duration, Rate};
use chappe_mac::dot11::Config;
use ideal::{Flow, Radios, Scene, Undecodable, run};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Setting {
    A,
    B,
}

impl Setting {
    fn sdu(self) -> usize {
        match self {
            Setting::A => 200,
            Setting::B => 1500,
        }
    }

    /// An ideal observer: energy is noticed at once, so only coinciding slots collide.
    fn config(self, rts: bool) -> Config {
        let rate = match self {
            Setting::A => Rate::Dsss2,
            Setting::B => Rate::Cck11,
        };
        Config {
            llc: None,
            cca_time: Duration::ZERO,
            rts_threshold: if rts { 0 } else { usize::MAX },
            ..Config::dot11b(rate)
        }
    }
}

/// Four combinations, in the order of the tables.
const CASES: [(Setting, bool); 4] = [
    (Setting::A, false),
    (Setting::A, true),
    (Setting::B, false),
    (Setting::B, true),
];

/// The reference gives a frame up after seven *re*transmissions, eight attempts, with and without RTS. This shows
/// in the hidden-terminal figures: with the standard's seven attempts its 318 kb/s would be 302, its collision
/// probability 0.42 instead of 0.38, and 5.4 % of the frames lost instead of 4 %.
fn eight_attempts(config: Config) -> Config {
    Config {
        retry_short: 8,
        retry_long: 8,
        ..config
    }
}

/// `n` senders and one receiver, all in range of each other.
fn cell(n: usize) -> Scene {
    let pairs = |a| (0..a).map(move |b| (a, b));
    Scene {
        edges: (0..=n).flat_map(pairs).collect(),
        flows: (0..n).map(|sender| (sender, n)).collect(),
        ..Scene::default()
    }
}

fn chain(edges: &[(usize, usize)], flows: &[(usize, usize)]) -> Scene {
    Scene {
        edges: edges.to_vec(),
        flows: flows.to_vec(),
        ..Scene::default()
    }
}

/// Flow in the middle: 0 -> 1, 2 -> 3, 4 -> 5; sender 2 hears both other senders, which do not hear each other.
fn middle(receivers_too: bool) -> Scene {
    let mut scene = chain(
        &[(0, 1), (2, 3), (4, 5), (0, 2), (2, 4)],
        &[(0, 1), (2, 3), (4, 5)],
    );
    if receivers_too {
        scene
            .edges
            .extend([(1, 3), (3, 5), (0, 3), (1, 2), (2, 5), (3, 4)]);
    }
    scene
}

fn total(flows: &[Flow]) -> f64 {
    flows.iter().map(|flow| flow.kbps).sum()
}

fn collisions(flows: &[Flow]) -> f64 {
    flows.iter().map(Flow::collisions).sum::<f64>() / flows.len() as f64
}

#[track_caller]
fn near(what: &str, ours: f64, reference: f64, relative: f64, absolute: f64) {
    println!("{what}: ours {ours:.3}, reference {reference}");
    let allowed = (reference * relative).max(absolute);
    assert!(
        (ours - reference).abs() <= allowed,
        "{what}: ours {ours}, reference {reference}, allowed {allowed}"
    );
}

/// One station alone: every cycle is DIFS, a back-off of 15.5 slots on average, and the exchange. The mean of
/// 280,000 cycles must meet the sum within 0.1 % (four standard errors of the back-off).
#[test]
fn one_station_is_arithmetic() {
    for (setting, rts) in CASES {
        let config = setting.config(rts);
        let data = config.data.airtime(24 + setting.sdu() + 4);
        let control = |octets| config.control.airtime(octets) + config.sifs;
        let announced = if rts {
            control(20) + control(14)
        } else {
            Duration::ZERO
        };
        let cycle = announced + data + control(14) + ideal::us(50 + 310);
        let expected = setting.sdu() as f64 * 8.0 / cycle.as_secs_f64() / 1e3;
        let flows = run(&cell(1), config, Radios::default(), setting.sdu(), (1, 500));
        near(
            &format!("{setting:?} rts={rts}"),
            total(&flows),
            expected,
            0.001,
            0.0,
        );
    }
}

/// One cell of 2, 5, 10 stations: within 2 % of the reference simulation and of Bianchi's model with EIFS, and
/// the collision probability within 0.013 of both.
///
/// Known differences. Bianchi's stations count a busy period as a slot, ours (and the standard's) do not. In the
/// reference a sender that collided waits EIFS instead of DIFS after its timeout, as it "heard" the other frame
/// while it sent; the standard has no such rule, as no preamble was found. With that rule ours gives its
/// n = 2 figures to the last digit (942, 680, 6298, 4702; p = 0.058), 933 (931) for n = 5 and 884 (882) for 10.
#[test]
fn one_cell_meets_bianchi_and_the_reference() {
    let reference = [
        (2, [942.0, 680.0, 6298.0, 4702.0], 0.058),
        (5, [931.0, 690.0, 6190.0, 4767.0], 0.173),
        (10, [882.0, 681.0, 5850.0, 4706.0], 0.282),
    ];
    for (n, kbps, p) in reference {
        for ((setting, rts), kbps) in CASES.into_iter().zip(kbps) {
            let config = setting.config(rts);
            let flows = run(&cell(n), config, Radios::default(), setting.sdu(), (1, 100));
            let what = format!("n={n} {setting:?} rts={rts}");
            let model = bianchi::saturation(n, &config, setting.sdu(), rts, Duration::ZERO);
            near(&what, total(&flows), kbps, 0.02, 0.0);
            near(
                &format!("{what} model"),
                total(&flows),
                model.kbps,
                0.02,
                0.0,
            );
            near(&format!("{what} p"), collisions(&flows), p, 0.0, 0.013);
            near(
                &format!("{what} p model"),
                collisions(&flows),
                model.collision,
                0.0,
                0.013,
            );
        }
    }
}

/// The model itself, against the reference's column, which implies a propagation delay of 1 us (Bianchi's own
/// value; it also explains the column's n = 1: 899, 651 and 6063 where the simulation has 900, 652, 6068).
#[test]
fn bianchi_is_computed_right() {
    let column = [
        (2, [952.0, 685.0, 6366.0, 4735.0], 0.057),
        (5, [939.0, 695.0, 6234.0, 4795.0], 0.178),
        (10, [886.0, 684.0, 5871.0, 4729.0], 0.290),
        (1, [899.0, 651.0, 6063.0, 4516.0], 0.0),
    ];
    for (n, kbps, p) in column {
        for ((setting, rts), kbps) in CASES.into_iter().zip(kbps) {
            let model =
                bianchi::saturation(n, &setting.config(rts), setting.sdu(), rts, ideal::us(1));
            near(
                &format!("n={n} {setting:?} rts={rts}"),
                model.kbps,
                kbps,
                0.001,
                0.0,
            );
            near(&format!("n={n} p"), model.collision, p, 0.0, 0.001);
        }
    }
}

/// Topologies that starve: every flow within 5 % (or 2 kb/s) of the reference, in the order of `CASES`.
fn topology(scene: &Scene, config: impl Fn(Config) -> Config, reference: &[(usize, &[f64])]) {
    for &(case, kbps) in reference {
        let (setting, rts) = CASES[case];
        let config = config(eight_attempts(setting.config(rts)));
        let flows = run(scene, config, Radios::default(), setting.sdu(), (1, 600));
        for (at, (flow, &kbps)) in flows.iter().zip(kbps).enumerate() {
            near(
                &format!("{setting:?} rts={rts} flow {at}"),
                flow.kbps,
                kbps,
                0.05,
                2.0,
            );
        }
    }
}

/// A -> B, C -> D in a chain A-B-C-D: A cannot know when B's surroundings are silent. Without RTS its frame is
/// longer than the longest gap that C leaves, and it gets exactly nothing.
#[test]
fn information_asymmetry_starves() {
    let scene = chain(&[(0, 1), (1, 2), (2, 3)], &[(0, 1), (2, 3)]);
    let reference: [(usize, &[f64]); 4] = [
        (0, &[0.0, 900.0]),
        (1, &[41.0, 622.0]),
        (2, &[0.0, 6068.0]),
        (3, &[259.0, 4327.0]),
    ];
    topology(&scene, |config| config, &reference);
    let config = eight_attempts(Setting::A.config(false));
    let flows = run(&scene, config, Radios::default(), 200, (2, 60));
    assert_eq!(flows[0].counters.acknowledged, 0);
}

/// A -> B <- C with A and C hidden from each other: fair in the long run, but one of them holds the channel
/// for 26 frames in a row.
#[test]
fn hidden_senders_capture_the_channel() {
    let scene = chain(&[(0, 1), (1, 2)], &[(0, 1), (2, 1)]);
    let reference: [(usize, &[f64]); 4] = [
        (0, &[318.0, 318.0]),
        (1, &[301.0, 301.0]),
        (2, &[2015.0, 2015.0]),
        (3, &[2120.0, 2120.0]),
    ];
    topology(&scene, |config| config, &reference);
    let config = eight_attempts(Setting::A.config(false));
    let flows = run(&scene, config, Radios::default(), 200, (3, 600));
    for flow in flows {
        near("p", flow.collisions(), 0.38, 0.0, 0.01);
        near("dropped", flow.dropped(), 0.04, 0.0, 0.005);
        near("mean run", flow.run_mean, 26.0, 0.1, 0.0);
        assert!(
            (80..=300).contains(&flow.run_longest),
            "{}",
            flow.run_longest
        );
    }
}

/// A -> B, D -> C where only the receivers B and C hear each other.
#[test]
fn adjacent_receivers_disturb_each_other() {
    let scene = chain(&[(0, 1), (1, 2), (2, 3)], &[(0, 1), (3, 2)]);
    let reference: [(usize, &[f64]); 4] = [
        (0, &[454.0, 454.0]),
        (1, &[322.0, 322.0]),
        (2, &[3064.0, 3064.0]),
        (3, &[2203.0, 2203.0]),
    ];
    topology(&scene, |config| config, &reference);
}

/// The sender in the middle finds the channel idle only when both others are. The reference implies that a frame
/// whose beginning is heard, alone or over another, counts as undecodable and starts EIFS, and that one which
/// began during an own transmission does not spoil the wait for the ACK.
#[test]
fn the_flow_in_the_middle_starves() {
    let reference: [(usize, &[f64]); 4] = [
        (0, &[788.0, 143.0, 788.0]),
        (1, &[588.0, 78.0, 588.0]),
        (2, &[5363.0, 884.0, 5363.0]),
        (3, &[4102.0, 506.0, 4102.0]),
    ];
    topology(&middle(false), |config| config, &reference);
    // "Receivers also adjacent" means: neighbouring pairs hear each other entirely, sender and receiver.
    let reference: [(usize, &[f64]); 2] = [(0, &[875.0, 26.0, 875.0]), (1, &[636.0, 16.0, 636.0])];
    topology(&middle(true), |config| config, &reference);
}

/// Without EIFS the same network looks quite different, so it must be said with every figure.
#[test]
fn eifs_decides_the_flow_in_the_middle() {
    let reference: [(usize, &[f64]); 2] =
        [(0, &[550.0, 265.0, 550.0]), (1, &[300.0, 273.0, 299.0])];
    let without = |config| Config {
        eifs: false,
        ..config
    };
    topology(&middle(false), without, &reference);
}

/// NAV is what RTS/CTS works by: without it the hidden senders of the common receiver collide more often.
#[test]
fn nav_protects_hidden_senders() {
    let scene = chain(&[(0, 1), (1, 2)], &[(0, 1), (2, 1)]);
    let with = Setting::B.config(true);
    let without = Config { nav: false, ..with };
    let [with, without] = [with, without]
        .map(|config| collisions(&run(&scene, config, Radios::default(), 1500, (4, 60))));
    assert!(without > 1.5 * with, "{without} against {with}");
}

/// Whether the radio reports the frame or the carrier first when both end must not matter, to the last frame.
#[test]
fn the_order_of_reports_does_not_matter() {
    for scene in [cell(5), middle(false), middle(true)] {
        for (setting, rts) in CASES {
            let [a, b] = [false, true].map(|frame_first| {
                let radios = Radios {
                    frame_first,
                    ..Radios::default()
                };
                run(&scene, setting.config(rts), radios, setting.sdu(), (5, 10))
            });
            for (a, b) in a.iter().zip(&b) {
                assert_eq!(a.counters, b.counters);
            }
        }
    }
}

/// A radio that gives up frames which began under others lets the middle flow be, here: its figures are the same
/// whether such frames are reported or not, as the frame that covers their beginning fails as well.
#[test]
fn overlapped_beginnings_make_no_difference() {
    let config = Setting::A.config(false);
    let figures = [Undecodable::Begun, Undecodable::Locked].map(|undecodable| {
        let radios = Radios {
            undecodable,
            ..Radios::default()
        };
        run(&middle(false), config, radios, 200, (6, 100))
    });
    for (begun, locked) in figures[0].iter().zip(&figures[1]) {
        near("begun against locked", begun.kbps, locked.kbps, 0.01, 1.0);
    }
}
