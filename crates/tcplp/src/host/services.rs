//! The services of a mote: web pages, CoAP, a sink, a source, an iperf3 server.
//!
//! | port | protocol | what |
//! |---|---|---|
//! | 80 | TCP | HTTP: `/`, `/info`, `/sensors`, `/50k` |
//! | 5683 | UDP | CoAP: the same, `/.well-known/core`, and `/sink` for posts |
//! | 5201 | TCP | iperf3 |
//! | 9, 5001 | TCP | discards everything (RFC 863; iperf 2's port) |
//! | 19 | TCP | sends without end (RFC 864, with test octets) |
//!
//! With [`Services::report_to`] the mote is a client too. Idle connections are closed, so that no client can keep the few sockets.

use chappe_core::{Duration, Instant, Wake};

use super::bulk::feed;
use super::report::Report;
use super::site::Facts;
use super::{Application, Datagram, Outgoing, coap, http, iperf};
use crate::coap::PORT as COAP;
use crate::tcp::{Congestion, Endpoint, Flow, Local, Socket, State};

/// The TCP ports, in the order of the table.
pub mod port {
    /// HTTP: the web pages of the mote.
    pub const HTTP: u16 = 80;
    /// The default port of iperf3.
    pub const IPERF3: u16 = 5201;
    /// Discard (RFC 863): reads everything and answers nothing.
    pub const SINK: u16 = 9;
    /// Discard, at iperf 2's default port.
    pub const IPERF2: u16 = 5001;
    /// Character generator (RFC 864): sends without end.
    pub const SOURCE: u16 = 19;
    /// All TCP ports of a mote.
    pub const TCP: [u16; 5] = [HTTP, IPERF3, SINK, IPERF2, SOURCE];
}

/// Idle times after which a connection is closed: as long as browsers keep one; and, during a transfer, as long as a peer
/// may be silent while a retransmission timeout at its maximum (60 s) runs twice.
const IDLE: Duration = Duration::from_secs(30);
const IDLE_BUSY: Duration = Duration::from_secs(150);
/// Time for a request to come whole, from its first octet: that of Apache httpd's mod_reqtimeout (header=20).
const REQUEST: Duration = Duration::from_secs(20);

/// The application of a mote with `TCP` sockets.
#[derive(Clone, Debug)]
pub struct Services<const TCP: usize> {
    node: u16,
    /// How long the radio had been on, and when that was noted.
    radio: (Duration, Instant),
    desks: [Desk; TCP],
    coap: coap::Server,
    iperf: iperf::Test,
    report: Option<Report>,
    sunk: u64,
    requests: u32,
    now: Instant,
}

/// Counters of a mote's services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests answered, by HTTP and CoAP together.
    pub requests: u32,
    /// Octets that the sinks discarded.
    pub sunk: u64,
    /// Connections that are open now.
    pub open: u32,
    /// Lines reported to the server of [`Services::report_to`].
    pub lines: u32,
}

/// The service that a socket runs, and its idle time.
#[derive(Clone, Copy, Debug)]
struct Desk {
    flow: Option<Flow>,
    work: Work,
    /// When data last moved, and the unacknowledged octets then.
    moved: Instant,
    waiting: usize,
    /// When a request began that has not come whole.
    asked: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is no allocator to put the large one elsewhere"
)]
enum Work {
    Http(http::Connection),
    Iperf(iperf::Connection),
    Sink,
    Source(u64),
    Report,
}

const IDLE_DESK: Desk = Desk {
    flow: None,
    work: Work::Sink,
    moved: Instant::ZERO,
    waiting: 0,
    asked: None,
};

impl<const TCP: usize> Services<TCP> {
    /// The services of node `node`.
    pub const fn new(node: u16) -> Self {
        Services {
            node,
            radio: (Duration::ZERO, Instant::ZERO),
            desks: [IDLE_DESK; TCP],
            coap: coap::Server::NEW,
            iperf: iperf::Test::NONE,
            report: None,
            sunk: 0,
            requests: 0,
            now: Instant::ZERO,
        }
    }

    /// Notes how long the radio has been on. Only the owner of the MAC knows; it should call this from time to time.
    pub fn note_radio_on(&mut self, now: Instant, on: Duration) {
        self.radio = (on, now);
    }

    /// Makes the mote a client of this server, on a socket of its own: it connects, writes `/sensors` as a line each second, and connects
    /// again after failures, after 1 s to 60 s. `local` is that of the sockets.
    pub fn report_to(&mut self, server: Endpoint, local: &Local) {
        self.report = Some(Report::new(server, local));
    }

    /// Requests, octets and connections so far.
    pub fn served(&self) -> Served {
        Served {
            requests: self.requests.wrapping_add(self.coap.requests),
            sunk: self.sunk.saturating_add(self.coap.sunk),
            open: self.desks.iter().filter(|desk| desk.flow.is_some()).count() as u32,
            lines: self.report.map_or(0, |report| report.lines),
        }
    }

    fn facts(&self) -> Facts {
        let served = self.served();
        Facts {
            node: self.node,
            now: self.now,
            radio: self.radio,
            requests: served.requests,
            sunk: served.sunk,
            tcp: None,
        }
    }

    fn serve_one<C: Congestion>(&mut self, now: Instant, place: usize, socket: &mut Socket<'_, C>) {
        let facts = self.facts();
        let Some(desk) = self.desks.get_mut(place) else {
            return;
        };
        if !is_alive(socket.state()) {
            let rest = unread(socket);
            socket.consume(rest);
            if let Some(flow) = desk.flow.take() {
                self.iperf.ended(&flow);
            }
            return;
        }
        let flow = socket.flow();
        if desk.flow != Some(flow) {
            if let Some(old) = desk.flow.take() {
                self.iperf.ended(&old);
            }
            let ours = self.report.is_some_and(|report| report.owns(place));
            *desk = Desk {
                flow: Some(flow),
                work: if ours {
                    Work::Report
                } else {
                    Work::for_port(flow.local.port)
                },
                moved: now,
                ..IDLE_DESK
            };
        }
        let before = unread(socket);
        match &mut desk.work {
            Work::Http(connection) => {
                let with_info = |socket: &Socket<'_, C>| Facts {
                    tcp: Some(socket.info()),
                    ..facts
                };
                if desk
                    .asked
                    .is_some_and(|at| now.saturating_since(at) >= REQUEST)
                {
                    connection.give_up(socket, &facts);
                }
                let taken = connection.serve(socket, with_info);
                self.requests = self.requests.wrapping_add(taken);
                let part = !connection.is_busy() && unread(socket) > 0;
                desk.asked = match (part, taken) {
                    (true, 0) => desk.asked.or(Some(now)),
                    (true, _) => Some(now),
                    (false, _) => None,
                };
            }
            Work::Iperf(connection) => {
                let came = connection.serve(now, socket, &mut self.iperf);
                self.sunk = self.sunk.saturating_add(came);
                desk.moved = desk.moved.max(self.iperf.moved);
            }
            Work::Sink => {
                socket.consume(before);
                self.sunk = self.sunk.saturating_add(before as u64);
            }
            Work::Source(position) => {
                socket.consume(before);
                *position = position.wrapping_add(feed(socket, *position..u64::MAX));
            }
            Work::Report => {
                // The server has nothing to say.
                socket.consume(before);
                if let Some(report) = &mut self.report {
                    report.serve(now, socket, &facts);
                }
            }
        }
        desk.settle(now, before, socket);
    }
}

impl Work {
    fn for_port(port: u16) -> Work {
        match port {
            port::HTTP => Work::Http(http::Connection::default()),
            port::IPERF3 => Work::Iperf(iperf::Connection::default()),
            port::SOURCE => Work::Source(0),
            _ => Work::Sink,
        }
    }
}

impl Desk {
    /// Closes connections that the peer has closed, and idle ones.
    fn settle<C: Congestion>(&mut self, now: Instant, before: usize, socket: &mut Socket<'_, C>) {
        let waiting = socket.unacknowledged();
        if unread(socket) < before || waiting != self.waiting {
            self.moved = now;
        }
        self.waiting = waiting;
        let busy = matches!(&self.work, Work::Http(http) if http.is_busy());
        if socket.at_end() && !busy {
            socket.close(now);
        } else if now.saturating_since(self.moved) >= self.patience() {
            // A half-open connection would keep its socket and its deadline until the SYN-ACK is given up.
            match (waiting, socket.half_open()) {
                (0, None) => socket.close(now),
                _ => socket.abort(),
            }
        }
    }

    fn deadline(&self) -> Instant {
        let idle = self.moved + self.patience();
        self.asked.map_or(idle, |at| idle.min(at + REQUEST))
    }

    fn patience(&self) -> Duration {
        let idle = match &self.work {
            Work::Http(http) => !http.is_busy(),
            Work::Sink | Work::Source(_) | Work::Report | Work::Iperf(_) => false,
        };
        if idle { IDLE } else { IDLE_BUSY }
    }
}

fn is_alive(state: State) -> bool {
    !matches!(state, State::Closed | State::TimeWait)
}

fn unread<C: Congestion>(socket: &Socket<'_, C>) -> usize {
    let (front, back) = socket.readable();
    front.len() + back.len()
}

impl<'a, C: Congestion, const TCP: usize> Application<'a, C> for Services<TCP> {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a, C>]) {
        self.now = now;
        if let Some(report) = &mut self.report {
            report.open(now, sockets);
        }
        let was_over = self.iperf.is_over();
        for (place, socket) in sockets.iter_mut().enumerate() {
            self.serve_one(now, place, socket);
        }
        if self.iperf.is_over() != was_over {
            // The control connection may end the test after its streams were served: serve them again.
            for (place, socket) in sockets.iter_mut().enumerate() {
                self.serve_one(now, place, socket);
            }
        }
    }

    fn has_udp(&self, port: u16) -> bool {
        port == COAP
    }

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        self.coap.handle(&datagram);
    }

    fn poll_datagram(&mut self, now: Instant, payload: &mut [u8]) -> Option<Outgoing> {
        self.now = now;
        let facts = self.facts();
        self.coap.poll(|| facts, payload)
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let open = self.desks.iter().filter(|desk| desk.flow.is_some());
        let idle = open.map(Desk::deadline).min().map(|at| Wake {
            at,
            why: "idle connection",
        });
        let report = self.report.and_then(|report| report.wake());
        Wake::earlier(idle, report)
    }
}
