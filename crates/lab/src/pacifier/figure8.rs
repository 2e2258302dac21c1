//! Figure 8: the indoor network, mean, best and worst receiver on two days.

use super::cells::{Cell, Cells, PACIFIER, Scale, Site, System};
use super::gain::{better, gain, surely_positive};
use crate::figure::{Claim, Figure, Panel, PanelKind, Series};

/// The days, the paper's names for them, and its gains over MORE there: mean, best and worst receiver.
const DAYS: [(u8, &str, [f64; 3]); 2] = [(1, "day 1", [144.0, 244.0, 83.0]), (2, "day 4", [83.0, 259.0, 53.0])];

pub fn needs(scale: &Scale) -> Vec<Cell> {
    let day = |&(day, ..): &(u8, &str, [f64; 3])| scale.cells(Site::Indoor { day }, &[System::More, PACIFIER]);
    DAYS.iter().flat_map(day).collect()
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let mut figure = Figure {
        id: "figure8",
        title: "MORE and Pacifier in an indoor network of 22 nodes".into(),
        panels: Vec::new(),
        claims: Vec::new(),
        notes: vec![links(cells)],
    };
    for ((day, name, paper), letter) in DAYS.into_iter().zip(["a", "b"]) {
        let site = Site::Indoor { day };
        figure.panels.push(panel(cells, scale, site, &format!("8{letter}"), &format!("throughput, our day {day}")));
        figure.claims.extend(claims(cells, site, name, paper));
    }
    figure
}

fn panel(cells: &Cells, scale: &Scale, site: Site, id: &str, title: &str) -> Panel {
    let series = |name: &str, values: &[f64]| Series::with_mean(name, values, None);
    Panel {
        id: id.into(),
        title: title.into(),
        unit: "kbit/s",
        kind: PanelKind::Bars,
        places: scale.places(),
        series: vec![
            series("MORE", &cells.mean(site, System::More)),
            series("Pacifier", &cells.mean(site, PACIFIER)),
            series("its best receiver", &cells.best(site, PACIFIER)),
            series("its worst receiver", &cells.worst(site, PACIFIER)),
        ],
        bound: cells.mean_bound(site),
    }
}

fn claims(cells: &Cells, site: Site, day: &str, paper: [f64; 3]) -> Vec<Claim> {
    type Values = fn(&Cells, Site, System) -> Vec<f64>;
    let pair = |values: Values| (values(cells, site, System::More), values(cells, site, PACIFIER));
    let (a, b) = pair(Cells::mean);
    let (n, ahead) = (a.len(), better(&a, &b));
    let mut claims = vec![Claim::count(
        &format!("{day}: Pacifier is faster than MORE in most scenarios"),
        Some(9.0),
        ahead,
        n,
        2 * ahead > n,
    )];
    let rows: [(&str, Values, f64); 3] =
        [("mean", Cells::mean, paper[0]), ("best receiver", Cells::best, paper[1]), ("worst receiver", Cells::worst, paper[2])];
    for (what, values, paper) in rows {
        let (a, b) = pair(values);
        let gain = gain(&a, &b);
        let text = format!("{day}: gain of the {what} over MORE is positive");
        claims.push(Claim::new(&text, Some(paper), gain, "%", surely_positive(&gain)));
    }
    claims
}

/// How our network compares with the testbed.
fn links(cells: &Cells) -> String {
    let Some(links) = cells.links(Site::Indoor { day: 1 }) else {
        return "the links were not measured".into();
    };
    format!(
        "our network: {} directed links that lose at most 88 %, mean loss {:.0} % (testbed 29 %), paths of up to {} hops (testbed 6)",
        links.links,
        100.0 * links.mean_loss,
        links.hops_max
    )
}
