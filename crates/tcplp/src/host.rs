//! A host: TCP sockets, UDP and ping over IPv6, below one application.
//!
//! A [`Host`] is a [`HostNode`]: packets go in and out, and after each one the [`Application`] reads, writes and closes. The
//! owner lends the memory of the sockets, as in [`tcp`](crate::tcp); the host adds a few octets.
//!
//! | type | application |
//! |---|---|
//! | [`Services`] | what a mote offers: HTTP, CoAP, iperf3, sink and source |
//! | [`Bulk`] | a bulk transfer in one direction or both |
//! | [`Sense`], [`Collect`] | sense-and-send: readings of a mote, and the server that counts them |
//! | [`Page`], [`Visit`] | a page on a mote, and its visitor by HTTP |

mod bulk;
mod coap;
mod collect;
mod dial;
mod http;
mod iperf;
mod report;
mod sense;
mod services;
mod site;
mod udp;
mod web;

use core::net::{IpAddr, Ipv6Addr};

use chappe_core::{Duration, Expect, HostNode, Instant, Wake};
use chappe_wire::icmpv6::Message;
use chappe_wire::ipv6::{self, Header, Upper, next};

use crate::tcp::{
    Congestion, Ecn, Endpoint, Flags, Flow, Heard, Listener, Local, NewReno, Segment, Socket,
    State, Verdict,
};

pub use bulk::{Bulk, fill, octet};
pub use collect::{Collect, Tally};
pub use sense::{Readings, Sense};
pub use services::{Served, Services, port};
pub use site::BULK_LEN;
pub use udp::{Datagram, Outgoing};
pub use web::{Page, Visit};

/// What runs on a host. Every method has a default: an application implements those it needs.
pub trait Application<'a, C: Congestion = NewReno> {
    /// Called after every packet and deadline: reads what has arrived, writes what fits, closes what is done, and may open connections
    /// with [`connect`].
    fn serve(&mut self, _now: Instant, _sockets: &mut [Socket<'a, C>]) {}

    /// Whether the application listens on this UDP port. Datagrams to other ports are answered by "port unreachable".
    fn has_udp(&self, _port: u16) -> bool {
        true
    }

    /// A UDP datagram arrived for a port of [`has_udp`](Self::has_udp).
    fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram<'_>) {}

    /// Writes the payload of the next UDP datagram to send to the front of `payload`.
    fn poll_datagram(&mut self, _now: Instant, _payload: &mut [u8]) -> Option<Outgoing> {
        None
    }

    /// The application's own deadline may have expired; calling early changes nothing.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// The application's own next deadline.
    fn poll_timeout(&self) -> Option<Wake> {
        None
    }

    /// What the application expects to receive, beside what its sockets do: sets the sleep interval of a leaf.
    fn expects(&self) -> Expect {
        Expect::Nothing
    }
}

/// No application: the host only answers pings.
impl<C: Congestion> Application<'_, C> for () {}

/// Largest ping that is answered, octets of data: the usual 56 and a little; the reply's copy is the host's memory.
const PING_MAX: usize = 64;
/// Codes of "destination unreachable" (RFC 4443 3.1).
const PROHIBITED: u8 = 1;
const NO_PORT: u8 = 4;
/// TCP ports that a host can listen on.
const PORTS_MAX: usize = 8;
/// Octets of a packet that an error quotes: the IPv6 header, and enough of the next one to identify the sender's socket. RFC
/// 4443, 2.4(c), would quote more; a frame of 802.15.4 has no room for it.
const QUOTE: usize = 56;
/// At most one ICMPv6 error in this time (RFC 4443, 2.4(f)).
const ERROR_INTERVAL: Duration = Duration::from_millis(100);
/// Longer than any cookie is valid: two units of 2^36 ns.
const COOKIE_LIFE: Duration = Duration::from_secs(138);
/// The hop limit of packets sent (RFC 8200 leaves it open; IANA recommends 64).
const HOP_LIMIT: u8 = 64;

/// An IPv6 host with `TCP` sockets.
#[derive(Debug)]
pub struct Host<'a, A, const TCP: usize = 1, C: Congestion = NewReno> {
    address: Ipv6Addr,
    link_local: Ipv6Addr,
    sockets: [Socket<'a, C>; TCP],
    listeners: [Option<Listener>; PORTS_MAX],
    app: A,
    /// A bit for each socket whose accepted connection has not received data yet.
    fresh: u32,
    /// The socket that sends next: round robin, so that none starves.
    turn: usize,
    /// A segment without a socket: a reset, or a SYN-ACK with a cookie.
    reply: Option<(Flow, Segment<'static>)>,
    /// When the last cookie was sent: acknowledgements are tried as cookies only while it may come back.
    cookie_at: Option<Instant>,
    pong: Option<Pong>,
    refusal: Option<Refusal>,
    /// No ICMPv6 error is sent before this time.
    quiet_until: Instant,
    counters: Counters,
}

/// An "unreachable" to be sent, with its code.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    code: u8,
    to: Ipv6Addr,
    from: Ipv6Addr,
    len: usize,
    quote: [u8; QUOTE],
}

#[derive(Clone, Copy, Debug)]
struct Pong {
    to: Ipv6Addr,
    from: Ipv6Addr,
    id: u16,
    sequence: u16,
    len: usize,
    data: [u8; PING_MAX],
}

/// Counters of a host. They wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// TCP segments that were handed to a socket.
    pub segments: u32,
    /// UDP datagrams that were handed to the application.
    pub datagrams: u32,
    /// Packets for other hosts, malformed packets, and those for closed ports or unknown protocols.
    pub dropped: u32,
    /// SYNs answered by a cookie, because all sockets were taken by half-open connections.
    pub cookies: u32,
    /// Connections that a cookie opened.
    pub redeemed: u32,
    /// Pings with more than 64 octets, which are refused as "administratively prohibited" instead of answered.
    pub large_pings: u32,
}

impl<'a, A: Application<'a, C>, const TCP: usize, C: Congestion> Host<'a, A, TCP, C> {
    /// A host with the address of `local`, and `link_local` on its link. The sockets should share `local`.
    pub fn new(local: &Local, link_local: Ipv6Addr, sockets: [Socket<'a, C>; TCP], app: A) -> Self {
        let address = match local.address {
            IpAddr::V6(address) => address,
            IpAddr::V4(address) => address.to_ipv6_mapped(),
        };
        Host {
            address,
            link_local,
            sockets,
            listeners: [None; PORTS_MAX],
            app,
            fresh: 0,
            turn: 0,
            reply: None,
            cookie_at: None,
            pong: None,
            refusal: None,
            quiet_until: Instant::ZERO,
            counters: Counters::default(),
        }
    }

    /// Accepts connections on a port, as many as there are free sockets. False if the host listens on eight ports already.
    pub fn listen(&mut self, port: u16) -> bool {
        let known = |place: &Option<Listener>| place.is_none_or(|listener| listener.port == port);
        let place = self.listeners.iter().position(known);
        let place = place.and_then(|place| self.listeners.get_mut(place));
        place
            .map(|place| *place = Some(Listener::new(port, TCP as u16)))
            .is_some()
    }

    /// Opens a connection with the first free socket. False if there is none.
    pub fn connect(&mut self, now: Instant, port: u16, remote: Endpoint) -> bool {
        connect(&mut self.sockets, now, port, remote).is_some()
    }

    /// The application, to inspect it.
    pub fn app(&self) -> &A {
        &self.app
    }

    /// The application, to change it. Call [`serve`](Self::serve) and poll afterwards.
    pub fn app_mut(&mut self) -> &mut A {
        &mut self.app
    }

    /// The sockets, to inspect them.
    pub fn sockets(&self) -> &[Socket<'a, C>] {
        &self.sockets
    }

    /// The sockets, to use them without an application. Poll afterwards.
    pub fn sockets_mut(&mut self) -> &mut [Socket<'a, C>] {
        &mut self.sockets
    }

    /// The sockets and the application, to change both. Poll afterwards.
    pub fn parts_mut(&mut self) -> (&mut [Socket<'a, C>], &mut A) {
        (&mut self.sockets, &mut self.app)
    }

    /// Segments, datagrams and dropped packets so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Lets the application act, after a change from outside.
    pub fn serve(&mut self, now: Instant) {
        self.app.serve(now, &mut self.sockets);
    }

    fn on_segment(&mut self, now: Instant, header: &Header, upper: &[u8]) -> Option<()> {
        let ports: &[u8; 4] = upper.first_chunk()?;
        let &[a, b, c, d] = ports;
        let flow = Flow::new(
            Endpoint::new(IpAddr::V6(header.destination), u16::from_be_bytes([c, d])),
            Endpoint::new(IpAddr::V6(header.source), u16::from_be_bytes([a, b])),
        );
        let segment = Segment::parse_checked(upper, &flow).ok()?;
        let ecn = Ecn::from_bits(header.traffic_class & 3);
        self.counters.segments = self.counters.segments.wrapping_add(1);
        let of_flow = |socket: &Socket<'a, C>| !is_free(socket) && socket.flow() == flow;
        let verdict = match self.sockets.iter().position(of_flow) {
            None => Verdict::Reopen,
            Some(place) => {
                // The request has arrived, or will not: it is no longer expected.
                if !segment.payload.is_empty() || segment.flags.has(Flags::RST) {
                    self.fresh &= !bit(place);
                }
                let socket = self.sockets.get_mut(place)?;
                socket.handle_segment(now, &segment, ecn)
            }
        };
        let heard = match verdict {
            Verdict::Done => return Some(()),
            Verdict::Refuse => Heard::Refuse,
            // Without a listener the port is closed (RFC 9293, 3.10.7.1): everything but a reset is refused.
            Verdict::Reopen => {
                let mut listeners = self.listeners.iter().flatten();
                let ours = listeners.find(|listener| listener.port == flow.local.port);
                ours.map_or(Heard::Refuse, |listener| listener.hear(&segment))
            }
        };
        match heard {
            Heard::Syn => self.on_syn(now, flow, &segment)?,
            Heard::Ignore => {}
            Heard::Refuse if self.redeem(now, flow, &segment, ecn) => {}
            Heard::Refuse => self.reply = segment.reset().map(|reset| (flow, reset)),
        }
        Some(())
    }

    /// A SYN for a listener takes a socket. If the only candidates are half-open, it is answered by a cookie: an attacker's SYNs
    /// could otherwise shut all sockets (RFC 4987). With all sockets connected it is dropped, and the peer tries again.
    fn on_syn(&mut self, now: Instant, flow: Flow, syn: &Segment<'_>) -> Option<()> {
        if let Some(place) = self.vacancy() {
            let socket = self.sockets.get_mut(place)?;
            if socket.state() == State::TimeWait {
                socket.abort();
            }
            socket.accept(now, flow.remote, syn).ok()?;
            self.fresh |= bit(place);
            return Some(());
        }
        let socket = self.sockets.get(self.oldest_half_open()?)?;
        self.reply = Some((flow, socket.answer_by_cookie(now, flow.remote, syn)));
        self.cookie_at = Some(now);
        self.counters.cookies = self.counters.cookies.wrapping_add(1);
        Some(())
    }

    /// Opens a connection for an acknowledgement that brings a cookie back, in a free socket or in place of the half-open connection
    /// that has waited longest. False if it brings none.
    fn redeem(&mut self, now: Instant, flow: Flow, segment: &Segment<'_>, ecn: Ecn) -> bool {
        let recent = |at: Instant| now.saturating_since(at) < COOKIE_LIFE;
        if !self.cookie_at.is_some_and(recent) {
            return false;
        }
        // A socket took this peer's retransmitted SYN after the first one was answered by a cookie.
        let same = |socket: &Socket<'a, C>| socket.half_open().is_some() && socket.flow() == flow;
        let same = self.sockets.iter().position(same);
        let place = same.or_else(|| self.vacancy());
        let place = place.or_else(|| self.oldest_half_open());
        let Some((place, socket)) = place.and_then(|at| Some((at, self.sockets.get_mut(at)?)))
        else {
            return false;
        };
        let opened = socket.accept_cookie(now, flow.remote, segment, ecn);
        if opened {
            self.counters.redeemed = self.counters.redeemed.wrapping_add(1);
            self.fresh &= !bit(place);
            if segment.payload.is_empty() {
                self.fresh |= bit(place);
            }
        }
        opened
    }

    /// A free socket, or else a connection in TIME-WAIT, which makes room for a new one.
    fn vacancy(&self) -> Option<usize> {
        let waits = |socket: &Socket<'a, C>| socket.state() == State::TimeWait;
        let free = self.sockets.iter().position(is_free);
        free.or_else(|| self.sockets.iter().position(waits))
    }

    fn oldest_half_open(&self) -> Option<usize> {
        let sockets = self.sockets.iter().enumerate();
        let half = sockets.filter_map(|(place, socket)| Some((socket.half_open()?, place)));
        half.max().map(|(_, place)| place)
    }

    fn on_ping(&mut self, now: Instant, header: &Header, upper: &[u8], whole: &[u8]) -> Option<()> {
        let message = Message::parse(header.source, header.destination, upper).ok()?;
        let Message::Echo {
            reply: false,
            id,
            sequence,
            data,
        } = message
        else {
            return Some(());
        };
        if data.len() > PING_MAX {
            self.counters.large_pings = self.counters.large_pings.wrapping_add(1);
            self.refuse(now, header, whole, PROHIBITED);
            return None;
        }
        let mut kept = [0; PING_MAX];
        kept.get_mut(..data.len())?.copy_from_slice(data);
        let group = header.destination.is_multicast();
        // One reply at a time: a further ping before it is sent takes its place.
        self.pong = Some(Pong {
            to: header.source,
            // A reply must have a unicast source address (RFC 4443, 4.2).
            from: if group {
                self.link_local
            } else {
                header.destination
            },
            id,
            sequence,
            len: data.len(),
            data: kept,
        });
        Some(())
    }

    /// Prepares an "unreachable", unless the packet was multicast (RFC 4443, 2.4(e)) or errors were frequent.
    fn refuse(&mut self, now: Instant, header: &Header, packet: &[u8], code: u8) {
        if header.destination.is_multicast() || self.refusal.is_some() || now < self.quiet_until {
            return;
        }
        let len = packet.len().min(QUOTE);
        let mut quote = [0; QUOTE];
        quote
            .iter_mut()
            .zip(packet)
            .for_each(|(to, &from)| *to = from);
        self.quiet_until = now + ERROR_INTERVAL;
        self.refusal = Some(Refusal {
            code,
            to: header.source,
            from: header.destination,
            len,
            quote,
        });
    }

    fn take_in(&mut self, now: Instant, whole: &[u8]) -> Option<()> {
        let (header, Upper { protocol, packet }) = ipv6::parse(whole).ok()?;
        let destination = header.destination;
        let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let ours = destination == self.address || destination == self.link_local;
        let group = destination == all_nodes;
        if (!ours && !group) || header.source.is_multicast() || header.source.is_unspecified() {
            return None;
        }
        match protocol {
            next::TCP if ours => self.on_segment(now, &header, packet),
            next::UDP => {
                let datagram = udp::parse(&header, packet)?;
                if !self.app.has_udp(datagram.port) {
                    self.refuse(now, &header, whole, NO_PORT);
                    return None;
                }
                self.counters.datagrams = self.counters.datagrams.wrapping_add(1);
                self.app.handle_datagram(now, datagram);
                Some(())
            }
            next::ICMPV6 => self.on_ping(now, &header, packet, whole),
            _ => None,
        }
    }

    /// Writes the next upper-layer packet behind the room for the IPv6 header. Returns its length, next header, ECN bits and
    /// addresses. Replies go before the sockets' segments, the application's datagrams last.
    fn put_out(&mut self, now: Instant, upper: &mut [u8]) -> Option<(usize, u8, Ecn, Flow)> {
        if let Some((flow, reply)) = self.reply.take() {
            let len = reply.emit(&flow, upper)?;
            return Some((len, next::TCP, Ecn::NotCapable, flow));
        }
        if let Some(pong) = self.pong.take() {
            let echo = Message::Echo {
                reply: true,
                id: pong.id,
                sequence: pong.sequence,
                data: pong.data.get(..pong.len).unwrap_or_default(),
            };
            let len = echo.emit(pong.from, pong.to, upper).ok()?;
            let ends = ends(pong.from, pong.to);
            return Some((len, next::ICMPV6, Ecn::NotCapable, ends));
        }
        if let Some(refusal) = self.refusal.take() {
            let unreachable = Message::Error {
                kind: 1,
                code: refusal.code,
                parameter: 0,
                quote: refusal.quote.get(..refusal.len).unwrap_or_default(),
            };
            let len = unreachable.emit(refusal.from, refusal.to, upper).ok()?;
            let ends = ends(refusal.from, refusal.to);
            return Some((len, next::ICMPV6, Ecn::NotCapable, ends));
        }
        for step in 0..TCP {
            let place = (self.turn + step) % TCP;
            let socket = self.sockets.get_mut(place)?;
            if let Some(sent) = socket.poll_segment(now, upper) {
                self.turn = (place + 1) % TCP;
                return Some((sent.len, next::TCP, sent.ecn, socket.flow()));
            }
        }
        let (app, address) = (&mut self.app, self.address);
        let (len, to) = udp::emit(upper, address, |payload| app.poll_datagram(now, payload))?;
        let ends = ends(address, to);
        Some((len, next::UDP, Ecn::NotCapable, ends))
    }
}

fn ends(from: Ipv6Addr, to: Ipv6Addr) -> Flow {
    let end = |address| Endpoint::new(IpAddr::V6(address), 0);
    Flow::new(end(from), end(to))
}

fn is_free<C: Congestion>(socket: &Socket<'_, C>) -> bool {
    socket.state() == State::Closed && socket.readable().0.is_empty()
}

/// Opens a connection from `port` with the first free one of a host's sockets, and returns its index: for an
/// [`Application`], which has the sockets but not the host. `None` if no socket is free.
/// [`Secret::ephemeral_port`](crate::tcp::Secret::ephemeral_port) chooses a port.
pub fn connect<C: Congestion>(
    sockets: &mut [Socket<'_, C>],
    now: Instant,
    port: u16,
    remote: Endpoint,
) -> Option<usize> {
    let place = sockets.iter().position(is_free)?;
    let socket = sockets.get_mut(place)?;
    socket.connect(now, port, remote).ok().map(|()| place)
}

/// The bit of a socket; sockets beyond 31 have none.
fn bit(place: usize) -> u32 {
    1u32.checked_shl(place as u32).unwrap_or(0)
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(address) => address,
        IpAddr::V4(address) => address.to_ipv6_mapped(),
    }
}

impl<'a, A: Application<'a, C>, const TCP: usize, C: Congestion> HostNode for Host<'a, A, TCP, C> {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        if self.take_in(now, packet).is_none() {
            self.counters.dropped = self.counters.dropped.wrapping_add(1);
        }
        self.serve(now);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        let upper = packet.get_mut(ipv6::HEADER_LEN..)?;
        let (len, next_header, ecn, flow) = self.put_out(now, upper)?;
        let header = Header {
            traffic_class: ecn.bits(),
            flow_label: 0,
            payload_len: len as u16,
            next_header,
            hop_limit: HOP_LIMIT,
            source: v6(flow.local.address()),
            destination: v6(flow.remote.address()),
        };
        header.emit(packet).ok()?;
        Some(ipv6::HEADER_LEN + len)
    }

    fn handle_timeout(&mut self, now: Instant) {
        for socket in &mut self.sockets {
            if Wake::due(socket.poll_timeout(), now) {
                socket.handle_timeout(now);
            }
        }
        if Wake::due(self.app.poll_timeout(), now) {
            self.app.handle_timeout(now);
        }
        self.serve(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.sockets
            .iter()
            .map(Socket::poll_timeout)
            .fold(self.app.poll_timeout(), Wake::earlier)
    }

    //= tcplp 8.1.1: an answer is due after data was sent; a request after a SYN was answered; else nothing
    fn expects(&self) -> Expect {
        let answer = self.sockets.iter().any(Socket::awaits_answer);
        let open = |socket: &Socket<'a, C>| {
            matches!(
                socket.state(),
                State::SynReceived | State::FinWait1 | State::FinWait2
            )
        };
        let request = self.fresh != 0 || self.sockets.iter().any(open);
        let transport = match (answer, request) {
            (true, _) => Expect::Answer,
            (_, true) => Expect::Request,
            _ => Expect::Nothing,
        };
        transport.max(self.app.expects())
    }
}
