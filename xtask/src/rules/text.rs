//! Rules that are read off the text of the files.

use super::Finding;
use crate::source;
use crate::workspace::{TextFile, Workspace};

/// Where `unsafe` may stand, and what for.
const UNSAFE_HOMES: &[(&str, &str)] = &[
    ("crates/sys/src/", "system calls"),
    (
        "crates/coding/src/simd",
        "vector instructions: simd.rs and simd/",
    ),
    (
        "crates/coding/benches/coding/roof.rs",
        "the bare instructions that the kernels are measured against",
    ),
    (
        "crates/testkit/src/allocation.rs",
        "an allocator that counts, for tests",
    ),
    ("bench/", "libraries in C that ours are compared with"),
    (
        "proof/",
        "an entry point and an allocator without an operating system",
    ),
    (
        "firmware/",
        "registers, interrupts and the stack of a microcontroller",
    ),
];

/// The longest file that passes. CONTRIBUTING.md says to aim below 600.
const LINES_MAX: usize = 1000;

/// `unsafe` outside its files.
pub fn unsafe_code(workspace: &Workspace) -> Vec<Finding> {
    rust(workspace, |file, code| {
        let home = UNSAFE_HOMES
            .iter()
            .any(|(home, _)| file.path.starts_with(home));
        let is_unsafe = |(line, word, _)| (word == "unsafe").then_some(line);
        let lines = source::words(code).into_iter().filter_map(is_unsafe);
        let lines = if home { Vec::new() } else { lines.collect() };
        lines
            .into_iter()
            .map(|line| (line, "unsafe outside its files".to_owned()))
            .collect()
    })
}

/// Macros that stand for work not done.
pub fn unfinished(workspace: &Workspace) -> Vec<Finding> {
    rust(workspace, |_, code| {
        let words = source::words(code).into_iter();
        let left = words.filter(|(_, word, next)| {
            ["todo", "unimplemented", "dbg"].contains(word) && *next == Some('!')
        });
        left.map(|(line, word, _)| (line, format!("{word}! is unfinished code")))
            .collect()
    })
}

/// Files with more than [`LINES_MAX`] lines.
pub fn length(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &workspace.files {
        let lines = file.text.lines().count();
        let counts = [".rs", ".ts", ".py"]
            .iter()
            .any(|end| file.path.ends_with(end));
        if counts && lines > LINES_MAX {
            let what = format!("{lines} lines, more than {LINES_MAX}: find the second noun in it");
            findings.push(Finding::new(&file.path, what));
        }
    }
    findings
}

/// Absolute paths into a home folder, a temporary folder, or the place where this checkout happens to be.
pub fn machine_paths(workspace: &Workspace) -> Vec<Finding> {
    let mut folders = ["home", "root", "Users", "tmp"]
        .map(|name| format!("/{name}/"))
        .to_vec();
    if let Some(parent) = workspace.root.parent().filter(|p| p.parent().is_some()) {
        folders.push(format!("{}/", parent.display()));
    }
    let mut findings = Vec::new();
    for file in &workspace.files {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(folder) = folders.iter().find(|folder| names_folder(line, folder)) {
                let place = format!("{}:{}", file.path, number + 1);
                let what = format!("names a path under {folder}, which exists on one machine only");
                findings.push(Finding::new(place, what));
            }
        }
    }
    findings
}

/// Whether `line` has `folder` where a path begins, not in the middle of a URL or a longer path.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~/*}>".contains(c))
    })
}

/// Runs `look` on the code of every Rust file; it gives lines and what is wrong there.
fn rust(
    workspace: &Workspace,
    look: impl Fn(&TextFile, &str) -> Vec<(usize, String)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in workspace
        .files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
    {
        let code = source::code_only(&file.text);
        for (line, what) in look(file, &code) {
            findings.push(Finding::new(format!("{}:{line}", file.path), what));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::planted::{file, holds_here};
    use super::*;

    #[test]
    fn unsafe_stays_in_its_files() {
        holds_here(unsafe_code);
        let planted = "fn f() { unsafe { g() } }";
        assert_eq!(
            unsafe_code(&file("crates/sim/src/air.rs", planted)).len(),
            1
        );
        assert_eq!(
            unsafe_code(&file("crates/coding/src/field.rs", planted)).len(),
            1
        );
        assert_eq!(
            unsafe_code(&file("crates/coding/src/simd.rs", planted)).len(),
            0
        );
        let allocator = "unsafe impl GlobalAlloc for Counting {}";
        assert_eq!(
            unsafe_code(&file("crates/sim/benches/air.rs", allocator)).len(),
            1
        );
    }

    #[test]
    fn nothing_is_left_unfinished() {
        holds_here(unfinished);
        let planted = "fn f() { todo!() }\nfn g() { dbg!(1); }\n// todo!()\nfn todo() {}";
        assert_eq!(unfinished(&file("a.rs", planted)).len(), 2);
    }

    #[test]
    fn files_stay_short() {
        holds_here(length);
        assert_eq!(length(&file("a.rs", &"\n".repeat(LINES_MAX))).len(), 0);
        assert_eq!(length(&file("a.rs", &"\n".repeat(LINES_MAX + 1))).len(), 1);
    }

    #[test]
    fn no_path_of_one_machine() {
        holds_here(machine_paths);
        let mut planted = file("a.md", &["see /ho", "me/me/x"].concat());
        assert_eq!(machine_paths(&planted).len(), 1);
        planted.files[0].text = "see https://example.org/home/page and target/tmp/x".to_owned();
        assert_eq!(machine_paths(&planted).len(), 0);
        planted.root = "/build/place/chappe".into();
        planted.files[0].text = "`/build/place/data`".to_owned();
        assert_eq!(machine_paths(&planted).len(), 1);
    }
}
