//! What carries a scenario of DPCLO: routers, the channel under them, TCP for objects.

use std::sync::Arc;

use chappe_core::{Duration, Mode};
use chappe_dpclo::{KMax, NEXT_HOPS_MAX, Settings as Router};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::{Job, settings};
use chappe_scenario::format::{AccessName, FaultKind, FlowTable, Located, Receivers, Scenario};
use chappe_scenario::plan::{Check, mac, radio};
use chappe_scenario::quantity::{Size, Time};
use chappe_scenario::{
    self as scenario, CheckedScenario, InputError, Keys, Radios, Settings, System, Variants,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::{Access, Method};
use super::carry::carry;
use super::load::STAMP;
use super::mesh::frame;
use super::streams::{CONNECTIONS, Stack};

/// What scenarios may say of it.
pub static SYSTEM: System = System {
    name: "dpclo",
    title: "DPCLO",
    about: "a mesh that routes and paces flows by queue differences",
    variants: &[
        scenario::Variant::new("paper", "DPCLO"),
        scenario::Variant::new("improved", "DPCLO, improved"),
        scenario::Variant::new("shortest-path", "shortest path"),
        scenario::Variant::new("fusion", "Fusion"),
        scenario::Variant::new("dclo", "DCLO"),
        scenario::Variant::new("tcp", "TCP"),
        scenario::Variant::new("tcp-few", "TCP-FeW"),
    ],
    keys: Keys::of::<DpcloKeys>(),
    has_mac: true,
    has_priorities: true,
    carries_flows: true,
    has_link_loss: false,
    radios: Radios::Dot11b,
    profile: "ns2-threshold",
    nodes_max: (300, "every router has a row for each node and neighbour"),
    shares_ends: true,
    plan: |scenario| Ok(Arc::new(Dpclo::new(scenario)?)),
};

/// DPCLO's keys of `[protocol]`. What is omitted is as in the paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DpcloKeys {
    /// Data in one packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Located<Size>>,
    /// How long the nodes send probes before the first flow; 60 s if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probing: Option<Located<Time>>,
    /// Packets that may wait in a node for one destination, or for all where a variant has one queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Located<u16>>,
    /// The largest number of next hops for one destination; a tenth of the neighbours and two at least, if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_hops: Option<Located<u8>>,
}

/// How packets find their way, and how fast sources send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// DPCLO as in the paper.
    Paper,
    /// Our own: see [`Router::improved`].
    Improved,
    /// The best route and one queue: plain forwarding.
    ShortestPath,
    /// The same with Fusion's flow control.
    Fusion,
    /// DCLO: pairs of nodes in rounds.
    Dclo,
    /// TCP over plain forwarding.
    Tcp,
    /// TCP-FeW over plain forwarding.
    TcpFew,
}

impl Variants for Variant {
    const SYSTEM: &'static System = &SYSTEM;
    const ALL: &'static [Variant] = &[
        Variant::Paper,
        Variant::Improved,
        Variant::ShortestPath,
        Variant::Fusion,
        Variant::Dclo,
        Variant::Tcp,
        Variant::TcpFew,
    ];
}

impl Variant {
    /// What its routers do.
    pub fn settings(self) -> Router {
        match self {
            Variant::Paper => Router::paper(),
            Variant::Improved => Router::improved(),
            Variant::ShortestPath | Variant::Tcp | Variant::TcpFew => Router::shortest_path(),
            Variant::Fusion => Router::fusion(),
            Variant::Dclo => Router::dclo(),
        }
    }

    /// Whether flows are TCP connections and not datagrams.
    pub fn is_tcp(self) -> bool {
        matches!(self, Variant::Tcp | Variant::TcpFew)
    }
}

/// Octets of payload in a datagram (Table I), and of a segment that carries an object.
const DATAGRAM: u16 = 200;
const SEGMENT: u16 = 1000;
/// How long probes are sent before anything else: two periods in which routes spread, four in which they settle.
const PROBING: Duration = Duration::from_secs(60);

/// A mesh with everything that a scenario says about it.
#[derive(Clone, Debug)]
pub struct Dpclo {
    /// Which form.
    pub variant: Variant,
    /// What its routers do.
    pub settings: Router,
    /// How nodes share the channel.
    pub access: Access,
    /// What objects, and the flows of TCP variants, are carried by.
    pub stack: Stack,
    /// Octets of payload in a datagram.
    pub payload: usize,
    /// When flows and transfers begin.
    pub probing: Duration,
}

impl Dpclo {
    fn new(checked: &CheckedScenario<'_>) -> Result<Dpclo, InputError> {
        let (scenario, check) = (checked.scenario, checked.check);
        let variant = Variant::of(checked.variant);
        let protocol = checked.keys::<DpcloKeys>();
        let mode = radio::mode(&scenario.radio, check)?;
        let access = access(scenario, mode, check)?;
        let payload = payload(protocol, check)?;
        let stack = match variant {
            Variant::Tcp | Variant::TcpFew => Stack {
                segment: payload.unwrap_or(DATAGRAM),
                window: 20 * usize::from(payload.unwrap_or(DATAGRAM)),
                ..Stack::paper(variant == Variant::TcpFew)
            },
            _ => Stack::today(payload.unwrap_or(SEGMENT)),
        };
        let probing = protocol.probing.as_ref().map(|time| check.time(time));
        ends(scenario, variant, check)?;
        restarts(scenario, check)?;
        Ok(Dpclo {
            variant,
            settings: router(variant, protocol, check)?,
            access,
            stack,
            payload: usize::from(payload.unwrap_or(DATAGRAM)),
            probing: probing.transpose()?.unwrap_or(PROBING),
        })
    }
}

/// The method of access and its parameters.
fn access(scenario: &Scenario, mode: Mode, check: &Check<'_>) -> Result<Access, InputError> {
    let given = scenario.mac.as_deref().cloned().unwrap_or_default();
    let station = mac::station(&given, mode, check)?;
    let method = match given.access.as_deref() {
        None | Some(AccessName::Dcf) => Method::Dcf,
        Some(AccessName::Edca) => Method::Edca,
        Some(AccessName::ZmacPlus) => Method::ZmacPlus,
    };
    let mut access = Access::on(method, station);
    for (time, target, least, most) in [
        (&given.burst, &mut access.burst, 1, 1_000),
        (&given.time_slot, &mut access.time_slot, 1_000, 1_000_000),
    ] {
        let Some(time) = time else { continue };
        if method != Method::ZmacPlus {
            let message = "bursts and time slots belong to access = \"zmac+\"";
            return Err(check.at(time, "no use here", message));
        }
        *target = check.time(time)?;
        let range = Duration::from_micros(least)..=Duration::from_micros(most);
        if !range.contains(target) {
            let message = format!("{} makes no sense here", **time);
            let help = format!("from {least} us to {most} us");
            return Err(check.at(time, "out of range", message).help(help));
        }
    }
    let windows = given.cw_min.as_ref().or(given.cw_max.as_ref());
    if let Some(window) = windows.filter(|_| method != Method::Dcf) {
        let message = format!("{} has contention windows of its own", method.label());
        return Err(check.at(window, "no use here", message));
    }
    Ok(access)
}

/// The routers' settings with what the scenario changes.
fn router(variant: Variant, protocol: &DpcloKeys, check: &Check<'_>) -> Result<Router, InputError> {
    let mut settings = variant.settings();
    if let Some(queue) = &protocol.queue {
        if !(1..=1000).contains(&**queue) {
            let message = format!("a queue of {} packets makes no sense", **queue);
            return Err(check.at(queue, "out of range", message).help("1 to 1000"));
        }
        settings.queues.limit = **queue;
        settings.room.packets = settings.room.packets.max(queue.saturating_mul(4));
    }
    if let Some(most) = &protocol.next_hops {
        if !(1..=NEXT_HOPS_MAX as u8).contains(&**most) {
            let message = format!("{} next hops", **most);
            let help = format!("1 to {NEXT_HOPS_MAX}");
            return Err(check.at(most, "out of range", message).help(help));
        }
        if !matches!(variant, Variant::Paper | Variant::Improved) {
            let message = format!("{} has one next hop, or any", variant.label());
            let help = "it belongs to variant = \"paper\" and \"improved\"";
            return Err(check.at(most, "no use here", message).help(help));
        }
        settings.next_hops.limit = KMax::Fixed(**most);
    }
    Ok(settings)
}

/// Octets of payload in a packet, if the scenario says so.
fn payload(protocol: &DpcloKeys, check: &Check<'_>) -> Result<Option<u16>, InputError> {
    let Some(given) = &protocol.payload else {
        return Ok(None);
    };
    // With the headers of TCP, router and 802.11 a packet of 2000 octets is well below the longest frame.
    let range = STAMP as f64..=2000.0;
    if !range.contains(&given.value()) {
        let message = format!("packets of {} cannot be sent", **given);
        let help = format!("{STAMP} B, for a time and a number, to 2000 B");
        return Err(check.at(given, "out of range", message).help(help));
    }
    Ok(Some(given.value() as u16))
}

/// Refuses what a host has no connections for.
fn ends(scenario: &Scenario, variant: Variant, check: &Check<'_>) -> Result<(), InputError> {
    let mut ends: Vec<usize> = Vec::new();
    let mut add = |at: std::ops::Range<usize>, nodes: &[usize]| {
        for &node in nodes {
            ends.push(node);
            let here = ends.iter().filter(|&&end| end == node).count();
            if here > CONNECTIONS {
                let message =
                    format!("node {node} is an end of more than {CONNECTIONS} TCP connections");
                return Err(check.error(at, "one too many", message));
            }
        }
        Ok(())
    };
    for transfer in &scenario.transfer {
        let Receivers::Nodes(list) = &*transfer.receivers else {
            if let Receivers::Count(count) = *transfer.receivers
                && count > CONNECTIONS
            {
                let message = format!(
                    "one source serves at most {CONNECTIONS} receivers by TCP, not {count}"
                );
                return Err(check.at(&transfer.receivers, "too many", message));
            }
            continue;
        };
        let source = transfer.source.as_ref().map(|source| **source);
        for &receiver in list {
            add(transfer.receivers.span(), &[receiver])?;
            add(transfer.receivers.span(), source.as_slice())?;
        }
    }
    let endless = |flow: &&Located<FlowTable>| variant.is_tcp() && flow.rate.is_none();
    for flow in scenario.flow.iter().filter(endless) {
        add(flow.sink.span(), &[*flow.source, *flow.sink])?;
    }
    Ok(())
}

/// A node that starts over as an end of a stream would forget what was counted, and its connections.
fn restarts(scenario: &Scenario, check: &Check<'_>) -> Result<(), InputError> {
    let is_end = |node: usize| {
        let flows = scenario.flow.iter();
        let flow = flows
            .clone()
            .any(|flow| [*flow.source, *flow.sink].contains(&node));
        flow || scenario.transfer.iter().any(|transfer| {
            let source = transfer
                .source
                .as_ref()
                .is_none_or(|source| **source == node);
            source
                || match &*transfer.receivers {
                    Receivers::Nodes(list) => list.contains(&node),
                    Receivers::Count(_) => true,
                }
        })
    };
    for fault in &scenario.fault {
        let Some(node) = fault
            .node
            .as_ref()
            .filter(|_| *fault.kind == FaultKind::Restart)
        else {
            continue;
        };
        if is_end(**node) {
            let message = format!(
                "node {} is, or may be drawn as, an end of a flow or transfer; one that starts over forgets what it has counted and its connections",
                **node
            );
            let help = "crash, or restart a node in between";
            return Err(check.at(node, "this node", message).help(help));
        }
    }
    Ok(())
}

impl Settings for Dpclo {
    fn variant(&self) -> &'static scenario::Variant {
        self.variant.row()
    }

    fn label(&self) -> String {
        let rate = self.access.station.data.rate;
        format!(
            "{} over {} ({rate})",
            self.variant.label(),
            self.access.method.label()
        )
    }

    fn frame(&self) -> (Mode, usize) {
        (self.access.station.data, frame(self.payload))
    }
}

/// Carries the flows and transfers of one seed.
pub(super) fn run(job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    meter.expect(2 * WORK);
    carry(settings(job.plan)?, &job, meter)
}
