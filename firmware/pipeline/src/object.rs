//! The object that the source has: numbers that anybody can make, so that the destination can check what arrived.

use chappe_core::{Purpose, Seed, Stream};
use chappe_p3::Object;

/// Pseudo-random octets, read at any place.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    stream: Stream,
    len: u32,
}

impl Numbers {
    /// An object of `len` octets.
    pub fn new(len: u32) -> Numbers {
        let stream = Seed(1).stream(Purpose::Traffic(0));
        Numbers { stream, len }
    }

    /// Whether these are all its octets.
    pub fn are(&self, octets: &[u8]) -> bool {
        let same = |(at, &octet): (usize, &u8)| self.octet(at as u32) == octet;
        octets.len() == self.len as usize && octets.iter().enumerate().all(same)
    }

    fn octet(&self, at: u32) -> u8 {
        let eight = self.stream.at(u64::from(at / 8)).to_le_bytes();
        eight.get(at as usize % 8).copied().unwrap_or(0)
    }
}

impl Object for Numbers {
    fn len(&self) -> u32 {
        self.len
    }

    fn read(&self, offset: u32, to: &mut [u8]) {
        let mut eight = [0; 8];
        for (at, to) in (offset..self.len).zip(to) {
            if at == offset || at % 8 == 0 {
                eight = self.stream.at(u64::from(at / 8)).to_le_bytes();
            }
            *to = eight.get(at as usize % 8).copied().unwrap_or(0);
        }
    }
}
