//! The memory that the sockets of a scene borrow.

use std::net::IpAddr;

use chappe_tcplp::tcp::{Local, Memory, NewReno, Range, Secret, Sent, Socket};

use super::scene::{Scene, Transport};
use super::station::SOCKETS;

/// Memory for one run of a scene; a next run of the same scene may use it again.
pub struct Ground(Vec<Lent>);

/// What one host's sockets are lent.
pub struct Lent {
    local: Local,
    send: Vec<u8>,
    receive: Vec<u8>,
    ranges: Vec<Range>,
    flight: Vec<Sent>,
    transport: Transport,
}

/// Stretches out of order that a socket can hold for each segment of its buffer.
const RANGES_MIN: usize = 4;

impl Ground {
    /// For a scene's nodes.
    pub fn of(scene: &Scene) -> Ground {
        let lent = |node| Lent::new(scene.address(node).into(), node, scene.transport_of(node));
        Ground((0..scene.nodes()).map(lent).collect())
    }

    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Lent> {
        self.0.iter_mut()
    }
}

impl Lent {
    fn new(address: IpAddr, node: usize, transport: Transport) -> Lent {
        let secret = core::array::from_fn(|at| (node >> (at % 2 * 8)) as u8);
        Lent {
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

    /// The host's end and its sockets.
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
            // Empty buffers are a defect of the scene's author.
            Socket::new(local, memory, NewReno).unwrap_or_else(|why| unreachable!("{why:?}"))
        });
        (local, sockets)
    }
}

fn ranges(transport: &Transport) -> usize {
    transport.flight.max(RANGES_MIN)
}
