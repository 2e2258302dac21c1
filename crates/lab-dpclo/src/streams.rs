//! TCP over the mesh: a host behind a router, its connections, and their memory.
//!
//! The router's header names source and destination, as an IP header does. So the IPv6 header that this project's TCP
//! writes is omitted on the air, and rebuilt at the other end.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use chappe_core::{Duration, HostNode, Instant, Wake};
use chappe_tcplp::host::{Application, Host};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{
    self, Endpoint, Few, Local, MSS_MIN, Memory, NewReno, Range, Secret, Sent, Socket, State,
};

/// Octets of the omitted IPv6 header.
const V6: usize = 40;
/// The largest number of connections of one node.
pub const CONNECTIONS: usize = 8;
/// The port on which hosts listen; stream n comes from port `FROM + n`.
const PORT: u16 = 5001;
const FROM: u16 = 50_000;
/// Ranges of out-of-order data that each connection keeps.
const RANGES: usize = 16;

/// The parameters of a TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stack {
    /// Whether the window grows by a hundredth of a segment each round trip instead of by one (TCP-FeW).
    pub fractional: bool,
    /// Octets of data in a segment.
    pub segment: u16,
    /// Octets of the send buffer, and of the receive buffer.
    pub window: usize,
    /// Whether extensions are off that ns-2's TCP of the paper lacks: selective acknowledgements, timestamps, RACK, tail
    /// loss probes.
    pub old: bool,
}

impl Stack {
    /// The paper's baseline: ns-2's one-way TCP with a window of 20 segments, an acknowledgement for every segment, and
    /// segments as long as all other packets (Table I).
    pub const fn paper(fractional: bool) -> Stack {
        Stack {
            fractional,
            segment: 200,
            window: 20 * 200,
            old: true,
        }
    }

    /// Today's TCP, for objects, with segments of this length. A window of 16 KiB fills any path of this radio.
    pub const fn today(segment: u16) -> Stack {
        Stack {
            fractional: false,
            segment,
            window: 16_384,
            old: false,
        }
    }

    /// Octets of options in each data segment: the timestamps option, padded (RFC 7323).
    const fn options(&self) -> u16 {
        if self.old { 0 } else { 12 }
    }

    /// The fewest octets of data in a full segment: TCP does not go below its least MSS, options included.
    pub const fn least_segment(&self) -> u16 {
        MSS_MIN - self.options()
    }

    /// Octets of a segment with its header in a packet of the router.
    pub const fn packet(&self) -> u16 {
        20 + self.options() + self.segment
    }

    fn config(&self) -> tcp::Config {
        tcp::Config {
            mss: self.segment + self.options(),
            ecn: false,
            sack: !self.old,
            timestamps: !self.old,
            rack: !self.old,
            tail_loss_probe: !self.old,
            prr: !self.old,
            undo: !self.old,
            ack_every: if self.old { 1 } else { 2 },
            // The default of ns-2's `minrto_`.
            rto_min: Duration::from_millis(200),
            ..tcp::Config::STANDARD
        }
    }

    fn congestion(&self) -> Any {
        match self.fractional {
            true => Any::Few(Few::default()),
            false => Any::NewReno(NewReno),
        }
    }
}

/// The memory of a host's connections, and its address.
pub struct HostMemory {
    local: Local,
    stack: Stack,
    rings: Vec<u8>,
    ranges: Vec<Range>,
    flight: Vec<Sent>,
}

impl HostMemory {
    /// Allocates the memory of the host behind `node`.
    pub fn new(node: u16, stack: Stack) -> HostMemory {
        HostMemory {
            local: Local {
                address: address(node),
                secret: Secret::new([node as u8; 16]),
                config: stack.config(),
            },
            stack,
            rings: vec![0; 2 * stack.window * CONNECTIONS],
            ranges: vec![Range::default(); RANGES * CONNECTIONS],
            flight: vec![Sent::default(); CONNECTIONS * segments(&stack)],
        }
    }
}

/// The largest number of segments in flight. The window counts octets, and the last segment of a burst may be short, so
/// there may be up to twice as many as full segments fit.
fn segments(stack: &Stack) -> usize {
    2 * stack.window / usize::from(stack.segment) + 2
}

fn address(node: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node))
}

/// A stream that this host sends.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The number of the stream.
    pub stream: u16,
    /// The node at its other end.
    pub to: u16,
    /// The object to send; if there is none, an unlimited number of octets.
    pub object: Option<Arc<[u8]>>,
    /// When the host opens the connection.
    pub begin: Instant,
    /// When the host stops writing to it.
    pub end: Instant,
    opened: bool,
    stopped: bool,
    sent: u64,
}

impl Outgoing {
    /// Creates stream number `stream` to node `to`.
    pub fn new(
        (stream, to): (u16, u16),
        object: Option<Arc<[u8]>>,
        (begin, end): (Instant, Instant),
    ) -> Outgoing {
        Outgoing {
            stream,
            to,
            object,
            begin,
            end,
            opened: false,
            stopped: false,
            sent: 0,
        }
    }

    fn len(&self) -> u64 {
        let object = self.object.as_ref();
        object.map_or(u64::MAX, |object| object.len() as u64)
    }

    /// Whether everything is written.
    fn done(&self) -> bool {
        self.stopped || self.sent == self.len()
    }

    fn write(&mut self, now: Instant, socket: &mut Socket<'_, Any>) {
        // Shutting down a connection that is not open yet gives it up (RFC 9293, 3.10.4).
        if self.done() || socket.state() == State::SynSent {
            return;
        }
        if now >= self.end {
            self.stopped = true;
            socket.shutdown();
            return;
        }
        let len = self.len();
        let (front, back) = socket.vacant();
        let mut written = 0;
        for part in [front, back] {
            let from = self.sent + written as u64;
            let fits = (part.len() as u64).min(len - from) as usize;
            match &self.object {
                Some(object) => {
                    part[..fits].copy_from_slice(&object[from as usize..from as usize + fits]);
                }
                None => part[..fits].fill(7),
            }
            written += fits;
        }
        socket.commit(written);
        self.sent += written as u64;
        if self.sent == len {
            socket.shutdown();
        }
    }
}

/// A stream that this host receives.
#[derive(Clone, Debug, Default)]
pub struct Incoming {
    /// The number of the stream.
    pub stream: u16,
    /// Whether to keep a copy of the data.
    pub keep: bool,
    /// The received data, if a copy is kept.
    pub copy: Vec<u8>,
    /// When octets arrived in order, and how many.
    pub arrivals: Vec<(Instant, u32)>,
}

/// The streams of one host.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// The streams that this host sends.
    pub outgoing: Vec<Outgoing>,
    /// The streams that this host receives.
    pub incoming: Vec<Incoming>,
}

impl Streams {
    fn ends(&mut self, socket: &Socket<'_, Any>) -> (Option<&mut Outgoing>, Option<&mut Incoming>) {
        let (local, remote) = (socket.flow().local.port, socket.flow().remote.port);
        let (sends, receives) = (local.checked_sub(FROM), remote.checked_sub(FROM));
        let mut outgoing = self.outgoing.iter_mut();
        let mut incoming = self.incoming.iter_mut();
        (
            outgoing.find(|own| Some(own.stream) == sends),
            incoming.find(|own| Some(own.stream) == receives),
        )
    }
}

impl<'a> Application<'a, Any> for Streams {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a, Any>]) {
        for socket in sockets {
            let (outgoing, incoming) = self.ends(socket);
            let done = match outgoing {
                Some(outgoing) => {
                    outgoing.write(now, socket);
                    outgoing.done()
                }
                None => true,
            };
            let (front, back) = socket.readable();
            let read = front.len() + back.len();
            if let Some(incoming) = incoming.filter(|_| read > 0) {
                incoming.arrivals.push((now, read as u32));
                if incoming.keep {
                    incoming.copy.extend_from_slice(front);
                    incoming.copy.extend_from_slice(back);
                }
            }
            socket.consume(read);
            if socket.at_end() && done {
                socket.close(now);
            }
        }
    }
}

/// A TCP host behind a router. Its IPv6 headers are not sent on the air.
#[derive(Debug)]
pub struct TcpHost<'a> {
    host: Box<Host<'a, Streams, CONNECTIONS, Any>>,
    node: u16,
}

impl<'a> TcpHost<'a> {
    /// Creates the host behind `node` with its streams.
    pub fn new(node: u16, memory: &'a mut HostMemory, streams: Streams) -> TcpHost<'a> {
        let HostMemory {
            local,
            stack,
            rings,
            ranges,
            flight,
        } = memory;
        let local: &'a Local = local;
        let mut rings = rings.chunks_exact_mut(stack.window);
        let mut ranges = ranges.chunks_exact_mut(RANGES);
        let mut flights = flight.chunks_exact_mut(segments(stack));
        let sockets = [(); CONNECTIONS].map(|()| {
            let memory = Memory {
                send: rings.next().unwrap_or_default(),
                receive: rings.next().unwrap_or_default(),
                ranges: ranges.next().unwrap_or_default(),
                flight: flights.next().unwrap_or_default(),
            };
            Socket::new(local, memory, stack.congestion())
                .unwrap_or_else(|why| unreachable!("the memory fits every stack: {why:?}"))
        });
        let mut host = Host::new(local, Ipv6Addr::LOCALHOST, sockets, streams);
        host.listen(PORT);
        let host = Box::new(host);
        TcpHost { host, node }
    }

    /// The streams of this host.
    pub fn streams(&self) -> &Streams {
        self.host.app()
    }

    /// Opens the connections that are due, and handles expired timers.
    pub fn tick(&mut self, now: Instant) {
        for place in 0..self.host.app().outgoing.len() {
            let own = &mut self.host.app_mut().outgoing[place];
            if own.opened || own.begin > now {
                continue;
            }
            own.opened = true;
            let (port, to) = (FROM + own.stream, own.to);
            self.host
                .connect(now, port, Endpoint::new(address(to), PORT));
        }
        if Wake::due(self.host.poll_timeout(), now) {
            self.host.handle_timeout(now);
        }
    }

    /// Handles a segment from node `from`. `room` is scratch space for the rebuilt packet.
    pub fn take(&mut self, now: Instant, from: u16, segment: &[u8], room: &mut [u8]) {
        let len = V6 + segment.len();
        let Some(packet) = room.get_mut(..len) else {
            return;
        };
        let head = head(from, self.node, segment.len());
        packet[..V6].copy_from_slice(&head);
        packet[V6..].copy_from_slice(segment);
        self.host.handle_packet(now, packet);
    }

    /// Returns the next segment to send, with its destination and stream. `room` is scratch space.
    pub fn poll<'r>(&mut self, now: Instant, room: &'r mut [u8]) -> Option<(u16, u16, &'r [u8])> {
        let len = self.host.poll_packet(now, room)?;
        let packet = room.get(..len)?;
        let to = u16::from_be_bytes([*packet.get(38)?, *packet.get(39)?]);
        let ports = packet.get(V6..V6 + 4)?;
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        // One port is `PORT`, the other `FROM` plus the stream, which is always larger.
        let stream = port(0).max(port(2)).checked_sub(FROM)?;
        Some((to, stream, &packet[V6..]))
    }

    /// When the host must be served next.
    pub fn poll_timeout(&self) -> Option<Wake> {
        let streams = self.host.app().outgoing.iter();
        let opens = streams.filter(|own| !own.opened).map(|own| Wake {
            at: own.begin,
            why: "connection opens",
        });
        opens.fold(self.host.poll_timeout(), |first, wake| {
            Wake::earlier(first, Some(wake))
        })
    }
}

/// Rebuilds the omitted IPv6 header.
fn head(from: u16, to: u16, len: usize) -> [u8; V6] {
    let mut head = [0; V6];
    head[0] = 0x60;
    head[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    (head[6], head[7]) = (tcp::PROTOCOL, 64);
    for (at, node) in [(8, from), (24, to)] {
        head[at] = 0xfd;
        head[at + 14..at + 16].copy_from_slice(&node.to_be_bytes());
    }
    head
}
