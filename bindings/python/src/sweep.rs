//! A sweep with its folder, and the identity that workers of a sweep compare.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chappe::sweep::{self, Missing, Sweep as Ordered, build_of, cells_of};
use chappe_lab::run::{Meter, Outcome};
use chappe_lab::sweep::Task;
use chappe_scenario::plan::Changes;
use chappe_scenario::sweep::Grid;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::raised;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::system::raised_in;
use crate::watch::watched;

/// A sweep as it was ordered, with its folder open; `None` when it was closed.
#[pyclass(frozen, module = "chappe._chappe")]
pub struct Sweep(Mutex<Option<Ordered>>);

/// What tells this build apart: version, commit (with `+` if the source was changed since), and in that case a digest of the library's
/// file, `library`.
#[pyfunction]
pub fn identity(py: Python<'_>, library: PathBuf) -> PyResult<(&'static str, String, String)> {
    let program = chappe::program("");
    let build = build_of(program, &library).map_err(|error| raised(py, error))?;
    let mark = if program.dirty { "+" } else { "" };
    let commit = format!("{}{mark}", program.commit);
    Ok((env!("CARGO_PKG_VERSION"), commit, build))
}

/// A run of a sweep: the number of its cell, and its seed.
type Place = (usize, u64);

impl Sweep {
    fn held(&self) -> MutexGuard<'_, Option<Ordered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Ordered) -> PyResult<T>) -> PyResult<T> {
        match self.held().as_mut() {
            Some(sweep) => work(sweep),
            None => Err(PyRuntimeError::new_err("the sweep is closed")),
        }
    }
}

#[pymethods]
impl Sweep {
    /// Orders a sweep and opens its folder. `seeds` replaces the scenario's, and `library` is this library's file.
    #[new]
    #[pyo3(signature = (scenario, grid, reference, seeds, out, part, command, library))]
    #[expect(
        clippy::too_many_arguments,
        reason = "called by one function of the package, by name"
    )]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        grid: Vec<String>,
        reference: Vec<String>,
        seeds: Option<Vec<u64>>,
        out: PathBuf,
        part: Option<(usize, usize)>,
        command: &str,
        library: PathBuf,
    ) -> PyResult<Sweep> {
        let ordered = || -> Result<Ordered, sweep::SweepError> {
            let changes = Changes {
                object: scenario.object.as_deref(),
                seeds,
                ..Changes::default()
            };
            let grid = Grid::read(&scenario.source, &grid, &reference)?;
            let cells = cells_of(scenario.systems, &grid, &scenario.source, &changes)?;
            let program = (chappe::program(command), Path::new(&library));
            let mut ordered = Ordered::open((grid, cells), program, out, part)?;
            ordered.systems = scenario.systems;
            Ok(ordered)
        };
        let ordered = py.detach(ordered).map_err(|error| raised(py, error))?;
        Ok(Sweep(Mutex::new(Some(ordered))))
    }

    /// The runs to make, how many of the whole sweep are there, and how many the whole has.
    fn missing(&self) -> PyResult<(Vec<Place>, usize, usize)> {
        self.with(|sweep| {
            let Missing { tasks, known, all } = sweep.missing();
            let tasks = tasks.into_iter().map(|task| (task.cell, task.seed));
            Ok((tasks.collect(), known, all))
        })
    }

    /// The options `key=value` of each cell, as `--set` takes them.
    fn settings(&self) -> PyResult<Vec<Vec<String>>> {
        self.with(|sweep| {
            let cells = sweep.cells.iter();
            Ok(cells.map(|cell| sweep.grid.options(&cell.at)).collect())
        })
    }

    /// Makes the missing runs on this machine's threads. What is finished when a signal comes, or when a run fails, is kept.
    fn make(&self, py: Python<'_>, threads: usize, copies: bool) -> PyResult<usize> {
        let meter = Arc::new(Meter::default());
        let (done, signal) = watched(py, &meter, || {
            let mut held = self.held();
            let sweep = held.as_mut()?;
            let tasks = sweep.missing().tasks;
            let done = sweep.make(tasks, copies, threads, &meter);
            Some((done, sweep.pack()))
        });
        let Some((done, packed)) = done else {
            return Err(PyRuntimeError::new_err("the sweep is closed"));
        };
        let of_node = self.with(|sweep| {
            let mut plans = sweep.cells.iter().map(|cell| &cell.plan);
            Ok(plans.find_map(raised_in))
        });
        if let Some(error) = signal.or(of_node?) {
            return Err(error);
        }
        packed.map_err(|error| raised(py, error))?;
        done.map_err(|error| raised(py, error))
    }

    /// Keeps a run that was made elsewhere.
    fn keep(&self, py: Python<'_>, cell: usize, json: &str) -> PyResult<()> {
        let run = Run::parse(json)?;
        let task = Task {
            cell,
            seed: run.seed,
        };
        let outcome = Outcome {
            run,
            copies: Vec::new(),
            notes: Vec::new(),
        };
        self.with(|sweep| sweep.keep(task, outcome).map_err(|error| raised(py, error)))
    }

    /// Moves what was kept to the data set.
    fn pack(&self, py: Python<'_>) -> PyResult<()> {
        self.with(|sweep| sweep.pack().map_err(|error| raised(py, error)))
    }

    /// The files of the data set, in the order of the cells, and the ordered seeds.
    fn files(&self) -> PyResult<(Vec<PathBuf>, Vec<u64>)> {
        self.with(|sweep| {
            let seeds = sweep.cells.first().map(|cell| cell.plan.seeds.clone());
            Ok((sweep.files(), seeds.unwrap_or_default()))
        })
    }

    /// Gives the folder free for another sweep.
    fn close(&self) {
        *self.held() = None;
    }
}
