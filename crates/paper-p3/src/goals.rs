//! Our goals, on networks and ends that nothing was chosen on, under each receiver.
//!
//! The other figures have routes like the paper's: two to six hops, at least six paths. Here source and destination are any two
//! nodes, and nothing is asked of the network. Means are over the pairs between which a pipeline exists (two node-distinct ways
//! of one length), zeros are counted over all pairs with any way.

mod networks;
mod trial;

use std::collections::BTreeMap;

use chappe_lab::paper::Order;
use chappe_lab::run::{RunError, WORK};
use chappe_lab::seeds;
use chappe_lab_p3::SYSTEM;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean, quantile};
use chappe_scenario::Plan;

use crate::campaign::{OBJECT, Scale, under};
use networks::{Kind, kinds};
use trial::{Transfer, Trial};

/// The name on the command line.
pub const NAME: &str = "goals";
/// What the figure shows, for the list of figures.
pub const ABOUT: &str = "our goals on unseen networks with random ends, under each receiver";

/// The receivers. The last one's radio can send at the gap that three groups want.
const RECEIVERS: [&str; 3] = ["cc2420-indoor", "cc2420-chips", "nrf52840-chips"];

/// Place of the receiver whose radio can send at the needed gap.
const READY: usize = 2;

/// Whether a network is one of those on which a megabyte is sent, and speed is measured.
fn is_large(kind: &Kind) -> bool {
    kind.name.contains("139")
}

/// Places of the variants in [`trial::VARIANTS`].
const PAPER: usize = 0;
const PIP: usize = 1;
const IMPROVED: usize = 2;

/// The trials of one kind of network under one receiver.
struct Cell {
    kind: usize,
    receiver: usize,
    trials: Vec<Trial>,
}

impl Cell {
    /// One value for each transfer of a variant between ends that a way joins.
    fn all(&self, variant: usize, value: impl Fn(&Transfer) -> f64) -> Vec<f64> {
        let with_way = self.trials.iter().filter(|trial| trial.has_way);
        with_way
            .map(|trial| value(&trial.transfers[variant]))
            .collect()
    }

    /// Goodput where a pipeline exists.
    fn piped(&self, variant: usize) -> Vec<f64> {
        let piped = self.trials.iter().filter(|trial| trial.has_pipeline);
        piped.map(|trial| trial.transfers[variant].kbit).collect()
    }

    fn zeros(&self, variant: usize) -> Vec<f64> {
        self.all(variant, |one| f64::from(one.kbit <= 0.0))
    }

    /// Joules for each kilobyte, measurement included.
    fn energy(&self, variant: usize) -> f64 {
        let arrived: f64 = self.all(variant, |one| one.kilobytes).iter().sum();
        self.all(variant, |one| one.joules).iter().sum::<f64>() / arrived
    }

    fn measured(&self, variant: usize) -> f64 {
        mean(&self.all(variant, |one| one.kbit_measured))
    }

    /// The improved variant's goodput.
    fn average(&self) -> f64 {
        mean(&self.piped(IMPROVED))
    }

    /// The goodput below which one in twenty of its transfers is.
    fn low(&self) -> f64 {
        quantile(&self.piped(IMPROVED), 0.05).unwrap_or(f64::NAN)
    }

    /// Its goodput of a megabyte.
    fn megabyte(&self) -> f64 {
        let piped = self.trials.iter().filter(|trial| trial.has_pipeline);
        let all: Vec<f64> = piped.filter_map(|trial| trial.large).collect();
        if all.is_empty() { f64::NAN } else { mean(&all) }
    }

    /// Its goodput with the measurement over the paper's.
    fn ratio(&self) -> f64 {
        match self.measured(PAPER) {
            0.0 => f64::NAN,
            paper => self.measured(IMPROVED) / paper,
        }
    }

    /// The paper's energy of a kilobyte over its own.
    fn frugal(&self) -> f64 {
        1.0 / (self.energy(IMPROVED) / self.energy(PAPER))
    }

    /// The network's time over the processor's.
    fn speed(&self) -> f64 {
        let sum = |value: fn(&Transfer) -> f64| self.all(IMPROVED, value).iter().sum::<f64>();
        sum(|one| one.simulated) / sum(|one| one.took)
    }
}

/// Runs the trials and makes the figure. All of it is left out after a request to stop.
pub fn make(order: &Order<'_>, scale: &Scale) -> Result<(Figure, usize), RunError> {
    let kinds = kinds(scale.data.as_deref(), !order.quick);
    let mut cells = Vec::new();
    let mut runs = 0;
    let mut read = BTreeMap::new();
    let trials = kinds.len() * RECEIVERS.len() * usize::from(scale.goals);
    let (_, known) = order.meter.read();
    order.meter.plan_work(known + WORK * trials as u64);
    for (number, kind) in kinds.iter().enumerate() {
        for (receiver, profile) in RECEIVERS.into_iter().enumerate() {
            let plan = plan(kind, profile, &mut read)?;
            let seeds: Vec<u64> = (0..u64::from(scale.goals))
                .map(|seed| scale.seed.wrapping_add(seed))
                .collect();
            // A megabyte takes as long as all the rest.
            let large = receiver == READY && is_large(kind) && !order.quick;
            let done = seeds::finished(&seeds, order.threads, order.meter, |&seed| {
                let name = format!("{} {} {profile} {seed} {large}", kind.name, kind.text);
                let run = || trial::run(&plan, kind, seed, large);
                let trial = order.meter.kept(&name, run);
                order.meter.advance(WORK);
                trial
            })?;
            if done.len() < seeds.len() {
                return Err(RunError::Interrupted);
            }
            runs += done.len() * trial::VARIANTS.len();
            cells.push(Cell {
                kind: number,
                receiver,
                trials: done.into_iter().map(|(_, trial)| trial).collect(),
            });
        }
    }
    Ok((figure(&kinds, &cells, scale), runs))
}

/// The plan of a kind of network under a receiver. `read` has what was read before: a list of links takes longer than a transfer over them.
fn plan(kind: &Kind, profile: &str, read: &mut BTreeMap<String, Plan>) -> Result<Plan, RunError> {
    if let Some(known) = read.get(&kind.text) {
        return under(known, profile, |ground| {
            ground.nodes = kind.nodes.unwrap_or(ground.nodes);
        });
    }
    let nodes = kind.nodes.map(|nodes| format!("nodes = {nodes}"));
    let nodes = nodes.unwrap_or_default();
    let text = format!(
        "title = \"goals\"\n[network]\n{}\n{nodes}\n[radio]\nprofile = \"{profile}\"\n[protocol]\nsystem = \"p3\"\n\
         [[transfer]]\nreceivers = 1\nbytes = \"{OBJECT} B\"\n",
        kind.text
    );
    let plan = Plan::parse(&[&SYSTEM], "goals", &text)?;
    read.insert(kind.text.clone(), plan.clone());
    Ok(plan)
}

fn figure(kinds: &[Kind], cells: &[Cell], scale: &Scale) -> Figure {
    let places: Vec<String> = kinds.iter().map(|kind| kind.name.clone()).collect();
    let names = ["P³", "PIP, best channels", "P³, improved"];
    let panel = |id: &str, title: &str, unit, value: &dyn Fn(&Cell, usize) -> Summary| {
        let mut series = Vec::new();
        for (receiver, profile) in RECEIVERS.iter().enumerate() {
            for variant in [PAPER, PIP, IMPROVED] {
                let own = cells.iter().filter(|cell| cell.receiver == receiver);
                let values = own.map(|cell| value(cell, variant)).collect();
                series.push(Series::new(
                    &format!("{}, {profile}", names[variant]),
                    values,
                ));
            }
        }
        Panel::bars(id, title, unit, places.clone(), series).on("network")
    };
    let one = |cell: &Cell, value: f64| Summary {
        n: cell.trials.len(),
        ..Summary::of(&[if value.is_finite() { value } else { 0.0 }])
    };
    let least = |cell: &Cell, variant| {
        let all = cell.piped(variant).into_iter().reduce(f64::min);
        one(cell, all.unwrap_or(0.0))
    };
    let count = |cell: &Cell, variant| one(cell, cell.zeros(variant).iter().sum());
    let panels = vec![
        panel(
            "goals mean",
            "goodput of 59,000 octets",
            "kbit/s",
            &|cell, variant| Summary::of(&cell.piped(variant)),
        ),
        panel("goals least", "the lowest of them", "kbit/s", &least),
        panel(
            "goals zero",
            "transfers without an octet though a way exists",
            "transfers",
            &count,
        ),
        panel(
            "goals measured",
            "goodput with the measurement in the time",
            "kbit/s",
            &|cell, variant| one(cell, cell.measured(variant)),
        ),
        panel(
            "goals energy",
            "energy of a kilobyte with the measurement, in joules",
            "J",
            &|cell, variant| one(cell, cell.energy(variant)),
        ),
    ];
    let claims = (0..RECEIVERS.len()).flat_map(|receiver| {
        let own: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.receiver == receiver)
            .collect();
        claims(RECEIVERS[receiver], kinds, &own)
    });
    Figure {
        id: NAME,
        title: "goals on unseen networks with random ends".into(),
        panels,
        claims: claims.collect(),
        notes: vec![
            format!(
                "{} networks of each kind, seeds {} on; means are over pairs of ends between which a pipeline exists, zeros over all \
                 with any way of links that are good on one channel",
                scale.goals, scale.seed
            ),
            "a claim's value is that of the worst kind of network; a CC2420's gap of 192 us leaves 219.4 kbit/s, 16 us leave 228.5".into(),
            "speed is by the time for which a processor worked on planning and simulating; on a busy machine it is less".into(),
        ],
    }
}

/// A goal: what it says, the least value, its unit, the networks on which it is held, and the value of one of these.
type Goal = (&'static str, f64, &'static str, Ground, fn(&Cell) -> f64);

/// The kinds of networks on which a goal is held.
#[derive(Clone, Copy)]
enum Ground {
    /// All whose ends are any two nodes.
    Rooms,
    /// Of these, the ones on which a megabyte is sent.
    Large,
    /// The corridor with this number of columns.
    Corridor(usize),
}

impl Ground {
    fn has(self, kind: &Kind) -> bool {
        match self {
            Ground::Rooms => kind.corridor.is_none(),
            Ground::Large => kind.corridor.is_none() && is_large(kind),
            Ground::Corridor(columns) => kind.corridor == Some(columns),
        }
    }
}

const GOALS: [Goal; 8] = [
    (
        "the improved variant's mean of a megabyte: at least 222",
        222.0,
        "kbit/s",
        Ground::Large,
        Cell::megabyte,
    ),
    (
        "the improved variant's mean: at least 212",
        212.0,
        "kbit/s",
        Ground::Rooms,
        Cell::average,
    ),
    (
        "one in twenty is below 190 at the most",
        190.0,
        "kbit/s",
        Ground::Rooms,
        Cell::low,
    ),
    (
        "over 12 columns of a corridor: at least 190",
        190.0,
        "kbit/s",
        Ground::Corridor(12),
        Cell::average,
    ),
    (
        "over 24 columns of a corridor: at least 170",
        170.0,
        "kbit/s",
        Ground::Corridor(24),
        Cell::average,
    ),
    (
        "with the measurement, the improved variant's goodput over the paper's: at least 5",
        5.0,
        "times",
        Ground::Rooms,
        Cell::ratio,
    ),
    (
        "with the measurement, the paper's energy of a kilobyte over the improved variant's: at least 3.33",
        1.0 / 0.3,
        "times",
        Ground::Rooms,
        Cell::frugal,
    ),
    (
        "139 nodes, planning included: at least 200 times real time",
        200.0,
        "times",
        Ground::Large,
        Cell::speed,
    ),
];

/// Our goals under one receiver, each at its worst kind of network.
fn claims(receiver: &str, kinds: &[Kind], cells: &[&Cell]) -> Vec<Claim> {
    let at_least = |(goal, least, unit, ground, value): &Goal| {
        let own = cells.iter().filter(|cell| ground.has(&kinds[cell.kind]));
        let n = own.clone().map(|cell| cell.trials.len()).sum();
        let worst = own.map(|cell| (value(cell), cell.kind));
        let worst = worst.filter(|worst| worst.0.is_finite());
        let (ours, kind) = worst.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let text = format!("{receiver}: {goal}");
        let claim = Claim::value(&text, None, ours, n, unit, ours >= *least).as_goal();
        Some(claim.because(|| format!("ours is {ours:.1} on \"{}\"", kinds[kind].name)))
    };
    let others = GOALS.iter().filter_map(at_least);
    [never_nothing(receiver, cells)]
        .into_iter()
        .chain(others)
        .collect()
}

fn never_nothing(receiver: &str, cells: &[&Cell]) -> Claim {
    let zeros: usize = cells
        .iter()
        .map(|cell| cell.zeros(IMPROVED).iter().sum::<f64>() as usize)
        .sum();
    let ways: usize = cells.iter().map(|cell| cell.zeros(IMPROVED).len()).sum();
    Claim::count(
        &format!("{receiver}: the improved variant never gets nothing where any way exists"),
        None,
        ways - zeros,
        ways,
        zeros == 0,
    )
    .as_goal()
    .because(|| format!("it gets nothing on {zeros} of {ways}"))
}
