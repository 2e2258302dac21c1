//! Figure 5: three networks in which 802.11 starves flows (V-C3).

use super::access::{Access, Method};
use super::plan::Variant;
use super::scene::{MODE, Place};
use super::sheet::{Runs, Sheet, by_flow, course, lines, steps, summary};
use super::trial::{Ran, Trial};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel};
use chappe_results::statistics::Summary;

/// The networks: panels' names, flows.
const NETWORKS: [(&str, Place, [&str; 2]); 3] = [
    ("A", Place::Asymmetry, ["A-B", "C-D"]),
    ("D", Place::Receivers, ["A-B", "D-C"]),
    ("G", Place::Hidden, ["A-B", "C-B"]),
];

const NAMES: [&str; 4] = ["ZMAC+", "802.11e", "802.11e, RTS", "ours, ZMAC+"];

fn trials(sheet: &Sheet<'_>, place: Place) -> [Trial; 4] {
    let trial = |variant, method| Trial::new(place, variant, method, sheet.small());
    let plain = trial(Variant::Paper, Method::Edca);
    let announced = Trial {
        access: Access::new(Method::Edca, MODE).announced(),
        ..plain.clone()
    };
    [
        trial(Variant::Paper, Method::ZmacPlus),
        plain,
        announced,
        trial(Variant::Improved, Method::ZmacPlus),
    ]
}

//= dpclo V-C3: information asymmetry, receivers that hear each other, hidden senders
pub fn make(sheet: &Sheet<'_>) -> Result<Figure, RunError> {
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for (id, place, flows) in NETWORKS {
        let trials = trials(sheet, place);
        let runs = sheet.measure(&trials)?;
        let optimum = trials[0].optimum(chappe_core::Seed(1))?;
        let bars = NAMES.iter().zip(&runs);
        let bars = bars.map(|(name, runs)| by_flow(name, runs, 2, |ran, flow| ran.kbps[flow]));
        panels.push(
            Panel::bars(
                &format!("5{id}"),
                "goodput",
                "kbit/s",
                flows.map(String::from).to_vec(),
                bars.collect(),
            )
            .on("flow")
            .bounded(vec![Some(optimum.max_min_bps / 1e3); 2], vec![]),
        );
        for (name, runs) in NAMES.iter().zip(&runs).take(3) {
            let series = [0, 1].map(|flow| course(flows[flow], runs, flow));
            panels.push(lines(
                &format!("5{id} {name}"),
                &format!("over time, {name}"),
                "kbit/s",
                steps(sheet.small()),
                series.to_vec(),
            ));
        }
        claims.extend(match place {
            Place::Asymmetry => asymmetry(&runs),
            Place::Receivers => receivers(&runs),
            _ => hidden(&runs),
        });
    }
    Ok(Figure {
        id: "figure5",
        title: "flows that starve: DPCLO over ZMAC+ and over 802.11e".into(),
        panels,
        claims,
        notes: vec![
            "whoever is heard is also sensed, and nobody else; any overlap at a receiver destroys both frames".into(),
            "bound: max-min fair, at what ZMAC+ carries on one link".into(),
        ],
    })
}

fn percent(runs: &Runs, value: impl Fn(&Ran) -> f64) -> Summary {
    summary(runs, |ran| 100.0 * value(ran))
}

fn asymmetry(runs: &[Runs]) -> Vec<Claim> {
    let share = |ran: &Ran| ran.kbps[0] / ran.kbps[1].max(1e-9);
    let (zmac, edca) = (percent(&runs[0], share), percent(&runs[1], share));
    vec![
        Claim::new(
            "A: over 802.11e A-B gets much less than C-D: below a quarter",
            None,
            edca,
            "% of C-D",
            edca.mean < 25.0,
        ),
        Claim::new(
            "A: over ZMAC+ the disparity is smaller, and remains",
            None,
            zmac,
            "% of C-D",
            zmac.mean > edca.mean && zmac.mean < 100.0,
        ),
    ]
}

fn receivers(runs: &[Runs]) -> Vec<Claim> {
    let even = |ran: &Ran| ran.evenness();
    let (zmac, edca) = (percent(&runs[0], even), percent(&runs[1], even));
    let lopsided = [0, 1].map(|of| percent(&runs[of], |ran| ran.lopsided));
    vec![
        Claim::new(
            "D: over 802.11e both have the same in the long run, within a fifth",
            None,
            edca,
            "% of the faster",
            edca.mean > 80.0,
        ),
        Claim::new(
            "D: but each captures the channel for long: in some seconds one has three times as much as the other",
            None,
            lopsided[1],
            "% of seconds",
            lopsided[1].mean > 5.0,
        ),
        Claim::new(
            "D: over ZMAC+ both have the same, within a tenth",
            None,
            zmac,
            "% of the faster",
            zmac.mean > 90.0,
        ),
        Claim::new(
            "D: and ZMAC+ is steadier than 802.11e",
            None,
            lopsided[0],
            "% of seconds",
            lopsided[0].mean <= lopsided[1].mean,
        ),
    ]
}

fn hidden(runs: &[Runs]) -> Vec<Claim> {
    let ratio = |of: &Runs| {
        let pairs = of.iter().zip(&runs[0]);
        let ratios = pairs.map(|(edca, zmac)| 100.0 * edca.total() / zmac.total());
        Summary::of(&ratios.collect::<Vec<_>>())
    };
    let announced = ratio(&runs[2]);
    vec![Claim::new(
        "G: 802.11e with RTS and CTS carries more in total than ZMAC+",
        None,
        announced,
        "% of ZMAC+",
        announced.mean > 100.0,
    )]
}
