//! The second phase: the gateway plans, wakes the network, and fetches the object.

use std::collections::BTreeMap;
use std::time::Instant as WallClock;

use chappe_core::{Duration, Seed};
use chappe_lab::plan::TransferStage;
use chappe_lab::results::{Bound, DATA_TRANSMISSIONS, Flow, Run};
use chappe_lab::run::watch::{Arrivals, Filmed};
use chappe_lab::run::{self, Meter, Outcome, RunError, WORK};
use chappe_p3::{Destination, Ended, Relay, Source};
use chappe_sim::{AirTime, Recorder, Simulator, World};

use super::plan::{CAPS, radio_bound_bps};
use super::role::{Held, Memory, Role};
use super::route::{Route, route};
use super::{Knowledge, P3, Prepared};

/// Power of a CC2420 that listens or sends: 18.8 mA at 3.0 V, the figures behind the paper's energy comparison. Sending
/// at 0 dBm takes 17.4 mA; like the paper we count 18.8 for both.
pub const RADIO_WATTS: f64 = 0.0188 * 3.0;

/// Without a limit in the scenario a run ends after ten minutes and this many times the least possible time. Nodes
/// give up by themselves much earlier.
const PATIENCE: f64 = 300.0;

/// Counter of the packets that were there when the first round was over.
pub const FIRST_ROUND: &str = "first_round_packets";
/// Counter of the packets of the object.
pub const PACKETS: &str = "packets";
/// Counter of the energy of the nodes in the plan, from the first wake-up frame to the last packet, in microjoules.
pub const ENERGY: &str = "energy_uj";
/// Counter of DATA frames that the source sent.
pub const SOURCE_DATA: &str = "source_data";
/// Counter of rounds.
pub const ROUNDS: &str = "rounds";
/// Counter of hops.
pub const HOPS: &str = "hops";
/// Counter of node-distinct paths that were found.
pub const PATHS: &str = "paths";
/// Counter of nodes that take part: relays, source and destination.
pub const ACTIVE: &str = "active_nodes";
/// Counter of the time from the first wake-up frame to the source's first packet, in microseconds.
pub const SETUP: &str = "setup_us";

/// One run to make.
pub type Attempt<'a> = run::Attempt<'a, P3, Prepared>;

/// Measures, plans, and carries the transfer of a prepared seed.
pub fn carry(attempt: Attempt<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let nodes = attempt.prepared.stage.medium.nodes();
    let Some(path) = attempt.pcap else {
        return Ok(recorded(attempt, Arrivals::new(nodes), meter)?.0);
    };
    let unwritable = |error| RunError::Write(format!("cannot write {}: {error}", path.display()));
    let film = Filmed::create(path, nodes).map_err(unwritable)?;
    let (outcome, film) = recorded(attempt, film, meter)?;
    film.finish().map_err(unwritable)?;
    Ok(outcome)
}

fn recorded<R: Recorder + AsRef<Arrivals>>(
    attempt: Attempt<'_>,
    recorder: R,
    meter: &Meter,
) -> Result<(Outcome, R), RunError> {
    let (mut outcome, recorder) = watched(attempt, recorder, meter)?;
    for flow in &mut outcome.run.flows {
        flow.delay_s = recorder.as_ref().delay(flow.sink);
    }
    Ok((outcome, recorder))
}

/// The same for whoever wants to follow the run with a recorder of its own.
pub fn watched<R: Recorder>(
    attempt: Attempt<'_>,
    recorder: R,
    meter: &Meter,
) -> Result<(Outcome, R), RunError> {
    meter.expect(WORK);
    let started = WallClock::now();
    let Attempt { with, prepared, .. } = attempt;
    let stage = &prepared.stage;
    let Some(transfer) = stage.transfers.first() else {
        return Err(RunError::Defect("a P³ scenario without a transfer".into()));
    };
    let (source, destination) = (transfer.source, transfer.receivers[0]);
    let packets = transfer.object.len().div_ceil(usize::from(with.payload)) as u32;
    let known = prepared.learn(with);
    let ends = (stage.seed, source, destination);
    let Some(route) = route(with, &known, ends, packets)? else {
        meter.advance(WORK);
        return Ok((nowhere(attempt, transfer, &known), recorder));
    };
    let mut simulator = launch(attempt, transfer, &route, recorder)?;
    let watch = drive(&mut simulator, attempt, &route, packets, meter)?;
    let mut outcome = report(&simulator, attempt, &route, &known, &watch);
    outcome.run.wall_s = started.elapsed().as_secs_f64();
    let (_, recorder, _) = simulator.into_parts();
    Ok((outcome, recorder))
}

/// The simulator with every node at its place, and the wake-up begun.
fn launch<R: Recorder>(
    attempt: Attempt<'_>,
    transfer: &TransferStage,
    route: &Route,
    recorder: R,
) -> Result<Simulator<Role, R>, RunError> {
    let Attempt { plan, prepared, .. } = attempt;
    let config = attempt.with.config.clone();
    let (source, destination) = (transfer.source, transfer.receivers[0]);
    let object = transfer.object.clone();
    let fresh = move |node: usize| -> Result<Box<Role>, RunError> {
        let (config, number) = (config.clone(), node as u16);
        let role = if node == source {
            Source::new(config, &CAPS, number, Held(object.clone())).map(Role::Source)
        } else if node == destination {
            let made = Destination::new(config, &CAPS, number, Memory::default());
            made.map(|mut node| {
                node.trace(true);
                Role::Destination(node)
            })
        } else {
            Relay::new(config, &CAPS, number).map(Role::Relay)
        };
        role.map(Box::new)
            .map_err(|error| RunError::Defect(error.to_string()))
    };
    let nodes = prepared.stage.medium.nodes();
    let roles = (0..nodes).map(&fresh).collect::<Result<Vec<_>, _>>()?;
    let mut world = World::new(prepared.stage.medium.clone());
    world.frame_max = CAPS.frame_max;
    let places = prepared.stage.medium.positions();
    let places = (!places.is_empty()).then_some(places);
    world.faults = plan
        .faults
        .iter()
        .map(|(at, fault)| (AirTime::ZERO + *at, fault.strike(places)))
        .collect();
    let defect = |error: &dyn std::fmt::Display| RunError::Defect(error.to_string());
    let seed = Seed(prepared.stage.seed);
    let mut simulator =
        Simulator::new(world, roles, seed, recorder).map_err(|error| defect(&error))?;
    simulator.set_reviver(move |node| {
        // It was made once with the same values, so it can be made again.
        fresh(node).unwrap_or_else(|error| unreachable!("a node cannot be made again: {error}"))
    });
    simulator.with_node(destination, |node, now| match node {
        Role::Destination(node) => node
            .start(route.plan, None, now)
            .map_err(|error| defect(&error)),
        _ => Err(RunError::Defect("the destination is another node".into())),
    })?;
    Ok(simulator)
}

/// What was seen on the way.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    /// Packets that were there when the first round was over.
    first_round: u32,
    /// Energy of the plan's nodes when the object was complete, in joules.
    energy: Option<f64>,
}

/// Runs until the source knows that the transfer is over, or the limit comes.
fn drive<R: Recorder>(
    simulator: &mut Simulator<Role, R>,
    attempt: Attempt<'_>,
    route: &Route,
    packets: u32,
    meter: &Meter,
) -> Result<Watch, RunError> {
    let octets = attempt.prepared.stage.transfers[0].object.len();
    let least = octets as f64 * 8.0 / radio_bound_bps();
    let given = attempt.plan.limit.map(|limit| limit.as_secs_f64());
    let limit = AirTime::from_nanos((given.unwrap_or(600.0 + PATIENCE * least) * 1e9) as u64);
    let active = active(route);
    let (mut watch, mut reported) = (Watch::default(), 0);
    simulator.run_while(limit, |simulator| {
        let (source, destination) = ends(simulator, route);
        let progress = destination.progress();
        if source.counts().rounds <= 1 {
            watch.first_round = progress.packets;
        }
        if progress.completed.is_some() && watch.energy.is_none() {
            watch.energy = Some(energy(simulator, &active));
        }
        let share = WORK * u64::from(progress.packets) / u64::from(packets.max(1));
        if share > reported {
            meter.advance(share - reported);
            reported = share;
        }
        // A source that never woke says nothing; then its destination gives up.
        let over = source.ended().is_some() || destination.is_idle();
        !over && !meter.stopped()
    });
    meter.advance(WORK.saturating_sub(reported));
    if meter.stopped() {
        return Err(RunError::Interrupted);
    }
    Ok(watch)
}

/// Source and destination of a running transfer.
fn ends<'a, R: Recorder>(
    simulator: &'a Simulator<Role, R>,
    route: &Route,
) -> (&'a Source<Held>, &'a Destination<Memory>) {
    let node = |number: u16| simulator.node(number.into());
    match (node(route.plan.source()), node(route.plan.destination())) {
        (Role::Source(source), Role::Destination(destination)) => (source, destination),
        _ => unreachable!("the plan's ends were made as such"),
    }
}

/// The nodes of a plan.
fn active(route: &Route) -> Vec<usize> {
    let plan = &route.plan;
    let relays = plan.relays().iter().map(|part| part.node);
    let all = relays.chain([plan.source(), plan.destination()]);
    all.map(usize::from).collect()
}

/// What these nodes' radios have used so far, in joules.
fn energy<R: Recorder>(simulator: &Simulator<Role, R>, nodes: &[usize]) -> f64 {
    let counters = &simulator.counters().nodes;
    let on = |&node: &usize| {
        let own = counters.get(node).copied().unwrap_or_default();
        (own.transmitting + own.listening).as_secs_f64()
    };
    nodes.iter().map(on).sum::<f64>() * RADIO_WATTS
}

/// A run that ended before it began: there is no way that the gateway knows of.
fn nowhere(attempt: Attempt<'_>, transfer: &TransferStage, known: &Knowledge) -> Outcome {
    let stage = &attempt.prepared.stage;
    let flow = flow(attempt, transfer, 0);
    let mut counters = BTreeMap::new();
    learned(&mut counters, known);
    let note = format!(
        "seed {}: the links that were measured lead from node {} to {} by no path of {} of their frames and more",
        stage.seed,
        transfer.source,
        transfer.receivers[0],
        chappe_p3::config::LINK_THRESHOLD,
    );
    Outcome {
        run: Run {
            seed: stage.seed,
            simulated_s: 0.0,
            wall_s: 0.0,
            events: 0,
            digest: format!("{:016x}", 0),
            bounds: vec![bound(&flow)],
            bound: Some(bound(&flow)),
            fairness: None,
            flows: vec![flow],
            counters,
        },
        copies: vec![None],
        notes: vec![note],
    }
}

fn report<R: Recorder>(
    simulator: &Simulator<Role, R>,
    attempt: Attempt<'_>,
    route: &Route,
    known: &Knowledge,
    watch: &Watch,
) -> Outcome {
    let stage = &attempt.prepared.stage;
    let transfer = &stage.transfers[0];
    let (source, destination) = ends(simulator, route);
    let (progress, object) = (destination.progress(), destination.store().object());
    let payload = route.plan.payload();
    let delivered = (progress.packets as usize * payload).min(transfer.object.len());
    let mut flow = flow(attempt, transfer, delivered);
    flow.completion_s = progress.completed.map(|at| at.as_secs_f64());
    flow.complete = progress.completed.is_some();
    flow.goodput_bps = flow
        .completion_s
        .map_or(0.0, |seconds| transfer.object.len() as f64 * 8.0 / seconds);
    flow.digest_ok =
        object.is_some_and(|object| blake3::hash(object) == blake3::hash(&transfer.object));
    let counters = counters(simulator, &attempt.with.config, route, known, watch);
    let bound = bound(&flow);
    let copy = object.filter(|_| attempt.copies).map(<[u8]>::to_vec);
    Outcome {
        notes: notes(stage.seed, source.ended(), &flow),
        run: Run {
            seed: stage.seed,
            simulated_s: simulator.now().as_secs_f64(),
            wall_s: 0.0,
            events: simulator.counters().events,
            digest: format!("{:016x}", simulator.digest()),
            flows: vec![flow],
            counters,
            bounds: vec![bound.clone()],
            bound: Some(bound),
            fairness: None,
        },
        copies: vec![copy],
    }
}

fn notes(seed: u64, ended: Option<Ended>, flow: &Flow) -> Vec<String> {
    if flow.complete {
        return Vec::new();
    }
    let why = match ended {
        Some(Ended::NoReply) => "no NACK came back to the source",
        Some(Ended::NoProgress) => "several rounds brought no packet to the destination",
        Some(Ended::TooLong) => "the object has more packets than can be numbered",
        Some(Ended::Complete) | None => "the transfer was not over when the run was",
    };
    vec![format!("seed {seed}: not finished: {why}")]
}

fn flow(attempt: Attempt<'_>, transfer: &TransferStage, delivered: usize) -> Flow {
    let sink = transfer.receivers[0];
    Flow {
        name: format!("r{sink}"),
        transfer: 0,
        source: transfer.source,
        sink,
        protocol: super::SYSTEM.name.into(),
        variant: attempt.with.variant.name().into(),
        offered_bytes: transfer.object.len() as u64,
        delivered_bytes: delivered as u64,
        complete: false,
        digest_ok: false,
        completion_s: None,
        goodput_bps: 0.0,
        delay_s: None,
    }
}

fn bound(flow: &Flow) -> Bound {
    let most = radio_bound_bps();
    Bound {
        name: "802.15.4 frames back to back".into(),
        goodput_bps: most,
        fraction: flow.goodput_bps / most,
    }
}

fn learned(counters: &mut BTreeMap<String, u64>, known: &Knowledge) {
    let millis = |span: Duration| span.nanos() / 1_000_000;
    counters.insert("measuring_ms".into(), millis(known.measuring));
    counters.insert("collecting_ms".into(), millis(known.collecting));
}

fn counters<R: Recorder>(
    simulator: &Simulator<Role, R>,
    config: &chappe_p3::Config,
    route: &Route,
    known: &Knowledge,
    watch: &Watch,
) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    learned(&mut counters, known);
    let mut add = |name: &str, count: u64| *counters.entry(name.to_string()).or_default() += count;
    let (source, destination) = ends(simulator, route);
    let counts = source.counts();
    add(SOURCE_DATA, counts.data);
    add("source_ctrl", counts.ctrl);
    add(ROUNDS, counts.rounds);
    add("single_rounds", counts.single_rounds);
    add(DATA_TRANSMISSIONS, counts.data);
    add(PACKETS, destination.progress().packets.into());
    add(FIRST_ROUND, watch.first_round.into());
    let plan = &route.plan;
    let active = active(route);
    add(HOPS, plan.hops().into());
    add(PATHS, route.paths as u64);
    add(ACTIVE, active.len() as u64);
    let setup = chappe_p3::setup_time(config, plan);
    add(SETUP, setup.nanos() / 1000);
    add("channel_order", plan.channels().number().into());
    let everybody: Vec<usize> = (0..simulator.counters().nodes.len()).collect();
    let joules = watch.energy.unwrap_or_else(|| energy(simulator, &active));
    add(ENERGY, (joules * 1e6) as u64);
    add(
        "network_energy_uj",
        (energy(simulator, &everybody) * 1e6) as u64,
    );
    for role in simulator.nodes() {
        let drops = match role {
            Role::Source(node) => node.drops(),
            Role::Relay(node) => {
                add("relay_frames", node.forwarded());
                add(DATA_TRANSMISSIONS, node.forwarded());
                node.drops()
            }
            Role::Destination(node) => node.drops(),
        };
        for (why, count) in drops.iter().filter(|(_, count)| *count > 0) {
            add(&format!("dropped_{why}"), count);
        }
    }
    let air = simulator.counters();
    add("frames", air.frames);
    add("receptions", air.receptions);
    for (why, count) in air.lost.iter().filter(|(_, count)| *count > 0) {
        add(&format!("lost_{why}"), count);
    }
    counters
}
