//! `[[fault]]` along a line of masts: a fault of a mast is a fault of its radios.
//!
//! A restarted router has no memory: its links, its slots and its queues are lost. The hosts at the ends of the line stand
//! behind it and keep their state. They notice a restart only by missing acknowledgements.

use std::collections::BTreeMap;

use chappe_scenario::InputError;
use chappe_scenario::format::{FaultKind, FaultTable, Located, Scenario};
use chappe_scenario::plan::{Check, LossStep, Plan};
use chappe_sim::{AirTime, Fault, LinkLoss, LinkTrace, LossLaw, Position};

/// The faults of a run, by radio: hop `h` has radios 2 h and 2 h + 1.
#[derive(Clone, Debug, Default)]
pub struct LineFaults {
    /// Faults that the simulator injects.
    pub events: Vec<(AirTime, Fault)>,
    /// When masts restart, in order of time.
    pub restarts: Vec<(AirTime, usize)>,
    /// Loss of the directions that a fault changes. The other directions follow their hop.
    pub losses: Vec<LinkLoss>,
}

impl LineFaults {
    /// A plan's faults on a line, seen from its last mast if `reversed`. `base` is the share of frames that every link loses.
    pub fn of(plan: &Plan, sites: &[Position], reversed: bool, base: f64) -> LineFaults {
        let masts = sites.len();
        let mast = |node: usize| mast(node, reversed, masts);
        let mut faults = LineFaults::default();
        for (at, fault) in &plan.faults {
            let at = AirTime::ZERO + *at;
            faults.add(at, fault.strike(Some(sites)), mast, masts);
        }
        faults.restarts.sort();
        faults.losses = directions(&plan.losses, base, mast);
        faults
    }

    fn add(&mut self, at: AirTime, fault: Fault, mast: impl Fn(usize) -> usize, masts: usize) {
        let mut each = |node: usize, make: &dyn Fn(usize) -> Fault| {
            let radios = radios(mast(node), masts).into_iter();
            self.events.extend(radios.map(|radio| (at, make(radio))));
        };
        match fault {
            Fault::Crash(node) => each(node, &Fault::Crash),
            Fault::Restart(node) => self.restarts.push((at, mast(node))),
            Fault::Drift { node, ppm } => each(node, &|node| Fault::Drift { node, ppm }),
            Fault::CorruptBits {
                node,
                rate,
                detected,
            } => each(node, &|node| Fault::CorruptBits {
                node,
                rate,
                detected,
            }),
            Fault::CutLink(a, b) => {
                let (from, to) = ends(mast(a), mast(b));
                self.events.push((at, Fault::CutLink(from, to)));
            }
            Fault::RestoreLink(a, b) => {
                let (from, to) = ends(mast(a), mast(b));
                self.events.push((at, Fault::RestoreLink(from, to)));
            }
            Fault::Forge { node, forgery } => {
                each(node, &|node| Fault::Forge { node, forgery });
            }
            Fault::Jammer(jammer) => self.events.push((at, Fault::Jammer(jammer))),
        }
    }
}

/// The one or two radios of a mast.
pub fn radios(mast: usize, masts: usize) -> Vec<usize> {
    let left = mast.checked_sub(1).map(|hop| 2 * hop + 1);
    let right = (mast + 1 < masts).then_some(2 * mast);
    left.into_iter().chain(right).collect()
}

/// The place of a scenario's node on a line of `masts`, which may begin at the scenario's last one.
pub fn mast(node: usize, reversed: bool, masts: usize) -> usize {
    match reversed {
        true => masts - 1 - node,
        false => node,
    }
}

/// The radios at the two ends of the link from a mast to its neighbour.
fn ends(from: usize, to: usize) -> (usize, usize) {
    match from < to {
        true => (2 * from, 2 * from + 1),
        false => (2 * to + 1, 2 * to),
    }
}

/// The loss of each direction that changes: `base` from the start, then the steps in order of time.
fn directions(steps: &[LossStep], base: f64, mast: impl Fn(usize) -> usize) -> Vec<LinkLoss> {
    let mut sorted = steps.to_vec();
    sorted.sort_by_key(|step| step.at);
    let mut laws: BTreeMap<(usize, usize), Vec<(AirTime, f64)>> = BTreeMap::new();
    for step in sorted {
        let law = laws
            .entry(ends(mast(step.from), mast(step.to)))
            .or_insert_with(|| vec![(AirTime::ZERO, 1.0 - base)]);
        let at = AirTime::ZERO + step.at;
        // Of two steps at the same time, the later one in the file counts.
        law.retain(|(earlier, _)| *earlier != at);
        law.push((at, 1.0 - step.share));
    }
    let law = |((from, to), steps)| LinkLoss {
        from,
        to,
        law: LossLaw::Trace(LinkTrace::Steps(steps)),
        unheard: 0.0,
    };
    laws.into_iter().map(law).collect()
}

/// Refuses faults that are impossible in a line of masts, or at their time.
pub fn check(scenario: &Scenario, check: &Check<'_>) -> Result<(), InputError> {
    let mut faults: Vec<(f64, &Located<FaultTable>)> = scenario
        .fault
        .iter()
        .map(|fault| (fault.at.value(), fault))
        .collect();
    faults.sort_by(|a, b| a.0.total_cmp(&b.0));
    let limit = scenario.run.limit.as_ref().map(|limit| limit.value());
    let mut line = Line::default();
    for (at, fault) in faults {
        if limit.is_some_and(|limit| at >= limit) {
            let message = format!("the run ends before {}", *fault.at);
            let help = "make run.limit longer, or the fault earlier";
            return Err(check.at(&fault.at, "too late", message).help(help));
        }
        line.apply(fault, check)?;
    }
    Ok(())
}

/// Masts that are down and links that are cut, as faults follow each other.
#[derive(Debug, Default)]
struct Line {
    down: Vec<usize>,
    cut: Vec<(usize, usize)>,
}

impl Line {
    /// Applies one fault. Unknown nodes and missing keys are reported by the plan.
    fn apply(&mut self, fault: &FaultTable, check: &Check<'_>) -> Result<(), InputError> {
        match *fault.kind {
            FaultKind::Crash | FaultKind::Restart => self.node(fault, check),
            FaultKind::CutLink | FaultKind::RestoreLink | FaultKind::LinkLoss => {
                self.link(fault, check)
            }
            FaultKind::Drift | FaultKind::Corrupt | FaultKind::Jammer | FaultKind::Forge => Ok(()),
        }
    }

    fn node(&mut self, fault: &FaultTable, check: &Check<'_>) -> Result<(), InputError> {
        let Some(node) = &fault.node else {
            return Ok(());
        };
        let place = self.down.iter().position(|down| *down == **node);
        match (*fault.kind, place) {
            (FaultKind::Crash, None) => self.down.push(**node),
            (FaultKind::Restart, Some(place)) => drop(self.down.swap_remove(place)),
            (FaultKind::Crash, _) => {
                let message = format!("node {} is down already at {}", **node, *fault.at);
                let help = "let a fault of kind \"restart\" come first";
                return Err(check.at(node, "down", message).help(help));
            }
            _ => {
                let message = format!("node {} runs at {}", **node, *fault.at);
                let help = "only a node that a fault of kind \"crash\" has stopped can start again";
                return Err(check.at(node, "not down", message).help(help));
            }
        }
        Ok(())
    }

    fn link(&mut self, fault: &FaultTable, check: &Check<'_>) -> Result<(), InputError> {
        let Some(link) = &fault.link else {
            return Ok(());
        };
        let (a, b) = (link[0].min(link[1]), link[0].max(link[1]));
        if b - a != 1 {
            let message = format!("no link leads from mast {} to mast {}", link[0], link[1]);
            let help = "masts are linked to the next one in the line: [0, 1], [1, 2] and so on";
            return Err(check.at(link, "not neighbours", message).help(help));
        }
        let place = self.cut.iter().position(|cut| *cut == (a, b));
        match (*fault.kind, place) {
            (FaultKind::CutLink, None) => self.cut.push((a, b)),
            (FaultKind::RestoreLink, Some(place)) => drop(self.cut.swap_remove(place)),
            (FaultKind::CutLink, _) => {
                let message = format!("the link is cut already at {}", *fault.at);
                let help = "let a fault of kind \"restore-link\" come first";
                return Err(check.at(link, "cut", message).help(help));
            }
            (FaultKind::RestoreLink, _) => {
                let message = format!("the link is not cut at {}", *fault.at);
                let help = "only a link that a fault of kind \"cut-link\" has cut can be restored";
                return Err(check.at(link, "not cut", message).help(help));
            }
            _ => {}
        }
        Ok(())
    }
}
