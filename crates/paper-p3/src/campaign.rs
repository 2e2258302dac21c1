//! The trials of the paper's evaluation. Tables and figures share their runs, so each trial is run once.
//!
//! A route is a network of 139 nodes, drawn by its seed, with a source and a destination between which the gateway finds
//! at least six paths of two to six hops, as on all of the paper's routes. All protocols use the same routes on the same
//! medium.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use chappe_core::{Purpose, Seed};
use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError, WORK};
use chappe_lab::seeds;
use chappe_p3::Tagging;
use chappe_p3::config::LINK_THRESHOLD;
use chappe_results::Run;
use chappe_scenario::Plan;
use chappe_scenario::plan::Topology;
use chappe_scenario::plan::channels::ChannelGround;
use chappe_sim::Profile;

use chappe_lab_p3::carry::{ENERGY, FIRST_ROUND, HOPS, ROUNDS, SOURCE_DATA};
use chappe_lab_p3::ends::{ends_for, fits_paper};
use chappe_lab_p3::{P3, Prepared, SYSTEM, Variant, carry, check};

/// Nodes of the paper's testbed.
pub const NODES: usize = 139;
/// Octets of the paper's object: 500 packets of 118.
pub const OBJECT: u32 = 59_000;
/// Octets of the large object.
pub const LARGE: u32 = 1_000_000;
/// The paper's effective rate in kbit/s: a frame of 125 octets in each cycle.
pub const EFFECTIVE: f64 = 220.4;

/// Per cent of the good links that are bad on other channels, as the ten links of the paper's Table I are. At a quarter,
/// PIP fails about as often as in the paper. The calibration does not use P³'s results.
pub const BAD_LINKS: u8 = 25;

/// Networks that are tried for one route.
const NETWORKS: u64 = 20;

/// The model of a radio that receives identical frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Receiver {
    /// It compares neighbouring chips; sources need no gap, and all nodes start on time by ideal clocks.
    Comparing,
    /// It adds up a symbol's chips, worked out chip by chip, with the gap, the late starts and the crystals of a CC2420.
    Chips,
}

impl Receiver {
    /// The name of its profile.
    pub const fn profile(self) -> &'static str {
        match self {
            Receiver::Comparing => "cc2420-indoor",
            Receiver::Chips => "cc2420-chips",
        }
    }

    /// A protocol with the gap that these radios need.
    pub fn with(self, p3: &P3) -> P3 {
        let radio = Profile::named(self.profile());
        radio.map_or_else(|| p3.clone(), |radio| p3.on(&radio))
    }
}

/// The kind of network that routes are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Whether its links are those of the measured building, or of a generated one.
    pub measured: bool,
    /// Per cent of the good links that are bad on other channels.
    pub bad_links: u8,
    /// How its radios receive.
    pub receiver: Receiver,
}

impl Site {
    fn bad_share(self) -> f64 {
        f64::from(self.bad_links) / 100.0
    }
}

/// A protocol, and the object that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    /// The protocol and its form.
    pub variant: Variant,
    /// Octets in a packet; zero means as many as fit.
    pub payload: u8,
    /// Octets of the object.
    pub octets: u32,
}

impl Workload {
    /// A protocol with the paper's object and full frames.
    pub const fn new(variant: Variant) -> Workload {
        Workload {
            variant,
            payload: 0,
            octets: OBJECT,
        }
    }

    fn p3(self) -> P3 {
        let mut p3 = best(self.variant);
        if self.payload > 0 {
            p3.payload = self.payload;
        }
        p3
    }
}

/// A variant with its default parameters; the improved one with the tags of packets in the CTRL, as its goals need.
pub fn best(variant: Variant) -> P3 {
    match variant {
        Variant::Improved => P3::paper(variant).tagged_by(Tagging::Segments),
        _ => P3::paper(variant),
    }
}

/// The four protocols with the paper's object.
pub const PROTOCOLS: [Workload; 4] = [
    Workload::new(Variant::Paper),
    Workload::new(Variant::Pip),
    Workload::new(Variant::PipAware),
    Workload::new(Variant::Improved),
];

/// The description of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trial {
    /// The network it runs on.
    pub site: Site,
    /// The number of the route, from 0.
    pub route: u16,
    /// The protocol and the object.
    pub workload: Workload,
}

/// The number of routes and packets of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Routes of the averages; 20 and 10 in the paper.
    pub routes: u16,
    /// Routes of the trials with large objects and small packets.
    pub few: u16,
    /// Routes of each row of the calibration.
    pub calibration: u16,
    /// Packets of Table II's study of correlation; 18,000 in the paper.
    pub packets: u32,
    /// The file of the measured building's links, if it exists.
    pub data: Option<PathBuf>,
    /// The seed of the first route.
    pub seed: u64,
    /// How the radios of the figures receive.
    pub receiver: Receiver,
    /// Networks of each kind that the goals are held against.
    pub goals: u16,
}

/// The default file of the measured building's links; `CHAPPE_MERCATOR` overrides it.
const DATA: &str = "../shared/data/iotlab-mercator/grenoble_links.csv.gz";

/// Networks of each kind that the goals are held against; `CHAPPE_GOALS` overrides it.
fn goals(usual: u16) -> u16 {
    let given = std::env::var("CHAPPE_GOALS").ok();
    given
        .and_then(|text| text.parse().ok())
        .filter(|&networks| networks > 0)
        .unwrap_or(usual)
}

impl Scale {
    /// The scale of the published results.
    pub fn full(seed: u64) -> Scale {
        let named = std::env::var_os("CHAPPE_MERCATOR").map(PathBuf::from);
        let data = named.unwrap_or_else(|| DATA.into());
        Scale {
            routes: 120,
            few: 24,
            calibration: 60,
            packets: 18_000,
            data: data.is_file().then_some(data),
            seed,
            receiver: Receiver::Comparing,
            goals: goals(20),
        }
    }

    /// A smaller scale, for a first look.
    pub fn quick(seed: u64) -> Scale {
        Scale {
            routes: 20,
            few: 5,
            calibration: 10,
            packets: 2_000,
            goals: goals(2),
            ..Scale::full(seed)
        }
    }

    /// The same with another receiver. The one that is worked out chip by chip takes up to ten times as long, so it gets a quarter
    /// of the routes, and a fifth of those with large objects and small packets.
    pub fn under(&self, receiver: Receiver) -> Scale {
        let mut scale = Scale {
            receiver,
            ..self.clone()
        };
        if receiver == Receiver::Chips {
            scale.routes = self.routes.div_ceil(4);
            scale.few = self.few.div_ceil(5);
        }
        scale
    }

    /// The site of the figures: the measured building if its file exists.
    pub fn site(&self) -> Site {
        Site {
            measured: self.data.is_some(),
            bad_links: BAD_LINKS,
            receiver: self.receiver,
        }
    }

    /// The first `routes` routes of a site with each of `workloads`.
    pub fn trials(&self, site: Site, routes: u16, workloads: &[Workload]) -> Vec<Trial> {
        let one = |route| {
            workloads.iter().map(move |&workload| Trial {
                site,
                route,
                workload,
            })
        };
        (0..routes.min(self.routes)).flat_map(one).collect()
    }

    /// A sentence that names the source of the links.
    pub fn origin(&self) -> String {
        let whose = match self.data {
            Some(_) => {
                "139 of the 348 nodes of a measured building (IoT-LAB Grenoble, Mercator data set)"
            }
            None => "139 nodes in a generated building with the statistics of a measured one",
        };
        format!(
            "{whose}, drawn for each route; {BAD_LINKS} % of the good links have the delivery ratios of Table I on other channels"
        )
    }
}

/// The runs of all trials that finished.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    runs: BTreeMap<Trial, Run>,
    /// Pairs of ends that were tried on each site, and those that had enough paths.
    looked: BTreeMap<Site, (usize, usize)>,
}

impl Measured {
    /// Runs the trials, route by route. After a request to stop the rest is omitted; the first error ends all.
    pub fn run(
        needed: BTreeSet<Trial>,
        scale: &Scale,
        threads: usize,
        meter: &Meter,
    ) -> Result<Measured, RunError> {
        let mut jobs: BTreeMap<(Site, u16), Vec<Workload>> = BTreeMap::new();
        for trial in &needed {
            let here = jobs.entry((trial.site, trial.route)).or_default();
            here.push(trial.workload);
        }
        // A share of the work for the network of each route, and one for each run.
        meter.plan_work(WORK * (jobs.len() + needed.len()) as u64);
        let mut plans: BTreeMap<Site, Plan> = BTreeMap::new();
        for &(site, _) in jobs.keys() {
            let like = plans
                .iter()
                .find(|(known, _)| known.measured == site.measured);
            let like = like.map(|(_, plan)| plan.clone());
            if let Entry::Vacant(place) = plans.entry(site) {
                place.insert(match like {
                    Some(plan) => under(&plan, site.receiver.profile(), |ground| {
                        ground.bad_links = site.bad_share();
                    })?,
                    None => plan(site, scale)?,
                });
            }
        }
        let jobs: Vec<((Site, u16), Vec<Workload>)> = jobs.into_iter().collect();
        let done = seeds::finished(&jobs, threads, meter, |((site, number), workloads)| {
            let mut made = false;
            let done: Done = meter.kept(&format!("{site:?} {number} {workloads:?}"), || {
                made = true;
                one(&plans[site], *number, workloads, scale.seed, meter)
            })?;
            if !made {
                meter.advance(WORK * (1 + workloads.len()) as u64);
            }
            Ok(done)
        })?;
        let mut measured = Measured::default();
        for (((site, number), workloads), (looked, runs)) in done {
            let sum = measured.looked.entry(*site).or_default();
            *sum = (sum.0 + looked, sum.1 + 1);
            for (&workload, run) in workloads.iter().zip(runs) {
                let trial = Trial {
                    site: *site,
                    route: *number,
                    workload,
                };
                measured.runs.insert(trial, run);
            }
        }
        Ok(measured)
    }

    /// Whether a trial was run.
    pub fn has(&self, trial: &Trial) -> bool {
        self.runs.contains_key(trial)
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether no trial was run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// One value for each run of a workload on a site, by route.
    pub fn each(&self, site: Site, workload: Workload, value: impl Fn(&Run) -> f64) -> Vec<f64> {
        let here = |trial: &Trial| trial.site == site && trial.workload == workload;
        let runs = self.runs.iter().filter(|(trial, _)| here(trial));
        runs.map(|(_, run)| value(run)).collect()
    }

    /// Goodput in kbit/s, by route; zero where the object did not arrive.
    pub fn goodput(&self, site: Site, workload: Workload) -> Vec<f64> {
        self.each(site, workload, |run| run.mean_goodput() / 1e3)
    }

    /// A counter, by route.
    pub fn counter(&self, site: Site, workload: Workload, name: &str) -> Vec<f64> {
        self.each(site, workload, |run| run.counter(name) as f64)
    }

    /// Share of the object that had arrived after the first round, by route.
    pub fn first_round(&self, site: Site, workload: Workload) -> Vec<f64> {
        let packets = f64::from(workload.octets.div_ceil(payload(workload).into()));
        self.each(site, workload, |run| {
            run.counter(FIRST_ROUND) as f64 / packets
        })
    }

    /// Joules per kilobyte over all routes: the energy of all runs, divided by what arrived in all of them.
    pub fn energy_per_kb(&self, site: Site, workload: Workload) -> f64 {
        let used: f64 = self.counter(site, workload, ENERGY).iter().sum();
        let arrived = self.each(site, workload, |run| {
            let flow = run.flows.first();
            flow.filter(|flow| flow.complete)
                .map_or(0.0, |flow| flow.delivered_bytes as f64)
        });
        used * 1e-6 / (arrived.iter().sum::<f64>() / 1e3)
    }

    /// The relative difference between each duration and the line that fits the paper's Table III (a function of
    /// transmissions and rounds), by route. Unfinished transfers are omitted.
    pub fn off_the_line(&self, site: Site, workload: Workload) -> Vec<f64> {
        let p3 = workload.p3();
        let off = self.each(site, workload, |run| {
            let (sent, rounds) = (run.counter(SOURCE_DATA), run.counter(ROUNDS));
            let line = p3.config.profile.predicted(sent, rounds).as_secs_f64();
            let took = run.flows.first().and_then(|flow| flow.completion_s);
            took.map_or(f64::NAN, |took| took / line - 1.0)
        });
        off.into_iter().filter(|off| !off.is_nan()).collect()
    }

    /// Hops of a workload's routes.
    pub fn hops(&self, site: Site, workload: Workload) -> Vec<f64> {
        self.counter(site, workload, HOPS)
    }

    /// Pairs of ends that were tried on a site, and routes that were found.
    pub fn looked(&self, site: Site) -> (usize, usize) {
        self.looked.get(&site).copied().unwrap_or_default()
    }
}

/// Octets in a packet of a workload.
pub fn payload(workload: Workload) -> u8 {
    workload.p3().payload
}

/// The plan of a site's scenarios, for all seeds.
pub(crate) fn plan(site: Site, scale: &Scale) -> Result<Plan, RunError> {
    let network = match &scale.data {
        Some(path) if site.measured => {
            format!(
                "file = {:?}\nconnected = {LINK_THRESHOLD}",
                path.display().to_string()
            )
        }
        _ => "generator = \"building\"".into(),
    };
    let bad = site.bad_share();
    let receiver = site.receiver.profile();
    let text = format!(
        "title = \"P³\"\n[network]\n{network}\nnodes = {NODES}\nbad_links = {bad}\n\
         [radio]\nprofile = \"{receiver}\"\n[protocol]\nsystem = \"p3\"\n[[transfer]]\nreceivers = 1\nbytes = \"{OBJECT} B\"\n"
    );
    Ok(Plan::parse(&[&SYSTEM], "p3", &text)?)
}

/// The same network under another receiver and with a `change` of its links. Nothing is read again.
pub(crate) fn under(
    plan: &Plan,
    receiver: &str,
    change: impl FnOnce(&mut ChannelGround),
) -> Result<Plan, RunError> {
    let mut plan = plan.clone();
    let profile = Profile::named(receiver);
    plan.profile = profile.ok_or_else(|| RunError::Defect(format!("no profile {receiver}")))?;
    if let Topology::Channels(ground) = &mut plan.topology {
        change(ground);
    }
    Ok(plan)
}

/// The number of pairs of ends that were tried for a route, and a run for each of its workloads.
type Done = (usize, Vec<Run>);

fn one(
    plan: &Plan,
    number: u16,
    workloads: &[Workload],
    first: u64,
    meter: &Meter,
) -> Result<Done, RunError> {
    let seed = first.wrapping_add(u64::from(number));
    let (mut prepared, looked) = ends(plan, seed)?;
    meter.advance(WORK);
    let mut runs = Vec::new();
    for &workload in workloads {
        let transfer = &mut prepared.network.transfers[0];
        // Objects of one size are equal for all protocols of a route.
        if transfer.object.len() != workload.octets as usize {
            let mut object = vec![0; workload.octets as usize];
            let mut random = Seed(seed).stream(Purpose::Traffic(0));
            random.fill(&mut object);
            transfer.object = object.into();
        }
        let with = workload.p3();
        let spec = RunSpec::plain(plan, &prepared.network);
        let run = carry(&with, &prepared, spec, meter)?.run;
        check(&run)?;
        if let Some(wrong) = run
            .flows
            .iter()
            .find(|flow| flow.complete && !flow.digest_ok)
        {
            let message = format!("seed {seed}: receiver {} has a wrong copy", wrong.sink);
            return Err(RunError::Defect(message));
        }
        runs.push(run);
    }
    Ok((looked, runs))
}

/// A network with ends that have enough paths between them, and the number of pairs that were tried.
fn ends(plan: &Plan, seed: u64) -> Result<(Prepared, usize), RunError> {
    let with = P3::paper(Variant::Paper);
    let found = ends_for(plan, seed, &with, NETWORKS, &fits_paper)?;
    found.ok_or_else(|| {
        let message = format!("seed {seed}: no pair of nodes has six paths in {NETWORKS} networks");
        RunError::Defect(message)
    })
}
