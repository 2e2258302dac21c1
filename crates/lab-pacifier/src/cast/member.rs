//! A Pacifier node with the additions of `chappe cast` to the protocol's own frames, each of them optional.

use std::collections::VecDeque;

use chappe_core::{
    Address, Arrival, Bitrate, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend,
    Outcome, Stream, Wake,
};
use chappe_pacifier::Node;

/// Octets that a live member adds to each frame: Chappe's header (14) and tag (16), UDP (8) and IPv4 (20).
pub const AROUND: usize = 14 + 16 + 8 + 20;
/// Octets inside a confirmation: a number and an epoch.
const CONFIRMATION: usize = 12;

/// The additions to a node's own frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Additions {
    /// Octets around each frame. Must not be 0 if there is any other addition: the last octet tells the kinds apart.
    pub around: usize,
    /// Whether a separate frame confirms each unicast frame.
    pub confirms: bool,
    /// Broadcasts of hellos and records, if any.
    pub chatter: Option<Chatter>,
    /// The rate at which frames leave the node, and the length in frames of the queue before the MAC.
    pub pace: Option<(Bitrate, usize)>,
}

/// Broadcasts besides the data: hellos and records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chatter {
    /// The mean time between two broadcasts.
    pub every: Duration,
    /// Octets of each broadcast, Chappe's headers included.
    pub octets: usize,
}

/// A Pacifier node with additions, as a link node.
pub struct MemberNode {
    /// The node that runs the protocol.
    pub node: Node,
    additions: Additions,
    /// Frames of the node and of the additions that wait for the MAC.
    queue: VecDeque<(LinkSend, Vec<u8>)>,
    /// When the pace allows the next frame.
    free_at: Instant,
    chatter_at: Instant,
    random: Stream,
    buffer: Vec<u8>,
    /// Whether the node, when last polled, had no frame although one was pending.
    declined: bool,
    /// Frames dropped because the queue was full.
    pub queue_drops: u64,
}

/// The last octet of a frame: its kind.
const DATA: u8 = 0;
const CHATTER: u8 = 1;
const CONFIRMS: u8 = 2;
/// The token of frames that the additions send.
const OURS: u32 = u32::MAX;
/// The time that a delayed pace may catch up, as in `chappe-live`.
const BURST: Duration = Duration::from_millis(8);
/// The largest frame in octets.
const FRAME_MAX: usize = 2304;

impl MemberNode {
    /// Adds `additions` to `node`. `random` draws the times of broadcasts.
    pub fn new(node: Node, additions: Additions, mut random: Stream) -> MemberNode {
        let first = |chatter: Chatter| Duration::from_nanos(random.below(chatter.every.nanos()));
        MemberNode {
            node,
            additions,
            queue: VecDeque::new(),
            free_at: Instant::ZERO,
            chatter_at: Instant::ZERO + additions.chatter.map_or(Duration::ZERO, first),
            random,
            buffer: vec![0; FRAME_MAX],
            declined: false,
            queue_drops: 0,
        }
    }

    fn enqueue(&mut self, now: Instant, send: LinkSend, octets: Vec<u8>) {
        let most = self.additions.pace.map_or(usize::MAX, |(_, queue)| queue);
        if self.queue.len() >= most {
            self.queue_drops += 1;
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

    /// Queues a frame of the additions, of `len` octets.
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

    /// Sends what is due: broadcasts, and frames that the pace allows.
    fn go_on(&mut self, now: Instant) {
        self.declined = false;
        if let Some(chatter) = self.additions.chatter
            && self.chatter_at <= now
        {
            self.add(now, Address::BROADCAST, chatter.octets, CHATTER);
            let jitter = Duration::from_nanos(self.random.below(chatter.every.nanos()));
            self.chatter_at = now + chatter.every / 2 + jitter;
        }
        let Some((rate, _)) = self.additions.pace else {
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
            octets.resize(send.len + self.additions.around, DATA);
            let len = octets.len();
            let cost = rate.time_of((len as u64 + ETHERNET) * 8);
            self.free_at = self.free_at.max(now.saturating_before(BURST)) + cost;
            let class = Class::Data;
            self.enqueue(now, LinkSend { len, class, ..send }, octets);
            if send.to.is_broadcast() {
                // A socket does not report when a broadcast leaves the radio, so the node counts it as sent now.
                self.hear(now, send.token, Outcome::Unconfirmed);
            }
        }
    }
}

/// Octets of Ethernet's header, which count towards the rate.
const ETHERNET: u64 = 14;

impl LinkNode for MemberNode {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Sent { token, outcome } => {
                // With a pace, the node was notified when the broadcast left it.
                let notified = self.additions.pace.is_some() && outcome == Outcome::Unconfirmed;
                if !notified {
                    self.hear(now, token, outcome);
                }
            }
            LinkEvent::Received(arrival) if self.additions.around > 0 => {
                let inner = arrival.sdu.len().saturating_sub(self.additions.around);
                let (sdu, kind) = (arrival.sdu.get(..inner), arrival.sdu.last());
                if let (Some(sdu), Some(&DATA)) = (sdu, kind) {
                    if self.additions.confirms && !arrival.to.is_broadcast() {
                        let len = self.additions.around + CONFIRMATION;
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
        let mut classes = match self.additions.pace {
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
        if self.additions.pace.is_some() {
            return None;
        }
        let send = self.node.poll_link(now, allowed, sdu)?;
        let len = send.len + self.additions.around;
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
        if self.additions.chatter.is_some() {
            let (at, why) = (self.chatter_at, "a hello");
            wake = Wake::earlier(wake, Some(Wake { at, why }));
        }
        if self.additions.pace.is_some() && !self.declined && !self.node.pending().is_empty() {
            let (at, why) = (self.free_at, "the pace");
            wake = Wake::earlier(wake, Some(Wake { at, why }));
        }
        wake
    }
}
