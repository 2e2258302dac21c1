//! Nodes on a radio and nodes on a link as [`play`](crate::play) sees them.

use chappe_core::{
    Address, Arrival, Class, Classes, Dbm, Duration, Failure, Head, Instant, LinkEvent, LinkNode,
    LinkSend, Mode, Outcome, RadioEvent, RadioNode, RadioRequest, Rate, Reception, Wake,
};

use crate::play::Node;

/// A node that owns its radio.
pub struct OnRadio<N> {
    node: N,
    /// What its owner does after each event.
    serve: fn(&mut N),
    /// Frames that it handed over and that have not ended.
    flying: u32,
    sensing: bool,
    busy: bool,
    /// Octets of each frame that it asked to see early.
    peek: usize,
}

impl<N: RadioNode> OnRadio<N> {
    /// A node whose owner calls `serve` after each event.
    pub fn new(node: N, serve: fn(&mut N)) -> OnRadio<N> {
        OnRadio {
            node,
            serve,
            flying: 0,
            sensing: false,
            busy: false,
            peek: 0,
        }
    }

    fn tell(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.node.handle_radio(now, event);
        (self.serve)(&mut self.node);
    }

    fn carrier(&mut self, now: Instant) {
        let busy = self.busy;
        self.tell(now, RadioEvent::Carrier { busy, since: now });
    }
}

const MODE: Mode = Mode::long(Rate::Dsss2);

impl<N: RadioNode> Node for OnRadio<N> {
    fn hear(&mut self, now: Instant, psdu: &[u8]) {
        let started = now.saturating_before(Duration::from_micros(500));
        if self.peek > 0 {
            let head = Head {
                octets: psdu.get(..self.peek).unwrap_or(psdu),
                len: psdu.len(),
                started,
                mode: MODE,
            };
            self.tell(now, RadioEvent::Head(head));
        }
        let reception = Reception {
            psdu,
            started,
            mode: MODE,
            power: Some(Dbm(-70.0)),
        };
        self.tell(now, RadioEvent::Received(reception));
    }

    fn say(&mut self, now: Instant, psdu: &mut [u8]) -> Option<usize> {
        while let Some(request) = self.node.poll_radio(now, psdu) {
            match request {
                RadioRequest::Transmit(transmit) => {
                    self.flying += 1;
                    return Some(transmit.len);
                }
                RadioRequest::Burst(_) => self.flying += 1,
                RadioRequest::Cancel => self.flying = self.flying.saturating_sub(1),
                RadioRequest::Peek(octets) => self.peek = octets,
                RadioRequest::Sense(on) => {
                    // The present state comes at once.
                    if on && !self.sensing {
                        self.carrier(now);
                    }
                    self.sensing = on;
                }
                RadioRequest::Tune(_) | RadioRequest::Listen(_) | RadioRequest::Abort => {}
            }
        }
        None
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn meet(&mut self, now: Instant, what: u8) {
        match what % 4 {
            0 | 1 if self.flying > 0 => {
                self.flying -= 1;
                self.tell(now, RadioEvent::Sent);
            }
            2 if self.sensing => {
                self.busy = !self.busy;
                self.carrier(now);
            }
            _ => {
                let started = now.saturating_before(Duration::from_micros(what.into()));
                let mode = (what & 4 != 0).then_some(MODE);
                self.tell(now, RadioEvent::Failed(Failure { started, mode }));
            }
        }
    }

    fn wake(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        (self.serve)(&mut self.node);
    }

    fn deadline(&self) -> Option<Wake> {
        self.node.poll_timeout()
    }
}

/// A node on a link that is asked for one frame after the other.
pub struct OnLink<N> {
    node: N,
    peer: Address,
    serve: fn(&mut N),
    /// The frame whose outcome it waits for.
    token: Option<u32>,
}

impl<N: LinkNode> OnLink<N> {
    /// A node that hears `peer`, and whose owner calls `serve` after each event.
    pub fn new(node: N, peer: Address, serve: fn(&mut N)) -> OnLink<N> {
        OnLink {
            node,
            peer,
            serve,
            token: None,
        }
    }

    fn tell(&mut self, now: Instant, event: LinkEvent<'_>) {
        self.node.handle_link(now, event);
        (self.serve)(&mut self.node);
    }

    fn outcome(&mut self, now: Instant, outcome: Outcome) {
        if let Some(token) = self.token.take() {
            self.tell(now, LinkEvent::Sent { token, outcome });
        }
    }
}

impl<N: LinkNode> Node for OnLink<N> {
    fn hear(&mut self, now: Instant, sdu: &[u8]) {
        let arrival = Arrival {
            from: self.peer,
            to: Address::BROADCAST,
            sdu,
            power: None,
        };
        self.tell(now, LinkEvent::Received(arrival));
    }

    fn say(&mut self, now: Instant, sdu: &mut [u8]) -> Option<usize> {
        self.outcome(now, Outcome::Acknowledged { attempts: 1 });
        let send = self.node.poll_link(now, Classes::ALL, sdu)?;
        self.token = Some(send.token);
        Some(send.len)
    }

    fn is_drained(&self) -> bool {
        false
    }

    fn meet(&mut self, now: Instant, what: u8) {
        let attempts = what >> 2;
        self.outcome(
            now,
            match what % 3 {
                0 => Outcome::Failed { attempts },
                1 => Outcome::Unconfirmed,
                _ => Outcome::Acknowledged { attempts },
            },
        );
    }

    fn wake(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        (self.serve)(&mut self.node);
    }

    fn deadline(&self) -> Option<Wake> {
        self.node.poll_timeout()
    }
}

/// What stands on a MAC: it has a frame for its peer for each one that it hears, and two at first.
pub struct Talker {
    to: Address,
    waiting: u32,
    said: u32,
}

impl Talker {
    /// A node whose frames go to `to`, and now and then to all.
    pub fn to(to: Address) -> Talker {
        Talker {
            to,
            waiting: 2,
            said: 0,
        }
    }
}

impl LinkNode for Talker {
    fn handle_link(&mut self, _: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(_) = event {
            self.waiting += 1;
        }
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.waiting > 0)
    }

    fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        self.waiting = self.waiting.checked_sub(1)?;
        self.said += 1;
        let len = (self.said as usize * 7 % 90).min(sdu.len());
        sdu[..len].fill(self.said as u8);
        let to = match self.said % 5 {
            0 => Address::BROADCAST,
            _ => self.to,
        };
        Some(LinkSend {
            token: self.said,
            ..LinkSend::unicast(to, len, Class::Data)
        })
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}
