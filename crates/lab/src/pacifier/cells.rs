//! The runs that figures are made of, each made once.

use std::collections::{BTreeMap, BTreeSet};

use chappe_core::Seed;

use super::{indoor, outdoor};
use crate::figure::Series;
use crate::plan::{Plan, ProtocolPlan};
use crate::results::{DATA_TRANSMISSIONS, Run};
use crate::run::{Attempt, Depth, Meter, Prepared, RunError, StageBound, carry, prepare, seeds};
use crate::scenario::Variant;
use crate::session;

/// Where a run takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// The simulation set-up, with the fading law of the paper's simulator.
    Outdoor,
    /// The same with true Rayleigh fading.
    OutdoorRayleigh,
    /// The indoor network, on one of its days.
    Indoor {
        /// 1 or 2.
        day: u8,
    },
}

/// What runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// MORE with its published threshold of 10 %.
    MoreOriginal,
    /// MORE with its threshold tuned to each scenario.
    More,
    /// TREE.
    Tree,
    /// TREE+RL.
    TreeRl,
    /// TREE+RL+RRB with a knob in per cent.
    Pacifier {
        /// 0 to 100.
        knob: u8,
    },
}

/// The complete protocol with the knob that the paper settles on.
pub const PACIFIER: System = System::Pacifier { knob: 100 };

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Where.
    pub site: Site,
    /// Which of the scenarios, from 1.
    pub scenario: u8,
    /// What.
    pub system: System,
}

/// How much of the paper's work to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Scenarios; 10 in the paper.
    pub scenarios: u8,
    /// Octets carried outdoors; 12 MB in the paper.
    pub outdoor_bytes: usize,
    /// Octets carried indoors; 2.3 MB in the paper.
    pub indoor_bytes: usize,
    /// Knobs of Figure 6 in per cent.
    pub knobs: Vec<u8>,
    /// Whether to repeat Figure 7 under true Rayleigh fading.
    pub rayleigh: bool,
    /// The first seed: scenario n outdoors has the n-th seed from here on.
    pub seed: u64,
}

impl Scale {
    /// The paper's.
    pub fn full(seed: u64) -> Scale {
        Scale {
            scenarios: 10,
            outdoor_bytes: 12_000_000,
            indoor_bytes: 2_300_000,
            knobs: vec![0, 20, 40, 60, 80, 100],
            rayleigh: true,
            seed,
        }
    }

    /// The same scenarios with smaller objects and fewer knobs.
    pub fn quick(seed: u64) -> Scale {
        Scale {
            outdoor_bytes: 1_440_000,
            indoor_bytes: 700_800,
            knobs: vec![0, 50, 100],
            rayleigh: false,
            ..Scale::full(seed)
        }
    }

    /// Every scenario with each of `systems`.
    pub fn cells(&self, site: Site, systems: &[System]) -> Vec<Cell> {
        let scenarios = 1..=self.scenarios;
        let one = |scenario| systems.iter().map(move |&system| Cell { site, scenario, system });
        scenarios.flat_map(one).collect()
    }

    /// What stands under the bars: the scenarios, and their mean.
    pub fn places(&self) -> Vec<String> {
        (1..=self.scenarios).map(|n| n.to_string()).chain(["mean".to_string()]).collect()
    }
}

impl System {
    /// Its name in figures.
    pub fn label(self) -> String {
        match self {
            System::MoreOriginal => "MORE_orig".into(),
            System::More => "MORE".into(),
            System::Tree => "TREE".into(),
            System::TreeRl => "TREE+RL".into(),
            System::Pacifier { knob: 100 } => "Pacifier".into(),
            System::Pacifier { knob } => format!("Pacifier, knob {}", f64::from(knob) / 100.0),
        }
    }

    fn protocol(self) -> ProtocolPlan {
        let variant = match self {
            System::MoreOriginal | System::More => Variant::More,
            System::Tree => Variant::Tree,
            System::TreeRl => Variant::TreeRl,
            System::Pacifier { .. } => Variant::Paper,
        };
        let mut protocol = ProtocolPlan::paper(variant);
        protocol.tuned = self == System::More;
        if let System::Pacifier { knob } = self {
            let knob = f64::from(knob) / 100.0;
            protocol.config.variant = chappe_pacifier::Variant::Pacifier { knob };
        }
        protocol
    }
}

/// Finished runs.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    runs: BTreeMap<Cell, Run>,
    bounds: BTreeMap<(Site, u8), StageBound>,
    payload: BTreeMap<Site, usize>,
    links: BTreeMap<Site, indoor::LinkStatistics>,
}

impl Cells {
    /// Makes the needed runs. A request to stop leaves some out; an error of any ends the whole.
    pub fn run(
        needed: BTreeSet<Cell>,
        scale: &Scale,
        threads: usize,
        meter: &Meter,
    ) -> Result<Cells, RunError> {
        let stages: BTreeSet<(Site, u8)> = needed.iter().map(|cell| (cell.site, cell.scenario)).collect();
        let stages: Vec<(Site, u8)> = stages.into_iter().collect();
        let go_on = || !meter.stopped();
        meter.expect(STAGE_WORK * stages.len() as u64);
        let prepared = seeds::parallel(&stages, threads, go_on, |&(site, scenario)| {
            let stage = Stage::new(site, scenario, scale, meter);
            meter.advance(STAGE_WORK);
            stage
        });
        let mut cells = Cells::default();
        let mut ready: BTreeMap<(Site, u8), Stage> = BTreeMap::new();
        for (&place, stage) in stages.iter().zip(prepared) {
            match stage {
                None | Some(Err(RunError::Interrupted)) => {}
                Some(stage) => {
                    let stage = stage?;
                    cells.bounds.insert(place, stage.prepared.bounds[0].clone());
                    cells.payload.insert(place.0, stage.plan.protocol.config.payload);
                    cells.links.entry(place.0).or_insert_with(|| indoor::statistics(&stage.prepared));
                    ready.insert(place, stage);
                }
            }
        }
        // The slowest systems first, so that the threads finish together.
        let mut jobs: Vec<Cell> = needed.into_iter().collect();
        jobs.sort_by_key(|cell| (cell.system, cell.site, cell.scenario));
        let runs = seeds::parallel(&jobs, threads, go_on, |cell| {
            let stage = ready.get(&(cell.site, cell.scenario)).ok_or(RunError::Interrupted)?;
            stage.carry(cell.system, meter)
        });
        for (cell, run) in jobs.into_iter().zip(runs) {
            match run {
                None | Some(Err(RunError::Interrupted)) => {}
                Some(run) => {
                    cells.runs.insert(cell, run?);
                }
            }
        }
        Ok(cells)
    }

    /// Whether a run is there.
    pub fn has(&self, cell: &Cell) -> bool {
        self.runs.contains_key(cell)
    }

    /// How many runs are there.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs of one system on one site, by scenario.
    pub fn of(&self, site: Site, system: System) -> Vec<&Run> {
        let here = self.runs.iter().filter(|(cell, _)| cell.site == site && cell.system == system);
        here.map(|(_, run)| run).collect()
    }

    /// One value of each run of a system, by scenario.
    pub fn each(&self, site: Site, system: System, value: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.of(site, system).into_iter().map(value).collect()
    }

    /// The receivers' mean throughput in kbit/s, by scenario.
    pub fn mean(&self, site: Site, system: System) -> Vec<f64> {
        self.each(site, system, |run| run.mean_goodput() / 1e3)
    }

    /// The slowest receiver's throughput in kbit/s, by scenario.
    pub fn worst(&self, site: Site, system: System) -> Vec<f64> {
        self.each(site, system, |run| run.worst_goodput() / 1e3)
    }

    /// The fastest receiver's throughput in kbit/s, by scenario.
    pub fn best(&self, site: Site, system: System) -> Vec<f64> {
        self.each(site, system, |run| run.best_goodput() / 1e3)
    }

    /// Forwarding nodes, by scenario.
    pub fn forwarders(&self, site: Site, system: System) -> Vec<f64> {
        self.each(site, system, |run| run.counter("forwarders") as f64)
    }

    /// Data frames of the source and the forwarders in thousands, by scenario.
    pub fn transmissions(&self, site: Site, system: System) -> Vec<f64> {
        self.each(site, system, |run| run.counter(DATA_TRANSMISSIONS) as f64 / 1e3)
    }

    /// Data frames of the source over those of the file, by scenario.
    pub fn redundancy(&self, site: Site, system: System) -> Vec<f64> {
        let payload = self.payload.get(&site).copied().unwrap_or(1) as f64;
        self.each(site, system, |run| {
            let file = run.flows.first().map_or(1.0, |flow| flow.offered_bytes as f64);
            run.counter("source_transmissions") as f64 * payload / file
        })
    }

    /// Every receiver's throughput in kbit/s.
    pub fn pooled(&self, site: Site, system: System) -> Vec<f64> {
        let runs = self.of(site, system).into_iter();
        runs.flat_map(|run| run.flows.iter().map(|flow| flow.goodput_bps / 1e3)).collect()
    }

    /// The bound of the receivers' mean throughput in kbit/s for each scenario, then their mean.
    pub fn mean_bound(&self, site: Site) -> Vec<Option<f64>> {
        let here = self.bounds.iter().filter(|((at, _), _)| *at == site);
        let mut bounds: Vec<Option<f64>> = here.map(|(_, bound)| Some(bound.mean_bps? / 1e3)).collect();
        let known: Vec<f64> = bounds.iter().copied().flatten().collect();
        let whole = known.len() == bounds.len() && !known.is_empty();
        bounds.push(whole.then(|| crate::statistics::mean(&known)));
        bounds
    }

    /// How bad the links of a site are, as its first scenario's probes found them.
    pub fn links(&self, site: Site) -> Option<indoor::LinkStatistics> {
        self.links.get(&site).copied()
    }

    /// A series of throughputs with their mean.
    pub fn throughput(&self, site: Site, system: System, paper: Option<f64>) -> Series {
        Series::with_mean(&system.label(), &self.mean(site, system), paper)
    }
}

/// What preparing a stage is worth on the meter: about as much as a run.
const STAGE_WORK: u64 = 1000;

/// A scenario on a site, ready to run.
struct Stage {
    plan: Plan,
    prepared: Prepared,
}

impl Stage {
    fn new(site: Site, scenario: u8, scale: &Scale, meter: &Meter) -> Result<Stage, RunError> {
        let index = u64::from(scenario) - 1;
        let plan = match site {
            Site::Outdoor => outdoor::plan(scale.outdoor_bytes, false)?,
            Site::OutdoorRayleigh => outdoor::plan(scale.outdoor_bytes, true)?,
            Site::Indoor { .. } => indoor::plan(scale.indoor_bytes)?,
        };
        let mut stage = plan.stage(scale.seed.wrapping_add(index))?;
        if let Site::Indoor { day } = site {
            // The same source and receivers every day, other fading.
            stage.seed = Seed(stage.seed).child(u64::from(day)).0;
        }
        let prepared = prepare(&plan, stage, Depth::Each, meter)?;
        Ok(Stage { plan, prepared })
    }

    fn carry(&self, system: System, meter: &Meter) -> Result<Run, RunError> {
        let plan = self.plan.carried_by(&system.protocol());
        let attempt = Attempt { plan: &plan, prepared: &self.prepared, copies: false, pcap: None };
        let outcome = carry(attempt, meter)?;
        session::check(&plan, &self.prepared, &outcome.run)?;
        Ok(outcome.run)
    }
}
