//! Who may depend on whom.
//!
//! The table of [`super::roles`] is the design: `core <- wire <- mac <- protocols`, `coding` beside them; a protocol never
//! knows another protocol or a medium; a medium never knows a protocol or a MAC. Lab crates join media and MACs and know no
//! protocol; a `lab-<system>` joins them with its protocol and knows no other system; a `paper-<system>` makes the figures of
//! one system; `chappe` knows all. Tests may look
//! sideways and up to the simulator, but never to another protocol. Exceptions are declared by the crate that needs them.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::roles::Role;
use crate::workspace::{Kind, Package, Workspace};

/// Crates whose purpose is the operating system. Only a member of role `os` may use one directly.
const SYSTEM: &[&str] = &[
    "libc",
    "rustix",
    "nix",
    "socket2",
    "mio",
    "tokio",
    "async-std",
    "smol",
    "rtnetlink",
    "tun",
    "tun-tap",
    "pcap",
    "pnet",
    "windows-sys",
];

/// Dependencies between members that neither the role nor an exception allows.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    workspace
        .members
        .iter()
        .flat_map(|package| of(package, workspace))
        .collect()
}

fn of(package: &Package, workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A missing role is a finding of the roles' own rule.
    let Some(role) = Role::of(package) else {
        return findings;
    };
    let mut find = |what| findings.push(Finding::new(&package.name, what));
    let mut joined: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for dependency in &package.dependencies {
        let name = &dependency.name;
        let Some(other) = workspace.member(name) else {
            continue;
        };
        let other = Role::of(other);
        let for_tests = dependency.kind == Kind::Dev;
        let named =
            package.also.contains(name) || (for_tests && package.also_for_tests.contains(name));
        let allowed = match (other, for_tests) {
            (Some(other), false) => role.may_use(other),
            (Some(other), true) => role.tests_may_use(other),
            (None, _) => false,
        };
        if !named && !allowed {
            find(format!(
                "{} {name}, which its role does not allow",
                if for_tests { "tests with" } else { "builds on" }
            ));
        }
        if let Some(other) = other
            && !named
            && role.joins_one(other)
        {
            joined.entry(other.name()).or_default().insert(name);
        }
    }
    for (kind, names) in joined.iter().filter(|(_, names)| names.len() > 1) {
        let names: Vec<&str> = names.iter().copied().collect();
        find(format!(
            "joins several members of role {kind} ({}): name all but its own in `also`",
            names.join(", ")
        ));
    }
    findings
}

/// Members that use the operating system directly and are not of role `os`.
pub fn system_rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    let members = workspace.members.iter();
    for package in members.filter(|p| Role::of(p) != Some(Role::Os)) {
        for dependency in &package.dependencies {
            if dependency.kind == Kind::Normal && SYSTEM.contains(&dependency.name.as_str()) {
                findings.push(Finding::new(
                    &package.name,
                    format!(
                        "builds on {}: system calls belong to crates/sys",
                        dependency.name
                    ),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::workspace::Dependency;

    /// How many findings this workspace has if `name` gets one more dependency.
    fn findings(name: &str, kind: Kind, dependency: &str) -> usize {
        let mut workspace = planted::here().clone();
        let mut members = workspace.members.iter_mut();
        let package = members.find(|package| package.name == name).unwrap();
        package.dependencies.push(Dependency {
            name: dependency.to_owned(),
            kind,
        });
        rule(&workspace).len() + system_rule(&workspace).len()
    }

    #[test]
    fn dependencies_point_down_here() {
        planted::holds_here(rule);
        planted::holds_here(system_rule);
    }

    #[test]
    fn wrong_directions_are_found() {
        for (name, dependency) in [
            ("chappe-core", "chappe-mac"),
            ("chappe-core", "libc"),
            ("chappe-wire", "chappe-mac"),
            ("chappe-mac", "chappe-sim"),
            ("chappe-pacifier", "chappe-wildnet"),
            ("chappe-pacifier", "chappe-sim"),
            ("chappe-pacifier", "chappe-testkit"),
            ("chappe-sim", "chappe-mac"),
            ("chappe-sim", "chappe-sys"),
            ("chappe-sim", "chappe-pacifier"),
            ("chappe-bound", "chappe-sim"),
            ("chappe-lab", "chappe"),
            ("chappe-lab", "chappe-pacifier"),
            ("chappe-lab", "chappe-lab-p3"),
            ("chappe-lab-p3", "chappe-pacifier"),
            ("chappe-lab-p3", "chappe-lab-pacifier"),
            ("chappe-lab-p3", "chappe-paper-p3"),
            ("chappe-paper-p3", "chappe-lab-pacifier"),
            ("chappe-paper-p3", "chappe-paper-pacifier"),
            ("chappe-link", "chappe-pacifier"),
            ("chappe-live", "libc"),
            ("xtask", "chappe-core"),
        ] {
            assert_eq!(
                findings(name, Kind::Normal, dependency),
                1,
                "{name} {dependency}"
            );
        }
    }

    #[test]
    fn right_directions_are_not() {
        for (name, dependency) in [
            ("chappe-mac", "chappe-wire"),
            ("chappe-pacifier", "chappe-coding"),
            ("chappe-sim", "chappe-wire"),
            ("chappe-lab-pacifier", "chappe-pacifier"),
            ("chappe-lab-dpclo", "chappe-tcplp"),
            ("chappe", "chappe-lab-pacifier"),
            ("chappe", "chappe-lab"),
            ("chappe-sys", "libc"),
            ("chappe-core", "libm"),
        ] {
            assert_eq!(
                findings(name, Kind::Normal, dependency),
                0,
                "{name} {dependency}"
            );
        }
    }

    #[test]
    fn tests_may_look_up_to_the_air_but_not_at_other_protocols() {
        assert_eq!(findings("chappe-mac", Kind::Dev, "chappe-sim"), 0);
        assert_eq!(findings("chappe-sim", Kind::Dev, "chappe-mac"), 0);
        assert_eq!(findings("chappe-pacifier", Kind::Dev, "chappe-sim"), 0);
        assert_eq!(findings("chappe-pacifier", Kind::Dev, "chappe-dpclo"), 1);
        assert_eq!(findings("chappe-sim", Kind::Dev, "chappe-pacifier"), 1);
        assert_eq!(findings("chappe-mac", Kind::Dev, "libc"), 0);
    }

    /// A new crate is judged by its role alone, with no edit here.
    #[test]
    fn a_crate_that_nobody_knew_is_judged() {
        let judge = |role, also: &[&str]| {
            let mut workspace = planted::here().clone();
            let mut member = planted::member("crates/novelty", role);
            planted::depends(&mut member, "chappe-p3");
            planted::depends(&mut member, "chappe-tcplp");
            member.also = also.iter().map(|&name| name.to_owned()).collect();
            workspace.members.push(member);
            rule(&workspace).len()
        };
        assert_eq!(judge("command", &[]), 0);
        assert_eq!(judge("system", &["chappe-tcplp"]), 0);
        assert_eq!(judge("system", &[]), 1);
        assert_eq!(judge("protocol", &[]), 2);
        assert_eq!(judge("lab", &["chappe-p3"]), 1);
    }
}
