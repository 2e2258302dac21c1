//! Injected losses, for tests on networks that lose nothing.

use std::collections::BTreeMap;

use chappe_core::{Address, Purpose, Seed, Stream};

/// Drops received frames at random, each by its own draw.
///
/// A ratio of 1 for some senders turns a network where all nodes hear each other into one of several hops.
#[derive(Clone, Debug)]
pub struct Loss {
    ratio: f64,
    from: BTreeMap<Address, f64>,
    lots: Stream,
}

impl Loss {
    /// Drops the share `ratio` (0 to 1) of all frames.
    pub fn new(seed: Seed, ratio: f64) -> Loss {
        Loss {
            ratio,
            from: BTreeMap::new(),
            lots: seed.stream(Purpose::Reception),
        }
    }

    /// Sets another share for frames from `sender`.
    pub fn from(mut self, sender: Address, ratio: f64) -> Loss {
        self.from.insert(sender, ratio);
        self
    }

    /// Draws whether the next frame, from `sender`, is lost.
    pub(crate) fn takes(&mut self, sender: Address) -> bool {
        let ratio = self.from.get(&sender).copied().unwrap_or(self.ratio);
        self.lots.chance(ratio)
    }
}
