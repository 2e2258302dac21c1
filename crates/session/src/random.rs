//! Unpredictable numbers from an unpredictable seed.

use zeroize::Zeroize;

/// A source of unpredictable octets: a keyed hash (BLAKE3) of a counter. It is as good as its seed, which the driver draws
/// from the operating system.
pub struct Drawer {
    key: [u8; 32],
    count: u64,
}

impl Drawer {
    /// A drawer with this seed. Two drawers with one seed draw the same.
    pub const fn new(seed: [u8; 32]) -> Drawer {
        Drawer {
            key: seed,
            count: 0,
        }
    }

    /// The next 32 octets.
    pub fn draw(&mut self) -> [u8; 32] {
        self.count = self.count.wrapping_add(1);
        *blake3::keyed_hash(&self.key, &self.count.to_be_bytes()).as_bytes()
    }

    /// The next number of 64 bits.
    pub fn number(&mut self) -> u64 {
        let drawn = self.draw();
        drawn
            .first_chunk()
            .map_or(0, |first| u64::from_be_bytes(*first))
    }
}

impl Drop for Drawer {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}
