//! The multicast bound: from one source to all of a set of receivers at one rate.

mod crowd;

use crate::certificate::{Certificate, Prices};
use crate::error::Error;
use crate::feasible::{carried_fps, cut, raised};
use crate::master::{Answer, Master};
use crate::medium::Medium;
use crate::network::Network;

/// How to compute a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The assumption about the medium.
    pub medium: Medium,
    /// Stop when the relative difference of bound and rate is at most this.
    pub gap: f64,
    /// Stop after this many rounds in any case. The bound is then valid, but less tight.
    pub rounds_max: usize,
    /// Stop when the programs solved so far have this many rows in all; their number goes with the time. The bound is then valid,
    /// but less tight.
    pub work_max: usize,
    /// Stop listing cliques at this number. The bound is then valid, but less tight, and `rate_fps`
    /// and `transmissions` respect the listed cliques only.
    pub cliques_max: usize,
}

impl Default for Options {
    /// Carrier sense, to a gap of 5e-5.
    fn default() -> Options {
        Options {
            medium: Medium::CarrierSense,
            gap: 5e-5,
            rounds_max: 60,
            work_max: usize::MAX,
            cliques_max: 20_000,
        }
    }
}

/// The capacity of the network, enclosed by a feasible rate and a proven bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Frames/s that `transmissions` carry to every receiver, by network coding, in the
    /// model. At most `certified_fps`, and within the gap of it when the computation converged.
    pub rate_fps: f64,
    /// Frames/s that no protocol exceeds: `certificate` proves it. **This is the bound.**
    pub certified_fps: f64,
    /// Frames/s of each node that carry `rate_fps` (z in the literature): the ideal forwarding
    /// rates, credits that a protocol may follow.
    pub transmissions: Vec<f64>,
    /// The number of linear programs solved.
    pub rounds: usize,
    /// Their rows in all.
    pub work: usize,
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

    /// Keeps the answer's proof if it is the best so far.
    fn take_proof(&mut self, network: &Network, answer: &Answer) {
        let mut certificate = answer.certificate.clone();
        let mut paid = answer.paid.clone();
        certificate.repair(network, &mut paid);
        let mut improved = certificate.clone();
        improved.improve(network, &paid);
        // Both prove a bound, whatever the solver did; the smaller one counts.
        for proof in [certificate, improved] {
            let certified = proof.bound_fps(network);
            if certified < self.certified_fps {
                self.certified_fps = certified;
                self.certificate = proof;
            }
        }
    }

    /// Makes the answer feasible and keeps its rate if it is the best so far.
    fn take_rate(
        &mut self,
        network: &Network,
        source: usize,
        receivers: &[usize],
        master: &Master<'_>,
        answer: &Answer,
    ) {
        // An early answer lacks many rows and needs more transmissions; a late one needs hardly any (see `raised`).
        for raise in [0.0, 0.001, 0.01, 0.1, 1.0] {
            let sent = raised(network, &answer.transmissions, &answer.flows, raise);
            let flows = cut(network, &sent, &answer.flows);
            let carried = (receivers.iter().zip(&flows))
                .map(|(&receiver, flows)| carried_fps(network, source, receiver, flows))
                .fold(f64::INFINITY, f64::min);
            let overload = master.overload(&sent, &flows, &answer.values);
            // Dividing by the overload makes the answer fit the medium exactly.
            if carried > self.rate_fps * overload {
                self.rate_fps = carried / overload;
                self.transmissions = sent.iter().map(|z| z / overload).collect();
            }
        }
        self.rate_fps = self.rate_fps.min(self.certified_fps);
    }

    /// The relative difference between the proven bound and the reached rate.
    pub fn gap(&self) -> f64 {
        if self.certified_fps > 0.0 {
            1.0 - self.rate_fps / self.certified_fps
        } else {
            0.0
        }
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
///
/// With more than a dozen receivers the program begins with the farthest ones. What some receivers cannot all have, all of them
/// cannot have either; those that the answer would leave behind are taken in.
pub fn multicast(
    network: &Network,
    source: usize,
    receivers: &[usize],
    options: &Options,
) -> Result<Bound, Error> {
    network.check_multicast(source, receivers)?;
    crowd::multicast(network, source, receivers, options)
}

/// As [`multicast`], for checked receivers, all in one program. The computation may stop as soon as the bound is below
/// `enough` frames/s, since the caller then needs no tighter one.
pub(crate) fn multicast_above(
    network: &Network,
    source: usize,
    receivers: &[usize],
    options: &Options,
    enough: f64,
) -> Result<Bound, Error> {
    let reachable = network.reachable_from(source);
    if let Some(lost) = receivers.iter().position(|&receiver| !reachable[receiver]) {
        return Ok(nothing(network, source, receivers, lost, &reachable));
    }
    let cliques = network.senses().maximal_cliques(options.cliques_max).sets;
    let crowds = network.mostly_senses();
    let crowds = crowds.maximal_cliques(options.cliques_max).sets;
    let mut master = Master::new(
        network,
        source,
        receivers,
        options.medium,
        &cliques,
        &crowds,
    );
    let mut bound = unknown(network, source, receivers);
    // A loose interior-point answer lies in the middle of the optimal ones and violates deeper rows, so fewer rounds
    // are needed. On the outdoor networks of Pacifier a tenth of the gap takes 0.6 times the work of 1e-6.
    let mut tolerance = (0.1 * options.gap).clamp(1e-6, 1e-3);
    for round in 1..=options.rounds_max.max(1) {
        let answer = match master.solve(tolerance) {
            Ok(answer) => answer,
            Err(_) if bound.certified_fps.is_finite() => break,
            Err(error) => return Err(error),
        };
        bound.rounds = round;
        bound.work += master.rows();
        master.find_overfull_sets(&answer.transmissions);
        bound.take_proof(network, &answer);
        bound.take_rate(network, source, receivers, &master, &answer);
        if bound.gap() <= options.gap
            || bound.certified_fps <= enough
            || bound.work >= options.work_max
        {
            break;
        }
        let excess = 1e-2 * options.gap * bound.certified_fps;
        let rows = master.add_violated_rows(&answer, excess);
        if rows + master.add_missing_columns(&answer) == 0 {
            if tolerance < 1e-9 {
                break;
            }
            tolerance *= 1e-2;
        }
    }
    Ok(bound)
}

/// One bound for each receiver alone, in the order of `receivers`.
pub fn single_receivers(
    network: &Network,
    source: usize,
    receivers: &[usize],
    options: &Options,
) -> Result<Vec<Bound>, Error> {
    network.check_multicast(source, receivers)?;
    receivers
        .iter()
        .map(|&receiver| multicast(network, source, &[receiver], options))
        .collect()
}

fn unknown(network: &Network, source: usize, receivers: &[usize]) -> Bound {
    Bound {
        rate_fps: 0.0,
        certified_fps: f64::INFINITY,
        transmissions: vec![0.0; network.nodes()],
        rounds: 0,
        work: 0,
        certificate: Certificate {
            source,
            receivers: receivers.to_vec(),
            potentials: vec![vec![0.0; network.nodes()]; receivers.len()],
            prices: Prices::none(),
        },
        payload_bits: network.payload_bits(),
    }
}

/// The bound zero, proven by the cut that no link crosses.
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
    let certificate = Certificate {
        potentials,
        ..unknown(network, source, receivers).certificate
    };
    Bound {
        certified_fps: 0.0,
        certificate,
        ..unknown(network, source, receivers)
    }
}
