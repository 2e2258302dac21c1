//! Figures 6 and 7: seven sources and one sink among 108 nodes (V-D1).

use chappe_core::Seed;

use crate::context::FigureContext;
use crate::goals;
use crate::scene::{Links, PAYLOAD, PaperNetwork, SOURCES};
use crate::series::{Runs, by_flow, paired, summary};
use crate::trial::{Measured, Trial};
use chappe_lab::run::RunError;
use chappe_lab_dpclo::access::Method;
use chappe_lab_dpclo::optimum::Optimum;
use chappe_lab_dpclo::plan::Variant;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean, quantile};

/// A system of the comparison: name, variant, channel access, and the length of queues if it is not the variant's.
type System = (&'static str, Variant, Method, Option<u16>);

/// The systems of the comparison. Short runs omit those after the first [`QUICK`].
const SYSTEMS: [System; 9] = [
    ("DPCLO", Variant::Paper, Method::ZmacPlus, None),
    ("TCP", Variant::Tcp, Method::Dcf, None),
    ("TCP-FeW", Variant::TcpFew, Method::Dcf, None),
    ("Fusion", Variant::Fusion, Method::Edca, None),
    ("queue 1", Variant::Paper, Method::ZmacPlus, Some(1)),
    ("DCLO", Variant::Dclo, Method::ZmacPlus, None),
    ("DPCLO, 802.11e", Variant::Paper, Method::Edca, None),
    ("improved", Variant::Improved, Method::ZmacPlus, None),
    ("improved, 802.11e", Variant::Improved, Method::Edca, None),
];
const QUICK: usize = 5;

//= dpclo V-D: 108 nodes on 1250 m by 1250 m
pub fn figure6(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let found = context
        .trials
        .measure(&[()], context.networks(), |(), seed: Seed| {
            let scene = PaperNetwork::Large.scene(seed)?;
            let links = Links::at(scene.medium.positions());
            Ok((links.degree(), scene.hops))
        })?;
    let found = found.into_iter().next().unwrap_or_default();
    let of = |value: fn(&(f64, Vec<u16>)) -> f64| summary(&found, value);
    let hops = (0..SOURCES).map(|source| summary(&found, |(_, hops)| f64::from(hops[source])));
    let degree = of(|found| found.0);
    Ok(Figure {
        id: "figure6",
        title: "108 nodes on 1250 m by 1250 m, seven sources, one sink".into(),
        panels: vec![
            Panel::bars(
                "6",
                "hops to the sink",
                "hops",
                sources(),
                vec![Series::new("hops", hops.collect())],
            )
            .on("source"),
        ],
        claims: vec![
            Claim::new(
                "13 neighbours on average",
                Some(13.0),
                degree,
                "neighbours",
                (degree.mean - 13.0).abs() < 0.5,
            )
            .because(|| {
                "108 uniform positions give 11 on average; ours are redrawn until they give 12 or more".into()
            }),
        ],
        notes: vec![
            "positions are redrawn until the network is connected and has a diameter of eight hops; the sink is the node nearest to a corner, since the paper does not give its position".into(),
        ],
    })
}

fn sources() -> Vec<String> {
    (1..=SOURCES).map(|source| source.to_string()).collect()
}

//= dpclo V-D1: many to one, throughput and delay of each source
pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let systems = if context.trials.quick() {
        &SYSTEMS[..QUICK]
    } else {
        &SYSTEMS
    };
    let trial = |&(_, variant, method, queue): &System| {
        let usual = Trial::new(PaperNetwork::Large, variant, method, context.large());
        usual.with(|settings| settings.queues.limit = queue.unwrap_or(settings.queues.limit))
    };
    let trials: Vec<Trial> = systems.iter().map(trial).collect();
    let runs = context.measure_large(&trials)?;
    let optima = context.trials.measure_kept(
        "optimum",
        &trials[..1],
        context.networks(),
        |trial, seed| trial.optimum(seed),
    )?;
    let optima = optima.concat();
    let link_kbps = trials[0].link_kbps();
    Ok(Figure {
        id: "figure7",
        title: "seven sources to one sink among 108 nodes".into(),
        panels: vec![
            goodput((systems, &runs), &optima, link_kbps),
            delay((systems, &runs)),
            fairness((systems, &runs), &optima),
        ],
        claims: [claims(&runs), goals(&runs, &optima)].concat(),
        notes: vec![
            format!("sources are numbered from the farthest to the nearest; packets of {PAYLOAD} octets; TCP over the DCF, Fusion over 802.11e, the others over ZMAC+ unless named otherwise"),
            "bounds, at the rate of one ZMAC+ link: for the total, one link used by the nearest source alone; for the smallest, the max-min fair rate; for the geometric mean, that of the proportionally fair rates".into(),
        ],
    })
}

/// Systems, and the runs of each.
type Compared<'a> = (&'a [System], &'a [Runs]);

fn named<'a>((systems, runs): Compared<'a>) -> impl Iterator<Item = (&'static str, &'a Runs)> {
    systems.iter().map(|(name, ..)| *name).zip(runs)
}

fn goodput(compared: Compared<'_>, optima: &[Optimum], link_kbps: f64) -> Panel {
    let max_min = summary(optima, |of| of.max_min_bps / 1e3);
    let fair = summary(optima, |of| of.geometric_mean_bps() / 1e3);
    let mut places = sources();
    places.extend(["total", "smallest", "geometric mean"].map(String::from));
    let goodput = |(name, runs): (&str, &Runs)| {
        let mut series = by_flow(name, runs, SOURCES, |run, flow| run.kbps[flow]);
        let values: [fn(&Measured) -> f64; 3] =
            [Measured::total, Measured::least, Measured::geometric_mean];
        series.ours.extend(values.map(|value| summary(runs, value)));
        series.paper.extend([None; 3]);
        series
    };
    let series = named(compared).map(goodput).collect();
    let mut bound = vec![None; SOURCES];
    bound.extend([Some(link_kbps), Some(max_min.mean), Some(fair.mean)]);
    Panel::bars("7a", "goodput", "kbit/s", places, series)
        .on("source")
        .bounded(bound, vec![])
}

fn delay(compared: Compared<'_>) -> Panel {
    let delay = |(name, runs): (&str, &Runs)| {
        by_flow(name, runs, SOURCES, |run, flow| 1e3 * run.delays[flow])
    };
    let series = named(compared).map(delay).collect();
    Panel::bars("7b", "mean delay", "ms", sources(), series).on("source")
}

fn fairness((systems, runs): Compared<'_>, optima: &[Optimum]) -> Panel {
    let share = |name: &str, value: &dyn Fn(&Measured, usize) -> f64| {
        let of = |runs: &Runs| {
            let values = runs
                .iter()
                .enumerate()
                .map(|(network, run)| value(run, network));
            Summary::of(&values.collect::<Vec<_>>())
        };
        Series::new(name, runs.iter().map(of).collect())
    };
    let least = |run: &Measured, network: usize| 1e5 * run.least() / optima[network].max_min_bps;
    let mean = |run: &Measured, network: usize| {
        1e5 * run.geometric_mean() / optima[network].geometric_mean_bps()
    };
    Panel::bars(
        "7c",
        "fairness, and losses to full queues",
        "%",
        systems.iter().map(|(name, ..)| name.to_string()).collect(),
        vec![
            share("Jain's index", &|run, _| 100.0 * run.jain()),
            share("slowest, of max-min", &least),
            share("geometric mean, of the best", &mean),
            share("lost to full queues", &|run, _| 100.0 * run.overflow),
        ],
    )
    .on("system")
}

fn claims(runs: &[Runs]) -> Vec<Claim> {
    let [dpclo, tcp, few, fusion, one, rest @ ..] = runs else {
        return Vec::new();
    };
    [
        rival_claims(tcp, few, fusion),
        paper_claims(dpclo, &runs[1..]),
        queue_claims(one, dpclo),
        long_claims(dpclo, rest),
    ]
    .concat()
}

/// Claims about TCP and what is compared with it.
fn rival_claims(tcp: &Runs, few: &Runs, fusion: &Runs) -> Vec<Claim> {
    let nearest = summary(tcp, |run| 100.0 * run.kbps[SOURCES - 1] / run.total());
    let starved = summary(tcp, |run| {
        100.0 * run.least() / (run.total() / SOURCES as f64)
    });
    let less_biased = paired(few, tcp, |few, tcp| few.jain() - tcp.jain());
    let alike = paired(fusion, tcp, |fusion, tcp| fusion.jain() - tcp.jain());
    vec![
        Claim::new(
            "TCP favours the nearest source: it gets more than half of the total",
            None,
            nearest,
            "% of all",
            nearest.mean > 50.0,
        ),
        Claim::new(
            "TCP starves other sources: the slowest gets less than a tenth of the mean",
            None,
            starved,
            "% of the mean",
            starved.mean < 10.0,
        ),
        Claim::new(
            "TCP-FeW is less biased: Jain's index is higher",
            None,
            less_biased,
            "more",
            less_biased.mean > 0.0,
        ),
        Claim::new(
            "Fusion is about as fair as TCP: Jain's index within 0.1",
            None,
            alike,
            "more",
            alike.mean.abs() < 0.1,
        ),
    ]
}

/// Claims about DPCLO beside the other systems.
fn paper_claims(dpclo: &Runs, others: &[Runs]) -> Vec<Claim> {
    let kept = summary(dpclo, |run| {
        100.0 * run.least() / (run.total() / SOURCES as f64)
    });
    let most = summary(dpclo, Measured::total);
    let others = others
        .iter()
        .map(|runs| summary(runs, Measured::total).mean);
    let best_other = others.fold(0.0, f64::max);
    let beaten = summary(dpclo, |run| {
        run.kbps[..SOURCES - 1]
            .iter()
            .filter(|&&kbps| kbps > run.kbps[SOURCES - 1])
            .count() as f64
    });
    let worst = summary(dpclo, |run| {
        let worst = run
            .delays
            .iter()
            .copied()
            .filter(|delay| delay.is_finite())
            .fold(0.0, f64::max);
        worst / quantile(&run.delays, 0.5).unwrap_or(f64::NAN)
    });
    vec![
        Claim::new(
            "DPCLO starves no source: the slowest gets more than 0.3 of the mean",
            None,
            kept,
            "% of the mean",
            kept.mean - kept.ci95.unwrap_or(f64::INFINITY) > 30.0,
        )
        .because(|| {
            "the rate follows the source's own queue; with rates by eq. 2 the slowest gets half of the mean (docs/studies/dpclo.md)".into()
        }),
        Claim::value(
            "DPCLO carries the most in total",
            None,
            100.0 * most.mean / best_other,
            most.n,
            "% of the best other",
            most.mean > best_other,
        ).because(|| {
            let [early, late] = growth(dpclo);
            format!(
                "its rates still grow when the run ends: in total {early:.0} kbit/s in the first half of the counted time, {late:.0} in the second; and a system that gives nearly everything to the nearest source has the largest total"
            )
        }),
        Claim::new(
            "the nearest source gets less than some farther ones",
            None,
            beaten,
            "sources get more",
            beaten.mean >= 1.0,
        ),
        Claim::new(
            "the worst source waits about ten times as long as the median (5 to 20 times)",
            Some(10.0),
            worst,
            "times",
            (5.0..=20.0).contains(&worst.mean),
        ),
    ]
}

/// Claims about queues of one packet.
fn queue_claims(one: &Runs, dpclo: &Runs) -> Vec<Claim> {
    let delay = |run: &Measured| quantile(&finite(&run.delays), 0.5).unwrap_or(f64::NAN);
    let quick = paired(one, dpclo, |one, usual| 100.0 * delay(one) / delay(usual));
    let less = paired(one, dpclo, |one, usual| 100.0 * one.total() / usual.total());
    vec![
        Claim::new(
            "with queues of one packet, the median source's delay falls to less than half",
            None,
            quick,
            "% of that with ten",
            quick.mean < 50.0,
        ),
        Claim::new(
            "with queues of one packet, less is carried in total",
            None,
            less,
            "% of that with ten",
            less.mean < 100.0,
        ),
    ]
}

/// Claims about systems that short runs omit.
fn long_claims(dpclo: &Runs, rest: &[Runs]) -> Vec<Claim> {
    let [dclo, _, ours, _] = rest else {
        return Vec::new();
    };
    let carried = paired(dclo, dpclo, |dclo, dpclo| {
        100.0 * dclo.total() / dpclo.total()
    });
    let late = summary(dclo, |run| {
        quantile(&finite(&run.delays), 0.5).unwrap_or(f64::NAN)
    });
    let quicker = paired(ours, dpclo, |ours, dpclo| {
        let median = |run: &Measured| quantile(&finite(&run.delays), 0.5).unwrap_or(f64::NAN);
        100.0 * median(ours) / median(dpclo)
    });
    let as_fair = paired(ours, dpclo, |ours, dpclo| {
        100.0 * ours.geometric_mean() / dpclo.geometric_mean()
    });
    vec![
        Claim::new(
            "DCLO carries far less than DPCLO: below half",
            None,
            carried,
            "% of DPCLO",
            carried.mean < 50.0,
        ),
        Claim::new(
            "DCLO's packets take tens of seconds",
            None,
            late,
            "s at the median",
            late.mean > 10.0,
        ),
        Claim::new(
            "the improved variant has less delay than DPCLO (median source)",
            None,
            quicker,
            "% of DPCLO",
            quicker.mean < 100.0,
        )
        .as_goal(),
        Claim::new(
            "the improved variant's geometric mean is no smaller than DPCLO's",
            None,
            as_fair,
            "% of DPCLO",
            as_fair.mean >= 100.0,
        )
        .as_goal(),
    ]
}

/// Our goals for the improved variant over either channel access, which short runs omit.
fn goals(runs: &[Runs], optima: &[Optimum]) -> Vec<Claim> {
    let [.., zmac, edca] = runs else {
        return Vec::new();
    };
    if runs.len() < SYSTEMS.len() {
        return Vec::new();
    }
    let of = |access, runs| goals::claims(access, runs, optima);
    [
        of("improved over 802.11e", edca),
        of("improved over ZMAC+", zmac),
    ]
    .concat()
}

/// The total goodput in the first and in the second half of the counted time, in kbit/s.
fn growth(runs: &Runs) -> [f64; 2] {
    let half = |run: &Measured, late: bool| {
        let of = |steps: &Vec<f64>| {
            // The first quarter of the steps precedes the counted time.
            let counted = &steps[steps.len() / 4..];
            let (first, second) = counted.split_at(counted.len() / 2);
            mean(if late { second } else { first })
        };
        run.course.iter().map(of).sum::<f64>()
    };
    [false, true].map(|late| summary(runs, |run| half(run, late)).mean)
}

fn finite(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect()
}
