//! Sources and sinks of datagrams.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant, Wake};
use chappe_dpclo::{Delivery, Router};

/// Octets at the start of each datagram: its time of creation and its number.
pub const STAMP: usize = 16;

/// Datagrams that a source of even pace keeps while the router accepts none. It drops further ones. ns-2's queues have the
/// same length.
const BACKLOG: usize = 50;

/// When a source creates datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As soon as the router has room for one.
    Full,
    /// At even intervals of this length.
    Every(Duration),
}

/// A source of datagrams on one node.
#[derive(Clone, Debug)]
pub struct Source {
    /// The number of the stream.
    pub stream: u16,
    /// The node that receives the datagrams.
    pub to: u16,
    /// Octets of payload in each datagram.
    pub payload: usize,
    /// The time of the first datagram.
    pub begin: Instant,
    /// The time after which no datagram is created.
    pub end: Instant,
    /// Datagrams that the router accepted.
    pub accepted: u64,
    /// Datagrams dropped because the source's queue was full.
    pub overdue: u64,
    pace: Pace,
    next: Instant,
    due: VecDeque<Instant>,
}

impl Source {
    /// Creates a source of datagrams of `payload` octets, at least [`STAMP`], between `begin` and `end`.
    pub fn new(
        (stream, to): (u16, u16),
        (pace, payload): (Pace, usize),
        (begin, end): (Instant, Instant),
    ) -> Source {
        Source {
            stream,
            to,
            payload,
            begin,
            end,
            accepted: 0,
            overdue: 0,
            pace,
            next: begin,
            due: VecDeque::new(),
        }
    }

    /// Offers the datagrams that are due, and returns whether the router accepted any. `limit` is the length of the
    /// router's queue for a destination.
    pub fn serve(&mut self, now: Instant, router: &mut Router, limit: u16) -> bool {
        let before = self.accepted;
        match self.pace {
            Pace::Full if self.begin <= now && now < self.end => {
                while self.offer(now, now, router, limit) {}
            }
            Pace::Full => {}
            Pace::Every(interval) => {
                self.fall_due(now, interval);
                while let Some(&made) = self.due.front() {
                    if !self.offer(now, made, router, limit) {
                        break;
                    }
                    self.due.pop_front();
                }
            }
        }
        self.accepted > before
    }

    fn fall_due(&mut self, now: Instant, interval: Duration) {
        while self.next <= now && self.next < self.end {
            if self.due.len() < BACKLOG {
                self.due.push_back(self.next);
            } else {
                self.overdue += 1;
            }
            self.next += interval;
        }
    }

    /// Offers one datagram, unless the queue for its destination is full. The router refuses it if its rate does not allow
    /// it yet.
    fn offer(&mut self, now: Instant, made: Instant, router: &mut Router, limit: u16) -> bool {
        if router.queue(self.to) >= limit {
            return false;
        }
        let mut room = [0; 2304];
        let Some(datagram) = room.get_mut(..self.payload) else {
            return false;
        };
        write(made, self.accepted, datagram);
        let taken = router.offer(now, self.to, self.stream, datagram).is_ok();
        self.accepted += u64::from(taken);
        taken
    }

    /// When the source must be served next. `now` is the last time it was served.
    pub fn poll_timeout(&self, now: Instant) -> Option<Wake> {
        let at = match self.pace {
            Pace::Full => self.begin,
            Pace::Every(_) => self.next,
        };
        let wake = Wake {
            at,
            why: "next datagram",
        };
        (at > now && at < self.end).then_some(wake)
    }
}

/// The receiving end of a stream of datagrams.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    /// The number of the stream.
    pub stream: u16,
    /// The node that sends the stream.
    pub from: u16,
    /// Datagrams that arrived with wrong contents.
    pub wrong: u64,
    /// Time of arrival, delay in seconds, and octets of each datagram.
    pub arrivals: Vec<(Instant, f64, u32)>,
}

impl Sink {
    /// Checks and counts a datagram with the contents `datagram`.
    pub fn take(&mut self, now: Instant, delivery: &Delivery, datagram: &[u8]) {
        let Some(made) = read(datagram) else {
            self.wrong += 1;
            return;
        };
        let delay = now.saturating_since(made).as_secs_f64();
        self.arrivals.push((now, delay, delivery.len as u32));
    }
}

/// Writes a datagram that any receiver can check: its time, its number, and octets that follow from the number.
fn write(made: Instant, number: u64, datagram: &mut [u8]) {
    let (stamp, rest) = datagram.split_at_mut(STAMP);
    stamp[..8].copy_from_slice(&made.nanos().to_be_bytes());
    stamp[8..].copy_from_slice(&number.to_be_bytes());
    for (place, octet) in rest.iter_mut().enumerate() {
        *octet = expected(number, place);
    }
}

/// Returns when a datagram was created, or `None` if its contents are wrong.
fn read(datagram: &[u8]) -> Option<Instant> {
    let (stamp, rest) = datagram.split_at_checked(STAMP)?;
    let word = |at: usize| Some(u64::from_be_bytes(*stamp.get(at..)?.first_chunk()?));
    let (made, number) = (word(0)?, word(8)?);
    let whole = |(place, octet): (usize, &u8)| *octet == expected(number, place);
    let right = rest.iter().enumerate().all(whole);
    right.then(|| Instant::from_nanos(made))
}

fn expected(number: u64, place: usize) -> u8 {
    (number as u8).wrapping_mul(31).wrapping_add(place as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_and_short_datagrams_are_rejected() {
        let mut datagram = [0; 40];
        write(Instant::from_millis(7), 9, &mut datagram);
        assert_eq!(read(&datagram), Some(Instant::from_millis(7)));
        datagram[30] ^= 1;
        assert_eq!(read(&datagram), None);
        assert_eq!(read(&datagram[..10]), None);
    }
}
