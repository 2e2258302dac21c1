//! Gets a page by CoAP, block by block: the client of the web server study (TCPlp 8.1).

use core::net::Ipv6Addr;

use chappe_core::{Expect, Instant, Wake};

use crate::coap::{Client, Outcome, PORT, Timeout};
use crate::host::{self, Application, Datagram, octet};
use crate::tcp::Congestion;

/// Gets a server's content once, and verifies its test octets.
#[derive(Clone, Debug)]
pub struct Fetch<T> {
    client: Client<T>,
    from: Ipv6Addr,
    /// Octets of the content received.
    pub received: usize,
    /// Of these, the octets that were not the expected ones.
    pub wrong: usize,
    /// When and how the exchange ended.
    pub done: Option<(Instant, Outcome)>,
}

impl<T: Timeout> Fetch<T> {
    /// Starts a GET at `from`, which goes out at the first poll.
    pub fn new(mut client: Client<T>, from: Ipv6Addr) -> Fetch<T> {
        client.get();
        Fetch {
            client,
            from,
            received: 0,
            wrong: 0,
            done: None,
        }
    }

    /// The client, for its counters.
    pub fn client(&self) -> &Client<T> {
        &self.client
    }

    fn follow(&mut self, now: Instant) {
        if let Some(outcome) = self.client.outcome() {
            self.done = Some((now, outcome));
        }
    }
}

impl<C: Congestion, T: Timeout> Application<'_, C> for Fetch<T> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if datagram.from != (self.from, PORT) {
            return;
        }
        if let Some(part) = self.client.handle(now, datagram.payload) {
            let wrong = part.payload.iter().zip(part.start as u64..);
            let wrong = wrong.filter(|(got, at)| **got != octet(*at)).count();
            self.wrong += wrong;
            self.received += part.payload.len();
        }
        self.follow(now);
    }

    fn poll_datagram(&mut self, now: Instant, payload: &mut [u8]) -> Option<host::Outgoing> {
        let len = self.client.poll(now, |_, _| false, payload)?;
        Some(host::Outgoing {
            to: (self.from, PORT),
            port: PORT,
            len,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
        self.follow(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.client.poll_timeout()
    }

    fn expects(&self) -> Expect {
        match self.client.awaits_answer() {
            true => Expect::Answer,
            false => Expect::Nothing,
        }
    }
}
