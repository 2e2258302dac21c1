//! Simulated hosts that load a network as a kernel does: they forward packets on the same routes and through the same
//! queues, and send as a saturating UDP sender or as a TCP.
//!
//! They predict the goodput of programs in `chappe emu`, where the same radios, MACs and queues carry the kernel's own
//! packets.

mod packet;
mod receiver;
mod sender;

use chappe_core::{Address, Classes, Instant, LinkEvent, LinkNode, LinkSend, OverMac, Wake};
use chappe_emu::Bridge;
use chappe_mac::dot11::Edca;

use packet::HEADER;

pub use packet::{BLOCKS, Packet};
pub use receiver::Receiver;
pub use sender::Sender;

/// Channel access with a model host on it.
pub type ModelStation = OverMac<Edca, ModelHost>;

/// Octets of the IPv4 and UDP headers.
pub const UDP_HEADERS: usize = 20 + 8;
/// Octets of the IPv4 and TCP headers with the timestamps option, as Linux sends them.
pub const TCP_HEADERS: usize = 20 + 20 + 12;

/// The role of a host, besides forwarding packets.
#[derive(Clone, Debug)]
pub enum Role {
    /// Forwards packets and does nothing else.
    Relay,
    /// Keeps its queue full of packets of the MTU for one node, like a UDP sender that is always too fast.
    Flood {
        /// The node that receives the packets.
        to: usize,
        /// The number of packets created so far.
        made: u32,
    },
    /// Counts the octets of UDP payload that arrive.
    Sink {
        /// The number of octets so far.
        octets: u64,
    },
    /// A TCP sender with an unlimited amount of data.
    Sender(Box<Sender>),
    /// A TCP receiver for one sender.
    Receiver(Box<Receiver>),
}

/// A simulated host: the bridge of its interface, its routes and its role.
#[derive(Clone, Debug)]
pub struct ModelHost {
    bridge: Bridge,
    me: usize,
    next: Vec<Option<usize>>,
    role: Role,
    queue: usize,
    scratch: Vec<u8>,
}

impl ModelHost {
    /// Creates host `me`, which reaches node `n` through the neighbour `next[n]`. `queue` is the length of the bridge's queue
    /// in frames.
    pub fn new(
        bridge: Bridge,
        me: usize,
        next: Vec<Option<usize>>,
        queue: usize,
        role: Role,
    ) -> ModelHost {
        let scratch = vec![0; HEADER + bridge.mtu()];
        let mut host = ModelHost {
            bridge,
            me,
            next,
            role,
            queue,
            scratch,
        };
        host.work(Instant::ZERO);
        host
    }

    /// Octets of payload that the host has received in order.
    pub fn received(&self) -> u64 {
        match &self.role {
            Role::Sink { octets } => *octets,
            Role::Receiver(receiver) => receiver.octets(),
            _ => 0,
        }
    }

    /// Handles the packets that have arrived, and sends those of the role.
    fn work(&mut self, now: Instant) {
        while self.bridge.has_arrived() {
            let packet = self.bridge.arrived().next().and_then(Packet::parse);
            self.bridge.taken(1);
            if let Some(packet) = packet {
                self.on_packet(now, packet);
            }
        }
        match &mut self.role {
            Role::Flood { to, .. } => {
                let to = *to;
                while self.bridge.waiting() < self.queue && self.next[to].is_some() {
                    let Role::Flood { made, .. } = &mut self.role else {
                        break;
                    };
                    *made = made.wrapping_add(1);
                    let packet = Packet::data(self.me, to, *made, now, self.bridge.mtu());
                    self.send(packet);
                }
            }
            Role::Sender(sender) => {
                sender.handle_timeout(now);
                self.drain(now);
            }
            Role::Receiver(receiver) => {
                receiver.handle_timeout(now);
                self.drain(now);
            }
            Role::Relay | Role::Sink { .. } => {}
        }
    }

    fn on_packet(&mut self, now: Instant, packet: Packet) {
        if packet.to != self.me {
            return self.send(packet);
        }
        match &mut self.role {
            Role::Sink { octets } => *octets += packet.len.saturating_sub(UDP_HEADERS) as u64,
            Role::Sender(sender) => sender.handle_ack(now, &packet),
            Role::Receiver(receiver) => receiver.handle_data(now, &packet),
            Role::Relay | Role::Flood { .. } => {}
        }
    }

    /// Sends all packets that the TCP may send now.
    fn drain(&mut self, now: Instant) {
        loop {
            let packet = match &mut self.role {
                Role::Sender(sender) => sender.poll(now),
                Role::Receiver(receiver) => receiver.poll(now),
                _ => None,
            };
            match packet {
                Some(packet) => self.send(packet),
                None => return,
            }
        }
    }

    /// Offers a packet to the interface for the next hop. A full queue drops it, as in the emulator.
    fn send(&mut self, packet: Packet) {
        let Some(via) = self.next.get(packet.to).copied().flatten() else {
            return;
        };
        let address = |node: usize| Address::node(node as u16);
        let len = packet.emit(address(via), address(self.me), &mut self.scratch);
        self.bridge.offer(&self.scratch[..len]);
    }
}

impl LinkNode for ModelHost {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        self.bridge.handle_link(now, event);
        self.work(now);
    }

    fn pending(&self) -> Classes {
        self.bridge.pending()
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let send = self.bridge.poll_link(now, allowed, sdu);
        // The queue has room again, which a saturating sender fills at once.
        self.work(now);
        send
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.work(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        match &self.role {
            Role::Sender(sender) => sender.poll_timeout(),
            Role::Receiver(receiver) => receiver.poll_timeout(),
            _ => None,
        }
    }
}
