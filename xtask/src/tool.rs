//! Programs from crates.io that a step needs and a machine may lack.

use std::path::{Path, PathBuf};

use crate::process;
use crate::terminal;

/// A program, by its package on crates.io.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Of the package and of its program.
    pub name: &'static str,
    pub version: &'static str,
    /// Its features, instead of the default ones.
    pub features: &'static [&'static str],
    /// What its build costs, for the reader who waits.
    pub cost: &'static str,
}

impl Tool {
    /// The program of this machine if it has this version, or one that is built now and kept in `target/tools`.
    pub fn program(&self, root: &Path) -> Result<PathBuf, String> {
        let Tool { name, version, .. } = self;
        let place = root.join("target/tools");
        let kept = place.join("bin").join(name);
        for program in [PathBuf::from(name), kept.clone()] {
            let says = process::first_line(&program.to_string_lossy(), &["--version"], root);
            if says.is_some_and(|line| line.ends_with(version)) {
                return Ok(program);
            }
        }
        terminal::say(&format!("building {name} {version}, once: {}\n", self.cost));
        let mut cargo = process::cargo(root, ["install", name, "--locked", "--version", version]);
        cargo
            .args(["--no-default-features", "--features"])
            .arg(self.features.join(","))
            .arg("--root")
            .arg(place);
        process::show(&mut cargo)?;
        Ok(kept)
    }
}
