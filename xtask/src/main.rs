//! Developer commands: `cargo xtask test`, `check`, `firmware`, `sizes`, `bench`, `readme`, `help`.
//!
//! `cargo xtask test` is everything that CI runs, in one order, on any machine: what the machine lacks is
//! skipped and said. `cargo xtask check` is the fast part of it. The rules of the house (who may depend on
//! whom, where `unsafe` may stand, which licences are allowed) are functions in [`rules`] that both commands
//! and this package's own tests call.

mod bench;
mod debian;
mod demo;
mod elf;
mod firmware;
mod modules;
mod no_std;
mod process;
mod report;
mod rules;
mod sizes;
mod source;
mod targets;
mod test;
mod workspace;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test [--install]   everything CI runs; a summary at the end. With CI=true or --install, and as
                               root on Debian, it installs the packages that it lacks
cargo xtask check              the fast part: formatting, lints, the rules of the house
cargo xtask firmware           P³ and TCP on a Cortex-M4 in QEMU, compared with the same here; instructions
cargo xtask sizes              what TCP costs a Cortex-M4: code, memory, instructions; keeps the figures under
                               docs/benchmarks
cargo xtask bench [PACKAGE...] runs the benchmarks and keeps the figures, with machine, compiler, date and
                               commit, under docs/benchmarks
cargo xtask readme             writes the demo's real output into README.md
cargo xtask help               this text
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
        ("firmware", []) => firmware::alone(),
        ("sizes", []) => sizes::alone(),
        ("bench", packages) => bench::run(packages),
        ("circles", []) => rules::circles::list(),
        ("words", []) => rules::words::list(""),
        ("words", [folder]) => rules::words::list(folder),
        ("readme", []) => demo::write_readme(),
        ("help" | "--help" | "-h", []) => {
            print!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("not a command: {}\n\n{HELP}", args.join(" "));
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
