//! Results of runs: the JSON document, field by field, SI units in the names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::provenance::Provenance;
use crate::statistics::{Summary, mean, quantile};

/// What `chappe sim --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// The version of Chappe that made it.
    pub chappe: String,
    /// The commit it was built from.
    pub commit: String,
    /// Whether the source had been changed since that commit.
    pub dirty: bool,
    /// The scenario's title, or its file.
    pub scenario: String,
    /// The command line that makes this document again.
    pub command: String,
    /// Where it was made.
    pub machine: String,
    /// The scenario with all options applied.
    pub scenario_text: String,
    /// Whether the runs were stopped before the last one.
    pub interrupted: bool,
    /// One for each seed.
    pub runs: Vec<Run>,
    /// The summary over all runs.
    pub summary: Totals,
}

/// One run of one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The seed that decides everything random.
    pub seed: u64,
    /// Time on the air until the last receiver had everything or the run's limit came.
    pub simulated_s: f64,
    /// Time it took to simulate.
    pub wall_s: f64,
    /// Events that the simulator handled.
    pub events: u64,
    /// Digest of every event in order: equal digests, equal runs. A hexadecimal number.
    pub digest: String,
    /// One for each receiver of each transfer.
    pub flows: Vec<Flow>,
    /// Frames and packets, by what became of them.
    pub counters: BTreeMap<String, u64>,
    /// What the network could carry at best, for each transfer in order; empty if it was not computed.
    pub bounds: Vec<Bound>,
    /// The first of `bounds`.
    pub bound: Option<Bound>,
    /// How flows that share the channel share it, compared with the best; null if no channel is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
}

/// How flows that take what they can get share a channel; flows of even pace are excluded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// Sum of the flows' goodput, in bits per second.
    pub total_bps: f64,
    /// Jain's index: 1 when all flows have the same, 1/n when one of n has everything.
    pub jain: f64,
    /// The smallest rate that the links allow all flows at once, in bits per second.
    pub max_min_bps: f64,
    /// The slowest flow's goodput as a share of it.
    pub max_min_fraction: f64,
    /// The geometric mean of the proportionally fair rates: no rates have a larger one. Bits per second.
    pub sum_log_mean_bps: f64,
    /// The geometric mean of the flows' goodput as a share of it; 0 if one of them has none.
    pub sum_log_fraction: f64,
    /// The proportionally fair rate of each of the run's flows, in bits per second; null for one of even pace.
    pub sum_log_bps: Vec<Option<f64>>,
}

/// What one receiver got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Its name, such as `r3`.
    pub name: String,
    /// The transfer it belongs to.
    pub transfer: usize,
    /// The node that sends.
    pub source: usize,
    /// The node that receives.
    pub sink: usize,
    /// The source's name in the network's file; absent if nodes have no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_name: Option<String>,
    /// The sink's name in the network's file; absent if nodes have no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink_name: Option<String>,
    /// The system that carried it.
    pub protocol: String,
    /// The variant of the system.
    pub variant: String,
    /// Octets that were to be carried.
    pub offered_bytes: u64,
    /// Octets that arrived for good.
    pub delivered_bytes: u64,
    /// Whether all of them arrived; a flow without an end is complete when its time is over.
    pub complete: bool,
    /// Whether the copy has the digest of the original (BLAKE3); false while it is not complete. Of a flow without an end:
    /// whether every packet that arrived was what had been sent.
    pub digest_ok: bool,
    /// Seconds from the start of the transfer until the last octet arrived; null if it never did. Of a flow without an end:
    /// how long it was counted.
    pub completion_s: Option<f64>,
    /// Octets offered over completion time, in bits per second; zero if not complete.
    pub goodput_bps: f64,
    /// Seconds from the start of the transfer until a batch was decoded, over the batches; null if unknown. Of a flow without
    /// an end: how long a packet took, over those that arrived.
    pub delay_s: Option<Delay>,
}

/// Mean and quantiles of delays, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delay {
    /// The mean of all values.
    pub mean: f64,
    /// The median: not exceeded by half of them.
    pub p50: f64,
    /// Not exceeded by 95 of 100.
    pub p95: f64,
    /// Not exceeded by 99 of 100.
    pub p99: f64,
}

/// What the network could carry at best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// The name of the bound that applies.
    pub name: String,
    /// Largest goodput that all receivers of the transfer can have at once, in bits per second.
    pub goodput_bps: f64,
    /// The slowest receiver's goodput as a share of it.
    pub fraction: f64,
}

/// Means over all runs of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Mean goodput of a run's receivers.
    pub goodput_bps: Range,
    /// Goodput of each run's slowest receiver.
    pub worst_goodput_bps: Range,
    /// Data frames sent in a run.
    pub data_transmissions: Range,
    /// Receivers that have everything, and whose digest is right.
    pub complete: usize,
    /// Receivers in all runs.
    pub receivers: usize,
}

/// A mean with its interval and extremes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// The number of runs.
    pub n: usize,
    /// The mean over the runs.
    pub mean: f64,
    /// Half the width of the 95 % interval of the mean; null for a single run.
    pub ci95: Option<f64>,
    /// The smallest value of a run.
    pub min: f64,
    /// The largest value of a run.
    pub max: f64,
}

/// Counter of data frames that the source and the forwarders sent.
pub const DATA_TRANSMISSIONS: &str = "data_transmissions";

impl Document {
    /// The document of some runs, with their summary.
    pub fn new(scenario: &str, from: &Provenance, runs: Vec<Run>, interrupted: bool) -> Document {
        Document {
            chappe: from.version.clone(),
            commit: from.commit.clone(),
            dirty: from.dirty,
            scenario: scenario.into(),
            command: from.command.clone(),
            machine: from.machine.clone(),
            scenario_text: from.scenario_text.clone(),
            interrupted,
            summary: Totals::of(&runs),
            runs,
        }
    }

    /// Whether every receiver of every run has a right copy.
    pub fn all_complete(&self) -> bool {
        self.runs.iter().all(Run::all_complete)
    }
}

impl Delay {
    /// Mean and quantiles of times in seconds; `None` if there are none.
    pub fn of(seconds: &[f64]) -> Option<Delay> {
        Some(Delay {
            mean: mean(seconds),
            p50: quantile(seconds, 0.5)?,
            p95: quantile(seconds, 0.95)?,
            p99: quantile(seconds, 0.99)?,
        })
    }
}

impl Flow {
    /// A receiver that got nothing.
    pub fn named(name: impl Into<String>) -> Flow {
        Flow {
            name: name.into(),
            ..Flow::default()
        }
    }
}

impl Run {
    /// A run of which nothing is known yet.
    pub fn new(seed: u64) -> Run {
        Run {
            seed,
            ..Run::default()
        }
    }

    /// Whether every receiver has a right copy.
    pub fn all_complete(&self) -> bool {
        self.flows
            .iter()
            .all(|flow| flow.complete && flow.digest_ok)
    }

    /// Mean goodput over the receivers, in bits per second.
    pub fn mean_goodput(&self) -> f64 {
        let all: Vec<f64> = self.flows.iter().map(|flow| flow.goodput_bps).collect();
        mean(&all)
    }

    /// Goodput of the slowest receiver; zero if one has not finished.
    pub fn worst_goodput(&self) -> f64 {
        let all = self.flows.iter().map(|flow| flow.goodput_bps);
        all.fold(f64::INFINITY, f64::min).min(f64::MAX)
    }

    /// Goodput of the fastest receiver.
    pub fn best_goodput(&self) -> f64 {
        self.flows
            .iter()
            .map(|flow| flow.goodput_bps)
            .fold(0.0, f64::max)
    }

    /// A counter, zero if there is none of that name.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }
}

impl Totals {
    /// The means over these runs.
    pub fn of(runs: &[Run]) -> Totals {
        let over = |value: &dyn Fn(&Run) -> f64| Range::of(runs.iter().map(value));
        let flows = || runs.iter().flat_map(|run| &run.flows);
        Totals {
            goodput_bps: over(&Run::mean_goodput),
            worst_goodput_bps: over(&Run::worst_goodput),
            data_transmissions: over(&|run| run.counter(DATA_TRANSMISSIONS) as f64),
            complete: flows()
                .filter(|flow| flow.complete && flow.digest_ok)
                .count(),
            receivers: flows().count(),
        }
    }
}

impl Range {
    /// The mean and extremes of these values.
    pub fn of(values: impl Iterator<Item = f64>) -> Range {
        Summary::of(&values.collect::<Vec<f64>>()).into()
    }
}

impl From<Summary> for Range {
    fn from(summary: Summary) -> Range {
        let Summary {
            n,
            mean,
            ci95,
            min,
            max,
        } = summary;
        Range {
            n,
            mean,
            ci95,
            min,
            max,
        }
    }
}

/// The JSON Schema of [`Document`].
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Document).to_value()
}
