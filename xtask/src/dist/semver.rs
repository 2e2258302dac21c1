//! Whether a library's interface changed more than its version says, against the newest release.

use std::time::Duration;

use super::Dist;
use crate::process;
use crate::report::Outcome;

/// It builds the documentation of each library twice.
const LIMIT: Duration = Duration::from_secs(3600);

/// Compares all libraries with the newest tag `v…`, by `cargo semver-checks`.
pub fn check(dist: &Dist<'_>, libraries: &[&str]) -> Outcome {
    let root = &dist.workspace.root;
    let newest = ["describe", "--tags", "--abbrev=0", "--match", "v*"];
    let Some(release) = process::first_line("git", &newest, root) else {
        return Outcome::Skipped("there is no release yet to compare with: no tag `v*`".into());
    };
    if !process::exists("cargo-semver-checks") {
        return Outcome::Skipped("needs `cargo install cargo-semver-checks`".into());
    }
    let mut check = process::cargo(root, ["semver-checks", "--baseline-rev", &release]);
    for library in libraries {
        check.args(["--package", library]);
    }
    let compared = process::take(&mut check, LIMIT);
    Outcome::from(compared.map(|_| format!("{} libraries with {release}", libraries.len())))
}
