//! The rules of the house. Each is a function that takes the workspace and returns its findings.
//!
//! Every rule has two tests: it finds nothing in this workspace, and it finds a planted breach.

mod bans;
pub mod circles;
mod direction;
mod features;
mod licence;
mod page;
pub mod programs;
mod registry;
pub mod roles;
mod rooms;
mod size;
mod text;
pub mod words;

use std::fmt;

use crate::report::Outcome;
use crate::workspace::Workspace;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The package or `file:line`.
    pub place: String,
    /// What is wrong and what to do.
    pub what: String,
}

/// A rule: its name, and the function that returns its findings.
type Rule = (&'static str, fn(&Workspace) -> Vec<Finding>);

/// All rules, in the order of their reports.
const RULES: &[Rule] = &[
    ("every crate has a role", roles::rule),
    ("dependencies point down", direction::rule),
    ("only sys talks to the system", direction::system_rule),
    ("crates have the same shape", rooms::shape),
    (
        "protocols and below are no_std and do not panic",
        rooms::no_std,
    ),
    ("clocks and hash order are banned", bans::rule),
    ("no files import each other in a circle", circles::rule),
    ("unsafe stays in its files", text::unsafe_code),
    ("no code is unfinished", text::unfinished),
    ("files stay short", text::length),
    ("no file is a download", size::rule),
    ("no file names a path of one machine", text::machine_paths),
    ("crates have one test program", programs::rule),
    ("pages have their headings", page::headings),
    ("pages map their papers", page::rule),
    ("words are plain", words::rule),
    ("licences are permissive", licence::rule),
    ("libraries are ready for a registry", registry::rule),
    ("one build serves all", features::rule),
];

/// Checks every rule and prints the findings. Duplicate versions and the counts of [`words`] are printed as notes.
pub fn check(workspace: &Workspace) -> Outcome {
    let mut broken = 0;
    for (name, rule) in RULES {
        let findings = rule(workspace);
        println!(
            "{} {name}",
            if findings.is_empty() { "ok  " } else { "FAIL" }
        );
        findings
            .iter()
            .for_each(|finding| println!("       {finding}"));
        broken += findings.len();
    }
    let twice = licence::duplicates(workspace);
    if !twice.is_empty() {
        println!(
            "note  more than one version in the lock file: {}",
            twice.join(", ")
        );
    }
    println!("note  {}; `cargo xtask words`", words::summary(workspace));
    match broken {
        0 => Outcome::Passed(format!("{} rules hold", RULES.len())),
        n => Outcome::Failed(format!("{n} findings")),
    }
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding {
            place: place.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// What the rules' own tests share.
#[cfg(test)]
mod planted {
    use std::sync::OnceLock;

    use super::*;
    use crate::workspace::{Dependency, Kind, Package, TextFile};

    /// This workspace, read once.
    pub fn here() -> &'static Workspace {
        static HERE: OnceLock<Workspace> = OnceLock::new();
        HERE.get_or_init(|| Workspace::load().unwrap())
    }

    /// Fails with every finding that `rule` has in this workspace.
    pub fn holds_here(rule: fn(&Workspace) -> Vec<Finding>) {
        let findings = rule(here());
        let findings: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    }

    /// A member in this folder with this role.
    pub fn member(folder: &str, role: &str) -> Package {
        let name = folder.rsplit('/').next().unwrap_or(folder);
        Package {
            name: format!("chappe-{name}"),
            folder: folder.to_owned(),
            role: Some(role.to_owned()),
            ..Package::default()
        }
    }

    /// Lets a member build on another.
    pub fn depends(member: &mut Package, name: &str) {
        member.dependencies.push(Dependency {
            name: name.to_owned(),
            kind: Kind::Normal,
        });
    }

    /// A workspace of these members without files.
    pub fn members<const N: usize>(members: [Package; N]) -> Workspace {
        Workspace {
            members: members.to_vec(),
            ..Workspace::default()
        }
    }

    /// A workspace of one file.
    pub fn file(path: &str, text: &str) -> Workspace {
        Workspace {
            files: vec![TextFile {
                path: path.to_owned(),
                text: text.to_owned(),
            }],
            ..Workspace::default()
        }
    }
}
