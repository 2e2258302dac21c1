//! What the lab found at the last release: which claims held, and how long each figure took.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use chappe::packed;
use chappe_results::figure::Claim;
use chappe_store::{StoreError, write_whole};
use serde::{Deserialize, Serialize};

use super::done::Done;
use crate::failure::Failure;

/// Seconds of a figure that the record does not know.
const UNKNOWN_SECONDS: f64 = 5.0;

/// One record for each size.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Records {
    quick: Option<Record>,
    full: Option<Record>,
}

/// What one size found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The first seed that its runs used.
    pub seed: u64,
    /// The machine whose times these are.
    pub machine: String,
    /// Each figure as `pacifier/figure7`.
    figures: BTreeMap<String, RecordedFigure>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RecordedFigure {
    /// How long it took.
    seconds: f64,
    /// The claims that held.
    held: Vec<String>,
}

impl Records {
    /// The record that this program was built with: `record.json`, written by `chappe lab --record`.
    pub fn built_in() -> Result<Records, Failure> {
        serde_json::from_str(&packed::record())
            .map_err(|error| Failure::Defect(format!("the lab's record: {error}")))
    }

    /// The record of this size.
    pub fn of(&self, quick: bool) -> Option<&Record> {
        if quick {
            self.quick.as_ref()
        } else {
            self.full.as_ref()
        }
    }
}

impl Record {
    /// How long a figure took.
    pub fn seconds(&self, paper: &str, figure: &str) -> f64 {
        let found = self.figures.get(&format!("{paper}/{figure}"));
        found.map_or(UNKNOWN_SECONDS, |figure| figure.seconds.max(0.01))
    }

    /// Claims that held at the last release and do not hold now, of figures that were made; each with its figure.
    pub fn lost(&self, all: &[Done]) -> Vec<String> {
        let mut lost = Vec::new();
        for done in all {
            for figure in &done.made.figures {
                let name = format!("{}/{}", done.paper.name, figure.id);
                let Some(recorded) = self.figures.get(&name) else {
                    continue;
                };
                for text in &recorded.held {
                    match figure.claims.iter().find(|claim| claim.text == *text) {
                        Some(claim) if claim.is_good() => {}
                        Some(claim) => lost.push(format!("{name}: {text}{}", now(claim))),
                        None => lost.push(format!("{name}: {text} (is no longer stated)")),
                    }
                }
            }
        }
        lost
    }
}

fn now(claim: &Claim) -> String {
    format!(
        " (now {} {})",
        chappe_figures::table::digits(claim.ours.mean),
        claim.unit
    )
}

/// Adds what was found to a record file.
pub fn write(
    path: &Path,
    (quick, seed, machine): (bool, u64, &str),
    all: &[Done],
) -> Result<(), Failure> {
    let old = std::fs::read_to_string(path).ok();
    let mut records: Records = old
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let of = if quick {
        &mut records.quick
    } else {
        &mut records.full
    };
    let record = of.get_or_insert_default();
    (record.seed, record.machine) = (seed, machine.to_string());
    for done in all {
        for figure in &done.made.figures {
            let seconds = done
                .seconds
                .iter()
                .find(|(name, _)| *name == figure.id)
                .map_or(0.0, |(_, seconds)| *seconds);
            let held = figure.claims.iter().filter(|claim| claim.is_good());
            let held = held.map(|claim| claim.text.clone()).collect();
            let seconds = (seconds * 100.0).round() / 100.0;
            record.figures.insert(
                format!("{}/{}", done.paper.name, figure.id),
                RecordedFigure { seconds, held },
            );
        }
    }
    let text = serde_json::to_string_pretty(&records).unwrap_or_default() + "\n";
    let written: Result<(), StoreError> = write_whole(path, |file| file.write_all(text.as_bytes()));
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe::systems::papers;
    use chappe_lab::paper::FigureSet;
    use chappe_results::figure::Figure;
    use chappe_results::statistics::Summary;

    fn done(claims: Vec<Claim>) -> Vec<Done> {
        let figure = Figure {
            id: "figure1",
            title: "t".into(),
            panels: Vec::new(),
            claims,
            notes: Vec::new(),
        };
        let made = FigureSet {
            figures: vec![figure],
            unfinished: Vec::new(),
            runs: 0,
            drawings: Vec::new(),
            scale: Vec::new(),
        };
        let paper = papers().next().unwrap();
        vec![Done {
            paper,
            made,
            seconds: vec![("figure1", 2.5)],
            others: Vec::new(),
        }]
    }

    /// Goal: a claim that held and no longer holds, is off its number, or is gone, is lost; new and won ones are not.
    #[test]
    fn lost_claims_are_found() {
        let claim = |text: &str, paper: Option<f64>, ours: f64, holds: bool| {
            Claim::new(text, paper, Summary::of(&[ours]), "kbit/s", holds)
        };
        let path = std::env::temp_dir().join(format!("chappe-record-{}.json", std::process::id()));
        let before = [
            claim("a", None, 1.0, true),
            claim("b", Some(10.0), 10.0, true),
            claim("c", None, 1.0, false),
            claim("d", None, 1.0, true),
        ];
        write(&path, (true, 1, "here"), &done(before.to_vec())).unwrap();
        let records: Records =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let record = records.of(true).unwrap();
        assert!(records.of(false).is_none());
        let name = papers().next().unwrap().name;
        assert_eq!(
            (
                record.seconds(name, "figure1"),
                record.seconds(name, "other")
            ),
            (2.5, UNKNOWN_SECONDS)
        );
        assert_eq!(record.lost(&done(before.to_vec())), Vec::<String>::new());
        let after = vec![
            claim("a", None, 0.0, false),
            claim("b", Some(10.0), 20.0, true),
            claim("c", None, 1.0, true),
            claim("e", None, 1.0, false),
        ];
        let lost = record.lost(&done(after));
        assert_eq!(lost.len(), 3, "{lost:?}");
        assert!(lost[2].contains("no longer stated"), "{lost:?}");
    }

    /// The record of the last release can be read.
    #[test]
    fn the_built_in_record_is_whole() {
        Records::built_in().unwrap();
    }
}
