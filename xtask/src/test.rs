//! `cargo xtask test` and `cargo xtask check`: the steps, in order.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use crate::report::{Outcome, Report};
use crate::suites::Troubled;
use crate::workspace::{self, Workspace};
use crate::{
    debian, demo, firmware, no_std, page, process, python, rules, sizes, storm, suites, targets,
};

/// Everything that CI runs. What cannot run here is skipped with its reason; all steps run even if one fails.
pub fn everything(install: bool) -> Result<(), String> {
    let root = workspace::root()?;
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let mut report = Report::new();
    install_all(&root, install || in_ci, &mut report);
    report.step("lock file", || lock_file(&root, in_ci));
    let workspace = Workspace::load()?;
    let mut is_built = false;
    report.lanes(
        |lane| {
            static_checks(&workspace, lane);
            lane.step("documentation", || documentation(&root));
            is_built = lane.step("build", || build(&root));
        },
        |lane| small_processors(&workspace, lane),
    );
    if !is_built {
        return report.close();
    }
    // Most tests in real time wait, so others use the processors meanwhile.
    report.lanes(
        |lane| {
            lane.step("cargo test", || cargo_test(&workspace));
        },
        |lane| whole_programs(&workspace, lane),
    );
    report.close()
}

/// What is built without an operating system, for this processor and others, in target folders of its own.
fn small_processors(workspace: &Workspace, report: &mut Report) {
    report.step("no_std", || no_std::without_allocator(workspace));
    report.step("no_std + alloc", || no_std::with_allocator(workspace));
    report.step("no_std, other CPUs", || {
        no_std::on_other_processors(workspace)
    });
    report.step("firmware", || firmware::firmware(workspace));
    report.step("page", || page::current(workspace));
    report.step("sizes", || sizes::sizes(workspace, false));
}

/// What runs the built programs as a user would.
fn whole_programs(workspace: &Workspace, report: &mut Report) {
    report.step("demo", || demo::demo(workspace));
    report.step("systems", || demo::systems(workspace));
    report.step("example", || demo::example(workspace));
    report.step("storm", || storm::short(workspace));
    report.step("capture", || demo::capture(workspace));
    report.step("browser", || page::browser(workspace));
    report.step("python", || python::wheel(workspace));
}

/// `cargo xtask install`: what `cargo xtask test` needs beyond a toolchain.
pub fn install() -> Result<(), String> {
    let mut report = Report::new();
    install_all(&workspace::root()?, true, &mut report);
    report.close()
}

fn install_all(root: &Path, may_install: bool, report: &mut Report) {
    report.step("packages", || debian::install(root, may_install));
    report.step("targets", || targets::install(root, may_install));
}

/// `cargo xtask rules`: the rules alone.
pub fn rules() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let mut report = Report::new();
    report.step("rules", || rules::check(&workspace));
    report.close()
}

/// The fast part: no test is run.
pub fn fast() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let mut report = Report::new();
    static_checks(&workspace, &mut report);
    report.close()
}

fn static_checks(workspace: &Workspace, report: &mut Report) {
    report.step("rules", || rules::check(workspace));
    report.step("rustfmt", || rustfmt(workspace));
    report.step("clippy", || {
        let mut args = vec![
            "clippy",
            "--workspace",
            "--all-targets",
            "--release",
            "--keep-going",
        ];
        args.extend(["--quiet", "--", "-Dwarnings"]);
        cargo(&workspace.root, &args)
    });
}

/// Names the files that `cargo fmt` would change.
fn rustfmt(workspace: &Workspace) -> Outcome {
    let format = |folder: &str, more: &[&str]| {
        let mut fmt = process::cargo(&workspace.root.join(folder), ["fmt", "--check"]);
        fmt.args(more).args(["--", "--files-with-diff"]);
        process::show(&mut fmt)
    };
    let mut results = vec![format("", &["--all"])];
    // With --all, a package outside the workspace would have the members formatted again.
    let outside = workspace.stand_alone().into_iter();
    results.extend(outside.map(|folder| format(folder, &[])));
    match results.iter().filter(|result| result.is_err()).count() {
        0 => Outcome::Passed(String::new()),
        _ => Outcome::Failed("run `cargo fmt`".to_owned()),
    }
}

/// Whether the lock file that is kept is the one that was built with. Cargo has already mended a missing or late
/// one when this program starts, so git is asked. Away from CI the change may be yours, and right.
fn lock_file(root: &Path, in_ci: bool) -> Outcome {
    if !in_ci {
        return Outcome::Skipped("checked in CI only, since you may be changing it".to_owned());
    }
    let is_kept = process::first_line("git", &["ls-files", "Cargo.lock"], root).is_some();
    let changed = process::first_line("git", &["diff", "--name-only", "HEAD", "Cargo.lock"], root);
    match (is_kept, changed) {
        (true, None) => Outcome::Passed(String::new()),
        (true, Some(_)) => Outcome::Failed(
            "Cargo.lock does not match a Cargo.toml: commit the changed one".to_owned(),
        ),
        (false, _) => Outcome::Failed("Cargo.lock is not committed".to_owned()),
    }
}

fn documentation(root: &Path) -> Outcome {
    let mut doc = process::cargo(
        root,
        [
            "doc",
            "--workspace",
            "--no-deps",
            "--release",
            "--keep-going",
        ],
    );
    doc.arg("--quiet").env("RUSTDOCFLAGS", "-Dwarnings");
    let driver = Path::new(doc.get_program()).with_file_name("clippy-driver");
    if driver.is_file() {
        // What clippy has checked is then not checked again. If a later clippy wants other variables it only is.
        doc.env("RUSTC_WORKSPACE_WRAPPER", driver);
        doc.env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
    }
    process::show(&mut doc).into()
}

/// Builds all libraries, programs and tests, with the features that the tests run with.
fn build(root: &Path) -> Outcome {
    let args = ["test", "--workspace", "--release", "--quiet", "--no-run"];
    cargo(root, &args)
}

/// Unit, integration and documentation tests of all members. The totals go into the summary, and so do the tests that
/// skipped themselves.
fn cargo_test(workspace: &Workspace) -> Outcome {
    let skipped = workspace.target.join("skipped.txt");
    if let Err(why) = fs::write(&skipped, "") {
        return Outcome::Failed(format!("{}: {why}", skipped.display()));
    }
    let result = suites::list(workspace).map(|suites| {
        let total = Mutex::new(Tally::default());
        let see = |line: &str| {
            if let Ok(mut total) = total.lock() {
                total.add(line);
            }
        };
        let file = skipped.to_string_lossy();
        let mut troubled = suites::run(&suites, &[(SKIPPED_FILE, &file)], see);
        let args = [
            "test",
            "--workspace",
            "--doc",
            "--release",
            "--no-fail-fast",
        ];
        let mut doctests = process::cargo(&workspace.root, args);
        doctests.env(SKIPPED_FILE, &skipped);
        if process::show_and_see(&mut doctests, see).is_err() {
            troubled.failed.push("documentation tests".to_owned());
        }
        (total.into_inner().unwrap_or_default(), troubled)
    });
    let (mut total, troubled) = match result {
        Ok(done) => done,
        Err(why) => return Outcome::Failed(why),
    };
    let collected = fs::read_to_string(&skipped).unwrap_or_default();
    total.skipped.extend(collected.lines().map(str::to_owned));
    total
        .skipped
        .iter()
        .for_each(|test| println!("skipped: {test}"));
    let mut seen = format!(
        "{} tests passed, {} failed, {} ignored, {} skipped",
        total.passed,
        total.failed,
        total.ignored,
        total.skipped.len()
    );
    let Troubled {
        failed,
        passed_alone,
    } = troubled;
    if !passed_alone.is_empty() {
        let _ = write!(seen, "; passed only alone: {}", passed_alone.join(", "));
    }
    match failed.is_empty() {
        true if total.passed == 0 => Outcome::Failed("no test ran".to_owned()),
        true => Outcome::Passed(seen),
        false => Outcome::Failed(format!("{}; {seen}", failed.join(", "))),
    }
}

fn cargo(root: &Path, args: &[&str]) -> Outcome {
    process::show(&mut process::cargo(root, args)).into()
}

/// Names the file in which `chappe_testkit::skip` collects skipped tests.
const SKIPPED_FILE: &str = "CHAPPE_SKIPPED";

/// Totals over what the test programs print.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Why tests were skipped, one entry for each.
    skipped: Vec<String>,
}

impl Tally {
    /// Adds a line such as `test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; ...`, or `skipped: no iperf3`
    /// of a program without a harness, whose output is shown.
    fn add(&mut self, line: &str) {
        if let Some(reason) = line.trim().strip_prefix("skipped: ") {
            self.skipped.push(reason.to_owned());
        }
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let words: Vec<&str> = result.split([' ', ';']).filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            let count: u64 = pair[0].parse().unwrap_or(0);
            match pair[1] {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_collected_under_one_name() {
        assert_eq!(SKIPPED_FILE, chappe_testkit::SKIPPED_FILE);
    }

    #[test]
    fn closing_lines_add_up() {
        let mut total = Tally::default();
        total.add("test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        total.add("test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured");
        total.add("test tests::seven_passed ... ok");
        total.add("  skipped: there is no ping");
        let expected = Tally {
            passed: 9,
            failed: 3,
            ignored: 1,
            skipped: vec!["there is no ping".to_owned()],
        };
        assert_eq!(total, expected);
    }
}
