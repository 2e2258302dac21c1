//! Datagrams: who makes them and when, and what is kept of those that came.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant, Wake};
use chappe_dpclo::{Delivery, Router};

/// Octets at the front of each datagram: when it was made, and its number.
pub const STAMP: usize = 16;

/// Datagrams that wait in a source of even pace while the router takes none; more are lost there. ns-2's queues hold as many.
const BACKLOG: usize = 50;

/// When datagrams are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Whenever there is room for one.
    Full,
    /// At even intervals.
    Every(Duration),
}

/// A source of datagrams.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its stream's number.
    pub stream: u16,
    /// Where they go.
    pub to: u16,
    /// Octets in each.
    pub payload: usize,
    /// From when on.
    pub begin: Instant,
    /// Until when.
    pub end: Instant,
    /// Datagrams that the router took.
    pub accepted: u64,
    /// Datagrams for which there was no place in the source.
    pub overdue: u64,
    pace: Pace,
    next: Instant,
    due: VecDeque<Instant>,
}

impl Source {
    /// A source of `payload` octets, at least [`STAMP`], between `begin` and `end`.
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

    /// Offers what is due; whether the router took any. `limit`: packets that may wait for one destination.
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

    /// An application waits while the queue is full, and is woken when its rate allows the next packet.
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

    /// When it has something to do by itself. `now` is the last time it was served.
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

/// What came of a stream of datagrams.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    /// Its stream's number.
    pub stream: u16,
    /// Where it begins.
    pub from: u16,
    /// Datagrams whose contents were not what was sent.
    pub wrong: u64,
    /// When each one came, how long it took in seconds, and its octets.
    pub came: Vec<(Instant, f64, u32)>,
}

impl Sink {
    /// Counts a datagram, its contents being those of `datagram`.
    pub fn take(&mut self, now: Instant, delivery: &Delivery, datagram: &[u8]) {
        let Some(made) = read(datagram) else {
            self.wrong += 1;
            return;
        };
        let delay = now.saturating_since(made).as_secs_f64();
        self.came.push((now, delay, delivery.len as u32));
    }
}

/// A datagram that any receiver can check: its time and number, and octets that follow from the number.
fn write(made: Instant, number: u64, datagram: &mut [u8]) {
    let (stamp, rest) = datagram.split_at_mut(STAMP);
    stamp[..8].copy_from_slice(&made.nanos().to_be_bytes());
    stamp[8..].copy_from_slice(&number.to_be_bytes());
    for (place, octet) in rest.iter_mut().enumerate() {
        *octet = expected(number, place);
    }
}

/// When a datagram was made, if it is one and whole.
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
    fn a_changed_octet_is_noticed() {
        let mut datagram = [0; 40];
        write(Instant::from_millis(7), 9, &mut datagram);
        assert_eq!(read(&datagram), Some(Instant::from_millis(7)));
        datagram[30] ^= 1;
        assert_eq!(read(&datagram), None);
        assert_eq!(read(&datagram[..10]), None);
    }
}
