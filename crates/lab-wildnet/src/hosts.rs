//! Hosts at the ends of a path: their TCP, its memory, and an application that sends and receives.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use chappe_core::{Duration, Instant};
use chappe_tcplp::host::{Application, Host};
use chappe_tcplp::tcp::{self, Local, Memory, NewReno, Range, Secret, Sent, Socket, State};

/// The largest TCP window without scaling, in octets: the usual maximum of 2007.
pub const WINDOW: usize = 65_535;
/// Ranges out of order that a socket remembers.
const RANGES: usize = 32;
/// The fewest octets of a segment, which bounds the number of segments in flight.
const SEGMENT: usize = 1024;
/// The port on which hosts listen.
pub const PORT: u16 = 5001;

/// A host's application: sends one object or endless data, and counts or keeps what it receives.
#[derive(Clone, Debug, Default)]
pub struct BulkApp {
    /// The object to send. If absent, [`to_send`](Self::to_send) octets of filler are sent.
    pub object: Option<Arc<[u8]>>,
    /// Octets to send in total; `u64::MAX` for endless data.
    pub to_send: u64,
    /// Octets written so far.
    pub sent: u64,
    /// Octets received so far.
    pub received: u64,
    /// The received octets, if the run keeps them.
    pub copy: Option<Vec<u8>>,
    /// When the last octets arrived.
    pub last: Instant,
}

impl<'a> Application<'a> for BulkApp {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a>]) {
        if let Some(socket) = sockets.first_mut()
            && self.sent < self.to_send
            // Shutting down a connection in SYN-SENT gives it up (RFC 9293, 3.10.4).
            && socket.state() != State::SynSent
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

/// Memory of the two sockets of a host.
pub struct SocketMemory {
    window: usize,
    rings: Vec<u8>,
    ranges: Vec<Range>,
    flight: Vec<Sent>,
}

impl SocketMemory {
    /// Memory for one host with buffers of `window` octets.
    pub fn new(window: usize) -> SocketMemory {
        SocketMemory {
            window,
            rings: vec![0; 4 * window],
            ranges: vec![Range::default(); 2 * RANGES],
            flight: vec![Sent::default(); 2 * (window / SEGMENT + 1)],
        }
    }
}

/// The memory of all hosts, lent to their sockets for a run.
pub struct HostMemory {
    /// Socket memory, by host.
    pub sockets: Vec<SocketMemory>,
    /// Addresses and TCP settings, by host.
    pub locals: Vec<Local>,
}

impl HostMemory {
    /// Memory for hosts with these numbers and the same TCP.
    pub fn new(hosts: &[u16], stack: Stack) -> HostMemory {
        let sockets = hosts.iter().map(|_| SocketMemory::new(stack.window));
        let locals = hosts.iter().map(|&number| local(number, stack));
        HostMemory {
            sockets: sockets.collect(),
            locals: locals.collect(),
        }
    }
}

/// Settings of the hosts' TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Octets of the send buffer, and of the receive buffer.
    pub window: usize,
    /// Whether TCP lacks what came after Linux 2.4: RACK, tail loss probes, proportional rate reduction, undo.
    pub old: bool,
    /// Segments for each acknowledgement.
    pub ack_every: u8,
}

impl Stack {
    /// Today's TCP with the usual buffers of 2007.
    pub const USUAL: Stack = Stack {
        window: WINDOW,
        old: false,
        ack_every: 2,
    };
}

/// A host's address and TCP settings: Linux's timers (`TCP_RTO_MIN` 200 ms, `TCP_DELACK_MIN` 40 ms), IPv4 packets of 1500
/// octets on the air.
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

/// A host that listens. It sends as soon as its socket is connected.
pub fn tcp_host<'a>(
    memory: &'a mut SocketMemory,
    local: &'a Local,
    app: BulkApp,
) -> Box<Host<'a, BulkApp, 2>> {
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
    // One socket for the connection that the host opens, one for the connection that it accepts.
    let sockets = [socket(), socket()];
    let mut host = Host::new(local, Ipv6Addr::LOCALHOST, sockets, app);
    host.listen(PORT);
    Box::new(host)
}
