//! Means with their uncertainty, paired comparisons and order statistics.
//!
//! Every number that Chappe prints about several runs comes from a [`Summary`], so that each has its n and its interval.
//! Values measured on one seed are compared as pairs: two protocols on one seed meet the same network and the same air,
//! and pairing removes that common part from the uncertainty.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean, spread and extremes of independent values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of values.
    pub n: usize,
    /// Their mean; zero if there are none.
    pub mean: f64,
    /// Half the width of the 95 % interval of the mean (Student's t); `None` for fewer than two values.
    pub ci95: Option<f64>,
    /// The smallest value; zero if there are none.
    pub min: f64,
    /// The largest value; zero if there are none.
    pub max: f64,
}

impl Summary {
    /// The summary of independent values.
    pub fn of(values: &[f64]) -> Summary {
        let n = values.len();
        if n == 0 {
            return Summary {
                n,
                mean: 0.0,
                ci95: None,
                min: 0.0,
                max: 0.0,
            };
        }
        let mean = mean(values);
        Summary {
            n,
            mean,
            ci95: (n > 1).then(|| t_quantile(n - 1) * (variance(values, mean) / n as f64).sqrt()),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Lower and upper end of the 95 % interval, if there is one.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.ci95.map(|half| (self.mean - half, self.mean + half))
    }

    /// The summary of the values times `factor`.
    pub fn scaled(self, factor: f64) -> Summary {
        Summary {
            n: self.n,
            mean: self.mean * factor,
            ci95: self.ci95.map(|half| half * factor.abs()),
            min: (self.min * factor).min(self.max * factor),
            max: (self.min * factor).max(self.max * factor),
        }
    }
}

/// The mean; zero for no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        0.0
    } else {
        values.iter().sum::<f64>() / values.len() as f64
    }
}

/// Sample variance, with n - 1.
fn variance(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len().max(2) - 1) as f64
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom.
fn t_quantile(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(f64::NAN, |t| t.inverse_cdf(0.975))
}

/// The value below which a share `p` of the values lies, by linear interpolation between order statistics
/// (the default of NumPy and R: type 7 of Hyndman and Fan, 1996). `None` for no values.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = p.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let low = sorted[at.floor() as usize];
    let high = sorted[at.ceil() as usize];
    Some(low + (high - low) * at.fract())
}

/// B compared with A, pair by pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// The differences B - A.
    pub difference: Summary,
    /// The geometric mean of B / A and its 95 % interval; `None` if a value is not positive.
    pub ratio: Option<Ratio>,
}

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The number of pairs.
    pub n: usize,
    /// The geometric mean of the ratios.
    pub mean: f64,
    /// Lower end, if there are at least two pairs.
    pub low: Option<f64>,
    /// Upper end, if there are at least two pairs.
    pub high: Option<f64>,
}

/// Compares pairs `(a, b)`.
pub fn paired(pairs: &[(f64, f64)]) -> Paired {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    Paired {
        difference: Summary::of(&differences),
        ratio: ratio(pairs),
    }
}

/// The geometric mean of b / a over pairs `(a, b)`, with the t-interval of its logarithm.
pub fn ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let positive = pairs.iter().all(|&(a, b)| a > 0.0 && b > 0.0);
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    let summary = Summary::of(&logs);
    (positive && !pairs.is_empty()).then(|| Ratio {
        n: pairs.len(),
        mean: summary.mean.exp(),
        low: summary.interval().map(|(low, _)| low.exp()),
        high: summary.interval().map(|(_, high)| high.exp()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs().max(1.0)
    }

    /// Quantiles as in every table of Student's t.
    #[test]
    fn t_quantiles_match_the_tables() {
        for (freedom, expected) in [
            (1, 12.706),
            (4, 2.776),
            (9, 2.262),
            (30, 2.042),
            (1000, 1.962),
        ] {
            assert!(near(t_quantile(freedom), expected), "{freedom}");
        }
    }

    /// By hand: mean 5, sample variance 32/7, standard error 0.7559, t(7) = 2.3646.
    #[test]
    fn a_summary_by_hand() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(
            (summary.n, summary.mean, summary.min, summary.max),
            (8, 5.0, 2.0, 9.0)
        );
        assert!(near(summary.ci95.unwrap(), 1.7876));
        assert_eq!(Summary::of(&[3.0]).ci95, None);
        assert_eq!(Summary::of(&[]).n, 0);
    }

    /// The interval covers the true mean in about 95 of 100 repetitions: 2,000 of five normal values each.
    #[test]
    fn intervals_cover_the_true_mean() {
        let mut stream = chappe_core::Seed(5).stream(chappe_core::Purpose::Trial(7));
        let mut covered = 0;
        for _ in 0..2000 {
            let values: Vec<f64> = (0..5).map(|_| 10.0 + stream.normal()).collect();
            let (low, high) = Summary::of(&values).interval().unwrap();
            covered += u32::from(low <= 10.0 && 10.0 <= high);
        }
        // 95 % of 2000 with four standard deviations (9.7 each) on both sides.
        assert!((1861..=1939).contains(&covered), "{covered}");
    }

    #[test]
    fn quantiles_interpolate() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert!(near(quantile(&values, 0.9).unwrap(), 3.7));
        assert_eq!(quantile(&[], 0.5), None);
    }

    /// Pairs that differ by exactly a factor of two have that ratio and no doubt about it.
    #[test]
    fn pairing_removes_common_variation() {
        let paired = paired(&[(1.0, 2.0), (10.0, 20.0), (100.0, 200.0)]);
        let ratio = paired.ratio.unwrap();
        assert!(
            near(ratio.mean, 2.0)
                && near(ratio.low.unwrap(), 2.0)
                && near(ratio.high.unwrap(), 2.0)
        );
        assert_eq!(super::ratio(&[(0.0, 1.0)]), None);
    }
}
