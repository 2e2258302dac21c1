//! The border router's IP side: a packet of the kernel's on its way into the mesh, and the other way.
//!
//! ```text
//!   kernel --- TUN --- offer --> [to the mesh] --> poll_packet   6LoWPAN, fragments
//!   kernel <-- TUN --- arrived <-- [to the kernel] <-- handle_packet
//! ```
//!
//! It does what RFC 8200 and RFC 4443 ask of a router: one hop less, and a message to the sender when a packet cannot go
//! on (no such node, hops used up, too big). Congestion is marked as RFC 3168 has it, by RED, before a queue is full.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use chappe_core::{Duration, HostNode, Instant, Stream, Wake};
use chappe_emu::Ring;
use chappe_tcplp::lowpan::node_of;
use chappe_tcplp::lowpan::red::{Red, Thresholds, Verdict};
use chappe_wire::icmpv6::{HEADER_LEN as ICMP_HEADER, Message};
use chappe_wire::ipv6::{HEADER_LEN, Header, MTU_MIN, next};

/// Largest packet in either direction: what every IPv6 link carries, and what 6LoWPAN is for (RFC 4944, 4).
pub const MTU: usize = MTU_MIN;
/// Packets that wait for the mesh: a window of TCPlp's for each of a few connections. Longer queues would only add
/// delay: at 30 kbit/s a packet of 534 octets takes 140 ms.
const TO_MESH: usize = 16;
/// Packets that wait for the kernel; the loop hands them over at least every millisecond of air time.
const TO_KERNEL: usize = 32;
/// The time a packet takes through the mesh, by which RED's average decays when the queue is empty: a segment of five
/// frames at one hop, 7.2 ms each (TCPlp, figure 4a).
const SERVICE: Duration = Duration::from_millis(36);
/// Errors are told as often as this, ten at once at most (RFC 4443, 2.4(f): 10 a second are suggested).
const ERROR_INTERVAL: Duration = Duration::from_millis(100);
const ERRORS_AT_ONCE: u64 = 10;
/// Octets of a packet that an error quotes, so that the whole is not larger than [`MTU`] (RFC 4443, 2.4(c)).
const QUOTE_MAX: usize = MTU - HEADER_LEN - ICMP_HEADER;

/// What a gateway did, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GatewayCounters {
    /// From the kernel into the mesh.
    pub to_mesh: u64,
    /// Octets of them.
    pub bytes_to_mesh: u64,
    /// From the mesh to the kernel.
    pub to_kernel: u64,
    /// Octets of them.
    pub bytes_to_kernel: u64,
    /// Marked as having met congestion, or lost to RED since they could not be marked.
    pub early: u64,
    /// Lost since the queue into the mesh was full.
    pub queue_full: u64,
    /// Lost since the room for the kernel was full.
    pub kernel_full: u64,
    /// What is no IPv6 packet, from either side.
    pub malformed: u64,
    /// To groups, or to and from addresses that mean nothing here.
    pub not_forwarded: u64,
    /// Packets that an error told of: no such node, hops used up, too big.
    pub refused: u64,
    /// Pings that the gateway answered itself.
    pub pings: u64,
}

/// The host side of a border router.
#[derive(Debug)]
pub struct Gateway {
    address: Ipv6Addr,
    link_local: Ipv6Addr,
    kernel: Ipv6Addr,
    /// Numbers of the nodes that can be reached.
    nodes: BTreeSet<u16>,
    to_mesh: Ring,
    to_kernel: Ring,
    red: Red,
    thresholds: Thresholds,
    random: Stream,
    /// When an error would be told if they were evenly spaced: ahead of the time by as much as were told at once.
    next_error: Instant,
    counters: GatewayCounters,
}

/// Which side a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Kernel,
    Mesh,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    ToMesh,
    ToKernel,
    /// For the gateway itself.
    Here,
    /// An error with this type, code and parameter goes back.
    Refuse(u8, u8, u32),
    Drop,
}

/// RFC 4443, 3.1: no route, 3: address unreachable, 4: port unreachable.
const NO_ROUTE: Fate = Fate::Refuse(1, 0, 0);
const NO_NODE: Fate = Fate::Refuse(1, 3, 0);
const NO_PORT: Fate = Fate::Refuse(1, 4, 0);
/// RFC 4443, 3.2 and 3.3.
const TOO_BIG: Fate = Fate::Refuse(2, 0, MTU as u32);
const HOPS_USED_UP: Fate = Fate::Refuse(3, 0, 0);

impl Gateway {
    /// The gateway of a mesh in which `address` is its own, `kernel` the host's, and `nodes` can be reached.
    pub fn new(
        (address, link_local): (Ipv6Addr, Ipv6Addr),
        kernel: Ipv6Addr,
        nodes: impl IntoIterator<Item = u16>,
        random: Stream,
    ) -> Gateway {
        Gateway {
            address,
            link_local,
            kernel,
            nodes: nodes.into_iter().collect(),
            to_mesh: Ring::new(TO_MESH, MTU),
            to_kernel: Ring::new(TO_KERNEL, MTU),
            red: Red::default(),
            thresholds: Thresholds {
                service: SERVICE,
                ..Thresholds::of(TO_MESH as u16)
            },
            random,
            next_error: Instant::ZERO,
            counters: GatewayCounters::default(),
        }
    }

    /// What it did.
    pub fn counters(&self) -> &GatewayCounters {
        &self.counters
    }

    /// Packets that wait for the mesh.
    pub fn waiting(&self) -> usize {
        self.to_mesh.len()
    }

    /// A packet of the kernel's. Outside data.
    pub fn offer(&mut self, now: Instant, packet: &[u8]) {
        self.pass(now, Side::Kernel, packet);
    }

    /// The oldest packet for the kernel.
    pub fn arrived(&self) -> Option<&[u8]> {
        self.to_kernel.front()
    }

    /// The oldest packet for the kernel has been handed over.
    pub fn taken(&mut self) {
        if let Some(packet) = self.to_kernel.front() {
            self.counters.to_kernel += 1;
            self.counters.bytes_to_kernel += packet.len() as u64;
            self.to_kernel.forget(1);
        }
    }

    /// The kernel did not take it.
    pub fn refused(&mut self) {
        self.counters.kernel_full += 1;
        self.to_kernel.forget(1);
    }

    fn pass(&mut self, now: Instant, side: Side, packet: &[u8]) {
        let header = Header::parse(packet).ok();
        let whole = |header: &Header| usize::from(header.payload_len) + HEADER_LEN == packet.len();
        let Some(header) = header.filter(whole) else {
            self.counters.malformed += 1;
            return;
        };
        match self.judge(side, &header, packet.len()) {
            Fate::ToMesh => self.queue_to_mesh(now, &header, packet),
            Fate::ToKernel => self.queue_to_kernel(&header, packet),
            Fate::Here => self.answer(now, side, &header, packet),
            refusal @ Fate::Refuse(..) => self.tell(now, side, &header, packet, refusal),
            Fate::Drop => self.counters.not_forwarded += 1,
        }
    }

    fn judge(&self, side: Side, header: &Header, len: usize) -> Fate {
        let (from, to) = (header.source, header.destination);
        if to == self.address || (to == self.link_local && side == Side::Mesh) {
            return Fate::Here;
        }
        let strange = |address: Ipv6Addr| {
            address.is_multicast() || address.is_unspecified() || address.is_loopback()
        };
        if strange(from)
            || strange(to)
            || to.is_unicast_link_local()
            || from.is_unicast_link_local()
        {
            return Fate::Drop;
        }
        // RFC 2827: what comes from the mesh bears an address of the mesh, and nothing else does.
        let native = self.is_inside(from) && from != self.kernel;
        if native != (side == Side::Mesh) {
            return Fate::Drop;
        }
        if header.hop_limit <= 1 {
            return HOPS_USED_UP;
        }
        match side {
            // Nodes of the mesh reach each other without the gateway; what still comes here has no place there.
            Side::Mesh if to != self.kernel && self.is_inside(to) => NO_NODE,
            Side::Mesh => Fate::ToKernel,
            Side::Kernel if !self.is_inside(to) => NO_ROUTE,
            Side::Kernel if !self.is_node(to) => NO_NODE,
            Side::Kernel if len > MTU => TOO_BIG,
            Side::Kernel => Fate::ToMesh,
        }
    }

    fn is_inside(&self, address: Ipv6Addr) -> bool {
        u128::from(address) >> 64 == u128::from(self.address) >> 64
    }

    fn is_node(&self, address: Ipv6Addr) -> bool {
        let node = node_of(address).and_then(|node| node.node_number());
        node.is_some_and(|node| self.nodes.contains(&node))
    }

    /// Into the mesh with one hop less, and marked if the queue is long of late.
    fn queue_to_mesh(&mut self, now: Instant, header: &Header, packet: &[u8]) {
        let mut onward = Header {
            hop_limit: header.hop_limit - 1,
            ..*header
        };
        let waiting = self.to_mesh.len();
        let verdict = self
            .red
            .judge(now, waiting, &self.thresholds, &mut self.random);
        if verdict == Verdict::Notify {
            self.counters.early += 1;
            if onward.traffic_class & 3 == 0 {
                return;
            }
            onward.traffic_class |= 3;
        }
        match self.to_mesh.push(|room| write(room, &onward, packet)) {
            true => {
                self.counters.to_mesh += 1;
                self.counters.bytes_to_mesh += packet.len() as u64;
            }
            false => self.counters.queue_full += 1,
        }
    }

    fn queue_to_kernel(&mut self, header: &Header, packet: &[u8]) {
        let onward = Header {
            hop_limit: header.hop_limit - 1,
            ..*header
        };
        if !self.to_kernel.push(|room| write(room, &onward, packet)) {
            self.counters.kernel_full += 1;
        }
    }

    /// Something for the gateway itself: pings are answered, the rest finds no port.
    fn answer(&mut self, now: Instant, side: Side, header: &Header, packet: &[u8]) {
        let upper = packet.get(HEADER_LEN..).unwrap_or_default();
        if header.next_header != next::ICMPV6 {
            return self.tell(now, side, header, packet, NO_PORT);
        }
        let Ok(Message::Echo {
            reply: false,
            id,
            sequence,
            data,
        }) = Message::parse(header.source, header.destination, upper)
        else {
            return;
        };
        let echo = Message::Echo {
            reply: true,
            id,
            sequence,
            data,
        };
        self.counters.pings += 1;
        self.say(side, (header.destination, header.source), &echo);
    }

    /// An error to the sender, unless errors have been frequent or the packet was one itself (RFC 4443, 2.4(e)).
    fn tell(&mut self, now: Instant, side: Side, header: &Header, packet: &[u8], fate: Fate) {
        self.counters.refused += 1;
        let Fate::Refuse(kind, code, parameter) = fate else {
            return;
        };
        // Types below 128 are errors.
        let is_error = header.next_header == next::ICMPV6
            && packet.get(HEADER_LEN).is_none_or(|kind| *kind < 128);
        if is_error || self.next_error > now + ERROR_INTERVAL * (ERRORS_AT_ONCE - 1) {
            return;
        }
        self.next_error = self.next_error.max(now) + ERROR_INTERVAL;
        let quote = packet
            .get(..packet.len().min(QUOTE_MAX))
            .unwrap_or_default();
        let error = Message::Error {
            kind,
            code,
            parameter,
            quote,
        };
        self.say(side, (self.address, header.source), &error);
    }

    fn say(&mut self, side: Side, (from, to): (Ipv6Addr, Ipv6Addr), message: &Message<'_>) {
        let ring = match side {
            Side::Kernel => &mut self.to_kernel,
            Side::Mesh => &mut self.to_mesh,
        };
        ring.push(|room| {
            let len = message.emit(from, to, room.get_mut(HEADER_LEN..)?).ok()?;
            let header = Header {
                traffic_class: 0,
                flow_label: 0,
                payload_len: len as u16,
                next_header: next::ICMPV6,
                hop_limit: 64,
                source: from,
                destination: to,
            };
            header.emit(room).ok()?;
            Some(HEADER_LEN + len)
        });
    }
}

fn write(room: &mut [u8], header: &Header, packet: &[u8]) -> Option<usize> {
    room.get_mut(..packet.len())?.copy_from_slice(packet);
    header.emit(room).ok()?;
    Some(packet.len())
}

impl HostNode for Gateway {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.pass(now, Side::Mesh, packet);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        let first = self.to_mesh.front()?;
        let len = first.len();
        packet.get_mut(..len)?.copy_from_slice(first);
        self.to_mesh.forget(1);
        if self.to_mesh.is_empty() {
            self.red.emptied(now);
        }
        Some(len)
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

#[cfg(test)]
mod tests;
