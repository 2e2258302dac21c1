//! One run to make: the plan, one seed's network, and what to keep.

use std::fmt::Debug;
use std::path::Path;

use chappe_scenario::{Network, Plan};
use chappe_trace::Trace;

use crate::run::RunError;

/// Where the events of runs are kept.
pub trait TraceKeeper: Sync + Debug {
    /// The most receptions of a run to keep; older ones make room.
    fn limit(&self) -> usize;

    /// Whether to keep frames that a receiver could not have received as well.
    fn unheard(&self) -> bool {
        false
    }

    /// Keeps the events of a finished run.
    fn keep(&self, trace: &Trace) -> Result<(), RunError>;
}

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
    /// Where to keep the run's events, if anywhere.
    pub traces: Option<&'a dyn TraceKeeper>,
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
            traces: None,
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
    /// Where to keep the run's events, if anywhere.
    pub traces: Option<&'a dyn TraceKeeper>,
}

impl Job<'_> {
    /// The run of this job.
    pub fn spec(&self) -> RunSpec<'_> {
        RunSpec {
            plan: self.plan,
            network: &self.network,
            copies: self.copies,
            pcap: self.pcap,
            traces: self.traces,
        }
    }
}
