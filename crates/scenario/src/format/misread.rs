//! Why a value of a text could not be read.

use std::fmt;
use std::ops::Range;

use serde::de::Error;

/// Why a value could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misread(Box<Why>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Why {
    message: String,
    span: Option<Range<usize>>,
    /// The key of the value, if it has one.
    key: Option<String>,
    /// Whether the text is no TOML.
    syntax: bool,
}

impl Misread {
    pub(super) fn message(&self) -> &str {
        &self.0.message
    }

    pub(super) fn span(&self) -> Option<Range<usize>> {
        self.0.span.clone()
    }

    /// The key of the value that could not be read.
    pub(super) fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// Whether the text is no TOML.
    pub(super) fn is_syntax(&self) -> bool {
        self.0.syntax
    }

    /// The innermost value that is read has the best place.
    pub(super) fn within(mut self, span: Range<usize>) -> Misread {
        self.0.span.get_or_insert(span);
        self
    }

    /// The innermost value's key says what is wrong.
    pub(super) fn of_key(mut self, key: &str) -> Misread {
        self.0.key.get_or_insert_with(|| key.to_owned());
        self
    }
}

impl From<toml::de::Error> for Misread {
    fn from(error: toml::de::Error) -> Misread {
        let message = error.message().to_string();
        Misread(Box::new(Why {
            message,
            span: error.span(),
            key: None,
            syntax: true,
        }))
    }
}

impl Error for Misread {
    fn custom<T: fmt::Display>(message: T) -> Misread {
        let message = message.to_string();
        Misread(Box::new(Why {
            message,
            span: None,
            key: None,
            syntax: false,
        }))
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Misread {}
