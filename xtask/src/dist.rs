//! `cargo xtask dist`: static programs, a Debian package that is tried, a bill of materials, checksums.

mod chroot;
mod deb;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::deny;
use crate::process;
use crate::python;
use crate::report::{Outcome, Report};
use crate::targets;
use crate::workspace::Workspace;

/// The processors that programs are built for. rustc links all of them with its own linker and C library.
const TARGETS: [&str; 3] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "armv7-unknown-linux-musleabihf",
];

/// The C compiler for a processor: `ring` has some C. Debian's packages are gcc, gcc-aarch64-linux-gnu and gcc-arm-linux-gnueabihf.
/// `CC_<target>` names another one.
fn compiler(target: &str) -> &'static str {
    match target.split('-').next() {
        Some("aarch64") => "aarch64-linux-gnu-gcc",
        Some("armv7") => "arm-linux-gnueabihf-gcc",
        _ => "cc",
    }
}

fn compiler_variable(target: &str) -> String {
    format!("CC_{}", target.replace('-', "_"))
}

/// A program that is shipped.
struct Program {
    name: &'static str,
    /// The feature of crate `chappe`.
    feature: &'static str,
    /// Octets that it may have.
    most: u64,
    /// Octets that it should have: fewer are a goal that is not met yet.
    goal: u64,
}

const PROGRAMS: [Program; 3] = [
    Program {
        name: "chappe",
        feature: "full",
        most: 20_000_000,
        goal: 8_000_000,
    },
    Program {
        name: "chappe-link",
        feature: "link",
        most: 2_500_000,
        goal: 2_500_000,
    },
    Program {
        name: "chappe-cast",
        feature: "cast",
        most: 3_000_000,
        goal: 2_500_000,
    },
];

/// A build of everything with whole-program optimisation, on a slow machine.
const LIMIT: Duration = Duration::from_secs(3600);

/// What is made, and where.
struct Dist<'a> {
    workspace: &'a Workspace,
    /// `target/dist`.
    out: PathBuf,
    version: String,
}

/// Makes everything. Without `twice`, the comparison of two builds is left out.
pub fn run(twice: bool) -> Result<(), String> {
    let workspace = Workspace::load()?;
    let version = workspace
        .member("chappe")
        .map(|package| package.version.clone());
    let dist = Dist {
        out: workspace.root.join("target/dist"),
        version: version.ok_or("there is no package `chappe`")?,
        workspace: &workspace,
    };
    let _ = fs::remove_dir_all(&dist.out);
    fs::create_dir_all(&dist.out).map_err(|error| format!("{}: {error}", dist.out.display()))?;
    let mut report = Report::new();
    report.step("targets", || targets::add(&workspace.root, &TARGETS));
    for target in TARGETS {
        for program in &PROGRAMS {
            let name = format!("{} for {target}", program.name);
            report.step(&name, || dist.program(program, target));
        }
    }
    report.step("bill of materials", || sbom::write(&dist));
    report.step("Debian package", || deb::make(&dist, &dist.version));
    report.step("package, tried", || chroot::try_package(&dist));
    report.step("wheel", || dist.wheel());
    report.step("libraries as packages", || dist.libraries());
    report.step("dependencies", || deny::check(&workspace.root));
    if twice {
        report.step("two builds are equal", || dist.is_reproducible());
    }
    report.step("checksums", || dist.checksums());
    report.close()
}

impl Dist<'_> {
    /// Where a program is put.
    fn path_of(&self, program: &str, target: &str) -> PathBuf {
        self.out
            .join(format!("{program}-{}-{target}", self.version))
    }

    /// Cargo's build of a program into `folder`. Paths of this machine do not get into it.
    fn build(&self, program: &Program, target: &str, folder: &Path) -> Result<PathBuf, String> {
        let root = &self.workspace.root;
        let cargo_home = std::env::var("CARGO_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"))
            .unwrap_or_default();
        let remap = |from: &str, to: &str| format!("--remap-path-prefix={from}={to}");
        let flags = [
            remap(&root.display().to_string(), "chappe"),
            remap(&cargo_home, "cargo"),
            // The linker that rustc brings, for every processor the same.
            "-Clinker=rust-lld".to_owned(),
            "-Clinker-flavor=ld.lld".to_owned(),
        ];
        let args = [
            "build",
            "--quiet",
            "--locked",
            "--profile",
            "dist",
            "-p",
            "chappe",
        ];
        let mut cargo = process::cargo(root, args);
        cargo
            .args(["--no-default-features", "--features", program.feature])
            .args(["--target", target])
            .env("CARGO_TARGET_DIR", folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            // blake3 without C: its build script takes this for its feature `pure`.
            .env("CARGO_FEATURE_PURE", "1");
        let variable = compiler_variable(target);
        if std::env::var_os(&variable).is_none() {
            cargo.env(variable, compiler(target));
        }
        process::take(&mut cargo, LIMIT)?;
        Ok(folder.join(target).join("dist/chappe"))
    }

    fn program(&self, program: &Program, target: &str) -> Outcome {
        let root = &self.workspace.root;
        if !targets::is_installed(target, root) {
            return Outcome::Skipped(format!("needs `rustup target add {target}`"));
        }
        let given = std::env::var_os(compiler_variable(target)).is_some();
        if !given && !process::exists(compiler(target)) {
            return Outcome::Skipped(format!("needs {}", compiler(target)));
        }
        let done = || -> Result<String, String> {
            let built = self.build(program, target, &root.join("target"))?;
            let path = self.path_of(program.name, target);
            fs::copy(&built, &path).map_err(|error| format!("{}: {error}", built.display()))?;
            let size = fs::metadata(&path)
                .map_err(|error| error.to_string())?
                .len();
            let size_mb = size as f64 / 1e6;
            let most = program.most as f64 / 1e6;
            match size <= program.most {
                true if size > program.goal => Ok(format!(
                    "{size_mb:.2} MB; goal {:.1}: missed",
                    program.goal as f64 / 1e6
                )),
                true => Ok(format!("{size_mb:.2} MB (at most {most})")),
                false => Err(format!("{size_mb:.2} MB, more than {most}")),
            }
        };
        Outcome::from(done())
    }

    /// Two builds in two folders must be the same file.
    fn is_reproducible(&self) -> Outcome {
        let (target, link) = (TARGETS[0], &PROGRAMS[1]);
        if !targets::is_installed(target, &self.workspace.root) {
            return Outcome::Skipped(format!("needs `rustup target add {target}`"));
        }
        let done = || -> Result<String, String> {
            let folder = self.workspace.root.join("target/again");
            let _ = fs::remove_dir_all(&folder);
            let again = self.build(link, target, &folder)?;
            let read = |path: &Path| {
                fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
            };
            let same = read(&again)? == read(&self.path_of(link.name, target))?;
            let _ = fs::remove_dir_all(&folder);
            match same {
                true => Ok(format!("{} for {target}, octet for octet", link.name)),
                false => Err(format!("two builds of {} differ", link.name)),
            }
        };
        Outcome::from(done())
    }

    /// The Python package, with the program for this processor in it.
    fn wheel(&self) -> Outcome {
        let program = self.path_of("chappe", TARGETS[0]);
        if !program.is_file() {
            return Outcome::Skipped(format!("there is no program for {}", TARGETS[0]));
        }
        let done = || -> Result<String, String> {
            let wheel = python::with_program(&self.workspace.root, &program)?;
            let name = wheel.file_name().ok_or("the wheel has no name")?;
            let octets = fs::copy(&wheel, self.out.join(name))
                .map_err(|error| format!("{}: {error}", wheel.display()))?;
            Ok(format!("{:.2} MB", octets as f64 / 1e6))
        };
        Outcome::from(done())
    }

    /// The libraries as crates.io would get them, each built from its package alone.
    fn libraries(&self) -> Outcome {
        let members = self.workspace.members.iter();
        let libraries: Vec<&str> = members
            .filter(|member| member.publishable)
            .map(|member| &*member.name)
            .collect();
        let root = &self.workspace.root;
        let mut cargo = process::cargo(root, ["publish", "--dry-run", "--quiet", "--locked"]);
        for library in &libraries {
            cargo.args(["--package", library]);
        }
        match process::take(&mut cargo, LIMIT) {
            Ok(_) => Outcome::Passed(format!("{} libraries", libraries.len())),
            Err(why) => Outcome::Failed(why),
        }
    }

    fn checksums(&self) -> Outcome {
        let done = || -> Result<String, String> {
            let entries = fs::read_dir(&self.out).map_err(|error| error.to_string())?;
            let mut names: Vec<String> = entries
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect();
            names.sort();
            let mut sums = Command::new("sha256sum");
            let sums = process::take(sums.current_dir(&self.out).args(&names), LIMIT)?;
            let file = self.out.join("SHA256SUMS");
            fs::write(&file, sums).map_err(|error| format!("{}: {error}", file.display()))?;
            Ok(format!("{} files in {}", names.len(), self.out.display()))
        };
        Outcome::from(done())
    }
}
