//! The language of scripts: one line at a time.

use chappe_core::Duration;
use chappe_tcplp::tcp::{Ecn, Flags};

use crate::packet::{OptionsSpec, PacketSpec};

/// Most octets of one `write`: they are made in memory.
const WRITE_MAX: usize = 1 << 24;

/// A line with an event; comments, `use` and `config` leave none.
#[derive(Clone, Debug)]
pub struct Line {
    pub number: usize,
    pub text: String,
    /// How long after the line before.
    pub after: Duration,
    /// For an outgoing packet with a range of times, the end of the range.
    pub until: Option<Duration>,
    pub event: Event,
}

#[derive(Clone, Debug)]
pub enum Event {
    Arrives(PacketSpec),
    Leaves(PacketSpec),
    Quiet,
    Listen,
    Connect,
    Accept,
    Write { len: usize, taken: usize },
    Read { max: usize, got: usize },
    Eof,
    Shutdown,
    Close,
    Abort,
    Expect(Vec<(String, String)>),
}

/// A parsed script, with the lines of the files that it uses.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub config: Vec<(String, String)>,
    pub tolerance: Option<Duration>,
    pub script_isn: u32,
    pub start: Duration,
    /// A behaviour that the script asks for and no stack here offers: it may pass without, but a failure says nothing.
    pub without: Option<String>,
    /// Whether the script says nothing about what is sent after its last line.
    pub open_end: bool,
    pub lines: Vec<Line>,
}

/// Reads a script; `include` gives the text of another by name.
pub fn parse(text: &str, include: &dyn Fn(&str) -> Option<String>) -> Result<Script, String> {
    let mut script = Script::default();
    add(&mut script, text, include, 0)?;
    Ok(script)
}

fn add(
    script: &mut Script,
    text: &str,
    include: &dyn Fn(&str) -> Option<String>,
    depth: usize,
) -> Result<(), String> {
    for (index, whole) in text.lines().enumerate() {
        let line = whole.split('#').next().unwrap_or("").trim();
        // Names the line as it stands in the file, comments included.
        let fail = |why: String| format!("line {}: {why}\n  | {whole}", index + 1);
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix("use ") {
            let other = include(name.trim()).ok_or_else(|| fail("no such file".into()))?;
            // A bound in place of a list of open files.
            if depth > 3 {
                return Err(fail("files include each other".into()));
            }
            add(script, &other, include, depth + 1)?;
        } else if let Some(pairs) = line.strip_prefix("config ") {
            for (key, value) in pairs_of(pairs).map_err(fail)? {
                match key.as_str() {
                    "tolerance" => script.tolerance = Some(span(&value).map_err(fail)?),
                    "start" => script.start = span(&value).map_err(fail)?,
                    "peer_isn" => script.script_isn = number::<u32>(&value).map_err(fail)?,
                    _ => script.config.push((key, value)),
                }
            }
        } else {
            let (after, until, rest) = time(line).map_err(fail)?;
            script.lines.push(Line {
                number: index + 1,
                text: whole.trim().into(),
                after,
                until,
                event: event(rest).map_err(fail)?,
            });
        }
    }
    Ok(())
}

/// `+1.5 rest`, `+20ms rest`, `+1~+2 rest`, or `rest`.
fn time(line: &str) -> Result<(Duration, Option<Duration>, &str), String> {
    let Some(timed) = line.strip_prefix('+') else {
        return Ok((Duration::ZERO, None, line));
    };
    let (time, rest) = timed
        .split_once(char::is_whitespace)
        .ok_or("a time without an event")?;
    match time.split_once("~+") {
        Some((from, to)) => Ok((span(from)?, Some(span(to)?), rest.trim())),
        None => Ok((span(time)?, None, rest.trim())),
    }
}

/// Parses a time: `1.5`, `1.5s`, `20ms`, `100us`, `2h`, `26d`; seconds by default. For values of `config`.
pub fn span(text: &str) -> Result<Duration, String> {
    // `ms` and `us` before `s`, which ends them as well.
    let units = [
        ("ms", 1e-3),
        ("us", 1e-6),
        ("h", 3600.0),
        ("d", 86_400.0),
        ("s", 1.0),
        ("", 1.0),
    ];
    for (unit, scale) in units {
        if let Some(value) = text.strip_suffix(unit)
            && let Ok(value) = value.parse::<f64>()
            && value >= 0.0
        {
            return Ok(Duration::from_secs_f64(value * scale));
        }
    }
    Err(format!("`{text}` is not a time"))
}

pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a number in range"))
}

fn pairs_of(text: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |word: &str| match word.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(format!("`{word}` is not key=value")),
    };
    text.split_whitespace().map(pair).collect()
}

fn event(text: &str) -> Result<Event, String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let amount = |default: &str| -> Result<(usize, usize), String> {
        let (first, second) = rest.split_once('=').unwrap_or((rest, default));
        let first = number(first.trim())?;
        let second = match second.trim() {
            "" => first,
            second => number(second)?,
        };
        Ok((first, second))
    };
    Ok(match word {
        "<" => Event::Arrives(packet(rest)?),
        ">" => Event::Leaves(packet(rest)?),
        "quiet" => Event::Quiet,
        "listen" => Event::Listen,
        "connect" => Event::Connect,
        "accept" => Event::Accept,
        "write" => match amount("")? {
            (len, _) if len > WRITE_MAX => {
                return Err(format!("more than {WRITE_MAX} octets at a time"));
            }
            (len, taken) => Event::Write { len, taken },
        },
        "read" => amount("").map(|(max, got)| Event::Read { max, got })?,
        "eof" => Event::Eof,
        "shutdown" => Event::Shutdown,
        "close" => Event::Close,
        "abort" => Event::Abort,
        "expect" => Event::Expect(pairs_of(rest)?),
        _ => return Err(format!("`{word}` is not an event")),
    })
}

/// `[ce] P. 1:101(100) ack 1 win 2000 urg 5 <mss 1000, sack 1:2>`.
pub(crate) fn packet(text: &str) -> Result<PacketSpec, String> {
    let mut spec = PacketSpec {
        ecn: Some(Ecn::NotCapable),
        ..PacketSpec::default()
    };
    let (mut text, options) = match text.split_once('<') {
        Some((text, options)) => (
            text,
            Some(options.strip_suffix('>').ok_or("`>` is missing")?),
        ),
        None => (text, None),
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (ecn, rest) = rest.split_once(']').ok_or("`]` is missing")?;
        spec.ecn = Some(match ecn {
            "noecn" => Ecn::NotCapable,
            "ect0" => Ecn::Capable0,
            "ect1" => Ecn::Capable1,
            "ce" => Ecn::Marked,
            _ => return Err(format!("`{ecn}` is not an ECN mark")),
        });
        text = rest;
    }
    let mut words = text.split_whitespace();
    for letter in words.next().ok_or("no flags")?.chars() {
        spec.flags = spec.flags
            | match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'U' => Flags::URG,
                'E' => Flags::ECE,
                'W' => Flags::CWR,
                '.' => Flags::ACK,
                '0' => Flags::NONE,
                _ => return Err(format!("`{letter}` is not a flag")),
            };
    }
    let place = words.next().ok_or("no sequence number")?;
    let (seq, rest) = place.split_once(':').ok_or("a place is seq:end(len)")?;
    let (end, len) = rest.split_once('(').ok_or("a place is seq:end(len)")?;
    spec.seq = number(seq)?;
    spec.len = number(len.trim_end_matches(')'))?;
    let len = i64::try_from(spec.len).ok();
    let end_is = len.and_then(|len| spec.seq.checked_add(len));
    if end_is != Some(number::<i64>(end)?) {
        return Err("seq + len is not end".into());
    }
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("`{word}` has no value"))?;
        match word {
            "ack" => spec.ack = Some(number(value)?),
            "win" => spec.window = Some(number(value)?),
            "urg" => spec.urgent = number(value)?,
            _ => return Err(format!("`{word}` is not a field")),
        }
    }
    if let Some(options) = options {
        spec.options = options_of(options)?;
    }
    Ok(spec)
}

pub(crate) fn options_of(text: &str) -> Result<OptionsSpec, String> {
    let mut spec = OptionsSpec::default();
    for option in text
        .split(',')
        .map(str::trim)
        .filter(|option| !option.is_empty())
    {
        let words: Vec<&str> = option.split_whitespace().collect();
        match words.as_slice() {
            ["..."] => spec.any = true,
            ["nop"] => {}
            ["mss", value] => spec.mss = Some(Some(number(value)?)),
            ["wscale", value] => spec.window_scale = Some(Some(number(value)?)),
            ["no-wscale"] => spec.window_scale = Some(None),
            ["sackok"] => spec.sack_permitted = Some(true),
            ["no-sackok"] => spec.sack_permitted = Some(false),
            ["ts", value, "ecr", echo] => {
                spec.timestamps = Some(Some((number(value)?, number(echo)?)));
            }
            ["no-ts"] => spec.timestamps = Some(None),
            ["sack", blocks @ ..] => {
                for block in blocks {
                    let (start, end) = block.split_once(':').ok_or("a block is start:end")?;
                    spec.sack.push((number(start)?, number(end)?));
                }
            }
            _ => return Err(format!("`{option}` is not an option")),
        }
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Bases;

    /// Goal: a line that describes no possible packet is an error that names the reason. Method: numbers at their limits,
    /// in every place of a line.
    #[test]
    fn impossible_lines_are_errors() {
        let no_script = |line: &str| parse(line, &|_| None).map(|_| ()).unwrap_err();
        for (line, why) in [
            ("< . 9223372036854775807:0(1) ack 1", "seq + len is not end"),
            (
                "< . 1:1(18446744073709551615) ack 1",
                "seq + len is not end",
            ),
            ("+-1 quiet", "not a time"),
            ("+nan quiet", "not a time"),
            ("write 99999999999", "octets at a time"),
            ("< . 1:1(0) win 65536", "not a number"),
            ("< . 1:1(0) <mss 70000>", "not a number"),
            ("jump", "not an event"),
        ] {
            let said = no_script(line);
            assert!(said.contains(why) && said.starts_with("line 1"), "{said}");
        }
        for (text, why) in [
            (". 1:70001(70000) ack 1", "longer than IPv6 allows"),
            (
                "S 0:0(0) <mss 1, wscale 1, sackok, ts 1 ecr 1, sack 1:2 3:4 5:6 7:8>",
                "too long for a TCP header",
            ),
        ] {
            let built = packet(text).unwrap().build(&Bases::default());
            let said = built.unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
