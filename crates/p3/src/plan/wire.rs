//! The plan as octets.

use super::{ImprovedTerms, PaperTerms, Plan, RELAYS_MAX, Terms};
use crate::channels::ChannelOrder;
use crate::header::{Malformed, u16_at, u32_at};
use crate::part::{Marks, Place};

/// Octets of a plan before its relays; the transfer's number, the 13th, is in the header of the frame.
const FIXED: usize = 12;
/// Octets of a relay: number, and place with mark.
const RELAY_LEN: usize = 3;
/// Octets that only the improved variant has.
const IMPROVED_LEN: usize = 6;
/// Bit of the octet with the order of the channels.
const IMPROVED: u8 = 0x20;

impl Plan {
    /// Octets of the plan in a frame.
    pub fn encoded_len(&self) -> usize {
        self.fixed_len() + RELAY_LEN * usize::from(self.len)
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
                more.copy_from_slice(&[self.groups, terms.repair, s0, s1, s2, s3]);
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
        for (octets, (at, place)) in relays.chunks_exact_mut(RELAY_LEN).zip(places) {
            let [low, high] = place.node.to_le_bytes();
            octets.copy_from_slice(&[
                low,
                high,
                place.stage & 15
                    | (place.group & 1) << 4
                    | u8::from(marks.has(at)) << 5
                    | (place.group & 2) << 5,
            ]);
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
        let whole = rest.len().is_multiple_of(RELAY_LEN);
        let count = rest.len() / RELAY_LEN;
        if !whole || count > RELAYS_MAX {
            return Err(Malformed);
        }
        let mut relays = [Place::default(); RELAYS_MAX];
        let mut marks = Marks::default();
        let places = relays.iter_mut().zip(rest.chunks_exact(RELAY_LEN));
        for (at, (relay, octets)) in places.enumerate() {
            let place = octets.get(2).copied().filter(|bits| *bits < 128);
            let place = place.ok_or(Malformed)?;
            *relay = Place {
                node: u16_at(octets, 0).ok_or(Malformed)?,
                stage: place & 15,
                group: place >> 4 & 1 | place >> 5 & 2,
            };
            marks.set(at, place >> 5 & 1 == 1);
        }
        let single = order >> 7 == 1;
        let (terms, groups) = if improved {
            let [groups, repair, ..] = *more else {
                return Err(Malformed);
            };
            let terms = ImprovedTerms {
                answerers: marks,
                repair,
                session: u32_at(more, 2).ok_or(Malformed)?,
            };
            (Terms::Improved(terms), groups)
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
            terms,
            relays,
            len: count as u8,
        };
        // Nodes act on a plan without further checks.
        plan.sound().then_some(plan).ok_or(Malformed)
    }
}
