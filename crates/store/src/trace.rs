//! Traces on disk: a folder with a Parquet file for each table. Any reader of Parquet opens them; `docs/view.md` describes
//! the columns.
//!
//! The folder is filled under a temporary name and renamed, so a folder that is there is complete.

use std::convert::Infallible;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use chappe_sim::AirTime;
use chappe_trace::{About, TABLES, Table, Tables, Trace, Values};
use parquet::errors::ParquetError;

use crate::chunk::{self, Cells, Chunk, List};
use crate::encoding::wrong;
use crate::{StoreError, reader};

const ABOUT: &str = "chappe.trace";

/// Whether a folder holds a trace.
pub fn is_trace(folder: &Path) -> bool {
    folder.join("receptions.parquet").is_file()
}

/// The traces in a folder: itself, or those in it, sorted by name.
pub fn find(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    if is_trace(folder) {
        return Ok(vec![folder.to_path_buf()]);
    }
    let entries = fs::read_dir(folder).map_err(|error| StoreError::io(folder, error))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| is_trace(path));
    // Seeds by number: seed-2 before seed-10.
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found)
}

/// What can be written: tables, or rows of which tables are made.
pub trait Columns: Sync {
    /// What the rows are about.
    fn about(&self) -> &About;
    /// The name and the values of one column of the table of this name, one of [`TABLES`]; `None` behind the last one.
    fn column(&self, table: &str, place: usize) -> Option<(&str, Values<'_>)>;
}

impl Columns for Tables {
    fn about(&self) -> &About {
        &self.about
    }

    fn column(&self, table: &str, place: usize) -> Option<(&str, Values<'_>)> {
        let column = self.table(table)?.columns.get(place)?;
        Some((&column.name, column.data.values()))
    }
}

impl Columns for Trace {
    fn about(&self) -> &About {
        &self.about
    }

    fn column(&self, table: &str, place: usize) -> Option<(&str, Values<'_>)> {
        self.values(table, place)
    }
}

/// Writes a trace to `folder`. An older trace there is replaced, other files are not touched. A [`Trace`] is written column by column,
/// so that its tables never stand in memory together.
pub fn write(folder: &Path, trace: &impl Columns) -> Result<(), StoreError> {
    let failed = |error| StoreError::io(folder, error);
    let mut part = folder.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    fs::create_dir_all(&part).map_err(failed)?;
    let note = [(ABOUT, about_json(trace.about()).to_string())];
    let one = |table: &str, chunks: &[Chunk]| {
        let path = part.join(format!("{table}.parquet"));
        let file = File::create(&path).map_err(failed)?;
        chunk::write(&file, table, &note, chunks).map_err(failed)?;
        file.sync_all().map_err(failed)
    };
    let tables = encode(trace);
    let one = &one;
    // Side by side, since each waits for the disk.
    side_by_side(TABLES.into_iter().zip(&tables), |(table, chunks)| {
        one(table, chunks)
    })?;
    if is_trace(folder) {
        for name in TABLES {
            let old = folder.join(format!("{name}.parquet"));
            fs::remove_file(old).map_err(failed)?;
        }
        // It stays, with a clear message, if it holds something else.
        fs::remove_dir(folder).map_err(failed)?;
    }
    fs::rename(&part, folder).map_err(failed)
}

/// Reads the trace in a folder, all its tables.
pub fn read(folder: &Path) -> Result<Tables, StoreError> {
    let mut tables = Tables::default();
    for name in TABLES {
        let path = folder.join(format!("{name}.parquet"));
        let file = File::open(&path).map_err(|error| StoreError::io(&path, error))?;
        let (about, table) =
            decode(file, name).map_err(|error| StoreError::format(&path, error.to_string()))?;
        tables.about = about;
        tables.tables.push(table);
    }
    Ok(tables)
}

/// Runs each of a few works on a thread of its own.
fn side_by_side<T: Send, E: Send>(
    works: impl Iterator<Item = T>,
    work: impl Fn(T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = works.map(|one| scope.spawn(move || work(one))).collect();
        let done = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.collect()
    })
}

/// The columns of each table, encoded by as many threads as there are processors: one that is free takes the next column.
fn encode(trace: &impl Columns) -> [Vec<Chunk>; TABLES.len()] {
    let next = Mutex::new((0, 0));
    let done = Mutex::new(Vec::new());
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let encoded = side_by_side(0..processors, |_| {
        loop {
            let (table, place) = {
                let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                next.1 += 1;
                (next.0, next.1 - 1)
            };
            let Some(name) = TABLES.get(table) else {
                return Ok::<(), Infallible>(());
            };
            if let Some((column, values)) = trace.column(name, place) {
                let chunk = chunk_of(column, &values);
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push((table, place, chunk));
                continue;
            }
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have come to the end of this table as well.
            if next.0 == table {
                *next = (table + 1, 0);
            }
        }
    });
    let Ok(()) = encoded;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(table, place, _)| (*table, *place));
    let mut tables = [const { Vec::new() }; TABLES.len()];
    for (table, _, chunk) in done {
        tables[table].push(chunk);
    }
    tables
}

fn chunk_of(name: &str, values: &Values<'_>) -> Chunk {
    match values {
        Values::Short(values, gaps) => chunk::encode(name, Cells::Short(values), *gaps),
        Values::Long(values, gaps) => chunk::encode(name, Cells::Long(values), *gaps),
        Values::Single(values) => {
            let gaps = values
                .iter()
                .fold(false, |gaps, value| gaps | value.is_nan());
            chunk::encode(name, Cells::Single(values), gaps)
        }
        Values::Double(values) => {
            let (mut long, mut gaps) = (false, false);
            for &value in values.iter() {
                let none = value.is_nan();
                gaps |= none;
                long |= !none & (f64::from(value as f32) != value);
            }
            if long {
                return chunk::encode(name, Cells::Double(values), gaps);
            }
            let short: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            chunk::encode(name, Cells::Single(&short), gaps)
        }
        Values::Words(codes, words) => {
            let list = List::Words(words);
            chunk::encode(name, Cells::Listed { codes, list }, false)
        }
    }
}

fn decode(file: File, name: &str) -> Result<(About, Table), ParquetError> {
    let (notes, columns) = reader::read(file)?;
    let note = notes.iter().find(|note| note.key == ABOUT);
    let text = note.and_then(|note| note.value.as_deref());
    let about = text
        .and_then(about_of)
        .ok_or_else(|| wrong("not a trace of chappe"))?;
    let table = Table {
        name: name.to_string(),
        columns,
    };
    Ok((about, table))
}

/// What a trace is about, as JSON: also what the page gets.
pub fn about_json(about: &About) -> serde_json::Value {
    serde_json::json!({
        "format": 1,
        "scenario": about.scenario,
        "system": about.system,
        "variant": about.variant,
        "seed": about.seed,
        "end_ns": about.end.nanos(),
        "nodes": about.nodes,
        "interferers": about.interferers,
        "names": about.names,
        "positions_m": about.positions,
        "noise_dbm": about.noise_dbm,
        "dropped": { "frames": about.dropped[0], "receptions": about.dropped[1], "readings": about.dropped[2] },
    })
}

fn about_of(text: &str) -> Option<About> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let word = |key: &str| Some(json.get(key)?.as_str()?.to_string());
    let number = |key: &str| json.get(key)?.as_u64();
    let dropped = |key: &str| json.get("dropped")?.get(key)?.as_u64();
    let pair = |at: &serde_json::Value| Some((at.get(0)?.as_f64()?, at.get(1)?.as_f64()?));
    if number("format")? != 1 {
        return None;
    }
    Some(About {
        scenario: word("scenario")?,
        system: word("system")?,
        variant: word("variant")?,
        seed: number("seed")?,
        end: AirTime::from_nanos(number("end_ns")?),
        nodes: number("nodes")? as usize,
        // Traces of the versions before have neither.
        interferers: number("interferers").unwrap_or(0) as usize,
        names: (json.get("names").and_then(|names| names.as_array()))
            .into_iter()
            .flatten()
            .map(|name| name.as_str().map(str::to_owned))
            .collect::<Option<_>>()?,
        positions: json
            .get("positions_m")?
            .as_array()?
            .iter()
            .map(pair)
            .collect::<Option<_>>()?,
        noise_dbm: json.get("noise_dbm")?.as_f64(),
        dropped: [
            dropped("frames")?,
            dropped("receptions")?,
            dropped("readings")?,
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_trace::{Column, Data, NONE};

    fn tables() -> Tables {
        let column = |name: &str, data| Column {
            name: name.into(),
            data,
        };
        let table = |name: &str| Table {
            name: name.into(),
            columns: vec![
                column("whole", Data::Whole(vec![1, NONE, -3])),
                column("long", Data::Whole(vec![1 << 40, NONE, i64::MAX])),
                column("time", Data::Whole(vec![0, 7, 1 << 33])),
                column("real", Data::Real(vec![f64::NAN, 0.5, f64::INFINITY])),
                column("fine", Data::Real(vec![0.1, 0.5, -0.0])),
                column("word", Data::of_words(["data", "ack", "data"].into_iter())),
            ],
        };
        Tables {
            about: About {
                scenario: "a \"quoted\" title".into(),
                positions: vec![(1.5, -2.0)],
                names: vec!["gate \"way\"".into()],
                noise_dbm: Some(-93.6),
                nodes: 1,
                end: AirTime::from_nanos(7),
                ..About::default()
            },
            tables: TABLES.into_iter().map(table).collect(),
        }
    }

    /// Rows are written as the tables that are made of them: one row of each kind, with and without what may lack.
    #[test]
    fn rows_are_written_as_their_tables() {
        use chappe_sim::{Switched, Value};
        use chappe_trace::{Frame, Label, Link, NO_FRAME, NodeReading, Reception, Switch};
        let at = AirTime::from_nanos(7);
        let frame = Frame {
            node: 1,
            number: 2,
            start: at,
            airtime: chappe_core::Duration::from_nanos(5),
            octets: 60,
            channel: 3,
            label: Label::default(),
        };
        let reception = Reception {
            frame: 0,
            node: 0,
            from: 1,
            start: at,
            at,
            power_dbm: -80.5,
            sinr_db: f32::NAN,
            outcome: Ok(()),
            culprit: NO_FRAME,
        };
        let word = NodeReading {
            at,
            node: 0,
            name: "state",
            part: 0,
            value: Value::Word("asleep"),
        };
        let trace = Trace {
            frames: vec![frame],
            receptions: vec![reception],
            switches: vec![Switch {
                at,
                node: 1,
                to: Switched::Asleep,
            }],
            readings: vec![word],
            links: vec![Link {
                from: 1,
                to: 0,
                delivery: 0.5,
            }],
            ..Trace::default()
        };
        let folder = std::env::temp_dir().join(format!("chappe-rows-{}", std::process::id()));
        write(&folder, &trace).unwrap();
        assert_eq!(read(&folder).unwrap(), trace.tables());
        fs::remove_dir_all(folder).unwrap();
    }

    /// What is written is read again, twice into one folder; and a file of another kind is refused.
    #[test]
    fn traces_survive_the_disk() {
        let folder = std::env::temp_dir().join(format!("chappe-trace-{}", std::process::id()));
        let run = folder.join("seed-1");
        for _ in 0..2 {
            write(&run, &tables()).unwrap();
            assert_eq!(read(&run).unwrap(), tables());
        }
        assert_eq!(find(&folder).unwrap(), std::slice::from_ref(&run));
        assert_eq!(find(&run).unwrap(), std::slice::from_ref(&run));
        fs::write(run.join("links.parquet"), "no parquet").unwrap();
        assert!(read(&run).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
