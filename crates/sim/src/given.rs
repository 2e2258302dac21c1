//! Networks given by the mean power of each link on each channel, from a testbed's RSSI or delivery ratios. A profile
//! adds the physics.

use std::collections::BTreeMap;
use std::sync::Arc;

use chappe_core::{Dbm, Mode};

use crate::rules::Rules;
use crate::{Error, Power, Profile};

/// Mean received powers between `n` nodes, channel by channel, in dBm at the profile's usual transmit power.
///
/// A link that is not set does not exist: it neither delivers nor disturbs. There is no propagation delay. A channel
/// on which nothing is set is silent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkPowers {
    nodes: usize,
    /// Shared by copies until one of them is changed: a medium has a copy of its own.
    channels: BTreeMap<u8, Arc<Vec<f32>>>,
}

impl LinkPowers {
    /// `nodes` nodes without any link.
    pub fn new(nodes: usize) -> LinkPowers {
        LinkPowers {
            nodes,
            channels: BTreeMap::new(),
        }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The channels that have links.
    pub fn channels(&self) -> impl Iterator<Item = u8> + '_ {
        self.channels.keys().copied()
    }

    /// Sets the power at which `to` hears `from`. Unknown nodes, loops and powers that are not finite are ignored.
    pub fn set(&mut self, channel: u8, from: usize, to: usize, power: Dbm) {
        let nodes = self.nodes;
        if from < nodes && to < nodes && from != to && power.0.is_finite() {
            let silent = || Arc::new(vec![f32::NEG_INFINITY; nodes * nodes]);
            let table = self.channels.entry(channel).or_insert_with(silent);
            Arc::make_mut(table)[from * nodes + to] = power.0 as f32;
        }
    }

    /// Removes the link from `from` to `to`, if there is one.
    pub fn remove(&mut self, channel: u8, from: usize, to: usize) {
        let (nodes, table) = (self.nodes, self.channels.get_mut(&channel));
        let place = (from < nodes && to < nodes).then_some(from * nodes + to);
        if let Some(power) = table
            .zip(place)
            .and_then(|(table, place)| Arc::make_mut(table).get_mut(place))
        {
            *power = f32::NEG_INFINITY;
        }
    }

    /// The power at which `to` hears `from`; minus infinity where no link is set.
    pub fn get(&self, channel: u8, from: usize, to: usize) -> Dbm {
        let table = self.channels.get(&channel);
        let place = (from < self.nodes && to < self.nodes).then_some(from * self.nodes + to);
        let power = table.zip(place).and_then(|(table, place)| table.get(place));
        power.map_or(Dbm(f64::NEG_INFINITY), |&power| Dbm(power.into()))
    }

    /// The power of a link in its weaker direction; minus infinity where one of them is not set.
    pub fn both_ways(&self, channel: u8, a: usize, b: usize) -> Dbm {
        let table = self
            .channels
            .get(&channel)
            .filter(|_| a < self.nodes && b < self.nodes);
        let weaker =
            |table: &Arc<Vec<f32>>| table[a * self.nodes + b].min(table[b * self.nodes + a]);
        Dbm(table.map_or(f64::NEG_INFINITY, |table| weaker(table).into()))
    }

    /// All links of a channel at once: row-major, minus infinity where no link is. A table of another size is ignored.
    pub(crate) fn fill(&mut self, channel: u8, table: Vec<f32>) {
        if table.len() == self.nodes * self.nodes {
            self.channels.insert(channel, Arc::new(table));
        }
    }

    /// The powers of the links from one node, to each node; none on a silent channel.
    pub(crate) fn row(&self, channel: u8, from: usize) -> &[f32] {
        let row = from * self.nodes..(from + 1) * self.nodes;
        let table = self.channels.get(&channel);
        table.and_then(|table| table.get(row)).unwrap_or_default()
    }

    pub(crate) fn check(&self, profile: &Profile) -> Result<(), Error> {
        let finite = profile.power.0 + profile.noise.0 + profile.floor.0;
        if finite.is_finite() {
            Ok(())
        } else {
            Err(Error::NotFinite("power, noise or floor of the profile"))
        }
    }
}

impl Profile {
    /// The mean power at which a frame of `octets` (check sequence included) is delivered with probability `prr` without
    /// other signals and without fading. [`Inverse`] is for many ratios.
    pub fn power_for(&self, prr: f64, mode: Mode, octets: usize) -> Dbm {
        Inverse::new(self, mode, octets).power(prr)
    }
}

/// The inverse of a receiver's curve for frames of one length, without other signals and without fading.
#[derive(Clone, Debug)]
pub struct Inverse {
    rules: Rules,
    noise: Dbm,
    mode: Mode,
    octets: usize,
}

impl Inverse {
    /// That of a profile for frames of `octets`, check sequence included.
    pub fn new(profile: &Profile, mode: Mode, octets: usize) -> Inverse {
        Inverse {
            rules: Rules::new(profile),
            noise: profile.noise,
            mode,
            octets,
        }
    }

    /// The mean power at which a frame is delivered with probability `prr`, to a thousandth of a decibel. Ratios outside 0 to 1
    /// count as the nearer end; the ends are where the curve comes within 10^-4 of them.
    pub fn power(&self, prr: f64) -> Dbm {
        let wanted = prr.clamp(1e-4, 1.0 - 1e-4);
        let delivered = |dbm: f64| {
            let power = Dbm(dbm).to_milliwatt().0 * crate::power::MILLIWATT;
            let power = Power::rounded_down(power);
            self.rules.alone(power, self.mode, self.octets)
        };
        let (mut low, mut high) = (self.noise.0 - 30.0, self.noise.0 + 60.0);
        while high - low > 1e-3 {
            let middle = 0.5 * (low + high);
            if delivered(middle) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        Dbm(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Medium;
    use chappe_core::{Channel, Rate, Seed};

    const MODE: Mode = Mode::long(Rate::Oqpsk250);

    /// What goes in as a ratio comes out as that ratio, on the channel for which it was set and in that direction only.
    #[test]
    fn powers_give_back_the_ratios_they_stand_for() {
        let profile = Profile::named("cc2420-indoor").unwrap();
        let mut powers = LinkPowers::new(3);
        for (channel, prr) in [(15, 0.03), (20, 0.5), (25, 0.97)] {
            powers.set(channel, 0, 1, profile.power_for(prr, MODE, 127));
        }
        let mut medium = Medium::given(&powers, &profile, Seed(1)).unwrap();
        let mut prr = |channel, from, to| medium.prr_on(Channel(channel), from, to, MODE, 127);
        for (channel, expected) in [(15, 0.03), (20, 0.5), (25, 0.97), (26, 0.0), (11, 0.0)] {
            let found = prr(channel, 0, 1);
            assert!((found - expected).abs() < 0.002, "{channel} {found}");
            assert_eq!(prr(channel, 1, 0), 0.0);
            assert_eq!(prr(channel, 0, 2), 0.0);
        }
    }

    #[test]
    fn unknown_links_are_ignored() {
        let mut powers = LinkPowers::new(2);
        powers.set(26, 0, 2, Dbm(-50.0));
        powers.set(26, 1, 1, Dbm(-50.0));
        powers.set(26, 0, 1, Dbm(f64::NAN));
        assert_eq!(powers, LinkPowers::new(2));
        assert_eq!(powers.get(26, 5, 0), Dbm(f64::NEG_INFINITY));
    }
}
