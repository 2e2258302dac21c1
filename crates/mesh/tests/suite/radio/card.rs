//! A host's card: a node of the mesh above, the queue of frames that wait for the channel, the MAC below.

use std::collections::VecDeque;

use chappe_core::{Address, Arrival, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Wake};
use chappe_mesh::node::Node;

use super::ends::Programs;

/// Frames that the card holds (the emulator's default).
const QUEUE: usize = 64;
/// Octets before the node's frame: LLC and SNAP, and the header of `chappe-live`.
const BEFORE: usize = 8 + chappe_live::HEADER;
/// Octets of `chappe-live` behind it.
const BEHIND: usize = chappe_live::TAG;

/// Frames that wait for the channel.
#[derive(Debug, Default)]
pub struct Queue(VecDeque<(Address, Vec<u8>)>);

impl Queue {
    pub fn is_full(&self) -> bool {
        self.0.len() >= QUEUE
    }

    pub fn push(&mut self, to: Address, frame: Vec<u8>) {
        self.0.push_back((to, frame));
    }

    pub fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, !self.0.is_empty())
    }

    /// Writes the first frame to the front of `sdu`, if frames of data are allowed.
    pub fn poll(&mut self, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        let (to, frame) = self.0.pop_front()?;
        sdu[..frame.len()].copy_from_slice(&frame);
        Some(LinkSend {
            to,
            len: frame.len(),
            class: Class::Data,
            mode: None,
            token: 0,
        })
    }
}

/// A node with its card, and the programs on its host.
#[derive(Debug)]
pub struct Card {
    pub node: Node,
    queue: Queue,
    pub programs: Programs,
    /// Frames that the full card lost.
    pub lost: u64,
    scratch: Vec<u8>,
}

impl Card {
    pub fn new(node: Node) -> Card {
        Card {
            node,
            queue: Queue::default(),
            programs: Programs::default(),
            lost: 0,
            scratch: vec![0; 4096],
        }
    }

    /// What the daemon and the host's kernel do after each event.
    pub fn work(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        while let Some(len) = self.node.deliver(&mut self.scratch) {
            if let Some(answer) = self.programs.handle(now, &self.scratch[..len]) {
                self.node.offer(now, &answer);
            }
        }
        while let Some(packet) = self.programs.poll(now) {
            self.node.offer(now, &packet);
        }
        loop {
            let allowed = self.node.pending();
            if allowed.is_empty() {
                return;
            }
            let Some(send) = self.node.poll_link(now, allowed, &mut self.scratch) else {
                return;
            };
            if self.queue.is_full() {
                self.lost += 1;
                continue;
            }
            let mut frame = vec![0; BEFORE + send.len + BEHIND];
            frame[BEFORE..BEFORE + send.len].copy_from_slice(&self.scratch[..send.len]);
            self.queue.push(send.to, frame);
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
        self.queue.pending()
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let send = self.queue.poll(allowed, sdu)?;
        self.work(now);
        Some(send)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.work(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Wake::earlier(self.node.poll_timeout(), self.programs.poll_timeout())
    }
}
