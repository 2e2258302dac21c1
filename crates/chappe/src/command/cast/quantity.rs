//! Sizes, rates and ages for people.

/// A rate with two decimals and a unit.
pub fn speed(bps: f64) -> String {
    match bps < 1e5 {
        true => format!("{:.1} kbit/s", bps / 1e3),
        false => format!("{:.2} Mbit/s", bps / 1e6),
    }
}

/// A size with a decimal unit.
pub fn octets(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// How long ago a time was, in its largest unit, both in milliseconds since 1970.
pub fn ago(now_ms: u64, then_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(then_ms) / 1000;
    match seconds {
        _ if then_ms > now_ms + 1000 => "in the future".into(),
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let hour = 3_600_000;
        let check = |then: u64, expected: &str| assert_eq!(ago(100 * 24 * hour, then), expected);
        check(100 * 24 * hour - 1, "0 s ago");
        check(99 * 24 * hour + 23 * hour, "60 min ago");
        check(99 * 24 * hour, "24 h ago");
        check(0, "100 days ago");
        check(101 * 24 * hour, "in the future");
    }
}
