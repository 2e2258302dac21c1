//! A scenario's network for a border router that runs it in real time.

use std::path::Path;

use chappe_core::Duration;
use chappe_lab::carry;
use chappe_mac::dot15d4::{self, Sleep};
use chappe_scenario::InputError;
use chappe_scenario::format::Source;
use chappe_scenario::plan::Changes;
use chappe_scenario::{Plan, System};
use chappe_sim::{AirTime, Fault, Medium};
use chappe_tcplp::tcp;

use super::plan::Tcplp;
use super::tree::{hops, leaves, tree};

/// A scenario's network for one seed, without its transfers. Node 0 is the border router.
#[derive(Clone, Debug)]
pub struct LiveNetwork {
    /// The title of the scenario.
    pub title: String,
    /// The seed of all random decisions.
    pub seed: u64,
    /// The medium between the antennas.
    pub medium: Medium,
    /// True delivery ratios of full frames: row-major, from each node to each.
    pub delivery: Vec<f64>,
    /// Each node's next hop to the border router.
    pub parents: Vec<Option<usize>>,
    /// Crashes, restarts and other faults, and when they strike.
    pub faults: Vec<(AirTime, Fault)>,
    /// The link layer of all nodes.
    pub mac: dot15d4::Config,
    /// The nodes that sleep, and how.
    pub leaves: Vec<(usize, Sleep)>,
    /// Whether the nodes share a context for their prefix.
    pub contexts: bool,
    /// Whether border router and motes compress TCP headers.
    pub short: bool,
    /// The pause of each node after its own frames.
    pub pace: Vec<Duration>,
    /// TCP of the motes.
    pub tcp: tcp::Config,
    /// How long acknowledgements of nodes that sleep may wait.
    pub leaf_ack_delay: Duration,
    /// TCP's buffers in segments, each way.
    pub window: usize,
}

impl LiveNetwork {
    /// Reads a scenario of TCPlp with at most `nodes_max` nodes. `systems` are those that it could name; `seed` replaces the
    /// scenario's seeds.
    pub fn read(
        systems: &[&'static System],
        path: &Path,
        set: &[String],
        seed: Option<u64>,
        nodes_max: usize,
    ) -> Result<LiveNetwork, InputError> {
        let source = Source::read(path, set)?;
        let scenario = source.scenario()?;
        let system = System::of(&scenario.protocol, systems, &source)?;
        if system.name != super::SYSTEM.name {
            let message = format!("{} has no border router", system.title);
            let place = scenario.protocol.span();
            let error = source.error(place, "this system", message);
            return Err(error.help("set system = \"tcplp\" in [protocol], with an 802.15.4 radio"));
        }
        let network = scenario.network.span();
        let changes = Changes {
            seeds: seed.map(|seed| vec![seed]),
            network_only: true,
            ..Changes::default()
        };
        let plan = Plan::new(systems, source.clone(), &changes)?;
        if plan.topology.nodes() > nodes_max {
            let message = format!("{} nodes", plan.topology.nodes());
            let error = source.error(network, "this network", message);
            return Err(error.help(format!("a border router serves at most {nodes_max}")));
        }
        let Ok(with) = Tcplp::of(&plan) else {
            unreachable!("the plan is of this system");
        };
        LiveNetwork::of(&plan, with)
    }

    fn of(plan: &Plan, with: &Tcplp) -> Result<LiveNetwork, InputError> {
        let seed = plan.seeds.first().copied().unwrap_or(1);
        let network = plan.network(seed)?;
        let parents = tree(network.medium.nodes(), &network.delivery);
        let depth = (0..parents.len()).filter_map(|node| hops(node, &parents));
        let depth = depth.max().unwrap_or(1);
        let asleep = leaves(&parents).filter_map(|leaf| {
            let sleep = with.sleep_under(parents[leaf]?)?;
            Some((leaf, sleep))
        });
        let faults = carry::faults(plan, &network, Duration::ZERO);
        Ok(LiveNetwork {
            title: plan.title.clone(),
            seed,
            faults,
            leaves: asleep.collect(),
            delivery: network.delivery,
            medium: network.medium,
            mac: with.mac,
            contexts: with.contexts,
            short: with.short,
            // A mote's packets go to the border router; the border router's go as far as the deepest mote.
            pace: (0..parents.len())
                .map(|node| match node {
                    0 => with.pace(depth),
                    _ => with.pace(hops(node, &parents).unwrap_or(1)),
                })
                .collect(),
            parents,
            tcp: with.tcp,
            leaf_ack_delay: with.leaf_ack_delay,
            window: with.window,
        })
    }

    /// The nodes that receive at least 1 % of `node`'s full frames, with their delivery ratios.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        let nodes = self.parents.len();
        let prr = move |to: usize| self.delivery.get(node * nodes + to).copied();
        (0..nodes)
            .map(move |to| (to, prr(to).unwrap_or(0.0)))
            .filter(|(_, prr)| *prr >= 0.01)
    }
}
