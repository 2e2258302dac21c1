//! The command line: commands, options and help texts.

use std::ffi::OsString;
use std::path::PathBuf;

use chappe::systems::SYSTEMS;
use chappe_scenario::plan::SEEDS_MAX;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

/// Networks of `chappe demo`: enough for intervals, and done in about ten seconds on two cores.
pub const DEMO_NETWORKS: u64 = 8;

const AFTER: &str = "\
Exit codes: 0 done, 1 a transfer or claim failed, 2 usage, 3 scenario or input, 4 environment, \
70 a defect of chappe, 130 interrupted (finished results are kept).

Start with:  chappe demo";

/// Bulk data, reliably, over lossy multi-hop radio: simulate it, measure it, compare it.
#[derive(Debug, Parser)]
#[command(version, about, after_help = AFTER, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Move a file over lossy networks by each system, beside its baselines and the bound: ten seconds, no setup.
    #[cfg(feature = "full")]
    Demo(Demo),
    /// Simulate a scenario file.
    #[cfg(feature = "full")]
    Sim(Sim),
    /// Simulate a scenario with several values of its keys: every combination, compared over the same seeds.
    #[cfg(feature = "full")]
    Sweep(Sweep),
    /// Regenerate the papers' figures: published values, ours with intervals, and the bound.
    #[cfg(feature = "full")]
    Lab(Lab),
    /// Write a commented scenario file to start from.
    #[cfg(feature = "full")]
    New(New),
    /// Run a command over a lossy path, plainly and through `chappe link`: what it gains, beside the bound. No root, no file.
    #[cfg(feature = "full")]
    Try(crate::command::trial::Try),
    /// Run real programs over a scenario's network: namespaces, the simulated radios in real time, no root.
    #[cfg(feature = "full")]
    Emu(Emu),
    /// Connect real programs to motes: a 6LoWPAN border router with a network behind it that is simulated in real time.
    #[cfg(feature = "full")]
    Border(crate::command::border::Border),
    /// Send files to many hosts over real, lossy, multi-hop networks.
    #[cfg(any(feature = "full", feature = "cast"))]
    Cast(crate::command::cast::Cast),
    /// Recover losses between two hosts: a TUN device on each side, encrypted frames between them.
    #[cfg(any(feature = "full", feature = "link"))]
    Link(crate::command::link::Link),
    /// Run a router of a wireless mesh: a TUN device, routes and prices of airtime, encrypted frames to neighbours.
    #[cfg(feature = "full")]
    Mesh(crate::command::mesh::Options),
    /// Show recorded runs and figures in a browser: the network, a lane for each node, why each frame was lost.
    #[cfg(feature = "full")]
    View(crate::command::view::View),
    /// Compare results, paired by seed: what differs between them, which is better, and by how much.
    #[cfg(feature = "full")]
    Compare(Compare),
    /// Report what this machine can run, and how to enable what it cannot.
    Doctor(Doctor),
    /// Generate shell completions and manual pages.
    #[cfg(feature = "full")]
    Generate(crate::command::generate::Generate),
    /// List the systems that a scenario may name, their variants, and where each one runs.
    #[cfg(feature = "full")]
    Systems(Systems),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:  chappe demo README.md --seed 7")]
pub struct Demo {
    /// The file to move; without it, each system moves data generated from the seed.
    pub file: Option<PathBuf>,
    /// First seed; seeds determine the networks, the radio losses and the generated data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Draw the goodput of every protocol beside its bound into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Number of networks; each has the next seed.
    #[arg(long, default_value_t = DEMO_NETWORKS, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub networks: u64,
    #[command(flatten)]
    pub shared: Shared,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chappe sim examples/mesh-multicast.toml
  chappe sim line.toml --seeds 1..20 --json > line.json
  chappe sim line.toml --set protocol.variant=more --set 'radio.rate=11 Mbit/s'")]
pub struct Sim {
    /// The scenario file; `chappe new` writes one. `-` reads standard input.
    #[arg(required_unless_present = "schema")]
    pub file: Option<PathBuf>,
    /// Change a key of the scenario; can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run this seed only.
    #[arg(long, conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Run these seeds: `1..20` (both ends included) or `1,4,9`.
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    pub seeds: Option<Seeds>,
    /// Send this file in the first transfer.
    #[arg(long, value_name = "FILE")]
    pub object: Option<PathBuf>,
    /// Write results (Parquet) and the receivers' copies to this folder. Runs found there are not repeated.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every frame of the first seed to this file, for Wireshark.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Write each seed's events (frames, losses with their causes, what nodes held) to a folder in this one, as Parquet;
    /// `chappe view` shows them. Of long runs it holds the last quarter of a million receptions.
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// With `--record`: all events of the run, however long, and also frames that a receiver could not have received (too
    /// weak, or while it slept). They are in memory until the run is over.
    #[arg(long, requires = "record")]
    pub record_all: bool,
    /// Print the JSON Schema of scenario files.
    #[arg(long)]
    pub schema: bool,
    #[command(flatten)]
    pub shared: Shared,
}

#[derive(Debug, Args)]
#[command(after_help = "\
VALUES are a list, `paper,more,improved`, or a range with both ends, `10..20 dBm/5` (A..B UNIT/STEP; the step is 1 if omitted). A \
file may hold them in its table [sweep.grid], as `radio.tx_power = \"10..20 dBm/5\"`; options replace a key's values there.

What is finished is kept in the folder: after Ctrl-C, a crash or a change of values, the same command makes only what is missing. \
DIR/cells holds a Parquet data set with a row for each receiver and a column for each swept key. Parts of an array job may share \
the folder, or their folders may be copied together; the same command without --shard then gives the table. Transfers that do not \
finish are counted in the table; they are no failure of the sweep.

Examples:
  chappe sweep mesh.toml --grid protocol.variant=paper,more,improved --seeds 1..20
  chappe sweep mesh.toml --grid protocol.variant=paper,more --reference protocol.variant=more
  chappe sweep mesh.toml --grid 'radio.tx_power=10..20 dBm/5' --grid 'network.spacing=40 m,60 m'
  chappe sweep mesh.toml --out runs --shard $SLURM_ARRAY_TASK_ID/16")]
pub struct Sweep {
    /// The scenario file; `chappe new` writes one.
    pub file: PathBuf,
    /// A key and its values; can be given several times, and every combination is run.
    #[arg(long, value_name = "KEY=VALUES")]
    pub grid: Vec<String>,
    /// Compare each cell with the one that has this value of the key and is otherwise the same; can be given several times. Default:
    /// the first value of the first key.
    #[arg(long, value_name = "KEY=VALUE")]
    pub reference: Vec<String>,
    /// Change a key of the scenario in all cells; can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run these seeds in each cell: `1..20` (both ends included) or `1,4,9`.
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    pub seeds: Option<Seeds>,
    /// Send this file in the first transfer.
    #[arg(long, value_name = "FILE")]
    pub object: Option<PathBuf>,
    /// Folder of the results; default: the scenario's name with `-sweep`.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Keep the receivers' copies in the folder too.
    #[arg(long)]
    pub copies: bool,
    /// Make only part I of N of the runs, for array jobs.
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    pub shard: Option<Shard>,
    /// Draw the figure as PNG too, with a program of this machine (rsvg-convert, resvg, inkscape, cairosvg or magick).
    #[arg(long)]
    pub png: bool,
    #[command(flatten)]
    pub shared: Shared,
}

/// A part of an array job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from one on.
    pub index: usize,
    /// The number of parts.
    pub count: usize,
}

fn parse_shard(text: &str) -> Result<Shard, String> {
    let numbers = text
        .split_once('/')
        .and_then(|(index, count)| Some((index.trim().parse().ok()?, count.trim().parse().ok()?)));
    match numbers {
        Some((index, count)) if index >= 1 && index <= count => Ok(Shard { index, count }),
        _ => Err(format!("`{text}` is not a part; write 1/4 to 4/4")),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without names the command makes everything and ends with a page of claims: which statements of the papers are reproduced, which are \
not and why, and which goals of ours are met. Figures are kept as they are finished: after Ctrl-C the same command goes on.

Examples:
  chappe lab --list                lists papers and figures
  chappe lab --quick               all papers at reduced size, in some minutes
  chappe lab --quick --check       exit code 1 if a claim that held at the last release does not hold now
  chappe lab pacifier --quick      one paper's figures as text
  chappe lab pacifier figure7 --out figures
  chappe lab --out shared --shard $SLURM_ARRAY_TASK_ID/8")]
pub struct Lab {
    /// Papers (pacifier, dpclo, p3, wildnet, tcplp), or some figures and tables of one; default: all papers.
    pub names: Vec<String>,
    /// List the papers and their figures.
    #[arg(long)]
    pub list: bool,
    /// Use smaller objects and fewer points.
    #[arg(long)]
    pub quick: bool,
    /// Exit with 1 if a claim of the paper does not hold here.
    #[arg(long)]
    pub strict: bool,
    /// Exit with 1 if a claim that held at the last release does not hold now.
    #[arg(long)]
    pub check: bool,
    /// Write the figures (SVG, CSV, Parquet, Vega-Lite), the claims and all results as JSON to this folder, and reuse what is there.
    /// Default for all papers: chappe-lab, or chappe-lab-quick.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Make only part I of N of the figures, for array jobs; they share the folder.
    #[arg(long, value_name = "I/N", value_parser = parse_shard, requires = "out")]
    pub shard: Option<Shard>,
    /// Draw the figures as PNG too, with a program of this machine (rsvg-convert, resvg, inkscape, cairosvg or magick).
    #[arg(long, requires = "out")]
    pub png: bool,
    /// Write what held, and what each figure took, to the record of a release.
    #[arg(long, value_name = "FILE", hide = true)]
    pub record: Option<PathBuf>,
    /// First seed; runs use this one and those after it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub shared: Shared,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chappe new mesh.toml && chappe sim mesh.toml
  chappe new tunnel.toml --system p3")]
pub struct New {
    /// The file to write; it must not exist yet.
    pub file: PathBuf,
    /// The system whose scenario is written; `chappe systems` tells what each one is for.
    #[arg(long, value_name = "NAME", default_value = SYSTEMS[0].scenario.name, value_parser = systems_with_a_template())]
    pub system: String,
}

/// The systems that `chappe new` can write a scenario of.
fn systems_with_a_template() -> PossibleValuesParser {
    let systems = SYSTEMS.iter().filter(|system| !system.template.is_empty());
    systems
        .map(|system| system.scenario.name)
        .collect::<Vec<_>>()
        .into()
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Each node is a network namespace with one interface, radio0. The program's environment has CHAPPE_NODE (the \
number of its node), CHAPPE_NODES (the number of nodes) and CHAPPE_NODE_0, CHAPPE_NODE_1, ... (their addresses).

Examples:
  chappe emu examples/line-3-hops.toml                          until Ctrl-C; use it with `chappe emu exec`
  chappe emu examples/line-3-hops.toml -- sh -c 'ping -c 3 $CHAPPE_NODE_3'
  chappe emu exec 3 -- iperf3 -s                                in a second terminal
  chappe emu examples/line-3-hops.toml --no-routes --in 2 -- babeld radio0"
)]
pub struct Emu {
    #[command(subcommand)]
    pub action: Option<EmuAction>,
    /// The scenario file: its network, radios, MAC and faults are used; its transfers are ignored.
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Change a key of the scenario; can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the network and the radio losses; default: the scenario's first.
    #[arg(long)]
    pub seed: Option<u64>,
    /// The node in which to run the program: `2` or `n2`.
    #[arg(long = "in", value_name = "NODE", default_value = "0")]
    pub node: String,
    /// Queue length of each station; further frames are dropped and counted.
    #[arg(long, value_name = "FRAMES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub queue: u16,
    /// MTU in octets; default: the largest that the radio carries.
    #[arg(long, value_name = "OCTETS")]
    pub mtu: Option<usize>,
    /// Write every frame on the air to this file, for Wireshark.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Set no routes to nodes out of radio range; leave them to a routing daemon.
    #[arg(long)]
    pub no_routes: bool,
    /// Use TAP devices instead of veth pairs, for kernels without veth; needs access to /dev/net/tun.
    #[arg(long)]
    pub tap: bool,
    /// Do not fail if this machine was too slow or too busy to keep time.
    #[arg(long)]
    pub late_ok: bool,
    /// Print the report as one JSON document on standard output; the program's own output goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Print no remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// The program to run, with its arguments; `chappe` exits with its exit code.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum EmuAction {
    /// Run a program in a node of a running emulation, from another terminal.
    Exec(EmuExec),
    /// Load the network with the kernel's UDP and TCP (iperf3), and compare the goodput with the simulator's prediction.
    Check(EmuCheck),
    /// Run the scenario's transfer with `chappe cast` processes, and compare the goodput with the simulator's.
    Cast(EmuCast),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The simulator runs Pacifier alone; the emulator runs one process per node over the same radios. The second table shows \
what each additional task of a process costs. Exit code 1 if the goodputs differ by more than the tolerance.

Example:  chappe emu cast examples/mesh-12.toml")]
pub struct EmuCast {
    /// The scenario file, with one transfer by Pacifier.
    pub file: PathBuf,
    /// Change a key of the scenario; can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// First seed of the radio losses; default: the scenario's first.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Number of seeds from the first one on; each is simulated and emulated.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub repeat: u64,
    /// Sending rate of each process; default: the rate of one station with the channel to itself.
    #[arg(long, value_name = "RATE", value_parser = crate::argument::rate)]
    pub rate: Option<chappe_core::Bitrate>,
    /// Largest accepted difference of a receiver's goodput, in per cent of the simulator's.
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0)]
    pub tolerance: f64,
    /// Do not simulate the causes of the difference one by one.
    #[arg(long)]
    pub no_causes: bool,
    /// Queue length of each station.
    #[arg(long, value_name = "FRAMES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub queue: u16,
    /// Do not fail if this machine was too slow or too busy to keep time.
    #[arg(long)]
    pub late_ok: bool,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Print no remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// Emulate the first seed only and print the observations as JSON; the command starts itself so for each seed.
    #[arg(long, hide = true)]
    pub alone: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The simulator runs the same radios, MACs, queues and routes with a saturating sender and with a model of Linux's TCP; the \
emulator carries the kernel's own packets from iperf3. Exit code 1 if they differ by more than the tolerance.

Example:  chappe emu check examples/line-3-hops.toml")]
pub struct EmuCheck {
    /// The scenario file to emulate.
    pub file: PathBuf,
    /// Change a key of the scenario; can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the network, and first seed of the radio losses.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Number of simulated predictions, each with the next seed.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub repeat: u64,
    /// The sending node: `0` or `n0`.
    #[arg(long, value_name = "NODE", default_value = "0")]
    pub from: String,
    /// The receiving node; default: the last one.
    #[arg(long, value_name = "NODE")]
    pub to: Option<String>,
    /// Duration of each measurement in seconds; one more second at its start is not counted.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Largest accepted difference, in per cent of the prediction.
    #[arg(long, value_name = "PERCENT", default_value_t = 15.0)]
    pub tolerance: f64,
    /// Queue length of each station.
    #[arg(long, value_name = "FRAMES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub queue: u16,
    /// MTU in octets; default: the largest that the radio carries.
    #[arg(long, value_name = "OCTETS")]
    pub mtu: Option<usize>,
    /// Do not fail if this machine was too slow or too busy to keep time.
    #[arg(long)]
    pub late_ok: bool,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Print no remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:  chappe emu exec 3 -- iperf3 -s")]
pub struct EmuExec {
    /// The node: `2` or `n2`.
    pub node: String,
    /// Process number of the emulation, if several are running.
    #[arg(long, value_name = "PID")]
    pub run: Option<u32>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A result is the output of `chappe sim --json`, a folder that `sim --out` filled, the folder of a \
sweep (each cell is a result), or what `chappe lab` wrote (a file or its folder). The first one is \
the reference. Results that carry something else, or over another network, are refused, except \
where a key differs that the sweep varies. \
Exit code 0 if none is worse than the reference; of the lab's: if no claim is lost.

Examples:
  chappe sim mesh.toml --seeds 1..10 --json > a.json
  chappe sim mesh.toml --seeds 1..10 --set protocol.variant=more --json > b.json
  chappe compare a.json b.json
  chappe compare mesh-sweep
  chappe compare chappe-lab-quick-old chappe-lab-quick")]
pub struct Compare {
    /// The results; the others are compared with the first one.
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// Compare results that differ in what they carry, or over which network, in keys that no sweep varies.
    #[arg(long)]
    pub force: bool,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Systems {
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub json: bool,
    /// Print the table of the project's README.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Options that the simulating commands share.
#[derive(Debug, Args)]
pub struct Shared {
    /// Print one JSON document on standard output, and nothing else there.
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no hints on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// Number of threads; default: one per core. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

impl Shared {
    /// The number of threads to use.
    pub fn threads(&self) -> usize {
        self.threads
            .map_or_else(chappe_lab::seeds::cores, usize::from)
    }
}

/// Seeds from a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let number = |part: &str| {
        part.trim()
            .parse::<u64>()
            .map_err(|_| format!("`{part}` is not a seed; write 1..20 or 1,4,9"))
    };
    if let Some((first, last)) = text.split_once("..") {
        let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
        if last < first || last - first >= SEEDS_MAX {
            return Err(format!(
                "from {first} to {last}: 1 to {SEEDS_MAX} seeds, the smaller one first"
            ));
        }
        return Ok(Seeds((first..=last).collect()));
    }
    let seeds: Vec<u64> = text.split(',').map(number).collect::<Result<_, _>>()?;
    let mut once = seeds.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() < seeds.len() {
        Err("a seed is listed twice".into())
    } else {
        Ok(Seeds(seeds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn parts_count_from_one() {
        assert_eq!(parse_shard("3/4"), Ok(Shard { index: 3, count: 4 }));
        for wrong in ["0/4", "5/4", "4", "a/b", "1/0", "-1/2"] {
            assert!(parse_shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_are_ranges_or_lists() {
        assert_eq!(parse_seeds("3..5").unwrap().0, [3, 4, 5]);
        assert_eq!(parse_seeds("9").unwrap().0, [9]);
        assert_eq!(parse_seeds("1,7,2").unwrap().0, [1, 7, 2]);
        for wrong in ["5..3", "a", "1..", "1,1", "0..99999999"] {
            assert!(parse_seeds(wrong).is_err(), "{wrong}");
        }
    }
}
