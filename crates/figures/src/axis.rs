//! Where values and places stand on an axis: to scale where they are numbers, at equal distances where they are names.

use chappe_results::figure::{Panel, PanelKind};

/// From this ratio of the largest to the smallest value on, an axis is logarithmic.
const LOG_FROM: f64 = 50.0;

/// A number at the beginning of a label, and what follows it: `65 km`.
pub(crate) fn number_of(label: &str) -> Option<(f64, &str)> {
    let label = label.trim();
    let end = label
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(label.len());
    let (number, unit) = label.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// A scale of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub low: f64,
    pub high: f64,
    pub log: bool,
}

impl Scale {
    /// Where a value lies between both ends, from 0 to 1.
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }

    /// A scale from `low` to `high` with round ends, and its ticks. Values that differ much, all above zero, get a logarithmic one if
    /// `may_log`.
    pub fn round(low: f64, high: f64, smallest: f64, may_log: bool) -> (Scale, Vec<f64>) {
        if may_log && smallest > 0.0 && high / smallest >= LOG_FROM {
            return decades(smallest, high);
        }
        let step = step((high - low).max(1e-9) * 1.05);
        let scale = Scale {
            low: (low * 1.05 / step).floor() * step,
            high: (high * 1.05 / step).ceil().max(1.0) * step,
            log: false,
        };
        let lines = ((scale.high - scale.low) / step).round() as usize;
        let ticks = (0..=lines).map(|line| scale.low + line as f64 * step);
        (scale, ticks.collect())
    }
}

/// A logarithmic scale of whole decades or, where that would leave much room, of 1, 2, 5.
fn decades(smallest: f64, largest: f64) -> (Scale, Vec<f64>) {
    let mut ticks = Vec::new();
    let mut power = 10f64.powi(smallest.log10().floor() as i32);
    while power <= largest * 10.0 {
        ticks.extend([1.0, 2.0, 5.0].map(|factor| factor * power));
        power *= 10.0;
    }
    let first = ticks
        .iter()
        .rposition(|tick| *tick <= smallest)
        .unwrap_or(0);
    let last = ticks
        .iter()
        .position(|tick| *tick >= largest)
        .unwrap_or(ticks.len() - 1);
    let ticks = ticks[first..=last].to_vec();
    let scale = Scale {
        low: ticks[0],
        high: ticks[ticks.len() - 1],
        log: true,
    };
    (scale, ticks)
}

/// A round step that divides a range into four to eight parts.
pub(crate) fn step(range: f64) -> f64 {
    let rough = (range / 5.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    power
        * steps
            .into_iter()
            .find(|step| step * power >= rough)
            .unwrap_or(10.0)
}

/// The places of a panel as shares of its width.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Places {
    /// The middle of each place, from 0 to 1.
    pub at: Vec<f64>,
    /// The smallest distance between two of them.
    pub gap: f64,
    /// Whether they are numbers to scale.
    pub to_scale: bool,
    /// Whether that scale is logarithmic.
    pub log: bool,
}

impl Places {
    /// A panel of lines whose places are three or more growing numbers of one unit has them to scale.
    pub fn of(panel: &Panel) -> Places {
        let count = panel.places.len().max(1) as f64;
        let even = || Places {
            at: (0..panel.places.len())
                .map(|place| (place as f64 + 0.5) / count)
                .collect(),
            gap: 1.0 / count,
            to_scale: false,
            log: false,
        };
        match numbers(panel) {
            Some(numbers) if panel.kind == PanelKind::Lines => scaled(&numbers),
            _ => even(),
        }
    }
}

/// The places as numbers, if they are three or more that grow and have one unit.
fn numbers(panel: &Panel) -> Option<Vec<f64>> {
    let all: Vec<(f64, &str)> = panel
        .places
        .iter()
        .map(|label| number_of(label))
        .collect::<Option<_>>()?;
    let unit = all.first()?.1;
    let fit = all.len() > 2
        && all.iter().all(|(_, other)| *other == unit)
        && all.windows(2).all(|pair| pair[0].0 < pair[1].0);
    fit.then(|| all.iter().map(|(number, _)| *number).collect())
}

fn scaled(numbers: &[f64]) -> Places {
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    let log = first > 0.0 && last / first >= LOG_FROM;
    let scale = Scale {
        low: first,
        high: last,
        log,
    };
    // Room at both ends for markers and whiskers.
    let at: Vec<f64> = numbers
        .iter()
        .map(|number| 0.05 + 0.9 * scale.share(*number))
        .collect();
    let gap = at
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .fold(1.0, f64::min);
    Places {
        at,
        gap,
        to_scale: true,
        log,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_results::figure::Series;

    fn places(labels: &[&str]) -> Places {
        let places: Vec<String> = labels.iter().map(|label| label.to_string()).collect();
        Places::of(&Panel::lines(
            "1",
            "t",
            "kbit/s",
            ("x", places),
            Vec::<Series>::new(),
        ))
    }

    #[test]
    fn numbers_are_to_scale_and_names_are_not() {
        let scaled = places(&["0 km", "10 km", "100 km"]);
        assert!(scaled.to_scale && !scaled.log);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            near(scaled.at[0], 0.05) && near(scaled.at[1], 0.14) && near(scaled.at[2], 0.95),
            "{scaled:?}"
        );
        assert!(places(&["1", "10", "1000"]).log);
        for named in [
            &["a", "b", "c"][..],
            &["1 km", "2 m", "3 km"],
            &["3", "2", "1"],
            &["1", "2"],
        ] {
            assert!(!places(named).to_scale, "{named:?}");
        }
        assert_eq!(places(&["a", "b"]).at, [0.25, 0.75]);
    }

    #[test]
    fn values_far_apart_have_decades() {
        let (scale, ticks) = Scale::round(0.0, 900.0, 3.0, true);
        assert_eq!((scale.low, scale.high, scale.log), (2.0, 1000.0, true));
        assert!(ticks.contains(&50.0));
        let share = |value: f64| scale.share(value);
        assert!((share(20.0) - share(2.0) - (share(200.0) - share(20.0))).abs() < 1e-9);
        assert!(
            !Scale::round(0.0, 900.0, 0.0, true).0.log,
            "zero has no place on it"
        );
        assert!(!Scale::round(0.0, 900.0, 3.0, false).0.log);
    }

    #[test]
    fn steps_are_round() {
        for (range, expected) in [(100.0, 20.0), (48.0, 10.0), (0.95, 0.2), (1383.0, 500.0)] {
            assert_eq!(step(range), expected, "{range}");
        }
    }
}
