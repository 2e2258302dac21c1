//! A shared medium without slots or contention, on which tunnels are compared.
//!
//! It is the medium on which the other tunnels were measured: 6 Mbit/s shared by both directions, which take turns by frame,
//! 10 ms one-way delay, and independent loss of frames. Its ends are link nodes, polled for a frame when the medium is free.

use std::collections::BTreeMap;

use chappe_core::{
    Address, Arrival, Bitrate, Classes, Duration, HostNode, Instant, LinkEvent, LinkNode, LinkSend,
    Outcome, Purpose, Seed, Stream, Wake,
};
use chappe_lab::run::RunError;
use chappe_rivals::{Kcp, KcpConfig, KcpNode};
use chappe_tcplp::tcp::{Endpoint, Local};
use chappe_wildnet::{Config, Link, Node, Recovery, Service};

use crate::experiment::{Experiment, Measured, WARM_UP};
use crate::hosts::{BulkApp, PORT, SocketMemory, Stack, WINDOW, local, tcp_host};
use crate::station::TxQueue;
use crate::stream::Flow;
use crate::traffic::Traffic;

/// The rate that both directions share.
pub const RATE: Bitrate = Bitrate(6_000_000);
/// The delay from one end to the other, beside the time on the air.
const DELAY: Duration = Duration::from_millis(10);
/// Octets of the Ethernet header, as the medium counts them.
const ETHERNET: usize = 14;
/// Octets of the UDP and IPv4 headers of a tunnel's datagram.
const UDP_IP: usize = 28;
/// TCP buffers that do not limit the rate. In the measurements, the kernel's buffers grew with the bytes in flight.
const STACK: Stack = Stack {
    window: 4 * WINDOW,
    ..Stack::USUAL
};
/// Octets of a tunnel's frame with a packet of 1500 octets.
const FRAME: usize = 1560;

/// A trial over the medium: endless data from one end to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pipe {
    /// The transport under test.
    pub transport: Transport,
    /// Share of frames lost independently, in either direction.
    pub loss: f64,
    /// How long the run is measured, after the warm-up.
    pub time: Duration,
}

/// A transport, with the recovery below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// TCP without recovery below it.
    Plain,
    /// TCP over a WiLDNet link with this recovery and service.
    Link(Recovery, Service),
    /// A byte stream over KCP.
    Kcp(KcpConfig),
}

impl Experiment for Pipe {
    fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let mut memory = [0, 1].map(|_| SocketMemory::new(STACK.window));
        let locals = [1, 2].map(|number| local(number, STACK));
        let ends = memory.iter_mut().enumerate();
        let ends = ends.map(|(place, memory)| self.end(place, memory, &locals[place]));
        let mut medium = Medium {
            ends: ends.collect(),
            losses: [0, 1].map(|way| seed.stream(Purpose::Trial(way))),
            loss: self.loss,
            now: Instant::ZERO,
            free_at: Instant::ZERO,
            last: 1,
            flying: BTreeMap::new(),
            count: 0,
        };
        medium.ends[0].start(&locals[1]);
        let begin = Instant::ZERO + WARM_UP;
        medium.until(begin);
        let before = medium.ends[1].received();
        medium.until(begin + self.time);
        let octets = medium.ends[1].received() - before;
        Ok(Measured {
            bps: octets as f64 * 8.0 / self.time.as_secs_f64(),
            ..Measured::default()
        })
    }
}

impl Pipe {
    fn end<'a>(&self, place: usize, memory: &'a mut SocketMemory, local: &'a Local) -> End<'a> {
        let peer = Address::node(2 - place as u16);
        let sends = place == 0;
        let app = BulkApp {
            to_send: if sends { u64::MAX } else { 0 },
            ..BulkApp::default()
        };
        match self.transport {
            Transport::Plain => {
                let host = Traffic::Tcp(tcp_host(memory, local, app));
                End::Plain(Box::new(TxQueue::new(host, Address::BROADCAST)))
            }
            Transport::Link(recovery, service) => {
                let config = Config {
                    recovery,
                    services: [service; 4],
                    // The medium does not reorder.
                    reordering: 0,
                    ..Config::tunnel(FRAME)
                };
                let link = Link::new(config, place as u8);
                let link = link.unwrap_or_else(|why| unreachable!("the lab's own: {why}"));
                End::Link(Box::new(Linked {
                    node: Node::new(link, peer, None),
                    host: Traffic::Tcp(tcp_host(memory, local, app)),
                }))
            }
            Transport::Kcp(config) => {
                let kcp = Kcp::new(config);
                let kcp = kcp.unwrap_or_else(|why| unreachable!("the lab's own: {why}"));
                End::Kcp(Box::new(KcpNode::new(kcp, peer)), Flow::new(sends))
            }
        }
    }
}

/// One end of the medium.
enum End<'a> {
    Plain(Box<TxQueue<'a>>),
    Link(Box<Linked<'a>>),
    Kcp(Box<KcpNode>, Flow),
}

/// A host behind a link.
struct Linked<'a> {
    node: Node,
    host: Traffic<'a>,
}

/// The traffic class of all packets.
const SERVICE: usize = 2;

impl Linked<'_> {
    /// Moves packets between link and host until none can move.
    fn pump(&mut self, now: Instant) {
        let mut packet = [0; 2048];
        // Answers to one packet leave before the next is delivered, as from a kernel.
        while let Some(delivery) = self.node.link.deliver(&mut packet) {
            self.host.handle_packet(now, &packet[..delivery.len]);
            self.offer(now);
        }
        self.offer(now);
        self.node.handle_timeout(now);
    }

    fn offer(&mut self, now: Instant) {
        let mut packet = [0; 2048];
        while self.node.link.room(SERVICE) > 0 {
            let Some(len) = self.host.poll_packet(now, &mut packet) else {
                break;
            };
            self.node.link.offer(now, SERVICE, 0, &packet[..len]);
        }
    }
}

impl End<'_> {
    fn start(&mut self, peer: &Local) {
        let hosts = match self {
            End::Plain(wire) => wire.traffic.hosts_mut(),
            End::Link(linked) => linked.host.hosts_mut(),
            End::Kcp(..) => Vec::new(),
        };
        for host in hosts {
            host.connect(Instant::ZERO, 50_000, Endpoint::new(peer.address, PORT));
        }
        self.timeout(Instant::ZERO);
    }

    /// Octets of headers around each frame on the medium.
    fn overhead(&self) -> usize {
        match self {
            End::Plain(_) => ETHERNET,
            End::Link(_) | End::Kcp(..) => ETHERNET + UDP_IP,
        }
    }

    fn handle(&mut self, now: Instant, event: LinkEvent<'_>) {
        match self {
            End::Plain(wire) => wire.handle_link(now, event),
            End::Link(linked) => {
                linked.node.handle_link(now, event);
                linked.pump(now);
            }
            End::Kcp(node, flow) => {
                node.handle_link(now, event);
                flow.drain(&mut node.kcp);
                flow.feed(now, &mut node.kcp);
            }
        }
    }

    fn timeout(&mut self, now: Instant) {
        match self {
            End::Plain(wire) => wire.handle_timeout(now),
            End::Link(linked) => {
                if Wake::due(linked.host.poll_timeout(), now) {
                    linked.host.handle_timeout(now);
                }
                linked.pump(now);
            }
            End::Kcp(node, flow) => {
                flow.feed(now, &mut node.kcp);
                node.handle_timeout(now);
            }
        }
    }

    fn wake(&self) -> Option<Instant> {
        let wake = match self {
            End::Plain(wire) => wire.poll_timeout(),
            End::Link(linked) => {
                let room = linked.node.link.room(SERVICE) > 0;
                let host = linked.host.poll_timeout().filter(|_| room);
                Wake::earlier(linked.node.poll_timeout(), host)
            }
            End::Kcp(node, _) => node.poll_timeout(),
        };
        wake.map(|wake| wake.at)
    }

    fn poll(&mut self, now: Instant, frame: &mut [u8]) -> Option<LinkSend> {
        match self {
            End::Plain(wire) => wire.poll_link(now, Classes::ALL, frame),
            End::Link(linked) => {
                let send = linked.node.poll_link(now, Classes::ALL, frame);
                linked.pump(now);
                send
            }
            End::Kcp(node, _) => node.poll_link(now, Classes::ALL, frame),
        }
    }

    fn pending(&self) -> bool {
        let classes = match self {
            End::Plain(wire) => wire.pending(),
            End::Link(linked) => linked.node.pending(),
            End::Kcp(node, _) => node.pending(),
        };
        !classes.is_empty()
    }

    fn received(&self) -> u64 {
        let of = |host: &Traffic<'_>| -> u64 {
            host.hosts().iter().map(|host| host.app().received).sum()
        };
        match self {
            End::Plain(wire) => of(&wire.traffic),
            End::Link(linked) => of(&linked.host),
            End::Kcp(_, flow) => flow.received,
        }
    }
}

/// The medium with its two ends.
struct Medium<'a> {
    ends: Vec<End<'a>>,
    losses: [Stream; 2],
    loss: f64,
    now: Instant,
    /// When the current frame ends.
    free_at: Instant,
    /// The end that sent last. The other one is polled first, which makes them take turns.
    last: usize,
    /// Frames in flight by time of arrival, with the end that receives them.
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    count: u64,
}

impl Medium<'_> {
    fn until(&mut self, end: Instant) {
        loop {
            self.arrivals();
            self.timeouts();
            self.sendings();
            let Some(next) = self.next().filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
        }
    }

    /// The time of the next event.
    fn next(&self) -> Option<Instant> {
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        let wakes = self.ends.iter().filter_map(End::wake);
        let pending = self.ends.iter().any(End::pending);
        let free = (self.free_at > self.now && pending).then_some(self.free_at);
        let next = wakes.chain(arrival).chain(free).min();
        // Events due now were handled in this round, or wait for the medium. The next round must be later, or time would stop.
        next.map(|next| next.max(self.now + Duration::from_nanos(1)))
    }

    fn arrivals(&mut self) {
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, frame) = entry.remove();
            let [from, to_address] = [1 - to, to].map(|place| Address::node(place as u16 + 1));
            let arrival = Arrival {
                from,
                to: to_address,
                sdu: &frame,
                power: None,
            };
            self.ends[to].handle(self.now, LinkEvent::Received(arrival));
        }
    }

    fn timeouts(&mut self) {
        for end in &mut self.ends {
            if end.wake().is_some_and(|at| at <= self.now) {
                end.timeout(self.now);
            }
        }
    }

    fn sendings(&mut self) {
        let mut frame = [0; 2400];
        for place in [1 - self.last, self.last] {
            if self.free_at > self.now {
                return;
            }
            let end = &mut self.ends[place];
            let Some(send) = end.poll(self.now, &mut frame) else {
                continue;
            };
            let octets = send.len + end.overhead();
            self.free_at = self.now + RATE.time_of(8 * octets as u64);
            self.last = place;
            self.count += 1;
            if !self.losses[place].chance(self.loss) {
                let at = (self.free_at + DELAY, self.count);
                self.flying
                    .insert(at, (1 - place, frame[..send.len].to_vec()));
            }
            // The medium has no ACKs, so the sender learns no more than that the frame was sent.
            let (token, outcome) = (send.token, Outcome::Unconfirmed);
            self.ends[place].handle(self.now, LinkEvent::Sent { token, outcome });
        }
    }
}
