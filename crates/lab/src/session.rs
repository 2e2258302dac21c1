//! All seeds of a scenario: run, checked against their bounds, and kept on disk as they finish.

use std::path::{Path, PathBuf};

use chappe_results::provenance::{Program, Provenance};
use chappe_results::{Document, Run};
use chappe_scenario::Plan;
use chappe_scenario::plan::Payload;

use crate::job::TraceKeeper;
use crate::run::{Meter, Outcome, RunError, WORK};
use crate::seeds;
use crate::system::{Job, System};

/// Where finished runs are kept and found again.
pub trait Archive: Sync {
    /// The run of this scenario, seed and program, if it is kept already.
    fn find(&self, from: &Provenance, seed: u64) -> Option<Run>;

    /// Keeps a finished run with its copies.
    fn keep(&self, plan: &Plan, from: &Provenance, outcome: &Outcome) -> Result<(), RunError>;
}

/// How a session runs, and what it keeps.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Threads; results do not depend on it.
    pub threads: usize,
    /// Where to keep results and copies.
    pub archive: Option<&'a dyn Archive>,
    /// Where to write the frames of the first seed.
    pub pcap: Option<&'a Path>,
    /// Where to keep the events of every seed.
    pub traces: Option<&'a dyn TraceKeeper>,
}

/// The result of a session.
#[derive(Clone, Debug)]
pub struct Session {
    /// The finished runs with their summary.
    pub document: Document,
    /// Seeds that were not run because the user asked to stop.
    pub unfinished: usize,
    /// Runs that were found on disk and not repeated.
    pub reused: usize,
    /// What the user should know, in sentences.
    pub notes: Vec<String>,
}

/// Runs all seeds of a plan. An error of any seed ends the whole; a request to stop keeps what is finished.
pub fn run(
    systems: &[&System],
    plan: &Plan,
    program: Program<'_>,
    options: Options<'_>,
    meter: &Meter,
) -> Result<Session, RunError> {
    let system = systems
        .iter()
        .find(|system| system.scenario.name == plan.system.name);
    let Some(&system) = system else {
        let name = plan.system.name;
        let message = format!("the system {name} is not in the table");
        return Err(RunError::Defect(message));
    };
    let from = Provenance::here(program, &plan.canonical);
    meter.plan(plan.seeds.len(), 1);
    let threads = options.threads.max(1);
    let one = |&seed: &u64| one(system, plan, seed, &from, options, meter);
    let finished = seeds::finished(&plan.seeds, threads, meter, one)?;
    let (mut runs, mut notes, mut reused) = (Vec::new(), plan.notes.clone(), 0);
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
    system: &System,
    plan: &Plan,
    seed: u64,
    from: &Provenance,
    options: Options<'_>,
    meter: &Meter,
) -> Result<(Run, Vec<String>, bool), RunError> {
    let pcap = options.pcap.filter(|_| plan.seeds.first() == Some(&seed));
    // A capture and a trace need the run itself.
    let records = pcap.is_some() || options.traces.is_some();
    let archive = options.archive.filter(|_| !records);
    if let Some(run) = archive.and_then(|archive| archive.find(from, seed)) {
        meter.advance(2 * WORK);
        return Ok((run, Vec::new(), true));
    }
    let job = Job {
        plan,
        network: plan.network(seed)?,
        copies: options.archive.is_some(),
        pcap,
        traces: options.traces,
    };
    let outcome = (system.carry)(job, meter)?;
    if let Some(archive) = options.archive {
        archive.keep(plan, from, &outcome)?;
    }
    Ok((outcome.run, outcome.notes, false))
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use chappe_scenario::idle::{self, IDLE};

    use super::*;
    use crate::carry::Report;

    /// A system whose receivers get nothing. Seed 13 fails.
    static SILENT: System = System::new(&IDLE, |job, meter| {
        if job.network.seed == 13 {
            return Err(RunError::Defect("unlucky".into()));
        }
        meter.advance(2 * WORK);
        let report = Report::begin((&IDLE, &IDLE.variants[0]), job.network.seed);
        Ok(report.finish())
    });

    #[derive(Default)]
    struct Memory(Mutex<Vec<Run>>);

    impl Archive for Memory {
        fn find(&self, _: &Provenance, seed: u64) -> Option<Run> {
            let runs = self.0.lock().unwrap();
            runs.iter().find(|run| run.seed == seed).cloned()
        }

        fn keep(&self, _: &Plan, _: &Provenance, outcome: &Outcome) -> Result<(), RunError> {
            self.0.lock().unwrap().push(outcome.run.clone());
            Ok(())
        }
    }

    fn session(seeds: &str, archive: &Memory, meter: &Meter) -> Result<Session, RunError> {
        let plan = idle::plan(&format!(
            "[network]\nlinks = [[0, 1], [1, 0]]\n[run]\nseeds = {seeds}\n\
             [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n"
        ));
        let options = Options {
            threads: 2,
            archive: Some(archive),
            ..Options::default()
        };
        run(&[&SILENT], &plan, Program::unknown("test"), options, meter)
    }

    #[test]
    fn kept_runs_are_not_repeated() {
        let (archive, meter) = (Memory::default(), Meter::default());
        let first = session("[3, 1]", &archive, &meter).unwrap();
        assert_eq!((first.reused, first.unfinished), (0, 0));
        let more = session("[1, 2, 3]", &archive, &meter).unwrap();
        assert_eq!((more.reused, more.document.runs.len()), (2, 3));
        let seeds: Vec<u64> = more.document.runs.iter().map(|run| run.seed).collect();
        assert_eq!(seeds, [1, 2, 3]);
    }

    #[test]
    fn a_stopped_session_reports_what_is_missing() {
        let (archive, meter) = (Memory::default(), Meter::default());
        meter.stop();
        let stopped = session("[1, 2]", &archive, &meter).unwrap();
        assert_eq!((stopped.unfinished, stopped.document.runs.len()), (2, 0));
        assert!(stopped.document.interrupted);
    }

    #[test]
    fn an_error_of_one_seed_ends_the_session() {
        let archive = Memory::default();
        let failed = session("[13, 1]", &archive, &Meter::default());
        assert!(matches!(failed, Err(RunError::Defect(_))));
    }
}
