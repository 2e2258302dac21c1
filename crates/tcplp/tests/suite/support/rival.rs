//! smoltcp as a host: one TCP socket over IPv6, fed and drained packet by packet on a virtual clock.

#![allow(dead_code)]

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Duration, Instant};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time;
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv6Cidr};

/// Packets that wait on either side of the stack.
struct Queues {
    inbound: VecDeque<Vec<u8>>,
    outbound: VecDeque<Vec<u8>>,
    mtu: usize,
}

struct In(Vec<u8>);
struct Out<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for In {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl TxToken for Out<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut packet = vec![0; len];
        let result = fill(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = In;
    type TxToken<'a> = Out<'a>;

    fn receive(&mut self, _: time::Instant) -> Option<(In, Out<'_>)> {
        let packet = self.inbound.pop_front()?;
        Some((In(packet), Out(&mut self.outbound)))
    }

    fn transmit(&mut self, _: time::Instant) -> Option<Out<'_>> {
        Some(Out(&mut self.outbound))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

/// A host that runs the rival stack, with one TCP socket.
pub struct Rival {
    queues: Queues,
    interface: Interface,
    sockets: SocketSet<'static>,
    tcp: SocketHandle,
    remote: Ipv6Addr,
}

impl Rival {
    /// At `local`, with buffers of these sizes and a largest payload of `mss`.
    pub fn new(local: IpAddr, remote: IpAddr, buffers: [usize; 2], mss: usize) -> Rival {
        let (IpAddr::V6(local), IpAddr::V6(remote)) = (local, remote) else {
            panic!("the tests speak IPv6");
        };
        let mut queues = Queues {
            inbound: VecDeque::new(),
            outbound: VecDeque::new(),
            mtu: mss + 60,
        };
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut queues, time::Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let address = IpCidr::Ipv6(Ipv6Cidr::new(local, 64));
            addresses.push(address).expect("there is room for one");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let [receive, send] = buffers.map(|size| SocketBuffer::new(vec![0; size]));
        let mut socket = Socket::new(receive, send);
        socket.set_congestion_control(CongestionControl::Reno);
        let tcp = sockets.add(socket);
        Rival {
            queues,
            interface,
            sockets,
            tcp,
            remote,
        }
    }

    pub fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.tcp)
    }

    /// No congestion window, no delayed ACK, no Nagle.
    pub fn unhurried(&mut self) {
        let socket = self.socket();
        socket.set_congestion_control(CongestionControl::None);
        socket.set_ack_delay(None);
        socket.set_nagle_enabled(false);
    }

    pub fn state(&self) -> State {
        self.sockets.get::<Socket<'_>>(self.tcp).state()
    }

    pub fn listen(&mut self, port: u16) {
        self.socket().listen(port).expect("the socket is closed");
    }

    pub fn connect(&mut self, port: u16, remote_port: u16) {
        let remote = (self.remote, remote_port);
        let socket = self.sockets.get_mut::<Socket<'_>>(self.tcp);
        let context = self.interface.context();
        socket
            .connect(context, remote, port)
            .expect("the socket is closed");
    }

    /// Delivers a packet and polls the stack.
    pub fn hand(&mut self, now: Instant, packet: &[u8]) {
        self.queues.inbound.push_back(packet.to_vec());
        self.work(now);
    }

    /// Polls the stack for what is due.
    pub fn work(&mut self, now: Instant) {
        let now = time::Instant::from_micros((now.nanos() / 1_000) as i64);
        self.interface
            .poll(now, &mut self.queues, &mut self.sockets);
    }

    /// The next packet that it sends.
    pub fn packet(&mut self) -> Option<Vec<u8>> {
        self.queues.outbound.pop_front()
    }

    /// When smoltcp must be polled again.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        let micros = time::Instant::from_micros((now.nanos() / 1_000) as i64);
        let delay = self.interface.poll_delay(micros, &self.sockets)?;
        Some(now + Duration::from_micros(delay.total_micros().max(1)))
    }

    pub fn write(&mut self, data: &[u8]) -> usize {
        self.socket().send_slice(data).unwrap_or(0)
    }

    pub fn read(&mut self, data: &mut [u8]) -> usize {
        self.socket().recv_slice(data).unwrap_or(0)
    }
}
