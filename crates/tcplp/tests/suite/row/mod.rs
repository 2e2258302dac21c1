//! Hosts with TCP over 6LoWPAN over 802.15.4, in a row, on simulated air.

#![allow(dead_code)]

use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Address, Duration, OverMac, Purpose, Seed};
use chappe_mac::dot15d4::{Config as MacConfig, Dot15d4};
use chappe_sim::Simulator;
use chappe_tcplp::host::{Application, Bulk, Host};
use chappe_tcplp::lowpan::red::Thresholds;
use chappe_tcplp::lowpan::{Config, Interface, Route, Table, TcpHeaders};
use chappe_tcplp::tcp::{self, Endpoint, Local, Memory, NewReno, Range, Secret, Sent, Socket};
use chappe_wire::sixlowpan::Context;

pub type Stack<A> = Interface<Host<'static, A>, Table<8>, 2, 4, 16, 1280, Option<TcpHeaders<2>>>;
pub type Node<A = Bulk> = OverMac<Dot15d4, Stack<A>>;

/// The parameters that differ between experiments.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Link-layer parameters of every node.
    pub mac: MacConfig,
    /// TCP's segment size (options included) and buffers in segments.
    pub mss: u16,
    pub window: usize,
    /// Whether the nodes share a context for their prefix.
    pub contexts: bool,
    /// Whether TCP headers are compressed.
    pub headers: bool,
    /// Pause after an own frame that has relays ahead of it.
    pub pace: Duration,
    /// Octets that frame security takes of each frame.
    pub overhead: usize,
    pub tcp: tcp::Config,
}

impl Setup {
    /// TCPlp's: five frames a segment with addresses in line, four segments of buffer.
    pub const TCPLP: Setup = Setup {
        mac: MacConfig::HAMILTON,
        mss: 474,
        window: 4,
        contexts: false,
        headers: false,
        pace: Duration::ZERO,
        overhead: 0,
        tcp: tcp::Config::STANDARD,
    };
}

pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0, 1, 0, 0, 0, 0);
const CONTEXTS: [Context; 1] = [Context {
    id: 0,
    prefix: PREFIX,
    len: 64,
}];

pub fn address(node: u16) -> Ipv6Addr {
    Config::new(Address::node(node), PREFIX, 0).global()
}

pub fn memory(bytes: usize, segments: usize) -> Memory<'static> {
    Memory {
        send: vec![0; bytes].leak(),
        receive: vec![0; bytes].leak(),
        ranges: vec![Range::default(); segments].leak(),
        // One entry lets out one segment at a time.
        flight: vec![Sent::default(); if segments == 1 { 1 } else { segments * 2 }].leak(),
    }
}

/// Node `number` of a row of `nodes`.
pub fn node<A: Application<'static>>(
    setup: &Setup,
    number: u16,
    nodes: u16,
    seed: u64,
    app: A,
) -> Node<A> {
    let stream = |n| Seed(seed).stream(Purpose::Node(u32::from(number) * 4 + n));
    let here = Address::node(number);
    let config = Config {
        contexts: if setup.contexts { &CONTEXTS } else { &[] },
        pace: setup.pace,
        red: Some(Thresholds::of(16)),
        ..Config::new(here, PREFIX, setup.mac.caps(setup.overhead).frame_max)
    };
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(config.global()),
        secret: Secret::new([number as u8; 16]),
        config: tcp::Config {
            mss: setup.mss,
            ..setup.tcp
        },
    }));
    let payload = usize::from(setup.mss) - if setup.tcp.timestamps { 12 } else { 0 };
    let memory = memory(payload * setup.window, setup.window);
    let socket = Socket::new(local, memory, NewReno).unwrap();
    let mut host = Host::new(local, config.link_local(), [socket], app);
    host.listen(80);
    let mut table = Table::new(here, PREFIX, Route::Nowhere);
    for other in (0..nodes).filter(|&other| other != number) {
        let next = if other > number {
            number + 1
        } else {
            number - 1
        };
        table.add(Address::node(other), Address::node(next));
    }
    let headers = setup.headers.then(TcpHeaders::default);
    let stack = Interface::with_headers(config, host, table, stream(1), headers);
    OverMac::new(Dot15d4::new(setup.mac, here, stream(0)), stack)
}

/// A row whose first node sends `octets` to its last.
pub fn row(setup: &Setup, nodes: u16, seed: u64, octets: u64) -> Vec<Box<Node>> {
    let make = |number| {
        let octets = if number == 0 { octets } else { 0 };
        Box::new(node(setup, number, nodes, seed, Bulk::sending(octets)))
    };
    (0..nodes).map(make).collect()
}

/// Opens the connection from node 0 to `to`.
pub fn connect<A: Application<'static>, R: chappe_sim::Recorder>(
    simulator: &mut Simulator<Node<A>, R>,
    to: u16,
) {
    simulator.with_node(0, |node, now| {
        node.link.with_host(now, |host| {
            let peer = Endpoint::new(IpAddr::V6(address(to)), 80);
            assert!(host.connect(now, 49_152, peer));
            host.serve(now);
        });
    });
}
