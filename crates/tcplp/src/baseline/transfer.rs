//! A bulk transfer by CoAP, for comparison with TCP: the applications of both ends.

use core::net::Ipv6Addr;

use chappe_core::{Expect, Instant, Wake};

use crate::coap::{Client, Outcome, PORT, Server, Timeout};
use crate::host::{self, Application, Datagram, fill};
use crate::tcp::Congestion;

/// Posts `octets` test octets, in bodies of `body` octets, one after the other.
#[derive(Clone, Debug)]
pub struct Post<T> {
    client: Client<T>,
    to: Ipv6Addr,
    octets: u64,
    body: usize,
    /// Octets of finished bodies, acknowledged or given up.
    done: u64,
    /// Bodies that were given up.
    pub given_up: u32,
}

impl<T: Timeout> Post<T> {
    /// A transfer of `octets` to a server, in bodies of `body`.
    pub fn new(client: Client<T>, to: Ipv6Addr, octets: u64, body: usize) -> Post<T> {
        let mut post = Post {
            client,
            to,
            octets,
            body: body.max(1),
            done: 0,
            given_up: 0,
        };
        post.begin();
        post
    }

    /// The client, for its counters.
    pub fn client(&self) -> &Client<T> {
        &self.client
    }

    fn body_len(&self) -> usize {
        let left = self.octets.saturating_sub(self.done);
        left.min(self.body as u64) as usize
    }

    fn begin(&mut self) {
        let len = self.body_len();
        if len > 0 {
            self.client.post(len);
        }
    }

    /// Counts a body that ended, and starts the next one.
    fn follow(&mut self) {
        let Some(outcome) = self.client.outcome() else {
            return;
        };
        if outcome != Outcome::Done {
            self.given_up = self.given_up.saturating_add(1);
        }
        self.done = self.done.saturating_add(self.body_len() as u64);
        self.begin();
    }
}

impl<C: Congestion, T: Timeout> Application<'_, C> for Post<T> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if datagram.from == (self.to, PORT) {
            self.client.handle(now, datagram.payload);
            self.follow();
        }
    }

    fn poll_datagram(&mut self, now: Instant, payload: &mut [u8]) -> Option<host::Outgoing> {
        let begin = self.done;
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
        self.client.handle_timeout(now);
        self.follow();
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

/// Answers posts and counts their octets.
#[derive(Clone, Debug, Default)]
pub struct Receive {
    server: Server<8>,
    answer: Option<(Ipv6Addr, u16, usize)>,
    written: [u8; 32],
    /// Octets received, each counted once.
    pub received: u64,
    /// When octets last arrived.
    pub last: Instant,
}

impl<C: Congestion> Application<'_, C> for Receive {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if datagram.port != PORT {
            return;
        }
        let (received, len) =
            self.server
                .handle(datagram.from, datagram.payload, &mut self.written);
        if let Some(received) = received {
            self.received = self.received.saturating_add(received.payload.len() as u64);
            self.last = now;
        }
        let (address, port) = datagram.from;
        self.answer = len.map(|len| (address, port, len));
    }

    fn poll_datagram(&mut self, _: Instant, payload: &mut [u8]) -> Option<host::Outgoing> {
        let (address, port, len) = self.answer.take()?;
        payload
            .get_mut(..len)?
            .copy_from_slice(self.written.get(..len)?);
        Some(host::Outgoing {
            to: (address, port),
            port: PORT,
            len,
        })
    }
}
