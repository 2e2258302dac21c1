//! Figure 9: TCP over distance, in slots and over plain 802.11 (4.2).

use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps, tcp_bound};
use chappe_lab_wildnet::scheme::{Load, Scheme};
use chappe_lab_wildnet::trial::Trial;

struct Part {
    csma: Vec<Runs>,
    long: Vec<Runs>,
    wild: Vec<Runs>,
    improved: Vec<Runs>,
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let kms: &[f64] = match context.quick() {
        true => &[0.0, 60.0, 112.0],
        false => &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 112.0, 150.0, 200.0],
    };
    let over = |scheme, both, loss| {
        let at = |&km: &f64| Trial {
            scheme,
            km,
            loss,
            load: Load::Tcp,
            both,
            time: context.time(),
        };
        context.measure(&kms.iter().map(at).collect::<Vec<_>>())
    };
    let part = |both: bool, loss: f64| -> Result<Part, RunError> {
        Ok(Part {
            csma: over(Scheme::CSMA, both, loss)?,
            long: over(Scheme::CSMA_LONG, both, loss)?,
            wild: over(Scheme::WILDNET, both, loss)?,
            improved: over(Scheme::IMPROVED, both, loss)?,
        })
    };
    let (one, both, lossy) = (part(false, 0.0)?, part(true, 0.0)?, part(true, 0.1)?);
    let panel = |id, title, part: &Part, both, loss| {
        let places: Vec<String> = kms.iter().map(|km| format!("{km} km")).collect();
        let bound = kms
            .iter()
            .map(|&km| Some(tcp_bound(both, km, loss)))
            .collect();
        let series = vec![
            line("802.11", &part.csma, mbps),
            line("802.11, long preambles", &part.long, mbps),
            line("WiLDNet", &part.wild, mbps),
            line("improved", &part.improved, mbps),
        ];
        lines(id, title, "Mbit/s", ("distance", places), series, bound).bounding(&["WiLDNet"])
    };
    Ok(Figure {
        id: "figure9",
        title: "TCP over distance".into(),
        claims: claims(kms, &one, &both, &lossy),
        panels: vec![
            panel("9a", "one way", &one, false, 0.0),
            panel("9b", "both ways", &both, true, 0.0),
            panel("9c", "both ways, 10 % of frames lost", &lossy, true, 0.1),
        ],
        notes: vec![
            "The bound is that of WiLDNet's fixed slots of 20 ms: their capacity for TCP, times the share of frames that arrive. The improved variant may exceed it, because its slots follow the demand and its acknowledgements share frames.".into(),
            "TCP is this project's (NewReno, SACK, RACK, windows of 65,535 octets, Linux's timers).".into(),
        ],
    })
}

fn claims(kms: &[f64], one: &Part, both: &Part, lossy: &Part) -> Vec<Claim> {
    let means =
        |runs: &[Runs]| -> Vec<f64> { runs.iter().map(|runs| summary(runs, mbps).mean).collect() };
    let (wild, csma, long) = (means(&one.wild), means(&one.csma), means(&one.long));
    let spread = |values: &[f64]| {
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        1.0 - least / most
    };
    let wild_both = means(&both.wild);
    let less: Vec<f64> = wild_both
        .iter()
        .zip(means(&lossy.wild))
        .map(|(clean, lossy)| clean - lossy)
        .collect();
    let mean_less = chappe_results::statistics::Summary::of(&less);
    let cross = kms
        .iter()
        .zip(wild.iter().zip(&csma))
        .find(|(_, (wild, csma))| wild > csma)
        .map_or(f64::INFINITY, |(km, _)| *km);
    let level = kms
        .iter()
        .zip(wild.iter().zip(&long))
        .find(|(_, (wild, long))| **wild * 1.05 > **long)
        .map_or(f64::INFINITY, |(km, _)| *km);
    let last = kms.iter().rposition(|&km| km < 110.0).unwrap_or(0);
    vec![
        Claim::value(
            "one way, WiLDNet is flat over distance, within 4 %",
            None,
            100.0 * spread(&wild),
            kms.len(),
            "%",
            spread(&wild) < 0.04,
        ),
        Claim::value(
            "one way, 802.11 is faster on short links and WiLDNet on long ones: the first measured distance with WiLDNet ahead, by Table 1 between 45 and 65 km",
            Some(60.0),
            cross,
            kms.len(),
            "km",
            cross <= 80.0,
        )
        .because(|| {
            format!(
                "with short preambles, which Table 2's 5.74 Mbit/s need, 802.11 gets {:.2} times what WiLDNet gets, until its \
                 ACKs arrive after the timeout; with long preambles, as WiLDNet's frames have, {:.2} times (both at the \
                 largest distance below 110 km)",
                csma[last] / wild[last],
                long[last] / wild[last]
            )
        }),
        Claim::value(
            "the same with long preambles for both: the first distance at which 802.11 is at most 5 % ahead",
            Some(50.0),
            level,
            kms.len(),
            "km",
            (40.0..=80.0).contains(&level),
        ),
        Claim::new(
            "both ways, WiLDNet gets about 6 Mbit/s at all distances: at least 5.9",
            Some(6.0),
            chappe_results::statistics::Summary::of(&wild_both),
            "Mbit/s",
            wild_both.iter().all(|mbps| *mbps >= 5.9),
        )
        .because(|| {
            let (first, far) = (wild_both[0], wild_both[wild_both.len() - 1]);
            let bound = tcp_bound(true, kms[kms.len() - 1], 0.0) / tcp_bound(true, kms[0], 0.0);
            format!(
                "{first:.2} at {} km, {far:.2} at {} km: the round-trip propagation time costs {:.1} % of the bound, and {:.1} % here",
                kms[0],
                kms[kms.len() - 1],
                100.0 * (1.0 - bound),
                100.0 * (1.0 - far / first)
            )
        }),
        Claim::new(
            "both ways, 10 % loss costs WiLDNet about 1 Mbit/s: between 0.6 and 1.0",
            Some(1.0),
            mean_less,
            "Mbit/s",
            (0.6..=1.0).contains(&mean_less.mean),
        )
        .because(|| {
            let all: Vec<String> = less.iter().map(|less| format!("{less:.2}")).collect();
            format!("by distance: {} Mbit/s", all.join(", "))
        }),
    ]
}
