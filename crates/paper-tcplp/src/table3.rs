//! Tables 3 and 8: memory, and instructions per segment, as recorded by `cargo xtask sizes`.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::context::{FigureContext, beside};

/// The last record of the command: image sizes and instruction counts of a Cortex-M4.
const RECORDED: &str = include_str!("../../../docs/benchmarks/tcplp-sizes.txt");

/// The number on the line whose label begins with `label`.
fn octets(label: &str) -> Option<f64> {
    RECORDED.lines().find_map(|line| {
        let (number, what) = line.trim().split_once(char::is_whitespace)?;
        what.trim()
            .starts_with(label)
            .then(|| number.parse().ok())?
    })
}

/// The mean instruction count of a call, without losses.
fn counted(call: &str) -> Option<f64> {
    let begin = format!("lost 1/0 {call} ");
    let line = RECORDED
        .lines()
        .find_map(|line| line.trim().strip_prefix(&begin))?;
    let mean = line.split("mean ").nth(1)?;
    mean.split_whitespace().next()?.parse().ok()
}

pub fn make(_: &FigureContext<'_>) -> Result<Figure, RunError> {
    let missing =
        |what: &str| RunError::Defect(format!("the recorded sizes have no line for {what}"));
    let need = |label: &str| octets(label).ok_or_else(|| missing(label));
    let (code, active, passive) = (need("TCP")?, need("a socket")?, need("a listener")?);
    let interface = need("a leaf's 6LoWPAN interface")?;
    let least = need("TCP without any of its cargo features")?;
    let calls = ["SendData", "TakeAck", "TakeData", "SendAck"];
    let counts: Vec<f64> = calls
        .iter()
        .map(|call| counted(call).ok_or_else(|| missing(call)))
        .collect::<Result<_, _>>()?;
    let (sending, receiving) = (counts[0], counts[2]);
    let one = |value: f64| Summary::of(&[value]);
    let sizes = [code, active, passive, interface].map(one).to_vec();
    let paper = |values: [f64; 3]| [Some(values[0]), Some(values[1]), Some(values[2]), None];
    let ours = Series::new("ours", sizes.clone());
    let riot = beside(ours, &paper([19_972.0, 364.0, 12.0]));
    let places = [
        "TCP, code",
        "a connection",
        "a listener",
        "a leaf's 6LoWPAN",
    ];
    let most = counts.iter().copied().fold(0.0, f64::max);
    Ok(Figure {
        id: "table3",
        title: "memory, and instructions per segment".into(),
        panels: vec![
            Panel::bars("3", "memory without buffers, Cortex-M4", "octets", places.map(String::from).to_vec(), vec![riot]).on("part"),
            Panel::bars("3 cpu", "instructions of a call", "", calls.map(String::from).to_vec(), vec![Series::new("mean", counts.iter().map(|&count| one(count)).collect())]).on("call"),
        ],
        claims: vec![
            Claim::value("TCP's code is no larger than TCPlp's on RIOT", Some(19_972.0), code, 1, "octets", code <= 19_972.0)
                .because(|| format!("it is {:.0} octets larger, overflow checks included; TCPlp has no RACK, no PRR and no undo by D-SACK", code - 19_972.0)),
            Claim::value("goal: TCP's code is at most 16 KiB", None, code, 1, "octets", code <= 16_384.0).as_goal()
                .because(|| format!("it is {:.0} octets larger: RACK, PRR, D-SACK, both undos, ECN, RFC 5961 and overflow checks are included", code - 16_384.0)),
            Claim::value("a connection takes at most as much memory as TCPlp's", Some(364.0), active, 1, "octets", active <= 364.0)
                .because(|| format!("it takes {active} octets")),
            Claim::value("a listener takes at most as much memory as TCPlp's", Some(12.0), passive, 1, "octets", passive <= 12.0)
                .because(|| format!("it takes {passive} octets")),
            Claim::value("goal: without any of its cargo features TCP's code is at most 11 KiB", None, least, 1, "octets", least <= 11_264.0).as_goal()
                .because(|| format!("it is {:.0} octets larger", least - 11_264.0)),
            Claim::value("goal: sending a segment without losses takes at most 4,000 instructions", None, sending, 1, "", sending <= 4000.0).as_goal()
                .because(|| format!("it takes {sending}")),
            Claim::value("goal: receiving a segment without losses takes at most 4,000 instructions", None, receiving, 1, "", receiving <= 4000.0).as_goal()
                .because(|| format!("it takes {receiving}")),
            Claim::value("no call takes more than 8,000 instructions on average", None, most, 1, "", most <= 8000.0)
                .because(|| format!("the longest takes {most} instructions")),
        ],
        notes: vec![
            "recorded by `cargo xtask sizes`: thumbv7em, opt-level z, fat LTO, overflow checks on; instructions under QEMU".into(),
            "the paper's values are on RIOT (Cortex-M0+); on TinyOS they are 21,352, 488 and 16 octets (Table 8)".into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded file has every value that the table needs.
    #[test]
    fn recorded_sizes_are_complete() {
        assert_eq!(octets("a listener"), Some(4.0));
        assert!(octets("TCP").is_some_and(|code| code > 10_000.0));
        assert!(counted("SendData").is_some_and(|count| count > 1000.0));
    }
}
