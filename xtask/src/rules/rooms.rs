//! Every crate under `crates/` has the same shape, and those that run on a microcontroller are `no_std` and do not panic.

use super::{Finding, roles};
use crate::source;
use crate::workspace::{Target, Workspace};

/// The lints that keep a library from panicking, denied at the top of its `lib.rs` (its tests may panic).
const NO_PANIC: [&str; 3] = [
    "clippy::unwrap_used",
    "clippy::expect_used",
    "clippy::panic",
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
        let named = |target: &Target| target.kind != "lib" || target.name == library;
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
            "needs a README.md: what it is, how to use it, its scope and limits".to_owned(),
        );
    }
    findings
}

/// `#![no_std]` without a condition, no `std` outside tests, and the lints of [`NO_PANIC`].
pub fn no_std(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in roles::bare(workspace) {
        let library = format!("{}/src/lib.rs", package.folder);
        let text = workspace.text(&library).unwrap_or_default();
        let code = source::code_only(text);
        if !code.lines().any(|line| line.trim() == "#![no_std]") {
            findings.push(Finding::new(&library, "has no unconditional `#![no_std]`"));
        }
        let denied = denied_outside_tests(&code);
        for lint in NO_PANIC.iter().filter(|lint| !denied.contains(**lint)) {
            let what = format!("write `#![cfg_attr(not(test), deny({lint}))]`");
            findings.push(Finding::new(&library, what));
        }
        let folder = format!("{}/src/", package.folder);
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

/// What stands in `#![cfg_attr(not(test), deny(...))]`, without white space.
fn denied_outside_tests(code: &str) -> String {
    let dense: String = code.split_whitespace().collect();
    let mut denied = String::new();
    for rest in dense.split("#![cfg_attr(not(test),deny(").skip(1) {
        denied.push_str(rest.split(']').next().unwrap_or_default());
    }
    denied
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn crates_have_one_shape_here() {
        planted::holds_here(shape);
    }

    #[test]
    fn bare_crates_are_no_std_here() {
        planted::holds_here(no_std);
    }

    #[test]
    fn a_bare_crate_with_std_or_panics_is_found() {
        const QUIET: &str = "#![cfg_attr(\n    not(test),\n    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)\n)]\n";
        let find = |role, text: &str| {
            let mut workspace = planted::file("crates/novelty/src/lib.rs", text);
            workspace
                .members
                .push(planted::member("crates/novelty", role));
            no_std(&workspace).len()
        };
        let quiet = |text| find("protocol", &format!("{QUIET}{text}"));
        assert_eq!(quiet("#![no_std]\n"), 0);
        assert_eq!(quiet("//! #![no_std]\n"), 1);
        assert_eq!(quiet("#![cfg_attr(not(test), no_std)]\n"), 1);
        assert_eq!(quiet("#![no_std]\nextern crate std;\n"), 1);
        let in_tests = "#![no_std]\n#[cfg(test)]\nmod tests { extern crate std; }\n";
        assert_eq!(quiet(in_tests), 0);
        assert_eq!(find("protocol", "#![no_std]\n"), NO_PANIC.len());
        assert_eq!(find("lab", "use std::fs;\n"), 0);
        let missing = planted::members([planted::member("crates/novelty", "mac")]);
        assert_eq!(no_std(&missing).len(), 1 + NO_PANIC.len());
    }

    #[test]
    fn a_crate_of_another_shape_is_found() {
        let mut workspace = planted::here().clone();
        workspace.members.retain(|p| p.name == "chappe-core");
        assert!(shape(&workspace).is_empty());
        workspace.members[0].name = "core".to_owned();
        assert_eq!(shape(&workspace).len(), 1);
        workspace.files.clear();
        assert_eq!(shape(&workspace).len(), 3);
    }
}
