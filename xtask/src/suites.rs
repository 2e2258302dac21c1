//! Runs the test programs of all packages, several at the same time.
//!
//! `cargo test` runs one program after another. Programs that work in real time mostly wait, which leaves processors idle. So
//! they form one queue, of which two run at a time, and those that only compute form another, of which one runs. A program that works in real time and failed runs once more at the
//! end, when nothing else runs: a computer that stood still for a moment fails it once, a defect fails it twice.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process;
use crate::rules::programs::has_no_harness;
use crate::rules::roles::Role;
use crate::workspace::Workspace;

/// One test program, as cargo built it.
#[derive(Clone, Debug)]
pub struct Suite {
    /// For the reader: package and target.
    name: String,
    program: PathBuf,
    /// The package's folder, in which cargo would run it.
    folder: PathBuf,
    /// Whether it keeps time with the clock or the kernel.
    real_time: bool,
}

/// They use a third of a processor in the mean (130 processor seconds of 450 on two processors).
const REAL_TIME_AT_ONCE: usize = 2;
/// Building takes minutes if nothing is built yet.
const LIMIT: Duration = Duration::from_secs(3600);

/// Builds the test programs of all members and lists them.
pub fn list(workspace: &Workspace) -> Result<Vec<Suite>, String> {
    let args = ["test", "--workspace", "--release", "--quiet", "--no-run"];
    let mut build = process::cargo(&workspace.root, args);
    build.arg("--message-format=json-render-diagnostics");
    let messages = process::take(&mut build, LIMIT)?;
    let mut suites = Vec::new();
    for line in messages.lines() {
        // Build scripts' output is not JSON.
        if let Ok(message) = serde_json::from_str(line) {
            suites.extend(suite(workspace, &message));
        }
    }
    Ok(suites)
}

/// The test program that a message of cargo is about, if any.
fn suite(workspace: &Workspace, message: &Value) -> Option<Suite> {
    let is_test = message["profile"]["test"] == Value::Bool(true);
    let program = message["executable"].as_str().filter(|_| is_test)?;
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    let target = message["target"]["name"].as_str()?;
    let within = folder.strip_prefix(&workspace.root).ok()?;
    let package = workspace
        .members
        .iter()
        .find(|package| within.to_str() == Some(&package.folder))?;
    let manifest = workspace.text(&format!("{}/Cargo.toml", package.folder))?;
    let role = Role::of(package);
    let kind = message["target"]["kind"][0].as_str()?;
    Some(Suite {
        name: format!("{} {kind} {target}", package.name),
        program: PathBuf::from(program),
        folder,
        real_time: kind == "test"
            && (has_no_harness(manifest, target)
                || matches!(role, Some(Role::Daemon | Role::Command))),
    })
}

/// The programs that did not simply pass.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Troubled {
    /// The names of programs that failed.
    pub failed: Vec<String>,
    /// The names of real-time programs that failed beside others, and passed alone.
    pub passed_alone: Vec<String>,
}

/// Runs the programs and gives each line of their output to `see`, but of a failed run only if it is the last one of its program.
pub fn run(suites: &[Suite], envs: &[(&str, &str)], see: impl Fn(&str) + Sync) -> Troubled {
    let failed = Mutex::new(Vec::new());
    // One lock for a program's whole output, so that the outputs do not mix.
    let terminal = Mutex::new(());
    let waiting = AtomicUsize::new(REAL_TIME_AT_ONCE);
    let of_kind = |real_time| {
        suites
            .iter()
            .filter(move |suite| suite.real_time == real_time)
    };
    let real_time_queue = Mutex::new(of_kind(true));
    let computing_queue = Mutex::new(of_kind(false));
    let next = |real_time| {
        let queue = if real_time {
            &real_time_queue
        } else {
            &computing_queue
        };
        queue.lock().ok()?.next()
    };
    let work_off = |real_time: bool| {
        while let Some(suite) = next(real_time) {
            let mut command = suite.command(envs);
            if !real_time && waiting.load(Ordering::Relaxed) > 0 {
                // Real-time programs fail on a machine that is too busy: leave them a processor.
                command.env("RUST_TEST_THREADS", processors_but_one().to_string());
            }
            let ran = Ran::of(&mut command);
            // A panic of another thread has already ended this function.
            let _held = terminal.lock();
            let is_last = ran.passed || !real_time;
            ran.print(suite, is_last, &see);
            if !ran.passed
                && let Ok(mut failed) = failed.lock()
            {
                failed.push(suite);
            }
        }
        if real_time {
            waiting.fetch_sub(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..REAL_TIME_AT_ONCE {
            scope.spawn(|| work_off(true));
        }
        work_off(false);
    });
    let mut troubled = Troubled::default();
    for suite in failed.into_inner().unwrap_or_default() {
        let passes = suite.real_time && {
            let ran = Ran::of(&mut suite.command(envs));
            ran.print(suite, true, &see);
            ran.passed
        };
        let names = match passes {
            true => &mut troubled.passed_alone,
            false => &mut troubled.failed,
        };
        names.push(suite.name.clone());
    }
    troubled
}

/// How a program ran.
struct Ran {
    said: String,
    passed: bool,
    took: Duration,
}

impl Ran {
    fn of(command: &mut Command) -> Ran {
        let started = Instant::now();
        let (said, passed) = match command.output() {
            Ok(output) => {
                let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
                said.push_str(&String::from_utf8_lossy(&output.stderr));
                (said, output.status.success())
            }
            Err(why) => (format!("does not start: {why}\n"), false),
        };
        let took = started.elapsed();
        Ran { said, passed, took }
    }

    /// Prints what the program has said. What another run follows is marked in each line.
    fn print(&self, suite: &Suite, is_last: bool, see: &impl Fn(&str)) {
        let (name, took) = (&suite.name, self.took.as_secs_f64());
        if is_last {
            println!("\n-- {name}, {took:.1} s\n{}", self.said.trim_end());
            return self.said.lines().for_each(see);
        }
        println!("\n-- {name}, {took:.1} s: failed, to be run again alone");
        for line in self.said.trim_end().lines() {
            println!("1st| {line}");
        }
    }
}

impl Suite {
    fn command(&self, envs: &[(&str, &str)]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .envs(envs.iter().copied())
            .stdin(Stdio::null());
        command
    }
}

fn processors_but_one() -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    processors.saturating_sub(1).max(1)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(name: &str, real_time: bool) -> Suite {
        Suite {
            name: name.to_owned(),
            program: PathBuf::from(name),
            folder: std::env::temp_dir(),
            real_time,
        }
    }

    #[test]
    fn both_queues_are_run_and_failures_are_named() {
        let suites = [
            program("true", false),
            program("false", true),
            program("pwd", true),
            program("/none/such", false),
        ];
        let lines = Mutex::new(Vec::new());
        let see = |line: &str| lines.lock().unwrap().push(line.to_owned());
        let mut troubled = run(&suites, &[], see);
        troubled.failed.sort();
        assert_eq!(troubled.failed, ["/none/such", "false"]);
        assert!(troubled.passed_alone.is_empty());
        let lines = lines.into_inner().unwrap();
        assert!(lines.iter().any(|line| line.starts_with('/')), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("does not start")));
    }

    /// Programs that fail in their first run only. The one that does not keep time gets no second run.
    #[test]
    fn a_real_time_program_may_pass_alone() {
        let folder = std::env::temp_dir().join(format!("chappe-suites-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = |name: &str| {
            let (mark, path) = (folder.join(format!("{name}.ran")), folder.join(name));
            let mark = mark.display();
            let text =
                format!("#!/bin/sh\ntest -e {mark} && echo passed && exit; touch {mark}; exit 1");
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            let program = path.to_str().unwrap();
            Suite {
                name: name.to_owned(),
                ..self::program(program, name == "timed")
            }
        };
        let suites = [script("timed"), script("computed")];
        let seen = Mutex::new(0);
        let troubled = run(&suites, &[], |_| *seen.lock().unwrap() += 1);
        let _ = std::fs::remove_dir_all(&folder);
        assert_eq!(troubled.failed, ["computed"]);
        assert_eq!(troubled.passed_alone, ["timed"]);
        assert_eq!(seen.into_inner().unwrap(), 1);
    }

    #[test]
    fn messages_of_cargo_become_programs() {
        let workspace = Workspace::load().unwrap();
        let message = |folder: &str, target: &str, is_test: bool| {
            let manifest = workspace.root.join(folder).join("Cargo.toml");
            let message = serde_json::json!({
                "manifest_path": manifest,
                "target": { "name": target, "kind": ["test"] },
                "profile": { "test": is_test },
                "executable": "/target/release/deps/program",
            });
            suite(&workspace, &message)
        };
        let real_time = |folder, target| message(folder, target, true).unwrap().real_time;
        assert!(real_time("crates/sys", "namespaces"));
        assert!(real_time("crates/tcplp", "kernel"));
        assert!(real_time("crates/chappe", "suite"));
        assert!(!real_time("crates/tcplp", "suite"));
        assert!(message("crates/tcplp", "tcplp", false).is_none());
    }
}
