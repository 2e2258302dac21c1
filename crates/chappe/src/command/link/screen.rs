//! The output of `chappe link run`: a display on a terminal, JSON lines, or a line for each change; and the metrics.

use std::collections::VecDeque;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use chappe_link::Status;

use crate::failure::Failure;
use crate::terminal::{self, Stream};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// A display that stays in one place of the terminal.
    Display,
    /// One document per line on standard output.
    Json,
    /// A line on standard error for each change, for logs.
    Log,
}

/// The output so far.
pub struct Screen {
    manner: Manner,
    metrics: Option<PathBuf>,
    before: Option<Status>,
    /// The latest messages, which a display shows below the peers.
    messages: VecDeque<String>,
    metrics_failed: bool,
}

/// Number of messages that a display keeps.
const MESSAGES: usize = 6;

impl Screen {
    pub fn new(json: bool, metrics: Option<PathBuf>) -> Screen {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let manner = match (json, std::io::stdout().is_terminal() && !dumb) {
            (true, _) => Manner::Json,
            (false, true) => Manner::Display,
            (false, false) => Manner::Log,
        };
        Screen {
            manner,
            metrics,
            before: None,
            messages: VecDeque::new(),
            metrics_failed: false,
        }
    }

    /// Prints a message: below the display, else on standard error.
    pub fn say(&mut self, message: &str) {
        if self.manner == Manner::Display {
            self.messages.extend(message.lines().map(str::to_owned));
            let surplus = self.messages.len().saturating_sub(MESSAGES);
            self.messages.drain(..surplus);
        } else {
            terminal::tell(message);
        }
    }

    /// Prints the state of the link.
    pub fn show(&mut self, status: Status) -> Result<(), Failure> {
        if let Some(path) = self.metrics.clone() {
            self.write_metrics(&path, &status.prometheus());
        }
        let done = match self.manner {
            Manner::Json => terminal::print(&(status.json() + "\n")),
            Manner::Display => self.display(&status),
            Manner::Log => {
                for line in &changes(self.before.as_ref(), &status) {
                    terminal::tell(line);
                }
                Ok(())
            }
        };
        self.before = Some(status);
        done
    }

    fn display(&self, status: &Status) -> Result<(), Failure> {
        let width = terminal::width(Stream::Output);
        // Home and clear: the display stays in one place.
        let mut text = format!("\x1b[H\x1b[J{}", status.text(width, self.before.as_ref()));
        if !self.messages.is_empty() {
            text.push('\n');
        }
        for message in &self.messages {
            // Further lines of one message are indented.
            let lines = chappe::message::wrap(message, width.saturating_sub(2));
            text += &(lines.join("\n  ") + "\n");
        }
        terminal::print(&text)
    }

    /// Replaces the file atomically, since a collector may read at any moment.
    fn write_metrics(&mut self, path: &Path, text: &str) {
        let making = path.with_extension("making");
        let written = fs::write(&making, text).and_then(|()| fs::rename(&making, path));
        match written {
            Ok(()) => self.metrics_failed = false,
            Err(error) if !self.metrics_failed => {
                self.metrics_failed = true;
                self.say(&format!(
                    "cannot write {}: {error}; the link continues",
                    path.display()
                ));
            }
            Err(_) => {}
        }
    }
}

/// A line for each peer whose state, problem or radio setting has changed.
fn changes(before: Option<&Status>, now: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    for peer in &now.peers {
        let before = before.and_then(|before| {
            let mut peers = before.peers.iter();
            peers.find(|other| other.name == peer.name)
        });
        let state = before.map(|before| (before.state, before.trouble.as_deref()));
        if state != Some((peer.state, peer.trouble.as_deref())) {
            let trouble = peer.trouble.as_ref().map(|trouble| format!(": {trouble}"));
            lines.push(format!(
                "{}: {}{}",
                peer.name,
                peer.state.name(),
                trouble.unwrap_or_default()
            ));
        }
        let advice = |way: &chappe_link::Judgement| way.radio().is_some().then(|| way.to_string());
        let radio = advice(&peer.coverage);
        // The measured round trip changes with every frame; only a change of the verdict matters.
        let verdict = before.map(|before| (before.coverage.verdict(), before.coverage.interface()));
        if let Some(radio) = radio
            && verdict != Some((peer.coverage.verdict(), peer.coverage.interface()))
        {
            lines.push(format!("{}: {radio}", peer.name));
        }
    }
    lines
}
