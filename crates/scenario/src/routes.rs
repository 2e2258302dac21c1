//! Static routes: for each pair of nodes the path whose expected number of transmissions is least.
//!
//! The expected transmission count of a link is 1 / (d_f d_r), with the delivery ratios of data one way and of its
//! acknowledgement the other (De Couto et al., "A High-Throughput Path Metric for Multi-Hop Wireless Routing", MobiCom
//! 2003, section 3). Both are the true ratios of frames of the interface's MTU, which is conservative for the
//! acknowledgement.

/// The next hop from each node to each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    nodes: usize,
    next: Vec<Option<usize>>,
}

impl Routes {
    /// The best routes over links with these delivery ratios (row-major, from each node to each).
    pub fn by_etx(nodes: usize, delivery: &[f64]) -> Routes {
        let ratio = |from: usize, to: usize| delivery.get(from * nodes + to).copied();
        let etx = |from: usize, to: usize| {
            let both = ratio(from, to).unwrap_or(0.0) * ratio(to, from).unwrap_or(0.0);
            (both > 0.0).then(|| 1.0 / both)
        };
        let mut next = vec![None; nodes * nodes];
        for to in 0..nodes {
            for (from, hop) in towards(to, nodes, etx).into_iter().enumerate() {
                next[from * nodes + to] = hop;
            }
        }
        Routes { nodes, next }
    }

    /// The neighbour over which `from` reaches `to`; `None` if nothing leads there.
    pub fn next(&self, from: usize, to: usize) -> Option<usize> {
        self.next.get(from * self.nodes + to).copied().flatten()
    }

    /// The nodes on the way from `from` to `to`, both included; `None` if nothing leads there.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut path = vec![from];
        let mut at = from;
        while at != to {
            at = self.next(at, to)?;
            path.push(at);
        }
        Some(path)
    }
}

/// Dijkstra's tree towards one node: each node's next hop.
fn towards(
    to: usize,
    nodes: usize,
    cost: impl Fn(usize, usize) -> Option<f64>,
) -> Vec<Option<usize>> {
    let (mut best, mut next) = (vec![f64::INFINITY; nodes], vec![None; nodes]);
    let mut done = vec![false; nodes];
    best[to] = 0.0;
    loop {
        let open = (0..nodes).filter(|&node| !done[node] && best[node].is_finite());
        let Some(at) = open.min_by(|&a, &b| best[a].total_cmp(&best[b])) else {
            return next;
        };
        done[at] = true;
        for from in 0..nodes {
            let through = cost(from, at).map(|cost| cost + best[at]);
            if let Some(total) = through.filter(|&total| total < best[from]) {
                (best[from], next[from]) = (total, Some(at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two good hops (2 transmissions and a half) beat a bad one (6.25), but not a fair one.
    #[test]
    fn routes_take_the_fewest_transmissions() {
        let line = |far: f64| {
            let near = 0.9;
            Routes::by_etx(3, &[0.0, near, far, near, 0.0, near, far, near, 0.0])
        };
        assert_eq!(line(0.4).path(0, 2), Some(vec![0, 1, 2]));
        assert_eq!(line(0.7).path(0, 2), Some(vec![0, 2]));
    }

    /// A link that delivers one way only carries nothing that must be acknowledged.
    #[test]
    fn one_way_links_are_not_used() {
        let routes = Routes::by_etx(2, &[0.0, 1.0, 0.0, 0.0]);
        assert_eq!((routes.next(0, 1), routes.path(0, 1)), (None, None));
        assert_eq!(routes.path(1, 1), Some(vec![1]));
    }
}
