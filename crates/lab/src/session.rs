//! All seeds of a scenario: run, checked against their bounds, and kept on disk as they finish.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::plan::{Payload, Plan};
use crate::provenance::{Program, Provenance};
use crate::results::{Document, Run};
use crate::run::{Meter, Outcome, RunError, WORK, seeds};
use crate::store::{self, StoreError};
use crate::system::Job;

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Threads; results do not depend on it.
    pub threads: usize,
    /// Where to keep results and copies.
    pub out: Option<&'a Path>,
    /// Where to write the frames of the first seed.
    pub pcap: Option<&'a Path>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Session {
    /// The finished runs.
    pub document: Document,
    /// Seeds that were not run because somebody asked to stop.
    pub unfinished: usize,
    /// Runs that were found on disk and not repeated.
    pub reused: usize,
    /// What a person should know, in sentences.
    pub notes: Vec<String>,
}

/// Runs all seeds of a plan. An error of any seed ends the whole; a request to stop keeps what is finished.
pub fn run(
    plan: &Plan,
    program: Program<'_>,
    options: Options<'_>,
    meter: &Meter,
) -> Result<Session, RunError> {
    let from = Provenance::here(program, &plan.canonical);
    meter.plan(plan.seeds.len(), 1);
    let threads = options.threads.max(1);
    let one = |&seed: &u64| one(plan, seed, &from, options, meter);
    let finished = seeds::finished(&plan.seeds, threads, meter, one)?;
    let (mut runs, mut notes, mut reused) = (Vec::new(), Vec::new(), 0);
    for (_, (run, said, again)) in finished {
        runs.push(run);
        notes.extend(said);
        reused += usize::from(again);
    }
    let unfinished = plan.seeds.len() - runs.len();
    Ok(Session {
        document: Document::new(&plan.title, &from, runs, unfinished > 0),
        unfinished,
        reused,
        notes,
    })
}

/// One seed: the run, what to say about it, and whether it was found on disk.
fn one(
    plan: &Plan,
    seed: u64,
    from: &Provenance,
    options: Options<'_>,
    meter: &Meter,
) -> Result<(Run, Vec<String>, bool), RunError> {
    let pcap = options.pcap.filter(|_| plan.seeds.first() == Some(&seed));
    if let (Some(run), None) = (
        options.out.and_then(|folder| found(folder, from, seed)),
        pcap,
    ) {
        meter.advance(2 * WORK);
        return Ok((run, Vec::new(), true));
    }
    let job = Job {
        plan,
        stage: plan.stage(seed)?,
        copies: options.out.is_some(),
        pcap,
    };
    let outcome = plan.carrier.run(job, meter)?;
    if let Some(folder) = options.out {
        let unwritable = |error: StoreError| RunError::Write(format!("cannot write {error}"));
        keep_copies(folder, plan, &outcome).map_err(unwritable)?;
        store::write(folder, &plan.title, from, &outcome.run).map_err(unwritable)?;
    }
    Ok((outcome.run, outcome.notes, false))
}

/// A run of this scenario, seed and program that is on disk already. Programs with uncommitted changes all have
/// one name, so their runs are not trusted.
fn found(folder: &Path, from: &Provenance, seed: u64) -> Option<Run> {
    if from.dirty || from.commit == "unknown" {
        return None;
    }
    let document = store::read(&folder.join(format!("{}.parquet", from.key(seed)))).ok()?;
    document.runs.into_iter().next()
}

/// Each right copy appears whole, under its receiver's name; a wrong or unfinished one does not appear.
fn keep_copies(folder: &Path, plan: &Plan, outcome: &Outcome) -> Result<(), StoreError> {
    for (flow, copy) in outcome.run.flows.iter().zip(&outcome.copies) {
        let (Some(copy), true) = (copy, flow.digest_ok) else {
            continue;
        };
        let path = copy_path(folder, plan, outcome.run.seed, flow.transfer, &flow.name);
        store::write_whole(&path, |file| file.write_all(copy))?;
    }
    Ok(())
}

/// Where a receiver's copy is kept: `DIR/copies/seed-1/r3/README.md`.
pub fn copy_path(
    folder: &Path,
    plan: &Plan,
    seed: u64,
    transfer: usize,
    receiver: &str,
) -> PathBuf {
    let name = match plan
        .transfers
        .get(transfer)
        .map(|transfer| &transfer.payload)
    {
        Some(Payload::File { path, .. }) => path.file_name().map(PathBuf::from),
        _ => None,
    };
    let name = name.unwrap_or_else(|| format!("object-{transfer}.bin").into());
    folder
        .join("copies")
        .join(format!("seed-{seed}"))
        .join(receiver)
        .join(name)
}
