//! What a simulated second costs as networks grow at one density.
//!
//! Scenario (a) of `broadcast` (802.11b, 50 nodes a square kilometre) with one node in five saturated, and with 20 saturated
//! nodes whatever the size; scenario (b) of `dot15d4` (802.15.4, 643 nodes a square kilometre, each one frame a second).
//!
//! ```text
//! cargo bench -p chappe-sim --bench scale [-- least=50] [most=1000] [frames=30000] [floor=DB] [only=dot11b|twenty|dot15d4] [errors] [moving]
//! ```
//!
//! `frames` is about how many are sent in each row: fewer for a run under a tool that counts instructions.
//! `moving` adds a row for each: the same nodes on their ways by random waypoint, at 1 to 20 m/s.
//! `floor` replaces the profile's: how far below the noise a link's mean power may lie. Time is the thread's processor time.
//! `errors` shows what a lower floor changes: with 1000 nodes (or `most`), each node's share of received frames beside that
//! under the profile's floor, and how strong all that is left out is together.
//! `halves` shows what one run over two cores could gain (`scale/halves.rs`).

#[path = "scale/halves.rs"]
mod halves;

use chappe_core::{
    Address, Db, Duration, Instant, Mode, OverMac, Purpose, RadioEvent, RadioNode, RadioRequest,
    Rate, Seed, Transmit, Wake,
};
use chappe_mac::dot11::{Config, Dot11};
use chappe_sim::{
    AirTime, Counters, Medium, Memory, NodeCounters, Position, Profile, RandomWaypoint, Recorder,
    Simulator, World, topology,
};
use chappe_testkit::Saturated;
use chappe_testkit::processor::thread_time;
use halves::{Events, Halves};

/// Nodes of the rows.
const SIZES: [usize; 4] = [50, 250, 1000, 10_000];

/// Milliseconds of a run before it is measured.
const WARM_MS: u64 = 200;

/// What a row measures.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    profile: fn() -> Profile,
    /// Nodes a square metre.
    density: f64,
    /// How many of so many nodes always have a frame to send.
    saturated: fn(usize) -> usize,
}

const ROWS: [Row; 3] = [
    Row {
        name: "dot11b",
        profile: Profile::ns3_rayleigh,
        density: 50e-6,
        saturated: |nodes| nodes / 5,
    },
    Row {
        name: "twenty",
        profile: Profile::ns3_rayleigh,
        density: 50e-6,
        saturated: |_| 20,
    },
    Row {
        name: "dot15d4",
        profile: Profile::ieee_e418,
        density: 139.0 / (465.0 * 465.0),
        saturated: |_| 0,
    },
];

/// Broadcasts 100 octets at `next` and once a second after.
struct Beacon {
    next: Instant,
    due: bool,
}

impl RadioNode for Beacon {
    fn handle_radio(&mut self, _: Instant, _: RadioEvent<'_>) {}
    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        if !std::mem::replace(&mut self.due, false) {
            return None;
        }
        psdu.get_mut(..98)?.fill(1);
        Some(RadioRequest::Transmit(Transmit {
            at: now,
            len: 98,
            mode: Mode::long(Rate::Oqpsk250),
            power: None,
        }))
    }
    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next {
            self.next += Duration::from_secs(1);
            self.due = true;
        }
    }
    fn poll_timeout(&self) -> Option<Wake> {
        Some(Wake {
            at: self.next,
            why: "beacon",
        })
    }
}

/// What a run shows of itself.
struct Seen {
    /// Processor time of the run, in seconds.
    spent: f64,
    simulated: f64,
    counters: Counters,
    before: Counters,
    memory: Memory,
    digest: u64,
}

/// What a run leaves: itself as seen, its links, its recorder.
type Ran<R> = (Seen, usize, R);

/// Where the nodes of a row stand.
fn places(row: &Row, nodes: usize, place: Seed) -> Vec<Position> {
    let side = f64::sqrt(nodes as f64 / row.density);
    topology::random(nodes, side, side, place)
}

/// A row of one size: the nodes of `place`, run under `seed`.
fn measure(row: &Row, nodes: usize, floor: Option<Db>, [place, seed]: [Seed; 2]) -> (Seen, usize) {
    let positions = places(row, nodes, place);
    let mut profile = (row.profile)();
    profile.floor = floor.unwrap_or(profile.floor);
    let medium = Medium::geometric(&positions, &profile, place).unwrap();
    let (seen, links, ()) = over(row, medium, seed, ());
    (seen, links)
}

/// What two halves of a row's network could gain. The run that records its frames is not the one that is timed.
fn halves(row: &Row, nodes: usize) {
    let timed = measure(row, nodes, None, [Seed(1); 2]);
    report(row, nodes, &timed);
    let positions = places(row, nodes, Seed(1));
    let medium = Medium::geometric(&positions, &(row.profile)(), Seed(1)).unwrap();
    let halves = Halves::of(&medium, &positions);
    let (_, _, events) = over(row, medium, Seed(1), Events::default());
    halves.report(events.since(AirTime::from_millis(WARM_MS)), timed.0.spent);
}

/// The same with nodes that move.
fn measure_moving(row: &Row, nodes: usize, [place, seed]: [Seed; 2]) -> (Seen, usize) {
    let side = f64::sqrt(nodes as f64 / row.density);
    let law = RandomWaypoint {
        area: [side, side],
        speed: [1.0, 20.0],
        pause: [0.0, 0.0],
    };
    let motion = law.motion(nodes, place).unwrap();
    let medium = Medium::moving(&motion, &(row.profile)(), place).unwrap();
    let (seen, links, ()) = over(row, medium, seed, ());
    (seen, links)
}

/// A row over a medium, run under `seed`.
fn over<R: Recorder>(row: &Row, medium: Medium, seed: Seed, recorder: R) -> Ran<R> {
    let nodes = medium.nodes();
    let links = medium.links();
    let world = World::new(medium);
    if row.name == "dot15d4" {
        let node = |i: usize| {
            let phase = seed.stream(Purpose::Node(i as u32)).below(1_000_000_000);
            Box::new(Beacon {
                next: Instant::from_nanos(phase),
                due: false,
            })
        };
        let nodes = (0..nodes).map(node).collect();
        let simulator = Simulator::new(world, nodes, seed, recorder).unwrap();
        let (seen, recorder) = run(row, simulator);
        return (seen, links, recorder);
    }
    let saturated = (row.saturated)(nodes);
    let node = |i: usize| {
        let link = match i < saturated {
            true => Saturated::towards(Address::BROADCAST, 1500),
            false => Saturated::idle(),
        };
        let random = seed.stream(Purpose::Node(i as u32));
        let mac = Dot11::new(Config::dot11b(Rate::Dsss2), Address::node(i as u16), random);
        Box::new(OverMac::new(mac, link))
    };
    let nodes = (0..nodes).map(node).collect();
    let simulator = Simulator::new(world, nodes, seed, recorder).unwrap();
    let (seen, recorder) = run(row, simulator);
    (seen, links, recorder)
}

/// The number behind a word such as `most=` in the arguments.
fn argument(key: &str) -> Option<f64> {
    let found = std::env::args().find_map(|text| text.strip_prefix(key).map(str::to_string));
    found.and_then(|text| text.parse().ok())
}

fn run<N: RadioNode, R: Recorder>(row: &Row, mut simulator: Simulator<N, R>) -> (Seen, R) {
    let nodes = simulator.nodes().count();
    // Enough for some 30,000 frames: the clock of a thread may tick in hundredths of a second.
    let frames_per_second = match row.name {
        "dot15d4" => nodes as u64,
        "twenty" => 2000,
        _ => 7 * nodes as u64,
    };
    let frames = argument("frames=").unwrap_or(30_000.0) as u64;
    let millis = (frames * 1000 / frames_per_second).max(400);
    let warm = AirTime::from_millis(WARM_MS);
    simulator.run_until(warm);
    let before = simulator.counters().clone();
    let cpu = thread_time();
    // As the runs of scenarios do: they look once a millisecond.
    simulator.run_while(warm + Duration::from_millis(millis), |_| true);
    // Without a thread's clock the columns of time are not numbers.
    let spent = thread_time().zip(cpu).map(|(now, then)| now - then);
    let seen = Seen {
        spent: spent.map_or(f64::NAN, |spent| spent.as_secs_f64()),
        simulated: millis as f64 / 1e3,
        counters: simulator.counters().clone(),
        before,
        memory: simulator.memory(),
        digest: simulator.digest(),
    };
    let (_, recorder, _) = simulator.into_parts();
    (seen, recorder)
}

fn report(row: &Row, nodes: usize, (seen, links): &(Seen, usize)) {
    let (after, before) = (&seen.counters, &seen.before);
    let frames = (after.frames - before.frames) as f64;
    let arrivals = (after.arrivals - before.arrivals) as f64;
    let receptions = (after.receptions - before.receptions) as f64;
    println!(
        "{:>8} {nodes:>6} nodes | {:>9.5} CPU s / sim s ({:>8.1} sim s / CPU s) | {:>6.0} frames/s {:>6.1} arrivals {:>7.3} receptions a frame | {:>5.2} us a frame {:>5.1} ns an arrival | {} B/node {:.1} B/link {:.0} links/node | {:016x}",
        row.name,
        seen.spent / seen.simulated,
        seen.simulated / seen.spent,
        frames / seen.simulated,
        arrivals / frames,
        receptions / frames,
        seen.spent * 1e6 / frames,
        seen.spent * 1e9 / arrivals,
        seen.memory.per_node,
        seen.memory.links as f64 / *links as f64,
        *links as f64 / nodes as f64,
        seen.digest,
    );
}

/// Frames that each node received, in a second.
fn received(seen: &Seen) -> Vec<f64> {
    let nodes = seen.counters.nodes.iter().zip(&seen.before.nodes);
    nodes
        .map(|(after, before)| (after.receptions - before.receptions) as f64 / seen.simulated)
        .collect()
}

/// The largest distance between two samples' distributions (Kolmogorov and Smirnov).
fn distance(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let below = |sample: &[f64], x: f64| {
        sample.partition_point(|&value| value <= x) as f64 / sample.len() as f64
    };
    let apart = |&x: &f64| (below(&a, x) - below(&b, x)).abs();
    a.iter().chain(&b).map(apart).fold(0.0, f64::max)
}

/// The power of all signals under the floor together, over time, at the mean receiver and at the one that has most, in dB under
/// the noise.
fn left_out(row: &Row, nodes: usize, floor: Db, seen: &Seen) -> [f64; 2] {
    let profile = (row.profile)();
    let positions = places(row, nodes, Seed(1));
    let least = profile.noise - floor;
    let share =
        |node: &NodeCounters| node.airtime.as_secs_f64() / (seen.simulated + WARM_MS as f64 / 1e3);
    let shares: Vec<f64> = seen.counters.nodes.iter().map(share).collect();
    let sums: Vec<f64> = (0..nodes)
        .map(|to| {
            let from = (0..nodes).filter(|&from| from != to).map(|from| {
                let (a, b) = (positions[from], positions[to]);
                let metres = f64::hypot(a.x - b.x, a.y - b.y);
                let power = profile.power - profile.path_loss.loss(metres);
                match power.0 < least.0 {
                    true => power.to_milliwatt().0 * shares[from],
                    false => 0.0,
                }
            });
            from.sum()
        })
        .collect();
    let noise = profile.noise.to_milliwatt().0;
    let under = |sum: f64| 10.0 * f64::log10(noise / sum);
    let most = sums.iter().copied().fold(0.0, f64::max);
    [under(sums.iter().sum::<f64>() / nodes as f64), under(most)]
}

/// What lower floors change.
fn errors(row: &Row, nodes: usize) {
    let usual = measure(row, nodes, None, [Seed(1); 2]);
    println!(
        "{} of {nodes} nodes beside the profile's floor of {} dB:",
        row.name,
        (row.profile)().floor.0
    );
    let show = |name: &str, floor: Option<Db>, seed: Seed| {
        let other = measure(row, nodes, floor, [Seed(1), seed]);
        let per_frame = |seen: &Seen| seen.counters.receptions as f64 / seen.counters.frames as f64;
        let [mean, most] = match floor {
            Some(floor) => left_out(row, nodes, floor, &other.0),
            None => [f64::INFINITY; 2],
        };
        println!(
            "  {name:>14}: frames {:.4}, receptions a frame {:.4}, distance of nodes' receptions {:.4}; left out {mean:.1} dB under the noise, {most:.1} at worst; {:.2} of the time",
            other.0.counters.frames as f64 / usual.0.counters.frames as f64,
            per_frame(&other.0) / per_frame(&usual.0),
            distance(received(&usual.0), received(&other.0)),
            other.0.spent / usual.0.spent,
        );
    };
    show("other seed", None, Seed(2));
    for floor in [10.0, 6.0, 3.0, 0.0] {
        show(&format!("floor {floor} dB"), Some(Db(floor)), Seed(1));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let least = argument("least=").map_or(0, |nodes| nodes as usize);
    let most = argument("most=").map_or(usize::MAX, |nodes| nodes as usize);
    let floor = argument("floor=").map(Db);
    let only = arguments.iter().find_map(|text| text.strip_prefix("only="));
    for row in &ROWS {
        if only.is_some_and(|only| only != row.name) {
            continue;
        }
        if arguments.iter().any(|argument| argument == "errors") {
            errors(row, most.min(1000));
            continue;
        }
        let sizes = SIZES.into_iter();
        for nodes in sizes.filter(|&nodes| (least..=most).contains(&nodes)) {
            if arguments.iter().any(|argument| argument == "halves") {
                halves(row, nodes);
                continue;
            }
            report(row, nodes, &measure(row, nodes, floor, [Seed(1); 2]));
            if arguments.iter().any(|argument| argument == "moving") {
                report(row, nodes, &measure_moving(row, nodes, [Seed(1); 2]));
            }
        }
    }
}
