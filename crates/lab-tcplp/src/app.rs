//! The applications of the study as one type, since all nodes of an experiment have an application of the same type.

use chappe_core::{Duration, Expect, Instant, Stream, Wake};
use chappe_tcplp::baseline::{Fetch, Report};
use chappe_tcplp::coap::{Cocoa, Standard, Timeout};
use chappe_tcplp::host::{Application, Collect, Datagram, Outgoing, Page, Sense, Visit};
use chappe_tcplp::tcp::{NewReno, Socket};

/// The number of motes that a server distinguishes.
pub const PEERS: usize = 4;

/// The application of one node.
#[derive(Clone, Debug, Default)]
#[allow(clippy::large_enum_variant)]
pub enum App {
    /// No application: the node is a router.
    #[default]
    Nothing,
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

macro_rules! each {
    ($self:ident, $app:ident => $call:expr) => {
        match $self {
            App::Nothing => {
                let $app = &mut ();
                $call
            }
            App::Sense($app) => $call,
            App::Report($app) => $call,
            App::Collect($app) => $call,
            App::Page($app) => $call,
            App::Visit($app) => $call,
            App::Fetch($app) => $call,
        }
    };
}

macro_rules! look {
    ($self:ident, $app:ident => $call:expr) => {
        match $self {
            App::Nothing => {
                let $app = &();
                $call
            }
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
        look!(self, inner => Application::<'a, NewReno>::poll_timeout(inner))
    }
    fn expects(&self) -> Expect {
        look!(self, inner => Application::<'a, NewReno>::expects(inner))
    }
}
