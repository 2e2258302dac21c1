//! Figure 4: the time of a frame by part, and the overheads that keep TCP below 250 kbit/s (6.3).

use chappe_bound::closed::lowpan::{self, Segments};
use chappe_core::{Duration, Seed};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};

use crate::bounds::{self, HAMILTON};
use crate::context::{FigureContext, beside, summary};
use chappe_lab_tcplp::bulk;
use chappe_lab_tcplp::experiment::Experiment;
use chappe_lab_tcplp::frames::Form;
use chappe_lab_tcplp::transport::MSS;

/// Octets of the largest frame.
const FULL: usize = 127;
const WARM_UP: Duration = Duration::from_secs(3);

/// The time of one run's frames, in seconds.
#[derive(Clone, Debug)]
struct Budget {
    kbps: f64,
    /// The time from one full frame to the next.
    cycle: f64,
    /// The time of a delivered segment, by [`PARTS`].
    parts: [f64; PARTS.len()],
}

const PARTS: [&str; 8] = [
    "data on the air",
    "link ACKs on the air",
    "turnaround",
    "assessment",
    "back-off (mean)",
    "load over SPI",
    "TCP's ACK, all parts",
    "overlap",
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let time = context.time();
    let runs = context.measure(&[()], |(), seed| run(time, seed))?;
    let runs = &runs[0];
    let one = |value: f64| Summary::of(&[value]);
    let cycle = Summary::of(&runs.iter().map(|run| run.cycle * 1e3).collect::<Vec<_>>());
    let kbps = summary(runs, |run| run.kbps);
    let steps = steps();
    let serial = lowpan::one_by_one(&HAMILTON, &bounds::segments(&Form::TCPLP, MSS, 2), 1) / 1e3;
    let whole = 462.0 * 8.0 / 1e3 / kbps.mean * 1e3;
    let frame = [
        ("load over SPI", HAMILTON.load_s),
        ("back-off", HAMILTON.backoff_s),
        ("assessment", HAMILTON.assess_s),
        ("turnaround", HAMILTON.turnaround_s),
        ("frame", HAMILTON.air_s(FULL as f64)),
        ("turnaround before the ACK", HAMILTON.turnaround_s),
        ("link ACK", HAMILTON.air_s(HAMILTON.ack)),
    ];
    let mut places: Vec<String> = frame.iter().map(|(name, _)| (*name).to_string()).collect();
    let mut spans: Vec<Summary> = frame.iter().map(|(_, span)| one(span * 1e3)).collect();
    places.push("all, measured".into());
    spans.push(cycle);
    let paper_frame: Vec<Option<f64>> = (0..places.len())
        .map(|at| match at {
            4 => Some(4.1),
            7 => Some(7.2),
            _ => None,
        })
        .collect();
    let parts = (0..PARTS.len()).map(|part| summary(runs, |run| run.parts[part] * 1e3));
    let mut left = Series::new(
        "goodput",
        steps.iter().map(|(_, left)| one(*left)).collect(),
    );
    left.ours.push(kbps);
    left.paper = vec![None; left.ours.len()];
    let at = |name: &str| {
        steps
            .iter()
            .position(|(step, _)| *step == name)
            .unwrap_or(0)
    };
    left.paper[at("TCP headers")] = Some(95.0);
    left.paper[at("unused octets")] = Some(100.0);
    left.paper[steps.len()] = Some(75.0);
    // TCP's 20 octets and 12 of timestamps count as payload here.
    let headless = lowpan::one_by_one(
        &HAMILTON,
        &Segments {
            payload: bounds::PAPER.payload + 32.0,
            ..bounds::PAPER
        },
        1,
    );
    let without = headless / 1e3;
    let bound = lowpan::one_by_one(&HAMILTON, &bounds::PAPER, 1) / 1e3;
    let n = context.seeds() as usize;
    let mut names: Vec<String> = steps.iter().map(|(step, _)| (*step).to_string()).collect();
    names.push("measured".into());
    Ok(Figure {
        id: "figure4",
        title: "time by part".into(),
        panels: vec![
            Panel::bars("4a", "a full frame", "ms", places, vec![beside(Series::new("time", spans), &paper_frame)]).on("part"),
            Panel::bars("4b", "goodput that remains after each overhead", "kbit/s", names, vec![left]).on("after"),
            Panel::bars("4 budget", "a delivered segment, one hop", "ms", PARTS.map(String::from).to_vec(), vec![Series::new("time", parts.collect())]).on("part"),
        ],
        claims: vec![
            Claim::new("a full frame takes 7.2 ms, to within 3 %", Some(7.2), cycle, "ms", (cycle.mean / 7.2 - 1.0).abs() < 0.03)
                .because(|| format!("it takes {:.2} ms", cycle.mean)),
            Claim::value("the bound with the paper's counts is 95 kbit/s", Some(95.0), bound, 1, "kbit/s", (bound - 95.0).abs() < 0.5)
                .because(|| format!("the formula gives {bound:.1}")),
            Claim::value("without TCP's headers the bound is 100 kbit/s, to within 3 %", Some(100.0), without, 1, "kbit/s", (without / 100.0 - 1.0).abs() < 0.03)
                .because(|| format!("the formula gives {without:.1}")),
            Claim::new("TCP reaches 75 % of the bound", Some(75.0), kbps, "kbit/s", kbps.mean >= 0.75 * bound)
                .because(|| format!("its goodput is {:.1} kbit/s", kbps.mean)),
        ],
        notes: vec![
            format!("a segment takes {whole:.2} ms; overlap is this time minus the other parts: the ends load and back off at the same time, so {n} runs reach {:.1} kbit/s, where frames one after the other would reach {serial:.1}", kbps.mean),
            "no frame of a segment is full, since fragments end at multiples of 8 octets; the measured time is from a frame to its sender's next one, plus the airtime of the missing octets".into(),
            "d = 0; 4b is computed from two segments and their acknowledgement, as the encoder writes their frames".into(),
        ],
    })
}

/// Goodput in kbit/s that remains after each overhead, for the frames of two segments and one acknowledgement.
fn steps() -> Vec<(&'static str, f64)> {
    let form = Form::TCPLP;
    let segments = bounds::segments(&form, MSS, 2);
    let (count, octets) = (segments.count, segments.count * segments.frames);
    let full = 2.0 * count * HAMILTON.whole_s(FULL as f64);
    let data = 2.0 * count * HAMILTON.whole_s(segments.frames);
    let all = data + HAMILTON.whole_s(segments.ack);
    let link = form.link() as f64 * count;
    // The octets that full frames would have, and the octets of the headers between link and TCP.
    let room = FULL as f64 * count;
    let below = octets - link - (20.0 + f64::from(MSS));
    let rate = |octets: f64, time: f64| 2.0 * octets * 8.0 / time / 1e3;
    vec![
        ("link", 250.0),
        ("radio", rate(room, full)),
        (
            "TCP's ACKs",
            rate(room, full + HAMILTON.whole_s(segments.ack)),
        ),
        (
            "link headers",
            rate(room - link, full + HAMILTON.whole_s(segments.ack)),
        ),
        (
            "IPv6, fragments",
            rate(room - link - below, full + HAMILTON.whole_s(segments.ack)),
        ),
        ("unused octets", rate(20.0 + f64::from(MSS), all)),
        ("TCP headers", rate(segments.payload, all)),
    ]
}

fn run(time: Duration, seed: Seed) -> Result<Budget, RunError> {
    let mut experiment = Experiment::row(1);
    experiment.mac.retry_delay = Duration::ZERO;
    let (octets, times) = bulk::timed(&experiment, (WARM_UP, time), seed)?;
    let octets = octets as f64;
    let segments = octets / 462.0;
    let share = |seconds: f64| seconds / segments;
    let data = |node: usize| {
        times
            .frames
            .iter()
            .filter(move |frame| frame.node == node && !frame.ack && frame.at >= WARM_UP.nanos())
            .count() as f64
    };
    let (sent, acks) = (data(1), data(0));
    let ack_octets = Form::TCPLP.octets(32).iter().sum::<usize>() as f64;
    let mut parts = [
        share(times.air_s(WARM_UP, |frame| frame.node == 1 && !frame.ack)),
        share(times.air_s(WARM_UP, |frame| frame.node == 0 && frame.ack)),
        share(sent * 2.0 * HAMILTON.turnaround_s),
        share(sent * HAMILTON.assess_s),
        share(sent * HAMILTON.backoff_s),
        share(sent * HAMILTON.load_s),
        share(acks * HAMILTON.whole_s(ack_octets)),
        0.0,
    ];
    parts[7] = share(time.as_secs_f64()) - parts.iter().sum::<f64>();
    Ok(Budget {
        kbps: octets * 8e-3 / time.as_secs_f64(),
        cycle: mean(&times.cycles(FULL)),
        parts,
    })
}
