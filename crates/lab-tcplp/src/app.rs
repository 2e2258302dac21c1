//! All applications of this crate's nodes as one type.
//!
//! A simulator's nodes have one type, and each further type would compile the whole stack of a mote again, which takes seconds.

use chappe_core::{Duration, Expect, Instant, Stream, Wake};
use chappe_tcplp::baseline::{Fetch, Report};
use chappe_tcplp::coap::{Cocoa, Standard, Timeout};
use chappe_tcplp::host::{Application, Bulk, Collect, Datagram, Outgoing, Page, Sense, Visit};
use chappe_tcplp::tcp::{NewReno, Socket};

use super::role::Role;

/// The number of motes that a server distinguishes.
pub const PEERS: usize = 4;

/// The application of one node.
#[derive(Clone, Debug, Default)]
#[allow(clippy::large_enum_variant)]
pub enum App {
    /// No application: the node is a router.
    #[default]
    Nothing,
    /// Objects of a scenario, sent and received.
    Role(Role),
    /// One end of a transfer of made-up octets.
    Bulk(Bulk),
    /// A source of readings over TCP.
    Sense(Sense),
    /// A source of readings over CoAP.
    Report(Report<Timer>),
    /// The server that collects readings, over TCP and CoAP.
    Collect(Collect<PEERS>),
    /// The server of a page on a mote, over HTTP and CoAP.
    Page(Page),
    /// The client of a page over HTTP.
    Visit(Visit),
    /// The client of a page over CoAP.
    Fetch(Fetch<Timer>),
}

/// The retransmission timer of a CoAP client.
#[derive(Clone, Copy, Debug)]
pub enum Timer {
    /// The timer of RFC 7252.
    Standard(Standard),
    /// The timer of CoCoA.
    Cocoa(Cocoa),
}

impl Timeout for Timer {
    fn first(&mut self, now: Instant, random: &mut Stream) -> Duration {
        match self {
            Timer::Standard(timer) => timer.first(now, random),
            Timer::Cocoa(timer) => timer.first(now, random),
        }
    }
    fn next(&mut self, before: Duration, first: Duration) -> Duration {
        match self {
            Timer::Standard(timer) => timer.next(before, first),
            Timer::Cocoa(timer) => timer.next(before, first),
        }
    }
    fn confirmed(&mut self, now: Instant, rtt: Duration, retransmissions: u8) {
        match self {
            Timer::Standard(timer) => timer.confirmed(now, rtt, retransmissions),
            Timer::Cocoa(timer) => timer.confirmed(now, rtt, retransmissions),
        }
    }
}

impl App {
    /// One end of a transfer of `octets`, endless if it is `u64::MAX`; 0 for the end that receives.
    pub fn sending(octets: u64) -> App {
        App::Bulk(Bulk::sending(octets))
    }

    /// The end of a made-up transfer that this is; `None` for other applications.
    pub fn bulk(&self) -> Option<&Bulk> {
        match self {
            App::Bulk(bulk) => Some(bulk),
            _ => None,
        }
    }
}

macro_rules! each {
    ($self:ident, $app:ident => $call:expr) => {
        match $self {
            App::Nothing => {
                let $app = &mut ();
                $call
            }
            App::Role($app) => $call,
            App::Bulk($app) => $call,
            App::Sense($app) => $call,
            App::Report($app) => $call,
            App::Collect($app) => $call,
            App::Page($app) => $call,
            App::Visit($app) => $call,
            App::Fetch($app) => $call,
        }
    };
}

impl<'a> Application<'a> for App {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a>]) {
        each!(self, inner => inner.serve(now, sockets));
    }
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        each!(self, inner => Application::<'a, NewReno>::handle_datagram(inner, now, datagram));
    }
    fn poll_datagram(&mut self, now: Instant, payload: &mut [u8]) -> Option<Outgoing> {
        each!(self, inner => Application::<'a, NewReno>::poll_datagram(inner, now, payload))
    }
    fn handle_timeout(&mut self, now: Instant) {
        each!(self, inner => Application::<'a, NewReno>::handle_timeout(inner, now));
    }
    fn poll_timeout(&self) -> Option<Wake> {
        each!(self, inner => Application::<'a, NewReno>::poll_timeout(inner))
    }
    fn expects(&self) -> Expect {
        each!(self, inner => Application::<'a, NewReno>::expects(inner))
    }
}
