//! `cargo xtask bench`: runs the benchmarks and keeps what they print, with all that a reader needs to judge it.
//!
//! A crate's own benchmarks are its `benches/`. Those beside other libraries are programs under `bench/`, outside the
//! workspace, so that nothing else has to build those libraries.
//!
//! One folder per day, machine and commit under `docs/benchmarks/`: `about.txt` and one file per benchmark.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process;
use crate::report::Report;
use crate::workspace::Workspace;

/// Runs every benchmark of the named packages, or of all.
pub fn run(names: &[String]) -> Result<(), String> {
    let workspace = Workspace::load()?;
    let all = benchmarks(&workspace);
    if let Some(name) = names
        .iter()
        .find(|name| !all.iter().any(|bench| bench.is_of(name)))
    {
        let known: Vec<&str> = all.iter().map(|bench| bench.package.as_str()).collect();
        return Err(format!(
            "no benchmark is called {name}; there are: {}",
            known.join(" ")
        ));
    }
    let command = format!("cargo xtask bench {}", names.join(" "));
    let folder = prepared(&workspace.root, command.trim_end())?;
    let mut report = Report::new();
    let wanted =
        |bench: &&Benchmark| names.is_empty() || names.iter().any(|name| bench.is_of(name));
    for bench in all.iter().filter(wanted) {
        let name = format!("{}-{}", bench.package, bench.target);
        let file = folder.join(format!("{name}.txt"));
        report.step(&name, || bench.run(&workspace.root, &file).into());
    }
    println!("kept in {}", folder.display());
    report.close()
}

/// Keeps what another command measured beside the benchmarks of its day, machine and commit; returns the file.
pub fn keep(root: &Path, command: &str, name: &str, text: &str) -> Result<PathBuf, String> {
    let file = prepared(root, command)?.join(format!("{name}.txt"));
    write(&file, text)?;
    Ok(file)
}

/// The folder of this day, machine and commit, with what a reader needs to judge its figures.
fn prepared(root: &Path, command: &str) -> Result<PathBuf, String> {
    let folder = root.join("docs/benchmarks").join(folder_name(root));
    fs::create_dir_all(&folder).map_err(|why| why.to_string())?;
    write(&folder.join("about.txt"), &about(root, command))?;
    Ok(folder)
}

/// A program that measures.
struct Benchmark {
    package: String,
    target: String,
    args: Vec<String>,
}

impl Benchmark {
    fn new(package: &str, target: &str, args: &[&str]) -> Benchmark {
        Benchmark {
            package: package.to_owned(),
            target: target.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
        }
    }

    /// Whether the package has this name, in full or without `chappe-`.
    fn is_of(&self, name: &str) -> bool {
        self.package == name || self.package.strip_prefix("chappe-") == Some(name)
    }

    /// Runs it, shows what it prints and keeps it in `file`.
    fn run(&self, root: &Path, file: &Path) -> Result<(), String> {
        let mut text = String::new();
        process::show_and_see(&mut process::cargo(root, &self.args), |line| {
            text.push_str(line);
            text.push('\n');
        })?;
        write(file, &text)
    }
}

fn benchmarks(workspace: &Workspace) -> Vec<Benchmark> {
    let mut all = Vec::new();
    for package in &workspace.members {
        let name = package.name.as_str();
        for bench in package.targets.iter().filter(|t| t.kind == "bench") {
            let args = ["bench", "--quiet", "-p", name, "--bench", &bench.name];
            all.push(Benchmark::new(name, &bench.name, &args));
        }
    }
    let outside = workspace.stand_alone().into_iter();
    for folder in outside.filter_map(|folder| folder.strip_prefix("bench/")) {
        let manifest = format!("bench/{folder}/Cargo.toml");
        let args = ["run", "--release", "--quiet", "--manifest-path", &manifest];
        all.push(Benchmark::new(folder, "run", &args));
    }
    all
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|why| format!("{}: {why}", path.display()))
}

/// Date, processor and commit, as in `2026-11-21-intel-xeon-297905c`.
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
