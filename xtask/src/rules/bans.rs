//! Clocks, entropy, threads, the environment and hash-ordered collections are banned below the media.
//!
//! Each room of [`super::rooms::NO_STD`] has a `clippy.toml` that names them. `no_std` already keeps them out of
//! the libraries; the file also covers the host programs beside a library (tests, benchmarks), which must say so
//! where they read a clock, and it stays in force should a room ever need `std`.

use super::{Finding, rooms};
use crate::workspace::Workspace;

/// What every such `clippy.toml` must name.
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

/// Rooms whose `clippy.toml` is missing or names too little.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for room in rooms::NO_STD {
        if workspace
            .text(&format!("crates/{room}/Cargo.toml"))
            .is_none()
        {
            continue;
        }
        let path = format!("crates/{room}/clippy.toml");
        match workspace.text(&path) {
            None => findings.push(Finding::new(
                path,
                "is missing; copy the one of crates/core",
            )),
            Some(text) => {
                let named = |path: &str| text.contains(&format!("path = \"{path}\""));
                let missing = BANNED.iter().filter(|banned| !named(banned));
                findings.extend(
                    missing.map(|banned| Finding::new(&path, format!("does not ban {banned}"))),
                );
            }
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
    fn every_room_bans_them_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn a_missing_ban_is_found() {
        let mut workspace = planted::file("crates/mac/Cargo.toml", "");
        assert_eq!(rule(&workspace).len(), 1);
        let text = "{ path = \"std::time::Instant\" }";
        let clippy = planted::file("crates/mac/clippy.toml", text);
        workspace.files.extend(clippy.files);
        assert_eq!(rule(&workspace).len(), BANNED.len() - 1);
    }

    /// Goal: the file that the rooms carry really stops each banned thing. Method: a package with one use of
    /// each, under a copy of that file, given to clippy.
    #[test]
    fn the_ban_bites() {
        let workspace = Workspace::load().unwrap();
        if process::cargo(&workspace.root, ["clippy", "--version"])
            .output()
            .map_or(true, |output| !output.status.success())
        {
            println!("skipped: cargo has no clippy here");
            return;
        }
        let folder = workspace.target.join("xtask").join("ban");
        fs::create_dir_all(folder.join("src")).unwrap();
        let manifest = "[package]\nname = \"ban\"\nedition = \"2024\"\n[workspace]\n";
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::write(folder.join("src/lib.rs"), offences()).unwrap();
        let bans = workspace.text("crates/core/clippy.toml").unwrap();
        fs::write(folder.join("clippy.toml"), bans).unwrap();

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
