//! Pacifier in the clothes of `chappe cast`: what a live member adds to the protocol's own frames, each thing by itself.

use std::collections::VecDeque;

use chappe_core::{
    Address, Arrival, Bitrate, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend,
    Outcome, Stream, Wake,
};
use chappe_pacifier::Node;

/// What a live member adds to each frame: Chappe's header (14) and tag (16), UDP (8) and IPv4 (20).
pub const AROUND: usize = 14 + 16 + 8 + 20;
/// What a confirmation has inside: a number and an epoch.
const CONFIRMATION: usize = 12;

/// What is added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clothes {
    /// Octets around each frame. Not none if anything else is added.
    pub around: usize,
    /// Whether each unicast frame is answered with a confirmation by a frame of its own.
    pub confirms: bool,
    /// Hellos and records.
    pub chatter: Option<Chatter>,
    /// The rate at which frames leave the node, into a queue of so many frames before the MAC.
    pub pace: Option<(Bitrate, usize)>,
}

/// Broadcasts beside the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chatter {
    /// The mean time between two of them.
    pub every: Duration,
    /// Octets of each, headers of ours included.
    pub octets: usize,
}

/// A node with clothes on.
pub struct Dressed {
    /// The protocol.
    pub node: Node,
    clothes: Clothes,
    /// Frames that have left the node or stand beside it; waiting for the MAC.
    queue: VecDeque<(LinkSend, Vec<u8>)>,
    /// When the pace lets the next frame out.
    free_at: Instant,
    chatter_at: Instant,
    random: Stream,
    buffer: Vec<u8>,
    /// Whether the node, asked last, had no frame although it had said so.
    declined: bool,
    /// Frames that found the queue full.
    pub crowded: u64,
}

/// The last octet of a frame with clothes on.
const DATA: u8 = 0;
const CHATTER: u8 = 1;
const CONFIRMS: u8 = 2;
/// The token of frames that the node knows nothing of.
const OURS: u32 = u32::MAX;
/// How much a late pace may make good, as in `chappe-live`.
const BURST: Duration = Duration::from_millis(8);
/// Largest frame.
const FRAME_MAX: usize = 2304;

impl Dressed {
    /// Puts `clothes` on `node`.
    pub fn new(node: Node, clothes: Clothes, mut random: Stream) -> Dressed {
        let first = |chatter: Chatter| Duration::from_nanos(random.below(chatter.every.nanos()));
        Dressed {
            node,
            clothes,
            queue: VecDeque::new(),
            free_at: Instant::ZERO,
            chatter_at: Instant::ZERO + clothes.chatter.map_or(Duration::ZERO, first),
            random,
            buffer: vec![0; FRAME_MAX],
            declined: false,
            crowded: 0,
        }
    }

    fn enqueue(&mut self, now: Instant, send: LinkSend, octets: Vec<u8>) {
        let most = self.clothes.pace.map_or(usize::MAX, |(_, queue)| queue);
        if self.queue.len() >= most {
            self.crowded += 1;
            if !send.to.is_broadcast() {
                let (token, outcome) = (send.token, Outcome::Failed { attempts: 0 });
                self.hear(now, token, outcome);
            }
            return;
        }
        self.queue.push_back((send, octets));
    }

    fn hear(&mut self, now: Instant, token: u32, outcome: Outcome) {
        if token != OURS {
            self.node
                .handle_link(now, LinkEvent::Sent { token, outcome });
        }
    }

    /// A frame of our own, of `len` octets.
    fn add(&mut self, now: Instant, to: Address, len: usize, kind: u8) {
        let mut octets = vec![0; len.max(1)];
        if let Some(last) = octets.last_mut() {
            *last = kind;
        }
        let (len, class) = (octets.len(), Class::Control);
        let send = LinkSend {
            to,
            len,
            class,
            mode: None,
            token: OURS,
        };
        self.enqueue(now, send, octets);
    }

    /// Does what is due.
    fn go_on(&mut self, now: Instant) {
        self.declined = false;
        if let Some(chatter) = self.clothes.chatter
            && self.chatter_at <= now
        {
            self.add(now, Address::BROADCAST, chatter.octets, CHATTER);
            let jitter = Duration::from_nanos(self.random.below(chatter.every.nanos()));
            self.chatter_at = now + chatter.every / 2 + jitter;
        }
        let Some((rate, _)) = self.clothes.pace else {
            return;
        };
        while self.free_at <= now && !self.node.pending().is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            let sent = self.node.poll_link(now, Classes::ALL, &mut buffer);
            let octets = sent.and_then(|send| buffer.get(..send.len).map(<[u8]>::to_vec));
            self.buffer = buffer;
            let (Some(send), Some(mut octets)) = (sent, octets) else {
                self.declined = true;
                return;
            };
            octets.resize(send.len + self.clothes.around, DATA);
            let len = octets.len();
            let cost = rate.time_of((len as u64 + ETHERNET) * 8);
            self.free_at = self.free_at.max(now.saturating_before(BURST)) + cost;
            let class = Class::Data;
            self.enqueue(now, LinkSend { len, class, ..send }, octets);
            if send.to.is_broadcast() {
                // The kernel has it, and nobody says when it is on the air.
                self.hear(now, send.token, Outcome::Unconfirmed);
            }
        }
    }
}

/// Octets of Ethernet's header, which count in a rate.
const ETHERNET: u64 = 14;

impl LinkNode for Dressed {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Sent { token, outcome } => {
                // Told before, when it left the node.
                let told = self.clothes.pace.is_some() && outcome == Outcome::Unconfirmed;
                if !told {
                    self.hear(now, token, outcome);
                }
            }
            LinkEvent::Received(arrival) if self.clothes.around > 0 => {
                let inner = arrival.sdu.len().saturating_sub(self.clothes.around);
                let (sdu, kind) = (arrival.sdu.get(..inner), arrival.sdu.last());
                if let (Some(sdu), Some(&DATA)) = (sdu, kind) {
                    if self.clothes.confirms && !arrival.to.is_broadcast() {
                        let len = self.clothes.around + CONFIRMATION;
                        self.add(now, arrival.from, len, CONFIRMS);
                    }
                    let arrival = Arrival { sdu, ..arrival };
                    self.node.handle_link(now, LinkEvent::Received(arrival));
                }
            }
            LinkEvent::Received(_) => self.node.handle_link(now, event),
        }
        self.go_on(now);
    }

    fn pending(&self) -> Classes {
        let waits = |class| self.queue.iter().any(|(send, _)| send.class == class);
        let mut classes = match self.clothes.pace {
            Some(_) => Classes::NONE,
            None => self.node.pending(),
        };
        for class in Class::BY_URGENCY {
            classes = classes.with_if(class, waits(class));
        }
        classes
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let first = self.queue.front();
        if first.is_some_and(|(send, _)| allowed.contains(send.class)) {
            let (send, octets) = self.queue.pop_front()?;
            sdu.get_mut(..octets.len())?.copy_from_slice(&octets);
            return Some(send);
        }
        if self.clothes.pace.is_some() {
            return None;
        }
        let send = self.node.poll_link(now, allowed, sdu)?;
        let len = send.len + self.clothes.around;
        sdu.get_mut(send.len..len)?.fill(DATA);
        Some(LinkSend { len, ..send })
    }

    fn handle_timeout(&mut self, now: Instant) {
        if Wake::due(self.node.poll_timeout(), now) {
            self.node.handle_timeout(now);
        }
        self.go_on(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let mut wake = self.node.poll_timeout();
        if self.clothes.chatter.is_some() {
            let (at, why) = (self.chatter_at, "a hello");
            wake = Wake::earlier(wake, Some(Wake { at, why }));
        }
        if self.clothes.pace.is_some() && !self.declined && !self.node.pending().is_empty() {
            let (at, why) = (self.free_at, "the pace");
            wake = Wake::earlier(wake, Some(Wake { at, why }));
        }
        wake
    }
}
