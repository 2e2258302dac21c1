//! Figure 5: what round-robin batches add, with the knob at 0.

use super::cells::{Cell, Cells, Scale, Site, System};
use super::gain::{gain, gains, surely_positive};
use crate::figure::{Claim, Figure, Panel, PanelKind, Series};
use crate::statistics::Summary;

const SITE: Site = Site::Outdoor;
const ROUND_ROBIN: System = System::Pacifier { knob: 0 };

pub fn needs(scale: &Scale) -> Vec<Cell> {
    scale.cells(SITE, &[System::TreeRl, ROUND_ROBIN])
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let (mean, best, worst) =
        (cells.mean(SITE, ROUND_ROBIN), cells.best(SITE, ROUND_ROBIN), cells.worst(SITE, ROUND_ROBIN));
    let series = vec![
        cells.throughput(SITE, System::TreeRl, None),
        Series::with_mean("TREE+RL+RRB", &mean, None),
        Series::with_mean("its best receiver", &best, None),
        Series::with_mean("its worst receiver", &worst, None),
    ];
    let (before, worst_before) = (cells.mean(SITE, System::TreeRl), cells.worst(SITE, System::TreeRl));
    let n = mean.len();
    let throughput = gain(&before, &mean);
    let spread = gain(&mean, &best);
    let of_worst = gains(&worst_before, &worst);
    let hardly_worse = of_worst.iter().filter(|gain| **gain >= -10.0).count();
    Figure {
        id: "figure5",
        title: "round-robin batches, knob 0".into(),
        panels: vec![Panel {
            id: "5".into(),
            title: "throughput".into(),
            unit: "kbit/s",
            kind: PanelKind::Bars,
            places: scale.places(),
            series,
            bound: cells.mean_bound(SITE),
        }],
        claims: vec![
            Claim::new("round robin raises the mean throughput", Some(47.0), throughput, "%", surely_positive(&throughput)),
            Claim::new("the best receiver is far above the mean", Some(58.0), spread, "%", surely_positive(&spread)),
            Claim::count("the worst receiver loses at most 10 %", Some(10.0), hardly_worse, n, hardly_worse == n),
            Claim::new("change of the worst receiver (paper: -10 % to +146 %)", None, Summary::of(&of_worst), "%", Summary::of(&of_worst).mean > 0.0),
        ],
        notes: Vec::new(),
    }
}
