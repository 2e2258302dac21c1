//! The C library of processors for which rustup brings none: Debian's, or made of Debian's source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process;

/// Time for downloads on a slow connection, or to compile the library.
const LIMIT: Duration = Duration::from_secs(300);

/// Where a library comes from.
enum Origin {
    /// Debian's `musl-dev` of this architecture, unpacked.
    Package {
        architecture: &'static str,
        folder: &'static str,
    },
    /// Debian's source, compiled by `{tools}gcc` with these flags.
    Source {
        tools: &'static str,
        flags: &'static str,
    },
}

/// The processors whose library is not rustup's.
const ORIGINS: [(&str, Origin); 2] = [
    (
        "armv7-unknown-linux-musleabihf",
        Origin::Package {
            architecture: "armhf",
            folder: "usr/lib/arm-linux-musleabihf",
        },
    ),
    // The MIPS processors of routers have no floating-point unit, so Rust's target has none. Debian's package needs one.
    (
        "mipsel-unknown-linux-musl",
        Origin::Source {
            tools: "mipsel-linux-gnu-",
            flags: "-msoft-float -mips32r2 -O2",
        },
    ),
];

/// The folder of a processor's C library; it is made under `target` when it is missing.
pub fn library(root: &Path, target: &str) -> Result<PathBuf, String> {
    let origin = origin(target).ok_or_else(|| format!("needs `rustup target add {target}`"))?;
    let tree = root.join("target/musl").join(target);
    let folder = match origin {
        Origin::Package { folder, .. } => tree.join(folder),
        Origin::Source { .. } => tree.join("lib"),
    };
    if !folder.join("libc.a").is_file() {
        let lists = Lists::new(&tree)?;
        match origin {
            Origin::Package { architecture, .. } => unpack(&tree, &lists, architecture)
                .map_err(|why| format!("needs Debian's musl-dev:{architecture}: {why}"))?,
            Origin::Source { tools, flags } => compile(&tree, &lists, tools, flags)
                .map_err(|why| format!("needs Debian's source of musl: {why}"))?,
        }
        lists.remove()?;
    }
    // The standard library names an unwinder, of which nothing is called (crates/sys/src/raw/backtrace.rs).
    let empty = folder.join("libunwind.a");
    fs::write(&empty, "!<arch>\n").map_err(|error| format!("{}: {error}", empty.display()))?;
    Ok(folder)
}

/// What the C of dependencies is compiled with for a processor whose library was made of its source: the same flags and its headers.
pub fn c_flags(root: &Path, target: &str) -> Option<String> {
    let Origin::Source { tools, flags } = origin(target)? else {
        return None;
    };
    let compiler = format!("{tools}gcc");
    let own = process::first_line(&compiler, &["-print-file-name=include"], root)?;
    let headers = root.join("target/musl").join(target).join("include");
    Some(format!(
        "{flags} -nostdinc -isystem {} -isystem {own}",
        headers.display()
    ))
}

fn origin(target: &str) -> Option<&'static Origin> {
    let known = ORIGINS.iter().find(|known| known.0 == target);
    known.map(|known| &known.1)
}

/// Lists of packages apart from the system's, whose configuration stays as it is.
struct Lists<'a> {
    tree: &'a Path,
    folder: PathBuf,
}

impl Lists<'_> {
    fn new(tree: &Path) -> Result<Lists<'_>, String> {
        let folder = tree.join("lists");
        fs::create_dir_all(folder.join("partial")).map_err(|error| error.to_string())?;
        Ok(Lists { tree, folder })
    }

    /// `apt-get` with these lists, in the tree.
    fn apt(&self, options: &[&str], words: &[&str]) -> Result<String, String> {
        let mut apt = Command::new("apt-get");
        apt.current_dir(self.tree).arg("-qq");
        let own = format!("Dir::State::lists={}", self.folder.display());
        let common = [
            "Acquire::Languages=none",
            "Dir::Cache::pkgcache=",
            "Dir::Cache::srcpkgcache=",
            "APT::Sandbox::User=root",
            &own,
        ];
        for option in common.iter().chain(options) {
            apt.args(["-o", option]);
        }
        process::take(apt.args(words), LIMIT)
    }

    fn remove(&self) -> Result<(), String> {
        fs::remove_dir_all(&self.folder).map_err(|error| error.to_string())
    }
}

/// Fetches and unpacks `musl-dev` of another architecture.
fn unpack(tree: &Path, lists: &Lists<'_>, architecture: &str) -> Result<(), String> {
    let option = format!("APT::Architectures={architecture}");
    // One of the lists may be away: what counts is whether the package comes.
    let _ = lists.apt(&[&option], &["update"]);
    let package = format!("musl-dev:{architecture}");
    lists.apt(&[&option], &["download", &package])?;
    let package = written(tree, ".deb")?;
    let mut unpack = Command::new("dpkg-deb");
    process::take(unpack.arg("-x").arg(package).arg(tree), LIMIT)?;
    Ok(())
}

/// Fetches the source of musl, whose signature apt checks, and installs the library into the tree.
fn compile(tree: &Path, lists: &Lists<'_>, tools: &str, flags: &str) -> Result<(), String> {
    let sources = tree.join("sources.list");
    fs::write(&sources, debian_sources()?).map_err(|error| error.to_string())?;
    let options = [
        format!("Dir::Etc::sourcelist={}", sources.display()),
        "Dir::Etc::sourceparts=-".to_owned(),
    ];
    let options = [options[0].as_str(), options[1].as_str()];
    let _ = lists.apt(&options, &["update"]);
    lists.apt(&options, &["source", "--download-only", "musl"])?;
    let source = tree.join("source");
    fs::create_dir_all(&source).map_err(|error| error.to_string())?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(written(tree, ".orig.tar.gz")?);
    process::take(tar.args(["--strip-components=1", "-C"]).arg(&source), LIMIT)?;
    let mut configure = Command::new("./configure");
    configure
        .current_dir(&source)
        .env("CROSS_COMPILE", tools)
        .env("CC", format!("{tools}gcc"))
        .env("CFLAGS", flags)
        .args(["--target=mipsel", "--disable-shared"])
        .arg(format!("--prefix={}", tree.display()));
    process::take(&mut configure, LIMIT)?;
    let mut make = Command::new("make");
    process::take(make.current_dir(&source).args(["-j2", "install"]), LIMIT)?;
    Ok(())
}

/// A line for Debian's sources of the release that this machine runs.
fn debian_sources() -> Result<String, String> {
    let release = fs::read_to_string("/etc/os-release").map_err(|error| error.to_string())?;
    let mut lines = release.lines();
    let name = lines.find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = name.ok_or("this machine does not run Debian")?;
    Ok(format!(
        "deb-src http://deb.debian.org/debian {name} main\n"
    ))
}

/// The file with this end that `apt-get` wrote into the tree.
fn written(tree: &Path, end: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(tree).map_err(|error| error.to_string())?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let found = paths.find(|path| path.to_string_lossy().ends_with(end));
    found.ok_or_else(|| format!("apt-get wrote no file *{end}"))
}
