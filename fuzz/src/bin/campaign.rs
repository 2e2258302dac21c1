//! `campaign [--seconds S] [--executions N] [--seed N] [--target NAME]...`: feeds random and mutated inputs to all targets in turn, and counts.
//!
//! An input that breaks something is written to `target/fuzz`; `cargo +nightly fuzz run NAME FILE` or this program with `--file`
//! plays it again.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use chappe_core::Stream;
use chappe_fuzz::{Feed, TARGETS, corpus, input, stream};
use chappe_sys::thread_time;

const HELP: &str = "\
Usage: cargo run --release -p chappe-fuzz --bin campaign -- [--seconds S] [--executions N] [--seed N] [--target NAME]... [--file FILE]

  --seconds S     Stop after S seconds; 60 if neither seconds nor executions are given
  --executions N  Stop each target after N executions
  --seed N        Other inputs; 1 if omitted
  --target NAME   Only this target; can be given several times
  --file FILE     Only this input
";

/// What was asked for.
struct Wish {
    seconds: Option<f64>,
    executions: Option<u64>,
    seed: u64,
    targets: Vec<(&'static str, Feed)>,
    file: Option<PathBuf>,
}

/// One target's inputs, counts and failures in the campaign.
struct Row {
    name: &'static str,
    feed: Feed,
    corpus: Vec<Vec<u8>>,
    random: Stream,
    executions: u64,
    octets: u64,
    worked: Duration,
    broken: BTreeMap<String, PathBuf>,
}

fn main() -> ExitCode {
    let wish = match wish() {
        Ok(wish) => wish,
        Err(why) => {
            eprint!("campaign: {why}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if let Some(file) = &wish.file {
        let Ok(bytes) = fs::read(file) else {
            eprintln!("campaign: cannot read {}", file.display());
            return ExitCode::from(2);
        };
        wish.targets.iter().for_each(|(_, feed)| feed(&bytes));
        return ExitCode::SUCCESS;
    }
    let mut rows: Vec<Row> = wish
        .targets
        .iter()
        .map(|&(name, feed)| Row {
            name,
            feed,
            corpus: corpus(name),
            random: stream(name, wish.seed),
            executions: 0,
            octets: 0,
            worked: Duration::ZERO,
            broken: BTreeMap::new(),
        })
        .collect();
    panic::set_hook(Box::new(|_| ()));
    let begun = Instant::now();
    let most = wish.executions.unwrap_or(u64::MAX);
    let seconds = wish.seconds.unwrap_or(f64::MAX);
    // Each target gets the same time, in turns, so that an early end is fair.
    while begun.elapsed().as_secs_f64() < seconds && rows.iter().any(|row| row.executions < most) {
        rows.iter_mut()
            .for_each(|row| row.run(Duration::from_millis(200), most));
    }
    report(&rows)
}

impl Row {
    /// Runs for this time, but to so many executions at most.
    fn run(&mut self, time: Duration, most: u64) {
        let (begun, worked) = (Instant::now(), thread_time());
        while self.executions < most {
            // Asked rarely: the clock takes as long as a short frame's parser.
            if self.executions.is_multiple_of(LOOKS) && begun.elapsed() >= time {
                break;
            }
            let bytes = input(&self.corpus, &mut self.random);
            self.executions += 1;
            self.octets += bytes.len() as u64;
            let feed = self.feed;
            let Err(why) = panic::catch_unwind(AssertUnwindSafe(|| feed(&bytes))) else {
                continue;
            };
            let text = why.downcast_ref::<String>().cloned();
            let text = text.or_else(|| why.downcast_ref::<&str>().map(|text| text.to_string()));
            let text = text.unwrap_or_default();
            // One file for each kind of message: numbers in it differ from input to input.
            let kind: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
            if !self.broken.contains_key(&kind) {
                let path = keep(self.name, self.broken.len(), &bytes);
                eprintln!("{}: {text}\n  {}", self.name, path.display());
                self.broken.insert(kind, path);
            }
        }
        self.worked += thread_time() - worked;
    }
}

/// Executions between two looks at the clock.
const LOOKS: u64 = 16;

/// Writes an input that broke something.
fn keep(name: &str, number: usize, bytes: &[u8]) -> PathBuf {
    let folder = Path::new("target/fuzz");
    let path = folder.join(format!("{name}-{number}"));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes));
    if let Err(why) = written {
        eprintln!("campaign: cannot write {}: {why}", path.display());
    }
    path
}

fn report(rows: &[Row]) -> ExitCode {
    println!(
        "{:<16} {:>12} {:>14} {:>10} {:>8} {:>7}",
        "target", "executions", "octets", "a second", "corpus", "broken"
    );
    for row in rows {
        println!(
            "{:<16} {:>12} {:>14} {:>10.0} {:>8} {:>7}",
            row.name,
            row.executions,
            row.octets,
            // Of processor time, so other work on the machine does not count.
            row.executions as f64 / row.worked.as_secs_f64().max(1e-9),
            row.corpus.len(),
            row.broken.len()
        );
    }
    let executions: u64 = rows.iter().map(|row| row.executions).sum();
    println!("{} targets, {executions} executions", rows.len());
    match rows.iter().all(|row| row.broken.is_empty()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn wish() -> Result<Wish, String> {
    let mut wish = Wish {
        seconds: None,
        executions: None,
        seed: 1,
        targets: Vec::new(),
        file: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("`{option}` needs a value"))?;
        match option.as_str() {
            "--seconds" => {
                let seconds = value.parse().ok().filter(|s| *s > 0.0);
                let seconds = seconds.ok_or_else(|| format!("`{value}` is not a time"))?;
                wish.seconds = Some(seconds);
            }
            "--executions" => {
                let count = value.parse().ok().filter(|count| *count > 0);
                let count = count.ok_or_else(|| format!("`{value}` is not a count"))?;
                wish.executions = Some(count);
            }
            "--seed" => {
                let seed = value.parse();
                wish.seed = seed.map_err(|_| format!("`{value}` is not a number"))?;
            }
            "--target" => {
                let target = TARGETS.into_iter().find(|(name, _)| *name == value);
                let known = TARGETS.map(|(name, _)| name).join(", ");
                let none = || format!("unknown target `{value}`; known here: {known}");
                wish.targets.push(target.ok_or_else(none)?);
            }
            "--file" => wish.file = Some(value.into()),
            _ => return Err(format!("unknown option `{option}`")),
        }
    }
    if wish.targets.is_empty() {
        wish.targets = TARGETS.to_vec();
    }
    if wish.executions.is_none() {
        wish.seconds = wish.seconds.or(Some(60.0));
    }
    Ok(wish)
}
