//! What stops a cast, and what to do about it.

use std::fmt;

use crate::reason::Reason;

/// Why a cast cannot begin or go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub kind: Kind,
    /// What is wrong, as a sentence.
    pub what: String,
    /// What to do about it; may be empty.
    pub todo: String,
    /// What its sender is told, if a transfer cannot be received.
    pub reason: Reason,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file, key or option is not what it should be.
    Input,
    /// The machine lacks something: permission, room, an interface.
    Environment,
    /// A transfer failed.
    Failed,
}

/// Either a value or why not.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A mistake in what was given.
    pub fn input(what: impl Into<String>, todo: impl Into<String>) -> Error {
        let (what, todo) = (what.into(), todo.into());
        Error {
            kind: Kind::Input,
            what,
            todo,
            reason: Reason::Unsaid,
        }
    }

    /// Something that the machine lacks.
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

    /// The same, with what a sender is told of it.
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
