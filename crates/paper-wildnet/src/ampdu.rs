//! Figure 2 for today's cards: 802.11n and ac over distance.
//!
//! Aggregation removes the cost of stop-and-wait. Slot times that grow with distance, collisions where they do not, and
//! registers that bound the ACK timeout cost what it gained.

use chappe_core::Duration;
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel};
use chappe_results::statistics::Summary;

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps};
use chappe_lab_wildnet::dot11n::link::{Access, AmpduLink};
use chappe_lab_wildnet::dot11n::phy::{PHYS, Phy};
use chappe_lab_wildnet::experiment::Measured;

/// Length of a slot where the ends take turns (specs 2.3).
const TURN: Duration = Duration::from_millis(5);
/// How long each run is measured: long enough to average the back-offs of a hundred exchanges a second.
const TIME: Duration = Duration::from_secs(200);
/// The PHY that is shown over distance: two streams of 40 MHz, which most long links have.
const SHOWN: Phy = PHYS[2];
/// Lengths of the link in km.
const KMS: [f64; 5] = [1.0, 10.0, 30.0, 50.0, 100.0];
/// Throughput of an independent model in Mbit/s, by PHY: with stretched and with fixed slot time, by length of the link.
const TABLE: [[[f64; 5]; 2]; 4] = [
    [
        [57.0, 50.0, 39.0, 32.0, 22.0],
        [58.0, 58.0, 56.0, 54.0, 50.0],
    ],
    [
        [114.0, 100.0, 78.0, 63.0, 44.0],
        [117.0, 115.0, 112.0, 108.0, 101.0],
    ],
    [
        [243.0, 185.0, 121.0, 90.0, 54.0],
        [254.0, 246.0, 231.0, 217.0, 189.0],
    ],
    [
        [575.0, 386.0, 224.0, 157.0, 90.0],
        [616.0, 586.0, 530.0, 484.0, 398.0],
    ],
];
const ROWS: [(&str, Access); 4] = [
    ("slot stretched", Access::Stretched),
    ("slot fixed", Access::Fixed),
    ("slot fixed, card's register", Access::Register),
    ("turns of 5 ms", Access::Turns(TURN)),
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let time = TIME;
    let link = move |phy, access, km, both| AmpduLink {
        phy,
        access,
        km,
        both,
        time,
    };
    let shown = |both| -> Result<Vec<Vec<Runs>>, RunError> {
        let row = |(_, access): (&str, Access)| {
            let at = KMS.map(|km| link(SHOWN, access, km, both));
            context.measure(&at)
        };
        ROWS.into_iter().map(row).collect()
    };
    let (one, two) = (shown(false)?, shown(true)?);
    let mut far = Vec::new();
    for (_, access) in ROWS {
        far.push(context.measure(&PHYS.map(|phy| link(phy, access, 100.0, true)))?);
    }
    let forms = forms(context, &link)?;
    let kms: Vec<String> = KMS.iter().map(|km| format!("{km} km")).collect();
    let names: Vec<String> = PHYS.iter().map(|phy| phy.name.into()).collect();
    let share = |measured: &Measured| 100.0 * measured.residual;
    let panel = |id, title, axis, runs: &[Vec<Runs>], most: Vec<f64>| -> Panel {
        let series = ROWS.iter().zip(runs);
        let series = series.map(|((name, _), runs)| line(name, runs, mbps));
        let most = most.into_iter().map(Some).collect();
        lines(id, title, "Mbit/s", axis, series.collect(), most)
    };
    let rate = |phys: &[Phy]| phys.iter().map(Phy::rate).collect::<Vec<_>>();
    Ok(Figure {
        id: "ampdu",
        title: "802.11n and ac with A-MPDUs over distance, under the DCF and in slots".into(),
        panels: vec![
            panel("m1", &format!("one way, {}", SHOWN.name), ("distance", kms.clone()), &one, rate(&[SHOWN; 5])),
            panel("m2", &format!("both ways, {}", SHOWN.name), ("distance", kms.clone()), &two, rate(&[SHOWN; 5])),
            lines(
                "m3",
                "both ways: exchanges that collide",
                "%",
                ("distance", kms),
                ROWS[..2].iter().zip(&two).map(|((name, _), runs)| line(name, runs, share)).collect(),
                Vec::new(),
            ),
            panel("m4", "both ways, 100 km", ("PHY", names), &far, rate(&PHYS)),
        ],
        claims: [forms, at_distance(&one, &two, &far)].concat(),
        notes: vec![
            "A separate model: two stations, frames without errors, block ACKs of 32 octets, CWmin 15, MPDUs with 1448 octets of TCP payload; no EIFS, no TXOP. The bound is the rate of the PHY.".into(),
            "Stretched: 3 us of slot time for each 450 m, as mac80211's `distance` sets it. Register: ath9k holds ACK timeouts of 300 us (40 MHz) and 600 us (20 MHz).".into(),
        ],
    })
}

/// Claims that the model agrees with its closed form, and the closed form with the table.
fn forms(
    context: &FigureContext<'_>,
    link: &impl Fn(Phy, Access, f64, bool) -> AmpduLink,
) -> Result<Vec<Claim>, RunError> {
    let (mut to_form, mut to_table) = (Vec::new(), Vec::new());
    for (phy, table) in PHYS.into_iter().zip(TABLE) {
        for (access, table) in [Access::Stretched, Access::Fixed].into_iter().zip(table) {
            let links = KMS.map(|km| link(phy, access, km, false));
            let runs = context.measure(&links)?;
            for ((link, runs), table) in links.iter().zip(&runs).zip(table) {
                let form = link.closed_form();
                to_form.push(100.0 * (summary(runs, mbps).mean / form - 1.0).abs());
                to_table.push(100.0 * (form / table - 1.0).abs());
            }
        }
    }
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    Ok(vec![
        Claim::value(
            "one sender: the model is within 1 % of its closed form at all points",
            None,
            most(&to_form),
            to_form.len(),
            "% at most",
            most(&to_form) <= 1.0,
        ),
        Claim::value(
            "the closed form is within 5 % of an independent model's table, which has whole Mbit/s and 21 MPDUs at 65",
            None,
            most(&to_table),
            to_table.len(),
            "% at most",
            most(&to_table) <= 5.0,
        ),
    ])
}

fn at_distance(one: &[Vec<Runs>], two: &[Vec<Runs>], far: &[Vec<Runs>]) -> Vec<Claim> {
    let mean = |runs: &Runs| summary(runs, mbps).mean;
    let last = KMS.len() - 1;
    let kept = |row: &Vec<Runs>| 100.0 * mean(&row[last]) / mean(&row[0]);
    let [stretched, fixed, register, turns] = [0, 1, 2, 3];
    let ratios = |than: usize| -> Vec<f64> {
        let pairs = far[turns].iter().zip(&far[than]);
        pairs
            .map(|(turns, than)| mean(turns) / mean(than))
            .collect()
    };
    let over = |than: usize, name: &str| {
        let ratios = ratios(than);
        Claim::new(
            &format!("both ways, 100 km, all PHYs: turns carry more than {name}"),
            None,
            Summary::of(&ratios),
            "times",
            ratios.iter().all(|ratio| *ratio > 1.0),
        )
    };
    let beyond = mean(&one[register][3]) / mean(&one[fixed][3]);
    vec![
        Claim::value(
            "one way, 300 Mbit/s: stretched slot times keep less than a third from 1 to 100 km",
            None,
            kept(&one[stretched]),
            one[stretched][0].len(),
            "%",
            kept(&one[stretched]) < 100.0 / 3.0,
        ),
        Claim::value(
            "both ways, 300 Mbit/s: turns keep at least 85 % from 1 to 100 km",
            None,
            kept(&two[turns]),
            two[turns][0].len(),
            "%",
            kept(&two[turns]) >= 85.0,
        ),
        Claim::value(
            "an ACK timeout of 300 us fails before 50 km: throughput there, as a share of that with a longer one",
            None,
            beyond,
            one[register][3].len(),
            "of it",
            beyond < 0.3,
        ),
        over(stretched, "the DCF with stretched slot times"),
        over(fixed, "the DCF with fixed slot times"),
    ]
}
