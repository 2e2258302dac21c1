//! What each member of the workspace is.
//!
//! A member declares its role in its own `Cargo.toml`:
//!
//! ```toml
//! [package.metadata.chappe]
//! role = "system"
//! # TCP is what the paper compares with.
//! also = ["chappe-tcplp"]
//! ```
//!
//! The role decides which members it may build on ([`super::direction`]) and whether it must run without an operating
//! system ([`Role::is_bare`]). `also` names members that this one may use although its role may not, `also-for-tests`
//! those that only its tests may; a comment above either says why. A member without a role fails the check, so a new
//! crate needs no edit in this package.

use super::Finding;
use crate::workspace::{Package, Workspace};

/// The role of a member, and its name in `Cargo.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Types, wire formats and arithmetic.
    Foundation,
    /// The medium access control of a radio.
    Mac,
    /// One protocol as a state machine.
    Protocol,
    /// Upper bounds on what a network can carry.
    Bound,
    /// The only crate that makes system calls.
    Os,
    /// The deterministic radio simulator.
    Simulator,
    /// Carries nodes in real time.
    Medium,
    /// What all experiments share.
    Lab,
    /// Joins `lab` with one protocol.
    System,
    /// The figures of one system's paper.
    Paper,
    /// Joins one protocol and one medium for daily use.
    Daemon,
    /// Joins one protocol and the tasks of a microcontroller's program.
    Firmware,
    /// Joins everything for a user.
    Command,
    /// Gives the command's library to another language.
    Binding,
    /// For tests, examples and benchmarks.
    Testkit,
    /// Shows users how to write a part.
    Example,
    /// Feeds the other members hostile input.
    Fuzz,
    /// Developer commands that must work when nothing else builds.
    Tool,
}

use Role::*;

/// All roles by name, and the roles whose members they may build on.
const ROLES: &[(&str, Role, &[Role])] = &[
    ("foundation", Foundation, &[Foundation]),
    ("mac", Mac, &[Foundation]),
    ("protocol", Protocol, &[Foundation, Mac]),
    ("bound", Bound, &[Foundation]),
    ("os", Os, &[Foundation]),
    ("simulator", Simulator, &[Foundation]),
    ("medium", Medium, &[Foundation, Os, Simulator]),
    (
        "lab",
        Lab,
        &[Foundation, Mac, Bound, Os, Simulator, Medium, Lab],
    ),
    (
        "system",
        System,
        &[Foundation, Mac, Protocol, Bound, Simulator, Lab],
    ),
    (
        "paper",
        Paper,
        &[Foundation, Mac, Protocol, Bound, Simulator, Lab, System],
    ),
    (
        "daemon",
        Daemon,
        &[Foundation, Mac, Protocol, Os, Simulator, Medium],
    ),
    ("firmware", Firmware, &[Foundation, Mac, Protocol, Firmware]),
    ("command", Command, ANY_LIBRARY),
    ("binding", Binding, ANY_LIBRARY),
    ("testkit", Testkit, &[Foundation]),
    ("example", Example, ANY_LIBRARY),
    ("fuzz", Fuzz, ANY_LIBRARY),
    ("tool", Tool, &[]),
];

const ANY_LIBRARY: &[Role] = &[
    Foundation, Mac, Protocol, Bound, Os, Simulator, Medium, Lab, System, Paper, Daemon, Firmware,
    Command,
];

/// What the tests, examples and benchmarks of any member may use besides: a protocol is best tried on simulated air.
const FOR_TESTS: &[Role] = &[Foundation, Mac, Bound, Simulator, Testkit];

impl Role {
    /// The role that a package declares, if it is one of ours.
    pub fn of(package: &Package) -> Option<Role> {
        let name = package.role.as_deref()?;
        let row = ROLES.iter().find(|(known, _, _)| *known == name);
        row.map(|(_, role, _)| *role)
    }

    /// Its name in `Cargo.toml`.
    pub fn name(self) -> &'static str {
        let row = ROLES.iter().find(|(_, role, _)| *role == self);
        row.map_or("", |(name, _, _)| *name)
    }

    /// Whether its members need no operating system: they are `no_std`, and may neither read a clock nor panic.
    pub fn is_bare(self) -> bool {
        matches!(self, Foundation | Mac | Protocol | Firmware)
    }

    /// Whether its members may build on no more than one member of role `other` beyond those in `also`.
    pub fn joins_one(self, other: Role) -> bool {
        match other {
            Protocol => matches!(self, System | Paper | Daemon | Firmware | Example),
            System => self == Paper,
            _ => false,
        }
    }

    /// Whether its libraries may build on members of role `other`.
    pub fn may_use(self, other: Role) -> bool {
        let row = ROLES.iter().find(|(_, role, _)| *role == self);
        row.is_some_and(|(_, _, allowed)| allowed.contains(&other))
    }

    /// Whether its tests may use members of role `other`.
    pub fn tests_may_use(self, other: Role) -> bool {
        self.may_use(other) || FOR_TESTS.contains(&other)
    }
}

/// Members that run without an operating system.
pub fn bare(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    let members = workspace.members.iter();
    members.filter(|package| Role::of(package).is_some_and(Role::is_bare))
}

/// Members without a role or with an unknown one, and exceptions that are not needed or not explained.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    let known: Vec<&str> = ROLES.iter().map(|(name, _, _)| *name).collect();
    for package in &workspace.members {
        let manifest = format!("{}/Cargo.toml", package.folder);
        let mut find = |what: String| findings.push(Finding::new(&manifest, what));
        match (&package.role, Role::of(package)) {
            (_, Some(_)) => {}
            (Some(name), None) => find(format!(
                "unknown role `{name}`; known are {}",
                known.join(", ")
            )),
            (None, None) => find(format!(
                "write `[package.metadata.chappe]` and `role = \"...\"`, one of {}",
                known.join(", ")
            )),
        }
        let text = workspace.text(&manifest).unwrap_or_default();
        for (key, names) in [
            ("also", &package.also),
            ("also-for-tests", &package.also_for_tests),
        ] {
            for name in names {
                if !package.dependencies.iter().any(|d| d.name == *name) {
                    find(format!("`{key}` names {name}, which is no dependency"));
                }
            }
            if !names.is_empty() && !has_reason(text, key) {
                find(format!("write a comment above `{key}` that says why"));
            }
        }
    }
    findings
}

/// Whether a comment stands above the line `key = ...`.
fn has_reason(manifest: &str, key: &str) -> bool {
    let lines: Vec<&str> = manifest.lines().map(str::trim).collect();
    let pairs = lines.windows(2);
    let is_key = |line: &str| line.split('=').next().is_some_and(|k| k.trim() == key);
    pairs
        .filter(|pair| is_key(pair[1]))
        .any(|pair| pair[0].starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn every_member_has_a_role_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn a_missing_or_unknown_role_is_found() {
        let find = |role| {
            let member = planted::member("crates/novelty", role);
            rule(&planted::members([member])).len()
        };
        assert_eq!(find("protocol"), 0);
        assert_eq!(find("protocoll"), 1);
        assert_eq!(find(""), 1);
        let mut member = planted::member("crates/novelty", "protocol");
        member.role = None;
        assert_eq!(rule(&planted::members([member])).len(), 1);
    }

    #[test]
    fn exceptions_need_a_use_and_a_reason() {
        let mut member = planted::member("crates/novelty", "system");
        member.also.push("chappe-tcplp".to_owned());
        let find = |member: &Package, manifest| {
            let mut workspace = planted::file("crates/novelty/Cargo.toml", manifest);
            workspace.members.push(member.clone());
            rule(&workspace).len()
        };
        let bare = "[package.metadata.chappe]\nalso = [\"chappe-tcplp\"]\n";
        let explained = "# The paper compares with it.\nalso = [\"chappe-tcplp\"]\n";
        assert_eq!(find(&member, bare), 2);
        assert_eq!(find(&member, explained), 1);
        planted::depends(&mut member, "chappe-tcplp");
        assert_eq!(find(&member, explained), 0);
    }

    #[test]
    fn each_role_has_one_row() {
        for (at, (name, role, _)) in ROLES.iter().enumerate() {
            let twins = ROLES[..at].iter();
            assert_eq!(
                twins.filter(|row| row.0 == *name || row.1 == *role).count(),
                0
            );
        }
    }
}
