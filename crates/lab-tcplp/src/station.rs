//! What stands at each place of an LLN: a host, perhaps behind a cable; the next hops; the node made of them.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use chappe_core::{Address, Duration, Expect, HostNode, Instant, OverMac, Stream, Wake};
use chappe_mac::dot15d4::Dot15d4;
use chappe_tcplp::host::{Application, Host};
use chappe_tcplp::lowpan::{Interface, Route, Routes, TcpHeaders, node_of};

use super::addresses::PREFIX;

/// Sockets of a host: the paper's server takes four flows (8.3).
pub const SOCKETS: usize = 4;
/// Frames that wait at a relay.
pub const QUEUE: usize = 16;
/// Frames that a parent holds for its sleepy children.
pub const HELD: usize = 8;
/// Packets that wait between cable and mesh.
const PACKETS: usize = 64;
/// Datagrams of up to IPv6's smallest link.
const MTU: usize = 1280;

/// Layers above the MAC: two datagrams under way, four being put together.
pub type Stack<'a, A> =
    Interface<Gate<'a, A>, Paths, 2, 4, QUEUE, MTU, Option<TcpHeaders<SOCKETS>>>;
/// A node.
pub type Node<'a, A> = OverMac<Dot15d4<HELD>, Stack<'a, A>>;

/// A host, with what lies between it and the mesh: nothing, loss on purpose, or a cable.
#[derive(Debug)]
pub struct Gate<'a, A> {
    /// The host.
    pub host: Host<'a, A, SOCKETS>,
    delay: Duration,
    lose: (f64, f64),
    random: Stream,
    inward: Cable,
    outward: Cable,
    /// The latest moment it was told of.
    now: Instant,
    /// Packets lost on purpose: for the host, and from it.
    pub lost: (u32, u32),
}

/// Packets on their way, in order.
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

    /// The first packet, if it has come through.
    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        let due = self.packets.front().is_some_and(|(at, _)| *at <= now);
        due.then(|| self.packets.pop_front())
            .flatten()
            .map(|(_, packet)| packet)
    }

    /// When the first packet comes through that has not yet.
    fn next(&self, now: Instant) -> Option<Wake> {
        let at = self
            .packets
            .iter()
            .map(|(at, _)| *at)
            .find(|at| *at > now)?;
        Some(Wake { at, why: "cable" })
    }
}

impl<'a, A: Application<'a>> Gate<'a, A> {
    /// `host` behind a cable of this delay one way, zero for none, with losses for the host and from it.
    pub fn new(
        host: Host<'a, A, SOCKETS>,
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

    /// What the host has to send enters the cable.
    fn draw(&mut self, now: Instant) {
        self.now = now;
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

    /// The host's next packet that is not lost.
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

impl<'a, A: Application<'a>> HostNode for Gate<'a, A> {
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
        // There is room in the cable again.
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
        // What has come through and waits for the mesh is asked for by the mesh.
        let cable = Wake::earlier(self.inward.next(self.now), self.outward.next(self.now));
        Wake::earlier(self.host.poll_timeout(), cable)
    }

    fn expects(&self) -> Expect {
        match self.delay {
            Duration::ZERO => self.host.expects(),
            _ => Expect::Nothing,
        }
    }
}

/// Next hops in a tree, by the number of the destination.
#[derive(Clone, Debug)]
pub struct Paths {
    here: usize,
    /// For each node of the tree.
    next: Vec<Address>,
    sleepy: Vec<Address>,
}

impl Paths {
    /// For node `here` of a tree given by each node's next hop towards node 0. `sleepy` are the leaves it holds
    /// frames for.
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

/// Down if `here` lies on the way from `to` to node 0, up otherwise.
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
            // Outside the mesh: by node 0, which hands it to its host.
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

    /// A tree 0 - 1 - (2, 3), 3 - 4: down to whom lies below, up for the rest.
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
    fn what_lies_outside_goes_up_to_the_border() {
        let parents = [0, 0, 1];
        let cloud = super::super::addresses::CLOUD;
        let node = |number| Route::Via(Address::node(number));
        assert_eq!(Paths::new(2, &parents, &[]).route(cloud), node(1));
        assert_eq!(Paths::new(0, &parents, &[]).route(cloud), Route::Here);
    }
}
