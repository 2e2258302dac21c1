//! Two results, paired by seed: better, worse or the same, and by how much.
//!
//! Flows are matched by seed, transfer, source and sink. Flows of one seed share their air, so they are first
//! averaged, and the interval is taken over seeds: an interval over flows would be too narrow.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::document::{DATA_TRANSMISSIONS, Document, Run};
use crate::statistics::{Paired, Ratio, Summary, mean, paired};

/// A comparison of two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Seeds that both results have.
    pub seeds: usize,
    /// Flows that both results have.
    pub flows: usize,
    /// Runs that only A has.
    pub only_a: usize,
    /// Runs that only B has.
    pub only_b: usize,
    /// Flows that finished in A but not in B, and the other way round.
    pub lost_and_won: (usize, usize),
    /// One for each quantity.
    pub quantities: Vec<Quantity>,
    /// What makes the two hard to compare, in sentences.
    pub warnings: Vec<String>,
}

/// One quantity in both results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// Its name in the results.
    pub name: &'static str,
    /// Summary of A over the common seeds.
    pub a: Summary,
    /// Summary of B over the common seeds.
    pub b: Summary,
    /// B against A, seed by seed.
    pub paired: Paired,
    /// The verdict on B, from the interval of `paired`.
    pub verdict: Verdict,
}

/// The verdict of a comparison on B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is better: the interval of the difference lies on the good side of zero.
    Better,
    /// B is worse: the interval of the difference lies on the bad side of zero.
    Worse,
    /// The same numbers, seed by seed.
    Same,
    /// A difference, but the interval holds zero.
    NotKnown,
    /// Fewer than two seeds: there is no interval.
    TooFew,
}

impl Verdict {
    /// The verdict in words, about B.
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "the same",
            Verdict::NotKnown => "no clear difference",
            Verdict::TooFew => "too few seeds to tell",
        }
    }

    /// The verdict from the interval of a ratio.
    pub fn of_ratio(ratio: &Ratio, more_is_better: bool) -> Verdict {
        match (ratio.low, ratio.high) {
            (Some(low), Some(high)) if low == 1.0 && high == 1.0 => Verdict::Same,
            (Some(low), _) if low > 1.0 => Verdict::side(more_is_better),
            (_, Some(high)) if high < 1.0 => Verdict::side(!more_is_better),
            (Some(_), Some(_)) => Verdict::NotKnown,
            _ => Verdict::TooFew,
        }
    }

    const fn side(better: bool) -> Verdict {
        if better {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    }

    fn of(difference: &Summary, more_is_better: bool) -> Verdict {
        match difference.interval() {
            _ if difference.min == 0.0 && difference.max == 0.0 => Verdict::Same,
            None => Verdict::TooFew,
            Some((low, _)) if low > 0.0 => {
                if more_is_better {
                    Verdict::Better
                } else {
                    Verdict::Worse
                }
            }
            Some((_, high)) if high < 0.0 => {
                if more_is_better {
                    Verdict::Worse
                } else {
                    Verdict::Better
                }
            }
            Some(_) => Verdict::NotKnown,
        }
    }
}

type FlowKey = (usize, usize, usize);

/// Compares `b` with `a`.
pub fn compare(a: &Document, b: &Document) -> Comparison {
    let of_b: BTreeMap<u64, &Run> = b.runs.iter().map(|run| (run.seed, run)).collect();
    let both: Vec<(&Run, &Run)> = a
        .runs
        .iter()
        .filter_map(|run| Some((run, *of_b.get(&run.seed)?)))
        .collect();
    let matched: Vec<Vec<(FlowKey, FlowPair)>> =
        both.iter().map(|(a, b)| match_flows(a, b)).collect();
    let flows = || matched.iter().flatten().map(|(_, pair)| pair);
    let per_run = |value: &dyn Fn(&FlowSide) -> f64| -> Vec<(f64, f64)> {
        let average = |side: &dyn Fn(&FlowPair) -> f64, run: &[(FlowKey, FlowPair)]| {
            mean(&run.iter().map(|(_, pair)| side(pair)).collect::<Vec<f64>>())
        };
        let used = matched.iter().filter(|run| !run.is_empty());
        used.map(|run| {
            (
                average(&|p| value(&p.a), run),
                average(&|p| value(&p.b), run),
            )
        })
        .collect()
    };
    let worst: Vec<(f64, f64)> = both
        .iter()
        .map(|(a, b)| (a.worst_goodput(), b.worst_goodput()))
        .collect();
    let sent = |run: &Run| run.counter(DATA_TRANSMISSIONS) as f64;
    let frames: Vec<(f64, f64)> = both.iter().map(|(a, b)| (sent(a), sent(b))).collect();
    Comparison {
        seeds: both.len(),
        flows: flows().count(),
        only_a: a.runs.len() - both.len(),
        only_b: b.runs.len().saturating_sub(both.len()),
        lost_and_won: (
            flows()
                .filter(|pair| pair.a.complete && !pair.b.complete)
                .count(),
            flows()
                .filter(|pair| !pair.a.complete && pair.b.complete)
                .count(),
        ),
        quantities: vec![
            Quantity::new("goodput_bps", &per_run(&|side| side.goodput), true),
            Quantity::new("worst_goodput_bps", &worst, true),
            Quantity::new("delivered_bytes", &per_run(&|side| side.delivered), true),
            Quantity::new(DATA_TRANSMISSIONS, &frames, false),
        ],
        warnings: warnings(a, b),
    }
}

impl Quantity {
    fn new(name: &'static str, pairs: &[(f64, f64)], more_is_better: bool) -> Quantity {
        let paired = paired(pairs);
        Quantity {
            name,
            a: Summary::of(&pairs.iter().map(|pair| pair.0).collect::<Vec<f64>>()),
            b: Summary::of(&pairs.iter().map(|pair| pair.1).collect::<Vec<f64>>()),
            verdict: Verdict::of(&paired.difference, more_is_better),
            paired,
        }
    }
}

struct FlowPair {
    a: FlowSide,
    b: FlowSide,
}

struct FlowSide {
    goodput: f64,
    delivered: f64,
    complete: bool,
}

fn match_flows(a: &Run, b: &Run) -> Vec<(FlowKey, FlowPair)> {
    let side = |flow: &crate::document::Flow| FlowSide {
        goodput: flow.goodput_bps,
        delivered: flow.delivered_bytes as f64,
        complete: flow.complete && flow.digest_ok,
    };
    let key = |flow: &crate::document::Flow| (flow.transfer, flow.source, flow.sink);
    let pairs = a.flows.iter().filter_map(|of_a| {
        let of_b = b.flows.iter().find(|flow| key(flow) == key(of_a))?;
        Some((
            key(of_a),
            FlowPair {
                a: side(of_a),
                b: side(of_b),
            },
        ))
    });
    pairs.collect()
}

/// The warning about two programs that no commit tells apart.
const MAY_DIFFER: &str = "both were made by changed programs of one commit, which may differ";
/// The words before a commit in the warning about a program that is not that commit's.
const CHANGED: &str = "was made by a program changed after commit";

/// Whether a warning says that the programs may differ, which those of one sweep do not.
pub fn is_of_program(warning: &str) -> bool {
    warning == MAY_DIFFER || warning.contains(CHANGED)
}

fn warnings(a: &Document, b: &Document) -> Vec<String> {
    let mut warnings = Vec::new();
    let unknown = a.dirty && b.dirty && a.commit == b.commit;
    if unknown {
        warnings.push(MAY_DIFFER.into());
    }
    for (name, document) in [("A", a), ("B", b)] {
        if document.dirty && !unknown {
            warnings.push(format!("{name} {CHANGED} {}", document.commit));
        }
        if document.interrupted {
            warnings.push(format!(
                "{name} was interrupted and holds {} runs",
                document.runs.len()
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Flow;
    use crate::provenance::{Program, Provenance};

    fn document(goodputs: &[(u64, f64)]) -> Document {
        let flow = |goodput_bps: f64| Flow {
            sink: 1,
            protocol: "pacifier".into(),
            variant: "paper".into(),
            offered_bytes: 1000,
            delivered_bytes: 1000,
            complete: true,
            digest_ok: true,
            completion_s: Some(8000.0 / goodput_bps),
            goodput_bps,
            ..Flow::named("r1")
        };
        let run = |&(seed, goodput): &(u64, f64)| Run {
            seed,
            simulated_s: 1.0,
            wall_s: 0.1,
            events: 1,
            digest: "0".into(),
            flows: vec![flow(goodput)],
            counters: [(DATA_TRANSMISSIONS.to_string(), 100)].into(),
            bounds: Vec::new(),
            bound: None,
            fairness: None,
        };
        let from = Provenance::here(Program::unknown("chappe"), "{}");
        Document::new("s", &from, goodputs.iter().map(run).collect(), false)
    }

    #[test]
    fn a_gain_on_every_seed_counts_although_seeds_vary_more() {
        let a = document(&[(1, 100.0), (2, 1000.0), (3, 10.0), (4, 500.0)]);
        let b = document(&[(4, 551.0), (1, 151.0), (2, 1049.0), (3, 59.0), (9, 1.0)]);
        let comparison = compare(&a, &b);
        assert_eq!(
            (comparison.seeds, comparison.only_a, comparison.only_b),
            (4, 0, 1)
        );
        assert_eq!(comparison.quantities[0].verdict, Verdict::Better);
        assert_eq!(comparison.quantities[3].verdict, Verdict::Same);
        assert_eq!(compare(&b, &a).quantities[0].verdict, Verdict::Worse);
    }

    #[test]
    fn one_seed_gives_no_verdict() {
        let comparison = compare(&document(&[(1, 100.0)]), &document(&[(1, 200.0)]));
        assert_eq!(comparison.quantities[0].verdict, Verdict::TooFew);
    }

    /// Two samples of the same distribution differ falsely in at most 5 of 100 cases: 1,000 comparisons of ten
    /// seeds; 5 % with three standard deviations is 71.
    #[test]
    fn false_alarms_stay_below_the_level() {
        let mut stream = chappe_core::Seed(11).stream(chappe_core::Purpose::Trial(3));
        let mut draw = || {
            document(
                &(0..10)
                    .map(|s| (s, 100.0 + 10.0 * stream.normal()))
                    .collect::<Vec<_>>(),
            )
        };
        let mut alarms = 0;
        for _ in 0..1000 {
            let verdict = compare(&draw(), &draw()).quantities[0].verdict;
            alarms += u32::from(verdict != Verdict::NotKnown);
        }
        assert!(alarms <= 71, "{alarms}");
    }
}
