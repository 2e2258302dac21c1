//! Licences of what we build on, and versions that come twice.

use super::Finding;
use crate::workspace::Workspace;

/// What cargo-deny checks. The licences there are those that this rule allows.
const DENY: &str = include_str!("../../../deny.toml");

/// Whether `deny.toml` allows the licence of this name.
fn is_allowed(name: &str) -> bool {
    let list = DENY.split_once("\nallow = [");
    let list = list.and_then(|(_, rest)| rest.split_once(']'));
    list.is_some_and(|(list, _)| list.split('"').skip(1).step_by(2).any(|is| is == name))
}

/// Packages whose licence expression the list cannot satisfy.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.foreign {
        let licence = package.licence.as_deref().unwrap_or_default();
        if !allows(licence) {
            let place = format!("{} {}", package.name, package.version);
            findings.push(Finding::new(
                place,
                format!("licence `{licence}` is not on the list"),
            ));
        }
    }
    findings
}

/// Packages of which more than one version is built, as `name 1.0 2.0`.
pub fn duplicates(workspace: &Workspace) -> Vec<String> {
    let mut packages: Vec<(&str, &str)> = Vec::new();
    packages.extend(
        workspace
            .foreign
            .iter()
            .map(|p| (p.name.as_str(), p.version.as_str())),
    );
    packages.sort_unstable();
    let same_name = packages.chunk_by(|a, b| a.0 == b.0);
    let twice = same_name.filter(|versions| versions.len() > 1);
    twice
        .map(|versions| {
            let mut words = vec![versions[0].0];
            words.extend(versions.iter().map(|(_, version)| version));
            words.join(" ")
        })
        .collect()
}

/// Whether an SPDX expression can be satisfied from the allowed licences. `/` is the old way to write `OR`.
fn allows(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    let holds = any_of(&mut words);
    holds && words.is_empty()
}

fn any_of(words: &mut Vec<&str>) -> bool {
    let mut holds = all_of(words);
    while words.last() == Some(&"OR") {
        words.pop();
        holds |= all_of(words);
    }
    holds
}

fn all_of(words: &mut Vec<&str>) -> bool {
    let mut holds = one(words);
    while words.last() == Some(&"AND") {
        words.pop();
        holds &= one(words);
    }
    holds
}

fn one(words: &mut Vec<&str>) -> bool {
    match words.pop() {
        Some("(") => {
            let holds = any_of(words);
            holds & (words.pop() == Some(")"))
        }
        Some(name) if words.last() == Some(&"WITH") => {
            words.pop();
            let exception = words.pop().unwrap_or_default();
            is_allowed(&format!("{name} WITH {exception}"))
        }
        Some(name) => is_allowed(name),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn licences_are_free_ones_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn expressions_are_understood() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
            "GPL-2.0 OR (BSD-3-Clause AND ISC)",
        ] {
            assert!(allows(good), "{good}");
        }
        for bad in [
            "",
            "MPL-2.0",
            "GPL-3.0-only",
            "MIT AND GPL-3.0",
            "GPL-3.0 WITH LLVM-exception",
            "(MIT",
            "MIT MIT",
        ] {
            assert!(!allows(bad), "{bad}");
        }
    }

    #[test]
    fn a_version_that_comes_twice_is_reported() {
        let package = |name: &str, version: &str| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            ..Package::default()
        };
        let workspace = Workspace {
            foreign: vec![
                package("syn", "2.0.1"),
                package("libm", "0.2"),
                package("syn", "1.0"),
            ],
            ..Workspace::default()
        };
        assert_eq!(duplicates(&workspace), ["syn 1.0 2.0.1"]);
        assert_eq!(rule(&workspace).len(), 3, "no licence is no permission");
    }
}
