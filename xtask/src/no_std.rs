//! The proofs that the rooms from `core` to the protocols need no operating system.
//!
//! `proof/no-std` uses `core`, `wire`, `coding` and `mac` and has no allocator; `proof/no-std-alloc` adds the
//! protocol crates over an allocator of its own. Each is a static library with its own panic handler. It builds
//! only if nothing below asks for `std`; then the archive must not leave open any symbol that an operating
//! system would have to give.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::report::Outcome;
use crate::workspace::Workspace;

/// Cortex-M4, the processor of common 802.15.4 radios, with and without its floating-point unit.
const MICROCONTROLLERS: [&str; 2] = ["thumbv7em-none-eabihf", "thumbv7em-none-eabi"];

/// Symbols that a compiler takes for granted even without an operating system: moving and comparing memory.
const FREESTANDING: &[&str] = &["memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen"];

/// The rooms that allocate nothing, built and linked without an allocator.
pub fn without_allocator(workspace: &Workspace) -> Outcome {
    proof(workspace, "no-std").into()
}

/// The protocols, over an allocator of the proof's own.
pub fn with_allocator(workspace: &Workspace) -> Outcome {
    proof(workspace, "no-std-alloc").into()
}

/// Both proofs for a microcontroller, where the compiler has its core library.
pub fn on_microcontroller(workspace: &Workspace) -> Outcome {
    let installed = |target: &&str| {
        let args = ["--print", "target-libdir", "--target", target];
        let library = process::first_line("rustc", &args, &workspace.root);
        library.is_some_and(|folder| Path::new(&folder).is_dir())
    };
    let Some(target) = MICROCONTROLLERS.into_iter().find(installed) else {
        let [first, _] = MICROCONTROLLERS;
        return Outcome::Skipped(format!("needs `rustup target add {first}`"));
    };
    for name in ["no-std", "no-std-alloc"] {
        if let Err(why) = build(workspace, name, Some(target)) {
            return Outcome::Failed(format!("{name}: {why}"));
        }
    }
    Outcome::Passed(format!("both proofs build for {target}"))
}

fn proof(workspace: &Workspace, name: &str) -> Result<String, String> {
    let archive = build(workspace, name, None)?;
    if !process::exists("nm") {
        return Ok("built; symbols not looked at, since there is no nm (binutils)".to_owned());
    }
    let symbols = |which| {
        let mut nm = Command::new("nm");
        nm.args(["--format=posix", "--quiet", which]).arg(&archive);
        process::take(&mut nm, Duration::from_secs(60)).map(|text| names(&text))
    };
    let (defined, wanted) = (symbols("--defined-only")?, symbols("--undefined-only")?);
    if !defined
        .iter()
        .any(|symbol| symbol.starts_with("chappe_proof"))
    {
        return Err(format!("{} has no chappe_proof in it", archive.display()));
    }
    let open = open_symbols(&defined, &wanted);
    match open.is_empty() {
        true => Ok(format!(
            "{} symbols, none from an operating system",
            defined.len()
        )),
        false => Err(format!(
            "wants from an operating system: {}",
            open.join(" ")
        )),
    }
}

/// Builds a proof with the versions of the workspace's own lock file, and gives the archive.
fn build(workspace: &Workspace, name: &str, target: Option<&str>) -> Result<PathBuf, String> {
    let folder = workspace.root.join("proof").join(name);
    fs::copy(workspace.root.join("Cargo.lock"), folder.join("Cargo.lock"))
        .map_err(|why| format!("Cargo.lock: {why}"))?;
    let mut built = workspace.target.join("xtask").join(name);
    let mut cargo = process::cargo(&folder, ["build", "--release", "--quiet", "--target-dir"]);
    cargo.arg(&built);
    if let Some(target) = target {
        cargo.args(["--target", target]);
        built.push(target);
    }
    process::show(&mut cargo)?;
    let library = format!("lib{}_proof.a", name.replace('-', "_"));
    Ok(built.join("release").join(library))
}

/// The first column of `nm --format=posix`, without the lines that name archive members.
fn names(text: &str) -> BTreeSet<String> {
    let symbols = text.lines().filter(|line| !line.ends_with(':'));
    symbols
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

fn open_symbols(defined: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Vec<String> {
    let foreign = wanted.difference(defined);
    let open = foreign.filter(|name| !FREESTANDING.contains(&name.as_str()));
    open.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_to_the_system_is_found() {
        let defined = names("libx.a[x.o]:\nchappe_proof T 0 10\nhelper t 10 4\n");
        let wanted = names("libx.a[y.o]:\nhelper U\nmemcpy U\nmalloc U\n");
        assert_eq!(defined.len(), 2);
        assert_eq!(open_symbols(&defined, &wanted), ["malloc"]);
    }
}
