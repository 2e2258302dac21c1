//! Figures 2 to 4: two flows over six nodes (V-B, V-C).

use chappe_dpclo::KMax;

use super::access::Method;
use super::plan::Variant;
use super::scene::Place;
use super::sheet::{Runs, Sheet, by_flow, course, lines, steps, summary};
use super::trial::{Ran, Trial};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

const SIX: Place = Place::Six { lossy: false };
const FLOWS: [&str; 2] = ["A-E", "D-F"];

/// The mean over runs of one value of each pair of runs on one seed.
fn paired(a: &Runs, b: &Runs, value: impl Fn(&Ran, &Ran) -> f64) -> Summary {
    let pairs = a.iter().zip(b).map(|(a, b)| value(a, b));
    Summary::of(&pairs.collect::<Vec<_>>())
}

/// Whether the seeds show it: the whole interval, if there is one, lies above zero.
fn is_above_zero(gain: &Summary) -> bool {
    gain.interval().map_or(gain.mean, |(least, _)| least) > 0.0
}

//= dpclo V-B: DCLO and DPCLO over time, two flows on six nodes
pub fn figure2(sheet: &Sheet<'_>) -> Result<Figure, RunError> {
    let trial = |variant, method| Trial::new(SIX, variant, method, sheet.small());
    let trials = [
        trial(Variant::Dclo, Method::ZmacPlus),
        trial(Variant::Paper, Method::ZmacPlus),
        trial(Variant::Dclo, Method::Edca),
        trial(Variant::Paper, Method::Edca),
        trial(Variant::Improved, Method::ZmacPlus),
    ];
    let runs = sheet.measure(&trials)?;
    let [dclo, dpclo, dclo_edca, dpclo_edca, ours] = &runs[..] else {
        return Err(RunError::Defect("five trials have five results".into()));
    };
    let optimum = trials[1].optimum(chappe_core::Seed(1))?;
    let fair = Some(2.0 * optimum.max_min_bps / 1e3);
    let panel = |id, title, runs| {
        let series = [0, 1].map(|flow| course(FLOWS[flow], runs, flow));
        lines(id, title, "kbit/s", steps(sheet.small()), series.to_vec())
    };
    let names = ["DCLO", "DPCLO", "DCLO, 802.11e", "DPCLO, 802.11e", "ours"];
    let totals = names.iter().zip(&runs);
    let totals = totals.map(|(name, runs)| Series::new(name, vec![summary(runs, Ran::total)]));
    let unrest = paired(dpclo, dclo, |a, b| 100.0 * a.unrest().max(b.unrest()));
    let ratio = paired(dclo, dpclo, |a, b| 100.0 * a.total() / b.total());
    let ratio_edca = paired(dclo_edca, dpclo_edca, |a, b| 100.0 * a.total() / b.total());
    let improved = paired(ours, dpclo, |a, b| 100.0 * a.total() / b.total());
    let claims = vec![
        Claim::new(
            "the rates of both converge: in the second half steps of 5 s lie within 25 % of their mean, on average",
            None,
            unrest,
            "% off",
            unrest.mean < 25.0,
        ),
        Claim::new(
            "DCLO carries less than DPCLO (the text's \"somewhat less\": half of it or more), over ZMAC+",
            None,
            ratio,
            "% of DPCLO",
            (50.0..100.0).contains(&ratio.mean),
        ),
        Claim::new(
            "the same over 802.11e",
            None,
            ratio_edca,
            "% of DPCLO",
            (50.0..100.0).contains(&ratio_edca.mean),
        ),
        Claim::new(
            "ours carries as much as DPCLO, within 5 %, over ZMAC+",
            None,
            improved,
            "% of DPCLO",
            improved.mean > 95.0,
        ),
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
            "bound: the rates that a schedule without collisions leaves at what ZMAC+ carries on one link".into(),
        ],
    })
}

//= dpclo V-C1: one path against several
pub fn figure3(sheet: &Sheet<'_>) -> Result<Figure, RunError> {
    let methods = [Method::ZmacPlus, Method::Edca, Method::Dcf];
    let mut trials = Vec::new();
    for method in methods {
        let several = Trial::new(SIX, Variant::Paper, method, sheet.small());
        let one = several.clone().with(|s| s.next_hops.limit = KMax::Fixed(1));
        trials.extend([one, several]);
    }
    let usual = |variant| Trial::new(SIX, variant, Method::ZmacPlus, sheet.small());
    // Two next hops from the start, whatever waits there.
    trials.push(usual(Variant::Paper).with(|settings| {
        (settings.next_hops.high, settings.next_hops.low) = (0.0, 0.0);
    }));
    trials.push(usual(Variant::Improved));
    let runs = sheet.measure(&trials)?;
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
        "ours",
    ];
    let series = names.iter().zip(&runs);
    let series = series.map(|(name, runs)| by_flow(name, runs, 2, |ran, flow| ran.kbps[flow]));
    let mut claims = Vec::new();
    for (place, method) in methods.iter().enumerate() {
        let (one, several) = (&runs[2 * place], &runs[2 * place + 1]);
        let fairer = paired(several, one, |a, b| a.evenness() - b.evenness());
        let lost = paired(several, one, |a, b| 100.0 * (1.0 - a.total() / b.total()));
        let name = method.label();
        claims.push(Claim::new(
            &format!(
                "{name}: several paths are fairer: the slower flow's share of the faster one grows"
            ),
            None,
            fairer,
            "",
            is_above_zero(&fairer),
        ));
        claims.push(Claim::new(
            &format!("{name}: they cost half of what both carry together (30 to 60 %)"),
            Some(50.0),
            lost,
            "%",
            (30.0..=60.0).contains(&lost.mean),
        ));
    }
    let (one, always) = (&runs[0], &runs[6]);
    let lost = paired(always, one, |a, b| 100.0 * (1.0 - a.total() / b.total()));
    claims.push(Claim::new(
        "ZMAC+: two next hops from the start, without watermarks, cost more than with them",
        None,
        lost,
        "%",
        lost.mean > paired(&runs[1], one, |a, b| 100.0 * (1.0 - a.total() / b.total())).mean,
    ));
    Ok(Figure {
        id: "figure3",
        title: "one path or several: two flows over six nodes".into(),
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
        notes: vec!["bound: max-min fair, at what ZMAC+ carries on one link".into()],
    })
}

//= dpclo V-C2: links that lose up to six frames of ten, with and without ETX
pub fn figure4(sheet: &Sheet<'_>) -> Result<Figure, RunError> {
    let lossy = Place::Six { lossy: true };
    let mut trials = Vec::new();
    for method in [Method::ZmacPlus, Method::Edca] {
        let with = Trial::new(lossy, Variant::Paper, method, sheet.small());
        let without = with.clone().with(|s| s.probes.etx_max = 1.0);
        trials.extend([without, with]);
    }
    let runs = sheet.measure(&trials)?;
    let names = [
        "without ETX",
        "with ETX",
        "without, 802.11e",
        "with, 802.11e",
    ];
    let series = names.iter().zip(&runs);
    let series = series.map(|(name, runs)| by_flow(name, runs, 2, |ran, flow| ran.kbps[flow]));
    let claim = |text: &str, (without, with): (&Runs, &Runs), flow: usize| {
        let gain = paired(with, without, |a, b| {
            100.0 * (a.kbps[flow] / b.kbps[flow].max(1e-9) - 1.0)
        });
        Claim::new(
            &format!("{text}: ETX raises {}", FLOWS[flow]),
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
        title: "links with losses drawn from 0 to 0.6, once for each seed".into(),
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
            "without ETX every link that is used counts as one transmission; the paper's axis ends at 110 kbit/s".into(),
        ],
    })
}
