//! The runs of a sweep on disk: one Parquet file for each cell, and a journal of what is not in them yet.
//!
//! A cell is one scenario of the sweep. Its file has a row for each flow of each seed, the columns of a single run's file, and
//! one for each swept key, so that all files of the folder `cells` together are one data set. A run that ends is first appended
//! to a journal, which costs a tenth of a millisecond; at its end, or when it is interrupted, a sweep moves its runs to the
//! cells' files. What a killed sweep had finished is in its journal.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use chappe_results::provenance::Provenance;
use chappe_results::{DATA_TRANSMISSIONS, Document, Run};
use serde::{Deserialize, Serialize};

use crate::table::{Column, Values};
use crate::{
    Contents, PROVENANCE, SCENARIO, StoreError, columns, lacking, table, without_flows, write_whole,
};

const RUNS: &str = "chappe.runs";
const SWEPT: &str = "chappe.swept";

/// A swept key with its value in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// The key in the scenario: `radio.tx_power`.
    pub key: String,
    /// The value as people write it: `15 dBm`.
    pub shown: String,
    /// The value as a number and the name of its column, if it is one: `radio.tx_power_dbm`, 15.
    pub number: Option<(String, f64)>,
}

/// One cell: its name on disk, its scenario and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct CellKey {
    /// The name of its file: a hash of scenario and program.
    pub name: String,
    /// The title of the scenario.
    pub title: String,
    /// The program and the scenario behind it.
    pub from: Provenance,
    /// The value of each swept key.
    pub swept: Vec<Swept>,
}

/// A cell that was read.
#[derive(Clone, Debug)]
pub struct CellRuns {
    /// Its name on disk.
    pub name: String,
    /// The value of each swept key.
    pub swept: Vec<Swept>,
    /// Its runs, in the order of the seeds.
    pub document: Document,
    /// The files that hold them, each with its seeds.
    pub files: Vec<(PathBuf, Vec<u64>)>,
}

/// The folder of the cells' files.
pub fn cells_folder(out: &Path) -> PathBuf {
    out.join("cells")
}

/// A part of an array job: its number from one on, and the number of parts.
pub type Part = (usize, usize);

/// The file of a cell, or of one part's runs of it.
pub fn cell_file(out: &Path, name: &str, part: Option<Part>) -> PathBuf {
    cells_folder(out).join(named(name, part, "parquet"))
}

/// A file of its own for each part, so that parts do not replace each other's.
fn named(name: &str, part: Option<Part>, extension: &str) -> String {
    match part {
        None => format!("{name}.{extension}"),
        Some((index, count)) => format!("{name}.{index}-of-{count}.{extension}"),
    }
}

/// Writes runs of a cell.
pub fn write(
    out: &Path,
    cell: &CellKey,
    part: Option<Part>,
    runs: &[&Run],
) -> Result<(), StoreError> {
    let json = |value: serde_json::Result<String>| value.map_err(io::Error::other);
    write_whole(&cell_file(out, &cell.name, part), |file| {
        let bare: Vec<Run> = runs.iter().map(|run| without_flows(run)).collect();
        let notes = [
            (SCENARIO, cell.title.clone()),
            (PROVENANCE, json(serde_json::to_string(&cell.from))?),
            (RUNS, json(serde_json::to_string(&bare))?),
            (SWEPT, json(serde_json::to_string(&cell.swept))?),
        ];
        let mut columns = columns::of(runs);
        columns.extend(run_columns(runs));
        let rows = columns::rows(runs).count();
        columns.extend(
            cell.swept
                .iter()
                .flat_map(|swept| swept_columns(swept, rows)),
        );
        table::encode(file, &notes, &columns).map_err(|error| io::Error::other(error.to_string()))
    })
}

/// Counters of energy in microjoules, which become columns in joules, empty for radios without figures: of the nodes of P³'s plan until the
/// transfer is complete, and of all radios over the run.
const ENERGIES: [&str; 2] = ["energy_uj", "radio_energy_uj"];

/// What a data set of many runs needs beside the flows' columns.
fn run_columns(runs: &[&Run]) -> Vec<Column> {
    let rows = || columns::rows(runs).map(|(run, _)| run);
    let joules = |name: &str| {
        let of = |run: &Run| run.counters.get(name).map(|&micro| micro as f64 * 1e-6);
        let column = name.replace("_uj", "_j");
        Column::new(column, Values::Real(rows().map(of).collect())).optional()
    };
    let energy = ENERGIES.map(joules);
    let mut columns = vec![
        Column::new(
            "digest",
            Values::Text(rows().map(|run| Some(run.digest.clone())).collect()),
        ),
        Column::new(
            "simulated_s",
            Values::Real(rows().map(|run| Some(run.simulated_s)).collect()),
        ),
        Column::new(
            DATA_TRANSMISSIONS,
            Values::Whole(
                rows()
                    .map(|run| run.counter(DATA_TRANSMISSIONS) as i64)
                    .collect(),
            ),
        ),
    ];
    columns.extend(energy);
    columns
}

fn swept_columns(swept: &Swept, rows: usize) -> Vec<Column> {
    let mut columns = Vec::new();
    let number = |value: f64| Values::Real(vec![Some(value); rows]);
    match &swept.number {
        Some((name, value)) if *name == swept.key => {
            return vec![Column::new(name, number(*value))];
        }
        Some((name, value)) => columns.push(Column::new(name, number(*value))),
        None => {}
    }
    let shown = Values::Text(vec![Some(swept.shown.clone()); rows]);
    columns.insert(0, Column::new(&swept.key, shown));
    columns
}

/// Whether a folder holds the results of a sweep.
pub fn is_sweep(path: &Path) -> bool {
    cells_folder(path).is_dir()
}

/// The cells of a sweep's folder in the order of their values, each with all its runs. `wanted` chooses by name.
pub fn read(out: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<CellRuns>, StoreError> {
    let folder = cells_folder(out);
    let mut cells: BTreeMap<String, CellRuns> = BTreeMap::new();
    for path in parquet_files(&folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_string();
        if !wanted(&name) {
            continue;
        }
        let (swept, title, from, mut runs) = read_cell(&path)?;
        let mut files = vec![(path, runs.iter().map(|run| run.seed).collect())];
        if let Some(known) = cells.remove(&name) {
            runs.extend(known.document.runs);
            files.extend(known.files);
        }
        let document = Document::new(&title, &from, once(runs), false);
        let cell = CellRuns {
            name: name.clone(),
            swept,
            document,
            files,
        };
        cells.insert(name, cell);
    }
    Ok(cells.into_values().collect())
}

/// Runs in the order of their seeds, each once.
pub fn once(mut runs: Vec<Run>) -> Vec<Run> {
    runs.sort_by_key(|run| run.seed);
    runs.dedup_by_key(|run| run.seed);
    runs
}

fn parquet_files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| StoreError::io(folder, error))?,
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| crate::is_parquet(file));
    files.sort();
    Ok(files)
}

type ReadCell = (Vec<Swept>, String, Provenance, Vec<Run>);

fn read_cell(path: &Path) -> Result<ReadCell, StoreError> {
    let contents = Contents::read(path)?;
    let mut runs: Vec<Run> = contents.note(path, RUNS)?;
    let places: BTreeMap<u64, usize> = runs
        .iter()
        .enumerate()
        .map(|(place, run)| (run.seed, place))
        .collect();
    for (seed, flow) in columns::flows(&contents.columns).ok_or_else(|| lacking(path))? {
        let place = places.get(&seed);
        let run = place
            .and_then(|&place| runs.get_mut(place))
            .ok_or_else(|| lacking(path))?;
        run.flows.push(flow);
    }
    Ok((
        contents.note(path, SWEPT)?,
        contents.text(SCENARIO),
        contents.note(path, PROVENANCE)?,
        runs,
    ))
}

/// A file that finished runs are appended to, one line each: the cell's name, a digest, and the run as JSON.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens the journal of one part of a sweep, or of the whole, and locks it until it is dropped. An error if another sweep has
    /// it.
    pub fn open(out: &Path, part: Option<Part>) -> Result<Journal, StoreError> {
        fs::create_dir_all(out).map_err(|error| StoreError::io(out, error))?;
        Journal::at(&out.join(named("journal", part, "jsonl")))
    }

    /// The journals of all parts of a sweep that are not at work; an error if one is.
    pub fn of_parts(out: &Path) -> Result<Vec<Journal>, StoreError> {
        let entries = fs::read_dir(out).map_err(|error| StoreError::io(out, error))?;
        let is_part = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("journal.") && name.ends_with(".jsonl") && name != "journal.jsonl"
        };
        let paths = entries.flatten().map(|entry| entry.path()).filter(is_part);
        paths.map(|path| Journal::at(&path)).collect()
    }

    fn at(path: &Path) -> Result<Journal, StoreError> {
        let failed = |error| StoreError::io(path, error);
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .map_err(failed)?;
        if file.try_lock().is_err() {
            let why = "another chappe sweep is at work in this folder";
            let help = "wait until it ends, or choose another folder with --out";
            return Err(StoreError::format(path, why).with_help(help));
        }
        let mut journal = Journal {
            file,
            path: path.to_path_buf(),
        };
        journal.end_line().map_err(failed)?;
        Ok(journal)
    }

    /// Ends a line that a killed process left half.
    fn end_line(&mut self) -> io::Result<()> {
        if self.file.seek(SeekFrom::End(0))? == 0 {
            return Ok(());
        }
        self.file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        self.file.read_exact(&mut last)?;
        if last != *b"\n" {
            self.file.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Appends a run of the cell `name`.
    pub fn append(&mut self, name: &str, run: &Run) -> Result<(), StoreError> {
        let json = serde_json::to_string(run)
            .map_err(|error| StoreError::format(&self.path, error.to_string()))?;
        let line = format!("{name} {} {json}\n", digest(&json));
        self.file
            .write_all(line.as_bytes())
            .map_err(|error| StoreError::io(&self.path, error))
    }

    /// The runs in it with the names of their cells. Lines that are not whole are left out: their runs are made again.
    pub fn read(&self) -> Result<Vec<(String, Run)>, StoreError> {
        let file = File::open(&self.path).map_err(|error| StoreError::io(&self.path, error))?;
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        Ok(lines.filter_map(|line| entry_of(&line)).collect())
    }

    /// Removes the journal after its runs are in the cells' files.
    pub fn remove(self) -> Result<(), StoreError> {
        fs::remove_file(&self.path).map_err(|error| StoreError::io(&self.path, error))
    }
}

fn entry_of(line: &[u8]) -> Option<(String, Run)> {
    let line = std::str::from_utf8(line).ok()?;
    let (name, rest) = line.split_once(' ')?;
    let (sum, json) = rest.split_once(' ')?;
    let run = (sum == digest(json)).then(|| serde_json::from_str(json).ok())??;
    Some((name.to_string(), run))
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_results::Flow;
    use chappe_results::provenance::Program;

    fn run(seed: u64) -> Run {
        let flow = |name: &str| Flow {
            goodput_bps: 1e3 * seed as f64,
            complete: true,
            ..Flow::named(name)
        };
        Run {
            digest: format!("{seed:016x}"),
            flows: vec![flow("r1"), flow("r2")],
            counters: [(DATA_TRANSMISSIONS.to_string(), 7)].into(),
            ..Run::new(seed)
        }
    }

    fn cell(name: &str, dbm: f64) -> CellKey {
        let power = Swept {
            key: "radio.tx_power".into(),
            shown: format!("{dbm} dBm"),
            number: Some(("radio.tx_power_dbm".into(), dbm)),
        };
        let variant = Swept {
            key: "protocol.variant".into(),
            shown: "paper".into(),
            number: None,
        };
        CellKey {
            name: name.into(),
            title: "a test".into(),
            from: Provenance::here(Program::unknown("chappe sweep"), name),
            swept: vec![variant, power],
        }
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("chappe-sweep-{name}-{}", std::process::id()))
    }

    /// Cells of systems with and without figures of energy have the same columns, so that their files are one table.
    #[test]
    fn energy_is_a_column_in_joules() {
        let mut spent = run(1);
        spent.counters.insert("radio_energy_uj".into(), 2_500_000);
        let column = |runs: &[&Run], name: &str| {
            let columns = run_columns(runs);
            let found = columns.into_iter().find(|column| column.name == name);
            found.unwrap().values
        };
        let real = |values: &[Option<f64>]| Values::Real(values.to_vec());
        let (plain, name) = (run(2), "radio_energy_j");
        let rows = [Some(2.5), Some(2.5), None, None];
        assert_eq!(column(&[&spent, &plain], name), real(&rows));
        assert_eq!(column(&[&plain], "energy_j"), real(&[None, None]));
    }

    /// Goal: the parts of an array job in one folder are one cell with all runs, equal to those that were written.
    #[test]
    fn parts_of_a_cell_are_read_as_one() {
        let out = folder("parts");
        write(&out, &cell("aa", 10.0), Some((1, 2)), &[&run(1), &run(3)]).unwrap();
        write(&out, &cell("aa", 10.0), Some((2, 2)), &[&run(2)]).unwrap();
        write(&out, &cell("bb", 15.0), None, &[&run(1)]).unwrap();
        let cells = read(&out, |_| true).unwrap();
        assert_eq!(cells.len(), 2);
        assert_eq!(cells[0].document.runs, [run(1), run(2), run(3)]);
        assert_eq!(cells[1].swept, cell("bb", 15.0).swept);
        assert_eq!(cells[0].files.len(), 2);
        assert_eq!(read(&out, |name| name == "bb").unwrap().len(), 1);
        assert!(is_sweep(&out) && !is_sweep(&cells_folder(&out)));
        fs::remove_dir_all(&out).unwrap();
    }

    /// Goal: runs without a flow are read too, and a file that lacks a column is refused.
    #[test]
    fn cells_without_rows_are_read_and_foreign_ones_refused() {
        let out = folder("rows");
        let bare = Run {
            flows: Vec::new(),
            ..run(4)
        };
        write(&out, &cell("aa", 10.0), None, &[&bare]).unwrap();
        let cells = read(&out, |_| true).unwrap();
        assert_eq!(cells[0].document.runs, [bare]);
        let seeds = Column::new("seed", Values::Whole(vec![1]));
        table::write(&cell_file(&out, "bb", None), &[], &[seeds]).unwrap();
        let refused = read(&out, |_| true).unwrap_err();
        assert!(refused.to_string().contains("bb.parquet"), "{refused}");
        fs::remove_dir_all(&out).unwrap();
    }

    /// Goal: a number has the same bits after it was in the journal, or a resumed sweep would differ from another in its last digits.
    #[test]
    fn numbers_come_back_from_the_journal_bit_by_bit() {
        let out = folder("bits");
        let mut journal = Journal::open(&out, None).unwrap();
        let run = |seed: u64| Run {
            // Digits without a pattern: multiples of the golden ratio.
            simulated_s: 100.0 * (seed as f64 * 0.618_033_988_749_894_8).fract(),
            ..run(seed)
        };
        let runs: Vec<Run> = (0..1000).map(run).collect();
        for run in &runs {
            journal.append("aa", run).unwrap();
        }
        let read = journal.read().unwrap();
        let differ = read
            .iter()
            .zip(&runs)
            .filter(|((_, read), run)| read.simulated_s.to_bits() != run.simulated_s.to_bits());
        assert_eq!((read.len(), differ.count()), (1000, 0));
        fs::remove_dir_all(&out).unwrap();
    }

    /// Goal: a process killed at any octet of a line loses that run only, and the next one appends behind it.
    #[test]
    fn a_torn_journal_loses_one_run() {
        let out = folder("journal");
        let mut journal = Journal::open(&out, None).unwrap();
        assert!(Journal::open(&out, None).is_err(), "two at once");
        assert!(Journal::open(&out, Some((1, 2))).is_ok());
        for seed in [1, 2] {
            journal.append("aa", &run(seed)).unwrap();
        }
        drop(journal);
        let path = out.join("journal.jsonl");
        let whole = fs::read(&path).unwrap();
        let first = whole.iter().position(|octet| *octet == b'\n').unwrap() + 1;
        for cut in [first + 1, first + 30, whole.len() - 2] {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&out, None).unwrap();
            assert_eq!(journal.read().unwrap(), [("aa".to_string(), run(1))]);
            journal.append("bb", &run(9)).unwrap();
            let names: Vec<String> = journal
                .read()
                .unwrap()
                .into_iter()
                .map(|(name, _)| name)
                .collect();
            assert_eq!(names, ["aa", "bb"]);
        }
        let flipped: Vec<u8> = whole
            .iter()
            .enumerate()
            .map(|(at, octet)| octet ^ u8::from(at == first + 60))
            .collect();
        fs::write(&path, flipped).unwrap();
        let journal = Journal::open(&out, None).unwrap();
        assert_eq!(journal.read().unwrap().len(), 1);
        assert!(
            Journal::of_parts(&out).unwrap().len() == 1,
            "the journal of part 1"
        );
        journal.remove().unwrap();
        assert!(!path.exists());
        fs::remove_dir_all(&out).unwrap();
    }
}
