//! How long a download takes on a link that was idle, over long paths (`examples/starts.rs`).

use chappe_core::{Bitrate, Duration, Instant};

use crate::air::starts::Start;
use crate::air::{Air, PAYLOAD, Run};

const LONG: Start = Start {
    round_trip: 520,
    loss: 0.0,
    told: true,
    bbr: false,
};

/// Goal: finding the rate costs four round trips: from 1 to 10 Mbit/s are 3.3 doublings, one each. Before, it cost 4.6 to 5.3,
/// since the pace was judged at the end of each round trip by what had left one before.
#[test]
fn the_rate_is_found_in_some_doublings() {
    for round_trip in [300, 520] {
        for loss in [0.0, 0.02] {
            let given = Start {
                round_trip,
                loss,
                ..LONG
            };
            let found = Start {
                told: false,
                ..given
            };
            let cost = (found.mean(3).0 - given.mean(3).0) * 1e3 / round_trip as f64;
            println!("{round_trip} ms, {loss}: {cost:.2} round trips");
            assert!(cost <= 4.0, "{round_trip} {loss}: {cost}");
        }
    }
}

/// Goal: 15 % of losses at most double what BBR's download takes without. Where a loss is first repeated a round trip later, that
/// round of BBR's start brings half the rate. Before, it took 2.4 times as long: repairs in idle airtime covered the oldest
/// 128 bodies only, and were no more than the mean of the losses.
#[test]
fn losses_do_not_stop_a_start() {
    let clean = Start { bbr: true, ..LONG };
    let lossy = Start {
        loss: 0.15,
        ..clean
    };
    let (clean, lossy) = (clean.mean(1).0, lossy.mean(3).0);
    println!("{clean:.1} s without losses, {lossy:.1} s with 15 %");
    assert!(lossy <= 2.0 * clean, "{lossy} {clean}");
}

/// Goal: a flow whose window is a seventh of what a long path holds keeps 85 % of its rate at 2 % loss, since the air is idle and repairs
/// cover what is in flight. Before, a repair of full-sized bodies reached 32 of these 80, and the newest had none: 68 %.
#[test]
fn repairs_cover_a_thin_flow_on_a_long_path() {
    let rate = |loss: f64, seed: u64| {
        let air = Air {
            window: 80 * PAYLOAD,
            ..Air::path(Bitrate(10_000_000), Duration::from_millis(540), loss)
        };
        let mut run = Run::new(air, seed);
        run.until(Instant::from_millis(5_000));
        let before = run.received();
        run.until(Instant::from_millis(35_000));
        f64::from(run.received().wrapping_sub(before))
    };
    let free = rate(0.0, 1);
    for seed in 21..24 {
        let share = rate(0.02, seed) / free;
        println!("seed {seed}: {:.1} %", share * 100.0);
        assert!(share > 0.85, "{seed}: {share}");
    }
}
