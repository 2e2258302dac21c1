//! Networks of namespaces, and a node that records what it receives.
#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration as Pause;

use chappe_core::{Address, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Outcome, Wake};
use chappe_live::{Carrier, Membership, Port};
use chappe_sys::namespace::{NetworkNamespace, isolate};
use chappe_sys::{Interface, Links};

/// Runs the cases in new namespaces, or skips them.
pub fn run(cases: &[(&str, fn())]) {
    if let Err(error) = isolate() {
        chappe_testkit::skip(error.to_string());
        return;
    }
    for (name, case) in cases {
        println!("{name}");
        case();
    }
}

/// The membership of node `me` in the group of all tests.
pub fn member(me: u16) -> Membership {
    Membership::example(me, 12, 17)
}

/// Hosts on one bridge, each with an interface `eth0` and an address. Dropping the value removes all of them.
pub struct Network {
    pub hosts: Vec<NetworkNamespace>,
    pub hub: NetworkNamespace,
}

impl Network {
    pub fn new(hosts: u8) -> Network {
        let hub = NetworkNamespace::create().unwrap();
        let hosts: Vec<_> = (0..hosts)
            .map(|_| NetworkNamespace::create().unwrap())
            .collect();
        let names: Vec<_> = (0..hosts.len()).map(|i| format!("p{i}")).collect();
        let join = || {
            let links = Links::open().unwrap();
            links.bridge("br0").unwrap();
            links.up("br0").unwrap();
            for (name, host) in names.iter().zip(&hosts) {
                links.veth(name, "eth0", host).unwrap();
                links.join(name, "br0").unwrap();
                links.up(name).unwrap();
            }
        };
        hub.run(join).unwrap();
        for (i, host) in hosts.iter().enumerate() {
            let raise = || {
                let links = Links::open().unwrap();
                let address = Ipv4Addr::new(10, 0, 0, 1 + i as u8);
                links.add_address("eth0", address, 24).unwrap();
                links.up("eth0").unwrap();
                for _ in 0..400 {
                    if Interface::find("eth0").unwrap().running {
                        return;
                    }
                    std::thread::sleep(Pause::from_millis(5));
                }
            };
            host.run(raise).unwrap();
        }
        // Bridge ports begin to forward shortly after they came up.
        std::thread::sleep(Pause::from_millis(100));
        Network { hosts, hub }
    }

    pub fn port(&self, host: u16, carrier: Carrier) -> Port {
        let open = || Port::open("eth0", Address::node(host), carrier).unwrap();
        self.hosts[usize::from(host)].run(open).unwrap()
    }
}

/// Sends the frames it is given, and records received frames and outcomes.
#[derive(Default)]
pub struct Note {
    pub to_send: VecDeque<(Address, Vec<u8>)>,
    pub heard: Vec<(Address, Address, Vec<u8>)>,
    pub outcomes: Vec<(u32, Outcome)>,
    pub sent: u32,
    /// While set, the node sends none of its frames.
    pub held: bool,
    /// Sends its first frame again and again.
    pub endless: bool,
    /// How long it takes for each received frame.
    pub handling: Pause,
}

impl LinkNode for Note {
    fn handle_link(&mut self, _now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Received(arrival) => {
                if !self.handling.is_zero() {
                    std::thread::sleep(self.handling);
                }
                self.heard
                    .push((arrival.from, arrival.to, arrival.sdu.to_vec()));
            }
            LinkEvent::Sent { .. } if self.endless => {}
            LinkEvent::Sent { token, outcome } => self.outcomes.push((token, outcome)),
        }
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, !self.held && !self.to_send.is_empty())
    }

    fn poll_link(&mut self, _now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if self.held || !allowed.contains(Class::Data) {
            return None;
        }
        let (to, octets) = match self.endless {
            true => self.to_send.front().cloned()?,
            false => self.to_send.pop_front()?,
        };
        sdu[..octets.len()].copy_from_slice(&octets);
        self.sent += 1;
        let (len, token) = (octets.len(), self.sent);
        Some(LinkSend {
            to,
            len,
            class: Class::Data,
            mode: None,
            token,
        })
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}
