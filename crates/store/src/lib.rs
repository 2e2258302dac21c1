//! Results on disk: one Parquet file for each run, a row for each flow.
//!
//! ```
//! use chappe_results::Run;
//! use chappe_results::provenance::{Program, Provenance};
//!
//! let folder = std::env::temp_dir().join(format!("chappe-store-example-{}", std::process::id()));
//! let from = Provenance::here(Program::unknown("chappe sim pair.toml"), "{}");
//! let run = Run::new(7);
//! chappe_store::write(&folder, "two nodes", &from, &run)?;
//!
//! let document = chappe_store::read(&folder)?;
//! assert_eq!((document.scenario.as_str(), document.runs), ("two nodes", vec![run]));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), chappe_store::StoreError>(())
//! ```
//!
//! | what | module |
//! |---|---|
//! | a run: [`write()`], [`read`] | here |
//! | the runs of one scenario of a sweep, with a column for each swept key | [`sweep`] |
//! | any columns as Parquet | [`table`] |
//!
//! A file's name is the hash of scenario, seed and program ([`Provenance::key`]). It is written under a temporary name
//! and renamed, so a file that is there is complete. Provenance, counters and bounds are in the file's key-value metadata.

mod chunk;
mod columns;
mod encoding;
mod reader;
pub mod sweep;
pub mod table;
mod thrift;
pub mod trace;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parquet::file::metadata::KeyValue;
use serde::de::DeserializeOwned;

use chappe_results::provenance::Provenance;
use chappe_results::{Document, Run};
use chappe_trace::Column;

/// A result that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused it.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason that the system gives.
        error: io::Error,
    },
    /// The file is not a result of Chappe.
    #[error("{}: {why}", path.display())]
    Format {
        /// The path of the file that was read.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// What to do about it, if that is known.
        help: Option<&'static str>,
    },
}

impl StoreError {
    fn io(path: &Path, error: io::Error) -> StoreError {
        let path = path.to_path_buf();
        StoreError::Io { path, error }
    }

    fn format(path: &Path, why: impl Into<String>) -> StoreError {
        StoreError::Format {
            path: path.to_path_buf(),
            why: why.into(),
            help: None,
        }
    }

    fn with_help(mut self, text: &'static str) -> StoreError {
        if let StoreError::Format { help, .. } = &mut self {
            *help = Some(text);
        }
        self
    }
}

const PROVENANCE: &str = "chappe.provenance";
const RUN: &str = "chappe.run";
const SCENARIO: &str = "chappe.scenario";

/// Writes one run into `folder`, which is created if needed, and returns the path of its file. An older file of the same
/// scenario, seed and program is replaced.
pub fn write(
    folder: &Path,
    scenario: &str,
    from: &Provenance,
    run: &Run,
) -> Result<PathBuf, StoreError> {
    let path = folder.join(format!("{}.parquet", from.key(run.seed)));
    write_whole(&path, |file| encode(file, scenario, from, run))?;
    Ok(path)
}

/// Writes a file completely or not at all, in place of one of that name: under a temporary name in the same folder, synced to
/// the disk, then renamed. Makes the folder.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let folder = folder_of(path);
    let made = fs::create_dir_all(folder);
    made.map_err(|error| StoreError::io(folder, error))?;
    let beside = beside(path);
    let written = write_out(
        &beside,
        OpenOptions::new().create(true).truncate(true),
        fill,
    );
    let renamed = written.and_then(|()| fs::rename(&beside, path));
    renamed.map_err(|error| {
        // The first error is the one to report, whether or not the remains can be removed.
        let _ = fs::remove_file(&beside);
        StoreError::io(path, error)
    })
}

/// Makes the folder if it is missing, and tries to write in it: before the work whose results it shall hold.
pub fn try_folder(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(".chappe-trial");
    write_whole(&path, |_| Ok(()))?;
    fs::remove_file(&path).map_err(|error| StoreError::io(&path, error))
}

fn write_out(
    path: &Path,
    options: &mut OpenOptions,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = options.write(true).open(path)?;
    fill(&mut file)?;
    file.flush()?;
    file.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let named = folder.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// The temporary name beside a file.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    folder_of(path).join(format!(".{name}.{}.part", std::process::id()))
}

fn encode(file: &mut File, scenario: &str, from: &Provenance, run: &Run) -> io::Result<()> {
    let json = |value: serde_json::Result<String>| value.map_err(io::Error::from);
    // Flows are the rows; everything else of a run is metadata.
    let notes = [
        (SCENARIO, scenario.to_string()),
        (PROVENANCE, json(serde_json::to_string(from))?),
        (RUN, json(serde_json::to_string(&without_flows(run)))?),
    ];
    table::encode(file, &notes, &columns::of(&[run]))
}

/// The columns of one run, as its file has them: a row for each flow.
pub fn columns_of(run: &Run) -> Vec<table::Column> {
    columns::of(&[run])
}

/// A run without its flows, which are the rows of its table.
fn without_flows(run: &Run) -> Run {
    Run {
        flows: Vec::new(),
        ..run.clone()
    }
}

/// Reads results: a JSON document, a Parquet file, or a folder of Parquet files.
pub fn read(path: &Path) -> Result<Document, StoreError> {
    let unreadable = |error| StoreError::io(path, error);
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return read_folder(path);
    }
    if is_parquet(path) {
        let (scenario, from, run) = read_run(path)?;
        return Ok(Document::new(&scenario, &from, vec![run], false));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    serde_json::from_str(&text).map_err(|error| {
        StoreError::format(path, format!("not a result of chappe: {error}")).with_help(
            "compare takes what `chappe sim --json` printed, or a folder that `--out` filled",
        )
    })
}

fn is_parquet(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "parquet")
}

fn read_folder(folder: &Path) -> Result<Document, StoreError> {
    let entries = fs::read_dir(folder).map_err(|error| StoreError::io(folder, error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| is_parquet(file));
    files.sort();
    let (mut runs, mut first) = (Vec::new(), None::<(String, Provenance)>);
    for file in &files {
        let (scenario, from, run) = read_run(file)?;
        let known = first.get_or_insert_with(|| (scenario, from.clone()));
        if known.1.scenario_text != from.scenario_text || known.1.code() != from.code() {
            let why = "the folder holds results of different scenarios or programs";
            return Err(StoreError::format(folder, why)
                .with_help("give each scenario a separate folder with --out"));
        }
        runs.push(run);
    }
    let Some((scenario, from)) = first else {
        return Err(StoreError::format(
            folder,
            "the folder holds no results (*.parquet)",
        ));
    };
    runs.sort_by_key(|run| run.seed);
    Ok(Document::new(&scenario, &from, runs, false))
}

/// A file's metadata and columns.
struct Contents {
    notes: Vec<KeyValue>,
    columns: Vec<Column>,
}

impl Contents {
    fn read(path: &Path) -> Result<Contents, StoreError> {
        let file = File::open(path).map_err(|error| StoreError::io(path, error))?;
        let (notes, columns) =
            reader::read(file).map_err(|error| StoreError::format(path, error.to_string()))?;
        Ok(Contents { notes, columns })
    }

    fn note<T: DeserializeOwned>(&self, path: &Path, key: &str) -> Result<T, StoreError> {
        let found = self.notes.iter().find(|note| note.key == key);
        let text = found
            .and_then(|note| note.value.as_deref())
            .ok_or_else(|| {
                StoreError::format(path, format!("not a result of chappe: it lacks `{key}`"))
            })?;
        serde_json::from_str(text).map_err(|error| StoreError::format(path, error.to_string()))
    }

    fn text(&self, key: &str) -> String {
        let found = self.notes.iter().find(|note| note.key == key);
        found
            .and_then(|note| note.value.clone())
            .unwrap_or_default()
    }
}

fn read_run(path: &Path) -> Result<(String, Provenance, Run), StoreError> {
    let contents = Contents::read(path)?;
    let from = contents.note(path, PROVENANCE)?;
    let mut run: Run = contents.note(path, RUN)?;
    for (_, flow) in columns::flows(&contents.columns).ok_or_else(|| lacking(path))? {
        run.flows.push(flow);
    }
    Ok((contents.text(SCENARIO), from, run))
}

fn lacking(path: &Path) -> StoreError {
    StoreError::format(path, "a row lacks a column")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_results::provenance::Program;
    use chappe_results::{Bound, Delay, Flow};

    fn run(seed: u64) -> Run {
        let flow = |sink: usize, complete: bool| Flow {
            name: format!("r{sink}"),
            transfer: 0,
            source: 0,
            sink,
            source_name: Some("gateway".into()),
            // A node of another network had no name.
            sink_name: complete.then(|| "attic \"two\"".into()),
            protocol: "pacifier".into(),
            variant: "paper".into(),
            offered_bytes: 12_000_000,
            delivered_bytes: if complete { 12_000_000 } else { 48_000 },
            complete,
            digest_ok: complete,
            completion_s: complete.then_some(431.2),
            goodput_bps: if complete { 222_634.5 } else { 0.0 },
            delay_s: complete.then_some(Delay {
                mean: 0.1,
                p50: 0.1,
                p95: 0.2,
                p99: 0.4,
            }),
        };
        let bound = Bound {
            name: "b".into(),
            goodput_bps: 3e5,
            fraction: 0.0,
        };
        Run {
            seed,
            simulated_s: 500.0,
            wall_s: 1.0,
            events: 7,
            digest: "ab".into(),
            flows: vec![flow(3, true), flow(4, false)],
            counters: [("data_transmissions".to_string(), 9131)].into(),
            bounds: vec![bound.clone()],
            bound: Some(bound),
            fairness: None,
        }
    }

    #[test]
    fn written_runs_are_read_again() {
        let folder = std::env::temp_dir().join(format!("chappe-store-{}", std::process::id()));
        let from = Provenance::here(Program::unknown("chappe sim"), "{\"a\": 1}");
        for seed in [2, 1] {
            write(&folder, "test", &from, &run(seed)).unwrap();
        }
        let document = read(&folder).unwrap();
        assert_eq!(document.runs, [run(1), run(2)]);
        assert_eq!(
            (document.scenario.as_str(), document.scenario_text.as_str()),
            ("test", "{\"a\": 1}")
        );
        let names: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert!(
            names.len() == 2
                && names
                    .iter()
                    .all(|n| !n.to_string_lossy().ends_with(".part")),
            "{names:?}"
        );

        let other = Provenance::here(Program::unknown("chappe sim"), "{\"a\": 2}");
        write(&folder, "test", &other, &run(1)).unwrap();
        assert!(
            read(&folder)
                .unwrap_err()
                .to_string()
                .contains("different scenarios")
        );
        fs::remove_dir_all(&folder).unwrap();
        let gone = read(&folder).unwrap_err();
        assert!(matches!(gone, StoreError::Io { .. }), "{gone}");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("chappe-whole-{}", std::process::id()));
        let path = folder.join("copy.bin");
        assert!(write_whole(&path, |_| Err(io::Error::other("full"))).is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        write_whole(&path, |file| file.write_all(b"all")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all");
        fs::remove_dir_all(&folder).unwrap();
    }
}
