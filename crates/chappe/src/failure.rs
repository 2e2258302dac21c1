//! What ends a command early, and with which exit code.

use std::io;

use chappe_lab::run::RunError;
use chappe_scenario::InputError;
use chappe_store::StoreError;

use crate::sweep::SweepError;

/// Exit code of a transfer, claim or comparison that failed.
pub const FAILED: u8 = 1;
/// Exit code of a mistake in a scenario or another input.
pub const INPUT: u8 = 3;
/// Exit code of something that the machine lacks.
pub const ENVIRONMENT: u8 = 4;
/// Exit code of a defect of Chappe.
pub const DEFECT: u8 = 70;
/// Exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// What ends a command early.
#[derive(Debug)]
pub enum Failure {
    /// A mistake in a scenario or another input.
    Input(Box<InputError>),
    /// The machine lacks something: what it is, and what to do about it.
    Environment(String, String),
    /// A cast could not begin or go on.
    Cast(chappe_cast::Error),
    /// A defect of Chappe.
    Defect(String),
    /// Ctrl-C before anything was finished.
    Interrupted,
    /// A child process has reported the failure already and ended with this code.
    Reported(u8),
    /// The reader of standard output has closed it: `chappe ... | head`.
    ClosedPipe,
}

impl Failure {
    /// The exit code of the command.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => INPUT,
            Failure::Environment(..) => ENVIRONMENT,
            Failure::Cast(error) => match error.kind {
                chappe_cast::Kind::Input => INPUT,
                chappe_cast::Kind::Environment => ENVIRONMENT,
                chappe_cast::Kind::Failed => FAILED,
            },
            Failure::Defect(_) => DEFECT,
            Failure::Interrupted => INTERRUPTED,
            Failure::Reported(code) => *code,
            Failure::ClosedPipe => 0,
        }
    }
}

impl From<chappe_cast::Error> for Failure {
    fn from(error: chappe_cast::Error) -> Failure {
        Failure::Cast(error)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Failure::Input(Box::new(error))
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Input(error) => Failure::Input(error),
            RunError::Write(what) => {
                Failure::Environment(what, "choose another place, or make room".into())
            }
            RunError::Defect(what) => Failure::Defect(what),
            RunError::Interrupted => Failure::Interrupted,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Format { help, .. } => {
                let error = InputError::new("", error.to_string());
                match help {
                    Some(help) => error.help(help).into(),
                    None => error.into(),
                }
            }
            StoreError::Io { .. } => Failure::Environment(
                format!("cannot write {error}"),
                "choose another folder, or make room".into(),
            ),
        }
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Failure {
        match error {
            SweepError::Input(error) => Failure::Input(error),
            SweepError::Store(error) => error.into(),
            SweepError::Program(error) => Failure::Environment(
                format!("cannot read this program's own file: {error}"),
                "results of a program without a commit are filed under its digest".into(),
            ),
        }
    }
}

impl From<chappe_sys::Error> for Failure {
    fn from(error: chappe_sys::Error) -> Failure {
        let advice = error
            .advice()
            .unwrap_or("`chappe doctor` lists what this machine allows");
        Failure::Environment(error.cause(), advice.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Environment(
                format!("cannot write results: {error}"),
                "is the disk full?".into(),
            ),
        }
    }
}
