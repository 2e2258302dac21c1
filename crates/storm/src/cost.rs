//! What runs cost in processor time, and which scenarios the most.

use std::fmt::Write as _;
use std::time::Duration;

use crate::draft::Draft;
use crate::verdict::Verdict;

/// So many of the dearest runs of a system are named.
const NAMED: usize = 5;
/// The shares of a system's runs, from the dearest on, whose part of the whole is printed.
const SHARES: [f64; 4] = [0.01, 0.05, 0.1, 0.5];

/// What one seed took, and what was in its scenario.
#[derive(Clone, Debug)]
pub struct Cost {
    seed: u64,
    variant: &'static str,
    nodes: usize,
    octets: u64,
    flows: usize,
    faults: usize,
    frames: u64,
    receptions: u64,
    simulated_s: f64,
    drawing: Duration,
    running: Duration,
}

impl Cost {
    /// The cost of a draft's seed: processor time for drawing it until one was accepted, and for its run, or both of its runs.
    pub fn of(draft: &Draft, verdict: &Verdict, (drawing, running): (Duration, Duration)) -> Cost {
        Cost {
            seed: draft.seed,
            variant: draft.variant,
            nodes: draft.network.nodes(),
            octets: draft.transfers.iter().map(|one| one.octets).sum(),
            flows: draft.flows.len(),
            faults: draft.faults(),
            frames: verdict.frames,
            receptions: verdict.receptions,
            simulated_s: verdict.simulated_s,
            drawing,
            running,
        }
    }

    fn all_s(&self) -> f64 {
        (self.drawing + self.running).as_secs_f64()
    }

    fn line(&self) -> String {
        format!(
            "  seed {}: {:.2} s, {}, {} nodes, {} octets, {} flows, {} faults, {:.0} s virtual, {} frames, {} receptions",
            self.seed,
            self.all_s(),
            self.variant,
            self.nodes,
            self.octets,
            self.flows,
            self.faults,
            self.simulated_s,
            self.frames,
            self.receptions
        )
    }
}

/// How the processor time of a system is spread over its seeds: its quantiles, the parts of the dearest, and those by name.
pub fn report(system: &str, costs: &[Cost]) -> String {
    let mut costs = costs.to_vec();
    costs.sort_by(|a, b| b.all_s().total_cmp(&a.all_s()));
    let whole: f64 = costs.iter().map(Cost::all_s).sum();
    let Some(median) = costs.get(costs.len() / 2) else {
        return String::new();
    };
    let sum = |of: &dyn Fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>();
    let drawing = sum(&|cost| cost.drawing.as_secs_f64());
    let a_minute = |count: f64| count * 60.0 / whole.max(1e-9);
    let mut text = format!(
        "{system}: {whole:.1} s of processor ({drawing:.1} s for drawing), median {:.3} s; a minute of it: {:.1} seeds, {:.0} faults, \
         {:.0} receptions\n",
        median.all_s(),
        a_minute(costs.len() as f64),
        a_minute(sum(&|cost| cost.faults as f64)),
        a_minute(sum(&|cost| cost.receptions as f64))
    );
    let parts = SHARES.map(|share| {
        let count = ((costs.len() as f64 * share).ceil() as usize).max(1);
        let part: f64 = costs.iter().take(count).map(Cost::all_s).sum();
        format!("{:.0} % in {count}", 100.0 * part / whole.max(1e-9))
    });
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {} of {} runs", parts.join(", "), costs.len());
    for cost in costs.iter().take(NAMED) {
        let _ = writeln!(text, "{}", cost.line());
    }
    text
}

#[cfg(test)]
mod tests {
    use chappe::systems;

    use super::*;
    use crate::draw;

    #[test]
    fn the_dearest_run_is_named_first_and_has_its_part() {
        let system = systems::SYSTEMS[0];
        let cost = |seed: u64| {
            let draft = draw::draft(system.scenario, seed, 0);
            let took = Duration::from_secs(if seed == 7 { 91 } else { 1 });
            Cost::of(&draft, &Verdict::default(), (Duration::ZERO, took))
        };
        let costs: Vec<Cost> = (1..=10).map(cost).collect();
        let text = report("one", &costs);
        assert!(text.starts_with("one: 100.0 s of processor"), "{text}");
        assert!(
            text.contains("91 % in 1, 91 % in 1, 91 % in 1, 95 % in 5 of 10 runs"),
            "{text}"
        );
        assert!(
            text.lines()
                .nth(2)
                .is_some_and(|line| line.contains("seed 7: 91.00 s")),
            "{text}"
        );
        assert_eq!(report("none", &[]), "");
    }
}
