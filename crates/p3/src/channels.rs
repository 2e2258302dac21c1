//! The order in which the stages use the four channels.

use chappe_core::{Channel, Stream};

use crate::sizes::CHANNELS;

/// One of the 24 orders of the four channels, in lexicographic order: 0 is 15, 20, 25, 26.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelOrder(u8);

impl ChannelOrder {
    /// Number of orders of four channels: 4!.
    pub const COUNT: u8 = 24;

    /// The order with this number, if it is below [`COUNT`](Self::COUNT).
    pub const fn new(number: u8) -> Option<ChannelOrder> {
        if number < Self::COUNT {
            Some(ChannelOrder(number))
        } else {
            None
        }
    }

    /// The number of the order, 0 to 23.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// All 24 orders, in ascending number.
    pub fn all() -> impl Iterator<Item = ChannelOrder> {
        (0..Self::COUNT).map(ChannelOrder)
    }

    /// An order drawn uniformly from `random`.
    pub fn random(random: &mut Stream) -> ChannelOrder {
        ChannelOrder(random.below(u64::from(Self::COUNT)) as u8)
    }

    /// The channel on which stage `stage` listens; 0 is the source.
    pub fn of_stage(self, stage: u8) -> Channel {
        // The planner asks for the channels of two stages for every pair of senders and receivers.
        let order = ORDERS.get(usize::from(self.0));
        let channel = order.and_then(|order| order.get(usize::from((stage + 3) % 4)));
        channel.copied().unwrap_or(CHANNELS[0])
    }
}

/// The channels of stages 1 to 4 in each order.
static ORDERS: [[Channel; 4]; ChannelOrder::COUNT as usize] = orders();

#[allow(
    clippy::indexing_slicing,
    reason = "the compiler works it out, and refuses an index out of range"
)]
const fn orders() -> [[Channel; 4]; ChannelOrder::COUNT as usize] {
    let mut orders = [CHANNELS; ChannelOrder::COUNT as usize];
    let mut number = 0;
    while number < orders.len() {
        orders[number] = order(number);
        number += 1;
    }
    orders
}

/// Digits of the number in the factorial system pick from what is left.
#[allow(
    clippy::indexing_slicing,
    reason = "the compiler works it out, and refuses an index out of range"
)]
const fn order(mut number: usize) -> [Channel; 4] {
    const WEIGHTS: [usize; 4] = [6, 2, 1, 1];
    let (mut left, mut order) = (CHANNELS, CHANNELS);
    let mut place = 0;
    while place < 4 {
        let digit = number / WEIGHTS[place];
        let pick = if digit < 3 - place { digit } else { 3 - place };
        number %= WEIGHTS[place];
        order[place] = left[pick];
        let mut at = pick;
        while at < 3 {
            left.swap(at, at + 1);
            at += 1;
        }
        place += 1;
    }
    order
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
        assert_eq!(seen[0], CHANNELS);
        assert_eq!(seen.len(), 24);
        assert_eq!(ChannelOrder::new(24), None);
    }
}
