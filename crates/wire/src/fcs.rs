//! The 32-bit frame check sequence of the IEEE 802 standards, for captures: on the air it is the radio's.
//!
//! Generator 0x04c11db7, all ones before the first bit, complemented after the last, bits reflected; sent low
//! octet first (IEEE 802.11-2020, 9.2.4.8).

/// Octets of the check sequence.
pub const LEN: usize = 4;

/// The check sequence of `psdu` as it follows it on the air.
///
/// ```
/// assert_eq!(chappe_wire::fcs::of(b"123456789"), 0xcbf4_3926u32.to_le_bytes());
/// ```
pub fn of(psdu: &[u8]) -> [u8; LEN] {
    let mut remainder = !0;
    for &octet in psdu {
        // The index is eight bits wide and the table has 256 entries.
        let entry = TABLE.get((remainder as u8 ^ octet) as usize);
        remainder = remainder >> 8 ^ entry.copied().unwrap_or_default();
    }
    (!remainder).to_le_bytes()
}

/// The frame without its check sequence, if that is good.
pub fn check(frame: &[u8]) -> Option<&[u8]> {
    let (psdu, found) = frame.split_last_chunk::<LEN>()?;
    (of(psdu) == *found).then_some(psdu)
}

/// Remainders of the 256 octets.
static TABLE: [u32; 256] = table();

#[allow(clippy::indexing_slicing)] // computed by the compiler, which would refuse a bad index
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let mut remainder = octet as u32;
        let mut bit = 0;
        while bit < 8 {
            let feedback = if remainder & 1 == 1 { 0xedb8_8320 } else { 0 };
            remainder = remainder >> 1 ^ feedback;
            bit += 1;
        }
        table[octet] = remainder;
        octet += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    #[test]
    fn one_flipped_bit_is_found() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        let mut frame = [0; 104];
        random.fill(&mut frame[..100]);
        let sequence = of(&frame[..100]);
        frame[100..].copy_from_slice(&sequence);
        assert_eq!(check(&frame), Some(&frame[..100]));
        for bit in 0..104 * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(check(&frame), None, "bit {bit}");
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(check(&[0; 3]), None);
    }
}
