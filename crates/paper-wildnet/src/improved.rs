//! The goals of the improved variant: numbers that were set before it was built, each with its bound.

use chappe_core::{Duration, SPEED_OF_LIGHT};
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel};
use chappe_results::statistics::Summary;
use chappe_sim::{AirTime, LinkTrace, LossLaw};
use chappe_wildnet::header::{ACK, BODY, FIXED, LENGTH, SLOT};
use chappe_wildnet::{Config, Recovery, Redundancy, Service, SlotConfig};

use crate::context::{FigureContext, Runs};
use crate::panel::{bars, lines, mbps};
use chappe_lab_wildnet::experiment::Measured;
use chappe_lab_wildnet::hosts::{Stack, WINDOW};
use chappe_lab_wildnet::masts::{Hop, Masts};
use chappe_lab_wildnet::scheme::{Load, Scheme, SlotForm};
use chappe_lab_wildnet::trial::Trial;

/// Length of both slots of a cycle, in us.
const CYCLE_US: f64 = 40_000.0;
/// Length of the shortest slot, in us (`SlotConfig::least`).
const LEAST_US: f64 = 3_000.0;
/// Length of a hop of a line, in km.
const HOP_KM: f64 = 10.0;
/// Duration of a segment of 1448 octets in IPv4 with gap and mean back-off, in us: 220 + 192 + 1560 octets at 11 Mbit/s (set C).
const SEGMENT_US: f64 = 1546.5;
/// Length of the link on which losses are added, in km (G2, G3).
const LOSSY_KM: f64 = 60.0;
/// Share of packets that may be lost or late.
const TARGET: f64 = 0.01;
/// Share of frames lost (G4, G10).
const LOSS: f64 = 0.3;

/// The TCP capacity of slots over a distance, if segments fill `used` microseconds of each cycle, in Mbit/s.
fn capacity(used: f64, km: f64) -> f64 {
    let round = 2.0 * km * 1e9 / SPEED_OF_LIGHT;
    used / SEGMENT_US * 1448.0 * 8.0 / (CYCLE_US + round)
}

/// Octets that a slot of 20 ms holds in frames of at most 1560: what the guard, and each frame's gap, preamble and headers leave.
fn octets_of_slot() -> f64 {
    let slots = SlotConfig::dot11b(Duration::from_millis(20));
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let around = us(slots.airtime(FIXED + SLOT + ACK + BODY) + slots.mean_gap());
    let octet = 8.0 / 11.0;
    let most = (Config::slots().packet_max() + LENGTH) as f64;
    let octets = |frames: u32| {
        let left = CYCLE_US / 2.0 - us(slots.guard) - f64::from(frames) * around;
        (left / octet).min(f64::from(frames) * most)
    };
    (1..=20).map(octets).fold(0.0, f64::max)
}

/// The rate in Mbit/s of `payload` octets, each time that so many `octets` have left in full slots, both ways.
fn filled(payload: f64, octets: f64, km: f64) -> f64 {
    let round = 2.0 * km * 1e9 / SPEED_OF_LIGHT;
    2.0 * octets_of_slot() / octets * payload * 8.0 / (CYCLE_US + round)
}

/// TCP both ways in slots filled to the end: segments in 1500 octets, and an acknowledgement of 52 for every two.
fn filled_by_tcp(km: f64) -> f64 {
    filled(1448.0, 1500.0 + 52.0 / 2.0 + 1.5 * LENGTH as f64, km)
}

/// UDP both ways in slots filled to the end: datagrams of 1440 octets in IPv4.
fn filled_by_udp(km: f64) -> f64 {
    filled(1440.0, (1440 + 28 + LENGTH) as f64, km)
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let parts = [
        distance(context)?,
        hops(context)?,
        losses(context)?,
        targets(context)?,
        steps(context)?,
        delay(context)?,
    ];
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for (of, more) in parts {
        panels.extend(of);
        claims.extend(more.into_iter().map(Claim::as_goal));
    }
    Ok(Figure {
        id: "improved",
        title: "the improved variant against its goals".into(),
        panels,
        claims,
        notes: vec![
            "Bounds: for TCP, the segments that fit into the slots if acknowledgements take no time (both ways) or the shortest slot (one way); for UDP, the octets that fit beside guard, gaps and headers; for redundancy, (1 - q) / (1 - p) - 1.".into(),
        ],
    })
}

type Part = (Vec<Panel>, Vec<Claim>);

fn means(runs: &[Runs], value: fn(&Measured) -> f64) -> Vec<f64> {
    runs.iter().map(|runs| summary(runs, value).mean).collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// G6 and G7: TCP over distance.
fn distance(context: &FigureContext<'_>) -> Result<Part, RunError> {
    let kms: &[f64] = match context.quick() {
        true => &[5.0, 60.0, 200.0],
        false => &[5.0, 20.0, 60.0, 109.0, 150.0, 200.0],
    };
    let over = |scheme, both| {
        let at = |&km: &f64| Trial {
            scheme,
            km,
            loss: 0.0,
            load: Load::Tcp,
            both,
            time: context.short(),
        };
        context.measure(&kms.iter().map(at).collect::<Vec<_>>())
    };
    let (csma, one) = (over(Scheme::CSMA, false)?, over(Scheme::IMPROVED, false)?);
    let both = over(Scheme::IMPROVED, true)?;
    let (c, o, b) = (means(&csma, mbps), means(&one, mbps), means(&both, mbps));
    let at_60 = kms.iter().position(|&km| km == 60.0).unwrap_or(0);
    let ratios: Vec<f64> = o.iter().zip(&c).map(|(ours, csma)| ours / csma).collect();
    let most = b.iter().copied().fold(0.0, f64::max);
    let share = |rates: &[f64], bound: fn(f64) -> f64| -> Vec<f64> {
        let shares = rates.iter().zip(kms);
        shares.map(|(rate, &km)| rate / bound(km)).collect()
    };
    let bound = |used: f64| kms.iter().map(|&km| Some(capacity(used, km))).collect();
    let places: Vec<String> = kms.iter().map(|km| format!("{km} km")).collect();
    let panels = vec![
        lines(
            "i1",
            "TCP one way",
            "Mbit/s",
            ("distance", places.clone()),
            vec![line("802.11", &csma, mbps), line("improved", &one, mbps)],
            bound(CYCLE_US - LEAST_US),
        ),
        lines(
            "i2",
            "TCP both ways",
            "Mbit/s",
            ("distance", places),
            vec![line("improved", &both, mbps)],
            bound(CYCLE_US),
        ),
    ];
    let claims = vec![
        Claim::new(
            "G6: TCP one way, 60 km, slots by demand: at least 6.0 Mbit/s",
            None,
            summary(&one[at_60], mbps),
            "Mbit/s",
            o[at_60] >= 6.0,
        ),
        Claim::value(
            "G6: never slower than 802.11 from 5 km on: the least ratio",
            None,
            least(&ratios),
            one[0].len(),
            "times",
            least(&ratios) >= 1.0,
        ),
        Claim::value(
            "G7: TCP both ways up to 200 km: at least 6.2 Mbit/s",
            None,
            least(&b),
            both[0].len(),
            "Mbit/s at the least",
            least(&b) >= 6.2,
        ),
        Claim::value(
            "G7: flat over distance: it falls by at most 4 %",
            None,
            100.0 * (1.0 - least(&b) / most),
            both[0].len(),
            "%",
            least(&b) >= 0.96 * most,
        ),
        Claim::value(
            "G7: at least 98 % of what equal slots hold if acknowledgements take no time and no frame is cut short: the least share",
            None,
            100.0 * least(&share(&b, |km| capacity(CYCLE_US, km))),
            both[0].len(),
            "%",
            least(&share(&b, |km| capacity(CYCLE_US, km))) >= 0.98,
        )
        .because(|| {
            let held = 100.0 * filled_by_tcp(0.0) / capacity(CYCLE_US, 0.0);
            format!("{held:.1} % are left for segments beside the guard, acknowledgements, and the headers of the 13 frames that 20 ms hold")
        }),
        Claim::value(
            "G7: at least 98 % of what is left for segments beside guard, headers and acknowledgements: the least share",
            None,
            100.0 * least(&share(&b, filled_by_tcp)),
            both[0].len(),
            "%",
            least(&share(&b, filled_by_tcp)) >= 0.98,
        ),
    ];
    Ok((panels, claims))
}

/// G8: lines of masts on one channel.
fn hops(context: &FigureContext<'_>) -> Result<Part, RunError> {
    let counts: &[usize] = match context.quick() {
        true => &[1, 3, 6],
        false => &[1, 2, 3, 4, 6],
    };
    let over = |scheme, load, window| {
        let at = |&hops: &usize| Masts {
            both: true,
            tcp: Stack {
                window,
                ..Stack::USUAL
            },
            ..Masts::line(
                scheme,
                vec![Hop::new(HOP_KM, 0.0); hops],
                load,
                context.short(),
            )
        };
        context.measure(&counts.iter().map(at).collect::<Vec<_>>())
    };
    let udp = over(Scheme::IMPROVED, Load::Udp, WINDOW)?;
    let wild = over(Scheme::WILDNET, Load::Udp, WINDOW)?;
    // From four hops on a round trip takes eight slots or more, and a window of 65,535 octets would be the limit.
    let tcp = over(Scheme::IMPROVED, Load::Tcp, 4 * WINDOW)?;
    let narrow = over(Scheme::IMPROVED, Load::Tcp, WINDOW)?;
    let kept = |runs: &[Runs]| {
        let all = means(runs, mbps);
        100.0 * least(&all) / all[0]
    };
    let mut claims = Vec::new();
    for (name, runs) in [("UDP", &udp), ("TCP", &tcp)] {
        claims.push(
            Claim::value(
                &format!("G8: {name} both ways over up to {} hops on one channel: at least 95 % of one hop", counts[counts.len() - 1]),
                None,
                kept(runs),
                runs[0].len(),
                "%",
                kept(runs) >= 95.0,
            )
            .because(|| {
                let all: Vec<String> = means(runs, mbps).iter().map(|mbps| format!("{mbps:.2}")).collect();
                format!("by hops: {} Mbit/s", all.join(", "))
            }),
        );
    }
    claims.push(narrow_window(counts, &narrow, least(&means(&tcp, mbps))));
    let lossy = lossy_second(context)?;
    let light = 2.0 * HOP_KM * 1e9 / SPEED_OF_LIGHT;
    let idle = lossy.iter().map(|run| run.idle * 1e6).fold(0.0, f64::max);
    claims.push(Claim::value(
        &format!("G8: with 90 % of frames lost for a second, no cycle idles longer than twice the propagation delay ({light:.1} us, and 1 us for the clocks)"),
        None,
        idle,
        lossy.len(),
        "us at most",
        idle <= light + 1.0,
    ));
    let places: Vec<String> = counts.iter().map(|n| format!("{n} hops")).collect();
    let panels = vec![lines(
        "i3",
        "both ways along a line, hops of 10 km on one channel",
        "Mbit/s",
        ("line of", places),
        vec![
            line("WiLDNet, UDP", &wild, mbps),
            line("improved, UDP", &udp, mbps),
            line("improved, TCP", &tcp, mbps),
            line("the same, TCP window 65,535 octets", &narrow, mbps),
        ],
        vec![Some(capacity(CYCLE_US, HOP_KM)); counts.len()],
    )];
    Ok((panels, claims))
}

/// The throughput that a window of 65,535 octets allows on the longest lines. A segment waits for a slot at each mast, so a
/// round trip over h hops takes at least 2 h slots. In that time each direction gets at most one window.
fn narrow_window(counts: &[usize], runs: &[Runs], full: f64) -> Claim {
    let limit = |hops: usize| {
        let round = 2.0 * hops as f64 * (CYCLE_US / 2.0 + HOP_KM * 1e9 / SPEED_OF_LIGHT);
        2.0 * WINDOW as f64 * 8.0 / round
    };
    let bound: Vec<usize> = (0..counts.len())
        .filter(|&at| limit(counts[at]) < full)
        .collect();
    let shares: Vec<f64> = bound
        .iter()
        .map(|&at| 100.0 * summary(&runs[at], mbps).mean / limit(counts[at]))
        .collect();
    Claim::new(
        "G8: where a TCP window of 65,535 octets in 2 h slots is the lower limit, TCP gets at least 95 % of it: the window is the limit",
        None,
        Summary::of(&shares),
        "%",
        shares.iter().all(|share| (95.0..=100.0).contains(share)),
    )
    .because(|| format!("{shares:.1?} %"))
}

/// Runs three hops that lose 90 % of all frames for a second.
fn lossy_second(context: &FigureContext<'_>) -> Result<Runs, RunError> {
    let law = LossLaw::Trace(LinkTrace::Steps(vec![
        (AirTime::ZERO, 1.0),
        (AirTime::from_millis(3_000), 0.1),
        (AirTime::from_millis(4_000), 1.0),
    ]));
    let hop = Hop {
        law: Some(law),
        ..Hop::new(HOP_KM, 0.0)
    };
    let scheme = Scheme::slots(
        20,
        Recovery::Improved { fill: true },
        Service::RELIABLE,
        SlotForm::Even,
    );
    let masts = Masts::line(scheme, vec![hop; 3], Load::Udp, Duration::from_secs(4));
    Ok(context.measure(&[masts])?.swap_remove(0))
}

/// G2 and G3: UDP over loss.
fn losses(context: &FigureContext<'_>) -> Result<Part, RunError> {
    let losses: &[f64] = match context.quick() {
        true => &[0.0, 0.3],
        false => &[0.0, 0.1, 0.2, 0.3, 0.5],
    };
    let over = |scheme, losses: &[f64]| {
        let at = |&loss: &f64| Trial {
            scheme,
            km: LOSSY_KM,
            loss,
            load: Load::Udp,
            both: true,
            time: context.short(),
        };
        context.measure(&losses.iter().map(at).collect::<Vec<_>>())
    };
    let (bare, improved) = (
        over(Scheme::BARE_SLOTS, &[0.0])?,
        over(Scheme::IMPROVED, losses)?,
    );
    let ours = means(&improved, mbps);
    let clean = summary(&bare[0], mbps).mean;
    let full = filled_by_udp(LOSSY_KM);
    let shares: Vec<f64> = losses
        .iter()
        .zip(&ours)
        .map(|(loss, mbps)| 100.0 * mbps / (1.0 - loss) / full)
        .collect();
    let met = losses
        .iter()
        .zip(&shares)
        .all(|(loss, share)| *share >= if *loss > 0.3 { 90.0 } else { 95.0 });
    let claims = vec![
        Claim::value(
            "G2: on a clean link, at least 98 % of what slots without recovery carry, which cut no packets",
            None,
            100.0 * ours[0] / clean,
            improved[0].len(),
            "%",
            ours[0] >= 0.98 * clean,
        ),
        Claim::value(
            "G3: UDP both ways, 60 km: 95 % of (1 - p) of what slots hold, filled to the end, up to 30 % loss, 90 % at 50 %",
            None,
            least(&shares),
            improved[0].len(),
            "% at the least",
            met,
        )
        .because(|| {
            let all: Vec<String> = shares.iter().map(|share| format!("{share:.1}")).collect();
            format!("by loss: {} %", all.join(", "))
        }),
    ];
    let panels = vec![lines(
        "i4",
        "UDP both ways over loss, 60 km",
        "Mbit/s",
        (
            "frames lost",
            losses
                .iter()
                .map(|loss| format!("{:.0} %", loss * 100.0))
                .collect(),
        ),
        vec![line("improved", &improved, mbps)],
        losses
            .iter()
            .map(|loss| Some(full * (1.0 - loss)))
            .collect(),
    )];
    Ok((panels, claims))
}

/// A service that may lose [`TARGET`] and has time for `rounds` further rounds and no more. A round is a cycle of 40.1 ms; half a
/// slot is added for the first transmission to arrive.
fn service(rounds: u8) -> Service {
    Service {
        residual: TARGET,
        deadline: Some(Duration::from_micros(u64::from(rounds) * 40_140 + 11_000)),
        ..Service::retries(Some(rounds))
    }
}

/// G4: a target for the residual loss at the least redundancy, in full slots of about 12 frames.
fn targets(context: &FigureContext<'_>) -> Result<Part, RunError> {
    // Further rounds, and the most redundancy that the goal allows.
    let goals = [(1, 0.75), (2, 0.52), (4, 0.45)];
    let at = |(rounds, _): (u8, f64)| Trial {
        scheme: Scheme::slots(
            20,
            Recovery::Improved { fill: false },
            service(rounds),
            SlotForm::Even,
        ),
        km: 20.0,
        loss: LOSS,
        load: Load::Udp,
        both: false,
        time: context.time(),
    };
    let runs = context.measure(&goals.map(at))?;
    let overhead = |measured: &Measured| 100.0 * measured.overhead;
    let left = |measured: &Measured| 100.0 * measured.given_up;
    let mut claims = Vec::new();
    for ((rounds, most), runs) in goals.iter().zip(&runs) {
        let worst = runs.iter().map(left).fold(0.0, f64::max);
        let cost = summary(runs, overhead);
        claims.push(
            Claim::new(
                &format!("G4: 30 % of frames lost, {rounds} further rounds, at most 1 % of packets lost on every run: redundancy of at most {:.0} %", most * 100.0),
                None,
                cost,
                "%",
                cost.mean <= 100.0 * most && worst <= 100.0 * TARGET,
            )
            .because(|| format!("redundancy {:.1} %, the worst run lost {worst:.2} %", cost.mean)),
        );
    }
    let bound = 100.0 * ((1.0 - TARGET) / (1.0 - LOSS) - 1.0);
    let places: Vec<String> = goals
        .iter()
        .map(|(rounds, _)| format!("{rounds} rounds"))
        .collect();
    let panels = vec![
        lines(
            "i5",
            "redundancy for 30 % down to 1 %, full slots",
            "%",
            ("further", places.clone()),
            vec![line("improved", &runs, overhead)],
            vec![Some(bound); goals.len()],
        ),
        lines(
            "i6",
            "packets lost",
            "%",
            ("further", places),
            vec![line("improved", &runs, left)],
            Vec::new(),
        ),
    ];
    Ok((panels, claims))
}

/// G5: loss that jumps between 5 and 40 % every two seconds.
fn steps(context: &FigureContext<'_>) -> Result<Part, RunError> {
    let steps = (0..30).map(|step| {
        let loss = if step % 2 == 0 { 0.05 } else { 0.4 };
        (AirTime::from_millis(2_000 * step), 1.0 - loss)
    });
    let hop = Hop {
        law: Some(LossLaw::Trace(LinkTrace::Steps(steps.collect()))),
        ..Hop::new(20.0, 0.0)
    };
    let blocks = Recovery::Blocks {
        rule: Redundancy::Residual(TARGET),
        repeat: false,
    };
    let of = |recovery, service| Masts {
        gain: Masts::EMULATED,
        ..Masts::line(
            Scheme::slots(20, recovery, service, SlotForm::Even),
            vec![hop.clone()],
            Load::Steady(1e6),
            context.time(),
        )
    };
    let prompt = Service {
        residual: TARGET,
        deadline: Some(Duration::from_millis(111)),
        drop_late: true,
        ..Service::retries(None)
    };
    let alone = Service {
        retries: Some(0),
        ..prompt
    };
    let runs = context.measure(&[
        of(Recovery::Improved { fill: false }, prompt),
        of(blocks, alone),
    ])?;
    let late = |measured: &Measured| 100.0 * measured.late;
    let overhead = |measured: &Measured| 100.0 * measured.overhead;
    let [ours, paper] = [0, 1].map(|at| summary(&runs[at], late));
    let cost = [0, 1].map(|at| summary(&runs[at], overhead).mean);
    let panels = vec![bars(
        "i7",
        "loss that jumps between 5 and 40 % every 2 s, target of 1 %",
        "%",
        (
            "with",
            vec!["improved, 111 ms".into(), "WiLDNet's code".into()],
        ),
        vec![
            line("late or lost", &runs, late),
            line("redundancy", &runs, overhead),
        ],
        Vec::new(),
    )];
    let claims = vec![
        Claim::new(
            "G5: loss jumps between 5 and 40 %: the target of 1 % is met overall",
            None,
            ours,
            "%",
            ours.mean <= 100.0 * TARGET,
        ),
        Claim::value(
            "G5: less loss at less redundancy than the code of one slot with the mean of ten slots: as a share of its loss",
            None,
            ours.mean / paper.mean,
            runs[0].len(),
            "times",
            ours.mean < paper.mean && cost[0] < cost[1],
        )
        .because(|| format!("{:.2} against {:.2} % lost, redundancy {:.0} against {:.0} %", ours.mean, paper.mean, cost[0], cost[1])),
    ];
    Ok((panels, claims))
}

/// G10: delay on a link that is not full.
fn delay(context: &FigureContext<'_>) -> Result<Part, RunError> {
    let at = |scheme| Trial {
        scheme,
        km: 60.0,
        loss: LOSS,
        load: Load::Steady(1e6),
        both: false,
        time: context.time(),
    };
    let runs = context.measure(&[at(Scheme::WILDNET), at(Scheme::IMPROVED)])?;
    let mean = |measured: &Measured| 1e3 * measured.delay;
    let p99 = |measured: &Measured| 1e3 * measured.p99;
    let lost = runs[1].iter().map(|run| run.residual).fold(0.0, f64::max);
    let [m, p] = [summary(&runs[1], mean), summary(&runs[1], p99)];
    let panels = vec![bars(
        "i8",
        "delay in order, 1 Mbit/s, 60 km, 30 % lost",
        "ms",
        ("with", vec!["WiLDNet".into(), "improved".into()]),
        vec![line("mean", &runs, mean), line("99 % within", &runs, p99)],
        // Waiting for the slot alone takes 8 ms on average, without losses.
        vec![Some(8.0); 2],
    )];
    let claims = vec![
        Claim::new(
            "G10: mean delay at 30 % loss, everything delivered in order: at most 12 ms",
            None,
            m,
            "ms",
            m.mean <= 12.0 && lost == 0.0,
        )
        .because(|| format!("{:.1} ms, {:.3} % not delivered", m.mean, 100.0 * lost)),
        Claim::new("G10: 99 % within 40 ms", None, p, "ms", p.mean <= 40.0),
    ];
    Ok((panels, claims))
}
