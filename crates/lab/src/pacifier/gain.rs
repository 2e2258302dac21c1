//! How much better one system is than another, scenario by scenario.

use crate::statistics::Summary;

/// The gain of `b` over `a` in per cent, averaged over scenarios as the paper averages: the mean of the scenarios'
/// own gains. A scenario in which `a` got nothing has no gain and is left out.
pub fn gain(a: &[f64], b: &[f64]) -> Summary {
    Summary::of(&gains(a, b))
}

/// The gain in each scenario, in per cent.
pub fn gains(a: &[f64], b: &[f64]) -> Vec<f64> {
    let usable = a.iter().zip(b).filter(|(a, _)| **a > 0.0);
    usable.map(|(a, b)| 100.0 * (b / a - 1.0)).collect()
}

/// In how many scenarios `b` is above `a`.
pub fn better(a: &[f64], b: &[f64]) -> usize {
    a.iter().zip(b).filter(|(a, b)| b > a).count()
}

/// Whether a gain is positive beyond its interval.
pub fn surely_positive(gain: &Summary) -> bool {
    gain.interval().is_some_and(|(low, _)| low > 0.0)
}

/// Whether a gain is negative beyond its interval.
pub fn surely_negative(gain: &Summary) -> bool {
    gain.interval().is_some_and(|(_, high)| high < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_averaged_over_scenarios() {
        let gain = gain(&[100.0, 200.0, 0.0], &[150.0, 200.0, 5.0]);
        assert_eq!((gain.n, gain.mean), (2, 25.0));
        assert!(!surely_positive(&gain));
        assert_eq!(better(&[1.0, 2.0], &[2.0, 2.0]), 1);
    }
}
