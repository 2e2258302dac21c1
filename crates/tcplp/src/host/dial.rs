//! A connection to a server that is opened again when it is lost.

use chappe_core::{Duration, Instant};

use super::connect;
use crate::tcp::{Congestion, Endpoint, Flow, Local, Socket, State};

/// The pause before a connection is opened again: it begins as the first retransmission timeout and doubles up to the largest
/// one (RFC 6298 2.1, 2.5).
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The client's end of a connection to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dial {
    to: Endpoint,
    /// The first local port, and how many attempts were made.
    port: u16,
    attempts: u16,
    /// The connection: its socket and its local port.
    connection: Option<(usize, u16)>,
    /// The next attempt without a connection, and the pause before the one after it.
    retry_at: Instant,
    pause: Duration,
}

impl Dial {
    /// Dials `to` from ports that the secret of `local` chooses.
    pub fn new(to: Endpoint, local: &Local) -> Dial {
        let own = Endpoint::new(local.address, 0);
        Dial {
            to,
            port: local.secret.ephemeral_port(&Flow::new(own, to), 0),
            attempts: 0,
            connection: None,
            retry_at: Instant::ZERO,
            pause: PAUSE_MIN,
        }
    }

    /// Opens the connection if there is none and the pause is over. Returns whether a connection was lost since the last call.
    pub fn open<C: Congestion>(&mut self, now: Instant, sockets: &mut [Socket<'_, C>]) -> bool {
        let mut lost = false;
        if let Some((place, port)) = self.connection {
            let lives = |socket: &Socket<'_, C>| {
                let flow = socket.flow();
                let over = matches!(socket.state(), State::Closed | State::TimeWait);
                flow.remote == self.to && flow.local.port == port && !over
            };
            if sockets.get(place).is_some_and(lives) {
                return false;
            }
            self.wait(now);
            lost = true;
        }
        if now >= self.retry_at {
            // As `Secret::ephemeral_port` counts attempts.
            let port = 49_152 | self.port.wrapping_add(self.attempts) & 0x3fff;
            self.attempts = self.attempts.wrapping_add(1);
            self.connection = connect(sockets, now, port, self.to).map(|place| (place, port));
            if self.connection.is_none() {
                self.wait(now);
            }
        }
        lost
    }

    fn wait(&mut self, now: Instant) {
        self.connection = None;
        self.retry_at = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// The server has accepted the connection: the next pause is short again.
    pub fn accepted(&mut self) {
        self.pause = PAUSE_MIN;
    }

    /// The index of the socket that carries the connection; `None` without one.
    pub fn place(&self) -> Option<usize> {
        self.connection.map(|(place, _)| place)
    }

    /// When [`open`](Self::open) tries again.
    pub fn retry_at(&self) -> Option<Instant> {
        self.connection.is_none().then_some(self.retry_at)
    }
}
