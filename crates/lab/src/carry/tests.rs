//! The engine with stations that send nothing and are complete at a given time.

use chappe_core::{RadioEvent, RadioRequest, Wake};
use chappe_scenario::idle::{self, IDLE};

use super::*;

/// A station that has its object from `done_at` on; it never sends.
struct Clock {
    done_at: Option<Instant>,
    done: Option<Instant>,
    life: u32,
}

impl RadioNode for Clock {
    fn handle_radio(&mut self, _: Instant, _: RadioEvent<'_>) {}

    fn poll_radio(&mut self, _: Instant, _: &mut [u8]) -> Option<RadioRequest> {
        None
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.done_at.is_some_and(|at| at <= now) {
            self.done = self.done_at.take();
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.done_at.map(|at| Wake { at, why: "done" })
    }
}

/// A system of such stations.
#[derive(Clone, Default)]
struct Clocks {
    /// For each node the second in which it is complete.
    done_s: Vec<Option<u64>>,
    unreachable: Vec<usize>,
    stall_s: Option<f64>,
}

impl Carry for Clocks {
    type Node = Clock;

    fn by(&self) -> (&'static System, &'static Variant) {
        (&IDLE, &IDLE.variants[0])
    }

    fn station(&self, node: usize, life: u32) -> Result<Box<Clock>, RunError> {
        let seconds = self.done_s.get(node).copied().flatten();
        Ok(Box::new(Clock {
            done_at: seconds.map(|seconds| Instant::ZERO + Duration::from_secs(seconds)),
            done: None,
            life,
        }))
    }

    fn begin(&mut self, _: &mut Clock, _: &Transfer, _: Instant) -> Result<Begun, RunError> {
        Ok(Begun {
            unreachable: self.unreachable.clone(),
            notes: Vec::new(),
        })
    }

    fn completed(&self, node: &Clock) -> Option<Instant> {
        node.done
    }

    fn receipt<'n>(&self, node: &'n Clock, transfer: &Transfer) -> Receipt<'n> {
        Receipt {
            octets: node.done.map_or(0, |_| transfer.object.len()),
            completed_s: node.done.map(Instant::as_secs_f64),
            ..Receipt::default()
        }
    }

    fn limits(&self, plan: &Plan) -> Limits {
        let limits = Limits::within(plan, 100.0);
        match self.stall_s {
            Some(stall_s) => limits.stalling(plan, stall_s),
            None => limits,
        }
    }

    fn count(&self, running: &dyn Running<Clock>, report: &mut Report) {
        for node in 0..running.nodes() {
            report.count("lives", u64::from(running.node(node).life));
        }
    }
}

const TRANSFER: &str = "[[transfer]]\nsource = 0\nreceivers = [1, 2]\nbytes = \"1 kB\"\n";

fn run(clocks: Clocks, text: &str) -> Outcome {
    let network = "[network]\nlinks = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]\n";
    let plan = idle::plan(&format!("{network}{text}"));
    let network = plan.network(1).unwrap();
    carry(clocks, RunSpec::plain(&plan, &network), &Meter::default()).unwrap()
}

fn clocks(done_s: &[Option<u64>]) -> Clocks {
    Clocks {
        done_s: done_s.to_vec(),
        ..Clocks::default()
    }
}

fn complete(outcome: &Outcome) -> Vec<bool> {
    outcome.run.flows.iter().map(|flow| flow.complete).collect()
}

#[test]
fn a_run_ends_with_its_last_receiver() {
    for done_s in [[None, Some(2), Some(5)], [None, Some(5), Some(2)]] {
        let outcome = run(clocks(&done_s), TRANSFER);
        assert_eq!(complete(&outcome), [true, true]);
        let simulated_s = outcome.run.simulated_s;
        assert!((5.0..5.1).contains(&simulated_s), "{simulated_s}");
    }
}

#[test]
fn a_run_ends_at_its_limit() {
    for limit_s in [0.0, 4.0] {
        let text = format!("{TRANSFER}[run]\nlimit = \"{limit_s} s\"\n");
        let outcome = run(clocks(&[None, Some(2), Some(5)]), &text);
        assert_eq!(complete(&outcome), [limit_s > 0.0, false]);
        assert_eq!(outcome.run.simulated_s, limit_s);
    }
}

/// A receiver whose clock runs fast by 100 ppm from 1 s on shows 5 s after 4.9996 s. That is when it is complete: by its own
/// clock it would be complete after the run had ended.
#[test]
fn completions_are_by_the_clock_of_the_run() {
    let drift = "[[fault]]\nat = \"1 s\"\nkind = \"drift\"\nnode = 2\ndrift = \"100 ppm\"\n";
    let outcome = run(
        clocks(&[None, Some(2), Some(5)]),
        &format!("{TRANSFER}{drift}"),
    );
    let completed_s = |receiver: usize| outcome.run.flows[receiver].completion_s.unwrap();
    assert_eq!(completed_s(0), 2.0);
    let expected_s = 1.0 + 4.0 / 1.0001;
    assert!((completed_s(1) - expected_s).abs() < 2e-9);
    assert!(completed_s(1) <= outcome.run.simulated_s);
}

/// Receivers that the system cannot reach are reported, but the run does not wait for them.
#[test]
fn unreachable_receivers_are_not_waited_for() {
    let one = Clocks {
        unreachable: vec![2],
        ..clocks(&[None, Some(2), None])
    };
    let outcome = run(one.clone(), TRANSFER);
    assert_eq!(complete(&outcome), [true, false]);
    assert!(outcome.run.simulated_s < 2.1);
    let none = Clocks {
        unreachable: vec![1, 2],
        ..one
    };
    assert_eq!(run(none, TRANSFER).run.simulated_s, 0.0);
}

/// Node 1 is complete after 2 s, node 2 never; nothing arrives for 10 s then.
#[test]
fn a_run_without_a_limit_ends_when_it_stalls() {
    let stalling = Clocks {
        stall_s: Some(10.0),
        // The source's clock gives the simulator something to do.
        ..clocks(&[Some(20), Some(2), None])
    };
    let outcome = run(stalling, TRANSFER);
    assert_eq!(complete(&outcome), [true, false]);
    let simulated_s = outcome.run.simulated_s;
    assert!((12.0..30.0).contains(&simulated_s), "{simulated_s}");
}

/// A beginner may crash at once, and a receiver may crash and come back: it is complete in its second life.
#[test]
fn stations_restart_in_another_life() {
    let fault =
        |at, kind, node| format!("[[fault]]\nat = \"{at} s\"\nkind = \"{kind}\"\nnode = {node}\n");
    let faults = [
        fault(0, "crash", 0),
        fault(1, "crash", 1),
        fault(3, "restart", 1),
    ];
    let text = format!("{TRANSFER}{}", faults.concat());
    let outcome = run(clocks(&[None, Some(2), Some(2)]), &text);
    assert_eq!(complete(&outcome), [true, true]);
    assert_eq!(outcome.run.counter("lives"), 1);
    assert!(outcome.run.simulated_s > 3.0);
}

/// A fault that changed nothing is reported.
#[test]
fn faults_that_change_nothing_are_reported() {
    let fault = |at: u64, node: usize| {
        format!("[[fault]]\nat = \"{at} s\"\nkind = \"crash\"\nnode = {node}\n")
    };
    let told = |faults: &str| {
        let outcome = run(
            clocks(&[None, Some(2), Some(2)]),
            &format!("{TRANSFER}{faults}"),
        );
        outcome.notes
    };
    assert_eq!(told(""), [""; 0]);
    // Stations of this test send nothing, but node 0 is the source.
    assert_eq!(told(&fault(1, 0)), [""; 0]);
    let late = told(&fault(900, 0));
    assert!(late[0].contains("after the end"), "{late:?}");
    // A station that is no end and sent nothing.
    let idle = TRANSFER.replace("[1, 2]", "[1]");
    let outcome = run(
        clocks(&[None, Some(2), None]),
        &format!("{idle}{}", fault(1, 2)),
    );
    assert!(
        outcome.notes[0].contains("node 2 sent no frame"),
        "{:?}",
        outcome.notes
    );
}

/// A world that counts seconds: parts arrive until second `last`.
fn steps(limits: Limits, last: u64, over_at: u64) -> u64 {
    let mut world = 0;
    run_in_steps(
        &mut world,
        (Duration::from_secs(1), limits),
        |&world| (AirTime::ZERO + Duration::from_secs(world), world),
        |world, to| *world = to.nanos() / 1_000_000_000,
        |&world| (world.min(last), 100, world >= over_at),
        &Meter::default(),
    )
    .unwrap();
    world
}

#[test]
fn steps_end_when_over_stalled_or_late() {
    let limits = |end_s, stall_s| Limits { end_s, stall_s };
    assert_eq!(steps(limits(50.0, Some(5.0)), 100, 7), 7);
    assert_eq!(steps(limits(50.0, Some(4.5)), 10, 100), 15);
    assert_eq!(steps(limits(50.0, None), 10, 100), 50);
    assert_eq!(steps(limits(0.0, Some(0.0)), 10, 100), 0);
}
