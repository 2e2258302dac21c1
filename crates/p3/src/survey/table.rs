//! What a node has heard of the others.

use chappe_core::Dbm;

use super::frame::Heard;

/// Neighbours that a node has room for. The measured buildings have 21 at most that are of use (IoT-LAB Grenoble, 139 nodes).
pub(super) const NEIGHBOURS: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    node: u16,
    beacons: [u8; 4],
    /// Sums of powers in dBm, and how many were reported.
    sums: [i16; 4],
    powers: [u8; 4],
}

impl Entry {
    fn total(&self) -> u16 {
        self.beacons.iter().map(|&count| u16::from(count)).sum()
    }
}

/// Counts of beacons, a row for each neighbour, in the order in which they were first heard.
#[derive(Clone, Debug)]
pub(super) struct Table {
    entries: [Entry; NEIGHBOURS],
    len: usize,
}

impl Table {
    pub const fn new() -> Table {
        const FREE: Entry = Entry {
            node: 0,
            beacons: [0; 4],
            sums: [0; 4],
            powers: [0; 4],
        };
        Table {
            entries: [FREE; NEIGHBOURS],
            len: 0,
        }
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Counts a beacon. A full table gives up the neighbour that was heard least, if this one would not be that.
    pub fn count(&mut self, node: u16, channel: usize, power: Option<Dbm>) {
        let known = self.used().iter().position(|entry| entry.node == node);
        let place = known.or_else(|| self.room_for(node));
        let Some(entry) = place.and_then(|at| self.entries.get_mut(at)) else {
            return;
        };
        if let Some(count) = entry.beacons.get_mut(channel) {
            *count = count.saturating_add(1).min(15);
        }
        let sum = entry
            .sums
            .get_mut(channel)
            .zip(entry.powers.get_mut(channel));
        if let (Some(Dbm(power)), Some((sum, count))) = (power, sum) {
            *sum = sum.saturating_add(power.clamp(-127.0, 127.0) as i16);
            *count = count.saturating_add(1);
        }
    }

    fn used(&self) -> &[Entry] {
        self.entries.get(..self.len).unwrap_or_default()
    }

    fn room_for(&mut self, node: u16) -> Option<usize> {
        let place = match self.len < NEIGHBOURS {
            true => {
                self.len += 1;
                self.len - 1
            }
            // Beacons come one node after the other, so a newcomer has none yet: only one that was heard once gives way.
            false => {
                let least = self.used().iter().enumerate();
                let (at, entry) = least.min_by_key(|(_, entry)| entry.total())?;
                (entry.total() <= 1).then_some(at)?
            }
        };
        let entry = self.entries.get_mut(place)?;
        *entry = Entry {
            node,
            ..Entry::default()
        };
        Some(place)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The rows from `first` on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = Heard> + '_ {
        self.used().iter().skip(first).map(|entry| Heard {
            node: entry.node,
            beacons: entry.beacons,
            powers: core::array::from_fn(|at| {
                let (sum, count) = (entry.sums.get(at)?, entry.powers.get(at)?);
                let mean = sum.checked_div(i16::from(*count))?;
                i8::try_from(mean).ok()
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beacons_are_counted_and_powers_averaged() {
        let mut table = Table::new();
        for power in [-60.0, -70.0] {
            table.count(5, 2, Some(Dbm(power)));
        }
        table.count(5, 0, None);
        let heard: [Heard; 1] = core::array::from_fn(|_| table.from(0).next().unwrap());
        assert_eq!(heard[0].beacons, [1, 0, 2, 0]);
        assert_eq!(heard[0].powers, [None, None, Some(-65), None]);
        (0..20).for_each(|_| table.count(5, 0, None));
        assert_eq!(table.from(0).next().unwrap().beacons[0], 15);
    }

    #[test]
    fn a_full_table_gives_up_what_was_heard_once() {
        let mut table = Table::new();
        for node in 0..NEIGHBOURS as u16 {
            (0..if node == 9 { 1 } else { 3 }).for_each(|_| table.count(node, 0, None));
        }
        table.count(100, 1, None);
        table.count(100, 1, None);
        assert_eq!(table.len(), NEIGHBOURS);
        assert!(
            table.from(0).any(|heard| heard.node == 100)
                && table.from(0).all(|heard| heard.node != 9)
        );
        table.count(101, 1, None);
        assert!(
            table.from(0).all(|heard| heard.node != 101),
            "all were heard more often"
        );
    }
}
