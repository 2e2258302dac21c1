//! A node that owns its radio, on this one: without tasks, one thing at a time.

use chappe_core::{Head, Instant, RadioEvent, RadioNode, Reception, Wake};

use crate::driver::{Driver, MODE, SOON, Seen};
use crate::registers::Registers;

/// A node and its radio. The program calls [`turn`](Self::turn) until it returns false, sleeps until the next interrupt of RADIO
/// or TIMER3, and calls it again.
#[derive(Debug)]
pub struct Station<N, R> {
    node: N,
    driver: Driver<R>,
    /// What the node does while its own frame is on the air.
    ahead: Option<fn(&mut N) -> bool>,
    psdu: [u8; 127],
}

impl<N: RadioNode, R: Registers> Station<N, R> {
    /// Joins a node and a radio, and does what the node asks for at once.
    pub fn new(node: N, driver: Driver<R>) -> Station<N, R> {
        let psdu = [0; 127];
        let mut station = Station {
            node,
            driver,
            ahead: None,
            psdu,
        };
        let now = station.driver.now();
        station.drain(now);
        station
    }

    /// Calls `ahead` once each of the node's frames has begun, so that the node makes the next one meanwhile. It returns
    /// whether the node then has requests.
    pub fn with_ahead(self, ahead: fn(&mut N) -> bool) -> Station<N, R> {
        let ahead = Some(ahead);
        Station { ahead, ..self }
    }

    /// The node, to be read.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// The radio that the node uses.
    pub fn driver(&mut self) -> &mut Driver<R> {
        &mut self.driver
    }

    /// The radio, for another node.
    pub fn into_driver(self) -> Driver<R> {
        self.driver
    }

    /// Lets `f` change the node at the present time, and does what the node then asks for.
    pub fn with<T>(&mut self, f: impl FnOnce(&mut N, Instant) -> T) -> T {
        let now = self.driver.now();
        let result = f(&mut self.node, now);
        self.drain(now);
        result
    }

    /// Does the next thing: an event of the radio, a deadline, or work ahead. False if there is none; the timer is then set to
    /// the next deadline.
    pub fn turn(&mut self) -> bool {
        if let Some((at, seen)) = self.driver.poll() {
            self.report(at, seen);
            // The time of the event, not of the interrupt: a relay reckons its start from it.
            self.drain(at);
            return true;
        }
        let now = self.driver.now();
        if Wake::due(self.node.poll_timeout(), now) {
            self.node.handle_timeout(now);
            self.drain(now);
            return true;
        }
        let begun = self.ahead.and(self.driver.begins()).map(|at| at + SOON);
        if begun.is_some_and(|at| at <= now)
            && self.ahead.is_some_and(|ahead| ahead(&mut self.node))
        {
            self.drain(now);
            return true;
        }
        let wake = self.node.poll_timeout().map(|wake| wake.at);
        let alarm = wake.into_iter().chain(begun.filter(|&at| at > now)).min();
        self.driver.set_alarm(alarm);
        false
    }

    fn report(&mut self, at: Instant, seen: Seen) {
        let mode = MODE;
        let octets = match seen {
            Seen::Head { octets, .. } => octets,
            Seen::Received { len, .. } => len,
            Seen::Carrier { .. } | Seen::Failed(_) | Seen::Sent => 0,
        };
        let psdu = self.psdu.get_mut(..octets).unwrap_or_default();
        if !psdu.is_empty() {
            self.driver.octets(psdu);
        }
        let event = match seen {
            Seen::Carrier { busy } => RadioEvent::Carrier { busy, since: at },
            Seen::Head { len, started, .. } => RadioEvent::Head(Head {
                octets: psdu,
                len,
                started,
                mode,
            }),
            Seen::Received { started, power, .. } => RadioEvent::Received(Reception {
                psdu,
                started,
                mode,
                power: Some(power),
            }),
            Seen::Failed(failure) => RadioEvent::Failed(failure),
            Seen::Sent => RadioEvent::Sent,
        };
        self.node.handle_radio(at, event);
    }

    fn drain(&mut self, now: Instant) {
        while let Some(request) = self.node.poll_radio(now, &mut self.psdu) {
            self.driver.request(request, &self.psdu);
        }
        self.driver.settle();
    }
}
