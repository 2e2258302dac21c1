//! Figure 3: tree-based opportunistic routing against MORE's belts.

use super::cells::{Cell, Cells, Scale, Site, System};
use super::gain::{better, gain, surely_negative, surely_positive};
use crate::figure::{Claim, Figure, Panel, PanelKind, Series};
use crate::statistics::Summary;

const SITE: Site = Site::Outdoor;

pub fn needs(scale: &Scale) -> Vec<Cell> {
    scale.cells(SITE, &[System::More, System::Tree])
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    Figure {
        id: "figure3",
        title: "tree-based opportunistic routing against MORE".into(),
        panels: panels(cells, scale, "3", System::More, System::Tree, [None, Some(17.0), Some(12.15)]),
        claims: claims(cells),
        notes: Vec::new(),
    }
}

/// Throughput, forwarders, transmissions and redundancy of two systems; `paper` holds the mean number of
/// forwarders of the first and the mean redundancies of both.
pub fn panels(
    cells: &Cells,
    scale: &Scale,
    figure: &str,
    a: System,
    b: System,
    paper: [Option<f64>; 3],
) -> Vec<Panel> {
    let pair = |values: &dyn Fn(System) -> Vec<f64>, of_a, of_b| {
        vec![Series::with_mean(&a.label(), &values(a), of_a), Series::with_mean(&b.label(), &values(b), of_b)]
    };
    let panel = |letter: char, title: &str, unit, series, bound| Panel {
        id: format!("{figure}{letter}"),
        title: title.into(),
        unit,
        kind: PanelKind::Bars,
        places: scale.places(),
        series,
        bound,
    };
    vec![
        panel('a', "mean throughput", "kbit/s", pair(&|s| cells.mean(SITE, s), None, None), cells.mean_bound(SITE)),
        panel('b', "forwarding nodes", "nodes", pair(&|s| cells.forwarders(SITE, s), paper[0], None), Vec::new()),
        panel('c', "data transmissions", "thousand", pair(&|s| cells.transmissions(SITE, s), None, None), Vec::new()),
        panel('d', "source redundancy", "times", pair(&|s| cells.redundancy(SITE, s), paper[1], paper[2]), Vec::new()),
    ]
}

fn claims(cells: &Cells) -> Vec<Claim> {
    let (more, tree) = (System::More, System::Tree);
    let (a, b) = (cells.mean(SITE, more), cells.mean(SITE, tree));
    let n = a.len();
    let throughput = gain(&a, &b);
    let forwarders = gain(&cells.forwarders(SITE, more), &cells.forwarders(SITE, tree));
    let sent = gain(&cells.transmissions(SITE, more), &cells.transmissions(SITE, tree));
    let of_more = Summary::of(&cells.redundancy(SITE, more));
    let of_tree = Summary::of(&cells.redundancy(SITE, tree));
    let ahead = better(&a, &b);
    vec![
        Claim::count("TREE is faster than MORE in most scenarios", Some(8.0), ahead, n, 2 * ahead > n),
        Claim::new("TREE's gain in throughput is positive", Some(42.0), throughput, "%", surely_positive(&throughput)),
        Claim::new("TREE uses fewer forwarders", Some(-36.0), forwarders, "%", surely_negative(&forwarders)),
        Claim::new("TREE sends fewer data frames", Some(-44.0), sent, "%", surely_negative(&sent)),
        Claim::new("MORE's source sends the file many times over", Some(17.0), of_more, "times", of_more.mean > of_tree.mean),
        Claim::new("TREE's source sends it less often than MORE's", Some(12.15), of_tree, "times", of_tree.mean < of_more.mean),
    ]
}
