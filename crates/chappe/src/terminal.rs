//! The terminal: its width and colours, remarks, progress bars, and Ctrl-C.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use chappe::sweep::SweepError;
use chappe_lab::run::Meter;
use chappe_results::provenance::Program;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Failure;

/// One of the two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
}

impl Stream {
    fn is_terminal(self) -> bool {
        match self {
            Stream::Output => io::stdout().is_terminal(),
            Stream::Error => io::stderr().is_terminal(),
        }
    }
}

/// Columns of the terminal, or of `COLUMNS`, or 100.
pub fn width(stream: Stream) -> usize {
    let given = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let size = match stream {
        Stream::Output => terminal_size::terminal_size_of(io::stdout()),
        Stream::Error => terminal_size::terminal_size_of(io::stderr()),
    };
    size.map(|(columns, _)| usize::from(columns.0))
        .or(given)
        .unwrap_or(100)
        .max(20)
}

/// Whether to use colour: on a terminal that is not dumb, unless `NO_COLOR` is set (no-color.org).
pub fn colour_on(stream: Stream) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal()
        && !set("NO_COLOR")
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether to print characters beyond ASCII: no on a dumb terminal, or on one in the C locale.
pub fn unicode() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let ascii = locale.is_some_and(|locale| locale == "POSIX" || locale == "C");
    !(dumb || ascii && io::stdout().is_terminal())
}

/// Writes results to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// Writes `text` and a line break to standard error. Nothing can report that this stream is closed or full, so its errors
/// are ignored; `eprintln!` would panic.
pub fn tell(text: &str) {
    let mut error = io::stderr().lock();
    let _ = writeln!(error, "{}", text.trim_end_matches('\n')).and_then(|()| error.flush());
}

/// Set by the first Ctrl-C; the second one ends the program at once.
pub fn interrupt() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let make = || {
        let flag = Arc::new(AtomicBool::new(false));
        let signal = signal_hook::consts::SIGINT;
        let code = i32::from(crate::failure::INTERRUPTED);
        // The order matters: the first signal finds the flag down and only raises it.
        let second = signal_hook::flag::register_conditional_shutdown(signal, code, flag.clone());
        let first = second.and_then(|_| signal_hook::flag::register(signal, flag.clone()));
        if first.is_err() {
            tell("chappe: Ctrl-C will stop at once, without keeping results");
        }
        flag
    };
    FLAG.get_or_init(make).clone()
}

/// Progress on standard error: a bar on a terminal, a line each minute elsewhere, nothing if asked for quiet.
pub enum Bar {
    Drawn(ProgressBar),
    Told(RefCell<Lines>),
    Quiet,
}

impl Bar {
    pub fn new(quiet: bool) -> Bar {
        if quiet {
            return Bar::Quiet;
        }
        if !Stream::Error.is_terminal() {
            return Bar::Told(RefCell::new(Lines::since(Instant::now())));
        }
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{msg} {wide_bar:.cyan} {percent:>3} %  {elapsed}, {eta} left",
        );
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━╸ "));
        }
        Bar::Drawn(bar)
    }

    /// Shows `done` of `total`, both in seconds.
    pub fn set(&self, label: &str, done: f64, total: f64) {
        let whole = |seconds: f64| (seconds.max(0.0) * 1000.0) as u64;
        self.show(label, whole(done), whole(total));
    }

    /// Shows `done` of `total`, in any unit.
    fn show(&self, label: &str, done: u64, total: u64) {
        match self {
            Bar::Drawn(bar) => {
                bar.set_message(label.to_string());
                bar.set_length(total.max(1));
                bar.set_position(done.min(total));
            }
            Bar::Told(lines) => {
                let line = lines.borrow_mut().due(Instant::now(), label, done, total);
                line.iter().for_each(|line| tell(line));
            }
            Bar::Quiet => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Bar::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Lines of progress for a log.
pub struct Lines {
    begun: Instant,
    last: Instant,
}

impl Lines {
    /// How far apart they are: an hour's run fills a screen.
    const APART: Duration = Duration::from_secs(60);

    fn since(now: Instant) -> Lines {
        Lines {
            begun: now,
            last: now,
        }
    }

    /// The line to write now, if the last one is old enough.
    fn due(&mut self, now: Instant, label: &str, done: u64, total: u64) -> Option<String> {
        if now.duration_since(self.last) < Lines::APART {
            return None;
        }
        self.last = now;
        let minutes = now.duration_since(self.begun).as_secs() / 60;
        let percent = 100 * done.min(total) / total.max(1);
        Some(format!("{label}: {percent} % after {minutes} min"))
    }
}

/// A line of progress for those who have no bar: when standard error is no terminal, unless `quiet`.
pub fn line(quiet: bool, words: &str) {
    if !quiet && !Stream::Error.is_terminal() {
        tell(words);
    }
}

/// Does `work`, and shows on standard error how far `meter` is.
pub fn watched<T>(label: &str, quiet: bool, meter: &Meter, work: impl FnOnce() -> T) -> T {
    if quiet {
        return work();
    }
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let bar = Bar::new(false);
            while let Err(mpsc::RecvTimeoutError::Timeout) =
                is_done.recv_timeout(Duration::from_millis(100))
            {
                let (done, total) = meter.read();
                bar.show(label, done, total);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// A hint or a remark on standard error, unless `quiet`.
pub fn remark(quiet: bool, words: &str) {
    if !quiet {
        tell(words);
    }
}

/// The provenance of this program's results, made by the command line `command`.
pub fn program(command: &str) -> Program<'_> {
    chappe::program(command)
}

/// The file that this program was started from.
pub fn own_file() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| SweepError::Program(error).into())
}

/// The command line as it can be typed again.
pub fn command_line() -> String {
    let quote = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words = std::env::args().skip(1).map(quote);
    std::iter::once("chappe".to_string())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_a_line_each_minute() {
        let begun = Instant::now();
        let mut lines = Lines::since(begun);
        let told: Vec<_> = (0..=600)
            .filter_map(|s| lines.due(begun + Duration::from_secs(s), "figure7", s, 1200))
            .collect();
        assert_eq!(told.len(), 10);
        assert_eq!(told[2], "figure7: 15 % after 3 min");
        assert!(
            lines
                .due(begun + Duration::from_secs(900), "x", 3, 0)
                .is_some()
        );
    }
}
