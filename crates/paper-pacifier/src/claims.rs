//! Kinds of claims that several figures make, and the rules by which they hold.
//!
//! "On average" is ambiguous for ratios. [`gain`] gives the mean of the scenarios' ratios and the ratio of the means. The
//! claim is decided by the geometric mean, which no single scenario dominates.

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

/// The change from `a` to `b` in per cent, scenario by scenario; holds if the 95 % interval of the geometric mean of
/// the ratios lies entirely on the claimed side. Scenarios in which either got nothing are excluded from the ratios.
pub fn gain(text: &str, paper: Option<f64>, a: &[f64], b: &[f64], sign: Sign) -> Claim {
    let pairs: Vec<(f64, f64)> = a
        .iter()
        .copied()
        .zip(b.iter().copied())
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    let geometric = ratio(&pairs);
    let holds = geometric.is_some_and(|ratio| match sign {
        Sign::More => ratio.low.is_some_and(|low| low > 1.0),
        Sign::Less => ratio.high.is_some_and(|high| high < 1.0),
    });
    let mut claim = Claim::new(text, paper, Summary::of(&gains(a, b)), "%", holds);
    claim.of_averages = (mean(a) > 0.0).then(|| 100.0 * (mean(b) / mean(a) - 1.0));
    claim.because(|| match geometric {
        Some(ratio) => format!(
            "the geometric mean of the ratios is {:.2}, its 95 % interval {:.2} to {:.2}",
            ratio.mean,
            ratio.low.unwrap_or(f64::NAN),
            ratio.high.unwrap_or(f64::NAN)
        ),
        None => "no scenario delivered anything with both".into(),
    })
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
    fn a_gain_has_the_mean_of_ratios_and_the_ratio_of_means() {
        let claim = gain(
            "t",
            None,
            &[100.0, 200.0, 0.0],
            &[150.0, 220.0, 5.0],
            Sign::More,
        );
        assert_eq!(claim.ours.n, 2);
        assert!((claim.ours.mean - 30.0).abs() < 1e-9);
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
