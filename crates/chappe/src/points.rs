//! The points of a figure as columns of a table.

use chappe_figures::Row;
use chappe_results::figure::Figure;
use chappe_store::table::{Column, Values};

/// The columns of a figure's points: a row for each, and for each sample behind a distribution.
pub fn columns(figure: &Figure) -> Vec<Column> {
    let rows = chappe_figures::tidy(figure);
    let rows = rows.as_slice();
    let text = |name: &str, value: fn(&Row) -> &str| {
        let texts = rows.iter().map(|row| Some(value(row).to_string()));
        Column::new(name, Values::Text(texts.collect()))
    };
    let real = |name: &str, value: fn(&Row) -> Option<f64>| {
        Column::new(name, Values::Real(rows.iter().map(value).collect())).optional()
    };
    let counts = rows.iter().map(|row| row.n as i64).collect();
    vec![
        text("figure", |row| &row.figure),
        text("panel", |row| &row.panel),
        text("kind", |row| row.kind),
        text("series", |row| &row.series),
        text("axis", |row| &row.axis),
        text("place", |row| &row.place),
        real("x", |row| row.x),
        text("unit", |row| &row.unit),
        real("ours", |row| row.ours),
        real("low", |row| row.low),
        real("high", |row| row.high),
        Column::new("n", Values::Whole(counts)),
        real("min", |row| row.min),
        real("max", |row| row.max),
        real("paper", |row| row.paper),
        real("bound", |row| row.bound),
        real("bound_worst_receiver", |row| row.bound_worst_receiver),
    ]
}
