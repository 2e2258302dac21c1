//! A scenario's run: flows and objects over a mesh of routers, what came compared and counted.

use std::collections::BTreeMap;
use std::time::Instant as WallClock;

use chappe_core::{Duration, Instant, OverMac, Seed};
use chappe_dpclo::{Counters, Losses};
use chappe_sim::{AirTime, Fault, Medium, Recorder, Simulator, World};

use super::load::Pace;
use super::mesh::{Measured, Node, Setup, Stream, What, measure, routers};
use super::optimum::{Optimum, geometric_mean, jain};
use super::plan::{Dpclo, SYSTEM};
use super::station::Station;
use chappe_lab::results::{Bound, DATA_TRANSMISSIONS, Delay, Fairness, Flow, Run};
use chappe_lab::run::watch::Filmed;
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::statistics::{mean, quantile};
use chappe_lab::system::{Carrier, Job};

/// How long flows run where a scenario says nothing: the paper's 100 s, and 20 s in which rates come up.
const FLOWS_RUN: Duration = Duration::from_secs(120);
/// How long transfers may take where a scenario says nothing.
const PATIENCE: Duration = Duration::from_secs(1800);
/// How often it is asked whether all is there.
const STEP: Duration = Duration::from_millis(100);

/// Carries the flows and transfers of one seed.
pub fn carry(with: &Dpclo, job: &Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let Some(path) = job.pcap else {
        return Ok(recorded(with, job, (), meter)?.0);
    };
    let unwritable = |error| RunError::Write(format!("cannot write {}: {error}", path.display()));
    let film = Filmed::create(path, job.stage.medium.nodes()).map_err(unwritable)?;
    let (outcome, film) = recorded(with, job, film, meter)?;
    film.finish().map_err(unwritable)?;
    Ok(outcome)
}

/// Which part of the scenario a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A receiver of this transfer.
    Transfer(usize),
    /// This flow.
    Flow(usize),
}

/// The streams of a run, and which part of the scenario each one is.
struct Score {
    setup: Setup,
    parts: Vec<Part>,
    begin: Instant,
    end: Instant,
}

impl Score {
    fn of(with: &Dpclo, job: &Job<'_>) -> Score {
        let begin = Instant::ZERO + with.probing;
        let (mut streams, mut parts) = (Vec::new(), Vec::new());
        for (number, transfer) in job.stage.transfers.iter().enumerate() {
            for &receiver in &transfer.receivers {
                parts.push(Part::Transfer(number));
                streams.push(Stream {
                    source: transfer.source as u16,
                    sink: receiver as u16,
                    what: What::Object(transfer.object.clone()),
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
            let what = match flow.bps {
                Some(bps) => {
                    let seconds = with.payload as f64 * 8.0 / bps;
                    let every = Duration::from_secs_f64(seconds).max(Duration::from_micros(1));
                    What::Datagrams(Pace::Every(every), with.payload)
                }
                None if with.variant.is_tcp() => What::Endless,
                None => What::Datagrams(Pace::Full, with.payload),
            };
            parts.push(Part::Flow(number));
            streams.push(Stream {
                source: flow.source as u16,
                sink: flow.sink as u16,
                what,
                begin: begin + flow.begin,
                end: flow.end.map_or(end, |at| end.min(begin + at)),
            });
        }
        Score {
            setup: Setup {
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

    /// Those streams that take what they can get, with their ends: all but flows of even pace.
    fn contending(&self) -> Vec<(usize, (usize, usize))> {
        let streams = self.setup.streams.iter().enumerate();
        let ends = |stream: &Stream| (usize::from(stream.source), usize::from(stream.sink));
        let free = |stream: &Stream| !matches!(stream.what, What::Datagrams(Pace::Every(_), _));
        let contend = streams.filter(|(_, stream)| free(stream));
        contend
            .map(|(number, stream)| (number, ends(stream)))
            .collect()
    }

    /// Octets of the object that a stream carries.
    fn object(&self, stream: usize) -> Option<&[u8]> {
        match &self.setup.streams[stream].what {
            What::Object(object) => Some(object),
            What::Datagrams(..) | What::Endless => None,
        }
    }
}

fn recorded<R: Recorder>(
    with: &Dpclo,
    job: &Job<'_>,
    recorder: R,
    meter: &Meter,
) -> Result<(Outcome, R), RunError> {
    let started = WallClock::now();
    let score = Score::of(with, job);
    let medium = &job.stage.medium;
    let optimum = optimum(with, &score, medium)?;
    meter.advance(WORK);
    let mut lent = score.setup.lend(medium.nodes());
    let world = world(job, score.begin);
    let seed = Seed(job.stage.seed);
    let mut simulator = score.setup.launch(world, &mut lent, true, seed, recorder)?;
    revive(&mut simulator, with, &score, job);
    drive(&mut simulator, &score, meter)?;
    let mut outcome = report(&simulator, with, job, (&score, optimum.as_ref()));
    outcome.run.wall_s = started.elapsed().as_secs_f64();
    let (_, recorder, _) = simulator.into_parts();
    Ok((outcome, recorder))
}

/// What the links allow the streams that contend, if any do.
fn optimum(with: &Dpclo, score: &Score, medium: &Medium) -> Result<Option<Optimum>, RunError> {
    let contending = score.contending();
    if contending.is_empty() {
        return Ok(None);
    }
    let ends: Vec<(usize, usize)> = contending.iter().map(|(_, ends)| *ends).collect();
    let exchange = with.access.exchange(score.setup.frame());
    let payload = usize::from(score.setup.payload());
    Optimum::of(medium, &with.access, (payload, exchange), &ends).map(Some)
}

/// The medium with what goes wrong, counted from the begin of the streams.
fn world(job: &Job<'_>, begin: Instant) -> World {
    let mut world = World::new(job.stage.medium.clone());
    let places = job.stage.medium.positions();
    let places = (!places.is_empty()).then_some(places);
    let faults = job.plan.faults.iter();
    world.faults = faults
        .map(|(at, fault)| {
            (
                AirTime::from_nanos(begin.nanos()) + *at,
                fault.strike(places),
            )
        })
        .collect();
    world
}

/// Nodes that crash and start again come back as routers that know nothing; none of them is an end of a stream.
fn revive<R: Recorder>(
    simulator: &mut Simulator<Node<'_>, R>,
    with: &Dpclo,
    score: &Score,
    job: &Job<'_>,
) {
    let faults = job.plan.faults.iter();
    let restarts = faults.filter(|(_, fault)| matches!(fault.strike(None), Fault::Restart(_)));
    let mut moments: Vec<Instant> = restarts.map(|(at, _)| score.begin + *at).collect();
    if moments.is_empty() {
        return;
    }
    moments.sort_unstable();
    let (setup, access, seed) = (score.setup.clone(), with.access, Seed(job.stage.seed));
    let (medium, frame) = (job.stage.medium.clone(), score.setup.frame());
    let settings = setup.fitted(&medium);
    let mut lives = 0u8;
    simulator.set_reviver(move |node| {
        let now = moments
            .get(usize::from(lives))
            .copied()
            .unwrap_or(Instant::ZERO);
        lives = lives.wrapping_add(1);
        let seed = seed.child(u64::from(lives));
        // It was made once with the same values, so it can be made again.
        let router = setup
            .router(settings, (node, lives), now, seed)
            .unwrap_or_else(|error| unreachable!("a router that was made before: {error}"));
        let station = Station::new(router, setup.settings.queues.limit);
        let channel = access.stations(&medium, frame, seed).swap_remove(node);
        Box::new(OverMac::new(channel, station))
    });
}

/// Octets of a stream that have come.
fn came<'n, R: Recorder>(
    simulator: &'n Simulator<Node<'_>, R>,
    score: &Score,
    stream: usize,
) -> &'n [u8] {
    let sink = usize::from(score.setup.streams[stream].sink);
    let host = simulator.node(sink).link.host.as_ref();
    let incoming = host.map_or(&[][..], |host| &host.streams().incoming);
    let own = incoming
        .iter()
        .find(|own| usize::from(own.stream) == stream);
    own.map_or(&[][..], |own| &own.copy)
}

fn drive<R: Recorder>(
    simulator: &mut Simulator<Node<'_>, R>,
    score: &Score,
    meter: &Meter,
) -> Result<(), RunError> {
    let end = AirTime::from_nanos(score.end.nanos());
    let objects: Vec<(usize, usize)> = (0..score.parts.len())
        .filter_map(|stream| Some((stream, score.object(stream)?.len())))
        .collect();
    let mut reported = 0;
    while simulator.now() < end && !meter.stopped() {
        let next = (simulator.now() + STEP).min(end);
        simulator.run_until(next);
        let time = WORK as f64 * simulator.now().as_secs_f64() / end.as_secs_f64();
        let share = (time as u64).min(WORK);
        meter.advance(share.saturating_sub(reported));
        reported = reported.max(share);
        let done =
            |&(stream, octets): &(usize, usize)| came(simulator, score, stream).len() >= octets;
        if !objects.is_empty() && objects.iter().all(done) {
            break;
        }
    }
    meter.advance(WORK.saturating_sub(reported));
    match meter.stopped() {
        true => Err(RunError::Interrupted),
        false => Ok(()),
    }
}

fn report<R: Recorder>(
    simulator: &Simulator<Node<'_>, R>,
    with: &Dpclo,
    job: &Job<'_>,
    (score, optimum): (&Score, Option<&Optimum>),
) -> Outcome {
    let measured = measure(&score.setup, simulator);
    let until = Instant::from_nanos(simulator.now().nanos());
    let flows: Vec<Flow> = measured
        .iter()
        .enumerate()
        .map(|(stream, of)| match score.parts[stream] {
            Part::Transfer(number) => {
                let octets = came(simulator, score, stream);
                transfer(with, job, (number, stream), (score, of, octets))
            }
            Part::Flow(number) => flow(with, job, (number, stream), (score, of, until)),
        })
        .collect();
    let fairness = optimum.map(|optimum| fairness(&flows, &score.contending(), optimum));
    let bounds = bounds(&flows, job, fairness.as_ref());
    let copy = |(stream, flow): (usize, &Flow)| {
        let whole = job.copies && flow.complete && score.object(stream).is_some();
        whole.then(|| came(simulator, score, stream).to_vec())
    };
    Outcome {
        notes: notes(&flows, job),
        copies: flows.iter().enumerate().map(copy).collect(),
        run: Run {
            seed: job.stage.seed,
            simulated_s: simulator.now().as_secs_f64(),
            wall_s: 0.0,
            events: simulator.counters().events,
            digest: format!("{:016x}", simulator.digest()),
            counters: counters(simulator),
            bound: bounds.first().cloned(),
            bounds,
            fairness,
            flows,
        },
    }
}

fn notes(flows: &[Flow], job: &Job<'_>) -> Vec<String> {
    let seed = job.stage.seed;
    let missing = flows.iter().filter(|flow| !flow.complete);
    missing
        .map(|flow| {
            let (got, of) = (flow.delivered_bytes, flow.offered_bytes);
            format!(
                "seed {seed}: not finished: {} got {got} of {of} octets",
                flow.name
            )
        })
        .collect()
}

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

/// One for each transfer and flow: what all that contend can have at once, or what a flow of even pace offers.
fn bounds(flows: &[Flow], job: &Job<'_>, fairness: Option<&Fairness>) -> Vec<Bound> {
    let objects = job.stage.transfers.len();
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

/// An object's way to one receiver.
fn transfer(
    with: &Dpclo,
    job: &Job<'_>,
    (number, stream): (usize, usize),
    (score, measured, octets): (&Score, &Measured, &[u8]),
) -> Flow {
    let transfer = &job.stage.transfers[number];
    let (object, sink) = (&transfer.object, score.setup.streams[stream].sink);
    let complete = octets.len() == object.len();
    let last = measured.came.last().filter(|_| complete);
    let completion_s = last.map(|(at, _)| at.saturating_since(score.begin).as_secs_f64());
    Flow {
        name: format!("r{sink}"),
        transfer: number,
        source: transfer.source,
        sink: sink.into(),
        protocol: SYSTEM.name.into(),
        variant: with.variant().name.into(),
        offered_bytes: object.len() as u64,
        delivered_bytes: octets.len() as u64,
        complete,
        digest_ok: complete && blake3::hash(octets) == blake3::hash(object),
        completion_s,
        goodput_bps: completion_s.map_or(0.0, |seconds| object.len() as f64 * 8.0 / seconds),
        delay_s: delay(&measured.delays),
    }
}

/// A flow without an end, over its time.
fn flow(
    with: &Dpclo,
    job: &Job<'_>,
    (number, stream): (usize, usize),
    (score, measured, until): (&Score, &Measured, Instant),
) -> Flow {
    let (plan, own) = (&job.plan.flows[number], &score.setup.streams[stream]);
    let until = own.end.min(until);
    let lasted = until.saturating_since(own.begin).as_secs_f64();
    let delivered = measured.octets((own.begin, until));
    let packet = match own.what {
        What::Datagrams(_, octets) => octets as u64,
        What::Object(_) | What::Endless => u64::from(score.setup.stack.segment),
    };
    Flow {
        name: plan.name.clone(),
        transfer: job.stage.transfers.len() + number,
        source: plan.source,
        sink: plan.sink,
        protocol: SYSTEM.name.into(),
        variant: with.variant().name.into(),
        offered_bytes: (measured.accepted + measured.overdue) * packet,
        delivered_bytes: delivered,
        complete: true,
        digest_ok: measured.wrong == 0,
        completion_s: Some(lasted),
        goodput_bps: delivered as f64 * 8.0 / lasted.max(1e-9),
        delay_s: delay(&measured.delays),
    }
}

fn delay(delays: &[(Instant, f64)]) -> Option<Delay> {
    let delays: Vec<f64> = delays.iter().map(|(_, delay)| *delay).collect();
    Some(Delay {
        mean: mean(&delays),
        p50: quantile(&delays, 0.5)?,
        p95: quantile(&delays, 0.95)?,
        p99: quantile(&delays, 0.99)?,
    })
}

/// A reason for lost packets, and how many a router lost for it.
type Loss = (&'static str, fn(&Losses) -> u64);

fn counters<R: Recorder>(simulator: &Simulator<Node<'_>, R>) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut add = |name: &str, count: u64| *counters.entry(name.to_string()).or_default() += count;
    let counts = simulator.counters();
    add("frames", counts.frames);
    add("receptions", counts.receptions);
    for (why, count) in counts.lost.iter().filter(|(_, count)| *count > 0) {
        add(&format!("lost_{why}"), count);
    }
    let all = routers(simulator);
    let sum = |of: fn(&Counters) -> u64| all.iter().map(of).sum::<u64>();
    add(DATA_TRANSMISSIONS, sum(|node| node.data_sent));
    add("packets_accepted", sum(|node| node.accepted));
    add("packets_refused_by_rate", sum(|node| node.refused_rate));
    add("packets_delivered", sum(|node| node.delivered));
    add("packets_relayed", sum(|node| node.relayed));
    add("packets_on_detours", sum(|node| node.detours));
    add("control_octets", sum(|node| node.control_octets));
    add("times_more_next_hops", sum(|node| node.k_grew));
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
        add(name, all.iter().map(|node| of(&node.losses)).sum());
    }
    for node in simulator.nodes() {
        let mac = node.mac.counters();
        add("frame_retries", mac.retries);
        add("frames_given_up", mac.failed);
    }
    counters
}
