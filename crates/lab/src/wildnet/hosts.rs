//! The hosts at the ends of a way: their TCP, and the memory it is lent.

use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Duration, Instant, RadioNode};
use chappe_tcplp::host::{Bulk, Host};
use chappe_tcplp::tcp::{self, Endpoint, Local, Memory, NewReno, Range, Secret, Sent, Socket};

use super::station::Station;

/// Both buffers are as large as a window without scaling gets: 2007's usual maximum.
const WINDOW: usize = 65_535;
const RANGES: usize = 32;
const FLIGHT: usize = 64;
const PORT: u16 = 5001;

/// What the two sockets of a host are lent.
pub struct Lent {
    rings: Vec<u8>,
    ranges: Vec<Range>,
    flight: Vec<Sent>,
}

impl Lent {
    /// For one host.
    pub fn new() -> Lent {
        Lent {
            rings: vec![0; 4 * WINDOW],
            ranges: vec![Range::default(); 2 * RANGES],
            flight: vec![Sent::default(); 2 * FLIGHT],
        }
    }
}

/// Linux's timers of the time (`TCP_RTO_MIN` 200 ms, `TCP_DELACK_MIN` 40 ms), IP packets of 1500 octets.
pub fn local(number: u16) -> Local {
    Local {
        address: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)),
        secret: Secret::new([number as u8; 16]),
        config: tcp::Config {
            mss: 1440,
            rto_min: Duration::from_millis(200),
            delayed_ack: Duration::from_millis(40),
            ..tcp::Config::STANDARD
        },
    }
}

/// A host that listens, and sends as soon as [`start`] tells it to whom.
pub fn tcp_host<'a>(memory: &'a mut Lent, local: &'a Local) -> Box<Host<'a, Bulk, 2>> {
    let mut rings = memory.rings.chunks_exact_mut(WINDOW);
    let mut ranges = memory.ranges.chunks_exact_mut(RANGES);
    let mut flights = memory.flight.chunks_exact_mut(FLIGHT);
    let mut socket = || {
        let memory = Memory {
            send: rings.next().unwrap_or_default(),
            receive: rings.next().unwrap_or_default(),
            ranges: ranges.next().unwrap_or_default(),
            flight: flights.next().unwrap_or_default(),
        };
        Socket::new(local, memory, NewReno).unwrap_or_else(|why| unreachable!("{why:?}"))
    };
    let sockets = [socket(), socket()];
    let mut host = Host::new(local, Ipv6Addr::LOCALHOST, sockets, Bulk::default());
    host.listen(PORT);
    Box::new(host)
}

/// Opens the connection to the other end, if there is one, and writes without end; lets the first packets be taken.
pub fn start(station: &mut Station<'_>, now: Instant, peer: Option<&Local>) {
    if let (Some(host), Some(peer)) = (station.traffic_mut().host_mut(), peer) {
        host.app_mut().to_send = u64::MAX;
        host.connect(now, 50_000, Endpoint::new(peer.address, PORT));
    }
    nudge(station, now);
}

/// Lets a station take packets that have come by another way than its radio.
pub fn nudge(station: &mut Station<'_>, now: Instant) {
    if let Station::Plain(plain) = station {
        plain.link.fill(now);
    }
    station.handle_timeout(now);
}
