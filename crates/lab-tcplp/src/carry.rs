//! One seed of a scenario: it opens the connections, carries the objects, compares the copies and reports the counters.

use chappe_core::{Duration, Seed};
use chappe_lab::carry::{self, Limits, Receipt, Record, Report, Watch};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::Job;
use chappe_results::DATA_TRANSMISSIONS;
use chappe_scenario::{Plan, Settings};
use chappe_sim::Reading;
use chappe_tcplp::tcp::{self, Gauges, State};

use super::app::App;
use super::experiment::{Air, Experiment};
use super::label::label;
use super::lln::Lln;
use super::plan::{SYSTEM, Tcplp};
use super::polls::Polls;
use super::role::{Incoming, Role};
use super::socket_memory::SocketMemory;
use super::station::{CHILDREN, Node};
use super::transport::Transport;
use super::tree::{hops, leaves, tree};

/// The interval of the checks whether all objects are complete.
const STEP: Duration = Duration::from_millis(20);
/// Without a limit in the scenario, a run ends when nothing has arrived for this time, plus the time that readings wait. It is
/// more than twice TCP's longest back-off.
const STALL: Duration = Duration::from_secs(300);
/// A run without a limit ends after this time at the latest, plus the readings' time and ten times the bound's.
const LIMIT: Duration = Duration::from_secs(3600);
const LIMIT_FACTOR: f64 = 10.0;
/// The port of the first connection (as [`Lln::connect`] counts them).
const FIRST_PORT: u16 = 49_153;

/// One connection, for one receiver of a transfer.
#[derive(Clone, Copy, Debug)]
struct Path {
    transfer: usize,
    source: usize,
    sink: usize,
    port: u16,
    hops: usize,
    octets: usize,
}

/// Carries the transfers of one seed, with the settings of the job's plan.
pub fn run(job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    // A network of TCPlp needs no preparation, so that share of the work is done at once.
    meter.advance(WORK);
    carry(Tcplp::of(job.plan)?, &job, meter)
}

/// Carries the transfers of one seed by `with`.
pub fn carry(with: &Tcplp, job: &Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    meter.expect(WORK);
    let mut report = Report::begin((&SYSTEM, with.variant()), job.network.seed);
    let watch = Watch::new(job.spec(), &job.network.medium, label)?;
    let parents = tree(job.network.medium.nodes(), &job.network.delivery);
    let paths = paths(job, &parents);
    let experiment = set_up(with, job, &parents, &paths);
    crowded(&experiment, job)?;
    // Connections are opened in the order of `paths` on ascending ports, so a port identifies its transfer at both ends.
    let mut roles = vec![Role::default(); parents.len()];
    for path in &paths {
        let object = job.network.transfers[path.transfer].object.clone();
        roles[path.source].send(path.port, object, with.sensing);
        roles[path.sink].receive(path.port, path.octets);
    }
    let seed = Seed(job.network.seed);
    let mut memory = experiment.memory();
    let roles = |node: usize| App::Role(std::mem::take(&mut roles[node]));
    let mut lln = experiment.record(&mut memory, seed, roles, Record::Scenario(watch))?;
    revive(&mut lln, &experiment, seed);
    for path in &paths {
        if !lln.connect(path.source, path.sink) {
            return Err(RunError::Defect("a connection without a socket".into()));
        }
    }
    let total: usize = paths.iter().map(|path| path.octets).sum();
    let mut seen = vec![Vec::new(); parents.len()];
    carry::run_in_steps(
        &mut lln,
        (STEP, limits(with, job.plan, &paths)),
        |lln| (lln.simulator.now(), lln.simulator.counters().events),
        |lln, until| {
            lln.simulator.run_until(until);
            lln.simulator.read(|node, reader| {
                let seen = &mut seen[reader.node()];
                observe(node, seen, &mut |reading| reader.show(reading));
            });
        },
        |lln| {
            let arrived = paths.iter().filter_map(|path| received(lln, path));
            let arrived: usize = arrived.map(|object| object.octets.len()).sum();
            let done =
                |path: &Path| received(lln, path).is_some_and(|object| object.done.is_some());
            (arrived as u64, total as u64, paths.iter().all(done))
        },
        meter,
    )?;
    report_run(&mut report, &lln, with, job, (&paths, &parents))?;
    let (_, record, _) = lln.simulator.into_parts();
    if let Some(watch) = record.into_watch() {
        watch.finish(job.spec(), &job.network.medium)?;
    }
    Ok(report.finish())
}

/// What each connection of a node holds: octets, and times in milliseconds. `seen` is what it held when it was shown last.
fn observe(node: &Node<'_>, seen: &mut Vec<Option<Gauges>>, show: &mut dyn FnMut(Reading)) {
    for (part, socket) in node.link.host().host.sockets().iter().enumerate() {
        if seen.len() <= part {
            seen.resize(part + 1, None);
        }
        let held = socket.gauges();
        if held.state == State::Closed || seen[part] == Some(held) {
            continue;
        }
        seen[part] = Some(held);
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        for (name, value) in [
            ("sequence", held.sequence.into()),
            ("in_flight", held.in_flight.into()),
            ("congestion_window", held.cwnd.into()),
            ("send_window", held.send_window.into()),
            ("round_trip_ms", millis(held.srtt)),
            ("timeout_ms", millis(socket.rto())),
        ] {
            show(Reading::number(name, part as u32, value));
        }
    }
}

/// Refuses a parent of more sleeping leaves than it can know: it would send their frames while they sleep.
fn crowded(experiment: &Experiment, job: &Job<'_>) -> Result<(), RunError> {
    let mut children = std::collections::BTreeMap::<usize, usize>::new();
    for (leaf, _) in &experiment.leaves {
        *children.entry(experiment.parents[*leaf]).or_default() += 1;
    }
    let Some((node, leaves)) = children.into_iter().find(|(_, leaves)| *leaves > CHILDREN) else {
        return Ok(());
    };
    let message = format!("node {node} is the parent of {leaves} leaves that sleep");
    let error = job.plan.transfer_error(0, "in this network", message);
    let error = error.help(format!(
        "{CHILDREN} at most: use fewer nodes, or spread them"
    ));
    Err(RunError::Input(Box::new(error)))
}

/// The experiment that a scenario describes: its medium, its tree and its settings.
fn set_up(with: &Tcplp, job: &Job<'_>, parents: &[Option<usize>], paths: &[Path]) -> Experiment {
    let air = Air::Given(Box::new(job.network.medium.clone()));
    let up = parents.iter().map(|parent| parent.unwrap_or(0));
    let nodes = 0..parents.len();
    let depth = nodes.filter_map(|node| hops(node, parents)).max();
    // Between two branches a packet goes up and down, over more hops than the tree is deep.
    let longest = paths.iter().map(|path| path.hops).max().max(depth);
    let sleeping = leaves(parents).filter_map(|leaf| {
        let sleep = with.sleep_under(parents[leaf]?)?;
        Some((leaf, sleep))
    });
    let sleeping: Vec<_> = sleeping.collect();
    let config = tcp::Config {
        delayed_ack: with.leaf_ack_delay,
        ..with.tcp
    };
    let transport = Transport::new(config, with.window);
    Experiment {
        mac: with.mac,
        contexts: with.contexts,
        headers: with.short,
        pace: with.pace(longest.unwrap_or(1)),
        transport: Transport::new(with.tcp, with.window),
        transports: sleeping
            .iter()
            .map(|(leaf, _)| (*leaf, transport))
            .collect(),
        leaves: sleeping,
        faults: carry::faults(job.plan, &job.network, Duration::ZERO),
        ..Experiment::new(air, up.collect())
    }
}

fn paths(job: &Job<'_>, parents: &[Option<usize>]) -> Vec<Path> {
    let mut paths = Vec::new();
    for (transfer, stage) in job.network.transfers.iter().enumerate() {
        for &sink in &stage.receivers {
            paths.push(Path {
                transfer,
                source: stage.source,
                sink,
                port: FIRST_PORT + paths.len() as u16,
                hops: between(stage.source, sink, parents),
                octets: stage.object.len(),
            });
        }
    }
    paths
}

/// Hops from one node to another along the tree.
fn between(a: usize, b: usize, parents: &[Option<usize>]) -> usize {
    (route(a, b, parents).len() - 1).max(1)
}

/// The nodes from one to another along the tree; the two alone if it has no path between them.
fn route(a: usize, b: usize, parents: &[Option<usize>]) -> Vec<usize> {
    let up = |node: usize| std::iter::successors(Some(node), |&at| parents.get(at).copied()?);
    let from_a: Vec<usize> = up(a).take(parents.len()).collect();
    let from_b: Vec<usize> = up(b).take(parents.len()).collect();
    for (down, node) in from_b.iter().enumerate() {
        if let Some(climb) = from_a.iter().position(|at| at == node) {
            let there = from_a[..=climb].iter();
            return there.chain(from_b[..down].iter().rev()).copied().collect();
        }
    }
    vec![a, b]
}

/// Lets nodes restart. A restarted node has lost its connections and its objects.
fn revive(lln: &mut Lln<'_>, experiment: &Experiment, seed: Seed) {
    let experiment = experiment.clone();
    let mut lives = 0;
    lln.simulator.set_reviver(move |node| {
        lives += 1;
        // Sockets borrow their memory for the whole run, and no owner outside this closure lives that long. The leak is
        // bounded by the number of restarts, which the scenario lists.
        let memory: &'static mut SocketMemory = Box::leak(Box::new(experiment.memory()));
        let lent = memory.each().nth(node);
        let lent = lent.unwrap_or_else(|| unreachable!("the experiment has no node {node}"));
        // A seed for each life: the node does not repeat the back-offs of the life before.
        Box::new(experiment.node(node, lent, seed.child(lives), App::default()))
    });
}

/// When the run ends: by the scenario's limits, otherwise by [`STALL`] and [`LIMIT`].
fn limits(with: &Tcplp, plan: &Plan, paths: &[Path]) -> Limits {
    let readings = with.sensing.map_or(Duration::ZERO, |sensing| {
        let longest = paths.iter().map(|path| path.octets).max().unwrap_or(0);
        sensing.every * longest.div_ceil(sensing.octets) as u64
    });
    let least = paths.iter();
    let least: f64 = least
        .map(|path| path.octets as f64 * 8.0 / with.bound_bps(path.hops))
        .sum();
    let pause = with.sensing.map_or(Duration::ZERO, |sensing| {
        sensing.every * 2 * sensing.batch as u64
    });
    let stall = STALL + pause + with.sleep.unwrap_or_default() * 2;
    let usual = (LIMIT + readings).as_secs_f64() + least * LIMIT_FACTOR;
    Limits::within(plan, usual).stalling(plan, stall.as_secs_f64())
}

/// The object at the far end of a connection.
fn received<'l>(lln: &'l Lln<'_>, path: &Path) -> Option<&'l Incoming> {
    match lln.app(path.sink) {
        App::Role(role) => role.received(path.port),
        _ => None,
    }
}

/// Reports the run: its receipts, bounds, notes and counters.
fn report_run(
    report: &mut Report,
    lln: &Lln<'_>,
    with: &Tcplp,
    job: &Job<'_>,
    (paths, parents): (&[Path], &[Option<usize>]),
) -> Result<(), RunError> {
    report.air(job.spec(), &lln.simulator)?;
    for path in paths {
        let completed_s = |at| lln.simulator.air_time(path.sink, at).as_secs_f64();
        let receipt = received(lln, path).map_or_else(Receipt::default, |object| Receipt {
            octets: object.octets.len(),
            completed_s: object.done.map(completed_s),
            copy: Some(&object.octets),
            delay: None,
        });
        let transfer = &job.network.transfers[path.transfer];
        report.receipt(path.transfer, transfer, path.sink, receipt, job.copies);
    }
    for transfer in 0..job.network.transfers.len() {
        let (name, goodput_bps) = bound(with, transfer, paths);
        report.bound(name, goodput_bps, transfer);
    }
    let lost = (1..parents.len()).filter(|&node| hops(node, parents).is_none());
    let lost = lost.map(|node| node.to_string()).collect::<Vec<_>>();
    if !lost.is_empty() {
        report.note(format!("no path leads to node {}", lost.join(", ")));
    }
    report.note_unfinished();
    note_polls(report, lln, with, job, (paths, parents));
    count(report, lln, paths, parents);
    Ok(())
}

/// Notes where data requests destroy the packets of a connection that has not finished, or their acknowledgements, or come too seldom.
fn note_polls(
    report: &mut Report,
    lln: &Lln<'_>,
    with: &Tcplp,
    job: &Job<'_>,
    (paths, parents): (&[Path], &[Option<usize>]),
) {
    let Some(polls) = Polls::new(with, &job.network, parents) else {
        return;
    };
    let is_done = |path: &Path| received(lln, path).is_some_and(|object| object.done.is_some());
    for path in paths.iter().filter(|path| !is_done(path)) {
        let there = route(path.source, path.sink, parents);
        let back: Vec<usize> = there.iter().rev().copied().collect();
        let destroyed = polls.destroyed(&there).or_else(|| polls.destroyed(&back));
        if let Some(sentence) = polls.outlasts_tcp(&there).or(destroyed) {
            report.note(sentence);
        }
    }
}

/// The name and the value in bit/s of a transfer's bound: that of its farthest receiver. The slowest receiver cannot exceed
/// it, and other transfers on the same medium only slow it down.
fn bound(with: &Tcplp, transfer: usize, paths: &[Path]) -> (String, f64) {
    let own = paths.iter().filter(|path| path.transfer == transfer);
    let hops = own.map(|path| path.hops).max().unwrap_or(1);
    let goodput_bps = with.bound_bps(hops);
    if let Some(sensing) = with.sensing {
        let made = sensing.octets as f64 * 8.0 / sensing.every.as_secs_f64();
        if made < goodput_bps {
            return ("readings as they are made".into(), made);
        }
    }
    let plural = if hops == 1 { "" } else { "s" };
    let name = format!("exchanges that must not overlap, {hops} hop{plural}");
    (name, goodput_bps)
}

fn count(report: &mut Report, lln: &Lln<'_>, paths: &[Path], parents: &[Option<usize>]) {
    let counts = lln.counts();
    for (node, own) in counts.nodes.iter().enumerate() {
        report.count(DATA_TRANSMISSIONS, own.data_sent);
        report.count("frame_retries", own.retries);
        report.count("frames_given_up", own.failed);
        report.count("frames_forwarded", own.frames_forwarded);
        report.count("packets_marked", own.marked);
        report.count("packets_lost", own.lowpan_lost);
        report.count("data_requests", own.requests_sent);
        report.count("tcp_segments", own.segments);
        report.count("tcp_retransmits", own.retransmits);
        report.count("tcp_timeouts", own.timeouts);
        report.count("tcp_recoveries", own.recoveries);
        // Counters are integers, so the duty cycle is in parts per million.
        let duty = (counts.radio_duty(node) * 1e6) as u64;
        report.count(&format!("radio_on_ppm_n{node}"), duty);
    }
    report.count("frames_collided", counts.collided);
    let farthest = paths.iter().map(|path| path.hops).max().unwrap_or(0);
    report.count("hops", farthest as u64);
    let depth = (0..parents.len()).filter_map(|node| hops(node, parents));
    report.count("tree_depth", depth.max().unwrap_or(0) as u64);
}
