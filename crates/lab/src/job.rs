//! One run to make: the plan, one seed's network, and what to keep.

use std::path::Path;

use chappe_scenario::{Network, Plan};

/// One run to make: what [`carry`](crate::carry::carry) takes.
#[derive(Clone, Copy, Debug)]
pub struct RunSpec<'a> {
    /// The plan of the scenario.
    pub plan: &'a Plan,
    /// One seed's network and transfers.
    pub network: &'a Network,
    /// Whether to keep the receivers' copies.
    pub copies: bool,
    /// Where to write every frame, if anywhere.
    pub pcap: Option<&'a Path>,
}

impl<'a> RunSpec<'a> {
    /// Whether a node is an end of a transfer or flow.
    pub(crate) fn is_end(&self, node: usize) -> bool {
        let mut transfers = self.network.transfers.iter();
        let mut flows = self.plan.flows.iter();
        transfers.any(|transfer| transfer.source == node || transfer.receivers.contains(&node))
            || flows.any(|flow| [flow.source, flow.sink].contains(&node))
    }

    /// A run that keeps neither copies nor a capture.
    pub fn plain(plan: &'a Plan, network: &'a Network) -> RunSpec<'a> {
        RunSpec {
            plan,
            network,
            copies: false,
            pcap: None,
        }
    }
}

/// One seed to run: what [`System::carry`](crate::system::System) takes.
#[derive(Debug)]
pub struct Job<'a> {
    /// What is the same for all seeds.
    pub plan: &'a Plan,
    /// The network and transfers of this one.
    pub network: Network,
    /// Whether to keep the receivers' copies.
    pub copies: bool,
    /// Where to write every frame, if anywhere.
    pub pcap: Option<&'a Path>,
}

impl Job<'_> {
    /// The run of this job.
    pub fn spec(&self) -> RunSpec<'_> {
        RunSpec {
            plan: self.plan,
            network: &self.network,
            copies: self.copies,
            pcap: self.pcap,
        }
    }
}
