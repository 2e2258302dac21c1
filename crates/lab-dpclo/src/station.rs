//! A node of the mesh: its router, its datagram sources and sinks, and its TCP host.

use std::collections::VecDeque;

use chappe_core::{Classes, Instant, LinkEvent, LinkNode, LinkSend, TraceEvent, Wake};
use chappe_dpclo::{Delivery, Router};

use super::load::{Sink, Source};
use super::streams::TcpHost;

/// The flow number distinguishes TCP from datagrams: TCP stream n is flow `TCP + n`.
const TCP: u16 = 0x4000;
/// Segments that wait between host and router. There are few, because the router computes its prices from its own queue.
const OUTBOX: usize = 16;
/// The largest packet in octets.
const PACKET: usize = 2304;

/// A router with its sources, sinks and TCP host.
#[derive(Debug)]
pub struct Station<'a> {
    /// The router of this node.
    pub router: Router,
    /// The sources of datagrams on this node.
    pub sources: Vec<Source>,
    /// The sinks of datagrams on this node.
    pub sinks: Vec<Sink>,
    /// The TCP host, if a TCP stream begins or ends here.
    pub host: Option<TcpHost<'a>>,
    /// For each stream, when the host created each segment, in the order of the router's numbers.
    pub left: Vec<(u16, Vec<Instant>)>,
    /// The segments that arrived: stream, source node, the router's number, time.
    pub arrivals: Vec<(u16, u16, u32, Instant)>,
    outbox: VecDeque<Segment>,
    /// Space for a packet on its way up, and for one on its way between host and router: stations are served at each event, mostly
    /// without any.
    room: [Vec<u8>; 2],
    /// Packets that may wait for one destination.
    limit: u16,
    now: Instant,
}

/// A segment that the router has not accepted yet.
#[derive(Debug)]
struct Segment {
    to: u16,
    stream: u16,
    since: Instant,
    octets: Vec<u8>,
}

impl<'a> Station<'a> {
    /// The time of the latest event.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Creates a station without traffic. `limit` is the length of the router's queue for a destination.
    pub fn new(router: Router, limit: u16) -> Station<'a> {
        Station {
            router,
            sources: Vec::new(),
            sinks: Vec::new(),
            host: None,
            left: Vec::new(),
            arrivals: Vec::new(),
            outbox: VecDeque::new(),
            room: [vec![0; PACKET], vec![0; PACKET]],
            limit,
            now: Instant::ZERO,
        }
    }

    fn serve(&mut self, now: Instant) {
        self.now = now;
        // Taken out because `deliver` changes the rest of the station.
        let [mut buffer, mut room] = std::mem::take(&mut self.room);
        while let Some(delivery) = self.router.poll_delivery(&mut buffer) {
            self.deliver(now, &delivery, &buffer[..delivery.len], &mut room);
        }
        let mut moved = false;
        for source in &mut self.sources {
            moved |= source.serve(now, &mut self.router, self.limit);
        }
        if self.host.is_some() {
            moved |= self.serve_host(now, &mut room);
        }
        self.room = [buffer, room];
        if moved {
            // With new packets, the router must choose its next transmission again.
            self.router.handle_timeout(now);
        }
    }

    fn deliver(&mut self, now: Instant, delivery: &Delivery, octets: &[u8], room: &mut [u8]) {
        if let Some(stream) = delivery.flow.checked_sub(TCP) {
            self.arrivals
                .push((stream, delivery.source, delivery.number, now));
            if let Some(host) = &mut self.host {
                host.take(now, delivery.source, octets, room);
            }
            return;
        }
        let from = (delivery.flow, delivery.source);
        let mut sinks = self.sinks.iter_mut();
        if let Some(sink) = sinks.find(|sink| (sink.stream, sink.from) == from) {
            sink.take(now, delivery, octets);
        }
    }

    /// Moves segments from the host to the router, and returns whether the router accepted any.
    fn serve_host(&mut self, now: Instant, room: &mut [u8]) -> bool {
        let Some(host) = &mut self.host else {
            return false;
        };
        host.tick(now);
        while self.outbox.len() < OUTBOX {
            let Some((to, stream, octets)) = host.poll(now, room) else {
                break;
            };
            self.outbox.push_back(Segment {
                to,
                stream,
                since: now,
                octets: octets.to_vec(),
            });
        }
        // Once a segment must wait, later ones for the same destination wait too, so that none overtakes it.
        let (mut moved, mut blocked) = (false, Vec::new());
        let mut rest = VecDeque::new();
        for segment in std::mem::take(&mut self.outbox) {
            let waits =
                blocked.contains(&segment.to) || self.router.queue(segment.to) >= self.limit;
            let flow = TCP + segment.stream;
            let offer = |router: &mut Router| router.offer(now, segment.to, flow, &segment.octets);
            if waits || offer(&mut self.router).is_err() {
                blocked.push(segment.to);
                rest.push_back(segment);
            } else {
                moved = true;
                log(&mut self.left, segment.stream, segment.since);
            }
        }
        self.outbox = rest;
        moved
    }
}

fn log(left: &mut Vec<(u16, Vec<Instant>)>, stream: u16, at: Instant) {
    match left.iter_mut().find(|(name, _)| *name == stream) {
        Some((_, times)) => times.push(at),
        None => left.push((stream, vec![at])),
    }
}

impl LinkNode for Station<'_> {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        self.router.handle_link(now, event);
        self.serve(now);
    }

    fn pending(&self) -> Classes {
        self.router.pending()
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        self.router.poll_link(now, allowed, sdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.router.handle_timeout(now);
        self.serve(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        // While the outbox is full, the host's timers would fire without effect. The router's next event serves it again.
        let room = self.outbox.len() < OUTBOX;
        let host = self.host.as_ref().filter(|_| room);
        let wakes = self
            .sources
            .iter()
            .map(|source| source.poll_timeout(self.now))
            .chain([host.and_then(TcpHost::poll_timeout)]);
        wakes.fold(self.router.poll_timeout(), Wake::earlier)
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.router.poll_trace()
    }
}
