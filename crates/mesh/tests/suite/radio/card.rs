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

/// Frames that wait for the channel: in one queue, or in one for each access category.
#[derive(Debug, Default)]
pub struct Queue {
    categories: bool,
    /// In the order of [`Class`]; a card without categories uses the one of data.
    frames: [VecDeque<(Address, Vec<u8>)>; 4],
}

impl Queue {
    pub fn new(categories: bool) -> Queue {
        Queue {
            categories,
            frames: Default::default(),
        }
    }

    /// Whether the card took the frame; a full queue loses it.
    pub fn push(&mut self, class: Class, to: Address, frame: Vec<u8>) -> bool {
        let class = match self.categories {
            true => class,
            false => Class::Data,
        };
        let queue = &mut self.frames[class as usize];
        let taken = queue.len() < QUEUE;
        if taken {
            queue.push_back((to, frame));
        }
        taken
    }

    fn waits(&self, class: Class) -> bool {
        !self.frames[class as usize].is_empty()
    }

    pub fn pending(&self) -> Classes {
        Class::BY_URGENCY
            .into_iter()
            .fold(Classes::NONE, |all, class| {
                all.with_if(class, self.waits(class))
            })
    }

    /// Writes the first frame of the most urgent class to the front of `sdu`.
    pub fn poll(&mut self, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let waits = |class: &Class| allowed.contains(*class) && self.waits(*class);
        let class = Class::BY_URGENCY.into_iter().find(waits)?;
        let (to, frame) = self.frames[class as usize].pop_front()?;
        sdu[..frame.len()].copy_from_slice(&frame);
        Some(LinkSend {
            to,
            len: frame.len(),
            class,
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
    pub fn new(node: Node, categories: bool) -> Card {
        Card {
            node,
            queue: Queue::new(categories),
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
            let mut frame = vec![0; BEFORE + send.len + BEHIND];
            frame[BEFORE..BEFORE + send.len].copy_from_slice(&self.scratch[..send.len]);
            let taken = self.queue.push(send.class, send.to, frame);
            self.lost += u64::from(!taken);
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
