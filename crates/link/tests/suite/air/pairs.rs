//! Pairs of paths that one transfer is to fill, and what it gets of the sum of their bounds.

use chappe_core::{Bitrate, Duration, Instant};

use super::{Air, Run};

/// Rates of two paths in kbit/s, their round trips in ms, losses in per cent, and jitter in ms.
pub type Pair = ([u64; 2], [u64; 2], [u64; 2], u64);

/// The pair of the goal first, then equal and unequal ones: rates 1 to 10 apart, round trips 1 to 20, losses to 30 %, jitter.
pub const PAIRS: &[Pair] = &[
    ([10_000, 10_000], [20, 60], [5, 5], 0),
    ([10_000, 10_000], [20, 20], [0, 0], 0),
    ([10_000, 10_000], [20, 20], [15, 1], 0),
    ([10_000, 2_000], [20, 60], [1, 5], 0),
    ([2_000, 10_000], [20, 60], [5, 1], 0),
    ([20_000, 5_000], [40, 100], [1, 10], 0),
    ([5_000, 5_000], [10, 200], [2, 2], 0),
    ([6_000, 6_000], [20, 300], [5, 5], 0),
    ([50_000, 5_000], [10, 50], [1, 5], 0),
    ([10_000, 10_000], [20, 60], [20, 20], 0),
    ([10_000, 10_000], [20, 60], [30, 0], 0),
    ([10_000, 10_000], [20, 60], [1, 1], 10),
    ([10_000, 10_000], [40, 40], [5, 5], 10),
    ([1_000, 1_000], [60, 60], [5, 5], 0),
    ([1_000, 6_000], [600, 40], [5, 2], 0),
];

/// A path of full duplex, in the units of a [`Pair`].
pub fn path(kbps: u64, round_trip: u64, loss: f64) -> Air {
    Air {
        ping_every: Duration::from_millis(500),
        ..Air::path(
            Bitrate(kbps * 1_000),
            Duration::from_millis(round_trip),
            loss,
        )
    }
}

/// The two paths of a pair.
pub fn paths((rates, round_trips, losses, jitter): Pair) -> [Air; 2] {
    [0, 1].map(|place| Air {
        jitter: Duration::from_millis(jitter),
        ..path(
            rates[place],
            round_trips[place],
            losses[place] as f64 / 100.0,
        )
    })
}

/// What one TCP flow gets of the sum of the paths' bounds, in ten seconds after two and ten round trips of the longer path.
pub fn share(airs: &[Air], seed: u64) -> f64 {
    let bounds = airs.iter().map(|air| (1.0 - air.loss) * air.capacity());
    let bound: f64 = bounds.sum();
    let mut run = Run::bonded(airs, seed);
    let longest = airs.iter().map(|air| air.delay).max().unwrap_or_default();
    let settled = Instant::from_millis(2_000) + longest * 20;
    run.until(settled);
    let before = run.received();
    run.until(settled + Duration::from_secs(10));
    f64::from(run.received().wrapping_sub(before)) * 0.8 / bound
}

/// The longest wait of a transfer that begins within a round trip of the longer path after one of them is cut, in seconds. What is
/// on its way is lost too. And the round trip of the remaining path before that.
pub fn gap(airs: &[Air], cut: usize, directions: [bool; 2], at: u64, seed: u64) -> (f64, f64) {
    let mut run = Run::bonded(airs, seed);
    run.until(Instant::from_millis(at));
    run.gap();
    let remaining = run.peers[0].link().report_of(1 - cut).rtt;
    run.media[cut].cut(directions, true);
    let longest = airs.iter().map(|air| air.delay).max();
    let until = Instant::from_millis(at) + longest.unwrap_or_default() * 2;
    run.until(until);
    let before = run.received();
    while run.received() == before {
        run.until(run.now + Duration::from_millis(1));
        assert!(run.now < until + Duration::from_secs(2), "it stands");
    }
    let gap = run.gap();
    // A segment that was lost would fail an assertion of the receiver.
    run.until(until + Duration::from_secs(1));
    assert!(
        run.received().wrapping_sub(before) > 100_000,
        "it goes on slowly"
    );
    let remaining = remaining.map_or(Duration::ZERO, |(smoothed, _)| smoothed);
    (gap.as_secs_f64(), remaining.as_secs_f64())
}
