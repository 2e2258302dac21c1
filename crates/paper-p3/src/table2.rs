//! Table II: are the losses of receivers of synchronous transmissions correlated?
//!
//! The study is [`chappe_lab_p3::correlation`]. Receivers that lose nothing, or everything, have no coefficient.

use chappe_core::Seed;
use chappe_lab::run::RunError;
use chappe_p3::config::CHANNELS;
use chappe_results::figure::{Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};

use chappe_lab_p3::correlation::{RECEIVERS, observe};

use crate::campaign::{Measured, Scale, Trial};
use crate::claims::at_least;

/// The number of random layouts.
const LAYOUTS: u64 = 5;

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
