//! What stands at each place of the network: the border router, or a mote.

use chappe_core::{
    Duration, Instant, OverMac, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake,
};
use chappe_mac::dot15d4::{Counters, Dot15d4};
use chappe_tcplp::host::{Host, Services};
use chappe_tcplp::lowpan::{self, Interface, Losses, Table, TcpHeaders};

use crate::gateway::{Gateway, MTU};

/// The most nodes of a network: entries in a node's routing table.
pub const NODES_MAX: usize = 128;
/// Sockets of a mote: iperf3 takes three of them with two streams, and a browser is content with what is left.
pub const SOCKETS: usize = 4;
/// Connections through the border router whose headers it remembers.
const FLOWS: usize = 32;
/// Frames that wait at a relay.
pub const FRAMES: usize = 16;
/// Frames that a parent holds for its sleepy children, two for each.
const HELD: usize = 8;

/// Channel access.
pub type Mac = Dot15d4<HELD>;
/// A mote: it relays, and serves the world.
pub type Mote = OverMac<
    Mac,
    Interface<MoteHost, Table<NODES_MAX>, 2, 4, FRAMES, MTU, Option<TcpHeaders<SOCKETS>>>,
>;
/// A mote's host.
pub type MoteHost = Host<'static, Services<SOCKETS>, SOCKETS>;
/// The border router. It has packets for, and from, several nodes at a time.
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
    /// The border router.
    Border(Router),
    /// A mote.
    Mote(Mote),
}

/// Calls the same on whichever it is.
macro_rules! each {
    ($station:expr, $node:ident => $call:expr) => {
        match $station {
            Station::Border($node) => $call,
            Station::Mote($node) => $call,
        }
    };
}

impl Station {
    /// The gateway, if it is the border.
    pub fn gateway(&self) -> Option<&Gateway> {
        match self {
            Station::Border(router) => Some(router.link.host()),
            Station::Mote(_) => None,
        }
    }

    /// The mote's host, if it is one.
    pub fn host(&self) -> Option<&MoteHost> {
        match self {
            Station::Border(_) => None,
            Station::Mote(mote) => Some(mote.link.host()),
        }
    }

    /// Does something to the gateway, then takes what it has for the mesh. Nothing happens at a mote.
    pub fn with_gateway(&mut self, now: Instant, f: impl FnOnce(&mut Gateway)) {
        if let Station::Border(router) = self {
            router.link.with_host(now, f);
        }
    }

    /// Tells a mote how long its radio has been on, which only its MAC knows.
    pub fn tell_radio(&mut self, now: Instant) {
        if let Station::Mote(mote) = self {
            let on = mote.mac.radio_on(now);
            mote.link
                .with_host(now, |host| host.app_mut().tell_radio(now, on));
        }
    }

    /// How long the radio has been on.
    pub fn radio_on(&self, now: Instant) -> Duration {
        each!(self, node => node.mac.radio_on(now))
    }

    /// What its channel access did.
    pub fn mac(&self) -> &Counters {
        each!(self, node => node.mac.counters())
    }

    /// What its 6LoWPAN did.
    pub fn lowpan(&self) -> &lowpan::Counters {
        each!(self, node => node.link.counters())
    }

    /// What its 6LoWPAN lost.
    pub fn losses(&self) -> &Losses {
        each!(self, node => node.link.losses())
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
