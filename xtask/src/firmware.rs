//! Firmware for a Cortex-M4, run by QEMU and compared with the same program run here.
//!
//! The programs print every frame or segment that their nodes send. Lines that begin with `#` are what QEMU counted, and
//! are shown.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::elf::Elf;
use crate::process;
use crate::report::{Outcome, Report};
use crate::targets::{self, FIRMWARE as TARGET};
use crate::terminal;
use crate::workspace::Workspace;

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
/// An application over TCP and UDP, and its visitor.
pub const THERMOMETER: &str = "firmware/thermometer";
/// A client's session of TLS with a recorded server.
pub const TLS: &str = "proof/tls-session";
/// P³'s roles for such a board.
pub const PIPELINE: &str = "firmware/pipeline";
/// The packages that are run, and what each prints a line for.
const IMAGES: [(&str, &str); 5] = [
    ("proof/p3-relay", "frames"),
    ("proof/tcplp-two-sockets", "segments"),
    (THERMOMETER, "frames"),
    (PIPELINE, "frames"),
    (TLS, "octets"),
];
/// The images for a board that one can buy: package and program.
const FOR_BOARDS: [(&str, &str); 4] = [
    (THERMOMETER, "nrf52840"),
    (PIPELINE, "relay"),
    (PIPELINE, "source"),
    (PIPELINE, "destination"),
];
/// How a line begins that says that a goal was missed.
const MISSED: &str = "# missed";
/// A transfer takes seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// `cargo xtask firmware`: this step alone.
pub fn alone() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let mut report = Report::new();
    report.step("firmware", || firmware(&workspace));
    report.close()
}

/// Runs every image here and on the board, and compares what they send.
pub fn firmware(workspace: &Workspace) -> Outcome {
    if !targets::is_installed(TARGET, &workspace.root) {
        return Outcome::Skipped(format!("needs `rustup target add {TARGET}`"));
    }
    if !can_run() {
        return Outcome::Skipped(format!("needs {QEMU}"));
    }
    both(workspace).into()
}

fn both(workspace: &Workspace) -> Result<String, String> {
    let mut seen = Vec::new();
    for (folder, what) in IMAGES {
        let run = compare(workspace, folder)?;
        run.counted
            .iter()
            .for_each(|line| terminal::say(&format!("{line}\n")));
        if let Some(missed) = run.counted.iter().find(|line| line.starts_with(MISSED)) {
            return Err(format!("{folder}: {missed}"));
        }
        seen.push(format!("{} {what}", run.sent));
    }
    for line in weigh(workspace)? {
        terminal::say(&format!("# {line}\n"));
    }
    Ok(format!("{}, the same on both", seen.join(", ")))
}

/// Builds the images for boards, and says what each takes.
pub fn weigh(workspace: &Workspace) -> Result<Vec<String>, String> {
    let line = |(folder, program): (&str, &str)| {
        let elf = Image::build(workspace, folder, &[program], &[])?.elf(program)?;
        let (flash, ram) = (elf.loaded(), elf.variables());
        Ok(format!(
            "{folder}, {program} for the nRF52840: {flash} octets of flash, {ram} of RAM beside the stack"
        ))
    };
    FOR_BOARDS.into_iter().map(line).collect()
}

/// Whether there is something to run it on.
pub fn can_run() -> bool {
    process::exists(QEMU)
}

/// Programs of a package outside the workspace, built with the workspace's own versions. They are run or weighed before
/// the next package is built, whose programs may have the same names.
pub struct Image {
    built: PathBuf,
}

impl Image {
    /// Builds `programs` of the package in `folder` for the board, with these further arguments.
    pub fn build(
        workspace: &Workspace,
        folder: &str,
        programs: &[&str],
        more: &[&str],
    ) -> Result<Image, String> {
        let args = [&["--target", TARGET], more].concat();
        let built = build(workspace, folder, programs, &args)?;
        Ok(Image {
            built: built.join(TARGET).join("release"),
        })
    }

    fn path(&self, program: &str) -> PathBuf {
        self.built.join(program)
    }

    /// A program's file, to be weighed.
    pub fn elf(&self, program: &str) -> Result<Elf, String> {
        let bytes = fs::read(self.path(program)).map_err(|why| format!("{program}: {why}"))?;
        Elf::parse(bytes).map_err(|why| format!("{program}: {why}"))
    }
}

/// Builds programs of a package and returns the folder of all that is built.
fn build(
    workspace: &Workspace,
    folder: &str,
    programs: &[&str],
    more: &[&str],
) -> Result<PathBuf, String> {
    let package = workspace.root.join(folder);
    fs::copy(
        workspace.root.join("Cargo.lock"),
        package.join("Cargo.lock"),
    )
    .map_err(|why| format!("Cargo.lock: {why}"))?;
    let mut cargo = process::cargo(&package, ["build", "--release", "--quiet"]);
    programs.iter().for_each(|program| {
        cargo.args(["--bin", program]);
    });
    let built = workspace.stand_alone_target();
    process::show(cargo.arg("--target-dir").arg(&built).args(more))?;
    Ok(built)
}

/// Builds a package's `native`. It runs for a moment and is not weighed, so nothing is optimised.
fn native(workspace: &Workspace, folder: &str) -> Result<PathBuf, String> {
    let built = build(workspace, folder, &["native"], &process::UNOPTIMISED)?;
    Ok(built.join("release/native"))
}

/// A program that printed the same here and on the board.
pub struct Run {
    /// Number of frames or segments sent.
    pub sent: usize,
    /// The lines of what was counted.
    pub counted: Vec<String>,
}

/// Builds a package's `native` and `firmware`, runs both and compares what they print.
pub fn compare(workspace: &Workspace, folder: &str) -> Result<Run, String> {
    let native = native(workspace, folder)?;
    let image = Image::build(workspace, folder, &["firmware"], &[])?;
    let here = process::take(&mut Command::new(native), LIMIT)?;
    let mut qemu = Command::new(QEMU);
    let there = process::take(qemu.args(BOARD).arg(image.path("firmware")), LIMIT)?;
    let (counted, sent): (Vec<&str>, Vec<&str>) =
        there.lines().partition(|line| line.starts_with('#'));
    judge(&here, &sent).map_err(|why| format!("{folder}: {why}"))?;
    Ok(Run {
        sent: sent
            .iter()
            .filter(|line| !line.contains("complete"))
            .count(),
        counted: counted.into_iter().map(str::to_owned).collect(),
    })
}

/// Both programs print the same, and that what was sent arrived.
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
