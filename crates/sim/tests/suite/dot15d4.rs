//! 802.15.4: curves, channels and captures.

use crate::common;

use std::process::Command;

use chappe_core::{Channel, Db, Dbm, Instant, Mode, RadioRequest, Rate, Seed};
use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{
    AirTime, Chip, Dot15d4, Medium, Oqpsk, PathLoss, Position, Profile, Simulator, World,
};
use common::{Outcomes, Probe, Told, probes, us};

const MODE: Mode = Mode::long(Rate::Oqpsk250);

/// A profile whose received power is the sent one less `loss`, alike on all channels, without shadowing.
fn plain(profile: Profile, loss: f64) -> Profile {
    Profile {
        path_loss: PathLoss::LogDistance {
            exponent: 3.0,
            reference: Db(loss),
        },
        shadowing: Db(0.0),
        dot15d4: profile.dot15d4.map(|radio| Dot15d4 {
            selectivity: None,
            ..radio
        }),
        ..profile
    }
}

fn named(name: &str) -> Profile {
    Profile::named(name).unwrap()
}

/// Goal: sensitivity is a point of the error curve and no gate. Method: frames of 100 octets half a decibel under it are received
/// as the closed form says at -0.10 dB of ratio, payload and header; with the gate, and under ns-3's -5 dB, never.
#[test]
fn sensitivity_is_no_gate() {
    let at = |name: &str, power: f64| {
        let medium = Medium::geometric(
            &[Position::new(0.0, 0.0), Position::new(1.0, 0.0)],
            &plain(named(name), -power),
            Seed(1),
        );
        medium.unwrap().prr(0, 1, MODE, 100)
    };
    let symbol = Oqpsk::IeeeE418.symbol_error(Db(-0.10).to_linear());
    // 200 symbols of PSDU; the header is two symbols of preamble, two of delimiter, two of length.
    let expected = (206.0 * (-symbol).ln_1p()).exp();
    let found = at("ieee-e418", -107.08);
    assert!((0.7..0.9).contains(&expected), "{expected}");
    assert!((found - expected).abs() < 0.01, "{found} {expected}");
    assert_eq!(at("ieee-e418-gate", -107.08), 0.0);
    assert!(at("ieee-e418-gate", -106.5) > 0.9);
    assert_eq!(at("ieee-e418", -106.98 - 5.01), 0.0);
}

/// The physics report's 4.1: ratio for 10, 50, 90 and 99 % of frames of 20 and 127 octets, without header.
#[test]
fn the_closed_form_is_that_of_the_standard() {
    let table = [
        (20.0, [-2.86, -1.86, -0.69, 0.40]),
        (127.0, [-1.42, -0.71, 0.19, 1.09]),
    ];
    for (octets, ratios) in table {
        for (prr, db) in [0.1f64, 0.5, 0.9, 0.99].into_iter().zip(ratios) {
            let symbol = Oqpsk::IeeeE418.symbol_error(Db(db).to_linear());
            let found = (2.0 * octets * (-symbol).ln_1p()).exp();
            // Two decimals of a dB, on a slope of up to 0.3 for each.
            assert!((found - prr).abs() < 0.006, "{octets} {prr} {found}");
        }
    }
}

/// A radio at its sensitivity loses one frame of 20 octets in a hundred, by calculation and in the simulator.
#[test]
fn noise_reproduces_the_data_sheet_sensitivity() {
    for (name, chip) in [
        ("cc2420-indoor", Chip::CC2420),
        ("at86rf233-indoor", Chip::AT86RF233),
        ("nrf52840-indoor", Chip::NRF52840),
    ] {
        let profile = plain(named(name), named(name).power.0 - chip.sensitivity.0);
        let positions = [0.0, 1.0].map(|x| Position::new(x, 0.0));
        let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
        assert!((medium.prr(0, 1, MODE, 20) - 0.99).abs() < 0.002, "{name}");
        let mut nodes = probes(2);
        let frames = 4000;
        *nodes[0] = (0..frames).fold(Probe::default(), |probe, n| {
            probe.send(2000 * n + 100, MODE, &[7; 18])
        });
        let mut simulator = Simulator::new(World::new(medium), nodes, Seed(4), ()).unwrap();
        simulator.run_until(AirTime::from_millis(2 * frames + 10));
        let lost = frames as f64 - simulator.node(1).got() as f64;
        // Binomial: 40 expected, deviation 6.3.
        assert!((lost - 40.0).abs() < 26.0, "{name} {lost}");
    }
}

/// A strong frame next door is worth its power less the rejection; two channels away less still; beyond, nothing.
#[test]
fn neighbouring_channels_leak() {
    for (apart, survives_at) in [(1, 27.0), (2, 50.0), (3, 70.0)] {
        for (above, expected) in [
            (survives_at, 1),
            (survives_at + 6.0, usize::from(apart == 3)),
        ] {
            // The wanted frame stands 30 dB above the noise; the other one `above` that.
            let profile = plain(named("cc2420-indoor"), 40.0);
            let wanted = Dbm(profile.noise.0 + 30.0 + 40.0);
            let profile = Profile {
                power: wanted,
                power_max: Dbm(100.0),
                ..profile
            };
            let positions = [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)].map(|(x, y)| Position::new(x, y));
            let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
            let mut nodes = probes(3);
            *nodes[0] = Probe::default().send(1000, MODE, &[1; 100]);
            *nodes[2] = Probe::default()
                .ask(10, RadioRequest::Tune(Channel(26 - apart)))
                .send_at(900, MODE, &[2; 120], Some(Dbm(wanted.0 + above)));
            let mut simulator =
                Simulator::new(World::new(medium), nodes, Seed(1), Outcomes::default()).unwrap();
            simulator.run_until(us(20_000));
            assert_eq!(simulator.node(1).got(), expected, "{apart} {above}");
        }
    }
}

/// Channels of a link differ, neighbours less than distant ones, and both directions are alike.
#[test]
fn channels_of_a_link_differ() {
    let positions = chappe_sim::topology::random(40, 40.0, 40.0, Seed(2));
    let powers: Vec<Vec<f64>> = [11, 12, 26]
        .into_iter()
        .map(|channel| {
            let profile = Profile {
                channel: Channel(channel),
                floor: Db(200.0),
                ..named("cc2420-indoor")
            };
            let medium = Medium::geometric(&positions, &profile, Seed(2)).unwrap();
            assert_eq!(medium.mean_power(3, 9), medium.mean_power(9, 3));
            (0..40)
                .flat_map(|a| (0..a).map(move |b| (a, b)))
                .map(|(a, b)| medium.mean_power(a, b).0)
                .collect()
        })
        .collect();
    let differ = |x: &[f64], y: &[f64]| {
        let squares: f64 = x.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum();
        (squares / x.len() as f64).sqrt()
    };
    let (near, far) = (
        differ(&powers[0], &powers[1]),
        differ(&powers[0], &powers[2]),
    );
    // Two independent Rayleigh powers in dB differ by 5.57 * sqrt 2 = 7.9 on average of squares.
    assert!(near > 2.0 && near < 0.9 * far, "{near} {far}");
    assert!((far - 7.9).abs() < 1.0, "{far}");
}

fn capture() -> Vec<u8> {
    let positions = [0.0, 10.0, 11.0].map(|x| Position::new(x, 0.0));
    let profile = plain(named("cc2420-indoor"), 40.2);
    let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
    let mut nodes = probes(3);
    // A data frame to everybody in PAN 0xcafe, without acknowledgement.
    let psdu = [0x41, 0x88, 9, 0xfe, 0xca, 0xff, 0xff, 0x34, 0x12, 1, 2, 3];
    *nodes[0] = Probe::default()
        .send(1000, MODE, &psdu)
        .send(5000, MODE, &psdu);
    let mut other = psdu;
    other[2] = 10;
    *nodes[2] = Probe::default().send(5200, MODE, &other);
    let recorder = Pcapng::new(Vec::new(), 3, Losses::Heard);
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), recorder).unwrap();
    simulator.run_until(us(20_000));
    let (_, recorder, _) = simulator.into_parts();
    assert_eq!(recorder.skipped(), 0);
    recorder.finish().unwrap()
}

/// TShark reads channel, power, addresses and a good check sequence, and a bad one in the frame that collided.
#[test]
fn tshark_decodes_it() {
    let path = std::env::temp_dir().join(format!("chappe-15-4-{}.pcapng", std::process::id()));
    std::fs::write(&path, capture()).unwrap();
    let fields = [
        "frame.interface_name",
        "wpan-tap.ch_num",
        "wpan.src16",
        "wpan.fcs_ok",
        "frame.comment",
    ];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output();
    let _ = std::fs::remove_file(&path);
    let Ok(output) = output else {
        chappe_testkit::skip("tshark is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows[0][..4], ["n0", "26", "0x1234", "1"], "{text}");
    let got = rows.iter().filter(|row| row[4].contains("received"));
    assert_eq!(got.clone().count(), 2, "{text}");
    assert!(got.clone().all(|row| row[3] == "1"), "{text}");
    let lost = rows.iter().filter(|row| row[4].contains("lost"));
    assert!(lost.clone().count() >= 1, "{text}");
    assert!(lost.clone().all(|row| row[3] == "0"), "{text}");
}

/// A radio's next frame starts no earlier than the chip can send it, whether it was asked for in time or while the frame before
/// was on the air; profiles without such a gap keep the instant.
#[test]
fn frames_of_one_radio_keep_the_gap_of_its_chip() {
    // 192 us before the first octet, 22 octets with the check sequence.
    let (first, airtime) = (1_000, 192 + 22 * 32);
    for (name, asked, expected) in [
        ("cc2420-indoor", 16, 16),
        ("cc2420-chips", 16, 192),
        ("cc2420-chips", 0, 192),
        ("cc2420-chips", 300, 300),
        ("nrf52840-chips", 0, 16),
        ("nrf52840-chips", 40, 40),
    ] {
        let profile = plain(named(name), 40.0);
        let positions = [0.0, 1.0].map(|x| Position::new(x, 0.0));
        let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
        let mut nodes = probes(2);
        *nodes[0] = Probe::default().send(first, MODE, &[1; 20]).send(
            first + airtime + asked,
            MODE,
            &[2; 20],
        );
        let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), ()).unwrap();
        simulator.run_until(us(10_000));
        let starts: Vec<u64> = simulator
            .node(1)
            .told
            .iter()
            .filter_map(|(_, told)| match told {
                Told::Got { started, .. } => Some(*started),
                _ => None,
            })
            .collect();
        let &[one, two] = &starts[..] else {
            panic!("{name} {asked}: {starts:?}");
        };
        // Less than a microsecond for the clocks and for late starts.
        let gap = (two - one) as f64 * 1e-3 - airtime as f64;
        assert!((gap - expected as f64).abs() < 0.5, "{name} {asked}: {gap}");
    }
}

/// Where a profile says so, nodes start late by up to the chip's error and their clocks run by their crystals.
#[test]
fn chips_have_their_clocks_and_late_starts() {
    for (name, late_nanos) in [
        ("cc2420-indoor", 0),
        ("nrf52840-chips", 63),
        ("cc2420-chips", 239),
    ] {
        let profile = plain(named(name), 40.0);
        let positions = [0.0, 1.0].map(|x| Position::new(x, 0.0));
        let medium = Medium::geometric(&positions, &profile, Seed(1)).unwrap();
        let mut nodes = probes(2);
        *nodes[0] = (0..200).fold(Probe::default(), |probe, number| {
            probe.send(1_000 * (1 + number), MODE, &[1; 10])
        });
        let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), ()).unwrap();
        simulator.run_until(us(210_000));
        let (sender, receiver) = (*simulator.clock(0), *simulator.clock(1));
        assert_eq!(sender == receiver, late_nanos == 0, "{name}");
        let mut latest = 0;
        for (number, (_, told)) in simulator.node(1).told.iter().enumerate() {
            let Told::Got { started, .. } = told else {
                panic!("{name}: {told:?}");
            };
            let named = sender.air(Instant::from_micros(1_000 * (1 + number as u64)));
            let found = receiver.air(Instant::from_nanos(*started));
            latest = latest.max(found.saturating_since(named).nanos());
        }
        // 3 ns of propagation and one of rounding; of 200 even draws the greatest is near the bound.
        assert!(
            (late_nanos * 9 / 10..=late_nanos + 5).contains(&latest),
            "{name}: {latest}"
        );
    }
}
