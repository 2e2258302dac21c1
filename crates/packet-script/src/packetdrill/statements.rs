//! Comments, statements and their times.

use chappe_core::Duration;

/// A statement, its lines joined.
#[derive(Clone, Debug)]
pub struct Statement {
    pub number: usize,
    pub text: String,
}

/// When a statement happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the one before.
    After(Duration),
    /// Between these times after the one before.
    Between(Duration, Duration),
    /// At this time of the script.
    At(Duration),
    /// At any time after the one before.
    Any,
}

/// Splits a script. A statement begins with a time or an option; lines that begin otherwise belong to the one before. Of parts
/// between `#ifdef` and `#endif` those for `STANDARD` are taken.
pub fn statements(text: &str) -> Result<Vec<Statement>, String> {
    let mut found: Vec<Statement> = Vec::new();
    let mut in_comment = false;
    let mut for_others = false;
    for (index, whole) in text.lines().enumerate() {
        let line = uncommented(whole, &mut in_comment);
        let line = line.trim();
        let starts = line.starts_with("--")
            || line.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '*')
            || line.starts_with('`');
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["#ifdef", stack] => for_others = *stack != "STANDARD",
            ["#else"] => for_others = !for_others,
            ["#endif"] => for_others = false,
            _ => {}
        }
        if line.is_empty() || line.starts_with('#') || for_others {
            continue;
        }
        match found.last_mut() {
            Some(before) if !starts => {
                before.text.push(' ');
                before.text.push_str(line);
            }
            None if !starts => {
                return Err(format!(
                    "line {}: `{line}` does not begin with a time",
                    index + 1
                ));
            }
            _ => found.push(Statement {
                number: index + 1,
                // A command before the first time belongs to the start.
                text: match line.starts_with('`') {
                    true => format!("+0 {line}"),
                    false => line.into(),
                },
            }),
        }
    }
    Ok(found)
}

/// A line without `// ...` and `/* ... */`, which may go on over lines.
fn uncommented(line: &str, in_comment: &mut bool) -> String {
    let mut rest = line;
    let mut kept = String::new();
    loop {
        if *in_comment {
            match rest.split_once("*/") {
                Some((_, after)) => rest = after,
                None => return kept,
            }
            *in_comment = false;
        }
        let line_comment = rest.find("//").unwrap_or(rest.len());
        match rest[..line_comment].find("/*") {
            Some(at) => {
                kept.push_str(&rest[..at]);
                rest = &rest[at + 2..];
                *in_comment = true;
            }
            None => {
                kept.push_str(&rest[..line_comment]);
                return kept;
            }
        }
    }
}

/// `+0.1 rest`, `+ 0.1 rest`, `0.1 rest`, `* rest`, `+0~+0.1 rest`, `0.1...0.2 rest`: the time, and what follows.
pub fn moment(text: &str) -> Result<(Moment, &str), String> {
    if let Some(rest) = text.strip_prefix('*') {
        return Ok((Moment::Any, rest.trim()));
    }
    let (relative, text) = match text.strip_prefix('+') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    };
    let is_time = |c: char| c.is_ascii_digit() || matches!(c, '.' | '~' | '+');
    let end = text.find(|c| !is_time(c)).unwrap_or(text.len());
    let (time, rest) = text.split_at(end);
    let rest = rest.trim();
    let seconds = |text: &str| -> Result<Duration, String> {
        let value: f64 = text
            .trim_start_matches('+')
            .parse()
            .map_err(|_| format!("`{time}` is not a time"))?;
        Ok(Duration::from_secs_f64(value))
    };
    // A call that blocks: it begins at the first time, and its end is seen by what it causes.
    if let Some((begin, _)) = time.split_once("...") {
        let begin = seconds(begin)?;
        return Ok((
            if relative {
                Moment::After(begin)
            } else {
                Moment::At(begin)
            },
            rest,
        ));
    }
    if let Some((from, to)) = time.split_once('~') {
        let (from, to) = (seconds(from)?, seconds(to)?);
        return match relative {
            true => Ok((Moment::Between(from, to), rest)),
            false => Err("a range of times of the script".into()),
        };
    }
    let at = seconds(time)?;
    Ok((
        if relative {
            Moment::After(at)
        } else {
            Moment::At(at)
        },
        rest,
    ))
}
