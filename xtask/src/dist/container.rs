//! The container's image, and its program started from it.

use std::process::Command;
use std::time::Duration;

use super::{Dist, TARGETS};
use crate::process;
use crate::report::Outcome;

const LIMIT: Duration = Duration::from_secs(600);

/// The image's name while it is tried.
const IMAGE: &str = "localhost/chappe-dist-trial";

/// Starts the program from the image's own files, with nothing else there: this way needs no control groups, which `podman run` does.
const START: &str = r#"
set -e
root=$(mktemp -d)
container=$(podman create "$1")
podman export "$container" | tar --extract --directory "$root"
podman rm "$container" >/dev/null
unshare --root "$root" /chappe --version
rm -r "$root"
"#;

/// Builds the image of [Containerfile](../../../packaging/Containerfile) with the program for this processor, and starts it.
pub fn make(dist: &Dist<'_>) -> Outcome {
    let program = dist.path_of("chappe", TARGETS[0]);
    if !program.is_file() {
        return Outcome::Skipped(format!("there is no program for {}", TARGETS[0]));
    }
    for needed in ["podman", "unshare", "tar"] {
        if !process::exists(needed) {
            return Outcome::Skipped(format!("needs {needed}"));
        }
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let mut build = Command::new("podman");
    build
        .args(["build", "--quiet", "--build-arg"])
        .arg(format!("PROGRAM={name}"))
        .args(["--tag", IMAGE, "--file"])
        .arg(dist.workspace.root.join("packaging/Containerfile"))
        .arg(&dist.out);
    if let Err(why) = process::take(&mut build, LIMIT) {
        return Outcome::Failed(why);
    }
    let mut start = Command::new("sh");
    let started = process::take(start.args(["-c", START, "start", IMAGE]), LIMIT);
    let _ = process::take(Command::new("podman").args(["rmi", IMAGE]), LIMIT);
    Outcome::from(started.map(|version| format!("starts: {}", version.trim())))
}
