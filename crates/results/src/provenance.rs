//! Where a result comes from: which program made it, on which machine, from which scenario.

use serde::{Deserialize, Serialize};

/// The program, machine and scenario that a result comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The version of Chappe that made it.
    pub version: String,
    /// The commit it was built from, or `unknown`.
    pub commit: String,
    /// Whether the source had been changed since that commit.
    pub dirty: bool,
    /// The command line that made it.
    pub command: String,
    /// Processor, cores and kernel.
    pub machine: String,
    /// The scenario with all options applied, as JSON.
    pub scenario_text: String,
}

/// The program that makes results, as it knows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program<'a> {
    /// The commit it was built from, or `unknown`.
    pub commit: &'a str,
    /// Whether the source had been changed since that commit.
    pub dirty: bool,
    /// The command line that started it.
    pub command: &'a str,
}

impl<'a> Program<'a> {
    /// A program that does not know what it was built from. Runs that it finds on disk are not trusted.
    pub const fn unknown(command: &'a str) -> Program<'a> {
        Program {
            commit: "unknown",
            dirty: false,
            command,
        }
    }
}

impl Provenance {
    /// A program on this machine, for a scenario given as JSON text.
    pub fn here(program: Program<'_>, scenario_text: &str) -> Provenance {
        Provenance {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: program.commit.into(),
            dirty: program.dirty,
            command: program.command.into(),
            machine: machine(),
            scenario_text: scenario_text.into(),
        }
    }

    /// The commit, with `+` if the source had been changed since.
    pub fn code(&self) -> String {
        format!("{}{}", self.commit, if self.dirty { "+" } else { "" })
    }

    /// The name under which a run's results are kept: one for each scenario, seed and program.
    pub fn key(&self, seed: u64) -> String {
        self.key_with(&seed.to_string())
    }

    /// The name under which the runs of a sweep's cell are kept: one for each scenario and program. `build` tells programs apart
    /// that share a commit.
    pub fn cell_key(&self, build: &str) -> String {
        self.key_with(&format!("cell {build}"))
    }

    fn key_with(&self, last: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [&self.scenario_text, &self.version, &self.code(), last] {
            // The lengths keep neighbouring parts apart: "ab", "c" is not "a", "bc".
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..16].to_string()
    }
}

/// Processor, cores, system and kernel in one line.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{}, {cores} cores, {} {}",
        processor(),
        std::env::consts::OS,
        kernel.trim()
    )
}

/// The processor's name, or its architecture if the system does not report a name.
pub fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or(std::env::consts::ARCH.into(), |(_, name)| {
        name.trim().to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_changes_the_key() {
        let first = Provenance::here(Program::unknown("chappe sim a"), "{}");
        let other = Provenance {
            scenario_text: "{ }".into(),
            ..first.clone()
        };
        let newer = Provenance {
            commit: "0".into(),
            ..first.clone()
        };
        let keys = [first.key(1), first.key(2), other.key(1), newer.key(1)];
        for (i, key) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|k| k != key));
        }
        let same = Provenance::here(Program::unknown("chappe sim b"), "{}");
        assert_eq!(first.key(1), same.key(1));
    }
}
