//! `chappe demo`: the main job in ten seconds.

use std::time::Instant;

use chappe_lab::demo::{self, Demo};
use chappe_lab::pacifier::Variant;
use chappe_lab::results::{DATA_TRANSMISSIONS, Document, Range, Run};
use chappe_lab::run::Meter;
use chappe_lab::statistics::Summary;
use chappe_lab::table::{Table, count, digits, with_interval};

use crate::cli;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::terminal::{self, Stream};

pub fn run(options: &cli::Demo) -> Result<u8, Failure> {
    let started = Instant::now();
    let meter = Meter::stopped_by(terminal::interrupt());
    let command = terminal::command_line();
    let how = (command.as_str(), options.shared.threads());
    let demo = terminal::watched("moving the file", options.shared.quiet, &meter, || {
        demo::run(
            options.file.as_deref(),
            options.seed,
            options.networks,
            how,
            &meter,
        )
    })?;
    if demo.bounds_bps.is_empty() {
        return Err(Failure::Interrupted);
    }
    if options.shared.json {
        terminal::print(&(json(&demo) + "\n"))?;
    } else {
        terminal::print(&text(&demo, options, started.elapsed().as_secs_f64()))?;
    }
    if demo.unfinished > 0 {
        eprintln!(
            "interrupted: {} of {} networks are finished and shown",
            demo.bounds_bps.len(),
            options.networks
        );
        return Ok(INTERRUPTED);
    }
    let all = demo
        .systems
        .iter()
        .all(|(_, document)| document.all_complete());
    Ok(if all { 0 } else { FAILED })
}

fn json(demo: &Demo) -> String {
    let systems: Vec<serde_json::Value> = demo
        .systems
        .iter()
        .map(|(variant, document)| serde_json::json!({ "system": variant.label(), "result": document }))
        .collect();
    let bound = Range::of(demo.bounds_bps.iter().copied());
    let whole = serde_json::json!({ "octets": demo.octets, "systems": systems, "bound_goodput_bps": bound });
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

fn text(demo: &Demo, options: &cli::Demo, seconds: f64) -> String {
    let n = demo.bounds_bps.len();
    let what = match &demo.file {
        Some(file) => format!("{file} ({})", size(demo.octets)),
        None => format!("A file of {}", size(demo.octets)),
    };
    let receivers = demo
        .systems
        .first()
        .and_then(|(_, document)| document.runs.first())
        .map_or(0, |run| run.flows.len());
    let mut text = format!(
        "{what} from one node to {receivers} others over a lossy 50-node mesh, 802.11b at 2 Mbit/s\nn={n} networks, seeds {}..{}, {} s\n\n",
        options.seed,
        options.seed + n as u64 - 1,
        digits(seconds)
    );
    let mut table = Table::new()
        .words("")
        .numbers("mean kbit/s", 0)
        .numbers("x MORE", 2)
        .numbers("slowest receiver", 0)
        .numbers("of bound", 1)
        .numbers("data frames", 3)
        .numbers("digests right", 0);
    let baseline = demo
        .systems
        .iter()
        .find(|(variant, _)| *variant == Variant::More);
    for (variant, document) in &demo.systems {
        let cells = row(*variant, document, baseline.map(|(_, document)| document));
        if *variant == Variant::Paper {
            table.bold_row(cells)
        } else {
            table.row(cells)
        }
    }
    let bound = Summary::of(&demo.bounds_bps).scaled(1e-3);
    let mut cells = vec!["bound".to_string(), String::new(), String::new()];
    cells.push(with_interval(bound.mean, bound.ci95));
    cells.push("100 %".into());
    table.row(cells);
    text += &table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    text += &closing(options);
    text
}

fn row(variant: Variant, document: &Document, baseline: Option<&Document>) -> Vec<String> {
    let totals = &document.summary;
    let over = |value: &dyn Fn(&Run) -> f64| Range::of(document.runs.iter().map(value));
    let rate = |range: &Range| with_interval(range.mean / 1e3, range.ci95.map(|half| half / 1e3));
    let share = over(&|run| {
        run.bound
            .as_ref()
            .map_or(0.0, |bound| 100.0 * bound.fraction)
    });
    let gains = baseline.map(|baseline| {
        let pairs = baseline.runs.iter().zip(&document.runs);
        Range::of(pairs.map(|(base, run)| run.mean_goodput() / base.mean_goodput().max(1.0)))
    });
    vec![
        variant.label().to_string(),
        rate(&totals.goodput_bps),
        match gains {
            Some(gains) if variant != Variant::More => with_interval(gains.mean, gains.ci95),
            _ => "1".into(),
        },
        rate(&totals.worst_goodput_bps),
        format!("{} %", digits(share.mean)),
        count(over(&|run| run.counter(DATA_TRANSMISSIONS) as f64).mean),
        format!("{}/{}", totals.complete, totals.receivers),
    ]
}

fn closing(options: &cli::Demo) -> String {
    let seed = options.seed;
    let file = options
        .file
        .as_ref()
        .map_or(String::new(), |file| format!(" {}", file.display()));
    let networks = if options.networks == 4 {
        String::new()
    } else {
        format!(" --networks {}", options.networks)
    };
    format!(
        "\n95 % intervals over networks; every system meets the same networks and the same air. The bound is what no\nprotocol can exceed whose nodes wait while they sense another (a linear program with a checked proof).\n\nreproduce:  chappe demo{file} --seed {seed}{networks}\nnext:       chappe lab pacifier --quick     the paper's figures, theirs beside ours\n            chappe new mesh.toml            a network of your own, then: chappe sim mesh.toml\n"
    )
}

/// Octets as people say them.
fn size(octets: usize) -> String {
    chappe_lab::quantity::Size::new(octets as f64).to_string()
}
