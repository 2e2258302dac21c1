//! Figure 7: goodput by packet size.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::campaign::{Measured, Scale, Trial, Workload};
use chappe_lab_p3::{P3, Variant};

/// Octets in a packet. The paper has five sizes and names only the largest.
const SIZES: [u8; 6] = [20, 40, 60, 80, 100, 118];

const fn workload(payload: u8) -> Workload {
    Workload {
        payload,
        ..Workload::new(Variant::Paper)
    }
}

pub fn needs(scale: &Scale) -> Vec<Trial> {
    let workloads: Vec<Workload> = SIZES.into_iter().map(workload).collect();
    scale.trials(scale.site(), scale.few, &workloads)
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let ours: Vec<Summary> = SIZES
        .into_iter()
        .map(|size| Summary::of(&measured.goodput(scale.site(), workload(size))))
        .collect();
    let bound = SIZES.into_iter().map(|payload| {
        let p3 = P3 {
            payload,
            ..P3::paper(Variant::Paper)
        };
        Some(p3.ceiling_bps() / 1e3)
    });
    let best = (0..SIZES.len()).max_by(|&a, &b| ours[a].mean.total_cmp(&ours[b].mean));
    let best = best.map_or(0, |place| SIZES[place]);
    let places = SIZES.map(|size| size.to_string()).to_vec();
    let panel = Panel::bars(
        "7",
        "goodput of 59,000 octets",
        "kbit/s",
        places,
        vec![Series::new("P³", ours)],
    )
    .on("octets in a packet")
    .bounded(bound.collect(), Vec::new());
    let n = usize::from(scale.few.min(scale.routes));
    Ok(Figure {
        id: "figure7",
        title: "goodput by packet size".into(),
        panels: vec![panel],
        claims: vec![
            Claim::value(
                "the largest packets have the highest goodput",
                Some(118.0),
                f64::from(best),
                n,
                "octets",
                best == 118,
            )
            .because(|| format!("packets of {best} octets have")),
        ],
        notes: vec!["all sizes use the same routes".into()],
    })
}
