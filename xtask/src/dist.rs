//! `cargo xtask dist`: static programs, a Debian package that is tried, a bill of materials, checksums.

mod chroot;
mod container;
mod deb;
mod emulated;
mod musl;
mod sbom;
mod semver;
mod standard;

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

use standard::Standard;

/// The processors that programs are built for. rustc links all of them with its own linker and C library.
const TARGETS: [&str; 4] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "armv7-unknown-linux-musleabihf",
    MIPS,
];

/// Its standard library comes from no server.
const MIPS: &str = "mipsel-unknown-linux-musl";

/// The C compiler for a processor: `ring` has some C. Debian's packages are gcc, gcc-aarch64-linux-gnu and gcc-arm-linux-gnueabihf.
/// `gcc-mipsel-linux-gnu` is for MIPS. `CC_<target>` names another one.
fn compiler(target: &str) -> &'static str {
    match target.split('-').next() {
        Some("aarch64") => "aarch64-linux-gnu-gcc",
        Some("armv7") => "arm-linux-gnueabihf-gcc",
        Some("mipsel") => "mipsel-linux-gnu-gcc",
        _ => "cc",
    }
}

/// The variable that gives C compilers `what` for a processor alone, such as `CC` or `CFLAGS`.
fn c_variable(what: &str, target: &str) -> String {
    format!("{what}_{}", target.replace('-', "_"))
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

impl Program {
    /// What is to be said about its size.
    fn judge(&self, octets: u64) -> Result<String, String> {
        let mb = |octets: u64| octets as f64 / 1e6;
        let (size, most, goal) = (mb(octets), mb(self.most), mb(self.goal));
        if octets > self.most {
            return Err(format!("{size:.2} MB, more than {most}"));
        }
        Ok(match octets > self.goal {
            true => format!("{size:.2} MB; goal {goal:.1}: missed"),
            false => format!("{size:.2} MB (at most {goal:.1})"),
        })
    }
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
        most: 2_500_000,
        goal: 2_500_000,
    },
];

/// Where Cargo builds. In `target` itself it would keep its own files in `target/dist`, by the profile's name.
const FOLDER: &str = "target/static";

/// What the linker leaves out.
const NO_UNWIND: &str = "packaging/no-unwind.ld";

/// A build of everything with whole-program optimisation, on a slow machine.
const LIMIT: Duration = Duration::from_secs(3600);

/// What is made, and where.
struct Dist<'a> {
    workspace: &'a Workspace,
    /// The folder `target/dist`, into which everything is written.
    out: PathBuf,
    version: String,
}

/// What `cargo xtask dist PART...` makes alone.
const PARTS: [&str; 10] = [
    "programs",
    "bill",
    "deb",
    "wheel",
    "container",
    "libraries",
    "semver",
    "dependencies",
    "twice",
    "checksums",
];

/// The parts that are asked for: one of [`PARTS`], or one program for one processor, as in `chappe-link-aarch64`.
struct Asked<'a>(&'a [String]);

impl Asked<'_> {
    /// Whether a part is made. Without arguments all are; with `--once`, all but the comparison of two builds.
    fn part(&self, part: &str) -> bool {
        match self.0 {
            [] => true,
            [flag] if flag == "--once" => part != "twice",
            parts => parts.iter().any(|asked| asked == part),
        }
    }

    fn program(&self, program: &str, target: &str) -> bool {
        self.part("programs") || self.part(&one(program, target))
    }

    /// Whether an earlier call's files stay.
    fn keeps_others(&self) -> bool {
        !(self.0.is_empty() || self.0 == ["--once"])
    }

    fn check(&self) -> Result<(), String> {
        let mut ones = PROGRAMS
            .iter()
            .flat_map(|program| TARGETS.map(|target| one(program.name, target)));
        let unknown = self.0.iter().find(|asked| {
            let part = PARTS.contains(&asked.as_str()) || ones.clone().any(|one| one == **asked);
            !part && self.keeps_others()
        });
        match unknown {
            Some(asked) => Err(format!(
                "dist has no part `{asked}`; it has {} and programs such as {}",
                PARTS.join(", "),
                ones.next().unwrap_or_default()
            )),
            None => Ok(()),
        }
    }
}

/// The name of one program for one processor as an argument.
fn one(program: &str, target: &str) -> String {
    let processor = target.split('-').next().unwrap_or(target);
    format!("{program}-{processor}")
}

/// Makes everything, or the parts that are named.
pub fn run(asked: &[String]) -> Result<(), String> {
    let asked = Asked(asked);
    asked.check()?;
    let workspace = Workspace::load()?;
    let version = workspace
        .member("chappe")
        .map(|package| package.version.clone());
    let dist = Dist {
        out: workspace.root.join("target/dist"),
        version: version.ok_or("there is no package `chappe`")?,
        workspace: &workspace,
    };
    if !asked.keeps_others() {
        let _ = fs::remove_dir_all(&dist.out);
    }
    fs::create_dir_all(&dist.out).map_err(|error| format!("{}: {error}", dist.out.display()))?;
    let mut report = Report::new();
    dist.programs(&asked, &mut report);
    dist.packages(&asked, &mut report);
    report.close()
}

impl Dist<'_> {
    fn programs(&self, asked: &Asked<'_>, report: &mut Report) {
        let root = &self.workspace.root;
        let any = |target| {
            let mut programs = PROGRAMS.iter();
            programs.any(|program| asked.program(program.name, target))
        };
        // rustup has no library for MIPS.
        let targets = TARGETS.into_iter().filter(|target| *target != MIPS);
        let targets: Vec<&str> = targets.filter(|target| any(target)).collect();
        if !targets.is_empty() {
            report.step("targets", || targets::add(root, &targets));
            report.step("standard library's source", || standard::add(root));
        }
        for target in TARGETS {
            for program in &PROGRAMS {
                if asked.program(program.name, target) {
                    let name = format!("{} for {target}", program.name);
                    report.step(&name, || self.program(program, target));
                }
            }
        }
    }

    fn packages(&self, asked: &Asked<'_>, report: &mut Report) {
        if asked.part("bill") {
            report.step("bill of materials", || sbom::write(self));
        }
        if asked.part("deb") {
            report.step("Debian package", || deb::make(self, &self.version));
            report.step("package, tried", || chroot::try_package(self));
        }
        if asked.part("wheel") {
            report.step("wheel", || self.wheel());
        }
        if asked.part("container") {
            report.step("container", || container::make(self));
        }
        if asked.part("libraries") {
            report.step("libraries as packages", || self.libraries());
        }
        if asked.part("semver") {
            let libraries = self.publishable();
            report.step("versions", || semver::check(self, &libraries));
        }
        if asked.part("dependencies") {
            report.step("dependencies", || deny::check(&self.workspace.root));
        }
        if asked.part("twice") {
            report.step("two builds are equal", || self.is_reproducible());
        }
        if asked.part("checksums") {
            report.step("checksums", || self.checksums());
        }
    }

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
        let standard = Standard::of(root, target)?;
        let remap = |from: &str, to: &str| format!("--remap-path-prefix={from}={to}");
        let mut flags = vec![
            remap(&root.display().to_string(), "chappe"),
            remap(&cargo_home, "cargo"),
            // The linker that rustc brings, for every processor the same.
            "-Clinker=rust-lld".to_owned(),
            "-Clinker-flavor=ld.lld".to_owned(),
            // Functions of equal code become one; addresses that are moved at the start take two octets instead of 24.
            "-Clink-arg=--icf=all".to_owned(),
            "-Clink-arg=--pack-dyn-relocs=relr".to_owned(),
            // Leaves out what only builds for developers need, and backtraces (crates/sys/src/raw/backtrace.rs), whose function stands twice then.
            "--cfg=shipped".to_owned(),
            "-Clink-arg=--allow-multiple-definition".to_owned(),
            // A panic ends the program (`panic = "abort"`), so nothing looks these up. The linker leaves out those of the standard library.
            "-Cforce-unwind-tables=no".to_owned(),
            "-Clink-arg=--no-eh-frame-hdr".to_owned(),
            format!("-Clink-arg={}", root.join(NO_UNWIND).display()),
        ];
        flags.extend(standard.flags);
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
            .args(standard.args)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_DIR", folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            // blake3 without C: its build script takes this for its feature `pure`.
            .env("CARGO_FEATURE_PURE", "1");
        let variable = c_variable("CC", target);
        if std::env::var_os(&variable).is_none() {
            cargo.env(variable, compiler(target));
        }
        if let Some(flags) = musl::c_flags(root, target) {
            cargo.env(c_variable("CFLAGS", target), flags);
        }
        process::take(&mut cargo, LIMIT)?;
        Ok(folder.join(target).join("dist/chappe"))
    }

    fn program(&self, program: &Program, target: &str) -> Outcome {
        let root = &self.workspace.root;
        if let Err(why) = Standard::of(root, target) {
            return Outcome::Skipped(why);
        }
        let given = std::env::var_os(c_variable("CC", target)).is_some();
        if !given && !process::exists(compiler(target)) {
            let why = "a C compiler for this processor; apt-get install gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-mipsel-linux-gnu";
            return Outcome::Skipped(format!("needs {}, {why}", compiler(target)));
        }
        let done = || -> Result<String, String> {
            let built = self.build(program, target, &root.join(FOLDER))?;
            let path = self.path_of(program.name, target);
            fs::copy(&built, &path).map_err(|error| format!("{}: {error}", built.display()))?;
            let size = fs::metadata(&path)
                .map_err(|error| error.to_string())?
                .len();
            let size = program.judge(size)?;
            let started = emulated::start(root, &path, program.feature, target)?;
            Ok(format!("{size}{started}"))
        };
        Outcome::from(done())
    }

    /// Two builds in two folders must be the same file.
    fn is_reproducible(&self) -> Outcome {
        let (target, link) = (TARGETS[0], &PROGRAMS[1]);
        if !targets::is_installed(target, &self.workspace.root) {
            return Outcome::Skipped(format!("needs `rustup target add {target}`"));
        }
        let first = self.path_of(link.name, target);
        if !first.is_file() {
            return Outcome::Skipped(format!("there is no {} for {target}", link.name));
        }
        let done = || -> Result<String, String> {
            let folder = self.workspace.root.join("target/again");
            let _ = fs::remove_dir_all(&folder);
            let again = self.build(link, target, &folder)?;
            let read = |path: &Path| {
                fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
            };
            let same = read(&again)? == read(&first)?;
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

    fn publishable(&self) -> Vec<&str> {
        let members = self.workspace.members.iter();
        members
            .filter(|member| member.publishable)
            .map(|member| &*member.name)
            .collect()
    }

    /// The libraries as crates.io would get them, each built from its package alone.
    fn libraries(&self) -> Outcome {
        let libraries = self.publishable();
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
            let files = entries
                .flatten()
                .filter(|entry| entry.path().is_file() && entry.file_name() != "SHA256SUMS");
            let mut names: Vec<String> = files
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_made_alone() {
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let all = words("");
        assert!(Asked(&all).part("twice") && Asked(&all).program("chappe", TARGETS[1]));
        assert!(!Asked(&all).keeps_others());
        let once = words("--once");
        assert!(!Asked(&once).part("twice") && Asked(&once).part("deb"));
        let some = words("chappe-link-armv7 deb");
        let some = Asked(&some);
        assert!(some.program("chappe-link", TARGETS[2]) && some.part("deb"));
        assert!(!some.program("chappe-link", TARGETS[0]) && !some.part("bill"));
        assert!(some.keeps_others() && some.check() == Ok(()));
        for wrong in ["chappe-link-6502", "debs", "deb --once"] {
            let why = Asked(&words(wrong)).check().unwrap_err();
            assert!(why.contains("dist has no part"), "{why}");
        }
    }
}
