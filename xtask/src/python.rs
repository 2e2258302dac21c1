//! `cargo xtask python`: the wheel of `bindings/python`, built and tested in an environment under `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::report::Outcome;
use crate::terminal;
use crate::workspace::{self, Workspace};

/// The folder of the Python package.
const FOLDER: &str = "bindings/python";
/// What it is built and tested with, by version.
const TOOLS: &str = "bindings/python/tests/requirements.txt";
/// Prints nothing, and fails, where Python is too old or cannot make environments.
const SUITABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// `cargo xtask python`: builds and tests the wheel.
pub fn alone() -> Result<(), String> {
    match made(&workspace::root()?) {
        Outcome::Failed(why) => Err(why),
        Outcome::Skipped(why) => {
            println!("skipped: {why}");
            Ok(())
        }
        Outcome::Passed(seen) => {
            println!("{seen}");
            Ok(())
        }
    }
}

/// Builds the wheel and runs its tests; skipped where Python or its packages are missing.
pub fn wheel(workspace: &Workspace) -> Outcome {
    made(&workspace.root)
}

fn made(root: &Path) -> Outcome {
    let environment = match prepared(root) {
        Ok(environment) => environment,
        Err(why) => return Outcome::Skipped(why),
    };
    // A test compares the same protocol in Rust.
    let mut rust = process::cargo(root, ["build", "--release", "--quiet"]);
    rust.args(["--package", "trickle"]);
    if let Err(why) = process::show(&mut rust) {
        return Outcome::Failed(format!("cargo build: {why}"));
    }
    let done = built(root, &environment, None).and_then(|wheel| {
        let mut install = environment.pip(["install", "--quiet", "--no-deps", "--force-reinstall"]);
        process::show(install.arg(wheel))?;
        tested(root, &environment)
    });
    match done {
        Ok(seen) => Outcome::Passed(seen),
        Err(why) => Outcome::Failed(format!("{FOLDER}: {why}")),
    }
}

/// A virtual environment of Python.
struct Environment(PathBuf);

impl Environment {
    /// `python -m NAME`: scripts of an environment that was copied from elsewhere start the Python of the place it came from, with the
    /// packages there.
    fn module(&self, name: &str) -> Command {
        let programs = self.0.join("bin");
        let mut command = Command::new(programs.join("python"));
        command.args(["-m", name]);
        let mut path = programs.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path).env("VIRTUAL_ENV", &self.0);
        process::forget_package(&mut command);
        command
    }

    fn pip<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = self.module("pip");
        command.arg("--disable-pip-version-check");
        command.args(arguments);
        command
    }
}

/// The environment with its tools, or what is missing for it.
fn prepared(root: &Path) -> Result<Environment, String> {
    let suitable = Command::new("python3").args(["-c", SUITABLE]).status();
    if !suitable.is_ok_and(|status| status.success()) {
        return Err("no Python 3.10 with venv: `apt-get install python3-venv`".to_owned());
    }
    let environment = Environment(root.join("target/python-venv"));
    let (asked, there) = (root.join(TOOLS), environment.0.join("requirements.txt"));
    let asked_text = fs::read_to_string(&asked).map_err(|error| format!("{TOOLS}: {error}"))?;
    if fs::read_to_string(&there).is_ok_and(|text| text == asked_text) {
        return Ok(environment);
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&environment.0);
    process::show(&mut make).map_err(|why| format!("python3 -m venv: {why}"))?;
    let mut install = environment.pip(["install", "--quiet", "--requirement"]);
    // A registry that is away is not a defect of the code under test.
    process::show(install.arg(&asked)).map_err(|why| format!("pip install {TOOLS}: {why}"))?;
    fs::write(&there, asked_text).map_err(|error| format!("{}: {error}", there.display()))?;
    Ok(environment)
}

/// Builds the wheel with this program in it.
pub fn with_program(root: &Path, program: &Path) -> Result<PathBuf, String> {
    built(root, &prepared(root)?, Some(program))
}

/// The wheel, in a folder that holds no other, with a given program or one that is built for it.
fn built(
    root: &Path,
    environment: &Environment,
    program: Option<&Path>,
) -> Result<PathBuf, String> {
    let folder = root.join("target/wheels");
    // An older wheel may be missing.
    let _ = fs::remove_dir_all(&folder);
    let mut build = environment.pip(["wheel", "--quiet", "--no-deps", "--no-build-isolation"]);
    build.arg("--wheel-dir").arg(&folder).arg(root.join(FOLDER));
    if let Some(program) = program {
        build.env("CHAPPE_PROGRAM", program);
    }
    process::show(&mut build).map_err(|why| format!("the wheel: {why}"))?;
    let files = fs::read_dir(&folder).map_err(|error| error.to_string())?;
    let wheel = files.flatten().map(|entry| entry.path()).next();
    wheel.ok_or_else(|| "no wheel was made".to_owned())
}

/// Checks the types of the package and of its example, and the stubs against the compiled module.
fn typed(root: &Path, environment: &Environment) -> Result<(), String> {
    let folder = root.join(FOLDER);
    let cache = root.join("target/mypy");
    let mut types = environment.module("mypy");
    types.arg("--cache-dir").arg(&cache);
    types.args(["python/chappe", "examples/trickle.py"]);
    process::show(types.current_dir(&folder)).map_err(|why| format!("mypy: {why}"))?;
    let mut stubs = environment.module("mypy.stubtest");
    process::show(stubs.arg("chappe._chappe").current_dir(&folder))
        .map_err(|why| format!("the stubs: {why}"))
}

/// What the tests say in their last line.
fn tested(root: &Path, environment: &Environment) -> Result<String, String> {
    typed(root, environment)?;
    let mut test = environment.module("pytest");
    // The examples in the package's own documentation run as well.
    test.args(["--quiet", "-p", "no:cacheprovider", "--doctest-modules"]);
    test.args(["--pyargs", "chappe", "tests"]);
    let out = process::take(
        test.current_dir(root.join(FOLDER)),
        Duration::from_secs(900),
    )
    .map_err(|why| format!("the tests: {why}"))?;
    terminal::say(&out);
    let last = out.lines().rev().find(|line| !line.trim().is_empty());
    Ok(last.unwrap_or_default().to_owned())
}
