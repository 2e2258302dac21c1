//! A thermometer and its visitor on simulated air, in virtual time.

use std::cell::Cell;
use std::rc::Rc;

use chappe_core::{Address, Duration, Instant, Seed};
use chappe_mac::dot15d4::{Dot15d4, Sleep};
use chappe_mote::{Air, Island, Runner, Stack, Task, Virtual};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_thermometer::{Memory, Rising, Setup, Visit, addresses, node, serve, visit};

const THERMOMETER: u16 = 1;
const VISITOR: u16 = 0;
/// Seconds after the visit in which no client asks.
const IDLE: u64 = 60;

type Net = Stack<'static, Virtual>;

struct Program {
    island: Island,
    stack: &'static Net,
}

fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

/// A node that holds frames for `child`, with these tasks.
fn program<const HELD: usize>(setup: &Setup, child: Option<u16>) -> (&'static Net, &'static Air) {
    let (mut mote, local) = node::<(), HELD>(leak(Memory::new()), setup, ());
    if let Some(child) = child {
        mote.mac.add_child(Address::node(child));
    }
    let air = Air::leak();
    (leak(Stack::new(leak(mote), local, air.clock())), air)
}

fn thermometer(sleep: Option<Sleep>) -> Program {
    let mut setup = Setup::new(THERMOMETER, VISITOR, [1; 16]);
    setup.mac.sleep = sleep;
    let (stack, air) = program::<0>(&setup, None);
    let runner = Runner::new(stack, air.antenna());
    let tasks: Vec<Task> = vec![
        Box::pin(async move { runner.run().await }),
        Box::pin(async move { serve(stack, &Rising(air.clock())).await }),
    ];
    let island = Island::new(air, tasks);
    Program { island, stack }
}

/// Asks and observes, and notes what it found.
fn visitor(sleeps: bool, found: Rc<Cell<Option<Visit>>>) -> Island {
    let setup = Setup::new(VISITOR, THERMOMETER, [2; 16]);
    let (stack, air) = program::<4>(&setup, sleeps.then_some(THERMOMETER));
    let runner = Runner::new(stack, air.antenna());
    let tasks: Vec<Task> = vec![
        Box::pin(async move { runner.run().await }),
        Box::pin(async move {
            let visit = visit(stack, addresses(THERMOMETER).0).await;
            found.set(Some(visit.unwrap_or_default()));
        }),
    ];
    Island::new(air, tasks)
}

/// The time that the thermometer's radio has been on.
fn radio_on(of: &'static Net, now: Instant) -> Duration {
    of.look(|mote| {
        let mac: &Dot15d4<0> = mote.mac().downcast_ref().expect("a leaf's MAC");
        mac.radio_on(now)
    })
}

/// Visits a thermometer over links that deliver this share of the frames. Returns the share of an idle minute for which its radio was
/// on afterwards.
fn check(sleep: Option<Sleep>, delivery: f64, seed: u64) -> f64 {
    let found = Rc::new(Cell::new(None));
    let host = visitor(sleep.is_some(), found.clone());
    let mote = thermometer(sleep);
    let stack = mote.stack;
    let matrix = Matrix::silent(2).with_link(0, 1, delivery);
    let medium = Medium::matrix(&matrix).unwrap();
    let nodes = vec![Box::new(host), Box::new(mote.island)];
    let mut simulator = Simulator::new(World::new(medium), nodes, Seed(seed), ()).unwrap();
    let mut second = 0;
    while found.get().is_none() {
        second += 1;
        assert!(second < 600, "seed {seed}: the visit has not ended");
        simulator.run_until(AirTime::from_millis(1000 * second));
    }
    let visit = found.get().unwrap();
    assert_eq!(visit.statuses, [200, 404, 405, 400], "seed {seed}");
    assert_eq!(visit.notifications, 3, "seed {seed}");
    // The connection of the last request is over by then.
    let idle = second + 240;
    simulator.run_until(AirTime::from_millis(1000 * idle));
    let from = radio_on(stack, Instant::from_millis(1000 * idle));
    simulator.run_until(AirTime::from_millis(1000 * (idle + IDLE)));
    let until = radio_on(stack, Instant::from_millis(1000 * (idle + IDLE)));
    (until.as_secs_f64() - from.as_secs_f64()) / IDLE as f64
}

/// Goal: the program answers whoever asks, though a tenth of all frames are lost.
#[test]
fn a_thermometer_that_is_awake() {
    for seed in 1..=5 {
        let on = check(None, 0.9, seed);
        assert!(on > 0.99, "seed {seed}: its radio was on for {on}");
    }
}

/// Goal: the same program on a sleepy leaf, which asks for its frames every 2 s, and every 100 ms while it expects something. Method: the
/// visitor is its parent and holds its frames; the radio must be off almost always once no client asks.
#[test]
fn a_thermometer_that_sleeps() {
    for seed in 1..=5 {
        let sleep = Sleep {
            parent: Address::node(VISITOR),
            base: Duration::from_secs(2),
            short: Duration::from_millis(100),
            growth: 2,
        };
        let on = check(Some(sleep), 0.9, seed);
        println!(
            "seed {seed}: its radio was on for {:.3} % of the time",
            100.0 * on
        );
        // The visitor goes on observing: a notification every few seconds, and a data request every 2 s.
        assert!(on < 0.05, "seed {seed}: its radio was on for {on}");
    }
}
