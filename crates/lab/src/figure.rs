//! A figure: panels of series, the paper's values beside ours, the bound, and claims that a predicate checks.
//!
//! A figure's rows are its golden table: [`Figure::rows`] rounds them to whole numbers, a test compares them with a
//! file, and the drawing is made from the same panels ([`crate::svg`]).

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::statistics::{Summary, quantile};
use crate::table::{Table, digits, with_interval};

/// A figure of a paper, made again.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name for the command line: `figure3`.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// Its parts.
    pub panels: Vec<Panel>,
    /// What the paper says about it, checked.
    pub claims: Vec<Claim>,
    /// What a reader must know to read it, in sentences.
    pub notes: Vec<String>,
}

/// A part of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its name: `3a`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The unit of its values.
    pub unit: &'static str,
    /// How it is drawn.
    pub kind: PanelKind,
    /// What stands under each place of the axis.
    pub places: Vec<String>,
    /// What is compared.
    pub series: Vec<Series>,
    /// The bound at each place, if there is one.
    pub bound: Vec<Option<f64>>,
}

/// How a panel is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelKind {
    /// A bar for each place and series.
    Bars,
    /// A line for each series.
    Lines,
    /// The share of samples below each value; the places are quantiles of them.
    Cdf,
}

/// One system's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Ours, for each place.
    pub ours: Vec<Summary>,
    /// The paper's, for each place, where it gives one.
    pub paper: Vec<Option<f64>>,
    /// All samples, for a CDF.
    pub samples: Vec<f64>,
}

/// Something the paper says, and whether it holds here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The claim, and with it the predicate.
    pub text: String,
    /// The paper's number, if there is one.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: f64,
    /// Half of our 95 % interval, if there is one.
    pub ci95: Option<f64>,
    /// How many values ours is the mean of.
    pub n: usize,
    /// The unit of both.
    pub unit: &'static str,
    /// Whether it holds here.
    pub holds: bool,
}

impl Claim {
    /// A claim about a summary.
    pub fn new(text: &str, paper: Option<f64>, ours: Summary, unit: &'static str, holds: bool) -> Claim {
        Claim { text: text.into(), paper, ours: ours.mean, ci95: ours.ci95, n: ours.n, unit, holds }
    }

    /// A claim about a count out of `n`.
    pub fn count(text: &str, paper: Option<f64>, ours: usize, n: usize, holds: bool) -> Claim {
        Claim { text: text.into(), paper, ours: ours as f64, ci95: None, n, unit: "", holds }
    }

    /// A claim about a value without an interval.
    pub fn value(text: &str, paper: Option<f64>, ours: f64, n: usize, unit: &'static str, holds: bool) -> Claim {
        Claim { text: text.into(), paper, ours, ci95: None, n, unit, holds }
    }
}

/// Quantiles that stand for a CDF in tables.
pub const QUANTILES: [(&str, f64); 5] =
    [("p10", 0.1), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p90", 0.9)];

impl Series {
    /// A series without anything from the paper.
    pub fn new(name: &str, ours: Vec<Summary>) -> Series {
        let paper = vec![None; ours.len()];
        Series { name: name.into(), ours, paper, samples: Vec::new() }
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
        let ours = QUANTILES.map(|(_, p)| Summary { n: samples.len(), ci95: None, ..Summary::of(&[at(p)]) });
        Series { name: name.into(), ours: ours.to_vec(), paper: paper.to_vec(), samples }
    }
}

impl Figure {
    /// The golden table: whole numbers, a line for each place of each panel.
    pub fn rows(&self) -> String {
        let mut text = String::new();
        for panel in &self.panels {
            let names: Vec<&str> = panel.series.iter().map(|series| series.name.as_str()).collect();
            let _ = writeln!(text, "{} {} | {}", panel.id, panel.unit, names.join(" | "));
            for (place, label) in panel.places.iter().enumerate() {
                let values: Vec<String> =
                    panel.series.iter().map(|series| whole(panel, series.ours[place].mean)).collect();
                let _ = writeln!(text, "{} {label} | {}", panel.id, values.join(" | "));
            }
        }
        text
    }

    /// The figure as JSON: one object for each point, and the claims.
    pub fn json(&self) -> Value {
        let points: Vec<Value> = self.panels.iter().flat_map(Panel::points).collect();
        json!({ "figure": self.id, "title": self.title, "points": points, "claim": self.claims, "notes": self.notes })
    }

    /// The figure as a table for people.
    pub fn text(&self, width: usize, colour: bool) -> String {
        let mut text = format!("{}: {}\n", self.id, self.title);
        for panel in &self.panels {
            text += &format!("\n{} {} ({})\n", panel.id, panel.title, panel.unit);
            text += &panel.table().render(width, colour);
        }
        text += "\n";
        for claim in &self.claims {
            text += &claim.text(colour);
        }
        for note in &self.notes {
            text += &format!("  note: {note}\n");
        }
        text
    }

    /// The points as comma-separated lines.
    pub fn csv(&self) -> String {
        let mut text = "panel,series,place,unit,ours,ci95,n,min,max,paper,bound\n".to_string();
        for panel in &self.panels {
            for point in panel.points() {
                let cell = |value: &Value| match value {
                    Value::Null => String::new(),
                    Value::String(words) => words.replace(',', ";"),
                    other => other.to_string(),
                };
                let ours = &point["ours"];
                let cells = [
                    &point["panel"], &point["series"], &point["place"], &point["unit"], &ours["mean"],
                    &ours["ci95"], &ours["n"], &ours["min"], &ours["max"], &point["paper"], &point["bound"],
                ];
                let _ = writeln!(text, "{}", cells.map(cell).join(","));
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
    /// Its points, one for each series and place.
    fn points(&self) -> Vec<Value> {
        let mut points = Vec::new();
        for series in &self.series {
            for (place, label) in self.places.iter().enumerate() {
                points.push(json!({
                    "panel": self.id,
                    "series": series.name,
                    "place": label,
                    "unit": self.unit,
                    "ours": series.ours[place],
                    "paper": series.paper[place],
                    "bound": self.bound.get(place).copied().flatten(),
                }));
            }
        }
        points
    }

    fn table(&self) -> Table {
        let mut table = Table::new().words("");
        for series in &self.series {
            table = table.numbers(&series.name, 0);
        }
        let has_paper = self.series.iter().any(|series| series.paper.iter().any(Option::is_some));
        let has_bound = self.bound.iter().any(Option::is_some);
        if has_bound {
            table = table.numbers("bound", 1);
        }
        if has_paper {
            table = table.words("paper");
        }
        for (place, label) in self.places.iter().enumerate() {
            let mut cells = vec![label.clone()];
            let many = |summary: &Summary| self.kind != PanelKind::Cdf && summary.n > 1;
            cells.extend(self.series.iter().map(|series| match &series.ours[place] {
                summary if many(summary) => with_interval(summary.mean, summary.ci95),
                summary => digits(summary.mean),
            }));
            if has_bound {
                cells.push(self.bound.get(place).copied().flatten().map_or_else(String::new, digits));
            }
            if has_paper {
                let said = self.series.iter().filter_map(|series| {
                    series.paper[place].map(|value| format!("{} {}", series.name, digits(value)))
                });
                cells.push(said.collect::<Vec<String>>().join(", "));
            }
            if label == "mean" { table.bold_row(cells) } else { table.row(cells) }
        }
        table
    }
}

impl Claim {
    fn text(&self, colour: bool) -> String {
        let mark = match (self.holds, colour) {
            (true, true) => "\u{1b}[32mholds\u{1b}[0m      ",
            (false, true) => "\u{1b}[33mdoes not\u{1b}[0m   ",
            (true, false) => "holds      ",
            (false, false) => "does not   ",
        };
        let unit = match self.unit {
            "" => String::new(),
            "times" => " x".into(),
            unit => format!(" {unit}"),
        };
        let counted = self.unit.is_empty();
        let number = |value: f64| if counted { format!("{value:.0}") } else { digits(value) };
        let paper = self.paper.map_or_else(String::new, |paper| format!("paper {}{unit}, ", number(paper)));
        let ours = if counted { number(self.ours) } else { with_interval(self.ours, self.ci95) };
        let count = if counted { format!(" of {}", self.n) } else { format!("{unit} (n={})", self.n) };
        format!("  {mark}{}: {paper}ours {ours}{count}\n", self.text)
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
                places: vec!["1".into(), "2".into(), "mean".into()],
                series: vec![Series::with_mean("A", &[100.4, 201.0], Some(150.0))],
                bound: vec![Some(400.0), None, None],
            }],
            claims: vec![Claim::count("better", Some(8.0), 2, 2, true)],
            notes: vec!["n".into()],
        }
    }

    #[test]
    fn golden_rows_are_whole_numbers() {
        assert_eq!(figure().rows(), "1a kbit/s | A\n1a 1 | 100\n1a 2 | 201\n1a mean | 151\n");
    }

    #[test]
    fn every_point_has_paper_ours_and_bound() {
        let json = figure().json();
        assert_eq!(json["points"][0]["bound"], 400.0);
        assert_eq!(json["points"][2]["paper"], 150.0);
        assert_eq!(json["points"][2]["ours"]["n"], 2);
        assert_eq!(json["claim"][0]["holds"], true);
        assert_eq!(figure().csv().lines().count(), 4);
        assert!(figure().text(80, false).contains("holds      better: paper 8, ours 2 of 2"));
    }
}
