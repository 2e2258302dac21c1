//! The process: a TUN device, a socket, peers, and one event loop.

mod outbox;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;

use chappe_core::{Bitrate, Instant};
use chappe_sys::tun::{Joined, Tun};
use chappe_sys::{
    Clock, Error, EventLoop, Interface, Links, Ready, Received, Signal, Socket, packet, udp,
};

use crate::carrier::Carrier;
use crate::classify::facts;
use crate::coverage::{Coverage, Judgement, LIGHT};
use crate::hints::Hints;
use crate::packing::JOINED_MAX;
use crate::peer::{PEERS_MAX, Peer, PeerConfig, peer_of};
use crate::session::{HELLO, Hello, addressed};
use outbox::Outbox;

/// The configuration of a tunnel, apart from its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelConfig {
    /// The TUN device's name, in which `%d` becomes a free number.
    pub device: String,
    /// The address and prefix length to set on the device, if any.
    pub address: Option<(Ipv4Addr, u8)>,
    /// The encapsulation of datagrams.
    pub carrier: Carrier,
    /// Length of the device's transmit queue in packets.
    pub device_queue: u32,
    /// The device's MTU in octets, whatever fits a frame; `None` means 1500.
    pub mtu: Option<usize>,
    /// Whether to use segmentation offload for TCP and UDP, where it saves work.
    pub offloads: bool,
    /// Whether SIGINT and SIGTERM end [`Tunnel::run`].
    pub signals: bool,
}

/// The event that ended [`Tunnel::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The observer broke the loop.
    Asked,
    /// SIGINT or SIGTERM arrived.
    Signal(Signal),
}

/// Counters of datagrams and packets that belong to no peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmatchedTraffic {
    /// Datagrams that match no session and no key.
    pub datagrams: u64,
    /// Packets of the host whose destination is in no peer's networks.
    pub unrouted: u64,
    /// Packets of the host that are not IP.
    pub not_ip: u64,
    /// Datagrams dropped because the socket buffer was full.
    pub socket_full: u64,
    /// Datagrams that the kernel refused to send.
    pub refused: u64,
}

/// A TUN device and its peers.
pub struct Tunnel {
    tun: Tun,
    socket: Socket,
    peers: Vec<Peer>,
    /// The peers by the names of their keys, which hellos carry.
    names: BTreeMap<[u8; 8], usize>,
    /// One for each peer.
    coverages: Vec<Coverage>,
    carrier: Carrier,
    hints: Hints,
    events: EventLoop,
    clock: Clock,
    received: Received,
    outbox: Outbox,
    /// Whether the host may coalesce segments (every peer can carry the longest packet) if a peer is fast enough, and
    /// whether it does so now.
    offloads: bool,
    joining: bool,
    /// Whether UDP segmentation offload works here, as far as is known.
    segments: bool,
    unmatched: UnmatchedTraffic,
    /// Rounds of the loop, which expose a loop that never waits.
    rounds: u64,
    mtu: usize,
    last_refusal: Option<String>,
}

/// The usual MTU, so that hosts behind the link need no other.
const USUAL_MTU: usize = 1500;
const TUN: u64 = 0;
const SOCKET: u64 = 1;
/// Pace from which on the host may coalesce segments: 64 KiB take 5 ms at it.
const JOIN: Bitrate = Bitrate(100_000_000);
/// Packets read from the device before the socket and the timers get their turn.
const TURN: usize = 64;

impl Tunnel {
    /// Opens the device and the socket, and brings the device up. Needs CAP_NET_ADMIN.
    pub fn open(config: &TunnelConfig, peers: Vec<PeerConfig>) -> chappe_sys::Result<Tunnel> {
        let socket = match &config.carrier {
            Carrier::Udp(address) => udp::bind(*address)?,
            Carrier::Ethernet {
                interface,
                ether_type,
            } => {
                let interface = Interface::find(interface)?;
                packet::open(&interface, *ether_type, packet::Framing::Payload)?
            }
        };
        let udp = matches!(config.carrier, Carrier::Udp(_));
        // Coalesced datagrams fill an IP packet. Otherwise a datagram has at most the interface's MTU, 9000 octets.
        let slot = if config.offloads && socket.join_received() {
            1 << 16
        } else {
            1 << 14
        };
        let life = chappe_sys::random_u64()?;
        let mut made = Vec::new();
        for (number, peer) in peers.into_iter().take(PEERS_MAX).enumerate() {
            let seed = [chappe_sys::random_u64()?, chappe_sys::random_u64()?];
            let name = peer.name.clone();
            let peer = Peer::new(peer, number, life, drawer(seed));
            made.push(
                peer.map_err(|error| Error::unusable(&format!("set up the peer {name}"), &error))?,
            );
        }
        // One device serves all peers, so its MTU must suit the one with the shortest packets.
        let most = made.iter().map(Peer::packet_max).min();
        let mtu = config
            .mtu
            .unwrap_or(USUAL_MTU)
            .min(most.unwrap_or(USUAL_MTU));
        let tun = Tun::create_joining(&config.device)?;
        let links = Links::open()?;
        links.set_mtu(tun.name(), mtu as u32)?;
        links.set_queue_len(tun.name(), config.device_queue)?;
        if let Some((address, prefix)) = config.address {
            links.add_address(tun.name(), address, prefix)?;
        }
        links.up(tun.name())?;
        let clock = Clock::start();
        let mut events = EventLoop::new(clock)?;
        if config.signals {
            events.watch_signals()?;
        }
        events.add(&tun, TUN)?;
        events.add(&socket, SOCKET)?;
        Ok(Tunnel {
            tun,
            socket,
            coverages: vec![Coverage::default(); made.len()],
            hints: Hints::new(config.address.map(|(own, _)| own), made.len()),
            offloads: config.offloads && made.iter().all(|peer| peer.joined_max() >= JOINED_MAX),
            names: names(&made),
            peers: made,
            carrier: config.carrier.clone(),
            events,
            clock,
            received: Received::new(slot),
            outbox: Outbox::default(),
            joining: false,
            segments: udp && config.offloads,
            unmatched: UnmatchedTraffic::default(),
            rounds: 0,
            mtu,
            last_refusal: None,
        })
    }

    /// The name of the TUN device.
    pub fn device(&self) -> &str {
        self.tun.name()
    }

    /// The MTU of the TUN device in octets.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// The peers, in the order of the configuration.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The peer `name`, to change its services or its rate.
    pub fn peer_mut(&mut self, name: &str) -> Option<&mut Peer> {
        self.peers
            .iter_mut()
            .find(|peer| peer.config().name == name)
    }

    /// Sets the distance of a peer in metres, by which its radio is judged.
    pub fn set_distance(&mut self, name: &str, metres: Option<f64>) {
        let mut both = self.peers.iter().zip(&mut self.coverages);
        if let Some((_, coverage)) = both.find(|(peer, _)| peer.config().name == name) {
            coverage.distance = metres;
        }
    }

    /// Each peer with the judgement of its egress, and a hint if something else explains its state.
    pub(crate) fn judged(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (&Peer, Judgement, Option<String>)> {
        let both = self.peers.iter().zip(&self.coverages).enumerate();
        both.map(move |(number, (peer, coverage))| {
            let least = peer.link().report().rtt.map(|(_, least)| least);
            let most = least.map(|least| least.as_secs_f64() / 2.0 * LIGHT);
            let judgement = coverage.judge(most);
            let path_mtu = peer.config().datagram_max + self.carrier.below() - 14;
            let hint = judgement
                .obstacle(path_mtu)
                .or_else(|| self.hints.of(now, number, peer));
            (peer, judgement, hint)
        })
    }

    /// Counters of datagrams and packets that belong to no peer.
    pub fn unmatched(&self) -> &UnmatchedTraffic {
        &self.unmatched
    }

    /// Rounds of the loop since the start.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The error message of the kernel's last refusal to send.
    pub fn last_refusal(&self) -> Option<&str> {
        self.last_refusal.as_deref()
    }

    /// Runs the tunnel until `observe` breaks or a signal arrives. `observe` is called in every round, at least once a
    /// second. Errors are those of the event loop, of the device, and of an interface that has gone.
    pub fn run(
        &mut self,
        mut observe: impl FnMut(&mut Tunnel, Instant) -> ControlFlow<()>,
    ) -> chappe_sys::Result<Ending> {
        let mut ready = Vec::new();
        let mut datagram = vec![0; 1 << 17];
        loop {
            self.rounds += 1;
            let now = self.clock.now();
            self.peers.iter_mut().for_each(|peer| peer.measure(now));
            self.join_or_cut()?;
            self.refresh_egress(now);
            self.send(now)?;
            if observe(self, now).is_break() {
                return Ok(Ending::Asked);
            }
            self.events.set_deadline(Some(self.deadline(now)))?;
            ready.clear();
            self.events.wait(&mut ready)?;
            for &event in &ready {
                match event {
                    Ready::Readable(TUN) => self.take_packets(&mut datagram)?,
                    Ready::Readable(_) => self.take_datagrams(&mut datagram)?,
                    Ready::Signal(signal) => return Ok(Ending::Signal(signal)),
                    Ready::Writable(_) | Ready::Deadline => {}
                }
            }
        }
    }

    /// Lets the host coalesce segments once a peer is fast enough. On a slow link one coalesced packet would occupy the
    /// medium for long. The hysteresis of a factor of two keeps a varying pace from toggling it.
    fn join_or_cut(&mut self) -> chappe_sys::Result<()> {
        let fastest = self.peers.iter().map(Peer::rate).max();
        let whole = |peer: &Peer| peer.joined_max() >= JOINED_MAX;
        let join = self.offloads
            && self.peers.iter().all(whole)
            && fastest
                >= Some(if self.joining {
                    Bitrate(JOIN.0 / 2)
                } else {
                    JOIN
                });
        if join != self.joining {
            self.tun.join(join)?;
            self.joining = join;
        }
        Ok(())
    }

    fn refresh_egress(&mut self, now: Instant) {
        let (all, here) = (self.peers.len() as f64, (self.tun.name(), &self.carrier));
        let each = self.peers.iter().zip(&mut self.coverages).enumerate();
        for (number, (peer, coverage)) in each {
            let share = (number + 1) as f64 / all;
            coverage.look(now, share, here, peer.endpoint());
        }
    }

    fn deadline(&self, now: Instant) -> Instant {
        let second = now + chappe_core::Duration::from_secs(1);
        let peers = self.peers.iter().filter_map(|peer| peer.deadline(now));
        peers.min().map_or(second, |at| at.min(second))
    }

    /// Sends the datagrams of all peers, usually in one system call.
    fn send(&mut self, now: Instant) -> chappe_sys::Result<()> {
        for number in 0..self.peers.len() {
            loop {
                if self.outbox.is_full() {
                    self.dispatch()?;
                }
                let peer = self.peers.get_mut(number);
                let Some((len, to)) = peer.and_then(|peer| peer.poll(now, self.outbox.room()))
                else {
                    break;
                };
                self.outbox.add(len, to, self.segments);
            }
        }
        self.dispatch()
    }

    /// Hands the outbox to the kernel. The datagrams of a run that the kernel cannot segment go one by one.
    fn dispatch(&mut self) -> chappe_sys::Result<()> {
        let mut cut = false;
        while !self.outbox.is_empty() {
            match self.socket.send_runs(self.outbox.runs()) {
                // The recovery treats them like any loss.
                Ok(0) => {
                    self.unmatched.socket_full += self.outbox.datagrams();
                    self.outbox.clear();
                }
                Ok(sent) => {
                    // Accepted one by one but not as a run: this interface or kernel cannot segment.
                    self.segments &= !cut;
                    self.outbox.pass(sent);
                }
                Err(error) if error.is_gone() => return Err(error),
                Err(_) if self.outbox.cut_first() => cut = true,
                Err(error) => {
                    self.unmatched.refused += 1;
                    self.last_refusal = Some(error.to_string());
                    self.outbox.pass(1);
                }
            }
        }
        self.outbox.clear();
        Ok(())
    }

    fn take_packets(&mut self, packet: &mut [u8]) -> chappe_sys::Result<()> {
        for _ in 0..TURN {
            let Some((len, joined)) = self.tun.receive_joined(packet)? else {
                break;
            };
            let packet = packet.get(..len).unwrap_or_default();
            let Some(facts) = facts(packet) else {
                self.unmatched.not_ip += 1;
                continue;
            };
            match self.route(facts.destination) {
                Some(peer) => {
                    let now = self.clock.now();
                    if let Some(peer) = self.peers.get_mut(peer) {
                        peer.offer_joined(now, (facts.service, facts.flow), packet, joined);
                    }
                }
                None => self.unmatched.unrouted += 1,
            }
        }
        Ok(())
    }

    /// The peer with the longest matching prefix for an address.
    fn route(&self, to: IpAddr) -> Option<usize> {
        let nets =
            self.peers.iter().enumerate().flat_map(|(number, peer)| {
                peer.config().networks.iter().map(move |net| (net, number))
            });
        nets.filter(|(net, _)| net.has(to))
            .max_by_key(|(net, _)| net.prefix)
            .map(|(_, number)| number)
    }

    fn take_datagrams(&mut self, packet: &mut [u8]) -> chappe_sys::Result<()> {
        match self.socket.receive(&mut self.received) {
            Ok(_) => {}
            Err(error) if error.is_gone() => return Err(error),
            // An ICMP error for an earlier datagram, or the interface is down at present.
            Err(_) => return Ok(()),
        }
        let now = self.clock.now();
        for heard in self.received.iter() {
            let Some((from, octets)) = heard else {
                self.unmatched.datagrams += 1;
                continue;
            };
            let Some(number) = owner(&self.names, self.peers.len(), octets) else {
                self.unmatched.datagrams += 1;
                self.hints.unknown_caller(now, from, octets);
                continue;
            };
            let Some(peer) = self.peers.get_mut(number) else {
                continue;
            };
            let Some(copy) = packet.get_mut(..octets.len()) else {
                continue;
            };
            copy.copy_from_slice(octets);
            peer.handle(now, from, copy);
            while let Some((len, joined)) = peer.deliver_joined(packet) {
                let packet = packet.get(..len).unwrap_or_default();
                if let Some(foreign) = hand_up(&self.tun, peer, packet, joined)? {
                    self.hints.foreign(now, number, foreign);
                }
            }
        }
        Ok(())
    }
}

/// The first peer with each key name.
fn names(peers: &[Peer]) -> BTreeMap<[u8; 8], usize> {
    let each = peers.iter().enumerate().rev();
    each.map(|(number, peer)| (peer.config().key.name(), number))
        .collect()
}

/// The peer that a datagram claims to belong to. The peer itself checks the claim. A hello of anybody's costs no hash.
fn owner(names: &BTreeMap<[u8; 8], usize>, peers: usize, octets: &[u8]) -> Option<usize> {
    match octets.first()? {
        &HELLO => {
            let name = Hello::key_name(octets)?;
            names.get(&name).copied()
        }
        _ => addressed(octets)
            .map(peer_of)
            .filter(|&number| number < peers),
    }
}

/// Passes a packet from a peer to the host if its source is in the peer's networks. Returns the source otherwise.
fn hand_up(
    tun: &Tun,
    peer: &mut Peer,
    packet: &[u8],
    joined: Option<Joined>,
) -> chappe_sys::Result<Option<IpAddr>> {
    let source = facts(packet).map(|facts| facts.source);
    let networks = &peer.config().networks;
    let allowed = source.is_some_and(|source| networks.iter().any(|net| net.has(source)));
    if !allowed {
        peer.counters_mut().foreign += 1;
        return Ok(source);
    }
    if tun.send_joined(packet, joined)? {
        peer.counters_mut().octets_delivered += packet.len() as u64;
    } else {
        peer.counters_mut().host_full += 1;
    }
    Ok(None)
}

/// Unpredictable numbers from an unpredictable seed: a keyed hash of a counter.
fn drawer(seed: [u64; 2]) -> Box<dyn FnMut() -> u64 + Send> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed[0].to_be_bytes());
    key[8..16].copy_from_slice(&seed[1].to_be_bytes());
    let mut count = 0u64;
    Box::new(move || {
        count += 1;
        let hash = blake3::keyed_hash(&key, &count.to_be_bytes());
        hash.as_bytes()
            .first_chunk()
            .map_or(0, |first| u64::from_be_bytes(*first))
    })
}
