//! The record of a running emulation on disk. Another terminal finds the emulation by it, and the next emulation finds
//! the remains of a killed one.
//!
//! Namespaces and interfaces need no record: they vanish with the process. Programs in them may continue; their
//! environment has the emulation's name.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use chappe_lab_emu::Emulation;
use chappe_sys::process::{self, Identity};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The environment variable with the emulation's name.
const NAME: &str = "CHAPPE_EMU";
/// The environment variable with the record's path. The folder depends on the user's number, which differs inside a
/// user namespace.
const PLACE: &str = "CHAPPE_EMU_RECORD";

/// One emulation, as its record describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its unique name: 16 hexadecimal digits.
    pub name: String,
    /// Number of its process.
    pub pid: u32,
    /// Start of the process, in clock ticks; tells reused process numbers apart.
    started: u64,
    /// Title of the scenario.
    pub title: String,
    /// Each node's namespace, as a file descriptor of the process.
    pub namespaces: Vec<i32>,
    /// IPv4 address of each node.
    pub addresses: Vec<Ipv4Addr>,
}

/// A record on disk; dropping it removes the file.
#[derive(Debug)]
pub struct Kept {
    record: Record,
    /// The path of the record.
    pub path: PathBuf,
}

/// The folder of all records of this user.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Record {
    /// The record of this process, still without namespaces.
    pub fn of(emulation: &Emulation) -> Result<Record, Failure> {
        let own = Identity::own();
        let own =
            own.ok_or_else(|| Failure::Environment("cannot read /proc".into(), "mount it".into()))?;
        Ok(Record {
            name: format!("{:016x}", chappe_sys::random_u64()?),
            pid: own.pid,
            started: own.started,
            title: emulation.title.clone(),
            namespaces: Vec::new(),
            addresses: (0..emulation.nodes())
                .map(|node| emulation.ipv4(node))
                .collect(),
        })
    }

    /// The record with the nodes' namespaces.
    pub fn with_namespaces(self, namespaces: Vec<i32>) -> Record {
        Record { namespaces, ..self }
    }

    /// Whether the emulation still runs.
    pub fn runs(&self) -> bool {
        let (pid, started) = (self.pid, self.started);
        Identity { pid, started }.runs()
    }

    /// The record of the emulation that this program runs in, if any.
    pub fn around() -> Option<(Record, PathBuf)> {
        let path = PathBuf::from(std::env::var_os(PLACE)?);
        let record: Record = serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()?;
        record.runs().then_some((record, path))
    }

    /// The environment variables of a program in `node`, with the record at `path`.
    pub fn variables(&self, node: usize, path: &Path) -> Vec<(String, String)> {
        let count = self.addresses.len();
        let mut all = vec![
            (NAME.to_string(), self.name.clone()),
            (PLACE.to_string(), path.display().to_string()),
            ("CHAPPE_NODE".to_string(), node.to_string()),
            ("CHAPPE_NODES".to_string(), count.to_string()),
        ];
        let addresses = self.addresses.iter().enumerate();
        all.extend(addresses.map(|(node, ip)| (format!("CHAPPE_NODE_{node}"), ip.to_string())));
        all
    }

    /// Kills the programs with its name in their environment; returns their number.
    pub fn kill_programs(&self) -> usize {
        process::kill_in_environment(&format!("{NAME}={}", self.name))
    }
}

impl Folder {
    /// The folder of this user. Call it before entering a user namespace, which changes the user's number.
    pub fn open() -> Result<Folder, Failure> {
        Ok(Folder(process::private_folder("chappe")?))
    }

    /// Writes a record to the folder.
    pub fn keep(&self, record: Record) -> Result<Kept, Failure> {
        let path = self.0.join(format!("emu-{}.json", record.pid));
        let part = path.with_extension("part");
        let text = serde_json::to_string_pretty(&record).unwrap_or_default();
        fs::write(&part, text)?;
        fs::rename(&part, &path)?;
        Ok(Kept { record, path })
    }

    /// The running emulations with the paths of their records.
    pub fn running(&self) -> Vec<(Record, PathBuf)> {
        let mut all = self.all();
        all.retain(|(record, _)| record.runs());
        all
    }

    /// Ends the programs of killed emulations and removes their records; returns the numbers of both.
    pub fn clean(&self) -> (usize, usize) {
        let (mut programs, mut records) = (0, 0);
        for (record, path) in self.all() {
            if !record.runs() {
                programs += record.kill_programs();
                records += usize::from(fs::remove_file(path).is_ok());
            }
        }
        (programs, records)
    }

    fn all(&self) -> Vec<(Record, PathBuf)> {
        let Ok(entries) = fs::read_dir(&self.0) else {
            return Vec::new();
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let ours = |path: &Path| {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.starts_with("emu-") && name.ends_with(".json"))
        };
        let read = |path: PathBuf| {
            let record = serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()?;
            Some((record, path))
        };
        paths.filter(|path| ours(path)).filter_map(read).collect()
    }
}

impl std::ops::Deref for Kept {
    type Target = Record;
    fn deref(&self) -> &Record {
        &self.record
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.record.kill_programs();
        // If removal fails, the next emulation finds that this one has ended.
        let _ = fs::remove_file(&self.path);
    }
}
