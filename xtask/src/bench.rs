//! `cargo xtask bench`: runs the benchmarks and keeps what they print, with all that a reader needs to judge it.
//!
//! One folder per day, machine and commit under `docs/benchmarks/`: `about.txt` and one file per benchmark.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::process;
use crate::report::Report;
use crate::workspace::{Package, Workspace};

/// Runs every benchmark of the named packages, or of all.
pub fn run(packages: &[String]) -> Result<(), String> {
    let workspace = Workspace::load()?;
    for name in packages {
        let known = workspace
            .member(name)
            .or(workspace.member(&format!("chappe-{name}")));
        known.ok_or(format!(
            "no package `{name}` or `chappe-{name}` in the workspace"
        ))?;
    }
    let wanted = |package: &&Package| {
        let short = package
            .name
            .strip_prefix("chappe-")
            .unwrap_or(&package.name);
        packages.is_empty()
            || packages
                .iter()
                .any(|name| *name == package.name || name == short)
    };
    let folder = workspace
        .root
        .join("docs/benchmarks")
        .join(folder_name(&workspace.root));
    fs::create_dir_all(&folder).map_err(|why| why.to_string())?;
    let command = format!("cargo xtask bench {}", packages.join(" "));
    write(
        &folder.join("about.txt"),
        &about(&workspace.root, command.trim_end()),
    )?;
    let mut report = Report::new();
    for package in workspace.members.iter().filter(wanted) {
        for (_, bench) in package.targets.iter().filter(|(kind, _)| kind == "bench") {
            report.step(&format!("{} {bench}", package.name), || {
                one(&workspace.root, &package.name, bench, &folder).into()
            });
        }
    }
    println!("kept in {}", folder.display());
    report.close()
}

fn one(root: &Path, package: &str, bench: &str, folder: &Path) -> Result<(), String> {
    let mut text = String::new();
    let mut command = process::cargo(root, ["bench", "--quiet", "-p", package, "--bench", bench]);
    process::show_and_see(&mut command, |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    write(&folder.join(format!("{package}-{bench}.txt")), &text)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|why| format!("{}: {why}", path.display()))
}

/// `2026-11-21-intel-xeon-297905c`.
fn folder_name(root: &Path) -> String {
    let date = process::first_line("date", &["-u", "+%Y-%m-%d"], root);
    let commit = process::first_line("git", &["rev-parse", "--short", "HEAD"], root);
    let parts = [date, Some(slug(&processor())), commit];
    parts
        .map(|part| part.unwrap_or_else(|| "unknown".to_owned()))
        .join("-")
}

/// What decides a figure: commit, compiler, processor, and what else the machine was doing.
fn about(root: &Path, command: &str) -> String {
    let line = |program, args: &[&str]| {
        process::first_line(program, args, root).unwrap_or_else(|| "unknown".to_owned())
    };
    let changed = process::first_line(
        "git",
        &["status", "--porcelain", "--untracked-files=no"],
        root,
    );
    let state = match changed.as_deref() {
        None => "",
        Some(_) => " with changes that are not committed",
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let rows = [
        ("command", command.to_owned()),
        ("date", line("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])),
        (
            "commit",
            format!("{}{state}", line("git", &["rev-parse", "HEAD"])),
        ),
        ("compiler", line("rustc", &["--version"])),
        ("processor", processor()),
        ("instructions", instructions()),
        ("cores", cores.to_string()),
        ("system", line("uname", &["-srm"])),
        (
            "load before",
            load.split_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" "),
        ),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<14}{value}");
    }
    text
}

fn processor() -> String {
    cpu_field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The vector instructions that our kernels choose among.
fn instructions() -> String {
    let flags = cpu_field("flags")
        .or_else(|| cpu_field("Features"))
        .unwrap_or_default();
    let known = ["ssse3", "avx2", "avx512bw", "gfni", "asimd"];
    let found = flags.split(' ').filter(|flag| known.contains(flag));
    found.collect::<Vec<_>>().join(" ")
}

/// A field of the first processor in `/proc/cpuinfo`.
fn cpu_field(name: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Lower case letters and digits joined by single dashes.
fn slug(text: &str) -> String {
    let lower = text.to_lowercase().replace("(r)", " ").replace("(tm)", " ");
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_make_folder_names() {
        assert_eq!(
            slug("Intel(R) Xeon(R) CPU @ 2.90GHz"),
            "intel-xeon-cpu-2-90ghz"
        );
    }
}
