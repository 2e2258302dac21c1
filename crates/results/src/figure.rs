//! A figure: panels of series, our values and the paper's, the bound, and claims that a predicate checks.
//!
//! A figure's rows are its golden table: [`Figure::rows`] rounds them to whole numbers, a test compares them with a
//! file, and drawings are made from the same panels.

use std::fmt::Write as _;

use serde::{Deserialize, Deserializer, Serialize};

use crate::statistics::{Ratio, Summary, quantile};

/// A figure of a paper, made again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name for the command line: `figure3`.
    #[serde(deserialize_with = "name")]
    pub id: Name,
    /// What the figure shows, as its heading.
    pub title: String,
    /// The panels, in the paper's order.
    pub panels: Vec<Panel>,
    /// What the paper says about it, checked.
    pub claims: Vec<Claim>,
    /// What a reader must know to read it, in sentences.
    pub notes: Vec<String>,
}

/// A part of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// The panel's name in the paper: `3a`.
    pub id: String,
    /// What the panel shows, as its heading.
    pub title: String,
    /// The unit of its values.
    #[serde(deserialize_with = "name")]
    pub unit: Name,
    /// How it is drawn.
    pub kind: PanelKind,
    /// What the places of the axis are: `scenario`.
    #[serde(deserialize_with = "name")]
    pub axis: Name,
    /// What stands under each place of the axis.
    pub places: Vec<String>,
    /// The series that the panel compares.
    pub series: Vec<Series>,
    /// What no system can exceed at each place, if it is known: the bound of what the panel shows.
    pub bound: Vec<Option<f64>>,
    /// The names of the series that `bound` bounds; all of them, if empty.
    #[serde(default)]
    pub bounded: Vec<String>,
    /// The bound of the slowest receiver at each place, if it is known. Systems that serve all receivers at one
    /// rate cannot exceed it with their mean either.
    pub worst_bound: Vec<Option<f64>>,
}

/// How a panel is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PanelKind {
    /// A bar for each place and series.
    Bars,
    /// A line for each series.
    Lines,
    /// The share of samples below each value; the places are quantiles of them.
    Cdf,
}

/// The values of one system, one for each place of the axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the key of the panel.
    pub name: String,
    /// Our values, for each place.
    pub ours: Vec<Summary>,
    /// The paper's values, for each place that the paper gives one for.
    pub paper: Vec<Option<f64>>,
    /// All samples, for a CDF.
    pub samples: Vec<f64>,
    /// 95 % intervals that do not lie evenly about the values, such as those of ratios; empty where [`Series::ours`] has them.
    pub intervals: Vec<Option<(f64, f64)>>,
}

/// A name that lives as long as the program.
pub type Name = &'static str;

/// Reads such a name. Few are read, and each only once.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
    Ok(String::deserialize(deserializer)?.leak())
}

/// The share of a paper's number by which ours may differ and still counts as reproduced. Our choice: the papers give most numbers
/// without an interval, and read from a drawing a value is a tenth off.
pub const NUMBER_TOLERANCE: f64 = 0.25;

/// A statement of the paper, and whether it holds here; or a goal of ours, and whether it is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The claim, and with it the predicate.
    pub text: String,
    /// The paper's number, if there is one.
    pub paper: Option<f64>,
    /// Our value of the same quantity.
    pub ours: Summary,
    /// The 95 % interval, where it is not symmetric: that of a geometric mean.
    pub interval: Option<(f64, f64)>,
    /// For a mean of ratios: the same from the ratio of the means over all scenarios.
    pub of_averages: Option<f64>,
    /// The unit of all of them.
    #[serde(deserialize_with = "name")]
    pub unit: Name,
    /// Whether it holds here.
    pub holds: bool,
    /// Whether it is a goal of ours, and no statement of the paper.
    pub goal: bool,
    /// Why it does not, from what was counted; a sentence.
    pub why: Option<String>,
}

impl Claim {
    /// A claim about a summary.
    pub fn new(
        text: &str,
        paper: Option<f64>,
        ours: Summary,
        unit: &'static str,
        holds: bool,
    ) -> Claim {
        Claim {
            text: text.into(),
            paper,
            ours,
            interval: None,
            of_averages: None,
            unit,
            holds,
            goal: false,
            why: None,
        }
    }

    /// A claim about a count out of `n`.
    pub fn count(text: &str, paper: Option<f64>, ours: usize, n: usize, holds: bool) -> Claim {
        Claim::value(text, paper, ours as f64, n, "", holds)
    }

    /// A claim about a value without an interval, taken from `n` values.
    pub fn value(
        text: &str,
        paper: Option<f64>,
        ours: f64,
        n: usize,
        unit: &'static str,
        holds: bool,
    ) -> Claim {
        Claim::new(
            text,
            paper,
            Summary {
                n,
                ..Summary::of(&[ours])
            },
            unit,
            holds,
        )
    }

    /// The same as a goal of ours.
    pub fn as_goal(self) -> Claim {
        Claim { goal: true, ..self }
    }

    /// How far our value lies from the paper's number, as a share of it. `None` without a number, or if it is zero.
    pub fn off(&self) -> Option<f64> {
        let paper = self.paper.filter(|paper| *paper != 0.0)?;
        Some(self.ours.mean / paper - 1.0)
    }

    /// Whether our value reproduces the paper's number: it is at most [`NUMBER_TOLERANCE`] off, or the number lies in our
    /// interval. `None` for a statement without a number.
    pub fn reproduces(&self) -> Option<bool> {
        let paper = self.paper?;
        let far = (self.ours.mean - paper).abs();
        let near = far <= NUMBER_TOLERANCE * paper.abs();
        let within = |(low, high): (f64, f64)| (low..=high).contains(&paper);
        let interval = self.interval.or(self.ours.interval());
        Some(near || interval.is_some_and(within))
    }

    /// Whether a statement of the paper is reproduced: it holds, and so does its number if it has one. Of a goal of ours: whether
    /// it is met.
    pub fn is_good(&self) -> bool {
        self.holds && (self.goal || self.reproduces() != Some(false))
    }

    /// Adds the reason why the claim does not hold; does nothing if it holds.
    pub fn because(mut self, why: impl FnOnce() -> String) -> Claim {
        self.why = (!self.holds).then(why);
        self
    }
}

/// Quantiles that stand for a CDF in tables.
pub const QUANTILES: [(&str, f64); 5] = [
    ("p10", 0.1),
    ("p25", 0.25),
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
];

impl Series {
    /// A series without anything from the paper.
    pub fn new(name: &str, ours: Vec<Summary>) -> Series {
        let paper = vec![None; ours.len()];
        Series {
            name: name.into(),
            ours,
            paper,
            samples: Vec::new(),
            intervals: Vec::new(),
        }
    }

    /// Geometric means of ratios with their intervals.
    pub fn of_ratios(name: &str, ratios: &[Option<Ratio>]) -> Series {
        let mean = |ratio: &Option<Ratio>| match ratio {
            Some(ratio) => Summary {
                n: ratio.n,
                ..Summary::of(&[ratio.mean])
            },
            None => Summary {
                mean: f64::NAN,
                ..Summary::of(&[])
            },
        };
        let interval =
            |ratio: &Option<Ratio>| ratio.and_then(|ratio| Some((ratio.low?, ratio.high?)));
        Series {
            intervals: ratios.iter().map(interval).collect(),
            ..Series::new(name, ratios.iter().map(mean).collect())
        }
    }

    /// The 95 % interval at a place, if there is one.
    pub fn interval(&self, place: usize) -> Option<(f64, f64)> {
        match self.intervals.get(place) {
            Some(interval) => *interval,
            None => self.ours.get(place)?.interval(),
        }
    }

    /// One value at each place, and their mean with its interval at a last one. `paper` is the paper's mean.
    pub fn with_mean(name: &str, values: &[f64], paper: Option<f64>) -> Series {
        let mut ours: Vec<Summary> = values.iter().map(|&value| Summary::of(&[value])).collect();
        ours.push(Summary::of(values));
        let mut series = Series::new(name, ours);
        if let Some(last) = series.paper.last_mut() {
            *last = paper;
        }
        series
    }

    /// Samples, shown by their quantiles.
    pub fn distribution(name: &str, samples: Vec<f64>, paper: [Option<f64>; 5]) -> Series {
        let at = |p: f64| quantile(&samples, p).unwrap_or(0.0);
        let ours = QUANTILES.map(|(_, p)| Summary {
            n: samples.len(),
            ci95: None,
            ..Summary::of(&[at(p)])
        });
        Series {
            name: name.into(),
            ours: ours.to_vec(),
            paper: paper.to_vec(),
            samples,
            intervals: Vec::new(),
        }
    }
}

impl Figure {
    /// The golden table: whole numbers, a line for each place of each panel.
    pub fn rows(&self) -> String {
        let mut text = String::new();
        for panel in &self.panels {
            let names: Vec<&str> = panel
                .series
                .iter()
                .map(|series| series.name.as_str())
                .collect();
            let _ = writeln!(text, "{} {} | {}", panel.id, panel.unit, names.join(" | "));
            for (place, label) in panel.places.iter().enumerate() {
                let values: Vec<String> = panel
                    .series
                    .iter()
                    .map(|series| whole(panel, series.ours[place].mean))
                    .collect();
                let _ = writeln!(text, "{} {label} | {}", panel.id, values.join(" | "));
            }
        }
        text
    }
}

/// A value as golden tables have it: whole, in units small enough to show a change of one in a hundred.
fn whole(panel: &Panel, value: f64) -> String {
    match panel.unit {
        "times" => format!("{:.0}", value * 100.0),
        _ => format!("{value:.0}"),
    }
}

impl Panel {
    /// A panel of bars over scenarios.
    pub fn bars(
        id: &str,
        title: &str,
        unit: &'static str,
        places: Vec<String>,
        series: Vec<Series>,
    ) -> Panel {
        let (bound, worst_bound) = (Vec::new(), Vec::new());
        let (id, title, kind) = (id.into(), title.into(), PanelKind::Bars);
        Panel {
            id,
            title,
            unit,
            kind,
            axis: "scenario",
            places,
            series,
            bound,
            bounded: Vec::new(),
            worst_bound,
        }
    }

    /// The same over another axis than scenarios.
    pub fn on(self, axis: &'static str) -> Panel {
        Panel { axis, ..self }
    }

    /// A panel of lines, one for each series, over the places of `axis`.
    pub fn lines(
        id: &str,
        title: &str,
        unit: &'static str,
        (axis, places): (&'static str, Vec<String>),
        series: Vec<Series>,
    ) -> Panel {
        Panel {
            kind: PanelKind::Lines,
            ..Panel::bars(id, title, unit, places, series).on(axis)
        }
    }

    /// A panel of distributions.
    pub fn cdf(id: &str, title: &str, unit: &'static str, series: Vec<Series>) -> Panel {
        let places = QUANTILES.map(|(name, _)| name.to_string()).to_vec();
        Panel {
            kind: PanelKind::Cdf,
            axis: "quantile",
            ..Panel::bars(id, title, unit, places, series)
        }
    }

    /// The same with a bound of these series alone: others follow other rules, and may exceed it.
    pub fn bounding(self, series: &[&str]) -> Panel {
        Panel {
            bounded: series.iter().map(|name| name.to_string()).collect(),
            ..self
        }
    }

    /// The bound of a series at a place; `None` if it is not known, or is the bound of other series.
    pub fn bound_of(&self, series: &str, place: usize) -> Option<f64> {
        let bounds = self.bounded.is_empty() || self.bounded.iter().any(|name| name == series);
        self.bound.get(place).copied().flatten().filter(|_| bounds)
    }

    /// The same with the bound of what it shows, and that of the worst receiver.
    pub fn bounded(self, bound: Vec<Option<f64>>, worst_bound: Vec<Option<f64>>) -> Panel {
        Panel {
            bound,
            worst_bound,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        Figure {
            id: "figure1",
            title: "a test".into(),
            panels: vec![Panel {
                id: "1a".into(),
                title: "goodput".into(),
                unit: "kbit/s",
                kind: PanelKind::Bars,
                axis: "scenario",
                places: vec!["1".into(), "2".into(), "mean".into()],
                series: vec![Series::with_mean("A", &[100.4, 201.0], Some(150.0))],
                bound: vec![Some(400.0), None, None],
                bounded: Vec::new(),
                worst_bound: Vec::new(),
            }],
            claims: vec![Claim::count("better", Some(8.0), 2, 2, true)],
            notes: vec!["n".into()],
        }
    }

    #[test]
    fn golden_rows_are_whole_numbers() {
        assert_eq!(
            figure().rows(),
            "1a kbit/s | A\n1a 1 | 100\n1a 2 | 201\n1a mean | 151\n"
        );
    }

    /// A figure that was kept is the same when it is read again.
    #[test]
    fn figures_are_kept_as_json() {
        let mut figure = figure();
        figure.panels[0]
            .series
            .push(Series::of_ratios("B", &[None, None, None]));
        figure.panels[0].series[1].ours = vec![Summary::of(&[1.5]); 3];
        let json = serde_json::to_string(&figure).unwrap();
        assert_eq!(serde_json::from_str::<Figure>(&json).unwrap(), figure);
    }

    #[test]
    fn panels_of_lines_have_their_axis() {
        let series = vec![Series::new("A", vec![Summary::of(&[1.0])])];
        let panel = Panel::lines("2", "loss", "%", ("distance", vec!["1 km".into()]), series);
        assert_eq!((panel.kind, panel.axis), (PanelKind::Lines, "distance"));
    }

    /// A claim can hold and still be far from the paper's number; goals are ours.
    #[test]
    fn a_claim_that_holds_may_not_reproduce_the_number() {
        let claim = |text: &str, paper: Option<f64>, ours: &[f64]| {
            Claim::new(text, paper, Summary::of(ours), "kbit/s", true)
        };
        let far = claim("at least 90", Some(64.1), &[94.0, 94.2]);
        assert_eq!((far.reproduces(), far.goal), (Some(false), false));
        assert!(far.off().is_some_and(|off| (off - 0.468).abs() < 0.001));
        assert_eq!(
            claim("near", Some(80.0), &[94.0, 94.2]).reproduces(),
            Some(true)
        );
        // The paper's number lies in our wide interval.
        assert_eq!(
            claim("wide", Some(64.1), &[60.0, 130.0]).reproduces(),
            Some(true)
        );
        assert_eq!(claim("words", None, &[1.0]).reproduces(), None);
        // The words of a claim do not decide whose it is.
        assert!(claim("at least 90", None, &[94.0]).as_goal().goal);
        assert!(!claim("goal of the paper: 100", None, &[1.0]).goal);
    }
}
