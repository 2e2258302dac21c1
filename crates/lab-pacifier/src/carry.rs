//! The second phase: the transfer itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant as WallClock;

use chappe_core::{Address, OverMac, Purpose, Seed};
use chappe_lab::plan::TransferStage;
use chappe_lab::results::{DATA_TRANSMISSIONS, Flow, Run};
use chappe_lab::run::watch::{Arrivals, Filmed};
use chappe_lab::run::{self, Meter, Outcome, RunError, WORK};
use chappe_mac::dot11::Dot11;
use chappe_pacifier::paper::{self, Variant, more};
use chappe_pacifier::{Config, Links, Node};
use chappe_sim::{AirTime, Recorder, Simulator, World};

use super::{Pacifier, Prepared};

/// A node of ours on 802.11.
type Station = OverMac<Dot11, Node>;

/// Streams of coding vectors, apart from those of back-offs: node n's stands this far up.
const CODING: u32 = 1 << 16;

/// Without a limit in the scenario a run ends when it has taken ten minutes and this many times as long as the
/// bound says it must.
const PATIENCE: f64 = 300.0;

/// ... or when for this long, and half an hour more on networks that need a minute or longer, nobody has decoded a
/// batch. MORE with a receiver cut off stalls for ever.
const STALL_S: f64 = 120.0;

/// How much longer a stall is for each second that the bound asks for, of which a minute counts.
const STALL_FACTOR: f64 = 30.0;

/// One run to make.
pub type Attempt<'a> = run::Attempt<'a, Pacifier, Prepared>;

/// Carries the transfers of a prepared seed.
pub fn carry(attempt: Attempt<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let nodes = attempt.prepared.stage.medium.nodes();
    let Some(path) = attempt.pcap else {
        return Ok(recorded(attempt, Arrivals::new(nodes), meter)?.0);
    };
    let unwritable = |error| RunError::Write(format!("cannot write {}: {error}", path.display()));
    let (outcome, film) = recorded(
        attempt,
        Filmed::create(path, nodes).map_err(unwritable)?,
        meter,
    )?;
    film.finish().map_err(unwritable)?;
    Ok(outcome)
}

fn recorded<R: Recorder + AsRef<Arrivals>>(
    attempt: Attempt<'_>,
    recorder: R,
    meter: &Meter,
) -> Result<(Outcome, R), RunError> {
    let started = WallClock::now();
    let (mut simulator, crew) = launch(attempt, recorder)?;
    let simulated = drive(&mut simulator, attempt, &crew, meter)?;
    let mut outcome = report(&simulator, attempt, &crew);
    let (_, recorder, _) = simulator.into_parts();
    for flow in &mut outcome.run.flows {
        flow.delay_s = recorder.as_ref().delay(flow.sink);
    }
    outcome.run.simulated_s = simulated;
    outcome.run.wall_s = started.elapsed().as_secs_f64();
    Ok((outcome, recorder))
}

/// Everything about the nodes' jobs that is known when the transfer starts.
struct Crew {
    config: Config,
    /// Receivers that the nodes' own links do not lead to: (transfer, node).
    unreachable: Vec<(usize, usize)>,
    forwarders: usize,
    notes: Vec<String>,
}

/// The simulator with every node at its place and every transfer offered.
fn launch<R: Recorder>(
    attempt: Attempt<'_>,
    recorder: R,
) -> Result<(Simulator<Station, R>, Crew), RunError> {
    let Attempt {
        plan,
        with,
        prepared,
        ..
    } = attempt;
    let defect = |error: &dyn std::fmt::Display| RunError::Defect(error.to_string());
    let config = tuned(with, prepared);
    let factory = Factory {
        config: config.clone(),
        mac: with.mac,
        links: prepared.links.clone(),
        seed: Seed(prepared.stage.seed),
        transfers: prepared.stage.transfers.clone(),
    };
    let nodes = prepared.stage.medium.nodes();
    let stations = (0..nodes)
        .map(|node| factory.station(node, 0))
        .collect::<Result<Vec<_>, _>>()?;
    let mut world = World::new(prepared.stage.medium.clone());
    let places = prepared.stage.medium.positions();
    let places = (!places.is_empty()).then_some(places);
    let faults = plan.faults.iter();
    world.faults = faults
        .map(|(at, fault)| (AirTime::ZERO + *at, fault.strike(places)))
        .collect();
    let mut simulator =
        Simulator::new(world, stations, factory.seed, recorder).map_err(|e| defect(&e))?;
    let mut crew = Crew {
        config,
        unreachable: Vec::new(),
        forwarders: 0,
        notes: Vec::new(),
    };
    for (index, transfer) in prepared.stage.transfers.iter().enumerate() {
        let offered = simulator.with_node(transfer.source, |station, _| {
            factory.offer(station, transfer)
        })?;
        crew.forwarders += offered.forwarders;
        for lost in offered.unreachable {
            crew.unreachable.push((index, usize::from(lost)));
            crew.notes.push(format!(
                "seed {}: the probes found no path from {} to receiver {lost} and back, so it is not waited for",
                prepared.stage.seed, transfer.source
            ));
        }
        for lost in offered.cut_off {
            crew.notes.push(format!(
                "seed {}: MORE's pruning leaves receiver {lost} without forwarders",
                prepared.stage.seed
            ));
        }
    }
    if plan
        .faults
        .iter()
        .any(|(_, fault)| matches!(fault.strike(None), chappe_sim::Fault::Restart(_)))
    {
        let mut lives = 0;
        simulator.set_reviver(move |node| {
            lives += 1;
            // It was made once with the same values, so it can be made again.
            factory.revived(node, lives)
        });
    }
    Ok((simulator, crew))
}

/// Pacifier's parameters, with MORE's threshold found if it is to be.
fn tuned(with: &Pacifier, prepared: &Prepared) -> Config {
    let mut config = with.protocol.config.clone();
    if let (true, Config::Paper(config)) = (with.protocol.tuned, &mut config) {
        let percents = prepared.stage.transfers.iter().map(|transfer| {
            let receivers: Vec<u16> = transfer.receivers.iter().map(|&node| node as u16).collect();
            more::tuned_prune_percent(&prepared.links, transfer.source as u16, &receivers)
        });
        let percent = percents.min().unwrap_or(10);
        config.variant = Variant::More {
            prune: more::prune_share(percent),
        };
    }
    config
}

/// Makes stations, again after a crash.
struct Factory {
    config: Config,
    mac: chappe_mac::dot11::Config,
    links: Arc<Links>,
    seed: Seed,
    transfers: Vec<TransferStage>,
}

impl Factory {
    /// Station `node` in its n-th life, ready to receive what it shall.
    fn station(&self, node: usize, life: u32) -> Result<Box<Station>, RunError> {
        let defect = |error: &dyn std::fmt::Display| RunError::Defect(error.to_string());
        let seed = if life == 0 {
            self.seed
        } else {
            self.seed.child(u64::from(life))
        };
        let coding = seed.stream(Purpose::Node(CODING + node as u32));
        let mut link = Node::new(self.config.clone(), node as u16, self.links.clone(), coding)
            .map_err(|error| defect(&error))?;
        for transfer in self
            .transfers
            .iter()
            .filter(|transfer| transfer.receivers.contains(&node))
        {
            link.expect(transfer.source as u16, transfer.object.len())
                .map_err(|error| RunError::Defect(format!("expect: {error:?}")))?;
            link.trace(true);
        }
        let mac = Dot11::new(
            self.mac,
            Address::node(node as u16),
            seed.stream(Purpose::Node(node as u32)),
        );
        Ok(Box::new(OverMac::new(mac, link)))
    }

    fn offer(
        &self,
        station: &mut Station,
        transfer: &TransferStage,
    ) -> Result<chappe_pacifier::Offered, RunError> {
        let receivers: Vec<u16> = transfer.receivers.iter().map(|&node| node as u16).collect();
        let offered = station.link.offer(transfer.object.clone(), &receivers);
        offered.map_err(|error| RunError::Defect(format!("offer: {error:?}")))
    }

    /// A crashed node starts again with what its disk holds: the object it sends, and what it shall receive.
    fn revived(&self, node: usize, life: u32) -> Box<Station> {
        let made = self.station(node, life).and_then(|mut station| {
            for transfer in self
                .transfers
                .iter()
                .filter(|transfer| transfer.source == node)
            {
                self.offer(&mut station, transfer)?;
            }
            Ok(station)
        });
        made.unwrap_or_else(|error| {
            unreachable!("a node that was made before cannot be made again: {error}")
        })
    }
}

/// Runs until everybody is done, the limit comes, or nothing moves any more. Returns the seconds simulated.
fn drive<R: Recorder>(
    simulator: &mut Simulator<Station, R>,
    attempt: Attempt<'_>,
    crew: &Crew,
    meter: &Meter,
) -> Result<f64, RunError> {
    let Attempt { plan, prepared, .. } = attempt;
    let transfers = &prepared.stage.transfers;
    let mut waiting: Vec<usize> = Vec::new();
    for (index, transfer) in transfers.iter().enumerate() {
        let reachable = transfer
            .receivers
            .iter()
            .filter(|&&node| !crew.unreachable.contains(&(index, node)));
        waiting.extend(reachable);
    }
    let sources: Vec<usize> = transfers.iter().map(|transfer| transfer.source).collect();
    let mut progress = Seen::new(&waiting, meter);
    let (limit, stall) = limits(attempt);
    simulator.run_while(AirTime::from_nanos((limit * 1e9) as u64), |simulator| {
        let complete = |node: usize| simulator.node(node).link.received().complete_at.is_some();
        while waiting.last().is_some_and(|&node| complete(node)) {
            waiting.pop();
        }
        let done = waiting.is_empty()
            && sources
                .iter()
                .all(|&node| simulator.node(node).link.source_done());
        !done
            && progress.goes_on(simulator, meter, plan.limit.is_none().then_some(stall))
            && !meter.stopped()
    });
    progress.finish(meter);
    if meter.stopped() {
        return Err(RunError::Interrupted);
    }
    Ok(simulator.now().as_secs_f64())
}

/// When to give up, in seconds of air: in any case, and when no batch was decoded for so long.
fn limits(attempt: Attempt<'_>) -> (f64, f64) {
    let Attempt { plan, prepared, .. } = attempt;
    let least = prepared
        .stage
        .transfers
        .iter()
        .zip(&prepared.bounds)
        .map(|(transfer, bound)| transfer.object.len() as f64 * 8.0 / bound.worst_bps.max(1.0));
    let least = least.fold(0.0, f64::max);
    let given = plan.limit.map(|limit| limit.as_secs_f64());
    let last_fault = plan
        .faults
        .iter()
        .map(|(at, _)| at.as_secs_f64())
        .fold(0.0, f64::max);
    let stall = STALL_S + STALL_FACTOR * least.min(60.0);
    (
        given.unwrap_or(600.0 + PATIENCE * least + last_fault),
        stall + last_fault,
    )
}

/// What has arrived, looked at once in a second of air.
struct Seen {
    receivers: Vec<usize>,
    batches: u64,
    total: u64,
    reported: u64,
    moved_at: f64,
    next_look: f64,
}

impl Seen {
    fn new(receivers: &[usize], meter: &Meter) -> Seen {
        meter.expect(WORK);
        Seen {
            receivers: receivers.to_vec(),
            batches: 0,
            total: 1,
            reported: 0,
            moved_at: 0.0,
            next_look: 0.0,
        }
    }

    fn goes_on<R: Recorder>(
        &mut self,
        simulator: &Simulator<Station, R>,
        meter: &Meter,
        stall: Option<f64>,
    ) -> bool {
        let now = simulator.now().as_secs_f64();
        if now < self.next_look {
            return true;
        }
        self.next_look = now + 1.0;
        let progress = self
            .receivers
            .iter()
            .map(|&node| simulator.node(node).link.received());
        let (done, total) = progress.fold((0, 0), |(done, total), progress| {
            (
                done + u64::from(progress.batches_done),
                total + u64::from(progress.batches),
            )
        });
        if done != self.batches {
            (self.batches, self.moved_at) = (done, now);
        }
        self.total = total.max(1);
        let share = WORK * done / self.total;
        meter.advance(share.saturating_sub(self.reported));
        self.reported = share.max(self.reported);
        stall.is_none_or(|stall| now - self.moved_at < stall)
    }

    fn finish(&mut self, meter: &Meter) {
        meter.advance(WORK - self.reported);
    }
}

fn report<R: Recorder>(
    simulator: &Simulator<Station, R>,
    attempt: Attempt<'_>,
    crew: &Crew,
) -> Outcome {
    let Attempt {
        with,
        prepared,
        copies,
        ..
    } = attempt;
    let mut outcome = Outcome {
        run: Run {
            seed: prepared.stage.seed,
            simulated_s: 0.0,
            wall_s: 0.0,
            events: simulator.counters().events,
            digest: format!("{:016x}", simulator.digest()),
            flows: Vec::new(),
            counters: counters(simulator, crew),
            bounds: Vec::new(),
            bound: None,
            fairness: None,
        },
        copies: Vec::new(),
        notes: crew.notes.clone(),
    };
    for (index, transfer) in prepared.stage.transfers.iter().enumerate() {
        let digest = blake3::hash(&transfer.object);
        let first = outcome.run.flows.len();
        for &node in &transfer.receivers {
            let link = &simulator.node(node).link;
            let copy = link.object();
            outcome.run.flows.push(Flow {
                digest_ok: copy.is_some_and(|copy| blake3::hash(copy) == digest),
                ..flow(with, index, transfer, node, link)
            });
            outcome
                .copies
                .push(copy.filter(|_| copies).map(<[u8]>::to_vec));
        }
        let flows: Vec<&Flow> = outcome.run.flows[first..].iter().collect();
        outcome
            .run
            .bounds
            .extend(prepared.bounds.get(index).map(|bound| bound.report(&flows)));
    }
    outcome.run.bound = outcome.run.bounds.first().cloned();
    outcome
}

pub(super) fn flow(
    with: &Pacifier,
    index: usize,
    transfer: &TransferStage,
    node: usize,
    link: &Node,
) -> Flow {
    let (progress, offered) = (link.received(), transfer.object.len());
    let completion_s = progress.complete_at.map(|at| at.as_secs_f64());
    Flow {
        name: format!("r{node}"),
        transfer: index,
        source: transfer.source,
        sink: node,
        protocol: "pacifier".into(),
        variant: with.protocol.variant.name().into(),
        offered_bytes: offered as u64,
        delivered_bytes: progress.bytes as u64,
        complete: completion_s.is_some(),
        digest_ok: false,
        completion_s,
        goodput_bps: completion_s.map_or(0.0, |seconds| offered as f64 * 8.0 / seconds),
        delay_s: None,
    }
}

fn counters<R: Recorder>(simulator: &Simulator<Station, R>, crew: &Crew) -> BTreeMap<String, u64> {
    let mut counters: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |name: &str, count: u64| *counters.entry(name.to_string()).or_default() += count;
    for station in simulator.nodes() {
        let (link, mac) = (station.link.counters(), station.mac.counters());
        add(DATA_TRANSMISSIONS, link.data_sent);
        add("source_transmissions", link.source_sent);
        add("relay_transmissions", link.relay_sent);
        add("innovative", link.innovative);
        add("non_innovative", link.non_innovative);
        add("acks_sent", link.acks_sent);
        if link.reports_sent > 0 {
            add("reports_sent", link.reports_sent);
        }
        add("acks_forwarded", link.acks_forwarded);
        add("ack_resends", link.ack_resends);
        add("pace_timeouts", link.pace_timeouts);
        add("children_heard", link.children_heard);
        add("mac_retries", mac.retries);
        add("mac_failures", mac.failed);
        for (why, count) in link.drops.iter().filter(|(_, count)| *count > 0) {
            add(&format!("dropped_{why}"), count);
        }
    }
    let air = simulator.counters();
    add("frames", air.frames);
    add("receptions", air.receptions);
    for (why, count) in air.lost.iter().filter(|(_, count)| *count > 0) {
        add(&format!("lost_{why}"), count);
    }
    add("forwarders", crew.forwarders as u64);
    if let Config::Paper(paper::Config {
        variant: Variant::More { prune },
        ..
    }) = crew.config
    {
        add("prune_percent", (prune * 100.0).round() as u64);
    }
    counters
}
