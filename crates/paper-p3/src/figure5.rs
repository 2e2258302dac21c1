//! Figure 5: goodput of each route. The first 20 of our routes stand for the paper's 20; averages are over all routes.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{mean, quantile};
use chappe_scenario::Variants as _;

use crate::campaign::{self, Measured, PROTOCOLS, Scale, Trial, Workload};
use crate::claims::{at_least, mean_at_least, within};
use chappe_lab_p3::{P3, Variant};

/// Routes that have their own bar.
pub const SHOWN: usize = 20;

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(scale.site(), scale.routes, &PROTOCOLS)
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let site = scale.site();
    let all = PROTOCOLS.map(|workload| measured.goodput(site, workload));
    let paper = [Some(178.5), Some(31.0), None, None];
    let bars = PROTOCOLS.iter().zip(&all).map(|(workload, values)| {
        let shown = &values[..values.len().min(SHOWN)];
        let mut series = Series::with_mean(workload.variant.label(), shown, None);
        series.paper.fill(None);
        series
    });
    let whole = PROTOCOLS
        .iter()
        .zip(&all)
        .zip(paper)
        .map(|((workload, values), paper)| {
            // The paper gives no distribution, so its mean is printed beside our median.
            let mut series =
                Series::distribution(workload.variant.label(), values.clone(), [None; 5]);
            series.paper[2] = paper;
            series
        });
    let shown = all[0].len().min(SHOWN);
    let ceiling = P3::paper(Variant::Paper).ceiling_bps() / 1e3;
    let best = scale
        .receiver
        .with(&campaign::best(Variant::Improved))
        .ceiling_bps()
        / 1e3;
    let places: Vec<String> = (1..=shown)
        .map(|route| route.to_string())
        .chain(["mean".into()])
        .collect();
    let bound = vec![Some(ceiling); places.len()];
    let panels = vec![
        Panel::bars(
            "5",
            "goodput of 59,000 octets, set-up included",
            "kbit/s",
            places,
            bars.collect(),
        )
        .on("route")
        .bounded(bound, Vec::new()),
        Panel::cdf(
            "5 all",
            "the same over all routes",
            "kbit/s",
            whole.collect(),
        ),
    ];
    let (looked, made) = measured.looked(site);
    Ok(Figure {
        id: "figure5",
        title: "goodput of P³ and PIP".into(),
        panels,
        claims: claims(&all, measured, scale),
        notes: vec![
            scale.origin(),
            format!(
                "{made} routes; {made} of {looked} pairs of nodes that are two to six hops apart had six paths"
            ),
            format!(
                "bound: one of the paper's packets in every cycle, {ceiling:.1} kbit/s (PIP: half of it); with the improved frames and \
                 three groups {best:.1}; no protocol exceeds {:.1}",
                chappe_lab_p3::radio_bound_bps() / 1e3
            ),
            "the paper's values under p50 are its averages over 20 routes".into(),
        ],
    })
}

fn claims(all: &[Vec<f64>; 4], measured: &Measured, scale: &Scale) -> Vec<Claim> {
    let [p3, pip, aware, improved] = all;
    let n = p3.len();
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let zero: Vec<f64> = pip
        .iter()
        .map(|&goodput| 100.0 * f64::from(goodput == 0.0))
        .collect();
    let share = mean(&zero);
    let dead: Vec<f64> = p3
        .iter()
        .zip(pip)
        .filter(|(_, pip)| **pip == 0.0)
        .map(|(p3, _)| *p3)
        .collect();
    let alone = |values: &[f64], others: &[f64]| {
        values
            .iter()
            .zip(others)
            .filter(|(ours, theirs)| **ours == 0.0 && **theirs > 0.0)
            .count()
    };
    let worse = p3.iter().zip(pip).filter(|(p3, pip)| p3 < pip).count();
    let lost = alone(improved, aware);
    let first = measured.first_round(scale.site(), Workload::new(Variant::Paper));
    vec![
        within("P³'s average", 178.5, p3, "kbit/s", 0.1),
        Claim::new(
            "PIP's goodput is zero on 65 % of the routes, to within 10 points",
            Some(65.0),
            chappe_results::statistics::Summary::of(&zero),
            "%",
            (share - 65.0).abs() <= 10.0,
        )
        .because(|| format!("ours is {share:.0} %")),
        within("PIP's average", 31.0, pip, "kbit/s", 0.25),
        within("P³'s average where PIP's goodput is zero", 179.1, &dead, "kbit/s", 0.1),
        at_least("P³'s lowest goodput", Some(148.8), 148.8, least(p3), n, "kbit/s").because(|| {
            let late = |p: f64| quantile(p3, p).unwrap_or(0.0);
            format!(
                "ours is {:.1}; one route in ten is below {:.0}, one in four below {:.0}; the first round brings {:.0} % of the \
                 packets on average, {:.0} % on the worst route",
                least(p3),
                late(0.1),
                late(0.25),
                100.0 * mean(&first),
                100.0 * least(&first),
            )
        }),
        Claim::value("P³'s highest goodput: below 208.1, the bound of its frames", Some(199.7), most(p3), n, "kbit/s", most(p3) < 208.1)
            .because(|| "it is above the bound".into()),
        Claim::count("P³ is never slower than PIP", None, n - worse, n, worse == 0)
            .because(|| format!("it is slower on {worse} routes")),
        mean_at_least("the improved variant's average", 209.0, improved, "kbit/s"),
        at_least("the improved variant's lowest goodput", None, 198.0, least(improved), n, "kbit/s").as_goal().because(|| {
            let below = improved.iter().filter(|goodput| **goodput < 198.0).count();
            format!("ours is {:.1}; {below} of {n} routes are below 198", least(improved))
        }),
        Claim::count("the improved variant's goodput is never zero where that of PIP with the best channels is not", None, n - lost, n, lost == 0)
            .because(|| format!("it is zero on {lost} routes")),
    ]
}
