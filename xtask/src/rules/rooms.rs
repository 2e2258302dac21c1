//! Every room under `crates/` has one shape, and the rooms that run on a microcontroller say so.

use super::Finding;
use crate::source;
use crate::workspace::Workspace;

/// The rooms from `core` to the protocols: no operating system below them.
pub const NO_STD: [&str; 9] = [
    "core", "wire", "coding", "mac", "p3", "pacifier", "tcplp", "wildnet", "dpclo",
];

/// Names, licence, edition, lints and a README, the same in every room.
pub fn shape(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.members {
        let Some(folder) = package.folder.strip_prefix("crates/") else {
            continue;
        };
        let mut want = |holds: bool, what: String| {
            if !holds {
                findings.push(Finding::new(&package.folder, what));
            }
        };
        let name = match folder {
            "chappe" => "chappe".to_owned(),
            _ => format!("chappe-{folder}"),
        };
        want(
            package.name == name,
            format!("the package must be called {name}"),
        );
        let library = name.replace('-', "_");
        let named = |(kind, name): &(String, String)| kind != "lib" || *name == library;
        want(
            package.targets.iter().all(named),
            format!("the library must be called {library}"),
        );
        want(
            package.licence.as_deref() == Some("MIT OR Apache-2.0"),
            "write `license.workspace = true`".to_owned(),
        );
        want(
            package.edition == "2024",
            "write `edition.workspace = true`".to_owned(),
        );
        want(
            package.rust_version == "1.95",
            "write `rust-version.workspace = true`".to_owned(),
        );
        let manifest = workspace.text(&format!("{}/Cargo.toml", package.folder));
        want(
            manifest.is_some_and(|text| text.contains("[lints]\nworkspace = true")),
            "write `[lints]` and `workspace = true` below it".to_owned(),
        );
        let readme = workspace.text(&format!("{}/README.md", package.folder));
        want(
            readme.is_some_and(|text| text.lines().count() >= 5),
            "needs a README.md: what it is, its status, what it does not do".to_owned(),
        );
    }
    findings
}

/// `#![no_std]` without a condition, and no `std` outside tests.
pub fn no_std(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for room in NO_STD {
        let library = format!("crates/{room}/src/lib.rs");
        let Some(text) = workspace.text(&library) else {
            continue;
        };
        let code = source::code_only(text);
        if !code.lines().any(|line| line.trim() == "#![no_std]") {
            findings.push(Finding::new(&library, "has no unconditional `#![no_std]`"));
        }
        let folder = format!("crates/{room}/src/");
        for file in &workspace.files {
            let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
            if !file.path.starts_with(&folder) || !file.path.ends_with(".rs") || is_test {
                continue;
            }
            let code = source::code_only(&file.text);
            for (line, word, _) in source::words(source::before_tests(&code)) {
                if word == "std" {
                    findings.push(Finding::new(
                        format!("{}:{line}", file.path),
                        "uses std outside its tests; take core or alloc",
                    ));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn rooms_have_one_shape_here() {
        planted::holds_here(shape);
    }

    #[test]
    fn rooms_are_no_std_here() {
        planted::holds_here(no_std);
    }

    #[test]
    fn a_room_with_std_is_found() {
        let find = |text| no_std(&planted::file("crates/mac/src/lib.rs", text)).len();
        assert_eq!(find("#![no_std]\n"), 0);
        assert_eq!(find("//! #![no_std]\n"), 1);
        assert_eq!(find("#![cfg_attr(not(test), no_std)]\n"), 1);
        assert_eq!(find("#![no_std]\nextern crate std;\n"), 1);
        assert_eq!(
            find("#![no_std]\n#[cfg(test)]\nmod tests { extern crate std; }\n"),
            0
        );
    }

    #[test]
    fn a_room_of_another_shape_is_found() {
        let mut workspace = Workspace::load().unwrap();
        workspace.members.retain(|p| p.name == "chappe-core");
        assert!(shape(&workspace).is_empty());
        workspace.members[0].name = "core".to_owned();
        assert_eq!(shape(&workspace).len(), 1);
        workspace.files.clear();
        assert_eq!(shape(&workspace).len(), 3);
    }
}
