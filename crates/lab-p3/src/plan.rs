//! A scenario's settings for P³: the keys of its file, their checks, and the parameters that follow.

use std::sync::Arc;

use chappe_core::{Caps, Duration, Mode};
use chappe_lab::run::RunError;
use chappe_lab::system::settings;
use chappe_p3::planner::Measurement;
use chappe_p3::{Config, Key, Tagging, config, timing};
use chappe_scenario::format::{LinkKnowledge, Located, Receivers};
use chappe_scenario::quantity::Size;
use chappe_scenario::system::span_of;
use chappe_scenario::{
    self as scenario, CheckedScenario, InputError, Keys, Plan, Radios, Settings, System, Variants,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What scenarios can say about P³.
pub static SYSTEM: System = System {
    name: "p3",
    title: "P³",
    about: "bulk data from one node to another over a pipeline of synchronous transmitters",
    variants: &[
        scenario::Variant::planned("paper", "P³"),
        scenario::Variant::planned("pip", "PIP"),
        scenario::Variant::planned("pip-aware", "PIP, best channels"),
        scenario::Variant::planned("improved", "P³, improved"),
    ],
    keys: Keys::of::<P3Keys>(),
    may_move: false,
    has_mac: false,
    has_priorities: false,
    carries_flows: false,
    has_link_loss: true,
    radios: Radios::Dot15d4,
    profile: "cc2420-chips",
    nodes_max: (65_535, "P³ names nodes by two octets"),
    shares_ends: false,
    plan: |scenario| Ok(Arc::new(P3::new(scenario)?)),
};

/// P³'s keys of `[protocol]`. The default of each is the paper's value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct P3Keys {
    /// Data in one packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Located<Size>>,
    /// How the gateway learns the delivery ratios of the links; `probed` if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Located<LinkKnowledge>>,
    /// Beacons that each node sends on each channel when links are measured (the paper's N_b).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beacons: Option<Located<u32>>,
    /// Least number of node-distinct paths that the gateway looks for (the paper's N).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Located<usize>>,
    /// Whether unused nodes with links to the stages before and after one join it; the paper's evaluation had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_nodes: Option<Located<bool>>,
    /// Where the tags of the improved variant's packets are; in each frame if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Located<Tags>>,
    /// New packets of a long object in one round; small devices need fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<Located<u16>>,
}

/// Where the tags of packets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tags {
    /// At the end of each frame.
    #[default]
    Packets,
    /// In the frame that ends a segment, each over a block of its packets: four octets more for each packet.
    Segments,
}

impl From<Tags> for Tagging {
    fn from(tags: Tags) -> Tagging {
        match tags {
            Tags::Packets => Tagging::Packets,
            Tags::Segments => Tagging::Segments,
        }
    }
}

/// The forms of P³ and its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// P³ as in the paper.
    Paper,
    /// One of the paper's paths at random, on the paper's channels: its baseline.
    Pip,
    /// One path; path and channels are chosen by the measurement. A stronger baseline.
    PipAware,
    /// Stages and channels chosen by the measurement, coded repair instead of retransmissions, short authenticated frames.
    Improved,
}

impl Variants for Variant {
    const SYSTEM: &'static System = &SYSTEM;
    const ALL: &'static [Variant] = &[
        Variant::Paper,
        Variant::Pip,
        Variant::PipAware,
        Variant::Improved,
    ];
}

/// The settings of P³ in one scenario.
#[derive(Clone, Debug)]
pub struct P3 {
    /// The form of the protocol.
    pub variant: Variant,
    /// The parameters of all nodes.
    pub config: Config,
    /// Octets of the object in a DATA frame.
    pub payload: u8,
    /// How the gateway learns the delivery ratios of the links.
    pub knowledge: LinkKnowledge,
    /// The measurement of the links, if the gateway probes them.
    pub measurement: Measurement,
    /// Least number of node-distinct paths to look for (the paper's N).
    pub paths: usize,
    /// Whether unused nodes next to the paths join the paper's stages.
    pub extra_nodes: bool,
}

/// The key of simulated networks. It need not be secret, since no attacker receives their frames.
const KEY: Key = Key::new(*b"chappe simulates");

/// The capabilities of the sensor nodes' radios. They start a frame at an exact instant, to within a quarter of a
/// microsecond, as Glossy does on the CC2420.
pub(super) const CAPS: Caps = Caps {
    frame_max: config::FRAME_MAX,
    schedules: true,
    start_error: Duration::from_nanos(250),
    reports_power: false,
    overhears: true,
    confirms_broadcast: true,
    hastens: false,
};

impl P3 {
    /// The default parameters of one variant. Variants that choose channels measure all four of them.
    pub fn paper(variant: Variant) -> P3 {
        let measurement = match variant {
            Variant::Paper | Variant::Pip => Measurement::PAPER,
            Variant::PipAware | Variant::Improved => Measurement::SHORT,
        };
        let config = match variant {
            Variant::Improved => Config::improved(Some(KEY)),
            _ => Config::default(),
        };
        P3 {
            variant,
            payload: config.payload_max() as u8,
            config,
            knowledge: LinkKnowledge::Probed,
            measurement,
            paths: config::PATHS_WANTED,
            extra_nodes: false,
        }
    }

    /// The same with the tags of packets elsewhere, and as long packets as frames then have room for.
    pub fn tagged_by(mut self, tagging: Tagging) -> P3 {
        self.config = self.config.tagged_by(tagging);
        self.payload = self.config.payload_max() as u8;
        self
    }

    fn new(checked: &CheckedScenario<'_>) -> Result<P3, InputError> {
        let (protocol, check) = (checked.keys::<P3Keys>(), checked.check);
        one_transfer(checked)?;
        let mut p3 = P3::paper(Variant::of(checked.variant));
        p3.config.flood_channel = checked.profile.channel;
        if let Some(tags) = &protocol.tags {
            if p3.variant != Variant::Improved {
                let message = format!("the variant {} has no tags", checked.variant.name);
                let help = "only the variant \"improved\" authenticates packets";
                return Err(check.at(tags, "no use here", message).help(help));
            }
            p3 = p3.tagged_by((**tags).into());
        }
        if let Some(payload) = &protocol.payload {
            let most = p3.config.payload_max();
            let least = match protocol.tags.as_deref() {
                Some(Tags::Segments) => config::SEGMENT_PAYLOAD_MIN,
                _ => config::PAYLOAD_MIN,
            };
            let octets = payload.value();
            if !(least as f64..=most as f64).contains(&octets) {
                let message = format!("a payload of {} does not fit a frame", **payload);
                let help = format!("{least} B to {most} B");
                return Err(check.at(payload, "out of range", message).help(help));
            }
            p3.payload = octets as u8;
        }
        p3.knowledge = protocol.links.as_deref().copied().unwrap_or_default();
        if let Some(beacons) = &protocol.beacons {
            if **beacons == 0 {
                let message = "links cannot be measured without beacons";
                return Err(check
                    .at(beacons, "too few", message)
                    .help("the paper uses 10"));
            }
            p3.measurement.beacons = **beacons;
        }
        if let Some(paths) = &protocol.paths {
            if !(1..=chappe_p3::plan::RELAYS_MAX).contains(&**paths) {
                let message = format!("the gateway cannot look for {} paths", **paths);
                let help = format!("1 to {}", chappe_p3::plan::RELAYS_MAX);
                return Err(check.at(paths, "out of range", message).help(help));
            }
            p3.paths = **paths;
        }
        if let Some(extra) = &protocol.extra_nodes {
            if p3.variant != Variant::Paper {
                let message = format!("the variant {} has no `extra_nodes`", checked.variant.name);
                let help = "only the variant \"paper\" makes stages of paths";
                return Err(check.at(extra, "no use here", message).help(help));
            }
            p3.extra_nodes = **extra;
        }
        if let Some(segment) = &protocol.segment {
            p3.config.segment = **segment;
        }
        p3.config.check(&CAPS).map_err(|error| {
            let span = span_of(&protocol.segment).unwrap_or(checked.scenario.protocol.span());
            check.error(span, "not possible", error.to_string())
        })?;
        Ok(p3)
    }

    /// The settings of a plan. A plan of another system is a defect of the caller.
    pub fn of(plan: &Plan) -> Result<&P3, RunError> {
        settings(plan)
    }

    /// The same on radios of this profile: no source sends its frames closer than they can.
    pub fn on(&self, radio: &chappe_sim::Profile) -> P3 {
        let mut p3 = self.clone();
        p3.config.profile = p3.config.profile.with_gap(radio.frame_gap);
        p3
    }

    /// The upper bound of any pipeline with these frames, in bits of the object per second: one packet per cycle, or one
    /// in two cycles for a single path.
    pub fn ceiling_bps(&self) -> f64 {
        let payload = usize::from(self.payload);
        let full = |groups| timing::rate_bps(payload, self.config.cycle(payload, groups));
        match self.variant {
            Variant::Paper => full(2),
            Variant::Pip | Variant::PipAware => full(2) / 2.0,
            Variant::Improved => full(3),
        }
    }
}

/// The upper bound of any protocol on this radio: the largest frames back to back, all payload except the check
/// sequence. 235.0 kbit/s.
pub fn radio_bound_bps() -> f64 {
    timing::rate_bps(config::FRAME_MAX, timing::airtime(config::FRAME_MAX))
}

/// Refuses scenarios with more than one transfer or receiver.
fn one_transfer(checked: &CheckedScenario<'_>) -> Result<(), InputError> {
    let (transfers, check) = (&checked.scenario.transfer, checked.check);
    if let Some(second) = transfers.get(1) {
        let message = "P³ carries one object at a time";
        let error = check.at(second, "the second one", message);
        return Err(
            error.help("keep one [[transfer]], and run the scenario again for each of the others")
        );
    }
    let Some(transfer) = transfers.first() else {
        return Ok(());
    };
    let receivers: &Located<Receivers> = &transfer.receivers;
    let count = match &**receivers {
        Receivers::Count(count) => *count,
        Receivers::Nodes(nodes) => nodes.len(),
    };
    if count > 1 {
        let message = format!("P³ carries an object to one receiver, not to {count}");
        let error = check.at(receivers, "more than one", message);
        let source = transfer.source.as_ref().map(|source| **source);
        let other = match &**receivers {
            Receivers::Nodes(nodes) => nodes.iter().copied().find(|node| Some(*node) != source),
            Receivers::Count(_) => (0..2).find(|node| Some(*node) != source),
        };
        let node = other.unwrap_or_default();
        let help = format!("for example receivers = [{node}], or receivers = 1");
        return Err(error.help(help));
    }
    Ok(())
}

impl Settings for P3 {
    fn variant(&self) -> &'static scenario::Variant {
        self.variant.row()
    }

    fn label(&self) -> String {
        format!("{} (802.15.4, 250 kbit/s)", self.variant.label())
    }

    fn frame(&self) -> (Mode, usize) {
        (timing::MODE, config::FRAME_MAX + config::FCS_LEN)
    }
}
