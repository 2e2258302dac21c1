//! The load of a channel-access experiment: stations that always have a frame to send.

use chappe_core::{Address, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Outcome, Wake};

/// A station with an infinite backlog in each of its flows; without flows, a receiver. Of several flows that may send,
/// the first one does.
#[derive(Clone, Debug, Default)]
pub struct Saturated {
    /// Its flows, most urgent first.
    pub flows: Vec<Backlog>,
    /// Length of each SDU in octets.
    pub len: usize,
    /// Number of SDUs that this station received.
    pub received: u64,
}

/// Infinitely many frames of one class for one neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The neighbour, or the broadcast address.
    pub to: Address,
    /// The class of its frames.
    pub class: Class,
    /// Frames that the neighbour acknowledged.
    pub acknowledged: u64,
    /// Frames that the channel access dropped at its retry limit.
    pub failed: u64,
}

impl Backlog {
    /// A flow of which nothing has been sent.
    pub fn new(to: Address, class: Class) -> Backlog {
        Backlog {
            to,
            class,
            acknowledged: 0,
            failed: 0,
        }
    }
}

impl Saturated {
    /// A station that only receives.
    pub fn idle() -> Saturated {
        Saturated::default()
    }

    /// A station that sends SDUs of `len` octets to one neighbour, or as broadcasts, in class `Data`.
    pub fn towards(to: Address, len: usize) -> Saturated {
        let flows = vec![Backlog::new(to, Class::Data)];
        Saturated {
            flows,
            len,
            received: 0,
        }
    }

    /// Frames of all flows that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.flows.iter().map(|flow| flow.acknowledged).sum()
    }
}

impl LinkNode for Saturated {
    fn handle_link(&mut self, _: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Received(_) => self.received += 1,
            LinkEvent::Sent { token, outcome } => {
                let flow = &mut self.flows[token as usize];
                match outcome {
                    Outcome::Acknowledged { .. } => flow.acknowledged += 1,
                    Outcome::Failed { .. } => flow.failed += 1,
                    Outcome::Unconfirmed => {}
                }
            }
        }
    }

    fn pending(&self) -> Classes {
        let with = |classes: Classes, flow: &Backlog| classes.with(flow.class);
        self.flows.iter().fold(Classes::NONE, with)
    }

    fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let mut flows = self.flows.iter().enumerate();
        let (token, flow) = flows.find(|(_, flow)| allowed.contains(flow.class))?;
        sdu.get_mut(..self.len)?.fill(0xa5);
        Some(LinkSend {
            to: flow.to,
            len: self.len,
            class: flow.class,
            mode: None,
            token: token as u32,
        })
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturated_stations_keep_the_link_contract() {
        chappe_core::contract::check_link(20, |_| Saturated::towards(Address::node(3), 100));
    }

    #[test]
    fn the_first_flow_that_may_send_does() {
        let of = |class| Backlog::new(Address::node(1), class);
        let mut node = Saturated {
            flows: vec![of(Class::Urgent), of(Class::Data)],
            len: 4,
            received: 0,
        };
        let mut sdu = [0; 8];
        let now = Instant::ZERO;
        for (allowed, token) in [(Classes::ALL, 0), (Classes::only(Class::Data), 1)] {
            let send = node.poll_link(now, allowed, &mut sdu).unwrap();
            assert_eq!((send.token, send.len), (token, 4));
            let outcome = Outcome::Acknowledged { attempts: 1 };
            node.handle_link(now, LinkEvent::Sent { token, outcome });
        }
        assert!(node.poll_link(now, Classes::NONE, &mut sdu).is_none());
        assert_eq!(node.acknowledged(), 2);
        assert_eq!(sdu, [0xa5, 0xa5, 0xa5, 0xa5, 0, 0, 0, 0]);
    }
}
