//! Figure 6: the congestion window over 100 s, and its recoveries and timeouts (7.3).

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Series};
use chappe_results::statistics::Summary;

use crate::context::{FigureContext, line, lines, summary};
use crate::figure5::{SPACING, pauses, with_pause};
use chappe_lab_tcplp::bulk::{Measured, Trial};
use chappe_lab_tcplp::experiment::Experiment;
use chappe_lab_tcplp::transport::WINDOW;

/// Samples of the window per second.
const LOOKS: usize = 10;
/// Seconds between two points of the plotted window.
const STEP: usize = 4;

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    // The paper gives 100 s for this figure, so it does not use the length of the other runs.
    let seconds = context.pick(100, 40);
    let pauses = pauses(context);
    let trials: Vec<Trial> = pauses
        .iter()
        .map(|&ms| {
            Trial::up(
                with_pause(Experiment::corridor(3, SPACING), ms),
                Duration::from_secs(seconds),
            )
        })
        .collect();
    let runs = context.measure(&trials, Trial::run)?;
    let full = |run: &Measured| {
        let at_most = run
            .windows
            .iter()
            .filter(|&&window| window >= WINDOW as f64);
        100.0 * at_most.count() as f64 / run.windows.len().max(1) as f64
    };
    let trace = &runs[0][0].windows;
    let capped: Vec<Summary> = trace
        .iter()
        .step_by(STEP * LOOKS)
        .map(|window| Summary::of(&[window.min(WINDOW as f64)]))
        .collect();
    let seconds_of: Vec<String> = (0..capped.len())
        .map(|at| (at * STEP).to_string())
        .collect();
    let per = |run: &Measured, count: f64| 100.0 * count / run.counts.time.as_secs_f64();
    let fast = |run: &Measured| per(run, run.recoveries);
    let slow = |run: &Measured| per(run, run.timeouts);
    let share = summary(&runs[0], full);
    let at = |ms: u64| pauses.iter().position(|&pause| pause == ms).unwrap_or(0);
    let [fast_none, fast_some] = [0, 40].map(|ms| summary(&runs[at(ms)], fast));
    let [slow_none, slow_some] = [0, 40].map(|ms| summary(&runs[at(ms)], slow));
    let lost = summary(&runs[0], |run| 100.0 * run.segment_loss).mean;
    let n = context.seeds() as usize;
    Ok(Figure {
        id: "figure6",
        title: "the congestion window over three hops".into(),
        panels: vec![
            lines("6a", "congestion window without pauses, limited to the buffer", "segments", ("s", seconds_of), vec![Series::new("cwnd", capped)]),
            lines("6b", "recoveries and timeouts per 100 s", "", ("d, ms", pauses.iter().map(u64::to_string).collect()), vec![
                line("fast recoveries", &runs, fast),
                line("timeouts", &runs, slow),
            ]),
            lines("6 share", "share of time with a window as large as the buffer", "%", ("d, ms", pauses.iter().map(u64::to_string).collect()), vec![line("share", &runs, full)]),
        ],
        claims: vec![
            Claim::new("without pauses the window is as large as the buffer most of the time: at least 80 %", None, share, "%", share.mean >= 80.0)
                .because(|| format!("{lost:.0} % of the segments are lost; each of {:.0} recoveries and {:.0} timeouts per 100 s at least halves the window, and it takes two round trips of {:.0} ms to grow from two segments to four", fast_none.mean, slow_none.mean, summary(&runs[0], |run| run.rtt_ms).mean)),
            Claim::value("fast recoveries become fewer with d: at 40 ms at most half of those at 0", None, fast_some.mean / fast_none.mean.max(1e-9), n, "times", fast_some.mean <= 0.5 * fast_none.mean)
                .because(|| format!("{:.1} and {:.1} per 100 s", fast_none.mean, fast_some.mean)),
            Claim::value("timeouts do not become fewer with d: at 40 ms at least half of those at 0", None, slow_some.mean / slow_none.mean.max(1e-9), n, "times", slow_some.mean >= 0.5 * slow_none.mean)
                .because(|| format!("{:.1} at d = 0 and {:.1} at 40 ms per 100 s; here timeouts follow repeated collisions, which pauses prevent", slow_none.mean, slow_some.mean)),
        ],
        notes: vec![
            format!("motes {SPACING} m apart, as in Figure 5"),
            "6a is the first seed's run; during fast recovery the paper's stack reports a window of one segment, ours the window of PRR".into(),
        ],
    })
}
