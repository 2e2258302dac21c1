//! A-MPDUs: several MPDUs in one PSDU (IEEE 802.11-2020, 9.7).
//!
//! ```text
//! +-----------+--------------------+---------+-----------+-----
//! | delimiter | MPDU, FCS included | padding | delimiter | ...      the last subframe has no padding
//! |     4     |                    |  0..=3  |     4     |
//! +-----------+--------------------+---------+-----------+-----
//!
//! delimiter, bit 0 first:   0 EOF   1 reserved   2, 3 length, bits 12 and 13   4..15 length, bits 0 to 11
//!                          16..23 CRC-8          24..31 signature, 0x4e
//! ```
//!
//! A receiver that finds no delimiter goes on four octets later, so one broken subframe costs no other. The check sequences belong to
//! the radio: here four octets are left for each.

use super::FCS_LEN;

/// Octets of a delimiter.
pub const DELIMITER_LEN: usize = 4;
/// Most octets of an A-MPDU of HT (the maximum length exponent of 3, 9.4.2.55.3).
pub const AMPDU_MAX: usize = 65_535;
/// Most octets of an MPDU in one (12 bits of length in HT; 9.7.1).
pub const MPDU_MAX: usize = 4_095;
const SIGNATURE: u8 = 0x4e;

/// The octets from one subframe's begin to the next, for an MPDU of `len` octets without its check sequence.
pub const fn subframe_len(len: usize) -> usize {
    DELIMITER_LEN + (len + FCS_LEN).next_multiple_of(4)
}

/// The delimiter before an MPDU of `len` octets without its check sequence. `None` if it is too long.
pub fn delimiter(len: usize) -> Option<[u8; DELIMITER_LEN]> {
    let len = len + FCS_LEN;
    if len > MPDU_MAX {
        return None;
    }
    let [low, high] = ((len as u16) << 4).to_le_bytes();
    Some([low, high, crc([low, high]), SIGNATURE])
}

/// Where the MPDUs of an A-MPDU stand.
#[derive(Clone, Debug)]
pub struct Subframes<'a> {
    psdu: &'a [u8],
    at: usize,
}

impl<'a> Subframes<'a> {
    /// Looks for delimiters in a received PSDU. Outside data: nothing is promised of the MPDUs.
    pub const fn new(psdu: &'a [u8]) -> Subframes<'a> {
        Subframes { psdu, at: 0 }
    }
}

impl<'a> Iterator for Subframes<'a> {
    /// The MPDU without its check sequence, and where its delimiter stands.
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        loop {
            let at = self.at;
            let &[low, high, check, signature] = self.psdu.get(at..)?.first_chunk()?;
            let len = usize::from(u16::from_le_bytes([low, high]) >> 4);
            self.at = at + DELIMITER_LEN;
            if signature != SIGNATURE || crc([low, high]) != check || len < FCS_LEN {
                continue;
            }
            let from = at + DELIMITER_LEN;
            let Some(mpdu) = self.psdu.get(from..from + len - FCS_LEN) else {
                continue;
            };
            self.at = from + len.next_multiple_of(4);
            return Some((at, mpdu));
        }
    }
}

/// The CRC-8 of 9.7.2: x^8 + x^2 + x + 1, all ones first, complemented. Bits go least significant first, so the polynomial is reversed.
fn crc(octets: [u8; 2]) -> u8 {
    let mut value = 0xff_u8;
    for octet in octets {
        value ^= octet;
        for _ in 0..8 {
            let carry = value & 1 != 0;
            value >>= 1;
            if carry {
                value ^= 0xe0;
            }
        }
    }
    !value
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use chappe_core::{Purpose, Seed};

    fn aggregate(mpdus: &[Vec<u8>]) -> Vec<u8> {
        let mut psdu = Vec::new();
        for mpdu in mpdus {
            psdu.resize(psdu.len().next_multiple_of(4), 0);
            psdu.extend(delimiter(mpdu.len()).unwrap());
            psdu.extend(mpdu);
            psdu.extend([0; FCS_LEN]);
        }
        psdu
    }

    fn random_mpdus(seed: u64) -> Vec<Vec<u8>> {
        let mut random = Seed(seed).stream(Purpose::Trial(0));
        let mpdu = |_| {
            let mut octets = std::vec![0; 10 + random.below(300) as usize];
            random.fill(&mut octets);
            octets
        };
        (0..8).map(mpdu).collect()
    }

    #[test]
    fn subframes_round_trip_and_have_the_length_that_is_said() {
        let mpdus = random_mpdus(1);
        let psdu = aggregate(&mpdus);
        let found: Vec<_> = Subframes::new(&psdu).collect();
        let mut at = 0;
        for ((place, octets), mpdu) in found.iter().zip(&mpdus) {
            assert_eq!((*place, *octets), (at, &mpdu[..]));
            at += subframe_len(mpdu.len());
        }
        assert_eq!(found.len(), mpdus.len());
        assert!(delimiter(MPDU_MAX).is_none());
    }

    /// A subframe that is zeroed, delimiter included, costs only itself.
    #[test]
    fn a_broken_subframe_costs_no_other() {
        let mpdus = random_mpdus(2);
        let psdu = aggregate(&mpdus);
        let places: Vec<_> = Subframes::new(&psdu).map(|(at, _)| at).collect();
        for broken in 0..mpdus.len() {
            let mut heard = psdu.clone();
            let end = places.get(broken + 1).copied().unwrap_or(heard.len());
            heard[places[broken]..end].fill(0);
            let found: Vec<_> = Subframes::new(&heard)
                .map(|(_, mpdu)| mpdu.to_vec())
                .collect();
            let mut expected = mpdus.clone();
            expected.remove(broken);
            assert_eq!(found, expected);
        }
    }

    /// Random octets end, and a delimiter with one wrong bit is none.
    #[test]
    fn hostile_octets_end() {
        let mut random = Seed(3).stream(Purpose::Trial(0));
        for _ in 0..2_000 {
            let mut octets = std::vec![0; random.below(400) as usize];
            random.fill(&mut octets);
            assert!(Subframes::new(&octets).count() <= 100);
        }
        for bit in 0..32 {
            let mut octets = [&delimiter(6).unwrap()[..], &[0; 10]].concat();
            octets[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Subframes::new(&octets).count(), 0, "{bit}");
        }
    }
}
