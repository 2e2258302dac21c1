//! The task that drives the radio.

use core::future::pending;

use chappe_core::{Head, RadioEvent, RadioNode, Reception};
use embassy_futures::select::{Either3, select3};

use crate::clock::Clock;
use crate::radio::{Event, Radio, What};
use crate::stack::Stack;

/// Octets of the largest PSDU.
const PSDU_MAX: usize = 127;

/// Carries frames and time between a stack and its radio. Exactly one runner drives a stack.
pub struct Runner<'s, 'a, K, R> {
    stack: &'s Stack<'a, K>,
    radio: R,
}

impl<'s, 'a, K: Clock, R: Radio> Runner<'s, 'a, K, R> {
    /// A runner that has not begun.
    pub fn new(stack: &'s Stack<'a, K>, radio: R) -> Self {
        Runner { stack, radio }
    }

    /// Never returns: run it as a task of its own. Without it nothing is sent or received.
    pub async fn run(mut self) -> ! {
        let (mut psdu, mut heard) = ([0; PSDU_MAX], [0; PSDU_MAX]);
        loop {
            self.drain(&mut psdu);
            let wake = self.stack.with_mote(|_, mote| mote.poll_timeout());
            let clock = self.stack.clock();
            let sleep = async {
                match wake {
                    Some(wake) => clock.sleep_until(wake.at).await,
                    None => pending().await,
                }
            };
            let next = select3(self.radio.event(&mut heard), sleep, self.stack.changed()).await;
            if let Either3::First(event) = next {
                self.tell(event, &heard);
                // An acknowledgement must not wait for other deadlines.
                self.drain(&mut psdu);
            }
            self.stack.with_mote(|now, mote| mote.handle_timeout(now));
        }
    }

    /// Hands all requests of the MAC to the radio.
    fn drain(&mut self, psdu: &mut [u8; PSDU_MAX]) {
        let (stack, radio) = (self.stack, &mut self.radio);
        stack.with_mote(|now, mote| {
            while let Some(request) = mote.poll_radio(now, psdu) {
                radio.request(request, psdu);
            }
        });
    }

    fn tell(&mut self, Event { at, what }: Event, heard: &[u8]) {
        let event = match what {
            What::Carrier { busy, since } => RadioEvent::Carrier { busy, since },
            What::Head {
                octets,
                len,
                started,
                mode,
            } => RadioEvent::Head(Head {
                octets: heard.get(..octets).unwrap_or_default(),
                len,
                started,
                mode,
            }),
            What::Received {
                len,
                started,
                mode,
                power,
            } => RadioEvent::Received(Reception {
                psdu: heard.get(..len).unwrap_or_default(),
                started,
                mode,
                power,
            }),
            What::Failed(failure) => RadioEvent::Failed(failure),
            What::Sent => RadioEvent::Sent,
        };
        self.stack.with_mote(|_, mote: &mut dyn crate::Mote<'a>| {
            RadioNode::handle_radio(mote, at, event)
        });
    }
}
