//! The best routes and schedule, under two rules for which links exclude each other.

use chappe_bound::graph::Graph;
use chappe_bound::{
    Conflict, Mesh, MeshBound, MeshFlow, MeshLink, MeshOptions, Objective, mesh_bound,
};

use super::scene::Scene;

/// Packets a second that a link alone carries: 252 octets at 2 Mbit/s, SIFS, ACK, DIFS and 15.5 slots of back-off.
const LINK: f64 = 533.6;

/// Which links exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Those with ends within 550 m.
    Apart,
    /// Those of senders that sense each other, and those whose data one destroys: less than 10 dB weaker, after the fourth power
    /// of distance.
    Interference,
}

impl Rule {
    pub const ALL: [Rule; 2] = [Rule::Apart, Rule::Interference];

    pub fn name(self) -> &'static str {
        match self {
            Rule::Apart => "550 m apart",
            Rule::Interference => "interference",
        }
    }

    /// The links of a network and their conflicts.
    pub fn mesh(self, scene: &Scene) -> Result<Mesh, chappe_bound::Error> {
        let places = scene.medium.positions();
        let metres =
            |a: usize, b: usize| libm::hypot(places[a].x - places[b].x, places[a].y - places[b].y);
        let pairs = (0..places.len()).flat_map(|a| (0..places.len()).map(move |b| (a, b)));
        let links = pairs.filter(|&(a, b)| a != b && metres(a, b) <= 250.0);
        let links: Vec<MeshLink> = links
            .map(|(from, to)| MeshLink {
                from,
                to,
                rate_bps: LINK,
            })
            .collect();
        if self == Rule::Apart {
            let near = |a: usize, b: usize| metres(a, b) <= 550.0;
            return Mesh::new(places.len(), links, Conflict::Symmetric, near);
        }
        let destroys = |from: usize, link: &MeshLink| {
            metres(from, link.to) < 1.7783 * metres(link.from, link.to)
        };
        let mut conflicts = Graph::new(links.len());
        for (b, other) in links.iter().enumerate() {
            for (a, link) in links[..b].iter().enumerate() {
                let ends = [other.from, other.to];
                if ends.contains(&link.from)
                    || ends.contains(&link.to)
                    || metres(link.from, other.from) <= 550.0
                    || destroys(link.from, other)
                    || destroys(other.from, link)
                {
                    conflicts.connect(a, b);
                }
            }
        }
        Mesh::with_conflicts(places.len(), links, conflicts)
    }
}

/// The optimum of a network whose links are those of a [`Rule`].
pub fn best(
    scene: &Scene,
    mesh: &Mesh,
    objective: Objective,
) -> Result<MeshBound, chappe_bound::Error> {
    let sink = usize::from(scene.sink);
    let flow = |&(source, _): &(u16, u16)| MeshFlow {
        source: usize::from(source),
        sink,
    };
    let flows: Vec<MeshFlow> = scene.sources.iter().map(flow).collect();
    mesh_bound(mesh, &flows, objective, &MeshOptions::default())
}

/// Prints the max-min and the proportionally fair optimum under both rules.
pub fn print(scene: &Scene) -> Result<(), Box<dyn std::error::Error>> {
    for rule in Rule::ALL {
        let mesh = rule.mesh(scene)?;
        for objective in [Objective::MaxMin, Objective::SumLog] {
            let best = best(scene, &mesh, objective)?;
            let rates = &best.rates_bps;
            println!(
                "{}, {objective:?}: total {:.1}, Jain {:.3}, geometric {:.2}, gap {:.4}, {rates:.1?}",
                rule.name(),
                best.total_bps(),
                best.jain(),
                geometric(rates),
                best.gap
            );
        }
    }
    Ok(())
}

/// The geometric mean of the rates, in their unit.
pub fn geometric(rates: &[f64]) -> f64 {
    let logs: f64 = rates.iter().map(|&rate| libm::log(rate)).sum();
    libm::exp(logs / rates.len() as f64)
}
