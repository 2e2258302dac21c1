//! Failures as Python's exceptions, with the text that the command prints.

use chappe::failure::Failure;
use chappe::message::{self, Layout};
use chappe_scenario::InputError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What reports of defects repeat in place of a command line.
const COMMAND: &str = "(called from Python)";

/// The exception for a failure: a class of `chappe.errors` with the command's text as its message.
pub fn raised(py: Python<'_>, failure: impl Into<Failure>) -> PyErr {
    let failure = failure.into();
    let Some(text) = message::of(&failure, Layout::PLAIN, COMMAND) else {
        return PyKeyboardInterrupt::new_err(());
    };
    let made = match &failure {
        Failure::Interrupted => return PyKeyboardInterrupt::new_err(()),
        Failure::Input(error) => of_input(py, &text, error),
        Failure::Defect(_) => of_class(py, "Defect", &text, None),
        _ => of_class(py, "MachineError", &text, None),
    };
    made.unwrap_or_else(|error| error)
}

fn of_class(
    py: Python<'_>,
    class: &str,
    text: &str,
    parts: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyErr> {
    let class = py.import("chappe.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((text,), parts)?))
}

fn of_input(py: Python<'_>, text: &str, error: &InputError) -> PyResult<PyErr> {
    let parts = PyDict::new(py);
    parts.set_item("message", &error.message)?;
    parts.set_item("file", &error.from)?;
    let (line, column) = error.line_column().unzip();
    parts.set_item("line", line)?;
    parts.set_item("column", column)?;
    parts.set_item("help", error.help.as_deref())?;
    of_class(py, "InputError", text, Some(&parts))
}
