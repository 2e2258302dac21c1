//! Narrow vectors: coefficients of two bits each, for members that send in turns.
//!
//! The field of 256 elements contains one of four: 0, 1, and the two elements of order three. Sums and products of these stay among
//! them, and so do the reduced rows that a node keeps. So nodes that draw all factors from the four send vectors of two bits for each packet, and
//! the arithmetic is the same. A node that lacks `d` packets of those that a sender holds gains nothing from one frame in `4^d`
//! instead of `256^d`: 0.4 frames for a whole batch.

use super::K_MAX;
use crate::frame::Malformed;

/// The field of four elements in that of 256 modulo x^8 + x^4 + x^3 + x^2 + 1: x^85 and x^170 have order three.
const ELEMENTS: [u8; 4] = [0, 1, 0xd6, 0xd7];
/// Coefficients in an octet.
const IN_OCTET: usize = 4;

/// Octets of a narrow vector over so many packets.
pub const fn octets(packets: usize) -> usize {
    packets.div_ceil(IN_OCTET)
}

/// Turns random octets into random elements.
pub(super) fn draw(factors: &mut [u8]) {
    for factor in factors {
        *factor = element(*factor);
    }
}

fn element(bits: u8) -> u8 {
    let [zero, one, third, fourth] = ELEMENTS;
    match bits & 3 {
        0 => zero,
        1 => one,
        2 => third,
        _ => fourth,
    }
}

/// Writes a vector to `to`; false if one of its coefficients is none of the four, as in frames of members without turns.
pub(super) fn pack(vector: &[u8], to: &mut [u8]) -> bool {
    to.fill(0);
    for (factors, octet) in vector.chunks(IN_OCTET).zip(to) {
        for (&factor, shift) in factors.iter().zip([0, 2, 4, 6]) {
            let Some(bits) = ELEMENTS.iter().position(|&known| known == factor) else {
                return false;
            };
            *octet |= (bits as u8) << shift;
        }
    }
    true
}

/// The code vector of a data frame, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector<'a> {
    /// One octet for each packet.
    Wide(&'a [u8]),
    /// Two bits for each packet, the first in the lowest bits.
    Narrow {
        /// As many octets as the packets need.
        octets: &'a [u8],
        /// Packets in the batch, at most [`K_MAX`].
        packets: usize,
    },
}

impl<'a> Vector<'a> {
    /// A narrow vector from the front of `octets`, and what follows it.
    pub(super) fn narrow(
        octets: &'a [u8],
        packets: usize,
    ) -> Result<(Vector<'a>, &'a [u8]), Malformed> {
        let (octets, rest) = octets
            .split_at_checked(self::octets(packets))
            .ok_or(Malformed::Short)?;
        Ok((Vector::Narrow { octets, packets }, rest))
    }

    /// One coefficient for each packet.
    pub fn expand(&self, room: &'a mut [u8; K_MAX]) -> &'a [u8] {
        match *self {
            Vector::Wide(vector) => vector,
            Vector::Narrow { octets, packets } => {
                let room = room.get_mut(..packets).unwrap_or_default();
                for (factors, octet) in room.chunks_mut(IN_OCTET).zip(octets) {
                    for (factor, shift) in factors.iter_mut().zip([0, 2, 4, 6]) {
                        *factor = element(octet >> shift);
                    }
                }
                room
            }
        }
    }

    /// Whether all coefficients are zero.
    pub(super) fn is_zero(&self) -> bool {
        let mut room = [0; K_MAX];
        let vector = Vector::expand(self, &mut room);
        vector.iter().all(|&factor| factor == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use chappe_coding::field::mul;

    /// The four elements are a field: sums and products of them are among them.
    #[test]
    fn the_elements_are_closed() {
        for a in ELEMENTS {
            for b in ELEMENTS {
                assert!(ELEMENTS.contains(&(a ^ b)) && ELEMENTS.contains(&mul(a, b)));
            }
        }
    }

    /// Vectors of all lengths come back as they were, and others are refused.
    #[test]
    fn vectors_come_back() {
        for packets in 1..=K_MAX {
            let mut vector: Vec<u8> = (0..packets).map(|place| (place * 7 + 3) as u8).collect();
            draw(&mut vector);
            let mut packed = vec![0xff; octets(packets)];
            assert!(pack(&vector, &mut packed));
            let (narrow, rest) = Vector::narrow(&packed, packets).unwrap();
            assert!(rest.is_empty());
            assert_eq!(narrow.expand(&mut [0; K_MAX]), vector);
            assert!(Vector::narrow(&packed[1..], packets).is_err());
        }
        assert!(!pack(&[1, 2], &mut [0]));
    }

    #[test]
    fn a_vector_without_packets_is_zero() {
        // Bits behind the last packet do not count.
        let (vector, _) = Vector::narrow(&[0xf0], 2).unwrap();
        assert!(vector.is_zero());
        let (vector, _) = Vector::narrow(&[0x04], 2).unwrap();
        assert!(!vector.is_zero());
    }
}
