//! Several paths to a peer as one link, in virtual time.

use chappe_core::{Bitrate, Duration, Instant};
use chappe_wildnet::{Order, Service};

use crate::air::{Air, Run};

/// A path with a rate in kbit/s, a round trip in milliseconds, and a loss.
fn path(kbps: u64, round_trip: u64, loss: f64) -> Air {
    Air {
        ping_every: Duration::from_millis(500),
        ..Air::path(
            Bitrate(kbps * 1_000),
            Duration::from_millis(round_trip),
            loss,
        )
    }
}

/// What one TCP flow gets of the sum of the paths' bounds.
fn share(airs: &[Air], seed: u64, bbr: bool) -> f64 {
    let bound: f64 = airs
        .iter()
        .map(|air| (1.0 - air.loss) * air.capacity())
        .sum();
    let mut airs = airs.to_vec();
    airs[0].bbr = bbr;
    let mut run = Run::bonded(&airs, seed);
    run.until(Instant::from_millis(4_000));
    let before = run.received();
    run.until(Instant::from_millis(14_000));
    let share = f64::from(run.received().wrapping_sub(before)) * 0.8 / bound;
    for path in 0..airs.len() {
        let report = run.peers[0].link().report_of(path);
        println!(
            "    path {path}: pace {:.2}, loss {:.3}, rtt {:?}, in flight {}",
            run.peers[0].rate_of(path).0 as f64 / 1e6,
            report.channel.loss,
            report.rtt,
            report.in_flight,
        );
    }
    println!("    {:?}", run.peers[0].link().counters());
    share
}

/// Goal: one TCP flow gets 92 % of the sum of the bounds of two paths of 10 Mbit/s, 20 and 60 ms, that lose 5 % each.
#[test]
fn one_flow_fills_two_paths() {
    for told in [true, false] {
        for bbr in [false, true] {
            let airs = [(20, 0.05), (60, 0.05)].map(|(round_trip, loss)| Air {
                told,
                ..path(10_000, round_trip, loss)
            });
            let share = share(&airs, 1, bbr);
            println!("told {told}, bbr {bbr}: {:.1} %", share * 100.0);
            assert!(share >= 0.92, "{share}");
        }
    }
}

/// Rates of two paths in kbit/s, their round trips in ms, losses in per cent, and jitter in ms.
type Pair = ([u64; 2], [u64; 2], [u64; 2], u64);

const PAIRS: &[Pair] = &[
    ([10_000, 10_000], [20, 60], [5, 5], 0),
    ([10_000, 10_000], [20, 20], [0, 0], 0),
    ([10_000, 10_000], [20, 20], [15, 1], 0),
    ([10_000, 2_000], [20, 60], [1, 5], 0),
    ([2_000, 10_000], [20, 60], [5, 1], 0),
    ([20_000, 5_000], [40, 100], [1, 10], 0),
    ([5_000, 5_000], [10, 200], [2, 2], 0),
    ([6_000, 6_000], [20, 300], [5, 5], 0),
    ([50_000, 10_000], [10, 50], [1, 5], 0),
    ([10_000, 10_000], [20, 60], [20, 20], 0),
    ([10_000, 10_000], [20, 60], [30, 0], 0),
    ([10_000, 10_000], [20, 60], [1, 1], 10),
    ([10_000, 10_000], [40, 40], [5, 5], 10),
    ([1_000, 1_000], [60, 60], [5, 5], 0),
    ([1_000, 6_000], [600, 40], [5, 2], 0),
];

fn airs((rates, round_trips, losses, jitter): Pair) -> [Air; 2] {
    [0, 1].map(|place| Air {
        jitter: Duration::from_millis(jitter),
        ..path(
            rates[place],
            round_trips[place],
            losses[place] as f64 / 100.0,
        )
    })
}

#[test]
fn explore_pairs() {
    for &pair in PAIRS {
        for told in [true, false] {
            let airs = airs(pair).map(|air| Air { told, ..air });
            let got = share(&airs, 2, false);
            println!("{pair:?} told {told}: {:.1} %", got * 100.0);
        }
    }
}

/// The longest wait of a transfer that begins within a round trip of the longer path after a cut, in ms.
fn gap(airs: &[Air], cut: usize, directions: [bool; 2], flying: bool, at: u64, seed: u64) -> f64 {
    let mut run = Run::bonded(airs, seed);
    run.until(Instant::from_millis(at));
    run.gap();
    run.media[cut].cut(directions, flying);
    let until = Instant::from_millis(at) + airs.iter().map(|air| air.delay).max().unwrap() * 2;
    run.until(until);
    let before = run.received();
    while run.received() == before {
        run.until(run.now + Duration::from_millis(1));
        assert!(run.now < until + Duration::from_secs(2), "it stands");
    }
    let gap = run.gap().as_secs_f64() * 1e3;
    run.until(until + Duration::from_secs(1));
    assert!(run.received().wrapping_sub(before) > 200_000, "it stands");
    gap
}

#[test]
fn explore_doubts() {
    for told in [true, false] {
    for (loss, burst, jitter) in [(0.0, 0.0, 0), (0.01, 0.0, 0), (0.05, 0.0, 0), (0.2, 0.0, 0), (0.05, 4.0, 0), (0.2, 4.0, 0), (0.01, 0.0, 10), (0.05, 0.0, 10)] {
        let airs = [20, 60].map(|round_trip| Air { told, burst, jitter: Duration::from_millis(jitter), ..path(10_000, round_trip, loss) });
        let mut run = Run::bonded(&airs, 3);
        run.until(Instant::from_millis(3_000));
        let before = run.peers[0].link().counters().doubts;
        run.until(Instant::from_millis(33_000));
        let c = *run.peers[0].link().counters();
        println!("told {told} {loss} {burst} {jitter}: {} doubts in 30 s, needless {} of {}; gap {:?}", c.doubts - before, c.needless, c.repeats, run.gap());
    }}
}

#[test]
fn explore_cuts() {
    for flying in [true] {
        for directions in [[true, true], [true, false]] {
          for loss in [0.0, 0.05] {
            for cut in 0..2 {
                let airs = [20, 60].map(|round_trip| path(10_000, round_trip, loss));
                let mut gaps: Vec<f64> = (0..10)
                    .map(|seed| gap(&airs, cut, directions, flying, 4_000 + seed * 7, seed))
                    .collect();
                gaps.sort_by(f64::total_cmp);
                println!("cut {cut} {directions:?} flying {flying} loss {loss}: {gaps:.0?}");
            }}
        }
    }
}

#[test]
fn explore_redundant() {
    for (every_path, retries) in [(false, Some(0)), (true, Some(0)), (false, None), (true, None)] {
        let urgent = Service {
            every_path,
            retries,
            residual: if retries.is_some() { 1.0 } else { 0.01 },
            ..Service::PROMPT
        };
        for loss in [0.05, 0.2] {
            let airs = [60, 20].map(|round_trip| Air {
                urgent,
                window: 0,
                ping_every: Duration::from_millis(10),
                ..path(10_000, round_trip, loss)
            });
            let mut run = Run::bonded(&airs, 3);
            run.until(Instant::from_millis(60_000));
            println!("every {every_path} {retries:?} {loss}: {:?} {:?}", run.probe_of(0), run.probe_of(1));
        }
    }
}
