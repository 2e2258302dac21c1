//! TCP connections through the link without a device, and so without root: ports that are forwarded, SOCKS, and services that peers
//! may reach.
//!
//! ```text
//!  a program -- the kernel's TCP --> listener --> pipe --> stack of a peer ==== the link ==== stack or device there
//! ```
//!
//! The kernel's TCP ends here on the one side and smoltcp's on the other. There is one stack for each peer, so that a peer that takes
//! nothing holds up no other. Everything runs in the tunnel's loop but what may wait for others ([`errand`]).

mod errand;
mod pipe;
mod socks;
mod stack;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use chappe_core::{Duration, Instant};
use chappe_sys::{Error, EventLoop};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, State};

use errand::{Errands, Found};
use pipe::{Outcome, Pipe};
use socks::{Destination, Reply, Step};
use stack::Stack;

/// What goes through the link without a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsConfig {
    /// Addresses of this host, and where behind the link each connection to them goes.
    pub ports: Vec<(SocketAddr, SocketAddr)>,
    /// Where to serve SOCKS 5.
    pub socks: Option<SocketAddr>,
    /// Ports of this host's address in the link, and what peers reach there.
    pub served: Vec<(u16, SocketAddr)>,
    /// Connections at once. Each has two buffers.
    pub connections: usize,
    /// Octets of a buffer: what may be under way each way in a connection.
    pub buffer: usize,
}

/// Addresses that a stack may have.
pub const ADDRESSES_MAX: usize = 8;

/// What became of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Connections that have not ended yet, those on their way included.
    pub open: u64,
    /// Connections that were closed at once, since there were as many as there may be.
    pub refused: u64,
    /// Connections that could not be made: the other end did not answer, or nothing listens there.
    pub failed: u64,
    /// Connections that began, at either end.
    pub begun: u64,
}

/// How long a client of SOCKS may take until it has said where to.
const GREETING: Duration = Duration::from_secs(30);
/// Tokens of the event loop: the bell of errands, listeners, connections.
const BELL: u64 = FIRST_TOKEN;
const LISTENERS: u64 = FIRST_TOKEN + 1;
const CONNECTIONS: u64 = FIRST_TOKEN + (1 << 32);
/// The least token of this module.
pub(crate) const FIRST_TOKEN: u64 = 1 << 33;

/// All connections of a host.
pub(crate) struct Streams {
    config: StreamsConfig,
    listeners: Vec<(TcpListener, Option<SocketAddr>)>,
    addresses: Vec<(IpAddr, u8)>,
    mtu: usize,
    stacks: BTreeMap<usize, Stack>,
    connections: Vec<Option<Connection>>,
    errands: Errands,
    pub counters: StreamCounters,
    /// Numbers that make errands of earlier users of a place invalid.
    life: u32,
}

/// A connection on its way to both halves.
struct Connection {
    state: Phase,
    life: u32,
    since: Instant,
    /// What the event loop watches of the kernel's socket.
    interest: (bool, bool),
}

enum Phase {
    /// A client of SOCKS speaks; what it has said, and whether it was greeted.
    Asks(TcpStream, Vec<u8>, bool),
    /// Its name is looked up.
    Looks(TcpStream),
    /// The other end is called; whether the client waits for an answer of SOCKS.
    Calls(TcpStream, (usize, SocketHandle), bool),
    /// A peer has called, and the service here is connected to.
    Serves((usize, SocketHandle)),
    Flows(Pipe, (usize, SocketHandle)),
    /// Ended here; the stack has to tell the peer.
    Ends((usize, SocketHandle)),
}

impl Streams {
    /// Opens all listeners. Packets have at most `mtu` octets.
    pub fn open(
        config: &StreamsConfig,
        addresses: &[(IpAddr, u8)],
        mtu: usize,
        events: &EventLoop,
    ) -> chappe_sys::Result<Streams> {
        let ports = config.ports.iter().map(|(at, to)| (*at, Some(*to)));
        let wanted = ports.chain(config.socks.map(|at| (at, None)));
        let mut listeners = Vec::new();
        for (at, to) in wanted {
            let failed = |error: std::io::Error| {
                Error::unusable(&format!("listen on {at} for connections"), &error)
            };
            let listener = TcpListener::bind(at).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            events.add(&listener, LISTENERS + listeners.len() as u64)?;
            listeners.push((listener, to));
        }
        let failed = |error| Error::unusable("make a pair of sockets", &error);
        let errands = Errands::new().map_err(failed)?;
        events.add(&errands, BELL)?;
        Ok(Streams {
            config: config.clone(),
            listeners,
            addresses: addresses.to_vec(),
            mtu,
            stacks: BTreeMap::new(),
            connections: Vec::new(),
            errands,
            counters: StreamCounters::default(),
            life: 0,
        })
    }

    /// Takes a packet of the peer with this place; false if too many wait.
    pub fn hear(&mut self, now: Instant, place: usize, packet: &[u8]) -> bool {
        self.stack(now, place).hear(packet)
    }

    fn stack(&mut self, now: Instant, place: usize) -> &mut Stack {
        let sizes = (self.mtu, self.config.buffer);
        let addresses = &self.addresses;
        self.stacks.entry(place).or_insert_with(|| {
            // Sequence numbers guard against strangers, and only the peer can send here.
            let seed = chappe_sys::random_u64().unwrap_or(place as u64);
            Stack::new(now, addresses, sizes, seed)
        })
    }

    /// The next packet for a peer.
    pub fn next_packet(&mut self, place: usize) -> Option<Vec<u8>> {
        self.stacks.get_mut(&place)?.next_packet()
    }

    /// The places of peers to which there may be packets.
    pub fn places(&self) -> Vec<usize> {
        self.stacks.keys().copied().collect()
    }

    /// A peer has gone, and with it its connections.
    pub fn forget(&mut self, place: usize, events: &EventLoop) {
        for number in 0..self.connections.len() {
            if self.connections[number]
                .as_ref()
                .and_then(Connection::place)
                == Some(place)
            {
                self.remove(number, events, true);
            }
        }
        self.stacks.remove(&place);
    }

    /// When something is to be done whatever arrives.
    pub fn deadline(&mut self, now: Instant) -> Option<Instant> {
        let due = self
            .stacks
            .values_mut()
            .filter_map(|stack| stack.deadline(now));
        due.min()
    }

    /// Does what is to be done at once if a token of the event loop is ready. `route` says the place of the peer behind which an
    /// address is.
    pub fn ready(
        &mut self,
        now: Instant,
        token: u64,
        events: &EventLoop,
        route: &impl Fn(IpAddr) -> Option<usize>,
    ) {
        match token {
            BELL => {
                self.errands.heard();
                while let Some((asker, found)) = self.errands.next() {
                    self.found(now, asker, found, events, route);
                }
            }
            LISTENERS..CONNECTIONS => self.accept(now, (token - LISTENERS) as usize, events, route),
            CONNECTIONS.. => {
                let number = (token - CONNECTIONS) as usize;
                if let Some(Some(connection)) = self.connections.get(number)
                    && matches!(connection.state, Phase::Asks(..))
                {
                    self.ask(now, number, events, route);
                }
            }
            _ => {}
        }
    }

    /// Moves everything that can be moved.
    pub fn turn(&mut self, now: Instant, events: &EventLoop) {
        let full = self.count() >= self.config.connections;
        let served = self.config.served.iter().map(|served| served.0);
        let ports: Vec<u16> = served.filter(|_| !full).collect();
        let mut begun = Vec::new();
        for (&place, stack) in &mut self.stacks {
            let new = stack.turn(now, &ports);
            begun.extend(new.into_iter().map(|(port, handle)| (place, port, handle)));
        }
        for (place, port, handle) in begun {
            self.serve(now, (place, handle), port);
        }
        for number in 0..self.connections.len() {
            self.turn_of(now, number, events);
        }
    }

    fn count(&self) -> usize {
        self.connections.iter().flatten().count()
    }

    /// Adds a connection: its number.
    fn add(&mut self, now: Instant, state: Phase) -> usize {
        self.life = self.life.wrapping_add(1);
        let connection = Connection {
            state,
            life: self.life,
            since: now,
            interest: (false, false),
        };
        self.counters.begun += 1;
        self.counters.open += 1;
        match self.connections.iter().position(Option::is_none) {
            Some(free) => {
                self.connections[free] = Some(connection);
                free
            }
            None => {
                self.connections.push(Some(connection));
                self.connections.len() - 1
            }
        }
    }

    /// Removes a connection. With `reset`, both its ends learn that it did not end in order.
    fn remove(&mut self, number: usize, events: &EventLoop, reset: bool) {
        let Some(mut gone) = self.connections.get_mut(number).and_then(Option::take) else {
            return;
        };
        gone.watch(number, events, (false, false));
        self.counters.open -= 1;
        if let (true, Some(stream)) = (reset, gone.stream()) {
            // What was said may not be all: the program should not take this for an orderly end.
            let _ = chappe_sys::reset_on_close(stream);
        }
        if let Some((place, handle)) = gone.ends()
            && let Some(stack) = self.stacks.get_mut(&place)
        {
            let socket = stack.sockets.get_mut::<Socket>(handle);
            let ended = matches!(socket.state(), State::Closed | State::TimeWait);
            if ended || !reset {
                stack.sockets.remove(handle);
                return;
            }
            // The stack tells the peer in its next turn.
            socket.abort();
            gone.state = Phase::Ends((place, handle));
            self.counters.open += 1;
            self.connections[number] = Some(gone);
        }
    }

    fn accept(
        &mut self,
        now: Instant,
        listener: usize,
        events: &EventLoop,
        route: &impl Fn(IpAddr) -> Option<usize>,
    ) {
        while let Some((listener, to)) = self.listeners.get(listener) {
            let to = *to;
            let Ok((stream, _)) = listener.accept() else {
                return;
            };
            if self.count() >= self.config.connections || stream.set_nonblocking(true).is_err() {
                self.counters.refused += 1;
                let _ = chappe_sys::reset_on_close(&stream);
                continue;
            }
            // What a program writes leaves at once; the kernel need not wait for more.
            let _ = stream.set_nodelay(true);
            match to {
                Some(to) => self.call(now, stream, to, false, route),
                None => {
                    let number = self.add(now, Phase::Asks(stream, Vec::new(), false));
                    if let Some(Some(connection)) = self.connections.get_mut(number) {
                        connection.watch(number, events, (true, false));
                    }
                }
            }
        }
    }

    /// Calls the other end for a program. `asked`: it waits for an answer of SOCKS.
    fn call(
        &mut self,
        now: Instant,
        mut stream: TcpStream,
        to: SocketAddr,
        asked: bool,
        route: &impl Fn(IpAddr) -> Option<usize>,
    ) {
        let place = route(to.ip());
        let handle = place.and_then(|place| Some((place, self.stack(now, place).connect(to)?)));
        match handle {
            Some(ends) => {
                self.add(now, Phase::Calls(stream, ends, asked));
            }
            None => {
                self.counters.failed += 1;
                if asked {
                    let _ = stream.write(&socks::replied(Reply::NetworkUnreachable));
                } else {
                    let _ = chappe_sys::reset_on_close(&stream);
                }
            }
        }
    }

    /// A client of SOCKS has said more.
    fn ask(
        &mut self,
        now: Instant,
        number: usize,
        events: &EventLoop,
        route: &impl Fn(IpAddr) -> Option<usize>,
    ) {
        let Some(Some(connection)) = self.connections.get_mut(number) else {
            return;
        };
        let life = connection.life;
        let Phase::Asks(stream, heard, greeted) = &mut connection.state else {
            return;
        };
        let wants = match hear_client(stream, heard, greeted) {
            Ok(None) => return,
            Ok(Some(wants)) => Ok(wants),
            Err(answer) => Err(answer),
        };
        connection.watch(number, events, (false, false));
        let Some(gone) = self.connections.get_mut(number).and_then(Option::take) else {
            return;
        };
        self.counters.open -= 1;
        self.counters.begun -= 1;
        let Phase::Asks(mut stream, ..) = gone.state else {
            return;
        };
        match wants {
            Ok((Destination::Address(to), port)) => {
                self.call(now, stream, SocketAddr::new(to, port), true, route);
            }
            Ok((Destination::Name(name), port)) => {
                let asker = u64::from(life) << 32 | number as u64;
                match self.errands.look_up(asker, name, port) {
                    true => {
                        self.connections[number] = Some(Connection {
                            state: Phase::Looks(stream),
                            life,
                            since: now,
                            interest: (false, false),
                        });
                        self.counters.open += 1;
                        self.counters.begun += 1;
                    }
                    false => {
                        self.counters.failed += 1;
                        let _ = stream.write(&socks::replied(Reply::GeneralFailure));
                    }
                }
            }
            Err(answer) => {
                self.counters.failed += 1;
                let _ = stream.write(&answer);
            }
        }
    }

    /// An errand has ended.
    fn found(
        &mut self,
        now: Instant,
        asker: u64,
        found: Found,
        events: &EventLoop,
        route: &impl Fn(IpAddr) -> Option<usize>,
    ) {
        let (number, life) = (asker as u32 as usize, (asker >> 32) as u32);
        let waits = |one: &Connection| one.life == life;
        let Some(waiting) = self.connections.get_mut(number) else {
            return;
        };
        if !waiting.as_ref().is_some_and(waits) {
            return;
        }
        let Some(connection) = waiting.take() else {
            return;
        };
        self.counters.open -= 1;
        match (connection.state, found) {
            (Phase::Looks(mut stream), Found::Addresses(addresses)) => {
                self.counters.begun -= 1;
                // Of several, one that a peer has.
                let reached = addresses.iter().find(|to| route(to.ip()).is_some());
                match reached.or(addresses.first()) {
                    Some(to) => self.call(now, stream, *to, true, route),
                    None => {
                        self.counters.failed += 1;
                        let _ = stream.write(&socks::replied(Reply::HostUnreachable));
                    }
                }
            }
            (Phase::Serves(ends), Found::Stream(Ok(stream)))
                if stream.set_nonblocking(true).is_ok() =>
            {
                let _ = stream.set_nodelay(true);
                if let Some(stack) = self.stacks.get_mut(&ends.0) {
                    stack.sockets.get_mut::<Socket>(ends.1).pause_synack(false);
                }
                self.put_back(number, life, now, Phase::Flows(Pipe::new(stream), ends));
                self.turn_of(now, number, events);
            }
            (Phase::Serves(ends), _) => {
                self.counters.failed += 1;
                self.put_back(number, life, now, Phase::Serves(ends));
                self.remove(number, events, true);
            }
            (state, _) => self.put_back(number, life, now, state),
        }
    }

    fn put_back(&mut self, number: usize, life: u32, now: Instant, state: Phase) {
        self.counters.open += 1;
        self.connections[number] = Some(Connection {
            state,
            life,
            since: now,
            interest: (false, false),
        });
    }

    /// A peer has called a served port.
    fn serve(&mut self, now: Instant, ends: (usize, SocketHandle), port: u16) {
        let number = self.add(now, Phase::Serves(ends));
        let served = self.config.served.iter().find(|served| served.0 == port);
        let asker = u64::from(self.life) << 32 | number as u64;
        let begun = served.is_some_and(|served| self.errands.connect(asker, served.1));
        if !begun {
            self.counters.failed += 1;
            if let Some(stack) = self.stacks.get_mut(&ends.0) {
                stack.sockets.get_mut::<Socket>(ends.1).abort();
            }
            self.connections[number] = Some(Connection {
                state: Phase::Ends(ends),
                life: self.life,
                since: now,
                interest: (false, false),
            });
        }
    }

    /// Moves what one connection can move.
    fn turn_of(&mut self, now: Instant, number: usize, events: &EventLoop) {
        let Some(Some(connection)) = self.connections.get_mut(number) else {
            return;
        };
        let asks = matches!(connection.state, Phase::Asks(..));
        if asks && now.saturating_since(connection.since) > GREETING {
            return self.remove(number, events, true);
        }
        let Some((place, handle)) = connection.ends() else {
            return;
        };
        let Some(stack) = self.stacks.get_mut(&place) else {
            return self.remove(number, events, true);
        };
        let socket = stack.sockets.get_mut::<Socket>(handle);
        match &mut connection.state {
            Phase::Calls(stream, _, asked) => match socket.state() {
                State::SynSent => return,
                State::Closed => {
                    self.counters.failed += 1;
                    if *asked {
                        let _ = stream.write(&socks::replied(Reply::ConnectionRefused));
                    }
                    let reset = !*asked;
                    if let (true, Some(stream)) = (reset, connection.stream()) {
                        let _ = chappe_sys::reset_on_close(stream);
                    }
                    return self.remove(number, events, false);
                }
                _ => {
                    if *asked && stream.write(&socks::replied(Reply::Succeeded)).is_err() {
                        return self.remove(number, events, true);
                    }
                    connection.flow();
                }
            },
            // The stack has told the peer.
            Phase::Ends(_) => return self.remove(number, events, false),
            Phase::Serves(_) if socket.state() == State::Closed => {
                return self.remove(number, events, false);
            }
            _ => {}
        }
        let Phase::Flows(pipe, _) = &mut connection.state else {
            return;
        };
        match pipe.turn(socket) {
            Outcome::Goes => {
                let interest = pipe.interest(socket);
                connection.watch(number, events, interest);
            }
            Outcome::Done => self.remove(number, events, false),
            Outcome::Lost | Outcome::Broken => self.remove(number, events, true),
        }
    }
}

impl Connection {
    /// The stack and the socket of its half towards the peer.
    fn ends(&self) -> Option<(usize, SocketHandle)> {
        match &self.state {
            Phase::Asks(..) | Phase::Looks(_) => None,
            Phase::Calls(_, ends, _)
            | Phase::Serves(ends)
            | Phase::Flows(_, ends)
            | Phase::Ends(ends) => Some(*ends),
        }
    }

    fn place(&self) -> Option<usize> {
        self.ends().map(|ends| ends.0)
    }

    /// The kernel's socket of the connection, if it has one yet.
    fn stream(&self) -> Option<&TcpStream> {
        match &self.state {
            Phase::Asks(stream, ..) | Phase::Looks(stream) | Phase::Calls(stream, ..) => {
                Some(stream)
            }
            Phase::Flows(pipe, _) => Some(&pipe.stream),
            Phase::Serves(_) | Phase::Ends(_) => None,
        }
    }

    /// The other end has answered.
    fn flow(&mut self) {
        let state = std::mem::replace(&mut self.state, Phase::Serves((0, SocketHandle::default())));
        self.state = match state {
            Phase::Calls(stream, ends, _) => Phase::Flows(Pipe::new(stream), ends),
            other => other,
        };
    }

    /// Sets what of the kernel's half ends a wait. What is not wanted must not be watched: it would be ready all the time.
    fn watch(&mut self, number: usize, events: &EventLoop, wanted: (bool, bool)) {
        let Some(stream) = self.stream() else {
            return;
        };
        let changed = events.watch_for(stream, CONNECTIONS + number as u64, self.interest, wanted);
        if changed.is_ok() {
            self.interest = wanted;
        }
    }
}

/// Reads what a client of SOCKS says, and not more: where to, once it has said it, or the answer before the connection is closed.
fn hear_client(
    stream: &mut TcpStream,
    heard: &mut Vec<u8>,
    greeted: &mut bool,
) -> Result<Option<(Destination, u16)>, Vec<u8>> {
    loop {
        let step = match greeted {
            false => socks::greeting(heard),
            true => socks::request(heard),
        };
        match step {
            Step::More(wanted) => {
                // A message has at most 262 octets: a name of 255.
                let mut octets = [0; 512];
                let missing = wanted.saturating_sub(heard.len()).min(octets.len());
                match stream.read(&mut octets[..missing]) {
                    Ok(0) => return Err(Vec::new()),
                    Ok(count) => heard.extend(&octets[..count]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                    Err(_) => return Err(Vec::new()),
                }
            }
            Step::Greeted(offered) => {
                let answer = socks::greeted(offered);
                if !offered {
                    return Err(answer.to_vec());
                }
                if stream.write(&answer).is_err() {
                    return Err(Vec::new());
                }
                heard.clear();
                *greeted = true;
            }
            Step::Wants(to, port) => return Ok(Some((to, port))),
            Step::Refused(reply) => return Err(socks::replied(reply).to_vec()),
            Step::Strange => return Err(Vec::new()),
        }
    }
}
