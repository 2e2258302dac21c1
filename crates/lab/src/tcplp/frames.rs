//! Segments as frames, by the encoder itself: how many, how long, and of what.

use std::net::Ipv6Addr;

use chappe_core::{
    Address, Classes, HostNode, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed, Wake,
};
use chappe_mac::dot154;
use chappe_tcplp::lowpan::{Config, Interface, Leaf};
use chappe_tcplp::tcp::Ecn;
use chappe_wire::ipv6::{Header, next};
use chappe_wire::sixlowpan::Context;

use super::scene::PREFIX;

/// How a mote writes frames.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Link layer: its addresses.
    pub mac: dot154::Config,
    /// Prefixes known by number.
    pub contexts: &'static [Context],
    /// Whether packets carry ECN bits, which takes an octet of compressed header.
    pub ecn: bool,
    /// Whether the peer is a neighbour that is meant by its link-local address.
    pub link_local: bool,
}

/// The prefix, as context 0.
pub const CONTEXTS: [Context; 1] = [Context {
    id: 0,
    prefix: PREFIX,
    len: 64,
}];

/// Hands out one packet.
struct Once(Option<Vec<u8>>);

impl HostNode for Once {
    fn handle_packet(&mut self, _: Instant, _: &[u8]) {}
    fn poll_packet(&mut self, _: Instant, packet: &mut [u8]) -> Option<usize> {
        let mine = self.0.take()?;
        packet.get_mut(..mine.len())?.copy_from_slice(&mine);
        Some(mine.len())
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

impl Form {
    /// TCPlp's: short link addresses, IPv6 addresses in line, ECN.
    pub const TCPLP: Form = Form {
        mac: dot154::Config::HAMILTON,
        contexts: &[],
        ecn: true,
        link_local: false,
    };

    /// Octets of link header and check sequence of each frame.
    pub fn link(&self) -> usize {
        chappe_wire::dot154::PSDU_MAX - self.mac.caps(0).frame_max
    }

    /// The SDUs of the frames that a TCP segment becomes: `octets` of TCP header and payload together.
    pub fn frames(&self, octets: usize) -> Vec<Vec<u8>> {
        let (here, there) = (Address::node(1), Address::node(2));
        let config = |node| Config::new(node, PREFIX, self.mac.caps(0).frame_max);
        let address = |node| match self.link_local {
            true => config(node).link_local(),
            false => config(node).global(),
        };
        let packet = packet(address(here), address(there), octets, self.ecn);
        // A leaf sends what is not its own to its parent; here that is the peer.
        let routes = Leaf {
            node: here,
            parent: there,
        };
        let config = Config {
            contexts: self.contexts,
            ..config(here)
        };
        let random = Seed(1).stream(Purpose::Node(1));
        let mut stack: Interface<Once, Leaf, 1, 1, 0, 1280> =
            Interface::new(config, Once(None), routes, random);
        let now = Instant::ZERO;
        stack.with_host(now, |host| host.0 = Some(packet));
        let mut frames = Vec::new();
        let mut sdu = [0; chappe_wire::dot154::PSDU_MAX];
        while let Some(send) = stack.poll_link(now, Classes::ALL, &mut sdu) {
            frames.push(sdu[..send.len].to_vec());
            let outcome = Outcome::Acknowledged { attempts: 1 };
            let token = send.token;
            stack.handle_link(now, LinkEvent::Sent { token, outcome });
        }
        frames
    }

    /// Octets of the frames on the air: with link header and check sequence.
    pub fn octets(&self, segment: usize) -> Vec<usize> {
        let frames = self.frames(segment);
        frames.iter().map(|sdu| sdu.len() + self.link()).collect()
    }

    /// The largest MSS (payload and options, without TCP's 20 octets) whose segments fit so many frames.
    pub fn mss(&self, frames: usize) -> u16 {
        let fits = |mss: usize| (1..=frames).contains(&self.frames(20 + mss).len());
        let most = (1..=1220).rev().find(|&mss| fits(mss));
        most.unwrap_or(0) as u16
    }
}

/// An IPv6 packet with a TCP segment of so many octets, header included; its content does not matter.
fn packet(from: Ipv6Addr, to: Ipv6Addr, octets: usize, ecn: bool) -> Vec<u8> {
    let mut packet = vec![0; 40 + octets];
    let header = Header {
        traffic_class: if ecn { Ecn::Capable0.bits() } else { 0 },
        flow_label: 0,
        payload_len: octets as u16,
        next_header: next::TCP,
        hop_limit: 64,
        source: from,
        destination: to,
    };
    header
        .emit(&mut packet)
        .unwrap_or_else(|why| unreachable!("{why:?}"));
    packet
}
