//! How many packets a forwarding node sends for each packet it hears: equations 1 to 4 of the paper.

use alloc::vec::Vec;

use crate::links::Links;
use crate::tree::Tree;

/// The work of one forwarding node for each packet of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Credit {
    /// Number of the forwarding node.
    pub node: u16,
    /// Packets it can expect to hear from upstream nodes; 1 for the source.
    pub expected: f64,
    /// Transmissions that it has to make: z_j.
    pub transmissions: f64,
    /// TX_credit: transmissions for each packet heard from upstream; 0 for the source, which has none.
    pub credit: f64,
}

/// The credits of all forwarding nodes of `tree`, in its order (the source first).
///
/// `knob` from 0 (serve the best child) to 1 (serve every child), pacifier III-C.2.
///
/// The paper is silent on two points. A child that overhears more than its parent can have makes eq. 1
/// negative; we take 0. A node that can expect to hear nothing has a 0/0 in eq. 4; its credit is 0. That
/// happens only with `knob` < 1, where a parent's transmissions may be 0. It ends when the receivers that
/// the parent does serve have finished and the tree is rebuilt.
pub fn credits(links: &Links, tree: &Tree, knob: f64) -> Vec<Credit> {
    let mut credits: Vec<Credit> = Vec::with_capacity(tree.forwarders.len());
    //= pacifier III-A.2: traverse the forwarding nodes in increasing order of their ETX from the source
    for (place, forwarder) in tree.forwarders.iter().enumerate() {
        let node = forwarder.node;
        let is_source = place == 0;
        let heard_by = |listener: u16| -> f64 {
            let heard = credits
                .iter()
                .map(|up| up.transmissions * links.ratio(up.node, listener));
            heard.sum()
        };
        let expected = if is_source { 1.0 } else { heard_by(node) };
        let (mut least, mut most) = (f64::INFINITY, 0.0f64);
        for &child in &forwarder.children {
            //= pacifier III-A.2 eq. 1: what the child still lacks of what its parent has
            let lacking = if is_source {
                1.0
            } else {
                expected.min(1.0) - heard_by(child)
            };
            //= pacifier III-A.2 eq. 2
            let sends = lacking.max(0.0) / links.ratio(node, child);
            least = least.min(sends);
            most = most.max(sends);
        }
        //= pacifier III-C.2: eq. 3 with the knob between the best and the worst child
        let transmissions = least + knob * (most - least);
        //= pacifier III-A.2 eq. 4: the sum below the line is not capped at 1
        let earns = !is_source && expected > 0.0;
        let credit = if earns { transmissions / expected } else { 0.0 };
        credits.push(Credit {
            node,
            expected,
            transmissions,
            credit,
        });
    }
    credits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Forwarder;
    use alloc::vec;
    use chappe_core::{Purpose, Seed};

    fn links(nodes: usize, known: &[(u16, u16, f64)]) -> Links {
        Links::measured(nodes, |from, to| {
            let found = known.iter().find(|e| (e.0, e.1) == (from, to));
            found.map_or(0.0, |e| e.2)
        })
        .unwrap()
    }

    /// `(node, z, credit)` of every forwarding node, in thousandths.
    fn computed(links: &Links, receivers: &[u16], knob: f64) -> Vec<(u16, i64, i64)> {
        let tree = Tree::new(&links.etx_paths(0), receivers.iter().copied());
        let thousandths = |x: f64| libm::round(x * 1000.0) as i64;
        let credits = credits(links, &tree, knob);
        let row = |c: &Credit| (c.node, thousandths(c.transmissions), thousandths(c.credit));
        credits.iter().map(row).collect()
    }

    /// Nothing is overheard past a hop: each hop sends 1/p for each packet that it hears.
    #[test]
    fn a_chain_without_overhearing() {
        let links = links(3, &[(0, 1, 0.5), (1, 2, 0.25)]);
        assert_eq!(computed(&links, &[2], 1.0), [(0, 2000, 0), (1, 4000, 4000)]);
    }

    /// The source sends 2, of which the receiver overhears 2 * 0.2. The other 0.6 are left to the relay, which
    /// needs 0.6 / 0.5 = 1.2 transmissions for the 2 * 0.5 = 1 packet that it hears.
    #[test]
    fn a_parent_does_not_resend_what_a_child_overhears() {
        let links = links(3, &[(0, 1, 0.5), (1, 2, 0.5), (0, 2, 0.2)]);
        assert_eq!(computed(&links, &[2], 1.0), [(0, 2000, 0), (1, 1200, 1200)]);
    }

    /// The source has children at 0.5 and 0.25: the knob runs from 2 (the better) to 4 (the worse).
    #[test]
    fn the_knob_lies_between_the_best_and_the_worst_child() {
        let links = links(3, &[(0, 1, 0.5), (0, 2, 0.25)]);
        for (knob, sends) in [(0.0, 2000), (0.5, 3000), (1.0, 4000)] {
            assert_eq!(computed(&links, &[1, 2], knob), [(0, sends, 0)]);
        }
    }

    /// For the sake of node 2 the source sends 4, so node 1 hears 2 and has one packet, not two (eq. 1's
    /// minimum). It sends 1 / 0.5 = 2 for the 2 that it hears (eq. 4's sum is not capped).
    #[test]
    fn packets_heard_twice_count_once() {
        let links = links(4, &[(0, 1, 0.5), (0, 2, 0.25), (1, 3, 0.5)]);
        assert_eq!(
            computed(&links, &[2, 3], 1.0),
            [(0, 4000, 0), (1, 2000, 1000)]
        );
    }

    /// Node 2, a child of node 1, overhears from the source more than node 1 can have: the source sends 5 for
    /// node 3, node 2 hears 5 * 0.3 = 1.5 > 1. Node 1 has nothing to do for it.
    #[test]
    fn a_child_that_overhears_enough_needs_nothing() {
        let links = links(4, &[(0, 1, 1.0), (1, 2, 1.0), (0, 2, 0.3), (0, 3, 0.2)]);
        assert_eq!(computed(&links, &[2, 3], 1.0), [(0, 5000, 0), (1, 0, 0)]);
        // Nor with a knob that looks at the best child: less than nothing is nothing.
        let forwarder = |node, children: &[u16]| Forwarder {
            node,
            children: children.into(),
        };
        let forwarders = vec![forwarder(0, &[3]), forwarder(1, &[2])];
        let tree = Tree {
            forwarders,
            unreachable: vec![],
        };
        assert_eq!(credits(&links, &tree, 0.0)[1].transmissions, 0.0);
    }

    /// With knob 0, node 1 serves its better child only. That is node 3, which overhears from the source all
    /// that node 1 can have: the source sends 1/0.4 = 2.5, node 1 hears 1, node 3 hears 2.5 * 0.4 = 1. So node 1
    /// sends nothing, and node 2, which hears no other node, has 0/0: no credit, and no NaN.
    /// (The tree is given by hand: by shortest paths node 3 would be the source's child.)
    #[test]
    fn a_node_that_hears_nothing_has_no_credit() {
        let links = links(
            5,
            &[
                (0, 1, 0.4),
                (0, 3, 0.4),
                (1, 3, 1.0),
                (1, 2, 0.5),
                (2, 4, 0.5),
            ],
        );
        let forwarder = |node, children: &[u16]| Forwarder {
            node,
            children: children.into(),
        };
        let forwarders = vec![
            forwarder(0, &[1]),
            forwarder(1, &[3, 2]),
            forwarder(2, &[4]),
        ];
        let tree = Tree {
            forwarders,
            unreachable: vec![],
        };
        let none = Credit {
            node: 2,
            expected: 0.0,
            transmissions: 0.0,
            credit: 0.0,
        };
        assert_eq!(credits(&links, &tree, 0.0)[2], none);
        assert!(credits(&links, &tree, 1.0)[2].credit > 0.0);
    }

    /// Goal: eqs. 1 to 3 with knob 1 keep their promise. Method: on random graphs, every child of every
    /// forwarding node expects at least one reception for each packet of the source.
    #[test]
    fn every_child_expects_every_packet() {
        for seed in 0..200 {
            let mut random = Seed(seed).stream(Purpose::Trial(0));
            let nodes = 3 + random.below(12) as usize;
            let links = Links::measured(nodes, |_, _| {
                if random.chance(0.4) {
                    random.fraction()
                } else {
                    0.0
                }
            })
            .unwrap();
            let tree = Tree::new(&links.etx_paths(0), 1..nodes as u16);
            let credits = credits(&links, &tree, 1.0);
            for (place, forwarder) in tree.forwarders.iter().enumerate() {
                for &child in &forwarder.children {
                    let heard: f64 = credits[..=place]
                        .iter()
                        .map(|up| up.transmissions * links.ratio(up.node, child))
                        .sum();
                    assert!(
                        heard > 1.0 - 1e-9,
                        "seed {seed}: node {child} expects {heard}"
                    );
                }
                let spent = credits[place].credit * credits[place].expected;
                let due = if place == 0 {
                    0.0
                } else {
                    credits[place].transmissions
                };
                assert!((spent - due).abs() < 1e-9 * (1.0 + due));
            }
        }
        let none = Tree {
            forwarders: vec![],
            unreachable: vec![],
        };
        assert!(super::credits(&links(2, &[]), &none, 1.0).is_empty());
    }
}
