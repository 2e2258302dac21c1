//! The multicast bound under interference: which frames may be on the air together, and what each receiver then gets.
//!
//! The bound of [`multicast()`](crate::multicast()) knows loss and carrier sense, and lets frames overlap wherever nodes do not sense each other. Here a
//! frame also suffers from all others that are on the air with it. No protocol exceeds this bound, with carrier sense or
//! with a schedule from above.
//!
//! A *set* is the senders on the air at one moment. Over time shares of sets the program is that of the other bound, with
//! receptions that depend on the set. Sets are generated where the prices say that one more would gain; the proof is a
//! search over all sets ([`Interference::heaviest`]), which says how far its answer may lie under the true maximum.

mod interior;
mod plan;
mod search;
mod senders;

use std::f64::consts::FRAC_PI_4;

use crate::error::Error;

pub use plan::{Schedule, ScheduleOptions, schedule};
pub use search::Heaviest;

/// What frames do to each other.
///
/// The probability that j receives i's frame beside the frames of a set S is `delivery(i, j)` times `survival(i, j, k)` for
/// every other k in S, and zero if j sends itself. That is exact for Rayleigh fading and a threshold of signal to noise and
/// interference. For every law of fading whose survival function is log-concave (Rician, Nakagami from 1 on, none) the product is at
/// least the true probability, so the bound holds; a schedule of [`schedule()`] may then carry less than it says.
///
/// A frame that overlaps several others in part is not better off than the mean over its moments, so frames need not
/// begin together for the bound to hold.
#[derive(Clone, Debug)]
pub struct Interference {
    nodes: usize,
    /// Undisturbed delivery ratios, 0 to 1; row-major: from, to.
    delivery: Vec<f64>,
    /// Row-major: from, to, beside.
    survival: Vec<f64>,
    airtime_s: f64,
    payload_bytes: u32,
}

/// Links that deliver less count as undisturbed, which can only raise a bound.
const WEAK: f64 = 1e-4;

/// Gains over which [`Interference::glomosim`] takes the mean.
const GAINS: usize = 200;

/// Mean powers and thresholds of a network whose fading is drawn for each frame.
#[derive(Clone, Debug)]
pub struct Rayleigh<'a> {
    /// Row-major: mean power in milliwatt at the second node of the first one's frames.
    pub power: &'a [f64],
    /// Thermal noise at each receiver, in milliwatt.
    pub noise: f64,
    /// The least ratio of signal to noise and interference that is received, linear.
    pub ratio: f64,
    /// The least power that is received, in milliwatt.
    pub least: f64,
}

impl Rayleigh<'_> {
    /// The least power that is received without interference.
    fn needed(&self) -> f64 {
        f64::max(self.ratio * self.noise, self.least)
    }
}

/// Tables of delivery and survival: `heard(signal)` of a frame alone, `survives(signal, other)` beside one other, by mean powers.
fn tables(
    nodes: usize,
    power: &[f64],
    heard: impl Fn(f64) -> f64,
    survives: impl Fn(f64, f64) -> f64,
) -> Result<(Vec<f64>, Vec<f64>), Error> {
    if power.len() != nodes * nodes {
        return Err(Error::Shape {
            table: "power",
            expected: nodes * nodes,
            got: power.len(),
        });
    }
    let mut delivery = vec![0.0; nodes * nodes];
    let mut survival = vec![1.0; nodes * nodes * nodes];
    for from in 0..nodes {
        for to in (0..nodes).filter(|&to| to != from) {
            let pair = from * nodes + to;
            let signal = power[pair];
            if signal <= 0.0 {
                continue;
            }
            delivery[pair] = heard(signal);
            if delivery[pair] < WEAK {
                continue;
            }
            for beside in (0..nodes).filter(|&k| k != from && k != to) {
                let other = power[beside * nodes + to];
                if other > 0.0 {
                    survival[pair * nodes + beside] = survives(signal, other).clamp(0.0, 1.0);
                }
            }
        }
    }
    Ok((delivery, survival))
}

impl Interference {
    /// A checked model of `nodes` nodes. `delivery` has an entry for each (from, to), `survival` for each (from, to, beside), all
    /// probabilities; entries of a node with itself are ignored. All frames take `airtime_s` seconds.
    pub fn new(
        nodes: usize,
        delivery: Vec<f64>,
        survival: Vec<f64>,
        airtime_s: f64,
        payload_bytes: u32,
    ) -> Result<Interference, Error> {
        if nodes == 0 {
            return Err(Error::NoNodes);
        }
        let tables = [
            ("delivery", &delivery, nodes * nodes),
            ("survival", &survival, nodes * nodes * nodes),
        ];
        for (table, entries, expected) in tables {
            if entries.len() != expected {
                return Err(Error::Shape {
                    table,
                    expected,
                    got: entries.len(),
                });
            }
            let per_pair = expected / (nodes * nodes);
            let wrong = entries.iter().position(|p| !(0.0..=1.0).contains(p));
            if let Some(place) = wrong {
                return Err(Error::Probability {
                    of: table,
                    from: place / per_pair / nodes,
                    to: place / per_pair % nodes,
                    value: entries[place],
                });
            }
        }
        if !(airtime_s > 0.0 && airtime_s.is_finite()) {
            return Err(Error::Quantity {
                what: "airtime",
                node: 0,
                value: airtime_s,
            });
        }
        Ok(Interference {
            nodes,
            delivery,
            survival,
            airtime_s,
            payload_bytes,
        })
    }

    /// The model of a network with Rayleigh fading, drawn for each frame and receiver: a frame is received if its power and
    /// its ratio to noise and interference reach the thresholds.
    pub fn rayleigh(
        nodes: usize,
        radio: &Rayleigh<'_>,
        airtime_s: f64,
        payload_bytes: u32,
    ) -> Result<Interference, Error> {
        let needed = radio.needed();
        // Interference below this changes nothing: the least power asks for more.
        let harmless = needed / radio.ratio - radio.noise;
        let heard = |signal: f64| (-needed / signal).exp();
        let survives = |signal: f64, other: f64| {
            // Exponential interference of mean `other`, of which the part above `harmless` must be overcome.
            let above = (-harmless / other).exp();
            1.0 - above + above / (1.0 + radio.ratio * other / signal)
        };
        let (delivery, survival) = tables(nodes, radio.power, heard, survives)?;
        Interference::new(nodes, delivery, survival, airtime_s, payload_bytes)
    }

    /// The model of a network with the fading that GloMoSim calls Rayleigh, P(gain > x) = exp(-pi x^2 / 4), drawn for each frame and
    /// receiver. Survival beside one other frame is exact. Beside several it is less than the product, since their powers
    /// add: a bound stays one, and schedules carry less than they say.
    pub fn glomosim(
        nodes: usize,
        radio: &Rayleigh<'_>,
        airtime_s: f64,
        payload_bytes: u32,
    ) -> Result<Interference, Error> {
        let exceeds = |gain: f64| (-FRAC_PI_4 * gain * gain).exp();
        // Equally probable gains of the other signal, the middle one of each part.
        let gains: Vec<f64> = (0..GAINS)
            .map(|part| (-((part as f64 + 0.5) / GAINS as f64).ln() / FRAC_PI_4).sqrt())
            .collect();
        let needed = radio.needed();
        let heard = |signal: f64| exceeds(needed / signal);
        let survives = |signal: f64, other: f64| {
            let each = gains.iter().map(|gain| {
                let least = radio.ratio * (radio.noise + gain * other);
                exceeds(least.max(needed) / signal)
            });
            each.sum::<f64>() / GAINS as f64 / heard(signal)
        };
        let (delivery, survival) = tables(nodes, radio.power, heard, survives)?;
        Interference::new(nodes, delivery, survival, airtime_s, payload_bytes)
    }

    /// Number of nodes; they are called `0..nodes`.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Seconds that a frame is on the air.
    pub fn airtime_s(&self) -> f64 {
        self.airtime_s
    }

    /// Useful bits in one frame.
    pub fn payload_bits(&self) -> f64 {
        f64::from(self.payload_bytes) * 8.0
    }

    /// The probability that `to` receives a frame of `from`, one of the senders of `set`.
    pub fn received(&self, from: usize, to: usize, set: &[usize]) -> f64 {
        if from == to || set.contains(&to) {
            return 0.0;
        }
        let pair = from * self.nodes + to;
        // That nothing disturbs the weakest links changes no bound noticeably, keeps it valid, and saves most of the time.
        if self.delivery[pair] < WEAK {
            return self.delivery[pair];
        }
        let others = set.iter().filter(|&&k| k != from);
        others.fold(self.delivery[pair], |p, &k| {
            p * self.survival[pair * self.nodes + k]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: without noise and least power, a signal with GloMoSim's fading survives beside one whose mean is a fifth of its own with
    /// the probability 1 / (1 + (10 / 5)^2), since squares of such gains are exponential.
    #[test]
    fn survival_beside_one_frame_matches_a_hand_calculation() {
        let mut power = vec![0.0; 9];
        (power[1], power[7]) = (1.0, 0.2);
        let radio = Rayleigh {
            power: &power,
            noise: 0.0,
            ratio: 10.0,
            least: 1e-9,
        };
        let model = Interference::glomosim(3, &radio, 1.0, 1).unwrap();
        assert!((model.received(0, 1, &[0]) - 1.0).abs() < 1e-9);
        let beside = model.received(0, 1, &[0, 2]);
        assert!((beside - 0.2).abs() < 0.005, "{beside}");
        assert_eq!(model.received(0, 1, &[0, 1]), 0.0);
    }
}
