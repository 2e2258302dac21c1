//! Turns a scenario into what a run needs, or reports where the scenario makes no sense.
//!
//! A [`Plan`] holds what is the same for every seed. A [`Network`] is one seed's: where the nodes stand, who sends what to
//! whom, and the true delivery ratios, from which both the bound and the check of reachability are made.

pub mod channels;
mod fault;
mod flow;
mod imported;
pub mod mac;
mod network;
mod network_plan;
pub mod radio;
mod seeds;
mod topology;
mod unused;

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use chappe_core::Duration;
use chappe_sim::Profile;
use serde_json::Value;

use crate::format::{Located, Scenario, Source};
use crate::input::InputError;
use crate::system::{CheckedScenario, Settings, System};

pub use crate::check::Check;
pub use fault::{FaultPlan, LossStep};
pub use flow::FlowPlan;
pub use network::{Network, Payload, REACHABLE_PRR, Transfer};
pub use network_plan::NetworkPlan;
pub use seeds::SEEDS_MAX;
use topology::Planned;
pub use topology::{Placing, Topology};

/// What is the same for every seed of a scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario's title, or the name of its file.
    pub title: String,
    /// The scenario with every option applied, as JSON: what results are filed under.
    pub canonical: String,
    /// Where the nodes stand, or their links.
    pub topology: Topology,
    /// The names that another file gives the nodes, by number; empty if they have none but their numbers.
    pub names: Vec<String>,
    /// The physics of the radios: the profile with the changes of `[radio]`.
    pub profile: Profile,
    /// The system that carries the data.
    pub system: &'static System,
    /// The system's parameters, see [`Plan::settings_as`].
    pub settings: Arc<dyn Settings>,
    /// What must be carried.
    pub transfers: Vec<TransferPlan>,
    /// Traffic without an end.
    pub flows: Vec<FlowPlan>,
    /// What goes wrong, from the start of the transfer on.
    pub faults: Vec<(Duration, FaultPlan)>,
    /// How links' own losses change during the run, for systems whose links have some.
    pub losses: Vec<LossStep>,
    /// The seeds to run.
    pub seeds: Vec<u64>,
    /// When a run ends in any case, if the scenario says so.
    pub limit: Option<Duration>,
    /// Whether the file has a table `[sweep]`, which only a sweep uses.
    pub has_sweep: bool,
    /// What the scenario's author should know, in sentences: what is allowed, and yet hardly meant.
    pub notes: Vec<String>,
    source: Source,
}

/// One object from one source to its receivers, before a seed draws what the scenario leaves open.
#[derive(Clone, Debug)]
pub struct TransferPlan {
    /// Its name in the results.
    pub name: String,
    /// The source, if the scenario names it.
    pub from: Option<usize>,
    /// The receivers, given or drawn from the seed.
    pub to: crate::format::Receivers,
    /// The octets to carry.
    pub payload: Payload,
    /// Where the receivers stand in the scenario.
    span: Range<usize>,
}

/// What the command line changes about a scenario, in addition to `--set`.
#[derive(Clone, Debug, Default)]
pub struct Changes<'a> {
    /// A file to carry in the first transfer.
    pub object: Option<&'a Path>,
    /// Whether all transfers carry that file.
    pub in_every_transfer: bool,
    /// The seeds to run.
    pub seeds: Option<Vec<u64>>,
    /// Use only the network; ignore `[[transfer]]` and `[[flow]]`.
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
        Plan::new(systems, Source::read(path, set)?, changes)
    }

    /// The system's parameters as its own type; `None` if the plan is another system's.
    pub fn settings_as<S: Settings>(&self) -> Option<&S> {
        let settings: &dyn Any = self.settings.as_ref();
        settings.downcast_ref()
    }

    /// What a node is called in tables and sentences: its name in the network's file, or its number. A name that reads as a
    /// number stands behind the node's number.
    pub fn name_of(&self, node: usize) -> String {
        match self.names.get(node) {
            Some(name) if name.parse::<f64>().is_ok() => format!("{node} \"{name}\""),
            Some(name) => name.clone(),
            None => node.to_string(),
        }
    }

    /// Octets of the first transfer's object; 0 without transfers.
    pub fn octets(&self) -> usize {
        let first = self.transfers.first();
        first.map_or(0, |transfer| transfer.payload.len())
    }

    /// Reads and checks a scenario's text.
    pub fn parse(systems: &[&'static System], name: &str, text: &str) -> Result<Plan, InputError> {
        Plan::new(systems, Source::new(name, text, &[]), &Changes::default())
    }

    /// Checks a scenario. Errors point into `source`.
    pub fn new(
        systems: &[&'static System],
        source: Source,
        changes: &Changes<'_>,
    ) -> Result<Plan, InputError> {
        let check = Check::new(&source);
        let mut scenario = source.scenario()?;
        change(&mut scenario, changes);
        let title = scenario.title.clone();
        let title = title.unwrap_or_else(|| source.name().to_string());
        let system = System::of(&scenario.protocol, systems, &source)?;
        let variant = system.variant_of(&scenario.protocol, &check)?;
        let given = system.keys_of(systems, &source)?;
        system.refuse_mac(&scenario, &check)?;
        let profile = radio::profile(&scenario.radio, system, &check)?;
        let Planned {
            topology,
            names,
            mut notes,
        } = topology::plan(&scenario.network, system.radios, &check)?;
        notes.extend(radio::note(&scenario.radio, system));
        check_node_count(&scenario, system, topology.nodes(), &check)?;
        refuse_motion(&scenario, (system, systems), &topology, &check)?;
        unused::refuse_radio(
            (system, variant.senses_carrier),
            (&profile, &topology),
            &check,
        )?;
        unused::refuse_mac(&scenario, &check)?;
        if let Some(mac) = scenario.mac.as_deref().filter(|_| !system.has_priorities) {
            mac::refuse_priorities(mac, systems, &check)?;
        }
        let settings = (system.plan)(&CheckedScenario {
            scenario: &scenario,
            variant,
            profile: &profile,
            topology: &topology,
            check: &check,
            given: &given,
        })?;
        let nodes = topology.nodes();
        let (mut transfers, mut flows) = (Vec::new(), Vec::new());
        if !changes.network_only {
            transfers = network::transfers(&scenario, nodes, system.shares_ends, &check)?;
            flows = flow::plan(&scenario.flow, (system, systems), nodes, &check)?;
        }
        let faults = fault::plan(&scenario.fault, &topology, &check)?;
        let losses = fault::losses(&scenario.fault, &topology, system, &check)?;
        let seeds = seeds::plan(&scenario.run, &check)?;
        let limit = scenario.run.limit.as_ref().map(|limit| check.time(limit));
        let limit = limit.transpose()?;
        let canonical = canonical(&scenario, given.json, &topology);
        Ok(Plan {
            title,
            canonical,
            topology,
            names,
            profile,
            system,
            settings,
            transfers,
            flows,
            faults,
            losses,
            seeds,
            limit,
            has_sweep: scenario.sweep.is_some(),
            notes,
            source,
        })
    }
}

/// Applies what the command line says.
fn change(scenario: &mut Scenario, changes: &Changes<'_>) {
    if let Some(object) = changes.object {
        let count = if changes.in_every_transfer {
            usize::MAX
        } else {
            1
        };
        for place in scenario.transfer.iter_mut().take(count) {
            let mut transfer = (**place).clone();
            transfer.object = Some(Located::nowhere(object.to_path_buf()));
            transfer.bytes = None;
            *place = place.replaced(transfer);
        }
    }
    if let Some(seeds) = &changes.seeds {
        scenario.run.seed = None;
        scenario.run.repeat = None;
        scenario.run.seeds = Some(seeds.clone().into());
    }
}

/// The scenario as JSON without its seeds, with the system's own keys and a digest of what it takes from other files.
fn canonical(scenario: &Scenario, keys: Value, topology: &Topology) -> String {
    let mut scenario = scenario.clone();
    scenario.run.seed = None;
    scenario.run.repeat = None;
    scenario.run.seeds = None;
    scenario.sweep = None;
    let mut json = serde_json::to_value(&scenario).unwrap_or_default();
    if let (Some(protocol), Value::Object(keys)) = (json["protocol"].as_object_mut(), keys) {
        protocol.extend(keys);
    }
    let digest = topology.digest(scenario.network.file.is_some());
    if let (Some(digest), Some(object)) = (digest, json.as_object_mut()) {
        let key = match topology {
            Topology::Positions { .. } => "places_blake3",
            _ => "links_blake3",
        };
        object.insert(key.into(), digest.into());
    }
    json.to_string()
}

/// Refuses nodes that move in a system that takes its links as they are at the start.
fn refuse_motion(
    scenario: &Scenario,
    (system, systems): (&System, &[&'static System]),
    topology: &Topology,
    check: &Check<'_>,
) -> Result<(), InputError> {
    if !topology.moves() || system.may_move {
        return Ok(());
    }
    let network = &scenario.network;
    let file = network.file.as_ref().map(Located::span);
    let place = file.or(network.generator.as_ref().map(Located::span));
    let message = format!(
        "nodes move here, and {} plans with the links that there are before a transfer",
        system.title
    );
    let error = check.error(place.unwrap_or_default(), "nodes move", message);
    let able: Vec<&str> = systems
        .iter()
        .filter(|system| system.may_move)
        .map(|system| system.name)
        .collect();
    match able[..] {
        [] => Err(error),
        _ => Err(error.help(format!("systems whose nodes may move: {}", able.join(", ")))),
    }
}

fn check_node_count(
    scenario: &Scenario,
    system: &System,
    nodes: usize,
    check: &Check<'_>,
) -> Result<(), InputError> {
    let (most, why) = system.nodes_max;
    if nodes > most {
        let message = format!("{why}: {nodes} nodes, at most {most}");
        return Err(check.at(&scenario.network, "this network", message));
    }
    if nodes < 2 {
        let message = format!("a network needs at least 2 nodes, this one has {nodes}");
        return Err(check.at(&scenario.network, "this network", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
