//! Hellos: discovery and link measurement.
//!
//! ```text
//!  0             2
//!  +-------------+----------------------------------------------------+----
//!  | n neighbours| n times: node (2), proof (8), share heard of it (1) | padding
//!  +-------------+----------------------------------------------------+----
//! ```
//!
//! All neighbours have the key that seals a hello, so each of them could write one. The *proof* in an entry is a keyed digest that
//! only its neighbour and the sender can make. A neighbour believes its entry, and moves the sender's endpoint, only if the
//! proof is right.

use chappe_core::{Bitrate, Duration, Instant, Stream};

use crate::echo::SOON;

/// One neighbour listed in a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The neighbour's node number.
    pub node: u16,
    /// Proves to the neighbour that the sender has written this entry in this very hello.
    pub proof: [u8; 8],
    /// The share of its broadcasts that arrived, in units of 1/255.
    pub heard: u8,
}

const FIXED: usize = 2;
const ENTRY: usize = 11;

/// Writes the body of a hello with as many of `entries` as fit. Returns its length without padding.
pub fn emit(entries: impl Iterator<Item = Entry>, body: &mut [u8]) -> usize {
    let Some((head, rest)) = body.split_first_chunk_mut::<FIXED>() else {
        return 0;
    };
    let mut count = 0u16;
    for (place, entry) in rest.chunks_exact_mut(ENTRY).zip(entries) {
        place[..2].copy_from_slice(&entry.node.to_be_bytes());
        place[2..10].copy_from_slice(&entry.proof);
        place[10] = entry.heard;
        count += 1;
    }
    *head = count.to_be_bytes();
    FIXED + usize::from(count) * ENTRY
}

/// Reads a hello's entries; `None` if it is cut short.
pub fn parse(body: &[u8]) -> Option<impl Iterator<Item = Entry> + '_> {
    let (count, rest) = body.split_first_chunk::<FIXED>()?;
    let entries = rest.get(..usize::from(u16::from_be_bytes(*count)) * ENTRY)?;
    let entries = entries.chunks_exact(ENTRY).filter_map(|entry| {
        let (node, rest) = entry.split_first_chunk::<2>()?;
        let (proof, heard) = rest.split_first_chunk::<8>()?;
        Some(Entry {
            node: u16::from_be_bytes(*node),
            proof: *proof,
            heard: *heard.first()?,
        })
    });
    Some(entries)
}

/// The intervals between hellos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hellos {
    /// The mean interval while the node measures its links. Default 100 ms.
    pub first: Duration,
    /// How long it measures its links after the start, with full-sized hellos. Default 2 s.
    pub measuring: Duration,
    /// The mean interval afterwards. Default 1 s.
    pub later: Duration,
    /// Whether hellos of a silent node are as long as its data would be, so that neighbours measure the delivery ratio by them. A
    /// node that measures its links itself saves their air. Default yes.
    pub measures: bool,
}

impl Default for Hellos {
    fn default() -> Hellos {
        Hellos {
            first: Duration::from_millis(100),
            measuring: Duration::from_secs(2),
            later: Duration::from_secs(1),
            measures: true,
        }
    }
}

/// The time of the next hello.
#[derive(Debug)]
pub struct Schedule {
    hellos: Hellos,
    random: Stream,
    next: Instant,
    last: Instant,
    /// The next hello leaves no earlier, whoever asks for it.
    earliest: Instant,
    /// Answers to strangers in reserve, and since when.
    answers: (u64, Instant),
}

/// Most answers to lives without proof in a row. One more is allowed for each usual interval, so that recordings at most double
/// the number of hellos. Newcomers that come at once share an answer.
const STRANGERS: u64 = 8;

/// The part of a shared channel that all members' hellos take, however many ask for them: one in so many (RFC 3550, 6.2: 5 %).
const SHARE: usize = 20;

/// The shortest time between two hellos that answer newcomers.
const ANSWERS: Duration = Duration::from_millis(40);

impl Schedule {
    /// A schedule whose first hello is due at once.
    pub fn new(hellos: Hellos, random: Stream) -> Schedule {
        Schedule {
            hellos,
            random,
            next: Instant::ZERO,
            last: Instant::ZERO,
            earliest: Instant::ZERO,
            answers: (STRANGERS, Instant::ZERO),
        }
    }

    /// The octets of a hello whose entries take `len` of a room: all of it if neighbours measure a silent node by it.
    pub fn length(&self, len: usize, room: usize, silent: bool) -> usize {
        match silent && self.hellos.measures {
            true => room,
            false => len,
        }
    }

    /// When the next hello is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Notes that a hello leaves now. The next follows after 0.5 to 1.5 intervals, at random, so that two nodes whose
    /// hellos collide once do not collide each time. If a node asks for it earlier, it follows after 0.5 to 1.5 times `apart`.
    pub fn sent(&mut self, now: Instant, apart: Duration) {
        let interval = match self.is_measuring(now) {
            true => self.hellos.first,
            false => self.hellos.later,
        };
        let jitter = Duration::from_nanos(self.random.below(interval.nanos()));
        self.last = now;
        self.next = now + interval / 2 + jitter;
        if apart > Duration::ZERO {
            let jitter = Duration::from_nanos(self.random.below(apart.nanos()));
            self.earliest = now + apart / 2 + jitter;
        }
    }

    /// Whether the node still measures its links with full-sized hellos.
    pub fn is_measuring(&self, now: Instant) -> bool {
        now < Instant::ZERO + self.hellos.measuring
    }

    /// Brings the next hello forward to answer a life without proof, unless too many were answered lately: recordings of
    /// former lives look like newcomers. Returns whether it does; if not, the newcomer waits for the next usual hello.
    pub fn answer_stranger(&mut self, now: Instant) -> bool {
        let (left, since) = self.answers;
        let gained = now.saturating_since(since).steps(self.hellos.later);
        let left = left.saturating_add(gained).min(STRANGERS);
        let since = since + self.hellos.later * gained;
        self.answers = (left.saturating_sub(1), since);
        if left > 0 {
            self.answer_soon();
        }
        left > 0
    }

    /// Brings the next hello forward, to answer a newcomer that has proved itself.
    pub fn answer_soon(&mut self) {
        let soon = ANSWERS + Duration::from_nanos(self.random.below(ANSWERS.nanos()));
        self.bring_to(self.last + soon);
    }

    /// Brings the next hello forward, because a neighbour asks for an echo.
    pub fn echo_soon(&mut self) {
        self.bring_to(self.last + SOON);
    }

    fn bring_to(&mut self, at: Instant) {
        self.next = self.next.min(at.max(self.earliest));
    }
}

/// How far apart hellos of `octets` each are on a channel of this rate that so many members share.
pub fn apart(rate: Bitrate, members: usize, octets: usize) -> Duration {
    let all = members.saturating_mul(octets).saturating_mul(8 * SHARE);
    rate.time_of(all as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A silent node's hello is long only if neighbours measure by it; one that sends data has short ones in any case.
    #[test]
    fn hellos_are_long_where_they_measure() {
        use chappe_core::{Purpose, Seed};
        let lengths = |measures| {
            let hellos = Hellos {
                measures,
                ..Hellos::default()
            };
            let schedule = Schedule::new(hellos, Seed(1).stream(Purpose::Node(0)));
            [true, false].map(|silent| schedule.length(13, 1400, silent))
        };
        assert_eq!((lengths(true), lengths(false)), ([1400, 13], [13, 13]));
    }

    /// Goal: on a channel that they share, the hellos of all members together keep to a twentieth of it, however often echoes are asked
    /// for. Method: twelve members at 7 Mbit/s, asked each ms for a minute. (Each sent 30 to 100 hellos a second, half of the channel.)
    #[test]
    fn echoes_keep_to_their_share_of_a_channel() {
        use chappe_core::{Purpose, Seed};
        const OCTETS: usize = 250;
        let rate = Bitrate(7_000_000);
        let one = |node| {
            let hellos = Hellos::default();
            let mut schedule = Schedule::new(hellos, Seed(1).stream(Purpose::Node(node)));
            let mut sent = 0u64;
            for milli in 5_000..65_000 {
                let now = Instant::from_millis(milli);
                schedule.echo_soon();
                schedule.answer_soon();
                if schedule.next() <= now {
                    schedule.sent(now, apart(rate, 12, OCTETS));
                    sent += 1;
                }
            }
            sent
        };
        let sent: u64 = (0..12).map(one).sum();
        let share = sent as f64 * OCTETS as f64 * 8.0 / (60.0 * rate.0 as f64);
        assert!((0.04..0.055).contains(&share), "{share}");
    }

    /// Goal: whoever replays recordings does not make a member send many hellos. Method: twenty strangers' hellos a second for a
    /// minute. (Each was answered once, 12 to 25 times a second.)
    #[test]
    fn strangers_at_most_double_the_hellos() {
        use chappe_core::{Purpose, Seed};
        let hellos = Hellos::default();
        let mut schedule = Schedule::new(hellos, Seed(1).stream(Purpose::Node(0)));
        let (mut sent, mut answered) = (0, 0);
        for step in 0..1200 {
            let now = Instant::from_millis(60_000 + 50 * step);
            answered += u64::from(schedule.answer_stranger(now));
            if schedule.next() <= now {
                schedule.sent(now, Duration::ZERO);
                sent += 1;
            }
        }
        assert!(answered <= 60 + STRANGERS, "{answered}");
        assert!((40..=60 + 60 + STRANGERS).contains(&sent), "{sent}");
    }

    #[test]
    fn hellos_round_trip_and_truncated_ones_are_rejected() {
        let entry = |node| Entry {
            node,
            proof: [node as u8 + 40; 8],
            heard: node as u8,
        };
        let mut body = [0; 100];
        let len = emit((0..3).map(entry), &mut body);
        assert_eq!(len, 2 + 33);
        let entries = parse(&body).unwrap();
        assert!(entries.eq((0..3).map(entry)));
        assert!((0..len).all(|len| parse(&body[..len]).is_none()));
        // Eight of twenty have room.
        assert_eq!(emit((0..20).map(entry), &mut body), 2 + 88);
        assert!(parse(&[0xff; 100]).is_none());
    }
}
