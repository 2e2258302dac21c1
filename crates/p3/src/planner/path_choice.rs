//! The best path and channels for a single-path pipeline.

use chappe_core::Channel;

use super::PathSet;
use crate::channels::ChannelOrder;

/// A path with channels, and its expected delivery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathChoice {
    /// Index of the path in the set.
    pub path: usize,
    /// The order of the channels.
    pub channels: ChannelOrder,
    /// Probability that a packet comes through from the source to the destination.
    pub forward: f64,
    /// Probability that a NACK comes through from the destination to the source.
    pub backward: f64,
}

/// Of all paths and all 24 orders of the channels, the pair with the least expected time for `packets` packets;
/// the first of equals. `None` if on each of them packets or NACKs have no way at all.
///
/// `prr(channel, from, to)` is the measured packet reception ratio. Time is counted in cycles: a packet takes two and
/// needs 1/forward transmissions; a round takes `2 hops + 4` more, is repeated until CTRL and NACK both come through,
/// and there are as many rounds as it takes until less than one packet is missing.
pub fn best_path(
    found: &PathSet,
    source: usize,
    destination: usize,
    packets: u32,
    prr: impl Fn(Channel, usize, usize) -> f64,
) -> Option<PathChoice> {
    let mut best: Option<(f64, PathChoice)> = None;
    for (index, path) in found.paths.iter().enumerate() {
        for channels in ChannelOrder::all() {
            let stages: alloc::vec::Vec<usize> = [source]
                .into_iter()
                .chain(path.iter().copied())
                .chain([destination])
                .collect();
            let (mut forward, mut backward) = (1.0, 1.0);
            for (stage, link) in stages.windows(2).enumerate() {
                let (near, far) = (channels.of_stage(stage as u8), link[1]);
                forward *= prr(channels.of_stage(stage as u8 + 1), link[0], far);
                backward *= prr(near, far, link[0]);
            }
            let choice = PathChoice {
                path: index,
                channels,
                forward,
                backward,
            };
            let Some(cycles) = expected_cycles(&choice, packets, path.len() + 1) else {
                continue;
            };
            if best.is_none_or(|(least, _)| cycles < least) {
                best = Some((cycles, choice));
            }
        }
    }
    best.map(|(_, choice)| choice)
}

/// Cycles until everything has arrived; `None` if it never will.
fn expected_cycles(choice: &PathChoice, packets: u32, hops: usize) -> Option<f64> {
    let turn = choice.forward * choice.backward;
    if turn <= 0.0 {
        return None;
    }
    let (mut missing, mut rounds) = (f64::from(packets), 1.0);
    while missing * (1.0 - choice.forward) >= 1.0 && rounds < 1000.0 {
        missing *= 1.0 - choice.forward;
        rounds += 1.0;
    }
    let sent = f64::from(packets) / choice.forward;
    Some(2.0 * sent + rounds * (2 * hops + 4) as f64 / turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn the_choice_avoids_links_that_do_not_exist_on_a_channel() {
        let found = PathSet {
            paths: vec![vec![2, 3], vec![4, 5]],
            proven: true,
        };
        // Link 4-5 works on 26 only, 5-1 on all but 26, and the first path not at all.
        let prr = |channel: Channel, from: usize, to: usize| match (from.min(to), from.max(to)) {
            (2, 3) => 0.0,
            (4, 5) => f64::from(u8::from(channel == Channel(26))),
            (1, 5) => f64::from(u8::from(channel != Channel(26))),
            _ => 0.9,
        };
        // Backwards a stage listens on the channel it has forwards, so both links need another one for the two ways.
        assert_eq!(best_path(&found, 0, 1, 500, prr), None);
        let one_way = |channel: Channel, from: usize, to: usize| match (from, to) {
            (5, 4) => 0.7,
            (1, 5) => 0.8,
            _ => prr(channel, from, to),
        };
        let choice = best_path(&found, 0, 1, 500, one_way).unwrap();
        assert_eq!((choice.path, choice.channels.of_stage(2)), (1, Channel(26)));
        assert!((choice.forward - 0.9).abs() < 1e-12, "{choice:?}");
        assert!(
            (choice.backward - 0.9 * 0.7 * 0.8).abs() < 1e-12,
            "{choice:?}"
        );
    }

    #[test]
    fn the_better_path_wins() {
        let found = PathSet {
            paths: vec![vec![2], vec![3]],
            proven: true,
        };
        let prr = |_, from: usize, to: usize| if from == 2 || to == 2 { 0.95 } else { 0.9 };
        let choice = best_path(&found, 0, 1, 500, prr).unwrap();
        assert_eq!((choice.path, choice.channels), (0, ChannelOrder::default()));
        let nothing = PathSet::default();
        assert_eq!(best_path(&nothing, 0, 1, 500, |_, _, _| 1.0), None);
    }
}
