//! The program under test, run as in a terminal of 100 columns without colour.

use std::path::Path;
use std::process::{Command, Output};

/// Runs `chappe` in a folder.
pub fn chappe_in(folder: impl AsRef<Path>, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chappe"))
        .current_dir(folder)
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .env_remove("LC_ALL")
        .output()
        .unwrap()
}

/// Runs `chappe` in this crate's folder.
pub fn chappe(arguments: &[&str]) -> Output {
    chappe_in(env!("CARGO_MANIFEST_DIR"), arguments)
}

/// What a program has printed.
pub fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}
