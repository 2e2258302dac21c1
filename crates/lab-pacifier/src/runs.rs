//! The runs that figures are made of, each made once.

use std::collections::{BTreeMap, BTreeSet};

use chappe_core::Seed;
use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab::seeds;
use chappe_pacifier::paper::more;
use chappe_pacifier::{Config, paper};
use chappe_results::figure::Series;
use chappe_results::{DATA_TRANSMISSIONS, Run};
use chappe_scenario::Plan;

use super::indoor;
use super::links::LinkStatistics;
use super::outdoor::{self, Setting};
use super::{
    Depth, Pacifier, Prepared, ProtocolPlan, StageBound, Variant, carry, carry_ideally, check,
    prepare,
};

/// Where a run takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// The simulation set-up.
    Outdoor {
        /// What the paper leaves open.
        setting: Setting,
        /// How many T_p the source waits for each transmission that it expects; 8 in the paper (III-B).
        pace: u32,
    },
    /// The indoor network, on one of its days.
    Indoor {
        /// 1 or 2.
        day: u8,
    },
}

impl Site {
    /// Where Figures 2 to 7 are made.
    pub const OUTDOOR: Site = Site::Outdoor {
        setting: Setting::FIGURES,
        pace: PACE,
    };

    /// The site with the same network, probes and bounds: pacing changes none of them.
    fn ground(self) -> Site {
        match self {
            Site::Outdoor { setting, .. } => Site::Outdoor {
                setting,
                pace: PACE,
            },
            indoor => indoor,
        }
    }
}

/// The paper's waiting time of the source (III-B).
pub const PACE: u32 = 8;

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
    /// Our variant.
    Improved,
    /// One of the two on ideal air ([`carry_ideally`]).
    Ideal {
        /// Our variant, or Pacifier with knob 1.
        ours: bool,
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
    /// Whether the sensitivity table has all its rows.
    pub all_settings: bool,
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
            all_settings: true,
            seed,
        }
    }

    /// The same scenarios with smaller objects and fewer knobs.
    pub fn quick(seed: u64) -> Scale {
        Scale {
            outdoor_bytes: 1_440_000,
            indoor_bytes: 700_800,
            knobs: vec![0, 50, 100],
            all_settings: false,
            ..Scale::full(seed)
        }
    }

    /// Every scenario with each of `systems`.
    pub fn cells(&self, site: Site, systems: &[System]) -> Vec<Cell> {
        let scenarios = 1..=self.scenarios;
        let one = |scenario| {
            systems.iter().map(move |&system| Cell {
                site,
                scenario,
                system,
            })
        };
        scenarios.flat_map(one).collect()
    }

    /// What stands under the bars: the scenarios, and their mean.
    pub fn places(&self) -> Vec<String> {
        (1..=self.scenarios)
            .map(|n| n.to_string())
            .chain(["mean".to_string()])
            .collect()
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
            System::Improved => "Pacifier, improved".into(),
            System::Ideal { ours: true } => "Improved, ideal air".into(),
            System::Ideal { ours: false } => "Pacifier, ideal air".into(),
            System::Pacifier { knob } => format!("Pacifier, knob {}", f64::from(knob) / 100.0),
        }
    }

    fn protocol(self) -> ProtocolPlan {
        let variant = match self {
            System::MoreOriginal | System::More => Variant::More,
            System::Tree => Variant::Tree,
            System::TreeRl => Variant::TreeRl,
            System::Pacifier { .. } | System::Ideal { ours: false } => Variant::Paper,
            System::Improved | System::Ideal { ours: true } => Variant::Improved,
        };
        let mut protocol = ProtocolPlan::paper(variant);
        protocol.tuned = self == System::More;
        if let System::Pacifier { knob } = self {
            let knob = f64::from(knob) / 100.0;
            protocol.config = paper::Variant::Pacifier { knob }.into();
        }
        protocol
    }
}

/// Finished runs.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    runs: BTreeMap<Cell, Run>,
    grounds: BTreeMap<(Site, u8), Ground>,
}

/// What is known of a network beside its runs.
#[derive(Clone, Debug)]
struct Ground {
    bound: StageBound,
    links: LinkStatistics,
    /// Octets of file in a packet.
    payload: usize,
    /// Seconds of a frame on the air.
    airtime_s: f64,
    /// The fewest transmissions that a packet takes, and how many frames are on the air at once when the bound is
    /// reached; only computed where our variant runs.
    least: Option<(f64, f64)>,
}

impl Cells {
    /// Makes the needed runs, network by network: what several figures need is run once. A request to stop leaves
    /// some out; an error of any ends the whole.
    pub fn run(
        needed: BTreeSet<Cell>,
        scale: &Scale,
        threads: usize,
        meter: &Meter,
    ) -> Result<Cells, RunError> {
        let mut jobs: BTreeMap<(Site, u8), Vec<Cell>> = BTreeMap::new();
        for cell in needed {
            jobs.entry((cell.site.ground(), cell.scenario))
                .or_default()
                .push(cell);
        }
        meter.expect(STAGE_WORK * jobs.len() as u64);
        // Those with most runs first, so that the threads finish together.
        let mut jobs: Vec<((Site, u8), Vec<Cell>)> = jobs.into_iter().collect();
        jobs.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.len()));
        let done = seeds::finished(&jobs, threads, meter, |((site, scenario), cells)| {
            network(*site, *scenario, cells, scale, meter)
        })?;
        let mut cells = Cells::default();
        for ((place, _), (ground, runs)) in done {
            cells.grounds.insert(*place, ground);
            cells.runs.extend(runs);
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
        let here = self
            .runs
            .iter()
            .filter(|(cell, _)| cell.site == site && cell.system == system);
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
        self.each(site, system, |run| {
            run.counter(DATA_TRANSMISSIONS) as f64 / 1e3
        })
    }

    /// Data frames of the source over those of the file, by scenario.
    pub fn redundancy(&self, site: Site, system: System) -> Vec<f64> {
        let here = self
            .grounds
            .iter()
            .find(|((at, _), _)| *at == site.ground());
        let payload = here.map_or(1.0, |(_, ground)| ground.payload as f64);
        self.each(site, system, |run| {
            let file = run
                .flows
                .first()
                .map_or(1.0, |flow| flow.offered_bytes as f64);
            run.counter("source_transmissions") as f64 * payload / file
        })
    }

    /// Every receiver's throughput in kbit/s.
    pub fn pooled(&self, site: Site, system: System) -> Vec<f64> {
        let runs = self.of(site, system).into_iter();
        runs.flat_map(|run| run.flows.iter().map(|flow| flow.goodput_bps / 1e3))
            .collect()
    }

    /// The bound of the receivers' mean throughput in kbit/s for each scenario, then their mean.
    pub fn mean_bound(&self, site: Site) -> Vec<Option<f64>> {
        self.bounds(site, |bound| bound.mean_bps)
    }

    /// The bound of the slowest receiver's throughput in kbit/s for each scenario, then their mean.
    pub fn worst_bound(&self, site: Site) -> Vec<Option<f64>> {
        self.bounds(site, |bound| Some(bound.worst_bps))
    }

    fn bounds(&self, site: Site, value: impl Fn(&StageBound) -> Option<f64>) -> Vec<Option<f64>> {
        let here = self
            .grounds
            .iter()
            .filter(|((at, _), _)| *at == site.ground());
        let mut bounds: Vec<Option<f64>> = here
            .map(|(_, ground)| Some(value(&ground.bound)? / 1e3))
            .collect();
        let known: Vec<f64> = bounds.iter().copied().flatten().collect();
        let whole = known.len() == bounds.len() && !known.is_empty();
        bounds.push(whole.then(|| chappe_results::statistics::mean(&known)));
        bounds
    }

    /// How bad the links of a site are, as the probes of all its scenarios found them.
    pub fn links(&self, site: Site) -> Vec<LinkStatistics> {
        let here = self
            .grounds
            .iter()
            .filter(|((at, _), _)| *at == site.ground());
        here.map(|(_, ground)| ground.links).collect()
    }

    /// The share of a paced source's waits that ended by the time limit, in per cent, by scenario: no child was
    /// heard forwarding.
    pub fn timed_out(&self, site: Site, system: System) -> Vec<f64> {
        self.each(site, system, |run| {
            let (late, heard) = (run.counter("pace_timeouts"), run.counter("children_heard"));
            100.0 * late as f64 / (late + heard).max(1) as f64
        })
    }

    /// The slowest receiver's share of its bound in per cent, by scenario.
    pub fn shares(&self, site: Site, system: System) -> Vec<f64> {
        let bounds = self.worst_bound(site);
        let worst = self.worst(site, system).into_iter().zip(bounds);
        worst
            .map(|(worst, bound)| 100.0 * worst / bound.unwrap_or(f64::INFINITY))
            .collect()
    }

    /// Data frames of all nodes for each packet of the file, by scenario.
    pub fn per_packet(&self, site: Site, system: System) -> Vec<f64> {
        let payload = self
            .grounds_of(site)
            .next()
            .map_or(1, |ground| ground.payload);
        self.each(site, system, |run| {
            let file = run.flows.first().map_or(1, |flow| flow.offered_bytes);
            run.counter(DATA_TRANSMISSIONS) as f64 * payload as f64 / file as f64
        })
    }

    /// Data frames on the air at the same time, on average over a run, by scenario.
    pub fn at_once(&self, site: Site, system: System) -> Vec<f64> {
        let airtime = self
            .grounds_of(site)
            .next()
            .map_or(0.0, |ground| ground.airtime_s);
        self.each(site, system, |run| {
            run.counter(DATA_TRANSMISSIONS) as f64 * airtime / run.simulated_s.max(1e-9)
        })
    }

    /// The fewest transmissions that a packet takes, and the frames on the air at once when the bound is reached,
    /// averaged over the scenarios.
    pub fn least(&self, site: Site) -> (f64, f64) {
        let all: Vec<(f64, f64)> = self
            .grounds_of(site)
            .filter_map(|ground| ground.least)
            .collect();
        let (frames, crowd): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        (
            chappe_results::statistics::mean(&frames),
            chappe_results::statistics::mean(&crowd),
        )
    }

    fn grounds_of(&self, site: Site) -> impl Iterator<Item = &Ground> {
        let here = self.grounds.iter();
        here.filter(move |((at, _), _)| *at == site.ground())
            .map(|(_, ground)| ground)
    }

    /// A series of throughputs with their mean.
    pub fn throughput(&self, site: Site, system: System, paper: Option<f64>) -> Series {
        Series::with_mean(&system.label(), &self.mean(site, system), paper)
    }
}

/// What preparing a network is worth on the meter: about as much as a run.
const STAGE_WORK: u64 = 1000;

/// All runs on one network. The object of the paper's size is large, so that networks are not kept.
fn network(
    site: Site,
    scenario: u8,
    cells: &[Cell],
    scale: &Scale,
    meter: &Meter,
) -> Result<(Ground, Vec<(Cell, Run)>), RunError> {
    let seed = scale.seed.wrapping_add(u64::from(scenario) - 1);
    let (plan, network) = match site {
        Site::Outdoor { setting, .. } => {
            let plan = outdoor::plan(scale.outdoor_bytes, setting)?;
            let network = outdoor::network(&plan, seed)?;
            (plan, network)
        }
        Site::Indoor { day } => {
            let plan = indoor::plan(scale.indoor_bytes, day)?;
            let network = plan.network(seed)?;
            (plan, network)
        }
    };
    // The bound of the mean takes a program for each receiver, and the sensitivity table does not show it.
    let figures = site == Site::OUTDOOR || matches!(site, Site::Indoor { .. });
    let depth = if figures { Depth::Each } else { Depth::Slowest };
    let with = Pacifier::of(&plan)?;
    let mut prepared = prepare(with, network, depth, meter)?;
    if let Site::Indoor { day } = site {
        // The same source and receivers every day, and another day's air.
        prepared.network.seed = Seed(seed).child(u64::from(day)).0;
    }
    meter.advance(STAGE_WORK);
    let ground = Ground {
        bound: prepared.bounds[0].clone(),
        links: LinkStatistics::of(&prepared.links),
        payload: with.protocol.config.common().payload,
        airtime_s: with
            .mode
            .airtime(with.protocol.frame_octets())
            .as_secs_f64(),
        least: match cells.iter().any(|cell| cell.system == System::Improved) {
            true => Some(StageBound::least(with, &prepared.network)?),
            false => None,
        },
    };
    let runs = cells
        .iter()
        .map(|cell| Ok((*cell, carried(&plan, &prepared, *cell, meter)?)));
    Ok((ground, runs.collect::<Result<_, RunError>>()?))
}

/// One run.
//= pacifier IV-B.1: the threshold is lowered by 0.01 and the simulation repeated until no receiver is left out
fn carried(plan: &Plan, prepared: &Prepared, cell: Cell, meter: &Meter) -> Result<Run, RunError> {
    let mut with = Pacifier::of(plan)?.carried_by(&cell.system.protocol());
    if let Site::Outdoor { pace, .. } = cell.site
        && let Config::Paper(config) = &mut with.protocol.config
    {
        config.pace_factor = pace;
    }
    loop {
        let run = match cell.system {
            System::Ideal { .. } => carry_ideally(&with, prepared, meter)?,
            _ => {
                let spec = RunSpec::plain(plan, &prepared.network);
                carry(&with, prepared, spec, meter)?.run
            }
        };
        check(&with, prepared, &run)?;
        if let Some(wrong) = run
            .flows
            .iter()
            .find(|flow| flow.complete && !flow.digest_ok)
        {
            let (seed, sink) = (run.seed, wrong.sink);
            return Err(RunError::Defect(format!(
                "seed {seed}: receiver {sink} has a wrong copy"
            )));
        }
        let percent = run.counter("prune_percent") as u32;
        if cell.system != System::More || run.all_complete() || percent == 0 {
            return Ok(run);
        }
        with.protocol.tuned = false;
        let prune = more::prune_share(percent - 1);
        if let Config::Paper(config) = &mut with.protocol.config {
            config.variant = paper::Variant::More { prune };
        }
    }
}
