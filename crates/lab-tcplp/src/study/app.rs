//! The applications of the study as one type, since all nodes of an experiment have the same one.

use chappe_core::{Duration, Expect, Instant, Stream, Wake};
use chappe_tcplp::baseline::{Fetch, Report};
use chappe_tcplp::coap::{Cocoa, Standard, Timeout};
use chappe_tcplp::host::{Application, Collect, Datagram, Outgoing, Page, Sense, Visit};
use chappe_tcplp::tcp::{NewReno, Socket};

/// Motes that a server tells apart.
pub const PEERS: usize = 4;

/// What runs on a node.
#[derive(Clone, Debug, Default)]
#[allow(clippy::large_enum_variant)]
pub enum App {
    /// A router.
    #[default]
    Nothing,
    /// Readings by TCP.
    Sense(Sense),
    /// Readings by CoAP.
    Report(Report<Timer>),
    /// The server of both.
    Collect(Collect<PEERS>),
    /// A page on a mote.
    Page(Page),
    /// Its visitor by HTTP.
    Visit(Visit),
    /// Its visitor by CoAP.
    Fetch(Fetch<Timer>),
}

/// When a CoAP client sends again.
#[derive(Clone, Copy, Debug)]
pub enum Timer {
    /// RFC 7252.
    Standard(Standard),
    /// CoCoA.
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
