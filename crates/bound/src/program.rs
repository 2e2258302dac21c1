//! A linear program, and the solver behind it.

use crate::error::Error;
use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{NonnegativeConeT, ZeroConeT};
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus};

/// Maximise `gain . v` over v >= 0 under equalities and upper limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub gain: Vec<f64>,
    pub equal: Vec<Row>,
    pub at_most: Vec<Row>,
}

/// `terms . v` compared with `limit`; each term is (column, coefficient).
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub terms: Vec<(usize, f64)>,
    pub limit: f64,
}

pub(crate) struct Solution {
    pub values: Vec<f64>,
    /// One multiplier per equality; `gain - sum (dual * row)` is at most 0 in every column.
    pub equal_dual: Vec<f64>,
    pub at_most_dual: Vec<f64>,
}

impl Program {
    /// Adds a column without terms and returns its number.
    pub fn column(&mut self, gain: f64) -> usize {
        self.gain.push(gain);
        self.gain.len() - 1
    }

    /// Solves by interior point to about `tolerance` (relative). The answer is only as good as
    /// floating point: whoever needs certainty must check primal and dual (see `certificate`).
    pub fn solve(&self, tolerance: f64) -> Result<Solution, Error> {
        let columns = self.gain.len();
        let (equal, at_most) = (self.equal.len(), self.at_most.len());
        let cones = [ZeroConeT(equal), NonnegativeConeT(at_most + columns)];
        let limits: Vec<f64> = (self.equal.iter().chain(&self.at_most))
            .map(|row| row.limit)
            .chain(std::iter::repeat_n(0.0, columns))
            .collect();
        let cost: Vec<f64> = self.gain.iter().map(|gain| -gain).collect();
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .tol_gap_abs(tolerance)
            .tol_gap_rel(tolerance)
            .tol_feas(tolerance)
            .build()
            .map_err(|word| Error::Solver(word.to_string()))?;
        let quadratic = CscMatrix::zeros((columns, columns));
        let mut solver =
            DefaultSolver::new(&quadratic, &cost, &self.matrix(), &limits, &cones, settings)
                .map_err(|word| Error::Solver(word.to_string()))?;
        solver.solve();
        let solution = &solver.solution;
        use SolverStatus::{AlmostSolved, InsufficientProgress, MaxIterations, Solved};
        match solution.status {
            // A solution short of the tolerance is no danger: only checked values leave this crate.
            Solved | AlmostSolved | InsufficientProgress | MaxIterations => Ok(Solution {
                values: solution.x.clone(),
                equal_dual: solution.z[..equal].to_vec(),
                at_most_dual: solution.z[equal..equal + at_most].to_vec(),
            }),
            other => Err(Error::Solver(other.to_string())),
        }
    }

    /// Equalities, upper limits, then -v <= 0, in compressed columns.
    fn matrix(&self) -> CscMatrix<f64> {
        let columns = self.gain.len();
        let general = self.equal.len() + self.at_most.len();
        let mut by_column: Vec<Vec<(usize, f64)>> = vec![Vec::new(); columns];
        for (number, row) in self.equal.iter().chain(&self.at_most).enumerate() {
            for &(column, coefficient) in &row.terms {
                by_column[column].push((number, coefficient));
            }
        }
        let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
        for (column, terms) in by_column.iter().enumerate() {
            for &(row, value) in terms.iter().chain(&[(general + column, -1.0)]) {
                rows.push(row);
                values.push(value);
            }
            starts.push(rows.len());
        }
        CscMatrix::new(general + columns, columns, starts, rows, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// max 3a + 2b, a + b <= 4, a + 3b <= 8, a <= 3: optimum 11 at (3, 1), duals 2, 0, 1.
    #[test]
    fn a_textbook_program_and_its_duals() {
        let row = |terms: &[(usize, f64)], limit| Row {
            terms: terms.to_vec(),
            limit,
        };
        let program = Program {
            gain: vec![3.0, 2.0],
            equal: vec![],
            at_most: vec![
                row(&[(0, 1.0), (1, 1.0)], 4.0),
                row(&[(0, 1.0), (1, 3.0)], 8.0),
                row(&[(0, 1.0)], 3.0),
            ],
        };
        let solution = program.solve(1e-9).unwrap();
        let near = |got: &[f64], expected: &[f64]| {
            got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5)
        };
        assert!(near(&solution.values, &[3.0, 1.0]));
        assert!(near(&solution.at_most_dual, &[2.0, 0.0, 1.0]));
    }

    #[test]
    fn an_unbounded_program_is_an_error() {
        let program = Program {
            gain: vec![1.0],
            ..Program::default()
        };
        assert!(matches!(program.solve(1e-8), Err(Error::Solver(_))));
    }
}
