//! Sensitivity of the results to the choices that the paper leaves open, and to one parameter that it fixes.
//!
//! Every row runs the same scenarios, ten or in a quick run five, with one change. The figures use the first row. We chose it from the paper's text
//! before any result was known.

use chappe_results::figure::{Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};

use chappe_pacifier::paper::Pacing;

use crate::outdoor::{Reading, Setting};
use crate::runs::{PACE, PACIFIER, Pace, Runs, Scale, Site, System, Trial};

const SYSTEMS: [System; 4] = [System::More, System::Tree, System::TreeRl, PACIFIER];

/// The number of scenarios of the table: the first ones of the figures. Half as many in a quick run.
const SCENARIOS: u8 = 10;

fn scenarios(scale: &Scale) -> u8 {
    if scale.all_settings {
        SCENARIOS
    } else {
        SCENARIOS / 2
    }
}

/// Rows of a quick run: the figures' own, and those on the same networks. Other networks would cost as much as all figures but the last.
const QUICK: usize = 3;

/// A row: its name, its meaning, its site.
type Row = (&'static str, &'static str, Site);

/// The rows. Pacing has no effect on MORE and TREE.
fn rows(scale: &Scale) -> Vec<Row> {
    let figures = Setting::FIGURES;
    let paced = |pacing| Site::Outdoor {
        setting: figures,
        pace: Pace { pacing, ..PACE },
    };
    let on = |setting| Site::Outdoor {
        setting,
        pace: PACE,
    };
    let averaged = Setting {
        reading: Reading::Averaged,
        ..figures
    };
    let all = [
        (
            "as in figures",
            "as in the figures: the source waits at most 3 T_p for each transmission that a packet triggers",
            Site::OUTDOOR,
        ),
        (
            "printed",
            "the printed formula: at most 8 T_p times the sum of the children's credits",
            paced(Pacing::PRINTED),
        ),
        (
            "relays keep",
            "forwarding nodes keep the packets of all batches; the paper's have the memory of one",
            Site::Outdoor {
                setting: figures,
                pace: Pace {
                    keeps: true,
                    ..PACE
                },
            },
        ),
        (
            "mean power",
            "at 250 m the mean power equals the threshold",
            on(Setting {
                reading: Reading::MeanPower,
                ..figures
            }),
        ),
        (
            "queued",
            "at most 8 T_p for each triggered transmission, from when the packet enters the queue",
            paced(Pacing::QUEUED),
        ),
        (
            "printed, 1 T_p",
            "at most 1 T_p times the sum of the children's credits",
            paced(Pacing {
                factor: 1,
                ..Pacing::PRINTED
            }),
        ),
        (
            "averaged",
            "ranges averaged over fading are 250 m, with GloMoSim's sensing threshold",
            on(averaged),
        ),
        (
            "averaged, Rayleigh",
            "the same with Rayleigh fading: sensing then averages 461.7 m",
            on(Setting {
                rayleigh: true,
                ..averaged
            }),
        ),
        (
            "Rayleigh",
            "Rayleigh fading instead of GloMoSim's, the figures' reading of the ranges",
            on(Setting {
                rayleigh: true,
                ..figures
            }),
        ),
        (
            "no back-off",
            "no back-off before a frame that waited for DIFS only, as in GloMoSim",
            on(Setting {
                difs_backoff: false,
                ..figures
            }),
        ),
    ];
    all[..if scale.all_settings { all.len() } else { QUICK }].to_vec()
}

/// The site of a protocol in a row. Protocols without pacing run once for all paces. TREE+RL's source returns to no batch, so what its relays
/// keep of earlier ones is never used.
fn place(site: Site, system: System) -> Site {
    match (site, system) {
        (Site::Outdoor { setting, .. }, System::More | System::MoreOriginal | System::Tree) => {
            Site::Outdoor {
                setting,
                pace: PACE,
            }
        }
        (Site::Outdoor { setting, pace }, System::TreeRl) => Site::Outdoor {
            setting,
            pace: Pace {
                keeps: PACE.keeps,
                ..pace
            },
        },
        (site, _) => site,
    }
}

pub fn needs(scale: &Scale) -> Vec<Trial> {
    let row = |(_, _, site): Row| {
        SYSTEMS
            .into_iter()
            .flat_map(move |system| scale.trials(place(site, system), &[system]))
    };
    rows(scale)
        .into_iter()
        .flat_map(row)
        .filter(|trial| trial.scenario <= scenarios(scale))
        .collect()
}

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let rows = rows(scale);
    let places: Vec<String> = rows.iter().map(|(name, ..)| name.to_string()).collect();
    let over_rows = |value: &dyn Fn(Site) -> Summary| {
        rows.iter()
            .map(|&(_, _, site)| value(site))
            .collect::<Vec<_>>()
    };
    let throughput =
        |site: Site, system: System| first(scale, runs.mean(place(site, system), system));
    let worst = |site: Site, system: System| first(scale, runs.worst(place(site, system), system));
    let means = SYSTEMS.map(|system| {
        Series::new(
            &system.label(),
            over_rows(&|site| Summary::of(&throughput(site, system))),
        )
    });
    let ratios = RATIOS.map(|(of, to, paper)| {
        let name = format!("{} / {}", of.label(), to.label());
        let geometric = |site| ratio(&throughput(site, to), &throughput(site, of));
        let mut series = Series::new(&name, over_rows(&geometric));
        series.paper[0] = Some(paper);
        series
    });
    let share = |site: Site, system: System| {
        Summary::of(&first(scale, runs.timed_out(place(site, system), system)))
    };
    let waits = [System::TreeRl, PACIFIER]
        .map(|system| Series::new(&system.label(), over_rows(&|site| share(site, system))));
    let bounds = |site: Site| {
        let mut all = runs.worst_bound(site);
        all.pop();
        let known: Vec<f64> = first(scale, all).into_iter().flatten().collect();
        (!known.is_empty()).then(|| mean(&known))
    };
    let worst_bound = rows.iter().map(|&(_, _, site)| bounds(site)).collect();
    let mut notes: Vec<String> = rows
        .iter()
        .map(|(name, meaning, _)| format!("{name}: {meaning}"))
        .collect();
    notes.push("ratios: geometric means over scenarios; the paper's are its averages".into());
    notes.extend(rows.iter().map(|row| intervals(row, &throughput, &worst)));
    notes.extend(
        rows.iter()
            .filter_map(|&(name, _, site)| links(runs, scale, name, site)),
    );
    Figure {
        id: "sensitivity",
        title: "sensitivity to choices that the paper leaves open".into(),
        panels: [
            Panel::bars(
                "S1",
                "mean throughput",
                "kbit/s",
                places.clone(),
                means.to_vec(),
            )
            .bounded(Vec::new(), worst_bound),
            Panel::bars(
                "S2",
                "ratios of mean throughputs, geometric means",
                "times",
                places.clone(),
                ratios.to_vec(),
            ),
            Panel::bars(
                "S3",
                "source's waits that reached the time limit",
                "%",
                places,
                waits.to_vec(),
            ),
        ]
        .map(|panel| Panel {
            axis: "setting",
            ..panel
        })
        .to_vec(),
        claims: Vec::new(),
        notes,
    }
}

/// The ratios of the table, and the paper's numbers.
const RATIOS: [(System, System, f64); 4] = [
    (System::Tree, System::More, 1.42),
    (System::TreeRl, System::Tree, 1.20),
    (PACIFIER, System::TreeRl, 1.60),
    (PACIFIER, System::More, 2.71),
];

/// The ratios of a row with their 95 % intervals, and that of the worst receivers of Pacifier and TREE+RL.
fn intervals(
    &(name, _, site): &Row,
    mean: &dyn Fn(Site, System) -> Vec<f64>,
    worst: &dyn Fn(Site, System) -> Vec<f64>,
) -> String {
    let text = |of: System, to: System, values: &dyn Fn(Site, System) -> Vec<f64>| {
        let pairs = values(site, to).into_iter().zip(values(site, of));
        let pairs: Vec<(f64, f64)> = pairs.filter(|(a, b)| *a > 0.0 && *b > 0.0).collect();
        let ratio = chappe_results::statistics::ratio(&pairs);
        ratio.map_or_else(
            || "none".into(),
            |ratio| match (ratio.low, ratio.high) {
                (Some(low), Some(high)) => format!("{:.2} ({low:.2} to {high:.2})", ratio.mean),
                _ => format!("{:.2}", ratio.mean),
            },
        )
    };
    let means = RATIOS.map(|(of, to, _)| {
        let ratio = text(of, to, mean);
        format!("{} / {} {ratio}", of.label(), to.label())
    });
    let worst = text(PACIFIER, System::TreeRl, worst);
    format!(
        "{name}: {}; worst receiver, Pacifier / TREE+RL {worst}",
        means.join(", ")
    )
}

/// Keeps the values of the table's scenarios: the figures have more scenarios.
fn first<T>(scale: &Scale, mut values: Vec<T>) -> Vec<T> {
    values.truncate(usize::from(scenarios(scale)));
    values
}

/// The geometric mean of the ratios. It has no interval: a summary's interval is that of the arithmetic mean.
fn ratio(a: &[f64], b: &[f64]) -> Summary {
    let pairs: Vec<(f64, f64)> = a
        .iter()
        .copied()
        .zip(b.iter().copied())
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    let each: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
    let geometric = chappe_results::statistics::ratio(&pairs).map_or(0.0, |ratio| ratio.mean);
    Summary {
        mean: geometric,
        ci95: None,
        ..Summary::of(&each)
    }
}

/// Statistics of the links in a row's networks; none if the networks are those of another row.
fn links(runs: &Runs, scale: &Scale, name: &str, site: Site) -> Option<String> {
    let all = first(scale, runs.links(site));
    let own = matches!(site, Site::Outdoor { pace: PACE, .. });
    let over = |value: &dyn Fn(&crate::links::LinkStatistics) -> f64| {
        mean(&all.iter().map(value).collect::<Vec<f64>>())
    };
    own.then(|| {
        format!(
            "{name}: on average {:.0} directed links that lose at most 88 %, mean loss {:.0} %, longest \
             shortest ETX path {} hops",
            over(&|links| links.links as f64),
            100.0 * over(&|links| links.mean_loss),
            all.iter().map(|links| links.hops_max).max().unwrap_or(0)
        )
    })
}
