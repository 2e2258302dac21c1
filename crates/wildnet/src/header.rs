//! The frame format of a link.
//!
//! Numbers are big-endian. Optional parts follow in this order where their flag is set.
//!
//! ```text
//!  0..4    number: counts every frame of the sender, so gaps are losses
//!  4       version (2 bits), kind (2 bits), flags (4 bits): report, slot, cut, last
//!  5       epoch: a new value means that the sender has started over
//!  6..10   data: the packet's sequence number; repair: the first one it covers; several, note: the next new one
//! 10..12   base: how far behind that the oldest number lies that the sender still supports
//!  slot    slot number (2), microseconds since its start (2; ffff: not stamped), its length (1), what the
//!          sender would fill next (1), both in units of 400 us
//!  repair  index (1), octets of the bitmap (1), bitmap of the covered numbers
//!  ack     see [`Ack`]: 16 octets and the bitmap; from 255 octets on its length (2), the octets that follow (2), and the
//!          bitmap packed ([`pack`])
//!  body    data: flow (1), number in the flow (2), then packets, each behind its length (2). Where frames have at most 16384
//!          octets, the two highest bits of a length say that what follows is a rest, whose front ended the flow's body
//!          before (8000), and that its own rest begins the flow's next body (4000)
//!          repair: a combination of bodies, the shorter ones padded with zeros
//!          several: bodies, each behind how far its number lies before the next new one (1) and its length (2)
//! ```
//!
//! The paper gives no layout. Ours has three peculiarities. Frames have their own numbers beside those of packets, so the
//! receiver counts the loss in one direction exactly, repairs and repetitions included. Counts in acknowledgements are
//! totals, so losing one loses no information. A slot announces its own length, not the next one's, so any one of
//! its frames tells when it ends.

use chappe_core::Duration;

/// Octets of the fixed header.
pub const FIXED: usize = 12;
/// Octets of the optional slot part.
pub const SLOT: usize = 6;
/// Octets of an acknowledgement without its bitmap.
pub const ACK: usize = 16;
/// Octets more of one whose bitmap is packed.
pub const PACKED: usize = 4;
/// Octets of a body before its first packet.
pub const BODY: usize = 3;
/// Octets of a length before each packet of a body.
pub const LENGTH: usize = 2;
/// Packets are cut only where frames are not longer than this. Elsewhere a length has 16 bits.
pub(crate) const PARTS_BELOW: usize = 1 << 14;
/// Most octets of a repair's bitmap, which covers [`SPAN`] numbers.
pub const COVER: usize = 16;
/// Numbers that one repair may cover: its coefficients are distinct within that.
pub const SPAN: u32 = COVER as u32 * 8;
/// Unit of announced slot lengths. 255 units are 102 ms, more than any slot.
pub const LENGTH_UNIT: Duration = Duration::from_micros(400);

const VERSION: u8 = 2;
const ACK_FLAG: u8 = 1;
const SLOT_FLAG: u8 = 2;
const CUT_FLAG: u8 = 4;
const LAST_FLAG: u8 = 8;

/// A frame, as received or to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Counts the sender's frames of all kinds.
    pub number: u32,
    /// The sender's start: a new value means that it has lost its state.
    pub epoch: u8,
    /// What the frame carries.
    pub kind: Kind<'a>,
    /// The oldest sequence number that the sender may still send: what is missing below it never comes.
    pub base: u32,
    /// The sender's slot and the time of sending in it, where there are slots.
    pub slot: Option<Slot>,
    /// The report on what the sender has received, if the frame carries one.
    pub ack: Option<Ack<'a>>,
    /// Whether nothing more waits: the peer should then report at once. Only where there are no slots.
    pub last: bool,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A single body, not coded.
    Data {
        /// The sequence number of the body.
        seq: u32,
        /// Its octets: order and flow, number in the flow, packets with their lengths.
        body: &'a [u8],
    },
    /// A combination of several bodies.
    Repair {
        /// The sequence number of the bitmap's first bit.
        first: u32,
        /// Selects the coefficients; differs between repairs of the same bodies.
        index: u8,
        /// Bit i (least significant of the first octet first): whether `first + i` is in it.
        cover: &'a [u8],
        /// The combination of the covered bodies, as long as the longest.
        coded: &'a [u8],
    },
    /// Several small bodies: possibly one that is due, and copies of others that no report has confirmed yet; or two that share the
    /// frame.
    Several {
        /// The sequence number of the next new body. Those in the frame lie before it.
        next: u32,
        /// The bodies; [`several`] splits them.
        bodies: &'a [u8],
    },
    /// Nothing but the header: an acknowledgement, a hello or a stamp.
    Note {
        /// The sequence number of the next new body.
        next: u32,
    },
}

/// The slot of a frame, and its place in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The sender's count of its slots.
    pub number: u16,
    /// Time since the start of the slot; `None` if the frame has no stamp.
    pub since: Option<Duration>,
    /// Length of the slot.
    pub length: Duration,
    /// Length of the slot that the sender's queues would fill.
    pub demand: Duration,
    /// Whether the slot ends with this frame: 2P's marker. WiLDNet has none.
    pub marker: bool,
}

/// An acknowledgement: what a receiver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The highest frame number received.
    pub highest: u32,
    /// Number of frames received, modulo 65,536.
    pub received: u16,
    /// Number of runs of lost frames, modulo 65,536.
    pub runs: u16,
    /// Time since frame `highest` was received, in units of 16 us; saturates at a second.
    pub held: u16,
    /// Every sequence number before this one is received or given up.
    pub next: u32,
    /// Independent repairs that do not suffice yet.
    pub spare: u8,
    /// Whether the bitmap is cut short.
    pub cut: bool,
    /// If the bitmap is packed, how many octets it has; [`unpack`] it before [`has`](Self::has) can read it.
    pub packed: Option<u16>,
    /// Bit i (least significant of the first octet first): whether `next + 1 + i` is received.
    pub bitmap: &'a [u8],
}

/// Most octets of a bitmap that is not packed. A length of 255 says that it is.
pub const PLAIN_MAX: usize = 254;

/// Packs a bitmap: a run of full octets becomes one and its length. Behind a hole most octets of a long window are full.
/// Returns the octets written to the front of `to`, and how many of the bitmap they hold.
pub fn pack(bitmap: impl Iterator<Item = u8>, to: &mut [u8]) -> (usize, usize) {
    let (mut used, mut held, mut run) = (0, 0, None::<usize>);
    for octet in bitmap {
        let open = run.and_then(|at| to.get_mut(at)).filter(|run| **run < 255);
        match open {
            Some(run) if octet == 255 => *run += 1,
            _ if octet == 255 => {
                let Some(cells) = to.get_mut(used..used + 2) else {
                    break;
                };
                cells.copy_from_slice(&[255, 1]);
                run = Some(used + 1);
                used += 2;
            }
            _ => {
                let Some(cell) = to.get_mut(used) else { break };
                *cell = octet;
                run = None;
                used += 1;
            }
        }
        held += 1;
    }
    (used, held)
}

/// Writes a packed bitmap to the front of `to`: how many octets it has, at most `to.len()`.
pub fn unpack(packed: &[u8], to: &mut [u8]) -> usize {
    let (mut rest, mut used) = (packed, 0);
    while let Some((&octet, behind)) = rest.split_first() {
        let (count, behind) = match (octet, behind.split_first()) {
            (255, Some((&count, behind))) => (usize::from(count), behind),
            (255, None) => return used,
            _ => (1, behind),
        };
        let end = (used + count).min(to.len());
        if let Some(cells) = to.get_mut(used..end) {
            cells.fill(octet);
        }
        (rest, used) = (behind, end);
    }
    used
}

/// Why octets do not parse as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its fields require.
    Short,
    /// A version other than ours.
    Version,
    /// A repair that covers nothing, or a body without packets.
    Empty,
}

/// What a frame carries and its sequence number, from its first ten octets and without further checks, for traces; `None` for other
/// octets.
pub fn peek(octets: &[u8]) -> Option<(&'static str, u32)> {
    let mut reader = Reader(octets.get(4..)?);
    let first = reader.u8().ok()?;
    reader.u8().ok()?;
    let seq = reader.u32().ok()?;
    let kind = match first >> 4 & 3 {
        0 => "data",
        1 => "repair",
        2 => "note",
        _ => "copies",
    };
    (first >> 6 == VERSION).then_some((kind, seq))
}

/// Whether `a` comes before `b`, both modulo 2^32 (serial number arithmetic, RFC 1982).
pub fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) > u32::MAX / 2
}

/// Whether bit `i` of a bitmap is set.
pub(crate) fn bit(bitmap: &[u8], i: u32) -> bool {
    bitmap
        .get(i as usize / 8)
        .is_some_and(|octet| octet >> (i % 8) & 1 != 0)
}

/// Sets bit `i` of a bitmap, if it has one.
pub(crate) fn set_bit(bitmap: &mut [u8], i: u32) {
    if let Some(octet) = bitmap.get_mut(i as usize / 8) {
        *octet |= 1 << (i % 8);
    }
}

impl<'a> Frame<'a> {
    /// Parses a frame. Its numbers are untrusted: they may have any value.
    pub fn parse(octets: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        let mut reader = Reader(octets);
        let number = reader.u32()?;
        let first = reader.u8()?;
        if first >> 6 != VERSION {
            return Err(Malformed::Version);
        }
        let epoch = reader.u8()?;
        let seq = reader.u32()?;
        let base = seq.wrapping_sub(u32::from(reader.u16()?));
        let slot = match first & SLOT_FLAG {
            0 => None,
            _ => Some(Slot::parse(&mut reader, first & LAST_FLAG != 0)?),
        };
        let (mut index, mut cover) = (0, &[][..]);
        let kind = first >> 4 & 3;
        if kind == 1 {
            index = reader.u8()?;
            let octets = reader.u8()?.into();
            cover = reader.take(octets)?;
            if cover.len() > COVER || cover.iter().all(|&octet| octet == 0) {
                return Err(Malformed::Empty);
            }
        }
        let ack = match first & ACK_FLAG {
            0 => None,
            _ => Some(Ack::parse(&mut reader, first & CUT_FLAG != 0)?),
        };
        let rest = reader.0;
        let kind = match kind {
            0 if rest.len() > BODY => Kind::Data { seq, body: rest },
            1 if rest.len() > BODY => Kind::Repair {
                first: seq,
                index,
                cover,
                coded: rest,
            },
            0 | 1 => return Err(Malformed::Empty),
            2 => Kind::Note { next: seq },
            _ => Kind::Several {
                next: seq,
                bodies: whole_several(rest)?,
            },
        };
        Ok(Frame {
            number,
            epoch,
            kind,
            base,
            slot,
            ack,
            last: slot.is_none() && first & LAST_FLAG != 0,
        })
    }

    /// Length of the frame in octets.
    pub fn len(&self) -> usize {
        let kind = match self.kind {
            Kind::Data { body, .. } => body.len(),
            Kind::Repair { cover, coded, .. } => 2 + cover.len() + coded.len(),
            Kind::Several { bodies, .. } => bodies.len(),
            Kind::Note { .. } => 0,
        };
        let packed = |ack: &Ack<'_>| if ack.packed.is_some() { PACKED } else { 0 };
        let ack = self
            .ack
            .map_or(0, |ack| ACK + packed(&ack) + ack.bitmap.len());
        FIXED + self.slot.map_or(0, |_| SLOT) + ack + kind
    }

    /// Always false: a frame has a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes the frame to the front of `octets` and returns its length; `None` if it does not fit.
    pub fn emit(&self, octets: &mut [u8]) -> Option<usize> {
        let len = self.len();
        let mut writer = Writer(octets.get_mut(..len)?);
        let (kind, seq) = match self.kind {
            Kind::Data { seq, .. } => (0, seq),
            Kind::Repair { first, .. } => (1, first),
            Kind::Note { next } => (2, next),
            Kind::Several { next, .. } => (3, next),
        };
        let last = self.slot.map_or(self.last, |slot| slot.marker);
        let mut flags = if last { LAST_FLAG } else { 0 };
        flags |= self.slot.map_or(0, |_| SLOT_FLAG);
        flags |= self.ack.map_or(0, |_| ACK_FLAG);
        flags |= self.ack.map_or(0, |ack| if ack.cut { CUT_FLAG } else { 0 });
        writer.put(&self.number.to_be_bytes());
        writer.put(&[VERSION << 6 | kind << 4 | flags, self.epoch]);
        writer.put(&seq.to_be_bytes());
        let behind = seq.wrapping_sub(self.base).min(u16::MAX.into()) as u16;
        writer.put(&behind.to_be_bytes());
        if let Some(slot) = &self.slot {
            slot.emit(&mut writer);
        }
        if let Kind::Repair { index, cover, .. } = self.kind {
            writer.put(&[index, cover.len().min(COVER) as u8]);
            writer.put(cover);
        }
        if let Some(ack) = &self.ack {
            ack.emit(&mut writer);
        }
        if let Kind::Data { body, .. }
        | Kind::Repair { coded: body, .. }
        | Kind::Several { bodies: body, .. } = self.kind
        {
            writer.put(body);
        }
        Some(len)
    }
}

/// What stands behind a note: the link ignores it, so that its owner may use it. `None` for other frames.
pub fn note_tail(octets: &[u8]) -> Option<&[u8]> {
    // The kind first: notes are rare.
    if octets.get(4)? >> 4 & 3 != 2 {
        return None;
    }
    let frame = Frame::parse(octets).ok()?;
    octets.get(frame.len()..)
}

/// Octets before each body of a frame of several: distance and length.
pub(crate) const AMONG: usize = 3;

/// Splits the bodies of a frame of several: each with its sequence number. Stops at the first that is cut short.
pub fn several(next: u32, mut bodies: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    core::iter::from_fn(move || {
        let ([behind, high, low], rest) = bodies.split_first_chunk::<AMONG>()?;
        let length = u16::from_be_bytes([*high, *low]);
        let (body, rest) = rest.split_at_checked(length.into())?;
        bodies = rest;
        Some((next.wrapping_sub(u32::from(*behind)), body))
    })
}

/// Writes body `seq` to the front of `octets` as [`several`] reads it, and returns the octets used. `None` if there is no
/// room, or if `seq` lies more than 255 before `next`.
pub fn put_among(next: u32, seq: u32, body: &[u8], octets: &mut [u8]) -> Option<usize> {
    let behind = u8::try_from(next.wrapping_sub(seq)).ok()?;
    let [high, low] = u16::try_from(body.len()).ok()?.to_be_bytes();
    let len = AMONG + body.len();
    let (head, to) = octets.get_mut(..len)?.split_first_chunk_mut::<AMONG>()?;
    *head = [behind, high, low];
    to.copy_from_slice(body);
    Some(len)
}

/// The same octets, if they split into bodies without a rest.
fn whole_several(bodies: &[u8]) -> Result<&[u8], Malformed> {
    let mut used = 0;
    for (_, body) in several(0, bodies) {
        if body.len() <= BODY {
            return Err(Malformed::Empty);
        }
        used += AMONG + body.len();
    }
    match used {
        0 if bodies.is_empty() => Err(Malformed::Empty),
        used if used == bodies.len() => Ok(bodies),
        _ => Err(Malformed::Short),
    }
}

impl Slot {
    fn parse(reader: &mut Reader<'_>, marker: bool) -> Result<Slot, Malformed> {
        let number = reader.u16()?;
        let since = reader.u16()?;
        let length = LENGTH_UNIT * reader.u8()?.into();
        let demand = LENGTH_UNIT * reader.u8()?.into();
        Ok(Slot {
            number,
            since: (since != u16::MAX).then_some(Duration::from_micros(since.into())),
            length,
            demand,
            marker,
        })
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let since = self.since.map_or(u16::MAX, |since| {
            let micros = (since + Duration::from_nanos(500)).nanos() / 1_000;
            micros.min(u16::MAX.into()) as u16
        });
        writer.put(&self.number.to_be_bytes());
        writer.put(&since.to_be_bytes());
        writer.put(&[units(self.length), units(self.demand)]);
    }
}

/// A length in announced units, rounded down, so that the peer does not wait longer than the slot lasts.
fn units(length: Duration) -> u8 {
    length.steps(LENGTH_UNIT).min(255) as u8
}

impl<'a> Ack<'a> {
    fn parse(reader: &mut Reader<'a>, cut: bool) -> Result<Ack<'a>, Malformed> {
        let highest = reader.u32()?;
        let received = reader.u16()?;
        let runs = reader.u16()?;
        let held = reader.u16()?;
        let next = reader.u32()?;
        let spare = reader.u8()?;
        let octets = usize::from(reader.u8()?);
        let (packed, octets) = match octets > PLAIN_MAX {
            true => (Some(reader.u16()?), usize::from(reader.u16()?)),
            false => (None, octets),
        };
        Ok(Ack {
            highest,
            received,
            runs,
            held,
            next,
            spare,
            cut,
            packed,
            bitmap: reader.take(octets)?,
        })
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.put(&self.highest.to_be_bytes());
        writer.put(&self.received.to_be_bytes());
        writer.put(&self.runs.to_be_bytes());
        writer.put(&self.held.to_be_bytes());
        writer.put(&self.next.to_be_bytes());
        let len = self.bitmap.len();
        match self.packed {
            None => writer.put(&[self.spare, len.min(PLAIN_MAX) as u8]),
            Some(octets) => {
                writer.put(&[self.spare, 255]);
                writer.put(&octets.to_be_bytes());
                writer.put(&(len.min(u16::MAX.into()) as u16).to_be_bytes());
            }
        }
        writer.put(self.bitmap);
    }

    /// Whether the receiver has `seq`; `None` if the bitmap was cut before it.
    pub fn has(&self, seq: u32) -> Option<bool> {
        if before(seq, self.next) {
            return Some(true);
        }
        let place = seq.wrapping_sub(self.next);
        if place == 0 {
            return Some(false);
        }
        if self.packed.is_some() {
            return None;
        }
        // Beyond a whole bitmap nothing was received; beyond a cut one nothing is known.
        let within = place - 1 < self.bitmap.len() as u32 * 8;
        match (within, self.cut) {
            (true, _) => Some(bit(self.bitmap, place - 1)),
            (false, true) => None,
            (false, false) => Some(false),
        }
    }

    /// The first body of which the report says nothing; `None` if its bitmap is whole.
    pub fn cut_at(&self) -> Option<u32> {
        let shown = if self.packed.is_some() {
            0
        } else {
            self.bitmap.len() as u32 * 8
        };
        self.cut.then(|| self.next.wrapping_add(1 + shown))
    }

    /// Time between receiving frame `highest` and sending this report.
    pub fn held(&self) -> Duration {
        HELD_UNIT * self.held.into()
    }
}

/// Unit of the time in [`Ack::held`].
pub(crate) const HELD_UNIT: Duration = Duration::from_micros(16);

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed::Short)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }
}

struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    /// Writes what fits; [`Frame::emit`] has made sure that everything does.
    fn put(&mut self, octets: &[u8]) {
        let space = core::mem::take(&mut self.0);
        if let Some((to, rest)) = space.split_at_mut_checked(octets.len()) {
            to.copy_from_slice(octets);
            self.0 = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use chappe_core::{Purpose, Seed};

    fn sample<'a>(kind: Kind<'a>, bitmap: &'a [u8]) -> Frame<'a> {
        Frame {
            number: 0xfffffffe,
            epoch: 7,
            kind,
            base: 95,
            slot: Some(Slot {
                number: 5,
                since: Some(Duration::from_micros(19_999)),
                length: Duration::from_millis(20),
                demand: Duration::from_micros(38_000),
                marker: true,
            }),
            ack: Some(Ack {
                highest: 12,
                received: 65_535,
                runs: 3,
                held: 9,
                next: 40,
                spare: 2,
                cut: true,
                packed: None,
                bitmap,
            }),
            last: false,
        }
    }

    #[test]
    fn frames_parse_as_they_were_emitted() {
        let kinds = [
            Kind::Data {
                seq: 100,
                body: &[1, 0, 2, 0, 1, 9],
            },
            Kind::Repair {
                first: 100,
                index: 3,
                cover: &[5, 1],
                coded: &[1, 2, 3, 4],
            },
            Kind::Note { next: 100 },
            Kind::Several {
                next: 100,
                bodies: &[1, 0, 4, 1, 0, 2, 9, 7, 0, 5, 1, 0, 2, 8, 8],
            },
        ];
        for kind in kinds {
            let frame = sample(kind, &[0xf0, 1]);
            let mut octets = [0; 200];
            let len = frame.emit(&mut octets).unwrap();
            assert_eq!(len, frame.len());
            assert_eq!(Frame::parse(&octets[..len]), Ok(frame));
            // A frame that is cut within its body may still parse; one cut in the header must not.
            for short in 0..len {
                let parsed = Frame::parse(&octets[..short]);
                let body = len - short < frame.len() - FIXED - SLOT - ACK - 2;
                assert!(parsed.is_err() || body, "{short} of {len}");
            }
            assert_eq!(frame.emit(&mut octets[..len - 1]), None);
        }
    }

    #[test]
    fn several_bodies_share_a_frame() {
        let (mut octets, mut len) = ([0; 64], 0);
        for (seq, body) in [(99, &[1, 0, 2, 9][..]), (93, &[1, 0, 2, 8, 8])] {
            len += put_among(100, seq, body, &mut octets[len..]).unwrap();
        }
        let read: Vec<_> = several(100, &octets[..len]).collect();
        assert_eq!(read, [(99, &[1, 0, 2, 9][..]), (93, &[1, 0, 2, 8, 8])]);
        let frame = Frame {
            slot: None,
            last: true,
            ..sample(
                Kind::Several {
                    next: 100,
                    bodies: &octets[..len],
                },
                &[],
            )
        };
        let mut air = [0; 64];
        let whole = frame.emit(&mut air).unwrap();
        assert_eq!(Frame::parse(&air[..whole]), Ok(frame));
        let front = whole - len;
        assert_eq!(Frame::parse(&air[..front]), Err(Malformed::Empty));
        for short in front + 1..whole {
            let first = short == front + AMONG + 4;
            assert_eq!(Frame::parse(&air[..short]).is_ok(), first, "{short}");
        }
        // Too far back for an octet, or no room.
        assert_eq!(put_among(400, 100, &[1, 2, 3, 4], &mut octets), None);
        assert_eq!(put_among(100, 99, &[1, 2, 3, 4], &mut octets[..6]), None);
    }

    #[test]
    fn random_octets_never_panic() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        let mut octets = [0; 64];
        for _ in 0..20_000 {
            random.fill(&mut octets);
            octets[4] = octets[4] & 0x3f | VERSION << 6;
            let len = random.below(65) as usize;
            if let Ok(frame) = Frame::parse(&octets[..len]) {
                if let Kind::Several { next, bodies } = frame.kind {
                    assert!(several(next, bodies).all(|(_, body)| body.len() > BODY));
                }
                let acks = frame.ack.into_iter();
                acks.for_each(|ack| (0..300).for_each(|i| _ = ack.has(ack.next.wrapping_add(i))));
            }
        }
    }

    #[test]
    fn acknowledgements_report_what_the_bitmap_covers() {
        let ack = Ack {
            cut: false,
            ..sample(Kind::Note { next: 0 }, &[0b101]).ack.unwrap()
        };
        let has = |ack: &Ack<'_>| [39, 40, 41, 42, 43, 49].map(|seq| ack.has(seq));
        let [yes, no] = [Some(true), Some(false)];
        assert_eq!(has(&ack), [yes, no, yes, no, yes, no]);
        assert_eq!(
            has(&Ack { cut: true, ..ack }),
            [yes, no, yes, no, yes, None]
        );
    }
}
