//! The hosts at the ends of a way: their TCP, and the memory it is lent.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use chappe_core::{Duration, Instant, RadioNode};
use chappe_tcplp::host::{Application, Host};
use chappe_tcplp::tcp::{self, Endpoint, Local, Memory, NewReno, Range, Secret, Sent, Socket};

use super::station::Station;

/// As large as a window without scaling gets: 2007's usual maximum.
pub const WINDOW: usize = 65_535;
const RANGES: usize = 32;
/// Octets of a segment at least, for the number of segments in flight.
const SEGMENT: usize = 1024;
/// Where hosts listen.
pub const PORT: u16 = 5001;

/// What a host sends and what it has received.
#[derive(Clone, Debug, Default)]
pub struct Mail {
    /// What is sent; without it octets without end, once [`to_send`](Self::to_send) says so.
    pub object: Option<Arc<[u8]>>,
    /// Octets to send in all.
    pub to_send: u64,
    /// Octets written so far.
    pub sent: u64,
    /// Octets received.
    pub received: u64,
    /// These octets, if they are wanted.
    pub copy: Option<Vec<u8>>,
    /// When the last ones came.
    pub last: Instant,
}

impl<'a> Application<'a> for Mail {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a>]) {
        if let Some(socket) = sockets.first_mut()
            && self.sent < self.to_send
        {
            let (front, back) = socket.vacant();
            let mut written = 0;
            for part in [front, back] {
                let from = self.sent.saturating_add(written as u64);
                let len = part.len().min((self.to_send - from) as usize);
                match &self.object {
                    Some(object) => {
                        part[..len].copy_from_slice(&object[from as usize..from as usize + len]);
                    }
                    None => part[..len].fill(7),
                }
                written += len;
            }
            socket.commit(written);
            self.sent += written as u64;
            if self.sent == self.to_send {
                socket.shutdown();
            }
        }
        for socket in sockets {
            let (front, back) = socket.readable();
            let read = front.len() + back.len();
            if let Some(copy) = &mut self.copy {
                copy.extend_from_slice(front);
                copy.extend_from_slice(back);
            }
            self.received += read as u64;
            socket.consume(read);
            if read > 0 {
                self.last = now;
            }
            if socket.at_end() && self.sent >= self.to_send {
                socket.close(now);
            }
        }
    }
}

/// What the two sockets of a host are lent.
pub struct Lent {
    window: usize,
    rings: Vec<u8>,
    ranges: Vec<Range>,
    flight: Vec<Sent>,
}

impl Lent {
    /// For one host with buffers of `window` octets.
    pub fn new(window: usize) -> Lent {
        Lent {
            window,
            rings: vec![0; 4 * window],
            ranges: vec![Range::default(); 2 * RANGES],
            flight: vec![Sent::default(); 2 * (window / SEGMENT + 1)],
        }
    }
}

/// What TCP the hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Both buffers, octets.
    pub window: usize,
    /// Whether what came after Linux 2.4 is missing: RACK, tail loss probes, proportional rate reduction, undo.
    pub old: bool,
    /// Segments that one acknowledgement confirms.
    pub ack_every: u8,
}

impl Stack {
    /// Today's TCP with 2007's usual buffers.
    pub const USUAL: Stack = Stack {
        window: WINDOW,
        old: false,
        ack_every: 2,
    };
}

/// Linux's timers of the time (`TCP_RTO_MIN` 200 ms, `TCP_DELACK_MIN` 40 ms), IPv4 packets of 1500 octets on the air.
pub fn local(number: u16, stack: Stack) -> Local {
    Local {
        address: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)),
        secret: Secret::new([number as u8; 16]),
        config: tcp::Config {
            mss: 1460,
            rto_min: Duration::from_millis(200),
            delayed_ack: Duration::from_millis(40),
            window_scale: stack.window > WINDOW,
            ack_every: stack.ack_every,
            rack: !stack.old,
            tail_loss_probe: !stack.old,
            prr: !stack.old,
            undo: !stack.old,
            ..tcp::Config::STANDARD
        },
    }
}

/// A host that listens, and sends as soon as [`start`] tells it to whom.
pub fn tcp_host<'a>(memory: &'a mut Lent, local: &'a Local, mail: Mail) -> Box<Host<'a, Mail, 2>> {
    let mut rings = memory.rings.chunks_exact_mut(memory.window);
    let mut ranges = memory.ranges.chunks_exact_mut(RANGES);
    let flight = memory.flight.len() / 2;
    let mut flights = memory.flight.chunks_exact_mut(flight);
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
    let mut host = Host::new(local, Ipv6Addr::LOCALHOST, sockets, mail);
    host.listen(PORT);
    Box::new(host)
}

/// Opens the connection to the other end, if there is one; lets the first packets be taken.
pub fn start(station: &mut Station<'_>, now: Instant, peer: Option<&Local>) {
    if let (Some(host), Some(peer)) = (station.traffic_mut().host_mut(), peer) {
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
