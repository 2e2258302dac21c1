//! What two simulators counted on the same networks, and whether that is the same.

use std::fmt::Write;

/// Sides agree if their totals differ by less than this and [`SAME`] holds. A judgement: half of what single seeds differ by.
const CLOSE: f64 = 0.02;
/// Sides agree if such a distance between distributions, or a larger one, has at least this probability.
const SAME: f64 = 0.05;

/// One side's counts of one run.
#[derive(Debug, Default, PartialEq)]
pub struct Counts {
    /// Processor time of the run, in seconds.
    cpu: f64,
    /// Lengths of a data frame and of an acknowledgement on the air, in microseconds.
    data_us: f64,
    ack_us: f64,
    /// Data frames that each node sent, and those that were received of or by it.
    nodes: Vec<[f64; 2]>,
}

impl Counts {
    /// Reads what a side printed.
    pub fn read(text: &str) -> Result<Counts, String> {
        let mut counts = Counts::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| -> Result<f64, String> {
                let word = words
                    .get(at)
                    .ok_or_else(|| format!("no number in: {line}"))?;
                word.parse().map_err(|_| format!("no number in: {line}"))
            };
            match words.first().copied() {
                Some("cpu") => counts.cpu = number(1)?,
                Some("data_us") => counts.data_us = number(1)?,
                Some("ack_us") => counts.ack_us = number(1)?,
                Some("node") => counts.nodes.push([number(1)?, number(2)?]),
                _ => return Err(format!("not expected: {line}")),
            }
        }
        match counts.nodes.is_empty() {
            true => Err("a run without nodes".to_owned()),
            false => Ok(counts),
        }
    }

    fn total(&self, of: usize) -> f64 {
        self.nodes.iter().map(|node| node[of]).sum()
    }

    fn received(&self) -> impl Iterator<Item = f64> {
        self.nodes.iter().map(|node| node[1])
    }
}

/// All runs of a case: ours and theirs for each seed.
#[derive(Debug, Default)]
pub struct Comparison(Vec<[Counts; 2]>);

impl Comparison {
    /// Adds a seed's two runs. An error if they did not run the same: another number of nodes, frames of another length.
    pub fn add(&mut self, ours: Counts, theirs: Counts) -> Result<(), String> {
        if ours.nodes.len() != theirs.nodes.len() {
            return Err("the sides have different numbers of nodes".to_owned());
        }
        // Without acknowledgements there is no length of one to compare.
        let lengths = [
            (ours.data_us, theirs.data_us),
            match ours.ack_us == 0.0 {
                true => (0.0, 0.0),
                false => (ours.ack_us, theirs.ack_us),
            },
        ];
        for (ours, theirs) in lengths {
            if (ours - theirs).abs() > 0.5 {
                return Err(format!("frames take {ours} us here and {theirs} there"));
            }
        }
        self.0.push([ours, theirs]);
        Ok(())
    }

    /// Ratio of ours to theirs, and the half width of its 95 % interval over seeds, from the ratios' logarithms.
    fn ratio(&self, of: impl Fn(&Counts) -> f64) -> (f64, f64) {
        let logs: Vec<f64> = self.0.iter().map(|[a, b]| (of(a) / of(b)).ln()).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares = logs.iter().map(|log| (log - mean) * (log - mean));
        // 2.2 is Student's t for twelve seeds; fewer make it larger, at most 12.7 for two.
        let error = 2.2 * (squares.sum::<f64>() / (n - 1.0) / n).sqrt();
        (mean.exp(), mean.exp() * error)
    }

    /// What each node received, over all seeds, of one side.
    fn pooled(&self, side: usize) -> Vec<f64> {
        let runs = self.0.iter();
        runs.flat_map(|pair| pair[side].received()).collect()
    }

    /// Distance of the pooled distributions and its probability.
    fn distance(&self) -> (f64, f64) {
        kolmogorov_smirnov(self.pooled(0), self.pooled(1))
    }

    /// Whether totals are close and the distributions may be the same.
    pub fn agrees(&self) -> bool {
        let close = |of: usize| (self.ratio(|counts| counts.total(of)).0 - 1.0).abs() < CLOSE;
        close(0) && close(1) && self.distance().1 >= SAME
    }

    /// The rows of a case.
    pub fn table(&self, what: &str) -> String {
        let mut text = format!("{what}\n");
        let mut row = |name: &str, ours: f64, theirs: f64, rest: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {name:<26}{ours:>11.2}{theirs:>11.2}  {rest}");
        };
        let seeds = self.0.len() as f64;
        let mean = |side: usize, of: &dyn Fn(&Counts) -> f64| -> f64 {
            self.0.iter().map(|pair| of(&pair[side])).sum::<f64>() / seeds
        };
        type Figure<'a> = (&'a str, &'a dyn Fn(&Counts) -> f64);
        let figures: [Figure<'_>; 3] = [
            ("frames", &|counts| counts.total(0)),
            ("received", &|counts| counts.total(1)),
            ("received a frame", &|counts| {
                counts.total(1) / counts.total(0)
            }),
        ];
        for (name, of) in figures {
            let (ratio, error) = self.ratio(of);
            let rest = format!("ratio {ratio:.4} ± {error:.4}");
            row(name, mean(0, of), mean(1, of), rest);
        }
        let (ours, theirs) = (sorted(self.pooled(0)), sorted(self.pooled(1)));
        for tenth in [1, 5, 9] {
            let at = |sample: &[f64]| sample[(sample.len() - 1) * tenth / 10];
            let name = format!("received, {}0 % of nodes", tenth);
            row(&name, at(&ours), at(&theirs), "or fewer".to_owned());
        }
        let (distance, probability) = self.distance();
        let least = self.0.iter().map(|[a, b]| {
            let (ours, theirs) = (a.received().collect(), b.received().collect());
            kolmogorov_smirnov(ours, theirs).1
        });
        let least = least.fold(1.0, f64::min);
        let (speed, error) = self.ratio(|counts| 1.0 / counts.cpu);
        row(
            "processor seconds",
            mean(0, &|counts| counts.cpu),
            mean(1, &|counts| counts.cpu),
            format!("Chappe is {speed:.0} ± {error:.0} times as fast"),
        );
        let _ = writeln!(
            text,
            "  nodes' distributions: KS D {distance:.3}, p {probability:.3}; least p of a seed {least:.3}"
        );
        let word = if self.agrees() { "agree" } else { "differ" };
        let _ = writeln!(text, "  the sides {word}");
        text
    }
}

fn sorted(mut sample: Vec<f64>) -> Vec<f64> {
    sample.sort_by(f64::total_cmp);
    sample
}

/// The largest distance between the distributions of two samples, and the probability of such a one or a larger one if both came
/// from the same distribution: the asymptotic series with Stephens's correction for small samples (JRSS B 32, 1970). For
/// counts, which have ties, the true probability is larger.
fn kolmogorov_smirnov(a: Vec<f64>, b: Vec<f64>) -> (f64, f64) {
    let (a, b) = (sorted(a), sorted(b));
    let below =
        |sample: &[f64], x: f64| sample.partition_point(|&v| v <= x) as f64 / sample.len() as f64;
    let apart = |&x: &f64| (below(&a, x) - below(&b, x)).abs();
    let distance = a.iter().chain(&b).map(apart).fold(0.0, f64::max);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let root = (n * m / (n + m)).sqrt();
    let scaled = (root + 0.12 + 0.11 / root) * distance;
    // The series alternates and its first terms tell nothing near zero, where the probability is one.
    if scaled < 0.2 {
        return (distance, 1.0);
    }
    let term = |j: i32| {
        let sign = if j % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(j * j) * scaled * scaled).exp()
    };
    (distance, (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values of the two-sample test for large samples: 1.358 for 5 %, 1.628 for 1 %.
    #[test]
    fn probabilities_are_those_of_tables() {
        for (critical, expected) in [(1.358, 0.05), (1.628, 0.01)] {
            // Two samples of n, one shifted by a share of its length, have that share as their distance.
            let n = 20_000usize;
            let shift = (critical / (n as f64 / 2.0).sqrt() * n as f64).round();
            let a: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let b: Vec<f64> = a.iter().map(|x| x + shift).collect();
            let (distance, p) = kolmogorov_smirnov(a, b);
            assert!((distance - shift / n as f64).abs() < 1e-4, "{distance}");
            assert!((p - expected).abs() < 0.003, "{p}");
        }
        assert_eq!(
            kolmogorov_smirnov(vec![1.0, 2.0], vec![1.0, 2.0]),
            (0.0, 1.0)
        );
    }

    fn counts(received: f64) -> Counts {
        let node = |i: i32| format!("node 100 {}\n", received + f64::from(i % 7));
        let nodes: String = (0..50).map(node).collect();
        Counts::read(&format!("cpu 0.5\ndata_us 10\nack_us 0\n{nodes}")).unwrap()
    }

    #[test]
    fn sides_that_differ_are_told_apart() {
        let mut same = Comparison::default();
        let mut fewer = Comparison::default();
        for _ in 0..3 {
            same.add(counts(90.0), counts(90.0)).unwrap();
            fewer.add(counts(80.0), counts(90.0)).unwrap();
        }
        assert!(same.agrees() && !fewer.agrees());
        assert!(same.table("x").contains("ratio 1.0000") && fewer.table("x").contains("differ"));
    }

    #[test]
    fn runs_of_different_frames_are_refused() {
        let mut other = counts(90.0);
        other.data_us = 11.0;
        let why = Comparison::default().add(counts(90.0), other).unwrap_err();
        assert_eq!(why, "frames take 10 us here and 11 there");
        for (text, expected) in [
            ("cpu", "no number in: cpu"),
            ("node 1", "no number in: node 1"),
            ("what 1", "not expected: what 1"),
            ("cpu 1", "a run without nodes"),
        ] {
            assert_eq!(Counts::read(text).unwrap_err(), expected);
        }
    }
}
