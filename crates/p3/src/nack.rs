//! Writing a NACK: a bit for each packet where that fits, ranges where these do, and otherwise the bits of the first
//! packets, as far as a frame goes. The source asks for the others later.

use crate::frame::Frames;
use crate::header::{Flags, Form, Header, Kind, NACK_FIELDS, Nack, RANGE_LEN, nack_sequence};
use crate::outbox::Outbox;
use crate::plan::Plan;
use crate::seal::Nonce;
use crate::sizes::NACK_BITS;
use crate::window::Window;

/// The round that a NACK answers, and whether the object is complete.
pub(crate) struct Round {
    pub number: u8,
    pub complete: bool,
}

/// The form of a variant's NACKs.
pub(crate) struct Shape {
    /// Least length of the frame.
    pub len_min: usize,
    /// Whether ranges are used wherever they make the frame shorter, and not only where the bits do not fit.
    pub shortest: bool,
    /// Combinations that the destination lacks, where it needs these and not the packets.
    pub deficit: Option<u16>,
    /// Whether all relays shall repeat it, and not only those that answer first.
    pub both: bool,
    /// Otherwise the group whose relays shall repeat it, where those that answer first have failed.
    pub group: Option<u8>,
    /// The group that was left out, if its copy of the question has come.
    pub left_out: Option<u8>,
}

/// Writes the NACK for what is missing of `have` before `end` to `out`.
pub(crate) fn write(
    have: &Window,
    end: u32,
    round: Round,
    shape: Shape,
    frames: &Frames,
    plan: &Plan,
    out: &mut Outbox,
) {
    let base = have.base();
    let (form, covered, told) = chosen(have, end, shape.shortest, frames);
    let shown = base.saturating_add(covered as u32);
    let missing = (base..shown).filter(|&packet| !have.contains(packet));
    let missing = shape.deficit.unwrap_or(missing.count() as u16);
    let header = Header {
        kind: Kind::Nack,
        transfer: plan.transfer(),
        hop: plan.hops(),
        flags: Flags {
            complete: round.complete,
            both: shape.both,
            by_group: shape.group.is_some(),
            group: shape.group.unwrap_or(0),
            left_out: shape.left_out,
            ..Flags::default()
        },
        sequence: nack_sequence(covered as u16, form),
        round: round.number,
    };
    let len = frames
        .len_of(Kind::Nack, NACK_FIELDS + told)
        .max(shape.len_min);
    let body = frames.begin(out, plan, &header, len);
    let Some((fields, told)) = body.split_at_mut_checked(NACK_FIELDS) else {
        return;
    };
    let [base_low, base_high] = (base as u16).to_le_bytes();
    let [missing_low, missing_high] = missing.to_le_bytes();
    fields.copy_from_slice(&[base_low, base_high, missing_low, missing_high]);
    match form {
        Form::Ranges => tell_ranges(Ranges::of(have, end), told),
        Form::Vector => tell_bits(have, covered, told),
    }
    let nack = Nack::told(base as u16, covered as u16, missing);
    frames.seal(out, &Nonce::of_nack(plan, &header, &nack));
}

/// How a NACK tells what is missing before `end`: its form, the packets that it covers, and the octets that this takes.
fn chosen(have: &Window, end: u32, shortest: bool, frames: &Frames) -> (Form, usize, usize) {
    // What the tag leaves for bits or ranges.
    let bits = NACK_BITS.saturating_sub(frames.tag_len() * 8);
    let span = end.saturating_sub(have.base()) as usize;
    let ranges = Ranges::of(have, end).count() * RANGE_LEN;
    let short = shortest && ranges < span.div_ceil(8);
    let fits = ranges <= bits / 8;
    // Bits first: they cover a segment at any loss. Ranges where the window is longer than the bits, or shorter to send.
    if short && fits {
        (Form::Ranges, span, ranges)
    } else if span <= bits {
        (Form::Vector, span, span.div_ceil(8))
    } else if fits {
        (Form::Ranges, span, ranges)
    } else {
        (Form::Vector, bits, bits / 8)
    }
}

fn tell_ranges(ranges: Ranges<'_>, told: &mut [u8]) {
    for (place, (first, len)) in told.chunks_exact_mut(RANGE_LEN).zip(ranges) {
        let [low, high] = first.to_le_bytes();
        place.copy_from_slice(&[low, high, len]);
    }
}

fn tell_bits(have: &Window, covered: usize, told: &mut [u8]) {
    let octets = covered.div_ceil(8);
    let received = have.octets().take(octets);
    for ((at, place), received) in told.iter_mut().enumerate().zip(received) {
        let used = covered.saturating_sub(at * 8).min(8) as u32;
        // Past the last packet the bits are 0: a packet that was never sent is not missing.
        *place = !received & (0xffu16 >> (8 - used)) as u8;
    }
}

/// Runs of missing packets as (first one after the base, count up to 255: a range has one octet for it).
struct Ranges<'a> {
    have: &'a Window,
    at: u32,
    end: u32,
}

impl<'a> Ranges<'a> {
    /// Runs of the packets that are missing before `end`.
    fn of(have: &'a Window, end: u32) -> Ranges<'a> {
        let at = have.base();
        Ranges { have, at, end }
    }
}

impl Iterator for Ranges<'_> {
    type Item = (u16, u8);

    fn next(&mut self) -> Option<(u16, u8)> {
        let has = |packet: &u32| self.have.contains(*packet);
        let first = (self.at..self.end).find(|packet| !has(packet))?;
        let limit = self.end.min(first.saturating_add(255));
        let past = (first..limit).find(has).unwrap_or(limit);
        self.at = past;
        Some(((first - self.have.base()) as u16, (past - first) as u8))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::config::{Config, FRAME_MAX};
    use crate::header::Nack;
    use chappe_core::{Channel, Purpose, Seed};
    use std::vec::Vec;

    fn plan() -> Plan {
        let wanted = crate::Wanted {
            transfer: 1,
            payload: 118,
            source: 1,
            destination: 0,
            channels: Default::default(),
        };
        let mut random = Seed(1).stream(Purpose::Topology);
        crate::baseline::pip::plan(wanted, &crate::Profile::PAPER, &[2, 3], &mut random).unwrap()
    }

    /// The contents of a NACK for these packets: form, covered, and the packets after the base that are missing.
    fn told(have: &Window, end: u32) -> (Form, u16, Vec<u32>) {
        let mut out = Outbox::new(Channel(26));
        let round = Round {
            number: 0,
            complete: false,
        };
        let shape = Shape {
            len_min: 30,
            shortest: false,
            deficit: None,
            both: false,
            group: None,
            left_out: None,
        };
        let frames = Frames::new(&Config::default());
        write(have, end, round, shape, &frames, &plan(), &mut out);
        assert!((30..=FRAME_MAX).contains(&out.frame().len()));
        let (header, body) = Header::parse(out.frame()).unwrap();
        let nack = Nack::parse(header.sequence, body).unwrap();
        assert_eq!(nack.base, have.base() as u16);
        let missing: Vec<u32> = (0..nack.covered)
            .filter(|&offset| nack.is_missing(offset))
            .map(u32::from)
            .collect();
        assert_eq!(usize::from(nack.missing), missing.len());
        (nack.form(), nack.covered, missing)
    }

    /// Method: windows with random holes, read back packet by packet.
    #[test]
    fn nacks_report_the_missing_packets() {
        let mut random = Seed(5).stream(Purpose::Trial(0));
        let mut forms = [0; 3];
        for _ in 0..600 {
            let mut have = Window::new(random.below(200_000) as u32);
            let base = have.base();
            let end = base + random.below(2049) as u32;
            let loss = random.fraction() * random.fraction();
            for packet in base + 1..end {
                have.set(packet, !random.chance(loss));
            }
            let (form, covered, missing) = told(&have, end);
            let expected: Vec<u32> = (0..u32::from(covered))
                .filter(|offset| !have.contains(base + offset))
                .collect();
            assert_eq!(missing, expected);
            let whole = u32::from(covered) == end - base;
            forms[usize::from(!whole) + usize::from(form == Form::Ranges) * 2] += 1;
            assert!(whole || usize::from(covered) == NACK_BITS);
        }
        assert!(forms.iter().all(|&count| count > 20), "{forms:?}");
    }

    #[test]
    fn a_nack_of_nothing_is_empty() {
        assert_eq!(told(&Window::new(7), 7), (Form::Vector, 0, Vec::new()));
        let (form, covered, missing) = told(&Window::new(7), 7 + 2048);
        assert_eq!((form, covered, missing.len()), (Form::Ranges, 2048, 2048));
    }
}
