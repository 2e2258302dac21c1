//! Frames on the air, decoded by Wireshark's tshark where it is installed.

#![allow(
    clippy::disallowed_types,
    reason = "a test that hands a file to another program"
)]

use crate::row;

use std::path::Path;
use std::process::Command;

use chappe_core::{Duration, Seed};
use chappe_mac::dot15d4::{Level, Security};
use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};

use row::{Setup, connect};

/// Another implementation agrees that the frames are 802.15.4, 6LoWPAN, IPv6 and TCP: tshark reports no error.
#[test]
fn tshark_reads_the_air() {
    let Ok(version) = Command::new("tshark").arg("--version").output() else {
        chappe_testkit::skip("there is no tshark");
        return;
    };
    println!(
        "{}",
        String::from_utf8_lossy(&version.stdout)
            .lines()
            .next()
            .unwrap_or_default()
    );
    let folder = std::env::temp_dir().join(format!("chappe-air-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("air.pcapng");
    capture(&file);
    let contexts = ["-o", "6lowpan.context0:fd00:cafe:0:1::/64"];
    let read = |filter: &str, fields: &[&str]| {
        let mut command = Command::new("tshark");
        command
            .args(["-r"])
            .arg(&file)
            .args(contexts)
            .args(["-Y", filter]);
        command.args(["-T", "fields"]);
        for field in fields {
            command.args(["-e", field]);
        }
        let found = command.output().unwrap();
        assert!(
            found.status.success(),
            "{}",
            String::from_utf8_lossy(&found.stderr)
        );
        String::from_utf8(found.stdout).unwrap()
    };
    let faults = read(
        "_ws.malformed || _ws.expert.severity == error",
        &["frame.number", "_ws.expert.message"],
    );
    assert_eq!(faults, "");
    let whole = read(
        "tcp && tcp.len == 492",
        &["ipv6.src", "tcp.options.timestamp.tsval"],
    );
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines.len() > 10, "reassembled segments: {}", lines.len());
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("fd00:cafe:0:1:0:ff:fe00:0\t")),
        "{whole}"
    );
    let sums = read("tcp && tcp.checksum.status == \"Bad\"", &["frame.number"]);
    assert_eq!(sums, "");
    let options = read(
        "tcp.flags.syn == 1",
        &[
            "tcp.options.mss_val",
            "tcp.options.sack_perm",
            "tcp.options.timestamp.tsval",
        ],
    );
    assert!(
        options
            .lines()
            .next()
            .is_some_and(|line| line.starts_with("504\t")),
        "{options}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Two hops with contexts, each received frame once.
fn capture(file: &Path) {
    let setup = Setup {
        contexts: true,
        mss: 504,
        pace: Duration::from_millis(5),
        ..Setup::TCPLP
    };
    let matrix = Matrix::silent(3).with_link(0, 1, 1.0).with_link(1, 2, 1.0);
    let writer = std::io::BufWriter::new(std::fs::File::create(file).unwrap());
    let recorder = Pcapng::new(writer, 3, Losses::None);
    let world = World::new(Medium::matrix(&matrix).unwrap());
    let stations = row::row(&setup, 3, 1, 20_000);
    let mut simulator = Simulator::new(world, stations, Seed(1), recorder).unwrap();
    connect(&mut simulator, 2);
    simulator.run_until(AirTime::from_millis(20_000));
    let (_, recorder, _) = simulator.into_parts();
    recorder.finish().unwrap();
}

/// Secured frames, decrypted by tshark with the same key: the layers above are present, and every integrity code is right.
#[test]
fn tshark_opens_secured_frames() {
    if Command::new("tshark").arg("--version").output().is_err() {
        chappe_testkit::skip("there is no tshark");
        return;
    }
    let folder = std::env::temp_dir().join(format!("chappe-sealed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("sealed.pcapng");
    let mut setup = Setup::TCPLP;
    // The nonce is made of the 64-bit address, which tshark must see.
    setup.mac.short_addresses = false;
    setup.overhead = 10;
    let mut stations = row::row(&setup, 2, 1, 5_000);
    for station in &mut stations {
        let key = core::array::from_fn(|i| 0xc0 + i as u8);
        station
            .mac
            .secure(Security::new(key, 1, Level::EncMic32, 0));
    }
    let writer = std::io::BufWriter::new(std::fs::File::create(&file).unwrap());
    let world = World::new(Medium::matrix(&Matrix::silent(2).with_link(0, 1, 1.0)).unwrap());
    let recorder = Pcapng::new(writer, 2, Losses::None);
    let mut simulator = Simulator::new(world, stations, Seed(1), recorder).unwrap();
    connect(&mut simulator, 1);
    simulator.run_until(AirTime::from_secs(20));
    assert_eq!(simulator.node(1).link.host().app().received, 5_000);
    let (_, recorder, _) = simulator.into_parts();
    recorder.finish().unwrap();
    let key = "uat:ieee802154_keys:\"c0c1c2c3c4c5c6c7c8c9cacbcccdcecf\",\"1\",\"No hash\"";
    let count = |filter: &str, key: &str| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&file).args(["-o", key, "-Y", filter]);
        let found = command.output().unwrap();
        assert!(
            found.status.success(),
            "{}",
            String::from_utf8_lossy(&found.stderr)
        );
        String::from_utf8_lossy(&found.stdout).lines().count()
    };
    assert!(count("tcp", key) > 10);
    assert_eq!(
        count("tcp", &key.replace("c0c1", "c1c0")),
        0,
        "with another key"
    );
    assert_eq!(
        count("_ws.malformed || _ws.expert.severity == error", key),
        0
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
