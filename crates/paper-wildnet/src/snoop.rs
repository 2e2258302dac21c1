//! Snoop, which recovers losses by reading TCP, compared with bulk acknowledgements (7).

use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps, tcp_bound};
use chappe_lab_wildnet::masts::{Hop, Masts};
use chappe_lab_wildnet::scheme::{Card, Load, Scheme};

/// Length of the link in km: P-S of Table 1. The paper does not name the links of its measurement.
const KM: f64 = 45.0;

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let losses: &[f64] = match context.quick() {
        true => &[0.0, 0.05, 0.2],
        false => &[0.0, 0.02, 0.05, 0.1, 0.2, 0.3],
    };
    let over = |scheme, snoop| {
        let at = |&loss: &f64| Masts {
            snoop,
            both: true,
            gain: Masts::EMULATED,
            ..Masts::line(scheme, vec![Hop::new(KM, loss)], Load::Tcp, context.time())
        };
        context.measure(&losses.iter().map(at).collect::<Vec<_>>())
    };
    let csma = over(Scheme::CSMA, false)?;
    let agent = over(Scheme::CSMA, true)?;
    let single = Scheme::Csma {
        retries: Some(0),
        card: Card::Short,
    };
    let (once, once_agent) = (over(single, false)?, over(single, true)?);
    let bare = over(Scheme::BARE_SLOTS, false)?;
    let slots = over(Scheme::BARE_SLOTS, true)?;
    let wild = over(Scheme::WILDNET, false)?;
    let mean = |runs: &[Runs], at: usize| summary(&runs[at], mbps).mean;
    let lossy: Vec<usize> = (0..losses.len()).filter(|&at| losses[at] >= 0.05).collect();
    let best = |at: usize| mean(&agent, at).max(mean(&slots, at));
    let ratios: Vec<f64> = lossy.iter().map(|&at| mean(&wild, at) / best(at)).collect();
    let ahead: Vec<f64> = (0..losses.len())
        .map(|at| best(at) / mean(&csma, at))
        .collect();
    let behind = ahead.iter().position(|ratio| *ratio < 1.0);
    let behind = behind.unwrap_or(losses.len() - 1);
    let helps = [(&csma, &agent), (&once, &once_agent)].map(|(alone, with)| {
        let gain = |at: usize| format!("{:.2}", mean(with, at) / mean(alone, at));
        (1..losses.len()).map(gain).collect::<Vec<_>>().join(", ")
    });
    Ok(Figure {
        id: "snoop",
        title: "TCP both ways with Snoop and with bulk acknowledgements, 45 km".into(),
        panels: vec![lines(
            "snoop",
            "both directions together",
            "Mbit/s",
            ("frames lost", losses.iter().map(|loss| format!("{:.0} %", loss * 100.0)).collect()),
            vec![
                line("802.11", &csma, mbps),
                line("802.11 and Snoop", &agent, mbps),
                line("802.11, no retries", &once, mbps),
                line("802.11, no retries, and Snoop", &once_agent, mbps),
                line("slots alone", &bare, mbps),
                line("slots and Snoop", &slots, mbps),
                line("WiLDNet", &wild, mbps),
            ],
            losses.iter().map(|&loss| Some(tcp_bound(true, KM, loss))).collect(),
        )
        .bounding(&["slots alone", "slots and Snoop", "WiLDNet"])],
        claims: vec![
            Claim::new(
                "from 5 % loss on, WiLDNet gets twice what the better Snoop gets (1.5 times counts)",
                Some(2.0),
                chappe_results::statistics::Summary::of(&ratios),
                "times",
                ratios.iter().all(|ratio| *ratio >= 1.5),
            )
            .because(|| by_loss(losses, &lossy, &ratios)),
            Claim::value(
                "Snoop is better than 802.11 only at low loss, below 10 %: the first loss at which the better Snoop, that over slots, is not",
                Some(10.0),
                100.0 * losses[behind],
                agent[0].len(),
                "% lost",
                behind > 0 && losses[behind] <= 0.1,
            )
            .because(|| by_loss(losses, &(0..losses.len()).collect::<Vec<_>>(), &ahead)),
        ],
        notes: vec![format!("Over 802.11 an agent finds little to repair, because two retries leave the third power of the loss: its gain by loss is {} times. Where a card does not retry, its gain is {} times.", helps[0], helps[1]), "As in the paper, each radio has the half of Snoop that serves the direction from the fixed to the mobile host. Our TCP has SACK, whose blocks the agent does not read.".into()],
    })
}

/// The ratios with their losses, as a sentence.
fn by_loss(losses: &[f64], at: &[usize], ratios: &[f64]) -> String {
    let all = at.iter().zip(ratios);
    let all: Vec<String> = all
        .map(|(&at, ratio)| format!("{ratio:.2} at {:.0} %", losses[at] * 100.0))
        .collect();
    format!("by loss: {}", all.join(", "))
}
