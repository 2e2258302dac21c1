//! Figure 7: the four systems side by side, and the distribution over all receivers.

use super::cells::{Cell, Cells, PACIFIER, Scale, Site, System};
use super::gain::{better, gain, surely_positive};
use crate::figure::{Claim, Figure, Panel, PanelKind, QUANTILES, Series};
use crate::statistics::{Summary, quantile};

const SITE: Site = Site::Outdoor;
const SYSTEMS: [System; 4] = [System::More, System::Tree, System::TreeRl, PACIFIER];

/// The paper's 90th percentiles in kbit/s: 223 for Pacifier, which is 159, 77 and 70 % above the others (IV-B.6).
const PAPER_P90: [f64; 4] = [223.0 / 2.59, 223.0 / 1.77, 223.0 / 1.70, 223.0];

pub fn needs(scale: &Scale) -> Vec<Cell> {
    let mut cells = scale.cells(SITE, &SYSTEMS);
    if scale.rayleigh {
        cells.extend(scale.cells(Site::OutdoorRayleigh, &[System::More, PACIFIER]));
    }
    cells
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let mut claims = averages(cells);
    claims.extend(distribution(cells));
    let mut notes = Vec::new();
    if scale.rayleigh {
        notes.push(sensitivity(cells));
    }
    Figure {
        id: "figure7",
        title: "MORE, TREE, TREE+RL and Pacifier".into(),
        panels: panels(cells, scale),
        claims,
        notes,
    }
}

fn panels(cells: &Cells, scale: &Scale) -> Vec<Panel> {
    let panel = |id: &str, title: &str, series, bound| Panel {
        id: id.into(),
        title: title.into(),
        unit: "kbit/s",
        kind: PanelKind::Bars,
        places: scale.places(),
        series,
        bound,
    };
    let series = |values: fn(&Cells, Site, System) -> Vec<f64>| {
        SYSTEMS.map(|system| Series::with_mean(&system.label(), &values(cells, SITE, system), None)).to_vec()
    };
    let cdf = SYSTEMS.into_iter().zip(PAPER_P90).map(|(system, p90)| {
        let paper = [None, None, None, None, Some(p90)];
        Series::distribution(&system.label(), cells.pooled(SITE, system), paper)
    });
    vec![
        panel("7a", "mean throughput", series(Cells::mean), cells.mean_bound(SITE)),
        panel("7a max", "best receiver", series(Cells::best), Vec::new()),
        panel("7a min", "worst receiver", series(Cells::worst), Vec::new()),
        Panel {
            id: "7b".into(),
            title: "throughput of all receivers of all scenarios".into(),
            unit: "kbit/s",
            kind: PanelKind::Cdf,
            places: QUANTILES.map(|(name, _)| name.to_string()).to_vec(),
            series: cdf.collect(),
            bound: Vec::new(),
        },
    ]
}

fn averages(cells: &Cells) -> Vec<Claim> {
    let ours = cells.mean(SITE, PACIFIER);
    let n = ours.len();
    let mut claims: Vec<Claim> = [(System::TreeRl, 60.0), (System::Tree, 90.0), (System::More, 171.0)]
        .into_iter()
        .map(|(other, paper)| {
            let gain = gain(&cells.mean(SITE, other), &ours);
            let text = format!("Pacifier's mean throughput is above {}'s", other.label());
            Claim::new(&text, Some(paper), gain, "%", surely_positive(&gain))
        })
        .collect();
    let times = |values: fn(&Cells, Site, System) -> Vec<f64>| {
        let pairs = values(cells, SITE, System::More).into_iter().zip(values(cells, SITE, PACIFIER));
        pairs.map(|(more, ours)| ours / more.max(1e-9)).fold(0.0, f64::max)
    };
    let (best, worst) = (times(Cells::best), times(Cells::worst));
    let others = [System::More, System::Tree, System::TreeRl];
    let worst_ours = cells.worst(SITE, PACIFIER);
    let ahead = others.iter().map(|&other| better(&cells.worst(SITE, other), &worst_ours)).min().unwrap_or(0);
    claims.push(Claim::value("the best receiver gains many times over MORE in some scenario", Some(20.0), best, n, "times", best >= 5.0));
    claims.push(Claim::value("the worst receiver gains over MORE, at most", Some(4.5), worst, n, "times", worst > 1.0));
    claims.push(Claim::count("the worst receiver is better than with any other system", Some(10.0), ahead, n, ahead == n));
    claims
}

fn distribution(cells: &Cells) -> Vec<Claim> {
    let at = |system: System, p: f64| quantile(&cells.pooled(SITE, system), p).unwrap_or(0.0);
    let pooled = cells.pooled(SITE, PACIFIER).len();
    let mut claims = Vec::new();
    let rows = [("p50", 0.5, [178.0, 49.0, 20.0]), ("p90", 0.9, [159.0, 77.0, 70.0]), ("p10", 0.1, [450.0, 300.0, 80.0])];
    for (name, p, paper) in rows {
        for (other, paper) in [System::More, System::Tree, System::TreeRl].into_iter().zip(paper) {
            let gain = 100.0 * (at(PACIFIER, p) / at(other, p).max(1e-9) - 1.0);
            let text = format!("Pacifier's {name} is above {}'s", other.label());
            claims.push(Claim::value(&text, Some(paper), gain, pooled, "%", gain > 0.0));
        }
    }
    let ours = at(PACIFIER, 0.9);
    let near = (ours / 223.0 - 1.0).abs() <= 0.25;
    claims.push(Claim::value("Pacifier's p90 is within a quarter of the paper's", Some(223.0), ours, pooled, "kbit/s", near));
    claims
}

fn sensitivity(cells: &Cells) -> String {
    let site = Site::OutdoorRayleigh;
    let (more, ours) = (cells.mean(site, System::More), cells.mean(site, PACIFIER));
    let gain = gain(&more, &ours);
    format!(
        "with true Rayleigh fading instead of GloMoSim's: Pacifier {:.0}, MORE {:.0} kbit/s on average, gain {:.0} ± {:.0} % (n={})",
        Summary::of(&ours).mean,
        Summary::of(&more).mean,
        gain.mean,
        gain.ci95.unwrap_or(f64::NAN),
        gain.n
    )
}
