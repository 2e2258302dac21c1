//! A mote as a TCP client: it connects to a server and writes what it measures, a line of JSON at a time. A connection that fails, or
//! that the server closes, is opened again after a pause.

use chappe_core::{Duration, Instant, Wake};

use super::dial::Dial;
use super::site::{Facts, Page, Text};
use crate::tcp::{Congestion, Endpoint, Local, Socket, State};

/// Time between two lines: TCPlp's sensors give a reading each second (TCPlp 8.2).
const PERIOD: Duration = Duration::from_secs(1);
/// Room for `/sensors` with the largest numbers; a test of the pages writes it.
pub(super) const LINE_MAX: usize = 256;

/// The client of one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    dial: Dial,
    /// Whether the server has accepted the connection.
    established: bool,
    /// The present line, and how much of it was written.
    line: Text<LINE_MAX>,
    written: usize,
    next_line: Instant,
    /// Lines handed to TCP to their end, on all connections.
    pub lines: u32,
}

impl Report {
    /// Reports to `to`; `local` is that of the sockets.
    pub fn new(to: Endpoint, local: &Local) -> Report {
        Report {
            dial: Dial::new(to, local),
            established: false,
            line: Text::EMPTY,
            written: 0,
            next_line: Instant::ZERO,
            lines: 0,
        }
    }

    /// Opens the connection if there is none and the pause is over.
    pub fn open<C: Congestion>(&mut self, now: Instant, sockets: &mut [Socket<'_, C>]) {
        if self.dial.open(now, sockets) {
            // A line that was written in part is not continued on the next connection.
            self.established = false;
            (self.line, self.written) = (Text::EMPTY, 0);
        }
    }

    /// Whether this socket is the connection.
    pub fn owns(&self, place: usize) -> bool {
        self.dial.place() == Some(place)
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
        self.established = true;
        self.dial.accepted();
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
        match self.dial.retry_at() {
            Some(at) => Some(Wake {
                at,
                why: "report connects",
            }),
            None if self.established && is_written => Some(Wake {
                at: self.next_line,
                why: "report is due",
            }),
            // The socket wakes the host when the server answers, and when there is room.
            None => None,
        }
    }
}
