//! Quantities that no network can have are refused where they stand.

use super::NetworkPlan;
use crate::idle;

#[test]
fn negative_quantities_are_refused() {
    for (table, key, value, message) in [
        ("mac", "slot", "-20 us", "-20 us is not a span of time"),
        ("mac", "sifs", "-10 us", "-10 us is not a span of time"),
        ("mac", "rts_threshold", "-3 B", "-3 B is not a size"),
        ("mac", "distance_max", "-5 km", "-5 km is not a distance"),
        ("radio", "coherence", "-1 s", "-1 s is not a span of time"),
        (
            "radio",
            "turnaround",
            "-3 us",
            "-3 us is not a span of time",
        ),
        (
            "radio",
            "capture_window",
            "-3 us",
            "-3 us is not a span of time",
        ),
        (
            "radio",
            "tx_power",
            "1e400 dBm",
            "expected a power, found `1e400 dBm`",
        ),
    ] {
        // Without this law `capture_window` would be refused as useless.
        let with = ["", "capture = \"first\""][usize::from(table == "radio")];
        let places = "positions = [[\"0 m\", \"0 m\"], [\"9 m\", \"0 m\"]]";
        let text = format!("[network]\n{places}\n[{table}]\n{key} = \"{value}\"\n{with}\n");
        let error = NetworkPlan::parse(&[&idle::IDLE], "test", &text).unwrap_err();
        assert_eq!(error.message, message, "{key}");
        assert_eq!(error.line_column().map(|place| place.0), Some(4), "{key}");
        let right = text.replace('-', "").replace("e400", "");
        assert!(
            NetworkPlan::parse(&[&idle::IDLE], "test", &right).is_ok(),
            "{right}"
        );
    }
}
