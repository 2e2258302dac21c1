//! The goals of the improved variant on networks that no constant was chosen on: random ends, both receivers.
//!
//! `cargo run --release -p chappe-lab-p3 --example goals [FIRST..LAST [NAME]]` prints one table; the seeds are 990001..990020
//! if omitted, and `NAME` keeps the networks whose name contains it. The source and the destination are any two nodes; the
//! figures' kind of routes (at least six paths) is not asked for. Networks of measured buildings need the files that
//! `CHAPPE_MERCATOR` and `CHAPPE_K7` name, or those beside the repository; without them their rows are left out.

use std::path::PathBuf;
use std::time::Instant;

use chappe_core::{Purpose, Seed};
use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab::seeds;
use chappe_lab_p3::{P3, Prepared, RADIO_WATTS, SYSTEM, Variant, carry, prepare};
use chappe_p3::config::CHANNELS;
use chappe_p3::planner::{LinkGraph, largest_path_set};
use chappe_results::Run;
use chappe_scenario::Plan;

/// Octets of the object, the paper's.
const OCTETS: usize = 59_000;
/// A link of a way works in both directions with this ratio on one of the channels.
const GOOD: f64 = 0.9;
/// Flows that the search for two distinct ways may take.
const FLOWS: usize = 200;
/// Hops beyond the shortest way on which two distinct ways are looked for.
const SLACK: usize = 3;

/// A kind of network.
struct Site {
    name: &'static str,
    text: String,
    /// Whether source and destination are the two ends, not any two nodes.
    ends: bool,
}

fn main() -> Result<(), RunError> {
    let mut arguments = std::env::args().skip(1);
    let range = arguments.next().unwrap_or_else(|| "990001..990020".into());
    let wanted = arguments.next().unwrap_or_default();
    let bounds: Option<Vec<u64>> = range.split("..").map(|text| text.parse().ok()).collect();
    let Some([first, last]) = bounds.as_deref() else {
        eprintln!("seeds are given as 990001..990020, not {range:?}");
        std::process::exit(2);
    };
    println!(
        "{:<22} {:<14} {:>3} {:>4} | {:<8} {:>4} {:>6} {:>6} {:>6} {:>6} | {:>7} {:>7} {:>8} {:>6} {:>6}",
        "network",
        "receiver",
        "n",
        "pipe",
        "variant",
        "zero",
        "mean",
        "p5",
        "min",
        "hops",
        "mJ/kB",
        "J/kB +m",
        "kbps +m",
        "plan s",
        "x real"
    );
    for site in sites().iter().filter(|site| site.name.contains(&wanted)) {
        for profile in ["cc2420-indoor", "cc2420-chips"] {
            row(site, profile, *first..=*last)?;
        }
    }
    Ok(())
}

/// The networks whose files are there.
fn sites() -> Vec<Site> {
    let mut sites = Vec::new();
    let building =
        |nodes: usize| format!("generator = \"building\"\nnodes = {nodes}\nbad_links = 0.25");
    for (name, nodes) in [
        ("building 60", 60),
        ("building 139", 139),
        ("building 350", 350),
    ] {
        sites.push(Site {
            name,
            text: building(nodes),
            ends: false,
        });
    }
    let file = |variable: &str, default: &str| {
        let path = std::env::var_os(variable).map_or_else(|| default.into(), PathBuf::from);
        path.is_file()
            .then(|| format!("file = {:?}\n", path.display().to_string()))
    };
    let data = "../shared/data";
    if let Some(text) = file(
        "CHAPPE_MERCATOR",
        &format!("{data}/iotlab-mercator/grenoble_links.csv.gz"),
    ) {
        for (name, nodes) in [
            ("Grenoble 60", 60),
            ("Grenoble 139", 139),
            ("Grenoble 340", 340),
        ] {
            let text = format!("{text}nodes = {nodes}\nbad_links = 0.25");
            sites.push(Site {
                name,
                text,
                ends: false,
            });
        }
    } else {
        eprintln!("skipped: Grenoble (CHAPPE_MERCATOR names no file)");
    }
    if let Some(text) = file(
        "CHAPPE_K7",
        &format!("{data}/iotlab-grenoble-k7/grenoble.k7.gz"),
    ) {
        sites.push(Site {
            name: "K7 50",
            text,
            ends: false,
        });
    } else {
        eprintln!("skipped: K7 (CHAPPE_K7 names no file)");
    }
    for (name, columns, apart) in [
        ("corridor 12 columns", 12, 48),
        ("corridor 24 columns", 24, 30),
        ("corridor 24 wide", 24, 48),
    ] {
        sites.push(Site {
            name,
            text: corridor(columns, apart),
            ends: true,
        });
    }
    sites
}

/// Columns of five nodes, with one node at each end.
fn corridor(columns: usize, apart: usize) -> String {
    let mut positions = vec![["0 m".to_string(), "6 m".to_string()]];
    for column in 1..=columns {
        for row in 0..5 {
            let x = column * apart + 4 * (row % 2);
            positions.push([format!("{x} m"), format!("{} m", 3 * row)]);
        }
    }
    positions.push([format!("{} m", (columns + 1) * apart), "6 m".into()]);
    format!("positions = {positions:?}")
}

/// What one run brought.
struct Outcome {
    /// Hops of the shortest way by good links, if there is any.
    way: Option<usize>,
    /// Whether two distinct ways exist, so that two groups can take turns.
    pipeline: bool,
    runs: Vec<(Run, f64)>,
}

const VARIANTS: [Variant; 3] = [Variant::Paper, Variant::PipAware, Variant::Improved];

fn row(site: &Site, profile: &str, range: std::ops::RangeInclusive<u64>) -> Result<(), RunError> {
    let text = format!(
        "title = \"goals\"\n[network]\n{}\n[radio]\nprofile = \"{profile}\"\n[protocol]\nsystem = \"p3\"\n\
         [[transfer]]\nreceivers = 1\nbytes = \"{OCTETS} B\"\n",
        site.text
    );
    let plan = Plan::parse(&[&SYSTEM], "goals", &text)?;
    let all: Vec<u64> = range.collect();
    let meter = Meter::default();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let done = seeds::finished(&all, threads, &meter, |&seed| one(&plan, site, seed))?;
    let outcomes: Vec<Outcome> = done.into_iter().map(|(_, outcome)| outcome).collect();
    let with_way: Vec<&Outcome> = outcomes.iter().filter(|one| one.way.is_some()).collect();
    let piped = with_way.iter().filter(|one| one.pipeline).count();
    for (place, variant) in VARIANTS.into_iter().enumerate() {
        let runs = |one: &&Outcome| -> f64 { one.runs[place].0.mean_goodput() / 1e3 };
        let zero = with_way.iter().filter(|one| runs(one) <= 0.0).count();
        let mut rates: Vec<f64> = with_way
            .iter()
            .filter(|one| one.pipeline)
            .map(runs)
            .collect();
        rates.sort_by(f64::total_cmp);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let fifth = rates.get(rates.len() / 20).copied().unwrap_or(0.0);
        let each = |value: &dyn Fn(&Run) -> f64| -> f64 {
            with_way.iter().map(|one| value(&one.runs[place].0)).sum()
        };
        let kb = each(&|run| {
            if run.all_complete() {
                OCTETS as f64 / 1e3
            } else {
                0.0
            }
        });
        let sending = each(&|run| run.counter("energy_uj") as f64 * 1e-6);
        let learning =
            |run: &Run| (run.counter("measuring_ms") + run.counter("collecting_ms")) as f64 * 1e-3;
        let nodes = with_way
            .first()
            .map_or(0.0, |one| one.runs[place].0.counter("nodes") as f64);
        let measured = each(&|run| learning(run) * nodes * RADIO_WATTS);
        // Goodput with the measurement in the time: what one transfer on an unknown network gets.
        let whole: Vec<f64> = with_way
            .iter()
            .map(|one| {
                let run = &one.runs[place].0;
                let took = run.flows.first().and_then(|flow| flow.completion_s);
                took.map_or(0.0, |took| OCTETS as f64 * 8e-3 / (took + learning(run)))
            })
            .collect();
        let hops = mean(
            &with_way
                .iter()
                .map(|one| one.runs[place].0.counter("hops") as f64)
                .collect::<Vec<_>>(),
        );
        let wall: f64 = with_way.iter().map(|one| one.runs[place].1).sum();
        let simulated: f64 = each(&|run| run.simulated_s);
        println!(
            "{:<22} {:<14} {:>3} {:>4} | {:<8} {:>4} {:>6.1} {:>6.1} {:>6.1} {:>6.1} | {:>7.1} {:>7.2} {:>8.2} {:>6.2} {:>6.0}",
            site.name,
            profile,
            with_way.len(),
            piped,
            name(variant),
            zero,
            mean(&rates),
            fifth,
            rates.first().copied().unwrap_or(0.0),
            hops,
            sending / kb * 1e3,
            (sending + measured) / kb,
            mean(&whole),
            wall / with_way.len().max(1) as f64,
            simulated / wall.max(1e-9),
        );
    }
    Ok(())
}

fn name(variant: Variant) -> &'static str {
    match variant {
        Variant::Paper => "paper",
        Variant::Pip => "pip",
        Variant::PipAware => "pip-aware",
        Variant::Improved => "improved",
    }
}

fn one(plan: &Plan, site: &Site, seed: u64) -> Result<Outcome, RunError> {
    let mut prepared = prepare(plan.network(seed)?);
    let nodes = prepared.truth.nodes();
    let mut random = Seed(seed).child(0x0067_6f61_6c73).stream(Purpose::Topology);
    let transfer = &mut prepared.network.transfers[0];
    let (source, destination) = if site.ends {
        (nodes - 1, 0)
    } else {
        let source = random.below(nodes as u64) as usize;
        let step = 1 + random.below(nodes as u64 - 1) as usize;
        (source, (source + step) % nodes)
    };
    (transfer.source, transfer.receivers) = (source, vec![destination]);
    let (way, pipeline) = ways(&prepared, source, destination);
    let mut runs = Vec::new();
    for variant in VARIANTS {
        let with = P3::paper(variant);
        let begun = Instant::now();
        let spec = RunSpec::plain(plan, &prepared.network);
        let mut run = carry(&with, &prepared, spec, &Meter::default())?.run;
        let wall = begun.elapsed().as_secs_f64();
        let wrong = run
            .flows
            .iter()
            .any(|flow| flow.complete && !flow.digest_ok);
        assert!(!wrong, "seed {seed}: a wrong copy");
        run.counters.insert("nodes".into(), nodes as u64);
        runs.push((run, wall));
    }
    Ok(Outcome {
        way,
        pipeline,
        runs,
    })
}

/// The length of the shortest way by links that are good on one of the channels, and whether two ways of one length have
/// no node in common.
fn ways(prepared: &Prepared, source: usize, destination: usize) -> (Option<usize>, bool) {
    let truth = &prepared.truth;
    let best = |from: usize, to: usize| {
        let both = |channel| {
            truth
                .get(channel, from, to)
                .min(truth.get(channel, to, from))
        };
        CHANNELS.into_iter().map(both).fold(0.0, f64::max)
    };
    let graph = LinkGraph::from_prr(truth.nodes(), GOOD, best);
    let way = graph.distances(source)[destination];
    let two = way.is_some_and(|hops| {
        hops == 1
            || (hops..=hops + SLACK).any(|hops| {
                largest_path_set(&graph, source, destination, hops, FLOWS)
                    .paths
                    .len()
                    >= 2
            })
    });
    (way, two)
}
