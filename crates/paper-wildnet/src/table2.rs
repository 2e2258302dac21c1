//! Tables 2 and 3: TCP over several hops (4.2, 5.2).

use chappe_core::Channel;
use chappe_lab::context::{beside, line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel};

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps, tcp_bound};
use chappe_lab_wildnet::masts::{Hop, Masts};
use chappe_lab_wildnet::scheme::{Load, Scheme};

/// The paper's Table 2 in Mbit/s: of 802.11 and of WiLDNet, each one way (direction 1) and both ways, by hops.
const TABLE2: [[[f64; 3]; 2]; 2] = [
    [[5.74, 2.60, 2.23], [6.00, 2.62, 1.99]],
    [[3.56, 3.12, 2.95], [5.85, 5.12, 4.64]],
];
/// Table 3, on the same channel and on different ones. The last number is printed as "4", probably truncated.
#[expect(clippy::approx_constant, reason = "a throughput that looks like pi")]
const TABLE3: [[[f64; 2]; 2]; 2] = [[[2.17, 3.95], [2.11, 4.50]], [[3.12, 3.14], [4.86, 4.0]]];
/// Length of an "indoor" hop in km: short, but beyond the reach of dishes other than the peer's.
const INDOOR_KM: f64 = 1.0;
/// Length in km and loss of Table 3's links: those of the campus link B-R of Table 1. Its own are not given.
const CAMPUS: (f64, f64) = (8.0, 0.034);
/// A channel that does not overlap with channel 1.
const FAR: u8 = 11;

const SCHEMES: [(&str, Scheme); 3] = [
    ("802.11", Scheme::CSMA),
    ("WiLDNet", Scheme::WILDNET),
    ("improved", Scheme::IMPROVED),
];

/// Runs all schemes over each of the lines, one way or both ways.
fn measure(
    context: &FigureContext<'_>,
    lines: &[Vec<Hop>],
    both: bool,
) -> Result<Vec<Vec<Runs>>, RunError> {
    let over = |(_, scheme): (&str, Scheme)| {
        let of = |hops: &Vec<Hop>| Masts {
            both,
            ..Masts::line(scheme, hops.clone(), Load::Tcp, context.short())
        };
        context.measure(&lines.iter().map(of).collect::<Vec<_>>())
    };
    SCHEMES.into_iter().map(over).collect()
}

fn panel(
    (id, title): (&str, &str),
    (axis, places): (&'static str, Vec<String>),
    runs: &[Vec<Runs>],
    paper: [&[f64]; 2],
    bound: f64,
) -> Panel {
    let series = SCHEMES.iter().zip(runs).enumerate();
    let series = series.map(|(at, ((name, _), runs))| {
        let given: Vec<Option<f64>> = match paper.get(at) {
            Some(values) => values.iter().copied().map(Some).collect(),
            None => vec![None; runs.len()],
        };
        beside(line(name, runs, mbps), &given)
    });
    let bounds = vec![Some(bound); places.len()];
    lines(
        id,
        title,
        "Mbit/s",
        (axis, places),
        series.collect(),
        bounds,
    )
    .bounding(&["WiLDNet"])
}

fn mean(runs: &[Vec<Runs>], scheme: usize, place: usize) -> f64 {
    summary(&runs[scheme][place], mbps).mean
}

pub fn table2(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let chains = [1, 2, 3].map(|hops| vec![Hop::new(INDOOR_KM, 0.0); hops]);
    let (one, both) = (
        measure(context, &chains, false)?,
        measure(context, &chains, true)?,
    );
    // The same with receivers that stay with the frame they have.
    let weak = |both| {
        let of = |hops: &Vec<Hop>| {
            let mut masts = Masts {
                both,
                ..Masts::line(Scheme::CSMA, hops.clone(), Load::Tcp, context.short())
            };
            masts.profile.capture = None;
            masts
        };
        context.measure(&chains.iter().map(of).collect::<Vec<_>>())
    };
    let weak = [weak(false)?, weak(true)?];
    let places = || {
        (
            "line of",
            ["2 nodes", "3 nodes", "4 nodes"].map(String::from).to_vec(),
        )
    };
    let mut claims = Vec::new();
    for (runs, title) in [(&one, "one way"), (&both, "both ways")] {
        let drop = mean(runs, 0, 0) / mean(runs, 0, 1);
        let way = usize::from(title != "one way");
        let [alone, relayed] = [0, 1].map(|at| summary(&weak[way][at], mbps).mean);
        claims.push(Claim::value(
            &format!("{title}, 802.11 falls to half or less with the second hop: the factor"),
            Some(if title == "one way" { 5.74 / 2.60 } else { 6.00 / 2.62 }),
            drop,
            runs[0][1].len(),
            "times",
            drop >= 2.0,
        )
        .because(|| {
            let [csma, wild] = [0, 1].map(|system| TABLE2[system][way][0] / TABLE2[system][way][1]);
            format!(
                "the paper's WiLDNet, which has no collisions, falls by {wild:.2} at the same relay, a 266 MHz computer; without \
                 that factor its 802.11 falls by {:.2}. Ours falls by {:.2} if receivers do not abandon a frame for one 10 dB \
                 stronger, so that a relay's two radios cannot receive at the same time",
                csma / wild,
                alone / relayed
            )
        }));
        for (scheme, name) in [(1, "WiLDNet"), (2, "improved")] {
            // A relay sends what it receives, so even the best slots carry half one way. Over one hop, slots by demand carry more
            // than half, so both variants compare with the paper's slots.
            let alone = if title == "one way" { 1 } else { scheme };
            let kept = 100.0 * mean(runs, scheme, 2) / mean(runs, alone, 0);
            claims.push(Claim::value(
                &format!(
                    "{title}, {name} keeps at least 80 % over three hops (of {} over one)",
                    SCHEMES[alone].0
                ),
                (scheme == 1).then_some(if title == "one way" {
                    100.0 * 2.95 / 3.56
                } else {
                    100.0 * 4.64 / 5.85
                }),
                kept,
                runs[scheme][2].len(),
                "%",
                kept >= 80.0,
            ));
        }
    }
    let ratio = mean(&both, 1, 2) / mean(&both, 0, 2);
    claims.push(Claim::value(
        "both ways over three hops, WiLDNet gets twice what 802.11 gets",
        Some(4.64 / 1.99),
        ratio,
        both[1][2].len(),
        "times",
        ratio >= 2.0,
    ));
    Ok(Figure {
        id: "table2",
        title: "TCP along a line, all links on one channel".into(),
        panels: vec![
            panel(("t2a", "one way"), places(), &one, [&TABLE2[0][0], &TABLE2[1][0]], tcp_bound(false, INDOOR_KM, 0.0)),
            panel(("t2b", "both ways"), places(), &both, [&TABLE2[0][1], &TABLE2[1][1]], tcp_bound(true, INDOOR_KM, 0.0)),
        ],
        claims,
        notes: vec![
            "Hops of 1 km between dishes of 24 dBi, 60 dB between the radios of a mast. The bound is that of fixed slots over any number of hops. The improved variant may exceed it over one hop, because its slots follow the demand.".into(),
        ],
    })
}

pub fn table3(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let (km, loss) = CAMPUS;
    let line = |second| {
        let hop = |channel| Hop {
            channel: Channel(channel),
            ..Hop::new(km, loss)
        };
        vec![hop(1), hop(second)]
    };
    let chains = [line(1), line(FAR)];
    let (one, both) = (
        measure(context, &chains, false)?,
        measure(context, &chains, true)?,
    );
    let places = || ("channels", ["same", "different"].map(String::from).to_vec());
    let mut claims = Vec::new();
    for (runs, title) in [(&one, "one way"), (&both, "both ways")] {
        let ratio = mean(runs, 1, 0) / mean(runs, 1, 1);
        claims.push(Claim::value(
            &format!("{title}, WiLDNet gets as much on one channel as on two, within 5 %"),
            (title == "one way").then_some(TABLE3[1][0][0] / TABLE3[1][0][1]),
            ratio,
            runs[1][0].len(),
            "of it",
            (ratio - 1.0).abs() < 0.05,
        ));
        let lost = mean(runs, 0, 1) / mean(runs, 0, 0);
        claims.push(Claim::value(
            &format!("{title}, 802.11 gets much more on two channels: a factor of at least 1.5"),
            Some(if title == "one way" {
                3.95 / 2.17
            } else {
                4.50 / 2.11
            }),
            lost,
            runs[0][0].len(),
            "times",
            lost >= 1.5,
        ));
    }
    let ratio = mean(&both, 1, 0) / mean(&both, 0, 0);
    claims.push(Claim::value(
        "both ways on one channel, WiLDNet gets more than twice what 802.11 gets",
        Some(4.86 / 2.11),
        ratio,
        both[1][0].len(),
        "times",
        ratio > 2.0,
    ));
    Ok(Figure {
        id: "table3",
        title: "TCP over K - P - M".into(),
        panels: vec![
            panel(("t3a", "one way"), places(), &one, [&TABLE3[0][0], &TABLE3[1][0]], tcp_bound(false, km, loss)),
            panel(("t3b", "both ways"), places(), &both, [&TABLE3[0][1], &TABLE3[1][1]], tcp_bound(true, km, loss)),
        ],
        claims,
        notes: vec![
            "The paper does not give length and loss of these links. Table 1's campus link stands in for them, with 8 km and 3.4 %. The paper's caption says three hops; K - P - M has two.".into(),
        ],
    })
}
