//! `[protocol]`: Pacifier's parameters.

use chappe_core::{Duration, Mode};
use chappe_mac::dot11;
use chappe_pacifier::{self as pacifier, Config, ConfigError};

use super::Check;
use crate::input::InputError;
use crate::scenario::{LinkKnowledge, Located, Protocol, Prune, Variant};

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
        let with = match variant {
            Variant::Paper => pacifier::Variant::Pacifier { knob: 1.0 },
            Variant::More => pacifier::Variant::More { prune: 0.1 },
            Variant::Tree => pacifier::Variant::Tree,
            Variant::TreeRl => pacifier::Variant::TreeRl,
        };
        ProtocolPlan {
            variant,
            config: Config::new(with),
            tuned: variant == Variant::More,
            knowledge: LinkKnowledge::Probed,
            probing: PROBING,
        }
    }

    /// Octets of the shortest data frame on the air, with every header and the check sequence.
    pub fn frame_octets(&self) -> usize {
        self.config.frame_len(0) + self.config.link_overhead
    }
}

pub fn plan(
    protocol: &Located<Protocol>,
    mode: Mode,
    mac: &dot11::Config,
    check: &Check<'_>,
) -> Result<ProtocolPlan, InputError> {
    let mut plan = ProtocolPlan::paper(*protocol.variant);
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
    misplaced(
        protocol.knob.as_ref().map(Located::span),
        "knob",
        Variant::Paper,
    )?;
    misplaced(
        protocol.prune.as_ref().map(Located::span),
        "prune",
        Variant::More,
    )?;
    if let Some(knob) = &protocol.knob {
        plan.config.variant = pacifier::Variant::Pacifier { knob: **knob };
    }
    if let Some(Prune::Share(prune)) = protocol.prune.as_deref() {
        plan.config.variant = pacifier::Variant::More { prune: *prune };
        plan.tuned = false;
    }
    plan.config.mode = mode;
    plan.config.k = protocol
        .batch
        .as_ref()
        .map_or(plan.config.k, |batch| **batch);
    plan.config.payload = protocol
        .payload
        .as_ref()
        .map_or(plan.config.payload, |size| size.value() as usize);
    if let Some(frames) = protocol.ack_overheard_next_hop {
        plan.config.ack_overheard_next_hop = frames;
    }
    if let Some(frames) = protocol.ack_overheard_other {
        plan.config.ack_overheard_other = frames;
    }
    plan.knowledge = protocol.links;
    if let Some(probing) = &protocol.probing {
        plan.probing = check.time(probing)?;
        if plan.probing < Duration::from_secs(1) {
            return Err(check
                .at(probing, "too short", "a node probes once a second")
                .help("at least \"1 s\""));
        }
    }
    plan.config.frame_max = mac.caps().frame_max;
    let checked = plan
        .config
        .check()
        .and_then(|()| plan.config.check_link(&mac.caps()));
    checked.map_err(|error| invalid(protocol, &error, check))?;
    Ok(plan)
}

/// Points at the key that a configuration error is about.
fn invalid(protocol: &Located<Protocol>, error: &ConfigError, check: &Check<'_>) -> InputError {
    let span = match error {
        ConfigError::BatchSize { .. } => protocol.batch.as_ref().map(Located::span),
        ConfigError::Payload { .. } => protocol.payload.as_ref().map(Located::span),
        ConfigError::Share { name: "knob", .. } => protocol.knob.as_ref().map(Located::span),
        ConfigError::Share { .. } => protocol.prune.as_ref().map(Located::span),
        _ => None,
    };
    check.error(
        span.unwrap_or(protocol.span()),
        "not possible",
        error.to_string(),
    )
}
