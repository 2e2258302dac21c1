//! Figure 7: the latency of a page of 82 octets on a mote, by HTTP and by CoAP (8.1.1).

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::quantile;

use crate::context::FigureContext;
use chappe_lab_tcplp::study::web::{By, Measured, Trial};
use chappe_lab_tcplp::study::{LEAVES, READING, Sleeping};

const SECOND: Duration = Duration::from_secs(1);
/// The interval of an adaptive leaf while it expects a packet (8.1.1).
const SHORT: Duration = Duration::from_millis(100);

/// The paper's three cases.
const CASES: [(&str, &str, Option<Sleeping>); 3] = [
    ("7a", "radio always on", None),
    (
        "7b",
        "a data request every second",
        Some(Sleeping {
            base: SECOND,
            short: SECOND,
        }),
    ),
    (
        "7c",
        "every second, every 100 ms while the leaf expects a packet",
        Some(Sleeping {
            base: SECOND,
            short: SHORT,
        }),
    ),
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let repeats = context.pick(5, 2);
    let mut panels = Vec::new();
    let mut latencies = Vec::new();
    for (id, title, sleep) in CASES {
        let by = |by| -> Result<Vec<f64>, RunError> {
            let trials: Vec<Trial> = (0..repeats)
                .flat_map(|repeat| LEAVES.map(|leaf| (repeat, leaf)))
                .map(|(repeat, leaf)| Trial {
                    by,
                    octets: READING as usize,
                    sleep,
                    leaf,
                    repeat,
                })
                .collect();
            let runs: Vec<Vec<Measured>> = context.measure(&trials, Trial::run)?;
            Ok(runs.iter().flatten().map(|run| run.latency * 1e3).collect())
        };
        let (http, coap) = (by(By::Http)?, by(By::Coap)?);
        let series =
            |name: &str, samples: &[f64]| Series::distribution(name, samples.to_vec(), [None; 5]);
        let both = vec![series("HTTP", &http), series("CoAP", &coap)];
        panels.push(Panel::cdf(id, title, "ms", both));
        latencies.push((http, coap));
    }
    Ok(Figure {
        id: "figure7",
        title: "a page of 82 octets on a mote, requested from behind the border router".into(),
        panels,
        claims: claims(&latencies),
        notes: vec![
            "leaves three to five hops from the border router, and a round trip of 12 ms from there to the client; each request at a random time; HTTP opens a connection for each".into(),
            "the tree and its hidden terminals are ours; the paper's tree is in a drawing that is not available".into(),
        ],
    })
}

fn claims(latencies: &[(Vec<f64>, Vec<f64>)]) -> Vec<Claim> {
    let [on, fixed, adaptive] = latencies else {
        return Vec::new();
    };
    let at = |samples: &[f64], p: f64| quantile(samples, p).unwrap_or(f64::NAN);
    let (slow, n) = (at(&on.0, 0.9), on.0.len());
    let ratio = at(&on.0, 0.5) / at(&on.1, 0.5);
    // Differences of least latencies, so that the extra round trip itself does not count.
    let worst = at(&fixed.0, 0.0) - at(&on.0, 0.0);
    let least = at(&fixed.1, 0.0) - at(&on.1, 0.0);
    let more = at(&adaptive.0, 0.5) - at(&adaptive.1, 0.5);
    vec![
        Claim::value("with the radio always on, HTTP delivers nine of ten pages within a second", None, slow, n, "ms", slow < 1000.0)
            .because(|| format!("the ninth decile is {slow:.0} ms")),
        Claim::value("CoAP is faster then: it needs one round trip, HTTP two", Some(2.0), ratio, n, "times", ratio > 1.5)
            .because(|| format!("HTTP takes {ratio:.1} times as long")),
        Claim::value("with a data request every second, HTTP waits a whole second even at best (for its second round trip); CoAP does not", Some(1000.0), worst, n, "ms", worst > 900.0 && least < 300.0)
            .because(|| format!("compared with the radio on, the fastest page takes {worst:.0} ms more by HTTP and {least:.0} ms more by CoAP")),
        Claim::value("with the adaptive interval, HTTP takes little longer than CoAP: less than half a second in the median", None, more, n, "ms", more < 500.0)
            .because(|| format!("it takes {more:.0} ms longer")),
    ]
}
