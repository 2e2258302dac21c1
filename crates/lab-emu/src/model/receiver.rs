//! The receiving half of a TCP. It acknowledges every second segment and every out-of-order segment at once, with SACK
//! blocks, and a single segment after a delay.

use std::collections::BTreeSet;

use chappe_core::{Duration, Instant, Wake};

use super::TCP_HEADERS;
use super::packet::{BLOCKS, Packet};

/// The delay of the acknowledgement of a single segment: Linux's least, TCP_DELACK_MIN (include/net/tcp.h).
const DELAY: Duration = Duration::from_millis(40);

/// Segments that are acknowledged individually at the start, TCP_MAX_QUICKACKS (include/net/tcp.h).
const QUICK: u32 = 16;

/// The receiver of one TCP connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    me: usize,
    from: usize,
    payload: usize,
    missing: u32,
    beyond: BTreeSet<u32>,
    latest: u32,
    unconfirmed: u32,
    quick: u32,
    stamp: Instant,
    due: Option<Instant>,
    ready: bool,
}

impl Receiver {
    /// Creates the receiver on node `me` for segments of `payload` octets from node `from`.
    pub fn new(me: usize, from: usize, payload: usize) -> Receiver {
        Receiver {
            me,
            from,
            payload,
            missing: 0,
            beyond: BTreeSet::new(),
            latest: 0,
            unconfirmed: 0,
            quick: QUICK,
            stamp: Instant::ZERO,
            due: None,
            ready: false,
        }
    }

    /// Octets of payload that arrived in order.
    pub fn octets(&self) -> u64 {
        u64::from(self.missing) * self.payload as u64
    }

    /// Handles a segment of the sender.
    pub fn handle_data(&mut self, now: Instant, packet: &Packet) {
        let in_order = packet.number == self.missing;
        let filled = in_order && !self.beyond.is_empty();
        // RFC 7323, section 4.3: a delayed acknowledgement echoes the earliest segment that it covers.
        if self.unconfirmed == 0 || !in_order {
            self.stamp = packet.stamp;
        }
        if in_order {
            self.missing += 1;
            while self.beyond.remove(&self.missing) {
                self.missing += 1;
            }
        } else if packet.number > self.missing {
            self.beyond.insert(packet.number);
            self.latest = packet.number;
        }
        self.unconfirmed += 1;
        let quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        // RFC 5681, section 4.2: at once when out of order, when a gap is filled, and for every second segment.
        if !in_order || filled || self.unconfirmed > 1 || quick {
            self.ready = true;
        } else {
            self.due = Some(now + DELAY);
        }
    }

    /// Handles the delay of an acknowledgement, if it has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            self.ready = true;
        }
    }

    /// When a delayed acknowledgement is due.
    pub fn poll_timeout(&self) -> Option<Wake> {
        let why = "delayed acknowledgement";
        self.due.map(|at| Wake { at, why })
    }

    /// Returns the acknowledgement that is due, if any.
    pub fn poll(&mut self, _now: Instant) -> Option<Packet> {
        if !std::mem::take(&mut self.ready) {
            return None;
        }
        (self.due, self.unconfirmed) = (None, 0);
        let blocks = self.blocks();
        let count = blocks.iter().filter(|(first, end)| first < end).count();
        // The option's kind and length, padded to four octets, and eight octets for each block.
        let option = if count > 0 { 4 + 8 * count } else { 0 };
        let len = TCP_HEADERS + option;
        Some(Packet {
            blocks,
            ..Packet::data(self.me, self.from, self.missing, self.stamp, len)
        })
    }

    /// The block with the latest segment first, as RFC 2018 requires, then the lowest others.
    fn blocks(&self) -> [(u32, u32); BLOCKS] {
        let mut all: Vec<(u32, u32)> = Vec::new();
        for &number in &self.beyond {
            match all.last_mut() {
                Some((_, end)) if *end == number => *end += 1,
                _ => all.push((number, number + 1)),
            }
        }
        all.sort_by_key(|&(first, end)| !(first..end).contains(&self.latest));
        let mut blocks = [(0, 0); BLOCKS];
        for (place, block) in blocks.iter_mut().zip(all) {
            *place = block;
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(receiver: &mut Receiver, at_ms: u64, number: u32) -> Option<(u32, Vec<(u32, u32)>)> {
        let now = Instant::from_millis(at_ms);
        receiver.handle_data(now, &Packet::data(0, 3, number, now, 1500));
        let ack = receiver.poll(now)?;
        let blocks = ack.blocks.into_iter().filter(|(first, end)| first < end);
        Some((ack.number, blocks.collect()))
    }

    /// Acknowledges the first 16 segments one by one, then every second one, a single one after 40 ms, and out-of-order
    /// ones at once.
    #[test]
    fn acknowledgements_have_the_times_of_linux() {
        let mut receiver = Receiver::new(3, 0, 1000);
        for number in 0..16 {
            assert_eq!(
                receive(&mut receiver, 1, number),
                Some((number + 1, vec![]))
            );
        }
        assert_eq!(receive(&mut receiver, 2, 16), None);
        assert_eq!(receive(&mut receiver, 3, 17), Some((18, vec![])));
        assert_eq!(receive(&mut receiver, 4, 18), None);
        let due = receiver.poll_timeout().unwrap().at;
        assert_eq!(due, Instant::from_millis(44));
        receiver.handle_timeout(due);
        assert_eq!(receiver.poll(due).unwrap().number, 19);
        assert_eq!(receive(&mut receiver, 50, 21), Some((19, vec![(21, 22)])));
        assert_eq!(
            receive(&mut receiver, 50, 24),
            Some((19, vec![(24, 25), (21, 22)]))
        );
        assert_eq!(
            receive(&mut receiver, 50, 22),
            Some((19, vec![(21, 23), (24, 25)]))
        );
        assert_eq!(
            receive(&mut receiver, 51, 19),
            Some((20, vec![(21, 23), (24, 25)]))
        );
        assert_eq!(receive(&mut receiver, 51, 20), Some((23, vec![(24, 25)])));
        assert_eq!(receiver.octets(), 23_000);
    }
}
