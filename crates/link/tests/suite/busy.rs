//! Hosts whose processor others use: each turn of the link comes tens of milliseconds late, at both ends.

use chappe_core::{Bitrate, Duration};

use crate::air::{Air, run_after};

/// Goal: 88 % of (1 - p) C, as on paths with jitter, where each turn of both hosts comes 10 to 50 ms late, whether the rate is given or
/// found. Before, a pace that was found stayed at 1 to 4 %: a turn made up for 4 ms only, so the pace was never used up and
/// never grew; and reports that were read late looked like a queue. A given rate brought 7 to 32 %.
#[test]
fn late_turns_cost_little() {
    for (rate, round_trip, loss) in [
        (1, 20, 0.0),
        (6, 100, 0.02),
        (10, 20, 0.02),
        (10, 540, 0.02),
    ] {
        for told in [true, false] {
            for seed in 1..=2 {
                let air = Air {
                    told,
                    late: Some((Duration::from_millis(10), Duration::from_millis(50))),
                    ..Air::path(
                        Bitrate(rate * 1_000_000),
                        Duration::from_millis(round_trip),
                        loss,
                    )
                };
                let share = run_after(air, seed, 10_000, 10).share;
                println!("{rate} Mbit/s {round_trip} ms {loss} {told} {seed}: {share:.3}");
                assert!(
                    share >= 0.88,
                    "{rate} {round_trip} {loss} {told} {seed}: {share}"
                );
            }
        }
    }
}
