//! Figure 9: the indoor network, distribution over all receivers on two days.

use super::cells::{Cell, Cells, PACIFIER, Scale, Site, System};
use super::figure8;
use crate::figure::{Claim, Figure, Panel, PanelKind, QUANTILES, Series};
use crate::statistics::quantile;

pub fn needs(scale: &Scale) -> Vec<Cell> {
    figure8::needs(scale)
}

pub fn make(cells: &Cells, _: &Scale) -> Figure {
    let days = [(1, "9a"), (2, "9b")];
    Figure {
        id: "figure9",
        title: "distribution of throughput in an indoor network of 22 nodes".into(),
        panels: days.map(|(day, id)| panel(cells, Site::Indoor { day }, id, day)).to_vec(),
        claims: claims(cells),
        notes: vec!["the paper gives its gains as ranges over both days: 158 to 286 % at the median, 85 to 128 % at p90, 128 to 294 % at p10".into()],
    }
}

fn panel(cells: &Cells, site: Site, id: &str, day: u8) -> Panel {
    let series = [System::More, PACIFIER].map(|system| {
        Series::distribution(&system.label(), cells.pooled(site, system), [None; 5])
    });
    Panel {
        id: id.into(),
        title: format!("throughput of all receivers of all scenarios, our day {day}"),
        unit: "kbit/s",
        kind: PanelKind::Cdf,
        places: QUANTILES.map(|(name, _)| name.to_string()).to_vec(),
        series: series.to_vec(),
        bound: Vec::new(),
    }
}

/// Each row of the paper's range is checked on both of our days; the paper's smaller number stands beside.
fn claims(cells: &Cells) -> Vec<Claim> {
    let mut claims = Vec::new();
    for day in [1, 2] {
        let site = Site::Indoor { day };
        let at = |system: System, p: f64| quantile(&cells.pooled(site, system), p).unwrap_or(0.0);
        let n = cells.pooled(site, PACIFIER).len();
        for (name, p, paper) in [("p50", 0.5, 158.0), ("p90", 0.9, 85.0), ("p10", 0.1, 128.0)] {
            let gain = 100.0 * (at(PACIFIER, p) / at(System::More, p).max(1e-9) - 1.0);
            let text = format!("our day {day}: Pacifier's {name} is above MORE's");
            claims.push(Claim::value(&text, Some(paper), gain, n, "%", gain > 0.0));
        }
    }
    claims
}
