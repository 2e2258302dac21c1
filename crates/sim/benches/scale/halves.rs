//! What one run over two cores could gain: the network in two halves, each of which runs ahead of the other for as long as it
//! cannot hear of it.
//!
//! Conservative synchronisation (Fujimoto, "Parallel discrete event simulation", Commun. ACM 33(10), 1990): the halves run side by side through a window,
//! and then wait for each other. A window is as long as what one half decides takes to reach the other: the propagation between the nearest
//! two nodes across the border, and a radio's turnaround where its MAC decides before that. Idle time has no windows.
//!
//! A frame's work is spread evenly over its visits, one at each receiver where it begins and one where it ends. That is the most that two cores could
//! gain: nothing that crosses the border costs anything, and the wait is the shortest that two threads here manage.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use chappe_core::{Duration, SPEED_OF_LIGHT};
use chappe_sim::{AirTime, Medium, Position, Recorder, Sent};

/// Lengths of windows in nanoseconds: from propagation over 30 m to the turnaround of IEEE 802.15.4 (12 symbols, 192 us), by way of a slot of 802.11b.
const WINDOWS: [u64; 5] = [100, 1_000, 5_000, 20_000, 192_000];

/// Begins and ends of all frames: the instant in nanoseconds, and the sender.
#[derive(Default)]
pub struct Events(Vec<(u64, usize)>);

impl Events {
    /// Those at an instant and later, in order.
    pub fn since(self, begin: AirTime) -> Events {
        let mut events = self.0;
        events.retain(|&(at, _)| at >= begin.nanos());
        events.sort_unstable();
        Events(events)
    }
}

impl Recorder for Events {
    const NODES: bool = false;

    fn wants_unheard(&self) -> bool {
        false
    }

    fn sent(&mut self, frame: &Sent<'_>) {
        // Check sequences count little here.
        let airtime = frame.mode.airtime(frame.psdu.len());
        self.0.push((frame.at.nanos(), frame.node));
        self.0.push(((frame.at + airtime).nanos(), frame.node));
    }
}

/// The network in two halves of equally many nodes.
pub struct Halves {
    /// For each sender, its receivers in each half.
    receivers: Vec<[u64; 2]>,
    /// Propagation between the nearest two nodes of different halves that hear each other.
    nearest: Duration,
}

impl Halves {
    /// Cut at the median of the first coordinate.
    pub fn of(medium: &Medium, positions: &[Position]) -> Halves {
        let mut places: Vec<f64> = positions.iter().map(|place| place.x).collect();
        places.sort_by(f64::total_cmp);
        let middle = places[places.len() / 2];
        let half = |node: usize| usize::from(positions[node].x >= middle);
        let mut nearest = f64::INFINITY;
        let receivers = (0..positions.len()).map(|from| {
            let mut counts = [0; 2];
            for to in medium.hearers(from) {
                counts[half(to)] += 1;
                if half(to) != half(from) {
                    let (a, b) = (positions[from], positions[to]);
                    nearest = nearest.min(f64::hypot(a.x - b.x, a.y - b.y));
                }
            }
            counts
        });
        let receivers = receivers.collect();
        Halves {
            receivers,
            nearest: Duration::from_secs_f64(nearest / SPEED_OF_LIGHT),
        }
    }

    /// Prints what windows of each length allow, if the events took `spent` seconds on one core.
    pub fn report(&self, events: Events, spent: f64) {
        let events = events.0;
        let visits = |&(_, from): &(u64, usize)| self.receivers[from].iter().sum::<u64>();
        let all: u64 = events.iter().map(visits).sum();
        let (wait, each) = (meeting(), spent / all as f64);
        println!(
            "  two halves: nearest across the border {} ns; {} events, {:.1} ns a visit; two threads meet in {:.0} ns",
            self.nearest.nanos(),
            events.len(),
            each * 1e9,
            wait * 1e9
        );
        for length in [self.nearest.nanos().max(1)].into_iter().chain(WINDOWS) {
            let (windows, longest) = self.windows(&events, length);
            let free = longest as f64 * each;
            println!(
                "  windows of {length:>7} ns: {:>6.2} events each, at most {:.2} times as fast if meeting is free, {:.2} as it is",
                events.len() as f64 / windows as f64,
                spent / free,
                spent / (free + windows as f64 * wait)
            );
        }
    }

    /// How many windows there are, and the visits of the busier half of each.
    fn windows(&self, events: &[(u64, usize)], length: u64) -> (u64, u64) {
        let (mut windows, mut longest) = (0, 0);
        let mut rest = events;
        while let Some(&(first, _)) = rest.first() {
            let (now, later) = rest.split_at(rest.partition_point(|&(at, _)| at < first + length));
            let work = |half: usize| {
                now.iter()
                    .map(|&(_, from)| self.receivers[from][half])
                    .sum::<u64>()
            };
            windows += 1;
            longest += work(0).max(work(1));
            rest = later;
        }
        (windows, longest)
    }
}

/// Seconds in which two threads that do nothing else meet: the least of several runs.
fn meeting() -> f64 {
    const ROUNDS: u64 = 100_000;
    let run = || {
        let arrived = [AtomicU64::new(0), AtomicU64::new(0)];
        let meet = |me: usize| {
            for round in 1..=ROUNDS {
                arrived[me].store(round, Ordering::Release);
                while arrived[1 - me].load(Ordering::Acquire) < round {
                    std::hint::spin_loop();
                }
            }
        };
        let begin = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| meet(0));
            meet(1);
        });
        begin.elapsed().as_secs_f64() / ROUNDS as f64
    };
    (0..5).map(|_| run()).fold(f64::INFINITY, f64::min)
}
