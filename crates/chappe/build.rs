//! Tells the program which commit it is made of, for the provenance of its results, and packs long texts that it holds.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Texts that the program holds in a sixth of their octets (`src/packed.rs`).
const PACKED: [&str; 2] = ["src/scenario.schema.json", "src/command/lab/record.json"];

fn main() {
    PACKED.into_iter().for_each(pack);
    let root = Path::new("../..");
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git")
            .current_dir(root)
            .args(arguments)
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let dirty =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
    println!("cargo::rustc-env=CHAPPE_COMMIT={commit}");
    println!("cargo::rustc-env=CHAPPE_DIRTY={dirty}");
    for watched in [
        "../../.git/HEAD",
        "../../.git/logs/HEAD",
        "..",
        "../../Cargo.lock",
    ] {
        if Path::new(watched).exists() {
            println!("cargo::rerun-if-changed={watched}");
        }
    }
}

fn pack(text: &str) {
    println!("cargo::rerun-if-changed={text}");
    let octets = std::fs::read(text).unwrap();
    let name = Path::new(text).file_name().unwrap();
    let packed = Path::new(&std::env::var_os("OUT_DIR").unwrap()).join(name);
    let file = std::fs::File::create(packed).unwrap();
    let mut packer = DeflateEncoder::new(file, Compression::best());
    packer.write_all(&octets).unwrap();
    packer.finish().unwrap();
}
