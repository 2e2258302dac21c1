//! The points of a figure as a tidy table: a row for each value, a column for each thing that is known of it.

use std::fmt::Write as _;

use chappe_results::figure::{Figure, Panel, PanelKind};

use crate::axis::number_of;

/// One row: a point of a series, or a sample behind a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name of the figure: `figure7`.
    pub figure: String,
    /// The panel in it: `7a`.
    pub panel: String,
    /// `point`, or `sample` for a sample behind a distribution.
    pub kind: &'static str,
    /// The name of the series.
    pub series: String,
    /// What the places are: `distance`.
    pub axis: String,
    /// The place; empty for a sample.
    pub place: String,
    /// The place as a number in the unit that it is written with, if it is one.
    pub x: Option<f64>,
    /// The unit of the values.
    pub unit: String,
    /// Our value in the unit.
    pub ours: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
    /// The number of values behind it.
    pub n: usize,
    /// The smallest of them.
    pub min: Option<f64>,
    /// The largest of them.
    pub max: Option<f64>,
    /// The paper's value of it.
    pub paper: Option<f64>,
    /// The bound of the series there.
    pub bound: Option<f64>,
    /// The bound of the slowest receiver.
    pub bound_worst_receiver: Option<f64>,
}

/// All rows of a figure.
pub fn tidy(figure: &Figure) -> Vec<Row> {
    figure
        .panels
        .iter()
        .flat_map(|panel| rows(figure.id, panel))
        .collect()
}

fn rows(figure: &str, panel: &Panel) -> Vec<Row> {
    let known = |value: f64| value.is_finite().then_some(value);
    let at = |bounds: &[Option<f64>], place: usize| bounds.get(place).copied().flatten();
    let mut rows = Vec::new();
    for series in &panel.series {
        let row = Row {
            figure: figure.into(),
            panel: panel.id.clone(),
            kind: "point",
            series: series.name.clone(),
            axis: panel.axis.into(),
            place: String::new(),
            x: None,
            unit: panel.unit.into(),
            ours: None,
            low: None,
            high: None,
            n: 1,
            min: None,
            max: None,
            paper: None,
            bound: None,
            bound_worst_receiver: None,
        };
        for (place, label) in panel.places.iter().enumerate() {
            let Some(ours) = series.ours.get(place) else {
                continue;
            };
            let interval = series.interval(place);
            rows.push(Row {
                place: label.clone(),
                x: number_of(label).map(|(number, _)| number),
                ours: known(ours.mean),
                low: interval.map(|(low, _)| low),
                high: interval.map(|(_, high)| high),
                n: ours.n,
                min: known(ours.min),
                max: known(ours.max),
                paper: at(&series.paper, place),
                bound: panel.bound_of(&series.name, place),
                bound_worst_receiver: at(&panel.worst_bound, place),
                ..row.clone()
            });
        }
        if panel.kind == PanelKind::Cdf {
            let samples = series.samples.iter();
            rows.extend(samples.map(|sample| Row {
                kind: "sample",
                ours: known(*sample),
                ..row.clone()
            }));
        }
    }
    rows
}

/// The rows as comma-separated values (RFC 4180).
pub fn csv(figure: &Figure) -> String {
    let mut text = "figure,panel,kind,series,axis,place,x,unit,ours,low,high,n,min,max,paper,bound,bound_worst_receiver\n".to_string();
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in tidy(figure) {
        let words = [
            &row.figure,
            &row.panel,
            row.kind,
            &row.series,
            &row.axis,
            &row.place,
        ]
        .map(quoted);
        let numbers = [row.ours, row.low, row.high].map(number);
        let rest = [
            row.min,
            row.max,
            row.paper,
            row.bound,
            row.bound_worst_receiver,
        ]
        .map(number);
        let _ = writeln!(
            text,
            "{},{},{},{},{},{}",
            words.join(","),
            number(row.x),
            quoted(&row.unit),
            numbers.join(","),
            row.n,
            rest.join(",")
        );
    }
    text
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}
