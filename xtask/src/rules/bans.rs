//! Clocks, entropy, threads, the environment and hash-ordered collections are banned below the media.
//!
//! Each bare crate ([`super::roles::Role::is_bare`]) has a `clippy.toml` that names them, a copy of `bans.toml` beside this
//! file: clippy looks for it in the crate's folder and above, where one file would bind the media too. `no_std` already
//! keeps these things out of the libraries; the file also covers the host programs beside a library (tests, benchmarks),
//! which must say where they read a clock, and it stays in force if a crate ever needs `std`.

use super::{Finding, roles};
use crate::workspace::Workspace;

/// What the `clippy.toml` of every bare crate holds.
const BANS: &str = include_str!("bans.toml");
const SOURCE: &str = "xtask/src/rules/bans.toml";

/// What the bans must cover; a test has clippy find each.
#[cfg(test)]
const BANNED: &[&str] = &[
    "std::time::Instant",
    "std::time::SystemTime",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::hash::RandomState",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::env::var",
    "std::env::args",
    "std::process::Command",
    "std::fs::File",
    "std::net::UdpSocket",
    "std::net::TcpStream",
];

/// Bare crates whose `clippy.toml` is missing or differs from the source.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in roles::bare(workspace) {
        let path = format!("{}/clippy.toml", package.folder);
        if workspace.text(&path) != Some(BANS) {
            findings.push(Finding::new(path, format!("must be a copy of {SOURCE}")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::planted;
    use super::*;
    use crate::process;

    #[test]
    fn every_bare_crate_bans_them_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn a_missing_or_different_copy_is_found() {
        let find = |role, path, text: &str| {
            let mut workspace = planted::file(path, text);
            workspace
                .members
                .push(planted::member("crates/novelty", role));
            rule(&workspace).len()
        };
        let path = "crates/novelty/clippy.toml";
        assert_eq!(find("protocol", path, BANS), 0);
        assert_eq!(find("protocol", path, &BANS[1..]), 1);
        assert_eq!(find("protocol", "clippy.toml", BANS), 1);
        assert_eq!(find("medium", "clippy.toml", BANS), 0);
    }

    /// Goal: the bans really stop each banned thing. Method: a package with one use of
    /// each, under a copy of that file, given to clippy.
    #[test]
    fn the_ban_bites() {
        let workspace = planted::here();
        if process::cargo(&workspace.root, ["clippy", "--version"])
            .output()
            .map_or(true, |output| !output.status.success())
        {
            return chappe_testkit::skip("cargo has no clippy here");
        }
        let folder = workspace.target.join("xtask").join("ban");
        fs::create_dir_all(folder.join("src")).unwrap();
        let manifest = "[package]\nname = \"ban\"\nedition = \"2024\"\n[workspace]\n";
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::write(folder.join("src/lib.rs"), offences()).unwrap();
        fs::write(folder.join("clippy.toml"), BANS).unwrap();

        let mut clippy = process::cargo(&folder, ["clippy", "--quiet", "--offline"]);
        clippy
            .args(["--target-dir", "target", "--", "-Dwarnings"])
            .env_remove("CLIPPY_CONF_DIR");
        let output = clippy.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "clippy let every offence pass");
        for banned in BANNED {
            let named = ["type", "method"].map(|kind| format!("disallowed {kind} `{banned}`"));
            assert!(
                named.iter().any(|n| said.contains(n)),
                "{banned} was let pass:\n{said}"
            );
        }
    }

    /// One use of each banned thing.
    fn offences() -> String {
        let is_function = |path: &str| {
            let name = path.rsplit("::").next().unwrap_or_default();
            name.starts_with(char::is_lowercase)
        };
        let mut source = String::from("#![allow(unused_must_use)]\n");
        for (number, path) in BANNED.iter().enumerate() {
            let body = match *path {
                "std::thread::spawn" => "std::thread::spawn(|| ());".to_owned(),
                "std::thread::sleep" => {
                    "std::thread::sleep(core::time::Duration::ZERO);".to_owned()
                }
                "std::env::var" => "std::env::var(\"X\");".to_owned(),
                "std::env::args" => "std::env::args();".to_owned(),
                path if is_function(path) => panic!("no offence is written for {path}"),
                "std::collections::HashMap" => {
                    "None::<std::collections::HashMap<u8, u8>>;".to_owned()
                }
                path => format!(
                    "None::<{path}>;",
                    path = path.replace("HashSet", "HashSet::<u8>")
                ),
            };
            source.push_str(&format!("pub fn offence_{number}() {{ {body} }}\n"));
        }
        source
    }
}
