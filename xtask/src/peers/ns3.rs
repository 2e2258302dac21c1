//! Where ns-3 is, how it is installed, and how programs are built with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{debian, process};

/// The release of PyPI's wheel that `peers/*.cc` were tried with.
const WHEEL: &str = "ns3==3.44.post0";
/// The package of Debian that holds ns-3 and its headers.
const PACKAGE: &str = "libns3-dev";
/// The parts of ns-3 that our programs use, those that need others first: linkers read from left to right.
const PARTS: [&str; 10] = [
    "wifi",
    "lr-wpan",
    "spectrum",
    "antenna",
    "energy",
    "propagation",
    "mobility",
    "network",
    "stats",
    "core",
];

/// An ns-3 that programs can be built with.
#[derive(Debug)]
pub struct Ns3 {
    /// Its number and where it comes from.
    pub version: String,
    includes: PathBuf,
    libraries: PathBuf,
    /// What stands before a part's name in its library's: `ns3-` or `ns3.44-`.
    prefix: String,
    /// The C++ of its headers: those of 3.37 are no C++20, those of 3.44 are no C++17.
    standard: &'static str,
}

impl Ns3 {
    /// ns-3 on this machine, installed if it is missing; an error says why it cannot be had.
    pub fn found(folder: &Path) -> Result<Ns3, String> {
        if !process::exists("g++") {
            return Err("g++ is missing (Debian: g++)".to_owned());
        }
        if let Some(ns3) = Ns3::of_debian() {
            return Ok(ns3);
        }
        if debian::can_install(folder) {
            println!("installing {PACKAGE}");
            debian::install_package(PACKAGE)?;
            if let Some(ns3) = Ns3::of_debian() {
                return Ok(ns3);
            }
        }
        Ns3::of_pypi(&folder.join("python"))
            .map_err(|why| format!("no ns-3: {PACKAGE} is not installed, and PyPI's wheel: {why}"))
    }

    fn of_debian() -> Option<Ns3> {
        let includes = PathBuf::from("/usr/include");
        if !includes.join("ns3/wifi-module.h").is_file() {
            return None;
        }
        let root = Path::new("/");
        let query = ["-W", "-f", "${Version}", PACKAGE];
        let version = process::first_line("dpkg-query", &query, root)?;
        let machine = process::first_line("gcc", &["-print-multiarch"], root)?;
        Some(Ns3 {
            version: format!("ns-3 {version} (Debian)"),
            includes,
            libraries: Path::new("/usr/lib").join(machine),
            prefix: "ns3-".to_owned(),
            standard: "-std=c++17",
        })
    }

    /// The wheel in an environment of Python, which is made if it is missing.
    fn of_pypi(environment: &Path) -> Result<Ns3, String> {
        let python = environment.join("bin/python");
        if !python.is_file() {
            process::show(
                Command::new("python3")
                    .args(["-m", "venv"])
                    .arg(environment),
            )?;
        }
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "--disable-pip-version-check", "install"]);
        process::show(pip.args(["--quiet", "--no-deps", WHEEL]))?;
        let ask = "import sysconfig; print(sysconfig.get_path('platlib'))";
        let place = process::first_line(&python.to_string_lossy(), &["-c", ask], environment)
            .ok_or("Python does not say where its packages are")?;
        let package = Path::new(&place).join("ns3");
        let libraries = package.join("lib64");
        let prefix = prefix_in(&libraries)?;
        Ok(Ns3 {
            version: format!("ns-3 {} (PyPI)", WHEEL.trim_start_matches("ns3==")),
            includes: package.join("include"),
            libraries,
            prefix,
            standard: "-std=c++20",
        })
    }

    /// Builds `source`.cc as `program`.
    pub fn compile(&self, source: &Path, program: &Path) -> Result<(), String> {
        let folder = self.libraries.display();
        let mut command = Command::new("g++");
        command.args(["-O2", self.standard]);
        command.arg("-I").arg(&self.includes);
        command.arg("-o").arg(program);
        command.arg(source.with_extension("cc"));
        command.arg(format!("-L{folder}"));
        command.arg(format!("-Wl,-rpath,{folder}"));
        // ns-3's libraries use others (GSL), which need not be there for programs to be built.
        command.arg("-Wl,--allow-shlib-undefined");
        command.args(PARTS.map(|part| format!("-l{}{part}", self.prefix)));
        process::show(&mut command).map_err(|why| format!("{}.cc: {why}", source.display()))
    }
}

/// The prefix of the libraries in a folder.
fn prefix_in(libraries: &Path) -> Result<String, String> {
    let entries =
        fs::read_dir(libraries).map_err(|why| format!("{}: {why}", libraries.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter_map(|name| {
            let prefix = name.strip_prefix("lib")?.strip_suffix("core.so")?;
            Some(prefix.to_owned())
        })
        .find(|prefix| prefix.starts_with("ns3"))
        .ok_or_else(|| format!("{} has no ns-3", libraries.display()))
}
