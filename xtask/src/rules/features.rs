//! One build serves all: the command alone asks of its dependencies what all members together ask.
//!
//! Cargo joins the features that the packages of one command line ask for. If those of the command alone are fewer, then
//! `cargo build` after `cargo test` builds again whatever differs, and all that stands on it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Finding;
use crate::process;
use crate::workspace::Workspace;

/// Who has to ask for what is missing.
const MANIFEST: &str = "crates/chappe/Cargo.toml";
/// TLS of motes takes 13 s of processor to build, and nothing of the command stands on it but the border router.
const APART: [&str; 1] = ["chappe-mote"];
/// Reading the lock file takes a second, and longer while another cargo holds its lock.
const LIMIT: Duration = Duration::from_secs(300);

/// The features of a package, as cargo prints them, of each of its versions.
type Features<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// Packages that the command has with fewer features than all members together.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let all = tree(workspace, &["--workspace", "--edges", "normal,build,dev"]);
    let own = tree(
        workspace,
        &["--package", "chappe", "--edges", "normal,build"],
    );
    match (all, own) {
        (Ok(all), Ok(own)) => differing(&all, &own),
        (Err(why), _) | (_, Err(why)) => {
            vec![Finding::new("cargo tree", why)]
        }
    }
}

fn tree(workspace: &Workspace, args: &[&str]) -> Result<String, String> {
    let mut cargo = process::cargo(&workspace.root, ["tree", "--quiet", "--prefix", "none"]);
    cargo
        .args(["--no-dedupe", "--format", "{p}|{f}"])
        .args(args);
    process::take(&mut cargo, LIMIT)
}

fn differing(all: &str, own: &str) -> Vec<Finding> {
    let all = features(all);
    let mut findings = Vec::new();
    for (package, sets) in features(own) {
        let name = package.split(' ').next().unwrap_or_default();
        let asked = all.get(package).cloned().unwrap_or_default();
        if sets.is_subset(&asked) || APART.contains(&name) {
            continue;
        }
        let list = |sets: &BTreeSet<&str>| sets.iter().copied().collect::<Vec<_>>().join("` or `");
        let what = format!(
            "{package} has the features `{}` in a build of all members and `{}` in one of the command: ask for the missing ones",
            list(&asked),
            list(&sets)
        );
        findings.push(Finding::new(MANIFEST, what));
    }
    findings
}

/// Of lines such as `subtle v2.6.1|i128`; a member's name is followed by its folder.
fn features(tree: &str) -> Features<'_> {
    let mut sets = Features::new();
    for (package, list) in tree.lines().filter_map(|line| line.split_once('|')) {
        let end = package.find(" (").unwrap_or(package.len());
        sets.entry(&package[..end]).or_default().insert(list);
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn one_build_serves_all_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn a_missing_feature_is_found() {
        let all = "chappe v0.1.0 (/home)|full\nsubtle v2.6.1|i128\nsyn v2.0.1 (proc-macro)|full,parsing\n";
        let own = all.replace("i128", "");
        assert_eq!(differing(all, all), []);
        let findings = differing(all, &own);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0]
                .what
                .starts_with("subtle v2.6.1 has the features `i128`")
        );
        let mote = |features| format!("chappe-mote v0.1.0 (/home)|{features}");
        assert_eq!(differing(&mote("dns,tls"), &mote("dns")), []);
    }
}
