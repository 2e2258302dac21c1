//! Errors, each with a remedy.

use std::fmt;

use crate::reason::Reason;

/// Why a cast cannot start or continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of fault, which decides the exit code.
    pub kind: Kind,
    /// The problem, as a sentence.
    pub what: String,
    /// The remedy; may be empty.
    pub todo: String,
    /// The reason that the sender gets if a receiver refuses a transfer.
    pub reason: Reason,
}

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file, key or option is wrong.
    Input,
    /// The machine lacks something: a permission, disk space, an interface.
    Environment,
    /// The transfer failed although input and machine were right.
    Failed,
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A wrong file, key or option.
    pub fn input(what: impl Into<String>, todo: impl Into<String>) -> Error {
        let (what, todo) = (what.into(), todo.into());
        Error {
            kind: Kind::Input,
            what,
            todo,
            reason: Reason::Unsaid,
        }
    }

    /// A deficiency of the machine.
    pub fn environment(what: impl Into<String>, todo: impl Into<String>) -> Error {
        Error {
            kind: Kind::Environment,
            ..Error::input(what, todo)
        }
    }

    /// A transfer that failed.
    pub fn failed(what: impl Into<String>, todo: impl Into<String>) -> Error {
        Error {
            kind: Kind::Failed,
            ..Error::input(what, todo)
        }
    }

    /// Adds the reason that the sender gets.
    pub fn because(self, reason: Reason) -> Error {
        Error { reason, ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match self.todo.is_empty() {
            true => Ok(()),
            false => write!(f, "; {}", self.todo),
        }
    }
}

impl std::error::Error for Error {}

impl From<chappe_live::Error> for Error {
    fn from(error: chappe_live::Error) -> Error {
        let todo = error.advice().unwrap_or_default().to_owned();
        let whole = error.to_string();
        let what = whole.strip_suffix(&format!("; {todo}")).unwrap_or(&whole);
        Error::environment(what, todo)
    }
}
