//! A seeded stream of random numbers, for protocols written in Python.

use chappe_core::{Purpose, Seed, Stream as Numbers};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Random numbers that a seed decides.
#[pyclass(module = "chappe", name = "Stream")]
pub struct Stream(pub Numbers);

#[pymethods]
impl Stream {
    #[new]
    fn new(seed: u64) -> Stream {
        Stream(Seed(seed).stream(Purpose::Node(0)))
    }

    fn below(&mut self, limit: u64) -> PyResult<u64> {
        match limit {
            0 => Err(PyValueError::new_err("no number is below 0")),
            limit => Ok(self.0.below(limit)),
        }
    }

    fn fraction(&mut self) -> f64 {
        self.0.fraction()
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.0.chance(probability)
    }

    fn octets(&mut self, count: usize) -> Vec<u8> {
        let mut octets = vec![0; count];
        self.0.fill(&mut octets);
        octets
    }
}
