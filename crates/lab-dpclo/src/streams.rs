//! TCP over the mesh: a host behind a router, its connections, and the memory that they are lent.
//!
//! The router's header says from which node to which node a packet goes, as IP's would. So the IPv6 header that this
//! project's TCP writes is left out on the air and made anew at the other end.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use chappe_core::{Duration, HostNode, Instant, Wake};
use chappe_tcplp::host::{Application, Host};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{self, Endpoint, Few, Local, Memory, NewReno, Range, Secret, Sent, Socket};

/// Octets of the header that is left out.
const V6: usize = 40;
/// Connections that begin or end at one node at most.
pub const CONNECTIONS: usize = 8;
/// Where hosts listen; stream n comes from `FROM + n`.
const PORT: u16 = 5001;
const FROM: u16 = 50_000;
/// Ranges of data that came out of order, for each connection.
const RANGES: usize = 16;

/// A TCP of which several are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stack {
    /// Whether the window grows by a hundredth of a segment a round trip, and not by one (TCP-FeW).
    pub fractional: bool,
    /// Octets of data in a segment.
    pub segment: u16,
    /// Octets of both buffers.
    pub window: usize,
    /// Whether what came after the paper is missing: selective acknowledgements, timestamps, loss detection by time, tail
    /// loss probes.
    pub old: bool,
}

impl Stack {
    /// What the paper compares with: ns-2's one-way TCP with its window of 20 segments and every segment acknowledged,
    /// segments as long as the packets of all others (Table I).
    pub const fn paper(fractional: bool) -> Stack {
        Stack {
            fractional,
            segment: 200,
            window: 20 * 200,
            old: true,
        }
    }

    /// Today's TCP, for an object in segments of so many octets; a window of 16 KiB fills any path of this radio.
    pub const fn today(segment: u16) -> Stack {
        Stack {
            fractional: false,
            segment,
            window: 16_384,
            old: false,
        }
    }

    /// Octets of options in each segment of data.
    const fn options(&self) -> u16 {
        if self.old { 0 } else { 12 }
    }

    /// Octets that a segment with its header takes in a packet of the router.
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
            // ns-2's `minrto_`.
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

/// What a host's connections are lent, and its address.
pub struct Lent {
    local: Local,
    stack: Stack,
    rings: Vec<u8>,
    ranges: Vec<Range>,
    flight: Vec<Sent>,
}

impl Lent {
    /// For the host behind a node.
    pub fn new(node: u16, stack: Stack) -> Lent {
        Lent {
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

/// Segments that can be in flight: windows are counted in octets, and the last segment of a burst may be short.
fn segments(stack: &Stack) -> usize {
    2 * stack.window / usize::from(stack.segment) + 2
}

fn address(node: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node))
}

/// A stream that begins at this host.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Its number.
    pub stream: u16,
    /// The node at its other end.
    pub to: u16,
    /// What is sent; without it octets without end.
    pub object: Option<Arc<[u8]>>,
    /// When the connection is opened.
    pub begin: Instant,
    /// When no more is written to it.
    pub end: Instant,
    opened: bool,
    stopped: bool,
    sent: u64,
}

impl Outgoing {
    /// Stream `stream` to a node.
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

    /// Whether all is written.
    fn done(&self) -> bool {
        self.stopped || self.sent == self.len()
    }

    fn write(&mut self, now: Instant, socket: &mut Socket<'_, Any>) {
        if self.done() {
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

/// A stream that ends at this host.
#[derive(Clone, Debug, Default)]
pub struct Incoming {
    /// Its number.
    pub stream: u16,
    /// Whether what comes is kept.
    pub keep: bool,
    /// What came, if it is kept.
    pub copy: Vec<u8>,
    /// Octets that came in order, and when.
    pub came: Vec<(Instant, u32)>,
}

/// The streams of one host.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// Those that begin here.
    pub outgoing: Vec<Outgoing>,
    /// Those that end here.
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
                incoming.came.push((now, read as u32));
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

/// A host behind a router, without its headers on the air.
#[derive(Debug)]
pub struct Behind<'a> {
    host: Box<Host<'a, Streams, CONNECTIONS, Any>>,
    node: u16,
}

impl<'a> Behind<'a> {
    /// The host behind `node`.
    pub fn new(node: u16, lent: &'a mut Lent, streams: Streams) -> Behind<'a> {
        let Lent {
            local,
            stack,
            rings,
            ranges,
            flight,
        } = lent;
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
        Behind { host, node }
    }

    /// Its streams.
    pub fn streams(&self) -> &Streams {
        self.host.app()
    }

    /// Opens the connections whose time has come, and meets deadlines.
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

    /// A segment came from a node.
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

    /// The next segment to send, with its receiver and stream; it stands in `room` behind the header that is left out.
    pub fn poll<'r>(&mut self, now: Instant, room: &'r mut [u8]) -> Option<(u16, u16, &'r [u8])> {
        let len = self.host.poll_packet(now, room)?;
        let packet = room.get(..len)?;
        let to = u16::from_be_bytes([*packet.get(38)?, *packet.get(39)?]);
        let ports = packet.get(V6..V6 + 4)?;
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        let stream = port(0).max(port(2)).checked_sub(FROM)?;
        Some((to, stream, &packet[V6..]))
    }

    /// Its next deadline.
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

/// The header that was left out.
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
