//! `[mac]`: how 802.11 stations share the channel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Located;
use crate::quantity::{Length, Rate, Size, Time};

/// A method of channel access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AccessName {
    /// The distributed coordination function.
    #[serde(rename = "dcf")]
    Dcf,
    /// EDCA with the four access categories of 802.11e.
    #[serde(rename = "edca")]
    Edca,
    /// ZMAC+: bursts of energy by priority, time slots among equals.
    #[serde(rename = "zmac+")]
    ZmacPlus,
}

/// How the rates of unicast frames are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateControlName {
    /// All at the radio's `rate`.
    Fixed,
    /// Minstrel: any rate of the standard of `rate` up to it, by what was acknowledged before.
    Minstrel,
}

/// Channel access. Omitted keys have the values of the standard: 802.11b (IEEE 802.11-2020, clause 16) with the long
/// preamble or, with a rate of OFDM, 802.11g (clause 18) and n (clause 19).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MacTable {
    /// The method; the DCF if omitted, and for every system but DPCLO. In `chappe emu` a scenario of any system on 802.11 may ask for EDCA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Located<AccessName>>,
    /// Length of a burst (ZMAC+); 20 us if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Located<Time>>,
    /// Length of a time slot (ZMAC+); 10 ms if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_slot: Option<Located<Time>>,
    /// Length of a back-off slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Located<Time>>,
    /// SIFS, the short interframe space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sifs: Option<Located<Time>>,
    /// Smallest contention window, in slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cw_min: Option<Located<u16>>,
    /// Largest contention window, in slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cw_max: Option<Located<u16>>,
    /// Attempts for frames without RTS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_short: Option<u8>,
    /// Attempts for frames with RTS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_long: Option<u8>,
    /// Unicast frames of at least this size are preceded by RTS/CTS; none is, if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rts_threshold: Option<Located<Size>>,
    /// Whether a broken frame delays by EIFS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eifs: Option<bool>,
    /// Whether a frame that becomes ready while the medium has been idle for less than DIFS starts with a back-off
    /// (true), or goes out as soon as DIFS is over, as in GloMoSim (false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difs_backoff: Option<bool>,
    /// Rate of ACK, RTS and CTS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_rate: Option<Located<Rate>>,
    /// How the rates of unicast frames are chosen; `fixed` if omitted. Broadcasts keep the radio's `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_control: Option<Located<RateControlName>>,
    /// Whether unicast frames go in A-MPDUs of up to 16, acknowledged together (802.11n, access `dcf`); false if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Located<bool>>,
    /// Longest link; slots and timeouts grow by its propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance_max: Option<Located<Length>>,
}
