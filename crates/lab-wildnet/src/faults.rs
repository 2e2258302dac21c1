//! `[[fault]]` at masts and links: a fault of a mast is a fault of its radios.
//!
//! A restarted router has no memory: its links, its slots and its queues are lost. The hosts stand behind it and keep their state. They
//! notice a restart only by missing acknowledgements.

use std::collections::BTreeMap;

use chappe_scenario::InputError;
use chappe_scenario::format::{FaultKind, FaultTable, Located, Scenario};
use chappe_scenario::plan::{Check, LossStep, Plan};
use chappe_sim::{AirTime, Fault, LinkLoss, LinkTrace, LossLaw, Position};

use crate::layout::Layout;

/// The faults of a run, by radio.
#[derive(Clone, Debug, Default)]
pub struct MastFaults {
    /// Faults that the simulator injects.
    pub events: Vec<(AirTime, Fault)>,
    /// When masts restart, in order of time.
    pub restarts: Vec<(AirTime, usize)>,
    /// Loss of the directions that a fault changes. The other directions follow their hop.
    pub losses: Vec<LinkLoss>,
}

impl MastFaults {
    /// A plan's faults. `base` is the share of frames that every link loses.
    pub fn of(plan: &Plan, sites: &[Position], layout: &Layout, base: f64) -> MastFaults {
        let mut faults = MastFaults::default();
        for (at, fault) in &plan.faults {
            let at = AirTime::ZERO + *at;
            faults.add(at, fault.strike(Some(sites)), layout);
        }
        faults.restarts.sort();
        faults.losses = directions(&plan.losses, base, layout);
        faults
    }

    fn add(&mut self, at: AirTime, fault: Fault, layout: &Layout) {
        let mut each = |node: usize, make: &dyn Fn(usize) -> Fault| {
            let radios = layout.radios_at(node).into_iter();
            self.events.extend(radios.map(|radio| (at, make(radio))));
        };
        match fault {
            Fault::Crash(node) => each(node, &Fault::Crash),
            Fault::Restart(node) => self.restarts.push((at, node)),
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
                let cut = |(from, to)| (at, Fault::CutLink(from, to));
                self.events.extend(layout.between(a, b).map(cut));
            }
            Fault::RestoreLink(a, b) => {
                let restored = |(from, to)| (at, Fault::RestoreLink(from, to));
                self.events.extend(layout.between(a, b).map(restored));
            }
            Fault::Forge { node, forgery } => {
                each(node, &|node| Fault::Forge { node, forgery });
            }
            Fault::Jammer(jammer) => self.events.push((at, Fault::Jammer(jammer))),
        }
    }
}

/// The loss of each direction that changes: `base` from the start, then the steps in order of time.
fn directions(steps: &[LossStep], base: f64, layout: &Layout) -> Vec<LinkLoss> {
    let mut sorted = steps.to_vec();
    sorted.sort_by_key(|step| step.at);
    let mut laws: BTreeMap<(usize, usize), Vec<(AirTime, f64)>> = BTreeMap::new();
    for step in sorted {
        let Some(radios) = layout.between(step.from, step.to) else {
            continue;
        };
        let law = laws
            .entry(radios)
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

/// Refuses faults that are impossible at these masts and links, or at their time.
pub fn check(scenario: &Scenario, layout: &Layout, check: &Check<'_>) -> Result<(), InputError> {
    let mut faults: Vec<(f64, &Located<FaultTable>)> = scenario
        .fault
        .iter()
        .map(|fault| (fault.at.value(), fault))
        .collect();
    faults.sort_by(|a, b| a.0.total_cmp(&b.0));
    let limit = scenario.run.limit.as_ref().map(|limit| limit.value());
    let mut masts = Course::of(layout);
    for (at, fault) in faults {
        if limit.is_some_and(|limit| at >= limit) {
            let message = format!("the run ends before {}", *fault.at);
            let help = "make run.limit longer, or the fault earlier";
            return Err(check.at(&fault.at, "too late", message).help(help));
        }
        masts.apply(fault, check)?;
    }
    Ok(())
}

/// Masts that are down and links that are cut, as faults follow each other.
#[derive(Debug)]
struct Course<'a> {
    layout: &'a Layout,
    down: Vec<usize>,
    cut: Vec<(usize, usize)>,
}

impl Course<'_> {
    fn of(layout: &Layout) -> Course<'_> {
        Course {
            layout,
            down: Vec::new(),
            cut: Vec::new(),
        }
    }

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
        if self.layout.between(a, b).is_none() {
            let message = format!("no link leads from mast {} to mast {}", link[0], link[1]);
            let links = self.layout.links().iter();
            let links: Vec<String> = links.map(|(a, b)| format!("[{a}, {b}]")).collect();
            let help = format!("the links are {}", links.join(", "));
            return Err(check.at(link, "not linked", message).help(help));
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
