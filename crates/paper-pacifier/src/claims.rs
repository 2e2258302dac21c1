//! Kinds of claims that several figures make, and the rules by which they hold.
//!
//! "On average" is ambiguous for ratios. [`gain`] gives the geometric mean of the scenarios' ratios with its own interval,
//! which no single scenario dominates, and the ratio of the means beside it.

use chappe_results::figure::Claim;
use chappe_results::statistics::{Summary, mean, ratio};

/// The largest relative deviation at which a number counts as equal to the paper's.
const NEAR: f64 = 0.25;

/// The claimed direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The change is above zero.
    More,
    /// The change is below zero.
    Less,
}

/// The change from `a` to `b` in per cent: the geometric mean of the scenarios' ratios and its 95 % interval. Holds if the
/// interval lies entirely on the claimed side. Scenarios in which either got nothing are excluded; `n` counts the others.
pub fn gain(text: &str, paper: Option<f64>, a: &[f64], b: &[f64], sign: Sign) -> Claim {
    let pairs: Vec<(f64, f64)> = a
        .iter()
        .copied()
        .zip(b.iter().copied())
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    let per_cent = |ratio: f64| 100.0 * (ratio - 1.0);
    let geometric = ratio(&pairs);
    let interval = geometric.and_then(|ratio| Some((per_cent(ratio.low?), per_cent(ratio.high?))));
    let holds = interval.is_some_and(|(low, high)| match sign {
        Sign::More => low > 0.0,
        Sign::Less => high < 0.0,
    });
    let each: Vec<f64> = pairs.iter().map(|(a, b)| per_cent(b / a)).collect();
    let ours = Summary {
        mean: geometric.map_or(0.0, |ratio| per_cent(ratio.mean)),
        ci95: None,
        ..Summary::of(&each)
    };
    let mut claim = Claim::new(text, paper, ours, "%", holds);
    claim.interval = interval;
    claim.of_averages = (mean(a) > 0.0).then(|| per_cent(mean(b) / mean(a)));
    claim.because(|| match interval {
        Some((low, high)) => format!(
            "the 95 % interval of the geometric mean, {low:+.0} to {high:+.0} %, is not entirely on this side of zero; the \
             scenarios lie between {:+.0} and {:+.0} %",
            ours.min, ours.max
        ),
        None => "fewer than two scenarios delivered anything with both".into(),
    })
}

/// The paper's count out of its ten scenarios, for `n` of ours.
pub fn of_ten(paper: f64, n: usize) -> Option<f64> {
    Some(paper * n as f64 / 10.0)
}

/// The change in each scenario in per cent. Scenarios in which `a` got nothing are excluded.
pub fn gains(a: &[f64], b: &[f64]) -> Vec<f64> {
    let usable = a.iter().zip(b).filter(|(a, _)| **a > 0.0);
    usable.map(|(a, b)| 100.0 * (b / a - 1.0)).collect()
}

/// The number of scenarios in which `b` exceeds `a`.
pub fn better(a: &[f64], b: &[f64]) -> usize {
    a.iter().zip(b).filter(|(a, b)| b > a).count()
}

/// A value that the paper gives; the claim holds if our mean is within a quarter of it.
pub fn near(text: &str, paper: f64, ours: &[f64], unit: &'static str) -> Claim {
    let ours = Summary::of(ours);
    let text = format!("{text}, to within a quarter");
    Claim::new(&text, Some(paper), ours, unit, is_near(ours.mean, paper))
        .because(|| format!("ours is {:.2} times the paper's", ours.mean / paper))
}

/// Whether a value is within a quarter of the paper's.
pub fn is_near(ours: f64, paper: f64) -> bool {
    (ours / paper - 1.0).abs() <= NEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_has_the_geometric_mean_and_the_ratio_of_means() {
        let claim = gain(
            "t",
            None,
            &[100.0, 200.0, 0.0],
            &[150.0, 220.0, 5.0],
            Sign::More,
        );
        assert_eq!(claim.ours.n, 2);
        let geometric = 100.0 * ((1.5f64 * 1.1).sqrt() - 1.0);
        assert!((claim.ours.mean - geometric).abs() < 1e-9);
        let (low, high) = claim.interval.unwrap();
        assert!(low < geometric && geometric < high && (high - geometric) > (geometric - low));
        assert_eq!(claim.ours.ci95, None);
        assert!((claim.of_averages.unwrap() - 25.0).abs() < 1e-9);
        assert!(!claim.holds && claim.why.is_some());
        assert_eq!(better(&[1.0, 2.0], &[2.0, 2.0]), 1);
    }

    /// The intervals of ratios 2 and 2.1 exclude 1, and so do those of their inverses.
    #[test]
    fn a_gain_holds_if_its_interval_excludes_one() {
        let (a, b) = ([100.0, 100.0, 100.0], [200.0, 210.0, 205.0]);
        assert!(gain("t", None, &a, &b, Sign::More).holds);
        assert!(gain("t", None, &b, &a, Sign::Less).holds);
        assert!(!gain("t", None, &a, &b, Sign::Less).holds);
    }

    #[test]
    fn values_within_a_quarter_are_near() {
        assert!(near("t", 100.0, &[124.0], "x").holds && !near("t", 100.0, &[126.0], "x").holds);
    }
}
