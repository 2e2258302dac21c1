//! Table II: are the losses of receivers of synchronous transmissions correlated? One initiator, ten relays that repeat
//! its packet at one instant, ten receivers, 30 m by 30 m.
//!
//! The paper gives neither positions nor power. Here the three kinds of nodes are one behind the other, and the power gives a
//! link of 12 m a margin of 3 dB, so that the second hop is needed. Receivers that lose nothing, or everything, have no
//! coefficient.

use chappe_core::{
    Channel, Duration, Instant, Purpose, RadioEvent, RadioNode, RadioRequest, Seed, Transmit, Wake,
};
use chappe_lab::run::RunError;
use chappe_p3::config::CHANNELS;
use chappe_p3::timing::MODE;
use chappe_results::figure::{Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};
use chappe_sim::{AirTime, Medium, Position, Profile, Simulator, World};

use super::campaign::{Measured, Scale, Trial};
use super::claims::at_least;

const RELAYS: usize = 10;
const RECEIVERS: usize = 10;
/// The number of random layouts.
const LAYOUTS: u64 = 5;
/// Time from one packet to the next.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time from the end of a frame to its repetition: 802.15.4's turnaround of 12 symbols.
const TURNAROUND: Duration = Duration::from_micros(192);
/// Octets of a frame without its check sequence; the paper gives no size.
const OCTETS: usize = 125;
/// The link that the power is chosen for: its length in metres, its margin above the sensitivity in decibels.
const LINK: (f64, f64) = (12.0, 3.0);

pub fn needs(_: &Scale) -> Vec<Trial> {
    Vec::new()
}

pub fn make(_: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let mut all: Vec<Vec<f64>> = Vec::new();
    let mut delivered: Vec<Summary> = Vec::new();
    for channel in CHANNELS {
        let (mut of_channel, mut shares) = (Vec::new(), Vec::new());
        for layout in 0..LAYOUTS {
            let seed = Seed(scale.seed).child(layout);
            let heard = observe(channel, scale.packets / LAYOUTS as u32, seed)?;
            shares.extend(heard.iter().map(|bits| 100.0 * mean(bits)));
            for a in 0..RECEIVERS {
                for b in a + 1..RECEIVERS {
                    of_channel.extend(pearson(&heard[a], &heard[b]));
                }
            }
        }
        delivered.push(Summary::of(&shares));
        all.push(of_channel);
    }
    let small: Vec<f64> = all.iter().map(|of| share_below(of)).collect();
    let places = CHANNELS.map(|channel| channel.0.to_string()).to_vec();
    let mut means = Series::new(
        "ours",
        all.iter()
            .map(|of| Summary::of(&of.iter().map(|c| 100.0 * c).collect::<Vec<_>>()))
            .collect(),
    );
    means.paper = vec![Some(17.6), Some(9.1), None, None];
    let mut below = Series::new(
        "ours",
        small
            .iter()
            .zip(&all)
            .map(|(&share, of)| Summary {
                n: of.len(),
                ..Summary::of(&[share])
            })
            .collect(),
    );
    below.paper = vec![Some(82.0), Some(82.0), None, None];
    let panel = |id, title, unit, series| {
        Panel::bars(id, title, unit, places.clone(), vec![series]).on("channel")
    };
    let least = small.iter().copied().fold(f64::INFINITY, f64::min);
    let n = all.iter().map(Vec::len).sum();
    Ok(Figure {
        id: "table2",
        title: "correlation of receivers under synchronous transmission".into(),
        panels: vec![
            panel("II mean", "mean coefficient of pairs of receivers", "hundredths", means),
            panel("II below", "pairs with a coefficient below 0.2", "%", below),
            panel("II delivery", "packets that a receiver receives", "%", Series::new("ours", delivered)),
        ],
        claims: vec![at_least("pairs with a coefficient below 0.2 on each channel, in per cent", Some(82.0), 80.0, least, n, "%")],
        notes: vec![
            "losses are shared where few relays have a packet; the beating of the relays' carriers is independent at each receiver".into(),
            "in the paper, receivers 1 and 4 on channel 15 have a coefficient of 1.0, and the same coefficient with every other receiver".into(),
        ],
    })
}

fn share_below(coefficients: &[f64]) -> f64 {
    let below = coefficients.iter().filter(|c| **c < 0.2).count();
    100.0 * below as f64 / coefficients.len().max(1) as f64
}

/// Pearson's coefficient of two series of zeros and ones; `None` if one of them is constant.
fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let (of_a, of_b) = (mean(a), mean(b));
    let spread = |x: &[f64], of: f64| x.iter().map(|x| (x - of) * (x - of)).sum::<f64>();
    let both: f64 = a.iter().zip(b).map(|(a, b)| (a - of_a) * (b - of_b)).sum();
    let scale = (spread(a, of_a) * spread(b, of_b)).sqrt();
    (scale > 0.0).then(|| both / scale)
}

/// The packets of each receiver: 1 if received, 0 if lost.
fn observe(channel: Channel, packets: u32, seed: Seed) -> Result<Vec<Vec<f64>>, RunError> {
    let defect = |error: &dyn std::fmt::Display| RunError::Defect(error.to_string());
    let mut profile = Profile::named("cc2420-indoor").ok_or_else(|| defect(&"no profile"))?;
    let (metres, margin) = LINK;
    profile.power = profile.power_for(0.5, MODE, OCTETS + 2)
        + profile.path_loss.loss(metres)
        + chappe_core::Db(margin);
    profile.power_max = profile.power;
    let mut random = seed.stream(Purpose::Topology);
    let mut place = |from: f64, to: f64| {
        Position::new(
            from + random.fraction() * (to - from),
            random.fraction() * 30.0,
        )
    };
    let mut places = vec![Position::new(0.0, 15.0)];
    places.extend((0..RELAYS).map(|_| place(6.0, 16.0)));
    places.extend((0..RECEIVERS).map(|_| place(16.0, 30.0)));
    let medium = Medium::geometric(&places, &profile, seed).map_err(|error| defect(&error))?;
    let node = |number: usize| {
        Box::new(Node {
            part: match number {
                0 => Part::Initiator,
                n if n <= RELAYS => Part::Relay,
                _ => Part::Receiver,
            },
            channel: Some(channel),
            packets,
            next: 0,
            send: None,
            heard: vec![0.0; packets as usize],
        })
    };
    let nodes = (0..places.len()).map(node).collect();
    let mut simulator =
        Simulator::new(World::new(medium), nodes, seed, ()).map_err(|error| defect(&error))?;
    simulator.run_until(AirTime::ZERO + INTERVAL * u64::from(packets + 1));
    let (nodes, ..) = simulator.into_parts();
    Ok(nodes
        .into_iter()
        .skip(1 + RELAYS)
        .map(|node| node.heard)
        .collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Initiator,
    Relay,
    Receiver,
}

/// A node of the study.
struct Node {
    part: Part,
    /// The channel to tune to at the start; `None` afterwards.
    channel: Option<Channel>,
    packets: u32,
    /// The initiator's next packet.
    next: u32,
    /// A packet to send: its number, hop and instant.
    send: Option<(u32, u8, Instant)>,
    heard: Vec<f64>,
}

impl Node {
    fn due(&self) -> Instant {
        Instant::ZERO + INTERVAL * u64::from(self.next + 1)
    }
}

impl RadioNode for Node {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        let RadioEvent::Received(frame) = event else {
            return;
        };
        let Some(&[hop, a, b, c, d]) = frame.psdu.first_chunk::<5>() else {
            return;
        };
        let number = u32::from_le_bytes([a, b, c, d]);
        match (self.part, hop) {
            (Part::Relay, 0) => self.send = Some((number, 1, now + TURNAROUND)),
            (Part::Receiver, 1) => {
                if let Some(heard) = self.heard.get_mut(number as usize) {
                    *heard = 1.0;
                }
            }
            _ => {}
        }
    }

    fn poll_radio(&mut self, _: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        if let Some(channel) = self.channel.take() {
            return Some(RadioRequest::Tune(channel));
        }
        let (number, hop, at) = self.send.take()?;
        let frame = psdu.get_mut(..OCTETS)?;
        frame.fill(0x5a);
        frame[0] = hop;
        frame[1..5].copy_from_slice(&number.to_le_bytes());
        Some(RadioRequest::Transmit(Transmit {
            at,
            len: OCTETS,
            mode: MODE,
            power: None,
        }))
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.part == Part::Initiator && self.next < self.packets && now >= self.due() {
            self.send = Some((self.next, 0, now));
            self.next += 1;
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let waits = self.part == Part::Initiator && self.next < self.packets;
        waits.then(|| Wake {
            at: self.due(),
            why: "packet",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_equal_hand_calculations() {
        let (a, b) = ([1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]);
        assert_eq!(pearson(&a, &b), Some(1.0));
        assert_eq!(pearson(&a, &[0.0, 1.0, 0.0, 1.0]), Some(-1.0));
        assert_eq!(pearson(&a, &[1.0, 1.0, 0.0, 0.0]), Some(0.0));
        assert_eq!(pearson(&a, &[1.0; 4]), None);
    }
}
