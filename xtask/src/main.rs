//! Developer commands, run as `cargo xtask COMMAND`; see [`HELP`].
//!
//! `cargo xtask test` is everything that CI runs, in the same order on every machine. Steps that this machine cannot run are
//! skipped, and the summary says why. `cargo xtask check` is the fast part of it. The rules of the house (which crate may
//! depend on which, where `unsafe` may stand, which licences are allowed) are functions in [`rules`], which both commands and
//! this package's own tests call.

mod bench;
mod book;
mod debian;
mod demo;
mod deny;
mod dist;
mod elf;
mod firmware;
mod modules;
mod no_std;
mod page;
mod peers;
mod process;
mod python;
mod report;
mod rules;
mod sizes;
mod source;
mod storm;
mod suites;
mod targets;
mod terminal;
mod test;
mod tool;
mod workspace;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  test [--install]    Run everything that CI runs and print a summary. With --install or CI=true, install missing
                      Debian packages (as root) and compiler targets first
  check               Run the fast part: the rules of the house, formatting, lints
  rules               Check the rules of the house alone
  install             Install what `test` needs beyond a Rust toolchain
  words [FOLDER]      List banned phrases, empty doc comments and long sentences
  circles             List files that import each other in a circle
  firmware            Run P3 and TCP on an emulated Cortex-M4, compare them with this machine, count instructions
  sizes               Measure what TCP costs a Cortex-M4 (code, memory, instructions) and record it under
                      docs/benchmarks
  bench [PACKAGE...]  Run the benchmarks and record the results under docs/benchmarks
  peers [SEEDS]       Compare Chappe with ns-3 on the same networks (12 seeds: some five minutes) and record the table under
                      docs/benchmarks. Installs ns-3 from Debian (as root) or PyPI
  dist [PART...]      Make what is shipped, under target/dist: static programs, a Debian package that is installed and
                      removed in a copy of this system, a wheel, a bill of materials, checksums. Half an hour on two
                      cores. Parts: programs, bill, deb, wheel, container, libraries, semver, dependencies, twice,
                      checksums, or one program such as chappe-link-aarch64; --once makes all but `twice`, the comparison of two builds
  storm [OPTIONS]     Run random scenarios with faults through every system and shrink those that fail; see
                      `cargo xtask storm --help`
  page [--check]      Build the page of `chappe view` from web/ (needs Node 20), or compare it
  picture             Draw the README's picture of `chappe view` (needs Node 20 and Chromium)
  frames              Measure how long the page of `chappe view` takes for a frame of a thousand nodes (needs Node 20 and
                      Chromium). Some two minutes, on a machine with nothing else to do
  book                Make a book of the pages under target/book, and follow every link in it; builds mdBook once
  python              Build the wheel of bindings/python in an environment under target/, and run its tests (needs
                      Python 3.10 and a registry of packages)
  readme              Write the demo's output into README.md
  help                Print this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let done = match (command, rest) {
        ("test", []) => test::everything(false),
        ("test", [flag]) if flag == "--install" => test::everything(true),
        ("install", []) => test::install(),
        ("check", []) => test::fast(),
        ("rules", []) => test::rules(),
        ("firmware", []) => firmware::alone(),
        ("sizes", []) => sizes::alone(),
        ("dist", parts) => dist::run(parts),
        ("storm", options) => storm::alone(options),
        ("bench", packages) => bench::run(packages),
        ("peers", arguments) => peers::alone(arguments),
        ("circles", []) => rules::circles::list(),
        ("words", []) => rules::words::list(""),
        ("words", [folder]) => rules::words::list(folder),
        ("page", []) => page::alone(false),
        ("page", [flag]) if flag == "--check" => page::alone(true),
        ("picture", []) => page::picture(),
        ("frames", []) => page::frames(),
        ("book", []) => book::alone(),
        ("python", []) => python::alone(),
        ("readme", []) => demo::write_readme(),
        ("help" | "--help" | "-h", []) => {
            print!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("xtask: unknown command `{}`\n\n{HELP}", args.join(" "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
