//! Several paths to a peer as one link, in virtual time.

use chappe_core::{Duration, Instant};
use chappe_link::State;
use chappe_wildnet::{Order, Service};

use crate::air::pairs::{PAIRS, gap, path, paths, share};
use crate::air::{Air, Run};

/// Goal: one TCP flow gets 92 % of the sum of the bounds of two paths of 10 Mbit/s, 20 and 60 ms, that lose 5 % each, whether their
/// rates are given or not, with a window that does not run out and with BBR's.
#[test]
fn one_flow_fills_two_paths() {
    for (told, bbr) in [(true, false), (true, true), (false, false), (false, true)] {
        let airs = paths(PAIRS[0]).map(|air| Air { told, bbr, ..air });
        let share = share(&airs, 1);
        println!("told {told}, bbr {bbr}: {:.1} %", share * 100.0);
        assert!(share >= 0.92, "{share}");
    }
}

/// Goal: the same for pairs whose rates, round trips and losses differ. Not for the last pair: what its first path takes 280 ms longer
/// for is more than the queue holds, and packets wait for the other one instead.
#[test]
fn unequal_paths_are_filled() {
    for &pair in PAIRS[..14].iter().skip(2).step_by(3) {
        let share = share(&paths(pair), 2);
        println!("{pair:?}: {:.1} %", share * 100.0);
        assert!(share >= 0.92, "{pair:?}: {share}");
    }
}

/// Goal: losses of 20 % on both paths leave none unused. Before, a body that the first path repeated six times brought the size of
/// the second one into doubt before that had carried anything, and it stayed unused for some seconds (49 % with one seed of three).
#[test]
fn losses_leave_no_path_unused() {
    for seed in 1..=6 {
        let share = share(&paths(PAIRS[9]), seed);
        println!("seed {seed}: {:.1} %", share * 100.0);
        assert!(share >= 0.92, "{seed}: {share}");
    }
}

/// Goal: after either path is cut, with what is on its way, nothing is lost and the transfer goes on within 1.5 round trips of
/// the remaining path, as measured, its queue included; in either direction too.
#[test]
fn a_cut_path_stops_nothing() {
    for directions in [[true, true], [true, false], [false, true]] {
        for cut in 0..2 {
            for seed in 0..3 {
                let airs = [20, 60].map(|round_trip| path(10_000, round_trip, 0.0));
                let (gap, remaining) = gap(&airs, cut, directions, 4_000 + seed * 7, seed);
                println!("path {cut} {directions:?}: {gap:.4} s, of {remaining:.4}");
                assert!(gap <= 1.5 * remaining, "{cut} {directions:?}: {gap}");
            }
        }
    }
}

/// With 5 % of losses on both paths, or on the one of 60 ms that is cut, the wait stays near the goal: 1.75 round trips at most. One seed
/// here is over the goal itself (1.54). Before repairs went with what a path gives back it was up to 2.4, and before a false doubt was
/// noticed by what arrives up to 2.3.
#[test]
fn losses_do_not_prolong_a_cut() {
    for (losses, cut, seeds) in [
        ([0.05, 0.05], 0, [0, 3, 10, 18]),
        ([0.0, 0.05], 1, [12, 14, 18, 5]),
    ] {
        for seed in seeds {
            let airs = [0, 1].map(|place| path(10_000, [20, 60][place], losses[place]));
            let (gap, remaining) = gap(&airs, cut, [true; 2], 4_000 + seed * 7, seed);
            println!("path {cut}, seed {seed}: {gap:.4} s, of {remaining:.4}");
            assert!(gap <= 1.75 * remaining, "{cut} {seed}: {gap}");
        }
    }
}

/// Goal: a cut path is used again when it works again, and both are filled as before.
#[test]
fn a_mended_path_is_used_again() {
    let mut run = Run::bonded(&paths(PAIRS[0]), 3);
    run.until(Instant::from_millis(3_000));
    run.media[1].cut([true; 2], true);
    run.until(Instant::from_millis(20_000));
    assert_ne!(run.peers[0].state_of(run.now, 1), State::Up);
    run.media[1].cut([false; 2], false);
    run.until(Instant::from_millis(26_000));
    assert_eq!(run.peers[0].state_of(run.now, 1), State::Up);
    let before = run.received();
    run.until(Instant::from_millis(31_000));
    let rate = f64::from(run.received().wrapping_sub(before)) * 8.0 / 5e6;
    println!("{rate:.2} Mbit/s");
    assert!(rate > 16.5, "{rate}");
}

/// Small packets of the urgent class every 10 ms for a minute over paths of 60 and 20 ms: the shares that were lost, and that came
/// later than 12 ms.
fn pings(every_path: bool, retries: Option<u8>, loss: f64) -> (f64, f64) {
    let urgent = Service {
        every_path,
        retries,
        // No repairs, so that what is seen is the paths' doing.
        residual: if retries.is_some() { 1.0 } else { 0.01 },
        order: Order::None,
        ..Service::PROMPT
    };
    let airs = [60, 20].map(|round_trip| Air {
        urgent,
        window: 0,
        ping_every: Duration::from_millis(10),
        ..path(10_000, round_trip, loss)
    });
    let mut run = Run::bonded(&airs, 3);
    run.until(Instant::from_millis(62_000));
    let probe = run.probe_of(0);
    let lost = 1.0 - probe.arrived as f64 / (probe.sent - 5) as f64;
    (lost.max(0.0), run.later_than(0, Duration::from_millis(12)))
}

/// Goal: packets of a class that takes every path are lost only if all paths lose them, and come as early as by the fastest one.
#[test]
fn every_path_loses_the_product() {
    for loss in [0.05, 0.2] {
        let (once, _) = pings(false, Some(0), loss);
        let (lost, late) = pings(true, Some(0), loss);
        println!(
            "{loss}: {once:.4} lost once, {lost:.4} on every path, {late:.4} not by the first"
        );
        // Three standard deviations of 6,000 packets.
        let product = loss * loss;
        assert!(lost <= product + 3.0 * (product / 6e3).sqrt(), "{lost}");
        // As many as the faster path loses.
        assert!(late <= loss + 3.0 * (loss / 6e3).sqrt(), "{late}");
        let (lost, _) = pings(true, None, loss);
        assert!(lost <= 0.001, "{lost}");
    }
}

/// Goal: a reserve carries nothing while another path works (2 % where losses make that path look dead now and then), takes over at
/// once, and is left again. A host without any path in
/// its file learns from the calls that it is one.
#[test]
fn a_reserve_waits_for_an_outage() {
    let mut airs = paths(PAIRS[0]);
    airs[1].reserve = true;
    airs[0].learned = true;
    let mut run = Run::bonded(&airs, 4);
    run.until(Instant::from_millis(6_000));
    let usual = [0, 1].map(|host| run.peers[host].path_traffic(1).0);
    println!("{usual:?} octets on the reserve");
    assert!(usual.iter().all(|octets| *octets < 20_000), "{usual:?}");
    assert!(run.peers[1].path(1).is_some_and(|path| path.reserve));
    run.media[0].cut([true; 2], true);
    let before = run.received();
    run.until(Instant::from_millis(9_000));
    let during = f64::from(run.received().wrapping_sub(before)) * 8.0 / 3e6;
    run.media[0].cut([false; 2], false);
    run.until(Instant::from_millis(20_000));
    let sent = run.peers[0].path_traffic(1).0;
    run.until(Instant::from_millis(24_000));
    let after = run.peers[0].path_traffic(1).0 - sent;
    println!("{during:.2} Mbit/s by the reserve, {after} octets after");
    assert!(during > 7.5 && after < 100_000, "{during} {after}");
}

/// Goal: a path with a cost takes only what would wait longer elsewhere: nothing of a flow that the other path carries alone, and
/// most of its rate when that is full.
#[test]
fn a_path_with_a_cost_is_spared() {
    for (window, least, most) in [(20_000, 0.0, 0.02), (0, 0.4, 0.55)] {
        let mut airs = [20, 20].map(|round_trip| path(10_000, round_trip, 0.01));
        airs[1].cost = Duration::from_millis(30);
        if window > 0 {
            airs[0].window = window;
        }
        let mut run = Run::bonded(&airs, 5);
        run.until(Instant::from_millis(8_000));
        let [first, second] = [0, 1].map(|path| run.peers[0].path_traffic(path).0 as f64);
        let share = second / (first + second);
        println!("window {window}: {:.1} % on the second path", share * 100.0);
        assert!((least..=most).contains(&share), "{share}");
    }
}

/// Goal: a path that carries shorter datagrams than the other one joins without losing a packet, and both are used.
#[test]
fn a_narrow_path_joins() {
    let mut airs = paths(PAIRS[0]);
    airs[1].largest = 1414;
    let mut run = Run::bonded(&airs, 6);
    // Until the largest size has failed the other path carries everything.
    run.until(Instant::from_millis(6_000));
    let before = run.received();
    run.until(Instant::from_millis(11_000));
    let rate = f64::from(run.received().wrapping_sub(before)) * 8.0 / 5e6;
    let sent = run.peers[0].path_traffic(1).0;
    println!("{rate:.2} Mbit/s, {sent} octets on the narrow path");
    assert!(rate > 16.0 && sent > 5_000_000, "{rate} {sent}");
    assert!(run.peers[0].datagram_max() <= 1400);
}

/// Goal: a peer that starts over is noticed on both paths, and no packet of before is delivered after.
#[test]
fn a_restarted_peer_joins_again() {
    let airs = paths(PAIRS[0]).map(|air| Air { window: 0, ..air });
    let mut run = Run::bonded(&airs, 7);
    run.until(Instant::from_millis(3_000));
    run.restart(1);
    run.until(Instant::from_millis(10_000));
    let up = [0, 1].map(|path| run.peers[0].state_of(run.now, path));
    assert_eq!(up, [State::Up; 2]);
    assert_eq!(run.peers[0].link().counters().peer_restarts, 1);
    let arrived = run.probe_of(1).arrived;
    run.until(Instant::from_millis(14_000));
    assert!(run.probe_of(1).arrived > arrived + 6);
}
