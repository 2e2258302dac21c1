//! One test program for each crate.
//!
//! Every file directly under `tests/` is a program that is compiled and linked by itself, and programs run one after another.
//! So a crate's integration tests are modules of one program. Tests that cannot share a process are programs of their own:
//! those without a harness, and those that define a global allocator.

use super::Finding;
use crate::source;
use crate::workspace::{Package, Target, Workspace};

/// Crates with more than one test program that share a harness.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.members {
        let programs: Vec<&str> = package
            .targets
            .iter()
            .filter(|target| target.kind == "test")
            .filter(|target| could_be_joined(target, package, workspace))
            .map(|target| target.file.as_str())
            .collect();
        if programs.len() > 1 {
            let what = format!(
                "has several test programs ({}): make them modules of tests/suite/main.rs",
                programs.join(", ")
            );
            findings.push(Finding::new(&package.folder, what));
        }
    }
    findings
}

fn could_be_joined(target: &Target, package: &Package, workspace: &Workspace) -> bool {
    let manifest = workspace.text(&format!("{}/Cargo.toml", package.folder));
    let without_harness = manifest.is_some_and(|text| has_no_harness(text, &target.name));
    let code = source::code_only(workspace.text(&target.file).unwrap_or_default());
    !without_harness && !code.contains("#[global_allocator]")
}

/// Whether the `[[test]]` of this name says `harness = false`.
pub fn has_no_harness(manifest: &str, name: &str) -> bool {
    let blocks = manifest.split("[[test]]").skip(1);
    // A block ends at the next header.
    let mut blocks = blocks.map(|block| block.split("\n[").next().unwrap_or_default());
    let name = format!("name = \"{name}\"");
    blocks.any(|block| {
        let has = |line: &str| block.lines().any(|other| other.trim() == line);
        has(&name) && has("harness = false")
    })
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn crates_have_one_test_program_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn a_second_test_program_is_found() {
        let find = |manifest: &str, second: &str| {
            let mut workspace = planted::file("crates/novelty/Cargo.toml", manifest);
            let file = planted::file("crates/novelty/tests/second.rs", second);
            workspace.files.extend(file.files);
            let mut member = planted::member("crates/novelty", "lab");
            for (name, file) in [("suite", "suite/main.rs"), ("second", "second.rs")] {
                member.targets.push(Target {
                    kind: "test".to_owned(),
                    name: name.to_owned(),
                    file: format!("crates/novelty/tests/{file}"),
                });
            }
            workspace.members.push(member);
            rule(&workspace).len()
        };
        let harness = "[[test]]\nname = \"second\"\nharness = false\n\n[lints]\n";
        let of_another = "[[test]]\nname = \"second\"\n\n[[test]]\nname = \"x\"\nharness = false\n";
        assert_eq!(find("", ""), 1);
        assert_eq!(find(harness, ""), 0);
        assert_eq!(find(of_another, ""), 1);
        assert_eq!(find("", "#[global_allocator]\nstatic A: Counting;"), 0);
        assert_eq!(find("", "// #[global_allocator]\n"), 1);
    }
}
