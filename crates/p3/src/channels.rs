//! The order in which the stages use the four channels.

use chappe_core::{Channel, Stream};

use crate::config::CHANNELS;

/// One of the 24 orders of the four channels, in lexicographic order: 0 is 15, 20, 25, 26.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelOrder(u8);

impl ChannelOrder {
    /// How many orders there are.
    pub const COUNT: u8 = 24;

    /// The order with this number, if it is below [`COUNT`](Self::COUNT).
    pub const fn new(number: u8) -> Option<ChannelOrder> {
        if number < Self::COUNT {
            Some(ChannelOrder(number))
        } else {
            None
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = ChannelOrder> {
        (0..Self::COUNT).map(ChannelOrder)
    }

    /// One at random.
    pub fn random(random: &mut Stream) -> ChannelOrder {
        ChannelOrder(random.below(u64::from(Self::COUNT)) as u8)
    }

    /// Whether no stage sends on a channel next to the one on which it listens, 5 MHz away.
    ///
    /// The groups of a stage stand together: while one listens, the other sends, often 40 dB and more stronger than what
    /// comes from the stage before, and a radio rejects its neighbouring channel by some 30 to 45 dB. Of the four
    /// channels 25 and 26 are such neighbours; 8 of the 24 orders keep them apart.
    pub fn keeps_neighbours_apart(self) -> bool {
        (0..4).all(|stage| {
            let (here, next) = (self.of_stage(stage), self.of_stage(stage + 1));
            here.0.abs_diff(next.0) > 1
        })
    }

    /// The channel on which stage `stage` listens; 0 is the source.
    pub fn of_stage(self, stage: u8) -> Channel {
        let wanted = usize::from((stage + 3) % 4);
        let (mut left, mut number) = (CHANNELS, usize::from(self.0));
        let mut picked = CHANNELS[0];
        // Digits of the number in the factorial system pick from what is left.
        for (place, weight) in [6, 2, 1, 1].into_iter().enumerate() {
            let pick = (number / weight).min(3 - place);
            number %= weight;
            picked = left.get(pick).copied().unwrap_or(picked);
            for at in pick..3 {
                left.swap(at, at + 1);
            }
            if place == wanted {
                break;
            }
        }
        picked
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn orders_are_all_different_and_name_each_channel_once() {
        let mut seen = Vec::new();
        for order in ChannelOrder::all() {
            let channels: Vec<_> = (1..=4).map(|stage| order.of_stage(stage)).collect();
            let mut sorted = channels.clone();
            sorted.sort();
            assert_eq!(sorted, CHANNELS);
            assert!(!seen.contains(&channels));
            assert_eq!(order.of_stage(0), channels[3]);
            assert_eq!(order.of_stage(6), channels[1]);
            seen.push(channels);
        }
        let apart: Vec<u8> = ChannelOrder::all()
            .filter(|order| order.keeps_neighbours_apart())
            .map(ChannelOrder::number)
            .collect();
        // 15 25 20 26 and 15 26 20 25, and both from any of their channels on.
        assert_eq!(apart.len(), 8);
        assert!(apart.contains(&2) && !apart.contains(&0));
        assert_eq!(seen[0], CHANNELS);
        assert_eq!(seen.len(), 24);
        assert_eq!(ChannelOrder::new(24), None);
    }
}
