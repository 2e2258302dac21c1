//! Figure 13: throughput over the length of a slot, 60 km (4.5).

use chappe_core::Duration;
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_wildnet::{Recovery, Service};

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps};
use chappe_lab_wildnet::scheme::{Load, Scheme, SlotForm};
use chappe_lab_wildnet::trial::Trial;

/// Duration of a packet of 1440 octets with gap and mean back-off, in us (set C).
const PACKET_US: f64 = 1507.0;
/// Round-trip propagation time over 60 km, in us.
const ROUND_US: f64 = 400.3;

/// Payload of the whole packets that fit into a slot, over the duration of a cycle, in Mbit/s.
fn formula(slot_ms: u64) -> f64 {
    let slot = slot_ms as f64 * 1e3;
    (slot / PACKET_US).floor() * 1440.0 * 8.0 / (2.0 * slot + ROUND_US)
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let slots: &[u64] = match context.quick() {
        true => &[5, 20, 60, 100],
        false => &[4, 5, 7, 10, 15, 20, 30, 40, 60, 80, 100],
    };
    let over = |load| {
        let trials: Vec<Trial> = slots
            .iter()
            .map(|&slot| Trial {
                scheme: Scheme::Slots {
                    form: SlotForm::Even,
                    slot: Duration::from_millis(slot),
                    recovery: Recovery::Acks,
                    service: Service::retries(None),
                },
                km: 60.0,
                loss: 0.0,
                load,
                both: false,
                time: context.time(),
            })
            .collect();
        context.measure(&trials)
    };
    let (udp, tcp) = (over(Load::Udp)?, over(Load::Tcp)?);
    let means =
        |runs: &[Runs]| -> Vec<f64> { runs.iter().map(|runs| summary(runs, mbps).mean).collect() };
    let (u, t) = (means(&udp), means(&tcp));
    let at = |ms: u64| slots.iter().position(|&slot| slot == ms);
    let mut claims = Vec::new();
    if let (Some(a), Some(b)) = (at(20), at(60)) {
        let gain = 100.0 * (u[b] / u[a] - 1.0);
        claims.push(Claim::value(
            "UDP levels off beyond slots of 20 ms: slots of 60 ms add less than 8 %",
            None,
            gain,
            udp[a].len(),
            "%",
            gain < 8.0,
        ));
    }
    let last = slots.len() - 1;
    let best = t.iter().copied().fold(0.0, f64::max);
    claims.push(Claim::value(
        "TCP falls at the longest slots because its window is fixed: below nine tenths of its best",
        None,
        t[last] / best,
        tcp[last].len(),
        "of the best",
        t[last] < 0.9 * best,
    ));
    let off = slots
        .iter()
        .zip(&u)
        .filter(|(slot, _)| **slot >= 10)
        .map(|(&slot, mbps)| 100.0 * (mbps / formula(slot) - 1.0).abs())
        .fold(0.0, f64::max);
    claims.push(Claim::value(
        "from 10 ms on, UDP lies within 8 % of floor(T / 1507 us) * 1440 octets in 2 T + 400 us",
        None,
        off,
        slots.len(),
        "% at most",
        off < 8.0,
    ));
    Ok(Figure {
        id: "figure13",
        title: "throughput over the length of a slot, 60 km, one way".into(),
        panels: vec![lines(
            "13",
            "one way, no loss",
            "Mbit/s",
            ("slot", slots.iter().map(|slot| format!("{slot} ms")).collect()),
            vec![line("UDP", &udp, mbps), line("TCP", &tcp, mbps)],
            slots.iter().map(|&slot| Some(formula(slot))).collect(),
        )],
        claims,
        notes: vec!["The bound is the formula with the mean back-off. A slot with short back-offs holds one packet more.".into()],
    })
}
