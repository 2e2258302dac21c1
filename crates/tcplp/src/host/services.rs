//! What a mote offers to the world: web pages, CoAP, a sink, a source, an iperf3 server.
//!
//! | port | protocol | what |
//! |---|---|---|
//! | 80 | TCP | HTTP: `/`, `/info`, `/sensors`, `/50k` |
//! | 5683 | UDP | CoAP: the same, `/.well-known/core`, and `/sink` for posts |
//! | 5201 | TCP | iperf3 |
//! | 9, 5001 | TCP | takes everything (RFC 863; iperf 2's port) |
//! | 19 | TCP | sends without end (RFC 864, with octets that say where they stand) |
//!
//! Connections on which nothing moves are closed, so that nobody keeps the few sockets for himself.

use chappe_core::{Duration, Instant, Wake};

use super::bulk::feed;
use super::site::Facts;
use super::{Application, Datagram, Outgoing, coap, http, iperf};
use crate::coap::PORT as COAP;
use crate::tcp::{Congestion, Flow, Socket, State};

/// The ports, in the order of the table.
pub mod port {
    /// Web pages.
    pub const HTTP: u16 = 80;
    /// iperf3.
    pub const IPERF3: u16 = 5201;
    /// Takes everything.
    pub const SINK: u16 = 9;
    /// The same, where iperf 2 looks for it.
    pub const IPERF2: u16 = 5001;
    /// Sends without end.
    pub const SOURCE: u16 = 19;
    /// All of them.
    pub const TCP: [u16; 5] = [HTTP, IPERF3, SINK, IPERF2, SOURCE];
}

/// How long nothing may move on a connection: as long as browsers keep one, and as long as a peer may be silent
/// while a retransmission timeout at its maximum (60 s) runs twice.
const IDLE: Duration = Duration::from_secs(30);
const IDLE_BUSY: Duration = Duration::from_secs(150);

/// The application of a mote with `TCP` sockets.
#[derive(Clone, Debug)]
pub struct Services<const TCP: usize> {
    node: u16,
    /// How long the radio had been on, and when that was told.
    radio: (Duration, Instant),
    desks: [Desk; TCP],
    coap: coap::Server,
    iperf: iperf::Test,
    sunk: u64,
    requests: u32,
    now: Instant,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests answered, by HTTP and CoAP together.
    pub requests: u32,
    /// Octets that sinks have taken.
    pub sunk: u64,
    /// Connections that are open.
    pub open: u32,
}

/// One socket's business.
#[derive(Clone, Copy, Debug)]
struct Desk {
    flow: Option<Flow>,
    work: Work,
    /// When something last moved, and what was unacknowledged then.
    moved: Instant,
    waiting: usize,
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
}

const IDLE_DESK: Desk = Desk {
    flow: None,
    work: Work::Sink,
    moved: Instant::ZERO,
    waiting: 0,
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
            sunk: 0,
            requests: 0,
            now: Instant::ZERO,
        }
    }

    /// How long the radio has been on; only the MAC's owner knows, who tells it from time to time.
    pub fn tell_radio(&mut self, now: Instant, on: Duration) {
        self.radio = (on, now);
    }

    /// What was done so far.
    pub fn served(&self) -> Served {
        Served {
            requests: self.requests.wrapping_add(self.coap.requests),
            sunk: self.sunk.saturating_add(self.coap.sunk),
            open: self.desks.iter().filter(|desk| desk.flow.is_some()).count() as u32,
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
            *desk = Desk {
                flow: Some(flow),
                work: Work::for_port(flow.local.port),
                moved: now,
                waiting: 0,
            };
        }
        let before = unread(socket);
        match &mut desk.work {
            Work::Http(connection) => {
                let with_info = |socket: &Socket<'_, C>| Facts {
                    tcp: Some(socket.info()),
                    ..facts
                };
                let taken = connection.serve(socket, with_info);
                self.requests = self.requests.wrapping_add(taken);
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
    /// Closes what the peer has closed, and what does not move.
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
            match waiting {
                0 => socket.close(now),
                _ => socket.abort(),
            }
        }
    }

    fn patience(&self) -> Duration {
        let idle = match &self.work {
            Work::Http(http) => !http.is_busy(),
            Work::Sink | Work::Source(_) | Work::Iperf(_) => false,
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
        let was_over = self.iperf.is_over();
        for (place, socket) in sockets.iter_mut().enumerate() {
            self.serve_one(now, place, socket);
        }
        if self.iperf.is_over() != was_over {
            // What the control connection said concerns streams that were served before it.
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
        let at = open.map(|desk| desk.moved + desk.patience()).min()?;
        Some(Wake {
            at,
            why: "idle connection",
        })
    }
}
