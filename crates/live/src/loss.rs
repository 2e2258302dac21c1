//! Losses injected on purpose, for tests on networks that lose nothing.

use std::collections::BTreeMap;

use chappe_core::{Address, Purpose, Seed, Stream};

/// Throws away received frames, each by its own lot.
///
/// A ratio of 1 from some senders makes a network of several hops out of one on which all hear all.
#[derive(Clone, Debug)]
pub struct Loss {
    ratio: f64,
    from: BTreeMap<Address, f64>,
    lots: Stream,
}

impl Loss {
    /// Loses the share `ratio` (0 to 1) of all frames.
    pub fn new(seed: Seed, ratio: f64) -> Loss {
        Loss {
            ratio,
            from: BTreeMap::new(),
            lots: seed.stream(Purpose::Reception),
        }
    }

    /// Loses another share of the frames from `sender`.
    pub fn from(mut self, sender: Address, ratio: f64) -> Loss {
        self.from.insert(sender, ratio);
        self
    }

    /// Whether the next frame, from `sender`, is lost.
    pub(crate) fn takes(&mut self, sender: Address) -> bool {
        let ratio = self.from.get(&sender).copied().unwrap_or(self.ratio);
        self.lots.chance(ratio)
    }
}
