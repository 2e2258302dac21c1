//! The standard library of a program that is shipped: built with it, from the compiler's component `rust-src`.
//!
//! Built for size it sorts and prints with less code, and it has neither an unwinder nor a reader of debugging information. It is also the only
//! way to processors that rustup has no library for. The compiler is the released one; `RUSTC_BOOTSTRAP` lets it build its own library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::report::Outcome;
use crate::targets;

use super::musl;

/// Time for downloads on a slow connection.
const LIMIT: Duration = Duration::from_secs(300);

/// What Cargo takes to build the library. Without the default features there is no unwinding and no backtrace.
const ARGS: [&str; 2] = [
    "-Zbuild-std=std,panic_abort",
    "-Zbuild-std-features=optimize_for_size",
];

/// Installs the library's source where rustup can.
pub fn add(root: &Path) -> Outcome {
    if source(root).is_some() {
        return Outcome::Passed("installed".to_owned());
    }
    let mut rustup = Command::new("rustup");
    match process::take(rustup.args(["component", "add", "rust-src"]), LIMIT) {
        Ok(_) => Outcome::Passed("now installed".to_owned()),
        Err(why) => Outcome::Skipped(format!(
            "`rustup component add rust-src` failed, so rustup's own library is taken: {why}"
        )),
    }
}

/// The folder of the library's source, if it is installed.
fn source(root: &Path) -> Option<PathBuf> {
    let sysroot = process::first_line("rustc", &["--print", "sysroot"], root)?;
    let folder = Path::new(&sysroot).join("lib/rustlib/src/rust/library");
    folder.join("Cargo.lock").is_file().then_some(folder)
}

/// How a program gets its standard library.
pub struct Standard {
    /// Arguments for Cargo; none with rustup's library.
    pub args: Vec<&'static str>,
    /// Where rustc finds the C library, where rustup brings none, and how paths of the source are named.
    pub flags: Vec<String>,
}

impl Standard {
    /// What to do for a processor; an error says what is missing.
    pub fn of(root: &Path, target: &str) -> Result<Standard, String> {
        let installed = targets::is_installed(target, root);
        let Some(source) = source(root) else {
            let (args, flags) = (Vec::new(), Vec::new());
            return match installed {
                true => Ok(Standard { args, flags }),
                false => Err(format!(
                    "needs `rustup target add {target}`, or `rustup component add rust-src`"
                )),
            };
        };
        let mut flags = vec![format!("--remap-path-prefix={}=std", source.display())];
        if !installed {
            let folder = musl::library(root, target)?;
            flags.push("-Clink-self-contained=no".to_owned());
            // rustc links dynamically for MIPS unless it is told otherwise.
            flags.push("-Ctarget-feature=+crt-static".to_owned());
            flags.push(format!("-Lnative={}", folder.display()));
            let objects = ["crt1.o", "crti.o", "crtn.o"];
            flags.extend(
                objects.map(|object| format!("-Clink-arg={}", folder.join(object).display())),
            );
        }
        let args = ARGS.to_vec();
        Ok(Standard { args, flags })
    }
}
