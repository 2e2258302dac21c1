//! The nodes of the network: the border router and the motes, and the capacities of both.

use chappe_core::{
    Duration, Instant, OverMac, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake,
};
use chappe_mac::dot15d4::{Counters, Dot15d4};
use chappe_tcplp::host::{Host, Services};
use chappe_tcplp::lowpan::{self, Interface, Losses, Table, TcpHeaders};

use crate::gateway::{Gateway, MTU};
use crate::program::Program;

/// The most nodes of a network: entries in a node's routing table.
pub const NODES_MAX: usize = 128;
/// Sockets of a mote: iperf3 takes three of them with two streams, which leaves one for a browser.
pub const SOCKETS: usize = 4;
/// Flows whose TCP headers the border router can compress.
const FLOWS: usize = 32;
/// Length of the relay queue of a node, in frames.
pub const FRAMES: usize = 16;
/// Frames that a parent holds for all its sleepy children.
const HELD: usize = 8;

/// The link layer of every node.
pub type Mac = Dot15d4<HELD, NODES_MAX>;
/// A mote: a relay, and a host with services.
pub type Mote = OverMac<
    Mac,
    Interface<MoteHost, Table<NODES_MAX>, 2, 4, FRAMES, MTU, Option<TcpHeaders<SOCKETS>>>,
>;
/// The host of a mote, with its services and sockets.
pub type MoteHost = Host<'static, Services<SOCKETS>, SOCKETS>;
/// The border router. It sends packets to, and reassembles packets from, several nodes at a time.
pub type Router = OverMac<
    Mac,
    Interface<Gateway, Table<NODES_MAX>, 4, 8, FRAMES, MTU, Option<TcpHeaders<FLOWS>>>,
>;

/// A node of the network.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nodes are boxed one by one, and most are motes"
)]
pub enum Station {
    /// The border router, with the gateway on top.
    Border(Router),
    /// Any other node: relay and host.
    Mote(Mote),
    /// A leaf whose program is a set of async tasks.
    Program(Program),
}

/// Makes the same call on either variant.
macro_rules! each {
    ($station:expr, $node:ident => $call:expr) => {
        match $station {
            Station::Border($node) => $call,
            Station::Mote($node) => $call,
            Station::Program(Program { island: $node, .. }) => $call,
        }
    };
}

impl Station {
    /// The gateway; `None` at a mote.
    pub fn gateway(&self) -> Option<&Gateway> {
        match self {
            Station::Border(router) => Some(router.link.host()),
            Station::Mote(_) | Station::Program(_) => None,
        }
    }

    /// The host; `None` at the border router, and where the host belongs to the tasks of a program.
    pub fn host(&self) -> Option<&MoteHost> {
        match self {
            Station::Border(_) | Station::Program(_) => None,
            Station::Mote(mote) => Some(mote.link.host()),
        }
    }

    /// Calls `f` with the gateway, then takes the packets that it has for the mesh. Does nothing at a mote.
    pub fn with_gateway(&mut self, now: Instant, f: impl FnOnce(&mut Gateway)) {
        if let Station::Border(router) = self {
            router.link.with_host(now, f);
        }
    }

    /// Passes the time that the radio has been on from the MAC to the mote's services.
    pub fn note_radio_on(&mut self, now: Instant) {
        if let Station::Mote(mote) = self {
            let on = mote.mac.radio_on(now);
            mote.link
                .with_host(now, |host| host.app_mut().note_radio_on(now, on));
        }
    }

    /// How long the radio has been on.
    pub fn radio_on(&self, now: Instant) -> Duration {
        match self {
            Station::Border(router) => router.mac.radio_on(now),
            Station::Mote(mote) => mote.mac.radio_on(now),
            Station::Program(program) => program.mac(|mac| mac.radio_on(now)),
        }
    }

    /// The counters of its link layer.
    pub fn mac(&self) -> Counters {
        match self {
            Station::Border(router) => *router.mac.counters(),
            Station::Mote(mote) => *mote.mac.counters(),
            Station::Program(program) => program.mac(|mac| *mac.counters()),
        }
    }

    /// The counters of its 6LoWPAN interface, and its losses by reason.
    pub fn lowpan(&self) -> (lowpan::Counters, Losses) {
        match self {
            Station::Border(router) => (*router.link.counters(), *router.link.losses()),
            Station::Mote(mote) => (*mote.link.counters(), *mote.link.losses()),
            Station::Program(program) => program.lowpan(),
        }
    }
}

impl RadioNode for Station {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        each!(self, node => node.handle_radio(now, event));
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        each!(self, node => node.poll_radio(now, psdu))
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, node => node.handle_timeout(now));
    }

    fn poll_timeout(&self) -> Option<Wake> {
        each!(self, node => node.poll_timeout())
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        each!(self, node => node.poll_trace())
    }
}
