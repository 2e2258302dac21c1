//! `chappe compare`: two results, paired by seed.

use std::path::Path;

use chappe_figures::table::{Table, count, digits, kbit, with_interval};
use chappe_results::Document;
use chappe_results::compare::{Comparison, Quantity, Verdict, compare};
use chappe_results::statistics::Ratio;
use chappe_scenario::InputError;
use chappe_store::{self as store, StoreError};

use crate::cli::Compare;
use crate::failure::{FAILED, Failure};
use crate::terminal::{self, Stream};

pub fn run(options: &Compare) -> Result<u8, Failure> {
    let (a, b) = (read(&options.a)?, read(&options.b)?);
    let comparison = compare(&a, &b);
    if comparison.seeds == 0 {
        let message = "the two results have no seed in common, so there is nothing to pair";
        return Err(InputError::new("", message)
            .help("run both with the same --seeds")
            .into());
    }
    if options.json {
        let json = serde_json::to_string_pretty(&comparison).unwrap_or_default();
        terminal::print(&(json + "\n"))?;
    } else {
        terminal::print(&text(&comparison, options))?;
    }
    let worse = comparison
        .quantities
        .iter()
        .take(2)
        .any(|quantity| quantity.verdict == Verdict::Worse);
    Ok(if worse { FAILED } else { 0 })
}

fn read(path: &Path) -> Result<Document, Failure> {
    store::read(path).map_err(|error| match error {
        // A missing input is not the environment's fault, as an unwritable output is.
        StoreError::Io { path, error } => InputError::unreadable(&path, &error).into(),
        error => error.into(),
    })
}

fn text(comparison: &Comparison, options: &Compare) -> String {
    let mut text = format!(
        "A = {}\nB = {}\n{} seeds and {} flows in both; intervals of 95 % over seeds, paired\n\n",
        options.a.display(),
        options.b.display(),
        comparison.seeds,
        comparison.flows
    );
    let mut table = Table::new()
        .words("")
        .numbers("A", 1)
        .numbers("B", 1)
        .numbers("B - A", 0)
        .numbers("B / A", 2)
        .words("B is");
    for quantity in &comparison.quantities {
        table.row(row(quantity));
    }
    text += &table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    let (lost, won) = comparison.lost_and_won;
    if lost + won > 0 {
        text += &format!("\n{lost} flows finish only in A, {won} only in B\n");
    }
    if comparison.only_a + comparison.only_b > 0 {
        text += &format!(
            "{} seeds are only in A, {} only in B\n",
            comparison.only_a, comparison.only_b
        );
    }
    for warning in &comparison.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}

fn row(quantity: &Quantity) -> [String; 6] {
    let (name, show, scale): (&str, fn(f64) -> String, f64) = match quantity.name {
        "goodput_bps" => ("mean goodput, kbit/s", kbit, 1e-3),
        "worst_goodput_bps" => ("slowest receiver, kbit/s", kbit, 1e-3),
        "delivered_bytes" => ("delivered, kB", |bytes| digits(bytes / 1e3), 1e-3),
        _ => ("data frames sent", count, 1.0),
    };
    let difference = quantity.paired.difference.scaled(scale);
    let ratio = quantity.paired.ratio.as_ref();
    [
        name.to_string(),
        show(quantity.a.mean),
        show(quantity.b.mean),
        with_interval(difference.mean, difference.ci95),
        ratio.map_or_else(String::new, with_interval_of),
        quantity.verdict.words().to_string(),
    ]
}

/// A ratio with its 95 % interval, if it has one.
pub fn with_interval_of(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.2} ({low:.2} to {high:.2})", ratio.mean),
        _ => format!("{:.2}", ratio.mean),
    }
}
