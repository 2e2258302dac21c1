//! The memory that the sockets of a run borrow.
//!
//! `chappe_tcplp` allocates nothing: its sockets borrow their buffers. Here the buffers of all hosts are on the heap, so that
//! a run owns them and the next run can use them again.

use std::net::{IpAddr, Ipv6Addr};

use chappe_tcplp::tcp::{Local, Memory, NewReno, Range, Secret, Sent, Socket};

use super::station::SOCKETS;
use super::transport::Transport;

/// The buffers of all hosts of one run. A later run of the same experiment can use them again.
pub struct SocketMemory(Vec<HostMemory>);

/// The buffers of one host's sockets.
pub struct HostMemory {
    local: Local,
    send: Vec<u8>,
    receive: Vec<u8>,
    ranges: Vec<Range>,
    flight: Vec<Sent>,
    transport: Transport,
}

/// The least number of out-of-order ranges that a socket can hold.
const RANGES_MIN: usize = 4;

impl SocketMemory {
    /// Buffers for hosts with these addresses, node 0's first.
    pub(super) fn new(hosts: impl Iterator<Item = (Ipv6Addr, Transport)>) -> SocketMemory {
        let host = |(node, (address, transport)): (usize, (Ipv6Addr, Transport))| {
            HostMemory::new(address.into(), node, transport)
        };
        SocketMemory(hosts.enumerate().map(host).collect())
    }

    /// The sockets of the first host, for what needs no network.
    pub(super) fn only(&mut self) -> (&Local, [Socket<'_>; SOCKETS]) {
        self.0[0].sockets()
    }

    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut HostMemory> {
        self.0.iter_mut()
    }
}

impl HostMemory {
    fn new(address: IpAddr, node: usize, transport: Transport) -> HostMemory {
        // Sequence numbers and ports follow from the secret, so it is a function of the node: equal runs stay equal.
        let secret = core::array::from_fn(|at| (node >> (at % 2 * 8)) as u8);
        HostMemory {
            local: Local {
                address,
                secret: Secret::new(secret),
                config: transport.config,
            },
            send: vec![0; transport.send * SOCKETS],
            receive: vec![0; transport.receive * SOCKETS],
            ranges: vec![Range::default(); ranges(&transport) * SOCKETS],
            flight: vec![Sent::default(); transport.flight * SOCKETS],
            transport,
        }
    }

    /// The host's address and configuration, and its sockets.
    pub(super) fn sockets<'a>(&'a mut self) -> (&'a Local, [Socket<'a>; SOCKETS]) {
        let (local, transport): (&'a Local, _) = (&self.local, self.transport);
        let mut send = self.send.chunks_exact_mut(transport.send.max(1));
        let mut receive = self.receive.chunks_exact_mut(transport.receive.max(1));
        let mut gaps = self.ranges.chunks_exact_mut(ranges(&transport));
        let mut flight = self.flight.chunks_exact_mut(transport.flight.max(1));
        let sockets = core::array::from_fn(|_| {
            let memory = Memory {
                send: send.next().unwrap_or_default(),
                receive: receive.next().unwrap_or_default(),
                ranges: gaps.next().unwrap_or_default(),
                flight: flight.next().unwrap_or_default(),
            };
            // Only empty buffers are refused, and an experiment that asks for those is wrong.
            Socket::new(local, memory, NewReno).unwrap_or_else(|why| unreachable!("{why:?}"))
        });
        (local, sockets)
    }
}

fn ranges(transport: &Transport) -> usize {
    transport.flight.max(RANGES_MIN)
}
