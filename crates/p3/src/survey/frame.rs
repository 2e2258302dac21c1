//! The frames of a measurement. Numbers are little-endian.
//!
//! | octets | field | CALL | BEACON | REPORT |
//! |---|---|---|---|---|
//! | 1 | kind | 0x80 | 0x90 | 0xf0 |
//! | 1 | | what it shall do: 0 send beacons, n report part n - 1 | channel, 0 to 3 | parts of its report |
//! | 1 | slot of the flood | | 0 | |
//! | 4 | session: greater in each measurement of a gateway | | | |
//! | 2 | number of the call in it | | | |
//! | 2 | node that is called | | | |
//! | 1 | | beacons on each channel | number of the beacon | links in this part |
//! | 1 | | hops of the flood | 0 | 0 |
//! | | body | | padding | links, eight octets each |
//! | 4 | tag, with a key | | | |
//!
//! A link in a report: the node that was heard (2 octets), beacons heard on each channel (four bits each), and their mean power in
//! dBm on each channel (a signed octet each; -128: none).

use crate::header::{u16_at, u32_at};
use crate::seal::{NONCE_LEN, Seal};
use crate::sizes::FRAME_MAX;

/// Octets before the body.
pub(super) const HEAD: usize = 13;
const LINK: usize = 8;
/// Links that a report has room for, with a tag.
pub(super) const LINKS_MAX: usize = (FRAME_MAX - HEAD - crate::sizes::TAG_LEN) / LINK;
/// No beacon was heard.
const NO_POWER: i8 = i8::MIN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Beacon,
    Report,
}

impl Kind {
    const fn code(self) -> u8 {
        // None of them is a code of `header::Kind`, so nodes in a transfer refuse these frames.
        match self {
            Kind::Call => 0x80,
            Kind::Beacon => 0x90,
            Kind::Report => 0xf0,
        }
    }
}

/// Whether a frame is one of a measurement, by its first octet.
pub(super) fn is_ours(psdu: &[u8]) -> bool {
    Head::kind(psdu).is_some()
}

/// What stands before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub kind: Kind,
    pub slot: u8,
    pub session: u32,
    pub number: u16,
    pub node: u16,
    /// Three fields with a meaning for each kind.
    pub first: u8,
    pub second: u8,
    pub third: u8,
}

impl Head {
    fn kind(psdu: &[u8]) -> Option<Kind> {
        let code = psdu.first()?;
        [Kind::Call, Kind::Beacon, Kind::Report]
            .into_iter()
            .find(|kind| kind.code() == *code)
    }

    /// The head of a genuine frame, and its body.
    pub fn open<'a>(seal: &Seal, psdu: &'a [u8]) -> Result<(Head, &'a [u8]), Refused> {
        let malformed = Refused::Malformed;
        let end = psdu.len().checked_sub(seal.tag_len()).ok_or(malformed)?;
        let body = psdu.get(HEAD..end).ok_or(malformed)?;
        let octet = |at: usize| psdu.get(at).copied().ok_or(malformed);
        let head = Head {
            kind: Head::kind(psdu).ok_or(malformed)?,
            first: octet(1)?,
            slot: octet(2)?,
            session: u32_at(psdu, 3).ok_or(malformed)?,
            number: u16_at(psdu, 7).ok_or(malformed)?,
            node: u16_at(psdu, 9).ok_or(malformed)?,
            second: octet(11)?,
            third: octet(12)?,
        };
        match seal.verify(head.nonce(), end, psdu) {
            true => Ok((head, body)),
            false => Err(Refused::Unauthentic),
        }
    }

    /// Writes a frame with this body, zeros behind it and a tag to the front of `frame`, as long as that is.
    pub fn write(&self, seal: &Seal, body: impl Iterator<Item = u8>, frame: &mut [u8]) {
        let [s0, s1, s2, s3] = self.session.to_le_bytes();
        let [n0, n1] = self.number.to_le_bytes();
        let [d0, d1] = self.node.to_le_bytes();
        let kind = self.kind.code();
        let (a, b, c) = (self.first, self.second, self.third);
        let head = [kind, a, self.slot, s0, s1, s2, s3, n0, n1, d0, d1, b, c];
        let end = frame.len().saturating_sub(seal.tag_len());
        let octets = head.into_iter().chain(body).chain(core::iter::repeat(0));
        frame
            .iter_mut()
            .zip(octets)
            .for_each(|(to, octet)| *to = octet);
        // There is room for the tag: frames are longer than a head and a tag.
        let _ = seal.sign(self.nonce(), end, frame);
    }

    /// No two frames of a session have the same: a called node sends each beacon and each part of its report once for a call.
    fn nonce(&self) -> [u8; NONCE_LEN] {
        let [s0, s1, s2, s3] = self.session.to_le_bytes();
        let [n0, n1] = self.number.to_le_bytes();
        let [d0, d1] = self.node.to_le_bytes();
        let kind = self.kind.code();
        [
            d0,
            d1,
            s0,
            s1,
            s2,
            s3,
            kind,
            n0,
            n1,
            0,
            self.first,
            self.second,
            self.third,
        ]
    }
}

/// Why a frame was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Malformed,
    Unauthentic,
}

/// How a node heard another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The node that sent the beacons.
    pub node: u16,
    /// Beacons heard on each of the four channels, at most 15.
    pub beacons: [u8; 4],
    /// Their mean power in dBm, where any was heard and the radio reports it.
    pub powers: [Option<i8>; 4],
}

impl Heard {
    pub(super) fn octets(&self) -> [u8; LINK] {
        let [n0, n1] = self.node.to_le_bytes();
        let [a, b, c, d] = self.beacons.map(|count| count.min(15));
        let [p, q, r, s] = self.powers.map(|power| power.unwrap_or(NO_POWER) as u8);
        [n0, n1, a | b << 4, c | d << 4, p, q, r, s]
    }

    pub(super) fn parse(octets: &[u8]) -> Option<Heard> {
        let &[n0, n1, ab, cd, p, q, r, s] = octets else {
            return None;
        };
        Some(Heard {
            node: u16::from_le_bytes([n0, n1]),
            beacons: [ab & 15, ab >> 4, cd & 15, cd >> 4],
            powers: [p, q, r, s].map(|power| Some(power as i8).filter(|&power| power != NO_POWER)),
        })
    }

    /// The links in the body of a report that says it has `count`.
    pub(super) fn all(body: &[u8], count: u8) -> impl Iterator<Item = Heard> + '_ {
        let links = body.chunks_exact(LINK).take(usize::from(count));
        links.filter_map(Heard::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Key;

    #[test]
    fn frames_survive_and_forgeries_do_not() {
        let heard = Heard {
            node: 0x1234,
            beacons: [0, 6, 15, 1],
            powers: [None, Some(-90), Some(4), Some(-1)],
        };
        assert_eq!(Heard::parse(&heard.octets()), Some(heard));
        let seal = Seal::new(Some(&Key::new([3; 16])));
        let head = Head {
            kind: Kind::Report,
            slot: 0,
            session: 0x0102_0304,
            number: 7,
            node: 9,
            first: 2,
            second: 1,
            third: 0,
        };
        let mut frame = [0; HEAD + LINK + 4];
        head.write(&seal, heard.octets().into_iter(), &mut frame);
        let (back, body) = Head::open(&seal, &frame).unwrap();
        assert_eq!(back, head);
        assert!(Heard::all(body, back.second).eq([heard]));
        assert_eq!(Heard::all(body, 99).count(), 1, "no more than there are");
        // The slot stands where other frames have their hop, so relays write it likewise and the tag does not cover it.
        crate::header::set_hop(&mut frame, 5);
        assert_eq!(Head::open(&seal, &frame).unwrap().0.slot, 5);
        for bit in (0..frame.len() * 8).filter(|bit| bit / 8 != 2) {
            let mut bent = frame;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::open(&seal, &bent).is_err(), "bit {bit}");
        }
        (0..frame.len()).for_each(|len| assert!(Head::open(&seal, &frame[..len]).is_err()));
    }
}
