//! Writing a NACK: a bit for each packet where that fits, ranges where these do, and otherwise the bits of as many
//! packets as a frame can tell of. The source asks for the others later.

use crate::config::{HEADER_LEN, NACK_BITS};
use crate::destination::Round;
use crate::header::{Flags, Form, Header, Kind, NACK_FIELDS, RANGE_LEN, nack_sequence};
use crate::outbox::Outbox;
use crate::window::Window;

/// Ranges that fit a NACK of full length.
const RANGES_MAX: usize = NACK_BITS / 8 / RANGE_LEN;

/// Writes the NACK for what is missing of `have` before `end` to `out`, at least `frame_min` octets long.
pub(crate) fn write(have: &Window, end: u32, round: Round, frame_min: usize, out: &mut Outbox) {
    let base = have.base();
    let span = end.saturating_sub(base) as usize;
    let ranges = Ranges {
        have,
        at: base,
        end,
    }
    .count();
    let (form, covered, told) = if span <= NACK_BITS {
        (Form::Vector, span, span.div_ceil(8))
    } else if ranges <= RANGES_MAX {
        (Form::Ranges, span, ranges * RANGE_LEN)
    } else {
        (Form::Vector, NACK_BITS, NACK_BITS / 8)
    };
    let shown = base.saturating_add(covered as u32);
    let missing = (base..shown).filter(|&packet| !have.contains(packet));
    let missing = missing.count() as u16;
    let header = Header {
        kind: Kind::Nack,
        transfer: round.transfer,
        hop: round.hops,
        flags: Flags {
            complete: round.complete,
            ..Flags::default()
        },
        sequence: nack_sequence(covered as u16, form),
        round: round.number,
    };
    let frame = out.write((HEADER_LEN + NACK_FIELDS + told).max(frame_min));
    let Some((fields, told)) = header
        .emit(frame)
        .and_then(|body| body.split_at_mut_checked(NACK_FIELDS))
    else {
        return;
    };
    let [base_low, base_high] = (base as u16).to_le_bytes();
    let [missing_low, missing_high] = missing.to_le_bytes();
    fields.copy_from_slice(&[base_low, base_high, missing_low, missing_high]);
    match form {
        Form::Ranges => {
            let ranges = Ranges {
                have,
                at: base,
                end,
            };
            for (place, (first, len)) in told.chunks_exact_mut(RANGE_LEN).zip(ranges) {
                let [low, high] = first.to_le_bytes();
                place.copy_from_slice(&[low, high, len]);
            }
        }
        Form::Vector => {
            let octets = covered.div_ceil(8);
            let received = have.octets().take(octets);
            for ((at, place), received) in told.iter_mut().enumerate().zip(received) {
                let used = covered.saturating_sub(at * 8).min(8) as u32;
                *place = !received & (0xffu16 >> (8 - used)) as u8;
            }
        }
    }
}

/// Runs of missing packets as (first after the base, how many up to 255).
struct Ranges<'a> {
    have: &'a Window,
    at: u32,
    end: u32,
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
    use crate::config::FRAME_MAX;
    use crate::header::Nack;
    use chappe_core::{Channel, Purpose, Seed};
    use std::vec::Vec;

    /// What a NACK for these packets says: form, covered, and the packets after the base that are missing.
    fn told(have: &Window, end: u32) -> (Form, u16, Vec<u32>) {
        let mut out = Outbox::new(Channel(26));
        let round = Round {
            transfer: 1,
            hops: 3,
            number: 0,
            complete: false,
        };
        write(have, end, round, 30, &mut out);
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
    fn nacks_tell_what_is_missing() {
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
