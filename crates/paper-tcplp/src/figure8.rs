//! Figure 8: pages of different sizes on a leaf with a data request every 100 ms, by HTTP and by CoAP (8.1.2, 8.1.3).

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, ratio};

use crate::context::{FigureContext, beside, line, lines};
use chappe_lab_tcplp::study::web::{By, Measured, Trial};
use chappe_lab_tcplp::study::{LEAVES, Sleeping};

/// A short interval, as an adaptive leaf has during a transfer (8.1.2).
const SHORT: Sleeping = Sleeping {
    base: Duration::from_millis(100),
    short: Duration::from_millis(100),
};
/// The page for which the paper gives the radio time (8.1.3), in octets.
const KIB: usize = 1024;
/// The page of Figure 8b, in octets.
const LARGE: usize = 50 * 1024;
/// Seconds between two requests (8.1.3).
const EACH: f64 = 100.0;

fn trials(by: By, octets: usize) -> Vec<Trial> {
    LEAVES
        .map(|leaf| Trial {
            by,
            octets,
            sleep: Some(SHORT),
            leaf,
            repeat: 0,
        })
        .to_vec()
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let sizes: &[usize] = context.pick(&[82, 256, 512, KIB, 2048, 4096, 8192], &[82, KIB]);
    // The runs of all leaves for one size form one sample.
    let over = |by, sizes: &[usize]| -> Result<Vec<Vec<Measured>>, RunError> {
        let all: Vec<Trial> = sizes
            .iter()
            .flat_map(|&octets| trials(by, octets))
            .collect();
        let runs = context.measure(&all, Trial::run)?;
        Ok(runs
            .chunks(LEAVES.len())
            .map(<[Vec<Measured>]>::concat)
            .collect())
    };
    let (http, coap) = (over(By::Http, sizes)?, over(By::Coap, sizes)?);
    let (http_large, coap_large) = (over(By::Http, &[LARGE])?, over(By::Coap, &[LARGE])?);
    let seconds = |run: &Measured| run.latency;
    let rate = |run: &Measured| LARGE as f64 * 8.0 / run.latency / 1e3;
    let a = lines(
        "8a",
        "latency of a page",
        "s",
        (
            "page",
            sizes.iter().map(|size| format!("{size} octets")).collect(),
        ),
        vec![line("HTTP", &http, seconds), line("CoAP", &coap, seconds)],
    );
    let b = Panel::bars(
        "8b",
        "throughput of 50 KiB",
        "kbit/s",
        vec!["50 KiB".into()],
        vec![
            line("HTTP", &http_large, rate),
            line("CoAP", &coap_large, rate),
        ],
    )
    .on("page");
    let kib = sizes.iter().position(|&size| size == KIB).unwrap_or(0);
    let awake = |runs: &[Measured]| {
        Summary::of(&runs.iter().map(|run| run.awake * 1e3).collect::<Vec<_>>())
    };
    let radio =
        |name: &str, runs: &[Measured]| beside(Series::new(name, vec![awake(runs)]), &[None]);
    let c = Panel::bars(
        "8.1.3",
        "radio time of the leaf for a page of 1024 octets",
        "ms",
        vec!["1024 octets".into()],
        vec![radio("HTTP", &http[kib]), radio("CoAP", &coap[kib])],
    )
    .on("page");
    Ok(Figure {
        id: "figure8",
        title: "pages on a leaf with a data request every 100 ms".into(),
        claims: claims(&(http, coap), kib, &http_large[0], &coap_large[0]),
        panels: vec![a, b, c],
        notes: vec![
            "segments of five frames, windows of four; CoAP in blocks of 512 octets, the power of two next to the segments".into(),
            "means and intervals over four leaves, three to five hops away, and all seeds".into(),
        ],
    })
}

type Runs = Vec<Vec<Measured>>;

fn claims(
    (http, coap): &(Runs, Runs),
    kib: usize,
    http_large: &[Measured],
    coap_large: &[Measured],
) -> Vec<Claim> {
    let pairs = |a: &[Measured], b: &[Measured], value: fn(&Measured) -> f64| -> f64 {
        let pairs: Vec<(f64, f64)> = a.iter().zip(b).map(|(a, b)| (value(a), value(b))).collect();
        ratio(&pairs).map_or(f64::NAN, |ratio| ratio.mean)
    };
    let n = http_large.len();
    let seconds = |run: &Measured| run.latency;
    let faster = pairs(http_large, coap_large, seconds);
    let small = pairs(&coap[0], &http[0], seconds);
    let resting = http[kib].iter().map(|run| run.resting).sum::<f64>() / http[kib].len() as f64;
    let mean =
        |runs: &[Measured]| runs.iter().map(|run| run.awake).sum::<f64>() / runs.len() as f64;
    let (radio_http, radio_coap) = (mean(&http[kib]), mean(&coap[kib]));
    let longer = 100.0 * (radio_http / radio_coap - 1.0);
    let idle = resting * EACH;
    let seldom = 100.0 * ((radio_http + idle) / (radio_coap + idle) - 1.0);
    vec![
        Claim::value(
            "small pages take longer by HTTP, which opens a connection first",
            None,
            small,
            n,
            "times",
            small > 1.0,
        )
        .because(|| format!("it takes {small:.2} times as long")),
        Claim::value(
            "50 KiB are faster by HTTP, with TCP's window, than by CoAP, with one block at a time",
            Some(1.4),
            faster,
            n,
            "times",
            faster > 1.1,
        )
        .because(|| format!("it is {faster:.2} times as fast")),
        Claim::value(
            "for 1024 octets HTTP keeps the radio on longer, by about a third at most",
            Some(35.0),
            longer,
            n,
            "%",
            (0.0..=40.0).contains(&longer),
        )
        .because(|| {
            format!(
                "{:.0} and {:.0} ms: {longer:+.0} %",
                radio_http * 1e3,
                radio_coap * 1e3
            )
        }),
        Claim::value(
            "with one such request in 100 s the difference in radio time is below one per cent",
            Some(0.35),
            seldom,
            n,
            "%",
            seldom.abs() < 1.0,
        )
        .because(|| {
            format!(
                "{seldom:+.2} %; an idle radio is awake for {:.1} % of the time",
                resting * 100.0
            )
        }),
    ]
}
