//! One seed of a scenario: flows and objects over a mesh, their results, fairness and counters.

use chappe_core::{Duration, Instant, OverMac, Seed};
use chappe_dpclo::{Counters, Losses, Scheme};
use chappe_lab::carry::{self, Limits, Receipt, Record, Report, Watch};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::{Job, settings};
use chappe_results::{Bound, DATA_TRANSMISSIONS, Delay, Fairness, Flow};
use chappe_scenario::{InputError, Settings};
use chappe_sim::{Reader, Reading, Recorder, Simulator, World};

use super::label::label;
use super::load::Pace;
use super::mesh::{MeshSpec, Node, Stream, StreamKind, StreamResult, measure, router_counters};
use super::optimum::{Optimum, defect, geometric_mean, jain};
use super::plan::{Dpclo, SYSTEM};
use super::station::Station;

/// How long flows run if the scenario sets no limit: the paper's 100 s, and 20 s in which rates grow.
const FLOWS_RUN: Duration = Duration::from_secs(120);
/// How long transfers may take if the scenario sets no limit.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The interval at which the run checks whether everything has arrived.
const STEP: Duration = Duration::from_millis(100);

/// Runs one seed of a plan. Half of the work on the meter is the optimum, the other half the run.
pub(super) fn run(job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    meter.expect(2 * WORK);
    carry(settings(job.plan)?, &job, meter)
}

/// Runs one seed with these settings.
pub(super) fn carry(with: &Dpclo, job: &Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let mut report = Report::begin((&SYSTEM, with.variant()), job.network.seed);
    let streams = ScenarioStreams::of(with, job);
    let medium = &job.network.medium;
    let optimum = optimum(with, &streams, job, &mut report)?;
    meter.advance(WORK);
    let mut memory = streams.mesh.host_memory(medium.nodes());
    let mut world = World::new(medium.clone());
    let begin = streams.begin.saturating_since(Instant::ZERO);
    world.faults = carry::faults(job.plan, &job.network, begin);
    let watch = Watch::new(job.spec(), medium, label)?;
    let seed = Seed(job.network.seed);
    let record = Record::<()>::Scenario(watch);
    let mut simulator = streams
        .mesh
        .launch(world, &mut memory, true, seed, record)?;
    revive(&mut simulator, with, &streams, job);
    drive(&mut simulator, &streams, meter)?;
    report_run(&mut report, &simulator, job, (&streams, optimum.as_ref()))?;
    let (_, record, _) = simulator.into_parts();
    if let Some(watch) = record.into_watch() {
        watch.finish(job.spec(), medium)?;
    }
    Ok(report.finish())
}

/// The part of the scenario that a stream belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A receiver of the transfer with this index.
    Transfer(usize),
    /// The flow with this index.
    Flow(usize),
}

/// The streams of a scenario, and the part of the scenario that each belongs to.
struct ScenarioStreams {
    mesh: MeshSpec,
    parts: Vec<Part>,
    begin: Instant,
    end: Instant,
}

impl ScenarioStreams {
    fn of(with: &Dpclo, job: &Job<'_>) -> ScenarioStreams {
        let begin = Instant::ZERO + with.probing;
        let (mut streams, mut parts) = (Vec::new(), Vec::new());
        for (number, transfer) in job.network.transfers.iter().enumerate() {
            for &receiver in &transfer.receivers {
                parts.push(Part::Transfer(number));
                streams.push(Stream {
                    source: transfer.source as u16,
                    sink: receiver as u16,
                    kind: StreamKind::Object(transfer.object.clone()),
                    begin,
                    end: Instant::MAX,
                });
            }
        }
        let usual = if streams.is_empty() {
            FLOWS_RUN
        } else {
            PATIENCE
        };
        let end = begin + job.plan.limit.unwrap_or(usual);
        for (number, flow) in job.plan.flows.iter().enumerate() {
            let kind = match flow.bps {
                Some(bps) => {
                    let seconds = with.payload as f64 * 8.0 / bps;
                    let every = Duration::from_secs_f64(seconds).max(Duration::from_micros(1));
                    StreamKind::Datagrams(Pace::Every(every), with.payload)
                }
                None if with.variant.is_tcp() => StreamKind::Endless,
                None => StreamKind::Datagrams(Pace::Full, with.payload),
            };
            parts.push(Part::Flow(number));
            streams.push(Stream {
                source: flow.source as u16,
                sink: flow.sink as u16,
                kind,
                begin: begin + flow.begin,
                end: flow.end.map_or(end, |at| end.min(begin + at)),
            });
        }
        ScenarioStreams {
            mesh: MeshSpec {
                settings: with.settings,
                access: with.access,
                stack: with.stack,
                streams,
            },
            parts,
            begin,
            end,
        }
    }

    /// The streams without a given rate, which compete for capacity, with their ends.
    fn contending(&self) -> Vec<(usize, (usize, usize))> {
        let streams = self.mesh.streams.iter().enumerate();
        let ends = |stream: &Stream| (usize::from(stream.source), usize::from(stream.sink));
        let free =
            |stream: &Stream| !matches!(stream.kind, StreamKind::Datagrams(Pace::Every(_), _));
        let contend = streams.filter(|(_, stream)| free(stream));
        contend
            .map(|(number, stream)| (number, ends(stream)))
            .collect()
    }

    /// The object that a stream carries, if any.
    fn object(&self, stream: usize) -> Option<&[u8]> {
        match &self.mesh.streams[stream].kind {
            StreamKind::Object(object) => Some(object),
            StreamKind::Datagrams(..) | StreamKind::Endless => None,
        }
    }
}

/// The most nodes whose optimum is computed. The linear programs of 1,000 nodes overflow the solver's ordering.
const OPTIMUM_NODES_MAX: usize = 300;

/// The optimum of the competing streams, if there are any and the network is not too large. One that the solver did not come close to is
/// noted instead.
fn optimum(
    with: &Dpclo,
    streams: &ScenarioStreams,
    job: &Job<'_>,
    report: &mut Report,
) -> Result<Option<Optimum>, RunError> {
    let medium = &job.network.medium;
    // The links of the start bound nothing once nodes have moved.
    if medium.nodes() > OPTIMUM_NODES_MAX || medium.motion().is_some() {
        return Ok(None);
    }
    let contending = streams.contending();
    if contending.is_empty() {
        return Ok(None);
    }
    let ends: Vec<(usize, usize)> = contending.iter().map(|(_, ends)| *ends).collect();
    let exchange = with.access.exchange(streams.mesh.frame());
    let payload = usize::from(streams.mesh.payload());
    let solved = Optimum::solve(medium, &with.access, (payload, exchange), &ends);
    if let Err(error @ chappe_bound::Error::Unproven { .. }) = &solved {
        report.note(format!("no optimum to compare with: {error}"));
        return Ok(None);
    }
    let place = |lost, message| {
        let of = contending.iter().find(|(_, ends)| *ends == lost);
        match of.map(|(stream, _)| streams.parts[*stream]) {
            Some(Part::Transfer(number)) => job.plan.transfer_error(number, "no path", message),
            Some(Part::Flow(number)) => job.plan.flow_error(number, "no path", message),
            None => InputError::new("this network", message),
        }
    };
    solved.map(Some).map_err(|error| defect(error, place))
}

/// Lets restarted nodes come back as routers without any state. The plan excludes restarts at the ends of streams.
fn revive<R: Recorder>(
    simulator: &mut Simulator<Node<'_>, R>,
    with: &Dpclo,
    streams: &ScenarioStreams,
    job: &Job<'_>,
) {
    let mut moments: Vec<Instant> = carry::restarts(job.plan)
        .map(|at| streams.begin + at)
        .collect();
    if moments.is_empty() {
        return;
    }
    // The simulator calls the reviver once for each restart, in order of time, but does not pass the time.
    moments.sort_unstable();
    let (spec, access, seed) = (streams.mesh.clone(), with.access, Seed(job.network.seed));
    let (medium, frame) = (job.network.medium.clone(), streams.mesh.frame());
    let settings = spec.fitted(&medium);
    let mut lives = 0u8;
    simulator.set_reviver(move |node| {
        let now = moments
            .get(usize::from(lives))
            .copied()
            .unwrap_or(Instant::ZERO);
        lives = lives.wrapping_add(1);
        let seed = seed.child(u64::from(lives));
        // The same settings made a router at the start of the run, so they are valid.
        let router = spec
            .router(settings, (node, lives), now, seed)
            .unwrap_or_else(|error| unreachable!("a router that was made before: {error}"));
        let station = Station::new(router, spec.settings.queues.limit);
        let channel = access.stations(&medium, frame, seed).swap_remove(node);
        Box::new(OverMac::new(channel, station))
    });
}

/// The octets of a stream that have arrived.
fn received<'n, R: Recorder>(
    simulator: &'n Simulator<Node<'_>, R>,
    streams: &ScenarioStreams,
    stream: usize,
) -> &'n [u8] {
    let sink = usize::from(streams.mesh.streams[stream].sink);
    let host = simulator.node(sink).link.host.as_ref();
    let incoming = host.map_or(&[][..], |host| &host.streams().incoming);
    let own = incoming
        .iter()
        .find(|own| usize::from(own.stream) == stream);
    own.map_or(&[][..], |own| &own.copy)
}

/// Of a router whose queues were all empty when they were last shown: how many it had. `None` where something waited.
type Idle = Option<usize>;

/// What a router holds: packets for each destination, and its rates as a source. Queues that were empty and still are do not change.
fn observe<R: Recorder>(node: &Node<'_>, reader: &mut Reader<'_, R>, idle: &mut Idle) {
    let router = &node.link.router;
    let now = (!router.has_queued()).then(|| router.destination_count());
    if now.is_none() || now != *idle {
        for (to, queue) in router.queues() {
            reader.show(Reading::number("queue", to.into(), queue.into()));
            // What nothing waits for has no price.
            if queue > 0
                && let Some(price) = router.price(node.link.now(), to)
            {
                reader.show(Reading::number("price", to.into(), price));
            }
        }
        *idle = now;
    }
    for (to, rate) in router.rates() {
        reader.show(Reading::number("rate", to.into(), rate));
    }
}

fn drive<R: Recorder>(
    simulator: &mut Simulator<Node<'_>, R>,
    streams: &ScenarioStreams,
    meter: &Meter,
) -> Result<(), RunError> {
    let objects: Vec<(usize, usize)> = (0..streams.parts.len())
        .filter_map(|stream| Some((stream, streams.object(stream)?.len())))
        .collect();
    let mut idle: Vec<Idle> = vec![None; simulator.nodes().count()];
    let end = streams.end.nanos();
    let limits = Limits {
        end_s: end as f64 / 1e9,
        stall_s: None,
    };
    carry::run_in_steps(
        simulator,
        (STEP, limits),
        |simulator| (simulator.now(), simulator.counters().events),
        |simulator, until| {
            simulator.run_until(until);
            simulator.read(|node, reader| {
                let place = reader.node();
                observe(node, reader, &mut idle[place]);
            });
        },
        |simulator| {
            let done = |&(stream, octets): &(usize, usize)| {
                received(simulator, streams, stream).len() >= octets
            };
            // Flows have no end, so progress is measured in time.
            let over = !objects.is_empty() && objects.iter().all(done);
            (simulator.now().nanos(), end, over)
        },
        meter,
    )
}

/// Adds streams, bounds, fairness and counters to the report.
fn report_run<R: Recorder>(
    report: &mut Report,
    simulator: &Simulator<Node<'_>, R>,
    job: &Job<'_>,
    (streams, optimum): (&ScenarioStreams, Option<&Optimum>),
) -> Result<(), RunError> {
    report.air(job.spec(), simulator)?;
    let until = Instant::from_nanos(simulator.now().nanos());
    let measured = measure(&streams.mesh, simulator);
    for (stream, of) in measured.iter().enumerate() {
        match streams.parts[stream] {
            Part::Transfer(number) => {
                let octets = received(simulator, streams, stream);
                let transfer = &job.network.transfers[number];
                let sink = streams.mesh.streams[stream].sink.into();
                let receipt = receipt(streams, of, octets, transfer.object.len());
                report.receipt(number, transfer, sink, receipt, job.copies);
            }
            Part::Flow(number) => {
                let place = job.network.transfers.len() + number;
                report.stream(place, flow(job, (number, stream), (streams, of, until)));
            }
        }
    }
    let fairness = optimum.map(|optimum| fairness(report.flows(), &streams.contending(), optimum));
    for bound in bounds(report.flows(), job, fairness.as_ref()) {
        report.add_bound(bound);
    }
    report.fairness(fairness);
    if report.flows().iter().any(|flow| !flow.complete) {
        note_wandering(report, &streams.mesh, simulator);
    }
    report.note_unfinished();
    count(report, simulator);
    Ok(())
}

/// DCLO has no routes: among empty queues each neighbour is as good as another, and a lone packet goes back and forth between
/// two nodes until its hops are used up, or until a link on its way loses it. The more hops it takes, the likelier that is, so
/// losses count where TCP cannot repair them: above the share of [`UNREPAIRED_MAX`].
fn note_wandering<R: Recorder>(
    report: &mut Report,
    mesh: &MeshSpec,
    simulator: &Simulator<Node<'_>, R>,
) {
    if !matches!(mesh.settings.scheme, Scheme::Dclo(_)) {
        return;
    }
    let all = router_counters(simulator);
    let sum = |of: fn(&Counters) -> u64| all.iter().map(of).sum::<u64>();
    let (accepted, relayed) = (sum(|node| node.accepted), sum(|node| node.relayed));
    let wandered = sum(|node| node.losses.hop_limit);
    let lost = sum(|node| node.losses.link + node.losses.unanswered);
    if wandered > 0 {
        let most = mesh.settings.routing.hop_limit;
        report.note(format!(
            "DCLO has no routes: {wandered} packets were given up after {most} hops"
        ));
    }
    if lost as f64 > UNREPAIRED_MAX * accepted as f64 {
        report.note(format!(
            "DCLO has no routes: links lost {lost} of {accepted} packets, which were relayed {relayed} times"
        ));
    }
}

/// The share of lost packets above which TCP's largest window of `sqrt(8 / (3 p))` segments (Mathis, Semke, Mahdavi and Ott, 1997)
/// is below the four that three duplicate acknowledgements need: each loss waits for a timeout.
const UNREPAIRED_MAX: f64 = 1.0 / 6.0;

fn fairness(flows: &[Flow], contending: &[(usize, (usize, usize))], optimum: &Optimum) -> Fairness {
    let rate = |&(stream, _): &(usize, (usize, usize))| flows[stream].goodput_bps;
    let rates: Vec<f64> = contending.iter().map(rate).collect();
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    let best = optimum.geometric_mean_bps();
    let mut fair = vec![None; flows.len()];
    for (&(stream, _), &bps) in contending.iter().zip(&optimum.sum_log_bps) {
        fair[stream] = Some(bps);
    }
    Fairness {
        total_bps: rates.iter().sum(),
        jain: jain(&rates),
        max_min_bps: optimum.max_min_bps,
        max_min_fraction: least / optimum.max_min_bps,
        sum_log_mean_bps: best,
        sum_log_fraction: geometric_mean(&rates) / best,
        sum_log_bps: fair,
    }
}

/// One bound for each transfer and flow: the max-min fair rate of competing streams, or the rate that a flow offers.
fn bounds(flows: &[Flow], job: &Job<'_>, fairness: Option<&Fairness>) -> Vec<Bound> {
    let objects = job.network.transfers.len();
    let shared = fairness.map(|fair| Bound {
        name: "max-min fair rate by who senses whom".into(),
        goodput_bps: fair.max_min_bps,
        fraction: fair.max_min_fraction,
    });
    let paced = job.plan.flows.iter().enumerate().map(|(number, plan)| {
        let offered = plan
            .bps
            .map(|bps| (bps, &flows[flows.len() - job.plan.flows.len() + number]));
        let paced = offered.map(|(bps, flow)| Bound {
            name: "the rate offered".into(),
            goodput_bps: bps,
            fraction: flow.goodput_bps / bps,
        });
        paced.or_else(|| shared.clone())
    });
    let whole = vec![shared.clone(); objects];
    whole.into_iter().chain(paced).flatten().collect()
}

/// The receipt of one receiver for an object of `octets`.
fn receipt<'a>(
    streams: &ScenarioStreams,
    measured: &StreamResult,
    arrived: &'a [u8],
    octets: usize,
) -> Receipt<'a> {
    let last = measured.arrivals.last().filter(|_| arrived.len() == octets);
    Receipt {
        octets: arrived.len(),
        completed_s: last.map(|(at, _)| at.saturating_since(streams.begin).as_secs_f64()),
        copy: Some(arrived),
        delay: delay(&measured.delays),
    }
}

/// The result of a flow over its duration.
fn flow(
    job: &Job<'_>,
    (number, stream): (usize, usize),
    (streams, measured, until): (&ScenarioStreams, &StreamResult, Instant),
) -> carry::Stream {
    let (plan, own) = (&job.plan.flows[number], &streams.mesh.streams[stream]);
    let until = own.end.min(until);
    let packet = match own.kind {
        StreamKind::Datagrams(_, octets) => octets as u64,
        StreamKind::Object(_) | StreamKind::Endless => u64::from(streams.mesh.stack.segment),
    };
    carry::Stream {
        name: plan.name.clone(),
        source: plan.source,
        sink: plan.sink,
        offered: (measured.accepted + measured.overdue) * packet,
        delivered: measured.octets((own.begin, until)),
        intact: measured.wrong == 0,
        lasted_s: until.saturating_since(own.begin).as_secs_f64(),
        delay: delay(&measured.delays),
    }
}

fn delay(delays: &[(Instant, f64)]) -> Option<Delay> {
    let delays: Vec<f64> = delays.iter().map(|(_, delay)| *delay).collect();
    Delay::of(&delays)
}

/// A counter of lost packets: its name, and its value in a router's losses.
type Loss = (&'static str, fn(&Losses) -> u64);

fn count<R: Recorder>(report: &mut Report, simulator: &Simulator<Node<'_>, R>) {
    let all = router_counters(simulator);
    let sum = |of: fn(&Counters) -> u64| all.iter().map(of).sum::<u64>();
    report.count(DATA_TRANSMISSIONS, sum(|node| node.data_sent));
    report.count("packets_accepted", sum(|node| node.accepted));
    report.count("packets_refused_by_rate", sum(|node| node.refused_rate));
    report.count("packets_delivered", sum(|node| node.delivered));
    report.count("packets_relayed", sum(|node| node.relayed));
    report.count("packets_on_detours", sum(|node| node.detours));
    report.count("control_octets", sum(|node| node.control_octets));
    report.count("times_more_next_hops", sum(|node| node.k_grew));
    let lost: [Loss; 6] = [
        ("packets_lost_to_full_queues", |lost| {
            lost.queue_full + lost.store_full
        }),
        ("packets_lost_by_the_link", |lost| {
            lost.link + lost.unanswered
        }),
        ("packets_lost_by_hop_limit", |lost| lost.hop_limit),
        ("packets_lost_by_age", |lost| lost.age),
        ("packets_copied", |lost| lost.copies + lost.old),
        ("packets_lost_otherwise", |lost| {
            lost.no_destination + lost.pushed_out + lost.inbox_full
        }),
    ];
    for (name, of) in lost {
        report.count(name, all.iter().map(|node| of(&node.losses)).sum());
    }
    for node in simulator.nodes() {
        let mac = node.mac.counters();
        report.count("frame_retries", mac.retries);
        report.count("frames_given_up", mac.failed);
    }
}
