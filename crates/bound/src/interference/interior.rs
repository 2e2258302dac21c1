//! An interior-point solver for the program over sets, which uses what the program looks like.
//!
//! A general solver factorises a sparse matrix with a row for each sender, receiver and set. Here those rows are eliminated by hand, since within a set
//! they meet in one number only, the set's share of time. What is left is a dense matrix with a row for each receiver and node, of a few
//! hundred rows however many sets there are.
//!
//! The program, with its multipliers in brackets:
//!
//! ```text
//! maximise R
//! [m]   time of a use's orders <= share of its set        for each use: a set, a sender of it, a receiver
//! [y]   what leaves a node <= what arrives there          for each receiver and node but the source
//! [pi]  all shares <= 1
//! ```
//!
//! The method is Mehrotra's predictor and corrector (SIAM J. Optimization 2, 1992). Multipliers start where they fit the program and stay so.

/// What a sender of a set hands on for one receiver.
pub(super) struct Use {
    pub set: usize,
    pub receiver: usize,
    /// The vertices of this use: places in `Shape::vertices`.
    pub vertices: std::ops::Range<usize>,
}

/// The program. Uses are sorted by set.
pub(super) struct Shape {
    pub nodes: usize,
    pub source: usize,
    pub receivers: Vec<usize>,
    pub sets: usize,
    pub uses: Vec<Use>,
    /// For each vertex the places of its terms.
    pub vertices: Vec<std::ops::Range<usize>>,
    /// (node, what a unit of time takes from it: negative where it brings).
    pub terms: Vec<(usize, f64)>,
}

/// An answer near the optimum.
pub(super) struct Inner {
    /// Time of each vertex.
    pub spent: Vec<f64>,
    pub shares: Vec<f64>,
    /// For each receiver and node, row-major, the multiplier.
    pub values: Vec<f64>,
}

/// A vector over columns (time of vertices, shares, returns, rate) or over rows (uses, nodes, total).
type Vector = Vec<f64>;

/// Where an iteration stands: columns and their slacks, multipliers and the rows' slacks.
struct State {
    x: Vector,
    z: Vector,
    w: Vector,
    s: Vector,
}

/// A step of all of it.
type Step = State;

/// The matrix of a Newton step after the uses' rows are gone.
struct Factor {
    /// For each use the diagonal of its row.
    own: Vec<f64>,
    /// For each set `x / z` of its share, and what remains of it beside its uses.
    share: Vec<(f64, f64)>,
    root: Dense,
}

/// More steps gain nothing in floating point.
const STEPS_MAX: usize = 60;
/// The part of the way to the nearest wall that a step goes.
const SHORT: f64 = 0.95;

impl Shape {
    fn width(&self) -> usize {
        self.receivers.len() * self.nodes
    }

    fn columns(&self) -> usize {
        self.vertices.len() + self.sets + self.width() + 1
    }

    fn rows(&self) -> usize {
        self.uses.len() + self.width() + 1
    }

    /// Whether place `at` among receivers and nodes has a row: the source's nodes have none.
    fn counted(&self, at: usize) -> bool {
        at % self.nodes != self.source
    }

    /// The receiver's own place beside `at`.
    fn home(&self, at: usize) -> usize {
        let receiver = at / self.nodes;
        receiver * self.nodes + self.receivers[receiver]
    }

    /// Whether the column that hands a packet from the receiver back to place `at` exists. It gains nothing, and lets
    /// multipliers stay bounded where nothing arrives.
    fn returns(&self, at: usize) -> bool {
        self.counted(at) && self.home(at) != at
    }

    /// What each row sums up to for given columns, without its slack.
    fn times(&self, x: &[f64]) -> Vector {
        let (uses, width) = (self.uses.len(), self.width());
        let (spent, rest) = x.split_at(self.vertices.len());
        let (shares, rest) = rest.split_at(self.sets);
        let mut rows = vec![0.0; self.rows()];
        let (own, nets) = rows.split_at_mut(uses);
        for (used, own) in self.uses.iter().zip(own) {
            let net = &mut nets[used.receiver * self.nodes..][..self.nodes];
            for vertex in used.vertices.clone() {
                *own += spent[vertex];
                for &(node, term) in &self.terms[self.vertices[vertex].clone()] {
                    net[node] += term * spent[vertex];
                }
            }
            *own -= shares[used.set];
        }
        for at in (0..width).filter(|&at| self.returns(at)) {
            nets[at] -= rest[at];
            nets[self.home(at)] += rest[at];
        }
        for receiver in 0..self.receivers.len() {
            nets[self.home(receiver * self.nodes)] += rest[width];
        }
        nets[width] = shares.iter().sum();
        rows
    }

    /// What each column costs under given multipliers.
    fn transposed(&self, w: &[f64]) -> Vector {
        let (uses, width) = (self.uses.len(), self.width());
        let (own, nets) = w.split_at(uses);
        let mut columns = vec![0.0; self.columns()];
        let (spent, rest) = columns.split_at_mut(self.vertices.len());
        let (shares, rest) = rest.split_at_mut(self.sets);
        shares.fill(nets[width]);
        for (used, own) in self.uses.iter().zip(own) {
            let net = &nets[used.receiver * self.nodes..][..self.nodes];
            for vertex in used.vertices.clone() {
                let terms = self.terms[self.vertices[vertex].clone()].iter();
                let sum: f64 = terms.map(|&(node, term)| term * net[node]).sum();
                spent[vertex] = own + sum;
            }
            shares[used.set] -= own;
        }
        for at in (0..width).filter(|&at| self.returns(at)) {
            rest[at] = nets[self.home(at)] - nets[at];
        }
        for receiver in 0..self.receivers.len() {
            rest[width] += nets[self.home(receiver * self.nodes)];
        }
        columns
    }

    /// Multipliers that fit, some way inside from `values` (worth one at all receivers together). From nearer the walls the method needs up to
    /// three times as many steps (nine starts compared on one network of 25 nodes).
    fn start(&self, values: &[f64]) -> Vector {
        let mut w = vec![0.0; self.rows()];
        let (own, nets) = w.split_at_mut(self.uses.len());
        let width = self.width();
        let even = 1.0 / self.receivers.len() as f64;
        for at in (0..width).filter(|&at| self.counted(at)) {
            let most = values[self.home(at)].max(0.0) + 0.5 * even;
            nets[at] = match self.home(at) == at {
                true => most,
                false => 0.1 * most + 0.8 * values[at].clamp(0.0, most),
            };
        }
        let mut shares = vec![0.0; self.sets];
        for (used, own) in self.uses.iter().zip(own.iter_mut()) {
            let net = &nets[used.receiver * self.nodes..][..self.nodes];
            for vertex in used.vertices.clone() {
                let terms = self.terms[self.vertices[vertex].clone()].iter();
                let sum: f64 = terms.map(|&(node, term)| term * net[node]).sum();
                *own = own.max(-sum);
            }
            shares[used.set] += *own;
        }
        let most = shares.iter().copied().fold(1e-9, f64::max);
        let mut members = vec![0usize; self.sets];
        self.uses.iter().for_each(|used| members[used.set] += 1);
        for (used, own) in self.uses.iter().zip(own) {
            *own += 3.0 * most / members[used.set] as f64;
        }
        nets[width] = 4.5 * most;
        w
    }

    /// An answer whose relative distance from the optimum is about `tolerance`. `values` are multipliers to begin from.
    pub fn solve(&self, values: &[f64], tolerance: f64) -> Inner {
        let rate = self.columns() - 1;
        let total = self.rows() - 1;
        let w = self.start(values);
        let mut z = self.transposed(&w);
        z[rate] -= 1.0;
        let pairs = (self.columns() + self.rows()) as f64;
        // Columns begin large, for the same reason: the gap is then thirty times the multipliers' value.
        let level = 30.0 * w[total] / pairs;
        let there = |at: usize| self.exists(at);
        let x = (0..z.len()).map(|at| if there(at) { level / z[at] } else { 0.0 });
        let x: Vector = x.collect();
        let s = (0..w.len()).map(|at| if self.held(at) { level / w[at] } else { 0.0 });
        let s: Vector = s.collect();
        let mut state = State { x, z, w, s };
        let mut steps = 0;
        while steps < STEPS_MAX {
            let short = self.short(&state);
            let miss = short.iter().map(|short| short.abs()).sum::<f64>();
            let gap = state.w[total] - state.x[rate];
            if gap.abs() <= tolerance * state.w[total] && miss <= tolerance {
                break;
            }
            if !self.advance(&mut state, &short) {
                break;
            }
            steps += 1;
        }
        let vertices = self.vertices.len();
        Inner {
            spent: state.x[..vertices].to_vec(),
            shares: state.x[vertices..][..self.sets].to_vec(),
            values: state.w[self.uses.len()..total].to_vec(),
        }
    }

    fn exists(&self, column: usize) -> bool {
        let first = self.vertices.len() + self.sets;
        column < first || column + 1 == self.columns() || self.returns(column - first)
    }

    fn held(&self, row: usize) -> bool {
        let first = self.uses.len();
        row < first || row + 1 == self.rows() || self.counted(row - first)
    }

    /// What the rows lack: limits less sums and slacks.
    fn short(&self, state: &State) -> Vector {
        let mut short = self.times(&state.x);
        for (short, slack) in short.iter_mut().zip(&state.s) {
            *short = -*short - slack;
        }
        for at in (0..self.width()).filter(|&at| !self.counted(at)) {
            short[self.uses.len() + at] = 0.0;
        }
        if let Some(total) = short.last_mut() {
            *total += 1.0;
        }
        short
    }

    /// One step; false if the matrix cannot be factorised any more.
    fn advance(&self, state: &mut State, short: &[f64]) -> bool {
        let Some(factor) = self.factor(state) else {
            return false;
        };
        let pairs = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let count = (state.x.iter().chain(&state.s))
            .filter(|v| **v > 0.0)
            .count() as f64;
        let mean = (pairs(&state.x, &state.z) + pairs(&state.w, &state.s)) / count;
        let product =
            |a: &[f64], b: &[f64]| -> Vector { a.iter().zip(b).map(|(a, b)| -a * b).collect() };
        let (mut xz, mut ws) = (product(&state.x, &state.z), product(&state.w, &state.s));
        let guess = self.direction(state, &factor, short, &xz, &ws);
        let (first, second) = state.reach(&guess);
        let after = |a: &[f64], da: &[f64], fa: f64, b: &[f64], db: &[f64], fb: f64| -> f64 {
            let each = a.iter().zip(da).zip(b.iter().zip(db));
            each.map(|((a, da), (b, db))| (a + fa * da) * (b + fb * db))
                .sum()
        };
        let left = after(&state.x, &guess.x, first, &state.z, &guess.z, second)
            + after(&state.w, &guess.w, second, &state.s, &guess.s, first);
        let aim = mean * (left / count / mean).powi(3);
        let correct = |to: &mut Vector, a: &[f64], b: &[f64]| {
            for (to, (a, b)) in to.iter_mut().zip(a.iter().zip(b)) {
                *to += aim - a * b;
            }
        };
        correct(&mut xz, &guess.x, &guess.z);
        correct(&mut ws, &guess.w, &guess.s);
        let step = self.direction(state, &factor, short, &xz, &ws);
        let (first, second) = state.reach(&step);
        state.walk(&step, SHORT * first, SHORT * second);
        true
    }

    /// Newton's direction for rows that lack `short`, and products that shall change by `xz` and `ws`.
    fn direction(
        &self,
        state: &State,
        factor: &Factor,
        short: &[f64],
        xz: &[f64],
        ws: &[f64],
    ) -> Step {
        let part = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        let free = xz.iter().zip(&state.z);
        let free: Vector = free
            .enumerate()
            .map(|(at, (xz, z))| if self.exists(at) { part(*xz, *z) } else { 0.0 })
            .collect();
        let mut w = self.times(&free);
        for (at, w) in w.iter_mut().enumerate() {
            *w = match self.held(at) {
                true => *w + part(ws[at], state.w[at]) - short[at],
                false => 0.0,
            };
        }
        self.eliminate(state, factor, &mut w);
        let mut z = self.transposed(&w);
        let mut x = vec![0.0; z.len()];
        for at in 0..z.len() {
            match self.exists(at) {
                true => x[at] = (xz[at] - state.x[at] * z[at]) / state.z[at],
                false => z[at] = 0.0,
            }
        }
        let mut s = vec![0.0; w.len()];
        for at in (0..w.len()).filter(|&at| self.held(at)) {
            s[at] = (ws[at] - state.s[at] * w[at]) / state.w[at];
        }
        Step { x, z, w, s }
    }

    /// Solves for the multipliers' step in place of the right-hand side.
    fn eliminate(&self, state: &State, factor: &Factor, w: &mut [f64]) {
        let (own, nets) = w.split_at_mut(self.uses.len());
        let width = self.width();
        let ratio = |vertex: usize| state.x[vertex] / state.z[vertex];
        let solved = self.within_sets(factor, own);
        for (used, solved) in self.uses.iter().zip(&solved) {
            let net = &mut nets[used.receiver * self.nodes..][..self.nodes];
            for vertex in used.vertices.clone() {
                for &(node, term) in &self.terms[self.vertices[vertex].clone()] {
                    net[node] -= ratio(vertex) * term * solved;
                }
            }
            nets[width] += factor.share[used.set].0 * solved;
        }
        for at in (0..width).filter(|&at| !self.counted(at)) {
            nets[at] = 0.0;
        }
        factor.root.solve(nets);
        for (used, own) in self.uses.iter().zip(own.iter_mut()) {
            let net = &nets[used.receiver * self.nodes..][..self.nodes];
            for vertex in used.vertices.clone() {
                let terms = self.terms[self.vertices[vertex].clone()].iter();
                let sum: f64 = terms.map(|&(node, term)| term * net[node]).sum();
                *own -= ratio(vertex) * sum;
            }
            *own += factor.share[used.set].0 * nets[width];
        }
        let solved = self.within_sets(factor, own);
        own.copy_from_slice(&solved);
    }

    /// Solves the uses' rows alone: a diagonal, and for each set one number that its uses share.
    fn within_sets(&self, factor: &Factor, own: &[f64]) -> Vector {
        let mut sums = vec![0.0; self.sets];
        for ((used, own), diagonal) in self.uses.iter().zip(own).zip(&factor.own) {
            sums[used.set] += own / diagonal;
        }
        let each = self.uses.iter().zip(own).zip(&factor.own);
        each.map(|((used, own), diagonal)| {
            (own - factor.share[used.set].1 * sums[used.set]) / diagonal
        })
        .collect()
    }

    fn factor(&self, state: &State) -> Option<Factor> {
        let (uses, width) = (self.uses.len(), self.width());
        let vertices = self.vertices.len();
        let ratio = |column: usize| state.x[column] / state.z[column];
        let mut matrix = Dense::zero(width + 1);
        let mut own = Vec::with_capacity(uses);
        let mut along = vec![vec![0.0; width + 1]; self.sets + 1];
        let mut inverse = vec![0.0; self.sets];
        let mut local = Local::new(self.nodes);
        for (place, used) in self.uses.iter().enumerate() {
            let kept = state.s[place] / state.w[place];
            let diagonal = kept + used.vertices.clone().map(ratio).sum::<f64>();
            let base = used.receiver * self.nodes;
            self.add_use(&mut matrix, &mut local, used, kept, &ratio);
            for &node in &local.support {
                along[used.set][base + node] += local.mean[node] * (diagonal - kept) / diagonal;
            }
            inverse[used.set] += 1.0 / diagonal;
            own.push(diagonal);
        }
        let share: Vec<(f64, f64)> = (0..self.sets)
            .map(|set| {
                let ratio = ratio(vertices + set);
                along[set][width] = 1.0;
                (ratio, ratio / (1.0 + ratio * inverse[set]))
            })
            .collect();
        let first = vertices + self.sets;
        for receiver in 0..self.receivers.len() {
            along[self.sets][self.home(receiver * self.nodes)] = 1.0;
        }
        let mut weights: Vec<f64> = share.iter().map(|share| share.1).collect();
        weights.push(ratio(first + width));
        matrix.add_outer(&along, &weights);
        for at in 0..width {
            if self.returns(at) {
                let (ratio, home) = (ratio(first + at), self.home(at));
                *matrix.entry(at, at) += ratio;
                *matrix.entry(home, home) += ratio;
                *matrix.entry(at.min(home), at.max(home)) -= ratio;
            }
            *matrix.entry(at, at) += match self.counted(at) {
                true => state.s[uses + at] / state.w[uses + at],
                false => 1.0,
            };
        }
        *matrix.entry(width, width) += state.s[uses + width] / state.w[uses + width];
        let root = matrix.cholesky()?;
        Some(Factor { own, share, root })
    }

    /// What a use's vertices leave in the matrix once its row is gone: how they scatter about their mean, and the mean itself.
    fn add_use(
        &self,
        matrix: &mut Dense,
        local: &mut Local,
        used: &Use,
        kept: f64,
        ratio: &impl Fn(usize) -> f64,
    ) {
        let all: f64 = used.vertices.clone().map(ratio).sum();
        local.clear();
        for vertex in used.vertices.clone() {
            for &(node, term) in &self.terms[self.vertices[vertex].clone()] {
                if node != self.source {
                    local.add(node, term * ratio(vertex) / all);
                }
            }
        }
        local.support.sort_unstable();
        let base = used.receiver * self.nodes;
        let mean: Vec<f64> = local.support.iter().map(|&node| local.mean[node]).collect();
        matrix.add_local(base, &local.support, &mean, all * kept / (all + kept));
        if used.vertices.len() > 1 {
            for vertex in used.vertices.clone() {
                for (&node, mean) in local.support.iter().zip(&mean) {
                    local.term[node] = -mean;
                }
                for &(node, term) in &self.terms[self.vertices[vertex].clone()] {
                    if node != self.source {
                        local.term[node] += term;
                    }
                }
                let terms = local.support.iter().map(|&node| local.term[node]);
                let terms: Vec<f64> = terms.collect();
                matrix.add_local(base, &local.support, &terms, ratio(vertex));
            }
        }
    }
}

/// Sums over the nodes that one use touches.
struct Local {
    mean: Vec<f64>,
    term: Vec<f64>,
    touched: Vec<bool>,
    support: Vec<usize>,
}

impl Local {
    fn new(nodes: usize) -> Local {
        Local {
            mean: vec![0.0; nodes],
            term: vec![0.0; nodes],
            touched: vec![false; nodes],
            support: Vec::new(),
        }
    }

    fn clear(&mut self) {
        for &node in &self.support {
            self.mean[node] = 0.0;
            self.touched[node] = false;
        }
        self.support.clear();
    }

    fn add(&mut self, node: usize, value: f64) {
        if !self.touched[node] {
            self.touched[node] = true;
            self.support.push(node);
        }
        self.mean[node] += value;
    }
}

impl State {
    /// How far columns and rows' slacks, and multipliers and columns' slacks, can go along a step: at most all of it.
    fn reach(&self, step: &Step) -> (f64, f64) {
        let wall = |values: &[f64], steps: &[f64]| -> f64 {
            let each = values.iter().zip(steps).filter(|(_, step)| **step < 0.0);
            each.map(|(value, step)| -value / step)
                .fold(1.0 / SHORT, f64::min)
        };
        (
            wall(&self.x, &step.x).min(wall(&self.s, &step.s)).min(1.0),
            wall(&self.z, &step.z).min(wall(&self.w, &step.w)).min(1.0),
        )
    }

    fn walk(&mut self, step: &Step, first: f64, second: f64) {
        let walk = |values: &mut [f64], steps: &[f64], part: f64| {
            for (value, step) in values.iter_mut().zip(steps) {
                *value += part * step;
            }
        };
        walk(&mut self.x, &step.x, first);
        walk(&mut self.s, &step.s, first);
        walk(&mut self.z, &step.z, second);
        walk(&mut self.w, &step.w, second);
    }
}

/// A symmetric matrix by the rows of its upper half; rows have full length.
struct Dense {
    size: usize,
    entries: Vec<f64>,
}

/// Rows that are taken together into each row: so many fit the registers beside their factors.
const TOGETHER: usize = 4;
/// Rows that are factorised together, so that those before them come from the cache once for all.
const BLOCK: usize = 8;

impl Dense {
    fn zero(size: usize) -> Dense {
        Dense {
            size,
            entries: vec![0.0; size * size],
        }
    }

    /// An entry; the column is not before the row.
    fn entry(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.entries[row * self.size + column]
    }

    /// Adds `weight v v'` for a vector with few places, which rise.
    fn add_local(&mut self, base: usize, places: &[usize], values: &[f64], weight: f64) {
        for (number, (&row, value)) in places.iter().zip(values).enumerate() {
            let scaled = weight * value;
            let line = &mut self.entries[(base + row) * self.size + base..];
            for (&column, value) in places[number..].iter().zip(&values[number..]) {
                line[column] += scaled * value;
            }
        }
    }

    /// Adds the sum of `weight v v'` over full vectors.
    fn add_outer(&mut self, vectors: &[Vec<f64>], weights: &[f64]) {
        let size = self.size;
        for (first, block) in (0..)
            .step_by(BLOCK)
            .zip(self.entries.chunks_mut(BLOCK * size))
        {
            for (vectors, weights) in vectors.chunks(TOGETHER).zip(weights.chunks(TOGETHER)) {
                let lines: Vec<&[f64]> = vectors.iter().map(|vector| &vector[..]).collect();
                let factor = |row: usize, place: usize| weights[place] * lines[place][row];
                add_lines(block, (first, size), &lines, factor);
            }
        }
    }

    /// The factor in place of the matrix, whose transpose times itself is the matrix; `None` if it is not positive.
    fn cholesky(mut self) -> Option<Dense> {
        let size = self.size;
        let slight = (0..size).map(|at| self.entries[at * size + at]);
        let slight = 1e-14 * slight.fold(0.0, f64::max);
        for first in (0..size).step_by(BLOCK) {
            let (above, block) = self.entries.split_at_mut(first * size);
            let block = &mut block[..BLOCK.min(size - first) * size];
            for lines in above.chunks(TOGETHER * size) {
                let lines: Vec<&[f64]> = lines.chunks(size).collect();
                add_lines(block, (first, size), &lines, |row, place| {
                    -lines[place][row]
                });
            }
            for row in first..size.min(first + BLOCK) {
                let (before, line) = block.split_at_mut((row - first) * size);
                let line = &mut line[row..size];
                for other in before.chunks(size) {
                    let other = &other[row..];
                    let factor = other[0];
                    for (entry, other) in line.iter_mut().zip(other) {
                        *entry -= factor * other;
                    }
                }
                if line[0].is_nan() {
                    return None;
                }
                let root = line[0].max(slight).sqrt();
                line[0] = root;
                line[1..].iter_mut().for_each(|entry| *entry /= root);
            }
        }
        Some(self)
    }

    /// Solves for a right-hand side in its place.
    fn solve(&self, side: &mut [f64]) {
        let size = self.size;
        for row in 0..size {
            let line = &self.entries[row * size + row..(row + 1) * size];
            let solved = side[row] / line[0];
            side[row] = solved;
            for (side, factor) in side[row + 1..].iter_mut().zip(&line[1..]) {
                *side -= solved * factor;
            }
        }
        for row in (0..size).rev() {
            let line = &self.entries[row * size + row..(row + 1) * size];
            side[row] = (side[row] - dot(&line[1..], &side[row + 1..])) / line[0];
        }
    }
}

/// Adds at most [`TOGETHER`] lines, times factors by row and place of the line, to a block of rows that begins with row `first` of a matrix of so many
/// columns. Only the upper half is right afterwards.
fn add_lines(
    block: &mut [f64],
    (first, size): (usize, usize),
    lines: &[&[f64]],
    factor: impl Fn(usize, usize) -> f64,
) {
    let tail = |row: usize| -> [&[f64]; TOGETHER] {
        std::array::from_fn(|place| {
            lines
                .get(place)
                .map_or(&lines[0][row..], |line| &line[row..])
        })
    };
    // Missing lines count nothing.
    let factors = |row: usize| -> [f64; TOGETHER] {
        std::array::from_fn(|place| {
            if place < lines.len() {
                factor(row, place)
            } else {
                0.0
            }
        })
    };
    for (pair, rows) in block.chunks_mut(2 * size).enumerate() {
        let row = first + 2 * pair;
        let (upper, lower) = rows.split_at_mut(size);
        let own = factors(row);
        if lower.is_empty() {
            add_to_one(&mut upper[row..], tail(row), own);
            continue;
        }
        let next = factors(row + 1);
        if own == [0.0; TOGETHER] && next == [0.0; TOGETHER] {
            continue;
        }
        let [a, b, c, d] = tail(row);
        add_to_two(
            &mut upper[row..],
            &mut lower[row..],
            a,
            b,
            c,
            d,
            (own, next),
        );
    }
}

fn add_to_one(to: &mut [f64], lines: [&[f64]; TOGETHER], by: [f64; TOGETHER]) {
    let [a, b, c, d] = lines.map(|line| &line[..to.len()]);
    for (at, to) in to.iter_mut().enumerate() {
        *to += (by[0] * a[at] + by[1] * b[at]) + (by[2] * c[at] + by[3] * d[at]);
    }
}

/// Lines are arguments of a function of its own: the compiler then knows that they do not overlap, and turns the loop into vector instructions.
fn add_to_two(
    upper: &mut [f64],
    lower: &mut [f64],
    a: &[f64],
    b: &[f64],
    c: &[f64],
    d: &[f64],
    (by, next): ([f64; TOGETHER], [f64; TOGETHER]),
) {
    let n = upper.len();
    let (lower, a, b, c, d) = (&mut lower[..n], &a[..n], &b[..n], &c[..n], &d[..n]);
    for at in 0..n {
        upper[at] += (by[0] * a[at] + by[1] * b[at]) + (by[2] * c[at] + by[3] * d[at]);
        lower[at] += (next[0] * a[at] + next[1] * b[at]) + (next[2] * c[at] + next[3] * d[at]);
    }
}

/// A product in eight sums, which the compiler turns into vector instructions.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a.remainder().iter().zip(b.remainder());
    let rest: f64 = rest.map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    rest + sums.iter().sum::<f64>()
}
