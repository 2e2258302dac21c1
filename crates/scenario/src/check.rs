//! Errors that point into the scenario, and checks that all its tables share.

use std::ops::Range;

use chappe_core::Duration;

use crate::format::{Located, Source};
use crate::input::InputError;
use crate::quantity::Time;

/// Makes errors that point into the scenario.
pub struct Check<'a> {
    source: &'a Source,
}

impl<'a> Check<'a> {
    /// Errors will point into `source`.
    pub(crate) fn new(source: &'a Source) -> Check<'a> {
        Check { source }
    }

    /// The texts that the scenario is made of.
    pub(crate) fn source(&self) -> &'a Source {
        self.source
    }

    /// An error about these octets of the scenario.
    pub fn error(&self, span: Range<usize>, label: &str, message: impl Into<String>) -> InputError {
        self.source.error(span, label, message)
    }

    /// An error about a value.
    pub fn at<T>(&self, value: &Located<T>, label: &str, message: impl Into<String>) -> InputError {
        self.error(value.span(), label, message)
    }

    /// An error in another file, or, if that file cannot be read, at the place that names it.
    pub(crate) fn instead<T>(&self, value: &Located<T>, error: InputError) -> InputError {
        if error.place.is_some() {
            return error;
        }
        let help = error.help.clone();
        let mut here = self.at(value, "this file", error.message.clone());
        here.help = help;
        here
    }

    /// A span of time, from zero on.
    pub fn time(&self, time: &Located<Time>) -> Result<Duration, InputError> {
        let seconds = time.value();
        if !(0.0..=1e9).contains(&seconds) {
            return Err(self.at(time, "here", format!("{} is not a span of time", **time)));
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    /// The number of a node of a network with `nodes` nodes.
    pub(crate) fn node(&self, node: &Located<usize>, nodes: usize) -> Result<usize, InputError> {
        if **node < nodes {
            return Ok(**node);
        }
        let message = format!("there is no node {}", **node);
        Err(self.at(node, "no such node", message).help(numbered(nodes)))
    }
}

/// The help for a node number that is too large.
pub(crate) fn numbered(nodes: usize) -> String {
    format!(
        "the {nodes} nodes are numbered from 0 to {}",
        nodes.saturating_sub(1)
    )
}
