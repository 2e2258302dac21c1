//! The demo: a file over bad networks in ten seconds, by each system, its baselines and the bound.
//!
//! Each system contributes a [`Part`] on the kind of network that it is made for. The command lists the parts of all
//! systems.

use std::path::Path;

use crate::run::{Meter, RunError, WORK};
use crate::seeds;
use chappe_results::provenance::{Program, Provenance};
use chappe_results::{Document, Run};
use chappe_scenario::format::Source;
use chappe_scenario::plan::{Changes, Plan};
use chappe_scenario::{System, Variant};

/// One system's part of the demo.
pub struct Part {
    /// The system's name on the command line.
    pub name: &'static str,
    /// The number of protocols that it compares; each network's work is this and its preparation.
    pub protocols: usize,
    /// Runs the part on the order's networks.
    pub run: fn(&Order<'_>) -> Result<DemoResult, RunError>,
}

/// What the user ordered.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// A file to move; without it each part makes an object from the seed.
    pub file: Option<&'a Path>,
    /// The seed of the first network.
    pub seed: u64,
    /// The number of networks.
    pub networks: u64,
    /// Threads; results do not depend on it.
    pub threads: usize,
    /// The program, for the results.
    pub program: Program<'a>,
    /// Reports progress, and stops the runs on request.
    pub meter: &'a Meter,
}

/// The result of one part of the demo.
#[derive(Clone, Debug)]
pub struct DemoResult {
    /// The name of the part's system.
    pub part: &'static str,
    /// From whom to whom over what, as the rest of a sentence that begins with the file.
    pub over: String,
    /// Octets of the object that was carried.
    pub octets: usize,
    /// One for each protocol, the baseline first, each with one run for each network.
    pub rows: Vec<Row>,
    /// The bound of the slowest receiver for each network, in bits per second.
    pub bounds_bps: Vec<f64>,
    /// What the bound is, in one or two sentences.
    pub bound: &'static str,
    /// Networks that were not finished because the user asked to stop.
    pub unfinished: usize,
}

/// One protocol with its runs.
#[derive(Clone, Debug)]
pub struct Row {
    /// The system's variant that ran.
    pub variant: &'static Variant,
    /// Whether it is the protocol that the part is about, which must finish.
    pub ours: bool,
    /// One run for each finished network.
    pub document: Document,
    /// Why it falls behind its baseline, in a sentence; shown only where it does.
    pub behind: Option<&'static str>,
}

impl Order<'_> {
    /// The seeds of its networks.
    pub fn seeds(&self) -> Vec<u64> {
        (self.seed..self.seed.saturating_add(self.networks)).collect()
    }

    /// The plan of a system's scenario, with the order's file and seeds. `set` changes keys, as on the command line.
    pub fn plan(
        &self,
        system: &'static System,
        scenario: &str,
        set: &[String],
    ) -> Result<Plan, RunError> {
        let source = Source::new("demo", scenario, set);
        let changes = Changes {
            object: self.file,
            in_every_transfer: true,
            seeds: Some(self.seeds()),
            ..Changes::default()
        };
        Ok(Plan::new(&[system], source, &changes)?)
    }

    /// Applies `run` to each seed on the order's threads. Returns the results in the order of the seeds, without those that
    /// the user stopped.
    pub fn finished<T: Send>(
        &self,
        run: impl Fn(u64) -> Result<T, RunError> + Sync,
    ) -> Result<Vec<T>, RunError> {
        let seeds = self.seeds();
        let done = seeds::finished(&seeds, self.threads, self.meter, |&seed| run(seed))?;
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }
}

impl Row {
    /// A variant with its run in each network that was finished: the one at `place`.
    pub fn new(
        (variant, ours): (&'static Variant, bool),
        order: &Order<'_>,
        plan: &Plan,
        finished: &[Vec<Run>],
        place: usize,
    ) -> Row {
        let from = Provenance::here(order.program, &plan.canonical);
        let runs = finished.iter().filter_map(|runs| runs.get(place)).cloned();
        let partial = (finished.len() as u64) < order.networks;
        Row {
            variant,
            ours,
            document: Document::new(&plan.title, &from, runs.collect(), partial),
            behind: None,
        }
    }

    /// The row with the reason that is shown where it falls behind its baseline.
    pub fn behind(mut self, why: &'static str) -> Row {
        self.behind = Some(why);
        self
    }
}

/// Runs `parts` in their order. A part that the user stopped before its first network was finished is omitted.
pub fn run(parts: &[&Part], order: &Order<'_>) -> Result<Vec<DemoResult>, RunError> {
    let runs: usize = parts.iter().map(|part| 1 + part.protocols).sum();
    order.meter.plan_work(WORK * order.networks * runs as u64);
    let mut all = Vec::new();
    for part in parts {
        match (part.run)(order) {
            Err(RunError::Interrupted) => break,
            Ok(shown) if shown.bounds_bps.is_empty() => break,
            shown => all.push(shown?),
        }
    }
    Ok(all)
}
