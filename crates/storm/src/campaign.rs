//! Many seeds of many systems on all cores, and what came of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use chappe_lab::seeds;
use chappe_lab::system::System;
use chappe_sys::thread_time;

use crate::cost::Cost;
use crate::draw;
use crate::shrink::shrink;
use crate::verdict::{Care, Kind, Verdict, judge};

/// One run in so many is made twice and compared.
const REPEATED: u64 = 4;
/// How long one failure may be made smaller.
const SHRINKING: Duration = Duration::from_secs(120);
/// Failures of a kind and system that are shrunk and written; more are only counted.
const WRITTEN_MAX: u64 = 3;

/// Which seeds of which systems to run.
#[derive(Clone)]
pub struct Campaign {
    /// The systems, from the command's table.
    pub systems: Vec<&'static System>,
    /// The first seed of each system.
    pub first: u64,
    /// The last seed; `None` if time alone ends it.
    pub last: Option<u64>,
    /// How long to run on the computer's clock.
    pub time: Option<Duration>,
    /// Where failing scenarios are written.
    pub folder: PathBuf,
}

/// What came of one system's seeds.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Seeds whose scenario was run.
    pub runs: u64,
    /// Seeds for which no draft was accepted.
    pub refused: u64,
    /// Faults in these runs.
    pub faults: u64,
    /// Frames on the air.
    pub frames: u64,
    /// Seconds of virtual time.
    pub simulated_s: f64,
    /// Runs that were made twice and compared.
    pub repeated: u64,
    /// Receivers that got all.
    pub complete: u64,
    /// Why others did not.
    pub causes: BTreeMap<&'static str, u64>,
    /// What was wrong, by kind.
    pub wrong: BTreeMap<Kind, u64>,
    /// What each run cost, in the order in which they ended.
    pub costs: Vec<Cost>,
}

impl Campaign {
    /// Runs all, tells of failures as they come, and returns one tally for each system.
    pub fn run(&self) -> Vec<Tally> {
        let begin = Instant::now();
        let tallies = Mutex::new(vec![Tally::default(); self.systems.len()]);
        let stride = 20;
        let mut next = self.first;
        let is_over = || self.time.is_some_and(|time| begin.elapsed() >= time);
        while !is_over() && self.last.is_none_or(|last| next <= last) {
            let last = (next + stride - 1).min(self.last.unwrap_or(u64::MAX));
            let items: Vec<(usize, u64)> = (next..=last)
                .flat_map(|seed| (0..self.systems.len()).map(move |system| (system, seed)))
                .collect();
            seeds::parallel(
                &items,
                seeds::cores(),
                || !is_over(),
                |&(place, seed)| {
                    self.one(place, seed, &tallies);
                },
            );
            next = last + 1;
            if (next - self.first) % 200 < stride {
                let so_far = tallies.lock().map(|tallies| table(&self.systems, &tallies));
                eprintln!(
                    "up to seed {last}, {:.0} s:\n{}",
                    begin.elapsed().as_secs_f64(),
                    so_far.unwrap_or_default()
                );
            }
        }
        tallies.into_inner().unwrap_or_default()
    }

    fn one(&self, place: usize, seed: u64, tallies: &Mutex<Vec<Tally>>) {
        let system = self.systems[place];
        let begin = thread_time();
        let Some(draft) = draw::accepted(system, seed) else {
            if let Ok(mut tallies) = tallies.lock() {
                tallies[place].refused += 1;
            }
            return;
        };
        let care = Care {
            repeats: seed.is_multiple_of(REPEATED),
            ..Care::default()
        };
        let drawn = thread_time();
        let verdict = judge(system, &draft, care);
        let took = (drawn - begin, thread_time() - drawn);
        let Ok(mut all) = tallies.lock() else { return };
        all[place].costs.push(Cost::of(&draft, &verdict, took));
        let before = all[place].add(&verdict, draft.faults() as u64, care);
        drop(all);
        let Some(wrong) = &verdict.wrong else { return };
        let (name, kind) = (system.scenario.name, wrong.kind);
        println!("{name} seed {seed}: {kind:?}: {}", wrong.what);
        if before >= WRITTEN_MAX {
            return;
        }
        let (least, wrong) = shrink(system, &draft, wrong, SHRINKING);
        let file = format!("{name}-{seed}-{kind:?}.toml").to_lowercase();
        let text = format!(
            "# {kind:?}: {}\n\n{}",
            wrong.what.replace('\n', "\n# "),
            least.text()
        );
        match write(&self.folder, &file, &text) {
            Ok(path) => println!("  smallest: chappe sim {}", path.display()),
            Err(error) => println!("  {file} cannot be written: {error}\n{text}"),
        }
    }
}

fn write(folder: &Path, file: &str, text: &str) -> std::io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(file);
    fs::write(&path, text)?;
    Ok(path)
}

impl Tally {
    /// Adds a run, and says how many were wrong in its way before.
    fn add(&mut self, verdict: &Verdict, faults: u64, care: Care) -> u64 {
        self.runs += 1;
        self.faults += faults;
        self.frames += verdict.frames;
        self.simulated_s += verdict.simulated_s;
        self.repeated += u64::from(care.repeats);
        self.complete += verdict.complete;
        for cause in &verdict.causes {
            *self.causes.entry(cause).or_default() += 1;
        }
        let Some(wrong) = &verdict.wrong else {
            return 0;
        };
        let count = self.wrong.entry(wrong.kind).or_default();
        *count += 1;
        *count - 1
    }
}

/// The tallies as a table, with what was wrong below.
pub fn table(systems: &[&System], tallies: &[Tally]) -> String {
    let mut text = format!(
        "{:10} {:>7} {:>7} {:>9} {:>8} {:>12} {:>11} {:>9} {:>6}\n",
        "system",
        "runs",
        "refused",
        "faults",
        "repeated",
        "frames",
        "virtual h",
        "complete",
        "wrong"
    );
    for (system, tally) in systems.iter().zip(tallies) {
        let wrong: u64 = tally.wrong.values().sum();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:10} {:>7} {:>7} {:>9} {:>8} {:>12} {:>11.1} {:>9} {:>6}",
            system.scenario.name,
            tally.runs,
            tally.refused,
            tally.faults,
            tally.repeated,
            tally.frames,
            tally.simulated_s / 3600.0,
            tally.complete,
            wrong
        );
    }
    for (system, tally) in systems.iter().zip(tallies) {
        let causes = tally.causes.iter().map(|(cause, n)| format!("{n} {cause}"));
        let wrong = tally.wrong.iter().map(|(kind, n)| format!("{n} {kind:?}"));
        let all: Vec<String> = causes.chain(wrong).collect();
        if !all.is_empty() {
            let _ = writeln!(text, "{}: {}", system.scenario.name, all.join(", "));
        }
    }
    text
}
