//! Largest flow through plain arcs: turns the nearly feasible numbers of a solver into a feasible flow.

/// A directed graph with capacities.
pub(crate) struct Arcs {
    nodes: usize,
    /// Arcs in pairs: an arc at an even index, its reverse after it.
    heads: Vec<usize>,
    room: Vec<f64>,
    leaving: Vec<Vec<usize>>,
}

impl Arcs {
    pub fn new(nodes: usize) -> Arcs {
        Arcs {
            nodes,
            heads: Vec::new(),
            room: Vec::new(),
            leaving: vec![Vec::new(); nodes],
        }
    }

    pub fn add(&mut self, from: usize, to: usize, capacity: f64) {
        for (tail, head, room) in [(from, to, capacity), (to, from, 0.0)] {
            self.leaving[tail].push(self.heads.len());
            self.heads.push(head);
            self.room.push(room);
        }
    }

    /// Value of the largest flow, by Dinic's algorithm; arcs with less room than `grain` count as
    /// full, so the value may be short of the true maximum by `grain` per arc, never above it.
    pub fn max_flow(&mut self, source: usize, sink: usize, grain: f64) -> f64 {
        let mut total = 0.0;
        while let Some(level) = self.levels(source, sink, grain) {
            let mut next = vec![0; self.nodes];
            loop {
                let sent = self.push(source, sink, f64::INFINITY, &level, &mut next, grain);
                if sent <= 0.0 {
                    break;
                }
                total += sent;
            }
        }
        total
    }

    /// What goes from each node to each other after [`max_flow`](Self::max_flow); row-major: from, to.
    pub fn flow(&self) -> Vec<f64> {
        let mut flow = vec![0.0; self.nodes * self.nodes];
        for arc in (0..self.heads.len()).step_by(2) {
            flow[self.heads[arc + 1] * self.nodes + self.heads[arc]] += self.room[arc + 1];
        }
        flow
    }

    fn levels(&self, source: usize, sink: usize, grain: f64) -> Option<Vec<usize>> {
        let mut level = vec![usize::MAX; self.nodes];
        let mut queue = std::collections::VecDeque::from([source]);
        level[source] = 0;
        while let Some(node) = queue.pop_front() {
            for &arc in &self.leaving[node] {
                let head = self.heads[arc];
                if self.room[arc] > grain && level[head] == usize::MAX {
                    level[head] = level[node] + 1;
                    queue.push_back(head);
                }
            }
        }
        (level[sink] != usize::MAX).then_some(level)
    }

    fn push(
        &mut self,
        node: usize,
        sink: usize,
        offered: f64,
        level: &[usize],
        next: &mut [usize],
        grain: f64,
    ) -> f64 {
        if node == sink {
            return offered;
        }
        while next[node] < self.leaving[node].len() {
            let arc = self.leaving[node][next[node]];
            let head = self.heads[arc];
            if self.room[arc] > grain && level[head] == level[node].wrapping_add(1) {
                let room = self.room[arc];
                let sent = self.push(head, sink, offered.min(room), level, next, grain);
                if sent > 0.0 {
                    self.room[arc] -= sent;
                    self.room[arc ^ 1] += sent;
                    return sent;
                }
            }
            next[node] += 1;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_testkit::SplitMix64;

    /// Largest flow = smallest cut, over all cuts of 300 random graphs of 6 nodes.
    #[test]
    fn flow_equals_smallest_cut() {
        let mut random = SplitMix64(4);
        for _ in 0..300 {
            let mut capacity = [[0.0; 6]; 6];
            let mut arcs = Arcs::new(6);
            for (from, row) in capacity.iter_mut().enumerate() {
                for (to, room) in row.iter_mut().enumerate() {
                    if from != to && random.unit() < 0.5 {
                        *room = random.unit();
                        arcs.add(from, to, *room);
                    }
                }
            }
            let cut = (0u32..64)
                .filter(|side| side & 1 == 1 && side >> 5 & 1 == 0)
                .map(|side| {
                    let mut total = 0.0;
                    for (from, row) in capacity.iter().enumerate() {
                        for (to, room) in row.iter().enumerate() {
                            if side >> from & 1 == 1 && side >> to & 1 == 0 {
                                total += room;
                            }
                        }
                    }
                    total
                })
                .fold(f64::INFINITY, f64::min);
            assert!((arcs.max_flow(0, 5, 0.0) - cut).abs() < 1e-12);
        }
    }
}
