//! The multicast bound of a cast over the links as measured, at the members' sending rate.
//!
//! Members choose their rates, and the network is unknown: radios that share the air, or wires that do not. The bound
//! therefore assumes that each member sends all the time at its rate and receives from all others meanwhile. A bound for one
//! half-duplex radio per member, as for simulated networks, would be too low: a relay over Ethernet, or at a rate far below
//! the radio's, receives while it sends.

use std::collections::BTreeMap;

use chappe_bound::{Medium, Network, Options, multicast};
use chappe_core::Bitrate;
use chappe_pacifier::Links;

/// The links' mean delivery ratios over all samples.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    /// Per link: the sum of the ratios, and their number.
    seen: BTreeMap<(u16, u16), (f64, u32)>,
}

impl Capacity {
    /// Adds a sample of the links as measured now.
    pub fn sample(&mut self, links: &Links) {
        let nodes = links.nodes() as u16;
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        for (from, to) in pairs {
            let ratio = links.ratio(from, to);
            if ratio > 0.0 {
                let (sum, looks) = self.seen.entry((from, to)).or_default();
                (*sum, *looks) = (*sum + ratio, *looks + 1);
            }
        }
    }

    /// The bound from `source` to all `sinks` in bit/s; a frame carries `payload` octets of data and takes `frame` octets
    /// of `rate`. None where no path leads to all of them, and in the small program for routers: a solver of linear programs
    /// would make it too large for them.
    pub fn bps(
        &self,
        source: u16,
        sinks: &[u16],
        payload: usize,
        frame: usize,
        rate: Bitrate,
    ) -> Option<f64> {
        if !cfg!(feature = "full") {
            return None;
        }
        let mut nodes: Vec<u16> = self.seen.keys().flat_map(|link| [link.0, link.1]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let place = |node: u16| nodes.iter().position(|&known| known == node);
        let mut delivery = vec![0.0; nodes.len() * nodes.len()];
        for (&(from, to), &(sum, looks)) in &self.seen {
            let ratio = (sum / f64::from(looks.max(1))).min(1.0);
            *delivery.get_mut(place(from)? * nodes.len() + place(to)?)? = ratio;
        }
        let sinks: Option<Vec<usize>> = sinks.iter().map(|&node| place(node)).collect();
        let airtime = frame as f64 * 8.0 / rate.0.max(1) as f64;
        let deaf = vec![0.0; delivery.len()];
        let payload = u32::try_from(payload).ok()?;
        let network = Network::new(delivery, vec![airtime; nodes.len()], payload, deaf).ok()?;
        let options = Options {
            // No member senses another: each is limited by its own airtime only.
            medium: Medium::CarrierSense,
            ..Options::default()
        };
        let bound = multicast(&network, place(source)?, &sinks?, &options).ok()?;
        Some(bound.goodput_bps()).filter(|bound| *bound > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A relay that receives while it sends forwards at its full rate: by hand 0.8 of the rate's payload over links of
    /// 80 %. Counted with one radio each it was 0.44, and casts between wires reached 127 % of that.
    #[test]
    fn a_relay_sends_and_receives_at_once() {
        let line = vec![0.0, 0.8, 0.0, 0.8, 0.0, 0.8, 0.0, 0.8, 0.0];
        let mut capacity = Capacity::default();
        capacity.sample(&Links::new(3, line).unwrap());
        let rate = Bitrate(10_000_000);
        let bound = capacity.bps(0, &[2], 1400, 1400, rate).unwrap();
        assert!((bound - 8e6).abs() < 8e3, "{bound}");
        // Headers take their share, and a receiver next to the sender hears no relay.
        let bound = capacity.bps(0, &[1], 700, 1400, rate).unwrap();
        assert!((bound - 4e6).abs() < 4e3, "{bound}");
    }

    /// Ratios are averaged over the samples that have the link; there is no bound to an unknown member.
    #[test]
    fn samples_are_averaged() {
        let mut capacity = Capacity::default();
        for ratio in [0.0, 0.6, 1.0] {
            capacity.sample(&Links::new(2, vec![0.0, ratio, ratio, 0.0]).unwrap());
        }
        let bound = capacity.bps(0, &[1], 100, 100, Bitrate(1_000_000)).unwrap();
        assert!((bound - 0.8e6).abs() < 1e3, "{bound}");
        assert_eq!(capacity.bps(0, &[7], 100, 100, Bitrate(1_000_000)), None);
    }
}
