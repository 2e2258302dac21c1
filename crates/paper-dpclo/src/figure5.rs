//! Figure 5: three networks in which 802.11 starves flows (V-C3).

use crate::context::FigureContext;
use crate::scene::{MODE, PaperNetwork};
use crate::series::{Runs, by_flow, course, lines, steps, summary};
use crate::trial::{Measured, Trial};
use chappe_lab::run::RunError;
use chappe_lab_dpclo::access::{Access, Method};
use chappe_lab_dpclo::plan::Variant;
use chappe_results::figure::{Claim, Figure, Panel};
use chappe_results::statistics::Summary;

/// The networks: panel, network, names of the flows.
const NETWORKS: [(&str, PaperNetwork, [&str; 2]); 3] = [
    ("A", PaperNetwork::Asymmetry, ["A-B", "C-D"]),
    ("D", PaperNetwork::Receivers, ["A-B", "D-C"]),
    ("G", PaperNetwork::Hidden, ["A-B", "C-B"]),
];

const NAMES: [&str; 4] = ["ZMAC+", "802.11e", "802.11e, RTS", "improved, ZMAC+"];

fn trials(context: &FigureContext<'_>, place: PaperNetwork) -> [Trial; 4] {
    let trial = |variant, method| Trial::new(place, variant, method, context.small());
    let plain = trial(Variant::Paper, Method::Edca);
    let announced = Trial {
        access: Access::new(Method::Edca, MODE).with_rts(),
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
pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for (id, place, flows) in NETWORKS {
        let trials = trials(context, place);
        let runs = context.measure(&trials)?;
        let optimum = trials[0].optimum(chappe_core::Seed(1))?;
        let bars = NAMES.iter().zip(&runs);
        let bars = bars.map(|(name, runs)| by_flow(name, runs, 2, |run, flow| run.kbps[flow]));
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
                steps(context.small()),
                series.to_vec(),
            ));
        }
        claims.extend(match place {
            PaperNetwork::Asymmetry => asymmetry(&runs),
            PaperNetwork::Receivers => receivers(&runs),
            _ => hidden(&runs),
        });
    }
    Ok(Figure {
        id: "figure5",
        title: "starving flows: DPCLO over ZMAC+ and over 802.11e".into(),
        panels,
        claims,
        notes: vec![
            "nodes sense exactly the nodes that they hear; any overlap at a receiver destroys both frames".into(),
            "bound: the max-min fair rate, at the rate of one ZMAC+ link".into(),
        ],
    })
}

fn percent(runs: &Runs, value: impl Fn(&Measured) -> f64) -> Summary {
    summary(runs, |run| 100.0 * value(run))
}

fn asymmetry(runs: &[Runs]) -> Vec<Claim> {
    let share = |run: &Measured| run.kbps[0] / run.kbps[1].max(1e-9);
    let (zmac, edca) = (percent(&runs[0], share), percent(&runs[1], share));
    vec![
        Claim::new(
            "A: over 802.11e, A-B gets much less than C-D: below a quarter",
            None,
            edca,
            "% of C-D",
            edca.mean < 25.0,
        ),
        Claim::new(
            "A: over ZMAC+, the disparity is smaller, but remains",
            None,
            zmac,
            "% of C-D",
            zmac.mean > edca.mean && zmac.mean < 100.0,
        ),
    ]
}

fn receivers(runs: &[Runs]) -> Vec<Claim> {
    let even = |run: &Measured| run.evenness();
    let (zmac, edca) = (percent(&runs[0], even), percent(&runs[1], even));
    let lopsided = [0, 1].map(|of| percent(&runs[of], |run| run.lopsided));
    vec![
        Claim::new(
            "D: over 802.11e, both get the same in the long run, within a fifth",
            None,
            edca,
            "% of the faster",
            edca.mean > 80.0,
        ),
        Claim::new(
            "D: over 802.11e, a flow captures the channel for long: in some seconds one gets three times as much as the other",
            None,
            lopsided[1],
            "% of seconds",
            lopsided[1].mean > 5.0,
        ),
        Claim::new(
            "D: over ZMAC+, both get the same, within a tenth",
            None,
            zmac,
            "% of the faster",
            zmac.mean > 90.0,
        ),
        Claim::new(
            "D: ZMAC+ is steadier than 802.11e",
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
