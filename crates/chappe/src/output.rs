//! Figures as files: drawings, data, and a specification that others can draw again.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chappe::points::columns;
use chappe_results::figure::Figure;
use chappe_store::table;
use chappe_store::write_whole;

use crate::failure::Failure;

/// A kind of file that a figure is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The drawing as lines and text.
    Svg,
    /// The drawing in pixels, by a program of this machine.
    Png,
    /// Its points as a tidy table.
    Csv,
    /// The same as Parquet.
    Parquet,
    /// A Vega-Lite specification with the points.
    VegaLite,
}

impl Format {
    /// The formats that are always written, and PNG if it is wanted.
    pub fn all(png: bool) -> Vec<Format> {
        let mut all = vec![Format::Svg, Format::Csv, Format::Parquet, Format::VegaLite];
        all.extend(png.then_some(Format::Png));
        all
    }
}

/// Programs that turn SVG into PNG, with their arguments.
const CONVERTERS: [(&str, &[&str]); 5] = [
    ("rsvg-convert", &["--zoom=2", "--output={png}", "{svg}"]),
    ("resvg", &["--zoom", "2", "{svg}", "{png}"]),
    (
        "inkscape",
        &["--export-dpi=192", "--export-filename={png}", "{svg}"],
    ),
    ("cairosvg", &["{svg}", "--scale", "2", "-o", "{png}"]),
    ("magick", &["-density", "192", "{svg}", "{png}"]),
];

/// Writes a figure beside `stem` in these formats.
pub fn write_figure(stem: &Path, figure: &Figure, formats: &[Format]) -> Result<(), Failure> {
    for format in formats {
        let (ending, text) = match format {
            Format::Svg => ("svg", chappe_figures::draw(figure)),
            Format::Csv => ("csv", chappe_figures::csv(figure)),
            Format::VegaLite => {
                let spec = serde_json::to_string_pretty(&chappe_figures::vega_lite(figure));
                ("vl.json", spec.unwrap_or_default())
            }
            Format::Parquet => {
                let columns = columns(figure);
                let title = [("title", figure.title.clone())];
                table::write(&with_ending(stem, "parquet"), &title, &columns)?;
                continue;
            }
            Format::Png => {
                png(&with_ending(stem, "svg"), &with_ending(stem, "png"))?;
                continue;
            }
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

/// Fails if PNG is wanted and no program for it is there. To be called before the work whose figures shall be drawn.
pub fn try_png(wanted: bool) -> Result<(), Failure> {
    match !wanted || CONVERTERS.iter().any(|(name, _)| is_program(name)) {
        true => Ok(()),
        false => Err(no_converter()),
    }
}

/// Whether one of the folders for programs holds a file of this name.
fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn no_converter() -> Failure {
    let names: Vec<&str> = CONVERTERS.iter().map(|(name, _)| *name).collect();
    let what = format!("--png needs one of the programs {}", names.join(", "));
    let help = "`apt install librsvg2-bin`, `cargo install resvg` or `pip install cairosvg`; without --png each figure is an SVG, \
                which browsers and word processors show";
    Failure::Environment(what, help.into())
}

/// Converts a drawing by the first program that is there and can.
pub fn png(svg: &Path, png: &Path) -> Result<(), Failure> {
    let mut failed = None;
    for (name, arguments) in CONVERTERS {
        let (from, to) = (svg.display().to_string(), png.display().to_string());
        let filled = arguments
            .iter()
            .map(|argument| argument.replace("{svg}", &from).replace("{png}", &to));
        let run = Command::new(name)
            .args(filled)
            .stdin(Stdio::null())
            .output();
        match run {
            Err(_) => continue,
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let what = format!("{name} could not convert {from}: {}", said.trim());
                let help = "the SVG is complete; leave out --png";
                failed.get_or_insert(Failure::Environment(what, help.into()));
            }
        }
    }
    Err(failed.unwrap_or_else(no_converter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_results::figure::{Panel, Series};
    use chappe_results::statistics::Summary;

    /// Each format is written, and its data has a row for each point.
    #[test]
    fn figures_are_written_in_every_format() {
        let folder = std::env::temp_dir().join(format!("chappe-output-{}", std::process::id()));
        let series = Series::new("A", vec![Summary::of(&[1.0, 2.0]), Summary::of(&[3.0])]);
        let places = vec!["1 km".into(), "2 km".into()];
        let panel = Panel::lines("1", "goodput", "kbit/s", ("distance", places), vec![series]);
        let figure = Figure {
            id: "figure1",
            title: "t".into(),
            panels: vec![panel],
            claims: Vec::new(),
            notes: Vec::new(),
        };
        write_figure(&folder.join("x"), &figure, &Format::all(false)).unwrap();
        let read = |ending: &str| std::fs::read(folder.join(format!("x.{ending}"))).unwrap();
        assert!(read("svg").starts_with(b"<svg"));
        let lines = read("csv").iter().filter(|octet| **octet == b'\n').count();
        assert_eq!(lines, 3);
        assert!(read("parquet").starts_with(b"PAR1"));
        let vega: serde_json::Value = serde_json::from_slice(&read("vl.json")).unwrap();
        assert_eq!(vega["vconcat"][0]["data"]["values"][1]["x"], 2.0);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
