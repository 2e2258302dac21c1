//! Transfers over paths unlike the one of 20 ms and 6 Mbit/s: the twelve cells of `examples/matrix.rs short`, and what follows a
//! step of the rate.

use crate::air;

use air::cells::{all, short};
use air::{Air, Run};
use chappe_core::{Bitrate, Duration, Instant};
use chappe_link::State;
use chappe_wildnet::Memory;

/// Goal: 95 % of (1 - p) C, and 97 % of the better of plain cubic and plain BBR, whatever the path. Before deadlines, the window,
/// the reordering window and the pace followed the path, one of the twelve met it (a transfer got 0 % of a satellite path that
/// loses 30 %, 59 % of 100 Mbit/s at 100 ms and 1 %, and 64 % where frames come up to 30 ms late).
#[test]
fn every_path_is_nearly_filled() {
    let mut missed = Vec::new();
    for cell in short() {
        let row = cell.measure(1);
        println!("{row}");
        if !row.is_met() {
            missed.push(row.cell.name);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// Goal: pings reach the far end of a long path, with the losses that their class promises. Before, every one was dropped from a
/// round trip of 200 ms on.
#[test]
fn pings_pass_a_long_path() {
    for (name, most) in [("6Mbit/s 300ms 0%", 0.03), ("6Mbit/s 600ms 5%", 0.06)] {
        let cell = short_or_all(name);
        let ping = cell.measure(2).books.probes[0];
        // Those of the last half second are still under way.
        let lost = ping.sent - ping.arrived;
        println!("{name}: {ping:?}");
        assert!(
            lost as f64 <= most * ping.sent as f64 + 1.0,
            "{name}: {ping:?}"
        );
    }
}

/// Goal: pings beside a transfer reach the far end of a slow path in time though it loses frames in bursts, and cost the transfer little.
/// Before, 16 and 13 of 100 did not: a ping waited for all that was repeated, and for a report that was always due a little later; and a
/// burst that filled two of the estimate's bins was taken for a channel that loses nine of ten frames, for which forty repairs were made.
#[test]
fn pings_pass_a_slow_path_with_bursts() {
    for (name, most) in [
        ("1Mbit/s 2ms 15% bursts", 0.07),
        ("1Mbit/s 300ms 15% bursts", 0.03),
    ] {
        let cell = short_or_all(name);
        let (mut lost, mut sent, mut share) = (0, 0, 0.0);
        for seed in 1..=4 {
            let row = cell.measure(seed);
            let ping = row.books.probes[0];
            // Those of the last round trip are still under way.
            let under_way = usize::from(name.contains("300ms"));
            lost += ping.sent - ping.arrived - under_way.min(ping.sent - ping.arrived);
            sent += ping.sent;
            share += row.share() / 4.0;
        }
        println!("{name}: {lost} of {sent} lost, {share:.3}");
        assert!(
            lost as f64 <= most * sent as f64,
            "{name}: {lost} of {sent}"
        );
        assert!(share >= 0.95, "{name}: {share}");
    }
}

/// Goal: a path that silently drops datagrams above its MTU is used with shorter ones within a second, and the link says so.
/// Before, TCP got 0.0 Mbit/s permanently.
#[test]
fn a_narrow_path_is_found_and_used() {
    let path = Air {
        largest: 1414,
        ..Air::path(Bitrate(6_000_000), Duration::from_millis(40), 0.01)
    };
    let mut run = Run::new(path, 1);
    run.until(Instant::from_millis(3_000));
    let before = run.received();
    let peer = &run.peers[0];
    let (largest, said) = (
        peer.datagram_max() + 28,
        peer.narrowness().unwrap_or_default(),
    );
    assert!((1392..=1400).contains(&largest), "{largest}");
    assert!(said.contains(&format!("path_mtu = {largest}")), "{said}");
    run.until(Instant::from_millis(8_000));
    let rate = f64::from(run.received() - before) * 8.0 / 5e3;
    println!("{rate} kbit/s: {said}");
    assert!(rate > 5_300.0, "{rate}");
}

/// Goal: a path that becomes narrower while bodies of full size are under way is noticed, and what does not fit any more is given
/// up instead of being repeated permanently. An outage is not taken for it.
#[test]
fn a_path_that_becomes_narrower_is_noticed() {
    for (narrow, largest) in [(1314, 1292..=1300), (0, 1500..=1500)] {
        let path = Air {
            window: 0,
            narrower: Some((Duration::from_secs(4), Duration::from_secs(20), narrow)),
            ..Air::path(Bitrate(6_000_000), Duration::from_millis(40), 0.0)
        };
        let mut run = Run::new(path, 1);
        run.until(Instant::from_millis(3_990));
        for _ in 0..40 {
            run.peers[0].offer(run.now, 1, 9, &[0; 1400]);
        }
        run.until(Instant::from_millis(19_000));
        let mtu = run.peers[0].datagram_max() + 28;
        assert!(largest.contains(&mtu), "{narrow}: {mtu}");
        run.until(Instant::from_millis(30_000));
        assert!(!run.peers[0].link().has_open(), "{narrow}");
        assert_eq!(run.peers[0].state(run.now), State::Up);
    }
}

/// Goal: 95 % of the bound of a fast satellite path, with the rate given and with it found. Before, the share of a given rate swung by
/// 15 % (94 %); and where it was found, the way back was held for full by the queue of the way forth and by reports that did not count as
/// delivered, so that these and TCP's acknowledgements waited there for a second (80 %).
#[test]
fn the_way_back_of_a_fast_long_path_is_no_bottleneck() {
    for name in ["100Mbit/s 600ms 0%", "100Mbit/s 600ms 5% found"] {
        let mut cell = short_or_all(name);
        cell.secs = 16;
        let share = cell.measure(1).share();
        println!("{name}: {share:.3}");
        assert!(share >= 0.95, "{name}: {share}");
    }
}

/// Goal: a rate that steps from 6 to 1 Mbit/s and back is used again within a tenth of a second, so that a transfer gets what 97 % of plain
/// cubic is. The link knew a rise only by the queue that did not stand any more, and rose by steps for 0.4 s: 94.7 and 94.1 %.
#[test]
fn a_rate_that_rises_is_used_at_once() {
    for name in [
        "6Mbit/s 20ms 0% found rate 6-1-6Mbit/s 0%",
        "6Mbit/s 20ms 0% found rate 6-1-6Mbit/s 5%",
    ] {
        let cell = short_or_all(name);
        let goals: f64 = (1..=4).map(|seed| cell.measure(seed).of_goal()).sum();
        println!("{name}: {:.3}", goals / 4.0);
        assert!(goals >= 4.0, "{name}: {goals}");
    }
}

/// Goal: 90 % of (1 - p) C of a fast satellite path that loses a third and whose rate is found. The bitmaps of its reports do not fit a
/// frame. Before, a body that a cut bitmap had left open counted as overtaken, and each loss waited for a whole round trip more: 66 %.
#[test]
fn bitmaps_that_are_cut_do_not_look_like_reordering() {
    let share = short_or_all("100Mbit/s 600ms 30% found")
        .measure(301)
        .share();
    println!("{share:.3}");
    assert!(share >= 0.9, "{share}");
}

/// Goal: windows take no more than the memory that they share, however much the path holds, and TCP goes on with what there is.
/// With enough memory they grow to what the path needs.
#[test]
fn windows_take_what_memory_allows() {
    let open = |octets: usize| {
        let path = Air::path(Bitrate(100_000_000), Duration::from_millis(300), 0.02);
        let mut run = Run::new(path, 1);
        let memories = [(); 2].map(|()| Memory::new(octets));
        for (peer, memory) in run.peers.iter_mut().zip(&memories) {
            peer.share_memory(memory);
        }
        let mut most = 0;
        for step in 1..=60 {
            run.until(Instant::from_millis(step * 100));
            most = most.max(run.peers[0].link().report().open);
        }
        let taken = memories.map(|memory| octets - memory.left());
        (most, taken, run.received())
    };
    let (most, taken, received) = open(0);
    println!("{most} {taken:?} {received}");
    assert_eq!((most, taken), (1024, [0, 0]));
    let (more, taken, further) = open(4 << 20);
    println!("{more} {taken:?} {further}");
    assert!((1025..=2048).contains(&more), "{more}");
    // Another thousand bodies of some 1500 octets at the sender, with what is remembered of their frames, and at the receiver.
    assert!(
        taken
            .iter()
            .all(|taken| (1_400_000..=2_000_000).contains(taken)),
        "{taken:?}"
    );
    let (enough, _, most_received) = open(256 << 20);
    println!("{enough} {most_received}");
    assert!(enough > 4096 && received < further && further < most_received);
}

fn short_or_all(name: &str) -> air::cells::Cell {
    let named = |cell: &air::cells::Cell| cell.name == name;
    all()
        .into_iter()
        .find(named)
        .unwrap_or_else(|| panic!("no cell {name}"))
}
