//! The multicast bound: from one source to all of a set of receivers at one rate.

use crate::certificate::{Certificate, Prices};
use crate::error::Error;
use crate::feasible::feasible_fps;
use crate::master::Master;
use crate::network::Network;

/// What transmissions must not overlap: three outer regions of what a medium can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// One radio per node, which at any time sends one frame, receives one, or rests. Holds for any
    /// MAC, with any interference, as long as no radio takes in several frames at once. For MACs
    /// that do not keep DIFS between frames of different senders, leave DIFS out of the airtimes.
    OneRadio,
    /// Nodes that sense each other never overlap: in every clique of the sensing graph the shares
    /// of airtime add up to at most 1. Holds for carrier-sense MACs; backoff ties and capture can
    /// exceed it slightly.
    CarrierSense,
    /// The same assumption taken to its end: transmissions happen in independent sets of the
    /// sensing graph (Jain, Padhye, Padmanabhan, Qiu, MobiCom 2003). At most as large as
    /// `CarrierSense`, equal on perfect graphs, slower: every round finds a heaviest independent set.
    IndependentSets,
}

/// How to compute a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What the medium allows.
    pub medium: Medium,
    /// Stop when bound and rate differ by no more than this, relatively.
    pub gap: f64,
    /// Stop after so many rounds in any case; the bound is valid, only less tight.
    pub rounds_max: usize,
    /// Stop listing cliques after so many; the bound is valid, only less tight.
    pub cliques_max: usize,
}

impl Default for Options {
    /// Carrier sense, to 1e-6.
    fn default() -> Options {
        Options { medium: Medium::CarrierSense, gap: 1e-6, rounds_max: 60, cliques_max: 20_000 }
    }
}

/// What the network could carry at best, between a rate that is reached and a bound that is proven.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Frames/s that `transmissions` really carry to every receiver, by network coding, in the
    /// model. At most `certified_fps`, and within the gap of it when the computation converged.
    pub rate_fps: f64,
    /// Frames/s that no protocol exceeds: `certificate` proves it. **This is the bound.**
    pub certified_fps: f64,
    /// Frames/s of each node that carry `rate_fps` (z in the literature): the ideal forwarding
    /// rates, credits that a protocol may follow.
    pub transmissions: Vec<f64>,
    /// Linear programs solved.
    pub rounds: usize,
    /// The proof of `certified_fps`.
    pub certificate: Certificate,
    /// Useful bits in one frame.
    pub payload_bits: f64,
}

impl Bound {
    /// The proven bound in bit/s of payload.
    pub fn goodput_bps(&self) -> f64 {
        self.certified_fps * self.payload_bits
    }

    /// How far the proven bound lies above the reached rate, relatively.
    pub fn gap(&self) -> f64 {
        if self.certified_fps > 0.0 { 1.0 - self.rate_fps / self.certified_fps } else { 0.0 }
    }
}

/// The largest rate at which `source` can feed *all* `receivers` at once: the bound on the worst
/// receiver.
///
/// The program: maximise R with, for every receiver t, flows x that carry R from the source to t;
/// x(K) <= z_i b_i(K) for every node i and every set K of its neighbours ([`crate::hyperarc`]); and
/// z within the medium. By Lun, Médard, Koetter, Effros (2008) random linear network coding reaches
/// every rate the cuts allow, so for a given region of z this is the capacity, not a heuristic.
///
/// Rows, links and cliques are added as they turn out to matter. Each round ends with a feasible
/// rate (the answer shrunk until it breaks no constraint at all) and a proof over all links of the
/// network (the answer's dual, repaired); the loop ends when the two meet. An unreachable receiver
/// makes both zero.
pub fn multicast(
    network: &Network,
    source: usize,
    receivers: &[usize],
    options: &Options,
) -> Result<Bound, Error> {
    network.check_multicast(source, receivers)?;
    let reachable = network.reachable_from(source);
    if let Some(lost) = receivers.iter().position(|&receiver| !reachable[receiver]) {
        return Ok(nothing(network, source, receivers, lost, &reachable));
    }
    let cliques = match options.medium {
        Medium::CarrierSense => network.senses().maximal_cliques(options.cliques_max).sets,
        Medium::OneRadio | Medium::IndependentSets => Vec::new(),
    };
    let mut master = Master::new(network, source, receivers, options.medium, &cliques);
    let mut best: Option<Bound> = None;
    for round in 1..=options.rounds_max.max(1) {
        let answer = match (master.solve(1e-8), &best) {
            (Ok(answer), _) => answer,
            (Err(_), Some(_)) => break,
            (Err(error), None) => return Err(error),
        };
        let mut certificate = answer.certificate.clone();
        certificate.repair(network, &cliques, &answer.paid);
        let certified = certificate.bound_fps(network);
        let reached = feasible_fps(network, source, receivers, &answer.transmissions, &answer.flows)
            / answer.overload;
        let bound = best.get_or_insert_with(|| Bound {
            rate_fps: 0.0,
            certified_fps: f64::INFINITY,
            transmissions: vec![0.0; network.nodes()],
            rounds: 0,
            certificate: certificate.clone(),
            payload_bits: network.payload_bits(),
        });
        bound.rounds = round;
        if certified < bound.certified_fps {
            bound.certified_fps = certified;
            bound.certificate = certificate;
        }
        if reached > bound.rate_fps {
            bound.rate_fps = reached;
            bound.transmissions =
                answer.transmissions.iter().map(|z| z / answer.overload).collect();
        }
        if std::env::var("BOUND_TRACE").is_ok() {
            eprintln!("{round} {reached} {certified} {}", master.size());
        }
        bound.rate_fps = bound.rate_fps.min(bound.certified_fps);
        if bound.gap() <= options.gap {
            break;
        }
        let rows = master.add_violated_rows(&answer, 1e-3 * options.gap * certified);
        if rows + master.add_missing_columns(&answer) == 0 {
            break;
        }
    }
    best.ok_or_else(|| Error::Solver("no round".to_string()))
}

/// One bound for each receiver alone, in the order of `receivers`.
pub fn single_receivers(
    network: &Network,
    source: usize,
    receivers: &[usize],
    options: &Options,
) -> Result<Vec<Bound>, Error> {
    network.check_multicast(source, receivers)?;
    receivers.iter().map(|&receiver| multicast(network, source, &[receiver], options)).collect()
}

/// Zero, and the cut without a link that proves it.
fn nothing(
    network: &Network,
    source: usize,
    receivers: &[usize],
    lost: usize,
    reachable: &[bool],
) -> Bound {
    let mut potentials = vec![vec![0.0; network.nodes()]; receivers.len()];
    for (value, &inside) in potentials[lost].iter_mut().zip(reachable) {
        *value = if inside { 1.0 } else { 0.0 };
    }
    Bound {
        rate_fps: 0.0,
        certified_fps: 0.0,
        transmissions: vec![0.0; network.nodes()],
        rounds: 0,
        certificate: Certificate {
            source,
            receivers: receivers.to_vec(),
            potentials,
            prices: Prices::Cliques(Vec::new()),
        },
        payload_bits: network.payload_bits(),
    }
}
