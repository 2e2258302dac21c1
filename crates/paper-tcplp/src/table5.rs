//! Table 5: the least and most header octets of a segment's first and further frames, by the encoder.

use chappe_lab::run::RunError;
use chappe_mac::dot15d4::Config;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::context::{FigureContext, beside};
use chappe_lab_tcplp::addresses::CONTEXTS;
use chappe_lab_tcplp::frames::Form;

/// Octets of headers: link, 6LoWPAN's fragment header, IPv6, TCP.
type Headers = [f64; 4];

/// The paper's values: first frame least and most, further frames least and most.
const PAPER: [Headers; 4] = [
    [11.0, 5.0, 2.0, 20.0],
    [23.0, 5.0, 28.0, 44.0],
    [11.0, 5.0, 0.0, 0.0],
    [23.0, 12.0, 0.0, 0.0],
];
/// The sums of these as the paper states them.
const SUMS: [f64; 4] = [38.0, 107.0, 16.0, 35.0];
const PLACES: [&str; 4] = [
    "first, least",
    "first, most",
    "further, least",
    "further, most",
];
/// A segment of five frames: payload and TCP header.
const SEGMENT: usize = 494;

/// Headers of the first and the further frames of a segment with `tcp` octets of TCP header.
fn headers(form: &Form, tcp: usize) -> [Headers; 2] {
    let link = form.link() as f64;
    let frames = form.frames(SEGMENT);
    let octets: Vec<usize> = frames.iter().map(Vec::len).collect();
    // RFC 4944, 5.3: four octets in the first fragment header, five in the others. All other octets besides the segment are
    // the compressed IPv6 header.
    let fragments = 4 + 5 * octets.len().saturating_sub(1);
    let ipv6 = octets.iter().sum::<usize>() - fragments - SEGMENT;
    [[link, 4.0, ipv6 as f64, tcp as f64], [link, 5.0, 0.0, 0.0]]
}

pub fn make(_: &FigureContext<'_>) -> Result<Figure, RunError> {
    let least = Form {
        contexts: &CONTEXTS,
        ecn: false,
        link_local: true,
        ..Form::TCPLP
    };
    let most = Form {
        mac: Config {
            short_addresses: false,
            ..Config::HAMILTON
        },
        ..Form::TCPLP
    };
    // Options up to the largest data offset: 40 octets besides the 20 of the fixed part.
    let ([first_least, further_least], [first_most, further_most]) =
        (headers(&least, 20), headers(&most, 60));
    let ours = [first_least, first_most, further_least, further_most];
    let layers = ["802.15.4", "6LoWPAN", "IPv6", "TCP"];
    let one = |value: f64| Summary::of(&[value]);
    let mut series: Vec<Series> = layers
        .iter()
        .enumerate()
        .map(|(layer, name)| {
            let line = Series::new(name, ours.iter().map(|row| one(row[layer])).collect());
            beside(line, &PAPER.map(|row| Some(row[layer])))
        })
        .collect();
    let sums = ours.map(|row| row.iter().sum::<f64>());
    let total = Series::new("total", sums.iter().map(|&sum| one(sum)).collect());
    series.push(beside(total, &SUMS.map(Some)));
    let further = [sums[2], sums[3]];
    Ok(Figure {
        id: "table5",
        title: "headers of a segment in frames".into(),
        panels: vec![
            Panel::bars("5", "octets of header", "octets", PLACES.map(String::from).to_vec(), series)
                .on("frame"),
        ],
        claims: vec![
            Claim::value("a first frame has at least 38 octets of header", Some(38.0), sums[0], 1, "octets", sums[0] <= 38.0)
                .because(|| format!("ours has {}", sums[0])),
            Claim::value("further frames have 16 to 35 octets of header", Some(35.0), further[1], 1, "octets", further[0] <= 16.0 && further[1] <= 35.0)
                .because(|| format!("ours have {} to {}", further[0], further[1])),
        ],
        notes: vec![
            "least: neighbours with link-local and 16-bit link addresses; most: 64-bit link addresses, both IPv6 addresses in line, ECN, all of TCP's options".into(),
            "the paper's columns for a first frame at its most add up to 100, not 107: they have 5 octets for 6LoWPAN there, and 12 in further frames".into(),
            "RFC 4944 has a first fragment header of 4 octets and others of 5; the paper has 5 and up to 12, with mesh headers".into(),
        ],
    })
}
