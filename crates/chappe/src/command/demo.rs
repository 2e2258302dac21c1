//! `chappe demo`: the main job in ten seconds.

use std::io::Write as _;
use std::time::Instant;

use chappe::systems;
use chappe_figures::table::{Table, count, digits, with_interval};
use chappe_lab::demo::{self, DemoResult, Order, Row};
use chappe_lab::run::Meter;
use chappe_results::figure::{Figure, Panel, Series};
use chappe_results::statistics::{self, Ratio, Summary};
use chappe_results::{DATA_TRANSMISSIONS, Range, Run};
use chappe_store::write_whole;

use super::compare;
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
    if let Some(path) = &options.svg {
        let picture = chappe_figures::draw(&picture(&parts));
        write_whole(path, |file| file.write_all(picture.as_bytes()))?;
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
        terminal::tell(&format!(
            "interrupted: {done} of {wanted} networks are finished and shown"
        ));
        return Ok(INTERRUPTED);
    }
    // A baseline may fail, since the demo shows what it lacks; ours must finish.
    let rows = parts.iter().flat_map(|shown| &shown.rows);
    let all = rows
        .filter(|row| row.ours)
        .all(|row| row.document.all_complete());
    Ok(if all { 0 } else { FAILED })
}

/// One protocol against the first one, network by network.
struct Gain {
    /// The ratio of the mean goodputs over the networks where both deliver something; none if there is no such network, or
    /// if the protocol delivers nothing where the baseline does: a geometric mean would be zero.
    ratio: Option<Ratio>,
    /// Networks where the baseline delivers something and the protocol nothing.
    failed: usize,
}

impl Gain {
    fn of(row: &Row, baseline: &Row) -> Gain {
        let runs = baseline.document.runs.iter().zip(&row.document.runs);
        let pairs: Vec<(f64, f64)> = runs
            .map(|(base, run)| (base.mean_goodput(), run.mean_goodput()))
            .filter(|&(base, _)| base > 0.0)
            .collect();
        Gain {
            ratio: statistics::ratio(&pairs),
            failed: pairs.iter().filter(|&&(_, own)| own == 0.0).count(),
        }
    }

    /// Whether the whole interval lies below 1.
    fn is_loss(&self) -> bool {
        self.ratio
            .and_then(|ratio| ratio.high)
            .is_some_and(|high| high < 1.0)
    }
}

/// Networks on which the baseline delivers nothing, so that no ratio exists there.
fn unserved(baseline: &Row) -> usize {
    let runs = baseline.document.runs.iter();
    runs.filter(|run| run.mean_goodput() == 0.0).count()
}

fn json(parts: &[DemoResult]) -> String {
    let part = |shown: &DemoResult| {
        let baseline = &shown.rows[0];
        let system = |row: &Row| {
            serde_json::json!({
                "system": row.variant.label,
                "ratio": Gain::of(row, baseline).ratio,
                "result": row.document,
            })
        };
        let systems: Vec<serde_json::Value> = shown.rows.iter().map(system).collect();
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
    let width = terminal::width(Stream::Output);
    let prose = |text: &str| chappe::message::wrap(text, width).join("\n") + "\n";
    let mut text = String::new();
    for shown in parts {
        let what = match &options.file {
            Some(file) => format!("{} ({})", file.display(), size(shown.octets)),
            None => format!("A file of {}", size(shown.octets)),
        };
        text += &prose(&format!("{what} {}", shown.over));
        text += "\n";
        text += &table(shown).render(width, terminal::colour_on(Stream::Output));
        text += "\n";
        text += &prose(shown.bound);
        for remark in remarks(shown) {
            text += &prose(&remark);
        }
        text += "\n";
    }
    text += &prose(&about(options, seconds));
    text + &next(options)
}

/// What a protocol is in its part: two baselines at most, the paper's protocol, the improved one.
const ROLES: [&str; 4] = ["baseline", "second baseline", "the paper's", "improved"];
/// The place of the paper's protocol among them.
const PAPER: usize = 2;

/// What a part's system is called, and so its paper's protocol.
fn title(shown: &DemoResult) -> &'static str {
    systems::named(shown.part).map_or(shown.part, |system| system.scenario.title)
}

/// The slowest receiver's goodput with every protocol, as a share of its bound, so that all parts have one scale: a group for each system.
fn picture(parts: &[DemoResult]) -> Figure {
    let none = Summary {
        mean: f64::NAN,
        ..Summary::of(&[])
    };
    let mut shares = ROLES.map(|role| (role, vec![none; parts.len()]));
    for (place, shown) in parts.iter().enumerate() {
        let mut baselines = 0..PAPER;
        for row in &shown.rows {
            let role = match row.variant {
                variant if variant.is_paper() => Some(PAPER),
                variant if variant.is_improved() => Some(PAPER + 1),
                _ => baselines.next(),
            };
            if let Some(role) = role {
                shares[role].1[place] = share_of_bound(row);
            }
        }
    }
    let series = shares
        .map(|(role, shares)| Series::new(role, shares))
        .into();
    let places = parts.iter().map(|shown| title(shown).to_string());
    let measured = "goodput of the slowest receiver, as a share of the bound";
    Figure {
        id: "demo",
        title: "baselines, the papers' protocols, and the improved ones".into(),
        panels: vec![Panel::bars("", measured, "%", places.collect(), series).on("system")],
        claims: Vec::new(),
        notes: Vec::new(),
    }
}

/// The mean over networks, in per cent.
fn share_of_bound(row: &Row) -> Summary {
    let runs = row.document.runs.iter();
    let bounds = runs.filter_map(|run| run.bound.as_ref());
    let shares = bounds.map(|bound| 100.0 * bound.fraction);
    Summary::of(&shares.collect::<Vec<f64>>())
}

/// What the ratios of a part leave out, and why a protocol falls behind its baseline.
fn remarks(shown: &DemoResult) -> Vec<String> {
    let baseline = &shown.rows[0];
    let mut remarks = Vec::new();
    let n = baseline.document.runs.len();
    let unserved = unserved(baseline);
    if unserved > 0 {
        remarks.push(format!(
            "{} delivers nothing on {unserved} of {n} networks; the ratios leave these out.",
            baseline.variant.label
        ));
    }
    for row in &shown.rows[1..] {
        let gain = Gain::of(row, baseline);
        if gain.failed > 0 {
            remarks.push(format!(
                "{} delivers nothing on {} of {n} networks, so it has no mean ratio.",
                row.variant.label, gain.failed
            ));
        }
        if gain.is_loss() {
            remarks.extend(row.behind.map(str::to_string));
        }
    }
    remarks
}

/// One part's rows: its protocols, then the bound.
fn table(shown: &DemoResult) -> Table {
    let baseline = &shown.rows[0];
    let mut table = Table::new()
        .words("")
        .numbers("mean kbit/s", 0)
        .numbers(&format!("x {}", baseline.variant.label), 2)
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
    let ratio = match baseline.map(|baseline| Gain::of(row, baseline).ratio) {
        None => "1".into(),
        Some(None) => "-".into(),
        Some(Some(ratio)) => compare::with_interval_of(&ratio),
    };
    vec![
        row.variant.label.to_string(),
        rate(&totals.goodput_bps),
        ratio,
        rate(&totals.worst_goodput_bps),
        format!("{} %", digits(share.mean)),
        count(over(&|run| run.counter(DATA_TRANSMISSIONS) as f64).mean),
        format!("{}/{}", totals.complete, totals.receivers),
    ]
}

fn about(options: &cli::Demo, seconds: f64) -> String {
    let (seed, n) = (options.seed, options.networks);
    let last = seed + n - 1;
    format!(
        "n={n} networks, seeds {seed}..{last}; {} s. Intervals are of 95 % over networks; ratios are geometric means, paired by network. Every protocol of a table meets the same networks and the same air.",
        digits(seconds)
    )
}

fn next(options: &cli::Demo) -> String {
    let (seed, n) = (options.seed, options.networks);
    let file = options
        .file
        .as_ref()
        .map_or(String::new(), |file| format!(" {}", file.display()));
    let networks = if n == cli::DEMO_NETWORKS {
        String::new()
    } else {
        format!(" --networks {n}")
    };
    format!(
        "\nreproduce:  chappe demo{file} --seed {seed}{networks}\nnext:       chappe lab pacifier --quick     a paper's figures, the published values beside ours\n            chappe new mesh.toml            a network of your choice, then: chappe sim mesh.toml\n"
    )
}

/// A number of octets with a decimal unit.
fn size(octets: usize) -> String {
    chappe_scenario::quantity::Size::new(octets as f64).to_string()
}
