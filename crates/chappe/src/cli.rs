//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use chappe_scenario::plan::SEEDS_MAX;
use clap::{Args, Parser, Subcommand};

/// Networks of `chappe demo`: enough for intervals, and done in about ten seconds on two cores.
pub const DEMO_NETWORKS: u64 = 8;

const AFTER: &str = "\
Exit codes: 0 done, 1 a transfer or claim failed, 2 usage, 3 scenario or input, 4 environment,
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
    /// Move a file over a bad network by each system, beside its baseline and the bound: ten seconds, no setup.
    Demo(Demo),
    /// Simulate a scenario file.
    Sim(Sim),
    /// Regenerate the papers' figures: the paper, ours with intervals, and the bound.
    Lab(Lab),
    /// Write a commented scenario file to start from.
    New(New),
    /// Run real programs over a scenario's network: namespaces, the simulated radios in real time, no root.
    Emu(Emu),
    /// Let real programs talk to motes: a 6LoWPAN border router, the network behind it simulated in real time.
    Border(crate::command::border::Border),
    /// Send files to many hosts over real, lossy networks of several hops.
    Cast(crate::command::cast::Cast),
    /// Hide the losses between two hosts: a TUN device on each side, sealed frames between.
    Link(crate::command::link::Link),
    /// Compare two results, paired by seed: better, worse or the same, and by how much.
    Compare(Compare),
    /// Say what this machine can run, and what to do about what it cannot.
    Doctor(Doctor),
    /// List the systems that a scenario may name, their variants, and where each one runs.
    Systems(Systems),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:  chappe demo README.md --seed 7")]
pub struct Demo {
    /// A file to move; without it, 500 kB made from the seed.
    pub file: Option<PathBuf>,
    /// The first seed: it decides the networks, the air and the file.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Draw the goodput of every protocol beside its bound into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// How many networks.
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
    /// The scenario file; `chappe new` writes one.
    #[arg(required_unless_present = "schema")]
    pub file: Option<PathBuf>,
    /// Change any key of the scenario; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run this seed only.
    #[arg(long, conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Run these seeds: `1..20` (both ends) or `1,4,9`.
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    pub seeds: Option<Seeds>,
    /// Carry this file in the first transfer.
    #[arg(long, value_name = "FILE")]
    pub object: Option<PathBuf>,
    /// Keep results (Parquet) and the receivers' copies in this folder. Runs that are there already are not repeated.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every frame of the first seed to this file, for Wireshark.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Print the JSON Schema of scenario files.
    #[arg(long)]
    pub schema: bool,
    #[command(flatten)]
    pub shared: Shared,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chappe lab                       what there is
  chappe lab pacifier --quick      the paper's figures, small, in under two minutes
  chappe lab pacifier figure7 --out figures")]
pub struct Lab {
    /// A paper (`pacifier`), or some of its figures and tables; nothing lists them all.
    pub names: Vec<String>,
    /// Smaller objects and fewer points: under two minutes on two cores.
    #[arg(long)]
    pub quick: bool,
    /// Exit with 1 if a claim of the paper does not hold here.
    #[arg(long)]
    pub strict: bool,
    /// Write the figures as SVG, their rows as CSV, and everything as JSON into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub shared: Shared,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:  chappe new mesh.toml && chappe sim mesh.toml")]
pub struct New {
    /// The file to write; it must not exist.
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Each node is a network namespace with one interface, radio0. The program sees CHAPPE_NODE (its own number),
CHAPPE_NODES (how many there are) and CHAPPE_NODE_0, CHAPPE_NODE_1, ... (their addresses).

Examples:
  chappe emu examples/line-3-hops.toml                          until Ctrl-C; use it with `chappe emu exec`
  chappe emu examples/line-3-hops.toml -- sh -c 'ping -c 3 $CHAPPE_NODE_3'
  chappe emu exec 3 -- iperf3 -s                                in a second terminal
  chappe emu examples/line-3-hops.toml --no-routes --in 2 -- babeld radio0"
)]
pub struct Emu {
    #[command(subcommand)]
    pub action: Option<EmuAction>,
    /// The scenario file: its network, radios, MAC and faults; transfers are left out.
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Change any key of the scenario; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The number that decides the network and the air, instead of the scenario's first.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Where to run the program: `2` or `n2`.
    #[arg(long = "in", value_name = "NODE", default_value = "0")]
    pub node: String,
    /// Frames that may wait at each station; more are lost and counted.
    #[arg(long, value_name = "FRAMES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub queue: u16,
    /// Largest packet in octets; what the radio carries, if left out.
    #[arg(long, value_name = "OCTETS")]
    pub mtu: Option<usize>,
    /// Write every frame on the air to this file, for Wireshark.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Set no routes to nodes that are out of reach: a routing daemon will.
    #[arg(long)]
    pub no_routes: bool,
    /// TAP devices instead of veth pairs, for kernels without them; needs access to /dev/net/tun.
    #[arg(long)]
    pub tap: bool,
    /// Do not fail because this machine was too slow or too busy to keep time.
    #[arg(long)]
    pub late_ok: bool,
    /// Print the report as one JSON document on standard output; the program's own output goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// No remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// The program to run, and its arguments; its exit code is ours.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum EmuAction {
    /// Run a program in a node of an emulation that is running in another terminal.
    Exec(EmuExec),
    /// Load the network with the kernel's UDP and TCP (iperf3), and compare with what the simulator predicts.
    Check(EmuCheck),
    /// Carry the scenario's transfer by processes of `chappe cast`, and compare with what the simulator says.
    Cast(EmuCast),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The simulator runs Pacifier alone; the emulator runs a process for each node on the same air. The second table says what
each thing costs that a process does besides. Exit code 1 if the goodputs differ by more than the tolerance.

Example:  chappe emu cast examples/mesh-12.toml")]
pub struct EmuCast {
    /// The scenario file, with one transfer by Pacifier.
    pub file: PathBuf,
    /// Change any key of the scenario; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The first number that decides the air, instead of the scenario's first.
    #[arg(long)]
    pub seed: Option<u64>,
    /// On how many airs, each with the next number. Every one is simulated and emulated.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// How fast each process sends; if left out, as fast as one station could if it were alone.
    #[arg(long, value_name = "RATE", value_parser = crate::command::cast::rate)]
    pub rate: Option<chappe_core::Bitrate>,
    /// Most difference of a receiver's goodput, in per cent of the simulator's.
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0)]
    pub tolerance: f64,
    /// Do not simulate what each cause costs.
    #[arg(long)]
    pub no_causes: bool,
    /// Frames that may wait at each station.
    #[arg(long, value_name = "FRAMES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub queue: u16,
    /// Do not fail because this machine was too slow or too busy to keep time.
    #[arg(long)]
    pub late_ok: bool,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub json: bool,
    /// No remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// Only emulate the first air, and print what was seen as JSON: what the command starts for each air.
    #[arg(long, hide = true)]
    pub alone: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The simulator runs the same radios, MACs, queues and routes with a saturating sender and with a model of Linux's TCP; the
emulator carries the kernel's own packets from iperf3. Exit code 1 if they differ by more than the tolerance.

Example:  chappe emu check examples/line-3-hops.toml")]
pub struct EmuCheck {
    /// The scenario file.
    pub file: PathBuf,
    /// Change any key of the scenario; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The number that decides the network, and the first of those that decide the air.
    #[arg(long)]
    pub seed: Option<u64>,
    /// How many times the simulator predicts, each on another air.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub seeds: u64,
    /// The sender.
    #[arg(long, value_name = "NODE", default_value = "0")]
    pub from: String,
    /// The receiver; the last node, if left out.
    #[arg(long, value_name = "NODE")]
    pub to: Option<String>,
    /// How long each load is measured, in seconds, after one that does not count.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Most difference, in per cent of the prediction.
    #[arg(long, value_name = "PERCENT", default_value_t = 15.0)]
    pub tolerance: f64,
    /// Frames that may wait at each station.
    #[arg(long, value_name = "FRAMES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub queue: u16,
    /// Largest packet in octets; what the radio carries, if left out.
    #[arg(long, value_name = "OCTETS")]
    pub mtu: Option<usize>,
    /// Do not fail because this machine was too slow or too busy to keep time.
    #[arg(long)]
    pub late_ok: bool,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub json: bool,
    /// No remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:  chappe emu exec 3 -- iperf3 -s")]
pub struct EmuExec {
    /// The node: `2` or `n2`.
    pub node: String,
    /// Which emulation, by the number of its process, if several are running.
    #[arg(long, value_name = "PID")]
    pub run: Option<u32>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A and B are what `chappe sim --json` printed, or folders that `--out` filled. Exit code 0 if B is not worse than A.

Example:
  chappe sim mesh.toml --seeds 1..10 --json > a.json
  chappe sim mesh.toml --seeds 1..10 --set protocol.variant=more --json > b.json
  chappe compare a.json b.json")]
pub struct Compare {
    /// The result to compare with.
    pub a: PathBuf,
    /// The result to judge.
    pub b: PathBuf,
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

/// Options of every command that runs something.
#[derive(Debug, Args)]
pub struct Shared {
    /// Print one JSON document on standard output, and nothing else there.
    #[arg(long)]
    pub json: bool,
    /// No progress and no hints on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// Threads; without it, one for each core. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

impl Shared {
    /// How many threads to use.
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
        Err("a seed stands here twice".into())
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
    fn seeds_are_ranges_or_lists() {
        assert_eq!(parse_seeds("3..5").unwrap().0, [3, 4, 5]);
        assert_eq!(parse_seeds("9").unwrap().0, [9]);
        assert_eq!(parse_seeds("1,7,2").unwrap().0, [1, 7, 2]);
        for wrong in ["5..3", "a", "1..", "1,1", "0..99999999"] {
            assert!(parse_seeds(wrong).is_err(), "{wrong}");
        }
    }
}
