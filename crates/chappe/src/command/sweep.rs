//! `chappe sweep`: a scenario with several values of its keys, every combination over the same seeds.

mod folder;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use chappe::systems::{self, SYSTEMS};
use chappe_lab::run::{Meter, Outcome, RunError};
use chappe_lab::sweep::{self as engine, Sweep, Task, shard};
use chappe_results::sweep::SweepCell;
use chappe_results::{Run, provenance::Provenance};
use chappe_scenario::InputError;
use chappe_scenario::format::Source;
use chappe_scenario::plan::{Changes, Plan};
use chappe_scenario::sweep::{Cell, Grid};
use chappe_store::sweep::CellKey;

use crate::cli::Sweep as Options;
use crate::failure::{Failure, INTERRUPTED};
use crate::terminal;
use folder::Folder;
pub use folder::build_of;

/// The most runs of a sweep: more is a mistake in typing.
const RUNS_MAX: usize = 10_000_000;

/// A sweep as it was ordered, with its folder.
struct Order<'a> {
    options: &'a Options,
    grid: Grid,
    cells: Vec<Cell>,
    keys: Vec<CellKey>,
    folder: Folder,
}

pub fn run(options: &Options) -> Result<u8, Failure> {
    let source = Source::read(&options.file, &options.set)?;
    let changes = Changes {
        object: options.object.as_deref(),
        seeds: options.seeds.as_ref().map(|seeds| seeds.0.clone()),
        ..Changes::default()
    };
    let grid = Grid::read(&source, &options.grid, &options.reference)?;
    let cells = cells(&grid, &source, &changes)?;
    let runs = cells.len().saturating_mul(cells[0].plan.seeds.len());
    if runs > RUNS_MAX {
        let message = format!("{runs} runs, at most {RUNS_MAX}");
        return Err(InputError::new("", message)
            .help("sweep fewer values or fewer seeds")
            .into());
    }
    let command = terminal::command_line();
    let keys = folder::keys(&grid, &cells, terminal::program(&command))?;
    let out = out_of(options);
    let folder = Folder::open(out, options.shard.map(|shard| (shard.index, shard.count)))?;
    Order {
        options,
        grid,
        cells,
        keys,
        folder,
    }
    .carry_out()
}

/// The cells, of which there must be more than one.
fn cells(grid: &Grid, source: &Source, changes: &Changes<'_>) -> Result<Vec<Cell>, Failure> {
    let cells = grid.plan(&systems::scenarios(), source, changes)?;
    if cells.len() < 2 {
        let error = InputError::new(source.name(), "nothing is swept: there is one cell");
        return Err(error.help("give --grid KEY=VALUES or a table [sweep.grid]; one scenario is run by `chappe sim`").into());
    }
    Ok(cells)
}

/// The folder that was given, or one named after the file.
fn out_of(options: &Options) -> PathBuf {
    let stem = || {
        options
            .file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
    };
    options
        .out
        .clone()
        .unwrap_or_else(|| format!("{}-sweep", stem()).into())
}

impl Order<'_> {
    fn carry_out(mut self) -> Result<u8, Failure> {
        let quiet = self.options.shared.quiet;
        let found = self.folder.find(&self.keys)?;
        let (missing, known, all) = self.missing(&found);
        if known > 0 {
            terminal::remark(
                quiet,
                &format!(
                    "{known} of {all} runs are in {} already",
                    self.folder.out.display()
                ),
            );
        }
        let (asked, mut results) = (missing.len(), found);
        let meter = Arc::new(Meter::stopped_by(terminal::interrupt()));
        let done = self.make(missing, &meter, &mut results);
        // What was finished is kept even if a run failed.
        self.folder.pack(&self.keys, &results)?;
        let made = done?;
        let stopped = made < asked;
        if stopped {
            // Printed even with --quiet: a partial result must not be taken for a complete one.
            terminal::tell(&format!(
                "interrupted: {} of {all} runs are in {}; run the same command again to continue",
                known + made,
                self.folder.out.display()
            ));
            return Ok(INTERRUPTED);
        }
        let (cells, lacking) = self.results(&results);
        if lacking > 0 {
            let (index, count) = self
                .options
                .shard
                .map_or((1, 1), |part| (part.index, part.count));
            terminal::remark(
                quiet,
                &format!(
                    "part {index} of {count}: {made} runs made; {lacking} of {all} are still to come. The table comes with the last part, or from the same command without --shard"
                ),
            );
            return Ok(0);
        }
        report::give(
            self.options,
            &self.grid,
            &self.cells,
            &cells,
            (&self.folder.out, &self.keys[0].from),
        )?;
        Ok(0)
    }

    /// The runs of this part that are not found, how many of the whole are, and how many the whole has. Every cell is begun before
    /// the next seed, so that an interrupted sweep has some of each. What a part has to do does not depend on what is found: parts
    /// in one folder never do the same.
    fn missing(&self, found: &Results) -> (Vec<Task>, usize, usize) {
        let seeds = &self.cells[0].plan.seeds;
        let all = seeds
            .iter()
            .flat_map(|&seed| (0..self.keys.len()).map(move |cell| Task { cell, seed }));
        let all: Vec<Task> = all.collect();
        let is_there = |task: &Task| {
            let runs = found.get(&self.keys[task.cell].name);
            runs.is_some_and(|runs| runs.contains_key(&task.seed))
        };
        let (known, whole) = (all.iter().filter(|task| is_there(task)).count(), all.len());
        let mut own = match self.options.shard {
            Some(part) => shard(all, (part.index, part.count)),
            None => all,
        };
        own.retain(|task| !is_there(task));
        (own, known, whole)
    }

    /// Makes the runs and keeps each as it ends.
    fn make(
        &mut self,
        tasks: Vec<Task>,
        meter: &Arc<Meter>,
        results: &mut Results,
    ) -> Result<usize, RunError> {
        let shared = &self.options.shared;
        let plans: Vec<Plan> = self.cells.iter().map(|cell| cell.plan.clone()).collect();
        let sweep = Sweep {
            systems: SYSTEMS,
            plans,
            tasks,
            copies: self.options.copies,
            threads: shared.threads(),
        };
        let (keys, cells, folder) = (&self.keys, &self.cells, &mut self.folder);
        let keep = |task: Task, outcome: Outcome| {
            let key = &keys[task.cell];
            folder.keep(key, &cells[task.cell].plan, &outcome)?;
            results
                .entry(key.name.clone())
                .or_default()
                .insert(task.seed, outcome.run);
            Ok(())
        };
        terminal::watched("sweeping", shared.quiet, meter, || {
            engine::run(sweep, meter, keep)
        })
    }

    /// The cells with the runs of the ordered seeds, and how many runs are lacking.
    fn results(&self, results: &Results) -> (Vec<SweepCell>, usize) {
        let mut lacking = 0;
        let cells = self.cells.iter().zip(&self.keys).map(|(cell, key)| {
            let known = results.get(&key.name);
            let run = |seed: &u64| known.and_then(|runs| runs.get(seed)).cloned();
            let runs: Vec<Run> = cell.plan.seeds.iter().filter_map(run).collect();
            lacking += cell.plan.seeds.len() - runs.len();
            SweepCell {
                values: self
                    .grid
                    .shown(&cell.at)
                    .into_iter()
                    .map(str::to_string)
                    .collect(),
                runs,
                reference: self
                    .grid
                    .reference_of(&cell.at)
                    .map(|at| self.grid.number(&at)),
            }
        });
        (cells.collect(), lacking)
    }
}

/// The runs of each cell by seed.
type Results = BTreeMap<String, BTreeMap<u64, Run>>;

/// What the report says of the program.
type Made<'a> = (&'a PathBuf, &'a Provenance);
