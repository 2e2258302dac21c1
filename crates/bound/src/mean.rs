//! The bound on the mean of the receivers' throughputs, when each may finish at its own time.
//!
//! Let the receivers finish a file of F bits at times T_1 <= ... <= T_n. At T_m some m receivers
//! have all of it, so T_m >= F / R_m, where R_m is the largest multicast rate over all sets of m
//! receivers. Hence mean of F / T_m <= (R_1 + ... + R_n) / n. Valid for any order of service: it
//! does not ask that one schedule reach all R_m.

use crate::error::Error;
use crate::multicast::{Bound, Options, multicast_above, single_receivers};
use crate::network::Network;
use crate::order;

/// Most receivers for which [`mean_bound_exact`] looks at subsets.
pub const RECEIVERS_MAX: usize = 16;

/// The mean bound and what it is the mean of.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanBound {
    /// Frames/s that no protocol exceeds with m + 1 receivers at once, at index m; falling.
    pub best_of_fps: Vec<f64>,
    /// The number of multicast programs solved.
    pub programs: usize,
    /// Useful bits in one frame.
    pub payload_bits: f64,
}

impl MeanBound {
    /// Mean throughput per receiver, frames/s.
    pub fn rate_fps(&self) -> f64 {
        self.best_of_fps.iter().sum::<f64>() / self.best_of_fps.len() as f64
    }

    /// Mean throughput per receiver, bit/s of payload.
    pub fn goodput_bps(&self) -> f64 {
        self.rate_fps() * self.payload_bits
    }
}

/// A valid mean bound from single-receiver bounds alone: a set of m receivers is served no faster
/// than its slowest member alone, so R_m is at most the m-th largest single-receiver bound.
///
/// `singles` are the bounds of all receivers, one each (see [`single_receivers`]); `worst` is the
/// bound for all of them at once, if it is known, and tightens the last term.
pub fn mean_bound_cheap(singles: &[Bound], worst: Option<&Bound>) -> MeanBound {
    let mut best_of_fps: Vec<f64> = singles.iter().map(|bound| bound.certified_fps).collect();
    order::falling(&mut best_of_fps, |&fps| fps);
    if let (Some(last), Some(worst)) = (best_of_fps.last_mut(), worst) {
        *last = last.min(worst.certified_fps);
    }
    MeanBound {
        best_of_fps,
        programs: singles.len() + usize::from(worst.is_some()),
        payload_bits: singles.first().map_or(0.0, |bound| bound.payload_bits),
    }
}

/// The mean bound with every R_m exact, up to about twice the gap of `options`; never too low.
///
/// Not all 2^n - 1 sets are solved: a set's rate is at most that of any of its parts, so for each
/// size the sets are solved by falling limit until no limit is above the best rate found. With 50
/// nodes and 9 receivers 20 to 60 programs were left, 8 to 13 s of work; a gap of 1e-3 saves some.
pub fn mean_bound_exact(
    network: &Network,
    source: usize,
    receivers: &[usize],
    options: &Options,
) -> Result<MeanBound, Error> {
    let count = receivers.len();
    if count > RECEIVERS_MAX {
        return Err(Error::TooManyReceivers {
            got: count,
            limit: RECEIVERS_MAX,
        });
    }
    let singles = single_receivers(network, source, receivers, options)?;
    // By set of receivers, as a bit mask: solved sets, and limits for all.
    let mut limit = vec![f64::INFINITY; 1 << count];
    for (index, bound) in singles.iter().enumerate() {
        limit[1 << index] = bound.certified_fps;
    }
    let mut programs = count;
    let mut best_of_fps = vec![singles.iter().map(|b| b.certified_fps).fold(0.0, f64::max)];
    for size in 2..=count {
        let sets = || (1usize..1 << count).filter(|set| set.count_ones() as usize == size);
        for set in sets() {
            limit[set] = (0..count)
                .filter(|index| set >> index & 1 == 1)
                .map(|index| limit[set & !(1 << index)])
                .fold(f64::INFINITY, f64::min);
        }
        // The highest limit is R_m, to within the gap, as soon as some set of the size gets there.
        let highest = |limit: &[f64]| sets().max_by(|&a, &b| limit[a].total_cmp(&limit[b]));
        let mut solved = vec![false; 1 << count];
        let mut reached: f64 = 0.0;
        while let Some(set) = highest(&limit).filter(|&set| !solved[set]) {
            let near = reached * (1.0 + 2.0 * options.gap);
            if limit[set] <= near {
                break;
            }
            let members: Vec<usize> = (0..count)
                .filter(|index| set >> index & 1 == 1)
                .map(|index| receivers[index])
                .collect();
            let bound = multicast_above(network, source, &members, options, near)?;
            limit[set] = limit[set].min(bound.certified_fps);
            reached = reached.max(bound.rate_fps);
            solved[set] = true;
            programs += 1;
        }
        best_of_fps.push(highest(&limit).map_or(0.0, |set| limit[set]));
    }
    Ok(MeanBound {
        best_of_fps,
        programs,
        payload_bits: network.payload_bits(),
    })
}
