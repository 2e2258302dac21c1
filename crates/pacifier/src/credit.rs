//! How many packets a forwarding node sends for each packet it hears: equations 1 to 4 of the paper.

use alloc::vec::Vec;

use crate::links::Links;
use crate::tree::Tree;

/// What one forwarding node does for each packet that the source wants to spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Credit {
    /// The node.
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
/// negative: taken as 0. A node that can expect to hear nothing has a 0/0 in eq. 4: its credit is 0. That
/// happens with `knob` < 1 only, where a parent may be told to send nothing; it ends when the receivers that
/// the parent does serve have finished and the tree is built anew.
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
