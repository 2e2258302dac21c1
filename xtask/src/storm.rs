//! `cargo xtask storm`: builds and starts `crates/storm`, which knows the systems.

use crate::process;
use crate::report::Outcome;
use crate::workspace::{self, Workspace};

/// Seconds of the step in `cargo xtask test`.
const SHORT_S: &str = "40";

/// Runs the storm with the user's options.
pub fn alone(options: &[String]) -> Result<(), String> {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    run(&workspace::root()?, &options)
}

/// A short storm over all systems, from seed 1 on. All failures are printed and counted; only panics,
/// accounts that do not balance, results that contradict themselves and runs that do not repeat fail the step.
pub fn short(workspace: &Workspace) -> Outcome {
    run(&workspace.root, &["--seconds", SHORT_S, "--only-sure"]).into()
}

fn run(root: &std::path::Path, options: &[&str]) -> Result<(), String> {
    let mut args = vec!["run", "--release", "--quiet", "-p", "chappe-storm", "--"];
    args.extend(options);
    process::show(&mut process::cargo(root, &args))
}
