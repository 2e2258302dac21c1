//! The first phase of a run: bounds of the network, and link probes.

use std::sync::Arc;

use chappe_core::{Address, Instant, OverMac, Purpose, Seed};
use chappe_lab::run::{Meter, RunError};
use chappe_mac::dot11::Dot11;
use chappe_pacifier::{Links, ProbeConfig, Prober};
use chappe_scenario::Network;
use chappe_scenario::format::LinkKnowledge;
use chappe_sim::{AirTime, Fading, Simulator, World};

use super::strengths::Strengths;
use super::{Depth, Pacifier, TransferBound};

/// Derives the seed of the probing phase, so that probes and transfer see independent fading.
const PROBING: u64 = 0x70726f6265;

/// The part of a seed that all variants share.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The network and its transfers.
    pub network: Network,
    /// The delivery ratios that the nodes know.
    pub links: Arc<Links>,
    /// How strongly probes arrived; of none if nodes know their links without probes.
    pub strengths: Strengths,
    /// The bounds, one for each transfer.
    pub bounds: Vec<TransferBound>,
}

/// Computes the bounds of a network, and simulates the probes of its nodes.
pub fn prepare(
    with: &Pacifier,
    network: Network,
    depth: Depth,
    meter: &Meter,
) -> Result<Prepared, RunError> {
    let bounds = network
        .transfers
        .iter()
        .map(|transfer| TransferBound::of(with, &network, transfer, depth));
    let bounds = bounds.collect::<Result<Vec<_>, _>>()?;
    let nodes = network.medium.nodes();
    let (links, strengths) = match with.protocol.knowledge {
        LinkKnowledge::True => (
            Links::new(nodes, network.delivery.clone()),
            Strengths::new(nodes, false),
        ),
        LinkKnowledge::Probed => probe(with, &network, meter)?,
    };
    let links = links.map_err(|error| RunError::Defect(format!("links: {error:?}")))?;
    Ok(Prepared {
        network,
        links: Arc::new(links),
        strengths,
        bounds,
    })
}

type Probed = (Result<Links, chappe_pacifier::LinksError>, Strengths);

//= pacifier IV-A: before the transfer each node broadcasts a packet a second and counts what it hears
fn probe(with: &Pacifier, network: &Network, meter: &Meter) -> Result<Probed, RunError> {
    let seed = Seed(network.seed).child(PROBING);
    let config = ProbeConfig {
        payload: with.protocol.config.common().payload,
        mode: with.mode,
        ..ProbeConfig::default()
    };
    let nodes = network.medium.nodes();
    let node = |number: usize| {
        let random = seed.stream(Purpose::Node(number as u32));
        let mac_random = seed.stream(Purpose::Node((nodes + number) as u32));
        let mac = Dot11::new(with.mac, Address::node(number as u16), mac_random);
        Box::new(OverMac::new(
            mac,
            Prober::new(config, nodes, Instant::ZERO, random),
        ))
    };
    let world = World::new(network.medium.clone());
    // Only plans of turns with this fading ask for strengths.
    let strengths = Strengths::new(nodes, network.medium.profile().fading == Fading::Rayleigh);
    let mut simulator = Simulator::new(world, (0..nodes).map(node).collect(), seed, strengths)
        .map_err(|error| RunError::Defect(error.to_string()))?;
    let end = AirTime::ZERO + with.protocol.probing;
    let mut before = 0;
    simulator.run_while(end, |simulator| {
        let events = simulator.counters().events;
        meter.spend(events - before);
        before = events;
        !meter.stopped()
    });
    if meter.stopped() {
        return Err(RunError::Interrupted);
    }
    let links = Links::probed(simulator.nodes().map(|node| &node.link));
    let (_, strengths, _) = simulator.into_parts();
    Ok((links, strengths))
}
