//! `[[flow]]`: traffic without an end, checked.

use std::ops::Range;

use chappe_core::Duration;

use crate::check::Check;
use crate::format::{FlowTable, Located};
use crate::input::InputError;
use crate::system::System;

/// Traffic without an end. Times count from the end of probing, when the network is ready to carry.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlan {
    /// Its name in the results.
    pub name: String,
    /// The node that sends.
    pub source: usize,
    /// The node that receives.
    pub sink: usize,
    /// Payload offered, bit/s; `None`: there is always something to send.
    pub bps: Option<f64>,
    /// When the source starts to send.
    pub begin: Duration,
    /// When its source stops, if it does.
    pub end: Option<Duration>,
    /// Where the sink stands in the scenario.
    pub(super) span: Range<usize>,
}

/// The flows of a scenario, for a system that carries some.
pub fn plan(
    flows: &[Located<FlowTable>],
    (system, systems): (&System, &[&'static System]),
    nodes: usize,
    check: &Check<'_>,
) -> Result<Vec<FlowPlan>, InputError> {
    if let Some(first) = flows.first().filter(|_| !system.carries_flows) {
        let message = format!("{} carries no flows without an end", system.title);
        let owner = systems.iter().find(|other| other.carries_flows);
        let owner = owner.map(|owner| format!("; flows belong to system = \"{}\"", owner.name));
        let help = format!(
            "[[transfer]] with bytes or object{}",
            owner.unwrap_or_default()
        );
        return Err(check.at(first, "no use here", message).help(help));
    }
    let numbered = flows.iter().enumerate();
    numbered
        .map(|(number, flow)| one(flow, number, nodes, check))
        .collect()
}

fn one(
    flow: &Located<FlowTable>,
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
