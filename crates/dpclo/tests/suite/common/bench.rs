//! One node, and neighbours that speak by hand.

use chappe_core::{
    Address, Arrival, Caps, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend,
    Outcome,
};
use chappe_dpclo::header::{
    self, Backlog, Count, Data, Frame, Metric, Probe, ROOM_MAX, Route, Routes,
};
use chappe_dpclo::{Router, Settings};

use super::{CAPS, router_over};

/// Node 0 with its neighbours, which speak by hand.
pub struct Bench {
    pub node: Router,
    pub now: Instant,
    pub probes: u16,
}

impl Bench {
    /// Neighbours `(node, ETX, how far each is from destination 9)`; K as in `settings`.
    pub fn new(settings: Settings, neighbours: &[(u16, u8, f64)]) -> Bench {
        Bench::over(&CAPS, settings, neighbours)
    }

    /// The same over another link.
    pub fn over(caps: &Caps, settings: Settings, neighbours: &[(u16, u8, f64)]) -> Bench {
        let mut bench = Bench {
            node: router_over(caps, settings, 0, 0, Instant::ZERO, 1),
            now: Instant::ZERO,
            probes: 0,
        };
        for _ in 0..12 {
            bench.probe(neighbours);
            bench.wait(1000);
        }
        for &(neighbour, _, etx) in neighbours {
            let entry = Route {
                destination: 9,
                seq: 2,
                metric: Metric::from_etx(etx),
                via: 9,
            };
            bench.hear(neighbour, |room| {
                Routes::emit(&mut [entry].into_iter(), room)
            });
        }
        bench.silence();
        bench
    }

    /// Each neighbour sends a probe.
    pub fn probe(&mut self, neighbours: &[(u16, u8, f64)]) {
        self.probes += 1;
        for &(neighbour, received, _) in neighbours {
            let ours = Count {
                node: 0,
                received,
                of: 10,
            };
            let number = self.probes;
            self.hear(neighbour, |room| {
                Probe::emit((0, number), [ours].into_iter(), [].into_iter(), 0, room)
            });
        }
    }

    pub fn hear(&mut self, from: u16, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        self.hear_to(from, Address::BROADCAST, write);
    }

    pub fn hear_to(
        &mut self,
        from: u16,
        to: Address,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) {
        let mut room = [0; 512];
        let len = write(&mut room).expect("there is room");
        let arrival = Arrival {
            from: Address::node(from),
            to,
            sdu: &room[..len],
            power: None,
        };
        self.node
            .handle_link(self.now, LinkEvent::Received(arrival));
    }

    /// A neighbour's packet for 9 to another node, which carries its queue length.
    pub fn overhear(&mut self, from: u16, packets: f64) {
        let data = Data {
            backlog: Backlog::from_packets(packets),
            ..packet(9)
        };
        self.hear_to(from, Address::node(77), |room| data.emit(b"x", room));
    }

    pub fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(wake) = self.node.poll_timeout().filter(|wake| wake.at <= end) {
            self.now = self.now.max(wake.at);
            self.node.handle_timeout(self.now);
            self.silence();
        }
        self.now = end;
    }

    /// Lets probes and updates out.
    pub fn silence(&mut self) {
        let mut room = [0; 512];
        while self
            .node
            .poll_link(self.now, Classes::only(Class::Control), &mut room)
            .is_some()
        {}
    }

    pub fn send(&mut self) -> Option<(LinkSend, Data)> {
        let mut room = [0; 512];
        let send = self.node.poll_link(self.now, Classes::ALL, &mut room)?;
        match header::parse(&room[..send.len]) {
            Ok(Frame::Data(data, _) | Frame::Priced(data, ..)) => Some((send, data)),
            other => panic!("{other:?}"),
        }
    }

    pub fn sent(&mut self, token: u32, outcome: Outcome) {
        self.node
            .handle_link(self.now, LinkEvent::Sent { token, outcome });
    }

    /// Fills the queue for 9 by packets of a neighbour.
    pub fn relay(&mut self, count: u32) {
        for number in 0..count {
            let data = Data {
                number,
                ..packet(9)
            };
            self.hear_to(5, Address::node(0), |room| data.emit(b"relayed", room));
        }
    }
}

pub fn packet(destination: u16) -> Data {
    Data {
        first: false,
        hop_limit: 20,
        source: 5,
        destination,
        flow: 1,
        number: 0,
        backlog: Backlog(0),
        congested: false,
        empty: false,
        room: ROOM_MAX,
        epoch: 0,
    }
}
