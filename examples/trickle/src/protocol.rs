//! Dissemination of one object by Trickle (RFC 6206). From time to time each node broadcasts which packets it has, and its
//! neighbours broadcast what it lacks. A node that overhears the same summary or the same packet stays silent.

use chappe_core::{
    Class, Classes, DropReason, Drops, Duration, Instant, LinkEvent, LinkNode, LinkSend, Stream,
    Wake,
};

/// Bytes of the object in a packet.
pub const PAYLOAD: usize = 1024;
/// The largest object: its summary is no longer than a packet.
pub const OBJECT_MAX: usize = 8 * PAYLOAD * PAYLOAD;
/// The shortest interval (RFC 6206's Imin): some twenty packets at 2 Mbit/s.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest interval (Imax): seven doublings.
const INTERVAL_MAX: Duration = Duration::from_millis(12_800);
/// A node that hears this many equal summaries in an interval does not send its own (k).
const REDUNDANCY: u32 = 2;
/// First octet of a summary; one bit for each packet follows.
const SUMMARY: u8 = 0;
/// First octet of a packet; its number in two octets and its bytes follow.
const PACKET: u8 = 1;

/// One node: it has an object, or expects one of known length.
pub struct Node {
    object: Vec<u8>,
    /// Packets that have arrived.
    have: Vec<bool>,
    /// Packets that the neighbour heard last lacks (others ask again), and that no node has repeated since.
    wanted: Vec<bool>,
    /// When the last missing packet arrived.
    pub completed: Option<Instant>,
    /// Length of the current interval (I).
    interval: Duration,
    /// When the current interval ends.
    end: Instant,
    /// When to decide about the summary (t); `None` afterwards.
    decide_at: Option<Instant>,
    /// Equal summaries heard in this interval (c).
    heard: u32,
    summary_due: bool,
    random: Stream,
    /// How many summaries and how many packets were broadcast.
    pub sent: [u64; 2],
    /// Frames that were not used, by reason.
    pub drops: Drops,
}

impl Node {
    /// A node that has the object.
    pub fn with_object(object: &[u8], random: Stream) -> Node {
        let mut node = Node::without_object(object.len(), random);
        node.object.copy_from_slice(object);
        node.have.fill(true);
        node.completed = Some(Instant::ZERO);
        node
    }

    /// A node that expects an object of `octets`, at most [`OBJECT_MAX`].
    pub fn without_object(octets: usize, random: Stream) -> Node {
        let packets = octets.div_ceil(PAYLOAD);
        let mut node = Node {
            object: vec![0; octets],
            have: vec![false; packets],
            wanted: vec![false; packets],
            completed: (octets == 0).then_some(Instant::ZERO),
            interval: INTERVAL_MIN,
            end: Instant::ZERO,
            decide_at: None,
            heard: 0,
            summary_due: false,
            random,
            sent: [0; 2],
            drops: Drops::default(),
        };
        node.begin(Instant::ZERO, INTERVAL_MIN);
        node
    }

    /// The object, once it is complete.
    pub fn object(&self) -> Option<&[u8]> {
        self.completed.map(|_| &*self.object)
    }

    /// How many packets have arrived.
    pub fn packets(&self) -> usize {
        self.have.iter().filter(|have| **have).count()
    }

    /// Begins an interval; the node decides at a random moment of its second half (RFC 6206, 4.2, step 2).
    fn begin(&mut self, now: Instant, interval: Duration) {
        let half = interval / 2;
        let pause = half + Duration::from_nanos(self.random.below(half.nanos()));
        (self.interval, self.heard) = (interval, 0);
        (self.end, self.decide_at) = (now + interval, Some(now + pause));
    }

    /// Whether the frame shows that its sender has the same packets.
    fn on_frame(&mut self, now: Instant, sdu: &[u8]) -> Result<bool, DropReason> {
        match sdu {
            [SUMMARY, bits @ ..] => self.on_summary(bits),
            [PACKET, a, b, octets @ ..] => self.on_packet(now, [*a, *b], octets),
            _ => Err(DropReason::Malformed),
        }
    }

    fn on_summary(&mut self, bits: &[u8]) -> Result<bool, DropReason> {
        if bits.len() != self.have.len().div_ceil(8) {
            return Err(DropReason::Malformed);
        }
        let mut equal = true;
        for (packet, have) in self.have.iter().enumerate() {
            let theirs = bits[packet / 8] >> (packet % 8) & 1 == 1;
            equal &= theirs == *have;
            self.wanted[packet] = *have && !theirs;
        }
        Ok(equal)
    }

    fn on_packet(&mut self, now: Instant, at: [u8; 2], octets: &[u8]) -> Result<bool, DropReason> {
        let packet = usize::from(u16::from_be_bytes(at));
        let place = self.object.chunks_mut(PAYLOAD).nth(packet);
        let place = place.filter(|place| place.len() == octets.len());
        let place = place.ok_or(DropReason::Malformed)?;
        // The neighbours have heard it too.
        self.wanted[packet] = false;
        if self.have[packet] {
            return Err(DropReason::Duplicate);
        }
        place.copy_from_slice(octets);
        self.have[packet] = true;
        self.completed = self.have.iter().all(|have| *have).then_some(now);
        Ok(false)
    }

    fn write_summary(&mut self, sdu: &mut [u8]) -> usize {
        self.summary_due = false;
        sdu[0] = SUMMARY;
        for (to, eight) in sdu[1..].iter_mut().zip(self.have.chunks(8)) {
            let bits = eight.iter().enumerate();
            *to = bits.fold(0, |octet, (bit, have)| octet | u8::from(*have) << bit);
        }
        1 + self.have.len().div_ceil(8)
    }

    fn write_packet(&mut self, sdu: &mut [u8]) -> Option<usize> {
        let packet = self.wanted.iter().position(|wanted| *wanted)?;
        self.wanted[packet] = false;
        let octets = self.object.chunks(PAYLOAD).nth(packet)?;
        sdu[0] = PACKET;
        sdu[1..3].copy_from_slice(&(packet as u16).to_be_bytes());
        sdu[3..3 + octets.len()].copy_from_slice(octets);
        Some(3 + octets.len())
    }
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event {
            match self.on_frame(now, arrival.sdu) {
                Ok(true) => self.heard += 1,
                // Neighbours differ: back to the shortest interval (RFC 6206, 4.2, step 6).
                Ok(false) if self.interval > INTERVAL_MIN => self.begin(now, INTERVAL_MIN),
                Ok(false) => {}
                Err(why) => self.drops.count(why),
            }
        }
    }

    fn pending(&self) -> Classes {
        Classes::NONE
            .with_if(Class::Control, self.summary_due)
            .with_if(Class::Data, self.wanted.contains(&true))
    }

    fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let class = self.pending().and(allowed).most_urgent()?;
        let len = match class {
            Class::Control => self.write_summary(sdu),
            _ => self.write_packet(sdu)?,
        };
        self.sent[usize::from(sdu[0])] += 1;
        Some(LinkSend::broadcast(len, class))
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.decide_at.take_if(|at| *at <= now).is_some() {
            self.summary_due = self.heard < REDUNDANCY;
        }
        if self.end <= now {
            self.begin(now, (self.interval * 2).min(INTERVAL_MAX));
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let at = self.decide_at.map_or(self.end, |at| at.min(self.end));
        Some(Wake { at, why: "trickle" })
    }
}
