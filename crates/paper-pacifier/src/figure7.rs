//! Figure 7: the four protocols compared, and the distribution over all receivers.

use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::quantile;

use crate::claims::{Sign, better, gain, is_near, of_ten};
use crate::runs::{PACIFIER, Runs, Scale, Site, System, Trial};

const SITE: Site = Site::OUTDOOR;
const SYSTEMS: [System; 4] = [System::More, System::Tree, System::TreeRl, PACIFIER];

/// The paper's 90th percentiles in kbit/s: 223 for Pacifier, which is 159, 77 and 70 % above the others (IV-B.6).
const PAPER_P90: [f64; 4] = [223.0 / 2.59, 223.0 / 1.77, 223.0 / 1.70, 223.0];

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(SITE, &SYSTEMS)
}

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let mut claims = averages(runs);
    claims.extend(distribution(runs));
    Figure {
        id: "figure7",
        title: "MORE, TREE, TREE+RL and Pacifier".into(),
        panels: panels(runs, scale),
        claims,
        notes: vec![
            "the paper gives its other values only as a drawing; its text gives ratios".into(),
        ],
    }
}

fn panels(runs: &Runs, scale: &Scale) -> Vec<Panel> {
    let series = |values: fn(&Runs, Site, System) -> Vec<f64>| {
        SYSTEMS
            .map(|system| Series::with_mean(&system.label(), &values(runs, SITE, system), None))
            .to_vec()
    };
    let bars = |id, title, series| Panel::bars(id, title, "kbit/s", scale.places(), series);
    let cdf = SYSTEMS.into_iter().zip(PAPER_P90).map(|(system, p90)| {
        let paper = [None, None, None, None, Some(p90)];
        Series::distribution(&system.label(), runs.pooled(SITE, system), paper)
    });
    let worst = runs.worst_bound(SITE);
    vec![
        bars("7a", "mean throughput", series(Runs::mean))
            .bounded(runs.mean_bound(SITE), worst.clone()),
        bars("7a max", "best receiver", series(Runs::best)),
        bars("7a min", "worst receiver", series(Runs::worst)).bounded(worst, Vec::new()),
        Panel::cdf(
            "7b",
            "throughput of all receivers of all scenarios",
            "kbit/s",
            cdf.collect(),
        ),
    ]
}

fn averages(runs: &Runs) -> Vec<Claim> {
    let ours = runs.mean(SITE, PACIFIER);
    let n = ours.len();
    let paper = [
        (System::TreeRl, 60.0),
        (System::Tree, 90.0),
        (System::More, 171.0),
    ];
    let others = [System::More, System::Tree, System::TreeRl];
    let mut claims: Vec<Claim> = paper
        .into_iter()
        .map(|(other, paper)| {
            let text = format!(
                "Pacifier's mean throughput compared with {}'s, on average",
                other.label()
            );
            gain(
                &text,
                Some(paper),
                &runs.mean(SITE, other),
                &ours,
                Sign::More,
            )
        })
        .collect();
    claims.extend(others.map(|other| {
        let text = format!(
            "Pacifier's worst receiver compared with {}'s",
            other.label()
        );
        let worst = |system| runs.worst(SITE, system);
        gain(&text, None, &worst(other), &worst(PACIFIER), Sign::More)
    }));
    let times = |values: fn(&Runs, Site, System) -> Vec<f64>| {
        let pairs = values(runs, SITE, System::More)
            .into_iter()
            .zip(values(runs, SITE, PACIFIER));
        pairs
            .map(|(more, ours)| ours / more.max(1e-9))
            .fold(0.0, f64::max)
    };
    let (best, worst) = (times(Runs::best), times(Runs::worst));
    let worst_ours = runs.worst(SITE, PACIFIER);
    let ahead = |other| better(&runs.worst(SITE, other), &worst_ours);
    let least = others.iter().map(|&other| ahead(other)).min().unwrap_or(0);
    claims.push(
        Claim::value(
            "the best receiver's largest gain over MORE is tenfold or more",
            Some(20.0),
            best,
            n,
            "times",
            best >= 10.0,
        )
        .because(|| format!("{best:.1} times in the best of our scenarios")),
    );
    claims.push(
        Claim::value(
            "the worst receiver's largest gain over MORE is twofold or more",
            Some(4.5),
            worst,
            n,
            "times",
            worst >= 2.0,
        )
        .because(|| format!("{worst:.1} times in the best of our scenarios")),
    );
    claims.push(
        Claim::count(
            "the worst receiver is better than with each of the other three",
            of_ten(10.0, n),
            least,
            n,
            least == n,
        )
        .because(|| {
            // The sensitivity table's row "relays keep" shows the cause.
            let counts =
                others.map(|other| format!("{} of {n} against {}", ahead(other), other.label()));
            format!(
                "better in {}; relays flush their packets at each change of batch, and a batch is visited in several rounds \
                 (relays that keep them: see the sensitivity table)",
                counts.join(", ")
            )
        }),
    );
    claims
}

fn distribution(runs: &Runs) -> Vec<Claim> {
    let at = |system: System, p: f64| quantile(&runs.pooled(SITE, system), p).unwrap_or(0.0);
    let pooled = runs.pooled(SITE, PACIFIER).len();
    let mut claims = Vec::new();
    let rows = [
        ("median", 0.5, [178.0, 49.0, 20.0]),
        ("90th percentile", 0.9, [159.0, 77.0, 70.0]),
        ("10th percentile", 0.1, [450.0, 300.0, 80.0]),
    ];
    for (name, p, paper) in rows {
        for (other, paper) in [System::More, System::Tree, System::TreeRl]
            .into_iter()
            .zip(paper)
        {
            let (theirs, ours) = (at(other, p), at(PACIFIER, p));
            let gain = 100.0 * (ours / theirs.max(1e-9) - 1.0);
            let text = format!("Pacifier's {name} compared with {}'s", other.label());
            let claim = Claim::value(&text, Some(paper), gain, pooled, "%", gain > 0.0);
            claims.push(claim.because(|| format!("{ours:.0} and {theirs:.0} kbit/s")));
        }
    }
    let ours = at(PACIFIER, 0.9);
    let text = "Pacifier's 90th percentile, to within a quarter";
    let claim = Claim::value(
        text,
        Some(223.0),
        ours,
        pooled,
        "kbit/s",
        is_near(ours, 223.0),
    );
    claims.push(claim.because(|| format!("ours is {:.2} times the paper's", ours / 223.0)));
    claims
}
