//! A mote as a TCP client: it connects to a server and writes what it measures, a line of JSON at a time. A connection that fails, or
//! that the server closes, is opened again after a pause.

use chappe_core::{Duration, Instant, Wake};

use super::connect;
use super::site::{Facts, Page, Text};
use crate::tcp::{Congestion, Endpoint, Flow, Secret, Socket, State};

/// Time between two lines: TCPlp's sensors give a reading each second (TCPlp 8.2).
const PERIOD: Duration = Duration::from_secs(1);
/// The pause before a connection is opened again: it begins as the first retransmission timeout and doubles up to the largest
/// one (RFC 6298 2.1, 2.5).
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Room for `/sensors` with the largest numbers; a test of the pages writes it.
pub(super) const LINE_MAX: usize = 256;

/// The client of one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    to: Endpoint,
    /// The first local port, and how many attempts were made.
    port: u16,
    attempts: u16,
    /// The connection: its socket and its local port.
    connection: Option<(usize, u16)>,
    /// Whether the server has accepted it.
    established: bool,
    /// The next attempt without a connection, and the pause before the one after it.
    retry_at: Instant,
    pause: Duration,
    /// The present line, and how much of it was written.
    line: Text<LINE_MAX>,
    written: usize,
    next_line: Instant,
    /// Lines written whole.
    pub lines: u32,
}

impl Report {
    /// Reports to `to`; `flow` and `secret` choose the local ports.
    pub fn new(to: Endpoint, local: Endpoint, secret: &Secret) -> Report {
        Report {
            to,
            port: secret.ephemeral_port(&Flow::new(local, to), 0),
            attempts: 0,
            connection: None,
            established: false,
            retry_at: Instant::ZERO,
            pause: PAUSE_MIN,
            line: Text::EMPTY,
            written: 0,
            next_line: Instant::ZERO,
            lines: 0,
        }
    }

    /// Opens the connection if there is none and the pause is over.
    pub fn open<C: Congestion>(&mut self, now: Instant, sockets: &mut [Socket<'_, C>]) {
        if let Some((place, port)) = self.connection {
            let is_ours = |socket: &Socket<'_, C>| {
                let flow = socket.flow();
                flow.remote == self.to && flow.local.port == port
            };
            let alive =
                |socket: &Socket<'_, C>| !matches!(socket.state(), State::Closed | State::TimeWait);
            if sockets
                .get(place)
                .is_some_and(|socket| is_ours(socket) && alive(socket))
            {
                return;
            }
            self.lost(now);
        }
        if now < self.retry_at {
            return;
        }
        // As `Secret::ephemeral_port` counts attempts.
        let port = 49_152 | self.port.wrapping_add(self.attempts) & 0x3fff;
        self.attempts = self.attempts.wrapping_add(1);
        self.connection = connect(sockets, now, port, self.to).map(|place| (place, port));
        if self.connection.is_none() {
            self.lost(now);
        }
    }

    /// There is no connection any more. A line that was written in part is not continued on the next one.
    fn lost(&mut self, now: Instant) {
        (self.connection, self.established) = (None, false);
        (self.line, self.written) = (Text::EMPTY, 0);
        self.retry_at = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Whether this socket is the connection.
    pub fn owns(&self, place: usize) -> bool {
        self.connection.is_some_and(|(own, _)| own == place)
    }

    /// Writes what is due to the connection.
    pub fn serve<C: Congestion>(
        &mut self,
        now: Instant,
        socket: &mut Socket<'_, C>,
        facts: &Facts,
    ) {
        self.established &= socket.state() == State::Established;
        if socket.state() != State::Established {
            return;
        }
        (self.established, self.pause) = (true, PAUSE_MIN);
        if self.written == self.line.as_bytes().len() {
            if now < self.next_line {
                return;
            }
            // A measurement that finds the last line unwritten is not taken, so none is late.
            self.next_line = now + PERIOD;
            (self.line, self.written) = (Text::EMPTY, 0);
            // The line has room for the largest numbers.
            let _ = Page::Sensors.write(facts, &mut self.line);
        }
        let rest = self.line.as_bytes().get(self.written..);
        self.written += socket.write(rest.unwrap_or_default());
        if self.written == self.line.as_bytes().len() {
            self.lines = self.lines.wrapping_add(1);
        }
    }

    /// When [`open`](Self::open) or [`serve`](Self::serve) has something to do, unless a packet comes first.
    pub fn wake(&self) -> Option<Wake> {
        let is_written = self.written == self.line.as_bytes().len();
        match self.connection {
            None => Some(Wake {
                at: self.retry_at,
                why: "report connects",
            }),
            Some(_) if self.established && is_written => Some(Wake {
                at: self.next_line,
                why: "report is due",
            }),
            // The socket wakes the host when the server answers, and when there is room.
            Some(_) => None,
        }
    }
}
