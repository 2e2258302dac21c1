//! Who may depend on whom.
//!
//! The table is the design: `core <- wire <- mac <- protocols`, `coding` beside them; a protocol never knows
//! another protocol or a medium; a medium never knows a protocol or a MAC. `lab` joins media and MACs and knows no
//! protocol; a `lab-<system>` joins it with its protocol and knows no other system; `lab-all` and `chappe` know all. Only
//! normal and build dependencies bind: tests may look sideways and up to the rooms in [`FOR_TESTS`], since a
//! protocol is best tried on simulated air, but never to another protocol.

use super::Finding;
use crate::workspace::{Kind, Workspace};

/// A package and the members it may build on. A member without a row is a finding: whoever adds a room decides
/// where it stands.
const MAY_USE: &[(&str, &[&str])] = &[
    ("chappe-core", &[]),
    ("chappe-wire", &["chappe-core"]),
    ("chappe-coding", &["chappe-core"]),
    ("chappe-mac", &["chappe-core", "chappe-wire"]),
    ("chappe-p3", &PROTOCOL_WITH_CODING),
    ("chappe-pacifier", &PROTOCOL_WITH_CODING),
    ("chappe-tcplp", &PROTOCOL),
    ("chappe-wildnet", &PROTOCOL_WITH_CODING),
    ("chappe-dpclo", &PROTOCOL),
    // Other people's protocols, for experiments only.
    ("chappe-rivals", &PROTOCOL_WITH_CODING),
    ("chappe-bound", &["chappe-core"]),
    // Plays packets to any stack; TCP's segment format is its tool.
    (
        "chappe-packet-script",
        &["chappe-core", "chappe-wire", "chappe-tcplp"],
    ),
    // For tests, examples and benchmarks: no library builds on it.
    ("chappe-testkit", &["chappe-core"]),
    ("chappe-sys", &["chappe-core"]),
    ("chappe-sim", &["chappe-core", "chappe-wire"]),
    // The emulator is the simulated radio in real time.
    (
        "chappe-emu",
        &["chappe-core", "chappe-wire", "chappe-sim", "chappe-sys"],
    ),
    ("chappe-live", &["chappe-core", "chappe-wire", "chappe-sys"]),
    // The daemon joins one protocol and one medium.
    (
        "chappe-cast",
        &[
            "chappe-core",
            "chappe-pacifier",
            "chappe-live",
            "chappe-sys",
        ],
    ),
    // A protocol's live form: it knows the one protocol that it carries.
    (
        "chappe-link",
        &["chappe-core", "chappe-sys", "chappe-wildnet"],
    ),
    // The simulated network in real time, with one protocol and its channel access on it.
    (
        "chappe-border",
        &[
            "chappe-core",
            "chappe-emu",
            "chappe-mac",
            "chappe-sim",
            "chappe-sys",
            "chappe-tcplp",
            "chappe-wire",
        ],
    ),
    (
        "chappe-lab",
        &[
            "chappe-core",
            // For what `doctor` says of the machine.
            "chappe-coding",
            "chappe-mac",
            "chappe-sim",
            "chappe-emu",
            "chappe-sys",
        ],
    ),
    // TCP is what the paper compares with.
    (
        "chappe-lab-dpclo",
        &[
            "chappe-lab",
            "chappe-core",
            "chappe-bound",
            "chappe-dpclo",
            "chappe-mac",
            "chappe-sim",
            "chappe-tcplp",
        ],
    ),
    (
        "chappe-lab-p3",
        &["chappe-lab", "chappe-core", "chappe-p3", "chappe-sim"],
    ),
    (
        "chappe-lab-pacifier",
        &[
            "chappe-lab",
            "chappe-core",
            "chappe-bound",
            "chappe-mac",
            "chappe-pacifier",
            "chappe-sim",
        ],
    ),
    (
        "chappe-lab-tcplp",
        &[
            "chappe-lab",
            "chappe-core",
            "chappe-bound",
            "chappe-mac",
            "chappe-sim",
            "chappe-tcplp",
            "chappe-wire",
        ],
    ),
    // TCP is what the paper sends over its links.
    (
        "chappe-lab-wildnet",
        &[
            "chappe-lab",
            "chappe-core",
            "chappe-mac",
            "chappe-rivals",
            "chappe-sim",
            "chappe-tcplp",
            "chappe-wildnet",
        ],
    ),
    ("chappe-lab-all", &LABS),
    ("chappe", &ALL),
    ("chappe-fuzz", &ALL),
    ("chappe-python", &ALL),
    ("xtask", &[]),
];

const PROTOCOL: [&str; 3] = ["chappe-core", "chappe-wire", "chappe-mac"];
const PROTOCOL_WITH_CODING: [&str; 4] =
    ["chappe-core", "chappe-wire", "chappe-mac", "chappe-coding"];
const LABS: [&str; 6] = [
    "chappe-lab",
    "chappe-lab-dpclo",
    "chappe-lab-p3",
    "chappe-lab-pacifier",
    "chappe-lab-tcplp",
    "chappe-lab-wildnet",
];
const ALL: [&str; 24] = [
    "chappe-core",
    "chappe-wire",
    "chappe-coding",
    "chappe-mac",
    "chappe-p3",
    "chappe-pacifier",
    "chappe-tcplp",
    "chappe-wildnet",
    "chappe-dpclo",
    "chappe-bound",
    "chappe-sim",
    "chappe-emu",
    "chappe-live",
    "chappe-sys",
    "chappe-cast",
    "chappe-link",
    "chappe-border",
    "chappe-lab",
    "chappe-lab-dpclo",
    "chappe-lab-p3",
    "chappe-lab-pacifier",
    "chappe-lab-tcplp",
    "chappe-lab-wildnet",
    "chappe-lab-all",
];

/// What tests, examples and benchmarks of any room may use besides.
const FOR_TESTS: &[&str] = &[
    "chappe-core",
    "chappe-wire",
    "chappe-coding",
    "chappe-mac",
    "chappe-bound",
    "chappe-sim",
    "chappe-testkit",
];

/// What the tests of one room may use in addition: a medium carries a real protocol once, end to end. The library
/// itself still knows none.
const FOR_TESTS_OF: &[(&str, &str)] = &[
    ("chappe-live", "chappe-pacifier"),
    // A building is known by its paths, and P3's planner finds them.
    ("chappe-lab", "chappe-p3"),
    ("chappe-tcplp", "chappe-packet-script"),
    // Our TCP against the kernel's.
    ("chappe-tcplp", "chappe-sys"),
];

/// Crates whose purpose is the operating system. Using one directly belongs to `sys`.
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

/// Dependencies between members that the table does not allow.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.members {
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == package.name) else {
            let what = "no row in MAY_USE: decide what it may build on";
            findings.push(Finding::new(&package.name, what));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let ours = name == "chappe" || name == "xtask" || name.starts_with("chappe-");
            let named = FOR_TESTS_OF.contains(&(package.name.as_str(), name));
            let for_tests = dependency.kind == Kind::Dev && (FOR_TESTS.contains(&name) || named);
            if ours && !for_tests && !allowed.contains(&name) {
                let kind = match dependency.kind {
                    Kind::Normal => "builds on",
                    Kind::Dev => "tests with",
                };
                findings.push(Finding::new(
                    &package.name,
                    format!("{kind} {name}, which it must not know"),
                ));
            }
        }
    }
    findings
}

/// Members other than `sys` that use the operating system directly.
pub fn system_rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace.members.iter().filter(|p| p.name != "chappe-sys") {
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
    use crate::workspace::{Dependency, Package};

    /// How many findings a package of this name has with this one dependency.
    fn findings(name: &str, kind: Kind, dependency: &str) -> usize {
        let package = Package {
            name: name.to_owned(),
            dependencies: vec![Dependency {
                name: dependency.to_owned(),
                kind,
            }],
            ..Package::default()
        };
        let workspace = Workspace {
            members: vec![package],
            ..Workspace::default()
        };
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
            ("chappe-core", "chappe-wire"),
            ("chappe-mac", "chappe-sim"),
            ("chappe-pacifier", "chappe-wildnet"),
            ("chappe-pacifier", "chappe-sim"),
            ("chappe-tcplp", "chappe-coding"),
            ("chappe-sim", "chappe-mac"),
            ("chappe-sim", "chappe-pacifier"),
            ("chappe-bound", "chappe-sim"),
            ("chappe-lab", "chappe"),
            ("chappe-lab", "chappe-pacifier"),
            ("chappe-lab", "chappe-lab-all"),
            ("chappe-lab-p3", "chappe-pacifier"),
            ("chappe-lab-p3", "chappe-lab-pacifier"),
            ("chappe-live", "libc"),
            ("chappe-novelty", "chappe-core"),
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
            ("chappe-lab-all", "chappe-lab-pacifier"),
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
}
