//! Nodes around one channel in virtual time: one frame at a time, each lost by chance on each link.

use std::net::{IpAddr, Ipv4Addr};

use chappe_core::{
    Address, Arrival, Bitrate, Duration, Instant, LinkEvent, LinkNode, LinkSend, Purpose, Seed,
    Stream,
};
use chappe_dpclo::header;
use chappe_live::Membership;
use chappe_mesh::air::Air;
use chappe_mesh::frame::Frame;
use chappe_mesh::node::Node;
use chappe_mesh::packet::Net;
use chappe_mesh::settings::{Hop, NodeConfig};

/// Octets of an SDU that the channel carries.
pub const FRAME_MAX: usize = 2242;

/// A channel that all nodes sense.
pub struct Field {
    pub now: Instant,
    /// Nodes by place; `None` while crashed. Node `n` has the number `n + 1`.
    pub nodes: Vec<Option<Node>>,
    /// Delivery ratio from the row's node to the column's.
    pub ratios: Vec<Vec<f64>>,
    /// What each host has received: time and packet.
    pub received: Vec<Vec<(Instant, Vec<u8>)>>,
    air: Air,
    random: Stream,
    lives: u64,
    seed: Seed,
    behind: Vec<(usize, Net)>,
    /// The place from which the next sender is sought, so that all have their turn.
    turn: usize,
    /// A node that acknowledges what it gets and passes no packet on.
    pub hole: Option<usize>,
    /// Every frame that was sent, if kept.
    pub tape: Option<Vec<(usize, Vec<u8>)>>,
    sdu: Vec<u8>,
}

impl Field {
    pub fn new(ratios: Vec<Vec<f64>>, seed: u64) -> Field {
        Field::with_behind(ratios, seed, Vec::new())
    }

    pub fn with_behind(ratios: Vec<Vec<f64>>, seed: u64, behind: Vec<(usize, Net)>) -> Field {
        let mut field = Field {
            now: Instant::ZERO,
            nodes: Vec::new(),
            received: vec![Vec::new(); ratios.len()],
            ratios,
            air: Air::dot11b(Bitrate(11_000_000)),
            random: Seed(seed).stream(Purpose::Trial(9)),
            lives: 0,
            seed: Seed(seed),
            behind,
            turn: 0,
            hole: None,
            tape: None,
            sdu: vec![0; FRAME_MAX],
        };
        for place in 0..field.ratios.len() {
            let node = field.born(place);
            field.nodes.push(Some(node));
        }
        field
    }

    /// A line in which neighbours hear each other with this ratio.
    pub fn line(nodes: usize, ratio: f64) -> Vec<Vec<f64>> {
        let link = |from: usize, to: usize| if from.abs_diff(to) == 1 { ratio } else { 0.0 };
        (0..nodes)
            .map(|from| (0..nodes).map(|to| link(from, to)).collect())
            .collect()
    }

    fn born(&mut self, place: usize) -> Node {
        self.lives += 1;
        let behind = self.behind.iter().filter(|(at, _)| *at == place);
        let config = NodeConfig {
            number: place as u16 + 1,
            networks: vec![Net::parse("10.77.0.0/16").unwrap()],
            behind: behind.map(|(_, net)| *net).collect(),
            air: self.air,
            hop: Hop::Broadcast,
            size: self.ratios.len() as u16,
            mtu: 1400,
            groups: true,
            video: false,
        };
        let seconds = 1000 + self.lives as u32;
        let seed = self.seed.child(self.lives);
        let mut node = Node::new(config, FRAME_MAX, self.now, seed, seconds).unwrap();
        let members = self.ratios.len() as u16 + 1;
        node.join(Membership::example(place as u16 + 1, members, 7));
        node
    }

    pub fn crash(&mut self, place: usize) {
        self.nodes[place] = None;
    }

    pub fn revive(&mut self, place: usize) {
        let node = self.born(place);
        self.nodes[place] = Some(node);
    }

    pub fn node(&mut self, place: usize) -> &mut Node {
        self.nodes[place].as_mut().unwrap()
    }

    /// A packet of `len` octets with a number, from one host to another.
    pub fn offer(&mut self, from: usize, to: usize, number: u32, len: usize) {
        self.offer_to(from, address(to), number, len);
    }

    pub fn offer_to(&mut self, from: usize, to: IpAddr, number: u32, len: usize) {
        let IpAddr::V4(to) = to else {
            panic!("IPv4 only")
        };
        let IpAddr::V4(source) = address(from) else {
            panic!("IPv4 only")
        };
        let mut packet = vec![0; len.max(32)];
        (packet[0], packet[9]) = (0x45, 17);
        packet[12..16].copy_from_slice(&source.octets());
        packet[16..20].copy_from_slice(&to.octets());
        packet[28..32].copy_from_slice(&number.to_be_bytes());
        let now = self.now;
        self.node(from).offer(now, &packet);
    }

    /// The numbers that a host has received.
    pub fn numbers(&self, place: usize) -> Vec<u32> {
        let packets = self.received[place].iter();
        packets
            .map(|(_, packet)| u32::from_be_bytes(packet[28..32].try_into().unwrap()))
            .collect()
    }

    /// A frame arrives at a node, as if `from` had sent it.
    pub fn inject(&mut self, at: usize, from: u16, sdu: &[u8]) {
        let now = self.now;
        if let Some(node) = &mut self.nodes[at] {
            let arrival = Arrival {
                from: Address::node(from),
                to: Address::BROADCAST,
                sdu,
                power: None,
            };
            node.handle_link(now, LinkEvent::Received(arrival));
        }
    }

    pub fn run(&mut self, until: Instant, mut each: impl FnMut(&mut Field)) {
        while self.now < until {
            each(self);
            if let Some((from, send)) = self.poll() {
                self.carry(from, send);
            } else {
                self.wait(until);
            }
            self.drain();
        }
    }

    /// The next sender's frame; the channel gives each its turn.
    fn poll(&mut self) -> Option<(usize, LinkSend)> {
        for step in 0..self.nodes.len() {
            let place = (self.turn + step) % self.nodes.len();
            let Some(node) = &mut self.nodes[place] else {
                continue;
            };
            node.handle_timeout(self.now);
            let allowed = node.pending();
            if allowed.is_empty() {
                continue;
            }
            if let Some(send) = node.poll_link(self.now, allowed, &mut self.sdu) {
                self.turn = place + 1;
                return Some((place, send));
            }
        }
        None
    }

    fn carry(&mut self, from: usize, send: LinkSend) {
        let mut sdu = self.sdu[..send.len].to_vec();
        if self.hole == Some(from) {
            spoil(&mut sdu);
        }
        self.now += self.air.exchange(send.len);
        if let Some(tape) = &mut self.tape {
            tape.push((from, sdu.clone()));
        }
        for to in 0..self.nodes.len() {
            if to != from && self.random.chance(self.ratios[from][to]) {
                self.inject(to, from as u16 + 1, &sdu);
            }
        }
    }

    /// Nothing is to be sent: time goes to the next deadline.
    fn wait(&mut self, until: Instant) {
        let nodes = self.nodes.iter().flatten();
        let next = nodes
            .filter_map(|node| node.poll_timeout())
            .map(|wake| wake.at)
            .min();
        let least = self.now + Duration::from_micros(50);
        let most = (self.now + Duration::from_millis(1)).min(until.max(least));
        self.now = next.map_or(most, |at| at.clamp(least, most));
    }

    fn drain(&mut self) {
        let mut packet = [0; 2000];
        for (node, received) in self.nodes.iter_mut().zip(&mut self.received) {
            let Some(node) = node else { continue };
            while let Some(len) = node.deliver(&mut packet) {
                received.push((self.now, packet[..len].to_vec()));
            }
        }
    }
}

/// Makes every packet in a frame on its way to another node into nothing, which its receiver acknowledges.
fn spoil(sdu: &mut [u8]) {
    let first = sdu.as_ptr() as usize;
    let frame = Frame::parse(sdu).expect("a node's frame");
    let packets = frame.parts().filter(|part| {
        matches!(
            header::parse(part.body),
            Ok(header::Frame::Data(..) | header::Frame::Priced(..))
        )
    });
    let places = packets.map(|part| (part.body.as_ptr() as usize - first, part.body.len()));
    for (at, len) in places.collect::<Vec<_>>() {
        sdu[at..at + len].fill(0xff);
    }
}

/// The address of the node at a place.
pub fn address(place: usize) -> IpAddr {
    Ipv4Addr::new(10, 77, 0, place as u8 + 1).into()
}

pub fn secs(secs: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(secs)
}
