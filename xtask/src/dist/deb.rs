//! The Debian package: the command, units, manual pages, completions, and a user for the services.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Dist, TARGETS};
use crate::process;
use crate::report::Outcome;

/// Compressing takes ten seconds of processor time, and minutes beside other work.
const LIMIT: Duration = Duration::from_secs(1800);
/// Debian's name of the processor of the first target.
pub const ARCHITECTURE: &str = "amd64";
/// Shells, and where Debian's packages put their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/chappe"),
    ("zsh", "usr/share/zsh/vendor-completions/_chappe"),
    ("fish", "usr/share/fish/vendor_completions.d/chappe.fish"),
];

/// The file of the package of `version`.
pub fn path(dist: &Dist<'_>, version: &str) -> PathBuf {
    dist.out
        .join(format!("chappe_{version}_{ARCHITECTURE}.deb"))
}

pub fn make(dist: &Dist<'_>, version: &str) -> Outcome {
    let program = dist.path_of("chappe", TARGETS[0]);
    if !program.is_file() {
        return Outcome::Skipped(format!("there is no program for {}", TARGETS[0]));
    }
    if !process::exists("dpkg-deb") {
        return Outcome::Skipped("needs dpkg-deb".into());
    }
    Outcome::from(build(dist, version, &program))
}

/// Builds the package of `version` into the folder of all that is shipped.
pub fn build(dist: &Dist<'_>, version: &str, program: &Path) -> Result<String, String> {
    let tree = dist.workspace.root.join("target/deb");
    let _ = fs::remove_dir_all(&tree);
    let put = |from: &Path, to: &str, mode: &str| {
        let to = tree.join(to);
        let mut install = Command::new("install");
        process::take(install.args(["-D", "-m", mode]).arg(from).arg(to), LIMIT).map(drop)
    };
    let packaging = dist.workspace.root.join("packaging");
    put(program, "usr/bin/chappe", "755")?;
    let mut chappe = Command::new(program);
    let units = tree.join("usr/lib/systemd/system");
    process::take(chappe.args(["generate", "units"]).arg(units), LIMIT)?;
    for script in ["postinst", "prerm", "postrm"] {
        put(
            &packaging.join("debian").join(script),
            &format!("DEBIAN/{script}"),
            "755",
        )?;
    }
    for page in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
        let to = format!("usr/share/doc/chappe/{page}");
        put(&dist.workspace.root.join(page), &to, "644")?;
    }
    for (shell, to) in COMPLETIONS {
        let mut chappe = Command::new(program);
        let text = process::take(chappe.args(["generate", "completions", shell]), LIMIT)?;
        write(&tree.join(to), &text)?;
    }
    let man = tree.join("usr/share/man/man1");
    let mut chappe = Command::new(program);
    process::take(chappe.args(["generate", "man"]).arg(&man), LIMIT)?;
    for entry in fs::read_dir(&man)
        .map_err(|error| error.to_string())?
        .flatten()
    {
        // -n: without a time, so that two builds are equal.
        process::take(Command::new("gzip").args(["-9n"]).arg(entry.path()), LIMIT)?;
    }
    write(&tree.join("DEBIAN/control"), &control(version, &tree)?)?;
    let package = path(dist, version);
    // Beside the tree, so that a package that is there is complete.
    let part = tree.with_extension("part");
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--build", "--root-owner-group"])
        .arg(&tree)
        .arg(&part);
    process::take(&mut deb, LIMIT)?;
    fs::rename(&part, &package).map_err(|error| format!("{}: {error}", package.display()))?;
    let size = fs::metadata(&package)
        .map_err(|error| error.to_string())?
        .len();
    Ok(format!("{:.2} MB", size as f64 / 1e6))
}

fn control(version: &str, tree: &Path) -> Result<String, String> {
    let mut du = Command::new("du");
    let kilobytes = process::take(du.args(["-sk"]).arg(tree), LIMIT)?;
    let kilobytes = kilobytes.split_whitespace().next().unwrap_or("0");
    Ok(format!(
        "Package: chappe
Version: {version}
Architecture: {ARCHITECTURE}
Maintainer: The Chappe developers <chappe@localhost>
Installed-Size: {kilobytes}
Pre-Depends: passwd
Section: net
Priority: optional
Description: bulk data, reliably, over lossy multi-hop radio
 Sends files to many hosts, hides the packet loss of a link, routes a mesh,
 and simulates, emulates and compares the protocols that do so.
"
    ))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}
