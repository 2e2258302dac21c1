//! A host's card: a node of the mesh above, the queue of frames that wait for the channel, the MAC below.

use std::collections::VecDeque;

use chappe_core::{
    Address, Arrival, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Wake,
};
use chappe_mesh::node::Node;

use super::ends::{Flow, Pings};

/// Frames that the card holds (the emulator's default).
const QUEUE: usize = 64;
/// Octets before the node's frame: LLC and SNAP, and the header of `chappe-live`.
const BEFORE: usize = 8 + chappe_live::HEADER;
/// Octets of `chappe-live` behind it.
const BEHIND: usize = chappe_live::TAG;

/// A node with its card, and the programs on its host.
#[derive(Debug)]
pub struct Card {
    pub node: Node,
    queue: VecDeque<(Address, Vec<u8>)>,
    pub flows: Vec<Flow>,
    pub pings: Pings,
    /// Frames that the full card lost.
    pub lost: u64,
    scratch: Vec<u8>,
}

impl Card {
    pub fn new(node: Node) -> Card {
        Card {
            node,
            queue: VecDeque::new(),
            flows: Vec::new(),
            pings: Pings::default(),
            lost: 0,
            scratch: vec![0; 4096],
        }
    }

    pub fn add(&mut self, now: Instant, flow: Flow) {
        self.flows.push(flow);
        self.work(now);
    }

    pub fn ping(&mut self, now: Instant, from: usize, to: usize, every: Duration) {
        self.pings = Pings::new(now, from, to, every);
        self.work(now);
    }

    /// What the daemon and the host's kernel do after each event.
    fn work(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        while let Some(len) = self.node.deliver(&mut self.scratch) {
            let packet = &self.scratch[..len];
            if let Some(answer) = self.pings.handle(now, packet) {
                self.node.offer(now, &answer);
            }
            for flow in &mut self.flows {
                flow.handle(now, packet);
            }
        }
        while let Some(packet) = self.pings.poll(now) {
            self.node.offer(now, &packet);
        }
        for flow in &mut self.flows {
            while let Some(packet) = flow.poll(now) {
                self.node.offer(now, &packet);
            }
        }
        loop {
            let allowed = self.node.pending();
            if allowed.is_empty() {
                return;
            }
            let Some(send) = self.node.poll_link(now, allowed, &mut self.scratch) else {
                return;
            };
            if self.queue.len() >= QUEUE {
                self.lost += 1;
                continue;
            }
            let mut frame = vec![0; BEFORE + send.len + BEHIND];
            frame[BEFORE..BEFORE + send.len].copy_from_slice(&self.scratch[..send.len]);
            self.queue.push_back((send.to, frame));
        }
    }
}

impl LinkNode for Card {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event {
            let end = arrival.sdu.len().saturating_sub(BEHIND);
            let sdu = arrival.sdu.get(BEFORE..end).unwrap_or_default();
            let arrival = Arrival { sdu, ..arrival };
            self.node.handle_link(now, LinkEvent::Received(arrival));
        }
        self.work(now);
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, !self.queue.is_empty())
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        let (to, frame) = self.queue.pop_front()?;
        sdu[..frame.len()].copy_from_slice(&frame);
        self.work(now);
        Some(LinkSend {
            to,
            len: frame.len(),
            class: Class::Data,
            mode: None,
            token: 0,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.work(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let flows = self.flows.iter().map(Flow::poll_timeout);
        flows.fold(
            Wake::earlier(self.node.poll_timeout(), self.pings.poll_timeout()),
            Wake::earlier,
        )
    }
}
