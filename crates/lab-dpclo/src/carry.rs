//! A scenario's run: flows and objects over a mesh of routers, the copies compared, counters collected.

use chappe_core::{Duration, Instant, OverMac, Seed};
use chappe_dpclo::{Counters, Losses};
use chappe_lab::carry::{self, Limits, Receipt, Report, Watch};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::Job;
use chappe_results::{Bound, DATA_TRANSMISSIONS, Delay, Fairness, Flow};
use chappe_scenario::Settings;
use chappe_sim::{Medium, Recorder, Simulator, World};

use super::load::Pace;
use super::mesh::{Measured, Node, Setup, Stream, What, measure, routers};
use super::optimum::{Optimum, geometric_mean, jain};
use super::plan::{Dpclo, SYSTEM};
use super::station::Station;

/// How long flows run where a scenario sets no limit: the paper's 100 s, and 20 s in which rates come up.
const FLOWS_RUN: Duration = Duration::from_secs(120);
/// How long transfers may take where a scenario sets no limit.
const PATIENCE: Duration = Duration::from_secs(1800);
/// How often the run looks whether everything has arrived.
const STEP: Duration = Duration::from_millis(100);

/// Carries the flows and transfers of one seed.
pub fn carry(with: &Dpclo, job: &Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let mut report = Report::begin((&SYSTEM, with.variant()), job.network.seed);
    let score = Score::of(with, job);
    let medium = &job.network.medium;
    let optimum = optimum(with, &score, medium)?;
    meter.advance(WORK);
    let mut lent = score.setup.lend(medium.nodes());
    let mut world = World::new(medium.clone());
    let begin = score.begin.saturating_since(Instant::ZERO);
    world.faults = carry::faults(job.plan, &job.network, begin);
    let watch = Watch::new(medium.nodes(), job.pcap)?;
    let seed = Seed(job.network.seed);
    let mut simulator = score.setup.launch(world, &mut lent, true, seed, watch)?;
    revive(&mut simulator, with, &score, job);
    drive(&mut simulator, &score, meter)?;
    tell(&mut report, &simulator, job, (&score, optimum.as_ref()));
    let (_, watch, _) = simulator.into_parts();
    watch.finish()?;
    Ok(report.finish())
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
        for (number, transfer) in job.network.transfers.iter().enumerate() {
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

/// Nodes that crash and start again come back as routers that know nothing; none of them is an end of a stream.
fn revive<R: Recorder>(
    simulator: &mut Simulator<Node<'_>, R>,
    with: &Dpclo,
    score: &Score,
    job: &Job<'_>,
) {
    let mut moments: Vec<Instant> = carry::restarts(job.plan)
        .map(|at| score.begin + at)
        .collect();
    if moments.is_empty() {
        return;
    }
    moments.sort_unstable();
    let (setup, access, seed) = (score.setup.clone(), with.access, Seed(job.network.seed));
    let (medium, frame) = (job.network.medium.clone(), score.setup.frame());
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
    let objects: Vec<(usize, usize)> = (0..score.parts.len())
        .filter_map(|stream| Some((stream, score.object(stream)?.len())))
        .collect();
    let end = score.end.nanos();
    let limits = Limits {
        end_s: end as f64 / 1e9,
        stall_s: None,
    };
    carry::run_in_steps(
        simulator,
        (STEP, limits),
        |simulator| simulator.now(),
        |simulator, until| simulator.run_until(until),
        |simulator| {
            let done =
                |&(stream, octets): &(usize, usize)| came(simulator, score, stream).len() >= octets;
            // Flows have no end, so that time is what has arrived.
            let over = !objects.is_empty() && objects.iter().all(done);
            (simulator.now().nanos(), end, over)
        },
        meter,
    )
}

/// Reports the run.
fn tell<R: Recorder>(
    report: &mut Report,
    simulator: &Simulator<Node<'_>, R>,
    job: &Job<'_>,
    (score, optimum): (&Score, Option<&Optimum>),
) {
    report.air(simulator.now(), simulator.counters(), simulator.digest());
    let until = Instant::from_nanos(simulator.now().nanos());
    let measured = measure(&score.setup, simulator);
    for (stream, of) in measured.iter().enumerate() {
        match score.parts[stream] {
            Part::Transfer(number) => {
                let octets = came(simulator, score, stream);
                let transfer = &job.network.transfers[number];
                let sink = score.setup.streams[stream].sink.into();
                let receipt = receipt(score, of, octets, transfer.object.len());
                report.receipt(number, transfer, sink, receipt, job.copies);
            }
            Part::Flow(number) => {
                let place = job.network.transfers.len() + number;
                report.stream(place, flow(job, (number, stream), (score, of, until)));
            }
        }
    }
    let fairness = optimum.map(|optimum| fairness(report.flows(), &score.contending(), optimum));
    for bound in bounds(report.flows(), job, fairness.as_ref()) {
        report.add_bound(bound);
    }
    report.fairness(fairness);
    report.note_unfinished();
    count(report, simulator);
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

/// What one receiver has of an object of `octets`.
fn receipt<'a>(score: &Score, measured: &Measured, came: &'a [u8], octets: usize) -> Receipt<'a> {
    let last = measured.came.last().filter(|_| came.len() == octets);
    Receipt {
        octets: came.len(),
        completed_s: last.map(|(at, _)| at.saturating_since(score.begin).as_secs_f64()),
        copy: Some(came),
        delay: delay(&measured.delays),
    }
}

/// A flow without an end, over its time.
fn flow(
    job: &Job<'_>,
    (number, stream): (usize, usize),
    (score, measured, until): (&Score, &Measured, Instant),
) -> carry::Stream {
    let (plan, own) = (&job.plan.flows[number], &score.setup.streams[stream]);
    let until = own.end.min(until);
    let packet = match own.what {
        What::Datagrams(_, octets) => octets as u64,
        What::Object(_) | What::Endless => u64::from(score.setup.stack.segment),
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

/// A reason for lost packets, and how many a router lost for it.
type Loss = (&'static str, fn(&Losses) -> u64);

fn count<R: Recorder>(report: &mut Report, simulator: &Simulator<Node<'_>, R>) {
    let all = routers(simulator);
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
