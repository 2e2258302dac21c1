//! The results that are compared: of `sim`, of a sweep's cells, or of the lab.

use std::path::{Path, PathBuf};

use chappe_results::Document;
use chappe_scenario::InputError;
use chappe_store::{self as store, StoreError, sweep};
use serde_json::Value;

use crate::failure::Failure;

/// One result with its name.
pub struct Input {
    pub name: String,
    pub document: Document,
    /// Keys that were varied on purpose, if it is a cell of a sweep.
    pub swept: Vec<String>,
    /// The folder of the sweep, if it is a cell of one.
    pub sweep: Option<PathBuf>,
}

/// What the lab made of one paper.
pub struct LabInput {
    pub name: String,
    pub document: Value,
}

/// All results: either of runs, or of the lab.
pub enum Inputs {
    Runs(Vec<Input>),
    Lab(Vec<Vec<LabInput>>),
}

/// Reads everything that was named. Results of runs and of the lab cannot stand beside each other.
pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Inputs, Failure> {
    let (mut runs, mut labs) = (Vec::new(), Vec::new());
    for path in paths {
        let path = path.as_ref();
        match lab(path)? {
            Some(papers) => labs.push(papers),
            None => runs.extend(of_runs(path)?),
        }
    }
    match (runs.is_empty(), labs.is_empty()) {
        (_, true) => Ok(Inputs::Runs(runs)),
        (true, false) => Ok(Inputs::Lab(labs)),
        (false, false) => {
            let message = "results of the lab and of runs have nothing in common to compare";
            Err(InputError::new("", message)
                .help("compare the lab's with the lab's")
                .into())
        }
    }
}

fn of_runs(path: &Path) -> Result<Vec<Input>, Failure> {
    let name = path.display().to_string();
    if sweep::is_sweep(path) {
        let cells = sweep::read(path, |_| true).map_err(unreadable)?;
        let grid = grid(path);
        let mut inputs: Vec<(usize, Input)> = cells
            .into_iter()
            .map(|cell| {
                let values = cell.swept.iter().map(|swept| swept.shown.clone());
                let values: Vec<String> = values.collect();
                let place = grid.iter().position(|known| *known == values);
                let words: Vec<String> = cell
                    .swept
                    .iter()
                    .map(|swept| format!("{} = {}", swept.key, swept.shown))
                    .collect();
                let swept = cell.swept.into_iter().map(|swept| swept.key).collect();
                let input = Input {
                    name: format!("{name}: {}", words.join(", ")),
                    document: cell.document,
                    swept,
                    sweep: Some(path.to_path_buf()),
                };
                (place.unwrap_or(usize::MAX), input)
            })
            .collect();
        inputs.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
        let inputs: Vec<Input> = inputs.into_iter().map(|(_, input)| input).collect();
        if inputs.is_empty() {
            return Err(InputError::new("", format!("{name} holds no finished cell")).into());
        }
        return Ok(inputs);
    }
    let document = store::read(path).map_err(unreadable)?;
    Ok(vec![Input {
        name,
        document,
        swept: Vec::new(),
        sweep: None,
    }])
}

/// The values of a finished sweep's cells in the order of its grid. Its table compares with the first of them, and so does `compare`.
/// Without the summary of the sweep there is no such order.
fn grid(folder: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder.join("sweep.json")).unwrap_or_default();
    let summary: Value = serde_json::from_str(&text).unwrap_or_default();
    let cells = summary["cells"].as_array().into_iter().flatten();
    let values = cells.filter_map(|cell| cell["values"].as_array());
    let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    values
        .map(|values| values.iter().map(shown).collect())
        .collect()
}

fn unreadable(error: StoreError) -> Failure {
    match error {
        // A missing input is not the environment's fault, as an unwritable output is.
        StoreError::Io { path, error } => InputError::unreadable(&path, &error).into(),
        error => error.into(),
    }
}

/// The lab's documents in a file or a folder, or `None` if it holds something else.
fn lab(path: &Path) -> Result<Option<Vec<LabInput>>, Failure> {
    if !path.is_dir() {
        return Ok(document(path));
    }
    let entries = std::fs::read_dir(path).map_err(|error| InputError::unreadable(path, &error))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    let papers: Vec<LabInput> = files
        .iter()
        .filter_map(|file| document(file))
        .flatten()
        .collect();
    Ok((!papers.is_empty()).then_some(papers))
}

fn document(path: &Path) -> Option<Vec<LabInput>> {
    let extension = path.extension()?;
    let text = (extension == "json").then(|| std::fs::read_to_string(path).ok())??;
    // Results of runs can be large: only what looks like the lab's is parsed.
    let whole: Value = text
        .contains("\"figures\"")
        .then(|| serde_json::from_str(&text).ok())??;
    let name = path.display().to_string();
    let one = |document: &Value| {
        let is_lab = document["paper"].is_string() && document["figures"].is_array();
        is_lab.then(|| LabInput {
            name: name.clone(),
            document: document.clone(),
        })
    };
    match whole["papers"].as_array() {
        Some(papers) => papers.iter().map(one).collect(),
        None => one(&whole).map(|paper| vec![paper]),
    }
}
