//! Table IV: hops, paths and active nodes.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::mean;

use crate::campaign::{Measured, Scale, Trial, Workload};
use crate::claims::within;
use crate::figure5::SHOWN;
use chappe_lab_p3::Variant;
use chappe_lab_p3::carry::{ACTIVE, HOPS, PATHS};

const P3: Workload = Workload::new(Variant::Paper);
const PIP: Workload = Workload::new(Variant::Pip);
const IMPROVED: Workload = Workload::new(Variant::Improved);

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(scale.site(), scale.routes, &[P3, PIP, IMPROVED])
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let of = |workload, name| measured.counter(scale.site(), workload, name);
    let (hops, paths, active) = (of(P3, HOPS), of(P3, PATHS), of(P3, ACTIVE));
    let (pip, improved) = (of(PIP, ACTIVE), of(IMPROVED, ACTIVE));
    let shown = hops.len().min(SHOWN);
    let places: Vec<String> = (1..=shown)
        .map(|route| route.to_string())
        .chain(["mean".into()])
        .collect();
    let nodes = vec![
        Series::with_mean("PIP", &pip[..shown], Some(5.35)),
        Series::with_mean("P³", &active[..shown], Some(25.35)),
        Series::with_mean("P³, improved", &improved[..shown], None),
    ];
    let panel =
        |id, title, unit, series| Panel::bars(id, title, unit, places.clone(), series).on("route");
    let one =
        |name, values: &[f64], paper| vec![Series::with_mean(name, &values[..shown], Some(paper))];
    let rule = (0..hops.len())
        .filter(|&route| active[route] == paths[route] * (hops[route] - 1.0) + 2.0)
        .count();
    let ratio = mean(&active) / mean(&pip).max(1.0);
    Ok(Figure {
        id: "table4",
        title: "active nodes and node-distinct paths".into(),
        panels: vec![
            panel("IV H", "hops", "hops", one("H", &hops, 4.35)),
            panel(
                "IV M",
                "node-distinct paths",
                "paths",
                one("M", &paths, 7.0),
            ),
            panel("IV NA", "active nodes", "nodes", nodes),
        ],
        claims: vec![
            Claim::count(
                "P³'s active nodes are M (H - 1) + 2 on every route",
                Some(20.0),
                rule,
                hops.len(),
                rule == hops.len(),
            )
            .because(|| format!("on {rule} of {}", hops.len())),
            within(
                "hops, on average over all routes",
                4.35,
                &hops,
                "hops",
                0.25,
            ),
            within(
                "paths, on average over all routes",
                7.0,
                &paths,
                "paths",
                0.25,
            ),
            Claim::value(
                "P³ has 4.7 times as many active nodes as PIP, to within a quarter",
                Some(4.7),
                ratio,
                hops.len(),
                "times",
                (ratio / 4.7 - 1.0).abs() <= 0.25,
            )
            .because(|| format!("ours is {ratio:.2}")),
        ],
        notes: vec![
            "M is limited so that the relays fit one PLAN frame, 35 at most".into(),
            "the paper's text says 4.13 hops on average, its table 4.35".into(),
        ],
    })
}
