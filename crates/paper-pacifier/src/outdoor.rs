//! The simulation set-up (pacifier IV-A): 50 nodes uniform in a square kilometre, one source, nine receivers.
//!
//! | what | value | source |
//! |---|---|---|
//! | simulator | GloMoSim, its radio and its fading law | IV-A; the law read from its code (physics report 4.4) |
//! | path loss | two-ray ground, 1.5 m | IV-A; GloMoSim's antennas |
//! | transmit power, carrier sense | from 250 m and 460 m, see [`Reading`] | IV-A |
//! | object, packets, batch | 12 MB, 1500 B, 32 | IV-A |
//! | MAC | 802.11b DCF, 2 Mbit/s, no RTS | IV-A; V-C for RTS |
//! | topology | connected by links of at least 20 %, redrawn otherwise | our choice: all receivers of the paper's scenarios can be reached |

use chappe_core::{Db, Dbm, Seed};
use chappe_scenario::InputError;
use chappe_scenario::Network;
use chappe_scenario::plan::{Payload, Plan};
use chappe_sim::{Fading, Profile};

use chappe_lab_pacifier::SYSTEM;

/// The paper's "average radio propagation range" in metres (IV-A).
pub const RANGE: f64 = 250.0;

/// The paper's average sensing range in metres (IV-A).
pub const SENSING: f64 = 460.0;

/// With [`Reading::Edge`], the probability of hearing a node at [`RANGE`], which the paper calls "very low" (IV-A), and
/// of sensing one at [`SENSING`].
pub const AT_RANGE: f64 = 0.05;

/// A topology counts as connected over links on which each node hears at least this share of the other's frames.
pub const NEIGHBOUR_PRR: f64 = 0.2;

/// The largest number of topologies drawn for a seed.
const DRAWS: u64 = 1000;

/// The meaning of a "range", which the paper does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// The distance at which a frame is heard, or sensed, with a probability of [`AT_RANGE`]. It follows "at a distance
    /// of 250 m the probability of hearing a neighbour is very low".
    Edge,
    /// The distance at which the mean power, without fading, equals the threshold.
    MeanPower,
}

/// The choices that the paper leaves open; the sensitivity table varies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// The meaning of the paper's ranges.
    pub reading: Reading,
    /// Whether fading follows Rayleigh's law instead of GloMoSim's milder one.
    pub rayleigh: bool,
    /// Whether a frame that becomes ready while the medium is idle for less than DIFS starts with a back-off.
    pub difs_backoff: bool,
}

impl Setting {
    /// The setting of all figures but the sensitivity table.
    pub const FIGURES: Setting = Setting {
        reading: Reading::Edge,
        rayleigh: false,
        difs_backoff: true,
    };

    fn fading(self) -> (Fading, &'static str) {
        match self.rayleigh {
            true => (Fading::Rayleigh, "rayleigh"),
            false => (Fading::GlomosimRayleigh, "glomosim"),
        }
    }

    /// The transmit power and carrier sense threshold for which [`RANGE`] and [`SENSING`] have the meaning of the reading,
    /// with GloMoSim's reception threshold of -81 dBm. Rounded to a thousandth of a decibel.
    pub fn radio(self) -> (Dbm, Dbm) {
        let profile = Profile::glomosim();
        let margin = match self.reading {
            Reading::Edge => exceeded(self.fading().0, AT_RANGE),
            Reading::MeanPower => Db(0.0),
        };
        let loss = |metres| profile.path_loss.loss(metres);
        let power = profile.lock.power + loss(RANGE) - profile.antennas - margin;
        let sense = power - loss(SENSING) + profile.antennas + margin;
        let rounded = |power: Dbm| Dbm((power.0 * 1e3).round() / 1e3);
        (rounded(power), rounded(sense))
    }
}

/// The power gain that fading exceeds with probability `p`: from P(g > x) = exp(-x) for Rayleigh's law and
/// exp(-pi x^2 / 4) for GloMoSim's ([`Fading::GlomosimRayleigh`]).
fn exceeded(fading: Fading, p: f64) -> Db {
    let exponent = -p.ln();
    match fading {
        Fading::GlomosimRayleigh => Db::from_linear((4.0 * exponent / std::f64::consts::PI).sqrt()),
        _ => Db::from_linear(exponent),
    }
}

/// The plan of the outdoor scenarios. A seed selects one of them.
pub fn plan(bytes: usize, setting: Setting) -> Result<Plan, InputError> {
    let (power, sense) = setting.radio();
    let fading = setting.fading().1;
    let difs_backoff = setting.difs_backoff;
    let text = format!(
        r#"
title = "Pacifier, simulation"
[network]
generator = "random"
nodes = 50
area = ["1000 m", "1000 m"]
[radio]
profile = "glomosim"
fading = "{fading}"
tx_power = "{:.3} dBm"
carrier_sense = "{:.3} dBm"
rate = "2 Mbit/s"
[mac]
difs_backoff = {difs_backoff}
[[transfer]]
receivers = 9
bytes = "{bytes} B"
"#,
        power.0, sense.0
    );
    Plan::parse(&[&SYSTEM], "outdoor", &text)
}

/// The first connected topology of a seed: its own, or that of one of its children in turn.
pub fn network(plan: &Plan, seed: u64) -> Result<Network, InputError> {
    // Rejected topologies should not generate an object of 12 MB each.
    let mut light = plan.clone();
    for transfer in &mut light.transfers {
        transfer.payload = Payload::Random(1);
    }
    let candidates = (0..DRAWS).map(|draw| {
        if draw == 0 {
            seed
        } else {
            Seed(seed).child(draw).0
        }
    });
    let found = candidates
        .into_iter()
        .find(|&seed| light.network(seed).is_ok_and(|network| connected(&network)));
    plan.network(found.unwrap_or(seed))
}

/// Whether links of [`NEIGHBOUR_PRR`] connect all nodes.
fn connected(network: &Network) -> bool {
    let nodes = network.medium.nodes();
    let heard = |a: usize, b: usize| network.delivery[a * nodes + b] >= NEIGHBOUR_PRR;
    let (mut seen, mut open) = (vec![false; nodes], vec![0]);
    seen[0] = true;
    while let Some(node) = open.pop() {
        for (other, seen) in seen.iter_mut().enumerate() {
            if !*seen && heard(node, other) && heard(other, node) {
                *seen = true;
                open.push(other);
            }
        }
    }
    seen.into_iter().all(|seen| seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: Dbm, b: f64) -> bool {
        (a.0 - b).abs() < 0.01
    }

    /// By hand: two-ray loss at 250 m is 88.87 dB; 5 % of GloMoSim's gains exceed 1.953 (2.91 dB), 5 % of Rayleigh's
    /// 2.996 (4.77 dB); 460 m lie 40 log10(460 / 250) = 10.59 dB beyond 250 m.
    #[test]
    fn powers_match_the_readings() {
        let setting = Setting::FIGURES;
        let (power, sense) = setting.radio();
        assert!(near(power, 4.97) && near(sense, -91.59), "{power} {sense}");
        let (power, sense) = Setting {
            rayleigh: true,
            ..setting
        }
        .radio();
        assert!(near(power, 3.10) && near(sense, -91.59), "{power} {sense}");
        let (power, sense) = Setting {
            reading: Reading::MeanPower,
            ..setting
        }
        .radio();
        assert!(near(power, 7.87) && near(sense, -91.59), "{power} {sense}");
    }

    /// Goal: simulated radios have the ranges of the reading. Method: two nodes 250 m apart; the delivery ratio and the
    /// probability of sensing at 460 m, as the simulator computes them.
    #[test]
    fn one_frame_in_twenty_is_heard_at_the_range() {
        for rayleigh in [false, true] {
            let plan = plan(
                100_000,
                Setting {
                    rayleigh,
                    ..Setting::FIGURES
                },
            )
            .unwrap();
            let places = [0.0, RANGE, SENSING].map(|x| chappe_sim::Position::new(x, 0.0));
            let medium = chappe_sim::Medium::geometric(&places, &plan.profile, Seed(1)).unwrap();
            let (mode, octets) = plan.settings.frame();
            let heard = medium.prr(0, 1, mode, octets);
            assert!((heard - AT_RANGE).abs() < 0.002, "{heard}");
            assert!((medium.sense_probability(0, 2) - AT_RANGE).abs() < 0.002);
        }
    }
}
