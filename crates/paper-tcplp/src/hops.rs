//! Goodput over several hops (7.2) with the paper's pause of 40 ms, and the time of a segment by part over three hops.

use chappe_bound::closed::lowpan;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::bounds::{self, HAMILTON};
use crate::context::{FigureContext, beside, line, lines, summary};
use crate::figure5::SPACING;
use chappe_lab_tcplp::bulk::{Measured, Trial};
use chappe_lab_tcplp::experiment::Experiment;
use chappe_lab_tcplp::frames::Form;
use chappe_lab_tcplp::transport::MSS;

/// The paper's goodput over one to four hops, in kbit/s.
const PAPER: [Option<f64>; 5] = [Some(64.1), Some(28.3), Some(19.5), Some(17.5), None];
/// Octets of payload of a segment.
const PAYLOAD: f64 = 462.0;

type Runs = Vec<Vec<Measured>>;
/// An experiment as a function of the number of hops.
type Row = fn(usize) -> Experiment;

/// The paper's sources and paced ones, in a building's corridor and in the worst-case row.
const EXPERIMENTS: [(&str, Row); 4] = [
    ("TCPlp", |hops| Experiment::corridor(hops, SPACING)),
    ("paced", |hops| Experiment::corridor(hops, SPACING).paced()),
    ("TCPlp, bare row", Experiment::row),
    ("paced, bare row", |hops| Experiment::row(hops).paced()),
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let hops: Vec<usize> = (1..=context.pick(5, 3)).collect();
    let over = |experiment: Row| -> Result<Runs, RunError> {
        let trials: Vec<Trial> = hops
            .iter()
            .map(|&hops| Trial::up(experiment(hops), context.time()))
            .collect();
        context.measure(&trials, Trial::run)
    };
    let mut all = Vec::new();
    for (_, experiment) in EXPERIMENTS {
        all.push(over(experiment)?);
    }
    let segments = bounds::segments(&Form::TCPLP, MSS, 2);
    let serial = |hops| lowpan::one_by_one(&HAMILTON, &segments, hops) / 1e3;
    let places = hops.iter().map(usize::to_string).collect();
    let mut series: Vec<Series> = EXPERIMENTS
        .iter()
        .zip(&all)
        .map(|((name, _), runs)| line(name, runs, |run| run.kbps))
        .collect();
    if let Some(first) = series.first_mut() {
        *first = beside(first.clone(), &PAPER);
    }
    let mut panel = lines(
        "7.2",
        "goodput, d = 40 ms",
        "kbit/s",
        ("hops", places),
        series,
    );
    panel.bound = hops
        .iter()
        .map(|&hops| Some(lowpan::on_the_air(&HAMILTON, &segments, hops) / 1e3))
        .collect();
    Ok(Figure {
        id: "hops",
        title: "goodput over several hops".into(),
        panels: vec![panel, budget(&all)],
        claims: claims(&all),
        notes: vec![
            format!(
                "frames one after the other (6.3, 7.2) reach {:.1}, {:.1} and {:.1} kbit/s over one, two, and three or more hops; the bound counts only the exchanges that must not overlap",
                serial(1), serial(2), serial(3)
            ),
            format!("TCPlp: three retries, motes {SPACING} m apart at -8 dBm; paced: a source pauses for two frame times after each frame (RFC 8930, 5), and has seven retries, the standard's most"),
            "bare row: second neighbours do not sense each other, and any overlap destroys both frames".into(),
        ],
    })
}

fn claims(all: &[Runs]) -> Vec<Claim> {
    let kbps = |experiment: usize, hops: usize| summary(&all[experiment][hops - 1], |run| run.kbps);
    let claim = |text: &str, paper, experiment: usize, hops: usize, goal: f64| {
        let ours = kbps(experiment, hops);
        let text = format!("{text}: at least {goal}");
        Claim::new(&text, paper, ours, "kbit/s", ours.mean >= goal)
            .as_goal()
            .because(|| reason(&all[experiment][hops - 1]))
    };
    let two = kbps(0, 2).mean / kbps(0, 1).mean;
    let three = kbps(0, 3).mean / kbps(0, 1).mean;
    let n = all[0][0].len();
    vec![
        claim(
            "one hop with the paper's timing and headers",
            PAPER[0],
            0,
            1,
            90.0,
        ),
        claim("three hops, paced", PAPER[2], 1, 3, 28.0),
        claim("three hops of a bare row, paced", PAPER[2], 3, 3, 28.0),
        Claim::value(
            "two hops have half the goodput of one, to within 15 %",
            Some(0.5),
            two,
            n,
            "times",
            (two / 0.5 - 1.0).abs() <= 0.15,
        )
        .because(|| format!("ours is {two:.2} times")),
        Claim::value(
            "three hops have a third of the goodput of one, to within 15 %",
            Some(1.0 / 3.0),
            three,
            n,
            "times",
            (three * 3.0 - 1.0).abs() <= 0.15,
        )
        .because(|| format!("ours is {three:.2} times")),
    ]
}

fn reason(runs: &[Measured]) -> String {
    let mean = |value: fn(&Measured) -> f64| summary(runs, value).mean;
    format!(
        "{:.0} % of the frames are sent again, {:.1} % of the segments are lost, the round trip is {:.0} ms, timeouts per minute: {:.1}",
        100.0 * mean(|run| run.frame_loss),
        100.0 * mean(|run| run.segment_loss),
        mean(|run| run.rtt_ms),
        mean(|run| run.timeouts * 60.0 / run.counts.time.as_secs_f64()),
    )
}

/// Milliseconds of a segment that is delivered over three hops: first attempts of its frames, one after the other; retries;
/// and the rest. The rest is idle time if positive, and overlap of several senders if negative.
fn budget(all: &[Runs]) -> Panel {
    let parts = |run: &Measured| {
        let sum = |of: fn(&chappe_lab_tcplp::lln::NodeCounts) -> u64| -> f64 {
            run.counts.nodes.iter().map(of).sum::<u64>() as f64
        };
        let (data, again) = (sum(|node| node.data_sent), sum(|node| node.retries));
        let acks = sum(|node| node.air_frames) - data;
        let octets = (sum(|node| node.air_octets) - HAMILTON.ack * acks) / data.max(1.0);
        let seconds = run.counts.time.as_secs_f64();
        let segments = run.kbps * 1e3 * seconds / (8.0 * PAYLOAD);
        let each = HAMILTON.whole_s(octets) / segments.max(1.0) * 1e3;
        let whole = seconds / segments.max(1.0) * 1e3;
        [(data - again) * each, again * each, whole - data * each]
    };
    let places = ["first attempts", "sent again", "rest (overlap if negative)"];
    let series = EXPERIMENTS.iter().zip(all).map(|((name, _), runs)| {
        let three = &runs[2];
        let part = |at: usize| -> Summary { summary(three, |run| parts(run)[at]) };
        Series::new(name, (0..places.len()).map(part).collect())
    });
    let places = places.map(String::from).to_vec();
    let title = "time of a segment over three hops, by part";
    Panel::bars("7.2 budget", title, "ms", places, series.collect()).on("part")
}
