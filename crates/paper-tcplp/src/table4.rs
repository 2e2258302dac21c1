//! Table 4: links that TCP/IP runs over.

use crate::context::beside;
use chappe_bound::closed::lowpan::Frame;
use chappe_lab::run::RunError;
use chappe_lab_tcplp::frames::Form;
use chappe_mac::dot15d4::Config;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::context::FigureContext;

/// Capacity in bit/s, octets of a frame, and the paper's time to send one in ms.
const LINKS: [(&str, f64, f64, f64); 4] = [
    ("Fast Ethernet", 100e6, 1500.0, 0.12),
    ("Wi-Fi", 54e6, 1500.0, 0.22),
    ("Ethernet", 10e6, 1500.0, 1.2),
    ("802.15.4", 250e3, 127.0, 4.1),
];

pub fn make(_: &FigureContext<'_>) -> Result<Figure, RunError> {
    let one = |values: Vec<f64>| values.iter().map(|&value| Summary::of(&[value])).collect();
    let times = LINKS.map(|(_, rate, octets, _)| octets * 8e3 / rate);
    let places = LINKS.map(|(name, ..)| name.to_string()).to_vec();
    let paper = LINKS.map(|(.., paper)| Some(paper));
    let time = beside(Series::new("time", one(times.to_vec())), &paper);
    let long = Form {
        mac: Config {
            short_addresses: false,
            ..Config::HAMILTON
        },
        ..Form::TCPLP
    };
    let room = [long, Form::TCPLP].map(|form| form.mac.caps(0).frame_max as f64);
    let rooms = beside(
        Series::new("room", one(room.to_vec())),
        &[Some(104.0), Some(116.0)],
    );
    let air = Frame::dot15d4(0.0).air_s(127.0) * 1e3;
    Ok(Figure {
        id: "table4",
        title: "links of TCP/IP networks".into(),
        panels: vec![
            Panel::bars(
                "4 time",
                "time to send the largest frame",
                "ms",
                places,
                vec![time],
            )
            .on("link"),
            Panel::bars(
                "4 room",
                "octets of an 802.15.4 frame for the layers above",
                "octets",
                vec!["64-bit addresses".into(), "16-bit addresses".into()],
                vec![rooms],
            )
            .on("frame"),
        ],
        claims: vec![
            Claim::value(
                "a frame has room for 104 to 116 octets",
                Some(116.0),
                room[1],
                1,
                "octets",
                room == [104.0, 116.0],
            )
            .because(|| format!("it has room for {} to {}", room[0], room[1])),
            Claim::value(
                "the largest 802.15.4 frame takes 4.1 ms, to within 5 %",
                Some(4.1),
                air,
                1,
                "ms",
                (air / 4.1 - 1.0).abs() < 0.05,
            )
            .because(|| format!("it takes {air:.2} ms")),
        ],
        notes: vec![format!(
            "the paper's 4.1 ms are 127 octets at 250 kbit/s; with preamble, delimiter and length the frame takes {air:.3} ms"
        )],
    })
}
