//! The lives of a mast's router: a restarted router draws new random numbers.

use chappe_core::{Purpose, Seed, Stream};

/// One life of a mast's router, from its start to its crash. Each life has separate random streams.
pub struct Life {
    /// The number of restarts before this life.
    pub number: u8,
    /// The seed of the whole run.
    pub seed: Seed,
}

impl Life {
    /// The random stream of one part of the router.
    pub fn random(&self, of: usize) -> Stream {
        let seed = match self.number {
            0 => self.seed,
            number => self.seed.child(number.into()),
        };
        seed.stream(Purpose::Node(of as u32))
    }
}
