//! Sense-and-send: a reading each second, sent at once or in batches (TCPlp 8.2).

use chappe_core::{Duration, Instant, Wake};

use super::Application;
use super::bulk::feed;
use super::dial::Dial;
use crate::tcp::{Congestion, Endpoint, Local, Socket, State};

/// Makes readings, keeps them in a queue, and releases them in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readings {
    /// Time between two readings; TCPlp: 1 s.
    pub period: Duration,
    /// Octets of a reading; TCPlp: 82.
    pub octets: u32,
    /// Readings in a batch; 1 sends each reading at once. TCPlp: 64.
    pub batch: u32,
    /// Length of the queue; readings beyond it are lost.
    pub queue_max: u32,
    /// Readings to make in all.
    pub limit: u32,
    /// Readings made so far, lost ones included.
    pub made: u32,
    /// Readings lost because the queue was full.
    pub lost: u32,
    /// Readings in the queue.
    queue: u32,
    next: Instant,
}

impl Readings {
    //= tcplp 8.2: a reading of 82 octets a second, batches of 64
    /// TCPlp's workload: 82 octets a second in batches of 64, from `begin` on. The queue of 104 readings is some 8 KiB;
    /// the paper does not state what is left of Hamilton's memory.
    pub const fn tcplp(begin: Instant) -> Readings {
        Readings {
            period: Duration::from_secs(1),
            octets: 82,
            batch: 64,
            queue_max: 104,
            limit: u32::MAX,
            made: 0,
            lost: 0,
            queue: 0,
            next: begin,
        }
    }

    /// Makes the readings that are due by `now`.
    pub(crate) fn sense(&mut self, now: Instant) {
        while self.next <= now && self.period > Duration::ZERO && self.made < self.limit {
            self.next += self.period;
            self.made = self.made.saturating_add(1);
            match self.queue < self.queue_max {
                true => self.queue += 1,
                false => self.lost = self.lost.saturating_add(1),
            }
        }
    }

    /// Takes a batch from the queue, if it is complete, and returns its number of readings. The last batch may be smaller.
    pub(crate) fn take_batch(&mut self) -> Option<u32> {
        let batch = match self.made < self.limit {
            true => self.batch.max(1),
            false => self.batch.min(self.queue).max(1),
        };
        self.queue = self.queue.checked_sub(batch)?;
        Some(batch)
    }

    /// Readings in the queue, not yet released for sending.
    pub fn waiting(&self) -> u32 {
        self.queue
    }

    pub(crate) fn wake(&self) -> Option<Wake> {
        (self.made < self.limit).then_some(Wake {
            at: self.next,
            why: "reading due",
        })
    }
}

/// Octets before the readings of a connection that can be a later one: the position of the first reading's octet, high octet first.
pub(super) const POSITION: usize = 8;

/// Writes readings to a socket, batch by batch, as the test octets of [`Bulk`](super::Bulk): to the first one, which another opens; or
/// to one that it opens itself, again and again ([`Sense::reopening`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The source of the readings.
    pub readings: Readings,
    /// Octets written so far, and octets of all batches released for writing.
    written: u64,
    released: u64,
    reopens: Option<Reopens>,
}

/// What is needed to go on with another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reopens {
    dial: Dial,
    /// Where the connection's readings begin, and how many octets of that number were written.
    start: u64,
    told: usize,
    /// Readings before this position were acknowledged.
    acknowledged: u64,
}

impl Sense {
    /// Sends the readings as they are made.
    pub const fn new(readings: Readings) -> Sense {
        Sense {
            readings,
            written: 0,
            released: 0,
            reopens: None,
        }
    }

    /// Opens a connection to `server`, and another one whenever it was lost, after 1 s to 60 s. Each begins with the position of what
    /// follows, in eight octets, since what was not acknowledged is sent again: the server must know of it
    /// ([`Collect::with_positions`](super::Collect::with_positions)). `local` is that of the sockets.
    pub fn reopening(readings: Readings, server: Endpoint, local: &Local) -> Sense {
        Sense {
            reopens: Some(Reopens {
                dial: Dial::new(server, local),
                start: 0,
                told: 0,
                acknowledged: 0,
            }),
            ..Sense::new(readings)
        }
    }

    /// Octets written so far; a further connection takes back what the last one did not deliver.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Releases a batch once the previous one is written. False if there is nothing to write.
    fn release(&mut self) -> bool {
        if self.written >= self.released
            && let Some(batch) = self.readings.take_batch()
        {
            let octets = u64::from(batch) * u64::from(self.readings.octets);
            self.released = self.released.saturating_add(octets);
        }
        self.written < self.released
    }

    fn write<C: Congestion>(&mut self, socket: &mut Socket<'_, C>) {
        while socket.state() == State::Established && socket.writable() > 0 && self.release() {
            let committed = feed(socket, self.written..self.released);
            self.written = self.written.saturating_add(committed);
        }
    }
}

impl Reopens {
    /// Writes the position. Returns whether it is written whole.
    fn tell<C: Congestion>(&mut self, socket: &mut Socket<'_, C>) -> bool {
        if socket.state() != State::Established {
            return false;
        }
        self.dial.accepted();
        let position = self.start.to_be_bytes();
        let rest = position.get(self.told..).unwrap_or_default();
        self.told += socket.write(rest);
        self.told == POSITION
    }
}

impl<'a, C: Congestion> Application<'a, C> for Sense {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a, C>]) {
        let Some(mut reopens) = self.reopens else {
            if let Some(socket) = sockets.first_mut() {
                self.write(socket);
            }
            return;
        };
        if reopens.dial.open(now, sockets) {
            self.written = reopens.acknowledged;
            (reopens.start, reopens.told) = (reopens.acknowledged, 0);
        }
        let place = reopens.dial.place();
        if let Some(socket) = place.and_then(|place| sockets.get_mut(place)) {
            if reopens.tell(socket) {
                self.write(socket);
                // The position may be among what is not acknowledged: then this is less than it could be.
                let waiting = socket.unacknowledged() as u64;
                let sure = self.written.saturating_sub(waiting);
                reopens.acknowledged = reopens.acknowledged.max(sure);
            }
            // The server has nothing to say; if it closes, so does this end.
            let (front, back) = socket.readable();
            let unread = front.len() + back.len();
            socket.consume(unread);
            if socket.at_end() {
                socket.close(now);
            }
        }
        self.reopens = Some(reopens);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.readings.sense(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let retry = self.reopens.and_then(|reopens| reopens.dial.retry_at());
        let retry = retry.map(|at| Wake {
            at,
            why: "the connection is opened again",
        });
        Wake::earlier(self.readings.wake(), retry)
    }
}
