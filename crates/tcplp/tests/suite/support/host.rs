//! A host: sockets, listeners and the table that joins packets to them, as a [`HostNode`].

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{HostNode, Instant, Wake};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{
    Config, Endpoint, Flow, Heard, Listener, Local, Memory, Range, Secret, Segment, Sent, Socket,
    State, Verdict,
};

use super::ip;

pub type Connection = Socket<'static, Any>;

/// The sizes of each socket's memory.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub send: usize,
    pub receive: usize,
    pub ranges: usize,
    pub flight: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes {
            send: 20_000,
            receive: 20_000,
            ranges: 8,
            flight: 32,
        }
    }
}

pub struct Host {
    pub local: &'static Local,
    pub sizes: Sizes,
    pub congestion: Any,
    pub sockets: Vec<Connection>,
    pub listeners: Vec<Listener>,
    /// Sockets accepted and not yet taken by the application.
    pub accepted: VecDeque<usize>,
    pool: Vec<Connection>,
    outbox: VecDeque<Vec<u8>>,
}

/// The address of host `number`.
pub fn address(number: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number))
}

impl Host {
    pub fn new(number: u16, config: Config, sizes: Sizes, congestion: Any) -> Host {
        Host {
            local: Box::leak(Box::new(Local {
                address: address(number),
                secret: Secret::new([number as u8 ^ 0x5a; 16]),
                config,
            })),
            sizes,
            congestion,
            sockets: Vec::new(),
            listeners: Vec::new(),
            accepted: VecDeque::new(),
            pool: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    /// A closed socket: one from the pool, or a new one whose memory is leaked.
    fn socket(&mut self) -> usize {
        let sizes = self.sizes;
        let socket = self.pool.pop().unwrap_or_else(|| {
            let memory = Memory {
                send: Box::leak(vec![0; sizes.send].into_boxed_slice()),
                receive: Box::leak(vec![0; sizes.receive].into_boxed_slice()),
                ranges: Box::leak(vec![Range::default(); sizes.ranges].into_boxed_slice()),
                flight: Box::leak(vec![Sent::default(); sizes.flight].into_boxed_slice()),
            };
            Socket::new(self.local, memory, self.congestion).expect("the sizes are sound")
        });
        self.sockets.push(socket);
        self.sockets.len() - 1
    }

    /// Removes closed sockets from the table, which renumbers the others. Returns how many are left.
    pub fn collect(&mut self) -> usize {
        let closed = |socket: &mut Connection| {
            let dead = socket.state() == State::Closed;
            dead && socket.poll_segment(Instant::MAX, &mut [0; 2048]).is_none()
        };
        let dead: Vec<Connection> = self.sockets.extract_if(.., closed).collect();
        self.pool.extend(dead);
        self.sockets.len()
    }

    pub fn listen(&mut self, port: u16, backlog: u16) {
        self.listeners.push(Listener::new(port, backlog));
    }

    pub fn connect(&mut self, now: Instant, port: u16, remote: Endpoint) -> usize {
        let index = self.socket();
        let socket = &mut self.sockets[index];
        socket
            .connect(now, port, remote)
            .expect("the socket is closed");
        index
    }

    fn deliver(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        flow: Flow,
        ecn: chappe_tcplp::tcp::Ecn,
    ) {
        let known =
            |socket: &&mut Connection| socket.state() != State::Closed && socket.flow() == flow;
        if let Some(socket) = self.sockets.iter_mut().find(known) {
            match socket.handle_segment(now, segment, ecn) {
                Verdict::Done => return,
                Verdict::Refuse => return self.refuse(segment, flow),
                Verdict::Reopen => {}
            }
        }
        let port = segment.destination_port;
        let heard = self.listeners.iter().find(|listener| listener.port == port);
        match heard.map(|listener| listener.hear(segment)) {
            Some(Heard::Syn) => {
                let index = self.socket();
                let socket = &mut self.sockets[index];
                socket
                    .accept(now, flow.remote, segment)
                    .expect("the socket is closed");
                self.accepted.push_back(index);
            }
            Some(Heard::Ignore) => {}
            Some(Heard::Refuse) | None => self.refuse(segment, flow),
        }
    }

    fn refuse(&mut self, segment: &Segment<'_>, flow: Flow) {
        let Some(reset) = segment.reset() else {
            return;
        };
        let (from, to) = (self.local.address, flow.remote.address());
        let header = ip::header(to);
        let mut packet = vec![0; header + 60];
        let len = reset
            .emit(&flow, &mut packet[header..])
            .expect("a reset is short");
        ip::emit(&mut packet, from, to, Default::default(), len);
        packet.truncate(header + len);
        self.outbox.push_back(packet);
    }
}

impl HostNode for Host {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some(packet) = ip::parse(packet) else {
            return;
        };
        let (from, to) = (packet.source, packet.destination);
        if to != self.local.address {
            return;
        }
        let ends = |a, b| Flow::new(Endpoint::new(to, a), Endpoint::new(from, b));
        // The pseudo header has no ports.
        let Ok(segment) = Segment::parse_checked(packet.segment, &ends(0, 0)) else {
            return;
        };
        let flow = ends(segment.destination_port, segment.source_port);
        self.deliver(now, &segment, flow, packet.ecn);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        if let Some(ready) = self.outbox.pop_front() {
            packet[..ready.len()].copy_from_slice(&ready);
            return Some(ready.len());
        }
        for socket in &mut self.sockets {
            let flow = socket.flow();
            let (from, to) = (flow.local.address(), flow.remote.address());
            let header = ip::header(to);
            let (_, room) = packet.split_at_mut(header);
            if let Some(sent) = socket.poll_segment(now, room) {
                ip::emit(packet, from, to, sent.ecn, sent.len);
                return Some(header + sent.len);
            }
        }
        None
    }

    fn handle_timeout(&mut self, now: Instant) {
        for socket in &mut self.sockets {
            socket.handle_timeout(now);
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let wakes = self.sockets.iter().map(Socket::poll_timeout);
        wakes.fold(None, Wake::earlier)
    }
}
