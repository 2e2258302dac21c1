//! The process: a TUN device, a socket, peers, and one loop that serves them.

mod outbox;

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

/// What a process needs besides its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelConfig {
    /// The TUN device's name; `%d` in it becomes a free number.
    pub device: String,
    /// Its address and the bits of its network, if it is to be given one.
    pub address: Option<(Ipv4Addr, u8)>,
    /// What carries the datagrams.
    pub carrier: Carrier,
    /// Packets that the kernel keeps for the device before it drops.
    pub device_queue: u32,
    /// Largest packet of the host, whatever a frame carries; `None`: 1500.
    pub mtu: Option<usize>,
    /// Whether packets may pass the kernel together where that saves work: TCP's segmentation and UDP's.
    pub offloads: bool,
    /// Whether SIGINT and SIGTERM end the loop.
    pub signals: bool,
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The observer asked for it.
    Asked,
    /// A signal.
    Signal(Signal),
}

/// Counts of what belongs to no peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmatchedTraffic {
    /// Datagrams that no session or key of ours fits.
    pub datagrams: u64,
    /// Packets of the host for which there is no peer.
    pub unrouted: u64,
    /// Packets of the host that are not IP.
    pub not_ip: u64,
    /// Datagrams that found the socket's queue full and were not sent.
    pub socket_full: u64,
    /// Datagrams that the kernel refused.
    pub refused: u64,
}

/// The process.
pub struct Tunnel {
    tun: Tun,
    socket: Socket,
    peers: Vec<Peer>,
    /// One for each peer.
    coverages: Vec<Coverage>,
    carrier: Carrier,
    hints: Hints,
    events: EventLoop,
    clock: Clock,
    received: Received,
    outbox: Outbox,
    /// Whether the host may join segments (all peers' frames carry the longest) if a peer is fast enough; whether it does.
    offloads: bool,
    joining: bool,
    /// Whether the kernel takes several datagrams in one piece, as far as is known.
    segments: bool,
    unmatched: UnmatchedTraffic,
    /// Rounds of the loop, to notice one that does not wait.
    rounds: u64,
    mtu: usize,
    last_refusal: Option<String>,
}

/// What most networks have: hosts behind the link then need no other.
const USUAL_MTU: usize = 1500;
const TUN: u64 = 0;
const SOCKET: u64 = 1;
/// Pace from which on the host may join segments: 64 KiB take 5 ms then.
const JOIN: Bitrate = Bitrate(100_000_000);
/// Packets read from the device before others have their turn.
const TURN: usize = 64;

impl Tunnel {
    /// Opens device and socket, and turns the device on.
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
        // Joined datagrams fill an IP packet; else one is as long as the interface allows, 9000 at most.
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

    /// The device's name.
    pub fn device(&self) -> &str {
        self.tun.name()
    }

    /// Largest packet of the host.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// The peers.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// A peer, to change what it is promised.
    pub fn peer_mut(&mut self, name: &str) -> Option<&mut Peer> {
        self.peers
            .iter_mut()
            .find(|peer| peer.config().name == name)
    }

    /// Tells how far a peer is, in metres, so that its radio can be judged.
    pub fn set_distance(&mut self, name: &str, metres: Option<f64>) {
        let mut both = self.peers.iter().zip(&mut self.coverages);
        if let Some((_, coverage)) = both.find(|(peer, _)| peer.config().name == name) {
            coverage.distance = metres;
        }
    }

    /// Each peer, how its frames leave this host, and what was seen beside it that says what to do.
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

    /// Counts of what belongs to no peer.
    pub fn unmatched(&self) -> &UnmatchedTraffic {
        &self.unmatched
    }

    /// Rounds of the loop so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The kernel's last refusal to send, in words.
    pub fn last_refusal(&self) -> Option<&str> {
        self.last_refusal.as_deref()
    }

    /// Serves until `observe` says that it is enough, which is asked after every round (a second apart at most).
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

    /// Lets the host join segments once a peer is fast enough. On a slow link a joined packet would keep the air for long.
    fn join_or_cut(&mut self) -> chappe_sys::Result<()> {
        let fastest = self.peers.iter().map(Peer::rate).max();
        let join = self.offloads
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

    /// Sends what the peers have: as a rule by one system call, whoever it is for.
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

    /// Hands the outbox to the kernel. A run that it cannot cut goes one by one.
    fn dispatch(&mut self) -> chappe_sys::Result<()> {
        let mut cut = false;
        while !self.outbox.is_empty() {
            match self.socket.send_runs(self.outbox.runs()) {
                // The link finds out, as with any loss.
                Ok(0) => {
                    self.unmatched.socket_full += self.outbox.datagrams();
                    self.outbox.clear();
                }
                Ok(sent) => {
                    // What goes one by one and not together, this interface or kernel cannot cut.
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

    /// The peer with the narrowest network that holds an address.
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
            // An earlier datagram found nobody (ICMP), or the interface is down for now.
            Err(_) => return Ok(()),
        }
        let now = self.clock.now();
        for heard in self.received.iter() {
            let Some((from, octets)) = heard else {
                self.unmatched.datagrams += 1;
                continue;
            };
            let Some(number) = owner(&self.peers, octets) else {
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

/// The peer that a datagram belongs to by what it says; whether it does, the peer will find.
fn owner(peers: &[Peer], octets: &[u8]) -> Option<usize> {
    match octets.first()? {
        &HELLO => {
            let name = Hello::key_name(octets)?;
            peers
                .iter()
                .position(|peer| peer.config().key.name() == name)
        }
        _ => addressed(octets)
            .map(peer_of)
            .filter(|&number| number < peers.len()),
    }
}

/// Gives a packet from a peer to the host, if its source may be behind that peer; else the source.
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

/// Numbers that nobody can guess, from a seed that nobody can (a keyed hash of a counter).
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
