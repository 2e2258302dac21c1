//! Sense-and-send by CoAP (TCPlp 8.2): each batch in messages of a few readings, one after the other.

use core::net::Ipv6Addr;

use chappe_core::{Expect, Instant, Wake};

use crate::coap::{Client, Outcome, PORT, Timeout};
use crate::host::{self, Application, Datagram, Readings, fill};
use crate::tcp::Congestion;

/// Posts readings to a server. A message that is given up is lost; the next one follows.
#[derive(Clone, Debug)]
pub struct Report<T> {
    /// The source of the readings.
    pub readings: Readings,
    client: Client<T>,
    to: Ipv6Addr,
    /// The most readings in a message: six of 82 octets are closest to a segment of five frames.
    per_message: u32,
    /// Readings of the present batch still to be sent, and those in the present message.
    released: u32,
    at_work: u32,
    /// Readings that were acknowledged, or sent if messages are non-confirmable.
    pub done: u32,
    /// Readings in messages that were given up.
    pub given_up: u32,
}

impl<T: Timeout> Report<T> {
    /// Reports to a server. If the client's blocks are too small for `per_message` readings, a message takes several blocks.
    pub fn new(readings: Readings, client: Client<T>, to: Ipv6Addr, per_message: u32) -> Report<T> {
        Report {
            readings,
            client,
            to,
            per_message: per_message.max(1),
            released: 0,
            at_work: 0,
            done: 0,
            given_up: 0,
        }
    }

    /// The client, for its counters.
    pub fn client(&self) -> &Client<T> {
        &self.client
    }

    /// Counts a message that ended, and starts the next one.
    fn follow(&mut self) {
        if let Some(outcome) = self.client.outcome() {
            let count = match outcome {
                Outcome::Done => &mut self.done,
                _ => &mut self.given_up,
            };
            *count = count.saturating_add(self.at_work);
            self.at_work = 0;
        }
        if self.client.is_busy() {
            return;
        }
        if self.released == 0 {
            self.released = self.readings.take_batch().unwrap_or(0);
        }
        let next = self.released.min(self.per_message);
        let octets = next.saturating_mul(self.readings.octets) as usize;
        if next > 0 && self.client.post(octets) {
            self.released -= next;
            self.at_work = next;
        }
    }
}

impl<C: Congestion, T: Timeout> Application<'_, C> for Report<T> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if datagram.from == (self.to, PORT) {
            self.client.handle(now, datagram.payload);
            self.follow();
        }
    }

    fn poll_datagram(&mut self, now: Instant, payload: &mut [u8]) -> Option<host::Outgoing> {
        let begin = u64::from(self.done.wrapping_add(self.given_up));
        let begin = begin.wrapping_mul(u64::from(self.readings.octets));
        let body = |start: usize, part: &mut [u8]| {
            fill(begin.wrapping_add(start as u64), part);
            true
        };
        let len = self.client.poll(now, body, payload)?;
        self.follow();
        Some(host::Outgoing {
            to: (self.to, PORT),
            port: PORT,
            len,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.readings.sense(now);
        self.client.handle_timeout(now);
        self.follow();
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Wake::earlier(self.readings.wake(), self.client.poll_timeout())
    }

    fn expects(&self) -> Expect {
        match self.client.awaits_answer() {
            true => Expect::Answer,
            false => Expect::Nothing,
        }
    }
}
