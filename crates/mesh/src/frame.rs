//! The frame of a link: who it is for, its number, and what its sender has received.
//!
//! ```text
//!  0          1      2      3                      +8 each      +2       +2
//!  +----------+------+------+----------------------+------------+--------+- - - -
//!  | version, | life | acks | n acks: node, newest,| to, or all | number | body
//!  | kind     |      |      | the 32 before it     |            |        |
//!  +----------+------+------+----------------------+------------+--------+- - - -
//! ```
//!
//! All fields are big-endian. `chappe-live` seals the whole frame. `life` is a random number of the sender's start: another
//! one means that its frame numbers begin anew.

/// Octets before the acknowledgements.
const HEAD: usize = 3;
/// Octets of an acknowledgement.
const ACK: usize = 8;
/// Most acknowledgements in a frame.
pub const ACKS_MAX: usize = 4;
/// Octets behind the acknowledgements, before the body.
const REST: usize = 4;
/// Most octets of a frame around its body.
pub const AROUND: usize = HEAD + ACKS_MAX * ACK + REST;
/// `to` of a frame for all neighbours.
pub const ALL: u16 = u16::MAX;

const VERSION: u8 = 1;

/// What the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: the frame carries acknowledgements only.
    Nothing,
    /// A frame of the router (`chappe_dpclo::header`).
    Router,
    /// What a node announces ([`crate::announce`]).
    Announcement,
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

/// A frame that was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the body is.
    pub kind: Kind,
    /// A random number of the sender's start.
    pub life: u8,
    acks: &'a [u8],
    /// The neighbour it is for, or [`ALL`].
    pub to: u16,
    /// Its number among the frames of its sender to that neighbour; 0 if it is for all.
    pub number: u16,
    /// The octets that follow.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame; `None` if it is cut short or of another version.
    pub fn parse(octets: &'a [u8]) -> Option<Frame<'a>> {
        let (&[first, life, count], rest) = octets.split_first_chunk::<HEAD>()?;
        let kind = match (first >> 4, first & 15) {
            (VERSION, 0) => Kind::Nothing,
            (VERSION, 1) => Kind::Router,
            (VERSION, 2) => Kind::Announcement,
            _ => return None,
        };
        let (acks, rest) = rest.split_at_checked(usize::from(count) * ACK)?;
        let (&[t0, t1, n0, n1], body) = rest.split_first_chunk::<REST>()?;
        (usize::from(count) <= ACKS_MAX).then_some(Frame {
            kind,
            life,
            acks,
            to: u16::from_be_bytes([t0, t1]),
            number: u16::from_be_bytes([n0, n1]),
            body,
        })
    }

    /// The acknowledgements in the frame.
    pub fn acks(&self) -> impl Iterator<Item = Ack> + 'a {
        let whole = self.acks.as_chunks::<ACK>().0;
        whole.iter().map(|&[a0, a1, n0, n1, b0, b1, b2, b3]| Ack {
            node: u16::from_be_bytes([a0, a1]),
            newest: u16::from_be_bytes([n0, n1]),
            before: u32::from_be_bytes([b0, b1, b2, b3]),
        })
    }
}

/// Writes everything before the body of a frame; the octets written, at most [`AROUND`]. `None` if there is no room.
pub fn emit(
    kind: Kind,
    life: u8,
    acks: &[Ack],
    (to, number): (u16, u16),
    room: &mut [u8],
) -> Option<usize> {
    let kind = match kind {
        Kind::Nothing => 0,
        Kind::Router => 1,
        Kind::Announcement => 2,
    };
    let acks = acks.get(..acks.len().min(ACKS_MAX))?;
    let (head, rest) = room.split_first_chunk_mut::<HEAD>()?;
    *head = [VERSION << 4 | kind, life, acks.len() as u8];
    let (places, rest) = rest.split_at_mut_checked(acks.len() * ACK)?;
    for (place, ack) in places.as_chunks_mut::<ACK>().0.iter_mut().zip(acks) {
        place[..2].copy_from_slice(&ack.node.to_be_bytes());
        place[2..4].copy_from_slice(&ack.newest.to_be_bytes());
        place[4..].copy_from_slice(&ack.before.to_be_bytes());
    }
    let rest = rest.first_chunk_mut::<REST>()?;
    rest[..2].copy_from_slice(&to.to_be_bytes());
    rest[2..].copy_from_slice(&number.to_be_bytes());
    Some(HEAD + acks.len() * ACK + REST)
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
            },
            Ack {
                node: 9,
                newest: 0,
                before: u32::MAX,
            },
        ];
        let mut room = [0; 64];
        let len = emit(Kind::Router, 77, &acks, (5, 600), &mut room).unwrap();
        room[len] = 0xaa;
        let frame = Frame::parse(&room[..=len]).unwrap();
        assert_eq!(
            (frame.kind, frame.life, frame.to, frame.number),
            (Kind::Router, 77, 5, 600)
        );
        assert_eq!(
            (frame.acks().collect::<Vec<_>>(), frame.body),
            (acks.to_vec(), &[0xaa][..])
        );
        assert!((0..len).all(|short| Frame::parse(&room[..short]).is_none()));
    }

    #[test]
    fn acknowledgements_name_the_last_33() {
        let ack = Ack {
            node: 0,
            newest: 2,
            before: 0b101,
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
            }
        }
    }
}
