//! Figures 2 to 4: two flows over six nodes (V-B, V-C).

use chappe_dpclo::KMax;

use crate::context::FigureContext;
use crate::scene::{E, PaperNetwork};
use crate::series::{Runs, by_flow, course, lines, paired, steps, summary};
use crate::trial::{Measured, Trial};
use chappe_lab::run::RunError;
use chappe_lab_dpclo::access::Method;
use chappe_lab_dpclo::plan::Variant;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

const SIX: PaperNetwork = PaperNetwork::Six {
    beside: E,
    lossy: false,
};
const FLOWS: [&str; 2] = ["A-E", "D-F"];

/// Whether the gain is above zero: its whole interval, if there is one.
fn is_above_zero(gain: &Summary) -> bool {
    gain.interval().map_or(gain.mean, |(least, _)| least) > 0.0
}

//= dpclo V-B: DCLO and DPCLO over time, two flows on six nodes
pub fn figure2(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let trial = |variant, method| Trial::new(SIX, variant, method, context.small());
    let trials = [
        trial(Variant::Dclo, Method::ZmacPlus),
        trial(Variant::Paper, Method::ZmacPlus),
        trial(Variant::Dclo, Method::Edca),
        trial(Variant::Paper, Method::Edca),
        trial(Variant::Improved, Method::ZmacPlus),
    ];
    let runs = context.measure(&trials)?;
    let [dclo, dpclo, dclo_edca, dpclo_edca, ours] = &runs[..] else {
        return Err(RunError::Defect("five trials have five results".into()));
    };
    let optimum = trials[1].optimum(chappe_core::Seed(1))?;
    let fair = Some(2.0 * optimum.max_min_bps / 1e3);
    let panel = |id, title, runs| {
        let series = [0, 1].map(|flow| course(FLOWS[flow], runs, flow));
        lines(id, title, "kbit/s", steps(context.small()), series.to_vec())
    };
    let names = [
        "DCLO",
        "DPCLO",
        "DCLO, 802.11e",
        "DPCLO, 802.11e",
        "improved",
    ];
    let totals = names.iter().zip(&runs);
    let totals = totals.map(|(name, runs)| Series::new(name, vec![summary(runs, Measured::total)]));
    let fluctuation = paired(dpclo, dclo, |a, b| {
        100.0 * a.fluctuation().max(b.fluctuation())
    });
    let ratio = paired(dclo, dpclo, |a, b| 100.0 * a.total() / b.total());
    let ratio_edca = paired(dclo_edca, dpclo_edca, |a, b| 100.0 * a.total() / b.total());
    let improved = paired(ours, dpclo, |a, b| 100.0 * a.total() / b.total());
    let claims = vec![
        Claim::new(
            "both converge: in the second half, rates over 5 s deviate from their mean by less than 25 %, on average",
            None,
            fluctuation,
            "% off",
            fluctuation.mean < 25.0,
        ),
        Claim::new(
            "DCLO carries less than DPCLO over ZMAC+ (the paper's \"somewhat less\": at least half)",
            None,
            ratio,
            "% of DPCLO",
            (50.0..100.0).contains(&ratio.mean),
        ),
        Claim::new(
            "DCLO carries less than DPCLO over 802.11e (at least half)",
            None,
            ratio_edca,
            "% of DPCLO",
            (50.0..100.0).contains(&ratio_edca.mean),
        ),
        Claim::new(
            "the improved variant carries as much as DPCLO over ZMAC+, within 5 %",
            None,
            improved,
            "% of DPCLO",
            improved.mean > 95.0,
        )
        .as_goal(),
    ];
    Ok(Figure {
        id: "figure2",
        title: "two flows over six nodes by DCLO and DPCLO, over time".into(),
        panels: vec![
            panel("2b", "DCLO over ZMAC+", dclo),
            panel("2c", "DPCLO over ZMAC+", dpclo),
            Panel::bars(
                "2+",
                "both flows together",
                "kbit/s",
                vec!["total".into()],
                totals.collect(),
            )
            .on("flows")
            .bounded(vec![fair], vec![]),
        ],
        claims,
        notes: vec![
            "bound: the max-min fair rates of both flows in a schedule without collisions, at the rate of one ZMAC+ link".into(),
        ],
    })
}

//= dpclo V-C1: one path against several
pub fn figure3(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let methods = [Method::ZmacPlus, Method::Edca, Method::Dcf];
    let mut trials = Vec::new();
    for method in methods {
        let several = Trial::new(SIX, Variant::Paper, method, context.small());
        let one = several.clone().with(|s| s.next_hops.limit = KMax::Fixed(1));
        trials.extend([one, several]);
    }
    let usual = |variant| Trial::new(SIX, variant, Method::ZmacPlus, context.small());
    // With both watermarks at zero, a router uses two next hops from the start, whatever its queues hold.
    trials.push(usual(Variant::Paper).with(|settings| {
        (settings.next_hops.high, settings.next_hops.low) = (0.0, 0.0);
    }));
    trials.push(usual(Variant::Improved));
    let runs = context.measure(&trials)?;
    let optimum = trials[0].optimum(chappe_core::Seed(1))?;
    let fair = Some(optimum.max_min_bps / 1e3);
    let names = [
        "one path",
        "several",
        "one, 802.11e",
        "several, 802.11e",
        "one, DCF",
        "several, DCF",
        "two always",
        "improved",
    ];
    let series = names.iter().zip(&runs);
    let series = series.map(|(name, runs)| by_flow(name, runs, 2, |run, flow| run.kbps[flow]));
    let mut claims = Vec::new();
    for (place, method) in methods.iter().enumerate() {
        let (one, several) = (&runs[2 * place], &runs[2 * place + 1]);
        let fairer = paired(several, one, |a, b| a.evenness() - b.evenness());
        let lost = paired(several, one, |a, b| 100.0 * (1.0 - a.total() / b.total()));
        let name = method.label();
        claims.push(Claim::new(
            &format!(
                "{name}: several paths are fairer: the slower flow gets a larger share of the faster flow's rate"
            ),
            None,
            fairer,
            "",
            is_above_zero(&fairer),
        ));
        claims.push(Claim::new(
            &format!("{name}: several paths cost half of the total goodput (30 to 60 %)"),
            Some(50.0),
            lost,
            "%",
            (30.0..=60.0).contains(&lost.mean),
        ));
    }
    let (one, always) = (&runs[0], &runs[6]);
    let lost = paired(always, one, |a, b| 100.0 * (1.0 - a.total() / b.total()));
    claims.push(Claim::new(
        "ZMAC+: two next hops from the start, without watermarks, cost more than with watermarks",
        None,
        lost,
        "%",
        lost.mean > paired(&runs[1], one, |a, b| 100.0 * (1.0 - a.total() / b.total())).mean,
    ));
    Ok(Figure {
        id: "figure3",
        title: "one path compared with several: two flows over six nodes".into(),
        panels: vec![
            Panel::bars(
                "3",
                "goodput",
                "kbit/s",
                FLOWS.map(String::from).to_vec(),
                series.collect(),
            )
            .on("flow")
            .bounded(vec![fair; 2], vec![]),
        ],
        claims,
        notes: vec!["bound: the max-min fair rate, at the rate of one ZMAC+ link".into()],
    })
}

//= dpclo V-C2: links that lose up to six frames of ten, with and without ETX
pub fn figure4(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let lossy = PaperNetwork::Six {
        beside: E,
        lossy: true,
    };
    let mut trials = Vec::new();
    for method in [Method::ZmacPlus, Method::Edca] {
        let with = Trial::new(lossy, Variant::Paper, method, context.small());
        let without = with.clone().with(|s| s.probes.etx_max = 1.0);
        trials.extend([without, with]);
    }
    let runs = context.measure(&trials)?;
    let names = [
        "without ETX",
        "with ETX",
        "without, 802.11e",
        "with, 802.11e",
    ];
    let series = names.iter().zip(&runs);
    let series = series.map(|(name, runs)| by_flow(name, runs, 2, |run, flow| run.kbps[flow]));
    let claim = |text: &str, (without, with): (&Runs, &Runs), flow: usize| {
        let gain = paired(with, without, |a, b| {
            100.0 * (a.kbps[flow] / b.kbps[flow].max(1e-9) - 1.0)
        });
        Claim::new(
            &format!("{text}: ETX raises the goodput of {}", FLOWS[flow]),
            None,
            gain,
            "%",
            is_above_zero(&gain),
        )
    };
    let mut claims = Vec::new();
    for flow in [0, 1] {
        claims.push(claim("ZMAC+", (&runs[0], &runs[1]), flow));
        claims.push(claim("802.11e", (&runs[2], &runs[3]), flow));
    }
    Ok(Figure {
        id: "figure4",
        title: "links with losses between 0 and 0.6, drawn once for each seed".into(),
        panels: vec![
            Panel::bars(
                "4",
                "goodput",
                "kbit/s",
                FLOWS.map(String::from).to_vec(),
                series.collect(),
            )
            .on("flow"),
        ],
        claims,
        notes: vec![
            "without ETX, every link in use counts as one transmission; the paper's axis ends at 110 kbit/s".into(),
        ],
    })
}
