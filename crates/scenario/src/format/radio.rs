//! `[radio]`: the radios and the air between them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Located;
use crate::quantity::{Frequency, Length, Power, Rate, Ratio, Time};

/// The radios and the air between them: a named profile, and what is different from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RadioTable {
    /// The physics to start from; `chappe-physical`, with a rate of OFDM `dot11g-physical`, or, on 802.15.4,
    /// `cc2420-chips` for P³ and `at86rf233-indoor` for TCPlp if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Located<ProfileName>>,
    /// Rate of data frames: 1, 2, 5.5 or 11 Mbit/s of 802.11b, or 6, 9, 12, 18, 24, 36, 48 or 54 of 802.11g, or 6.5, 13,
    /// 19.5, 26, 39, 52, 58.5 or 65 of 802.11n; 802.15.4 has one rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Located<Rate>>,
    /// Preamble of data frames of 802.11b; OFDM has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preamble: Option<PreambleName>,
    /// Transmit power of every node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_power: Option<Power>,
    /// The highest power a frame may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_power_max: Option<Located<Power>>,
    /// Gains of both antennas together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub antenna_gains: Option<Ratio>,
    /// Law of path loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_loss: Option<PathLossName>,
    /// Carrier frequency, for `friis` and `two-ray`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency: Option<Frequency>,
    /// Height of the antennas, for `two-ray`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub antenna_height: Option<Length>,
    /// Loss exponent, for `log-distance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent: Option<f64>,
    /// Loss at one metre, for `log-distance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_loss: Option<Ratio>,
    /// Standard deviation of log-normal shadowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<Ratio>,
    /// Law of fast fading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fading: Option<FadingName>,
    /// The direct path over the scattered ones, for `rician`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rician_k: Option<Ratio>,
    /// How long a fade lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coherence: Option<Located<Time>>,
    /// Thermal noise with the receiver's noise figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<Power>,
    /// Links whose mean power is more than this under the noise do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<Ratio>,
    /// Signals weaker than this are neither interference nor carrier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vanish_below: Option<Power>,
    /// Signal over noise and interference that a receiver needs to find a preamble.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_sinr: Option<Ratio>,
    /// Signal that a receiver needs to find a preamble.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_power: Option<Power>,
    /// Weaker frames are never decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_power: Option<Power>,
    /// The part of a frame in which a stronger one takes its receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureName>,
    /// How much stronger the capturing frame must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_margin: Option<Ratio>,
    /// How far into the frame, for `first`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_window: Option<Located<Time>>,
    /// What decides whether a frame survives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reception: Option<ReceptionName>,
    /// The ratio for `snr-threshold` and `pairwise`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reception_ratio: Option<Ratio>,
    /// Energy from which the channel is busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier_sense: Option<Power>,
    /// How long a radio is deaf after it has transmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turnaround: Option<Located<Time>>,
    /// The channel: 1 to 14, or 11 to 26 of 802.15.4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Located<u8>>,
    /// How much weaker a signal one, two, three... channels away counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Vec<Ratio>>,
}

/// A named set of physics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ProfileName {
    /// Error curves, true Rayleigh fading, accumulated interference.
    #[serde(rename = "chappe-physical")]
    ChappePhysical,
    /// The same for OFDM (802.11g and n): its noise in 20 MHz, and its sensitivity to the carrier.
    #[serde(rename = "dot11g-physical")]
    Dot11gPhysical,
    /// ns-3's Yans channel and PHY with their defaults.
    #[serde(rename = "ns3-yans")]
    Ns3Yans,
    /// GloMoSim 2 with its own, milder fading law.
    #[serde(rename = "glomosim")]
    Glomosim,
    /// ns-2: power thresholds, and a ratio between each two frames.
    #[serde(rename = "ns2-threshold")]
    Ns2Threshold,
    /// 802.11b between towers: free space, no fading, dishes of 24 dBi unless `antenna_gains` says otherwise.
    #[serde(rename = "long-link")]
    LongLink,
    /// 802.15.4: TI CC2420 indoors, channels that differ.
    #[serde(rename = "cc2420-indoor")]
    Cc2420Indoor,
    /// 802.15.4: the same with a receiver that adds up the chips of a symbol, which beating hurts more.
    #[serde(rename = "cc2420-symbol")]
    Cc2420Symbol,
    /// 802.15.4: TI CC2420 with that receiver worked out chip by chip, which is nearest to measured pairs of radios.
    #[serde(rename = "cc2420-chips")]
    Cc2420Chips,
    /// 802.15.4: Nordic nRF52840 with the same receiver.
    #[serde(rename = "nrf52840-chips")]
    Nrf52840Chips,
    /// 802.15.4: Microchip AT86RF233 indoors.
    #[serde(rename = "at86rf233-indoor")]
    At86rf233Indoor,
    /// 802.15.4: Nordic nRF52840 indoors.
    #[serde(rename = "nrf52840-indoor")]
    Nrf52840Indoor,
    /// 802.15.4: ns-3's lr-wpan; identical frames do not add up.
    #[serde(rename = "ieee-e418")]
    IeeeE418,
    /// 802.15.4: the same, but no frame below the sensitivity is received.
    #[serde(rename = "ieee-e418-gate")]
    IeeeE418Gate,
}

/// What stands before a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreambleName {
    /// Preamble and header of 192 us.
    Long,
    /// Preamble and header of 96 us; not at 1 Mbit/s.
    Short,
}

/// A law of path loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathLossName {
    /// Free space, by Friis's formula.
    Friis,
    /// Free space, then the fourth power of the distance.
    TwoRay,
    /// The loss at one metre, then a constant exponent.
    LogDistance,
}

/// A law of fast fading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FadingName {
    /// Constant power: no fading.
    None,
    /// Rayleigh: scattered paths without a direct one.
    Rayleigh,
    /// Rician: a direct path and scattered ones.
    Rician,
    /// What GloMoSim calls Rayleigh, which is milder.
    Glomosim,
}

/// The part of a frame in which a stronger one takes its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureName {
    /// A receiver never changes to a stronger frame.
    Never,
    /// Preamble and PHY header.
    Preamble,
    /// The first `capture_window` of it.
    First,
    /// The whole frame up to its end.
    Frame,
}

/// What decides whether a frame survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceptionName {
    /// Error curves over signal to noise and interference.
    ErrorCurves,
    /// A ratio that must be kept all the time.
    SnrThreshold,
    /// A ratio between each two frames.
    Pairwise,
    /// Frames that overlap in time are all lost.
    Overlap,
}

impl ProfileName {
    /// The name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            ProfileName::ChappePhysical => "chappe-physical",
            ProfileName::Dot11gPhysical => "dot11g-physical",
            ProfileName::Ns3Yans => "ns3-yans",
            ProfileName::Glomosim => "glomosim",
            ProfileName::Ns2Threshold => "ns2-threshold",
            ProfileName::LongLink => "long-link",
            ProfileName::Cc2420Indoor => "cc2420-indoor",
            ProfileName::Cc2420Symbol => "cc2420-symbol",
            ProfileName::Cc2420Chips => "cc2420-chips",
            ProfileName::Nrf52840Chips => "nrf52840-chips",
            ProfileName::At86rf233Indoor => "at86rf233-indoor",
            ProfileName::Nrf52840Indoor => "nrf52840-indoor",
            ProfileName::IeeeE418 => "ieee-e418",
            ProfileName::IeeeE418Gate => "ieee-e418-gate",
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
