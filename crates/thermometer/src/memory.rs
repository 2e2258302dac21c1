//! A node's memory, and the node in it.

use core::array;
use core::net::{IpAddr, Ipv6Addr};

use chappe_core::{Address, OverMac, Purpose, Seed};
use chappe_mac::dot15d4::{Config as MacConfig, Dot15d4};
use chappe_mote::{Mailbox, Place, Sockets};
use chappe_tcplp::host::Host;
use chappe_tcplp::lowpan::{Config, Headers, Interface, Leaf};
use chappe_tcplp::tcp::{self, Local, NewReno, Range, Secret, Sent, Socket};
use chappe_wire::sixlowpan::Context;

/// The prefix of the room's network.
pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0, 1, 0, 0, 0, 0);
/// TCP connections at a time.
const SOCKETS: usize = 2;
/// Two segments of five frames each way.
const BUFFER: usize = 924;
/// Payload and timestamps of a segment of five frames.
const MSS: u16 = 474;

/// A leaf: all packets go to one neighbour. `C` compresses headers behind IPv6's, `()` does not. A node with sleepy children
/// holds `HELD` frames for them.
pub type Node<'a, C = (), const HELD: usize = 0> =
    OverMac<Dot15d4<HELD>, Interface<Host<'a, Sockets<'a>, SOCKETS>, Leaf, 2, 2, 0, 536, C>>;

/// Who a node is, and the network around it.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The number that its addresses are made of.
    pub number: u16,
    /// The number of the neighbour to which all its packets go.
    pub parent: u16,
    /// The network's prefix, of 64 bits.
    pub prefix: Ipv6Addr,
    /// What the network shortens in addresses.
    pub contexts: &'static [Context],
    /// The link layer. A node with `sleep` is a sleepy leaf of its parent.
    pub mac: MacConfig,
    /// From a source of true random numbers, and another one after each start.
    pub secret: [u8; 16],
}

impl Setup {
    /// A node of a network with the standard's parameters, the prefix [`PREFIX`] and no contexts.
    pub fn new(number: u16, parent: u16, secret: [u8; 16]) -> Setup {
        Setup {
            number,
            parent,
            prefix: PREFIX,
            contexts: &[],
            mac: MacConfig {
                retries: 7,
                ..MacConfig::STANDARD
            },
            secret,
        }
    }
}

/// What a node borrows, all of it.
pub struct Memory<'a> {
    send: [[u8; BUFFER]; SOCKETS],
    receive: [[u8; BUFFER]; SOCKETS],
    ranges: [[Range; 4]; SOCKETS],
    flight: [[Sent; 4]; SOCKETS],
    places: [Place; SOCKETS],
    datagrams: [[u8; 160]; 2],
    answers: [[u8; 80]; 2],
    mailboxes: Option<[Mailbox<'a>; 2]>,
    local: Option<Local>,
}

impl Memory<'_> {
    /// Memory that nothing uses.
    pub fn new() -> Self {
        Memory {
            send: [[0; BUFFER]; SOCKETS],
            receive: [[0; BUFFER]; SOCKETS],
            ranges: [[Range::default(); 4]; SOCKETS],
            flight: [[Sent::default(); 4]; SOCKETS],
            places: [Place::FREE; SOCKETS],
            datagrams: [[0; 160]; 2],
            answers: [[0; 80]; 2],
            mailboxes: None,
            local: None,
        }
    }
}

impl Default for Memory<'_> {
    fn default() -> Self {
        Memory::new()
    }
}

/// The global and the link-local address of node `number`.
pub fn addresses(number: u16) -> (Ipv6Addr, Ipv6Addr) {
    let config = Config::new(Address::node(number), PREFIX, 0);
    (config.global(), config.link_local())
}

/// The node of this setup, and what its stack needs to know.
pub fn node<'a, C: Headers, const HELD: usize>(
    memory: &'a mut Memory<'a>,
    setup: &Setup,
    headers: C,
) -> (Node<'a, C, HELD>, &'a Local) {
    let here = Address::node(setup.number);
    let frame_max = setup.mac.caps(0).frame_max;
    let config = Config {
        contexts: setup.contexts,
        ..Config::new(here, setup.prefix, frame_max)
    };
    let local: &Local = memory.local.insert(Local {
        address: IpAddr::V6(config.global()),
        secret: Secret::new(setup.secret),
        config: tcp::Config {
            mss: MSS,
            ..tcp::Config::STANDARD
        },
    });
    let [first, second] = &mut memory.datagrams;
    let [one, other] = &mut memory.answers;
    let mailboxes = [Mailbox::new(first, one), Mailbox::new(second, other)];
    let mailboxes = memory.mailboxes.insert(mailboxes);
    let app = Sockets::new(&mut memory.places, mailboxes);
    let mut sends = memory.send.iter_mut();
    let mut receives = memory.receive.iter_mut();
    let mut ranges = memory.ranges.iter_mut();
    let mut flights = memory.flight.iter_mut();
    let sockets = array::from_fn(|_| {
        let lent = tcp::Memory {
            send: sends.next().map_or(&mut [][..], |part| part),
            receive: receives.next().map_or(&mut [][..], |part| part),
            ranges: ranges.next().map_or(&mut [][..], |part| part),
            flight: flights.next().map_or(&mut [][..], |part| part),
        };
        // It fails for buffers without room only, and these have some.
        Socket::new(local, lent, NewReno).unwrap_or_else(|why| unreachable!("{why:?}"))
    });
    let host = Host::new(local, config.link_local(), sockets, app);
    let seed = Seed(u64::from_le_bytes(
        *setup.secret.first_chunk().unwrap_or(&[0; 8]),
    ));
    let stream = |part| seed.stream(Purpose::Node(part));
    let routes = Leaf {
        node: here,
        parent: Address::node(setup.parent),
    };
    let link = Interface::with_headers(config, host, routes, stream(1), headers);
    (
        OverMac::new(Dot15d4::new(setup.mac, here, stream(0)), link),
        local,
    )
}
