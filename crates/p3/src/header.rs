//! The frames: one header for all, and the bodies of CTRL and NACK. The body of PLAN is in [`plan`](crate::plan).
//!
//! Numbers are little-endian, as everywhere in 802.15.4.
//!
//! | octets | field | PLAN | DATA | CTRL | NACK |
//! |---|---|---|---|---|---|
//! | 1 | kind and version | 0xb0 | 0xd0 | 0xc0 | 0xa0 |
//! | 1 | transfer | | | | |
//! | 1 | hop | slot of the flood | stage that sends it | likewise | likewise |
//! | 1 | flags | | group, both, last | group, both, left out | complete, both, by group and group, left out |
//! | 2 | sequence | 0 | packet | end of what was sent | packets told of, and how |
//! | 1 | round | 0 | round | round | round |
//! | | body | plan | payload | see [`Ctrl`] | see [`Nack`] |
//!
//! Packet numbers are modulo 2^16 on the air, in short headers modulo 2^14: both ends know them to within a
//! [window](crate::WINDOW). All fields but `hop` are the source's or the destination's; each stage writes its own number there, the same in all its
//! relays, so that their frames stay identical.
//!
//! A TALLY of the improved variant has kind 0xe8, its turn as the round, zeros elsewhere, and as its body an octet for the source and for each
//! relay ([`Tally`](crate::Tally)).
//!
//! DATA and CODED frames of the improved variant have three octets instead. Their first bit tells them from the others:
//!
//! | bits | field |
//! |---|---|
//! | 1 | 0 |
//! | 1 | a combination of packets |
//! | 2 | group; 3 is all of them |
//! | 2 | hop / 4; the rest of it follows from the channel |
//! | 2 | transfer modulo 4; the rest is in the nonce of the frame's tag |
//! | 2 | the group that is left out, plus one; 0 if none is |
//! | 14 | packet; of a combination its round modulo 64 and its number |

use core::fmt;

use crate::sizes::{CTRL_FIELDS, HEADER_LEN, SHORT_HEADER_LEN};

mod field {
    use core::ops::Range;
    pub const KIND: usize = 0;
    pub const TRANSFER: usize = 1;
    pub const HOP: usize = 2;
    pub const FLAGS: usize = 3;
    pub const SEQUENCE: Range<usize> = 4..6;
    pub const ROUND: usize = 6;
}

/// Not a frame of this protocol, or one with fields out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a P3 frame, or one with fields out of range")
    }
}

impl core::error::Error for Malformed {}

/// What a frame is. The low three bits of its octet are the version, 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Wakes the nodes and tells them their parts.
    Plan,
    /// A packet of the object.
    Data,
    /// A combination of packets; improved variant.
    Coded,
    /// End of a round: turns the pipeline around.
    Ctrl,
    /// Which packets are missing; travels backwards.
    Nack,
    /// What the nodes heard of an attempt that failed; improved variant.
    Tally,
}

impl Kind {
    pub(crate) const fn code(self) -> u8 {
        // The top bit is set in all of them, since a short header begins with a 0.
        match self {
            Kind::Plan => 0xb0,
            Kind::Data => 0xd0,
            // In nonces only: on the air its header is the short one.
            Kind::Coded => 0xe0,
            Kind::Ctrl => 0xc0,
            Kind::Nack => 0xa0,
            // 0x80, 0x90 and 0xf0 belong to measurements.
            Kind::Tally => 0xe8,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Kind> {
        let all = [Kind::Plan, Kind::Data, Kind::Ctrl, Kind::Nack, Kind::Tally];
        all.into_iter().find(|kind| kind.code() == code)
    }
}

/// The flags of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The group of relays that takes it, 0 to 2.
    pub group: u8,
    /// The relays of all groups take it: half rate, full diversity.
    pub both: bool,
    /// DATA: the last one of its round.
    pub last: bool,
    /// NACK: the destination has the whole object.
    pub complete: bool,
    /// NACK: the relays of `group` repeat it, and no others.
    pub by_group: bool,
    /// Improved variant. DATA, CODED, CTRL: the group that gets no packets in this round, since it delivers too few. NACK: that
    /// group has brought the CTRL.
    pub left_out: Option<u8>,
}

impl Flags {
    pub(crate) fn bits(self) -> u8 {
        self.group & 1
            | u8::from(self.last) << 1
            | u8::from(self.both) << 2
            | u8::from(self.complete) << 3
            | (self.group & 2) << 3
            | u8::from(self.by_group) << 5
            | code_of(self.left_out) << 6
    }

    fn from_bits(bits: u8) -> Option<Flags> {
        let flag = |bit: u8| bits >> bit & 1 == 1;
        let group = bits & 1 | bits >> 3 & 2;
        (group < 3).then_some(Flags {
            group,
            last: flag(1),
            both: flag(2),
            complete: flag(3),
            by_group: flag(5),
            left_out: (bits >> 6).checked_sub(1),
        })
    }

    /// Whether a relay of this group takes the frame.
    pub fn takes(self, group: u8) -> bool {
        self.both || self.group == group
    }
}

/// The two bits that name a group that is left out, or none.
fn code_of(left_out: Option<u8>) -> u8 {
    left_out.map_or(0, |group| (group + 1) & 3)
}

/// What stands before the body of every frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of frame, which decides what `sequence` and the body hold.
    pub kind: Kind,
    /// Which transfer it belongs to.
    pub transfer: u8,
    /// The stage that sends it: 0 is the source. PLAN: the slot of the flood.
    pub hop: u8,
    /// Group, `both`, `last` and `complete`.
    pub flags: Flags,
    /// DATA: the packet; CTRL: the end of what was sent; NACK: how many packets it covers, and how.
    pub sequence: u16,
    /// The round of the transfer, modulo 256.
    pub round: u8,
}

impl Header {
    /// The header and the body of a received frame.
    pub fn parse(psdu: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (head, body) = psdu.split_at_checked(HEADER_LEN).ok_or(Malformed)?;
        let octet = |at: usize| head.get(at).copied().ok_or(Malformed);
        let header = Header {
            kind: Kind::from_code(octet(field::KIND)?).ok_or(Malformed)?,
            transfer: octet(field::TRANSFER)?,
            hop: octet(field::HOP)?,
            flags: Flags::from_bits(octet(field::FLAGS)?).ok_or(Malformed)?,
            sequence: u16_at(head, field::SEQUENCE.start).ok_or(Malformed)?,
            round: octet(field::ROUND)?,
        };
        // Only a NACK says who repeats it.
        let said = !header.flags.by_group || header.kind == Kind::Nack;
        said.then_some((header, body)).ok_or(Malformed)
    }

    /// Writes the header to the front of a frame and returns the room behind it; `None` if it is too short.
    pub fn emit<'a>(&self, psdu: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (head, body) = psdu.split_at_mut_checked(HEADER_LEN)?;
        let [low, high] = self.sequence.to_le_bytes();
        head.copy_from_slice(&[
            self.kind.code(),
            self.transfer,
            self.hop,
            self.flags.bits(),
            low,
            high,
            self.round,
        ]);
        Some(body)
    }
}

impl Header {
    /// The header of a DATA or CODED frame of the improved variant, heard where hop `expected` of `transfer` is due.
    /// Where the frame says that it is another one, so does the result.
    pub(crate) fn parse_short(
        psdu: &[u8],
        transfer: u8,
        expected: u8,
    ) -> Result<(Header, &[u8]), Malformed> {
        let (head, body) = psdu.split_at_checked(SHORT_HEADER_LEN).ok_or(Malformed)?;
        let first = head.first().copied().filter(|first| first & 0x80 == 0);
        let first = first.ok_or(Malformed)?;
        let word = u16_at(head, 1).ok_or(Malformed)?;
        let sequence = word & SHORT_SEQUENCE;
        let (coded, group) = (first >> 6 & 1 == 1, first >> 4 & 3);
        // The channel gives the hop modulo four. With other high bits it is a stage four or more away, whichever.
        let hop = if first >> 2 & 3 == expected >> 2 & 3 {
            expected
        } else {
            expected ^ 4
        };
        let header = Header {
            kind: if coded { Kind::Coded } else { Kind::Data },
            transfer: transfer & !3 | first & 3,
            hop,
            flags: Flags {
                group: if group == 3 { 0 } else { group },
                both: group == 3,
                left_out: ((word >> 14) as u8).checked_sub(1),
                ..Flags::default()
            },
            sequence,
            round: if coded { (sequence >> 8) as u8 } else { 0 },
        };
        Ok((header, body))
    }

    /// Writes the three octets of a DATA or CODED frame and returns the room behind them.
    pub(crate) fn emit_short<'a>(&self, psdu: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (head, body) = psdu.split_at_mut_checked(SHORT_HEADER_LEN)?;
        let group = if self.flags.both {
            3
        } else {
            self.flags.group & 3
        };
        let left_out = u16::from(code_of(self.flags.left_out)) << 14;
        let [low, high] = (self.sequence & SHORT_SEQUENCE | left_out).to_le_bytes();
        let coded = u8::from(self.kind == Kind::Coded);
        let first = coded << 6 | group << 4 | self.hop & 0xc | self.transfer & 3;
        head.copy_from_slice(&[first, low, high]);
        Some(body)
    }
}

/// The bits of a packet's number in a short header.
pub(crate) const SHORT_SEQUENCE: u16 = 0x3fff;
/// The bits of a round in a short header.
pub(crate) const SHORT_ROUND: u8 = 0x3f;

/// Whether a frame has the short header of the improved variant.
pub(crate) fn is_short(psdu: &[u8]) -> bool {
    psdu.first().is_some_and(|first| first & 0x80 == 0)
}

/// Writes the number of the repeating stage, or slot, into a frame that is otherwise repeated unchanged.
pub(crate) fn set_hop(psdu: &mut [u8], hop: u8) {
    if is_short(psdu) {
        if let Some(first) = psdu.first_mut() {
            *first = *first & !0xc | hop & 0xc;
        }
    } else if let Some(octet) = psdu.get_mut(field::HOP) {
        *octet = hop;
    }
}

impl fmt::Display for Header {
    /// `DATA transfer=1 round=0 hop=2 group=1 seq=17`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::Plan => "PLAN",
            Kind::Data => "DATA",
            Kind::Coded => "CODED",
            Kind::Ctrl => "CTRL",
            Kind::Nack => "NACK",
            Kind::Tally => "TALLY",
        };
        let (transfer, round, hop) = (self.transfer, self.round, self.hop);
        write!(f, "{name} transfer={transfer} round={round} hop={hop}")?;
        match (self.kind, self.flags.both) {
            (Kind::Data | Kind::Coded | Kind::Ctrl, true) => write!(f, " both")?,
            (Kind::Data | Kind::Coded | Kind::Ctrl, false) => {
                write!(f, " group={}", self.flags.group)?
            }
            (Kind::Nack, _) if self.flags.by_group => write!(f, " group={}", self.flags.group)?,
            _ => {}
        }
        write!(f, " seq={}", self.sequence)?;
        f.write_str(if self.flags.last { " last" } else { "" })?;
        f.write_str(if self.flags.complete { " complete" } else { "" })?;
        match self.flags.left_out {
            Some(group) => write!(f, " without={group}"),
            None => Ok(()),
        }
    }
}

/// The body of a CTRL frame: object length (4 octets), end (4), copies still to come (1), the tags of
/// the segment's blocks where frames carry none, padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ctrl {
    /// Length of the object in octets.
    pub object_len: u32,
    /// One past the last packet sent so far.
    pub end: u32,
    /// How many more copies of this CTRL follow, a cycle each: the reply waits for them.
    pub copies_left: u8,
}

impl Ctrl {
    /// Reads a body. The padding is ignored.
    pub fn parse(body: &[u8]) -> Result<Ctrl, Malformed> {
        let ctrl = Ctrl {
            object_len: u32_at(body, 0).ok_or(Malformed)?,
            end: u32_at(body, 4).ok_or(Malformed)?,
            copies_left: body.get(8).copied().ok_or(Malformed)?,
        };
        (ctrl.copies_left <= 2).then_some(ctrl).ok_or(Malformed)
    }

    /// Writes the body and fills the rest with zeros; `None` if it is too short.
    pub fn emit(&self, body: &mut [u8]) -> Option<()> {
        body.fill(0);
        let (fields, _) = body.split_at_mut_checked(CTRL_FIELDS)?;
        let (len, rest) = fields.split_at_mut(4);
        let (end, copies) = rest.split_at_mut(4);
        len.copy_from_slice(&self.object_len.to_le_bytes());
        end.copy_from_slice(&self.end.to_le_bytes());
        copies.copy_from_slice(&[self.copies_left]);
        Some(())
    }
}

/// A view of a NACK: which of `covered` packets from `base` on are missing.
///
/// Body: base (2 octets, modulo 2^16), missing count (2), then a bit vector (bit i of the vector, least significant
/// first: packet base + i is missing) or, where the top bit of the header's sequence is set, ranges of three octets
/// (first packet after base: 2, how many: 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack<'a> {
    /// First packet that is missing, or the end of what was sent; modulo 2^16.
    pub base: u16,
    /// How many packets the frame covers.
    pub covered: u16,
    /// How many of them are missing; where combinations can help, how many of these the destination lacks.
    pub missing: u16,
    form: Form,
    told: &'a [u8],
}

/// How a NACK names packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A bit for each packet.
    Vector,
    /// A range for each run of missing packets.
    Ranges,
}

/// Octets of a NACK's body before the vector or the ranges.
pub(crate) const NACK_FIELDS: usize = 4;
/// Octets of a range: first packet (2) and count (1).
pub(crate) const RANGE_LEN: usize = 3;
const RANGES: u16 = 0x8000;

impl<'a> Nack<'a> {
    /// Reads the body of a NACK whose header has this `sequence`.
    pub fn parse(sequence: u16, body: &'a [u8]) -> Result<Nack<'a>, Malformed> {
        let (fields, told) = body.split_at_checked(NACK_FIELDS).ok_or(Malformed)?;
        let covered = sequence & !RANGES;
        let form = if sequence & RANGES == 0 {
            Form::Vector
        } else {
            Form::Ranges
        };
        if form == Form::Vector && usize::from(covered) > told.len() * 8 {
            return Err(Malformed);
        }
        Ok(Nack {
            base: u16_at(fields, 0).ok_or(Malformed)?,
            missing: u16_at(fields, 2).ok_or(Malformed)?,
            covered,
            form,
            told,
        })
    }

    /// The fields of a NACK alone, as its nonce needs them.
    pub(crate) fn told(base: u16, covered: u16, missing: u16) -> Nack<'static> {
        Nack {
            base,
            covered,
            missing,
            form: Form::Vector,
            told: &[],
        }
    }

    /// Whether it names packets by bits or by ranges.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether packet `base + offset` is missing; packets that are not covered are not.
    pub fn is_missing(&self, offset: u16) -> bool {
        if offset >= self.covered {
            return false;
        }
        match self.form {
            Form::Vector => {
                let octet = self.told.get(usize::from(offset / 8)).copied().unwrap_or(0);
                octet >> (offset % 8) & 1 == 1
            }
            Form::Ranges => self.told.chunks_exact(RANGE_LEN).any(|range| match range {
                [low, high, len] => {
                    let first = u16::from_le_bytes([*low, *high]);
                    offset >= first && offset - first < u16::from(*len)
                }
                _ => false,
            }),
        }
    }
}

/// The value of the header's sequence for a NACK.
pub(crate) fn nack_sequence(covered: u16, form: Form) -> u16 {
    match form {
        Form::Vector => covered & !RANGES,
        Form::Ranges => covered | RANGES,
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two: [u8; 2] = bytes.get(at..)?.get(..2)?.try_into().ok()?;
    Some(u16::from_le_bytes(two))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..)?.get(..4)?.try_into().ok()?;
    Some(u32::from_le_bytes(four))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    const HEADER: Header = Header {
        kind: Kind::Data,
        transfer: 9,
        hop: 2,
        flags: Flags {
            group: 1,
            both: false,
            last: true,
            complete: false,
            by_group: false,
            left_out: None,
        },
        sequence: 0x1234,
        round: 3,
    };

    #[test]
    fn headers_are_encoded_as_documented() {
        let mut psdu = [0xff; 10];
        let body = HEADER.emit(&mut psdu).unwrap();
        assert_eq!(body.len(), 3);
        assert_eq!(psdu, [0xd0, 9, 2, 0b11, 0x34, 0x12, 3, 0xff, 0xff, 0xff]);
        assert_eq!(Header::parse(&psdu), Ok((HEADER, &[0xff; 3][..])));
        assert_eq!(
            HEADER.to_string(),
            "DATA transfer=9 round=3 hop=2 group=1 seq=4660 last"
        );
        let flags = Flags {
            group: 2,
            by_group: true,
            ..Flags::default()
        };
        let nack = Header {
            kind: Kind::Nack,
            flags,
            ..HEADER
        };
        nack.emit(&mut psdu).unwrap();
        assert_eq!(psdu[..4], [0xa0, 9, 2, 0b11_0000]);
        assert_eq!(Header::parse(&psdu).map(|(header, _)| header), Ok(nack));
        assert_eq!(
            nack.to_string(),
            "NACK transfer=9 round=3 hop=2 group=2 seq=4660"
        );
    }

    #[test]
    fn frames_with_fields_out_of_range_are_malformed() {
        let mut psdu = [0; 7];
        assert_eq!(HEADER.emit(&mut psdu[..6]), None);
        HEADER.emit(&mut psdu).unwrap();
        assert_eq!(Header::parse(&psdu[..6]), Err(Malformed));
        for (place, value) in [(0, 0xd1), (0, 0), (3, 32), (3, 96), (3, 17)] {
            let mut bent = psdu;
            bent[place] = value;
            assert_eq!(Header::parse(&bent), Err(Malformed), "{place} {value}");
        }
        assert_eq!(Ctrl::parse(&[0; 8]), Err(Malformed));
        assert_eq!(Ctrl::parse(&[0, 0, 0, 0, 0, 0, 0, 0, 3]), Err(Malformed));
        assert_eq!(Nack::parse(0, &[0; 3]), Err(Malformed));
        assert_eq!(Nack::parse(9, &[0; 5]), Err(Malformed));
    }

    #[test]
    fn ctrl_round_trips() {
        let ctrl = Ctrl {
            object_len: 59_000,
            end: 70_000,
            copies_left: 1,
        };
        let mut body = [0xff; 20];
        ctrl.emit(&mut body).unwrap();
        assert_eq!(Ctrl::parse(&body), Ok(ctrl));
        assert_eq!(body[9..], [0; 11]);
        assert_eq!(ctrl.emit(&mut body[..8]), None);
    }

    #[test]
    fn nacks_name_packets_by_bit_or_by_range() {
        let body = [7, 0, 2, 0, 0b101];
        let nack = Nack::parse(nack_sequence(8, Form::Vector), &body).unwrap();
        let missing = |nack: &Nack| (0..20).filter(|&i| nack.is_missing(i)).sum::<u16>();
        assert_eq!((nack.base, nack.covered, missing(&nack)), (7, 8, 2));
        let body = [7, 0, 5, 0, 3, 0, 2, 9, 0, 3, 0, 0, 0];
        let nack = Nack::parse(nack_sequence(11, Form::Ranges), &body).unwrap();
        assert_eq!(
            (nack.form(), missing(&nack)),
            (Form::Ranges, 3 + 4 + 9 + 10)
        );
    }
}
