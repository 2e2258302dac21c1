//! `[[fault]]`: what goes wrong, and when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Located, NodeName};
use crate::quantity::{Drift, Power, Time};

/// Something that goes wrong at a moment of the transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultTable {
    /// When, counted from the start of the transfer.
    pub at: Located<Time>,
    /// The kind of fault; it decides which of the other keys are needed.
    pub kind: Located<FaultKind>,
    /// The node that fails, for all kinds but those of links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NodeName>")]
    pub node: Option<Located<usize>>,
    /// Which link, by its two ends; for `link-loss` from the first to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<[NodeName; 2]>")]
    pub link: Option<Located<[usize; 2]>>,
    /// How wrong the clock is, for `drift`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Located<Drift>>,
    /// Probability that a received bit is wrong, for `corrupt`; 0 ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_error_rate: Option<Located<f64>>,
    /// Whether the check sequence shows it, for `corrupt`; false if omitted: errors are not detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected: Option<bool>,
    /// Share of frames lost in addition to the radios' own losses, for `link-loss`; 0 ends it, 1 is a direction that is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_loss: Option<Located<f64>>,
    /// What the frame holds, for `forge`; `random` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Located<ForgeryName>>,
    /// Transmit power, for `jammer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Located<Power>>,
    /// How long it lasts, for `jammer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Located<Time>>,
    /// How long one burst of noise is, for a `jammer` that pauses, as Wi-Fi does; constant noise if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Located<Time>>,
    /// Mean pause between two bursts, for a `jammer` with `burst`; pauses are exponentially distributed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Located<Time>>,
}

/// The kinds of fault that the simulator can inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// `node` stops and forgets everything that was not finished.
    Crash,
    /// `node` starts again, empty.
    Restart,
    /// `link` carries nothing from now on.
    CutLink,
    /// `link` is as before.
    RestoreLink,
    /// `link` loses `frame_loss` of the frames from its first end to its second from now on.
    LinkLoss,
    /// `node`'s clock runs wrong by `drift`.
    Drift,
    /// Bits of what `node` receives are wrong.
    Corrupt,
    /// `node` gets a frame that no node of the network sent: `frame` says what it holds.
    Forge,
    /// Noise of `power`, constant or in bursts, from where `node` stands; among measured links, noise over `node`.
    Jammer,
}

/// What a forged frame holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ForgeryName {
    /// Random octets, as many as a frame may have at most.
    #[default]
    Random,
    /// A frame that a node received lately, as it was.
    Replay,
    /// The same with one to eight wrong bits.
    Bent,
}
