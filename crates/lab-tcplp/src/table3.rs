//! Tables 3 and 8: memory, and instructions for a segment, as `cargo xtask sizes` recorded them.

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use super::context::{FigureContext, beside};

/// What the command wrote when it last ran: weighed images and counted instructions of a Cortex-M4.
const RECORDED: &str = include_str!("../../../docs/benchmarks/tcplp-sizes.txt");

/// The number before a line's label, which must begin so.
fn octets(label: &str) -> Option<f64> {
    RECORDED.lines().find_map(|line| {
        let (number, what) = line.trim().split_once(char::is_whitespace)?;
        what.trim()
            .starts_with(label)
            .then(|| number.parse().ok())?
    })
}

/// Mean and most of a counted call without losses.
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
        |what: &str| RunError::Defect(format!("the recorded sizes say nothing of {what}"));
    let need = |label: &str| octets(label).ok_or_else(|| missing(label));
    let (code, active, passive) = (need("TCP")?, need("a socket")?, need("a listener")?);
    let interface = need("a leaf's 6LoWPAN interface")?;
    let calls = ["SendData", "TakeAck", "TakeData", "SendAck"];
    let counts: Vec<f64> = calls
        .iter()
        .map(|call| counted(call).ok_or_else(|| missing(call)))
        .collect::<Result<_, _>>()?;
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
        title: "memory, and instructions for a segment".into(),
        panels: vec![
            Panel::bars("3", "memory without buffers, Cortex-M4", "octets", places.map(String::from).to_vec(), vec![riot]).on("part"),
            Panel::bars("3 cpu", "instructions of a call", "", calls.map(String::from).to_vec(), vec![Series::new("mean", counts.iter().map(|&count| one(count)).collect())]).on("call"),
        ],
        claims: vec![
            Claim::value("TCP's code is no larger than TCPlp's on RIOT", Some(19_972.0), code, 1, "octets", code <= 19_972.0)
                .because(|| format!("{:.0} octets more, overflow checks in it; TCPlp has no RACK, no PRR and no undo by D-SACK", code - 19_972.0)),
            Claim::value("and at most 16 KiB", None, code, 1, "octets", code <= 16_384.0)
                .because(|| format!("{:.0} octets more: RACK, PRR, D-SACK, both undos, ECN and RFC 5961 are in it, and overflow checks", code - 16_384.0)),
            Claim::value("a connection takes at most TCPlp's memory", Some(364.0), active, 1, "octets", active <= 364.0)
                .because(|| format!("it takes {active}")),
            Claim::value("a listener too", Some(12.0), passive, 1, "octets", passive <= 12.0)
                .because(|| format!("it takes {passive}")),
            Claim::value("no call takes more than 8,000 instructions on average", None, most, 1, "", most <= 8000.0)
                .because(|| format!("the longest takes {most}")),
        ],
        notes: vec![
            "recorded by `cargo xtask sizes`: thumbv7em, opt-level z, fat LTO, overflow checks on; instructions under QEMU".into(),
            "the paper's are on RIOT (Cortex-M0+); on TinyOS 21,352, 488 and 16 octets (Table 8)".into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file that is built in says all that the table needs.
    #[test]
    fn the_recorded_sizes_are_read() {
        assert_eq!(octets("a listener"), Some(4.0));
        assert!(octets("TCP").is_some_and(|code| code > 10_000.0));
        assert!(counted("SendData").is_some_and(|count| count > 1000.0));
    }
}
