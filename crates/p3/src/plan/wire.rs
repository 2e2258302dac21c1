//! The plan as octets.

use super::{IMPROVED_RELAYS_MAX, ImprovedTerms, PaperTerms, Plan, RELAYS_MAX, Terms};
use crate::channels::ChannelOrder;
use crate::header::{Malformed, u16_at, u32_at};
use crate::part::{Marks, Place};
use crate::sizes::{FRAME_MAX, HEADER_LEN, TAG_LEN};

/// Octets of a plan before its relays; the transfer's number, the 13th, is in the header of the frame.
const FIXED: usize = 12;
/// Octets of a relay of the paper's variant: number, and place with mark.
const RELAY_LEN: usize = 3;
/// Octets that only the improved variant has: groups, combinations, session, bits of a number.
const IMPROVED_LEN: usize = 7;
/// Octets of a plan's frame that are left for the plan.
pub(super) const BODY_MAX: usize = FRAME_MAX - HEADER_LEN - TAG_LEN;
/// Bits of a relay of the improved variant beside its number: the mark, and whether another one of its place follows.
const RELAY_BITS: usize = 2;
/// Bit of the octet with the order of the channels.
const IMPROVED: u8 = 0x20;
/// Bit of the octet with the number of groups.
const BY_SEGMENT: u8 = 0x80;
/// Bit of the same octet.
const THIN: u8 = 0x40;
/// Bit of the same octet.
const LONG: u8 = 0x20;
/// Bit of the octet with the combinations.
const ASKS: u8 = 0x80;

/// Bits of the largest of these numbers.
fn width_of(numbers: impl Iterator<Item = u16>) -> usize {
    let most = numbers.max().unwrap_or(0);
    (u16::BITS - (most | 1).leading_zeros()) as usize
}

/// Most relays that a plan of the improved variant has room for in a network of `nodes` nodes: 76 up to 256 nodes, 69 up to
/// 512, 42 with numbers of 16 bits.
pub fn relays_max(nodes: usize) -> usize {
    let most = u16::try_from(nodes.saturating_sub(1)).unwrap_or(u16::MAX);
    let bits = (BODY_MAX - FIXED - IMPROVED_LEN) * 8;
    let room = bits / (width_of(core::iter::once(most)) + RELAY_BITS);
    room.min(IMPROVED_RELAYS_MAX)
}

impl Plan {
    /// Octets of the plan in a frame.
    pub fn encoded_len(&self) -> usize {
        let relays = match self.terms {
            Terms::Paper(_) => RELAY_LEN * usize::from(self.len),
            Terms::Improved(_) => {
                let bits = (self.width() + RELAY_BITS) * usize::from(self.len);
                bits.div_ceil(8)
            }
        };
        self.fixed_len() + relays
    }

    fn width(&self) -> usize {
        width_of(self.relays().iter().map(|place| place.node))
    }

    fn fixed_len(&self) -> usize {
        match self.terms {
            Terms::Paper(_) => FIXED,
            Terms::Improved(_) => FIXED + IMPROVED_LEN,
        }
    }

    /// Writes the plan to the front of a frame's body; `None` if that is too short.
    pub fn emit(&self, body: &mut [u8]) -> Option<()> {
        let body = body.get_mut(..self.encoded_len())?;
        let (fixed, relays) = body.split_at_mut_checked(self.fixed_len())?;
        let (fixed, more) = fixed.split_at_mut_checked(FIXED)?;
        let (variant, marks) = match self.terms {
            Terms::Paper(PaperTerms { senders }) => (0, senders),
            Terms::Improved(terms) => {
                let [s0, s1, s2, s3] = terms.session.to_le_bytes();
                let width = self.width() as u8;
                let groups = self.groups | u8::from(self.by_segment) << 7;
                let groups = groups | u8::from(self.thin) << 6 | u8::from(self.long) << 5;
                let repair = terms.repair | u8::from(self.asks) << 7;
                more.copy_from_slice(&[groups, repair, s0, s1, s2, s3, width]);
                (IMPROVED, terms.answerers)
            }
        };
        let [first0, first1, first2, _] = self.first.to_le_bytes();
        let [cycle0, cycle1] = self.cycle_us.to_le_bytes();
        let [source0, source1] = self.source.to_le_bytes();
        let [destination0, destination1] = self.destination.to_le_bytes();
        let order = self.channels.number()
            | variant
            | u8::from(self.resumed) << 6
            | u8::from(self.is_single()) << 7;
        fixed.copy_from_slice(&[
            first0,
            first1,
            first2,
            self.payload,
            cycle0,
            cycle1,
            self.hops,
            source0,
            source1,
            destination0,
            destination1,
            order,
        ]);
        let places = self.relays().iter().enumerate();
        if self.is_improved() {
            relays.fill(0);
            let (mut bits, width) = (Bits::new(relays), self.width());
            for (at, place) in places {
                let next = self.relays().get(at + 1);
                let follows = |next: &Place| (next.stage, next.group) == (place.stage, place.group);
                bits.put(place.node, width)?;
                bits.put(marks.has(at).into(), 1)?;
                bits.put(next.is_some_and(follows).into(), 1)?;
            }
            return Some(());
        }
        for (octets, (at, place)) in relays.chunks_exact_mut(RELAY_LEN).zip(places) {
            let [low, high] = place.node.to_le_bytes();
            let mark = u8::from(marks.has(at)) << 5;
            octets.copy_from_slice(&[low, high, place.stage & 15 | (place.group & 1) << 4 | mark]);
        }
        Some(())
    }

    /// Reads the body of a PLAN frame of this transfer and checks all of it.
    pub fn parse(transfer: u8, body: &[u8]) -> Result<Plan, Malformed> {
        let (fixed, rest) = body.split_at_checked(FIXED).ok_or(Malformed)?;
        let [first0, first1, first2, payload, _, _, hops, .., order] = *fixed else {
            return Err(Malformed);
        };
        // First, since it decides where the relays begin.
        let improved = order & IMPROVED != 0;
        let more = if improved { IMPROVED_LEN } else { 0 };
        let (more, rest) = rest.split_at_checked(more).ok_or(Malformed)?;
        let mut listed = Listed::default();
        if improved {
            listed.read_bits(rest, hops, more).ok_or(Malformed)?;
        } else {
            listed.read_octets(rest).ok_or(Malformed)?;
        }
        let Listed {
            relays,
            marks,
            count,
        } = listed;
        let single = order >> 7 == 1;
        let (mut by_segment, mut thin, mut long, mut asks) = (false, false, false, false);
        let (terms, groups) = if improved {
            let [groups, repair, ..] = *more else {
                return Err(Malformed);
            };
            let terms = ImprovedTerms {
                answerers: marks,
                repair: repair & !ASKS,
                session: u32_at(more, 2).ok_or(Malformed)?,
            };
            by_segment = groups & BY_SEGMENT != 0;
            (thin, long) = (groups & THIN != 0, groups & LONG != 0);
            asks = repair & ASKS != 0;
            (Terms::Improved(terms), groups & !(BY_SEGMENT | THIN | LONG))
        } else {
            let groups = if single { 1 } else { 2 };
            (Terms::Paper(PaperTerms { senders: marks }), groups)
        };
        // Both say whether there is one group: in the improved variant they might contradict each other.
        if single != (groups == 1) {
            return Err(Malformed);
        }
        let number = |at| u16_at(fixed, at).ok_or(Malformed);
        let plan = Plan {
            transfer,
            first: u32::from_le_bytes([first0, first1, first2, 0]),
            payload,
            cycle_us: number(4)?,
            hops,
            source: number(7)?,
            destination: number(9)?,
            channels: ChannelOrder::new(order & 0x1f).ok_or(Malformed)?,
            groups,
            resumed: order >> 6 & 1 == 1,
            by_segment,
            thin,
            long,
            asks,
            terms,
            relays,
            len: count as u8,
        };
        // Nodes act on a plan without further checks.
        plan.sound().then_some(plan).ok_or(Malformed)
    }
}

/// The relays of a plan that is being read.
struct Listed {
    relays: [Place; IMPROVED_RELAYS_MAX],
    marks: Marks,
    count: usize,
}

impl Default for Listed {
    fn default() -> Self {
        Listed {
            relays: [Place::default(); IMPROVED_RELAYS_MAX],
            marks: Marks::default(),
            count: 0,
        }
    }
}

impl Listed {
    fn push(&mut self, place: Place, mark: bool) -> Option<()> {
        *self.relays.get_mut(self.count)? = place;
        self.marks.set(self.count, mark);
        self.count += 1;
        Some(())
    }

    /// The relays of the paper's variant.
    fn read_octets(&mut self, rest: &[u8]) -> Option<()> {
        if !rest.len().is_multiple_of(RELAY_LEN) || rest.len() / RELAY_LEN > RELAYS_MAX {
            return None;
        }
        for octets in rest.chunks_exact(RELAY_LEN) {
            let bits = octets.get(2).copied().filter(|bits| *bits < 64)?;
            let place = Place {
                node: u16_at(octets, 0)?,
                stage: bits & 15,
                group: bits >> 4 & 1,
            };
            self.push(place, bits >> 5 & 1 == 1)?;
        }
        Some(())
    }

    /// The relays of the improved variant: each stage and group has one at least. No bit may be left over.
    fn read_bits(&mut self, rest: &[u8], hops: u8, more: &[u8]) -> Option<()> {
        let (groups, width) = (
            more.first().copied()? & !(BY_SEGMENT | THIN | LONG),
            more.get(6).copied()?,
        );
        let width = usize::from(width);
        if !(1..=16).contains(&width) || groups > crate::sizes::GROUPS_MAX {
            return None;
        }
        let mut bits = BitsRead {
            octets: rest,
            at: 0,
        };
        for stage in 1..hops {
            for group in 0..groups {
                loop {
                    let node = bits.take(width)?;
                    let mark = bits.take(1)? == 1;
                    self.push(Place { node, stage, group }, mark)?;
                    if bits.take(1)? == 0 {
                        break;
                    }
                }
            }
        }
        let rest_len = bits.at.div_ceil(8);
        let mut zeros = true;
        while bits.at < rest.len() * 8 {
            zeros &= bits.take(1)? == 0;
        }
        (zeros && rest_len == rest.len()).then_some(())
    }
}

/// Writes numbers of a few bits, lowest bit first.
struct Bits<'a> {
    octets: &'a mut [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    fn new(octets: &'a mut [u8]) -> Bits<'a> {
        Bits { octets, at: 0 }
    }

    fn put(&mut self, number: u16, width: usize) -> Option<()> {
        for bit in 0..width {
            let octet = self.octets.get_mut(self.at / 8)?;
            *octet |= ((number >> bit & 1) as u8) << (self.at % 8);
            self.at += 1;
        }
        Some(())
    }
}

/// Reads numbers of some bits each, lowest bit first, as `Bits` writes them.
struct BitsRead<'a> {
    octets: &'a [u8],
    at: usize,
}

impl BitsRead<'_> {
    fn take(&mut self, width: usize) -> Option<u16> {
        let mut number = 0;
        for bit in 0..width {
            let octet = self.octets.get(self.at / 8)?;
            number |= u16::from(octet >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        Some(number)
    }
}
