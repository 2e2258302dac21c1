//! Figure 3: a relay by the distance of its channels, and two links from one mast (2.3.3).

use chappe_core::Channel;
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps};
use chappe_lab_wildnet::masts::{Hop, Masts, Path};
use chappe_lab_wildnet::scheme::{Load, Scheme};

/// Length of the links in km: that of a campus link of Table 1. The paper does not give the lengths of K-P and P-M.
const KM: f64 = 8.0;
/// Distances between the two channels of the relay.
const APART: [u8; 6] = [0, 1, 2, 3, 4, 5];
/// The largest distance of channels of 802.11b, at which nothing leaks in this model.
const FAR: u8 = 10;

/// M to P to K. The second link is `apart` channels above the first.
fn relay(context: &FigureContext<'_>, load: Load, apart: u8) -> Masts {
    let hop = |channel| Hop {
        channel: Channel(channel),
        ..Hop::new(KM, 0.0)
    };
    Masts::line(
        Scheme::CSMA,
        vec![hop(1), hop(1 + apart)],
        load,
        context.short(),
    )
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let rates: &[f64] = match context.quick() {
        true => &[2.0, 6.0],
        false => &[1.0, 2.0, 4.0, 6.0],
    };
    let mut runs: Vec<Vec<Runs>> = Vec::new();
    for apart in APART {
        let at = |rate: &f64| relay(context, Load::Steady(rate * 1e6), apart);
        runs.push(context.measure(&rates.iter().map(at).collect::<Vec<_>>())?);
    }
    let names = APART.map(|apart| match apart {
        0 => "same channel".to_string(),
        1 => "1 channel apart".into(),
        n => format!("{n} channels apart"),
    });
    let places: Vec<String> = rates
        .iter()
        .map(|rate| format!("{rate:.0} Mbit/s"))
        .collect();
    let series = |value: fn(&chappe_lab_wildnet::experiment::Measured) -> f64| {
        let lines = names.iter().zip(&runs);
        lines.map(|(name, runs)| line(name, runs, value)).collect()
    };
    Ok(Figure {
        id: "figure3",
        title: "a relay between two links, by the distance of their channels".into(),
        claims: claims(rates, &runs),
        panels: vec![
            lines("3a", "UDP delivered", "Mbit/s", ("offered", places.clone()), series(mbps), Vec::new()),
            lines("3b", "UDP lost", "%", ("offered", places), series(lost), Vec::new()),
        ],
        notes: vec!["802.11 with two retries, links of 8 km, dishes of 24 dBi; 60 dB between the two radios of the mast, receiver selectivity from the spectrum of DSSS. The paper gives neither lengths nor numbers.".into()],
    })
}

fn lost(measured: &chappe_lab_wildnet::experiment::Measured) -> f64 {
    100.0 * measured.residual
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn claims(rates: &[f64], runs: &[Vec<Runs>]) -> Vec<Claim> {
    let last = rates.len() - 1;
    let at = |apart: usize, value: fn(&chappe_lab_wildnet::experiment::Measured) -> f64| {
        summary(&runs[apart][last], value).mean
    };
    let carried: Vec<f64> = (0..APART.len()).map(|apart| at(apart, mbps)).collect();
    let monotone = carried.windows(2).all(|pair| pair[1] >= 0.97 * pair[0]);
    let mut claims = vec![Claim::value(
        "at 6 Mbit/s, throughput grows with the distance of the channels (within 3 %): one channel carries this share of five channels apart",
        None,
        100.0 * carried[0] / carried[5],
        runs[0][last].len(),
        "%",
        monotone && carried[0] < 0.7 * carried[5],
    )
    .because(|| {
        let all: Vec<String> = carried.iter().map(|mbps| format!("{mbps:.2}")).collect();
        format!("by channels apart: {} Mbit/s", all.join(", "))
    })];
    let left = [4, 5].map(|apart| at(apart, lost));
    claims.push(Claim::value(
        "channels four or more apart do not interfere: below 1 % lost at 6 Mbit/s",
        None,
        left[0].max(left[1]),
        runs[4][last].len(),
        "%",
        left.iter().all(|lost| *lost < 1.0),
    ));
    let partly = [0, 1, 2].map(|apart| at(apart, lost));
    claims.push(Claim::value(
        "the same channel and overlapping ones lose much more: the least loss of 0 to 2 channels apart",
        None,
        least(&partly),
        runs[0][last].len(),
        "%",
        least(&partly) > left[0].max(left[1]) + 1.0,
    ));
    claims
}

/// Two links from P at the same time (2.3.3, given in the text).
pub fn two_links(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let both = |apart| Masts {
        path: Path::Outward,
        ..relay(context, Load::Udp, apart)
    };
    let runs = context.measure(&[both(0), both(FAR)])?;
    let [same, far] = [0, 1].map(|at| summary(&runs[at], mbps));
    let ratio = far.mean / same.mean;
    let mut series = line("both links together", &runs, mbps);
    series.paper = vec![Some(7.88), Some(14.20)];
    Ok(Figure {
        id: "section233",
        title: "UDP from one mast over two links at the same time".into(),
        panels: vec![lines(
            "2.3.3",
            "sent by P to K and to M",
            "Mbit/s",
            ("channels", vec!["same".into(), "different".into()]),
            vec![series],
            Vec::new(),
        )],
        claims: vec![Claim::value(
            "two links on one channel share its capacity: different channels carry 1.7 to 2.0 times as much",
            Some(14.20 / 7.88),
            ratio,
            runs[0].len(),
            "times",
            (1.7..=2.0).contains(&ratio),
        )],
        notes: vec![],
    })
}
