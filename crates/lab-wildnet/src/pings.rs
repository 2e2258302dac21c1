//! Pings beside bulk traffic: small packets that come back, and how long they took.

use std::collections::VecDeque;

use chappe_core::{Duration, HostNode, Instant, Wake};
use chappe_wildnet::{Order, Service};

use super::traffic::Udp;

/// Octets of the IP packet: `ping` sends 56 of payload if nothing else is said.
const PING: usize = 84;
/// From one to the next: ten a second, and not a multiple of a slot, so that they meet all phases.
const EVERY: Duration = Duration::from_millis(97);
/// The first one.
const FIRST: Instant = Instant::from_micros(1_237);
const REQUEST: u8 = 1;
const ANSWER: u8 = 2;

/// What pings are promised where they have a class of their own: within a cycle each way, but for half a per cent, so that 99
/// of 100 are back within two.
pub const PROMISE: Service = Service {
    order: Order::None,
    deadline: Some(Duration::from_micros(40_400)),
    residual: 0.005,
    retries: None,
    drop_late: true,
};

/// One end: bulk, and pings or their answers.
pub struct Pings {
    /// The traffic beside them.
    pub bulk: Udp,
    /// Whether they are taken apart from it: see [`poll_urgent`](Self::poll_urgent).
    pub apart: bool,
    /// When the next one leaves; `None`: this end only answers.
    next: Option<Instant>,
    /// Stamps of those to answer.
    answers: VecDeque<[u8; 8]>,
    since: Instant,
    until: Instant,
    sent: u64,
    /// How long those took that left from `since` to `until`, s.
    round_trips: Vec<f64>,
}

impl Pings {
    /// An end that pings if `asks`, and otherwise answers; counted are those that leave from `since` to `until`.
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

    /// The round trips that were counted, s, and the share of pings that took longer than `most` or never came back;
    /// `None` at an end that only answers.
    pub fn counted(&self, most: f64) -> Option<(&[f64], f64)> {
        let soon = self.round_trips.iter().filter(|took| **took <= most);
        let late = 1.0 - soon.count() as f64 / self.sent.max(1) as f64;
        self.next.map(|_| (self.round_trips.as_slice(), late))
    }

    /// An answer or a ping that is due.
    pub fn poll_urgent(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        let (kind, stamp) = match self.answers.pop_front() {
            Some(stamp) => (ANSWER, stamp),
            None => {
                let at = self.next.filter(|at| *at <= now)?;
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
