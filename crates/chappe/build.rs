//! Tells the program which commit it is made of, for the provenance of its results.

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new("../..");
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git")
            .current_dir(root)
            .args(arguments)
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let dirty =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
    println!("cargo::rustc-env=CHAPPE_COMMIT={commit}");
    println!("cargo::rustc-env=CHAPPE_DIRTY={dirty}");
    for watched in [
        "../../.git/HEAD",
        "../../.git/logs/HEAD",
        "..",
        "../../Cargo.lock",
    ] {
        if Path::new(watched).exists() {
            println!("cargo::rerun-if-changed={watched}");
        }
    }
}
