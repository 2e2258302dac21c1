//! The cells of a sweep, each compared with a reference, paired by seed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compare::Verdict;
use crate::document::Run;
use crate::statistics::{Ratio, Summary, ratio};

/// One cell: its values and its runs.
#[derive(Clone, Debug)]
pub struct SweepCell {
    /// The value of each swept key, as people write it.
    pub values: Vec<String>,
    /// The cell's runs, in the order of the seeds.
    pub runs: Vec<Run>,
    /// The place of the cell that it is compared with; `None` for a reference.
    pub reference: Option<usize>,
}

/// What a sweep's table says of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepRow {
    /// The value of each swept key.
    pub values: Vec<String>,
    /// The number of seeds.
    pub seeds: usize,
    /// Receivers with the whole object and the right digest.
    pub complete: usize,
    /// Receivers in all runs.
    pub receivers: usize,
    /// Mean goodput of a run's receivers, in bits per second.
    pub goodput_bps: Summary,
    /// Goodput of each run's slowest receiver, in bits per second.
    pub worst_goodput_bps: Summary,
    /// The slowest receiver's goodput as a share of the bound, if the bound is known.
    pub bound_fraction: Option<Summary>,
    /// The values of the reference; `None` for a reference.
    pub reference: Option<Vec<String>>,
    /// Seeds that the reference has too.
    pub pairs: usize,
    /// The geometric mean of the goodput's ratio to the reference, seed by seed; `None` for a reference, or if a run of either got
    /// nothing.
    pub ratio: Option<Ratio>,
    /// The verdict on the cell, from that interval.
    pub verdict: Option<Verdict>,
}

/// The rows of a sweep's table, one for each cell.
pub fn rows(cells: &[SweepCell]) -> Vec<SweepRow> {
    cells.iter().map(|cell| row(cell, cells)).collect()
}

fn row(cell: &SweepCell, cells: &[SweepCell]) -> SweepRow {
    let over =
        |value: &dyn Fn(&Run) -> f64| Summary::of(&cell.runs.iter().map(value).collect::<Vec<_>>());
    let flows = || cell.runs.iter().flat_map(|run| &run.flows);
    let bounds: Vec<f64> = cell
        .runs
        .iter()
        .filter_map(|run| Some(run.bound.as_ref()?.fraction))
        .collect();
    let reference = cell.reference.and_then(|place| cells.get(place));
    let pairs = reference.map_or_else(Vec::new, |reference| pairs(&reference.runs, &cell.runs));
    let ratio = ratio(&pairs);
    SweepRow {
        values: cell.values.clone(),
        seeds: cell.runs.len(),
        complete: flows()
            .filter(|flow| flow.complete && flow.digest_ok)
            .count(),
        receivers: flows().count(),
        goodput_bps: over(&Run::mean_goodput),
        worst_goodput_bps: over(&Run::worst_goodput),
        bound_fraction: (!bounds.is_empty()).then(|| Summary::of(&bounds)),
        reference: reference.map(|reference| reference.values.clone()),
        pairs: pairs.len(),
        verdict: ratio.as_ref().map(|ratio| Verdict::of_ratio(ratio, true)),
        ratio,
    }
}

/// Mean goodputs of the seeds that both have, in the order of the seeds of `runs`.
fn pairs(reference: &[Run], runs: &[Run]) -> Vec<(f64, f64)> {
    // Sweeps have up to 100,000 seeds, so each is looked up and not searched for.
    let known = reference.iter().map(|run| (run.seed, run));
    let known: BTreeMap<u64, &Run> = known.collect();
    let of = |run: &Run| {
        let other = known.get(&run.seed)?;
        Some((other.mean_goodput(), run.mean_goodput()))
    };
    runs.iter().filter_map(of).collect()
}

/// Whether every run of these cells had the same events: the keys in which they differ had no effect.
pub fn all_same(cells: &[&SweepCell]) -> bool {
    let digests = |cell: &SweepCell| -> Vec<(u64, String)> {
        cell.runs
            .iter()
            .map(|run| (run.seed, run.digest.clone()))
            .collect()
    };
    let Some((first, others)) = cells.split_first() else {
        return false;
    };
    let first = digests(first);
    !first.is_empty() && !others.is_empty() && others.iter().all(|cell| digests(cell) == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Flow;

    fn cell(value: &str, goodputs: &[f64], reference: Option<usize>) -> SweepCell {
        let run = |(place, &goodput_bps): (usize, &f64)| Run {
            digest: format!("{goodput_bps}"),
            flows: vec![Flow {
                goodput_bps,
                complete: goodput_bps > 0.0,
                digest_ok: goodput_bps > 0.0,
                ..Flow::named("r1")
            }],
            ..Run::new(place as u64)
        };
        SweepCell {
            values: vec![value.into()],
            runs: goodputs.iter().enumerate().map(run).collect(),
            reference,
        }
    }

    /// Cells are paired by seed, so a common factor between networks does not widen the interval.
    #[test]
    fn cells_are_paired_with_their_reference() {
        let cells = [
            cell("paper", &[100.0, 1000.0, 10.0], None),
            cell("improved", &[200.0, 2000.0, 20.0], Some(0)),
            cell("broken", &[200.0, 0.0], Some(0)),
        ];
        let rows = rows(&cells);
        assert_eq!(
            (rows[0].ratio, rows[0].verdict, &rows[0].reference),
            (None, None, &None)
        );
        let ratio = rows[1].ratio.unwrap();
        assert!(
            (ratio.mean - 2.0).abs() < 1e-9 && ratio.low.unwrap() > 1.999,
            "{ratio:?}"
        );
        assert_eq!(rows[1].verdict, Some(Verdict::Better));
        assert_eq!(
            (rows[2].pairs, rows[2].ratio, rows[2].complete),
            (2, None, 1)
        );
    }

    /// As many seeds as a sweep may have, in any order. A search for each pair would take minutes here.
    #[test]
    fn many_seeds_are_paired_in_time() {
        let goodputs: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let mut doubled = cell("b", &goodputs, Some(0));
        for run in &mut doubled.runs {
            run.flows[0].goodput_bps *= 2.0;
        }
        doubled.runs.reverse();
        let rows = rows(&[cell("a", &goodputs, None), doubled]);
        let ratio = rows[1].ratio.unwrap();
        assert_eq!(rows[1].pairs, 100_000);
        assert!((ratio.mean - 2.0).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn equal_runs_are_seen() {
        let (a, b, c) = (
            cell("1", &[1.0, 2.0], None),
            cell("2", &[1.0, 2.0], None),
            cell("3", &[1.0, 3.0], None),
        );
        assert!(all_same(&[&a, &b]) && !all_same(&[&a, &b, &c]) && !all_same(&[&a]));
    }
}
