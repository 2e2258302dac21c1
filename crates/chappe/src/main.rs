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

mod cli;
mod command;
mod diagnostic;
mod doctor;
mod failure;
mod folder;
mod new_file;
mod output;
mod terminal;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
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
        Command::Demo(options) => command::demo::run(options),
        Command::Sim(options) => command::sim::run(options),
        Command::Sweep(options) => command::sweep::run(options),
        Command::Lab(options) => command::lab::run(options),
        Command::New(options) => command::new::run(options),
        Command::Try(options) => command::trial::run(options),
        Command::Emu(options) => command::emu::run(options),
        Command::Border(options) => command::border::run(options),
        Command::Cast(options) => command::cast::run(options),
        Command::Link(options) => command::link::run(options),
        Command::Mesh(options) => command::mesh::run(options),
        Command::View(options) => command::view::run(options),
        Command::Compare(options) => command::compare::run(options),
        Command::Doctor(options) => command::doctor::run(options),
        Command::Generate(options) => command::generate::run(options),
        Command::Systems(options) => command::systems::run(options),
    }
}
