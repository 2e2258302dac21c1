//! Limits and weights for the search of a pipeline.

use chappe_core::Dbm;

/// Limits and weights for the search of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// Most groups of relays that take turns. 3: with them the source never pauses; two do with fewer relays.
    pub groups_max: u8,
    /// Most relays of one stage and group. 2: one more sends at the same time and rarely helps.
    pub relays_max: usize,
    /// Most hops beyond the shortest way that are tried. 16: a corridor of twelve columns wants five more, since its shortest way
    /// is of links at the edge of their reach.
    pub extra_hops: usize,
    /// Packets of the objects to come, which weigh the time to set up against the time to send. 500.
    pub packets: u32,
    /// Beacons from which each PRR was measured. A link's share is weighed with those of the links that are received at the same power.
    /// Where no power is known, a share of n is estimated as (n * share + 1/2) / (n + 1), the mean under Jeffreys' prior, which fits links
    /// that are mostly good or absent: ten of ten do not prove a perfect link.
    pub beacons: u32,
    /// The gain in delivered packets that justifies the energy of one more relay. 0.002: our
    /// choice; with some twenty nodes it is 5 % of all energy.
    pub relay_worth: f64,
    /// Power at which the radios still receive most frames. -94 dBm: the CC2420's typical -95 less a decibel.
    pub sensitivity: Dbm,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish {
            groups_max: 3,
            relays_max: 2,
            extra_hops: 16,
            packets: 500,
            beacons: 100,
            relay_worth: 0.002,
            sensitivity: Dbm(-94.0),
        }
    }
}
