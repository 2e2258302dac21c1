//! Makes of a scenario what a run needs, or says where the scenario makes no sense.
//!
//! A [`Plan`] holds what is the same for every seed. A [`Stage`] is one seed's network: where the nodes stand, who
//! sends what to whom, and the true delivery ratios, from which both the bound and the check of reachability
//! are made.

mod building;
pub mod channels;
mod fault;
mod flow;
mod ground;
pub mod mac;
mod network;
pub mod radio;
mod seeds;
mod stage;

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use chappe_core::Duration;
use chappe_sim::Profile;

use crate::input::InputError;
use crate::run::RunError;
use crate::scenario::{Located, Scenario, Source};
use crate::system::{Carrier, Draft, System};

pub use fault::{FaultPlan, LossStep};
pub use flow::FlowPlan;
pub use ground::{Ground, Placing};
pub use network::NetworkPlan;
pub use seeds::SEEDS_MAX;
pub use stage::{Payload, REACHABLE_PRR, Stage, TransferStage};

/// What is the same for every seed of a scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its title, or the name of its file.
    pub title: String,
    /// The scenario with every option applied, as JSON: what results are filed under.
    pub canonical: String,
    /// Where the nodes stand, or their links.
    pub ground: Ground,
    /// The physics.
    pub profile: Profile,
    /// What carries the data.
    pub carrier: Arc<dyn Carrier>,
    /// What must be carried.
    pub transfers: Vec<TransferPlan>,
    /// Traffic without an end.
    pub flows: Vec<FlowPlan>,
    /// What goes wrong, from the start of the transfer on.
    pub faults: Vec<(Duration, FaultPlan)>,
    /// How links' own losses change meanwhile, where the system's links have some.
    pub losses: Vec<LossStep>,
    /// The seeds to run.
    pub seeds: Vec<u64>,
    /// When a run ends in any case, if the scenario says so.
    pub limit: Option<Duration>,
    source: Source,
}

/// One object from one source to its receivers, before the seed has its say.
#[derive(Clone, Debug)]
pub struct TransferPlan {
    /// Its name.
    pub name: String,
    /// Who has it, if that is given.
    pub from: Option<usize>,
    /// Who wants it.
    pub to: crate::scenario::Receivers,
    /// What is carried.
    pub payload: Payload,
    /// Where the receivers stand in the scenario.
    span: Range<usize>,
}

/// What the command line changes about a scenario, beside `--set`.
#[derive(Clone, Debug, Default)]
pub struct Changes<'a> {
    /// A file to carry in the first transfer.
    pub object: Option<&'a Path>,
    /// The seeds to run.
    pub seeds: Option<Vec<u64>>,
    /// Somebody brings traffic of his own: `[[transfer]]` does not matter.
    pub network_only: bool,
}

impl Plan {
    /// Reads and checks a scenario file that may name these systems, the first one if none.
    pub fn read(
        systems: &[&'static System],
        path: &Path,
        set: &[String],
        changes: &Changes<'_>,
    ) -> Result<Plan, InputError> {
        let source = Source::read(path, set)?;
        Plan::new(systems, source.parse()?, source, changes)
    }

    /// What carries its data, as the system's own type; an error if it is another system's.
    pub fn carrier_as<C: Carrier>(&self) -> Result<&C, RunError> {
        let carrier: &dyn Any = self.carrier.as_ref();
        carrier.downcast_ref().ok_or_else(|| {
            let system = self.carrier.system().name;
            RunError::Defect(format!("a plan of another system was given: {system}"))
        })
    }

    /// Octets of the first transfer's object; 0 without transfers.
    pub fn octets(&self) -> usize {
        let first = self.transfers.first();
        first.map_or(0, |transfer| transfer.payload.len())
    }

    /// Reads and checks a scenario's text.
    pub fn parse(systems: &[&'static System], name: &str, text: &str) -> Result<Plan, InputError> {
        let source = Source::new(name, text, &[]);
        Plan::new(systems, source.parse()?, source, &Changes::default())
    }

    /// Checks a scenario; `source` is what errors point into.
    pub fn new(
        systems: &[&'static System],
        mut scenario: Scenario,
        source: Source,
        changes: &Changes<'_>,
    ) -> Result<Plan, InputError> {
        let check = Check { source: &source };
        change(&mut scenario, changes);
        let title = scenario
            .title
            .clone()
            .unwrap_or_else(|| source.name().to_string());
        let system = System::of(&scenario.protocol, systems, &source)?;
        let variant = system.variant_of(&scenario.protocol, &check)?;
        system.refuse_unread(systems, &scenario, &check)?;
        let profile = radio::profile(&scenario.radio, system, &check)?;
        let ground = ground::plan(&scenario.network, system.radios, &check)?;
        check.node_count(&scenario, system, ground.nodes())?;
        let carrier = (system.plan)(&Draft {
            scenario: &scenario,
            variant,
            profile: &profile,
            ground: &ground,
            check: &check,
        })?;
        let transfers = match changes.network_only {
            true => Vec::new(),
            false => {
                let nodes = ground.nodes();
                stage::transfers(&scenario, nodes, system.shares_ends, &check)?
            }
        };
        let flows = match changes.network_only {
            true => Vec::new(),
            false => flow::plan(&scenario.flow, carrier.as_ref(), ground.nodes(), &check)?,
        };
        let faults = fault::plan(&scenario.fault, &ground, &check)?;
        let losses = fault::losses(&scenario.fault, &ground, system, &check)?;
        let seeds = seeds::plan(&scenario.run, &check)?;
        let limit = scenario
            .run
            .limit
            .as_ref()
            .map(|limit| check.time(limit))
            .transpose()?;
        let canonical = canonical(&scenario, &ground);
        Ok(Plan {
            title,
            canonical,
            ground,
            profile,
            carrier,
            transfers,
            flows,
            faults,
            losses,
            seeds,
            limit,
            source,
        })
    }
}

/// Applies what the command line says.
fn change(scenario: &mut Scenario, changes: &Changes<'_>) {
    if let (Some(object), Some(first)) = (changes.object, scenario.transfer.first_mut()) {
        let mut transfer = (**first).clone();
        transfer.object = Some(Located::nowhere(object.to_path_buf()));
        transfer.bytes = None;
        *first = first.replaced(transfer);
    }
    if let Some(seeds) = &changes.seeds {
        scenario.run.seed = None;
        scenario.run.repeat = None;
        scenario.run.seeds = Some(seeds.clone().into());
    }
}

/// The scenario as JSON without its seeds, with a digest of what it takes from other files.
fn canonical(scenario: &Scenario, ground: &Ground) -> String {
    let mut scenario = scenario.clone();
    scenario.run.seed = None;
    scenario.run.repeat = None;
    scenario.run.seeds = None;
    let mut json = serde_json::to_value(&scenario).unwrap_or_default();
    if let (Some(digest), Some(object)) = (ground.digest(), json.as_object_mut()) {
        object.insert("links_blake3".into(), digest.into());
    }
    json.to_string()
}

/// Makes errors that point into the scenario.
pub struct Check<'a> {
    source: &'a Source,
}

impl Check<'_> {
    /// An error about these octets of the scenario.
    pub fn error(&self, span: Range<usize>, label: &str, message: impl Into<String>) -> InputError {
        self.source.error(span, label, message)
    }

    /// An error about a value.
    pub fn at<T>(&self, value: &Located<T>, label: &str, message: impl Into<String>) -> InputError {
        self.error(value.span(), label, message)
    }

    /// A span of time, from zero on.
    pub fn time(&self, time: &Located<crate::quantity::Time>) -> Result<Duration, InputError> {
        let seconds = time.value();
        if !(0.0..=1e9).contains(&seconds) {
            return Err(self.at(time, "here", format!("{} is not a span of time", **time)));
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    fn node(&self, node: &Located<usize>, nodes: usize) -> Result<usize, InputError> {
        if **node < nodes {
            return Ok(**node);
        }
        let message = format!("there is no node {}", **node);
        Err(self.at(node, "no such node", message).help(numbered(nodes)))
    }

    fn node_count(
        &self,
        scenario: &Scenario,
        system: &System,
        nodes: usize,
    ) -> Result<(), InputError> {
        let (most, why) = system.nodes_max;
        if nodes > most {
            let message = format!("{why}: {nodes} nodes, at most {most}");
            return Err(self.at(&scenario.network, "this network", message));
        }
        if nodes < 2 {
            let message = format!("a network of {nodes} node carries nothing");
            return Err(self.at(&scenario.network, "this network", message));
        }
        Ok(())
    }
}

fn numbered(nodes: usize) -> String {
    format!(
        "the {nodes} nodes are numbered from 0 to {}",
        nodes.saturating_sub(1)
    )
}

#[cfg(test)]
mod tests;
