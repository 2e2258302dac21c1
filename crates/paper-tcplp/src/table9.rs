//! Table 9: the features of embedded TCP stacks (appendix B), and of this one.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;
use chappe_tcplp::baseline::one_segment;
use chappe_tcplp::tcp::Config;

use crate::context::FigureContext;

/// Features of the paper's table, and whether uIP, BLIP, GNRC and TCPlp have them.
const FEATURES: [(&str, [bool; 4]); 8] = [
    ("flow control", [true, true, true, true]),
    // uIP: "N/A", with one segment in flight.
    ("congestion control", [false, false, true, true]),
    ("RTT estimation", [true, false, true, true]),
    ("MSS option", [true, false, true, true]),
    ("out-of-order reassembly", [false, false, true, true]),
    ("timestamps", [false, false, false, true]),
    ("selective ACKs", [false, false, false, true]),
    ("delayed ACKs", [false, false, false, true]),
];
const STACKS: [&str; 4] = ["uIP", "BLIP", "GNRC", "TCPlp"];

/// Features that the paper's table does not list.
const FURTHER: [&str; 6] = [
    "ECN",
    "RACK",
    "tail loss probes",
    "PRR",
    "limited transmit",
    "undo",
];

/// The features of [`FEATURES`] that a configuration has. Flow control, RTT estimation and MSS cannot be switched off. A window
/// needs congestion control and reassembly; one segment in flight needs neither.
fn has(config: &Config, window: bool) -> [bool; 8] {
    let delays = config.ack_every > 1;
    [
        true,
        window,
        true,
        true,
        window,
        config.timestamps,
        config.sack,
        delays,
    ]
}

fn further(config: &Config) -> [bool; 6] {
    [
        config.ecn,
        config.rack,
        config.tail_loss_probe,
        config.prr,
        config.limited_transmit,
        config.undo,
    ]
}

pub fn make(_: &FigureContext<'_>) -> Result<Figure, RunError> {
    let one = |yes: bool| Summary::of(&[f64::from(u8::from(yes))]);
    let standard = has(&Config::STANDARD, true);
    let simple = has(&one_segment::CONFIG, false);
    let mut series: Vec<Series> = STACKS
        .iter()
        .enumerate()
        .map(|(stack, name)| Series::new(name, FEATURES.map(|(_, of)| one(of[stack])).to_vec()))
        .collect();
    series.push(Series::new("ours", standard.map(one).to_vec()));
    series.push(Series::new("ours, one segment", simple.map(one).to_vec()));
    let names = FEATURES.map(|(name, _)| name.to_string()).to_vec();
    let more = further(&Config::STANDARD);
    let count = standard.iter().filter(|yes| **yes).count();
    let above = more.iter().filter(|yes| **yes).count();
    Ok(Figure {
        id: "table9",
        title: "features of TCP stacks: 1 yes, 0 no".into(),
        panels: vec![
            Panel::bars("9", "the paper's list", "", names, series).on("feature"),
            Panel::bars("9 further", "features beyond it", "", FURTHER.map(String::from).to_vec(), vec![Series::new("ours", more.map(one).to_vec())]).on("feature"),
        ],
        claims: vec![
            Claim::count("ours has all features that the paper lists", Some(8.0), count, FEATURES.len(), count == FEATURES.len())
                .because(|| format!("{} are missing", FEATURES.len() - count)),
            Claim::count("ours has the further features that the paper does not list", None, above, FURTHER.len(), above == FURTHER.len())
                .because(|| format!("{} are missing", FURTHER.len() - above)),
        ],
        notes: vec!["columns uIP to TCPlp are the paper's; ours are read from the stack's parameters; the crate's README names the scripts that show each feature".into()],
    })
}
