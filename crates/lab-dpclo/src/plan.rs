//! DPCLO's entry in the table of systems, its keys in scenarios, and the checked settings of a run.

use std::sync::Arc;

use chappe_core::{Duration, Mode};
use chappe_dpclo::{KMax, NEXT_HOPS_MAX, RateLaw, Settings as Router};
use chappe_scenario::format::{AccessName, FaultKind, FlowTable, Located, Receivers, Scenario};
use chappe_scenario::plan::{Check, mac, radio};
use chappe_scenario::quantity::{Size, Time};
use chappe_scenario::{
    self as scenario, CheckedScenario, InputError, Keys, Radios, Settings, System, Variants,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::{Access, Method};
use super::load::STAMP;
use super::mesh::frame;
use super::streams::{CONNECTIONS, Stack};

/// DPCLO's name, variants, keys and limits in scenarios.
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
    may_move: true,
    has_mac: true,
    has_priorities: true,
    carries_flows: true,
    has_link_loss: false,
    radios: Radios::Dot11,
    profile: "ns2-threshold",
    nodes_max: (1000, "every router has a row for each node and neighbour"),
    shares_ends: true,
    plan: |scenario| Ok(Arc::new(Dpclo::new(scenario)?)),
};

/// DPCLO's keys in `[protocol]`. An omitted key has the paper's value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DpcloKeys {
    /// The amount of data in one packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Located<Size>>,
    /// How long the nodes send probes before the first flow; 60 s if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probing: Option<Located<Time>>,
    /// The length of a queue in packets. A node has one queue for each destination, or a single one in some variants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Located<u16>>,
    /// The largest number of next hops for one destination; a tenth of the neighbours, but at least two, if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_hops: Option<Located<u8>>,
}

/// A variant of routing and flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// DPCLO with the paper's parameters.
    Paper,
    /// The improved variant, see [`Router::improved`].
    Improved,
    /// Plain forwarding: one queue, and the best route.
    ShortestPath,
    /// Plain forwarding with Fusion's flow control.
    Fusion,
    /// DCLO, in which pairs of nodes transmit in rounds.
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
    /// The settings of the variant's routers.
    pub fn settings(self) -> Router {
        match self {
            Variant::Paper => Router::paper(),
            Variant::Improved => Router::improved(),
            Variant::ShortestPath | Variant::Tcp | Variant::TcpFew => Router::shortest_path(),
            Variant::Fusion => Router::fusion(),
            Variant::Dclo => Router::dclo(),
        }
    }

    /// The channel access as the variant wants it: over ZMAC+ the improved one's notifications reserve less, and its claims cost less.
    pub fn access(self, usual: Access) -> Access {
        match self {
            Variant::Improved => usual.sparing(),
            _ => usual,
        }
    }

    /// Whether flows are TCP connections instead of datagrams.
    pub fn is_tcp(self) -> bool {
        matches!(self, Variant::Tcp | Variant::TcpFew)
    }
}

/// Octets of payload in a datagram (Table I), and in a segment that carries an object.
const DATAGRAM: u16 = 200;
const SEGMENT: u16 = 1000;
/// How long nodes only send probes: two periods in which routes spread, and four in which they settle.
const PROBING: Duration = Duration::from_secs(60);

/// The checked settings of a run: DPCLO or a baseline on a method of channel access.
#[derive(Clone, Debug)]
pub struct Dpclo {
    /// The variant of routing and flow control.
    pub variant: Variant,
    /// The settings of the routers.
    pub settings: Router,
    /// The method of channel access and its parameters.
    pub access: Access,
    /// The TCP that carries objects, and the flows of TCP variants.
    pub stack: Stack,
    /// Octets of payload in a datagram.
    pub payload: usize,
    /// The time before flows and transfers begin.
    pub probing: Duration,
}

impl Dpclo {
    fn new(checked: &CheckedScenario<'_>) -> Result<Dpclo, InputError> {
        let (scenario, check) = (checked.scenario, checked.check);
        let variant = Variant::of(checked.variant);
        let protocol = checked.keys::<DpcloKeys>();
        let mode = radio::mode(&scenario.radio, check)?;
        let access = variant.access(access(scenario, mode, check)?);
        refuse_motion(checked, &access)?;
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
        segments(scenario, (variant, &stack), protocol, check)?;
        ends(scenario, variant, check)?;
        restarts(scenario, check)?;
        Ok(Dpclo {
            variant,
            settings: at_rate(router(variant, protocol, check)?, &access),
            access,
            stack,
            payload: usize::from(payload.unwrap_or(DATAGRAM)),
            probing: probing.transpose()?.unwrap_or(PROBING),
        })
    }
}

/// Refuses nodes that move under ZMAC+, whose time slots are given out once, by the links of the start.
fn refuse_motion(checked: &CheckedScenario<'_>, access: &Access) -> Result<(), InputError> {
    if !checked.topology.moves() || access.method != Method::ZmacPlus {
        return Ok(());
    }
    let mac = checked.scenario.mac.as_deref();
    let named = mac.and_then(|mac| mac.access.as_ref());
    let message =
        "nodes move here, and ZMAC+ gives out its time slots once, by the links of the start";
    let place = named.map(Located::span).unwrap_or_default();
    let error = checked.check.error(place, "nodes move", message);
    Err(error.help("access = \"edca\" and access = \"dcf\" have no time slots"))
}

/// Reads the method of channel access and its parameters.
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
            let message = format!("{} is out of range", **time);
            let help = format!("from {least} us to {most} us");
            return Err(check.at(time, "out of range", message).help(help));
        }
    }
    if let Some(aggregate) = given.aggregate.as_ref().filter(|given| ***given) {
        if method != Method::Dcf || !mode.rate.is_ht() {
            let message = "A-MPDUs need access = \"dcf\" and a rate of 802.11n";
            return Err(check
                .at(aggregate, "no use here", message)
                .help(radio::RATES));
        }
        access.aggregate = true;
    }
    let windows = given.cw_min.as_ref().or(given.cw_max.as_ref());
    if let Some(window) = windows.filter(|_| method != Method::Dcf) {
        let message = format!("{} defines its own contention windows", method.label());
        return Err(check.at(window, "no use here", message));
    }
    Ok(access)
}

/// The settings of the variant's routers, with the scenario's changes.
/// The settings with airtimes of the stations' own rate, which prices are made of.
fn at_rate(mut settings: Router, access: &Access) -> Router {
    if let RateLaw::Airtime(law) = &mut settings.rate {
        (law.around, law.octet) = access.airtimes();
    }
    settings
}

fn router(variant: Variant, protocol: &DpcloKeys, check: &Check<'_>) -> Result<Router, InputError> {
    let mut settings = variant.settings();
    if let Some(queue) = &protocol.queue {
        if !(1..=1000).contains(&**queue) {
            let message = format!("a queue of {} packets is not possible", **queue);
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
            let message = format!(
                "`next_hops` means nothing for the variant {}",
                variant.name()
            );
            let help = "it belongs to variant = \"paper\" or \"improved\"";
            return Err(check.at(most, "no use here", message).help(help));
        }
        settings.next_hops.limit = KMax::Fixed(**most);
    }
    Ok(settings)
}

/// Octets of payload in a packet, if the scenario gives them.
fn payload(protocol: &DpcloKeys, check: &Check<'_>) -> Result<Option<u16>, InputError> {
    let Some(given) = &protocol.payload else {
        return Ok(None);
    };
    // With the headers of TCP, router and 802.11, a packet of 2000 octets is well below the longest frame.
    let range = STAMP as f64..=2000.0;
    if !range.contains(&given.value()) {
        let message = format!("packets of {} cannot be sent", **given);
        let help = format!("{STAMP} B (a time and a number) to 2000 B");
        return Err(check.at(given, "out of range", message).help(help));
    }
    Ok(Some(given.value() as u16))
}

/// Refuses packets that are too short for a segment of TCP: the router would take none of them.
fn segments(
    scenario: &Scenario,
    (variant, stack): (Variant, &Stack),
    protocol: &DpcloKeys,
    check: &Check<'_>,
) -> Result<(), InputError> {
    let is_endless = |flow: &Located<FlowTable>| variant.is_tcp() && flow.rate.is_none();
    let has_tcp = !scenario.transfer.is_empty() || scenario.flow.iter().any(is_endless);
    let least = stack.least_segment();
    let short = protocol.payload.as_ref().filter(|_| stack.segment < least);
    let Some(given) = short.filter(|_| has_tcp) else {
        return Ok(());
    };
    let message = format!("segments of TCP do not fit packets of {}", **given);
    let help = format!("at least {least} B for transfers, and for flows of TCP without a rate");
    Err(check.at(given, "too short", message).help(help))
}

/// Refuses scenarios in which a host needs more connections than it has.
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

/// Refuses restarts of nodes that send or receive: such a node would lose its connections and counters.
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
                "node {} is, or may be drawn as, an end of a flow or transfer; a restarted end would lose its connections and counters",
                **node
            );
            let help = "crash the node for good, or restart a relay";
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

#[cfg(test)]
mod tests {
    use chappe_core::Rate;
    use chappe_dpclo::AirtimeLaw;

    use super::*;

    /// At 2 Mbit/s the airtimes are those that the law was made with; at 54 Mbit/s an exchange takes a tenth.
    #[test]
    fn prices_know_the_rate() {
        let airtimes = |rate| {
            let access = Access::new(Method::Dcf, Mode::long(rate));
            match at_rate(Router::improved(), &access).rate {
                RateLaw::Airtime(law) => (law.around, law.octet),
                _ => (Duration::ZERO, Duration::ZERO),
            }
        };
        let usual = AirtimeLaw::DOT11B;
        assert_eq!(airtimes(Rate::Dsss2), (usual.around, usual.octet));
        // 34 + 67.5 + 20 + 5.3 + 16 + 28 us, and 149 ns.
        let (around, octet) = airtimes(Rate::Ofdm54);
        assert_eq!((around.nanos() / 1000, octet.nanos()), (170, 149));
    }
}
