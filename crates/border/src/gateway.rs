//! The border router's IP side: packets from the kernel into the mesh, and back. A value without I/O.
//!
//! ```text
//!   kernel --- TUN --- offer --> [to the mesh] --> poll_packet   6LoWPAN, fragments
//!   kernel <-- TUN --- arrived <-- [to the kernel] <-- handle_packet
//! ```
//!
//! It does what RFC 8200 and RFC 4443 ask of a router: it decrements the hop limit, and sends an error when a packet cannot
//! be forwarded (no such node, hop limit exceeded, too big). RED marks congestion (RFC 3168) before a queue is full. It thins
//! out the kernel's acknowledgements ([`Thinning`]).

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use chappe_core::{Duration, HostNode, Instant, Stream, Wake};
use chappe_emu::Ring;
use chappe_tcplp::lowpan::node_of;
use chappe_tcplp::lowpan::red::{Red, Thresholds, Verdict};
use chappe_wire::icmpv6::{HEADER_LEN as ICMP_HEADER, Message};
use chappe_wire::ipv6::{HEADER_LEN, Header, MTU_MIN, next};

use crate::thinning::{Ruling, Thinning};

/// Largest packet in either direction: what every IPv6 link carries, and what 6LoWPAN is for (RFC 4944, 4).
pub const MTU: usize = MTU_MIN;
/// Length of the queue into the mesh, in packets: TCPlp's window for a few connections. A longer queue would only add delay:
/// at 30 kbit/s a packet of 534 octets takes 140 ms.
const TO_MESH: usize = 16;
/// Length of the queue to the kernel, in packets; the loop empties it at least every millisecond of air time.
const TO_KERNEL: usize = 32;
/// The transmission time of a packet, by which RED's average decays while the queue is empty: five frames over one hop,
/// 7.2 ms each (TCPlp, figure 4a).
const SERVICE: Duration = Duration::from_millis(36);
/// Mean interval between ICMPv6 errors, with bursts of at most ten (RFC 4443, 2.4(f) suggests 10 a second).
const ERROR_INTERVAL: Duration = Duration::from_millis(100);
const ERRORS_AT_ONCE: u64 = 10;
/// Octets of a packet that an error quotes, so that the whole is not larger than [`MTU`] (RFC 4443, 2.4(c)).
const QUOTE_MAX: usize = MTU - HEADER_LEN - ICMP_HEADER;

/// Counters of a gateway, in packets unless stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GatewayCounters {
    /// From the kernel into the mesh.
    pub to_mesh: u64,
    /// Octets from the kernel into the mesh, IPv6 headers included.
    pub bytes_to_mesh: u64,
    /// From the mesh to the kernel.
    pub to_kernel: u64,
    /// Octets from the mesh to the kernel, IPv6 headers included.
    pub bytes_to_kernel: u64,
    /// Marked CE by RED, or dropped by RED because they were not ECN-capable.
    pub early: u64,
    /// Dropped because the queue into the mesh was full.
    pub queue_full: u64,
    /// Dropped because the queue to the kernel was full, or the kernel refused them.
    pub kernel_full: u64,
    /// Not a valid IPv6 packet, from either side.
    pub malformed: u64,
    /// Dropped without an error: multicast, link-local, or a source address from the wrong side.
    pub not_forwarded: u64,
    /// Not forwarded for a reason that an ICMPv6 error reports: no such node, hop limit exceeded, too big, closed port.
    pub refused: u64,
    /// Pings to the gateway's own address, answered.
    pub pings: u64,
    /// TCP acknowledgements from the kernel that were not sent, because a later one said the same and more.
    pub thinned: u64,
}

/// The host side of a border router.
#[derive(Debug)]
pub struct Gateway {
    address: Ipv6Addr,
    link_local: Ipv6Addr,
    kernel: Ipv6Addr,
    /// The numbers of reachable nodes.
    nodes: BTreeSet<u16>,
    to_mesh: Ring,
    to_kernel: Ring,
    red: Red,
    thresholds: Thresholds,
    random: Stream,
    thinning: Thinning,
    /// When the next error would be due if errors were evenly spaced; a burst moves it ahead of the present.
    next_error: Instant,
    counters: GatewayCounters,
}

/// Which side a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Kernel,
    Mesh,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    ToMesh,
    ToKernel,
    /// For the gateway itself.
    Here,
    /// Send back an ICMPv6 error with this type, code and parameter.
    Refuse(u8, u8, u32),
    Drop,
}

/// RFC 4443, 3.1: no route, 3: address unreachable, 4: port unreachable.
const NO_ROUTE: Fate = Fate::Refuse(1, 0, 0);
const NO_NODE: Fate = Fate::Refuse(1, 3, 0);
const NO_PORT: Fate = Fate::Refuse(1, 4, 0);
/// RFC 4443, 3.2 and 3.3.
const TOO_BIG: Fate = Fate::Refuse(2, 0, MTU as u32);
const HOP_LIMIT_EXCEEDED: Fate = Fate::Refuse(3, 0, 0);

impl Gateway {
    /// A gateway with these two addresses, in a mesh where the host has the address `kernel` and `nodes` are reachable.
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
            thinning: Thinning::default(),
            next_error: Instant::ZERO,
            counters: GatewayCounters::default(),
        }
    }

    /// Packets forwarded, marked, dropped and answered so far.
    pub fn counters(&self) -> &GatewayCounters {
        &self.counters
    }

    /// Packets in the queue into the mesh.
    pub fn waiting(&self) -> usize {
        self.to_mesh.len()
    }

    /// Processes a packet from the kernel, which may hold anything.
    pub fn offer(&mut self, now: Instant, packet: &[u8]) {
        self.pass(now, Side::Kernel, packet);
    }

    /// The oldest packet in the queue to the kernel.
    pub fn arrived(&self) -> Option<&[u8]> {
        self.to_kernel.front()
    }

    /// The kernel took the oldest packet: removes it.
    pub fn taken(&mut self) {
        if let Some(packet) = self.to_kernel.front() {
            self.counters.to_kernel += 1;
            self.counters.bytes_to_kernel += packet.len() as u64;
            self.to_kernel.forget(1);
        }
    }

    /// The kernel refused the oldest packet: removes and counts it.
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
            Fate::ToMesh => self.thin(now, &header, packet),
            Fate::ToKernel => {
                self.thinning.arrived(now, &header, packet);
                self.queue_to_kernel(&header, packet);
            }
            Fate::Here => self.answer(now, side, &header, packet),
            refusal @ Fate::Refuse(..) => self.send_error(now, side, &header, packet, refusal),
            Fate::Drop => self.counters.not_forwarded += 1,
        }
    }

    fn judge(&self, side: Side, header: &Header, len: usize) -> Fate {
        let (from, to) = (header.source, header.destination);
        if to == self.address || (to == self.link_local && side == Side::Mesh) {
            return Fate::Here;
        }
        let unroutable = |address: Ipv6Addr| {
            address.is_multicast() || address.is_unspecified() || address.is_loopback()
        };
        if unroutable(from)
            || unroutable(to)
            || to.is_unicast_link_local()
            || from.is_unicast_link_local()
        {
            return Fate::Drop;
        }
        // RFC 2827, ingress filtering: packets from the mesh have a source address of the mesh, and no others do.
        let native = self.is_inside(from) && from != self.kernel;
        if native != (side == Side::Mesh) {
            return Fate::Drop;
        }
        if header.hop_limit <= 1 {
            return HOP_LIMIT_EXCEEDED;
        }
        match side {
            // Nodes of the mesh reach each other without the gateway, so the destination of such a packet does not exist.
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

    /// Queues a packet into the mesh, unless it is an acknowledgement that can wait.
    fn thin(&mut self, now: Instant, header: &Header, packet: &[u8]) {
        let ruling = self.thinning.judge(now, header, packet);
        self.counters.thinned = self.thinning.thinned();
        let Ruling::Pass(held) = ruling else {
            return;
        };
        if let Some(held) = held {
            self.queue_held(now, held.packet());
        }
        self.queue_to_mesh(now, header, packet);
    }

    fn queue_held(&mut self, now: Instant, packet: &[u8]) {
        // It was parsed when it came from the kernel.
        if let Ok(header) = Header::parse(packet) {
            self.queue_to_mesh(now, &header, packet);
        }
    }

    /// Queues a packet into the mesh with the hop limit decremented, and CE-marked if RED asks for it.
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

    /// A packet for the gateway itself: answers pings, and refuses everything else with "port unreachable".
    fn answer(&mut self, now: Instant, side: Side, header: &Header, packet: &[u8]) {
        let upper = packet.get(HEADER_LEN..).unwrap_or_default();
        if header.next_header != next::ICMPV6 {
            return self.send_error(now, side, header, packet, NO_PORT);
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
        self.send_message(side, (header.destination, header.source), &echo);
    }

    /// Sends an error to the sender, unless errors were frequent or the packet was an error itself (RFC 4443, 2.4(e)).
    fn send_error(&mut self, now: Instant, side: Side, header: &Header, packet: &[u8], fate: Fate) {
        self.counters.refused += 1;
        let Fate::Refuse(kind, code, parameter) = fate else {
            return;
        };
        // RFC 4443, 2.1: types below 128 are errors.
        let is_error = header.next_header == next::ICMPV6
            && packet.get(HEADER_LEN).is_none_or(|kind| *kind < 128);
        // A token bucket kept as one time: a bucket of ten is empty when the next error lies ten intervals ahead.
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
        self.send_message(side, (self.address, header.source), &error);
    }

    fn send_message(
        &mut self,
        side: Side,
        (from, to): (Ipv6Addr, Ipv6Addr),
        message: &Message<'_>,
    ) {
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

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(held) = self.thinning.release(now) {
            self.queue_held(now, held.packet());
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let due = self.thinning.due()?;
        Some(Wake {
            at: due,
            why: "acknowledgement held",
        })
    }
}

#[cfg(test)]
mod tests;
