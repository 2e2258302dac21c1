//! Decomposes a solver's link loads into paths that are feasible for certain.

use super::{Mesh, MeshFlow};

/// A route of a flow and what it carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Place of the flow in the list.
    pub flow: usize,
    /// Links in order, from the source to the sink.
    pub links: Vec<usize>,
    /// The rate that it carries, in bit/s.
    pub rate_bps: f64,
}

/// Loads of the links towards one sink, and what they may still carry.
pub(super) struct Loads<'a> {
    pub mesh: &'a Mesh,
    /// Per sink and link, in bit/s.
    pub towards: Vec<Vec<f64>>,
    /// Less than this is noise, in bit/s.
    pub least: f64,
}

impl Loads<'_> {
    /// Limits each link's load to `capacity` (bit/s), sharing the loss among the sinks.
    pub fn cap(&mut self, capacity: &[f64]) {
        for (link, &capacity) in capacity.iter().enumerate() {
            let load: f64 = self.towards.iter().map(|loads| loads[link]).sum();
            if load > capacity {
                let factor = (capacity / load).max(0.0);
                self.towards
                    .iter_mut()
                    .for_each(|loads| loads[link] *= factor);
            }
        }
    }

    /// Takes paths for up to `wanted` bit/s of each flow out of the loads, the widest first.
    pub fn paths(mut self, flows: &[MeshFlow], sinks: &[usize], wanted: &[f64]) -> Vec<Path> {
        let mut paths = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            let Some(place) = sinks.iter().position(|&sink| sink == flow.sink) else {
                continue;
            };
            let mut missing = wanted[number];
            while missing > self.least {
                let Some(links) = self.widest(place, *flow) else {
                    break;
                };
                let loads = &mut self.towards[place];
                let width = links
                    .iter()
                    .map(|&link| loads[link])
                    .fold(missing, f64::min);
                for &link in &links {
                    loads[link] -= width;
                }
                missing -= width;
                paths.push(Path {
                    flow: number,
                    links,
                    rate_bps: width,
                });
            }
        }
        paths
    }

    /// The path whose narrowest link is widest (Dijkstra's algorithm with minima instead of sums).
    fn widest(&self, place: usize, flow: MeshFlow) -> Option<Vec<usize>> {
        let loads = &self.towards[place];
        let nodes = self.mesh.nodes();
        let mut width = vec![0.0_f64; nodes];
        let mut by: Vec<Option<usize>> = vec![None; nodes];
        let mut done = vec![false; nodes];
        width[flow.source] = f64::INFINITY;
        loop {
            let open = (0..nodes).filter(|&node| !done[node] && width[node] > self.least);
            let node = open.max_by(|&a, &b| width[a].total_cmp(&width[b]).then(b.cmp(&a)))?;
            if node == flow.sink {
                break;
            }
            done[node] = true;
            for (number, link) in self.mesh.links().iter().enumerate() {
                let through = width[node].min(loads[number]);
                if link.from == node && through > width[link.to] && !done[link.to] {
                    width[link.to] = through;
                    by[link.to] = Some(number);
                }
            }
        }
        let mut links = Vec::new();
        let mut node = flow.sink;
        while let Some(link) = by[node].filter(|_| node != flow.source) {
            links.push(link);
            node = self.mesh.links()[link].from;
        }
        links.reverse();
        Some(links)
    }
}
