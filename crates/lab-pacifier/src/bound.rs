//! The throughput that no protocol can exceed on a network: a linear program over loss, broadcast and carrier sense.

use chappe_bound::{Medium as Region, Options, mean_bound_cheap, multicast, single_receivers};
use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::Flow;
use chappe_scenario::{Network, Transfer};
use chappe_sim::Rule;
use serde::{Deserialize, Serialize};

use super::Pacifier;
use super::interference::{self, ideal};

/// Where fades outlast a frame, the bound separates the transmissions of two nodes only if each senses more than this
/// share of the other's frames.
const SENSES: f64 = 0.99;

/// Relative gap between the computed bound and the true optimum. The result is a proven bound whatever the gap.
const GAP: f64 = 1e-2;
/// Rows of all programs of a bound. Fifty nodes and nine receivers take up to 31,000, dense networks more; then the bound is less tight.
const WORK: usize = 100_000;
/// The gap of the bound under interference. A closer proof takes longer, and `chappe sim` waits for it. A choice; not measured against others.
const LOOSE: f64 = 0.25;

/// The bounds of one transfer, in bits of payload per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferBound {
    /// The largest rate that all receivers can have simultaneously: the bound of the slowest one.
    pub worst_bps: f64,
    /// The largest rate of each receiver if it were alone; empty if not computed.
    pub single_bps: Vec<f64>,
    /// The bound of the receivers' mean rate, if computed.
    pub mean_bps: Option<f64>,
    /// Frames that are on the air simultaneously at the bound of the slowest receiver.
    pub at_once: f64,
    /// The best schedule of one frame at a time, if computed.
    pub serial: Option<Serial>,
}

/// The best schedule that never has two frames on the air: the least transmissions that bring a packet to all receivers, by coded
/// broadcasts. Nothing disturbs a frame then, so a central scheduler can reach this rate on any radio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Serial {
    /// Payload bits per second of every receiver, with DIFS between frames.
    pub bps: f64,
    /// Transmissions for a packet: no protocol needs fewer.
    pub frames: f64,
}

/// Which bounds to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Only the bound of all receivers together.
    Slowest,
    /// Also the best serial schedule, and the bound of each receiver alone: one more linear program for each receiver.
    Each,
}

impl TransferBound {
    /// The name of this bound in results.
    pub const NAME: &'static str = "multicast LP, carrier sense";
    /// The name of [`TransferBound::under_interference`].
    pub const UNDER_INTERFERENCE: &'static str = "multicast LP, interference";

    /// Computes the bounds of a transfer on a network.
    pub fn of(
        with: &Pacifier,
        net: &Network,
        transfer: &Transfer,
        depth: Depth,
    ) -> Result<TransferBound, RunError> {
        let failed = |error: chappe_bound::Error| RunError::Defect(format!("the bound: {error}"));
        let network = network(with, net).map_err(failed)?;
        // `CarrierSense` ignores that a radio cannot send and receive at once. Adding that constraint hardly tightens the
        // bound on such meshes, and takes two to three times as long.
        let options = Options {
            medium: Region::CarrierSense,
            gap: GAP,
            work_max: WORK,
            ..Options::default()
        };
        let (from, to) = (transfer.source, &transfer.receivers);
        let worst = multicast(&network, from, to, &options).map_err(failed)?;
        let singles = match depth {
            Depth::Slowest => Vec::new(),
            Depth::Each => single_receivers(&network, from, to, &options).map_err(failed)?,
        };
        let mean = (depth == Depth::Each).then(|| mean_bound_cheap(&singles, Some(&worst)));
        let airtime = network.airtime_s(from);
        let serial = match depth {
            Depth::Slowest => None,
            Depth::Each => Some(Serial::of(&network, from, to, &options).map_err(failed)?),
        };
        Ok(TransferBound {
            worst_bps: worst.goodput_bps(),
            single_bps: singles.iter().map(|bound| bound.goodput_bps()).collect(),
            mean_bps: mean.map(|mean| mean.goodput_bps()),
            at_once: worst.transmissions.iter().sum::<f64>() * airtime,
            serial,
        })
    }

    /// The bound of members that send whether they sense frames or not: no schedule exceeds it. `None` where the program proves nothing: on
    /// networks of more than a hundred nodes, with error curves, and with laws of fading that it does not know.
    pub fn under_interference(
        with: &Pacifier,
        net: &Network,
        transfer: &Transfer,
    ) -> Result<Option<TransferBound>, RunError> {
        let rule = net.medium.profile().rule;
        if net.medium.nodes() > interference::NODES_MAX || !matches!(rule, Rule::SnrThreshold(_)) {
            return Ok(None);
        }
        let found = ideal(with, net, transfer, LOOSE)?;
        Ok(found.map(|schedule| TransferBound {
            worst_bps: schedule.goodput_bps(),
            single_bps: Vec::new(),
            mean_bps: None,
            at_once: schedule.at_once(),
            serial: None,
        }))
    }

    /// An error message if a receiver got more than the network can carry.
    ///
    /// The bound holds for the mean of a long transfer. The number of transmissions of n packets has a relative standard
    /// deviation of at most 1 / sqrt(n), so a short transfer may exceed the bound by chance. Four deviations are allowed.
    pub fn exceeded(&self, flows: &[&Flow], payload: usize) -> Option<String> {
        let lucky = |flow: &Flow, bound: f64| {
            let packets = (flow.offered_bytes as f64 / payload.max(1) as f64).max(1.0);
            flow.goodput_bps > bound * (1.0 + 4.0 / packets.sqrt())
        };
        let said = |flow: &Flow, bound: f64| {
            let (sink, got) = (flow.sink, flow.goodput_bps);
            format!(
                "receiver {sink} got {got:.0} bit/s, but this network can carry at most {bound:.0} bit/s to it"
            )
        };
        let slowest = flows
            .iter()
            .min_by(|a, b| a.goodput_bps.total_cmp(&b.goodput_bps));
        let slowest = slowest.map(|flow| (*flow, self.worst_bps));
        let singles = flows.iter().copied().zip(self.single_bps.iter().copied());
        let mut all = slowest.into_iter().chain(singles);
        all.find(|(flow, bound)| lucky(flow, *bound))
            .map(|(flow, bound)| said(flow, bound))
    }
}

impl Serial {
    /// Where all nodes sense each other, frames never overlap: the bound of such a network is the best serial schedule, to within
    /// the gap of the computation. The inverse of its rate is a packet's total airtime.
    fn of(
        network: &chappe_bound::Network,
        from: usize,
        to: &[usize],
        options: &Options,
    ) -> Result<Serial, chappe_bound::Error> {
        let nodes = network.nodes();
        let pairs = (0..nodes * nodes).map(|pair| network.delivery(pair / nodes, pair % nodes));
        let one_domain = chappe_bound::Network::new(
            pairs.collect(),
            (0..nodes).map(|node| network.airtime_s(node)).collect(),
            (network.payload_bits() / 8.0) as u32,
            vec![1.0; nodes * nodes],
        )?
        .with_gap(network.channel_s(from) - network.airtime_s(from))?;
        let least = multicast(&one_domain, from, to, options)?;
        Ok(Serial {
            bps: least.goodput_bps(),
            frames: 1.0 / (least.certified_fps * one_domain.channel_s(from)),
        })
    }
}

/// The network as the bound needs it: true delivery ratios, least airtimes, probabilities of sensing.
fn network(with: &Pacifier, net: &Network) -> Result<chappe_bound::Network, chappe_bound::Error> {
    let nodes = net.medium.nodes();
    let airtime: Duration = with.mode.airtime(with.protocol.frame_octets());
    // The bound assumes independent fading for each frame. Where fades last longer, only pairs that practically always
    // sense each other may count as sensing.
    let lasting = net.medium.profile().coherence > airtime;
    let sensing = (0..nodes * nodes)
        .map(|pair| (pair / nodes, pair % nodes))
        .map(|(a, b)| {
            let there = net.medium.sense_probability(a, b);
            let both = there.min(net.medium.sense_probability(b, a));
            if !lasting {
                there
            } else {
                f64::from(u8::from(both > SENSES))
            }
        });
    // The least time between two frames: DIFS without back-off.
    let difs = with.mac.sifs + with.mac.slot * 2;
    chappe_bound::Network::new(
        net.delivery.clone(),
        vec![airtime.as_secs_f64(); nodes],
        with.protocol.config.common().payload as u32,
        sensing.collect(),
    )?
    .with_gap(difs.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SYSTEM;
    use chappe_bound::overfull_sets;
    use chappe_core::{Address, OverMac, Purpose, Rate, Seed};
    use chappe_mac::dot11::{Config, Dot11};
    use chappe_scenario::Plan;
    use chappe_sim::{AirTime, Fading, Medium, Profile, Simulator, World, topology};
    use chappe_testkit::Saturated;

    fn flow(goodput_bps: f64, offered_bytes: u64) -> Flow {
        Flow {
            offered_bytes,
            delivered_bytes: offered_bytes,
            goodput_bps,
            ..Flow::named("r1")
        }
    }

    /// A long transfer above its bound is an error; a short one may exceed it by chance.
    #[test]
    fn transfers_above_their_bound_are_reported() {
        let bound = TransferBound {
            worst_bps: 1e6,
            single_bps: vec![2e6, 1e6],
            mean_bps: None,
            at_once: 1.0,
            serial: None,
        };
        let reported = |first: f64, second: f64, bytes: u64| {
            let flows = [flow(first, bytes), flow(second, bytes)];
            bound
                .exceeded(&flows.iter().collect::<Vec<_>>(), 1500)
                .is_some()
        };
        assert!(!reported(1.9e6, 0.9e6, 12_000_000));
        assert!(
            reported(2.2e6, 0.9e6, 12_000_000),
            "one receiver above its own bound"
        );
        assert!(
            reported(1.9e6, 1.1e6, 12_000_000),
            "the slowest above the bound of all"
        );
        assert!(!reported(1.9e6, 1.1e6, 15_000), "ten packets may be lucky");
    }

    /// Two nodes, one link of 0.5: the bound is half the frames that fit, by hand.
    #[test]
    fn the_bound_of_one_link_matches_a_hand_calculation() {
        let text = "[network]\nlinks = [[0, 0.5], [0.5, 0]]\n[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"3 kB\"\n";
        let plan = Plan::parse(&[&SYSTEM], "pair", text).unwrap();
        let network = plan.network(1).unwrap();
        let bound = TransferBound::of(
            Pacifier::of(&plan).unwrap(),
            &network,
            &network.transfers[0],
            Depth::Each,
        )
        .unwrap();
        // 1549 octets of frame and 36 around it at 2 Mbit/s after 192 us, then DIFS.
        let frame_s = 192e-6 + (1549.0 + 36.0) * 8.0 / 2e6 + 50e-6;
        let expected = 0.5 * 1500.0 * 8.0 / frame_s;
        assert!(
            (bound.worst_bps / expected - 1.0).abs() < 0.01,
            "{} {expected}",
            bound.worst_bps
        );
        assert!((bound.single_bps[0] / expected - 1.0).abs() < 0.01);
        let serial = bound.serial.unwrap();
        assert!((serial.bps / expected - 1.0).abs() < 0.01 && (serial.frames - 2.0).abs() < 0.02);
    }

    /// Goal: the serial schedule counts the frames of all nodes, and knows no overlap. Method: a chain of four perfect links takes four
    /// frames for a packet, although its ends do not sense each other.
    #[test]
    fn a_packet_over_a_chain_takes_a_frame_for_each_link() {
        let mut links = vec![vec!["0"; 5]; 5];
        for near in 0..4 {
            links[near][near + 1] = "1";
            links[near + 1][near] = "1";
        }
        let rows: Vec<String> = links
            .iter()
            .map(|row| format!("[{}]", row.join(", ")))
            .collect();
        let rows = rows.join(", ");
        let text = format!(
            "[network]\nlinks = [{rows}]\n[[transfer]]\nsource = 0\nreceivers = [4, 2]\nbytes = \"3 kB\"\n"
        );
        let plan = Plan::parse(&[&SYSTEM], "chain", &text).unwrap();
        let network = plan.network(1).unwrap();
        let with = Pacifier::of(&plan).unwrap();
        let bound = TransferBound::of(with, &network, &network.transfers[0], Depth::Each).unwrap();
        let serial = bound.serial.unwrap();
        assert!((serial.frames - 4.0).abs() < 0.04, "{}", serial.frames);
        assert!(serial.bps < bound.worst_bps * 1.01);
    }

    /// The heaviest row found and all airtime together, of ten saturated stations in a square of `side` metres.
    fn saturated(side: f64, cw: u16, fading: Fading, seed: u64) -> (f64, f64) {
        let seed = Seed(seed);
        let profile = Profile {
            fading,
            ..Profile::glomosim()
        };
        let medium =
            Medium::geometric(&topology::random(10, side, side, seed), &profile, seed).unwrap();
        let sensing = (0..100).map(|pair| medium.sense_probability(pair / 10, pair % 10));
        let sensing = sensing.collect();
        let config = Config {
            cw_min: cw,
            ..Config::dot11b(Rate::Dsss2)
        };
        let node = |i: u16| {
            let random = seed.stream(Purpose::Node(i.into()));
            let mac = Dot11::new(config, Address::node(i), random);
            Box::new(OverMac::new(
                mac,
                Saturated::towards(Address::BROADCAST, 1500),
            ))
        };
        let nodes = (0..10).map(node).collect();
        let mut simulator = Simulator::new(World::new(medium), nodes, seed, ()).unwrap();
        let seconds = 60;
        simulator.run_until(AirTime::from_secs(seconds));
        let counters = simulator.counters();
        let airtime: f64 = (counters.nodes.iter())
            .map(|node| node.airtime.as_secs_f64())
            .sum();
        let each = airtime / counters.frames as f64;
        let network =
            chappe_bound::Network::new(vec![0.0; 100], vec![each; 10], 1500, sensing).unwrap();
        let network = network.with_gap(50e-6).unwrap();
        let sent: Vec<f64> = (counters.nodes.iter())
            .map(|node| node.frames as f64 / seconds as f64)
            .collect();
        (
            overfull_sets(&network, &sent, -1.0)[0].1,
            airtime / seconds as f64,
        )
    }

    /// Goal: the simulator's carrier sense satisfies the constraints (rows) of the bound. Method: ten saturated
    /// broadcasters, Rayleigh fading, cells from dense to wide. With a contention window of 8191 slots ties are rare
    /// (about n / cw), and no row may be exceeded by more than ties and statistics explain. With 31 slots, ties alone put
    /// n tau / (1 - (1 - tau)^n) = 1.29 frames into a busy period of a cell where all sense all (tau = 2 / 33).
    #[test]
    fn simulated_carrier_sense_satisfies_the_rows_of_the_bound() {
        for (side, seed) in [(200.0, 1), (400.0, 2), (600.0, 3), (800.0, 4), (1000.0, 5)] {
            let (rare, air) = saturated(side, 8191, Fading::Rayleigh, seed);
            let (usual, more) = saturated(side, 31, Fading::Rayleigh, seed);
            println!(
                "{side} m: heaviest row {rare:.3} of {air:.2} on the air; with 31 slots {usual:.3} of {more:.2}"
            );
            assert!(rare < 1.01, "{side} m: {rare}");
            assert!(usual < 1.31, "{side} m: {usual}");
        }
        let (all, _) = saturated(50.0, 31, Fading::None, 6);
        assert!((1.2..1.31).contains(&all), "{all}");
    }
}
