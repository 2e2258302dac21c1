//! The frame of a link: what its sender has received, the burst that it is part of, and bodies for neighbours.
//!
//! ```text
//!  0          1      2      3       4        5                      +9 each
//!  +----------+------+------+-------+--------+----------------------+- - - -
//!  | version, | life | acks | burst | rest,  | n acks: node, newest,| parts
//!  | kind     |      |      |       | onward | the 32 before it,    |
//!  |          |      |      |       |        | the last burst       |
//!  +----------+------+------+-------+--------+----------------------+- - - -
//!
//!  a part      0              2        4        6
//!              +--------------+--------+--------+- - -
//!              | to, or all   | number | octets | body
//!              +--------------+--------+--------+- - -
//! ```
//!
//! A frame has as many parts as fit: on a channel where every frame costs a preamble, spaces and a back-off, and may be lost,
//! a small packet costs least in the frame of a large one.
//!
//! All fields are big-endian. `chappe-live` seals the whole frame. `life` is a random number of the sender's start: another
//! one means that its frame numbers begin anew.

/// Octets before the acknowledgements.
const HEAD: usize = 5;
/// Octets of an acknowledgement.
const ACK: usize = 9;
/// Most acknowledgements in a frame.
pub const ACKS_MAX: usize = 4;
/// Octets of a part before its body.
pub const PART: usize = 6;
/// Most octets of a frame around the body of its first part.
pub const AROUND: usize = HEAD + ACKS_MAX * ACK + PART;
/// `to` of a part for all neighbours.
pub const ALL: u16 = u16::MAX;

/// The version of the format, and of what ends tell each other in it ([`crate::receipts`]). Other versions are refused.
pub const VERSION: u8 = 3;

/// What the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Frames of the router (`chappe_dpclo::header`), one in each part. Without a part the frame has acknowledgements only.
    Router,
    /// What a node announces ([`crate::announce`]), in one part.
    Announcement,
}

/// Most frames of a burst: ten milliseconds of 802.11b at 11 Mbit/s. On a line of three hops of 80 % two to three carried 0.97 of it,
/// and six 0.95.
pub const BURST_MAX: u8 = 4;

/// The same where no others wait: as many as a frame can tell. Each burst wakes its receiver, and then its sender for the answer.
pub const BURST_WIRED: u8 = 15;

/// What a frame tells of the burst that it is part of. Both counts are at most 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// Counts the bursts of its sender. A frame outside a burst has the number of the one before.
    pub number: u8,
    /// Frames that its sender sends right after this one.
    pub rest: u8,
    /// Packets of the burst that go on from the neighbours that receive them.
    pub onward: u8,
}

/// An acknowledgement: what the frame's sender has received of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The number of the neighbour.
    pub node: u16,
    /// The newest of its frames that arrived.
    pub newest: u16,
    /// Which of the 32 before it arrived; bit 0 is the one before.
    pub before: u32,
    /// The last burst of the neighbour that is over, as far as the frame's sender knows: what it does not list of this burst
    /// and those before was lost.
    pub over: u8,
}

impl Ack {
    /// Whether the frame with this number has arrived.
    pub fn has(&self, number: u16) -> bool {
        match self.newest.wrapping_sub(number) {
            0 => true,
            back @ 1..=32 => self.before >> (back - 1) & 1 == 1,
            _ => false,
        }
    }
}

/// A body with the neighbour that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The neighbour it is for, or [`ALL`].
    pub to: u16,
    /// Its number among the bodies of its sender to that neighbour; 0 if it is for all, or the card recovers it.
    pub number: u16,
    /// The octets that follow.
    pub body: &'a [u8],
}

/// A frame that was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the bodies are.
    pub kind: Kind,
    /// A random number of the sender's start.
    pub life: u8,
    /// The burst that it is part of.
    pub burst: Burst,
    acks: &'a [u8],
    parts: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame; `None` if it is cut short or of another version.
    pub fn parse(octets: &'a [u8]) -> Option<Frame<'a>> {
        let (&[first, life, count, number, burst], rest) = octets.split_first_chunk::<HEAD>()?;
        let kind = match (first >> 4, first & 15) {
            (VERSION, 0) => Kind::Router,
            (VERSION, 1) => Kind::Announcement,
            _ => return None,
        };
        let (acks, parts) = rest.split_at_checked(usize::from(count) * ACK)?;
        let whole = {
            let mut rest = parts;
            while !rest.is_empty() {
                (_, rest) = split(rest)?;
            }
            true
        };
        (whole && usize::from(count) <= ACKS_MAX).then_some(Frame {
            kind,
            life,
            burst: Burst {
                number,
                rest: burst >> 4,
                onward: burst & 15,
            },
            acks,
            parts,
        })
    }

    /// The acknowledgements in the frame.
    pub fn acks(&self) -> impl Iterator<Item = Ack> + 'a {
        let whole = self.acks.as_chunks::<ACK>().0;
        whole
            .iter()
            .map(|&[a0, a1, n0, n1, b0, b1, b2, b3, over]| Ack {
                node: u16::from_be_bytes([a0, a1]),
                newest: u16::from_be_bytes([n0, n1]),
                before: u32::from_be_bytes([b0, b1, b2, b3]),
                over,
            })
    }

    /// The bodies in the frame. The first one is what the frame was sent for.
    pub fn parts(&self) -> impl Iterator<Item = Part<'a>> + 'a {
        let mut rest = self.parts;
        std::iter::from_fn(move || {
            let (part, after) = split(rest)?;
            rest = after;
            Some(part)
        })
    }
}

/// The first part and the octets behind it.
fn split(octets: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let (&[t0, t1, n0, n1, l0, l1], rest) = octets.split_first_chunk::<PART>()?;
    let (body, rest) = rest.split_at_checked(u16::from_be_bytes([l0, l1]).into())?;
    let part = Part {
        to: u16::from_be_bytes([t0, t1]),
        number: u16::from_be_bytes([n0, n1]),
        body,
    };
    Some((part, rest))
}

/// Writes everything before the parts of a frame; the octets written. `None` if there is no room.
pub fn emit(
    kind: Kind,
    (life, burst): (u8, Burst),
    acks: &[Ack],
    room: &mut [u8],
) -> Option<usize> {
    let kind = match kind {
        Kind::Router => 0,
        Kind::Announcement => 1,
    };
    let acks = acks.get(..acks.len().min(ACKS_MAX))?;
    let (head, rest) = room.split_first_chunk_mut::<HEAD>()?;
    let counts = burst.rest.min(15) << 4 | burst.onward.min(15);
    *head = [
        VERSION << 4 | kind,
        life,
        acks.len() as u8,
        burst.number,
        counts,
    ];
    let (places, _) = rest.split_at_mut_checked(acks.len() * ACK)?;
    for (place, ack) in places.as_chunks_mut::<ACK>().0.iter_mut().zip(acks) {
        place[..2].copy_from_slice(&ack.node.to_be_bytes());
        place[2..4].copy_from_slice(&ack.newest.to_be_bytes());
        place[4..8].copy_from_slice(&ack.before.to_be_bytes());
        place[8] = ack.over;
    }
    Some(HEAD + acks.len() * ACK)
}

/// Writes what stands before a body of `octets`, which the caller has written [`PART`] octets behind `at`. Where the next part
/// begins, or `None` if there is no room.
pub fn emit_part(
    (to, number): (u16, u16),
    octets: usize,
    at: usize,
    room: &mut [u8],
) -> Option<usize> {
    let len = u16::try_from(octets).ok()?;
    let head = room.get_mut(at..at + PART)?;
    head[..2].copy_from_slice(&to.to_be_bytes());
    head[2..4].copy_from_slice(&number.to_be_bytes());
    head[4..].copy_from_slice(&len.to_be_bytes());
    let end = at + PART + octets;
    (end <= room.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    #[test]
    fn frames_round_trip_and_are_cut_nowhere() {
        let acks = [
            Ack {
                node: 3,
                newest: 7,
                before: 5,
                over: 1,
            },
            Ack {
                node: 9,
                newest: 0,
                before: u32::MAX,
                over: 255,
            },
        ];
        let mut room = [0; 64];
        let burst = Burst {
            number: 200,
            rest: 3,
            onward: 9,
        };
        let head = emit(Kind::Router, (77, burst), &acks, &mut room).unwrap();
        room[head + PART] = 0xaa;
        let one = emit_part((5, 600), 1, head, &mut room).unwrap();
        let two = emit_part((ALL, 0), 0, one, &mut room).unwrap();
        let frame = Frame::parse(&room[..two]).unwrap();
        assert_eq!(
            (frame.kind, frame.life, frame.burst),
            (Kind::Router, 77, burst)
        );
        let part = |to, number, body| Part { to, number, body };
        let parts = [part(5, 600, &[0xaa][..]), part(ALL, 0, &[])];
        assert_eq!(
            (frame.acks().collect(), frame.parts().collect::<Vec<_>>()),
            (acks.to_vec(), parts.to_vec())
        );
        // Whole parts are a frame too.
        let whole = |len: &usize| [head, one, two].contains(len);
        let read = (0..=two).filter(|&len| Frame::parse(&room[..len]).is_some());
        assert!(read.eq((0..=two).filter(whole)));
        assert_eq!(emit_part((5, 600), 1, 58, &mut room), None);
    }

    #[test]
    fn acknowledgements_name_the_last_33() {
        let ack = Ack {
            node: 0,
            newest: 2,
            before: 0b101,
            over: 0,
        };
        let named = [2, 1, 0, u16::MAX, u16::MAX - 40, 3].map(|number| ack.has(number));
        assert_eq!(named, [true, true, false, true, false, false]);
    }

    #[test]
    fn noise_never_panics() {
        let mut stream = Seed(1).stream(Purpose::Trial(0));
        for len in (0..80).cycle().take(20_000) {
            let mut noise = vec![0; len];
            stream.fill(&mut noise);
            if let Some(first) = noise.first_mut() {
                *first = VERSION << 4 | *first & 3;
            }
            if let Some(frame) = Frame::parse(&noise) {
                frame.acks().for_each(drop);
                frame.parts().for_each(drop);
            }
        }
    }
}
