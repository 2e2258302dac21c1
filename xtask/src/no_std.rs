//! The proofs that the crates from `core` to the protocols need no operating system.
//!
//! `proof/no-std` uses `core`, `wire`, `coding` and `mac` and has no allocator; `proof/no-std-alloc` adds the
//! protocol crates over an allocator of its own. Each is a static library with its own panic handler. It builds
//! only if nothing below asks for `std`; then it is linked into a program without a C library, which fails if
//! anything is left that an operating system would have to give; then it is called from C, and must not give zero.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::report::Outcome;
use crate::targets;
use crate::workspace::Workspace;

/// What a compiler takes for granted even without an operating system: moving and comparing memory.
const FREESTANDING: [&str; 6] = ["memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen"];
/// The unwinder, which the compiler's own routines (division of 128-bit numbers) name as they come for this processor. A panic of the
/// proofs ends them, so nothing calls it.
const UNWINDER: &str = "-Wl,--defsym=rust_eh_personality=0";

/// The crates that do not allocate, built and linked without an allocator.
pub fn without_allocator(workspace: &Workspace) -> Outcome {
    proof(workspace, "no-std").into()
}

/// The protocols, over the proof's own allocator.
pub fn with_allocator(workspace: &Workspace) -> Outcome {
    proof(workspace, "no-std-alloc").into()
}

/// Both proofs for other processors, as far as the compiler has their core library.
pub fn on_other_processors(workspace: &Workspace) -> Outcome {
    let (there, missing) = targets::PROOFS
        .into_iter()
        .partition::<Vec<&str>, _>(|target| targets::is_installed(target, &workspace.root));
    if there.is_empty() {
        return Outcome::Skipped(format!("needs `rustup target add {}`", missing.join(" ")));
    }
    for target in &there {
        for name in ["no-std", "no-std-alloc"] {
            if let Err(why) = build(workspace, name, Some(target)) {
                return Outcome::Failed(format!("{name} for {target}: {why}"));
            }
        }
    }
    match missing.is_empty() {
        true => Outcome::Passed(format!("built for {}", there.join(" "))),
        false => Outcome::Passed(format!(
            "built for {}; not installed: {}",
            there.join(" "),
            missing.join(" ")
        )),
    }
}

fn proof(workspace: &Workspace, name: &str) -> Result<String, String> {
    let archive = build(workspace, name, None)?;
    if !process::exists("cc") {
        return Ok("built, but not linked: there is no cc".to_owned());
    }
    let program = archive.with_extension("linked");
    link(&archive, &program)?;
    let size = fs::metadata(&program).map_err(|why| why.to_string())?.len();
    call(&archive)?;
    Ok(format!(
        "links without a system ({} kB) and works",
        size / 1000
    ))
}

/// Calls `chappe_proof` in a program of the host's.
fn call(archive: &Path) -> Result<(), String> {
    let caller = archive.with_extension("c");
    let code = "unsigned long long chappe_proof(unsigned long long);\n\
                int main(void) { return chappe_proof(1) == 0; }\n";
    fs::write(&caller, code).map_err(|why| why.to_string())?;
    let program = archive.with_extension("called");
    let mut cc = Command::new("cc");
    process::show(
        cc.arg(UNWINDER)
            .arg("-o")
            .arg(&program)
            .arg(&caller)
            .arg(archive),
    )?;
    process::show(&mut Command::new(&program)).map_err(|why| format!("chappe_proof fails: {why}"))
}

/// Makes a program of `chappe_proof` and what it calls, with no library but the archive.
fn link(archive: &Path, program: &Path) -> Result<(), String> {
    let mut flags = "-Wl,--gc-sections,-e,chappe_proof,-u,chappe_proof".to_owned();
    for symbol in FREESTANDING {
        flags.push_str(&format!(",--defsym={symbol}=0"));
    }
    let mut cc = Command::new("cc");
    cc.args([
        "-nostdlib",
        "-nostartfiles",
        "-static",
        UNWINDER,
        &flags,
        "-o",
    ]);
    process::show(cc.arg(program).arg(archive))
}

/// Builds a proof with the versions of the workspace's own lock file, and gives the archive.
fn build(workspace: &Workspace, name: &str, target: Option<&str>) -> Result<PathBuf, String> {
    let folder = workspace.root.join("proof").join(name);
    fs::copy(workspace.root.join("Cargo.lock"), folder.join("Cargo.lock"))
        .map_err(|why| format!("Cargo.lock: {why}"))?;
    let mut built = workspace.stand_alone_target();
    let mut cargo = process::cargo(&folder, ["build", "--release", "--quiet", "--target-dir"]);
    cargo.arg(&built);
    if let Some(target) = target {
        // Nothing of these is linked or run.
        cargo.args(["--target", target]).args(process::UNOPTIMISED);
        built.push(target);
    }
    process::show(&mut cargo)?;
    let library = format!("lib{}_proof.a", name.replace('-', "_"));
    Ok(built.join("release").join(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the linking step tells a program that needs the system from one that does not. Method: both, in C.
    #[test]
    fn a_call_to_the_system_is_found() {
        if !process::exists("cc") {
            return chappe_testkit::skip("there is no cc");
        }
        let folder = Workspace::load().unwrap().target.join("xtask/link");
        fs::create_dir_all(&folder).unwrap();
        let links = |name: &str, body: &str| {
            let [source, object, program] =
                ["c", "o", "linked"].map(|end| folder.join(name).with_extension(end));
            fs::write(&source, format!("void *{name}(unsigned long); {body}")).unwrap();
            let mut cc = Command::new("cc");
            cc.arg("-c").arg(&source).arg("-o").arg(&object);
            process::show(&mut cc).unwrap();
            link(&object, &program).is_ok()
        };
        assert!(links("memset", "int chappe_proof(void) { return 0; }"));
        assert!(!links(
            "malloc",
            "int chappe_proof(void) { return malloc(1) != 0; }"
        ));
    }
}
