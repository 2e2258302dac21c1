//! What carries the data in a scenario of Pacifier: its parameters, and the MAC under it.

use std::sync::Arc;

use chappe_core::{Duration, Mode};
use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::{Job, settings};
use chappe_mac::dot11;
use chappe_pacifier::{Config, ConfigError, NODES_MAX, improved, paper};
use chappe_results::Run;
use chappe_scenario::format::{LinkKnowledge, Located};
use chappe_scenario::plan::{Check, mac, radio};
use chappe_scenario::quantity::{Size, Time};
use chappe_scenario::system::span_of;
use chappe_scenario::{
    self as scenario, CheckedScenario, InputError, Keys, Plan, Radios, Settings, System, Variants,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Depth, carry, prepare};

/// What scenarios may say of it.
pub static SYSTEM: System = System {
    name: "pacifier",
    title: "Pacifier",
    about: "reliable multicast by tree opportunistic routing and network coding",
    variants: &[
        scenario::Variant::new("paper", "Pacifier"),
        scenario::Variant::new("more", "MORE"),
        scenario::Variant::new("tree", "TREE"),
        scenario::Variant::new("tree-rl", "TREE+RL"),
        scenario::Variant::new("improved", "Pacifier, improved"),
    ],
    keys: Keys::of::<PacifierKeys>(),
    has_mac: true,
    has_priorities: false,
    carries_flows: false,
    has_link_loss: false,
    radios: Radios::Dot11b,
    profile: "chappe-physical",
    nodes_max: (NODES_MAX, "Pacifier names nodes by one octet"),
    shares_ends: false,
    plan: |scenario| Ok(Arc::new(Pacifier::new(scenario)?)),
};

/// Pacifier's keys of `[protocol]`. What is omitted is as in the paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacifierKeys {
    /// Pacifier's share between the best child (0) and every child (1) in the transmission credits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knob: Option<Located<f64>>,
    /// MORE drops forwarders with less than this share of all transmissions, or `"tuned"`: the largest share from
    /// 0.10 down in steps of 0.01 that leaves no receiver without a forwarder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<Located<Prune>>,
    /// Packets coded together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Located<usize>>,
    /// Data in one packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Located<Size>>,
    /// How the nodes learn the delivery ratios of their links; `probed` if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Located<LinkKnowledge>>,
    /// How long the nodes send probes before the transfer, one each second; 600 s if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probing: Option<Located<Time>>,
    /// A node repeats an acknowledgement after this many frames overheard from its next hop that do not confirm it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_overheard_next_hop: Option<Located<u32>>,
    /// A node repeats an acknowledgement after this many frames overheard from other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_overheard_other: Option<Located<u32>>,
}

/// MORE's pruning threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a share such as 0.1, or \"tuned\"")]
pub enum Prune {
    /// This share of all transmissions.
    Share(f64),
    /// Found for each network.
    Rule(PruneRule),
}

/// How a pruning threshold is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PruneRule {
    /// From 0.10 down by 0.01 until no receiver is cut off.
    Tuned,
}

/// Which form of Pacifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The whole protocol of the paper: TREE+RL+RRB.
    Paper,
    /// MORE, the baseline: belts of forwarders, one batch until everybody has it.
    More,
    /// Tree-based opportunistic routing only.
    Tree,
    /// The tree and the source's rate limit.
    TreeRl,
    /// Our own: ranks in every frame, many batches in flight.
    Improved,
}

impl Variants for Variant {
    const SYSTEM: &'static System = &SYSTEM;
    const ALL: &'static [Variant] = &[
        Variant::Paper,
        Variant::More,
        Variant::Tree,
        Variant::TreeRl,
        Variant::Improved,
    ];
}

/// Pacifier on 802.11b, with everything that a scenario says about both.
#[derive(Clone, Debug)]
pub struct Pacifier {
    /// How data frames are sent.
    pub mode: Mode,
    /// Channel access.
    pub mac: dot11::Config,
    /// The protocol.
    pub protocol: ProtocolPlan,
}

impl Pacifier {
    fn new(checked: &CheckedScenario<'_>) -> Result<Pacifier, InputError> {
        let (scenario, check) = (checked.scenario, checked.check);
        let mode = radio::mode(&scenario.radio, check)?;
        let given = scenario.mac.as_deref().cloned().unwrap_or_default();
        let mut mac = mac::station(&given, mode, check)?;
        // Pacifier hears its own acknowledgements confirmed in frames to others.
        mac.overhear = true;
        let variant = Variant::of(checked.variant);
        let keys = scenario
            .protocol
            .replaced(checked.keys::<PacifierKeys>().clone());
        let protocol = plan(&keys, variant, mode, &mac, check)?;
        Ok(Pacifier {
            mode,
            mac,
            protocol,
        })
    }

    /// That of a plan; a plan of another system is the caller's defect.
    pub fn of(plan: &Plan) -> Result<&Pacifier, RunError> {
        settings(plan)
    }

    /// The same in another form: what belongs to the variant is taken from `protocol`, rate, payload and batch stay.
    pub fn carried_by(&self, protocol: &ProtocolPlan) -> Pacifier {
        let mut with = self.clone();
        with.protocol.variant = protocol.variant;
        with.protocol.tuned = protocol.tuned;
        with.protocol.config = match (with.protocol.config, &protocol.config) {
            (Config::Paper(mine), Config::Paper(other)) => Config::Paper(paper::Config {
                variant: other.variant,
                ..mine
            }),
            (mine, other) => other.clone().with_common(*mine.common()),
        };
        with
    }
}

impl Settings for Pacifier {
    fn variant(&self) -> &'static scenario::Variant {
        self.protocol.variant.row()
    }

    fn label(&self) -> String {
        format!("{} ({})", self.variant().label, self.mode.rate)
    }

    fn frame(&self) -> (Mode, usize) {
        (self.mode, self.protocol.frame_octets())
    }
}

/// Carries the transfers of one seed, and compares the result with its bound.
pub(super) fn run(job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let with = Pacifier::of(job.plan)?;
    let prepared = prepare(with, job.network, Depth::Slowest, meter)?;
    meter.advance(WORK);
    let spec = RunSpec {
        plan: job.plan,
        network: &prepared.network,
        copies: job.copies,
        pcap: job.pcap,
    };
    let outcome = carry(with, &prepared, spec, meter)?;
    check(with, &prepared, &outcome.run)?;
    Ok(outcome)
}

/// No run exceeds its bound: otherwise Chappe is wrong.
pub fn check(with: &Pacifier, prepared: &super::Prepared, run: &Run) -> Result<(), RunError> {
    for (index, bound) in prepared.bounds.iter().enumerate() {
        let flows: Vec<_> = run
            .flows
            .iter()
            .filter(|flow| flow.transfer == index)
            .collect();
        if let Some(excess) = bound.exceeded(&flows, with.protocol.config.common().payload) {
            return Err(RunError::Defect(format!("seed {}: {excess}", run.seed)));
        }
    }
    Ok(())
}

/// How long the paper probes, and what is probed each second (pacifier IV-A).
const PROBING: Duration = Duration::from_secs(600);

/// What carries the data.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolPlan {
    /// Which form of Pacifier.
    pub variant: Variant,
    /// Its parameters. MORE's threshold is the scenario's, unless it is tuned.
    pub config: Config,
    /// Whether MORE's threshold is found for each network.
    pub tuned: bool,
    /// How the nodes learn their links.
    pub knowledge: LinkKnowledge,
    /// How long they probe, if they do.
    pub probing: Duration,
}

impl ProtocolPlan {
    /// The paper's parameters for one variant at 2 Mbit/s; MORE with its threshold tuned.
    pub fn paper(variant: Variant) -> ProtocolPlan {
        let config = match variant {
            Variant::Paper => paper::Variant::Pacifier { knob: 1.0 }.into(),
            Variant::More => paper::Variant::More { prune: 0.1 }.into(),
            Variant::Tree => paper::Variant::Tree.into(),
            Variant::TreeRl => paper::Variant::TreeRl.into(),
            Variant::Improved => improved::Config::default().into(),
        };
        ProtocolPlan {
            variant,
            config,
            tuned: variant == Variant::More,
            knowledge: LinkKnowledge::Probed,
            probing: PROBING,
        }
    }

    /// Octets of the paper's shortest data frame on the air, with every header and the check sequence. The improved
    /// variant's frames count the same, so that both have the same bound.
    pub fn frame_octets(&self) -> usize {
        let common = self.config.common();
        paper::header::frame_len(0, common.k, common.payload) + common.link_overhead
    }
}

fn plan(
    protocol: &Located<PacifierKeys>,
    variant: Variant,
    mode: Mode,
    mac: &dot11::Config,
    check: &Check<'_>,
) -> Result<ProtocolPlan, InputError> {
    let mut plan = ProtocolPlan::paper(variant);
    let misplaced = |given: Option<std::ops::Range<usize>>, what: &str, owner: Variant| match given
    {
        Some(span) if plan.variant != owner => {
            let message = format!(
                "`{what}` means nothing for the variant {}",
                plan.variant.name()
            );
            let help = format!("it belongs to variant = \"{}\"", owner.name());
            Err(check.error(span, "no use here", message).help(help))
        }
        _ => Ok(()),
    };
    misplaced(span_of(&protocol.knob), "knob", Variant::Paper)?;
    misplaced(span_of(&protocol.prune), "prune", Variant::More)?;
    if let Some(knob) = &protocol.knob {
        plan.config = paper::Variant::Pacifier { knob: **knob }.into();
    }
    if let Some(Prune::Share(prune)) = protocol.prune.as_deref() {
        plan.config = paper::Variant::More { prune: *prune }.into();
        plan.tuned = false;
    }
    let common = plan.config.common_mut();
    common.mode = mode;
    common.frame_max = mac.caps().frame_max;
    if let Some(batch) = &protocol.batch {
        common.k = **batch;
    }
    if let Some(size) = &protocol.payload {
        common.payload = size.value() as usize;
    }
    if let Config::Paper(config) = &mut plan.config {
        if let Some(frames) = &protocol.ack_overheard_next_hop {
            config.ack_overheard_next_hop = **frames;
        }
        if let Some(frames) = &protocol.ack_overheard_other {
            config.ack_overheard_other = **frames;
        }
    }
    plan.knowledge = protocol.links.as_deref().copied().unwrap_or_default();
    if let Some(probing) = &protocol.probing {
        plan.probing = check.time(probing)?;
        if plan.probing < Duration::from_secs(1) {
            return Err(check
                .at(probing, "too short", "a node probes once a second")
                .help("at least \"1 s\""));
        }
    }
    let checked = plan
        .config
        .check()
        .and_then(|()| plan.config.check_link(&mac.caps()));
    checked.map_err(|error| invalid(protocol, &error, check))?;
    Ok(plan)
}

/// Points at the key that a configuration error is about.
fn invalid(protocol: &Located<PacifierKeys>, error: &ConfigError, check: &Check<'_>) -> InputError {
    let span = match error {
        ConfigError::BatchSize { .. } => span_of(&protocol.batch),
        ConfigError::Payload { .. } => span_of(&protocol.payload),
        ConfigError::Share { name: "knob", .. } => span_of(&protocol.knob),
        ConfigError::Share { .. } => span_of(&protocol.prune),
        _ => None,
    };
    check.error(
        span.unwrap_or(protocol.span()),
        "not possible",
        error.to_string(),
    )
}
