//! The text format of Prometheus.

use std::fmt::Write as _;

/// Adds a family of metrics: rows of labels in braces (or nothing) and a value.
pub fn family(text: &mut String, name: &str, kind: &str, help: &str, rows: &[(String, f64)]) {
    let _ = writeln!(
        text,
        "# HELP chappe_cast_{name} {help}\n# TYPE chappe_cast_{name} {kind}"
    );
    for (labels, value) in rows {
        let _ = writeln!(text, "chappe_cast_{name}{labels} {value}");
    }
}

/// A label's value, escaped for the text format (Prometheus, "Exposition formats").
pub fn escaped(value: &str) -> String {
    let escape = |c: char| match c {
        '\\' => "\\\\".to_string(),
        '"' => "\\\"".to_string(),
        '\n' => "\\n".to_string(),
        c => c.to_string(),
    };
    value.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_the_format() {
        assert_eq!(escaped("hill \"a\"\\\n"), "hill \\\"a\\\"\\\\\\n");
    }
}
