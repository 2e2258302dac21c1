//! Predicts the goodput of programs on an emulated network, by simulation.

use chappe_core::{Address, Duration, OverMac, Purpose, Seed};
use chappe_sim::{AirTime, Simulator};

use super::model::{ModelHost, ModelStation, Receiver, Role, Sender, TCP_HEADERS, UDP_HEADERS};
use super::{Emulation, Options};
use chappe_lab::run::RunError;

/// The traffic of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// UDP packets of the MTU that always fill the queue, like `iperf3 -u` with a rate above the path's.
    Udp,
    /// One TCP connection that always has data to send, like `iperf3 -C cubic`.
    Tcp,
}

impl Load {
    /// All kinds of traffic.
    pub const ALL: [Load; 2] = [Load::Udp, Load::Tcp];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Load::Udp => "UDP, saturated",
            Load::Tcp => "TCP (CUBIC)",
        }
    }

    /// Octets of payload in a packet of `mtu` octets.
    pub const fn payload(self, mtu: usize) -> usize {
        match self {
            Load::Udp => mtu - UDP_HEADERS,
            Load::Tcp => mtu - TCP_HEADERS,
        }
    }
}

/// The ends of a flow, and the interval in which it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The node that sends.
    pub from: usize,
    /// The node that receives.
    pub to: usize,
    /// The time from the start that is not counted.
    pub skip: Duration,
    /// The duration that is counted.
    pub lasts: Duration,
}

impl Emulation {
    /// Simulates a flow with a seed, and returns its goodput in bit/s.
    pub fn predict(&self, load: Load, flow: Flow, seed: u64) -> Result<f64, RunError> {
        let mut simulator = self.modelled(load, flow, seed)?;
        let start = AirTime::ZERO + flow.skip;
        simulator.run_until(start);
        let before = simulator.node(flow.to).link.received();
        simulator.run_until(start + flow.lasts);
        let after = simulator.node(flow.to).link.received();
        // After a crash, the receiver counts from zero again, so `after` may be less than `before`.
        Ok(after.saturating_sub(before) as f64 * 8.0 / flow.lasts.as_secs_f64())
    }

    fn modelled(
        &self,
        load: Load,
        flow: Flow,
        seed: u64,
    ) -> Result<Simulator<ModelStation>, RunError> {
        let (mtu, Options { queue, .. }) = (self.mtu, self.options);
        let (card, routes, nodes) = (self.card, self.routes.clone(), self.nodes());
        let station = move |node: usize| {
            let next = (0..nodes).map(|to| routes.next(node, to)).collect();
            let address = Address::node(node as u16);
            let bridge = card.bridge(address);
            let host = ModelHost::new(bridge, node, next, queue, role(load, flow, node, mtu));
            let random = Seed(seed).stream(Purpose::Node(node as u32));
            Box::new(OverMac::new(card.mac(address, random), host))
        };
        let stations = (0..nodes).map(&station).collect();
        let mut simulator = Simulator::new(self.world.clone(), stations, Seed(seed), ())
            .map_err(|error| RunError::Defect(error.to_string()))?;
        simulator.set_reviver(station);
        Ok(simulator)
    }
}

/// The role of `node` in a flow.
fn role(load: Load, flow: Flow, node: usize, mtu: usize) -> Role {
    let (sends, receives) = (node == flow.from, node == flow.to);
    match load {
        Load::Udp if sends => Role::Flood {
            to: flow.to,
            made: 0,
        },
        Load::Udp if receives => Role::Sink { octets: 0 },
        Load::Tcp if sends => Role::Sender(Box::new(Sender::new(node, flow.to, mtu))),
        Load::Tcp if receives => {
            let payload = load.payload(mtu);
            Role::Receiver(Box::new(Receiver::new(node, flow.from, payload)))
        }
        _ => Role::Relay,
    }
}
