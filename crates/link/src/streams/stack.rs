//! TCP towards one peer without the kernel: smoltcp between packets of the link and sockets.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use chappe_core::Instant;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant as At};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

/// Packets made in one turn, so that each connection gets its turn before the first one gets another.
const BATCH: usize = 32;
/// Packets from the peer that may wait for a turn: what one reading of the socket brings at most, several times.
const INBOX: usize = 4096;
/// How long an unanswered segment is repeated: what RFC 9293, 3.8.3, asks for a SYN, and more than for data.
const GIVE_UP: Duration = Duration::from_secs(180);
/// How often an idle connection asks whether the other end still has it (Linux's tcp_keepalive_intvl).
const ASK: Duration = Duration::from_secs(75);
/// The ports of connections that begin here (RFC 6335, 6: dynamic ports).
const FIRST_PORT: u16 = 49_152;

/// TCP towards one peer.
pub(super) struct Stack {
    interface: Interface,
    pub sockets: SocketSet<'static>,
    wire: Wire,
    next_port: u16,
    /// The sockets that wait for a connection to a served port, one for each.
    listening: Vec<(u16, SocketHandle)>,
    buffer: usize,
    /// Whether the latest turn ended because no more packets could be made.
    held: bool,
}

/// The packets from and to the peer.
struct Wire {
    inbox: VecDeque<Vec<u8>>,
    outbox: VecDeque<Vec<u8>>,
    room: usize,
    mtu: usize,
}

fn at(now: Instant) -> At {
    let micros = now.saturating_since(Instant::ZERO).nanos() / 1_000;
    At::from_micros(micros as i64)
}

impl Stack {
    /// A stack with the addresses of this host, packets of up to `mtu` octets, and `buffer` octets each way for a connection. `seed`
    /// makes its sequence numbers hard to guess.
    pub fn new(
        now: Instant,
        addresses: &[(IpAddr, u8)],
        sizes: (usize, usize),
        seed: u64,
    ) -> Stack {
        let (mtu, buffer) = sizes;
        let mut wire = Wire {
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            room: 0,
            mtu,
        };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut wire, at(now));
        interface.update_ip_addrs(|own| {
            for &(address, prefix) in addresses {
                // More than it holds are refused when the file is read.
                let _ = own.push(IpCidr::new(address.into(), prefix));
            }
        });
        // Everything goes to the peer: the gateway's address is never looked up.
        for &(address, _) in addresses {
            let routes = interface.routes_mut();
            let _ = match address {
                IpAddr::V4(own) => routes.add_default_ipv4_route(own).map(drop),
                IpAddr::V6(own) => routes.add_default_ipv6_route(own).map(drop),
            };
        }
        Stack {
            interface,
            sockets: SocketSet::new(Vec::new()),
            wire,
            next_port: FIRST_PORT + (seed % 16_384) as u16,
            listening: Vec::new(),
            buffer,
            held: false,
        }
    }

    /// Takes a packet of the peer; false if too many wait for their turn.
    pub fn hear(&mut self, packet: &[u8]) -> bool {
        let room = self.wire.inbox.len() < INBOX;
        if room {
            self.wire.inbox.push_back(packet.to_vec());
        }
        room
    }

    /// The next packet for the peer.
    pub fn next_packet(&mut self) -> Option<Vec<u8>> {
        self.wire.outbox.pop_front()
    }

    /// Processes what has arrived, then makes packets while there are fewer than a batch. `ports` are those where connections are
    /// taken at present. Returns the connections that have begun, with their ports.
    pub fn turn(&mut self, now: Instant, ports: &[u16]) -> Vec<(u16, SocketHandle)> {
        let mut begun = Vec::new();
        self.wire.room = BATCH.max(self.sockets.iter().count());
        self.listen(ports);
        while self.wire.inbox.front().is_some() {
            let (interface, sockets) = (&mut self.interface, &mut self.sockets);
            let taken = interface.poll_ingress_single(at(now), &mut self.wire, sockets);
            if taken == PollIngressSingleResult::None {
                break;
            }
            let sockets = &self.sockets;
            let listens = |handle| sockets.get::<Socket>(handle).state() == State::Listen;
            begun.extend(self.listening.extract_if(.., |one| !listens(one.1)));
            self.listen(ports);
        }
        self.interface.poll_maintenance(at(now));
        self.interface
            .poll_egress(at(now), &mut self.wire, &mut self.sockets);
        self.held = self.wire.outbox.len() >= self.wire.room;
        begun
    }

    /// Keeps one socket waiting for each port, and none for others.
    fn listen(&mut self, ports: &[u16]) {
        let gone = self.listening.extract_if(.., |one| !ports.contains(&one.0));
        let gone: Vec<SocketHandle> = gone.map(|one| one.1).collect();
        for handle in gone {
            self.sockets.remove(handle);
        }
        for &port in ports {
            if self.listening.iter().all(|one| one.0 != port) {
                let mut socket = self.socket();
                // Until the service here has answered, so that a peer learns it if none does.
                socket.pause_synack(true);
                if socket.listen(port).is_ok() {
                    self.listening.push((port, self.sockets.add(socket)));
                }
            }
        }
    }

    fn socket(&self) -> Socket<'static> {
        let buffer = || SocketBuffer::new(vec![0; self.buffer]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_timeout(Some(GIVE_UP));
        socket.set_keep_alive(Some(ASK));
        socket.set_congestion_control(CongestionControl::Cubic);
        // Whoever wrote has decided how much belongs together.
        socket.set_nagle_enabled(false);
        socket
    }

    /// Begins a connection; `None` without an address of that family here, or without a free port.
    pub fn connect(&mut self, to: SocketAddr) -> Option<SocketHandle> {
        let remote: IpAddress = to.ip().into();
        self.interface.get_source_address(&remote)?;
        let used: Vec<u16> = self.ports().collect();
        let all = u16::MAX - FIRST_PORT;
        let port = (0..=all).find_map(|_| {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            (!used.contains(&port)).then_some(port)
        })?;
        let mut socket = self.socket();
        let begun = socket.connect(self.interface.context(), (remote, to.port()), port);
        begun.is_ok().then(|| self.sockets.add(socket))
    }

    fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.sockets.iter().filter_map(|(_, socket)| match socket {
            smoltcp::socket::Socket::Tcp(socket) => Some(socket.local_endpoint()?.port),
            #[allow(
                unreachable_patterns,
                reason = "other crates may enable more kinds of sockets"
            )]
            _ => None,
        })
    }

    /// When something is to be done without any packet; `None` while packets cannot leave.
    pub fn deadline(&mut self, now: Instant) -> Option<Instant> {
        if self.held {
            return None;
        }
        let due = self.interface.poll_at(at(now), &self.sockets)?;
        let left = due.total_micros() - at(now).total_micros();
        Some(now + chappe_core::Duration::from_micros(left.max(0) as u64))
    }
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = ToSend<'a>;

    fn receive(&mut self, _: At) -> Option<(Received, ToSend<'_>)> {
        let packet = self.inbox.pop_front()?;
        Some((Received(packet), ToSend(&mut self.outbox)))
    }

    fn transmit(&mut self, _: At) -> Option<ToSend<'_>> {
        let free = self.outbox.len() < self.room;
        free.then_some(ToSend(&mut self.outbox))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut known = DeviceCapabilities::default();
        known.medium = Medium::Ip;
        known.max_transmission_unit = self.mtu;
        known
    }
}

/// A packet that smoltcp reads.
struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

/// A place for a packet that smoltcp writes.
struct ToSend<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.push_back(packet);
        result
    }
}
