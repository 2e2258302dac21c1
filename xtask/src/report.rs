//! The steps of a command: how each ended, and how long it took.

use std::fmt::Write;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::terminal;

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed; the note may be empty.
    Passed(String),
    /// It failed, and why.
    Failed(String),
    /// It cannot run on this machine, and what is missing.
    Skipped(String),
}

/// The steps so far.
#[derive(Debug)]
pub struct Report {
    steps: Vec<Step>,
    started: Instant,
    lane: Lane,
}

/// Which steps run at the same time as those of this report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// No steps run beside these.
    Alone,
    /// Those of another lane, which holds its output back while this one prints.
    Shown,
    /// Those of another lane, which has the terminal.
    Held,
}

#[derive(Debug)]
struct Step {
    name: String,
    outcome: Outcome,
    took: Duration,
    /// Processor time of the programs that it ran; `None` where the system does not report it or other steps ran beside it.
    worked: Option<Duration>,
}

impl From<Result<String, String>> for Outcome {
    fn from(result: Result<String, String>) -> Outcome {
        match result {
            Ok(seen) => Outcome::Passed(seen),
            Err(why) => Outcome::Failed(why),
        }
    }
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Outcome {
        result.map(|()| String::new()).into()
    }
}

impl Report {
    pub fn new() -> Report {
        Report::of(Lane::Alone)
    }

    fn of(lane: Lane) -> Report {
        Report {
            steps: Vec::new(),
            started: Instant::now(),
            lane,
        }
    }

    /// Runs two lanes of steps at the same time. The first has the terminal; the output of a step of the second appears when that
    /// step has ended. Whose processor time is whose cannot be told, so only the summary's last line counts it.
    pub fn lanes(
        &mut self,
        shown: impl FnOnce(&mut Report),
        held: impl FnOnce(&mut Report) + Send,
    ) {
        let mut second = Report::of(Lane::Held);
        let mut first = Report::of(Lane::Shown);
        thread::scope(|scope| {
            scope.spawn(|| held(&mut second));
            shown(&mut first);
        });
        self.steps.extend(first.steps);
        self.steps.extend(second.steps);
    }

    /// Runs one step; true unless it failed.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) -> bool {
        let (started, before) = (Instant::now(), processor_time());
        let outcome = match self.lane {
            Lane::Alone | Lane::Shown => {
                println!("\n== {name}");
                work()
            }
            Lane::Held => {
                let (outcome, said) = terminal::hold(work);
                println!("\n== {name}\n{}", said.trim_end());
                outcome
            }
        };
        match &outcome {
            Outcome::Passed(seen) if !seen.is_empty() => println!("{seen}"),
            Outcome::Passed(_) => {}
            Outcome::Failed(why) => println!("FAILED: {why}"),
            Outcome::Skipped(why) => println!("skipped: {why}"),
        }
        let passed = !matches!(outcome, Outcome::Failed(_));
        let worked = before
            .zip(processor_time())
            .filter(|_| self.lane == Lane::Alone);
        self.steps.push(Step {
            name: name.to_owned(),
            outcome,
            took: started.elapsed(),
            worked: worked.map(|(before, now)| now - before),
        });
        passed
    }

    /// Prints the summary; an error if a step failed.
    pub fn close(&self) -> Result<(), String> {
        print!("\n{}", self.summary());
        let failed = self.count(|o| matches!(o, Outcome::Failed(_)));
        match failed {
            0 => Ok(()),
            1 => Err("one step failed".to_owned()),
            n => Err(format!("{n} steps failed")),
        }
    }

    fn count(&self, which: impl Fn(&Outcome) -> bool) -> usize {
        self.steps
            .iter()
            .filter(|step| which(&step.outcome))
            .count()
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{:<29}  {:>9} {:>9}", "", "time", "processor");
        for step in &self.steps {
            let (word, note) = match &step.outcome {
                Outcome::Passed(seen) => ("passed", seen),
                Outcome::Failed(why) => ("FAILED", why),
                Outcome::Skipped(why) => ("skipped", why),
            };
            let note = note.lines().next().unwrap_or_default();
            let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
            let took = seconds(step.took);
            let worked = step.worked.map_or_else(String::new, seconds);
            let name = &step.name;
            let line = format!("{word:<8} {name:<21} {took:>9} {worked:>9}  {note}");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let passed = self.count(|o| matches!(o, Outcome::Passed(_)));
        let failed = self.count(|o| matches!(o, Outcome::Failed(_)));
        let skipped = self.count(|o| matches!(o, Outcome::Skipped(_)));
        let seconds = self.started.elapsed().as_secs();
        let worked = processor_time().map_or_else(String::new, |all| {
            format!(", {} s of processor", all.as_secs())
        });
        let _ = writeln!(
            text,
            "{passed} passed, {failed} failed, {skipped} skipped in {} min {} s{worked}",
            seconds / 60,
            seconds % 60
        );
        text
    }
}

/// Processor time of all programs that this one has run to their end.
///
/// Source: fields 16 and 17 of `/proc/self/stat`, in ticks of 10 ms (proc(5); `USER_HZ` is 100 on all common processors).
fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // Field 2, the name, may hold spaces; it ends at the last parenthesis.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis(10 * (user + system)))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Each lane waits for the other one's first step, which two lanes in turn would never see.
    #[test]
    fn two_lanes_run_at_the_same_time() {
        let both = Barrier::new(2);
        let meet = || {
            both.wait();
            Outcome::Passed(String::new())
        };
        let mut report = Report::new();
        report.lanes(
            |lane| assert!(lane.step("first", meet)),
            |lane| {
                lane.step("second", meet);
                lane.step("third", || Outcome::Failed("broken".to_owned()));
            },
        );
        let names: Vec<&str> = report.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["first", "second", "third"]);
        assert_eq!(report.close(), Err("one step failed".to_owned()));
    }

    #[test]
    fn a_failed_step_fails_the_whole_and_a_skipped_one_does_not() {
        let mut report = Report::new();
        assert!(report.step("a", || Outcome::Passed("7 seen".to_owned())));
        assert!(report.step("b", || Outcome::Skipped("no tool".to_owned())));
        assert_eq!(report.close(), Ok(()));
        assert!(!report.step("c", || Outcome::Failed("broken\nin detail".to_owned())));
        assert!(report.close().is_err());
        let summary = report.summary();
        assert!(summary.contains("passed   a") && summary.contains("7 seen"));
        assert!(summary.contains("FAILED   c") && !summary.contains("in detail"));
        assert!(summary.contains("1 passed, 1 failed, 1 skipped"));
    }
}
