//! A figure: panels of series, the paper's values beside ours, the bound, and claims that a predicate checks.
//!
//! A figure's rows are its golden table: [`Figure::rows`] rounds them to whole numbers, a test compares them with a
//! file, and the drawing is made from the same panels ([`crate::draw`]).

use std::fmt::Write as _;

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
    /// What the places of the axis are: `scenario`.
    pub axis: &'static str,
    /// What stands under each place of the axis.
    pub places: Vec<String>,
    /// What is compared.
    pub series: Vec<Series>,
    /// What no system can exceed at each place, if it is known: the bound of what the panel shows.
    pub bound: Vec<Option<f64>>,
    /// The bound of the slowest receiver at each place, if it is known. Systems that serve all receivers at one
    /// rate cannot exceed it with their mean either.
    pub worst_bound: Vec<Option<f64>>,
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
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The claim, and with it the predicate.
    pub text: String,
    /// The paper's number, if there is one.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: Summary,
    /// For a mean of ratios: the same from the ratio of the means over all scenarios.
    pub of_averages: Option<f64>,
    /// The unit of all of them.
    pub unit: &'static str,
    /// Whether it holds here.
    pub holds: bool,
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
            of_averages: None,
            unit,
            holds,
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

    /// Says why the claim does not hold, if it does not.
    pub fn because(mut self, why: impl FnOnce() -> String) -> Claim {
        self.why = (!self.holds).then(why);
        self
    }

    fn json(&self) -> Value {
        json!({
            "claim": { "text": self.text, "holds": self.holds },
            "unit": self.unit,
            "paper": self.paper,
            "ours": self.ours,
            "ours_of_averages": self.of_averages,
            "why": self.why,
        })
    }

    fn text(&self, colour: bool) -> String {
        let mark = match (self.holds, colour) {
            (true, true) => "\u{1b}[32mholds\u{1b}[0m          ",
            (false, true) => "\u{1b}[33mdoes not hold\u{1b}[0m  ",
            (true, false) => "holds          ",
            (false, false) => "does not hold  ",
        };
        let unit = if self.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", self.unit)
        };
        let paper = self
            .paper
            .map_or_else(|| "no number".into(), |paper| digits(paper) + &unit);
        let ours = with_interval(self.ours.mean, self.ours.ci95);
        let averages = self
            .of_averages
            .map_or_else(String::new, |of| format!(" ({} of averages)", digits(of)));
        let count = match self.unit {
            "" => format!(" of {}", self.ours.n),
            _ => format!("{unit}{averages}, n={}", self.ours.n),
        };
        let why = self
            .why
            .as_ref()
            .map_or_else(String::new, |why| format!("                 why: {why}\n"));
        format!(
            "  {mark}{}\n                 paper {paper}, ours {ours}{count}\n{why}",
            self.text
        )
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

    /// The figure as JSON: a row for each point, and the claims.
    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self.panels.iter().flat_map(Panel::rows).collect();
        let claims: Vec<Value> = self.claims.iter().map(Claim::json).collect();
        json!({ "figure": self.id, "title": self.title, "rows": rows, "claims": claims, "notes": self.notes })
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
            for point in panel.rows() {
                let cell = |value: &Value| match value {
                    Value::Null => String::new(),
                    Value::String(words) => words.replace(',', ";"),
                    other => other.to_string(),
                };
                let ours = &point["ours"];
                let cells = [
                    &point["panel"],
                    &point["series"],
                    &point["place"],
                    &point["unit"],
                    &ours["mean"],
                    &ours["ci95"],
                    &ours["n"],
                    &ours["min"],
                    &ours["max"],
                    &point["paper"],
                    &point["bound"],
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
            worst_bound,
        }
    }

    /// The same over another axis than scenarios.
    pub fn on(self, axis: &'static str) -> Panel {
        Panel { axis, ..self }
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

    /// The same with the bound of what it shows, and that of the worst receiver.
    pub fn bounded(self, bound: Vec<Option<f64>>, worst_bound: Vec<Option<f64>>) -> Panel {
        Panel {
            bound,
            worst_bound,
            ..self
        }
    }

    /// Its rows, one for each series and place.
    fn rows(&self) -> Vec<Value> {
        let at = |bounds: &[Option<f64>], place: usize| bounds.get(place).copied().flatten();
        let mut rows = Vec::new();
        for series in &self.series {
            for (place, label) in self.places.iter().enumerate() {
                rows.push(json!({
                    "panel": self.id,
                    "series": series.name,
                    "place": label,
                    "unit": self.unit,
                    "paper": series.paper[place],
                    "ours": series.ours[place],
                    "bound": at(&self.bound, place),
                    "bound_worst_receiver": at(&self.worst_bound, place),
                }));
            }
        }
        rows
    }

    fn table(&self) -> Table {
        let mut table = Table::new().words(self.axis);
        for series in &self.series {
            table = table.numbers(&series.name, 0);
        }
        let has_paper = self
            .series
            .iter()
            .any(|series| series.paper.iter().any(Option::is_some));
        let has_bound = self.bound.iter().any(Option::is_some);
        let has_worst = self.worst_bound.iter().any(Option::is_some);
        if has_bound {
            table = table.numbers("bound", 1);
        }
        if has_worst {
            table = table.numbers("bound, worst receiver", 1);
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
                cells.push(
                    self.bound
                        .get(place)
                        .copied()
                        .flatten()
                        .map_or_else(String::new, digits),
                );
            }
            if has_worst {
                cells.push(
                    self.worst_bound
                        .get(place)
                        .copied()
                        .flatten()
                        .map_or_else(String::new, digits),
                );
            }
            if has_paper {
                let said = self.series.iter().filter_map(|series| {
                    series.paper[place].map(|value| format!("{} {}", series.name, digits(value)))
                });
                cells.push(said.collect::<Vec<String>>().join(", "));
            }
            if label == "mean" {
                table.bold_row(cells)
            } else {
                table.row(cells)
            }
        }
        table
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

    #[test]
    fn every_point_has_paper_ours_and_bound() {
        let json = figure().json();
        assert_eq!(json["rows"][0]["bound"], 400.0);
        assert_eq!(json["rows"][2]["paper"], 150.0);
        assert_eq!(json["rows"][2]["ours"]["n"], 2);
        assert_eq!(json["claims"][0]["claim"]["holds"], true);
        assert_eq!(figure().csv().lines().count(), 4);
        let text = figure().text(80, false);
        assert!(
            text.contains("holds          better\n                 paper 8.00, ours 2.00 of 2\n"),
            "{text}"
        );
    }
}
