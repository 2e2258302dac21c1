//! smoltcp's TCP on a mote over our 6LoWPAN, with our TCP as its peer; and our host over a device of smoltcp's.

use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{
    Address, Duration, HostNode, Instant, OverMac, Purpose, RadioEvent, RadioNode, RadioRequest,
    Seed, Wake,
};
use chappe_mac::dot15d4::{self, Dot15d4};
use chappe_mote::smoltcp_device::{Packets, exchange};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_tcplp::host::{Bulk, Host};
use chappe_tcplp::lowpan::{Config, Interface, Route, Table};
use chappe_tcplp::tcp::{self, Endpoint, Local, Memory, NewReno, Range, Secret, Sent, Socket};
use smoltcp::iface::{Config as StackConfig, Interface as Stack, SocketHandle, SocketSet};
use smoltcp::socket::tcp as theirs;
use smoltcp::time::Instant as Millis;
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::island::PREFIX;

const OCTETS: u64 = 4000;

type Link<H> = Interface<H, Table<2>, 2, 2, 2, 1280>;

fn link<H: HostNode>(number: u16, host: H) -> OverMac<Dot15d4, Link<H>> {
    let mac = dot15d4::Config::STANDARD;
    let here = Address::node(number);
    let stream = |n| Seed(3).stream(Purpose::Node(u32::from(number) * 4 + n));
    let config = Config::new(here, PREFIX, mac.caps(0).frame_max);
    let mut table = Table::new(here, PREFIX, Route::Nowhere);
    let other = Address::node(1 - number);
    table.add(other, other);
    let link = Interface::new(config, host, table, stream(1));
    OverMac::new(Dot15d4::new(mac, here, stream(0)), link)
}

fn address(number: u16) -> Ipv6Addr {
    Config::new(Address::node(number), PREFIX, 0).global()
}

fn ours(number: u16, sends: u64) -> Host<'static, Bulk> {
    let local: &Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(address(number)),
        secret: Secret::new([5; 16]),
        config: tcp::Config::STANDARD,
    }));
    let memory = Memory {
        send: vec![0; 2048].leak(),
        receive: vec![0; 2048].leak(),
        ranges: vec![Range::default(); 4].leak(),
        flight: vec![Sent::default(); 8].leak(),
    };
    let socket = Socket::new(local, memory, NewReno).unwrap();
    let link_local = Config::new(Address::node(number), PREFIX, 0).link_local();
    Host::new(local, link_local, [socket], Bulk::sending(sends))
}

fn stack(number: u16, device: &mut impl smoltcp::phy::Device) -> Stack {
    let mut stack = Stack::new(StackConfig::new(HardwareAddress::Ip), device, Millis::ZERO);
    stack.update_ip_addrs(|addresses| {
        let own = IpCidr::new(address(number).into(), 64);
        addresses.push(own).unwrap();
    });
    stack
}

fn sockets() -> (SocketSet<'static>, SocketHandle) {
    let buffer = || theirs::SocketBuffer::new(vec![0; 2048]);
    let mut socket = theirs::Socket::new(buffer(), buffer());
    socket.listen(80).unwrap();
    let mut set = SocketSet::new(vec![]);
    let handle = set.add(socket);
    (set, handle)
}

/// What smoltcp's socket has received.
fn read(sockets: &mut SocketSet<'_>, handle: SocketHandle, count: &mut u64) {
    let socket: &mut theirs::Socket<'_> = sockets.get_mut(handle);
    while socket.can_recv() {
        let taken = socket.recv(|data| (data.len(), data.to_vec())).unwrap();
        for octet in taken {
            assert_eq!(octet, chappe_tcplp::host::octet(*count), "octet {count}");
            *count += 1;
        }
    }
}

fn millis(now: Instant) -> Millis {
    Millis::from_micros((now.nanos() / 1000) as i64)
}

/// A mote with our 6LoWPAN and smoltcp's TCP.
struct Guest {
    node: OverMac<Dot15d4, Link<Packets<1280>>>,
    stack: Stack,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    received: u64,
    wake: Option<Instant>,
}

impl Guest {
    fn work(&mut self, now: Instant) {
        let (stack, sockets) = (&mut self.stack, &mut self.sockets);
        let (handle, count) = (self.handle, &mut self.received);
        self.node.link.with_host(now, |packets| {
            stack.poll(millis(now), packets, sockets);
            read(sockets, handle, count);
            stack.poll(millis(now), packets, sockets);
        });
        let soon = stack.poll_delay(millis(now), sockets);
        self.wake = soon.map(|delay| now + Duration::from_micros(delay.total_micros().max(1000)));
        self.node.handle_timeout(now);
    }
}

impl RadioNode for Guest {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.node.handle_radio(now, event);
        self.work(now);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.node.poll_radio(now, psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        self.work(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let own = self.wake.map(|at| Wake { at, why: "smoltcp" });
        Wake::earlier(self.node.poll_timeout(), own)
    }
}

/// Either kind of mote in one simulation.
#[allow(clippy::large_enum_variant, reason = "two of them")]
enum Mote {
    Ours(OverMac<Dot15d4, Link<Host<'static, Bulk>>>),
    Guest(Guest),
}

impl Mote {
    fn node(&mut self) -> &mut dyn RadioNode {
        match self {
            Mote::Ours(node) => node,
            Mote::Guest(guest) => guest,
        }
    }
}

impl RadioNode for Mote {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.node().handle_radio(now, event);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.node().poll_radio(now, psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        match self {
            Mote::Ours(node) => node.poll_timeout(),
            Mote::Guest(guest) => guest.poll_timeout(),
        }
    }
}

#[test]
fn smoltcp_receives_over_our_6lowpan() {
    let mut packets: Packets<1280> = Packets::new();
    let stack = stack(1, &mut packets);
    let (sockets, handle) = sockets();
    let guest = Guest {
        node: link(1, packets),
        stack,
        sockets,
        handle,
        received: 0,
        wake: None,
    };
    let motes = vec![Mote::Ours(link(0, ours(0, OCTETS))), Mote::Guest(guest)];
    let matrix = Matrix::silent(2).with_link(0, 1, 0.9);
    let world = World::new(Medium::matrix(&matrix).unwrap());
    let motes = motes.into_iter().map(Box::new).collect();
    let mut simulator = Simulator::new(world, motes, Seed(3), ()).unwrap();
    simulator.with_node(0, |mote, now| {
        let Mote::Ours(node) = mote else {
            panic!("node 0 is ours");
        };
        node.link.with_host(now, |host| {
            let peer = Endpoint::new(IpAddr::V6(address(1)), 80);
            assert!(host.connect(now, 49_152, peer));
            host.serve(now);
        });
        node.handle_timeout(now);
    });
    simulator.run_until(AirTime::from_millis(60_000));
    let Mote::Guest(guest) = simulator.node(1) else {
        panic!("node 1 is the guest");
    };
    assert_eq!(guest.received, OCTETS);
}

/// Carries a packet from one device's wire to the other's.
fn carry(now: Instant, from: &mut Packets<1280>, to: &mut Packets<1280>) {
    let mut packet = [0; 1280];
    if let Some(len) = from.poll_packet(now, &mut packet) {
        to.handle_packet(now, &packet[..len]);
    }
}

#[test]
fn our_host_runs_over_a_device_of_smoltcps() {
    let (mut here, mut there) = (Packets::new(), Packets::new());
    let mut stack = stack(1, &mut there);
    let (mut sockets, handle) = sockets();
    let mut host = ours(0, OCTETS);
    let mut now = Instant::from_millis(1);
    let peer = Endpoint::new(IpAddr::V6(address(1)), 80);
    assert!(host.connect(now, 49_152, peer));
    host.serve(now);
    let (mut count, mut buffer) = (0, [0; 1280]);
    for _ in 0..2000 {
        exchange(now, &mut host, &mut here, &mut buffer);
        carry(now, &mut here, &mut there);
        stack.poll(millis(now), &mut there, &mut sockets);
        read(&mut sockets, handle, &mut count);
        carry(now, &mut there, &mut here);
        now += Duration::from_millis(5);
        host.handle_timeout(now);
        if count == OCTETS {
            return;
        }
    }
    panic!("{count} of {OCTETS} octets arrived");
}
