//! Our goals for the improved variant, held against the runs of Figure 7. No parameter was chosen on its networks.

use crate::series::{Runs, summary};
use crate::trial::Measured;
use chappe_lab_dpclo::optimum::{Optimum, jain};
use chappe_results::figure::Claim;
use chappe_results::statistics::{Summary, mean};

/// The share of the proportionally fair rates' geometric mean.
const GEOMETRIC: f64 = 65.0;
/// Jain's index of the sources' rates, in percent.
const JAIN: f64 = 80.0;
/// The share of the least of these rates.
const LEAST: f64 = 50.0;
/// Packets lost, of those accepted.
const LOST: f64 = 0.5;
/// The share of the final rates five seconds after the start.
const SOON: f64 = 90.0;

/// The goals of one channel access. `optima` are those of the runs' networks.
pub fn claims(access: &str, runs: &Runs, optima: &[Optimum]) -> Vec<Claim> {
    let each = |value: &dyn Fn(&Measured, &Optimum) -> f64| -> Vec<f64> {
        let pairs = runs.iter().zip(optima);
        pairs.map(|(run, optimum)| value(run, optimum)).collect()
    };
    let least = |optimum: &Optimum| least(&optimum.sum_log_bps) / 1e3;
    let geometric = each(&|run, optimum| 1e5 * run.geometric_mean() / optimum.geometric_mean_bps());
    let index = each(&|run, _| 100.0 * run.jain());
    let smallest = each(&|run, optimum| 100.0 * run.least() / least(optimum));
    let fairest: Vec<f64> = optima
        .iter()
        .map(|of| 100.0 * jain(&of.sum_log_bps))
        .collect();
    let lost = summary(runs, |run| 100.0 * run.lost);
    let circled = summary(runs, |run| run.circled as f64);
    let soon = summary(runs, |run| 100.0 * started(run));
    let goal = |text: &str, ours: Summary, unit, holds| {
        Claim::new(&format!("{text}, {access}"), None, ours, unit, holds).as_goal()
    };
    let above = |text: &str, values: &[f64], unit, bound: f64| {
        let ours = Summary::of(values);
        let worst = format!("{:.0} % on the worst network", self::least(values));
        goal(text, ours, unit, ours.mean >= bound).because(|| worst)
    };
    vec![
        above(
            "the geometric mean is at least 65 % of the proportionally fair one",
            &geometric,
            "% of it",
            GEOMETRIC,
        ),
        above("Jain's index is at least 0.8", &index, "%", JAIN).because(|| {
            format!(
                "the proportionally fair rates themselves have {:.0} % in the mean, {:.0} % at most: a source beside the sink costs the least air",
                mean(&fairest),
                fairest.iter().copied().fold(0.0, f64::max)
            )
        }),
        above(
            "the least source gets at least half of the least proportionally fair rate",
            &smallest,
            "% of it",
            LEAST,
        ),
        goal(
            "fewer than 0.5 % of the accepted packets are lost",
            lost,
            "%",
            lost.mean < LOST,
        ),
        goal("no packet reaches its hop limit", circled, "packets", circled.mean == 0.0),
        goal(
            "after five seconds the geometric mean is at least 90 % of the final one",
            soon,
            "% of it",
            soon.mean >= SOON,
        ),
    ]
}

/// The geometric mean in the second step of the course, from five to ten seconds after the start, as a share of that in the
/// second half of the course.
fn started(run: &Measured) -> f64 {
    let ratio = |steps: &Vec<f64>| steps[1] / mean(&steps[steps.len() / 2..]).max(1e-9);
    let logs: Vec<f64> = run
        .course
        .iter()
        .map(|steps| libm::log(ratio(steps).max(1e-9)))
        .collect();
    libm::exp(mean(&logs))
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
