//! Gets a page by CoAP, block by block: the client of the web server study (TCPlp 8.1).

use core::net::Ipv6Addr;

use chappe_core::{Expect, Instant, Wake};

use crate::coap::{Client, Outcome, PORT, Timeout};
use crate::host::{self, Application, Datagram, octet};
use crate::tcp::Congestion;

/// Gets what a server has, once.
#[derive(Clone, Debug)]
pub struct Fetch<T> {
    client: Client<T>,
    from: Ipv6Addr,
    /// Octets that came.
    pub received: usize,
    /// Of these, how many were wrong.
    pub wrong: usize,
    /// How it ended, and when.
    pub done: Option<(Instant, Outcome)>,
}

impl<T: Timeout> Fetch<T> {
    /// Begins at once.
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

    /// The client.
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
