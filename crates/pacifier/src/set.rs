//! A set of node numbers, as bits.

/// A set of node numbers 0 to 255: 32 octets, no allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSet([u64; 4]);

impl NodeSet {
    /// The set without members.
    pub const EMPTY: NodeSet = NodeSet([0; 4]);

    /// Adds a node; returns whether it is new. Ignores numbers above 255.
    pub fn insert(&mut self, node: u16) -> bool {
        let new = !self.contains(node);
        match self.0.get_mut(usize::from(node) / 64) {
            Some(word) => *word |= 1 << (node % 64),
            None => return false,
        }
        new
    }

    /// Removes a node; returns whether it was there.
    pub fn remove(&mut self, node: u16) -> bool {
        let there = self.contains(node);
        if let Some(word) = self.0.get_mut(usize::from(node) / 64) {
            *word &= !(1 << (node % 64));
        }
        there
    }

    /// Whether the node is a member.
    pub fn contains(&self, node: u16) -> bool {
        let word = self.0.get(usize::from(node) / 64).copied().unwrap_or(0);
        word >> (node % 64) & 1 == 1
    }

    /// The members of this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &NodeSet) -> NodeSet {
        let mut rest = *self;
        for (word, theirs) in rest.0.iter_mut().zip(other.0) {
            *word &= !theirs;
        }
        rest
    }

    /// The members of this set and those of `other`.
    #[must_use]
    pub fn union(&self, other: &NodeSet) -> NodeSet {
        let mut both = *self;
        for (word, theirs) in both.0.iter_mut().zip(other.0) {
            *word |= theirs;
        }
        both
    }

    /// The members of this set that are also in `other`.
    #[must_use]
    pub fn common(&self, other: &NodeSet) -> NodeSet {
        self.without(&self.without(other))
    }

    /// The set in octets: bit n % 8 of octet n / 8 is node n. Octets beyond the 32nd are ignored.
    pub(crate) fn from_octets(octets: &[u8]) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        for (place, &octet) in octets.iter().take(32).enumerate() {
            if let Some(word) = set.0.get_mut(place / 8) {
                *word |= u64::from(octet) << (place % 8 * 8);
            }
        }
        set
    }

    /// Writes as many octets of the set as there is room for.
    pub(crate) fn to_octets(self, octets: &mut [u8]) {
        for (place, octet) in octets.iter_mut().enumerate() {
            let word = self.0.get(place / 8).copied().unwrap_or(0);
            *octet = (word >> (place % 8 * 8)) as u8;
        }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The members, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..256).filter(|&node| self.contains(node))
    }
}

impl FromIterator<u16> for NodeSet {
    fn from_iter<I: IntoIterator<Item = u16>>(nodes: I) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn members_come_and_go() {
        let mut set: NodeSet = [255, 0, 64, 64].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 64, 255]);
        assert_eq!(set.len(), 3);
        assert!(set.remove(64) && !set.remove(64) && !set.insert(256));
        assert_eq!(
            set.without(&[0].into_iter().collect()),
            [255].into_iter().collect()
        );
        assert!(!set.contains(256) && !set.is_empty());
        assert_eq!(
            set.union(&[7].into_iter().collect()),
            [0, 7, 255].into_iter().collect()
        );
    }
}
