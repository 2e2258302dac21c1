//! How strongly probes arrive, as radios tell with each frame: delivery ratios say nothing of links that lose hardly any.
//!
//! With Rayleigh's fading the power of a frame is exponential, so of those above the least power that is received the mean is this least power
//! more than of all: what arrives tells both.

use chappe_pacifier::Links;
use chappe_sim::{Heard, Recorder};

/// Ratios of links that tell the least power: both what arrives and what is lost are many probes.
const TELLING: std::ops::RangeInclusive<f64> = 0.2..=0.8;
/// Links of at least this ratio have their power from what arrives. Others have fewer such frames, and ratios tell them well.
const STRONG: f64 = 0.9;

/// Sums over the probes that arrived.
#[derive(Clone, Debug)]
pub struct Strengths {
    nodes: usize,
    /// The power in milliwatt and the number of probes by sender times the number of nodes plus hearer; empty if probes do not count.
    sums: Vec<(f64, u32)>,
}

impl Strengths {
    /// Sums of no probes; they stay so unless probes count.
    pub(super) fn new(nodes: usize, counts: bool) -> Strengths {
        let pairs = if counts { nodes * nodes } else { 0 };
        Strengths {
            nodes,
            sums: vec![(0.0, 0); pairs],
        }
    }

    /// The mean power of the probes that arrived.
    fn mean(&self, pair: usize) -> Option<f64> {
        let &(sum, number) = self.sums.get(pair)?;
        (number > 0).then(|| sum / f64::from(number))
    }

    /// The mean power of a link over the least that is received, by sender and hearer, row-major; `None` for links whose ratios tell it.
    pub(super) fn over_least(&self, links: &Links) -> Vec<Option<f64>> {
        let ratio =
            |pair: usize| links.ratio((pair / self.nodes) as u16, (pair % self.nodes) as u16);
        let pairs = 0..self.nodes * self.nodes;
        let told = pairs.clone().filter(|&pair| TELLING.contains(&ratio(pair)));
        let least = told.filter_map(|pair| {
            let faint = -ratio(pair).ln();
            Some(self.mean(pair)? * faint / (1.0 + faint))
        });
        let mut least: Vec<f64> = least.collect();
        least.sort_by(f64::total_cmp);
        let least = least.get(least.len() / 2).copied();
        let over = |pair: usize| {
            let over = self.mean(pair)? / least? - 1.0;
            (ratio(pair) >= STRONG && over > 0.0).then_some(over)
        };
        pairs.map(over).collect()
    }
}

impl Recorder for Strengths {
    const NODES: bool = false;

    fn wants_frames(&self) -> bool {
        !self.sums.is_empty()
    }

    fn wants_unheard(&self) -> bool {
        false
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        let pair = frame.from * self.nodes + frame.node;
        if let (Ok(()), Some((sum, number))) = (frame.outcome, self.sums.get_mut(pair)) {
            *sum += frame.power.to_dbm().to_milliwatt().0;
            *number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of exponential powers with a mean of 40 those above 2 have a mean of 42, and arrive with the probability exp(-2 / 40); those of a mean of 4
    /// have 6 and exp(-2 / 4). So the strong link has 20 times the least power, although collisions cost it another tenth, and the weak one is left to its ratio.
    #[test]
    fn what_arrives_tells_powers_of_strong_links() {
        let ratios = [1.0, 0.9 * f64::exp(-0.05) + 0.05, f64::exp(-0.5), 1.0];
        let links = Links::new(2, ratios.to_vec()).unwrap();
        let mut strengths = Strengths::new(2, true);
        strengths.sums[1] = (42.0 * 500.0, 500);
        strengths.sums[2] = (6.0 * 300.0, 300);
        let over = strengths.over_least(&links);
        assert!((over[1].unwrap() - 20.0).abs() < 1e-9, "{over:?}");
        assert_eq!((over[0], over[2], over[3]), (None, None, None));
    }

    /// Goal: without probes no link has a strength.
    #[test]
    fn no_probes_tell_nothing() {
        let links = Links::new(2, vec![1.0; 4]).unwrap();
        assert_eq!(Strengths::new(2, false).over_least(&links), [None; 4]);
    }
}
