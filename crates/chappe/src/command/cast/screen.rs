//! The display of a cast: members, links, a bar for each receiver, and a summary.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use chappe_cast::event::{Event, Link as Measured, Progress, Summary};
use chappe_cast::session::CEILING;
use chappe_cast::session::View;
use chappe_cast::{Error, Watch};
use chappe_core::{Bitrate, Duration, Instant};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::capacity::Capacity;
use super::fleet_metrics::Source;
use super::metrics::Metrics;
use super::options::Link;
use super::quantity::{octets, speed};
use super::status;
use crate::door::Door;
use crate::failure::Failure;
use crate::terminal;

/// From this number on, complete files are counted and no longer named.
const NAMED: usize = 20;

/// The time between two tables of the links.
const AGAIN: Duration = Duration::from_secs(30);

/// Shows events on standard error, or writes them as JSON to standard output.
pub struct Screen {
    json: bool,
    quiet: bool,
    rate: Bitrate,
    bars: Option<MultiProgress>,
    of: BTreeMap<u16, (ProgressBar, Instant, u32)>,
    now: Instant,
    me: u16,
    names: BTreeMap<u16, String>,
    capacity: Capacity,
    /// When the table of links was last shown.
    shown: Option<Instant>,
    bytes: u64,
    frame_max: usize,
    headers: usize,
    /// Files that were installed, or were there already.
    installed: usize,
    receivers: Vec<u16>,
    /// Receivers that have failed, with the reason.
    failed: BTreeMap<u16, String>,
    sends: bool,
    metrics: Option<Metrics>,
    /// Where `chappe view --live` asks; open from the start of the session on, so that its thread leaves signals to the session.
    door: Option<Door>,
    /// Where receipts are stored.
    fleet: Option<PathBuf>,
}

impl Screen {
    /// `fleet` is the folder where receipts are stored, if they are.
    pub fn new(link: &Link, rate: Bitrate, fleet: Option<PathBuf>) -> Result<Screen, Failure> {
        let bars = (!link.json && !link.quiet && std::io::stderr().is_terminal())
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        let source = fleet.clone().map(|folder| Source::new(folder, &link.group));
        let metrics = link
            .metrics
            .map(|address| Metrics::serve(TcpListener::bind(address)?, source))
            .transpose()
            .map_err(|error| {
                let what = format!("cannot serve metrics: {error}");
                Error::environment(what, "choose another address with --metrics")
            })?;
        Ok(Screen {
            json: link.json,
            quiet: link.quiet,
            rate,
            bars,
            of: BTreeMap::new(),
            now: Instant::ZERO,
            me: 0,
            names: BTreeMap::new(),
            capacity: Capacity::default(),
            shown: None,
            bytes: 0,
            frame_max: 0,
            headers: if link.ethernet { 44 } else { 72 },
            installed: 0,
            receivers: Vec::new(),
            failed: BTreeMap::new(),
            sends: false,
            metrics,
            door: None,
            fleet,
        })
    }

    /// Whether a file was installed, or was there already.
    pub fn has_installed(&self) -> bool {
        self.installed > 0
    }

    /// What links of this `capacity` could carry at most to all `sinks`, in bits per second, with `payload` octets of file data
    /// in a frame.
    pub fn bound_bps(&self, capacity: &Capacity, sinks: &[u16], payload: usize) -> Option<f64> {
        let frame = self.frame_max + self.headers;
        capacity.bps(self.me, sinks, payload, frame, self.rate)
    }

    /// How long a full frame takes at the set rate, in seconds.
    pub fn frame_seconds(&self) -> f64 {
        (self.frame_max + self.headers) as f64 * 8.0 / self.rate.0.max(1) as f64
    }

    /// Removes the progress bars.
    pub fn finish(&mut self) {
        for (bar, _, _) in std::mem::take(&mut self.of).into_values() {
            bar.abandon();
        }
    }

    fn say(&self, words: &str) {
        if self.json || self.quiet {
            return;
        }
        match &self.bars {
            // A line above the bars. A closed terminal is no reason to stop.
            Some(bars) => drop(bars.println(words)),
            None => terminal::tell(words),
        }
    }

    fn name(&self, node: u16) -> String {
        match self.names.get(&node) {
            Some(name) => format!("{node} ({name})"),
            None => node.to_string(),
        }
    }

    fn list(&self, nodes: &[u16]) -> String {
        let names: Vec<String> = nodes.iter().map(|&node| self.name(node)).collect();
        names.join(", ")
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::Started {
                node,
                name,
                interface,
                frame_max_bytes,
                channel,
            } => {
                (self.me, self.frame_max) = (*node, *frame_max_bytes);
                self.names.insert(*node, name.clone());
                let ceiling = self.ceiling();
                self.say(&format!(
                    "member {node} ({name}) on {interface} ({channel} channel){ceiling}"
                ));
            }
            Event::Joined { node, name, role } => {
                self.names.insert(*node, name.clone());
                self.say(&format!("  + {role} {node} ({name})"));
            }
            Event::Left { node, name } => self.say(&format!("  - {node} ({name}) has left")),
            Event::Links { links } => self.show_links(links),
            Event::Offered {
                transfer,
                source,
                files,
                bytes,
                batches,
                held,
            } => {
                (self.bytes, self.sends) = (*bytes, *source == self.me);
                self.say_offered((transfer, *source, files), *bytes, (*batches, *held));
            }
            Event::Begun {
                receivers,
                unreachable,
            } => self.begin(receivers, unreachable),
            Event::Progress { receivers, .. } => self.advance(receivers),
            Event::Polluted { batch, .. } => {
                self.say(&format!(
                    "  a member sent wrong packets of batch {batch}; requesting it again"
                ));
            }
            Event::Installed { path, bytes } => self.show_installed(path, *bytes),
            Event::Present { transfer } => {
                self.installed += 1;
                self.say(&format!("  transfer {transfer} is complete already"));
            }
            Event::Refused { why, todo, .. } => self.say(&format!("  refused: {why}; {todo}")),
            Event::List { serial, members } => {
                self.say(&format!(
                    "  list {serial} of the group's members has arrived: {members} members"
                ));
            }
            Event::Receipt { node, command, .. } => {
                if let Some(command) = command {
                    self.say(&format!("  {}: {command}", self.name(*node)));
                }
            }
            Event::Warning { what } => self.say(&format!("  note: {what}")),
            Event::Done(summary) => {
                self.finish();
                self.sum_up(summary);
            }
        }
    }

    /// The set ceiling of the pace, in words.
    fn ceiling(&self) -> String {
        match self.rate < CEILING {
            true => format!(", at most {}", self.rate),
            false => String::new(),
        }
    }

    /// Shows the links now and then.
    fn show_links(&mut self, links: &[Measured]) {
        if self.shown.is_none_or(|shown| self.now >= shown + AGAIN) {
            self.shown = Some(self.now);
            self.say(&table(links));
        }
    }

    /// The data begin to flow.
    fn begin(&mut self, receivers: &[u16], unreachable: &[u16]) {
        self.receivers = receivers.to_vec();
        // Few frames were measured before the data began.
        self.capacity = Capacity::default();
        self.say(&format!("sending to {}", self.list(receivers)));
        if !unreachable.is_empty() {
            self.say(&format!(
                "  no path to {}; place a relay in between",
                self.list(unreachable)
            ));
        }
    }

    /// Counts a complete file, and names it if it is one of the first.
    fn show_installed(&mut self, path: &Path, bytes: u64) {
        self.installed += 1;
        match self.installed {
            0..NAMED => self.say(&format!(
                "  {} is complete, {}",
                path.display(),
                octets(bytes)
            )),
            NAMED => self.say("  ..."),
            _ => {}
        }
    }

    /// Says what is offered, by whom, and how many of its batches were received earlier.
    fn say_offered(
        &self,
        (transfer, source, files): (&str, u16, &[String]),
        bytes: u64,
        (batches, held): (u32, u32),
    ) {
        let what = match files {
            [file] => file.clone(),
            files => format!("{} files", files.len()),
        };
        let from = match self.sends {
            true => String::new(),
            false => format!(" from {}", self.name(source)),
        };
        let rest = match held {
            0 => String::new(),
            held => format!(", {held} of them received earlier"),
        };
        let batches = match batches {
            1 => "1 batch".to_string(),
            batches => format!("{batches} batches"),
        };
        let size = octets(bytes);
        self.say(&format!(
            "transfer {transfer}{from}: {what}, {size} in {batches}{rest}"
        ));
    }

    fn advance(&mut self, receivers: &[Progress]) {
        for receiver in receivers {
            self.note_failure(receiver);
        }
        let Some(bars) = &self.bars else {
            let state = |receiver: &Progress| {
                let share = share(receiver.batches_done, receiver.batches);
                format!("{} {} {share:.0} %", receiver.node, receiver.state)
            };
            let states: Vec<String> = receivers.iter().map(state).collect();
            return self.say(&format!(
                "  {:6.1} s  {}",
                self.now.as_secs_f64(),
                states.join(", ")
            ));
        };
        for receiver in receivers {
            let begin = || {
                let bar = bars.add(ProgressBar::new(receiver.batches.max(1).into()));
                let style = ProgressStyle::with_template(
                    "  {prefix:<22!} {wide_bar:.cyan} {percent:>3} %  {msg}",
                );
                if let Ok(style) = style {
                    bar.set_style(style.progress_chars("━╸ "));
                }
                bar.set_prefix(format!("{} {}", receiver.node, receiver.name));
                (bar, self.now, receiver.batches_done)
            };
            let (bar, since, before) = self.of.entry(receiver.node).or_insert_with(begin);
            bar.set_position(receiver.batches_done.into());
            let seconds = self.now.saturating_since(*since).as_secs_f64();
            let gained = f64::from(receiver.batches_done.saturating_sub(*before));
            let bits = gained / f64::from(receiver.batches.max(1)) * self.bytes as f64 * 8.0;
            if receiver.state == "complete" {
                bar.set_message("complete");
            } else if seconds > 0.5 && receiver.state == "receiving" {
                let left = receiver.batches.saturating_sub(receiver.batches_done);
                let until = match gained > 0.0 {
                    true => format!(", {:.0} s left", f64::from(left) * seconds / gained),
                    false => String::new(),
                };
                bar.set_message(format!("{:.1} Mbit/s{until}", bits / seconds / 1e6));
            } else {
                bar.set_message(receiver.state);
            }
        }
    }

    /// Reports a failure of a receiver once, and keeps it for the summary.
    fn note_failure(&mut self, receiver: &Progress) {
        let known = self.failed.get(&receiver.node);
        if known == receiver.why.as_ref() {
            return;
        }
        match &receiver.why {
            Some(why) => {
                let name = self.name(receiver.node);
                self.say(&format!("  {name} cannot receive the files: {why}"));
                self.failed.insert(receiver.node, why.clone());
            }
            None => {
                self.failed.remove(&receiver.node);
            }
        }
    }

    fn sum_up(&self, summary: &Summary) {
        if !self.json {
            // A closed standard output does not make the transfer fail.
            let _ = terminal::print(&self.summary(summary));
        }
    }

    fn summary(&self, summary: &Summary) -> String {
        let mut text = String::new();
        let _ = match self.sends {
            true => self.sum_up_sent(&mut text, summary),
            false => self.sum_up_received(&mut text, summary),
        };
        text
    }

    fn sum_up_received(&self, text: &mut String, summary: &Summary) -> std::fmt::Result {
        let files = match self.installed {
            0 | 1 => String::new(),
            files => format!(" in {files} files"),
        };
        let (size, rate) = (octets(summary.bytes), speed(summary.goodput_bps));
        let seconds = summary.seconds;
        writeln!(text, "received {size}{files} in {seconds:.1} s, {rate}")
    }

    fn sum_up_sent(&self, text: &mut String, summary: &Summary) -> std::fmt::Result {
        let all = summary.complete.len() + summary.incomplete.len();
        if summary.complete.is_empty() {
            writeln!(text, "none of {all} receivers has received the files")?;
        } else {
            writeln!(
                text,
                "sent {} to {} of {all} receivers in {:.1} s ({:.1} s with measuring): {} to all",
                octets(summary.bytes),
                summary.complete.len(),
                summary.seconds,
                summary.wall_seconds,
                speed(summary.goodput_bps)
            )?;
            self.sum_up_air(text, summary)?;
            self.sum_up_receipts(text, summary)?;
        }
        for node in &summary.incomplete {
            let why = self.failed.get(node);
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            writeln!(text, "  incomplete: {}{why}", self.name(*node))?;
        }
        Ok(())
    }

    /// What the files took of the air, and what decided the pace.
    fn sum_up_air(&self, text: &mut String, summary: &Summary) -> std::fmt::Result {
        let pace = Bitrate(summary.pace_max_bps.max(1));
        let airtime = summary.octets_sent as f64 * 8.0 / pace.0 as f64;
        writeln!(
            text,
            "  {} data frames, {:.2} times the files; {airtime:.1} s of airtime at {}; {} frames of other members",
            summary.data_frames,
            summary.redundancy,
            speed(pace.0 as f64),
            summary.frames_of_others
        )?;
        if summary.pace_min_bps < summary.pace_max_bps {
            writeln!(
                text,
                "  slowed down to {} at times, because frames were delayed or lost, or a member could not read all of them",
                speed(summary.pace_min_bps as f64)
            )?;
        }
        if let Some(node) = summary.pace_decided_by {
            writeln!(
                text,
                "  for {:.1} s the path to {} decided the pace, as that member tells of it",
                summary.pace_decided_seconds,
                self.name(node)
            )?;
        }
        let frame = self.frame_max + self.headers;
        let sinks = &summary.complete;
        let capacity = (self.capacity).bps(self.me, sinks, self.frame_max, frame, pace);
        if let Some(bound) = capacity.filter(|_| summary.lacked_min > 0) {
            let got = summary.lacked_min as f64 * 8.0 / summary.seconds.max(1e-9);
            let share = got / bound * 100.0;
            writeln!(
                text,
                "  at this pace the measured links carry at most {} to all of them: {share:.0} % of it",
                speed(bound)
            )?;
        }
        Ok(())
    }

    /// What those who have the files say of them.
    fn sum_up_receipts(&self, text: &mut String, summary: &Summary) -> std::fmt::Result {
        let count = summary.complete.len();
        match count.saturating_sub(summary.receipts.len()) {
            0 => {
                let kept = self.fleet.as_ref();
                let kept =
                    kept.map_or(String::new(), |folder| format!(", in {}", folder.display()));
                writeln!(text, "  signed receipts of all {count}{kept}")?;
            }
            lacking => writeln!(text, "  {lacking} of them gave no signed receipt")?,
        }
        for node in &summary.commands_failed {
            writeln!(text, "  the command of {} failed", self.name(*node))?;
        }
        Ok(())
    }
}

/// An event with the time of day, so that lines of several hosts can be sorted.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    event: &'a Event,
    unix_s: f64,
}

impl Line<'_> {
    fn new(event: &Event) -> Line<'_> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_s = since.map_or(0.0, |since| since.as_secs_f64());
        Line { event, unix_s }
    }
}

impl Watch for Screen {
    fn event(&mut self, event: Event) {
        if matches!(event, Event::Started { .. }) {
            self.door = status::open();
        }
        if self.json {
            let line = serde_json::to_string(&Line::new(&event)).unwrap_or_default();
            let _ = terminal::print(&format!("{line}\n"));
        }
        self.show(&event);
    }

    fn look(&mut self, view: &View<'_>) {
        self.now = view.now;
        if let Some(links) = view.member.links() {
            self.capacity.sample(links);
        }
        if let Some(metrics) = &self.metrics {
            metrics.update(view);
        }
        if let Some(door) = &self.door {
            status::answer(door, view);
        }
    }
}

/// The delivery ratios as a table, from row to column.
fn table(links: &[Measured]) -> String {
    let mut nodes: Vec<u16> = links.iter().flat_map(|link| [link.from, link.to]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut text = "  frames delivered of 100, from row to column\n       ".to_owned();
    for to in &nodes {
        let _ = write!(text, "{to:>5}");
    }
    for from in &nodes {
        let _ = write!(text, "\n  {from:>5}");
        for to in &nodes {
            let link = links
                .iter()
                .find(|link| (link.from, link.to) == (*from, *to));
            let _ = match link {
                Some(link) => write!(text, "{:>5.0}", link.delivery * 100.0),
                None if from == to => write!(text, "     "),
                None => write!(text, "    ."),
            };
        }
    }
    text
}

fn share(done: u32, all: u32) -> f64 {
    match all {
        0 => 100.0,
        all => f64::from(done) / f64::from(all) * 100.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(sends: bool) -> Screen {
        Screen {
            json: false,
            quiet: true,
            rate: Bitrate(1_000_000),
            bars: None,
            of: BTreeMap::new(),
            now: Instant::ZERO,
            me: 1,
            names: BTreeMap::from([(2, "kitchen".into())]),
            capacity: Capacity::default(),
            shown: None,
            bytes: 0,
            frame_max: 1400,
            headers: 72,
            installed: 3,
            receivers: Vec::new(),
            failed: BTreeMap::from([(3, "no room".into())]),
            sends,
            metrics: None,
            door: None,
            fleet: Some("/fleet".into()),
        }
    }

    fn summary() -> Summary {
        Summary {
            bytes: 2_000_000,
            seconds: 20.0,
            wall_seconds: 25.5,
            lacked_max: 2_000_000,
            lacked_min: 2_000_000,
            goodput_bps: 8e5,
            data_frames: 1500,
            frames_of_others: 12,
            pace_min_bps: 500_000,
            pace_max_bps: 1_000_000,
            pace_decided_by: Some(2),
            pace_decided_seconds: 3.0,
            redundancy: 1.05,
            octets_sent: 2_200_000,
            complete: vec![2, 4],
            incomplete: vec![3],
            receipts: vec![2],
            commands_failed: vec![2],
            ..Summary::default()
        }
    }

    #[test]
    fn a_sender_sums_up() {
        let text = screen(true).summary(&summary());
        let expected = "\
sent 2.0 MB to 2 of 3 receivers in 20.0 s (25.5 s with measuring): 0.80 Mbit/s to all
  1500 data frames, 1.05 times the files; 17.6 s of airtime at 1.00 Mbit/s; 12 frames of other members
  slowed down to 0.50 Mbit/s at times, because frames were delayed or lost, or a member could not read all of them
  for 3.0 s the path to 2 (kitchen) decided the pace, as that member tells of it
  1 of them gave no signed receipt
  the command of 2 (kitchen) failed
  incomplete: 3: no room
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_receiver_sums_up() {
        let text = screen(false).summary(&summary());
        assert_eq!(text, "received 2.0 MB in 3 files in 20.0 s, 0.80 Mbit/s\n");
    }
}
