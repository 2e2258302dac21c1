//! The command `chappe`.
//!
//! Standard output carries results and nothing else; remarks, progress and errors go to standard error. Exit codes:
//!
//! | code | means |
//! |---|---|
//! | 0 | done |
//! | 1 | a transfer failed, a comparison is worse, or (with `--strict`) a claim does not hold |
//! | 2 | the command line is wrong |
//! | 3 | a scenario or another input is wrong |
//! | 4 | the environment lacks something |
//! | 70 | a defect of Chappe |
//! | 130 | interrupted; what was finished is kept |

// A program with one command (`--no-default-features --features link`) leaves parts of the common modules unused.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]

mod argument;
mod cli;
mod command;
mod diagnostic;
mod doctor;
mod door;
mod folder;
mod new_file;
mod output;
#[cfg(all(test, feature = "full"))]
mod printed;
mod terminal;
mod unit;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use chappe::failure::{self, Failure};
use cli::{Cli, Command};

/// What every such program has beside its command.
const COMMON: [&str; 3] = ["doctor", "--version", "-V"];

/// The command line of a program whose name is that of a command, such as `chappe-link run FILE`, as `chappe link run FILE`. Version and
/// processor may follow the name, as in the files that are shipped.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let program = arguments.first().map(Path::new);
    let name = program.and_then(|path| path.file_name()?.to_str()?.strip_prefix("chappe-"));
    let name = name.and_then(|name| name.split('-').next());
    let name = name.filter(|name| Cli::command().find_subcommand(name).is_some());
    if let Some(name) = name.map(OsString::from)
        && (arguments.get(1)).is_none_or(|first| !COMMON.iter().any(|common| first == common))
    {
        arguments.insert(1, name);
    }
    arguments
}

fn main() -> ExitCode {
    let cli = Cli::parse_from(with_command(std::env::args_os().collect()));
    diagnostic::report_panics();
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| run(&cli)));
    match done {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(failure)) => {
            diagnostic::report(&failure);
            ExitCode::from(failure.code())
        }
        // The panic hook has reported it.
        Err(_) => ExitCode::from(failure::DEFECT),
    }
}

fn run(cli: &Cli) -> Result<u8, Failure> {
    match &cli.command {
        #[cfg(feature = "full")]
        Command::Demo(options) => command::demo::run(options),
        #[cfg(feature = "full")]
        Command::Sim(options) => command::sim::run(options),
        #[cfg(feature = "full")]
        Command::Sweep(options) => command::sweep::run(options),
        #[cfg(feature = "full")]
        Command::Lab(options) => command::lab::run(options),
        #[cfg(feature = "full")]
        Command::New(options) => command::new::run(options),
        #[cfg(feature = "full")]
        Command::Try(options) => command::trial::run(options),
        #[cfg(feature = "full")]
        Command::Emu(options) => command::emu::run(options),
        #[cfg(feature = "full")]
        Command::Border(options) => command::border::run(options),
        #[cfg(any(feature = "full", feature = "cast"))]
        Command::Cast(options) => command::cast::run(options),
        #[cfg(any(feature = "full", feature = "link"))]
        Command::Link(options) => command::link::run(options),
        #[cfg(feature = "full")]
        Command::Mesh(options) => command::mesh::run(options),
        #[cfg(feature = "full")]
        Command::View(options) => command::view::run(options),
        #[cfg(feature = "full")]
        Command::Compare(options) => command::compare::run(options),
        Command::Doctor(options) => command::doctor::run(options),
        #[cfg(feature = "full")]
        Command::Generate(options) => command::generate::run(options, Cli::command()),
        #[cfg(feature = "full")]
        Command::Systems(options) => command::systems::run(options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_the_name_of_its_command() {
        let line = |words: &str| -> String {
            let words = words.split(' ').map(OsString::from).collect();
            with_command(words)
                .join(" ".as_ref())
                .into_string()
                .unwrap()
        };
        assert_eq!(
            line("/usr/sbin/chappe-link run l.toml"),
            "/usr/sbin/chappe-link link run l.toml"
        );
        assert_eq!(
            line("chappe-cast-0.1.0-aarch64-unknown-linux-musl keygen g a"),
            "chappe-cast-0.1.0-aarch64-unknown-linux-musl cast keygen g a"
        );
        assert_eq!(line("chappe-link doctor"), "chappe-link doctor");
        assert_eq!(line("chappe-cast --version"), "chappe-cast --version");
        assert_eq!(line("chappe-link --help"), "chappe-link link --help");
        assert_eq!(line("chappe link run"), "chappe link run");
        assert_eq!(line("chappe-1.0 demo"), "chappe-1.0 demo");
    }
}
