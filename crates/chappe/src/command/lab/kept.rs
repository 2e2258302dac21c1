//! Figures of the lab that are kept as they are finished, so that an interrupted run goes on where it was.

use std::io::Write as _;
use std::path::PathBuf;

use chappe::sweep::build_of;
use chappe_lab::paper::{Drawing, Paper};
use chappe_results::figure::Figure;
use chappe_results::provenance::{Program, Provenance};
use chappe_store::{StoreError, write_whole};
use serde::{Deserialize, Serialize};

use super::runs::KeptRuns;
use crate::failure::Failure;
use crate::terminal;

/// Where figures are kept, and what they must be made with to be found again.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
    key: String,
}

/// What is kept of one figure or drawing.
#[derive(Serialize, Deserialize)]
struct Entry {
    key: String,
    seconds: f64,
    figure: Option<Figure>,
    drawing: Option<DrawingText>,
}

#[derive(Serialize, Deserialize)]
struct DrawingText {
    text: String,
    svg: String,
}

/// A figure or a drawing that was found.
pub enum Found {
    Figure(Box<Figure>),
    Drawing(Drawing),
}

impl Kept {
    /// Results in `folder` of this program, size and first seed.
    pub fn new(
        folder: PathBuf,
        program: Program<'_>,
        quick: bool,
        seed: u64,
    ) -> Result<Kept, Failure> {
        let from = Provenance::here(program, &format!("lab quick={quick} seed={seed}"));
        let key = from.cell_key(&build_of(program, &terminal::own_file()?)?);
        Ok(Kept {
            folder: folder.join("results"),
            key,
        })
    }

    /// The runs of a paper's figures that are not finished.
    pub fn runs(&self, paper: &Paper) -> KeptRuns {
        KeptRuns::new(self.folder.join("runs").join(paper.name), &self.key)
    }

    fn path(&self, paper: &str, name: &str) -> PathBuf {
        self.folder.join(format!("{paper}-{name}.json"))
    }

    /// A figure or drawing of this program, with the seconds that it took.
    pub fn find(&self, paper: &Paper, name: &'static str) -> Option<(Found, f64)> {
        let text = std::fs::read_to_string(self.path(paper.name, name)).ok()?;
        let entry: Entry = serde_json::from_str(&text)
            .ok()
            .filter(|entry: &Entry| entry.key == self.key)?;
        let drawing = |drawing: DrawingText| Drawing {
            name,
            text: drawing.text,
            svg: drawing.svg,
        };
        let found = match entry.figure {
            Some(figure) => Found::Figure(Box::new(figure)),
            None => Found::Drawing(drawing(entry.drawing?)),
        };
        Some((found, entry.seconds))
    }

    /// Writes a finished figure to the folder.
    pub fn figure(&self, paper: &str, figure: &Figure, seconds: f64) -> Result<(), StoreError> {
        self.write(
            paper,
            figure.id,
            &Entry {
                key: self.key.clone(),
                seconds,
                figure: Some(figure.clone()),
                drawing: None,
            },
        )
    }

    /// Writes a finished drawing to the folder.
    pub fn drawing(&self, paper: &str, drawing: &Drawing) -> Result<(), StoreError> {
        let text = DrawingText {
            text: drawing.text.clone(),
            svg: drawing.svg.clone(),
        };
        let entry = Entry {
            key: self.key.clone(),
            seconds: 0.0,
            figure: None,
            drawing: Some(text),
        };
        self.write(paper, drawing.name, &entry)
    }

    fn write(&self, paper: &str, name: &str, entry: &Entry) -> Result<(), StoreError> {
        write_whole(&self.path(paper, name), |file| {
            let json = serde_json::to_string(entry).map_err(std::io::Error::other)?;
            file.write_all(json.as_bytes())
        })
    }
}
