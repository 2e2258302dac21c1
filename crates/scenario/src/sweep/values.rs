//! The values that one text stands for: `paper,more,improved`, or the range `10..20 dBm/5`.

use std::ops::Range;

/// The most values of one key.
const VALUES_MAX: usize = 10_000;

/// A value: its text, and the octets of the whole text that it was made of.
pub(super) type Found = (String, Range<usize>);

/// What is wrong with a text, with its help.
pub(super) type Wrong = (String, String);

/// The values of a text. Commas within brackets and quotes belong to a value.
pub(super) fn values(text: &str) -> Result<Vec<Found>, Wrong> {
    let mut found = Vec::new();
    for span in parts(text) {
        let part = &text[span.clone()];
        let lead = part.len() - part.trim_start().len();
        let span = span.start + lead..span.start + lead + part.trim().len();
        let part = part.trim();
        if part.is_empty() {
            let help = "for example paper,more,improved or 10..20 dBm/5";
            return Err(("a value is missing".into(), help.into()));
        }
        match range(part)? {
            Some(values) => found.extend(values.into_iter().map(|value| (value, span.clone()))),
            None => found.push((part.to_string(), span)),
        }
    }
    Ok(found)
}

/// The octets between commas.
fn parts(text: &str) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0u32, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(start..text.len());
    parts
}

/// The values of `A..B UNIT/STEP`, both ends included; `None` for a text of another form.
fn range(text: &str) -> Result<Option<Vec<String>>, Wrong> {
    let Some((first, rest)) = text.split_once("..") else {
        return Ok(None);
    };
    let Ok(first) = first.trim().parse::<f64>() else {
        return Ok(None);
    };
    // A unit may contain a stroke: only a number after the last one is a step.
    let (rest, step) = match rest.rsplit_once('/') {
        Some((before, step)) => match step.trim().parse::<f64>() {
            Ok(step) => (before, Some(step)),
            Err(_) => (rest, None),
        },
        None => (rest, None),
    };
    let Some((last, unit)) = number_and_unit(rest) else {
        return Ok(None);
    };
    let step = step.unwrap_or(1.0);
    let form = "write A..B UNIT/STEP, such as 10..20 dBm/5";
    if !(step > 0.0 && step.is_finite() && first < last) {
        let message = format!("the range `{text}` does not count up");
        return Err((message, form.into()));
    }
    let steps = (last - first) / step;
    if steps >= VALUES_MAX as f64 {
        let message = format!("the range `{text}` has more than {VALUES_MAX} values");
        return Err((message, form.into()));
    }
    let whole = steps.round();
    let value = |place: f64| {
        let number = rounded(first + place * step);
        match unit {
            "" => number.to_string(),
            unit => format!("{number} {unit}"),
        }
    };
    if (steps - whole).abs() > 1e-6 {
        let message = format!("steps of {step} from {first} on do not meet {last}");
        let help = format!("the last one would be {}", value(steps.floor()));
        return Err((message, help));
    }
    Ok(Some(
        (0..=whole as u32)
            .map(|place| value(f64::from(place)))
            .collect(),
    ))
}

/// The same values, with the unit where a number has none: `10..20 dBm/5` for `10..20/5`.
pub(super) fn with_unit(text: &str, unit: &str) -> String {
    let one = |part: Range<usize>| {
        let part = text[part].trim();
        // A step follows the unit.
        let (number, step) = match (part.contains(".."), part.rsplit_once('/')) {
            (true, Some((number, step))) if step.trim().parse::<f64>().is_ok() => {
                (number.trim_end(), format!("/{}", step.trim()))
            }
            _ => (part, String::new()),
        };
        match number.ends_with(|last: char| last.is_ascii_digit()) {
            true => format!("{number} {unit}{step}"),
            false => part.to_string(),
        }
    };
    let all: Vec<String> = parts(text).into_iter().map(one).collect();
    all.join(",")
}

/// A number and what follows it.
pub(super) fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.replace('_', "").parse::<f64>().ok()?;
    Some((number, unit.trim()))
}

/// Ten significant digits: they hide what binary fractions add to `0.1 + 2 * 0.1`.
fn rounded(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let found = values(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        found.into_iter().map(|(value, _)| value).collect()
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(texts("paper, more,improved"), ["paper", "more", "improved"]);
        assert_eq!(texts("10..20 dBm/5"), ["10 dBm", "15 dBm", "20 dBm"]);
        assert_eq!(texts("-5..5dBm/5"), ["-5 dBm", "0 dBm", "5 dBm"]);
        assert_eq!(texts("1..4"), ["1", "2", "3", "4"]);
        assert_eq!(texts("0.1..0.4/0.1"), ["0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(texts("1..2 Mbit/s"), ["1 Mbit/s", "2 Mbit/s"]);
        assert_eq!(
            texts("1..11 Mbit/s/5"),
            ["1 Mbit/s", "6 Mbit/s", "11 Mbit/s"]
        );
        assert_eq!(texts("1,4..6,9"), ["1", "4", "5", "6", "9"]);
        assert_eq!(texts("[1, 2],[3]"), ["[1, 2]", "[3]"]);
        assert_eq!(texts("\"a,b\",c"), ["\"a,b\"", "c"]);
        // A path is no range.
        assert_eq!(texts("../image.bin"), ["../image.bin"]);
    }

    #[test]
    fn missing_units_are_added() {
        for (text, form) in [
            ("10..20/5", "10..20 dBm/5"),
            ("10..20", "10..20 dBm"),
            ("10,15 dBm", "10 dBm,15 dBm"),
            ("10 dBm, 12..14", "10 dBm,12..14 dBm"),
        ] {
            assert_eq!(with_unit(text, "dBm"), form);
            assert!(values(form).is_ok(), "{form}");
        }
    }

    #[test]
    fn ranges_without_sense_are_refused() {
        for (text, message) in [
            ("10..20/3", "do not meet 20"),
            ("0.1..0.5", "do not meet 0.5"),
            ("5..1", "does not count up"),
            ("1..2/0", "does not count up"),
            ("1..2/-1", "does not count up"),
            ("1..99999999", "more than 10000"),
            ("a,,b", "missing"),
            ("", "missing"),
        ] {
            let (said, _) = values(text).unwrap_err();
            assert!(said.contains(message), "{text}: {said}");
        }
    }
}
