//! A packet of several frames between two secured 802.15.4 nodes: cut, compressed, sealed, sent; received, opened, put
//! together.

use chappe_core::{
    Address, HostNode, Instant, OverMac, Purpose, RadioEvent, RadioNode, RadioRequest, Reception,
    Seed, Wake,
};
use chappe_mac::dot15d4::{Config, Dot15d4, Level, Security};
use chappe_tcplp::lowpan::{self, Interface, Leaf};
use chappe_wire::ipv6::Header;

/// Octets of the packet.
const LEN: usize = 500;

/// Has one packet to send, and keeps one that came.
struct Mail {
    out: Option<[u8; LEN]>,
    got: Option<u64>,
}

impl HostNode for Mail {
    fn handle_packet(&mut self, _: Instant, packet: &[u8]) {
        self.got = Some(super::sum(packet));
    }

    fn poll_packet(&mut self, _: Instant, packet: &mut [u8]) -> Option<usize> {
        packet.get_mut(..LEN)?.copy_from_slice(&self.out.take()?);
        Some(LEN)
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

type Node = OverMac<Dot15d4<1>, Interface<Mail, Leaf, 1, 1, 0, 536>>;

fn node(number: u16, seed: u64, out: Option<[u8; LEN]>) -> Node {
    let here = Address::node(number);
    let parent = Address::node(3 - number);
    let random = |n| Seed(seed).stream(Purpose::Node(n));
    let mut mac = Dot15d4::new(Config::HAMILTON, here, random(1));
    let security = Security::new([7; 16], 1, Level::EncMic32, 0);
    let frame_max = Config::HAMILTON.caps(security.overhead()).frame_max;
    mac.secure(security);
    let prefix = core::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0);
    let config = lowpan::Config::new(here, prefix, frame_max);
    let routes = Leaf { node: here, parent };
    let mut link = Interface::new(config, Mail { out, got: None }, routes, random(2));
    link.with_host(Instant::ZERO, |_| {});
    OverMac::new(mac, link)
}

/// The sum of the packet's octets on the other side.
pub fn packet(seed: u64) -> Option<u64> {
    let mut packet = [seed as u8; LEN];
    let address = |number| {
        let prefix = core::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0);
        lowpan::Config::new(Address::node(number), prefix, 0).global()
    };
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_len: (LEN - 40) as u16,
        next_header: 59,
        hop_limit: 64,
        source: address(1),
        destination: address(2),
    };
    header.emit(&mut packet).ok()?;
    let mut nodes = [node(1, seed, Some(packet)), node(2, seed, None)];
    let mut now = Instant::from_millis(1);
    for _ in 0..1000 {
        if let [_, receiver] = &nodes
            && let Some(got) = receiver.link.host().got
        {
            return (got == super::sum(&packet)).then_some(got);
        }
        let [sender, receiver] = &mut nodes;
        now = step(now, sender, receiver)?;
    }
    None
}

/// Serves both nodes at one moment and returns the next; a frame arrives as soon as it has been sent.
fn step(now: Instant, sender: &mut Node, receiver: &mut Node) -> Option<Instant> {
    let mut next = now + chappe_core::Duration::from_millis(5);
    serve(now, sender, receiver)?;
    serve(now, receiver, sender)?;
    for node in [sender, receiver] {
        if let Some(wake) = node.poll_timeout() {
            next = next.min(wake.at);
        }
        node.handle_timeout(next);
    }
    Some(next)
}

fn serve(now: Instant, node: &mut Node, other: &mut Node) -> Option<()> {
    let mut psdu = [0; 127];
    while let Some(request) = node.poll_radio(now, &mut psdu) {
        match request {
            RadioRequest::Sense(true) => {
                let (busy, since) = (false, Instant::ZERO);
                node.handle_radio(now, RadioEvent::Carrier { busy, since });
            }
            RadioRequest::Transmit(frame) => {
                node.handle_radio(now, RadioEvent::Sent);
                let reception = Reception {
                    psdu: psdu.get(..frame.len)?,
                    started: now,
                    mode: frame.mode,
                    power: None,
                };
                other.handle_radio(now, RadioEvent::Received(reception));
            }
            _ => {}
        }
    }
    Some(())
}
