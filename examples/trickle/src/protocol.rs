//! Dissemination of one object by Trickle (RFC 6206). Each node broadcasts from time to time which packets it has.
//! Neighbours broadcast what it lacks, and a node that overhears the same summary or packet keeps quiet.

use chappe_core::{
    Address, Class, Classes, DropReason, Drops, Duration, Instant, LinkEvent, LinkNode, LinkSend,
    Stream, Wake,
};

/// Bytes of the object in a packet.
pub const PAYLOAD: usize = 1024;
/// The shortest interval (RFC 6206's Imin): some twenty packets at 2 Mbit/s.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest one (Imax), 2^7 times as long.
const INTERVAL_MAX: Duration = Duration::from_millis(12_800);
/// A node keeps its summary to itself after hearing this many equal ones in an interval (k).
const REDUNDANCY: u32 = 2;

/// First octet of a summary; a bit for each packet follows.
const SUMMARY: u8 = 0;
/// First octet of a packet; its number in two octets and its bytes follow.
const PACKET: u8 = 1;

/// One node: it has an object, or wants one of known length.
pub struct Node {
    object: Vec<u8>,
    /// Which packets are there.
    have: Vec<bool>,
    /// Packets that a neighbour lacks and that nobody has repeated since.
    wanted: Vec<bool>,
    /// When the last packet arrived.
    pub completed: Option<Instant>,
    interval: Duration,
    /// When the present interval ends.
    end: Instant,
    /// When to decide whether to broadcast the summary; `None` once that is done.
    speak_at: Option<Instant>,
    /// Equal summaries heard in this interval (c).
    heard: u32,
    summary_due: bool,
    random: Stream,
    /// Summaries broadcast.
    pub summaries_sent: u64,
    /// Packets broadcast.
    pub packets_sent: u64,
    /// Frames not used, by reason.
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

    /// A node that wants an object of `octets`.
    pub fn without_object(octets: usize, random: Stream) -> Node {
        let packets = octets.div_ceil(PAYLOAD);
        let mut node = Node {
            object: vec![0; octets],
            have: vec![false; packets],
            wanted: vec![false; packets],
            completed: None,
            interval: INTERVAL_MIN,
            end: Instant::ZERO,
            speak_at: None,
            heard: 0,
            summary_due: false,
            random,
            summaries_sent: 0,
            packets_sent: 0,
            drops: Drops::default(),
        };
        node.begin(Instant::ZERO, INTERVAL_MIN);
        node
    }

    /// The object, once it is complete.
    pub fn object(&self) -> Option<&[u8]> {
        self.completed.map(|_| &*self.object)
    }

    /// How many packets are there.
    pub fn packets(&self) -> usize {
        self.have.iter().filter(|have| **have).count()
    }

    /// Begins an interval: the node decides at a random moment of its second half (RFC 6206, 4.2, step 2).
    fn begin(&mut self, now: Instant, interval: Duration) {
        let half = interval / 2;
        let pause = half + Duration::from_nanos(self.random.below(half.nanos().max(1)));
        (self.interval, self.heard) = (interval, 0);
        (self.end, self.speak_at) = (now + interval, Some(now + pause));
    }

    /// Something differs between neighbours: back to the shortest interval (step 6).
    fn inconsistent(&mut self, now: Instant) {
        if self.interval > INTERVAL_MIN {
            self.begin(now, INTERVAL_MIN);
        }
    }

    fn on_frame(&mut self, now: Instant, sdu: &[u8]) -> Result<(), DropReason> {
        match sdu {
            [SUMMARY, bits @ ..] => self.on_summary(now, bits),
            [PACKET, a, b, octets @ ..] => {
                self.on_packet(now, u16::from_be_bytes([*a, *b]).into(), octets)
            }
            _ => Err(DropReason::Malformed),
        }
    }

    fn on_summary(&mut self, now: Instant, bits: &[u8]) -> Result<(), DropReason> {
        if bits.len() != self.have.len().div_ceil(8) {
            return Err(DropReason::Malformed);
        }
        let mut equal = true;
        for (packet, have) in self.have.iter().enumerate() {
            let theirs = bits[packet / 8] >> (packet % 8) & 1 == 1;
            equal &= theirs == *have;
            self.wanted[packet] |= *have && !theirs;
        }
        if equal {
            self.heard += 1;
        } else {
            self.inconsistent(now);
        }
        Ok(())
    }

    fn on_packet(&mut self, now: Instant, packet: usize, octets: &[u8]) -> Result<(), DropReason> {
        let place = packet * PAYLOAD..self.object.len().min((packet + 1) * PAYLOAD);
        if packet >= self.have.len() || place.len() != octets.len() {
            return Err(DropReason::Malformed);
        }
        // Somebody has repeated it: nobody else needs to.
        self.wanted[packet] = false;
        if self.have[packet] {
            return Err(DropReason::Duplicate);
        }
        self.object[place].copy_from_slice(octets);
        self.have[packet] = true;
        if self.have.iter().all(|have| *have) {
            self.completed = Some(now);
        }
        self.inconsistent(now);
        Ok(())
    }

    fn write_summary(&mut self, sdu: &mut [u8]) -> usize {
        self.summary_due = false;
        self.summaries_sent += 1;
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
        self.packets_sent += 1;
        let octets = self.object.chunks(PAYLOAD).nth(packet)?;
        sdu[0] = PACKET;
        sdu[1..3].copy_from_slice(&(packet as u16).to_be_bytes());
        sdu[3..3 + octets.len()].copy_from_slice(octets);
        Some(3 + octets.len())
    }
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        let used = match event {
            LinkEvent::Received(arrival) => self.on_frame(now, arrival.sdu),
            LinkEvent::Sent { .. } => Ok(()),
        };
        if let Err(why) = used {
            self.drops.count(why);
        }
    }

    fn pending(&self) -> Classes {
        let data = self.wanted.contains(&true);
        Classes::NONE
            .with_if(Class::Control, self.summary_due)
            .with_if(Class::Data, data)
    }

    fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let class = self.pending().and(allowed).most_urgent()?;
        let len = match class {
            Class::Control => self.write_summary(sdu),
            _ => self.write_packet(sdu)?,
        };
        let (to, mode, token) = (Address::BROADCAST, None, 0);
        Some(LinkSend {
            to,
            len,
            class,
            mode,
            token,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.speak_at.take_if(|at| *at <= now).is_some() {
            self.summary_due = self.heard < REDUNDANCY;
        }
        if self.end <= now {
            self.begin(now, (self.interval * 2).min(INTERVAL_MAX));
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let at = self.speak_at.map_or(self.end, |at| at.min(self.end));
        Some(Wake { at, why: "trickle" })
    }
}
