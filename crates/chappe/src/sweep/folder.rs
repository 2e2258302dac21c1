//! The folder of a sweep: what is found there, and what is added.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use chappe_lab::run::{Outcome, RunError};
use chappe_lab::session::copy_path;
use chappe_results::Run;
use chappe_results::provenance::{Program, Provenance};
use chappe_scenario::Plan;
use chappe_scenario::sweep::{Cell, Grid};
use chappe_store::sweep::{self as store, CellKey, Journal, Part, Swept};
use chappe_store::{StoreError, try_folder, write_whole};

use super::{Results, SweepError};

/// The folder with the journal of this process.
pub struct Folder {
    pub out: PathBuf,
    part: Option<Part>,
    journal: Option<Journal>,
    /// Journals of parts that were killed; a sweep without parts takes them over.
    left: Vec<Journal>,
    /// Cells whose file this process must write.
    grown: BTreeSet<String>,
    /// Runs that stand in files of other parts.
    elsewhere: BTreeSet<(String, u64)>,
    /// Files of parts whose runs a sweep without parts joins.
    joined: Vec<PathBuf>,
}

/// The names under which the cells are kept.
pub fn keys(
    grid: &Grid,
    cells: &[Cell],
    (program, file): (Program<'_>, &Path),
) -> Result<Vec<CellKey>, SweepError> {
    let build = build_of(program, file)?;
    let first = Provenance::here(program, "");
    let numbers: Vec<_> = grid.axes.iter().map(|axis| axis.numbers()).collect();
    let key = |cell: &Cell| {
        let scenario_text = cell.plan.canonical.clone();
        let from = Provenance {
            scenario_text,
            ..first.clone()
        };
        let swept =
            grid.axes
                .iter()
                .zip(&numbers)
                .zip(&cell.at)
                .map(|((axis, numbers), &place)| Swept {
                    key: axis.key.clone(),
                    shown: axis.values[place].shown.clone(),
                    number: numbers
                        .as_ref()
                        .map(|(name, values)| (name.clone(), values[place])),
                });
        CellKey {
            name: from.cell_key(&build),
            title: cell.plan.title.clone(),
            swept: swept.collect(),
            from,
        }
    };
    Ok(cells.iter().map(key).collect())
}

/// What tells this program apart from others of the same commit: two builds with uncommitted changes share one. `file` is what the
/// program was started from.
pub fn build_of(program: Program<'_>, file: &Path) -> Result<String, SweepError> {
    let vague = program.dirty || program.commit == "unknown";
    if !vague {
        return Ok(String::new());
    }
    let mut hasher = blake3::Hasher::new();
    std::fs::File::open(file)
        .and_then(|opened| hasher.update_reader(opened).map(|_| ()))
        .map_err(SweepError::Program)?;
    Ok(hasher.finalize().to_hex()[..16].to_string())
}

impl Folder {
    pub fn open(out: PathBuf, part: Option<Part>) -> Result<Folder, SweepError> {
        try_folder(&out)?;
        let journal = Some(Journal::open(&out, part)?);
        let left = match part {
            Some(_) => Vec::new(),
            None => Journal::of_parts(&out)?,
        };
        Ok(Folder {
            out,
            part,
            journal,
            left,
            grown: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            joined: Vec::new(),
        })
    }

    /// The runs of these cells that are there: in their files, and in the journals of sweeps that were killed.
    pub fn find(&mut self, keys: &[CellKey]) -> Result<Results, SweepError> {
        let names: BTreeSet<&str> = keys.iter().map(|key| &*key.name).collect();
        let mut results = Results::new();
        for cell in store::read(&self.out, |name| names.contains(name))? {
            let own = store::cell_file(&self.out, &cell.name, self.part);
            for (file, seeds) in cell.files.into_iter().filter(|(file, _)| *file != own) {
                match self.part {
                    Some(_) => self
                        .elsewhere
                        .extend(seeds.into_iter().map(|seed| (cell.name.clone(), seed))),
                    None => {
                        self.joined.push(file);
                        self.grown.insert(cell.name.clone());
                    }
                }
            }
            let runs = cell.document.runs.into_iter().map(|run| (run.seed, run));
            results.entry(cell.name).or_default().extend(runs);
        }
        for journal in self.journal.iter().chain(&self.left) {
            for (name, run) in journal
                .read()?
                .into_iter()
                .filter(|(name, _)| names.contains(&**name))
            {
                if results
                    .entry(name.clone())
                    .or_default()
                    .insert(run.seed, run)
                    .is_none()
                {
                    self.grown.insert(name);
                }
            }
        }
        Ok(results)
    }

    /// Keeps a finished run: in the journal, and its copies if they were asked for.
    pub fn keep(&mut self, key: &CellKey, plan: &Plan, outcome: &Outcome) -> Result<(), RunError> {
        let unwritable = |error: StoreError| RunError::Write(format!("cannot write {error}"));
        for (flow, copy) in outcome.run.flows.iter().zip(&outcome.copies) {
            let Some(copy) = copy.as_ref().filter(|_| flow.digest_ok) else {
                continue;
            };
            let folder = self.out.join("copies").join(&key.name);
            let path = copy_path(&folder, plan, outcome.run.seed, flow.transfer, &flow.name);
            write_whole(&path, |file| file.write_all(copy)).map_err(unwritable)?;
        }
        if let Some(journal) = &mut self.journal {
            journal
                .append(&key.name, &outcome.run)
                .map_err(unwritable)?;
        }
        self.grown.insert(key.name.clone());
        Ok(())
    }

    /// Moves the runs from the journals to the cells' files.
    pub fn pack(&mut self, keys: &[CellKey], results: &Results) -> Result<(), SweepError> {
        for key in keys.iter().filter(|key| self.grown.contains(&key.name)) {
            let all = results
                .get(&key.name)
                .into_iter()
                .flat_map(|runs| runs.values());
            let own = |run: &&Run| !self.elsewhere.contains(&(key.name.clone(), run.seed));
            let runs: Vec<&Run> = all.filter(own).collect();
            store::write(&self.out, key, self.part, &runs)?;
        }
        self.grown.clear();
        for file in self.joined.drain(..) {
            std::fs::remove_file(&file).map_err(|error| StoreError::Io { path: file, error })?;
        }
        for journal in self.left.drain(..).chain(self.journal.take()) {
            journal.remove()?;
        }
        Ok(())
    }
}
