//! A scenario's run: connections opened, objects carried, what came compared and counted.

use std::collections::BTreeMap;
use std::time::Instant as WallClock;

use chappe_core::{Duration, Seed};
use chappe_lab::results::{Bound, DATA_TRANSMISSIONS, Flow, Run};
use chappe_lab::run::watch::{Arrivals, Filmed};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::{Carrier, Job};
use chappe_sim::{AirTime, Recorder};

use super::plan::{Tcplp, hops, leaves, tree};
use super::role::Role;
use super::scene::{Air, Ground, Lln, Scene, Transport};

/// How often it is asked whether all is there.
const STEP: Duration = Duration::from_millis(20);
/// Without a limit in the scenario a run ends when nothing has arrived for so long: twice the longest back-off of TCP and
/// more, beside what readings wait for.
const STALL: Duration = Duration::from_secs(300);
/// ... and after an hour in any case, beside ten times what the bound and the readings ask for.
const LIMIT: Duration = Duration::from_secs(3600);
const LIMIT_FACTOR: f64 = 10.0;
/// The port of the first connection (as [`Lln::connect`] counts them).
const FIRST_PORT: u16 = 49_153;

/// One connection.
#[derive(Clone, Copy, Debug)]
struct Path {
    transfer: usize,
    source: usize,
    sink: usize,
    port: u16,
    hops: usize,
    octets: usize,
}

/// Carries the transfers of one seed.
pub fn carry(with: &Tcplp, job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let nodes = job.stage.medium.nodes();
    let Some(path) = job.pcap else {
        return Ok(recorded(with, &job, Arrivals::new(nodes), meter)?.0);
    };
    let unwritable = |error| RunError::Write(format!("cannot write {}: {error}", path.display()));
    let film = Filmed::create(path, nodes).map_err(unwritable)?;
    let (outcome, film) = recorded(with, &job, film, meter)?;
    film.finish().map_err(unwritable)?;
    Ok(outcome)
}

fn recorded<R: Recorder>(
    with: &Tcplp,
    job: &Job<'_>,
    recorder: R,
    meter: &Meter,
) -> Result<(Outcome, R), RunError> {
    meter.expect(WORK);
    let started = WallClock::now();
    let nodes = job.stage.medium.nodes();
    let parents = tree(nodes, &job.stage.delivery);
    let scene = scene(with, job, &parents);
    let paths = paths(job, &parents);
    let mut roles = vec![Role::default(); nodes];
    for path in &paths {
        let object = job.stage.transfers[path.transfer].object.clone();
        roles[path.source].send(path.port, object, with.sensing);
        roles[path.sink].receive(path.port, path.octets);
    }
    let seed = Seed(job.stage.seed);
    let mut ground = Ground::of(&scene);
    let mut lln = scene.record(&mut ground, seed, |node| roles[node].clone(), recorder)?;
    revive(&mut lln, &scene, seed);
    for path in &paths {
        if !lln.connect(path.source, path.sink) {
            return Err(RunError::Defect("a connection without a socket".into()));
        }
    }
    drive(&mut lln, with, job, &paths, meter)?;
    let mut outcome = report(&lln, with, job, (&paths, &parents));
    outcome.run.wall_s = started.elapsed().as_secs_f64();
    let (_, recorder, _) = lln.simulator.into_parts();
    Ok((outcome, recorder))
}

/// The network as the experiments have it, with the scenario's parameters.
fn scene(with: &Tcplp, job: &Job<'_>, parents: &[Option<usize>]) -> Scene {
    let air = Air::Given(Box::new(job.stage.medium.clone()));
    let up = parents.iter().map(|parent| parent.unwrap_or(0));
    let nodes = 0..parents.len();
    let depth = nodes.filter_map(|node| hops(node, parents)).max();
    let sleeping = leaves(parents).filter_map(|leaf| {
        let sleep = with.sleep_under(parents[leaf]?)?;
        Some((leaf, sleep))
    });
    let places = job.stage.medium.positions();
    let places = (!places.is_empty()).then_some(places);
    let faults = job.plan.faults.iter();
    Scene {
        mac: with.mac,
        contexts: with.contexts,
        headers: with.short,
        pace: with.pace(depth.unwrap_or(1)),
        transport: Transport::new(with.tcp, with.window),
        leaves: sleeping.collect(),
        faults: faults
            .map(|(at, fault)| (AirTime::ZERO + *at, fault.strike(places)))
            .collect(),
        ..Scene::new(air, up.collect())
    }
}

fn paths(job: &Job<'_>, parents: &[Option<usize>]) -> Vec<Path> {
    let mut paths = Vec::new();
    for (transfer, stage) in job.stage.transfers.iter().enumerate() {
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
    let up = |node: usize| std::iter::successors(Some(node), |&at| parents.get(at).copied()?);
    let from_a: Vec<usize> = up(a).take(parents.len()).collect();
    for (down, node) in up(b).take(parents.len()).enumerate() {
        if let Some(climb) = from_a.iter().position(|&at| at == node) {
            return down + climb;
        }
    }
    1
}

/// A node that restarts has forgotten its connections, and what it was to send.
fn revive<'a, R: Recorder>(lln: &mut Lln<'a, Role, R>, scene: &Scene, seed: Seed) {
    let scene = scene.clone();
    let mut lives = 0;
    lln.simulator.set_reviver(move |node| {
        lives += 1;
        // Sockets borrow their memory for as long as the run; restarts are as few as the scenario's lines.
        let ground: &'static mut Ground = Box::leak(Box::new(Ground::of(&scene)));
        let lent = ground.each().nth(node);
        let lent = lent.unwrap_or_else(|| unreachable!("node {node} of a scene without it"));
        Box::new(scene.node(node, lent, seed.child(lives), Role::default()))
    });
}

fn drive<R: Recorder>(
    lln: &mut Lln<'_, Role, R>,
    with: &Tcplp,
    job: &Job<'_>,
    paths: &[Path],
    meter: &Meter,
) -> Result<(), RunError> {
    let total: usize = paths.iter().map(|path| path.octets).sum();
    let readings = with.sensing.map_or(Duration::ZERO, |sensing| {
        let longest = paths.iter().map(|path| path.octets).max().unwrap_or(0);
        sensing.every * longest.div_ceil(sensing.octets) as u64
    });
    let least: f64 = paths
        .iter()
        .map(|path| path.octets as f64 * 8.0 / with.bound_bps(path.hops))
        .sum();
    let own = LIMIT + readings + Duration::from_secs_f64(least * LIMIT_FACTOR);
    let limit = job.plan.limit.unwrap_or(own);
    let pause = with.sensing.map_or(Duration::ZERO, |sensing| {
        sensing.every * 2 * sensing.batch as u64
    });
    let stall = STALL + pause + with.sleep.unwrap_or_default() * 2;
    let (mut moved, mut before, mut reported) = (Duration::ZERO, 0, 0);
    lln.run_until(limit, STEP, |lln| {
        let came = arrived(lln, paths);
        if came > before {
            (before, moved) = (came, lln.now());
        }
        let share = WORK * came as u64 / total.max(1) as u64;
        if share > reported {
            meter.advance(share - reported);
            reported = share;
        }
        let done = paths.iter().all(|path| is_done(lln, path));
        let stuck = job.plan.limit.is_none() && lln.now().saturating_sub(moved) > stall;
        done || stuck || meter.stopped()
    });
    meter.advance(WORK.saturating_sub(reported));
    match meter.stopped() {
        true => Err(RunError::Interrupted),
        false => Ok(()),
    }
}

fn arrived<R: Recorder>(lln: &Lln<'_, Role, R>, paths: &[Path]) -> usize {
    let each = paths.iter().map(|path| {
        let came = lln.app(path.sink).came(path.port);
        came.map_or(0, |came| came.octets.len())
    });
    each.sum()
}

fn is_done<R: Recorder>(lln: &Lln<'_, Role, R>, path: &Path) -> bool {
    let came = lln.app(path.sink).came(path.port);
    came.is_some_and(|came| came.done.is_some())
}

fn report<R: Recorder>(
    lln: &Lln<'_, Role, R>,
    with: &Tcplp,
    job: &Job<'_>,
    (paths, parents): (&[Path], &[Option<usize>]),
) -> Outcome {
    let flows: Vec<Flow> = paths
        .iter()
        .map(|path| flow(lln, with, job, path))
        .collect();
    let copy = |path: &Path| {
        let came = lln.app(path.sink).came(path.port);
        came.filter(|came| job.copies && came.done.is_some())
            .map(|came| came.octets.clone())
    };
    let bounds: Vec<Bound> = (0..job.stage.transfers.len())
        .map(|transfer| bound(with, transfer, paths, &flows))
        .collect();
    Outcome {
        copies: paths.iter().map(copy).collect(),
        notes: notes(job.stage.seed, &flows, parents),
        run: Run {
            seed: job.stage.seed,
            simulated_s: lln.now().as_secs_f64(),
            wall_s: 0.0,
            events: lln.simulator.counters().events,
            digest: format!("{:016x}", lln.simulator.digest()),
            counters: counters(lln, paths, parents),
            bound: bounds.first().cloned(),
            fairness: None,
            bounds,
            flows,
        },
    }
}

fn flow<R: Recorder>(lln: &Lln<'_, Role, R>, with: &Tcplp, job: &Job<'_>, path: &Path) -> Flow {
    let object = &job.stage.transfers[path.transfer].object;
    let came = lln.app(path.sink).came(path.port);
    let (octets, done) = came.map_or((&[][..], None), |came| (&came.octets[..], came.done));
    let completion_s = done.map(|at| at.as_secs_f64());
    Flow {
        name: format!("r{}", path.sink),
        transfer: path.transfer,
        source: path.source,
        sink: path.sink,
        protocol: super::SYSTEM.name.into(),
        variant: with.variant().name.into(),
        offered_bytes: object.len() as u64,
        delivered_bytes: octets.len().min(object.len()) as u64,
        complete: done.is_some(),
        digest_ok: done.is_some() && blake3::hash(octets) == blake3::hash(object),
        completion_s,
        goodput_bps: completion_s.map_or(0.0, |seconds| object.len() as f64 * 8.0 / seconds),
        delay_s: None,
    }
}

/// That of a transfer to its farthest receiver: the slowest one cannot do better, and others on the same air only worse.
fn bound(with: &Tcplp, transfer: usize, paths: &[Path], flows: &[Flow]) -> Bound {
    let own = paths.iter().filter(|path| path.transfer == transfer);
    let hops = own.map(|path| path.hops).max().unwrap_or(1);
    let own = flows.iter().filter(|flow| flow.transfer == transfer);
    let slowest = own
        .map(|flow| flow.goodput_bps)
        .fold(f64::INFINITY, f64::min);
    let mut goodput_bps = with.bound_bps(hops);
    let mut name = format!(
        "exchanges that must not overlap, {hops} hop{}",
        if hops == 1 { "" } else { "s" }
    );
    if let Some(sensing) = with.sensing {
        let made = sensing.octets as f64 * 8.0 / sensing.every.as_secs_f64();
        if made < goodput_bps {
            (goodput_bps, name) = (made, "readings as they are made".into());
        }
    }
    Bound {
        name,
        goodput_bps,
        fraction: slowest.min(f64::MAX) / goodput_bps,
    }
}

fn notes(seed: u64, flows: &[Flow], parents: &[Option<usize>]) -> Vec<String> {
    let mut notes = Vec::new();
    let lost = (1..parents.len()).filter(|&node| hops(node, parents).is_none());
    let lost = lost.map(|node| node.to_string()).collect::<Vec<_>>();
    if !lost.is_empty() {
        notes.push(format!(
            "seed {seed}: no tree reaches node {}",
            lost.join(", ")
        ));
    }
    for flow in flows.iter().filter(|flow| !flow.complete) {
        notes.push(format!(
            "seed {seed}: not finished: {} to {} got {} of {} octets",
            flow.source, flow.sink, flow.delivered_bytes, flow.offered_bytes
        ));
    }
    notes
}

fn counters<R: Recorder>(
    lln: &Lln<'_, Role, R>,
    paths: &[Path],
    parents: &[Option<usize>],
) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut add = |name: &str, count: u64| *counters.entry(name.to_string()).or_default() += count;
    let counts = lln.counts();
    for (node, own) in counts.nodes.iter().enumerate() {
        add(DATA_TRANSMISSIONS, own.data_sent);
        add("frame_retries", own.retries);
        add("frames_given_up", own.failed);
        add("frames_forwarded", own.frames_forwarded);
        add("packets_marked", own.marked);
        add("packets_lost", own.lowpan_lost);
        add("data_requests", own.requests_sent);
        add("tcp_segments", own.segments);
        add("tcp_retransmits", own.retransmits);
        add("tcp_timeouts", own.timeouts);
        add("tcp_recoveries", own.recoveries);
        // In parts per million of the time.
        let duty = (counts.radio_duty(node) * 1e6) as u64;
        add(&format!("radio_on_ppm_n{node}"), duty);
    }
    add("frames_collided", counts.collided);
    let farthest = paths.iter().map(|path| path.hops).max().unwrap_or(0);
    add("hops", farthest as u64);
    let depth = (0..parents.len()).filter_map(|node| hops(node, parents));
    add("tree_depth", depth.max().unwrap_or(0) as u64);
    for (why, count) in lln.simulator.counters().lost.iter() {
        if count > 0 {
            add(&format!("lost_{why}"), count);
        }
    }
    counters
}
