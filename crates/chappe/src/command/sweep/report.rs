//! The table and the figure of a whole sweep, on the terminal and in its folder.

use std::io::Write as _;
use std::path::Path;

use chappe::sweep::Sweep;
use chappe_figures::table::{Table, digits, kbit, with_interval};
use chappe_results::figure::{Figure, Panel, Series};
use chappe_results::statistics::Summary;
use chappe_results::sweep::{SweepCell, SweepRow, all_same, rows};
use chappe_scenario::sweep::{Cell, Grid};
use chappe_store::write_whole;
use serde_json::json;

use crate::cli::Sweep as Options;
use crate::command::compare::with_interval_of;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::terminal::{self, Stream};

/// The most pairs of panels in the figure; what more keys would give is in the table and in the data.
const PANELS_MAX: usize = 8;

pub fn give(options: &Options, sweep: &Sweep, results: &[SweepCell]) -> Result<(), Failure> {
    let (grid, cells, out, from) = (&sweep.grid, &sweep.cells, sweep.out(), sweep.provenance());
    let rows = rows(results);
    let title = &cells[0].plan.title;
    let figure = figure(title, grid, &rows, PANELS_MAX);
    let notes = without_effect(grid, results);
    let document = json!({
        "chappe": from.version,
        "commit": from.commit,
        "dirty": from.dirty,
        "scenario": title,
        "command": from.command,
        "machine": from.machine,
        "seeds": cells[0].plan.seeds,
        "keys": grid.axes.iter().map(|axis| &axis.key).collect::<Vec<_>>(),
        "cells": rows,
        "notes": notes,
        // All panels, in the form that `chappe view` reads.
        "figures": [chappe_figures::json(&self::figure(title, grid, &rows, usize::MAX))],
    });
    let document = serde_json::to_string_pretty(&document).unwrap_or_default() + "\n";
    write_whole(&out.join("sweep.json"), |file| {
        file.write_all(document.as_bytes())
    })?;
    output::write_figure(&out.join("sweep"), &figure, &Format::all(options.png))?;
    if options.shared.json {
        terminal::print(&document)?;
    } else {
        terminal::print(&text(grid, cells, &rows))?;
    }
    for note in &notes {
        // Printed even with --quiet: the table would be misread.
        terminal::tell(&format!("note: {note}"));
    }
    let quiet = options.shared.quiet;
    terminal::remark(
        quiet,
        &format!(
            "data set: {0}/cells (Parquet); figure: {0}/sweep.svg; in a browser: chappe view {0}",
            shown(out)
        ),
    );
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Keys whose values made no difference in any run.
fn without_effect(grid: &Grid, results: &[SweepCell]) -> Vec<String> {
    let mut notes = Vec::new();
    for (place, axis) in grid.axes.iter().enumerate() {
        let groups = (0..results.len())
            .filter(|&cell| grid.at(cell)[place] == 0)
            .map(|cell| {
                let mut at = grid.at(cell);
                let along = (0..axis.values.len()).map(|value| {
                    at[place] = value;
                    &results[grid.number(&at)]
                });
                along.collect::<Vec<_>>()
            });
        if groups.into_iter().all(|group| all_same(&group)) {
            notes.push(format!(
                "`{}` changed no run: all its values have the same events, seed by seed",
                axis.key
            ));
        }
    }
    notes
}

/// The keys that have a reference, with its value.
fn reference_keys(grid: &Grid) -> String {
    let axes = grid.axes.iter().zip(&grid.reference);
    let words = axes.filter_map(|(axis, place)| {
        Some(format!("{} = {}", axis.key, axis.values[(*place)?].shown))
    });
    words.collect::<Vec<_>>().join(" and ")
}

/// What the cells are compared with, in words.
fn reference(grid: &Grid) -> String {
    let axes = grid.axes.iter().zip(&grid.reference);
    let words = axes.filter_map(|(axis, place)| Some(axis.values[(*place)?].shown.clone()));
    words.collect::<Vec<_>>().join(", ")
}

fn text(grid: &Grid, cells: &[Cell], rows: &[SweepRow]) -> String {
    let seeds = cells[0].plan.seeds.len();
    let mut table = Table::new();
    for axis in &grid.axes {
        table = table.words(&axis.key);
    }
    table = table
        .numbers("mean kbit/s", 0)
        .numbers(&format!("x {}", reference(grid)), 0)
        .numbers("slowest", 2)
        .numbers("slowest, of bound", 1)
        .numbers("complete", 1);
    for row in rows {
        let rate = |summary: &Summary| {
            with_interval(summary.mean / 1e3, summary.ci95.map(|half| half / 1e3))
        };
        let mut line = row.values.clone();
        line.extend([
            rate(&row.goodput_bps),
            against(row),
            kbit(row.worst_goodput_bps.mean),
            row.bound_fraction.map_or_else(String::new, |share| {
                format!("{} %", digits(100.0 * share.mean))
            }),
            format!("{}/{}", row.complete, row.receivers),
        ]);
        table.row(line);
    }
    let (width, colour) = (
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    let (seeds, intervals) = match seeds {
        1 => (
            "1 seed".into(),
            "One seed has no interval: give more of them (--seeds 1..10).",
        ),
        seeds => (
            format!("{seeds} seeds"),
            "Intervals are of 95 % over seeds.",
        ),
    };
    format!(
        "{}\n{} cells, {seeds} each\n\n{}\n{intervals} Ratios are geometric means of the mean goodput, paired by seed, to the cell\nwith {} and otherwise the same values.\nreproduce: {}\n",
        cells[0].plan.title,
        cells.len(),
        table.render(width, colour),
        reference_keys(grid),
        terminal::command_line(),
    )
}

/// The ratio to the reference.
fn against(row: &SweepRow) -> String {
    match (&row.reference, &row.ratio) {
        (None, _) => "1".into(),
        (Some(_), Some(ratio)) => with_interval_of(ratio),
        // A run of either got nothing, so there is no ratio.
        (Some(_), None) => "-".into(),
    }
}

/// Goodput and its ratio to the reference: a series for each value of the compared key, over the values of the longest other one, a
/// pair of panels for each combination of the rest, `most` at most.
fn figure(title: &str, grid: &Grid, rows: &[SweepRow], most: usize) -> Figure {
    let compared = grid.reference.iter().position(Option::is_some).unwrap_or(0);
    let others = || (0..grid.axes.len()).filter(|&axis| axis != compared);
    // A key of numbers makes a better axis than one of names, and a long one a better axis than a short one.
    let along = others().max_by_key(|&axis| {
        (
            grid.axes[axis].numbers().is_some(),
            grid.axes[axis].values.len(),
        )
    });
    let fixed: Vec<usize> = others().filter(|&axis| Some(axis) != along).collect();
    let groups = (0..grid.cells()).map(|cell| grid.at(cell));
    let groups: Vec<Vec<usize>> = groups
        .filter(|at| at[compared] == 0 && along.is_none_or(|along| at[along] == 0))
        .collect();
    let mut notes = vec![format!(
        "Ratios are geometric means, paired by seed, to {}.",
        reference(grid)
    )];
    if groups.len() > most {
        notes.push(format!(
            "{most} of {} panels are drawn; the table has all cells.",
            groups.len()
        ));
    }
    let mut panels = Vec::new();
    for (number, group) in groups.iter().take(most).enumerate() {
        let with: Vec<String> = fixed
            .iter()
            .map(|&axis| {
                format!(
                    "{} = {}",
                    grid.axes[axis].key, grid.axes[axis].values[group[axis]].shown
                )
            })
            .collect();
        let with = if with.is_empty() {
            String::new()
        } else {
            format!(", {}", with.join(", "))
        };
        panels.extend(pair(
            grid,
            rows,
            (compared, along, group),
            &format!("{}", number + 1),
            &with,
        ));
    }
    Figure {
        id: "sweep",
        title: title.to_string(),
        panels,
        claims: Vec::new(),
        notes,
    }
}

/// The two panels of one group of cells.
fn pair(
    grid: &Grid,
    rows: &[SweepRow],
    (compared, along, group): (usize, Option<usize>, &[usize]),
    id: &str,
    with: &str,
) -> [Panel; 2] {
    let places: Vec<String> = match along {
        Some(along) => grid.axes[along]
            .values
            .iter()
            .map(|value| value.shown.clone())
            .collect(),
        None => vec![String::new()],
    };
    let axis: &'static str = match along {
        // A figure's axis is a name that lives as long as the program; a sweep has one.
        Some(along) => grid.axes[along].key.clone().leak(),
        None => "",
    };
    let row = |value: usize, place: usize| {
        let mut at = group.to_vec();
        at[compared] = value;
        if let Some(along) = along {
            at[along] = place;
        }
        &rows[grid.number(&at)]
    };
    let names = || grid.axes[compared].values.iter().enumerate();
    let goodput = names().map(|(value, name)| {
        let at = |place| row(value, place).goodput_bps.scaled(1e-3);
        Series::new(&name.shown, (0..places.len()).map(at).collect())
    });
    let others = names()
        .filter(|(value, _)| (0..places.len()).any(|place| row(*value, place).reference.is_some()));
    let ratios = others.map(|(value, name)| {
        let at = |place| row(value, place).ratio;
        Series::of_ratios(&name.shown, &(0..places.len()).map(at).collect::<Vec<_>>())
    });
    let lines = along.is_some_and(|along| grid.axes[along].numbers().is_some());
    let panel = |letter: &str, title: String, unit: &'static str, series: Vec<Series>| match lines {
        true => Panel::lines(
            &format!("{id}{letter}"),
            &title,
            unit,
            (axis, places.clone()),
            series,
        ),
        false => Panel::bars(
            &format!("{id}{letter}"),
            &title,
            unit,
            places.clone(),
            series,
        )
        .on(axis),
    };
    [
        panel(
            "a",
            format!("mean goodput{with}"),
            "kbit/s",
            goodput.collect(),
        ),
        panel(
            "b",
            format!("ratio to {}{with}", reference(grid)),
            "times",
            ratios.collect(),
        ),
    ]
}
