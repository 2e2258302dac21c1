//! The kinds of claims that several figures make.

use chappe_results::figure::Claim;
use chappe_results::statistics::Summary;

/// Claims that our mean is within `share` of the paper's value.
pub fn within(text: &str, paper: f64, ours: &[f64], unit: &'static str, share: f64) -> Claim {
    let ours = Summary::of(ours);
    let text = format!("{text}, to within {:.0} %", share * 100.0);
    let holds = (ours.mean / paper - 1.0).abs() <= share;
    Claim::new(&text, Some(paper), ours, unit, holds)
        .because(|| format!("ours is {:.2} times the paper's", ours.mean / paper))
}

/// Claims that our value is at least the goal.
pub fn at_least(
    text: &str,
    paper: Option<f64>,
    goal: f64,
    ours: f64,
    n: usize,
    unit: &'static str,
) -> Claim {
    let text = format!("{text}: at least {goal}");
    Claim::value(&text, paper, ours, n, unit, ours >= goal).because(|| format!("ours is {ours:.1}"))
}

/// A goal of ours: the mean is at least `goal`.
pub fn mean_at_least(text: &str, goal: f64, ours: &[f64], unit: &'static str) -> Claim {
    let ours = Summary::of(ours);
    let text = format!("{text}: at least {goal}");
    Claim::new(&text, None, ours, unit, ours.mean >= goal)
        .as_goal()
        .because(|| {
            format!(
                "ours is {:.1}, from {:.1} to {:.1}",
                ours.mean, ours.min, ours.max
            )
        })
}
