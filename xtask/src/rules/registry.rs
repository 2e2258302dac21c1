//! What crates.io and docs.rs show of a library is there, and is true.

use super::{Finding, roles};
use crate::workspace::{Package, Workspace};

/// Each library that a registry may have is described, can be found by words and categories, has the category `no-std` exactly if its role
/// runs without an operating system, which a proof shows, and has pages with all its features.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let bare = roles::bare(workspace).filter(|package| package.hosted.is_none());
    let bare: Vec<&str> = bare.map(|bare| &*bare.name).collect();
    let libraries = workspace
        .members
        .iter()
        .filter(|package| package.publishable);
    libraries
        .flat_map(|library| missing(workspace, library, bare.contains(&&*library.name)))
        .collect()
}

/// What is built and linked without an operating system.
const PROOFS: [&str; 3] = [
    "proof/no-std/Cargo.toml",
    "proof/no-std-alloc/Cargo.toml",
    "proof/p3-relay/Cargo.toml",
];

/// Whether a manifest depends on this package.
fn names(workspace: &Workspace, manifest: &str, package: &str) -> bool {
    let text = workspace.text(manifest).unwrap_or_default();
    let mut lines = text.lines();
    lines
        .any(|line| line.starts_with(package) && line[package.len()..].starts_with([' ', '.', '=']))
}

fn missing(workspace: &Workspace, library: &Package, is_bare: bool) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", library.folder);
    let text = workspace.text(&manifest).unwrap_or_default();
    let has = |line: &str| text.lines().any(|other| other.starts_with(line));
    let mut findings = Vec::new();
    let mut want = |holds: bool, what: &str| {
        if !holds {
            findings.push(Finding::new(&manifest, what));
        }
    };
    for key in ["description", "keywords", "categories"] {
        want(
            has(&format!("{key} = ")),
            &format!("has no `{key}`, by which crates.io shows and finds it"),
        );
    }
    want(
        !is_bare
            || PROOFS
                .iter()
                .any(|proof| names(workspace, proof, &library.name)),
        "is in no proof that it needs no operating system: add it to one, or say in `hosted` what it needs one for",
    );
    let says = text
        .lines()
        .any(|line| line.starts_with("categories = ") && line.contains("\"no-std\""));
    want(
        says == is_bare,
        match is_bare {
            true => "runs without an operating system: name the category \"no-std\"",
            false => "names the category \"no-std\", which its role does not promise",
        },
    );
    want(
        text.contains("[package.metadata.docs.rs]\nall-features = true\n"),
        "write `[package.metadata.docs.rs]` and `all-features = true` below it",
    );
    findings
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::workspace::TextFile;

    #[test]
    fn libraries_are_ready_for_a_registry_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn a_library_that_is_not_ready_is_found() {
        let find = |role: &str, publishable: bool, text: &str, proof: Option<&str>| {
            let mut workspace = planted::file("crates/novelty/Cargo.toml", text);
            let mut member = planted::member("crates/novelty", role);
            member.publishable = publishable;
            workspace.members.push(member);
            workspace.files.extend(proof.map(|text| TextFile {
                path: PROOFS[0].to_owned(),
                text: text.to_owned(),
            }));
            rule(&workspace).len()
        };
        let proven = Some("chappe-novelty = { path = \"../../crates/novelty\" }\n");
        let whole = "description = \"x\"\nkeywords = []\ncategories = [\"algorithms\", \"no-std\"]\n[package.metadata.docs.rs]\nall-features = true\n";
        assert_eq!(find("protocol", true, whole, proven), 0);
        assert_eq!(find("protocol", true, whole, None), 1);
        let other = Some("chappe-novelty-two = \"1\"\n");
        assert_eq!(find("protocol", true, whole, other), 1);
        assert_eq!(find("simulator", true, whole, None), 1);
        assert_eq!(
            find("protocol", true, &whole.replace(", \"no-std\"", ""), proven),
            1
        );
        assert_eq!(find("protocol", true, "", proven), 5);
        assert_eq!(find("protocol", false, "", None), 0);
    }
}
