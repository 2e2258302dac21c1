//! The energy comparison: joules by the paper's formula, and by the time that the radios are on.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};

use crate::campaign::{Measured, PROTOCOLS, Scale, Trial, Workload};
use chappe_lab_p3::carry::{ACTIVE, ENERGY};
use chappe_lab_p3::{RADIO_WATTS, Variant};

/// Octets of the paper's comparison.
const OCTETS: f64 = 64_000.0;

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(scale.site(), scale.routes, &PROTOCOLS)
}

/// Joules by the paper's formula: all nodes of a route listen during the whole transfer.
fn by_formula(nodes: f64, kbit: f64) -> f64 {
    nodes * RADIO_WATTS * OCTETS * 8.0 / (kbit * 1e3)
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let site = scale.site();
    let nodes = PROTOCOLS.map(|workload| mean(&measured.counter(site, workload, ACTIVE)));
    let rates = PROTOCOLS.map(|workload| measured.goodput(site, workload));
    let whole = |place: usize| by_formula(nodes[place], mean(&rates[place]));
    let pip = &rates[1];
    let working: Vec<f64> = pip.iter().copied().filter(|rate| *rate > 0.0).collect();
    let pip_working = by_formula(nodes[1], mean(&working));
    let value = |joules: f64| Summary {
        n: pip.len(),
        ..Summary::of(&[joules])
    };
    let mut formula = Series::new(
        "64 kB by the paper's formula",
        vec![
            value(whole(0)),
            value(whole(1)),
            value(pip_working),
            value(whole(2)),
            value(whole(3)),
        ],
    );
    formula.paper = vec![Some(4.56), Some(5.59), Some(1.96), None, None];
    let per_kb = |workload: Workload| measured.energy_per_kb(site, workload);
    let pip_kb = working_per_kb(measured, scale);
    let by_time = [
        per_kb(PROTOCOLS[0]),
        per_kb(PROTOCOLS[1]),
        pip_kb,
        per_kb(PROTOCOLS[2]),
        per_kb(PROTOCOLS[3]),
    ];
    let by_radio = Series::new(
        "1 kB by the radios' time",
        by_time.map(|joules| value(joules * 1e3)).to_vec(),
    );
    let places = [
        "P³",
        "PIP",
        "PIP, working routes",
        "PIP, best channels",
        "P³, improved",
    ];
    let places = places.map(String::from).to_vec();
    let ratio = by_time[4] / by_time[0];
    let panel = |id, title, unit, series| {
        Panel::bars(id, title, unit, places.clone(), vec![series]).on("protocol")
    };
    let n = pip.len();
    let count =
        |text: &str, paper, ours: f64, unit, holds| Claim::value(text, paper, ours, n, unit, holds);
    Ok(Figure {
        id: "energy",
        title: "energy of the nodes of a route".into(),
        panels: vec![
            panel("energy 64 kB", "mean nodes x 56.4 mW x 64,000 octets / mean goodput", "J", formula),
            panel("energy 1 kB", "radio time x 56.4 mW / kilobytes delivered, failed transfers included", "mJ", by_radio),
        ],
        claims: vec![
            count("P³ takes less energy than PIP with PIP's failures, by the paper's formula", Some(4.56), whole(0), "J", whole(0) < whole(1))
                .because(|| format!("PIP takes {:.2} J", whole(1))),
            count("P³ takes less energy than PIP on PIP's working routes, by the same formula", Some(4.56), whole(0), "J", whole(0) < pip_working)
                .because(|| format!("PIP takes {pip_working:.2} J there, and 1.96 J by the paper's own values: its comparison depends on PIP's failures")),
            count("the improved variant takes at most 0.6 times P³'s energy per kilobyte", None, ratio, "times", ratio <= 0.6)
                .because(|| format!("ours is {ratio:.2}")),
            count("the improved variant takes less energy than PIP on PIP's working routes", None, by_time[4] * 1e3, "mJ for 1 kB", by_time[4] < pip_kb)
                .because(|| format!("PIP takes {:.2} mJ there", pip_kb * 1e3)),
            count("the improved variant takes less energy than PIP with PIP's failures", None, by_time[4] * 1e3, "mJ for 1 kB", by_time[4] < by_time[1])
                .because(|| format!("PIP takes {:.2} mJ", by_time[1] * 1e3)),
        ],
        notes: vec![
            "the paper calls these watts, but its values are joules: 6 nodes x 3.0 V x 18.8 mA x 64,000 octets / 31 kbit/s = 5.59".into(),
            "radio time: from the first wake-up frame to the last packet, or until the source gives up; nodes outside the plan do not count".into(),
        ],
    })
}

/// PIP's energy per kilobyte on the routes that it works on.
fn working_per_kb(measured: &Measured, scale: &Scale) -> f64 {
    let pip = Workload::new(Variant::Pip);
    let used = measured.each(scale.site(), pip, |run| {
        if run.all_complete() {
            run.counter(ENERGY) as f64 * 1e-6
        } else {
            0.0
        }
    });
    let arrived = measured.each(scale.site(), pip, |run| {
        if run.all_complete() {
            f64::from(pip.octets) / 1e3
        } else {
            0.0
        }
    });
    used.iter().sum::<f64>() / arrived.iter().sum::<f64>()
}
