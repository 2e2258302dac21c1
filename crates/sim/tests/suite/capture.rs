//! Captures against the program that people will open them with.

use crate::common;

use std::process::Command;

use chappe_core::{Mode, Rate, Seed};
use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{AirTime, Fading, Medium, Position, Profile, Simulator, World};
use common::{Probe, probes};

/// A three-node run with one clean frame and one that a nearer, later one destroys, as the bytes of its capture.
fn capture(losses: Losses) -> Vec<u8> {
    let profile = Profile {
        fading: Fading::None,
        ..Profile::chappe_physical()
    };
    let medium = Medium::geometric(
        &[0.0, 130.0, 200.0].map(|x| Position::new(x, 0.0)),
        &profile,
        Seed(1),
    )
    .unwrap();
    let mut nodes = probes(3);
    let mode = Mode::long(Rate::Dsss2);
    *nodes[0] = Probe::default()
        .send(1000, mode, &broadcast(0))
        .send(20_000, mode, &broadcast(0));
    *nodes[2] = Probe::default().send(20_300, mode, &broadcast(2));
    let recorder = Pcapng::new(Vec::new(), 3, losses);
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(1), recorder).unwrap();
    simulator.run_until(AirTime::from_millis(50));
    let (_, recorder, _) = simulator.into_parts();
    assert_eq!(recorder.skipped(), 0);
    recorder.finish().unwrap()
}

/// An 802.11 data frame to everybody with LLC/SNAP, local experimental EtherType 1.
fn broadcast(from: u8) -> Vec<u8> {
    let mut frame = vec![0x08, 0, 0, 0];
    frame.extend([0xff; 6]);
    frame.extend([2, 0, 0, 0, 0, from]);
    frame.extend([2, 0, 0, 0, 0, 0xfe]);
    frame.extend([0x10, 0]);
    frame.extend([0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5]);
    frame.extend([0x42; 100]);
    frame
}

/// Blocks have the length they claim, at both ends, and there is one interface for each node.
#[test]
fn blocks_are_well_formed() {
    let (none, heard, all) = (
        capture(Losses::None),
        capture(Losses::Heard),
        capture(Losses::All),
    );
    assert_eq!(blocks(&none), [1, 3, 3 + 2]);
    // Lost: the second frame of n0 and the one of n2 at n1, and each transmitter missed the other.
    assert_eq!(blocks(&heard), [1, 3, 3 + 2 + 4]);
    assert_eq!(blocks(&all), [1, 3, 3 + 2 + 4]);
}

/// Counts sections, interfaces and packets.
fn blocks(mut bytes: &[u8]) -> [usize; 3] {
    let mut counts = [0; 3];
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    while !bytes.is_empty() {
        let (kind, len) = (word(bytes, 0), word(bytes, 4) as usize);
        assert_eq!(len % 4, 0);
        assert_eq!(word(bytes, len - 4) as usize, len);
        counts[match kind {
            0x0a0d_0d0a => 0,
            1 => 1,
            6 => 2,
            other => panic!("block {other:x}"),
        }] += 1;
        bytes = &bytes[len..];
    }
    counts
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    assert_eq!(capture(Losses::All), capture(Losses::All));
}

/// TShark reads time, interface, radiotap, addresses and the reason of each loss.
#[test]
fn tshark_decodes_it() {
    let path = std::env::temp_dir().join(format!("chappe-sim-{}.pcapng", std::process::id()));
    std::fs::write(&path, capture(Losses::Heard)).unwrap();
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "radiotap.datarate",
        "radiotap.channel.freq",
        "wlan.ta",
        "wlan.fcs.status",
        "frame.comment",
    ];
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(&path)
        .args(["-o", "wlan.check_checksum:TRUE", "-T", "fields"]);
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
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows.len(), 9, "{text}");
    // The first frame leaves at 1 ms and ends 192 us + 136 octets at 2 Mbit/s = 736 us later at n1, 434 ns away.
    assert_eq!(
        rows[0][..5],
        ["n0", "0.001000000", "2", "2412", "02:00:00:00:00:00"],
        "{text}"
    );
    assert_eq!(rows[1][0], "n1");
    assert_eq!(rows[1][1], "0.001736434");
    assert_eq!(rows[1][5..], ["1", "from n0, frame 0: received"]);
    let lost: Vec<&Vec<&str>> = rows.iter().filter(|row| row[6].contains("lost")).collect();
    let at_n1 = lost
        .iter()
        .filter(|row| row[0] == "n1" && row[6].contains("collided"))
        .count();
    assert_eq!(at_n1, 1, "{text}");
    assert!(lost.iter().all(|row| row[5] == "0"), "{text}");
    assert!(
        text.contains("from n2, frame 0: lost: missed: the receiver was transmitting"),
        "{text}"
    );
}
