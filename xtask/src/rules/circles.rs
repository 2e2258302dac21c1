//! No files of a crate import each other in a circle.
//!
//! A module and the modules inside it may know each other. Any other files that reach each other by what they import are one
//! thing in several files, or one of them holds a type or constant that belongs below both. `cargo xtask circles` lists
//! each circle with what ties it.

use std::collections::BTreeSet;

use super::Finding;
use crate::modules::{Crate, Ties};
use crate::workspace::Workspace;

/// Files that import each other, in order of their paths.
struct Circle {
    files: Vec<String>,
    /// `a.rs takes X, Y from b.rs`.
    ties: Vec<String>,
}

/// Every circle of every library and program.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let finding = |circle: Circle| {
        let what = format!("these files import each other: {}", circle.ties.join("; "));
        Finding::new(circle.files.join(" "), what)
    };
    all(workspace).into_iter().map(finding).collect()
}

/// `cargo xtask circles`: prints every circle and what ties it.
pub fn list() -> Result<(), String> {
    let circles = all(&Workspace::load()?);
    for circle in &circles {
        println!("{}", circle.files.join(" "));
        circle.ties.iter().for_each(|tie| println!("    {tie}"));
    }
    println!("{} circles", circles.len());
    Ok(())
}

fn all(workspace: &Workspace) -> Vec<Circle> {
    let mut circles = Vec::new();
    for package in &workspace.members {
        let roots = package.targets.iter();
        for root in roots.filter(|t| t.kind == "lib" || t.kind == "bin") {
            circles.extend(of(&Crate::read(&root.file, |path| workspace.text(path))));
        }
    }
    circles
}

fn of(read: &Crate) -> Vec<Circle> {
    let ties = read.ties();
    let reached: Vec<Vec<bool>> = (0..read.len())
        .map(|from| reach(from, read, &ties))
        .collect();
    let mut circles = Vec::new();
    let mut done = vec![false; read.len()];
    for first in 0..read.len() {
        let in_circle = |file: &usize| reached[first][*file] && reached[*file][first];
        let files: Vec<usize> = (0..read.len()).filter(in_circle).collect();
        if files.is_empty() || done[first] {
            continue;
        }
        files.iter().for_each(|&file| done[file] = true);
        let inside = |(from, to): &(usize, usize)| files.contains(from) && files.contains(to);
        let tie = |((from, to), names): (&(usize, usize), &BTreeSet<String>)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let [from, to] = [from, to].map(|file| short(read.path(*file)));
            format!("{from} takes {} from {to}", names.join(", "))
        };
        let mut paths: Vec<String> = files.iter().map(|&f| read.path(f).to_owned()).collect();
        paths.sort_unstable();
        circles.push(Circle {
            files: paths,
            ties: ties
                .iter()
                .filter(|(pair, _)| inside(pair))
                .map(tie)
                .collect(),
        });
    }
    circles
}

/// The files that `from` imports, directly or not.
fn reach(from: usize, read: &Crate, ties: &Ties) -> Vec<bool> {
    let mut seen = vec![false; read.len()];
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for (_, to) in ties.keys().filter(|(source, _)| *source == file) {
            if !seen[*to] {
                seen[*to] = true;
                open.push(*to);
            }
        }
    }
    seen
}

/// The path inside the crate.
fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::workspace::Target;

    #[test]
    fn no_files_import_each_other_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn a_circle_is_found_with_what_ties_it() {
        let root = planted::file("crates/novelty/src/lib.rs", "mod a; mod b; mod c;");
        let find = |a: &str, b: &str, c: &str| {
            let mut workspace = root.clone();
            for (name, text) in [("a", a), ("b", b), ("c", c)] {
                let file = planted::file(&format!("crates/novelty/src/{name}.rs"), text);
                workspace.files.extend(file.files);
            }
            let mut member = planted::member("crates/novelty", "lab");
            member.targets.push(Target {
                kind: "lib".to_owned(),
                name: "chappe_novelty".to_owned(),
                file: "crates/novelty/src/lib.rs".to_owned(),
            });
            workspace.members.push(member);
            rule(&workspace)
        };
        let (a, b) = ("use crate::b::B; pub struct A;", "pub struct B;");
        assert_eq!(find(a, b, "").len(), 0);
        let knows_a = "use super::a; pub struct B(a::A);";
        let found = find(a, knows_a, "");
        assert_eq!(found.len(), 1);
        let what = &found[0].what;
        assert!(
            what.contains("a.rs takes B from b.rs; b.rs takes A, a from a.rs"),
            "{what}"
        );
        let through_c = "pub struct B; use crate::c::C;";
        let c = "use crate::a::A; pub struct C;";
        assert_eq!(find(a, through_c, c).len(), 1);
    }
}
