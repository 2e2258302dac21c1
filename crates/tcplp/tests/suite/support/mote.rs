//! A mote's host alone, and the addresses of its network.

use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Address, Instant};
use chappe_tcplp::host::{Bulk, Host};
use chappe_tcplp::lowpan::Config;
use chappe_tcplp::tcp::{self, Local, Memory, NewReno, Range, Secret, Sent, Socket};
use chappe_wire::ipv6::Header;

pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0);

/// The address of a node.
pub fn address(node: u16) -> Ipv6Addr {
    Config::new(Address::node(node), PREFIX, 0).global()
}

pub fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A packet of `len` octets whose payload counts up.
pub fn packet(from: u16, to: u16, len: usize) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..len).map(|i| i as u8).collect();
    let header = Header {
        traffic_class: 2,
        flow_label: 0,
        payload_len: len as u16 - 40,
        next_header: 59,
        hop_limit: 64,
        source: address(from),
        destination: address(to),
    };
    header.emit(&mut packet).unwrap();
    packet
}

/// A host with one socket that listens on port 80, and if the seed is even calls node 2; it has 5,000 octets to send.
pub fn tcp_host(seed: u64) -> Host<'static, Bulk> {
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(address(1)),
        secret: Secret::new([seed as u8; 16]),
        config: tcp::Config::STANDARD,
    }));
    let memory = Memory {
        send: vec![0; 924].leak(),
        receive: vec![0; 924].leak(),
        ranges: vec![Range::default(); 4].leak(),
        flight: vec![Sent::default(); 4].leak(),
    };
    let socket = Socket::new(local, memory, NewReno).unwrap();
    let link_local = Config::new(Address::node(1), PREFIX, 0).link_local();
    let mut host = Host::new(local, link_local, [socket], Bulk::sending(5000));
    host.listen(80);
    if seed.is_multiple_of(2) {
        let peer = tcp::Endpoint::new(IpAddr::V6(address(2)), 80);
        assert!(host.connect(ms(1), 5000, peer));
    }
    host
}
