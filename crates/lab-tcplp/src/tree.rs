//! The tree of next hops on which packets of a scenario go to node 0 and back.

use chappe_scenario::routes::Routes;

/// Each node's parent on the path to node 0 with the fewest expected transmissions (ETX). `None` for node 0 and for nodes
/// without a path.
pub fn tree(nodes: usize, delivery: &[f64]) -> Vec<Option<usize>> {
    let routes = Routes::by_etx(nodes, delivery);
    (0..nodes).map(|node| routes.next(node, 0)).collect()
}

/// The nodes without children, except node 0.
pub fn leaves(parents: &[Option<usize>]) -> impl Iterator<Item = usize> {
    let is_leaf = |node: &usize| !parents.contains(&Some(*node));
    (1..parents.len()).filter(is_leaf)
}

/// Hops from a node to node 0; `None` without a path.
pub fn hops(node: usize, parents: &[Option<usize>]) -> Option<usize> {
    let (mut at, mut hops) = (node, 0);
    while at != 0 {
        (at, hops) = (parents.get(at).copied().flatten()?, hops + 1);
        if hops > parents.len() {
            return None;
        }
    }
    Some(hops)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row 0 - 1 - 2, and a node without links.
    #[test]
    fn trees_follow_the_links() {
        let mut delivery = vec![0.0; 16];
        for (a, b) in [(0, 1), (1, 2)] {
            (delivery[a * 4 + b], delivery[b * 4 + a]) = (0.9, 0.9);
        }
        let parents = tree(4, &delivery);
        assert_eq!(parents, [None, Some(0), Some(1), None]);
        let hops: Vec<_> = (0..4).map(|node| hops(node, &parents)).collect();
        assert_eq!(hops, [Some(0), Some(1), Some(2), None]);
        assert_eq!(leaves(&parents).collect::<Vec<_>>(), [2, 3]);
    }
}
