//! One seed of a scenario: the gateway plans, wakes the network, and fetches the object.

use std::collections::BTreeSet;
use std::sync::Arc;

use chappe_core::{Duration, Instant};
use chappe_lab::carry::{self, Begun, Carry, Limits, Receipt, Report, RunSpec, Running, Watch};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::Job;
use chappe_p3::{Config, Destination, Ended, Gateway, Relay, Source};
use chappe_results::{DATA_TRANSMISSIONS, Run};
use chappe_scenario::{Plan, System, Transfer, Variant, Variants};
use chappe_sim::{NodeCounters, Reading, Recorder};
use chappe_trace::Labeller;

use super::label::label;
use super::plan::{CAPS, P3, SYSTEM, radio_bound_bps};
use super::prepare::{Knowledge, Prepared, prepare};
use super::replan::Replan;
use super::role::{Flash, Held, Memory, Role, page};
use super::route::{Route, route, wanted, wish};
use super::wake::{is_far, waking};

/// Power of a CC2420 that listens or sends, in watts: 18.8 mA at 3.0 V, the values of the paper's energy comparison. A
/// transmission at 0 dBm takes 17.4 mA; like the paper, Chappe counts 18.8 mA for both.
pub const RADIO_WATTS: f64 = 0.0188 * 3.0;

/// Counter of the packets that had arrived at the end of the first round.
pub const FIRST_ROUND: &str = "first_round_packets";
/// Counter of the packets of the object.
pub const PACKETS: &str = "packets";
/// Counter of the energy of the nodes in the plan, from the first wake-up frame to the last packet, in microjoules.
pub const ENERGY: &str = "energy_uj";
/// Counter of DATA frames that the source sent.
pub const SOURCE_DATA: &str = "source_data";
/// Counter of the rounds of a transfer.
pub const ROUNDS: &str = "rounds";
/// Counter of the hops of the route.
pub const HOPS: &str = "hops";
/// Counter of the node-distinct paths that the gateway found.
pub const PATHS: &str = "paths";
/// Counter of the nodes in the plan: relays, source and destination.
pub const ACTIVE: &str = "active_nodes";
/// Counter of the time from the first wake-up frame to the source's first packet, in microseconds.
pub const SETUP: &str = "setup_us";

/// Counter of the plans that the improved variant's gateway flooded until it had the object or gave up.
pub const ATTEMPTS: &str = "attempts";

/// Carries the transfer of one seed and checks the result against its bound.
pub fn run(job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let prepared = prepare(job.network);
    meter.advance(WORK);
    let spec = RunSpec {
        plan: job.plan,
        network: &prepared.network,
        copies: job.copies,
        pcap: job.pcap,
        traces: job.traces,
    };
    let outcome = carry(P3::of(job.plan)?, &prepared, spec, meter)?;
    check(&outcome.run)?;
    Ok(outcome)
}

/// Fails if a run exceeds its bound, which would be a defect of Chappe.
pub fn check(run: &Run) -> Result<(), RunError> {
    match run.bound.as_ref().filter(|bound| bound.fraction > 1.0) {
        None => Ok(()),
        Some(bound) => Err(RunError::Defect(format!(
            "seed {}: {:.0} bit/s exceeds the rate of back-to-back frames, {:.0}",
            run.seed,
            run.mean_goodput(),
            bound.goodput_bps
        ))),
    }
}

/// Measures, plans, and carries the transfer of a prepared seed.
pub fn carry(
    with: &P3,
    prepared: &Prepared,
    spec: RunSpec<'_>,
    meter: &Meter,
) -> Result<Outcome, RunError> {
    let watch = Watch::new(spec, &prepared.network.medium, label)?;
    let (mut outcome, watch) = watched(with, prepared, spec, watch, meter)?;
    for flow in &mut outcome.run.flows {
        flow.delay_s = watch.delay(flow.sink);
    }
    watch.finish(spec, &prepared.network.medium)?;
    Ok(outcome)
}

/// The same as [`carry()`] with any recorder, which is returned.
pub fn watched<R: Recorder>(
    with: &P3,
    prepared: &Prepared,
    spec: RunSpec<'_>,
    recorder: R,
    meter: &Meter,
) -> Result<(Outcome, R), RunError> {
    let network = &prepared.network;
    let with = &with.on(network.medium.profile());
    let Some(transfer) = network.transfers.first() else {
        return Err(RunError::Defect("a P³ scenario without a transfer".into()));
    };
    let ends = (network.seed, transfer.source, transfer.receivers[0]);
    let packets = transfer.object.len().div_ceil(usize::from(with.payload)) as u32;
    let known = prepared.learn(with);
    match route(with, &known, ends, packets)? {
        Some(route) => {
            let restarts = carry::restarts(spec.plan).next().is_some();
            let flash = restarts.then(Flash::default);
            let run = P3Run::new(with, route, known, transfer, packets, flash);
            carry::carry_with(run, spec, recorder, meter)
        }
        None => {
            meter.expect(WORK);
            meter.advance(WORK);
            Ok((unreached(with, transfer, &known, network.seed), recorder))
        }
    }
}

/// The outcome if no route exists: the measured links do not connect source and destination.
fn unreached(with: &P3, transfer: &Transfer, known: &Knowledge, seed: u64) -> Outcome {
    let mut report = Report::begin((&SYSTEM, with.variant.row()), seed);
    report.receipt(
        0,
        transfer,
        transfer.receivers[0],
        Receipt::default(),
        false,
    );
    count_learned(&mut report, known.measuring, known.collecting);
    report.bound(BOUND, radio_bound_bps(), 0);
    report.note(format!(
        "no path of links with a measured delivery ratio of at least {} leads from node {} to {}",
        chappe_p3::config::LINK_THRESHOLD,
        transfer.source,
        transfer.receivers[0],
    ));
    report.finish()
}

/// The bound's name in results.
const BOUND: &str = "802.15.4 frames back to back";

/// One run on a route that was found.
#[derive(Clone)]
struct P3Run {
    variant: &'static Variant,
    config: Config,
    route: Route,
    object: Arc<[u8]>,
    packets: u32,
    measuring: Duration,
    collecting: Duration,
    /// The planner of a gateway that tries again; the paper's protocols try once.
    replan: Option<Replan>,
    /// What the ends keep over a restart.
    flash: Option<Flash>,
    /// Packets that had arrived at the end of the first round.
    first_round: u32,
    /// Energy of the plan's nodes when the object was complete, in joules.
    energy: Option<f64>,
}

impl P3Run {
    fn new(
        with: &P3,
        mut route: Route,
        known: Knowledge,
        transfer: &Transfer,
        packets: u32,
        flash: Option<Flash>,
    ) -> P3Run {
        let (source, destination) = (transfer.source, transfer.receivers[0]);
        let mut config = with.config.clone();
        // The paper's variants wait on their channel, as in the paper.
        if with.variant == super::Variant::Improved {
            let usual = config.flood_channel;
            config.flood_channel = waking(&known.ratios, destination, source, usual);
            let far = is_far(&known.ratios, &route.plan, config.flood_channel);
            route.plan = route.plan.at_length(far);
        }
        let replan = (with.variant == super::Variant::Improved).then(|| {
            let (wanted, wish) = (wanted(with, source, destination), wish(with, packets));
            Replan::new(known.ratios, with.config.clone(), wish, wanted, route.plan)
        });
        P3Run {
            replan,
            flash,
            variant: with.variant.row(),
            config,
            route,
            object: transfer.object.clone(),
            packets,
            measuring: known.measuring,
            collecting: known.collecting,
            first_round: 0,
            energy: None,
        }
    }

    /// Source and destination of the running transfer.
    fn ends<'a>(
        &self,
        running: &'a dyn Running<Role>,
    ) -> (&'a Source<Held>, &'a Destination<Memory>) {
        let node = |number: u16| running.node(number.into());
        let plan = &self.route.plan;
        match (node(plan.source()), node(plan.destination())) {
            (Role::Source(source, _), end) => match end.destination() {
                Some(destination) => (source, destination),
                None => unreachable!("the plan's destination was made as such"),
            },
            _ => unreachable!("the plan's source was made as such"),
        }
    }

    /// The gateway of the running transfer, if its variant has one.
    fn gateway<'a>(&self, running: &'a dyn Running<Role>) -> Option<&'a Gateway<Memory, Replan>> {
        match running.node(self.route.plan.destination().into()) {
            Role::Gateway(node, _) => Some(node),
            _ => None,
        }
    }

    /// The nodes of all plans so far.
    fn active(&self, running: &dyn Running<Role>) -> Vec<usize> {
        let plan = &self.route.plan;
        let later = self.gateway(running);
        let later = later.map_or(&[][..], |node| node.planner().plans());
        let relays = [plan].into_iter().chain(later);
        let relays = relays.flat_map(|plan| plan.relays().iter().map(|part| part.node));
        let all: BTreeSet<u16> = relays.chain([plan.source(), plan.destination()]).collect();
        all.into_iter().map(usize::from).collect()
    }
}

/// The energy that the radios of these nodes have used so far, in joules.
fn energy(all: &[NodeCounters], nodes: &[usize]) -> f64 {
    let on = |&node: &usize| {
        let own = all.get(node).copied().unwrap_or_default();
        (own.transmitting + own.listening).as_secs_f64()
    };
    nodes.iter().map(on).sum::<f64>() * RADIO_WATTS
}

fn destination(role: &Role) -> Option<&Destination<Memory>> {
    role.destination()
}

impl Carry for P3Run {
    type Node = Role;

    fn by(&self) -> (&'static System, &'static Variant) {
        (&SYSTEM, self.variant)
    }

    fn station(&self, node: usize, life: u32) -> Result<Box<Role>, RunError> {
        let (config, number, plan) = (self.config.clone(), node as u16, &self.route.plan);
        let flash = self.flash.clone();
        let role = if number == plan.source() {
            let session = flash.as_ref().map_or(0, |flash| page(flash).session);
            let source = Source::new(config, &CAPS, number, Held(self.object.clone()));
            source.map(|source| Role::Source(source.with_session(session), flash))
        } else if let (true, Some(replan)) = (number == plan.destination(), &self.replan) {
            let kept = flash.as_ref().and_then(|flash| page(flash).gateway);
            let store = Memory::kept(flash.clone());
            Gateway::new(config, &CAPS, number, store, replan.clone()).map(|node| {
                let mut node = match kept.filter(|_| life > 0) {
                    Some(kept) => node.resuming(&kept),
                    None => node,
                };
                node.trace(true);
                Role::Gateway(node, flash)
            })
        } else if number == plan.destination() {
            Destination::new(config, &CAPS, number, Memory::default()).map(|mut node| {
                node.trace(true);
                Role::Destination(node)
            })
        } else {
            Relay::new(config, &CAPS, number).map(Role::Relay)
        };
        let role = role.map_err(|error| RunError::Defect(error.to_string()))?;
        Ok(Box::new(role))
    }

    fn frame_max(&self) -> Option<usize> {
        Some(CAPS.frame_max)
    }

    /// The gateway, which is the destination, fetches the object.
    fn beginner(&self, transfer: &Transfer) -> usize {
        transfer.receivers[0]
    }

    fn begin(&mut self, role: &mut Role, _: &Transfer, now: Instant) -> Result<Begun, RunError> {
        let started = match role {
            Role::Destination(node) => node.start(self.route.plan, None, now),
            Role::Gateway(node, _) => node.start(now),
            _ => return Err(RunError::Defect("the destination is another node".into())),
        };
        started.map_err(|error| RunError::Defect(error.to_string()))?;
        Ok(Begun::default())
    }

    const LABELLER: Labeller = label;

    fn observe(&self, role: &Role, show: &mut dyn FnMut(Reading)) {
        let (state, counted) = match role {
            Role::Source(node, _) => (node.state(), ("sent", node.counts().data)),
            Role::Relay(node) => (node.state(), ("forwarded", node.forwarded())),
            Role::Destination(node) => {
                let packets = node.progress().packets.into();
                (node.state(), ("arrived", packets))
            }
            Role::Gateway(node, _) => {
                let packets = node.progress().packets.into();
                (node.destination().state(), ("arrived", packets))
            }
        };
        show(Reading::word("state", 0, state));
        show(Reading::number(counted.0, 0, counted.1 as f64));
    }

    fn completed(&self, role: &Role) -> Option<Instant> {
        destination(role)?.progress().completed
    }

    fn parts(&self, role: &Role, _: &Transfer) -> (u64, u64) {
        let packets = destination(role).map_or(0, |node| node.progress().packets);
        (packets.into(), self.packets.into())
    }

    fn receipt<'n>(&self, role: &'n Role, _: &Transfer) -> Receipt<'n> {
        let Some(node) = destination(role) else {
            return Receipt::default();
        };
        let progress = node.progress();
        Receipt {
            octets: progress.packets as usize * node.plan().unwrap_or(&self.route.plan).payload(),
            completed_s: progress.completed.map(|at| at.as_secs_f64()),
            copy: node.store().object(),
            delay: None,
        }
    }

    /// The run is over when the source has ended the transfer.
    fn is_over(&mut self, running: &dyn Running<Role>, _: bool) -> bool {
        let (source, destination) = self.ends(running);
        let progress = destination.progress();
        // Updated until the second round begins, so that it keeps the count at the end of the first.
        if source.counts().rounds <= 1 {
            self.first_round = progress.packets;
        }
        // A source that never woke ends nothing; then the destination gives up and is idle. A gateway tries again.
        let over = match self.gateway(running) {
            Some(gateway) => {
                gateway.is_idle() || progress.completed.is_some() && source.ended().is_some()
            }
            None => source.ended().is_some() || destination.is_idle(),
        };
        // Figures count energy up to the last packet, not the destination's wait for the source's end.
        if progress.completed.is_some() && self.energy.is_none() {
            self.energy = Some(energy(&running.air().nodes, &self.active(running)));
        }
        over
    }

    fn limits(&self, plan: &Plan) -> Limits {
        Limits::of(plan, self.object.len() as f64 * 8.0 / radio_bound_bps())
    }

    fn count(&self, running: &dyn Running<Role>, report: &mut Report) {
        count_learned(report, self.measuring, self.collecting);
        let (source, destination) = self.ends(running);
        let (counts, plan) = (source.counts(), &self.route.plan);
        report.count(SOURCE_DATA, counts.data);
        report.count("source_ctrl", counts.ctrl);
        report.count(ROUNDS, counts.rounds);
        report.count("single_rounds", counts.single_rounds);
        report.count(DATA_TRANSMISSIONS, counts.data);
        report.count(PACKETS, destination.progress().packets.into());
        report.count(FIRST_ROUND, self.first_round.into());
        if let Some(gateway) = self.gateway(running) {
            report.count(ATTEMPTS, gateway.attempts().into());
        }
        let (active, all) = (self.active(running), &running.air().nodes);
        report.count(HOPS, plan.hops().into());
        report.count(PATHS, self.route.paths as u64);
        report.count(ACTIVE, active.len() as u64);
        let setup = chappe_p3::setup_time(&self.config, plan);
        report.count(SETUP, setup.nanos() / 1000);
        report.count("channel_order", plan.channels().number().into());
        let joules = self.energy.unwrap_or_else(|| energy(all, &active));
        report.count(ENERGY, (joules * 1e6) as u64);
        let whole_network: Vec<usize> = (0..all.len()).collect();
        report.count(
            "network_energy_uj",
            (energy(all, &whole_network) * 1e6) as u64,
        );
        for node in 0..running.nodes() {
            let drops = match running.node(node) {
                Role::Source(node, _) => node.drops(),
                Role::Relay(node) => {
                    report.count("relay_frames", node.forwarded());
                    report.count(DATA_TRANSMISSIONS, node.forwarded());
                    node.drops()
                }
                Role::Destination(node) => node.drops(),
                Role::Gateway(node, _) => node.drops(),
            };
            report.count_each("dropped", drops.iter());
        }
        if let Some(why) = unfinished(destination, source) {
            report.note(format!("not finished: {why}"));
        }
    }

    fn bound(&self, report: &mut Report) {
        report.bound(BOUND, radio_bound_bps(), 0);
    }
}

/// The reason why the object is incomplete; `None` if it is complete.
fn unfinished(destination: &Destination<Memory>, source: &Source<Held>) -> Option<&'static str> {
    if destination.progress().completed.is_some() {
        return None;
    }
    Some(match source.ended() {
        Some(Ended::NoReply) => "the source received no NACK",
        Some(Ended::NoProgress) => "the destination received no new packet in several rounds",
        Some(Ended::TooLong) => "the object has more packets than sequence numbers",
        Some(Ended::Complete) | None => "the run ended before the transfer",
    })
}

fn count_learned(report: &mut Report, measuring: Duration, collecting: Duration) {
    report.count("measuring_ms", measuring.nanos() / 1_000_000);
    report.count("collecting_ms", collecting.nanos() / 1_000_000);
}
