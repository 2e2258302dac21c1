//! Sense and send: a reading each second, sent at once or in batches (TCPlp 8.2).

use chappe_core::{Duration, Instant, Wake};

use super::Application;
use super::bulk::octet;
use crate::tcp::{Congestion, Socket, State};

/// Produces readings and writes them to the first socket when a batch is complete. Its octets say where they stand, as
/// [`Bulk`](super::Bulk)'s do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// Time between two readings; TCPlp: 1 s.
    pub period: Duration,
    /// Octets of a reading; TCPlp: 82.
    pub octets: u32,
    /// Readings in a batch; 1 sends each at once. TCPlp: 64.
    pub batch: u32,
    /// Readings that can wait; one more is lost.
    pub queue_max: u32,
    /// Readings made.
    pub made: u32,
    /// Readings lost because the queue was full.
    pub lost: u32,
    /// Readings that wait.
    queue: u32,
    /// Octets of the stream written so far, and of the readings released for writing.
    written: u64,
    released: u64,
    next: Instant,
}

impl Sense {
    //= tcplp 8.2: a reading of 82 octets a second, batches of 64
    /// TCPlp's workload: 82 octets a second in batches of 64, a queue of 104 readings (what is left of Hamilton's
    /// memory is not stated; this is some 8 KiB).
    pub const fn tcplp(begin: Instant) -> Sense {
        Sense {
            period: Duration::from_secs(1),
            octets: 82,
            batch: 64,
            queue_max: 104,
            made: 0,
            lost: 0,
            queue: 0,
            written: 0,
            released: 0,
            next: begin,
        }
    }

    /// Octets written to the socket so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Makes the readings that are due.
    fn sense(&mut self, now: Instant) {
        while self.next <= now && self.period > Duration::ZERO {
            self.next += self.period;
            self.made = self.made.saturating_add(1);
            match self.queue < self.queue_max {
                true => self.queue += 1,
                false => self.lost = self.lost.saturating_add(1),
            }
        }
    }

    /// Releases whole batches.
    fn release(&mut self) {
        let batch = self.batch.max(1);
        // What waits behind an unfinished batch goes with the next one.
        if self.written == self.released && self.queue >= batch {
            self.released = self
                .released
                .saturating_add(u64::from(batch) * u64::from(self.octets));
            self.queue -= batch;
        }
    }
}

impl<'a, C: Congestion> Application<'a, C> for Sense {
    fn serve(&mut self, _: Instant, sockets: &mut [Socket<'a, C>]) {
        let Some(socket) = sockets.first_mut() else {
            return;
        };
        if socket.state() != State::Established {
            return;
        }
        self.release();
        let (front, back) = socket.vacant();
        let (mut position, mut committed) = (self.written, 0);
        for place in front.iter_mut().chain(back) {
            if position == self.released {
                break;
            }
            *place = octet(position);
            position += 1;
            committed += 1;
        }
        socket.commit(committed);
        self.written = position;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sense(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Some(Wake {
            at: self.next,
            why: "reading due",
        })
    }
}
