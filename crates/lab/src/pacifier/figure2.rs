//! Figure 2: MORE's pruning threshold. With the published 10 % some receivers have no forwarder left.

use super::cells::{Cell, Cells, Scale, Site, System};
use crate::figure::{Claim, Figure, Panel, PanelKind, Series};
use crate::statistics::Summary;

const SITE: Site = Site::Outdoor;

pub fn needs(scale: &Scale) -> Vec<Cell> {
    scale.cells(SITE, &[System::MoreOriginal, System::More])
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let of = |system| cells.forwarders(SITE, system);
    let thresholds = cells.each(SITE, System::More, |run| run.counter("prune_percent") as f64);
    let series = |name: &str, values: &[f64], paper| Series::with_mean(name, values, paper);
    let (original, tuned) = (cells.mean(SITE, System::MoreOriginal), cells.mean(SITE, System::More));
    let panel = |id: &str, title: &str, unit, series, bound| Panel {
        id: id.into(),
        title: title.into(),
        unit,
        kind: PanelKind::Bars,
        places: scale.places(),
        series,
        bound,
    };
    let forwarders = vec![
        series("MORE_orig", &of(System::MoreOriginal), Some(11.2)),
        series("MORE_new", &of(System::More), None),
        series("threshold, %", &thresholds, None),
    ];
    let throughput = vec![series("MORE_orig", &original, None), series("MORE_new", &tuned, None)];
    Figure {
        id: "figure2",
        title: "MORE with the published and with a tuned pruning threshold".into(),
        panels: vec![
            panel("2a", "forwarding nodes", "nodes", forwarders, Vec::new()),
            panel("2b", "mean throughput", "kbit/s", throughput, cells.mean_bound(SITE)),
        ],
        claims: claims(cells, &original, &tuned, &thresholds),
        notes: vec![
            "zero means that a receiver never finished the first batch before the run was ended as stalled".into(),
        ],
    }
}

fn claims(cells: &Cells, original: &[f64], tuned: &[f64], thresholds: &[f64]) -> Vec<Claim> {
    let n = original.len();
    let silent = original.iter().filter(|goodput| **goodput == 0.0).count();
    let served = tuned.iter().filter(|goodput| **goodput > 0.0).count();
    let forwarders = Summary::of(&cells.forwarders(SITE, System::MoreOriginal));
    let inside = forwarders.interval().is_some_and(|(low, high)| low <= 11.2 && 11.2 <= high);
    let lowest = thresholds.iter().copied().fold(f64::INFINITY, f64::min);
    vec![
        Claim::count("at 10 % most scenarios deliver nothing to some receiver", Some(8.0), silent, n, 2 * silent > n),
        Claim::new("few forwarders are left at 10 %: the paper's 11.2 lies in our interval", Some(11.2), forwarders, "nodes", inside),
        Claim::count("with the tuned threshold nobody is cut off", Some(10.0), served, n, served == n),
        Claim::value("the tuned threshold goes down to 3 %, not lower", Some(3.0), lowest, n, "%", lowest >= 3.0),
    ]
}
