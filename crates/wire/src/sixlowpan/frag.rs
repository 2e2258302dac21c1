//! Fragment headers (RFC 4944, 5.3).
//!
//! ```text
//! first:    11000 | size, 11 bits | tag, 16 bits
//! further:  11100 | size, 11 bits | tag, 16 bits | offset, 8 bits, in units of 8 octets
//! ```
//!
//! Size and offset count the datagram before compression.

use crate::{Malformed, Reader, Writer};

/// Octets of a first fragment's header.
pub const FIRST_LEN: usize = 4;
/// Octets of a further fragment's header.
pub const FURTHER_LEN: usize = 5;
/// Largest datagram that fragments can carry.
pub const SIZE_MAX: usize = 0x7ff;

/// The header of a first or further fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Octets of the whole datagram, before compression; at most [`SIZE_MAX`].
    pub size: u16,
    /// The datagram's number, chosen by its sender.
    pub tag: u16,
    /// The fragment's place in the datagram, in units of 8 octets; zero makes it the first fragment.
    pub offset: u8,
}

impl Fragment {
    /// Reads a header and says where the fragment begins. A further fragment at offset zero is illegal.
    pub fn parse(payload: &[u8]) -> Result<(Fragment, usize), Malformed> {
        let mut reader = Reader::new(payload);
        let bits = u16::from_be_bytes(reader.take()?);
        let tag = u16::from_be_bytes(reader.take()?);
        let size = bits & 0x7ff;
        let offset = match bits >> 11 {
            0b11000 => 0,
            0b11100 => match reader.octet()? {
                0 => return Err(Malformed::Illegal),
                offset => offset,
            },
            _ => return Err(Malformed::Unsupported),
        };
        Ok((Fragment { size, tag, offset }, reader.at))
    }

    /// Writes the header to the front of `payload` and returns its length. Fails if it does not fit.
    pub fn emit(&self, payload: &mut [u8]) -> Result<usize, Malformed> {
        let kind = if self.offset == 0 { 0b11000 } else { 0b11100 };
        let mut writer = Writer::new(payload);
        writer.put(&(kind << 11 | self.size & 0x7ff).to_be_bytes())?;
        writer.put(&self.tag.to_be_bytes())?;
        if self.offset != 0 {
            writer.put(&[self.offset])?;
        }
        Ok(writer.at)
    }

    /// Where it stands in the datagram, in octets.
    pub const fn start(&self) -> usize {
        self.offset as usize * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        for size in [1u16, 40, 1280, 2047] {
            for offset in [0u8, 1, 160, 255] {
                let fragment = Fragment {
                    size,
                    tag: 0xbeef,
                    offset,
                };
                let mut payload = [0; 8];
                let len = fragment.emit(&mut payload).unwrap();
                assert_eq!(len, if offset == 0 { FIRST_LEN } else { FURTHER_LEN });
                assert_eq!(Fragment::parse(&payload), Ok((fragment, len)));
                for cut in 0..len {
                    assert!(Fragment::parse(&payload[..cut]).is_err());
                    assert!(fragment.emit(&mut [0; 8][..cut]).is_err(), "P14");
                }
            }
        }
        assert_eq!(
            Fragment::parse(&[0xe0, 9, 0, 1, 0]),
            Err(Malformed::Illegal)
        );
    }
}
