//! The one parameter of the network that is fitted: the share of good links that are bad on other channels. It makes PIP, the
//! baseline, fail as often as in the paper. The fit does not use P³'s results.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};
use chappe_scenario::Variants as _;

use crate::campaign::{BAD_LINKS, Measured, Scale, Site, Trial, Workload};
use chappe_lab_p3::Variant;

/// Shares of bad links, in per cent.
const SHARES: [u8; 6] = [0, 10, 20, 25, 30, 60];
const WORKLOADS: [Workload; 3] = [
    Workload::new(Variant::Paper),
    Workload::new(Variant::Pip),
    Workload::new(Variant::Improved),
];

/// The kinds of building: measured, if its file exists, and generated.
fn sites(scale: &Scale) -> Vec<bool> {
    if scale.data.is_some() {
        vec![true, false]
    } else {
        vec![false]
    }
}

pub fn needs(scale: &Scale) -> Vec<Trial> {
    let mut trials = Vec::new();
    for testbed in sites(scale) {
        for bad_links in SHARES {
            let site = Site {
                measured: testbed,
                bad_links,
                receiver: scale.receiver,
            };
            trials.extend(scale.trials(site, scale.calibration, &WORKLOADS));
        }
    }
    trials
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let mut panels = Vec::new();
    let mut zeros = Vec::new();
    for testbed in sites(scale) {
        let site = |bad_links| Site {
            measured: testbed,
            bad_links,
            receiver: scale.receiver,
        };
        let first =
            |values: Vec<f64>| values[..values.len().min(scale.calibration.into())].to_vec();
        let rates = |bad, workload| first(measured.goodput(site(bad), workload));
        let series = WORKLOADS.map(|workload| {
            let over = SHARES.map(|bad| Summary::of(&rates(bad, workload)));
            Series::new(workload.variant.label(), over.to_vec())
        });
        let lowest = SHARES.map(|bad| {
            let rates = rates(bad, WORKLOADS[0]);
            Summary::of(&[rates.iter().copied().fold(f64::INFINITY, f64::min)])
        });
        let zero = SHARES.map(|bad| {
            let zero = rates(bad, WORKLOADS[1])
                .into_iter()
                .map(|rate| 100.0 * f64::from(rate == 0.0));
            Summary::of(&zero.collect::<Vec<f64>>())
        });
        let first_round = SHARES.map(|bad| {
            let shares = first(measured.first_round(site(bad), WORKLOADS[0]));
            Summary::of(
                &shares
                    .iter()
                    .map(|share| 100.0 * share)
                    .collect::<Vec<f64>>(),
            )
        });
        zeros.push(zero);
        let name = if testbed {
            "measured building"
        } else {
            "generated building"
        };
        let places: Vec<String> = SHARES.map(|bad| format!("{bad} %")).to_vec();
        let mut all = series.to_vec();
        all.push(Series::new("P³, lowest", lowest.to_vec()));
        let panel = |id: &str, unit, series| {
            let (id, title) = (format!("calibration {id}"), format!("{name}: {id}"));
            Panel::bars(&id, &title, unit, places.clone(), series).on("bad links")
        };
        panels.push(panel(
            if testbed {
                "goodput"
            } else {
                "goodput, generated"
            },
            "kbit/s",
            all,
        ));
        let shares = vec![
            Series::new("PIP's routes with zero goodput", zero.to_vec()),
            Series::new(
                "P³'s packets received in the first round",
                first_round.to_vec(),
            ),
        ];
        panels.push(panel(
            if testbed {
                "shares"
            } else {
                "shares, generated"
            },
            "%",
            shares,
        ));
    }
    let nearest = (0..SHARES.len()).min_by(|&a, &b| {
        let off = |place: usize| (zeros[0][place].mean - 65.0).abs();
        off(a).total_cmp(&off(b))
    });
    let nearest = nearest.map_or(0, |place| SHARES[place]);
    let n = usize::from(scale.calibration.min(scale.routes));
    let of_pip = mean(&zeros[0].map(|zero| zero.mean));
    Ok(Figure {
        id: "calibration",
        title: "share of links that are bad on other channels".into(),
        panels,
        claims: vec![
            Claim::value(
                &format!("PIP's goodput is zero on 65 % of the routes at the share that the figures use, {BAD_LINKS} %, or at the next one"),
                None,
                f64::from(nearest),
                n,
                "%",
                nearest.abs_diff(BAD_LINKS) <= 5,
            )
            .because(|| format!("PIP fails on {of_pip:.0} % of the routes, on average over the shares")),
        ],
        notes: vec!["a bad link has the delivery ratios of a random row of Table I on all channels".into()],
    })
}
