//! The fluid limit of given forwarding rates: the upper limit of a credit rule.

use crate::error::Error;
use crate::feasible::{carried_fps, cut};
use crate::master::Master;
use crate::network::Network;
use crate::order;

/// The rates of a protocol's transmissions with a perfect MAC, no collisions and infinite batches.
#[derive(Clone, Debug, PartialEq)]
pub struct Fluid {
    /// Factor from the given transmissions per packet to frames/s: source packets/s at which the
    /// busiest clique of nodes that sense each other is full.
    pub scale: f64,
    /// Frames/s that reach each receiver, in the order given. Exact to about 1e-6.
    pub receivers_fps: Vec<f64>,
    /// Useful bits in one frame.
    pub payload_bits: f64,
}

impl Fluid {
    /// Frames/s of the worst receiver.
    pub fn rate_fps(&self) -> f64 {
        self.receivers_fps
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
    }

    /// Bit/s of payload at the worst receiver.
    pub fn goodput_bps(&self) -> f64 {
        self.rate_fps() * self.payload_bits
    }
}

/// Evaluates `transmissions[i]`, node i's transmissions per source packet (any common unit will do):
/// scales them until the busiest sensing clique is full, then finds the largest flow to each receiver.
///
/// A protocol's credits say how often nodes send; random linear coding then carries the smallest cut
/// sum over i in U of z_i b_i(outside U). The ratio to the carrier-sense bound says what the
/// credits alone cost. Zero where nothing arrives, and everywhere if no node transmits.
pub fn fluid_rate(
    network: &Network,
    transmissions: &[f64],
    source: usize,
    receivers: &[usize],
) -> Result<Fluid, Error> {
    check_transmissions(network, transmissions)?;
    network.check_multicast(source, receivers)?;
    let airtime: Vec<f64> = (transmissions.iter().enumerate())
        .map(|(node, z)| z * network.channel_s(node))
        .collect();
    let busiest = network.senses().heaviest_clique(&airtime);
    let scale = if busiest > 0.0 { 1.0 / busiest } else { 0.0 };
    let sent: Vec<f64> = transmissions.iter().map(|z| z * scale).collect();
    let receivers_fps = (receivers.iter())
        .map(|&receiver| max_flow(network, &sent, source, receiver))
        .collect::<Result<_, _>>()?;
    Ok(Fluid {
        scale,
        receivers_fps,
        payload_bits: network.payload_bits(),
    })
}

/// The largest rate (frames/s) from `source` to `receiver` when node i transmits
/// `transmissions[i]` frames/s, neither more nor less: the smallest cut of the broadcast network.
///
/// The result is the value of an actual cut over all links, so never below the true maximum up to
/// rounding; the loop ends when a feasible flow comes within 1e-6 of it, or the solver does not get
/// closer.
pub fn max_flow(
    network: &Network,
    transmissions: &[f64],
    source: usize,
    receiver: usize,
) -> Result<f64, Error> {
    check_transmissions(network, transmissions)?;
    network.check_multicast(source, &[receiver])?;
    // The cuts next to the source and the receiver; also the answer where no flow exists.
    let mut least = cut_value(network, transmissions, |node| node == source)
        .min(cut_value(network, transmissions, |node| node != receiver))
        .min(reach_cut(network, transmissions, source, receiver));
    let mut reached = 0.0;
    let receivers = [receiver];
    let mut tolerance = 1e-8;
    let mut master = None;
    while least - reached > 1e-6 * least {
        let master =
            master.get_or_insert_with(|| Master::fixed(network, source, &receivers, transmissions));
        let answer = master.solve(tolerance)?;
        let flows = cut(network, transmissions, &answer.flows);
        reached = carried_fps(network, source, receiver, &flows[0]).max(reached);
        for cut in threshold_cuts(network, transmissions, &answer.certificate.potentials[0]) {
            least = cut.min(least);
        }
        if master.add_violated_rows(&answer, 1e-8 * least) == 0 {
            if tolerance < 1e-10 {
                break;
            }
            tolerance *= 0.1;
        }
    }
    Ok(least)
}

/// Frames/s that cross from the nodes `inside` to the others: sum z_i b_i(outside).
pub fn cut_value(network: &Network, transmissions: &[f64], inside: impl Fn(usize) -> bool) -> f64 {
    (0..network.nodes())
        .filter(|&from| inside(from) && transmissions[from] > 0.0)
        .map(|from| {
            let outside = (0..network.nodes()).filter(|&to| !inside(to));
            transmissions[from] * network.reach(from, outside)
        })
        .sum()
}

/// The cut around what the source reaches at all through nodes that transmit: zero, if the receiver
/// is not among it.
fn reach_cut(network: &Network, transmissions: &[f64], source: usize, receiver: usize) -> f64 {
    let mut seen = vec![false; network.nodes()];
    let mut open = vec![source];
    seen[source] = true;
    while let Some(from) = open.pop() {
        if transmissions[from] > 0.0 {
            for (to, seen) in seen.iter_mut().enumerate() {
                if !*seen && network.delivery(from, to) > 0.0 {
                    *seen = true;
                    open.push(to);
                }
            }
        }
    }
    if seen[receiver] {
        f64::INFINITY
    } else {
        cut_value(network, transmissions, |node| seen[node])
    }
}

/// The cuts between neighbouring potentials. The dual objective is their weighted mean, so the
/// least of them is no more than the program's optimum.
fn threshold_cuts<'a>(
    network: &'a Network,
    transmissions: &'a [f64],
    potential: &'a [f64],
) -> impl Iterator<Item = f64> + 'a {
    let mut levels = potential.to_vec();
    order::rising(&mut levels, |&level| level);
    let most = levels.last().copied().unwrap_or(0.0);
    levels.retain(move |&level| level < most);
    levels.dedup();
    levels
        .into_iter()
        .map(move |level| cut_value(network, transmissions, |node| potential[node] > level))
}

fn check_transmissions(network: &Network, transmissions: &[f64]) -> Result<(), Error> {
    let (expected, got) = (network.nodes(), transmissions.len());
    if got != expected {
        return Err(Error::Shape {
            table: "transmissions",
            expected,
            got,
        });
    }
    match transmissions
        .iter()
        .position(|z| !(*z >= 0.0 && z.is_finite()))
    {
        Some(node) => Err(Error::Quantity {
            what: "transmissions",
            node,
            value: transmissions[node],
        }),
        None => Ok(()),
    }
}
