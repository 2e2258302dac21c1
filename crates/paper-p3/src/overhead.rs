//! Equation 1 and the download times: the time to measure links, to collect reports and to download.

use chappe_lab::run::RunError;
use chappe_p3::planner::{Measurement, collection_time};
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};

use crate::campaign::{Measured, Scale, Trial, Workload};
use chappe_lab_p3::{P3, Variant};

const PAPER: Workload = Workload::new(Variant::Paper);
const IMPROVED: Workload = Workload::new(Variant::Improved);
/// Octets downloaded from each node, and the paper's average goodput in bits per second.
const OCTETS: f64 = 64_000.0;
const AVERAGE: f64 = 178_500.0;

/// A step, and its seconds: at the paper's goodput, at ours, improved; and the paper's value.
type Row = (&'static str, f64, f64, f64, Option<f64>);

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(scale.site(), scale.routes, &[PAPER, IMPROVED])
}

pub fn make(measured: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let site = scale.site();
    let [faithful, improved] =
        [PAPER, IMPROVED].map(|workload| mean(&measured.goodput(site, workload)) * 1e3);
    let download = |nodes: f64, rate: f64| nodes * OCTETS * 8.0 / rate;
    let measure = |with: &Measurement, nodes: u64| with.duration(nodes).as_secs_f64();
    // The paper allows ten seconds for collecting, independent of the number of nodes.
    let collect = 10.0;
    let dense = P3::paper(Variant::Improved).measurement;
    let rows: [Row; 6] = [
        (
            "measuring 100 nodes (eq. 1)",
            measure(&Measurement::PAPER, 100),
            measure(&Measurement::PAPER, 100),
            measure(&dense, 100),
            Some(101.0),
        ),
        (
            "with collecting",
            measure(&Measurement::PAPER, 100) + collect,
            measure(&Measurement::PAPER, 100) + collect,
            measure(&dense, 100) + 4.0 * collect,
            Some(111.0),
        ),
        (
            "64 kB from each of 100",
            download(100.0, AVERAGE),
            download(100.0, faithful),
            download(100.0, improved),
            Some(287.0),
        ),
        (
            "both",
            measure(&Measurement::PAPER, 100) + collect + download(100.0, AVERAGE),
            measure(&Measurement::PAPER, 100) + collect + download(100.0, faithful),
            measure(&dense, 100) + 4.0 * collect + download(100.0, improved),
            Some(400.0),
        ),
        (
            "64 kB from each of 260",
            download(260.0, AVERAGE),
            download(260.0, faithful),
            download(260.0, improved),
            Some(746.0),
        ),
        (
            "reports of 260 nodes",
            collection_time(260).as_secs_f64(),
            collection_time(260).as_secs_f64(),
            4.0 * collection_time(260).as_secs_f64(),
            Some(10.0),
        ),
    ];
    let column = |name: &str, value: &dyn Fn(&Row) -> f64| {
        Series::new(
            name,
            rows.iter().map(|row| Summary::of(&[value(row)])).collect(),
        )
    };
    let mut arithmetic = column("at the paper's 178.5 kbit/s", &|row| row.1);
    arithmetic.paper = rows.iter().map(|row| row.4).collect();
    let series = vec![
        arithmetic,
        column("at our goodput", &|row| row.2),
        column("improved, with its own measurement", &|row| row.3),
    ];
    let places = rows.iter().map(|row| row.0.to_string()).collect();
    let claim = |text: &str, paper: f64, ours: f64, slack: f64, unit| {
        Claim::value(
            text,
            Some(paper),
            ours,
            1,
            unit,
            (ours - paper).abs() <= slack,
        )
        .because(|| format!("ours is {ours:.2}"))
    };
    let share = 100.0 * collect / (download(260.0, AVERAGE) + collect);
    Ok(Figure {
        id: "overhead",
        title: "measuring, collecting, downloading".into(),
        panels: vec![Panel::bars("eq. 1", "time", "s", places, series).on("what")],
        claims: vec![
            claim("equation 1: (10 ms + 100 ms x 10) x 100 nodes", 101.0, rows[0].1, 0.01, "s"),
            claim("64,000 octets from each of 100 nodes", 287.0, rows[2].1, 0.5, "s"),
            claim("measuring, collecting and downloading: about 400 s", 400.0, rows[3].1, 4.0, "s"),
            claim("64,000 octets from each of 260 nodes", 746.0, rows[4].1, 0.5, "s"),
            claim("collecting takes 1.32 % of the time of collecting and downloading", 1.32, share, 0.01, "%"),
        ],
        notes: vec![
            "the paper's object of 64 kB is 64,000 octets here; 65,536 would take 294 s and 764 s".into(),
            "the improved variant measures four channels with 100 beacons of 5 ms; its reports are four times as long".into(),
        ],
    })
}
