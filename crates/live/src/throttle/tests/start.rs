//! How soon a member that begins to send uses a path, and what it drops there meanwhile.

use chappe_core::{Bitrate, Duration, Purpose, Seed};

use super::drawn::{asked, draw};
use super::{BITS, Cell, Trial};
use crate::hello::{Hellos, Schedule};
use crate::throttle::Throttle;

/// For how many ms the members exchange hellos before one begins to send, and for how many where a sender of files finds that nothing is
/// lost: ten hellos, one each 50 ms.
const MEASURED: u64 = 2000;
const CLEAN: u64 = 500;

/// How long a neighbour takes until it echoes, in ms.
const ECHOED: f64 = 8.0;

/// A member on a path, after hellos for `measured` ms.
fn trial(cell: Cell, ceiling: f64, seed: u64, measured: u64) -> Trial {
    let mut trial = Trial::new(cell, seed);
    let hellos = |first, end| {
        let hellos = Hellos {
            first,
            ..Hellos::default()
        };
        Schedule::new(hellos, Seed(seed).stream(Purpose::Trial(end)))
    };
    let usual = Hellos::default().first;
    let own = match measured {
        CLEAN => Duration::from_millis(CLEAN / 10),
        _ => usual,
    };
    trial.throttle = Throttle::new(Some(Bitrate((ceiling * 1e6) as u64)), None);
    trial.hellos = Some(([hellos(own, 3), hellos(usual, 4)], measured));
    while trial.now < measured {
        trial.turn();
    }
    (trial.passed, trial.dropped) = (0.0, 0.0);
    trial
}

/// How a start went.
struct Start {
    /// The ms that the path could have carried and did not, in the first second.
    lost: f64,
    /// Frames that the queue dropped in that second.
    dropped: f64,
    /// The frames of a round trip, with its wait in the queue and for an echo: what TCP's start drops at most.
    window: f64,
}

fn start(cell: Cell, ceiling: f64, seed: u64, measured: u64) -> Start {
    let mut trial = trial(cell, ceiling, seed, measured);
    for _ in 0..1000 {
        trial.turn();
    }
    let each = BITS / 1e3 / cell.capacity.min(ceiling);
    Start {
        lost: 1000.0 - trial.passed * each,
        dropped: trial.dropped,
        window: (cell.queue.max(8.0 * each) + 2.0 * cell.delay as f64 + ECHOED) / each,
    }
}

/// Goal: on a path shorter than 100 ms a start takes less than the first round trip of one that does not know the path, and one that goes
/// too far drops few windows. Method: paths without a bottleneck below the ceiling, then drawn ones;
/// `RATE_SEED` and `RATE_CELLS` try others.
#[test]
fn a_start_is_short_on_short_paths() {
    for (ceiling, loss, measured) in [
        (20.0, 0.0, CLEAN),
        (20.0, 0.1, MEASURED),
        (20.0, 0.3, MEASURED),
        (100.0, 0.1, MEASURED),
        (1000.0, 0.0, MEASURED),
        (1000.0, 0.0, CLEAN),
    ] {
        let cell = Cell {
            capacity: 10_000.0,
            delay: 0,
            loss,
            queue: 5.0,
            jitter: 0,
        };
        let mut all: Vec<f64> = (0..20)
            .map(|seed| start(cell, ceiling, seed, measured).lost)
            .collect();
        all.sort_by(f64::total_cmp);
        println!(
            "up to {ceiling} Mbit/s, {loss} lost, after {measured} ms: {:.0} ms in the median, {:.0} at worst",
            all[10], all[19]
        );
        // A start at 1.2 Mbit/s took 546 to 925 ms in the median, and 981 at worst.
        assert!(all[10] < 100.0 && all[19] < 400.0);
    }
    let (seed, cells) = (asked("RATE_SEED", 1), asked("RATE_CELLS", 60));
    let (mut lost, mut dropped) = (Vec::new(), Vec::new());
    for index in 0..cells {
        let seed = Seed(seed).child(index);
        let cell = draw(&mut seed.stream(Purpose::Trial(2)));
        let start = start(cell, 10_000.0, seed.0, MEASURED);
        println!(
            "#{index} {cell:.3?}: {:.0} ms lost, {:.0} dropped, {:.2} of a window",
            start.lost,
            start.dropped,
            start.dropped / start.window
        );
        lost.push(start.lost);
        dropped.push(start.dropped / start.window);
    }
    lost.sort_by(f64::total_cmp);
    dropped.sort_by(f64::total_cmp);
    println!(
        "lost {:.0} ms in the median; dropped {:.2} windows in the median, {:.2} at worst",
        lost[lost.len() / 2],
        dropped[dropped.len() / 2],
        dropped[dropped.len() - 1]
    );
    assert!(dropped[dropped.len() / 2] < 1.0 && dropped[dropped.len() - 1] < 8.0);
}
