//! Pacifier's entry in the table of systems, its keys in scenarios, and the checked settings of a run.

use std::sync::Arc;

use chappe_core::{Duration, Mode};
use chappe_lab::run::RunError;
use chappe_lab::system::settings;
use chappe_mac::dot11;
use chappe_pacifier::paper::Pacing;
use chappe_pacifier::{Config, ConfigError, NODES_MAX, improved, paper};
use chappe_scenario::format::{LinkKnowledge, Located};
use chappe_scenario::plan::{Check, mac, radio};
use chappe_scenario::quantity::{Size, Time};
use chappe_scenario::system::span_of;
use chappe_scenario::{
    self as scenario, CheckedScenario, InputError, Keys, Plan, Radios, Settings, System, Variants,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pacifier's name, variants, keys and limits in scenarios.
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
    may_move: false,
    has_mac: true,
    has_priorities: false,
    carries_flows: false,
    has_link_loss: false,
    radios: Radios::Dot11,
    profile: "chappe-physical",
    nodes_max: (NODES_MAX, "Pacifier names nodes by one octet"),
    shares_ends: false,
    plan: |scenario| Ok(Arc::new(Pacifier::new(scenario)?)),
};

/// Pacifier's keys in `[protocol]`. An omitted key has the paper's value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacifierKeys {
    /// Whether transmission credits serve the best child (0), every child (1), or a mixture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knob: Option<Located<f64>>,
    /// MORE drops forwarders with less than this share of all transmissions, or `"tuned"`: the largest share from
    /// 0.10 down in steps of 0.01 that leaves no receiver without a forwarder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<Located<Prune>>,
    /// The number of packets coded together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Located<usize>>,
    /// The amount of data in one packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Located<Size>>,
    /// How the nodes learn the delivery ratios of their links; `probed` if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Located<LinkKnowledge>>,
    /// How long the nodes send probes before the transfer, one each second; 600 s if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probing: Option<Located<Time>>,
    /// A node repeats an acknowledgement after this many frames overheard from its next hop that do not confirm it.
    /// The improved variant refuses this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_overheard_next_hop: Option<Located<u32>>,
    /// A node repeats an acknowledgement after this many frames overheard from other nodes. The improved
    /// variant refuses this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_overheard_other: Option<Located<u32>>,
    /// Whether members of the improved variant send in turns where that is likely to pay, and not by contention: a single transfer, over a
    /// network where frames far apart do not disturb each other. A member that fails is not replaced. False if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<Located<bool>>,
    /// How long the source waits for a child to forward before it sends the next packet; `triggered` if omitted. Only the
    /// variants paper and tree-rl wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Located<PacingRule>>,
    /// The number of batches whose packets a forwarding node keeps; 1 if omitted, as in the paper. With more, what a node
    /// heard in an earlier round of batches still serves in the next. Only the variant paper comes back to batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_batches: Option<Located<u32>>,
}

/// A reading of the source's longest wait. The paper's formula and its explanation differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacingRule {
    /// Three airtimes of a frame for each transmission that a packet triggers at the source's children.
    Triggered,
    /// The printed formula: eight airtimes for each unit of the children's credits.
    Printed,
    /// Eight airtimes for each transmission that a packet triggers, from when the packet enters the queue.
    Queued,
}

/// MORE's pruning threshold, or how it is found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a share such as 0.1, or \"tuned\"")]
pub enum Prune {
    /// A share of all transmissions, from 0 to 1.
    Share(f64),
    /// A threshold found for each network.
    Rule(PruneRule),
}

/// How a pruning threshold is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PruneRule {
    /// Lowered from 0.10 in steps of 0.01 until no receiver is cut off.
    Tuned,
}

/// A variant of Pacifier, or a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The whole protocol of the paper: TREE+RL+RRB.
    Paper,
    /// The baseline MORE: belts of forwarders, and one batch at a time until every receiver has it.
    More,
    /// Tree-based opportunistic routing only.
    Tree,
    /// The tree and the source's rate limit.
    TreeRl,
    /// The improved variant: ranks in every frame, many batches in flight.
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

/// The checked settings of a run: Pacifier on 802.11b.
#[derive(Clone, Debug)]
pub struct Pacifier {
    /// The rate and preamble of data frames.
    pub mode: Mode,
    /// The parameters of channel access.
    pub mac: dot11::Config,
    /// The variant and its parameters.
    pub protocol: ProtocolPlan,
}

impl Pacifier {
    fn new(checked: &CheckedScenario<'_>) -> Result<Pacifier, InputError> {
        let (scenario, check) = (checked.scenario, checked.check);
        let mode = radio::mode(&scenario.radio, check)?;
        let given = scenario.mac.as_deref().cloned().unwrap_or_default();
        let mut mac = mac::station(&given, mode, check)?;
        // A node learns that its acknowledgement arrived by overhearing frames to other nodes (V-B.2).
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

    /// Returns the settings in a plan. Fails if the plan belongs to another system.
    pub fn of(plan: &Plan) -> Result<&Pacifier, RunError> {
        settings(plan)
    }

    /// Returns these settings with the variant of `protocol`. Rate, payload and batch size stay.
    pub fn carried_by(&self, protocol: &ProtocolPlan) -> Pacifier {
        let mut with = self.clone();
        with.protocol.variant = protocol.variant;
        with.protocol.tuned = protocol.tuned;
        with.protocol.turns = protocol.turns;
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

/// How long the nodes send probes, one each second (pacifier IV-A).
const PROBING: Duration = Duration::from_secs(600);

/// A variant of the protocol, and how its nodes learn their links.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolPlan {
    /// A variant of Pacifier, or a baseline.
    pub variant: Variant,
    /// The variant's parameters. MORE's threshold is the scenario's, unless it is tuned.
    pub config: Config,
    /// Whether MORE's threshold is tuned for each network.
    pub tuned: bool,
    /// Whether the improved variant's members send in turns where that pays.
    pub turns: bool,
    /// How the nodes learn the delivery ratios of their links.
    pub knowledge: LinkKnowledge,
    /// How long they send probes, if they do.
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
            turns: false,
            knowledge: LinkKnowledge::Probed,
            probing: PROBING,
        }
    }

    /// Length of the paper's shortest data frame on the air in octets, with all headers and the check sequence. The
    /// improved variant uses the same length, so that both have the same bound.
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
    refuse_misplaced(protocol, variant, check)?;
    if let Some(knob) = &protocol.knob {
        plan.config = paper::Variant::Pacifier { knob: **knob }.into();
    }
    if let Some(Prune::Share(prune)) = protocol.prune.as_deref() {
        plan.config = paper::Variant::More { prune: *prune }.into();
        plan.tuned = false;
    }
    plan.turns = protocol.turns.as_deref().copied().unwrap_or(false);
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
        set_paper(protocol, config);
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
    if let (true, Config::Improved(config), Some(turns)) =
        (plan.turns, &plan.config, &protocol.turns)
        && !config.has_room_for_turns()
    {
        let message = "frames that name their slot do not fit the link";
        return Err(check
            .at(turns, "not possible", message)
            .help("make `payload` four octets shorter"));
    }
    Ok(plan)
}

/// Refuses keys that mean nothing for a variant.
fn refuse_misplaced(
    protocol: &PacifierKeys,
    variant: Variant,
    check: &Check<'_>,
) -> Result<(), InputError> {
    let misplaced = |given: Option<std::ops::Range<usize>>, what: &str, owners: &[Variant]| {
        let Some(span) = given.filter(|_| !owners.contains(&variant)) else {
            return Ok(());
        };
        let name = variant.name();
        let message = format!("`{what}` means nothing for the variant {name}");
        let owners: Vec<String> = owners
            .iter()
            .map(|owner| format!("\"{}\"", owner.name()))
            .collect();
        let help = format!("it belongs to variant = {}", owners.join(" or "));
        Err(check.error(span, "no use here", message).help(help))
    };
    misplaced(span_of(&protocol.knob), "knob", &[Variant::Paper])?;
    misplaced(span_of(&protocol.prune), "prune", &[Variant::More])?;
    misplaced(span_of(&protocol.turns), "turns", &[Variant::Improved])?;
    let waiting = [Variant::Paper, Variant::TreeRl];
    misplaced(span_of(&protocol.pacing), "pacing", &waiting)?;
    misplaced(
        span_of(&protocol.relay_batches),
        "relay_batches",
        &[Variant::Paper],
    )?;
    // The improved variant has no acknowledgements that nodes repeat: ranks in every frame take their place.
    let acknowledging = [
        Variant::Paper,
        Variant::More,
        Variant::Tree,
        Variant::TreeRl,
    ];
    for (given, what) in [
        (&protocol.ack_overheard_next_hop, "ack_overheard_next_hop"),
        (&protocol.ack_overheard_other, "ack_overheard_other"),
    ] {
        misplaced(span_of(given), what, &acknowledging)?;
    }
    Ok(())
}

/// The paper's parameters that a scenario gives.
fn set_paper(protocol: &PacifierKeys, config: &mut paper::Config) {
    if let Some(frames) = &protocol.ack_overheard_next_hop {
        config.ack_overheard_next_hop = **frames;
    }
    if let Some(frames) = &protocol.ack_overheard_other {
        config.ack_overheard_other = **frames;
    }
    if let Some(rule) = &protocol.pacing {
        config.pacing = match **rule {
            PacingRule::Triggered => Pacing::TRIGGERED,
            PacingRule::Printed => Pacing::PRINTED,
            PacingRule::Queued => Pacing::QUEUED,
        };
    }
    if let Some(batches) = &protocol.relay_batches {
        config.relay_batches = **batches;
    }
}

/// Points to the key that caused a configuration error.
fn invalid(protocol: &Located<PacifierKeys>, error: &ConfigError, check: &Check<'_>) -> InputError {
    let span = match error {
        ConfigError::BatchSize { .. } => span_of(&protocol.batch),
        ConfigError::Payload { .. } => span_of(&protocol.payload),
        ConfigError::Share { name: "knob", .. } => span_of(&protocol.knob),
        ConfigError::Share { .. } => span_of(&protocol.prune),
        ConfigError::Zero {
            name: "relay_batches",
        } => span_of(&protocol.relay_batches),
        _ => None,
    };
    check.error(
        span.unwrap_or(protocol.span()),
        "not possible",
        error.to_string(),
    )
}
