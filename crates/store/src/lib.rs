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
//! A file's name is the hash of scenario, seed and program ([`Provenance::key`]). It is written under a temporary name
//! and renamed, so a file that is there is complete. Provenance, counters and bounds are in the file's key-value metadata.

pub mod trace;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Field, Row};
use parquet::schema::types::{Type, TypePtr};

use chappe_results::provenance::Provenance;
use chappe_results::{Delay, Document, Flow, Run};

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
        /// The file.
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

/// One column: its name, its Parquet type, whether it can be empty, and how to get its values.
struct Column {
    name: &'static str,
    physical: Physical,
    optional: bool,
    value: fn(&Run, &Flow) -> Cell,
}

enum Cell {
    Whole(i64),
    Real(Option<f64>),
    Yes(bool),
    Text(String),
}

const fn column(name: &'static str, physical: Physical, value: fn(&Run, &Flow) -> Cell) -> Column {
    Column {
        name,
        physical,
        optional: false,
        value,
    }
}

const fn optional(name: &'static str, value: fn(&Run, &Flow) -> Cell) -> Column {
    Column {
        name,
        physical: Physical::DOUBLE,
        optional: true,
        value,
    }
}

const COLUMNS: [Column; 19] = [
    column("seed", Physical::INT64, |run, _| {
        Cell::Whole(run.seed as i64)
    }),
    column("transfer", Physical::INT64, |_, flow| {
        Cell::Whole(flow.transfer as i64)
    }),
    column("flow", Physical::BYTE_ARRAY, |_, flow| {
        Cell::Text(flow.name.clone())
    }),
    column("source", Physical::INT64, |_, flow| {
        Cell::Whole(flow.source as i64)
    }),
    column("sink", Physical::INT64, |_, flow| {
        Cell::Whole(flow.sink as i64)
    }),
    column("protocol", Physical::BYTE_ARRAY, |_, flow| {
        Cell::Text(flow.protocol.clone())
    }),
    column("variant", Physical::BYTE_ARRAY, |_, flow| {
        Cell::Text(flow.variant.clone())
    }),
    column("offered_bytes", Physical::INT64, |_, flow| {
        Cell::Whole(flow.offered_bytes as i64)
    }),
    column("delivered_bytes", Physical::INT64, |_, flow| {
        Cell::Whole(flow.delivered_bytes as i64)
    }),
    column("complete", Physical::BOOLEAN, |_, flow| {
        Cell::Yes(flow.complete)
    }),
    column("digest_ok", Physical::BOOLEAN, |_, flow| {
        Cell::Yes(flow.digest_ok)
    }),
    optional("completion_s", |_, flow| Cell::Real(flow.completion_s)),
    column("goodput_bps", Physical::DOUBLE, |_, flow| {
        Cell::Real(Some(flow.goodput_bps))
    }),
    optional("delay_mean_s", |_, flow| {
        Cell::Real(flow.delay_s.map(|delay| delay.mean))
    }),
    optional("delay_p50_s", |_, flow| {
        Cell::Real(flow.delay_s.map(|delay| delay.p50))
    }),
    optional("delay_p95_s", |_, flow| {
        Cell::Real(flow.delay_s.map(|delay| delay.p95))
    }),
    optional("delay_p99_s", |_, flow| {
        Cell::Real(flow.delay_s.map(|delay| delay.p99))
    }),
    optional("bound_goodput_bps", |run, flow| {
        Cell::Real(run.bounds.get(flow.transfer).map(|bound| bound.goodput_bps))
    }),
    optional("bound_fraction", |run, flow| {
        Cell::Real(run.bounds.get(flow.transfer).map(|bound| bound.fraction))
    }),
];

/// Writes one run into `folder`, which is created if needed, and returns the path of its file. An older file of the same
/// scenario, seed and program is replaced.
pub fn write(
    folder: &Path,
    scenario: &str,
    from: &Provenance,
    run: &Run,
) -> Result<PathBuf, StoreError> {
    let path = folder.join(format!("{}.parquet", from.key(run.seed)));
    write_whole(&path, |file| {
        encode(file, scenario, from, run).map_err(|error| io::Error::other(error.to_string()))
    })?;
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

/// Writes a new file completely or not at all; [`io::ErrorKind::AlreadyExists`] if there is one of that name. `mode` holds its
/// permission bits. A full disk leaves nothing behind, so that a second try is possible.
pub fn write_new(path: &Path, mode: u32, text: &str) -> Result<(), StoreError> {
    let beside = beside(path);
    let mut options = OpenOptions::new();
    options.create_new(true).mode(mode);
    let written = write_out(&beside, &mut options, |file| {
        file.write_all(text.as_bytes())
    });
    // A link, unlike a rename, never replaces a file.
    let linked = written.and_then(|()| fs::hard_link(&beside, path));
    let _ = fs::remove_file(&beside);
    linked.map_err(|error| StoreError::io(path, error))
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

fn encode(
    file: &mut File,
    scenario: &str,
    from: &Provenance,
    run: &Run,
) -> Result<(), ParquetError> {
    let json =
        |value: serde_json::Result<String>| value.map_err(|e| ParquetError::General(e.to_string()));
    // Flows are the rows; everything else of a run is metadata.
    let whole = Run {
        flows: Vec::new(),
        ..run.clone()
    };
    let notes = [
        (SCENARIO, scenario.to_string()),
        (PROVENANCE, json(serde_json::to_string(from))?),
        (RUN, json(serde_json::to_string(&whole))?),
    ];
    let notes = notes
        .into_iter()
        .map(|(key, value)| KeyValue::new(key.to_string(), value))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(notes))
        .build();
    let mut writer = SerializedFileWriter::new(file, schema()?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in &COLUMNS {
        write_column(&mut group, column, run)?;
    }
    group.close()?;
    writer.close().map(|_| ())
}

fn schema() -> Result<TypePtr, ParquetError> {
    let mut fields = Vec::new();
    for column in &COLUMNS {
        let repetition = if column.optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let text = (column.physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(column.name, column.physical)
            .with_repetition(repetition)
            .with_logical_type(text)
            .build()?;
        fields.push(Arc::new(field));
    }
    Ok(Arc::new(
        Type::group_type_builder("flow")
            .with_fields(fields)
            .build()?,
    ))
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, &mut File>,
    column: &Column,
    run: &Run,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General(
            "fewer columns than the schema has".into(),
        ));
    };
    let cells = || run.flows.iter().map(|flow| (column.value)(run, flow));
    match writer.untyped() {
        ColumnWriter::Int64ColumnWriter(out) => {
            let values: Vec<i64> = cells().filter_map(Cell::whole).collect();
            out.write_batch(&values, None, None)?;
        }
        ColumnWriter::BoolColumnWriter(out) => {
            let values: Vec<bool> = cells().filter_map(Cell::yes).collect();
            out.write_batch(&values, None, None)?;
        }
        ColumnWriter::ByteArrayColumnWriter(out) => {
            let values: Vec<ByteArray> = cells()
                .filter_map(Cell::text)
                .map(|t| t.as_str().into())
                .collect();
            out.write_batch(&values, None, None)?;
        }
        ColumnWriter::DoubleColumnWriter(out) => {
            let values: Vec<Option<f64>> = cells().map(Cell::real).collect();
            let levels: Vec<i16> = values
                .iter()
                .map(|value| i16::from(value.is_some()))
                .collect();
            let given: Vec<f64> = values.into_iter().flatten().collect();
            out.write_batch(&given, column.optional.then_some(&levels), None)?;
        }
        _ => {
            return Err(ParquetError::General(
                "a column of an unexpected type".into(),
            ));
        }
    }
    writer.close()
}

impl Cell {
    fn whole(self) -> Option<i64> {
        if let Cell::Whole(value) = self {
            Some(value)
        } else {
            None
        }
    }
    fn yes(self) -> Option<bool> {
        if let Cell::Yes(value) = self {
            Some(value)
        } else {
            None
        }
    }
    fn text(self) -> Option<String> {
        if let Cell::Text(value) = self {
            Some(value)
        } else {
            None
        }
    }
    fn real(self) -> Option<f64> {
        if let Cell::Real(value) = self {
            value
        } else {
            None
        }
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

fn read_run(path: &Path) -> Result<(String, Provenance, Run), StoreError> {
    let wrong = |why: String| StoreError::format(path, why);
    let file = File::open(path).map_err(|error| StoreError::io(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(|error| wrong(error.to_string()))?;
    let notes = reader.metadata().file_metadata().key_value_metadata();
    let note = |key: &str| {
        let found = notes.into_iter().flatten().find(|note| note.key == key)?;
        found.value.clone()
    };
    let need = |key: &str| {
        note(key).ok_or_else(|| wrong(format!("not a result of chappe: it lacks `{key}`")))
    };
    let from =
        serde_json::from_str(&need(PROVENANCE)?).map_err(|error| wrong(error.to_string()))?;
    let mut run: Run =
        serde_json::from_str(&need(RUN)?).map_err(|error| wrong(error.to_string()))?;
    for row in reader
        .get_row_iter(None)
        .map_err(|error| wrong(error.to_string()))?
    {
        let row = row.map_err(|error| wrong(error.to_string()))?;
        run.flows
            .push(flow(&row).ok_or_else(|| wrong("a row lacks a column".into()))?);
    }
    Ok((need(SCENARIO)?, from, run))
}

fn flow(row: &Row) -> Option<Flow> {
    let field = |name: &str| {
        row.get_column_iter()
            .find(|(key, _)| key.as_str() == name)
            .map(|(_, field)| field)
    };
    let whole = |name: &str| {
        if let Some(Field::Long(value)) = field(name) {
            Some(*value as u64)
        } else {
            None
        }
    };
    let real = |name: &str| {
        if let Some(Field::Double(value)) = field(name) {
            Some(*value)
        } else {
            None
        }
    };
    let yes = |name: &str| {
        if let Some(Field::Bool(value)) = field(name) {
            Some(*value)
        } else {
            None
        }
    };
    let text = |name: &str| {
        if let Some(Field::Str(value)) = field(name) {
            Some(value.clone())
        } else {
            None
        }
    };
    let delay = || {
        let [mean, p50, p95, p99] =
            ["delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_p99_s"].map(real);
        Some(Delay {
            mean: mean?,
            p50: p50?,
            p95: p95?,
            p99: p99?,
        })
    };
    Some(Flow {
        name: text("flow")?,
        transfer: whole("transfer")? as usize,
        source: whole("source")? as usize,
        sink: whole("sink")? as usize,
        protocol: text("protocol")?,
        variant: text("variant")?,
        offered_bytes: whole("offered_bytes")?,
        delivered_bytes: whole("delivered_bytes")?,
        complete: yes("complete")?,
        digest_ok: yes("digest_ok")?,
        completion_s: real("completion_s"),
        goodput_bps: real("goodput_bps")?,
        delay_s: delay(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_results::Bound;
    use chappe_results::provenance::Program;

    fn run(seed: u64) -> Run {
        let flow = |sink: usize, complete: bool| Flow {
            name: format!("r{sink}"),
            transfer: 0,
            source: 0,
            sink,
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

    /// A new file is whole or absent, keeps its mode, and never replaces one.
    #[test]
    fn a_new_file_replaces_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("chappe-store-new-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("key");
        write_new(&path, 0o600, "first").unwrap();
        let error = write_new(&path, 0o600, "second").unwrap_err();
        let exists = matches!(&error, StoreError::Io { error, .. } if error.kind() == io::ErrorKind::AlreadyExists);
        assert!(exists, "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "remains");
        fs::remove_dir_all(&folder).unwrap();
    }
}
