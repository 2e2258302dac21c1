//! Our variant beside Pacifier and MORE, as shares of the bound, on 802.11 and on ideal air.
//!
//! The goals are the project's own: 65 % of the bound for the worst receiver on 802.11, 80 % on ideal air.

use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};

use super::claims::{Sign, gain};
use super::runs::{Cell, Cells, PACIFIER, Scale, Site, System};

/// The sites and what they are called.
const SITES: [(Site, &str, &str); 3] = [
    (Site::OUTDOOR, "outdoor", "outdoors"),
    (Site::Indoor { day: 1 }, "indoor 1", "indoors, day 1"),
    (Site::Indoor { day: 2 }, "indoor 2", "indoors, day 2"),
];

const IDEAL: System = System::Ideal { ours: true };
const SYSTEMS: [System; 5] = [
    System::More,
    PACIFIER,
    System::Improved,
    System::Ideal { ours: false },
    IDEAL,
];

/// Shares of the bound that the variant was to reach, in per cent.
const GOALS: [(System, f64, &str); 2] = [
    (System::Improved, 65.0, "on 802.11"),
    (IDEAL, 80.0, "on ideal air"),
];

pub fn needs(scale: &Scale) -> Vec<Cell> {
    let sites = SITES.iter();
    sites
        .flat_map(|&(site, ..)| scale.cells(site, &SYSTEMS))
        .collect()
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let mut figure = Figure {
        id: "improved",
        title: "the variant improved beside Pacifier and MORE".into(),
        panels: Vec::new(),
        claims: Vec::new(),
        notes: Vec::new(),
    };
    for (site, id, name) in SITES {
        figure.panels.extend(panels(cells, scale, site, id, name));
        figure.claims.extend(claims(cells, site, name));
        figure.notes.push(on_the_air(cells, site, name));
    }
    figure
}

fn panels(cells: &Cells, scale: &Scale, site: Site, id: &str, name: &str) -> [Panel; 2] {
    type Values = fn(&Cells, Site, System) -> Vec<f64>;
    let series = |values: Values| {
        let row =
            |system: System| Series::with_mean(&system.label(), &values(cells, site, system), None);
        SYSTEMS.map(row).to_vec()
    };
    let worst = Panel::bars(
        &format!("{id} worst"),
        &format!("worst receiver, {name}"),
        "kbit/s",
        scale.places(),
        series(Cells::worst),
    );
    let mean = Panel::bars(
        &format!("{id} mean"),
        &format!("mean throughput, {name}"),
        "kbit/s",
        scale.places(),
        series(Cells::mean),
    );
    let bound = cells.worst_bound(site);
    [
        worst.bounded(bound.clone(), Vec::new()),
        mean.bounded(cells.mean_bound(site), bound),
    ]
}

fn claims(cells: &Cells, site: Site, name: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (what, values) in [
        (
            "worst receiver",
            Cells::worst as fn(&Cells, Site, System) -> Vec<f64>,
        ),
        ("mean throughput", Cells::mean),
    ] {
        for other in [PACIFIER, System::More] {
            let text = format!(
                "{name}: the improved variant's {what} over {}'s",
                other.label()
            );
            let (theirs, ours) = (
                values(cells, site, other),
                values(cells, site, System::Improved),
            );
            claims.push(gain(&text, None, &theirs, &ours, Sign::More));
        }
    }
    for (system, goal, air) in GOALS {
        let shares = cells.shares(site, system);
        let share = Summary::of(&shares);
        let text = format!(
            "{name}: share of the bound for the worst receiver {air}, at least {goal:.0} %"
        );
        let claim = Claim::new(&text, None, share, "%", share.mean >= goal);
        claims.push(claim.because(|| {
            format!(
                "{:.0} to {:.0} % in the scenarios; Pacifier {:.0} % on average",
                share.min,
                share.max,
                mean(&cells.shares(
                    site,
                    match system {
                        System::Ideal { .. } => System::Ideal { ours: false },
                        _ => PACIFIER,
                    }
                ))
            )
        }));
    }
    claims
}

/// What the shares hang on: how many transmissions a packet takes, and how many frames are on the air at once.
fn on_the_air(cells: &Cells, site: Site, name: &str) -> String {
    let of = |system| mean(&cells.per_packet(site, system));
    let (least, crowd) = cells.least(site);
    format!(
        "{name}: a packet takes {:.1} transmissions with MORE, {:.1} with Pacifier, {:.1} with Chappe, {:.1} with Chappe on \
         ideal air, and at least {least:.1} by any protocol; the bound is reached with {crowd:.1} frames on the air at \
         once, Chappe has {:.1} on 802.11 and {:.1} on ideal air",
        of(System::More),
        of(PACIFIER),
        of(System::Improved),
        of(IDEAL),
        mean(&cells.at_once(site, System::Improved)),
        mean(&cells.at_once(site, IDEAL)),
    )
}
