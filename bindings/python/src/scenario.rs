//! A scenario that was read and checked, and its runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use chappe_lab::job::TraceKeeper;
use chappe_lab::run::{Meter, Outcome, RunError};
use chappe_lab::sweep::{self as engine, Task};
use chappe_lab::system::{self, Job, System};
use chappe_scenario::format::Source;
use chappe_scenario::plan::{Changes, Plan};
use chappe_scenario::sweep::Grid;
use chappe_trace::{Data, NONE, RECEPTIONS, Trace};
use pyo3::prelude::*;

use crate::error::raised;
use crate::run::Run;
use crate::system::{raised_in, table};
use crate::watch::watched;

/// A scenario with its options.
#[pyclass(frozen, module = "chappe._chappe")]
pub struct Scenario {
    pub source: Source,
    pub object: Option<PathBuf>,
    pub systems: &'static [&'static System],
    set: Vec<String>,
    plan: Plan,
}

/// A table of a trace: its name, and its columns with the kind of their values.
type Table = (String, Vec<(String, &'static str, Py<PyAny>)>);

/// A network: the places of its nodes, the delivery ratio from each node to each, and its transfers with name, source and receivers.
type Network = (
    Vec<(f64, f64)>,
    Vec<f64>,
    Vec<(String, usize, Vec<usize>)>,
    Vec<String>,
);

impl Scenario {
    fn new(
        py: Python<'_>,
        source: Source,
        set: Vec<String>,
        object: Option<PathBuf>,
    ) -> PyResult<Scenario> {
        let systems = table();
        let changes = Changes {
            object: object.as_deref(),
            ..Changes::default()
        };
        let plan = Plan::new(&system::scenarios(systems), source.clone(), &changes)
            .and_then(|plan| {
                // A mistake in the table [sweep] is one of the file's.
                if plan.has_sweep {
                    Grid::read(&source, &[], &[])?;
                }
                Ok(plan)
            })
            .map_err(|error| raised(py, error))?;
        Ok(Scenario {
            source,
            object,
            systems,
            set,
            plan,
        })
    }

    /// Makes one run. `Err` holds what is to be raised.
    fn make(&self, py: Python<'_>, seed: u64, copies: bool) -> PyResult<Outcome> {
        let meter = Arc::new(Meter::default());
        let order = engine::Sweep {
            systems: self.systems,
            plans: vec![self.plan.clone()],
            tasks: vec![Task { cell: 0, seed }],
            copies,
            threads: 1,
        };
        let mut outcome = None;
        let (done, signal) = watched(py, &meter, || {
            engine::run(order, &meter, |_, made| {
                outcome = Some(made);
                Ok(())
            })
        });
        if let Some(error) = signal.or(raised_in(&self.plan)) {
            return Err(error);
        }
        done.map_err(|error| raised(py, error))?;
        outcome.ok_or_else(|| raised(py, RunError::Interrupted))
    }
}

#[pymethods]
impl Scenario {
    #[staticmethod]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        set: Vec<String>,
        object: Option<PathBuf>,
    ) -> PyResult<Scenario> {
        let source = Source::read(&path, &set).map_err(|error| raised(py, error))?;
        Scenario::new(py, source, set, object)
    }

    #[staticmethod]
    fn parse(
        py: Python<'_>,
        name: &str,
        text: &str,
        set: Vec<String>,
        object: Option<PathBuf>,
    ) -> PyResult<Scenario> {
        Scenario::new(py, Source::new(name, text, &set), set, object)
    }

    #[getter]
    fn title(&self) -> &str {
        &self.plan.title
    }

    #[getter]
    fn name(&self) -> &str {
        self.source.name()
    }

    #[getter]
    fn text(&self) -> &str {
        self.source.text()
    }

    #[getter]
    fn set(&self) -> Vec<String> {
        self.set.clone()
    }

    #[getter]
    fn object(&self) -> Option<PathBuf> {
        self.object.clone()
    }

    #[getter]
    fn canonical(&self) -> &str {
        &self.plan.canonical
    }

    #[getter]
    fn system(&self) -> &'static str {
        self.plan.system.name
    }

    #[getter]
    fn variant(&self) -> &'static str {
        self.plan.settings.variant().name
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.plan.topology.nodes()
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.plan.seeds.clone()
    }

    fn run(&self, py: Python<'_>, seed: u64, copies: bool) -> PyResult<Run> {
        self.make(py, seed, copies).map(Run)
    }

    /// A run with its events: the tables of `chappe_trace::TABLES`.
    fn trace(
        &self,
        py: Python<'_>,
        seed: u64,
        limit: Option<usize>,
    ) -> PyResult<(Run, Vec<Table>)> {
        let (kept, meter) = (
            Kept::of(limit.unwrap_or(RECEPTIONS)),
            Arc::new(Meter::default()),
        );
        let carried = || {
            let named = |system: &&&System| system.scenario.name == self.plan.system.name;
            let Some(system) = self.systems.iter().find(named) else {
                return Err(RunError::Defect("the system is not in the table".into()));
            };
            let job = Job {
                plan: &self.plan,
                network: self.plan.network(seed)?,
                copies: false,
                pcap: None,
                traces: Some(&kept),
            };
            (system.carry)(job, &meter)
        };
        let (done, signal) = watched(py, &meter, carried);
        if let Some(error) = signal.or(raised_in(&self.plan)) {
            return Err(error);
        }
        let outcome = done.map_err(|error| raised(py, error))?;
        Ok((Run(outcome), kept.tables(py)?))
    }

    fn network(&self, py: Python<'_>, seed: u64) -> PyResult<Network> {
        let network = py.detach(|| self.plan.network(seed));
        let network = network.map_err(|error| raised(py, error))?;
        let places = network
            .medium
            .positions()
            .iter()
            .map(|place| (place.x, place.y));
        let transfers = network.transfers.into_iter();
        Ok((
            places.collect(),
            network.delivery,
            transfers
                .map(|transfer| (transfer.name, transfer.source, transfer.receivers))
                .collect(),
            self.plan.names.clone(),
        ))
    }
}

/// Keeps the events of one run in memory.
#[derive(Debug)]
struct Kept {
    limit: usize,
    trace: Mutex<Option<Trace>>,
}

impl Kept {
    fn of(limit: usize) -> Kept {
        Kept {
            limit,
            trace: Mutex::new(None),
        }
    }

    fn tables(&self, py: Python<'_>) -> PyResult<Vec<Table>> {
        let trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(trace) = trace.as_ref() else {
            return Err(raised(py, RunError::Defect("no events were kept".into())));
        };
        let mut tables = Vec::new();
        for table in trace.tables().tables {
            let columns = table.columns.into_iter();
            let column = |column: chappe_trace::Column| {
                let (kind, values) = values_of(py, column.data)?;
                Ok((column.name, kind, values))
            };
            let columns: PyResult<Vec<_>> = columns.map(column).collect();
            tables.push((table.name, columns?));
        }
        Ok(tables)
    }
}

impl TraceKeeper for Kept {
    fn limit(&self) -> usize {
        self.limit
    }

    fn keep(&self, trace: &Trace) -> Result<(), RunError> {
        let mut kept = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(trace.clone());
        Ok(())
    }
}

/// Values as a list, in which `None` stands where there is none, and the name of their kind.
fn values_of(py: Python<'_>, data: Data) -> PyResult<(&'static str, Py<PyAny>)> {
    Ok(match data {
        Data::Whole(values) => {
            let values = values
                .into_iter()
                .map(|value| (value != NONE).then_some(value));
            let values: Vec<Option<i64>> = values.collect();
            ("whole", values.into_pyobject(py)?.unbind())
        }
        Data::Real(values) => {
            let values = values
                .into_iter()
                .map(|value| (!value.is_nan()).then_some(value));
            let values: Vec<Option<f64>> = values.collect();
            ("real", values.into_pyobject(py)?.unbind())
        }
        Data::Word { codes, words } => {
            let word = |code: u32| words.get(code as usize).map(String::as_str);
            let values: Vec<Option<&str>> = codes.into_iter().map(word).collect();
            ("text", values.into_pyobject(py)?.unbind())
        }
    })
}
