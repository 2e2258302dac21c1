//! Hellos: who is there, who is alive now and not a recording, and how well each hears the others.
//!
//! ```text
//!  0           8             10                  21
//!  +-----------+-------------+-------------------+----
//!  | challenge | n neighbours| n times: node (2), its challenge (8), share heard of it (1) | padding
//!  +-----------+-------------+-------------------+----
//! ```
//!
//! A recorded frame opens as well as a new one. So a node believes a life of another only after a hello of that life
//! has named the node's own *challenge*, a number drawn when it started and drawn anew whenever it takes leave of
//! somebody's former life. A recording cannot know it.

use chappe_core::{Duration, Instant, Stream};

/// One neighbour in a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The neighbour.
    pub node: u16,
    /// Its challenge, as heard.
    pub challenge: u64,
    /// The share of its broadcasts that was heard, in 1/255.
    pub heard: u8,
}

const FIXED: usize = 10;
const ENTRY: usize = 11;

/// Writes the body of a hello, as many of `entries` as fit; gives its length without padding.
pub fn emit(challenge: u64, entries: impl Iterator<Item = Entry>, body: &mut [u8]) -> usize {
    let Some((head, rest)) = body.split_first_chunk_mut::<FIXED>() else {
        return 0;
    };
    let mut count = 0u16;
    for (place, entry) in rest.chunks_exact_mut(ENTRY).zip(entries) {
        place[..2].copy_from_slice(&entry.node.to_be_bytes());
        place[2..10].copy_from_slice(&entry.challenge.to_be_bytes());
        place[10] = entry.heard;
        count += 1;
    }
    head[..8].copy_from_slice(&challenge.to_be_bytes());
    head[8..].copy_from_slice(&count.to_be_bytes());
    FIXED + usize::from(count) * ENTRY
}

/// The challenge in a hello, and its entries.
pub fn parse(body: &[u8]) -> Option<(u64, impl Iterator<Item = Entry> + '_)> {
    let (challenge, rest) = body.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let entries = rest.get(..usize::from(u16::from_be_bytes(*count)) * ENTRY)?;
    let entries = entries.chunks_exact(ENTRY).filter_map(|entry| {
        let (node, rest) = entry.split_first_chunk::<2>()?;
        let (challenge, heard) = rest.split_first_chunk::<8>()?;
        Some(Entry {
            node: u16::from_be_bytes(*node),
            challenge: u64::from_be_bytes(*challenge),
            heard: *heard.first()?,
        })
    });
    Some((u64::from_be_bytes(*challenge), entries))
}

/// When hellos leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hellos {
    /// The time between hellos while a node is new. Default 100 ms.
    pub first: Duration,
    /// How long it is new: it measures its links with full-sized hellos. Default 2 s.
    pub measuring: Duration,
    /// The time between hellos later. Default 1 s.
    pub later: Duration,
}

impl Default for Hellos {
    fn default() -> Hellos {
        Hellos {
            first: Duration::from_millis(100),
            measuring: Duration::from_secs(2),
            later: Duration::from_secs(1),
        }
    }
}

/// The next hello.
#[derive(Debug)]
pub struct Schedule {
    hellos: Hellos,
    random: Stream,
    next: Instant,
    last: Instant,
}

/// Answers to newcomers are at least this far apart.
const ANSWERS: Duration = Duration::from_millis(40);

impl Schedule {
    /// The first one leaves at once.
    pub fn new(hellos: Hellos, random: Stream) -> Schedule {
        Schedule {
            hellos,
            random,
            next: Instant::ZERO,
            last: Instant::ZERO,
        }
    }

    /// When the next one leaves.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// One leaves now. The next one follows after half to one and a half of the interval, so that nobody's hellos
    /// always meet those of another.
    pub fn left(&mut self, now: Instant) {
        let interval = match self.is_measuring(now) {
            true => self.hellos.first,
            false => self.hellos.later,
        };
        let jitter = Duration::from_nanos(self.random.below(interval.nanos()));
        self.last = now;
        self.next = now + interval / 2 + jitter;
    }

    /// Whether the node is new.
    pub fn is_measuring(&self, now: Instant) -> bool {
        now < Instant::ZERO + self.hellos.measuring
    }

    /// Somebody waits to be answered.
    pub fn hurry(&mut self) {
        let soon = ANSWERS + Duration::from_nanos(self.random.below(ANSWERS.nanos()));
        self.next = self.next.min(self.last + soon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_survive_and_cut_ones_are_refused() {
        let entry = |node| Entry {
            node,
            challenge: u64::from(node) << 40,
            heard: node as u8,
        };
        let mut body = [0; 100];
        let len = emit(77, (0..3).map(entry), &mut body);
        assert_eq!(len, 10 + 33);
        let (challenge, entries) = parse(&body).unwrap();
        assert_eq!(challenge, 77);
        assert!(entries.eq((0..3).map(entry)));
        assert!((0..len).all(|len| parse(&body[..len]).is_none()));
        // Eight of twenty have room.
        assert_eq!(emit(77, (0..20).map(entry), &mut body), 10 + 88);
        assert!(parse(&[0xff; 100]).is_none());
    }
}
