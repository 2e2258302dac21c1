//! The compiler targets that some steps need: core libraries of processors without an operating system.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::report::Outcome;

/// Cortex-M4 without its floating-point unit: the firmware's processor.
pub const FIRMWARE: &str = "thumbv7em-none-eabi";

/// What the `no_std` proofs are built for: Cortex-M4, the processor of common 802.15.4 radios, with its floating-point unit
/// (the firmware goes without), and the 64-bit ARM of routers, which has its own vector instructions.
pub const PROOFS: [&str; 2] = ["thumbv7em-none-eabihf", "aarch64-unknown-none"];

/// Time for downloads on a slow connection.
const LIMIT: Duration = Duration::from_secs(300);

/// Installs the missing targets with rustup, where that is allowed (`may_install`) and possible. Otherwise reports what
/// is missing; the steps that need a target skip themselves.
pub fn install(root: &Path, may_install: bool) -> Outcome {
    let missing = missing(root);
    if missing.is_empty() {
        return Outcome::Passed("all installed".to_owned());
    }
    let command = format!("rustup target add {}", missing.join(" "));
    if !may_install {
        return Outcome::Skipped(format!(
            "missing: run `{command}`, or `cargo xtask test --install`"
        ));
    }
    if !process::exists("rustup") {
        return Outcome::Skipped(format!("missing: {}; needs rustup", missing.join(" ")));
    }
    // Cargo sets RUSTUP_TOOLCHAIN, so this is the toolchain that builds.
    let mut rustup = Command::new("rustup");
    let added = process::take(rustup.args(["target", "add"]).args(&missing), LIMIT);
    match added {
        Ok(_) => Outcome::Passed(format!("installed {}", missing.join(" "))),
        // A server that is away is not a defect of the code under test.
        Err(why) => Outcome::Skipped(format!("`{command}` failed: {why}")),
    }
}

/// Installs those of `targets` that rustup has and that are missing.
pub fn add(root: &Path, targets: &[&str]) -> Outcome {
    let missing: Vec<&str> = targets
        .iter()
        .copied()
        .filter(|t| !is_installed(t, root))
        .collect();
    if missing.is_empty() {
        return Outcome::Passed("all installed".to_owned());
    }
    if !process::exists("rustup") {
        return Outcome::Skipped("needs rustup".to_owned());
    }
    // One by one: a target that is not to be had does not keep the others away.
    let mut without = Vec::new();
    for target in missing {
        let mut rustup = Command::new("rustup");
        if process::take(rustup.args(["target", "add", target]), LIMIT).is_err() {
            without.push(target);
        }
    }
    match without.is_empty() {
        true => Outcome::Passed("installed".to_owned()),
        false => Outcome::Skipped(format!("not to be had: {}", without.join(", "))),
    }
}

/// Whether the compiler has the core library of a target.
pub fn is_installed(target: &str, root: &Path) -> bool {
    let args = ["--print", "target-libdir", "--target", target];
    process::first_line("rustc", &args, root).is_some_and(|folder| Path::new(&folder).is_dir())
}

fn missing(root: &Path) -> Vec<&'static str> {
    let all = PROOFS.into_iter().chain([FIRMWARE]);
    all.filter(|target| !is_installed(target, root)).collect()
}
