//! A linear program, and the solver behind it.

use crate::error::Error;
#[cfg(target_has_atomic = "64")]
use clarabel::algebra::CscMatrix;
#[cfg(target_has_atomic = "64")]
use clarabel::solver::SupportedConeT::{ExponentialConeT, NonnegativeConeT, ZeroConeT};
#[cfg(target_has_atomic = "64")]
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus};

/// Maximise `gain . v + sum of log v_c` over v >= 0, for the columns c of `logs`, under equalities and upper limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub gain: Vec<f64>,
    /// Columns whose logarithm is gained too.
    pub logs: Vec<usize>,
    pub equal: Vec<Row>,
    pub at_most: Vec<Row>,
}

/// `terms . v` compared with `limit`; each term is (column, coefficient).
#[derive(Clone, Debug)]
#[cfg_attr(
    not(target_has_atomic = "64"),
    expect(dead_code, reason = "read by the solver only")
)]
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
}

/// How far a step may go to the border of what is allowed, as a share of the way: `clarabel`'s own value first, and shorter ones if the solver
/// makes no progress. With logarithms it stopped on one of 62 networks at a third of the optimum, after seven iterations; with 0.9 it needed nine.
#[cfg(target_has_atomic = "64")]
const STEPS: [f64; 3] = [0.99, 0.9, 0.8];

/// `clarabel` needs atomic access to 64 bits, which MIPS of 32 bits does not have.
#[cfg(not(target_has_atomic = "64"))]
impl Program {
    pub fn solve(&self, _tolerance: f64) -> Result<Solution, Error> {
        Err(Error::NoSolver)
    }
}

#[cfg(target_has_atomic = "64")]
impl Program {
    /// Solves by interior point to about `tolerance` (relative). The answer is only as good as
    /// floating point: a caller that needs certainty must check primal and dual (see `certificate`).
    pub fn solve(&self, tolerance: f64) -> Result<Solution, Error> {
        let [usual, shorter @ ..] = STEPS;
        let mut found = self.solve_in_steps(tolerance, usual);
        for step in shorter {
            match found {
                Ok((_, false)) => found = self.solve_in_steps(tolerance, step),
                _ => break,
            }
        }
        found.map(|(solution, _)| solution)
    }

    /// The solution, and whether it is about as good as it was to be. No step goes farther than this share of the way to the border.
    fn solve_in_steps(&self, tolerance: f64, share: f64) -> Result<(Solution, bool), Error> {
        let columns = self.gain.len();
        let (equal, at_most) = (self.equal.len(), self.at_most.len());
        let mut cones = vec![ZeroConeT(equal), NonnegativeConeT(at_most + columns)];
        cones.extend(self.logs.iter().map(|_| ExponentialConeT()));
        // A logarithm is a free variable u with (u, 1, v) in the exponential cone: exp(u) <= v.
        let limits: Vec<f64> = (self.equal.iter().chain(&self.at_most))
            .map(|row| row.limit)
            .chain(std::iter::repeat_n(0.0, columns))
            .chain(self.logs.iter().flat_map(|_| [0.0, 1.0, 0.0]))
            .collect();
        let cost: Vec<f64> = (self.gain.iter().map(|gain| -gain))
            .chain(self.logs.iter().map(|_| -1.0))
            .collect();
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .tol_gap_abs(tolerance)
            .tol_gap_rel(tolerance)
            .tol_feas(tolerance)
            .max_step_fraction(share)
            .build()
            .map_err(|word| Error::Solver(word.to_string()))?;
        let quadratic = CscMatrix::zeros((cost.len(), cost.len()));
        let mut solver =
            DefaultSolver::new(&quadratic, &cost, &self.matrix(), &limits, &cones, settings)
                .map_err(|word| Error::Solver(word.to_string()))?;
        solver.solve();
        let solution = &solver.solution;
        use SolverStatus::{AlmostSolved, InsufficientProgress, MaxIterations, Solved};
        match solution.status {
            // A solution short of the tolerance is safe: rates are made feasible and bounds proven before they are returned.
            status @ (Solved | AlmostSolved | InsufficientProgress | MaxIterations) => {
                let found = Solution {
                    values: solution.x[..columns].to_vec(),
                    equal_dual: solution.z[..equal].to_vec(),
                    at_most_dual: solution.z[equal..equal + at_most].to_vec(),
                };
                Ok((found, matches!(status, Solved | AlmostSolved)))
            }
            other => Err(Error::Solver(other.to_string())),
        }
    }

    /// Equalities, upper limits, -v <= 0, then the cones of the logarithms, in compressed columns.
    fn matrix(&self) -> CscMatrix<f64> {
        let columns = self.gain.len();
        let general = self.equal.len() + self.at_most.len();
        let mut by_column: Vec<Vec<(usize, f64)>> = vec![Vec::new(); columns];
        for (number, row) in self.equal.iter().chain(&self.at_most).enumerate() {
            for &(column, coefficient) in &row.terms {
                by_column[column].push((number, coefficient));
            }
        }
        for (column, terms) in by_column.iter_mut().enumerate() {
            terms.push((general + column, -1.0));
        }
        let cones = general + columns;
        for (number, &column) in self.logs.iter().enumerate() {
            by_column[column].push((cones + 3 * number + 2, -1.0));
        }
        by_column.extend((0..self.logs.len()).map(|number| vec![(cones + 3 * number, -1.0)]));
        let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
        for terms in &by_column {
            rows.extend(terms.iter().map(|&(row, _)| row));
            values.extend(terms.iter().map(|&(_, value)| value));
            starts.push(rows.len());
        }
        let height = cones + 3 * self.logs.len();
        CscMatrix::new(height, by_column.len(), starts, rows, values)
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
            logs: vec![],
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

    /// max log a + log b, a + 2 b <= 4: a = 2, b = 1, and the dual is 1/a.
    #[test]
    fn logarithms_and_their_dual() {
        let program = Program {
            gain: vec![0.0, 0.0],
            logs: vec![0, 1],
            equal: vec![],
            at_most: vec![Row {
                terms: vec![(0, 1.0), (1, 2.0)],
                limit: 4.0,
            }],
        };
        let solution = program.solve(1e-9).unwrap();
        assert!((solution.values[0] - 2.0).abs() < 1e-5);
        assert!((solution.values[1] - 1.0).abs() < 1e-5);
        assert!((solution.at_most_dual[0] - 0.5).abs() < 1e-5);
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
