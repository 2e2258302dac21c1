//! Runs of many scenarios on all cores: what a sweep is made of.
//!
//! Threads take one run after the other and hand each result over at once, so that what is finished can be kept while the rest
//! runs. A request to stop is answered within [`PATIENCE`]: a run that has not ended by then (a bound's linear program, say) is
//! given up with its thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use chappe_scenario::Plan;

use crate::run::{Meter, Outcome, RunError, WORK};
use crate::system::{Job, System};

/// How long runs have to end after a request to stop.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// A run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The place of its plan.
    pub cell: usize,
    /// The seed of its network.
    pub seed: u64,
}

/// What is to be run.
pub struct Sweep {
    /// The table of systems.
    pub systems: &'static [&'static System],
    /// The scenario of each cell.
    pub plans: Vec<Plan>,
    /// The runs to make, in this order.
    pub tasks: Vec<Task>,
    /// Whether to keep the receivers' copies.
    pub copies: bool,
    /// Threads; results do not depend on it.
    pub threads: usize,
}

/// Makes the runs and hands each to `keep`, in the order in which they end. Returns how many were made; fewer than asked for if
/// the user asked to stop. The first error ends the whole after what was finished is kept.
pub fn run(
    sweep: Sweep,
    meter: &Arc<Meter>,
    mut keep: impl FnMut(Task, Outcome) -> Result<(), RunError>,
) -> Result<usize, RunError> {
    meter.plan(sweep.tasks.len(), 1);
    let sweep = Arc::new(sweep);
    let (next, failed) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let (sender, results) = mpsc::channel();
    for _ in 0..sweep.threads.clamp(1, sweep.tasks.len().max(1)) {
        let (sweep, next, failed) = (sweep.clone(), next.clone(), failed.clone());
        let (meter, sender) = (meter.clone(), sender.clone());
        // Not scoped: a thread that does not end in time is left behind.
        std::thread::spawn(move || {
            while !meter.stopped() && !failed.load(Ordering::Relaxed) {
                let Some(&task) = sweep.tasks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                let result = one(&sweep, task, &meter);
                if sender.send((task, result)).is_err() {
                    break;
                }
            }
        });
    }
    drop(sender);
    let (mut made, mut error, mut asked) = (0, None, None::<Instant>);
    loop {
        match results.recv_timeout(Duration::from_millis(20)) {
            Ok((_, Err(RunError::Interrupted))) => {}
            Ok((task, Ok(outcome))) => match keep(task, outcome) {
                Ok(()) => made += 1,
                Err(unkept) => error = error.or(Some(unkept)),
            },
            Ok((_, Err(first))) => error = error.or(Some(first)),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        failed.fetch_or(error.is_some(), Ordering::Relaxed);
        if meter.stopped() && asked.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            break;
        }
    }
    // Threads end without a word only if they panic.
    let all = made == sweep.tasks.len() || meter.stopped() || error.is_some();
    match error {
        Some(error) => Err(error),
        None if !all => Err(RunError::Defect("a run ended without a result".into())),
        None => Ok(made),
    }
}

fn one(sweep: &Sweep, task: Task, meter: &Meter) -> Result<Outcome, RunError> {
    let Some(plan) = sweep.plans.get(task.cell) else {
        return Err(RunError::Defect(format!("there is no cell {}", task.cell)));
    };
    let system = sweep
        .systems
        .iter()
        .find(|system| system.scenario.name == plan.system.name);
    let Some(system) = system else {
        let name = plan.system.name;
        return Err(RunError::Defect(format!(
            "the system {name} is not in the table"
        )));
    };
    let job = Job {
        traces: None,
        plan,
        network: plan.network(task.seed)?,
        copies: sweep.copies,
        pcap: None,
    };
    (system.carry)(job, meter)
}

/// The part `index` of `count` of these runs, both from one on: every `count`-th one, so that each part has some of every cell.
pub fn shard(tasks: Vec<Task>, (index, count): (usize, usize)) -> Vec<Task> {
    let first = index.saturating_sub(1);
    tasks
        .into_iter()
        .skip(first)
        .step_by(count.max(1))
        .collect()
}

/// The work of `runs` runs on a [`Meter`].
pub const fn work(runs: usize) -> u64 {
    2 * WORK * runs as u64
}

#[cfg(test)]
mod tests {
    use chappe_scenario::idle::{self, IDLE};

    use super::*;
    use crate::carry::Report;

    /// Seed 13 fails, seed 99 does not end before it is asked to, and seed 100 never does.
    static SLOW: System = System::new(&IDLE, |job, meter| {
        let seed = job.network.seed;
        if seed == 13 {
            return Err(RunError::Defect("unlucky".into()));
        }
        while seed == 100 || seed == 99 && !meter.stopped() {
            std::thread::sleep(Duration::from_millis(5));
        }
        meter.advance(2 * WORK);
        Ok(Report::begin((&IDLE, &IDLE.variants[0]), seed).finish())
    });

    static TABLE: &[&System] = &[&SLOW];

    fn sweep(seeds: &[u64]) -> Sweep {
        let plan = idle::plan(
            "[network]\nlinks = [[0, 1], [1, 0]]\n\
             [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n",
        );
        Sweep {
            systems: TABLE,
            plans: vec![plan],
            tasks: seeds.iter().map(|&seed| Task { cell: 0, seed }).collect(),
            copies: false,
            threads: 2,
        }
    }

    #[test]
    fn every_run_is_handed_over_once() {
        let (meter, mut seeds) = (Arc::new(Meter::default()), Vec::new());
        let made = run(sweep(&[3, 1, 2, 5]), &meter, |task, outcome| {
            assert_eq!(task.seed, outcome.run.seed);
            seeds.push(task.seed);
            Ok(())
        });
        seeds.sort_unstable();
        assert_eq!((made.unwrap(), seeds), (4, vec![1, 2, 3, 5]));
        assert_eq!(meter.read(), (work(4), work(4)));
    }

    /// Goal: a request to stop is answered within a second although a run does not look at it, and what was finished is kept.
    #[test]
    fn a_request_to_stop_is_answered_in_time() {
        let (meter, mut kept) = (Arc::new(Meter::default()), 0);
        let begun = Instant::now();
        let made = run(sweep(&[1, 99, 100, 2, 3]), &meter, |_, _| {
            kept += 1;
            meter.stop();
            Ok(())
        });
        // Seed 1, and 99 which ends when asked.
        assert!((1..=2).contains(&made.unwrap()), "{kept}");
        assert!(
            begun.elapsed() < Duration::from_secs(1),
            "{:?}",
            begun.elapsed()
        );
    }

    #[test]
    fn an_error_ends_the_whole_and_keeps_what_is_finished() {
        let mut kept = Vec::new();
        let result = run(
            sweep(&[1, 2, 13, 4]),
            &Arc::new(Meter::default()),
            |task, _| {
                kept.push(task.seed);
                Ok(())
            },
        );
        assert!(matches!(result, Err(RunError::Defect(why)) if why == "unlucky"));
        assert!(kept.contains(&1) && kept.contains(&2), "{kept:?}");
    }

    #[test]
    fn shards_are_disjoint_and_together_everything() {
        let tasks: Vec<Task> = (0..10).map(|seed| Task { cell: 0, seed }).collect();
        let parts = (1..=3).map(|index| shard(tasks.clone(), (index, 3)));
        let mut together: Vec<Task> = parts.flatten().collect();
        together.sort_by_key(|task| task.seed);
        assert_eq!(together, tasks);
    }
}
