//! Figure 9: the indoor network, distribution over all receivers on two days.

use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::quantile;

use crate::figure8;
use crate::runs::{PACIFIER, Runs, Scale, Site, System, Trial};

pub fn needs(scale: &Scale) -> Vec<Trial> {
    figure8::needs(scale)
}

pub fn make(runs: &Runs, _: &Scale) -> Figure {
    let days = [(1, "9a"), (2, "9b")];
    Figure {
        id: "figure9",
        title: "distribution of throughput in an indoor network of 22 nodes".into(),
        panels: days.map(|(day, id)| panel(runs, Site::Indoor { day }, id, day)).to_vec(),
        claims: claims(runs),
        notes: vec![
            "the paper gives its gains as ranges over both days; ours are compared with the smaller number: 158 to 286 % at \
             the median, 85 to 128 % at the 90th percentile, 128 to 294 % at the 10th"
                .into(),
        ],
    }
}

fn panel(runs: &Runs, site: Site, id: &str, day: u8) -> Panel {
    let series = [System::More, PACIFIER]
        .map(|system| Series::distribution(&system.label(), runs.pooled(site, system), [None; 5]));
    let title = format!("throughput of all receivers of all scenarios, our day {day}");
    Panel::cdf(id, &title, "kbit/s", series.to_vec())
}

/// Checks each of the paper's ranges on both of our days, beside the smaller number of the range.
fn claims(runs: &Runs) -> Vec<Claim> {
    let mut claims = Vec::new();
    for day in [1, 2] {
        let site = Site::Indoor { day };
        let at = |system: System, p: f64| quantile(&runs.pooled(site, system), p).unwrap_or(0.0);
        let n = runs.pooled(site, PACIFIER).len();
        let rows = [
            ("median", 0.5, 158.0),
            ("90th percentile", 0.9, 85.0),
            ("10th percentile", 0.1, 128.0),
        ];
        for (name, p, paper) in rows {
            let (more, ours) = (at(System::More, p), at(PACIFIER, p));
            let gain = 100.0 * (ours / more.max(1e-9) - 1.0);
            let text = format!("our day {day}: Pacifier's {name} compared with MORE's");
            let claim = Claim::value(&text, Some(paper), gain, n, "%", gain > 0.0);
            claims.push(claim.because(|| format!("{ours:.0} and {more:.0} kbit/s")));
        }
    }
    claims
}
