//! P³ as firmware for a Cortex-M4, run by QEMU and compared with the same program run here.
//!
//! `proof/p3-relay` prints every frame that its nodes send. Lines that begin with `#` are what QEMU counted, and are
//! shown.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::report::{Outcome, Report};
use crate::workspace::Workspace;

const TARGET: &str = "thumbv7em-none-eabi";
const QEMU: &str = "qemu-system-arm";
/// The board, its processor, one nanosecond of its time per instruction, and output through the debugger's calls.
const BOARD: [&str; 15] = [
    "-machine",
    "mps2-an386",
    "-icount",
    "shift=0",
    "-display",
    "none",
    "-serial",
    "none",
    "-monitor",
    "none",
    "-chardev",
    "stdio,id=out",
    "-semihosting-config",
    "enable=on,target=native,chardev=out",
    "-kernel",
];
/// It takes a second.
const LIMIT: Duration = Duration::from_secs(120);

/// `cargo xtask firmware`: this step alone.
pub fn alone() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let mut report = Report::new();
    report.step("firmware", || firmware(&workspace, false));
    report.close()
}

/// Builds both programs, runs them and compares what they print. In CI the target is installed first if it is missing.
pub fn firmware(workspace: &Workspace, in_ci: bool) -> Outcome {
    let root = &workspace.root;
    if in_ci && !has_target(root) {
        let mut rustup = Command::new("rustup");
        // Without a network the step says below what is missing.
        let _ = process::show(rustup.args(["target", "add", TARGET]));
    }
    if !has_target(root) {
        return Outcome::Skipped(format!("needs `rustup target add {TARGET}`"));
    }
    if !process::exists(QEMU) {
        return Outcome::Skipped(format!("needs {QEMU}"));
    }
    compare(workspace).into()
}

fn has_target(root: &Path) -> bool {
    let args = ["--print", "target-libdir", "--target", TARGET];
    process::first_line("rustc", &args, root).is_some_and(|folder| Path::new(&folder).is_dir())
}

fn compare(workspace: &Workspace) -> Result<String, String> {
    let folder = workspace.root.join("proof/p3-relay");
    fs::copy(workspace.root.join("Cargo.lock"), folder.join("Cargo.lock"))
        .map_err(|why| format!("Cargo.lock: {why}"))?;
    let built = workspace.target.join("xtask/p3-relay");
    let build = |program: &str, target: &[&str]| {
        let args = ["build", "--release", "--quiet", "--bin", program];
        let mut cargo = process::cargo(&folder, args);
        process::show(cargo.arg("--target-dir").arg(&built).args(target))
    };
    build("native", &[])?;
    build("firmware", &["--target", TARGET])?;
    let here = process::take(&mut Command::new(built.join("release/native")), LIMIT)?;
    let mut qemu = Command::new(QEMU);
    qemu.args(BOARD)
        .arg(built.join(TARGET).join("release/firmware"));
    let there = process::take(&mut qemu, LIMIT)?;
    let (counted, sent): (Vec<&str>, Vec<&str>) =
        there.lines().partition(|line| line.starts_with('#'));
    judge(&here, &sent)?;
    for line in &counted {
        println!("{line}");
    }
    Ok(format!("{} frames, the same on both", sent.len() - 1))
}

/// Both programs print the same frames, and that the object arrived.
fn judge(here: &str, there: &[&str]) -> Result<(), String> {
    let here: Vec<&str> = here.lines().collect();
    let mut pairs = here.iter().zip(there).enumerate();
    if let Some((at, (one, other))) = pairs.find(|(_, (one, other))| one != other) {
        return Err(format!("line {}: here {one}, on the board {other}", at + 1));
    }
    if here.len() != there.len() {
        return Err(format!(
            "{} lines here, {} on the board",
            here.len(),
            there.len()
        ));
    }
    match here.last() {
        Some(end) if here.len() > 100 && end.contains("complete: true") => Ok(()),
        end => Err(format!("the transfer failed: {end:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_failures_are_found() {
        let mut lines = vec!["frame"; 120];
        lines.push("Some(End { complete: true })");
        let here = lines.join("\n");
        assert_eq!(judge(&here, &lines), Ok(()));
        assert!(judge(&here, &lines[..120]).is_err());
        let mut other = lines.clone();
        other[7] = "another frame";
        assert!(judge(&here, &other).unwrap_err().starts_with("line 8"));
        let failed = here.replace("true", "false");
        assert!(judge(&failed, &failed.lines().collect::<Vec<_>>()).is_err());
    }
}
