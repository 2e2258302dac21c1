//! Figure 6: goodput as a share of the effective rate, with and without the wake-up time.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::campaign::{EFFECTIVE, Measured, Scale, Trial, Workload};
use crate::claims::within;
use crate::figure5::SHOWN;
use chappe_lab_p3::Variant;
use chappe_lab_p3::carry::SETUP;

const P3: Workload = Workload::new(Variant::Paper);
const IMPROVED: Workload = Workload::new(Variant::Improved);

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(scale.site(), scale.routes, &[P3, IMPROVED])
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let site = scale.site();
    let with = |workload| -> Vec<f64> {
        let goodput = measured.goodput(site, workload).into_iter();
        goodput.map(|kbit| 100.0 * kbit / EFFECTIVE).collect()
    };
    let without = |workload| {
        measured.each(site, workload, |run| {
            let flow = run.flows.first();
            let took = flow
                .and_then(|flow| flow.completion_s)
                .unwrap_or(f64::INFINITY);
            let octets = flow.map_or(0.0, |flow| flow.offered_bytes as f64);
            let rest = took - run.counter(SETUP) as f64 * 1e-6;
            100.0 * octets * 8.0 / rest / 1e3 / EFFECTIVE
        })
    };
    let (p3, improved) = (with(P3), with(IMPROVED));
    let shown = p3.len().min(SHOWN);
    let places: Vec<String> = (1..=shown)
        .map(|route| route.to_string())
        .chain(["mean".into()])
        .collect();
    let series = vec![
        Series::with_mean("P³", &p3[..shown], None),
        Series::with_mean("P³ without wake-up", &without(P3)[..shown], None),
        Series::with_mean("P³, improved", &improved[..shown], None),
        Series::with_mean(
            "P³, improved, without wake-up",
            &without(IMPROVED)[..shown],
            None,
        ),
    ];
    let all = Summary::of(&p3);
    let lacks =
        |paper: f64, ours: f64| move || format!("ours is {ours:.1} %, the paper's {paper} %");
    Ok(Figure {
        id: "figure6",
        title: "share of the effective rate of 220.4 kbit/s".into(),
        panels: vec![Panel::bars("6", "utilisation", "%", places, series).on("route")],
        claims: vec![
            within("P³'s average utilisation", 80.9, &p3, "%", 0.1),
            Claim::value("P³'s highest utilisation: above 90 %", Some(90.6), all.max, all.n, "%", all.max > 90.0)
                .because(lacks(90.6, all.max)),
            Claim::value("P³'s lowest utilisation: above 65 %", Some(67.5), all.min, all.n, "%", all.min > 65.0)
                .because(lacks(67.5, all.min)),
        ],
        notes: vec![
            "220.4 kbit/s includes the seven octets of header: a transfer without loss and wake-up reaches 94.4 %".into(),
        ],
    })
}
