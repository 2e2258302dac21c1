//! Figure 12: goodput and fairness of four flows at once (8.3).

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Series};
use chappe_results::statistics::{Summary, mean, quantile};

use crate::context::{FigureContext, lines};
use chappe_lab_tcplp::study::Protocol;
use chappe_lab_tcplp::study::event::{Measured, Trial};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::Tcp,
    Protocol::Coap,
    Protocol::Cocoa,
    Protocol::Improved,
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let (loads, intervals): (&[f64], u32) =
        context.pick((&[0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0], 5), (&[1.0, 6.0], 2));
    let trial = |protocol, load: f64, red| Trial {
        protocol,
        offered: load * 1e3,
        intervals,
        red,
    };
    let trials: Vec<Trial> = PROTOCOLS
        .into_iter()
        .flat_map(|protocol| loads.iter().map(move |&load| trial(protocol, load, true)))
        .chain(loads.iter().map(|&load| trial(Protocol::Tcp, load, false)))
        .collect();
    let runs = context.measure(&trials, Trial::run)?;
    let by: Vec<&[Vec<Measured>]> = runs.chunks(loads.len()).collect();
    let places: Vec<String> = loads.iter().map(|load| format!("{load} kbit/s")).collect();
    let quantiles = |id: &str, title: &str, p: f64| {
        let series = PROTOCOLS.iter().zip(&by).map(|(protocol, runs)| {
            let values = runs.iter().map(|runs| rates(runs, p));
            Series::new(protocol.name(), values.collect())
        });
        lines(
            id,
            title,
            "kbit/s",
            ("offered", places.clone()),
            series.collect(),
        )
    };
    let mut median = quantiles("12", "goodput of a flow over 40 s: median", 0.5);
    median.bound = loads.iter().map(|&load| Some(load)).collect();
    let fairness = |name: &str, runs: &[Vec<Measured>]| {
        let of = |runs: &Vec<Measured>| {
            Summary::of(&runs.iter().map(|run| run.fairness).collect::<Vec<_>>())
        };
        Series::new(name, runs.iter().map(of).collect())
    };
    let mut series: Vec<Series> = PROTOCOLS
        .iter()
        .zip(&by)
        .map(|(protocol, runs)| fairness(protocol.name(), runs))
        .collect();
    series.push(fairness("TCPlp without RED", by[PROTOCOLS.len()]));
    let shares = lines(
        "12 fairness",
        "Jain's index over the four flows",
        "",
        ("offered", places.clone()),
        series,
    );
    Ok(Figure {
        id: "figure12",
        title: "four flows at once, over three to five hops".into(),
        panels: vec![
            median,
            quantiles("12 lower", "lower quartile", 0.25),
            quantiles("12 upper", "upper quartile", 0.75),
            shares,
        ],
        claims: claims(loads, &by),
        notes: vec![
            "each leaf makes readings at the offered rate; segments and messages of three frames; RED with ECN at relays; a data request every 100 ms while a leaf expects an answer".into(),
            "the bound is the offered load; 802.15.4 carries about 28 kbit/s over three and more hops, all flows together".into(),
        ],
    })
}

/// A quantile over all flows and intervals of each run, in kbit/s.
fn rates(runs: &[Measured], p: f64) -> Summary {
    let of = |run: &Measured| quantile(&run.goodput, p).unwrap_or(0.0) / 1e3;
    Summary::of(&runs.iter().map(of).collect::<Vec<_>>())
}

fn claims(loads: &[f64], by: &[&[Vec<Measured>]]) -> Vec<Claim> {
    let [tcp, coap, cocoa, improved, plain] = by else {
        return Vec::new();
    };
    let medians = |runs: &[Vec<Measured>]| -> Vec<f64> {
        runs.iter().map(|runs| rates(runs, 0.5).mean).collect()
    };
    let (t, c, o, ours) = (
        medians(tcp),
        medians(coap),
        medians(cocoa),
        medians(improved),
    );
    let n = tcp[0].len();
    let small = loads.iter().position(|&load| load >= 1.0).unwrap_or(0);
    let carried = t[small] / loads[small];
    let others: Vec<f64> = c.iter().zip(&o).map(|(c, o)| (c + o) / 2.0).collect();
    let ratios: Vec<f64> = t.iter().zip(&others).map(|(t, other)| t / other).collect();
    let off = ratios
        .iter()
        .map(|ratio| 100.0 * (ratio - 1.0).abs())
        .fold(0.0, f64::max);
    let last = loads.len() - 1;
    let spread = |runs: &[Measured]| rates(runs, 0.75).mean - rates(runs, 0.25).mean;
    let (before, after) = (spread(&tcp[small]), spread(&tcp[last]));
    let fair = |runs: &[Vec<Measured>]| {
        mean(
            &runs[last]
                .iter()
                .map(|run| run.fairness)
                .collect::<Vec<_>>(),
        )
    };
    let (with, without) = (fair(tcp), fair(plain));
    let marked: u64 = tcp[last].iter().map(|run| run.marked).sum();
    let best = |medians: &[f64]| medians.iter().copied().fold(0.0, f64::max);
    let gain = best(&ours) / best(&t);
    vec![
        Claim::value("small loads are carried in full", Some(1.0), carried, n, "of the offered load", carried > 0.95)
            .because(|| format!("{carried:.2} of {} kbit/s", loads[small])),
        Claim::value("TCP's goodput is within 30 % of the mean of CoAP's and CoCoA's at every load", None, off, n, "% at most", off < 30.0)
            .because(|| format!("the medians are {t:.1?} and {others:.1?} kbit/s")),
        Claim::value("above the capacity of the mesh the flows differ more: the interquartile range grows", None, after, n, "kbit/s", after > before)
            .because(|| format!("{after:.2} kbit/s at {} kbit/s, {before:.2} at {}", loads[last], loads[small])),
        Claim::value("RED with ECN increases fairness", None, with - without, n, "of Jain's index", with > without + 0.01)
            .because(|| format!("{with:.3} with it, {without:.3} without; {marked} marks in all runs: flows lose frames to hidden terminals, and queues stay short")),
        Claim::value("improved: its highest median is 1.1 times TCPlp's", None, gain, n, "times TCPlp's best", gain >= 1.1).as_goal()
            .because(|| format!("{gain:.2} times")),
    ]
}
