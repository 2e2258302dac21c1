//! Pings beside bulk traffic: requests, answers, and round-trip times.

use std::collections::VecDeque;

use chappe_core::{Duration, HostNode, Instant, Wake};
use chappe_wildnet::{Order, Service};

use crate::udp::Udp;

/// Octets of a ping as an IP packet: `ping` sends 56 of payload by default.
const PING: usize = 84;
/// Interval between pings: about ten a second, and no multiple of a slot, so that they meet all phases of the cycle.
const EVERY: Duration = Duration::from_millis(97);
/// When the first ping leaves.
const FIRST: Instant = Instant::from_micros(1_237);
const REQUEST: u8 = 1;
const ANSWER: u8 = 2;

/// The service of pings in a separate class: a cycle each way, for all but half a per cent, so that 99 of 100 return within
/// two cycles.
pub const PROMISE: Service = Service {
    rounds: 0,
    order: Order::None,
    deadline: Some(Duration::from_micros(40_400)),
    residual: 0.005,
    retries: None,
    drop_late: true,
    every_path: false,
};

/// One end of the link: bulk traffic, and pings or answers.
pub struct Pings {
    /// The bulk traffic that shares the link.
    pub bulk: Udp,
    /// Whether pings have a separate class: see [`poll_urgent`](Self::poll_urgent).
    pub apart: bool,
    /// When the next ping leaves; `None` at the end that only answers.
    next: Option<Instant>,
    /// Timestamps of the requests to answer.
    answers: VecDeque<[u8; 8]>,
    since: Instant,
    until: Instant,
    sent: u64,
    /// Round-trip times of pings that left from `since` to `until`, in s.
    round_trips: Vec<f64>,
}

impl Pings {
    /// An end that pings if `asks`, and only answers otherwise. Pings that leave from `since` to `until` are measured.
    pub fn new(
        bulk: Udp,
        (asks, apart): (bool, bool),
        (since, until): (Instant, Instant),
    ) -> Pings {
        Pings {
            bulk,
            apart,
            next: asks.then_some(FIRST),
            answers: VecDeque::new(),
            since,
            until,
            sent: 0,
            round_trips: Vec::new(),
        }
    }

    /// Measured round-trip times in s, and the share of pings that took longer than `most` or never returned. `None` at an
    /// end that only answers.
    pub fn counted(&self, most: f64) -> Option<(&[f64], f64)> {
        let soon = self.round_trips.iter().filter(|took| **took <= most);
        let late = 1.0 - soon.count() as f64 / self.sent.max(1) as f64;
        self.next.map(|_| (self.round_trips.as_slice(), late))
    }

    /// Polls for an answer or a due ping, and returns its length.
    pub fn poll_urgent(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        let (kind, stamp) = match self.answers.pop_front() {
            Some(stamp) => (ANSWER, stamp),
            None => {
                let at = self.next.filter(|at| *at <= now)?;
                // Stamped with the time at which it was due, so that waiting for room counts as delay.
                self.next = Some(at + EVERY);
                self.sent += u64::from(self.counts(at));
                (REQUEST, at.nanos().to_be_bytes())
            }
        };
        let packet = packet.get_mut(..PING)?;
        packet.fill(0);
        packet[0] = kind;
        packet[1..9].copy_from_slice(&stamp);
        Some(PING)
    }

    fn counts(&self, at: Instant) -> bool {
        self.since <= at && at < self.until
    }
}

impl HostNode for Pings {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        // Datagrams are longer, so the length tells pings from bulk traffic.
        if packet.len() != PING {
            return self.bulk.handle_packet(now, packet);
        }
        let Some((&kind, rest)) = packet.split_first() else {
            return;
        };
        let Some(&stamp) = rest.first_chunk() else {
            return;
        };
        if kind == REQUEST {
            return self.answers.push_back(stamp);
        }
        let at = Instant::from_nanos(u64::from_be_bytes(stamp));
        if self.counts(at) {
            self.round_trips
                .push(now.saturating_since(at).as_secs_f64());
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        let urgent = self.poll_urgent(now, packet);
        urgent.or_else(|| self.bulk.poll_packet(now, packet))
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        self.next.map(|at| Wake {
            at,
            why: "next ping",
        })
    }
}
