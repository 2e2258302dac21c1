//! The process: a TUN device or streams, a socket, peers, and one event loop.

mod host;
mod inbox;
mod outbox;
mod peers;
mod routes;
mod sockets;
mod turns;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::ControlFlow;

use chappe_core::{Bitrate, Duration, Instant, SPEED_OF_LIGHT};
use chappe_session::{Gate, Public, Reason, Secret};
use chappe_sys::{Clock, EventLoop, Interface, Ready, Received, Signal, packet, udp};

use chappe_wildnet::Memory;

use crate::carrier::Carrier;
use crate::classify::facts;
use crate::coverage::{Coverage, Judgement};
use crate::hints::Hints;
use crate::introduction;
use crate::packing::JOINED_MAX;
use crate::peer::{Peer, PeerConfig};
use crate::streams::{FIRST_TOKEN, StreamCounters, StreamsConfig};
use host::Host;
use routes::Routes;
use sockets::Sockets;
use turns::Turns;

/// The configuration of a tunnel, apart from its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelConfig {
    /// The TUN device's name, in which `%d` becomes a free number.
    pub device: String,
    /// The secret key of this host.
    pub secret: Secret,
    /// The addresses and prefix lengths to set on the device.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Whether to install routes to the peers' networks through the device. They vanish with it.
    pub routes: bool,
    /// The encapsulation of datagrams.
    pub carrier: Carrier,
    /// Length of the device's transmit queue in packets.
    pub device_queue: u32,
    /// The device's MTU in octets, whatever fits a frame; `None` means 1500.
    pub mtu: Option<usize>,
    /// Octets that the windows of all peers may take beyond what each has from the start; see [`usual_memory`].
    pub memory: usize,
    /// Whether to use segmentation offload for TCP and UDP, where it saves work.
    pub offloads: bool,
    /// Whether SIGINT and SIGTERM end [`Tunnel::run`].
    pub signals: bool,
    /// What goes through the link without a device, which needs no privilege; `None` for a device.
    pub streams: Option<StreamsConfig>,
}

/// Octets for the windows of all peers on this machine: a sixteenth of its memory, or of what its control group may have. That is the
/// mark at which Linux begins to save memory of TCP (the second value of `tcp_mem`, tcp(7); `tcp_init_mem` in net/ipv4/tcp.c).
pub fn usual_memory() -> usize {
    /// Where it cannot be read: a sixteenth of the 128 MiB of a small router.
    const LEAST: usize = 8 << 20;
    let memory = chappe_sys::memory();
    memory.map_or(LEAST, |octets| (octets / 16) as usize)
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
    /// Datagrams that match no session and no peer.
    pub datagrams: u64,
    /// Of them, calls and answers of hosts that do not know this host's public key.
    pub wrong_key: u64,
    /// Calls of hosts whose key is no peer's.
    pub unknown_key: u64,
    /// Calls and answers of another protocol version.
    pub wrong_version: u64,
    /// Calls that were not opened, since too many came: answered by a cookie, or dropped.
    pub held_off: u64,
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
    host: Host,
    sockets: Sockets,
    gate: Gate,
    /// The peers by their places, which the indices of their sessions contain.
    places: Vec<Option<Place>>,
    /// Their places by their keys.
    keys: BTreeMap<Public, usize>,
    /// What the windows of the peers may take.
    memory: Memory,
    routes: Routes,
    /// The networks that have a route through the device.
    installed: Vec<crate::classify::Net>,
    installs: bool,
    turns: Turns,
    tick_at: Instant,
    introduces: bool,
    asked_to_reload: bool,
    carrier: Carrier,
    hints: Hints,
    events: EventLoop,
    clock: Clock,
    /// Room for a received datagram in octets.
    slot: usize,
    /// Where a datagram is made.
    datagram: Vec<u8>,
    /// Whether the host may coalesce segments (every peer can carry the longest packet) if a peer is fast enough, and
    /// whether it does so now.
    offloads: bool,
    joining: bool,
    unmatched: UnmatchedTraffic,
    /// Rounds of the loop, which expose a loop that never waits.
    rounds: u64,
    mtu: usize,
}

/// A peer, and how its frames leave this host.
struct Place {
    peer: Peer,
    coverage: Coverage,
    /// The socket of each configured path.
    sockets: Vec<usize>,
}

/// Interval of what is done for every peer: rates, interfaces, the clock.
const TICK: Duration = Duration::from_millis(500);
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
        let joins = config.offloads && socket.join_received();
        socket.stamp_received();
        let slot = if joins { 1 << 16 } else { 1 << 14 };
        let gate = Gate::new(
            crate::PROTOCOL,
            config.secret.clone(),
            chappe_sys::random_key()?,
        );
        let memory = Memory::new(config.memory);
        let mut places = Vec::new();
        for (number, peer) in peers.into_iter().take(crate::PEERS_MAX).enumerate() {
            places.push(Some(Place::new(peer, (&gate, &memory), number)?));
        }
        // One device serves all peers, so its MTU must suit the one with the shortest packets.
        let most = places.iter().flatten().map(|place| place.peer.packet_max());
        let mtu = config
            .mtu
            .unwrap_or(USUAL_MTU)
            .min(most.min().unwrap_or(USUAL_MTU));
        let clock = Clock::start();
        let mut events = EventLoop::new(clock)?;
        if config.signals {
            events.watch_signals_and_reload()?;
        }
        let host = Host::open(config, mtu, &events)?;
        events.add(&socket, SOCKET)?;
        let mut tunnel = Tunnel {
            host,
            sockets: Sockets::new(socket, udp && config.offloads, joins),
            gate,
            hints: Hints::new(config.addresses.iter().map(|address| address.0).collect()),
            offloads: config.offloads,
            places,
            keys: BTreeMap::new(),
            memory,
            routes: Routes::default(),
            installed: Vec::new(),
            installs: config.routes && config.streams.is_none(),
            turns: Turns::default(),
            tick_at: Instant::ZERO,
            introduces: false,
            asked_to_reload: false,
            carrier: config.carrier.clone(),
            events,
            clock,
            slot,
            datagram: vec![0; 1 << 16],
            joining: false,
            unmatched: UnmatchedTraffic::default(),
            rounds: 0,
            mtu,
        };
        tunnel.note_peers()?;
        Ok(tunnel)
    }

    /// The name of the TUN device; "none" if there is none.
    pub fn device(&self) -> &str {
        self.host.name()
    }

    /// What became of the connections that go through the link without a device; `None` with one.
    pub fn streams(&self) -> Option<StreamCounters> {
        match &self.host {
            Host::Streams(streams) => Some(streams.counters),
            Host::Device(_) => None,
        }
    }

    /// The MTU of the TUN device in octets.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// The public key of this host.
    pub fn public(&self) -> &Public {
        self.gate.public()
    }

    /// Each peer with the judgement of its egress, and a hint if something else explains its state.
    pub(crate) fn judged(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (&Peer, Judgement, Option<String>)> {
        self.places.iter().flatten().map(move |place| {
            let peer = &place.peer;
            let least = peer.link().report().rtt.map(|(_, least)| least);
            let most = least.map(|least| least.as_secs_f64() / 2.0 * SPEED_OF_LIGHT);
            let judgement = place.coverage.judge(most);
            let path_mtu = peer.config().datagram_max + peer.config().below - 14;
            let hint = judgement
                .obstacle(path_mtu)
                .or_else(|| self.hints.of(now, peer));
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
        self.sockets.last_refusal.as_deref()
    }

    /// Runs the tunnel until `observe` breaks or a signal arrives. `observe` is called in every round, at least once a
    /// second. Errors are those of the event loop, of the device, and of an interface that has gone.
    pub fn run(
        &mut self,
        mut observe: impl FnMut(&mut Tunnel, Instant) -> ControlFlow<()>,
    ) -> chappe_sys::Result<Ending> {
        let mut ready = Vec::new();
        let mut datagram = vec![0; 1 << 17];
        let mut received = Received::new(self.slot);
        loop {
            self.rounds += 1;
            let now = self.clock.now();
            self.tick(now)?;
            self.turn_streams(now);
            self.send(now)?;
            if observe(self, now).is_break() {
                return Ok(Ending::Asked);
            }
            let deadline = self.deadline(now);
            self.events.set_deadline(Some(deadline))?;
            ready.clear();
            self.events.wait(&mut ready)?;
            for &event in &ready {
                match event {
                    Ready::Readable(TUN) => self.take_packets(&mut datagram)?,
                    Ready::Readable(token) | Ready::Writable(token) if token >= FIRST_TOKEN => {
                        self.stream_ready(token);
                    }
                    Ready::Readable(token) => {
                        let socket = (token - SOCKET) as usize;
                        self.take_datagrams(socket, &mut received, &mut datagram)?;
                    }
                    Ready::Signal(Signal::Reload) => self.asked_to_reload = true,
                    Ready::Signal(signal) => return Ok(Ending::Signal(signal)),
                    Ready::Writable(_) | Ready::Deadline => {}
                }
            }
        }
    }

    /// What is done for every peer now and then.
    fn tick(&mut self, now: Instant) -> chappe_sys::Result<()> {
        if now < self.tick_at {
            return Ok(());
        }
        self.tick_at = now + TICK;
        self.sockets.refresh(&self.carrier, &self.events)?;
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let wall = wall.unwrap_or_default();
        let (all, here) = (self.places.len() as f64, (self.host.name(), &self.carrier));
        for (number, place) in self.places.iter_mut().enumerate() {
            let Some(place) = place else {
                continue;
            };
            place.peer.measure(now);
            place.peer.set_clock(now, wall);
            let share = (number + 1) as f64 / all;
            let to = place.peer.endpoint();
            place.coverage.look(now, share, here, to);
        }
        let introduced = |place: &Option<Place>| {
            let place = place.as_ref();
            place.is_some_and(|place| place.peer.introducer().is_some())
        };
        // Only these, since asking gives a turn.
        for number in 0..self.places.len() {
            if introduced(&self.places[number]) {
                introduction::ask(self, now, number);
            }
        }
        self.join_or_cut()
    }

    /// Lets the host coalesce segments once a peer is fast enough. On a slow link one coalesced packet would occupy the
    /// medium for long. The hysteresis of a factor of two keeps a varying pace from toggling it.
    fn join_or_cut(&mut self) -> chappe_sys::Result<()> {
        let Host::Device(device) = &self.host else {
            return Ok(());
        };
        let peers = || self.places.iter().flatten().map(|place| &place.peer);
        let fastest = peers().map(Peer::rate).max();
        let join = self.offloads
            && peers().all(|peer| peer.joined_max() >= JOINED_MAX)
            && fastest
                >= Some(if self.joining {
                    Bitrate(JOIN.0 / 2)
                } else {
                    JOIN
                });
        if join != self.joining {
            device.join(join)?;
            self.joining = join;
        }
        Ok(())
    }

    fn deadline(&mut self, now: Instant) -> Instant {
        let streams = match &mut self.host {
            Host::Streams(streams) => streams.deadline(now),
            Host::Device(_) => None,
        };
        let next = self.turns.earliest().into_iter().chain(streams);
        next.fold(self.tick_at, Instant::min)
    }

    /// Sends the datagrams of all peers, usually in one system call for each socket.
    fn send(&mut self, now: Instant) -> chappe_sys::Result<()> {
        while let Some(number) = self.turns.next(now) {
            while let Some(Some(place)) = self.places.get_mut(number) {
                let only = match place.sockets[..] {
                    [] => Some(0),
                    [only] => Some(only),
                    _ => None,
                };
                // Of several, the peer says only with the datagram which one it is for.
                let sent = match only {
                    Some(socket) => {
                        self.sockets.make_room(socket, &mut self.unmatched)?;
                        let room = self.sockets.outbox(socket).room();
                        let made = place.peer.poll_path(now, room);
                        made.map(|(len, to, _)| self.sockets.add(socket, len, to))
                    }
                    None => {
                        let made = place.peer.poll_path(now, &mut self.datagram);
                        match made {
                            Some((len, to, path)) => {
                                let socket = place.sockets.get(path).copied().unwrap_or_default();
                                self.sockets.make_room(socket, &mut self.unmatched)?;
                                let made = self.datagram.get(..len).unwrap_or_default();
                                self.sockets.put(socket, made, to);
                                Some(())
                            }
                            None => None,
                        }
                    }
                };
                if sent.is_none() {
                    // Not in this round again, whatever the peer says: others have their turn, and what arrives is read.
                    let soon = now + Duration::from_nanos(1);
                    let next = place.peer.deadline(now).map(|at| at.max(soon));
                    self.turns.set(number, next);
                    break;
                }
            }
        }
        self.sockets.dispatch(&mut self.unmatched)
    }

    fn take_packets(&mut self, packet: &mut [u8]) -> chappe_sys::Result<()> {
        for _ in 0..TURN {
            let Host::Device(device) = &self.host else {
                break;
            };
            let Some((len, joined)) = device.receive_joined(packet)? else {
                break;
            };
            let packet = packet.get(..len).unwrap_or_default();
            let Some(facts) = facts(packet) else {
                self.unmatched.not_ip += 1;
                continue;
            };
            let number = self.routes.find(facts.destination);
            match number.and_then(|number| self.places.get_mut(number)) {
                Some(Some(place)) => {
                    let now = self.clock.now();
                    let class = (facts.service, facts.flow);
                    place.peer.offer_joined(now, class, packet, joined);
                    self.turns.touch(number.unwrap_or_default());
                }
                _ => self.unmatched.unrouted += 1,
            }
        }
        Ok(())
    }
}

impl UnmatchedTraffic {
    /// Counts a datagram that the gate dropped.
    fn count(&mut self, reason: Reason) {
        self.datagrams += 1;
        match reason {
            Reason::Proof | Reason::Forged => self.wrong_key += 1,
            Reason::Version(_) => self.wrong_version += 1,
            Reason::Busy => self.held_off += 1,
            Reason::Strange | Reason::Repeated => {}
        }
    }
}
