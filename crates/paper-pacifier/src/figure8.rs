//! Figure 8: the indoor network, mean, best and worst receiver on two days.

use chappe_results::figure::{Claim, Figure, Panel, Series};

use crate::claims::{Sign, better, gain, gains, of_ten};
use crate::links::LinkStatistics;
use crate::runs::{PACIFIER, Runs, Scale, Site, System, Trial};

/// The days, the paper's names for them, and its gains over MORE there: mean, best and worst receiver.
const DAYS: [(u8, &str, [f64; 3]); 2] = [
    (1, "day 1", [144.0, 244.0, 83.0]),
    (2, "day 4", [83.0, 259.0, 53.0]),
];

pub fn needs(scale: &Scale) -> Vec<Trial> {
    let day = |&(day, ..): &(u8, &str, [f64; 3])| {
        scale.trials(Site::Indoor { day }, &[System::More, PACIFIER])
    };
    DAYS.iter().flat_map(day).collect()
}

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let mut figure = Figure {
        id: "figure8",
        title: "MORE and Pacifier in an indoor network of 22 nodes".into(),
        panels: Vec::new(),
        claims: Vec::new(),
        notes: Vec::new(),
    };
    for ((day, name, paper), letter) in DAYS.into_iter().zip(["a", "b"]) {
        let site = Site::Indoor { day };
        figure
            .panels
            .push(panel(runs, scale, site, &format!("8{letter}"), day));
        figure.claims.extend(claims(runs, site, name, paper));
        figure
            .notes
            .extend(runs.links(site).first().map(|links| describe(day, links)));
    }
    figure
}

fn panel(runs: &Runs, scale: &Scale, site: Site, id: &str, day: u8) -> Panel {
    let series = |name: &str, values: &[f64]| Series::with_mean(name, values, None);
    let series = vec![
        series("MORE", &runs.mean(site, System::More)),
        series("Pacifier", &runs.mean(site, PACIFIER)),
        series("its best receiver", &runs.best(site, PACIFIER)),
        series("its worst receiver", &runs.worst(site, PACIFIER)),
    ];
    let title = format!("throughput: mean, best and worst receiver, our day {day}");
    Panel::bars(id, &title, "kbit/s", scale.places(), series)
        .bounded(runs.mean_bound(site), runs.worst_bound(site))
}

fn claims(runs: &Runs, site: Site, day: &str, paper: [f64; 3]) -> Vec<Claim> {
    type Values = fn(&Runs, Site, System) -> Vec<f64>;
    let pair = |values: Values| {
        (
            values(runs, site, System::More),
            values(runs, site, PACIFIER),
        )
    };
    let (a, b) = pair(Runs::mean);
    let (n, ahead) = (a.len(), better(&a, &b));
    let text = format!("{day}: Pacifier is faster than MORE in most scenarios");
    let few = || format!("faster in {ahead} of {n}");
    let mut claims =
        vec![Claim::count(&text, of_ten(9.0, n), ahead, n, 2 * ahead > n).because(few)];
    let rows: [(&str, Values, f64); 3] = [
        ("mean", Runs::mean, paper[0]),
        ("best receiver", Runs::best, paper[1]),
        ("worst receiver", Runs::worst, paper[2]),
    ];
    for (what, values, paper) in rows {
        let (a, b) = pair(values);
        claims.push(gain(
            &format!("{day}: {what}, Pacifier compared with MORE"),
            Some(paper),
            &a,
            &b,
            Sign::More,
        ));
    }
    if day == "day 1" {
        let largest = |values: Values| {
            let (a, b) = pair(values);
            1.0 + gains(&a, &b).into_iter().fold(0.0, f64::max) / 100.0
        };
        let rows: [(&str, Values, f64, f64); 2] = [
            ("best", Runs::best, 14.4, 5.0),
            ("worst", Runs::worst, 5.4, 2.0),
        ];
        for (what, values, paper, least) in rows {
            let times = largest(values);
            let text = format!(
                "{day}: the {what} receiver's largest gain over MORE is {least} times or more"
            );
            let claim = Claim::value(&text, Some(paper), times, n, "times", times >= least);
            claims.push(claim.because(|| format!("{times:.1} times in the best of our scenarios")));
        }
    }
    claims
}

/// How our network compares with the testbed.
fn describe(day: u8, links: &LinkStatistics) -> String {
    format!(
        "our day {day}: {} directed links that lose at most 88 %, mean loss {:.0} % (testbed 29 %), longest shortest \
         ETX path {} hops (testbed 6)",
        links.links,
        100.0 * links.mean_loss,
        links.hops_max
    )
}
