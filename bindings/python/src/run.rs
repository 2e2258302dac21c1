//! A finished run of one seed, and its results as Python values.

use chappe_lab::run::Outcome;
use chappe_results::Run as Result;
use chappe_store::table::{self, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// One seed of a scenario, carried to its end.
#[pyclass(frozen, module = "chappe._chappe")]
pub struct Run(pub Outcome);

/// A column: its name, the kind of its values, its values.
pub type Column = (String, &'static str, Py<PyAny>);

impl Run {
    /// Reads a run's JSON.
    pub fn parse(json: &str) -> PyResult<Result> {
        serde_json::from_str(json)
            .map_err(|error| PyValueError::new_err(format!("not a run of chappe: {error}")))
    }
}

#[pymethods]
impl Run {
    /// A run from its JSON.
    #[staticmethod]
    fn from_json(json: &str) -> PyResult<Run> {
        Ok(Run(Outcome {
            run: Run::parse(json)?,
            copies: Vec::new(),
            notes: Vec::new(),
        }))
    }

    fn to_json(&self) -> String {
        serde_json::to_string(&self.0.run).unwrap_or_default()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.run.seed
    }

    #[getter]
    fn digest(&self) -> &str {
        &self.0.run.digest
    }

    #[getter]
    fn complete(&self) -> bool {
        self.0.run.all_complete()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes.clone()
    }

    #[getter]
    fn copies<'py>(&self, py: Python<'py>) -> Vec<Option<Bound<'py, PyBytes>>> {
        let copies = self.0.copies.iter();
        copies
            .map(|copy| copy.as_ref().map(|octets| PyBytes::new(py, octets)))
            .collect()
    }

    /// The columns of its table: a row for each flow.
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<Column>> {
        columns_of(py, chappe_store::columns_of(&self.0.run))
    }
}

/// Columns as Python has them.
pub fn columns_of(py: Python<'_>, columns: Vec<table::Column>) -> PyResult<Vec<Column>> {
    let column = |column: table::Column| {
        let (kind, values) = values_of(py, &column.values)?;
        Ok((column.name, kind, values))
    };
    columns.into_iter().map(column).collect()
}

/// Values as a list, and the name of their kind.
fn values_of(py: Python<'_>, values: &Values) -> PyResult<(&'static str, Py<PyAny>)> {
    Ok(match values {
        Values::Whole(values) => ("whole", values.into_pyobject(py)?.unbind()),
        Values::Real(values) => ("real", values.into_pyobject(py)?.unbind()),
        Values::Yes(values) => ("yes", values.into_pyobject(py)?.unbind()),
        Values::Text(values) => ("text", values.into_pyobject(py)?.unbind()),
    })
}
