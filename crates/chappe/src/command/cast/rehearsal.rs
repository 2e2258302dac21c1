//! `chappe cast send --dry-run`: what would be sent, to whom, and how long it would take.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use chappe_cast::fleet::Held;
use chappe_cast::rehearsal::{Reached, Rehearsal};
use chappe_cast::{Ending, Options, Sending};
use chappe_figures::table::Table;
use serde::Serialize;

use super::capacity::Capacity;
use super::quantity::{ago, octets, speed};
use super::screen::Screen;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::terminal::{self, Stream};

/// From this number on, files are counted and no longer named; `--json` names all.
const NAMED: usize = 20;

/// What would be sent, with the times that follow from the links.
#[derive(Serialize)]
struct Rehearsed<'a> {
    event: &'static str,
    #[serde(flatten)]
    rehearsal: &'a Rehearsal,
    /// Receivers that lack files and can be reached.
    to: Vec<u16>,
    /// What the measured links carry at most to all of these.
    bound_bps: Option<f64>,
    /// The least time by this bound.
    seconds_min: Option<f64>,
    /// The time if all packets take the paths shown, for the receiver with the worst one.
    seconds_by_paths: Option<f64>,
    unix_s: f64,
}

pub fn run(
    member: &Options,
    sending: &Sending,
    json: bool,
    screen: &mut Screen,
) -> Result<u8, Failure> {
    let (end, rehearsal) = chappe_cast::rehearse(member, sending, screen)?;
    if end == Ending::Stopped {
        return Ok(INTERRUPTED);
    }
    let rehearsed = rehearsed(&rehearsal, screen);
    let text = match json {
        true => serde_json::to_string(&rehearsed).unwrap_or_default() + "\n",
        false => shown(&rehearsed, &member.rate.to_string()),
    };
    terminal::print(&text)?;
    let unreached = |receiver: &Reached| receiver.path.is_empty();
    let fails = rehearsal.receivers.is_empty() || rehearsal.receivers.iter().any(unreached);
    Ok(if fails { FAILED } else { 0 })
}

fn rehearsed<'a>(rehearsal: &'a Rehearsal, screen: &Screen) -> Rehearsed<'a> {
    let lacks = |receiver: &&Reached| !receiver.held.as_ref().is_some_and(|held| held.same);
    let reached = |receiver: &&Reached| !receiver.path.is_empty();
    let to = rehearsal.receivers.iter().filter(lacks).filter(reached);
    let nodes: Vec<u16> = to.clone().map(|receiver| receiver.node).collect();
    let payload = usize::from(rehearsal.payload_bytes);
    // Paths and bound are of the same links: the screen looked at the links before the last of them were known.
    let mut capacity = Capacity::default();
    if let Some(links) = &rehearsal.links {
        capacity.sample(links);
    }
    let bound_bps = screen
        .bound_bps(&capacity, &nodes, payload)
        .filter(|_| !nodes.is_empty());
    let packets = (rehearsal.bytes as f64 / payload.max(1) as f64).ceil();
    let worst = to
        .filter_map(|receiver| receiver.frame_times)
        .reduce(f64::max);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Rehearsed {
        event: "rehearsed",
        rehearsal,
        bound_bps,
        seconds_min: bound_bps.map(|bound| rehearsal.bytes as f64 * 8.0 / bound),
        seconds_by_paths: worst.map(|times| packets * times * screen.frame_seconds()),
        to: nodes,
        unix_s: since.map_or(0.0, |since| since.as_secs_f64()),
    }
}

fn shown(rehearsed: &Rehearsed<'_>, rate: &str) -> String {
    let Rehearsal {
        transfer,
        files,
        bytes,
        batches,
        k,
        payload_bytes,
        ..
    } = rehearsed.rehearsal;
    let mut text = format!(
        "dry run of transfer {transfer}: {}, {}, {batches} batches of {k} packets of {payload_bytes} octets\n",
        match files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        },
        octets(*bytes)
    );
    for file in files.iter().take(NAMED) {
        let _ = writeln!(
            text,
            "  {}  {:>9}  {}",
            file.digest,
            octets(file.bytes),
            file.name
        );
    }
    if files.len() > NAMED {
        let _ = writeln!(text, "  ... and {} more", files.len() - NAMED);
    }
    if rehearsed.rehearsal.receivers.is_empty() {
        let _ = writeln!(text, "{}", rehearsed.rehearsal.absent);
        return text;
    }
    let mut table = Table::new()
        .words("receiver")
        .words("path")
        .numbers("frames a packet", 1)
        .words("has");
    let now_ms = (rehearsed.unix_s * 1e3) as u64;
    for receiver in &rehearsed.rehearsal.receivers {
        let hops: Vec<String> = receiver.path.iter().map(u16::to_string).collect();
        let path = match hops.is_empty() {
            true => "no path; a relay in between would help".into(),
            false => hops.join(" > "),
        };
        let times = receiver
            .frame_times
            .map_or(String::new(), |times| format!("{times:.2}"));
        let name = format!("{} ({})", receiver.node, receiver.name);
        table.row([name, path, times, has(receiver.held.as_ref(), now_ms)]);
    }
    text += &table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    let _ = match (
        rehearsed.bound_bps,
        rehearsed.seconds_min,
        rehearsed.seconds_by_paths,
    ) {
        _ if rehearsed.to.is_empty() => {
            writeln!(text, "no receiver that can be reached lacks them")
        }
        (Some(bound), Some(least), Some(seconds)) => writeln!(
            text,
            "at {rate}: at least {least:.1} s (the links carry at most {} to all of them), {seconds:.1} s if all packets take these paths",
            speed(bound)
        ),
        // The small program for routers computes no bound.
        (None, _, Some(seconds)) => writeln!(
            text,
            "at {rate}: {seconds:.1} s if all packets take these paths"
        ),
        _ => writeln!(
            text,
            "the links are not measured yet: try again with a longer --measure"
        ),
    };
    text + "nothing was sent\n"
}

/// What a receiver has by its last receipt, in words.
fn has(held: Option<&Held>, now_ms: u64) -> String {
    match held {
        None => "not known".into(),
        Some(held) if held.same => format!(
            "these files, by its receipt of {}",
            ago(now_ms, held.receipt_ms)
        ),
        Some(held) => format!(
            "version {}, by its receipt of {}; with --overwrite there, only differences are fetched",
            held.version,
            ago(now_ms, held.receipt_ms)
        ),
    }
}
