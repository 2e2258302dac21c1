//! A checksum of a window that moves over a file octet by octet, to find where an old version has a batch of the new one.
//!
//! It is a polynomial in the octets modulo 2^64 (Karp and Rabin, 1987), of which the upper half counts, since the lower bits
//! of a product depend on few octets. Two different windows have the same sum in one of 2^32 cases, so a digest decides.

/// The polynomial's variable: odd, so that no octet is shifted out; the golden ratio as a fraction of 2^64.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Its powers from 0 to 8.
const POWERS: [u64; 9] = {
    let mut powers = [1u64; 9];
    let mut at = 1;
    while at < 9 {
        powers[at] = powers[at - 1].wrapping_mul(BASE);
        at += 1;
    }
    powers
};

/// The sum of a window of octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rolling {
    sum: u64,
    /// The weight of the window's first octet.
    first: u64,
}

impl Rolling {
    /// The sum of no octet, for a window of `len` octets.
    pub fn new(len: usize) -> Rolling {
        let mut first = 1u64;
        (1..len).for_each(|_| first = first.wrapping_mul(BASE));
        Rolling { sum: 0, first }
    }

    /// Adds octets behind the others.
    pub fn extend(&mut self, octets: &[u8]) {
        // Eight at once: the next sum waits for one multiplication then, instead of eight in a row.
        let (eights, rest) = octets.as_chunks::<8>();
        for eight in eights {
            let terms = eight.iter().zip(POWERS[..8].iter().rev());
            let sum = terms.fold(0u64, |sum, (octet, power)| {
                sum.wrapping_add(term(*octet).wrapping_mul(*power))
            });
            self.sum = self.sum.wrapping_mul(POWERS[8]).wrapping_add(sum);
        }
        for octet in rest {
            self.sum = self.sum.wrapping_mul(BASE).wrapping_add(term(*octet));
        }
    }

    /// Moves the window by one octet: `out` leaves it, `new` enters it.
    pub fn roll(&mut self, out: u8, new: u8) {
        let rest = self.sum.wrapping_sub(term(out).wrapping_mul(self.first));
        self.sum = rest.wrapping_mul(BASE).wrapping_add(term(new));
    }

    /// The sum without octets again.
    pub fn clear(&mut self) {
        self.sum = 0;
    }

    /// The checksum of the octets in the window.
    pub fn value(&self) -> u32 {
        (self.sum >> 32) as u32
    }
}

/// Not 0, so that leading zeros count.
fn term(octet: u8) -> u64 {
    u64::from(octet) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// A window that has moved has the sum of its octets.
    #[test]
    fn a_moved_window_has_the_sum_of_its_octets() {
        let mut octets = [0; 2000];
        Seed(4).stream(Purpose::Trial(0)).fill(&mut octets);
        for len in [1, 2, 100, 999] {
            let mut moving = Rolling::new(len);
            moving.extend(&octets[..len]);
            let mut fresh = Rolling::new(len);
            for at in 1..octets.len() - len {
                moving.roll(octets[at - 1], octets[at + len - 1]);
                fresh.clear();
                fresh.extend(&octets[at..at + len]);
                assert_eq!(moving, fresh, "{at}");
            }
        }
    }
}
