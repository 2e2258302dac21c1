//! The nodes of an LLN: a host, its cable or injected loss ([`Gate`]), the next hops ([`Paths`]), and the stack of these.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use chappe_core::{Address, Duration, Expect, HostNode, Instant, OverMac, Stream, Wake};
use chappe_mac::dot15d4::Dot15d4;
use chappe_tcplp::host::Host;
use chappe_tcplp::lowpan::{Interface, Route, Routes, TcpHeaders, node_of};

use super::addresses::PREFIX;
use super::app::App;

/// Sockets of each host: the paper's server has four flows (8.3).
pub const SOCKETS: usize = 4;
/// The length of a relay's queue, in frames.
pub const QUEUE: usize = 16;
/// Frames that a parent holds for its sleeping children.
pub const HELD: usize = 8;
/// Sleeping children of a parent: as many as a border router has motes.
pub const CHILDREN: usize = 128;
/// Packets in the cable from the host.
const PACKETS: usize = 64;
/// The largest datagram: IPv6's minimum MTU (RFC 8200, 5).
const MTU: usize = 1280;

/// The layers above the MAC: two datagrams being sent, four being reassembled.
pub type Stack<'a> = Interface<Gate<'a>, Paths, 2, 4, QUEUE, MTU, Option<TcpHeaders<SOCKETS>>>;
/// A node: the 802.15.4 MAC below 6LoWPAN and the host.
pub type Node<'a> = OverMac<Dot15d4<HELD, CHILDREN>, Stack<'a>>;

/// A host, and the cable or the injected loss between it and the mesh.
#[derive(Debug)]
pub struct Gate<'a> {
    /// The host, with its sockets and application.
    pub host: Host<'a, App, SOCKETS>,
    delay: Duration,
    lose: (f64, f64),
    random: Stream,
    inward: Cable,
    outward: Cable,
    /// The time of the latest event.
    now: Instant,
    /// Injected losses: packets to the host, and packets from it.
    pub lost: (u32, u32),
}

/// The packets in one direction of the cable, in order. Spare buffers save an allocation per packet.
#[derive(Debug, Default)]
struct Cable {
    packets: VecDeque<(Instant, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl Cable {
    fn push(&mut self, at: Instant, packet: &[u8]) {
        let mut room = self.spare.pop().unwrap_or_default();
        room.clear();
        room.extend_from_slice(packet);
        self.packets.push_back((at, room));
    }

    /// The first packet, if its delay is over.
    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        let due = self.packets.front().is_some_and(|(at, _)| *at <= now);
        due.then(|| self.packets.pop_front())
            .flatten()
            .map(|(_, packet)| packet)
    }

    /// The end of the next delay. Packets that are through wait for the mesh to poll, which needs no timer.
    fn next(&self, now: Instant) -> Option<Wake> {
        let at = self
            .packets
            .iter()
            .map(|(at, _)| *at)
            .find(|at| *at > now)?;
        Some(Wake { at, why: "cable" })
    }
}

impl<'a> Gate<'a> {
    /// `host` behind a cable with this one-way delay, zero for none. `lose` are the shares of packets to the host and from
    /// it that are dropped.
    pub fn new(
        host: Host<'a, App, SOCKETS>,
        delay: Duration,
        lose: (f64, f64),
        random: Stream,
    ) -> Self {
        Gate {
            host,
            delay,
            lose,
            random,
            inward: Cable::default(),
            outward: Cable::default(),
            now: Instant::ZERO,
            lost: (0, 0),
        }
    }

    /// Puts a packet at the end of a cable that has a delay, as if it came from the host; it leaves at `at`.
    pub fn hold(&mut self, at: Instant, packet: &[u8]) {
        self.outward.push(at, packet);
    }

    /// Moves packets from the host into the cable.
    fn draw(&mut self, now: Instant) {
        self.now = now;
        // Without a cable the mesh polls the host directly (`take`).
        if self.delay == Duration::ZERO {
            return;
        }
        let mut packet = [0; MTU];
        while self.outward.packets.len() < PACKETS
            && let Some(len) = self.host.poll_packet(now, &mut packet)
        {
            self.outward.push(now + self.delay, &packet[..len]);
        }
    }

    /// The next packet from the host that is not dropped.
    fn take(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        loop {
            let len = match self.delay {
                Duration::ZERO => self.host.poll_packet(now, packet)?,
                _ => {
                    let arrived = self.outward.arrived(now)?;
                    packet.get_mut(..arrived.len())?.copy_from_slice(&arrived);
                    let len = arrived.len();
                    self.outward.spare.push(arrived);
                    len
                }
            };
            if !self.random.chance(self.lose.1) {
                return Some(len);
            }
            self.lost.1 += 1;
        }
    }
}

impl HostNode for Gate<'_> {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        if self.random.chance(self.lose.0) {
            self.lost.0 += 1;
        } else if self.delay == Duration::ZERO {
            self.host.handle_packet(now, packet);
        } else {
            self.inward.push(now + self.delay, packet);
        }
        self.draw(now);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        self.draw(now);
        let len = self.take(now, packet);
        // The packet taken left room in the cable.
        self.draw(now);
        len
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(packet) = self.inward.arrived(now) {
            self.host.handle_packet(now, &packet);
            self.inward.spare.push(packet);
        }
        if Wake::due(self.host.poll_timeout(), now) {
            self.host.handle_timeout(now);
        }
        self.draw(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let cable = Wake::earlier(self.inward.next(self.now), self.outward.next(self.now));
        Wake::earlier(self.host.poll_timeout(), cable)
    }

    fn expects(&self) -> Expect {
        match self.delay {
            Duration::ZERO => self.host.expects(),
            // A host behind a cable is not on the mote, so its expectations do not concern the mote's sleep.
            _ => Expect::Nothing,
        }
    }
}

/// Next hops in a tree, by the number of the destination.
#[derive(Clone, Debug)]
pub struct Paths {
    here: usize,
    /// The next hop to each node of the tree.
    next: Vec<Address>,
    sleepy: Vec<Address>,
}

impl Paths {
    /// The next hops from node `here`. `parents` has each node's next hop towards node 0; `sleepy` are the leaves that `here`
    /// holds frames for.
    pub fn new(here: usize, parents: &[usize], sleepy: &[usize]) -> Paths {
        let number = |node: usize| Address::node(node as u16);
        let next = (0..parents.len()).map(|to| number(next_hop(here, to, parents)));
        Paths {
            here,
            next: next.collect(),
            sleepy: sleepy.iter().copied().map(number).collect(),
        }
    }

    fn towards(&self, node: usize) -> Route {
        match self.next.get(node) {
            _ if node == self.here => Route::Here,
            Some(&next) => Route::Via(next),
            None => Route::Nowhere,
        }
    }
}

/// The child of `here` on the path if `here` is between `to` and node 0, its parent otherwise.
fn next_hop(here: usize, to: usize, parents: &[usize]) -> usize {
    let up = |node: usize| parents.get(node).copied().unwrap_or(0);
    let mut at = to;
    for _ in 0..parents.len() {
        match up(at) {
            _ if at == 0 => break,
            parent if parent == here => return at,
            parent => at = parent,
        }
    }
    up(here)
}

impl Routes for Paths {
    fn route(&self, destination: Ipv6Addr) -> Route {
        let local = destination.is_unicast_link_local();
        let inside = local || destination.segments()[..4] == PREFIX.segments()[..4];
        let node = node_of(destination).filter(|_| inside);
        let number = node.and_then(Address::node_number).map(usize::from);
        match (node, number) {
            (Some(_), Some(number)) if number == self.here => Route::Here,
            (Some(node), _) if local => Route::Via(node),
            (_, Some(number)) => self.towards(number),
            // Outside the mesh: through node 0, which passes the packet to its host.
            _ => self.towards(0),
        }
    }

    fn is_sleepy(&self, neighbour: Address) -> bool {
        self.sleepy.contains(&neighbour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree 0 - 1 - (2, 3), 3 - 4: packets go down to descendants and up to all other nodes.
    #[test]
    fn next_hops_follow_the_tree() {
        let parents = [0, 0, 1, 1, 3];
        let hops = |here| {
            (0..5)
                .map(|to| next_hop(here, to, &parents))
                .collect::<Vec<_>>()
        };
        assert_eq!(hops(0), [0, 1, 1, 1, 1]);
        assert_eq!(hops(1), [0, 0, 2, 3, 3]);
        assert_eq!(hops(4), [3, 3, 3, 3, 3]);
    }

    #[test]
    fn packets_to_the_outside_go_to_the_border_router() {
        let parents = [0, 0, 1];
        let cloud = super::super::addresses::CLOUD;
        let node = |number| Route::Via(Address::node(number));
        assert_eq!(Paths::new(2, &parents, &[]).route(cloud), node(1));
        assert_eq!(Paths::new(0, &parents, &[]).route(cloud), Route::Here);
    }
}
