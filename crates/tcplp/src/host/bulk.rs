//! A bulk transfer in one direction or both. Each octet is a function of its position, so that the receiver detects shifts.

use core::ops::Range;

use chappe_core::Instant;

use super::Application;
use crate::tcp::{Congestion, Socket, State};

/// Writes `to_send` octets to the first socket and closes it; reads and verifies everything that arrives on any socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bulk {
    /// Octets to send; 0 for a receiver.
    pub to_send: u64,
    /// Octets written so far.
    pub sent: u64,
    /// Octets read so far.
    pub received: u64,
    /// Octets read that were not the expected ones.
    pub wrong: u64,
    /// When octets were last read.
    pub last: Instant,
}

/// The test octet at a position of a stream: both ends can compute it, and a shifted stream does not match.
pub fn octet(position: u64) -> u8 {
    (position ^ position >> 8 ^ position >> 16) as u8
}

/// Writes the test octets from a position on.
pub fn fill(position: u64, to: &mut [u8]) {
    for (place, offset) in to.iter_mut().zip(0u64..) {
        *place = octet(position.wrapping_add(offset));
    }
}

/// Writes the test octets of these positions to a socket, as many as fit. Returns their number.
pub(super) fn feed<C: Congestion>(socket: &mut Socket<'_, C>, positions: Range<u64>) -> u64 {
    let (front, back) = socket.vacant();
    let mut written = 0;
    for (place, position) in front.iter_mut().chain(back).zip(positions) {
        *place = octet(position);
        written += 1;
    }
    socket.commit(written);
    written as u64
}

impl Bulk {
    /// Sends `octets`, then closes.
    pub fn sending(octets: u64) -> Bulk {
        Bulk {
            to_send: octets,
            ..Bulk::default()
        }
    }
}

impl<'a, C: Congestion> Application<'a, C> for Bulk {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a, C>]) {
        if let Some(socket) = sockets.first_mut()
            && self.sent < self.to_send
            // `shutdown` in SYN-SENT gives the connection up.
            && socket.state() != State::SynSent
        {
            self.sent = self
                .sent
                .saturating_add(feed(socket, self.sent..self.to_send));
            if self.sent == self.to_send {
                socket.shutdown();
            }
        }
        for socket in sockets {
            let (front, back) = socket.readable();
            let read = front.len() + back.len();
            let wrong = front.iter().chain(back).zip(self.received..);
            let wrong = wrong.filter(|(octet_read, at)| **octet_read != octet(*at));
            self.wrong += wrong.count() as u64;
            self.received += read as u64;
            socket.consume(read);
            if read > 0 {
                self.last = now;
            }
            if socket.at_end() && self.sent >= self.to_send {
                socket.close(now);
            }
        }
    }
}
