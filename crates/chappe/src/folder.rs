//! `--out DIR`: a folder with a Parquet file for each run, and the receivers' copies.

use std::io::Write as _;
use std::path::PathBuf;

use chappe_lab::job::TraceKeeper;
use chappe_lab::run::{Outcome, RunError};
use chappe_lab::session::{Archive, copy_path};
use chappe_results::Run;
use chappe_results::provenance::Provenance;
use chappe_scenario::Plan;
use chappe_store::{self as store, StoreError};
use chappe_trace::{RECEPTIONS, Trace};

/// The folder that `--out` names.
pub struct Folder(pub PathBuf);

impl Archive for Folder {
    fn find(&self, from: &Provenance, seed: u64) -> Option<Run> {
        // Programs with uncommitted changes share one commit, so their runs are not reused.
        if from.dirty || from.commit == "unknown" {
            return None;
        }
        let path = self.0.join(format!("{}.parquet", from.key(seed)));
        store::read(&path).ok()?.runs.into_iter().next()
    }

    fn keep(&self, plan: &Plan, from: &Provenance, outcome: &Outcome) -> Result<(), RunError> {
        let unwritable = |error: StoreError| RunError::Write(format!("cannot write {error}"));
        for (flow, copy) in outcome.run.flows.iter().zip(&outcome.copies) {
            // Only copies with the right digest are written, under the receiver's name.
            let Some(copy) = copy.as_ref().filter(|_| flow.digest_ok) else {
                continue;
            };
            let path = copy_path(&self.0, plan, outcome.run.seed, flow.transfer, &flow.name);
            store::write_whole(&path, |file| file.write_all(copy)).map_err(unwritable)?;
        }
        store::write(&self.0, &plan.title, from, &outcome.run).map_err(unwritable)?;
        Ok(())
    }
}

/// The folder that `--record` names: a folder in it for each seed.
#[derive(Debug)]
pub struct TraceFolder {
    pub folder: PathBuf,
    /// Whether nothing makes room for later events.
    pub all: bool,
}

impl TraceKeeper for TraceFolder {
    fn limit(&self) -> usize {
        if self.all { usize::MAX } else { RECEPTIONS }
    }

    fn unheard(&self) -> bool {
        self.all
    }

    fn keep(&self, trace: &Trace) -> Result<(), RunError> {
        let folder = self.folder.join(format!("seed-{}", trace.about.seed));
        store::trace::write(&folder, trace)
            .map_err(|error| RunError::Write(format!("cannot write {error}")))
    }
}
