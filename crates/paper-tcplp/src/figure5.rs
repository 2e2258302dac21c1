//! Figure 5: random pauses of up to d between link retries, over one hop and three (7.1), and the models of 7.4.

use chappe_bound::closed::lowpan;
use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel};
use chappe_results::statistics::Summary;

use crate::bounds;
use crate::context::{FigureContext, line, lines, summary};
use chappe_lab_tcplp::bulk::{Measured, Trial};
use chappe_lab_tcplp::experiment::Experiment;
use chappe_lab_tcplp::frames::Form;
use chappe_lab_tcplp::transport::MSS;

type Runs = Vec<Vec<Measured>>;
type Value = fn(&Measured) -> f64;

/// Octets of payload of a segment.
const PAYLOAD: f64 = 462.0;
/// Metres between motes of the corridor, and the distances of the sensitivity study.
pub const SPACING: f64 = 30.0;
const SPACINGS: [f64; 6] = [8.0, 15.0, 20.0, 25.0, SPACING, 35.0];

/// The pauses d in ms, over the paper's range.
pub fn pauses(context: &FigureContext<'_>) -> Vec<u64> {
    context.pick(
        vec![0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100],
        vec![0, 30, 40, 100],
    )
}

/// The experiment with pauses of up to `ms` milliseconds.
pub fn with_pause(mut experiment: Experiment, ms: u64) -> Experiment {
    experiment.mac.retry_delay = Duration::from_millis(ms);
    experiment
}

const KBPS: Value = |run| run.kbps;
const LOSS: Value = |run| 100.0 * run.segment_loss;
const RTT: Value = |run| run.rtt_ms;
const FRAMES: Value = |run| run.frames / run.counts.time.as_secs_f64();

/// All runs of the figure, by pause.
struct Sweep {
    pauses: Vec<u64>,
    one: Runs,
    three: Runs,
    bare: Runs,
}

impl Sweep {
    fn run(context: &FigureContext<'_>) -> Result<Sweep, RunError> {
        let pauses = pauses(context);
        let over = |row: &dyn Fn() -> Experiment| -> Result<Runs, RunError> {
            let trials: Vec<Trial> = pauses
                .iter()
                .map(|&ms| Trial::up(with_pause(row(), ms), context.time()))
                .collect();
            context.measure(&trials, Trial::run)
        };
        Ok(Sweep {
            one: over(&|| Experiment::corridor(1, SPACING))?,
            three: over(&|| Experiment::corridor(3, SPACING))?,
            bare: over(&|| Experiment::row(3))?,
            pauses,
        })
    }

    fn at<'r>(&self, runs: &'r Runs, ms: u64) -> &'r [Measured] {
        let place = self.pauses.iter().position(|&pause| pause == ms);
        &runs[place.unwrap_or(0)]
    }

    fn mean(&self, runs: &Runs, ms: u64, value: Value) -> Summary {
        summary(self.at(runs, ms), value)
    }

    fn panel(
        &self,
        id: &str,
        title: &str,
        unit: &'static str,
        hops: Option<usize>,
        series: Vec<chappe_results::figure::Series>,
    ) -> Panel {
        let places = self.pauses.iter().map(u64::to_string).collect();
        let mut panel = lines(id, title, unit, ("d, ms", places), series);
        if let Some(hops) = hops {
            let segments = bounds::segments(&Form::TCPLP, MSS, 2);
            let bound = lowpan::on_the_air(&bounds::HAMILTON, &segments, hops) / 1e3;
            panel.bound = vec![Some(bound); self.pauses.len()];
        }
        panel
    }

    fn panels(&self) -> Vec<Panel> {
        let pair = |value: Value| {
            vec![
                line("one hop", &self.one, value),
                line("three hops", &self.three, value),
                line("three, bare row", &self.bare, value),
            ]
        };
        vec![
            self.panel(
                "5a",
                "goodput over one hop",
                "kbit/s",
                Some(1),
                vec![
                    line("measured", &self.one, KBPS),
                    line("equation 1", &self.one, first),
                    line("equation 1, segments in flight", &self.one, in_flight),
                ],
            ),
            self.panel(
                "5b",
                "goodput over three hops",
                "kbit/s",
                Some(3),
                vec![
                    line("measured", &self.three, KBPS),
                    line("equation 1", &self.three, first),
                    line("equation 2", &self.three, second),
                    line("bare row", &self.bare, KBPS),
                    line("its equation 1", &self.bare, first),
                ],
            ),
            self.panel("5 loss", "segments lost", "%", None, pair(LOSS)),
            self.panel("5c", "round-trip time", "ms", None, pair(RTT)),
            self.panel(
                "5d",
                "data frames per second, all nodes",
                "frames",
                None,
                pair(FRAMES),
            ),
        ]
    }

    fn claims(&self, context: &FigureContext<'_>) -> Vec<Claim> {
        let three = |ms, value| self.mean(&self.three, ms, value);
        let (none, some) = (three(0, LOSS), three(30, LOSS));
        let level = three(30, KBPS).mean / three(0, KBPS).mean;
        let slow = self.mean(&self.one, 100, KBPS).mean / self.mean(&self.one, 0, KBPS).mean;
        let (short, long) = (three(0, RTT), three(100, RTT));
        let each = |ms| three(ms, FRAMES).mean / three(ms, KBPS).mean;
        let again = each(0) / each(40);
        let fit: Vec<f64> = [&self.one, &self.three]
            .into_iter()
            .flat_map(|runs| off(runs, first))
            .collect();
        let (fit, far) = (
            Summary::of(&fit),
            Summary::of(&off(&self.three, first).collect::<Vec<_>>()),
        );
        let near = Summary::of(&off(&self.one, first).collect::<Vec<_>>());
        let little = Summary::of(&off(&self.one, in_flight).collect::<Vec<_>>());
        let flight = self.mean(&self.one, 0, |run| run.in_flight);
        let n = context.seeds() as usize;
        vec![
            Claim::new("three hops: without pauses about 6 % of the segments are lost (3 to 12 %)", Some(6.0), none, "%", (3.0..=12.0).contains(&none.mean))
                .because(|| hidden(self.at(&self.three, 0))),
            Claim::new("three hops: with d = 30 ms less than 1 % of the segments are lost", Some(1.0), some, "%", some.mean < 1.0)
                .because(|| hidden(self.at(&self.three, 30))),
            Claim::value("three hops: goodput is the same at d = 0 and 30 ms, to within 10 %", Some(1.0), level, n, "times", (level - 1.0).abs() <= 0.1)
                .because(|| format!("{:.1} and {:.1} kbit/s", three(0, KBPS).mean, three(30, KBPS).mean)),
            Claim::value("one hop: goodput falls as d grows", None, slow, n, "times", slow < 1.0)
                .because(|| format!("at d = 100 ms it is {slow:.3} times that at 0")),
            Claim::new("three hops: the round-trip time grows with d", None, long, "ms", long.mean > short.mean)
                .because(|| format!("from {:.0} to {:.0} ms", short.mean, long.mean)),
            Claim::value("three hops: a kilobit takes more frames at d = 0 than at 40 ms", None, again, n, "times", again > 1.0)
                .because(|| format!("{again:.2} times as many")),
            Claim::new("three hops: equation 1 is within a quarter of the measured goodput, on average", None, far, "%", far.mean <= 25.0)
                .because(|| format!("off by {:.0} to {:.0} %", far.min, far.max)),
            Claim::new("goal, one hop: equation 1 is within 10 % of the measured goodput, on average", None, near, "%", near.mean <= 10.0).as_goal()
                .because(|| format!("off by {:.0} to {:.0} %: {:.1} segments are in flight on average where it counts 4, since a segment leaves TCP when the link has room for it; and a sample of the round trip is of the first of two segments that an acknowledgement covers", near.min, near.max, flight.mean)),
            Claim::new("one hop: equation 1 with the segments in flight and half a segment in place of the window is within 10 %, on average", None, little, "%", little.mean <= 10.0)
                .because(|| format!("off by {:.0} to {:.0} %", little.min, little.max)),
            Claim::new("one hop and three: equation 1 is within a quarter of the measured goodput, on average", None, fit, "%", fit.mean <= 25.0)
                .because(|| format!("off by {:.0} to {:.0} %; over one hop the window is not always full", fit.min, fit.max)),
        ]
    }
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let sweep = Sweep::run(context)?;
    let mut panels = sweep.panels();
    panels.push(spacing(context)?);
    Ok(Figure {
        id: "figure5",
        title: "pauses between link retries".into(),
        panels,
        claims: sweep.claims(context),
        notes: vec![
            format!("motes {SPACING} m apart at the paper's -8 dBm: neighbours have a margin of some 8 dB, and second neighbours are often sensed but rarely decoded; three retries; windows of four segments of 462 octets"),
            "the bare row is a worst case: second neighbours do not sense each other, and any overlap destroys both frames".into(),
            "the last panel shows the effect of the distance".into(),
            "equations 1 and 2 use the measured round-trip time and segment loss; equation 2 is infinite without loss, so it is limited to one window per round trip".into(),
            "the paper's curves are pictures without available values".into(),
        ],
    })
}

/// The loss of segments by distance between motes.
fn spacing(context: &FigureContext<'_>) -> Result<Panel, RunError> {
    let over = |ms: u64| -> Result<Runs, RunError> {
        let trials = SPACINGS.map(|metres| {
            Trial::up(
                with_pause(Experiment::corridor(3, metres), ms),
                context.time(),
            )
        });
        context.measure(&trials, Trial::run)
    };
    let (none, some) = (over(0)?, over(30)?);
    let places = SPACINGS.iter().map(f64::to_string).collect();
    let series = vec![line("d = 0", &none, LOSS), line("d = 30 ms", &some, LOSS)];
    Ok(lines(
        "5 metres",
        "segments lost over three hops",
        "%",
        ("m between motes", places),
        series,
    ))
}

/// Equation 1 for a run, in kbit/s.
fn first(run: &Measured) -> f64 {
    lowpan::goodput_model(PAYLOAD, run.rtt_ms / 1e3, 4.0, 2.0, run.segment_loss) / 1e3
}

/// Equation 1 without loss, with the segments that were in flight on average in place of the window. A round-trip sample is of the first
/// of the two segments that an acknowledgement covers, which takes half a segment's time more than the mean of both: by Little's law the
/// goodput is `n / (rtt - 1 / (2 * goodput))`, which is `(n + 1/2) / rtt`.
fn in_flight(run: &Measured) -> f64 {
    lowpan::goodput_model(PAYLOAD, run.rtt_ms / 1e3, run.in_flight + 0.5, 0.0, 0.0) / 1e3
}

/// Equation 2 for a run, in kbit/s. It has no window, so it is limited to one window per round trip.
fn second(run: &Measured) -> f64 {
    let loss = run.segment_loss.max(1e-9);
    let window = lowpan::goodput_model(PAYLOAD, run.rtt_ms / 1e3, 4.0, 0.0, 0.0);
    lowpan::square_root_model(PAYLOAD, run.rtt_ms / 1e3, loss).min(window) / 1e3
}

/// The relative error of a model in per cent, for each pause.
fn off(runs: &Runs, model: Value) -> impl Iterator<Item = f64> + '_ {
    runs.iter().map(move |runs| {
        let (model, ours) = (summary(runs, model).mean, summary(runs, KBPS).mean);
        100.0 * (model / ours - 1.0).abs()
    })
}

/// The link retries and losses of these runs, in a sentence.
fn hidden(runs: &[Measured]) -> String {
    let mean = |value: Value| summary(runs, value).mean;
    let given_up = |run: &Measured| {
        let failed: u64 = run.counts.nodes.iter().map(|node| node.failed).sum();
        let again: u64 = run.counts.nodes.iter().map(|node| node.retries).sum();
        100.0 * failed as f64 / (run.frames - again as f64).max(1.0)
    };
    format!(
        "{:.0} % of the data frames are sent again and {:.2} % are given up after three retries; this can happen to a segment of five frames over three hops fifteen times",
        100.0 * mean(|run| run.frame_loss),
        summary(runs, given_up).mean,
    )
}
