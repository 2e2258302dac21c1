//! The engine that carries a scenario's transfers: one run loop, one stop rule, one report for all systems.
//!
//! A system implements [`Carry`]: how a station is made, how a transfer begins, how far it is, what it counted, what
//! bounds it. [`carry`] does the rest: it launches the simulator with the scenario's faults, revives nodes
//! that restart, writes captures, runs until everything has arrived or the limit comes, compares the copies, and puts the
//! result together.
//!
//! Systems whose stations are not one node each (motes behind a border router, masts with several radios) drive their own
//! network. They use the same parts: [`Watch`], [`Limits`], [`Progress`], [`Report`] and [`run_in_steps`].

mod energy;
mod limits;
mod missed;
mod progress;
mod record;
mod report;
mod watch;

use std::collections::BTreeMap;

use chappe_core::{Duration, Instant, RadioNode, Seed};
use chappe_scenario::plan::LossStep;
use chappe_scenario::{Network, Plan, System, Transfer, Variant};
use chappe_sim::{
    AirTime, Counters, Fault, LinkLoss, LinkTrace, LossLaw, Reading, Recorder, Simulator, World,
};
use chappe_trace::Labeller;

use crate::job::Job;
use crate::run::{Meter, Outcome, RunError, WORK};

pub use crate::job::RunSpec;
pub use energy::RADIO_ENERGY;
pub use limits::Limits;
pub use progress::Progress;
pub use record::Record;
pub use report::{Receipt, Report, Stream};
pub use watch::Watch;

/// What a system provides for one run: a value that holds its settings and what was prepared for the run's network.
///
/// The engine clones it to make stations again after a crash, so what is large in it should be shared (`Arc`).
pub trait Carry: Clone + Send + 'static {
    /// One station with all its layers.
    type Node: RadioNode;

    /// The system and the variant that this run is of.
    fn by(&self) -> (&'static System, &'static Variant);

    /// Station `node` in its `life`: 0 at the start, then the number of restarts of all nodes so far. It must be ready to
    /// receive.
    fn station(&self, node: usize, life: u32) -> Result<Box<Self::Node>, RunError>;

    /// The largest frame on the air, in octets with the check sequence; the simulator's default if `None`.
    fn frame_max(&self) -> Option<usize> {
        None
    }

    /// The node that begins a transfer: its source, unless the system's receivers ask for their objects.
    fn beginner(&self, transfer: &Transfer) -> usize {
        transfer.source
    }

    /// Begins a transfer at its beginner, once, before any fault strikes. Receivers that it returns in [`Begun`] are not
    /// waited for. A beginner that restarts must resume by itself, in [`Carry::station`].
    ///
    /// The default does nothing, for systems whose stations have what they need when they are made.
    fn begin(
        &mut self,
        node: &mut Self::Node,
        transfer: &Transfer,
        now: Instant,
    ) -> Result<Begun, RunError> {
        let _ = (node, transfer, now);
        Ok(Begun::default())
    }

    /// When a receiver had the whole object. The engine asks before every millisecond in which something happens, so it
    /// should be quick.
    ///
    /// The engine asks per node, not per transfer. A system whose nodes may receive several transfers
    /// ([`System::shares_ends`]) must answer for the last of them.
    fn completed(&self, node: &Self::Node) -> Option<Instant>;

    /// Parts that a receiver has, and parts of the object: octets, unless the system counts otherwise. The engine asks once
    /// in a simulated second.
    fn parts(&self, node: &Self::Node, transfer: &Transfer) -> (u64, u64) {
        let octets = self.receipt(node, transfer).octets;
        (octets as u64, transfer.object.len() as u64)
    }

    /// What a receiver has when the run is over. Its time of completion is by the node's own clock.
    fn receipt<'n>(&self, node: &'n Self::Node, transfer: &Transfer) -> Receipt<'n>;

    /// Whether the run is over; `all_there`: all receivers that are waited for have their object, which holds at
    /// once if there are none. The engine asks before every millisecond in which something happens.
    fn is_over(&mut self, running: &dyn Running<Self::Node>, all_there: bool) -> bool {
        let _ = running;
        all_there
    }

    /// When the run ends at the latest.
    fn limits(&self, plan: &Plan) -> Limits {
        Limits::of(plan, 0.0)
    }

    /// Tells what a frame is, for traces. The default knows the headers of 802.11 and 802.15.4.
    const LABELLER: Labeller = chappe_trace::standard;

    /// Shows what a station holds at this moment, for traces: ranks, queues, windows, states. The engine asks every few
    /// milliseconds of simulated time while a run is recorded, and keeps what changed. Showing changes nothing.
    fn observe(&self, node: &Self::Node, show: &mut dyn FnMut(Reading)) {
        let _ = (node, show);
    }

    /// Adds what the stations and the system counted.
    fn count(&self, running: &dyn Running<Self::Node>, report: &mut Report);

    /// Adds the bound of each transfer with [`Report::bound`], if the system knows one.
    fn bound(&self, report: &mut Report) {
        let _ = report;
    }
}

/// What [`Carry::begin`] found out about a transfer.
#[derive(Clone, Debug, Default)]
pub struct Begun {
    /// Receivers that are not waited for.
    pub unreachable: Vec<usize>,
    /// What the user should know, in sentences.
    pub notes: Vec<String>,
}

/// A running simulation, as systems look at it.
pub trait Running<N> {
    /// The node at place `i`.
    fn node(&self, i: usize) -> &N;

    /// The number of stations.
    fn nodes(&self) -> usize;

    /// What happened on the air so far.
    fn air(&self) -> &Counters;
}

impl<N: RadioNode, R: Recorder> Running<N> for Simulator<N, R> {
    fn node(&self, i: usize) -> &N {
        Simulator::node(self, i)
    }

    fn nodes(&self) -> usize {
        self.counters().nodes.len()
    }

    fn air(&self) -> &Counters {
        self.counters()
    }
}

/// Carries the transfers of one seed.
pub fn carry<C: Carry>(run: C, spec: RunSpec<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let watch = Watch::new(spec, &spec.network.medium, C::LABELLER)?;
    let (mut outcome, watch) = carry_with(run, spec, watch, meter)?;
    for flow in &mut outcome.run.flows {
        flow.delay_s = flow.delay_s.or_else(|| watch.delay(flow.sink));
    }
    watch.finish(spec, &spec.network.medium)?;
    Ok(outcome)
}

/// Carries the transfers of a job whose network needs no preparation.
pub fn carry_unprepared<C: Carry>(
    run: C,
    job: &Job<'_>,
    meter: &Meter,
) -> Result<Outcome, RunError> {
    meter.advance(WORK);
    carry(run, job.spec(), meter)
}

/// The same with any recorder, which is handed back.
pub fn carry_with<C: Carry, R: Recorder>(
    mut run: C,
    spec: RunSpec<'_>,
    recorder: R,
    meter: &Meter,
) -> Result<(Outcome, R), RunError> {
    meter.expect(WORK);
    let mut report = Report::begin(run.by(), spec.network.seed);
    let mut simulator = launch(&run, spec, recorder)?;
    let mut waiting: Vec<(usize, usize)> = Vec::new();
    for (index, transfer) in spec.network.transfers.iter().enumerate() {
        let begun = simulator.with_node(run.beginner(transfer), |node, now| {
            run.begin(node, transfer, now)
        })?;
        begun.notes.iter().for_each(|note| report.note(note));
        let receivers = transfer.receivers.iter().copied();
        let reached = receivers.filter(|node| !begun.unreachable.contains(node));
        waiting.extend(reached.map(|node| (index, node)));
    }
    drive(&mut simulator, &mut run, spec, waiting, meter)?;
    report.air(spec, &simulator)?;
    for (index, transfer) in spec.network.transfers.iter().enumerate() {
        for &node in &transfer.receivers {
            let mut receipt = run.receipt(simulator.node(node), transfer);
            receipt.completed_s = receipt
                .completed_s
                .map(|shown_s| on_the_air(&simulator, node, shown_s));
            report.receipt(index, transfer, node, receipt, spec.copies);
        }
    }
    run.count(&simulator, &mut report);
    run.bound(&mut report);
    let (_, recorder, _) = simulator.into_parts();
    Ok((report.finish(), recorder))
}

/// The second of the run at which a node's clock, which may drift, showed `shown_s` seconds.
fn on_the_air<N: RadioNode, R: Recorder>(
    simulator: &Simulator<N, R>,
    node: usize,
    shown_s: f64,
) -> f64 {
    let shown = Instant::ZERO + Duration::from_secs_f64(shown_s);
    simulator.air_time(node, shown).as_secs_f64()
}

/// The simulator with every station at its place and the scenario's faults ahead of it.
fn launch<C: Carry, R: Recorder>(
    run: &C,
    spec: RunSpec<'_>,
    recorder: R,
) -> Result<Simulator<C::Node, R>, RunError> {
    let nodes = 0..spec.network.medium.nodes();
    let stations: Result<_, RunError> = nodes.map(|node| run.station(node, 0)).collect();
    let mut world = World::new(spec.network.medium.clone());
    world.frame_max = run.frame_max().unwrap_or(world.frame_max);
    world.faults = faults(spec.plan, spec.network, Duration::ZERO);
    world.link_losses = losses(&spec.plan.losses);
    let seed = Seed(spec.network.seed);
    let mut simulator = Simulator::new(world, stations?, seed, recorder)
        .map_err(|error| RunError::Defect(error.to_string()))?;
    if restarts(spec.plan).next().is_some() {
        let (run, mut life) = (run.clone(), 0);
        simulator.set_reviver(move |node| {
            life += 1;
            // It was made once with the same values, so it can be made again.
            run.station(node, life).unwrap_or_else(|error| {
                unreachable!("a node that was made before cannot be made again: {error}")
            })
        });
    }
    Ok(simulator)
}

/// A plan's faults on one seed's network, counted from `begin`.
pub fn faults(plan: &Plan, network: &Network, begin: Duration) -> Vec<(AirTime, Fault)> {
    let places = network.medium.positions();
    let places = (!places.is_empty()).then_some(places);
    let faults = plan.faults.iter();
    let at = |at: Duration| AirTime::ZERO + begin + at;
    faults
        .map(|(time, fault)| (at(*time), fault.strike(places)))
        .collect()
}

/// The losses of links that a plan's steps ask for, one for each direction, from nothing lost on.
fn losses(steps: &[LossStep]) -> Vec<LinkLoss> {
    let mut laws: BTreeMap<(usize, usize), BTreeMap<AirTime, f64>> = BTreeMap::new();
    for step in steps {
        let start = || BTreeMap::from([(AirTime::ZERO, 1.0)]);
        let law = laws.entry((step.from, step.to)).or_insert_with(start);
        // Of two steps at the same time, the later one in the file counts.
        law.insert(AirTime::ZERO + step.at, 1.0 - step.share);
    }
    let law = |((from, to), steps): (_, BTreeMap<AirTime, f64>)| LinkLoss {
        from,
        to,
        law: LossLaw::Trace(LinkTrace::Steps(steps.into_iter().collect())),
        unheard: 0.0,
    };
    laws.into_iter().map(law).collect()
}

/// The times at which nodes restart.
pub fn restarts(plan: &Plan) -> impl Iterator<Item = Duration> + '_ {
    let faults = plan.faults.iter();
    let restarts = faults.filter(|(_, fault)| matches!(fault.strike(None), Fault::Restart(_)));
    restarts.map(|(at, _)| *at)
}

/// Runs until all receivers that are waited for are complete, the limit comes, or nothing arrives any more.
fn drive<C: Carry, R: Recorder>(
    simulator: &mut Simulator<C::Node, R>,
    run: &mut C,
    spec: RunSpec<'_>,
    mut waiting: Vec<(usize, usize)>,
    meter: &Meter,
) -> Result<(), RunError> {
    let all = waiting.clone();
    let limits = run.limits(spec.plan);
    let mut progress = Progress::new(meter);
    let mut next_look = 0.0;
    simulator.run_while(limits.end(), |simulator| {
        // Asked every millisecond: the run cannot be over before the last receiver in the list is complete, so only that one
        // is looked at. A receiver that was complete stays so, even if it crashes later.
        let before = waiting.len();
        while waiting
            .last()
            .is_some_and(|&(_, node)| run.completed(simulator.node(node)).is_some())
        {
            waiting.pop();
        }
        if waiting.is_empty() && before > 0 {
            // Systems weigh what a transfer cost up to here.
            simulator.book_duty();
        }
        simulator.read(|node, reader| {
            run.observe(node, &mut |reading| reader.show(reading));
        });
        progress.spent(simulator.counters().events);
        if run.is_over(&*simulator, waiting.is_empty()) || progress.stopped() {
            return false;
        }
        let now = simulator.now().as_secs_f64();
        if now < next_look {
            return true;
        }
        next_look = now + 1.0;
        let transfers = &spec.network.transfers;
        let parts = all
            .iter()
            .map(|&(transfer, node)| run.parts(simulator.node(node), &transfers[transfer]));
        let (there, of) = parts.fold((0, 0), |(a, b), (there, of)| (a + there, b + of));
        progress.at(now, there, of);
        limits
            .stall_s
            .is_none_or(|stall| progress.idle_s(now) < stall)
    });
    progress.finish()
}

/// Advances a network that a system drives itself, `step` by step, until `look` says that it is over, the limit comes, or
/// nothing arrives any more.
///
/// `clock` returns the time and how many events there were. `look` returns parts that have arrived, parts of all objects, and whether the run is over. It is first called after one
/// step, so with a limit of zero never.
///
/// # Panics
///
/// If `step` is zero: the run would never end.
pub fn run_in_steps<W>(
    world: &mut W,
    (step, limits): (Duration, Limits),
    clock: impl Fn(&W) -> (AirTime, u64),
    mut advance: impl FnMut(&mut W, AirTime),
    look: impl Fn(&W) -> (u64, u64, bool),
    meter: &Meter,
) -> Result<(), RunError> {
    assert!(step > Duration::ZERO, "a step of no time");
    let mut progress = Progress::new(meter);
    let end = limits.end();
    while clock(world).0 < end && !progress.stopped() {
        let next = (clock(world).0 + step).min(end);
        advance(world, next);
        let (arrived, all, over) = look(world);
        let (now, events) = clock(world);
        let at = now.as_secs_f64();
        progress.spent(events);
        progress.at(at, arrived, all);
        if over
            || limits
                .stall_s
                .is_some_and(|stall| progress.idle_s(at) > stall)
        {
            break;
        }
    }
    progress.finish()
}

#[cfg(test)]
mod tests;
