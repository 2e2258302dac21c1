//! MORE: forwarding nodes and credits from a belt of nodes towards each destination.
//!
//! Chachulski et al., SIGCOMM 2007, as the Pacifier paper summarizes it (II-A). For each destination, every
//! node nearer to it than the source is a candidate. The nearest candidate that heard a packet forwards it, which gives
//! the number of transmissions z_i of each. Nodes with a small share of all
//! transmissions are pruned and z is computed again for the rest: the *belt*. With several destinations a
//! node takes the largest of its z.

use alloc::vec;
use alloc::vec::Vec;

use crate::links::Links;
use crate::paper::credit::Credit;
use crate::set::NodeSet;

/// The share of all transmissions below which MORE prunes a node (pacifier II-A).
pub const PRUNE: f64 = 0.10;

/// How many times the transmissions of the unpruned belt make a pruned belt count as cut off. The paper gives no number: its
/// authors saw in a simulation that a receiver got nothing. Pruning is meant to drop nodes that hardly send, so a belt that
/// costs twice as much has lost a node that it needs. What is left is usually the source's own link of 1 to 3 %, over
/// which a file takes 50 times as long.
pub const RUINOUS: f64 = 2.0;

/// The nodes that carry packets from the source to one destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Belt {
    /// The receiver that this belt leads to.
    pub destination: u16,
    /// The nodes that may forward, nearest to the destination first; the source is the last one. The
    /// destination itself is not among them.
    pub members: Vec<Member>,
    /// The part of the source's packets that arrives, 0 to 1: less than 1 if some end at a node that no nearer
    /// node hears, 0 if the destination is cut off.
    pub delivered: f64,
}

/// A node of a belt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// The member's node number.
    pub node: u16,
    /// L_i: the part of the source's packets that it is the nearest to hear.
    pub load: f64,
    /// z_i: its transmissions for each packet of the source.
    pub transmissions: f64,
}

impl Belt {
    /// The belt from `source` to `destination`, pruned at `prune` (a share from 0 to 1 of all transmissions);
    /// `None` if no path leads there.
    ///
    /// A destination that pruning cuts off has a belt that delivers nothing. MORE as published continues with it
    /// (pacifier IV-B.1), and so does this code.
    pub fn new(links: &Links, source: u16, destination: u16, prune: f64) -> Option<Belt> {
        let paths = links.etx_to(destination);
        if !paths.reaches(source) || source == destination {
            return None;
        }
        //= pacifier II-A: candidates are the nodes whose ETX distance is shorter than the source's
        let mut nodes: Vec<u16> = (0..links.nodes() as u16)
            .filter(|&node| node != destination && paths.cost(node) < paths.cost(source))
            .collect();
        nodes.sort_by(|&a, &b| paths.order(a, b));
        nodes.push(source);
        let all = Belt::over(links, destination, &nodes);
        let total: f64 = all.members.iter().map(|m| m.transmissions).sum();
        //= pacifier II-A: prune nodes expected to make less than 10% of all transmissions; the source stays
        let kept =
            |member: &&Member| member.node == source || member.transmissions >= prune * total;
        let kept: Vec<u16> = all
            .members
            .iter()
            .filter(kept)
            .map(|member| member.node)
            .collect();
        Some(Belt::over(links, destination, &kept))
    }

    /// Loads and transmissions of `nodes`, which are sorted by distance, the source last.
    fn over(links: &Links, destination: u16, nodes: &[u16]) -> Belt {
        let mut members: Vec<Member> = nodes
            .iter()
            .map(|&node| Member {
                node,
                load: 0.0,
                transmissions: 0.0,
            })
            .collect();
        if let Some(source) = members.last_mut() {
            source.load = 1.0;
        }
        let mut delivered = 0.0;
        for place in (0..members.len()).rev() {
            let Some((sender, nearer)) = members.get_mut(..=place).and_then(<[_]>::split_last_mut)
            else {
                break;
            };
            let lost = |to: u16| 1.0 - links.ratio(sender.node, to);
            let lost_by_all = nearer
                .iter()
                .fold(lost(destination), |p, m| p * lost(m.node));
            // A node that no nearer node can hear sends nothing: its packets end there.
            if lost_by_all >= 1.0 {
                continue;
            }
            sender.transmissions = sender.load / (1.0 - lost_by_all);
            // The nearest node that hears a packet takes it on.
            let mut lost_so_far = lost(destination);
            delivered += sender.transmissions * (1.0 - lost_so_far);
            for member in nearer {
                let lost = lost(member.node);
                member.load += sender.transmissions * (1.0 - lost) * lost_so_far;
                lost_so_far *= lost;
            }
        }
        Belt {
            destination,
            members,
            delivered,
        }
    }

    /// Whether packets of the source can reach the destination through the belt.
    pub fn connected(&self) -> bool {
        self.delivered > 0.0
    }

    /// The expected transmissions of all members for each packet that the destination gets; infinite if it gets none.
    pub fn transmissions(&self) -> f64 {
        let all: f64 = self.members.iter().map(|m| m.transmissions).sum();
        if self.connected() {
            all / self.delivered
        } else {
            f64::INFINITY
        }
    }

    /// Whether pruning spared what the belt lives on: a packet takes at most [`RUINOUS`] times the transmissions that it
    /// takes over the belt that nothing was pruned from, `whole`.
    pub fn is_sound(&self, whole: &Belt) -> bool {
        self.connected() && self.transmissions() <= RUINOUS * whole.transmissions()
    }

    /// The nodes from which a member earns credit: those farther from the destination. Empty for others.
    pub fn upstream_of(&self, node: u16) -> NodeSet {
        match self.members.iter().position(|member| member.node == node) {
            Some(place) => {
                let farther = self.members.get(place + 1..).unwrap_or_default();
                farther.iter().map(|member| member.node).collect()
            }
            None => NodeSet::EMPTY,
        }
    }
}

//= pacifier II-A: belts are merged; a node in several takes its largest expected number of transmissions
/// The credits of the union of `belts`, the source first, then by node number.
///
/// A node earns credit from every node that is upstream of it in any of the belts, each counted with *its*
/// largest number of transmissions. Nodes that would send nothing are omitted.
pub fn credits(links: &Links, source: u16, belts: &[&Belt]) -> Vec<Credit> {
    let mut most = vec![0.0f64; links.nodes()];
    let mut upstream = vec![NodeSet::EMPTY; links.nodes()];
    for belt in belts {
        let mut farther = NodeSet::EMPTY;
        for member in belt.members.iter().rev() {
            let node = usize::from(member.node);
            if let (Some(most), Some(upstream)) = (most.get_mut(node), upstream.get_mut(node)) {
                *most = most.max(member.transmissions);
                *upstream = upstream.union(&farther);
            }
            farther.insert(member.node);
        }
    }
    let most = |node: u16| most.get(usize::from(node)).copied().unwrap_or(0.0);
    let (expected, transmissions) = (1.0, most(source));
    let mut credits = vec![Credit {
        node: source,
        expected,
        transmissions,
        credit: 0.0,
    }];
    for (node, upstream) in upstream.iter().enumerate() {
        let node = node as u16;
        let transmissions = most(node);
        if node == source || transmissions == 0.0 {
            continue;
        }
        let expected: f64 = upstream
            .iter()
            .map(|up| most(up) * links.ratio(up, node))
            .sum();
        let credit = if expected > 0.0 {
            transmissions / expected
        } else {
            0.0
        };
        credits.push(Credit {
            node,
            expected,
            transmissions,
            credit,
        });
    }
    credits
}

//= pacifier IV-B.1: the largest threshold that cuts nobody off, from 0.10 down in steps of 0.01
/// The pruning threshold that favours MORE most on this network, in hundredths of one: 10 down to 0.
///
/// A receiver counts as cut off when its own belt is ruined ([`Belt::is_sound`]). (The authors repeated whole
/// simulations. Packets that reach it by chance over the belts of other receivers do not count here.) Receivers without
/// a path do not count: no threshold helps them.
pub fn tuned_prune_percent(links: &Links, source: u16, receivers: &[u16]) -> u32 {
    let belt = |receiver, percent| Belt::new(links, source, receiver, prune_share(percent));
    let whole: Vec<Belt> = receivers.iter().filter_map(|&r| belt(r, 0)).collect();
    let cuts_nobody = |percent: u32| {
        let sound = |whole: &Belt| {
            belt(whole.destination, percent).is_some_and(|pruned| pruned.is_sound(whole))
        };
        whole.iter().all(sound)
    };
    (0..=10)
        .rev()
        .find(|&percent| cuts_nobody(percent))
        .unwrap_or(0)
}

/// A threshold in hundredths as a share.
pub fn prune_share(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed, Stream};

    fn links(nodes: usize, known: &[(u16, u16, f64)]) -> Links {
        Links::measured(nodes, |from, to| {
            let found = known.iter().find(|e| (e.0, e.1) == (from, to));
            found.map_or(0.0, |e| e.2)
        })
        .unwrap()
    }

    impl Belt {
        fn transmissions_of(&self, node: u16) -> f64 {
            let found = self.members.iter().find(|member| member.node == node);
            found.map_or(0.0, |member| member.transmissions)
        }
    }

    fn random_links(nodes: usize, random: &mut Stream) -> Links {
        Links::measured(nodes, |_, _| {
            if random.chance(0.6) {
                random.fraction()
            } else {
                0.0
            }
        })
        .unwrap()
    }

    /// Goal: z and L are what they mean. Method: recompute them by going through every set of nodes that may
    /// hear one transmission, where the product form of the code stands for all sets at once.
    #[test]
    fn transmissions_equal_those_from_every_possible_set_of_hearers() {
        let mut compared = 0;
        for seed in 0..100 {
            let mut random = Seed(seed).stream(Purpose::Trial(0));
            let links = random_links(6, &mut random);
            let Some(belt) = Belt::new(&links, 0, 5, 0.0) else {
                continue;
            };
            let mut nodes = vec![5];
            nodes.extend(belt.members.iter().map(|member| member.node));
            let (loads, sends) = by_sets(&links, &nodes);
            for (place, member) in belt.members.iter().enumerate() {
                assert!((member.load - loads[place + 1]).abs() < 1e-9, "seed {seed}");
                assert!(
                    (member.transmissions - sends[place + 1]).abs() < 1e-9,
                    "seed {seed}"
                );
                compared += 1;
            }
            assert!((belt.delivered - loads[0]).abs() < 1e-9);
        }
        assert!(compared > 200, "{compared} members compared");
    }

    /// `nodes`: the destination, then by increasing distance, the source last.
    fn by_sets(links: &Links, nodes: &[u16]) -> (Vec<f64>, Vec<f64>) {
        let (mut loads, mut sends) = (vec![0.0; nodes.len()], vec![0.0; nodes.len()]);
        *loads.last_mut().unwrap() = 1.0;
        for sender in (1..nodes.len()).rev() {
            let mut taken_by = vec![0.0; sender];
            for set in 1u32..1 << sender {
                let chance: f64 = (0..sender)
                    .map(|node| {
                        let heard = links.ratio(nodes[sender], nodes[node]);
                        if set >> node & 1 == 1 {
                            heard
                        } else {
                            1.0 - heard
                        }
                    })
                    .product();
                taken_by[set.trailing_zeros() as usize] += chance;
            }
            let progress: f64 = taken_by.iter().sum();
            if progress > 0.0 {
                sends[sender] = loads[sender] / progress;
                (0..sender).for_each(|node| loads[node] += sends[sender] * taken_by[node]);
            }
        }
        (loads, sends)
    }

    /// Goal: z is the mean number of transmissions. Method: follow single packets, each handed to the nearest
    /// node that hears it, and count; within five standard errors.
    #[test]
    fn transmissions_equal_a_walk_of_single_packets() {
        let mut random = Seed(3).stream(Purpose::Trial(1));
        let links = links(
            4,
            &[
                (0, 1, 0.6),
                (0, 2, 0.3),
                (0, 3, 0.1),
                (1, 2, 0.5),
                (1, 3, 0.4),
                (2, 3, 0.8),
            ],
        );
        let belt = Belt::new(&links, 0, 3, 0.0).unwrap();
        let order: Vec<u16> = belt.members.iter().map(|member| member.node).collect();
        assert_eq!(order, [2, 1, 0]);
        let packets = 20_000;
        let mut counts = [0.0f64; 3];
        let mut squares = [0.0f64; 3];
        for _ in 0..packets {
            let mut sent = [0.0; 3];
            let mut holder = 2;
            'walk: loop {
                sent[holder] += 1.0;
                let heard =
                    |to: u16, random: &mut Stream| random.chance(links.ratio(order[holder], to));
                if heard(3, &mut random) {
                    break 'walk;
                }
                // Each nearer node hears or not; the nearest of them takes over.
                let hearers: Vec<usize> = (0..holder)
                    .filter(|&place| heard(order[place], &mut random))
                    .collect();
                holder = hearers.first().copied().unwrap_or(holder);
            }
            for place in 0..3 {
                counts[place] += sent[place];
                squares[place] += sent[place] * sent[place];
            }
        }
        for (place, member) in belt.members.iter().enumerate() {
            let mean = counts[place] / f64::from(packets);
            let variance = squares[place] / f64::from(packets) - mean * mean;
            let error = libm::sqrt(variance / f64::from(packets));
            assert!(
                (mean - member.transmissions).abs() < 5.0 * error,
                "{member:?}: {mean}"
            );
        }
    }

    /// A chain of n nodes that each send once: each makes 1/n of all transmissions. From 11 on, 10 % cuts it.
    #[test]
    fn the_published_threshold_breaks_long_chains() {
        let chain = |senders: u16| {
            let edges: Vec<_> = (0..senders).map(|n| (n, n + 1, 1.0)).collect();
            links(usize::from(senders) + 1, &edges)
        };
        assert!(Belt::new(&chain(10), 0, 10, PRUNE).unwrap().connected());
        let broken = Belt::new(&chain(12), 0, 12, PRUNE).unwrap();
        assert!(!broken.connected());
        assert_eq!(broken.members.len(), 1, "all but the source are pruned");
        assert_eq!(tuned_prune_percent(&chain(10), 0, &[10]), 10);
        assert_eq!(tuned_prune_percent(&chain(12), 0, &[12]), 8, "1/12 = 8.3 %");
        assert_eq!(tuned_prune_percent(&chain(12), 0, &[3, 12]), 8);
        assert_eq!(
            tuned_prune_percent(&links(3, &[]), 0, &[1, 2]),
            10,
            "nobody to help"
        );
    }

    /// A line of 12 links that lose nothing, and a direct one of 2 %. At 10 % the line is pruned and the source is left with
    /// its direct link: the receiver is connected, but a packet takes 50 transmissions instead of 12.
    #[test]
    fn a_belt_that_lives_on_the_sources_own_poor_link_is_cut_off() {
        let mut edges: Vec<_> = (0..12).map(|n| (n, n + 1, 1.0)).collect();
        edges.push((0, 12, 0.02));
        let links = links(13, &edges);
        let whole = Belt::new(&links, 0, 12, 0.0).unwrap();
        let ruined = Belt::new(&links, 0, 12, PRUNE).unwrap();
        assert!(ruined.connected() && !ruined.is_sound(&whole));
        assert!((ruined.transmissions() - 50.0).abs() < 1e-9);
        assert!(whole.is_sound(&whole) && whole.transmissions() < 12.0);
        assert_eq!(tuned_prune_percent(&links, 0, &[12]), 8);
    }

    /// Diamond: from 0 over 1 (good) or 2 (poor) to 3. The packets that 2 alone has are few: pruned, and
    /// node 1 then carries all.
    #[test]
    fn pruning_is_followed_by_a_new_computation() {
        let links = links(4, &[(0, 1, 0.9), (0, 2, 0.5), (1, 3, 1.0), (2, 3, 0.9)]);
        let all = Belt::new(&links, 0, 3, 0.0).unwrap();
        let at = |belt: &Belt, node| belt.transmissions_of(node);
        // Node 1 is nearest (1), node 2 next (1/0.9). Someone hears with 1 - 0.1 * 0.5 = 0.95.
        assert!((at(&all, 0) - 1.0 / 0.95).abs() < 1e-12);
        assert!((at(&all, 2) - 0.05 / 0.95 / 0.9).abs() < 1e-12);
        let pruned = Belt::new(&links, 0, 3, PRUNE).unwrap();
        assert_eq!(at(&pruned, 2), 0.0);
        assert!(
            (at(&pruned, 0) - 1.0 / 0.9).abs() < 1e-12,
            "as if node 2 were not there"
        );
        assert!((pruned.delivered - 1.0).abs() < 1e-12);
    }

    /// Two receivers on a line: 0 - 1 - 2(receiver) - 3 - 4(receiver), and node 1 in both belts.
    #[test]
    fn merged_belts_take_the_largest_and_all_upstream_nodes() {
        let links = links(
            5,
            &[
                (0, 1, 0.5),
                (1, 2, 0.8),
                (2, 3, 0.5),
                (3, 4, 0.5),
                (0, 2, 0.2),
                (1, 3, 0.1),
            ],
        );
        let near = Belt::new(&links, 0, 2, 0.0).unwrap();
        let far = Belt::new(&links, 0, 4, 0.0).unwrap();
        let merged = credits(&links, 0, &[&near, &far]);
        assert_eq!(
            merged.iter().map(|c| c.node).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
        for credit in &merged {
            let z = |belt: &Belt| belt.transmissions_of(credit.node);
            assert_eq!(credit.transmissions, z(&near).max(z(&far)));
        }
        // Upstream of 3 in the far belt are 0, 1 and 2; only 1 and 2 reach it.
        let z = |node: usize| merged[node].transmissions;
        let heard = z(1) * 0.1 + z(2) * 0.5;
        assert!((merged[3].credit - z(3) / heard).abs() < 1e-12);
        assert_eq!(far.upstream_of(3), [0, 1, 2].into_iter().collect());
        assert_eq!(near.upstream_of(3), NodeSet::EMPTY);
        // Without the far receiver its belt is gone.
        let rest = credits(&links, 0, &[&near]);
        assert_eq!(rest.iter().map(|c| c.node).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn without_a_path_there_is_no_belt() {
        assert_eq!(Belt::new(&links(3, &[(1, 2, 1.0)]), 0, 2, 0.0), None);
        assert_eq!(Belt::new(&links(3, &[(0, 2, 1.0)]), 0, 0, 0.0), None);
        assert_eq!(prune_share(3), 0.03);
    }
}
