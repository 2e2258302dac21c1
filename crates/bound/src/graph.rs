//! Conflict graphs: maximal cliques, heaviest independent sets.
//!
//! The vertices are nodes here, but may as well be links: the functions know nothing of radio.

use crate::order;

/// An undirected graph without loops, as bit rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    vertices: usize,
    rows: Vec<Bits>,
}

/// Maximal cliques of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cliques {
    /// Each in rising order of vertices; together they cover every vertex and every edge.
    pub sets: Vec<Vec<usize>>,
    /// False if the limit cut the enumeration short. Every set is a maximal clique all the same.
    pub complete: bool,
}

impl Graph {
    /// A graph of `vertices` vertices and no edge.
    pub fn new(vertices: usize) -> Graph {
        Graph {
            vertices,
            rows: vec![Bits::empty(vertices); vertices],
        }
    }

    /// Number of vertices; they are called `0..vertices`.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// Adds the edge between `a` and `b`. An edge from a vertex to itself is ignored.
    pub fn connect(&mut self, a: usize, b: usize) {
        if a != b {
            self.rows[a].insert(b);
            self.rows[b].insert(a);
        }
    }

    /// Is there an edge between `a` and `b`?
    pub fn adjacent(&self, a: usize, b: usize) -> bool {
        self.rows[a].has(b)
    }

    /// Are all pairs of `set` adjacent (and no vertex named twice)?
    pub fn is_clique(&self, set: &[usize]) -> bool {
        set.iter()
            .enumerate()
            .all(|(index, &a)| set[..index].iter().all(|&b| self.adjacent(a, b)))
    }

    /// The maximal cliques, at most about `limit` of them.
    ///
    /// Bron and Kerbosch's enumeration with the pivot of Tomita, Tanaka and Takahashi (2006). A
    /// graph can have 3^(n/3) maximal cliques, so the enumeration stops at `limit` sets or
    /// `100 * limit` steps; then every edge not yet covered is grown greedily to a maximal clique,
    /// which adds at most one set per edge. Medium constraints from a subset of the cliques still
    /// give a valid upper bound, only a looser one.
    pub fn maximal_cliques(&self, limit: usize) -> Cliques {
        let mut search = Enumeration {
            graph: self,
            limit,
            steps: limit.saturating_mul(100),
            sets: Vec::new(),
            cut_short: false,
        };
        let all = Bits::full(self.vertices);
        search.extend(&mut Vec::new(), all, Bits::empty(self.vertices));
        let (mut sets, complete) = (search.sets, !search.cut_short);
        if !complete {
            self.cover_edges(&mut sets);
        }
        for set in &mut sets {
            set.sort_unstable();
        }
        sets.sort_unstable();
        Cliques { sets, complete }
    }

    /// An independent set of the largest total weight, in rising order, and that weight.
    ///
    /// Exact, by branch and bound: the bound is the weight of a greedy clique cover of the open
    /// vertices, of which an independent set can hold one each. Vertices of weight 0 or less are
    /// left out. The time grows exponentially with the number of vertices of a sparse graph; on
    /// sensing graphs of 50 nodes it is microseconds to milliseconds.
    pub fn heaviest_independent_set(&self, weights: &[f64]) -> (Vec<usize>, f64) {
        let mut order: Vec<usize> = (0..self.vertices).filter(|&v| weights[v] > 0.0).collect();
        order::falling(&mut order, |&v| weights[v]);
        let mut best = (Vec::new(), 0.0);
        self.branch(&order, weights, &mut Vec::new(), 0.0, &mut best);
        best.0.sort_unstable();
        best
    }

    /// The heaviest independent set of the vertices that weigh at least `least`, and a total weight that no independent set
    /// exceeds: exact for these vertices, the others counted by a greedy clique cover. Dropping light vertices makes the
    /// search much shorter.
    pub fn independent_set_bound(&self, weights: &[f64], least: f64) -> (Vec<usize>, f64) {
        let heavy: Vec<f64> = (weights.iter())
            .map(|&weight| if weight >= least { weight } else { 0.0 })
            .collect();
        let mut light: Vec<usize> = (0..self.vertices)
            .filter(|&v| weights[v] > 0.0 && weights[v] < least)
            .collect();
        order::falling(&mut light, |&v| weights[v]);
        let rest = self.cover_weights(&light, weights);
        let (set, weight) = self.heaviest_independent_set(&heavy);
        (set, weight + rest.first().copied().unwrap_or(0.0))
    }

    /// The largest total weight of a clique; weights of 0 or less are left out.
    ///
    /// Exact: the heaviest independent set of the complement.
    pub fn heaviest_clique(&self, weights: &[f64]) -> f64 {
        let mut complement = Graph::new(self.vertices);
        for a in 0..self.vertices {
            (0..a)
                .filter(|&b| !self.adjacent(a, b))
                .for_each(|b| complement.connect(a, b));
        }
        complement.heaviest_independent_set(weights).1
    }

    fn cover_edges(&self, sets: &mut Vec<Vec<usize>>) {
        let mut covered = Graph::new(self.vertices);
        let mut touched = Bits::empty(self.vertices);
        let mut mark = |set: &[usize], covered: &mut Graph| {
            for (index, &a) in set.iter().enumerate() {
                touched.insert(a);
                set[..index].iter().for_each(|&b| covered.connect(a, b));
            }
        };
        sets.iter().for_each(|set| mark(set, &mut covered));
        for a in 0..self.vertices {
            for b in self.rows[a].iter().filter(|&b| b > a) {
                if !covered.adjacent(a, b) {
                    let set = self.grow(vec![a, b]);
                    mark(&set, &mut covered);
                    sets.push(set);
                }
            }
        }
        for a in (0..self.vertices).filter(|&a| self.rows[a].is_empty()) {
            if !sets.contains(&vec![a]) {
                sets.push(vec![a]);
            }
        }
    }

    fn grow(&self, mut clique: Vec<usize>) -> Vec<usize> {
        for vertex in 0..self.vertices {
            if clique.iter().all(|&member| self.adjacent(vertex, member)) {
                clique.push(vertex);
            }
        }
        clique
    }

    fn branch(
        &self,
        open: &[usize],
        weights: &[f64],
        chosen: &mut Vec<usize>,
        weight: f64,
        best: &mut (Vec<usize>, f64),
    ) {
        if weight > best.1 {
            *best = (chosen.clone(), weight);
        }
        let cover = self.cover_weights(open, weights);
        for (position, &vertex) in open.iter().enumerate() {
            // `cover[position]` bounds every independent set within `open[position..]`.
            if weight + cover[position] <= best.1 {
                return;
            }
            let rest: Vec<usize> = open[position + 1..]
                .iter()
                .copied()
                .filter(|&other| !self.adjacent(vertex, other))
                .collect();
            chosen.push(vertex);
            self.branch(&rest, weights, chosen, weight + weights[vertex], best);
            chosen.pop();
        }
    }

    /// For every suffix of `open`, the total weight of a clique cover built from the back; a clique
    /// weighs as much as its heaviest member.
    fn cover_weights(&self, open: &[usize], weights: &[f64]) -> Vec<f64> {
        let mut bounds = vec![0.0; open.len()];
        let mut cliques: Vec<(Vec<usize>, f64)> = Vec::new();
        let mut total = 0.0;
        for (position, &vertex) in open.iter().enumerate().rev() {
            let home = cliques
                .iter_mut()
                .find(|(members, _)| members.iter().all(|&member| self.adjacent(vertex, member)));
            let weight = weights[vertex];
            match home {
                Some((members, heaviest)) => {
                    members.push(vertex);
                    total += (weight - *heaviest).max(0.0);
                    *heaviest = heaviest.max(weight);
                }
                None => {
                    cliques.push((vec![vertex], weight));
                    total += weight;
                }
            }
            bounds[position] = total;
        }
        bounds
    }
}

struct Enumeration<'a> {
    graph: &'a Graph,
    limit: usize,
    steps: usize,
    sets: Vec<Vec<usize>>,
    cut_short: bool,
}

impl Enumeration<'_> {
    fn extend(&mut self, clique: &mut Vec<usize>, mut open: Bits, mut done: Bits) {
        if self.sets.len() >= self.limit || self.steps == 0 {
            self.cut_short = true;
            return;
        }
        self.steps -= 1;
        let pivot = open
            .iter()
            .chain(done.iter())
            .max_by_key(|&v| self.graph.rows[v].count_common(&open));
        let Some(pivot) = pivot else {
            self.sets.push(clique.clone());
            return;
        };
        let branches: Vec<usize> = open
            .iter()
            .filter(|&v| !self.graph.adjacent(pivot, v))
            .collect();
        for vertex in branches {
            let row = &self.graph.rows[vertex];
            clique.push(vertex);
            self.extend(clique, open.common(row), done.common(row));
            clique.pop();
            open.remove(vertex);
            done.insert(vertex);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn empty(size: usize) -> Bits {
        Bits(vec![0; size.div_ceil(64)])
    }

    fn full(size: usize) -> Bits {
        let mut bits = Bits::empty(size);
        (0..size).for_each(|bit| bits.insert(bit));
        bits
    }

    fn insert(&mut self, bit: usize) {
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn remove(&mut self, bit: usize) {
        self.0[bit / 64] &= !(1 << (bit % 64));
    }

    fn has(&self, bit: usize) -> bool {
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    fn common(&self, other: &Bits) -> Bits {
        Bits(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    fn count_common(&self, other: &Bits) -> u32 {
        self.0
            .iter()
            .zip(&other.0)
            .map(|(a, b)| (a & b).count_ones())
            .sum()
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| index * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_testkit::SplitMix64;

    fn random_graph(random: &mut SplitMix64, vertices: usize, density: f64) -> Graph {
        let mut graph = Graph::new(vertices);
        for a in 0..vertices {
            for b in 0..a {
                if random.unit() < density {
                    graph.connect(a, b);
                }
            }
        }
        graph
    }

    /// Between the heaviest set and the sum of all weights, whatever is dropped.
    #[test]
    fn the_bound_of_independent_sets_is_one() {
        let mut random = SplitMix64(7);
        for _ in 0..100 {
            let graph = random_graph(&mut random, 16, 0.5);
            let weights: Vec<f64> = (0..16).map(|_| random.unit()).collect();
            let (_, heaviest) = graph.heaviest_independent_set(&weights);
            for least in [0.0, 0.2, 0.5, 2.0] {
                let (_, bound) = graph.independent_set_bound(&weights, least);
                assert!(bound >= heaviest - 1e-12 && bound <= weights.iter().sum::<f64>() + 1e-12);
            }
            let (set, bound) = graph.independent_set_bound(&weights, 0.0);
            let weight: f64 = set.iter().map(|&v| weights[v]).sum();
            assert!((bound - heaviest).abs() < 1e-12 && (weight - heaviest).abs() < 1e-12);
        }
    }

    fn subsets(vertices: usize) -> impl Iterator<Item = Vec<usize>> {
        (0u32..1 << vertices)
            .map(move |mask| (0..vertices).filter(|&v| mask >> v & 1 == 1).collect())
    }

    /// Every maximal clique of small random graphs, against all subsets.
    #[test]
    fn cliques_match_all_subsets() {
        let mut random = SplitMix64(1);
        for round in 0..200 {
            let vertices = 1 + round % 9;
            let density = random.unit();
            let graph = random_graph(&mut random, vertices, density);
            let mut expected: Vec<Vec<usize>> = subsets(vertices)
                .filter(|set| !set.is_empty() && graph.is_clique(set))
                .filter(|set| {
                    !(0..vertices).any(|v| set.iter().all(|&member| graph.adjacent(v, member)))
                })
                .collect();
            expected.sort_unstable();
            let found = graph.maximal_cliques(1000);
            assert!(found.complete);
            assert_eq!(found.sets, expected);
        }
    }

    /// With the enumeration cut short, each set is still a maximal clique and edges stay covered.
    #[test]
    fn a_cut_enumeration_covers_every_edge() {
        let mut random = SplitMix64(2);
        for _ in 0..50 {
            let graph = random_graph(&mut random, 20, 0.4);
            let found = graph.maximal_cliques(3);
            assert!(!found.complete);
            for a in 0..20 {
                assert!(found.sets.iter().any(|set| set.contains(&a)));
                for b in (0..a).filter(|&b| graph.adjacent(a, b)) {
                    assert!(
                        found
                            .sets
                            .iter()
                            .any(|set| set.contains(&a) && set.contains(&b))
                    );
                }
            }
            assert!(found.sets.iter().all(|set| graph.is_clique(set)));
        }
    }

    #[test]
    fn the_heaviest_clique_is_one_of_the_maximal() {
        let mut random = SplitMix64(5);
        for _ in 0..100 {
            let graph = random_graph(&mut random, 14, 0.5);
            let weights: Vec<f64> = (0..14).map(|_| random.unit()).collect();
            let expected = (graph.maximal_cliques(10_000).sets.iter())
                .map(|set| set.iter().map(|&v| weights[v]).sum())
                .fold(0.0, f64::max);
            assert!((graph.heaviest_clique(&weights) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn heaviest_set_matches_all_subsets() {
        let mut random = SplitMix64(3);
        for round in 0..300 {
            let vertices = 1 + round % 11;
            let density = random.unit();
            let graph = random_graph(&mut random, vertices, density);
            let weights: Vec<f64> = (0..vertices).map(|_| random.unit() - 0.1).collect();
            let heaviest = subsets(vertices)
                .filter(|set| {
                    set.iter()
                        .all(|&a| set.iter().all(|&b| !graph.adjacent(a, b)))
                })
                .map(|set| set.iter().map(|&v| weights[v]).sum::<f64>())
                .fold(0.0, f64::max);
            let (set, weight) = graph.heaviest_independent_set(&weights);
            assert!((weight - heaviest).abs() < 1e-12);
            assert!((set.iter().map(|&v| weights[v]).sum::<f64>() - weight).abs() < 1e-12);
        }
    }
}
