//! A program that was built is started, one for another processor under QEMU's emulation of it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process;

use super::TARGETS;

/// A simulation takes some seconds under emulation, and minutes beside other work.
const LIMIT: Duration = Duration::from_secs(600);

/// A run that is the same on every processor, with its digest.
const RUN: [&str; 6] = [
    "sim",
    "examples/p3-line.toml",
    "--seed",
    "1",
    "--quiet",
    "--json",
];

/// Starts the program at `path`, built with `feature` for `target`, and says what it did; nothing if this machine cannot start it. The whole
/// program also simulates: its digest must be that of the program for this processor, if that is there.
pub fn start(root: &Path, path: &Path, feature: &str, target: &str) -> Result<String, String> {
    let Some(emulator) = emulator(target) else {
        return Ok(", not started: needs qemu-user-static".to_owned());
    };
    let how = emulator.map_or(String::new(), |emulator| format!(" under {emulator}"));
    let run = |args: &[&str]| {
        let mut command = match emulator {
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(path);
                command
            }
            None => Command::new(path),
        };
        process::take(command.current_dir(root).args(args), LIMIT)
    };
    let version = run(&["--version"])?;
    if !version.starts_with("chappe") {
        return Err(format!("starts, but calls itself {version}"));
    }
    if feature != "full" {
        return Ok(format!(", starts{how}"));
    }
    let digest = digest(&run(&RUN)?)?;
    let own = path.to_string_lossy().replace(target, TARGETS[0]);
    if emulator.is_some() && Path::new(&own).is_file() {
        let own = process::take(Command::new(own).current_dir(root).args(RUN), LIMIT)?;
        if self::digest(&own)? != digest {
            return Err(format!("simulates{how} with another digest: {digest}"));
        }
    }
    Ok(format!(", simulates{how}, digest {digest}"))
}

/// The program that runs those of `target`: `Some(None)` if this processor does, `None` if there is none.
fn emulator(target: &str) -> Option<Option<&'static str>> {
    let processor = target.split('-').next().unwrap_or(target);
    if processor == std::env::consts::ARCH {
        return Some(None);
    }
    let names = match processor {
        "aarch64" => ["qemu-aarch64-static", "qemu-aarch64"],
        "armv7" => ["qemu-arm-static", "qemu-arm"],
        "mipsel" => ["qemu-mipsel-static", "qemu-mipsel"],
        _ => return None,
    };
    let found = names.into_iter().find(|name| process::exists(name));
    found.map(Some)
}

/// The digest in a run's JSON.
fn digest(json: &str) -> Result<String, String> {
    let (_, rest) = json
        .split_once("\"digest\"")
        .ok_or("its report has no digest")?;
    let digest = rest.split('"').nth(1);
    digest
        .map(str::to_owned)
        .ok_or_else(|| "its report has no digest".to_owned())
}
