//! `chappe demo`: the main job in ten seconds.

use std::time::Instant;

use chappe::systems;
use chappe_figures::table::{Table, count, digits, with_interval};
use chappe_lab::demo::{self, DemoResult, Order, Row};
use chappe_lab::run::Meter;
use chappe_results::statistics::Summary;
use chappe_results::{DATA_TRANSMISSIONS, Range, Run};

use crate::cli;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::terminal::{self, Stream};

pub fn run(options: &cli::Demo) -> Result<u8, Failure> {
    let started = Instant::now();
    let all = systems::parts();
    let meter = Meter::stopped_by(terminal::interrupt());
    let command = terminal::command_line();
    let order = Order {
        file: options.file.as_deref(),
        seed: options.seed,
        networks: options.networks,
        threads: options.shared.threads(),
        program: terminal::program(&command),
        meter: &meter,
    };
    let parts = terminal::watched("moving the file", options.shared.quiet, &meter, || {
        demo::run(&all, &order)
    })?;
    if parts.is_empty() {
        return Err(Failure::Interrupted);
    }
    if options.shared.json {
        terminal::print(&(json(&parts) + "\n"))?;
    } else {
        terminal::print(&text(&parts, options, started.elapsed().as_secs_f64()))?;
    }
    let finished = |shown: &DemoResult| shown.unfinished == 0;
    if parts.len() < all.len() || !parts.iter().all(finished) {
        let done: usize = parts.iter().map(|shown| shown.bounds_bps.len()).sum();
        let wanted = options.networks * all.len() as u64;
        eprintln!("interrupted: {done} of {wanted} networks are finished and shown");
        return Ok(INTERRUPTED);
    }
    // A baseline may fail: that is what it is shown for.
    let rows = parts.iter().flat_map(|shown| &shown.rows);
    let all = rows
        .filter(|row| row.ours)
        .all(|row| row.document.all_complete());
    Ok(if all { 0 } else { FAILED })
}

fn json(parts: &[DemoResult]) -> String {
    let part = |shown: &DemoResult| {
        let systems: Vec<serde_json::Value> = shown
            .rows
            .iter()
            .map(|row| serde_json::json!({ "system": row.label, "result": row.document }))
            .collect();
        let bound = Range::of(shown.bounds_bps.iter().copied());
        serde_json::json!({
            "part": shown.part,
            "octets": shown.octets,
            "systems": systems,
            "bound_goodput_bps": bound,
        })
    };
    let parts: Vec<serde_json::Value> = parts.iter().map(part).collect();
    serde_json::to_string_pretty(&serde_json::json!({ "parts": parts })).unwrap_or_default()
}

fn text(parts: &[DemoResult], options: &cli::Demo, seconds: f64) -> String {
    let mut text = String::new();
    for shown in parts {
        let what = match &options.file {
            Some(file) => format!("{} ({})", file.display(), size(shown.octets)),
            None => format!("A file of {}", size(shown.octets)),
        };
        text += &format!("{what} {}\n\n", shown.over);
        text += &table(shown).render(
            terminal::width(Stream::Output),
            terminal::colour_on(Stream::Output),
        );
        text += &format!("\n{}\n\n", shown.bound);
    }
    text + &closing(options, seconds)
}

/// One part's rows: its protocols, then the bound.
fn table(shown: &DemoResult) -> Table {
    let baseline = &shown.rows[0];
    let mut table = Table::new()
        .words("")
        .numbers("mean kbit/s", 0)
        .numbers(&format!("x {}", baseline.label), 2)
        .numbers("slowest receiver", 0)
        .numbers("of bound", 1)
        .numbers("data frames", 3)
        .numbers("digests right", 0);
    for (place, row) in shown.rows.iter().enumerate() {
        let cells = cells(row, (place > 0).then_some(baseline));
        if row.ours {
            table.bold_row(cells)
        } else {
            table.row(cells)
        }
    }
    let bound = Summary::of(&shown.bounds_bps).scaled(1e-3);
    let mut cells = vec!["bound".to_string(), String::new(), String::new()];
    cells.push(with_interval(bound.mean, bound.ci95));
    cells.push("100 %".into());
    table.row(cells);
    table
}

fn cells(row: &Row, baseline: Option<&Row>) -> Vec<String> {
    let (document, totals) = (&row.document, &row.document.summary);
    let over = |value: &dyn Fn(&Run) -> f64| Range::of(document.runs.iter().map(value));
    let rate = |range: &Range| with_interval(range.mean / 1e3, range.ci95.map(|half| half / 1e3));
    let share = over(&|run| {
        run.bound
            .as_ref()
            .map_or(0.0, |bound| 100.0 * bound.fraction)
    });
    let gains = baseline.map(|baseline| {
        let pairs = baseline.document.runs.iter().zip(&document.runs);
        // A baseline that delivers nothing on some network has no ratio there.
        let served = pairs.filter(|(base, _)| base.mean_goodput() > 0.0);
        Range::of(served.map(|(base, run)| run.mean_goodput() / base.mean_goodput()))
    });
    vec![
        row.label.to_string(),
        rate(&totals.goodput_bps),
        gains.map_or_else(|| "1".into(), |gains| with_interval(gains.mean, gains.ci95)),
        rate(&totals.worst_goodput_bps),
        format!("{} %", digits(share.mean)),
        count(over(&|run| run.counter(DATA_TRANSMISSIONS) as f64).mean),
        format!("{}/{}", totals.complete, totals.receivers),
    ]
}

fn closing(options: &cli::Demo, seconds: f64) -> String {
    let (seed, n) = (options.seed, options.networks);
    let last = seed + n - 1;
    let file = options
        .file
        .as_ref()
        .map_or(String::new(), |file| format!(" {}", file.display()));
    let networks = if n == 4 {
        String::new()
    } else {
        format!(" --networks {n}")
    };
    format!(
        "n={n} networks, seeds {seed}..{last}; 95 % intervals over networks; {} s. Every protocol of a table meets the same\nnetworks and the same air.\n\nreproduce:  chappe demo{file} --seed {seed}{networks}\nnext:       chappe lab pacifier --quick     a paper's figures, theirs beside ours\n            chappe new mesh.toml            a network of your own, then: chappe sim mesh.toml\n",
        digits(seconds)
    )
}
/// Octets as people say them.
fn size(octets: usize) -> String {
    chappe_scenario::quantity::Size::new(octets as f64).to_string()
}
