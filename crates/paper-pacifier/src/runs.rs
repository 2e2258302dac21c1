//! The runs that the figures use. Each run is made once, however many figures use it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use chappe_core::Seed;
use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_lab::seeds;
use chappe_pacifier::paper::{Pacing, more};
use chappe_pacifier::{Config, paper};
use chappe_results::figure::Series;
use chappe_results::{DATA_TRANSMISSIONS, Run};
use chappe_scenario::Plan;
use serde::{Deserialize, Serialize};

use crate::indoor;
use crate::links::LinkStatistics;
use crate::outdoor::{self, Setting};
use chappe_lab_pacifier::{
    Depth, Pacifier, Prepared, ProtocolPlan, TransferBound, Variant, carry, carry_ideally, check,
    ideal, prepare,
};

/// The network that a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// The outdoor network of the simulations ([`outdoor`]).
    Outdoor {
        /// The choices that the paper leaves open.
        setting: Setting,
        /// How the source paces itself, and what its relays remember.
        pace: Pace,
    },
    /// The indoor network ([`indoor`]) on one of its two days.
    Indoor {
        /// The day: 1 or 2.
        day: u8,
    },
}

impl Site {
    /// The network of Figures 2 to 7.
    pub const OUTDOOR: Site = Site::Outdoor {
        setting: Setting::FIGURES,
        pace: PACE,
    };

    /// The site that stands for all sites with the same network, probes and bounds: pacing changes none of them.
    fn shared_network(self) -> Site {
        match self {
            Site::Outdoor { setting, .. } => Site::Outdoor {
                setting,
                pace: PACE,
            },
            indoor => indoor,
        }
    }
}

/// What the paper leaves open about Pacifier and TREE+RL, which the sensitivity table varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pace {
    /// How long the source waits for its children (III-B).
    pub pacing: Pacing,
    /// Whether forwarding nodes keep the packets of all batches, and not of one (III-C).
    pub keeps: bool,
}

/// The pacing of the figures, and the paper's relays of one batch.
pub const PACE: Pace = Pace {
    pacing: Pacing::TRIGGERED,
    keeps: false,
};

/// A protocol of the figures, with its parameters and its channel access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// MORE with its published threshold of 10 %.
    MoreOriginal,
    /// MORE with its threshold tuned to each scenario.
    More,
    /// Tree-based opportunistic routing alone (TREE).
    Tree,
    /// TREE with the source's rate limit (TREE+RL).
    TreeRl,
    /// TREE+RL+RRB with a knob in per cent.
    Pacifier {
        /// The knob in per cent, 0 to 100.
        knob: u8,
    },
    /// The improved variant on 802.11.
    Improved,
    /// The improved variant, whose members send in turns where that is likely to pay.
    InTurns,
    /// Pacifier or the improved variant on ideal air ([`carry_ideally`]).
    Ideal {
        /// True for the improved variant, false for Pacifier with knob 1.
        ours: bool,
    },
}

/// Complete Pacifier with the knob at 1, the paper's choice (IV-B.5).
pub const PACIFIER: System = System::Pacifier { knob: 100 };

/// The description of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trial {
    /// The network that it uses.
    pub site: Site,
    /// The number of the scenario, from 1.
    pub scenario: u8,
    /// The protocol that carries the object.
    pub system: System,
}

/// How many scenarios to run, and how large their objects are.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The number of scenarios; 10 in the paper. Ratios of two protocols differ by a factor of two between
    /// scenarios, so twice as many are the default.
    pub scenarios: u8,
    /// The size of the outdoor object in bytes; 12 MB in the paper.
    pub outdoor_bytes: usize,
    /// The size of the indoor object in bytes; 2.3 MB in the paper.
    pub indoor_bytes: usize,
    /// The knobs of Figure 6, in per cent.
    pub knobs: Vec<u8>,
    /// Whether the sensitivity table has all its rows.
    pub all_settings: bool,
    /// Whether turns are held against the ideal schedule with interference, whose program takes seconds for each network.
    pub ideal: bool,
    /// The first seed: scenario n has seed `seed + n - 1`.
    pub seed: u64,
}

impl Scale {
    /// Twice the paper's scenarios, with its object sizes.
    pub fn full(seed: u64) -> Scale {
        Scale {
            scenarios: 20,
            outdoor_bytes: 12_000_000,
            indoor_bytes: 2_300_000,
            knobs: vec![0, 20, 40, 60, 80, 100],
            all_settings: true,
            ideal: true,
            seed,
        }
    }

    /// The first five of these scenarios with smaller objects and fewer knobs, without the ideal schedule: below a minute of processor.
    pub fn quick(seed: u64) -> Scale {
        Scale {
            scenarios: 5,
            outdoor_bytes: 1_440_000,
            indoor_bytes: 700_800,
            knobs: vec![0, 50, 100],
            all_settings: false,
            ideal: false,
            ..Scale::full(seed)
        }
    }

    /// The trials of every scenario with each of `systems`.
    pub fn trials(&self, site: Site, systems: &[System]) -> Vec<Trial> {
        let scenarios = 1..=self.scenarios;
        let one = |scenario| {
            systems.iter().map(move |&system| Trial {
                site,
                scenario,
                system,
            })
        };
        scenarios.flat_map(one).collect()
    }

    /// The labels under the bars: the scenarios' numbers, then the mean.
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
            System::InTurns => "improved, in turns".into(),
            System::Ideal { ours: true } => "improved, ideal air".into(),
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
            System::Improved | System::InTurns | System::Ideal { ours: true } => Variant::Improved,
        };
        let mut protocol = ProtocolPlan::paper(variant);
        protocol.tuned = self == System::More;
        protocol.turns = self == System::InTurns;
        if let System::Pacifier { knob } = self {
            let knob = f64::from(knob) / 100.0;
            protocol.config = paper::Variant::Pacifier { knob }.into();
        }
        protocol
    }
}

/// The finished runs, and what is known of their networks.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    runs: BTreeMap<Trial, Run>,
    networks: BTreeMap<(Site, u8), NetworkFacts>,
    /// What the ideal schedule gives every receiver, in bits per second.
    ideals: BTreeMap<(Site, u8), f64>,
}

/// What is known of a network, and its runs.
type Made = (NetworkFacts, Option<f64>, Vec<(Trial, Run)>);

/// What is known of a network besides its runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NetworkFacts {
    bound: TransferBound,
    links: LinkStatistics,
    /// The file's octets in a packet.
    payload: usize,
    /// The airtime of a data frame in seconds.
    airtime_s: f64,
}

impl Runs {
    /// Makes the needed runs, network by network. A request to stop omits the rest; the first error ends everything.
    pub fn run(
        needed: BTreeSet<Trial>,
        scale: &Scale,
        threads: usize,
        meter: &Meter,
    ) -> Result<Runs, RunError> {
        let mut jobs: BTreeMap<(Site, u8), Vec<Trial>> = BTreeMap::new();
        for trial in needed {
            jobs.entry((trial.site.shared_network(), trial.scenario))
                .or_default()
                .push(trial);
        }
        meter.expect(NETWORK_WORK * jobs.len() as u64);
        // Those with most runs first, so that the threads finish together.
        let mut jobs: Vec<((Site, u8), Vec<Trial>)> = jobs.into_iter().collect();
        jobs.sort_by_key(|(_, trials)| std::cmp::Reverse(trials.len()));
        let done = seeds::finished(&jobs, threads, meter, |((site, scenario), trials)| {
            network(*site, *scenario, trials, scale, meter)
        })?;
        let mut finished = Runs::default();
        for ((place, _), (facts, ideal, runs)) in done {
            finished.networks.insert(*place, facts);
            finished.ideals.extend(ideal.map(|bps| (*place, bps)));
            finished.runs.extend(runs);
        }
        Ok(finished)
    }

    /// Whether the run of this trial is finished.
    pub fn has(&self, trial: &Trial) -> bool {
        self.runs.contains_key(trial)
    }

    /// The number of finished runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether no run is finished.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs of one protocol on one site, in the order of the scenarios.
    pub fn of(&self, site: Site, system: System) -> Vec<&Run> {
        let here = self
            .runs
            .iter()
            .filter(|(trial, _)| trial.site == site && trial.system == system);
        here.map(|(_, run)| run).collect()
    }

    /// One value of each of these runs, by scenario.
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

    /// The number of forwarding nodes, by scenario.
    pub fn forwarders(&self, site: Site, system: System) -> Vec<f64> {
        self.each(site, system, |run| run.counter("forwarders") as f64)
    }

    /// The data frames of source and forwarders in thousands, by scenario.
    pub fn transmissions(&self, site: Site, system: System) -> Vec<f64> {
        self.each(site, system, |run| {
            run.counter(DATA_TRANSMISSIONS) as f64 / 1e3
        })
    }

    /// Data frames sent by the source, as a multiple of the file's, by scenario.
    pub fn redundancy(&self, site: Site, system: System) -> Vec<f64> {
        let payload = self.facts_of(site).next().map_or(1, |facts| facts.payload) as f64;
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

    /// The bounds of the receivers' mean throughput in kbit/s, one for each scenario, then their mean.
    pub fn mean_bound(&self, site: Site) -> Vec<Option<f64>> {
        self.bounds(site, |bound| bound.mean_bps)
    }

    /// The bounds of the slowest receiver's throughput in kbit/s, one for each scenario, then their mean.
    pub fn worst_bound(&self, site: Site) -> Vec<Option<f64>> {
        self.bounds(site, |bound| Some(bound.worst_bps))
    }

    fn bounds(
        &self,
        site: Site,
        value: impl Fn(&TransferBound) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        let mut bounds: Vec<Option<f64>> = (self.facts_of(site))
            .map(|facts| Some(value(&facts.bound)? / 1e3))
            .collect();
        let known: Vec<f64> = bounds.iter().copied().flatten().collect();
        let whole = known.len() == bounds.len() && !known.is_empty();
        bounds.push(whole.then(|| chappe_results::statistics::mean(&known)));
        bounds
    }

    /// The link statistics of a site as its probes found them, one for each scenario.
    pub fn links(&self, site: Site) -> Vec<LinkStatistics> {
        self.facts_of(site).map(|facts| facts.links).collect()
    }

    /// The share of a paced source's waits that reached the time limit, in per cent, by scenario: the source heard no
    /// child forward.
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

    /// Data frames sent by all nodes for each packet of the file, by scenario.
    pub fn per_packet(&self, site: Site, system: System) -> Vec<f64> {
        let payload = self.facts_of(site).next().map_or(1, |facts| facts.payload);
        self.each(site, system, |run| {
            let file = run.flows.first().map_or(1, |flow| flow.offered_bytes);
            run.counter(DATA_TRANSMISSIONS) as f64 * payload as f64 / file as f64
        })
    }

    /// The mean number of data frames that are on the air simultaneously, by scenario.
    pub fn at_once(&self, site: Site, system: System) -> Vec<f64> {
        let airtime = self
            .facts_of(site)
            .next()
            .map_or(0.0, |facts| facts.airtime_s);
        self.each(site, system, |run| {
            run.counter(DATA_TRANSMISSIONS) as f64 * airtime / run.simulated_s.max(1e-9)
        })
    }

    /// The least transmissions that a packet needs, and the number of simultaneous frames at the bound, averaged over
    /// the scenarios.
    pub fn least(&self, site: Site) -> (f64, f64) {
        let bounds = || self.facts_of(site).map(|facts| &facts.bound);
        let frames: Vec<f64> = bounds()
            .filter_map(|bound| Some(bound.serial?.frames))
            .collect();
        let crowd: Vec<f64> = bounds().map(|bound| bound.at_once).collect();
        (
            chappe_results::statistics::mean(&frames),
            chappe_results::statistics::mean(&crowd),
        )
    }

    /// What the best schedule of one frame at a time gives every receiver in kbit/s, by scenario; 0 where it was not computed.
    pub fn serial(&self, site: Site) -> Vec<f64> {
        let serial = self.facts_of(site).map(|facts| facts.bound.serial);
        serial
            .map(|serial| serial.map_or(0.0, |serial| serial.bps / 1e3))
            .collect()
    }

    /// What the ideal schedule with interference gives every receiver at most in kbit/s, by scenario. Empty where it was not
    /// computed for every scenario ([`Scale::ideal`]).
    pub fn ideal(&self, site: Site) -> Vec<f64> {
        let here = self.ideals.iter();
        let here = here.filter(|((at, _), _)| *at == site.shared_network());
        let ideal: Vec<f64> = here.map(|(_, bps)| bps / 1e3).collect();
        let known = ideal.len() == self.facts_of(site).count();
        if known { ideal } else { Vec::new() }
    }

    fn facts_of(&self, site: Site) -> impl Iterator<Item = &NetworkFacts> {
        let here = self.networks.iter();
        here.filter(move |((at, _), _)| *at == site.shared_network())
            .map(|(_, facts)| facts)
    }

    /// The mean throughputs of a protocol as a series of a figure, with their mean.
    pub fn throughput(&self, site: Site, system: System, paper: Option<f64>) -> Series {
        Series::with_mean(&system.label(), &self.mean(site, system), paper)
    }
}

/// Progress that preparing a network counts for: it takes about as long as a run.
const NETWORK_WORK: u64 = 1000;

/// The relative gap to which the ideal schedule is proven: sixteen seconds of processor for fifty nodes. A looser proof takes half of that and calls the
/// ideal up to a tenth higher than it is.
const IDEAL_GAP: f64 = 0.02;

/// Makes all runs on one network that were not kept before. Networks are not kept: each holds an object of up to 12 MB.
fn network(
    site: Site,
    scenario: u8,
    trials: &[Trial],
    scale: &Scale,
    meter: &Meter,
) -> Result<Made, RunError> {
    let ground = OnceCell::new();
    let ground = || -> Result<&Ground, RunError> {
        if let Some(ground) = ground.get() {
            return Ok(ground);
        }
        let made = Ground::new(site, scenario, scale, meter)?;
        Ok(ground.get_or_init(|| made))
    };
    let facts = meter.kept(&format!("{site:?} {scenario}"), || ground()?.facts())?;
    meter.advance(NETWORK_WORK);
    let in_turns = trials.iter().any(|trial| trial.system == System::InTurns);
    let ideal = match scale.ideal && in_turns {
        true => meter.kept(&format!("{site:?} {scenario} ideal"), || ground()?.ideal())?,
        false => None,
    };
    let runs = trials.iter().map(|trial| {
        let run = meter.kept(&format!("{trial:?}"), || {
            let ground = ground()?;
            carried(&ground.plan, &ground.prepared, *trial, meter)
        });
        Ok((*trial, run?))
    });
    Ok((facts, ideal, runs.collect::<Result<_, RunError>>()?))
}

/// A network that is ready for runs, and the plan of its site.
struct Ground {
    plan: Plan,
    prepared: Prepared,
}

impl Ground {
    fn new(site: Site, scenario: u8, scale: &Scale, meter: &Meter) -> Result<Ground, RunError> {
        let seed = scale.seed.wrapping_add(u64::from(scenario) - 1);
        let (plan, network) = match site {
            Site::Outdoor { setting, .. } => outdoor::planned(scale.outdoor_bytes, setting, seed)?,
            Site::Indoor { day } => indoor::planned(scale.indoor_bytes, day, seed)?,
        };
        // The bound of the mean needs a linear program for each receiver, and the sensitivity table does not show it.
        let figures = site == Site::OUTDOOR || matches!(site, Site::Indoor { .. });
        let depth = if figures { Depth::Each } else { Depth::Slowest };
        let mut prepared = prepare(Pacifier::of(&plan)?, network, depth, meter)?;
        if let Site::Indoor { day } = site {
            // Both days have the same source and receivers; only the fading differs.
            prepared.network.seed = Seed(seed).child(u64::from(day)).0;
        }
        Ok(Ground { plan, prepared })
    }

    fn facts(&self) -> Result<NetworkFacts, RunError> {
        let with = Pacifier::of(&self.plan)?;
        Ok(NetworkFacts {
            bound: self.prepared.bounds[0].clone(),
            links: LinkStatistics::of(&self.prepared.links),
            payload: with.protocol.config.common().payload,
            airtime_s: with
                .mode
                .airtime(with.protocol.frame_octets())
                .as_secs_f64(),
        })
    }

    /// The bound of the ideal schedule with interference, in bits per second; `None` where the model does not know the radio.
    fn ideal(&self) -> Result<Option<f64>, RunError> {
        let (with, network) = (Pacifier::of(&self.plan)?, &self.prepared.network);
        let found = ideal(with, network, &network.transfers[0], IDEAL_GAP)?;
        Ok(found.map(|found| found.goodput_bps()))
    }
}

/// Makes one run. With tuned MORE, repeats it with a lower threshold until every receiver is served.
//= pacifier IV-B.1: the threshold is lowered by 0.01 and the simulation repeated until no receiver is left out
fn carried(plan: &Plan, prepared: &Prepared, trial: Trial, meter: &Meter) -> Result<Run, RunError> {
    let mut with = Pacifier::of(plan)?.carried_by(&trial.system.protocol());
    if let Site::Outdoor { pace, .. } = trial.site
        && let Config::Paper(config) = &mut with.protocol.config
    {
        config.pacing = pace.pacing;
        if pace.keeps {
            config.relay_batches = u32::MAX;
        }
    }
    loop {
        let run = match trial.system {
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
        if trial.system != System::More || run.all_complete() || percent == 0 {
            return Ok(run);
        }
        with.protocol.tuned = false;
        let prune = more::prune_share(percent - 1);
        if let Config::Paper(config) = &mut with.protocol.config {
            config.variant = paper::Variant::More { prune };
        }
    }
}
