//! The multicast tree from a source to its receivers.

use alloc::vec;
use alloc::vec::Vec;

use crate::links::Paths;
use crate::set::NodeSet;

/// The union of the shortest paths from the source to some receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The nodes that have children, the source first, in increasing ETX distance from it.
    pub forwarders: Vec<Forwarder>,
    /// Receivers that no path reaches.
    pub unreachable: Vec<u16>,
}

/// A forwarding node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarder {
    /// The forwarder's node number.
    pub node: u16,
    /// Its children, in the order in which the paths were added.
    pub children: Vec<u16>,
}

impl Tree {
    //= pacifier III-A: the union of the shortest-ETX paths from the source to the receivers
    /// The tree over `paths` (from the source) to `receivers`. A receiver that is the source is ignored.
    pub fn new(paths: &Paths, receivers: impl IntoIterator<Item = u16>) -> Tree {
        let mut tree = Tree {
            forwarders: vec![],
            unreachable: vec![],
        };
        let mut joined: NodeSet = [paths.root()].into_iter().collect();
        for receiver in receivers {
            if !paths.reaches(receiver) {
                tree.unreachable.push(receiver);
                continue;
            }
            // Up from the receiver until the path meets the tree: each link is added once.
            let mut node = receiver;
            while joined.insert(node)
                && let Some(parent) = paths.next(node)
            {
                tree.adopt(parent, node);
                node = parent;
            }
        }
        tree.forwarders.sort_by(|a, b| paths.order(a.node, b.node));
        tree
    }

    fn adopt(&mut self, parent: u16, child: u16) {
        match self
            .forwarders
            .iter_mut()
            .find(|known| known.node == parent)
        {
            Some(known) => known.children.push(child),
            None => self.forwarders.push(Forwarder {
                node: parent,
                children: vec![child],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Links;

    /// Goal: the tree is the union of the paths, sorted. Method: a drawing small enough to check by eye.
    ///
    /// ```text
    /// 0 --1.0-- 1 --1.0-- 2        5 has no link at all
    ///           '---0.5-- 3 --1.0-- 4
    /// ```
    #[test]
    fn paths_are_united_and_sorted() {
        let edges = [(0, 1, 1.0), (1, 2, 1.0), (1, 3, 0.5), (3, 4, 1.0)];
        let links = Links::measured(6, |a, b| {
            edges
                .iter()
                .find(|e| (e.0, e.1) == (a, b))
                .map_or(0.0, |e| e.2)
        })
        .unwrap();
        let tree = Tree::new(&links.etx_paths(0), [4, 2, 5, 0, 4]);
        let nodes: Vec<_> = tree
            .forwarders
            .iter()
            .map(|f| (f.node, f.children.as_slice()))
            .collect();
        assert_eq!(nodes, [(0, &[1][..]), (1, &[3, 2][..]), (3, &[4][..])]);
        assert_eq!(tree.unreachable, [5]);
        assert!(Tree::new(&links.etx_paths(0), []).forwarders.is_empty());
    }
}
