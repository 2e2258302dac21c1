//! The channel on which the nodes of the improved variant wait for floods.
//!
//! The gateway chooses it once it knows the links, and tells the nodes at the end of the collection. A flood goes from the gateway to
//! the source, over any nodes.

use chappe_core::Channel;
use chappe_p3::Plan;
use chappe_p3::config::{CHANNELS, LINK_THRESHOLD};
use chappe_p3::planner::{LinkGraph, Links};

/// The `usual` channel where a way of good links leads from the gateway to the source on it, and otherwise the channel whose best
/// way has the best weakest link; of equals the usual one.
pub fn waking(links: &impl Links, gateway: usize, source: usize, usual: Channel) -> Channel {
    let mut best = (weakest(links, usual, gateway, source), usual);
    for channel in CHANNELS {
        if best.0 >= LINK_THRESHOLD {
            break;
        }
        let link = weakest(links, channel, gateway, source);
        if link > best.0 {
            best = (link, channel);
        }
    }
    best.1
}

/// Hops from which on a flood needs more turns than its nodes' repetitions leave it. In corridors one turn in five brings a flood no further
/// (`--example hops`), so that a flood over six hops takes eight turns or nine at one time in twenty, with four to spare.
const FAR: u8 = 6;

/// Whether the flood needs more turns: its way of good links on its channel has more hops than the plan, or the plan has many.
pub fn is_far(links: &impl Links, plan: &Plan, channel: Channel) -> bool {
    let graph = LinkGraph::from_prr(links.nodes(), LINK_THRESHOLD, |a, b| {
        links.prr(channel, a, b)
    });
    let hops = graph.distances(plan.destination().into())[usize::from(plan.source())];
    plan.hops() >= FAR || hops.is_none_or(|hops| hops > usize::from(plan.hops()))
}

/// The delivery ratio of the weakest link on the way from one node to another whose weakest link is the best.
fn weakest(links: &impl Links, channel: Channel, from: usize, to: usize) -> f64 {
    let mut reached = vec![0.0f64; links.nodes()];
    let mut done = vec![false; links.nodes()];
    reached[from] = 1.0;
    loop {
        let open = (0..links.nodes()).filter(|&node| !done[node] && reached[node] > 0.0);
        let Some(node) = open.max_by(|&a, &b| reached[a].total_cmp(&reached[b])) else {
            return 0.0;
        };
        if node == to {
            return reached[node];
        }
        done[node] = true;
        for next in (0..links.nodes()).filter(|&next| next != node) {
            let way = links.prr(channel, node, next).min(reached[node]);
            reached[next] = reached[next].max(way);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of nodes: what each link between neighbours delivers on each of the channels.
    struct Line(Vec<[f64; CHANNELS.len()]>);

    impl Links for Line {
        fn nodes(&self) -> usize {
            self.0.len() + 1
        }

        fn prr(&self, channel: Channel, from: usize, to: usize) -> f64 {
            let at = CHANNELS.iter().position(|&known| known == channel);
            let near = from.abs_diff(to) == 1;
            at.filter(|_| near)
                .map_or(0.0, |at| self.0[from.min(to)][at])
        }
    }

    #[test]
    fn floods_take_another_channel_where_the_usual_one_has_no_good_way() {
        let channel =
            |links: &[[f64; 4]]| waking(&Line(links.to_vec()), 0, links.len(), Channel(26));
        assert_eq!(
            channel(&[[1.0, 1.0, 1.0, 0.92], [0.0, 0.0, 1.0, 0.95]]),
            Channel(26)
        );
        assert_eq!(
            channel(&[[1.0, 1.0, 0.8, 1.0], [0.7, 0.0, 0.9, 0.3]]),
            Channel(25)
        );
        assert_eq!(
            channel(&[[1.0, 0.95, 0.8, 1.0], [0.3, 0.92, 1.0, 0.0]]),
            Channel(20)
        );
        // None is good, and the usual one is the best.
        assert_eq!(channel(&[[0.3, 0.4, 0.5, 0.6]]), Channel(26));
        assert_eq!(channel(&[[0.0; 4]]), Channel(26));
    }

    /// The weakest link counts, not the number of hops.
    #[test]
    fn the_best_way_is_the_one_with_the_best_weakest_link() {
        let line = Line(vec![[0.9, 0.5, 0.2, 0.0], [0.8, 0.9, 0.9, 1.0]]);
        let weakest = |channel| weakest(&line, Channel(channel), 0, 2);
        assert_eq!(
            [weakest(15), weakest(20), weakest(25), weakest(26)],
            [0.8, 0.5, 0.2, 0.0]
        );
    }
}
