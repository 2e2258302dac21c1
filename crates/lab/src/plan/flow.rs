//! `[[flow]]`: traffic without an end, checked.

use std::ops::Range;

use chappe_core::Duration;

use super::Check;
use crate::input::InputError;
use crate::scenario::{Flow, Located};
use crate::system::Carrier;

/// Traffic without an end. Times count from when the network is ready to carry.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlan {
    /// Its name.
    pub name: String,
    /// The node that sends.
    pub source: usize,
    /// The node that receives.
    pub sink: usize,
    /// Payload offered, bit/s; `None`: there is always something to send.
    pub bps: Option<f64>,
    /// When it begins.
    pub begin: Duration,
    /// When its source stops, if it does.
    pub end: Option<Duration>,
    /// Where the sink stands in the scenario.
    pub(super) span: Range<usize>,
}

/// The flows of a scenario, for a carrier that carries some.
pub fn plan(
    flows: &[Located<Flow>],
    carrier: &dyn Carrier,
    nodes: usize,
    check: &Check<'_>,
) -> Result<Vec<FlowPlan>, InputError> {
    if let Some(first) = flows.first().filter(|_| !carrier.carries_flows()) {
        let message = format!("{} carries no flows without an end", carrier.system().title);
        return Err(check
            .at(first, "no use here", message)
            .help("[[transfer]] with bytes or object; flows belong to system = \"dpclo\""));
    }
    let numbered = flows.iter().enumerate();
    numbered
        .map(|(number, flow)| one(flow, number, nodes, check))
        .collect()
}

fn one(
    flow: &Located<Flow>,
    number: usize,
    nodes: usize,
    check: &Check<'_>,
) -> Result<FlowPlan, InputError> {
    let (source, sink) = (
        check.node(&flow.source, nodes)?,
        check.node(&flow.sink, nodes)?,
    );
    if source == sink {
        let message = format!("node {sink} would send to itself");
        return Err(check.at(&flow.sink, "the source itself", message));
    }
    if let Some(rate) = flow.rate.as_ref().filter(|rate| rate.value() <= 0.0) {
        let message = format!("a flow of {} carries nothing", **rate);
        return Err(check
            .at(rate, "out of range", message)
            .help("for example \"100 kbit/s\"; without `rate` there is always something to send"));
    }
    let begin = flow.begin.as_ref().map(|at| check.time(at)).transpose()?;
    let begin = begin.unwrap_or(Duration::ZERO);
    let end = flow.end.as_ref().map(|at| check.time(at)).transpose()?;
    if let (Some(at), Some(end)) = (&flow.end, end)
        && end <= begin
    {
        let message = "this flow ends before it begins";
        return Err(check.at(at, "too early", message));
    }
    Ok(FlowPlan {
        name: flow.name.clone().unwrap_or_else(|| format!("f{number}")),
        source,
        sink,
        bps: flow.rate.as_ref().map(|rate| rate.value()),
        begin,
        end,
        span: flow.sink.span(),
    })
}
