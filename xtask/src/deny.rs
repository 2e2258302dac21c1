//! Licences, versions that come twice, sources and advisories of everything that is built on, by cargo-deny.

use std::path::Path;

use crate::process;
use crate::report::Outcome;
use crate::tool::Tool;

const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    features: &[],
    cost: "some minutes of processor time",
};

/// Checks `deny.toml`. Advisories need the database of RustSec, which is fetched from GitHub: without it they are left out, and the note
/// says so.
pub fn check(root: &Path) -> Outcome {
    let program = match CARGO_DENY.program(root) {
        Ok(program) => program,
        Err(why) => return Outcome::Skipped(format!("cargo-deny cannot be built: {why}")),
    };
    let run = |which: &[&str]| {
        let mut deny = std::process::Command::new(&program);
        deny.current_dir(root)
            .args(["--all-features", "check"])
            .args(which);
        process::show(&mut deny)
    };
    if let Err(why) = run(&["--hide-inclusion-graph", "licenses", "bans", "sources"]) {
        return Outcome::Failed(why);
    }
    let fetched = std::process::Command::new(&program)
        .current_dir(root)
        .arg("fetch")
        .output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        let note = "licences, bans and sources; advisories not: their database cannot be fetched";
        return Outcome::Passed(note.to_owned());
    }
    match run(&["advisories"]) {
        Ok(()) => Outcome::Passed("licences, bans, sources, advisories".to_owned()),
        Err(why) => Outcome::Failed(why),
    }
}
