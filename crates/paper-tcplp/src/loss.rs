//! Goodput by loss of segments: the paper's model (7.4, appendix C), and windows of four and eight.

use chappe_bound::closed::lowpan::share_under_loss;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Series};
use chappe_results::statistics::Summary;

use crate::context::{FigureContext, line, lines, summary};
use chappe_lab_tcplp::bulk::{Measured, Trial};
use chappe_lab_tcplp::experiment::Experiment;
use chappe_lab_tcplp::transport::{MSS, Transport};

/// Round trips per loss, in the paper's equation 1.
const ROUND_TRIPS: f64 = 2.0;

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let losses: &[f64] = context.pick(&[0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.21], &[0.0, 0.06]);
    let mut panels = Vec::new();
    let mut claims = Vec::new();
    let mut notes = vec![
        "segments are dropped at the receiver, independently of each other, after the link has delivered them; acknowledgements are not dropped".into(),
        "equation 1: the goodput relative to that without loss is 1 / (1 + 2 w p)".into(),
    ];
    for (hops, letter) in [(1, 'a'), (3, 'b')] {
        let over = |window: usize| -> Result<Vec<Vec<Measured>>, RunError> {
            let experiment = |&loss: &f64| Experiment {
                transport: Transport::tcplp(MSS, window),
                lose: (loss, 0.0),
                ..Experiment::row(hops).paced()
            };
            let trials: Vec<Trial> = losses
                .iter()
                .map(|loss| Trial::up(experiment(loss), context.time()))
                .collect();
            context.measure(&trials, Trial::run)
        };
        let (four, eight) = (over(4)?, over(8)?);
        let share = |runs: &[Vec<Measured>], at: usize| -> Vec<f64> {
            let pairs = runs[at].iter().zip(&runs[0]);
            pairs
                .map(|(lossy, clean)| lossy.kbps / clean.kbps)
                .collect()
        };
        let six = losses.iter().position(|&loss| loss == 0.06).unwrap_or(0);
        for (window, runs, goal) in [(4, &four, 0.68), (8, &eight, 0.8)] {
            let ours = Summary::of(&share(runs, six));
            let text = format!(
                "{hops} hop{}, a window of {window}: at 6 % loss at least {goal} times the goodput without loss",
                if hops > 1 { "s" } else { "" }
            );
            let paper = (window == 4).then(|| share_under_loss(4.0, ROUND_TRIPS, 0.06));
            claims.push(
                Claim::new(&text, paper, ours, "", ours.mean >= goal)
                    .as_goal()
                    .because(|| reason(&runs[six], &runs[0])),
            );
        }
        let base = summary(&four[0], |run| run.kbps).mean;
        let model = losses
            .iter()
            .map(|&loss| Summary::of(&[base * share_under_loss(4.0, ROUND_TRIPS, loss)]));
        panels.push(lines(
            &format!("loss {letter}"),
            &format!("goodput over {hops} hop{}", if hops > 1 { "s" } else { "" }),
            "kbit/s",
            (
                "segments lost",
                losses
                    .iter()
                    .map(|loss| format!("{:.0} %", loss * 100.0))
                    .collect(),
            ),
            vec![
                line("window of 4", &four, |run| run.kbps),
                line("window of 8", &eight, |run| run.kbps),
                Series::new("equation 1, w = 4", model.collect()),
            ],
        ));
        notes.push(format!(
            "{hops} hop{}: with a window of four, a loss costs {:.1} round trips of {:.0} ms, fitted over all loss rates (equation 4's l)",
            if hops > 1 { "s" } else { "" },
            fitted(&four, losses, 4.0),
            summary(&four[six], |run| run.rtt_ms).mean,
        ));
    }
    Ok(Figure {
        id: "loss",
        title: "goodput by loss of segments".into(),
        panels,
        claims,
        notes,
    })
}

/// Equation 4's round trips per loss, by least squares of `clean / lossy - 1 = l w p`.
fn fitted(runs: &[Vec<Measured>], losses: &[f64], window: f64) -> f64 {
    let clean = summary(&runs[0], |run| run.kbps).mean;
    let (mut over, mut under) = (0.0, 0.0);
    for (runs, loss) in runs.iter().zip(losses) {
        let x = window * loss;
        let y = clean / summary(runs, |run| run.kbps).mean.max(1e-9) - 1.0;
        (over, under) = (over + x * y, under + x * x);
    }
    over / under.max(1e-12)
}

/// The time that each loss costs, compared with runs without loss, in a sentence.
fn reason(lossy: &[Measured], clean: &[Measured]) -> String {
    let mean = |value: fn(&Measured) -> f64| summary(lossy, value).mean;
    let lost = mean(|run| {
        run.segment_loss * run.counts.nodes.last().map_or(0, |node| node.packets_sent) as f64
    });
    let seconds = mean(|run| run.counts.time.as_secs_f64());
    let left = mean(|run| run.kbps) / summary(clean, |run| run.kbps).mean.max(1e-9);
    let idle = seconds * (1.0 - left);
    format!(
        "{lost:.0} segments lost in {seconds:.0} s cost {:.0} ms each: {:.0} recoveries, {:.0} timeouts, {:.0} segments sent again, a round trip of {:.0} ms",
        1e3 * idle / lost.max(1.0),
        mean(|run| run.recoveries),
        mean(|run| run.timeouts),
        mean(|run| run.counts.nodes.last().map_or(0, |node| node.retransmits) as f64),
        mean(|run| run.rtt_ms),
    )
}
