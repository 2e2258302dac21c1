//! A sweep with its folder, without a terminal: what `chappe sweep` does, for other programs to call.
//!
//! [`Sweep::open`] finds the runs that the folder holds. [`Sweep::missing`] names the others, [`Sweep::make`] makes them on this
//! machine, and [`Sweep::keep`] takes one that was made elsewhere. [`Sweep::pack`] moves what was kept to the data set.
//!
//! ```
//! use std::sync::Arc;
//!
//! use chappe::sweep::{Sweep, SweepError, cells};
//! use chappe_lab::run::Meter;
//! use chappe_scenario::format::Source;
//! use chappe_scenario::plan::Changes;
//! use chappe_scenario::sweep::Grid;
//!
//! let text = "network.links = [[0, 1], [1, 0]]\nprotocol.links = \"true\"\n\
//!     [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"2 kB\"\n";
//! let source = Source::new("pair.toml", text, &[]);
//! let grid = Grid::read(&source, &["protocol.variant=paper,more".to_string()], &[])?;
//! let cells = cells(&grid, &source, &Changes::default())?;
//! let out = std::env::temp_dir().join(format!("chappe-sweep-example-{}", std::process::id()));
//! let program = chappe::program("an example");
//! # let file = std::env::current_exe().unwrap();
//! let open = || Sweep::open((grid.clone(), cells.clone()), (program, &file), out.clone(), None);
//!
//! let mut sweep = open()?;
//! let tasks = sweep.missing().tasks;
//! sweep.make(tasks, false, 2, &Arc::new(Meter::default())).unwrap();
//! sweep.pack()?;
//! drop(sweep);
//!
//! let again = open()?;
//! assert_eq!(again.missing().known, 2);
//! let (results, lacking) = again.results();
//! assert_eq!((results.len(), lacking), (2, 0));
//! # std::fs::remove_dir_all(&out).unwrap();
//! # Ok::<(), SweepError>(())
//! ```

mod folder;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chappe_lab::run::{Meter, Outcome, RunError};
use chappe_lab::sweep::{self as engine, Task, shard};
use chappe_lab::system::{self, System};
use chappe_results::Run;
use chappe_results::provenance::{Program, Provenance};
use chappe_results::sweep::SweepCell;
use chappe_scenario::InputError;
use chappe_scenario::format::Source;
use chappe_scenario::plan::{Changes, Plan};
use chappe_scenario::sweep::{Cell, Grid};
use chappe_store::StoreError;
use chappe_store::sweep::{CellKey, Part};

use crate::systems::SYSTEMS;
use folder::Folder;
pub use folder::build_of;

/// The most runs of a sweep: more is a mistake in typing.
pub const RUNS_MAX: usize = 10_000_000;

/// A sweep that could not be ordered or kept.
#[derive(Debug)]
pub enum SweepError {
    /// The scenario or the grid makes no sense.
    Input(Box<InputError>),
    /// The folder could not be read or written.
    Store(StoreError),
    /// The program's own file could not be read: results of a program without a commit are filed under its digest.
    Program(io::Error),
}

impl From<InputError> for SweepError {
    fn from(error: InputError) -> SweepError {
        SweepError::Input(Box::new(error))
    }
}

impl From<StoreError> for SweepError {
    fn from(error: StoreError) -> SweepError {
        SweepError::Store(error)
    }
}

/// A sweep as it was ordered, with its folder and the runs that are there.
pub struct Sweep {
    /// The swept keys with their values.
    pub grid: Grid,
    /// The scenarios, one for each combination of values.
    pub cells: Vec<Cell>,
    keys: Vec<CellKey>,
    folder: Folder,
    part: Option<Part>,
    results: Results,
    /// The systems that its scenarios may name; [`SYSTEMS`] unless it is replaced.
    pub systems: &'static [&'static System],
}

/// What a part of a sweep has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The runs to make.
    pub tasks: Vec<Task>,
    /// The runs of the whole sweep that are there.
    pub known: usize,
    /// The runs of the whole sweep.
    pub all: usize,
}

/// The scenarios of a grid, of which there must be more than one, with at most [`RUNS_MAX`] runs together.
pub fn cells(grid: &Grid, source: &Source, changes: &Changes<'_>) -> Result<Vec<Cell>, InputError> {
    cells_of(SYSTEMS, grid, source, changes)
}

/// The same for scenarios that may name other systems than [`SYSTEMS`].
pub fn cells_of(
    systems: &[&'static System],
    grid: &Grid,
    source: &Source,
    changes: &Changes<'_>,
) -> Result<Vec<Cell>, InputError> {
    let cells = grid.plan(&system::scenarios(systems), source, changes)?;
    if cells.len() < 2 {
        let error = InputError::new(source.name(), "nothing is swept: there is one cell");
        return Err(error.help(
            "give --grid KEY=VALUES or a table [sweep.grid]; one scenario is run by `chappe sim`",
        ));
    }
    let runs = cells.len().saturating_mul(cells[0].plan.seeds.len());
    if runs > RUNS_MAX {
        let message = format!("{runs} runs, at most {RUNS_MAX}");
        return Err(InputError::new("", message).help("sweep fewer values or fewer seeds"));
    }
    Ok(cells)
}

impl Sweep {
    /// Opens the folder of a sweep, locks it, and finds the runs that are there. `program` is filed with the runs, with the file
    /// it was started from; `part` is the part of an array job that this process is.
    pub fn open(
        (grid, cells): (Grid, Vec<Cell>),
        program: (Program<'_>, &Path),
        out: PathBuf,
        part: Option<Part>,
    ) -> Result<Sweep, SweepError> {
        let keys = folder::keys(&grid, &cells, program)?;
        let mut folder = Folder::open(out, part)?;
        let results = folder.find(&keys)?;
        Ok(Sweep {
            grid,
            cells,
            keys,
            folder,
            part,
            results,
            systems: SYSTEMS,
        })
    }

    /// Where its files are.
    pub fn out(&self) -> &Path {
        &self.folder.out
    }

    /// The program that files the runs of the first cell; that of the others differs in the scenario.
    pub fn provenance(&self) -> &Provenance {
        &self.keys[0].from
    }

    /// The runs of this part that are not there, how many of the whole are, and how many the whole has. Every cell is begun
    /// before the next seed, so that an interrupted sweep has some of each. What a part has to do does not depend on what is
    /// found: parts in one folder never do the same.
    pub fn missing(&self) -> Missing {
        let seeds = &self.cells[0].plan.seeds;
        let all = seeds
            .iter()
            .flat_map(|&seed| (0..self.keys.len()).map(move |cell| Task { cell, seed }));
        let all: Vec<Task> = all.collect();
        let is_there = |task: &Task| {
            let runs = self.results.get(&self.keys[task.cell].name);
            runs.is_some_and(|runs| runs.contains_key(&task.seed))
        };
        let (known, whole) = (all.iter().filter(|task| is_there(task)).count(), all.len());
        let mut tasks = match self.part {
            Some(part) => shard(all, part),
            None => all,
        };
        tasks.retain(|task| !is_there(task));
        Missing {
            tasks,
            known,
            all: whole,
        }
    }

    /// Makes runs on `threads` threads and keeps each as it ends, with the receivers' copies if they are asked for. Returns how
    /// many were made.
    pub fn make(
        &mut self,
        tasks: Vec<Task>,
        copies: bool,
        threads: usize,
        meter: &Arc<Meter>,
    ) -> Result<usize, RunError> {
        let plans: Vec<Plan> = self.cells.iter().map(|cell| cell.plan.clone()).collect();
        let order = engine::Sweep {
            systems: self.systems,
            plans,
            tasks,
            copies,
            threads,
        };
        engine::run(order, meter, |task, outcome| self.keep(task, outcome))
    }

    /// Keeps a finished run: in the journal, and its copies if it has some.
    pub fn keep(&mut self, task: Task, outcome: Outcome) -> Result<(), RunError> {
        let Some(key) = self.keys.get(task.cell) else {
            return Err(RunError::Defect(format!("there is no cell {}", task.cell)));
        };
        self.folder
            .keep(key, &self.cells[task.cell].plan, &outcome)?;
        let runs = self.results.entry(key.name.clone()).or_default();
        runs.insert(task.seed, outcome.run);
        Ok(())
    }

    /// Moves the runs from the journals to the data set.
    pub fn pack(&mut self) -> Result<(), SweepError> {
        self.folder.pack(&self.keys, &self.results)
    }

    /// The files of the data set that this process writes, in the order of the cells: each has the rows of one cell.
    pub fn files(&self) -> Vec<PathBuf> {
        let file = |key: &CellKey| chappe_store::sweep::cell_file(self.out(), &key.name, self.part);
        self.keys.iter().map(file).collect()
    }

    /// The cells with the runs of the ordered seeds, and how many runs are lacking.
    pub fn results(&self) -> (Vec<SweepCell>, usize) {
        let mut lacking = 0;
        let cells = self.cells.iter().zip(&self.keys).map(|(cell, key)| {
            let known = self.results.get(&key.name);
            let run = |seed: &u64| known.and_then(|runs| runs.get(seed)).cloned();
            let runs: Vec<Run> = cell.plan.seeds.iter().filter_map(run).collect();
            lacking += cell.plan.seeds.len() - runs.len();
            let shown = self.grid.shown(&cell.at).into_iter();
            let reference = self.grid.reference_of(&cell.at);
            SweepCell {
                values: shown.map(str::to_string).collect(),
                runs,
                reference: reference.map(|at| self.grid.number(&at)),
            }
        });
        (cells.collect(), lacking)
    }
}

/// The runs of each cell by seed.
type Results = BTreeMap<String, BTreeMap<u64, Run>>;
