//! The papers' figures as data.

use std::sync::Arc;

use chappe::points;
use chappe::systems::papers as all;
use chappe_lab::paper::Order;
use chappe_lab::run::{Meter, RunError};
use chappe_scenario::InputError;
use chappe_scenario::nearest::nearest;
use pyo3::prelude::*;

use crate::error::raised;
use crate::run::{Column, columns_of};
use crate::watch::watched;

/// The papers, each with the names of its figures.
#[pyfunction]
pub fn papers() -> Vec<(&'static str, Vec<&'static str>)> {
    let names = |figures: &'static [chappe_lab::paper::Item]| figures.iter().map(|item| item.name);
    all()
        .map(|paper| (paper.name, names(paper.figures).collect()))
        .collect()
}

/// Makes figures of a paper, all if `names` is empty: each as JSON, and its points as columns.
#[pyfunction]
pub fn figures(
    py: Python<'_>,
    paper: &str,
    names: Vec<String>,
    quick: bool,
    seed: u64,
    threads: usize,
) -> PyResult<Vec<(String, Vec<Column>)>> {
    let Some(found) = all().find(|known| known.name == paper) else {
        let known = all().map(|known| known.name);
        return Err(raised(py, unknown("paper", paper, known)));
    };
    let mut wanted = Vec::new();
    for name in &names {
        let known = found.figures.iter().map(|item| item.name);
        let figure = found.figure(name);
        wanted.push(figure.ok_or_else(|| raised(py, unknown("figure", name, known)))?);
    }
    let meter = Arc::new(Meter::default());
    let (made, signal) = watched(py, &meter, || {
        (found.make)(&Order {
            names: &wanted,
            quick,
            seed,
            threads: threads.max(1),
            meter: &meter,
        })
    });
    if let Some(signal) = signal {
        return Err(signal);
    }
    let made = made.map_err(|error| raised(py, error))?;
    if !made.unfinished.is_empty() {
        return Err(raised(py, RunError::Interrupted));
    }
    let each = made.figures.iter().map(|figure| {
        let columns = points::columns(figure);
        let json = chappe_figures::json(figure).to_string();
        Ok((json, columns_of(py, columns)?))
    });
    each.collect()
}

fn unknown(what: &str, given: &str, known: impl Iterator<Item = &'static str>) -> InputError {
    let known: Vec<&str> = known.collect();
    let error = InputError::new("", format!("there is no {what} `{given}`"));
    match nearest(given, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help(format!("there are {}", known.join(", "))),
    }
}
