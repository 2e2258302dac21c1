//! What a scenario file says: a network, its radios, a protocol, what it must carry, and what goes wrong.
//!
//! The types here are the file, word for word: the JSON Schema of `chappe sim --schema` is made from them.
//! They say nothing about whether the scenario makes sense; [`crate::plan`] does, and makes of it what a run
//! needs. Every quantity is written with its unit, and every value that can be wrong in a way that only
//! shows later is [`Located`], so that the message can point at it.

mod fault;
mod flow;
mod located;
mod mac;
mod misread;
mod network;
mod protocol;
mod radio;
mod reader;
mod run;
mod source;
mod sweep;
mod transfer;
mod unclosed;
mod wording;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use fault::{FaultKind, FaultTable, ForgeryName};
pub use flow::FlowTable;
pub use located::{Located, span_of};
pub use mac::{AccessName, MacTable, RateControlName};
pub use network::{Generator, Links, NetworkTable};
pub use protocol::{LinkKnowledge, ProtocolTable, SystemName, VariantName};
pub use radio::{
    CaptureName, FadingName, PathLossName, PreambleName, ProfileName, RadioTable, ReceptionName,
};
pub use reader::read;
pub use run::RunTable;
pub(crate) use source::Assignment;
pub use source::{NodeName, Source};
pub use sweep::SweepTable;
pub use transfer::{Receivers, TransferTable};

/// A scenario file as serde reads it: one field for each top-level table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a few words; stands over the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the nodes stand, or which links they have.
    pub network: Located<NetworkTable>,
    /// The radios and the air between them.
    #[serde(default)]
    pub radio: RadioTable,
    /// Channel access, for systems on 802.11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Located<MacTable>>,
    /// What carries the data.
    #[serde(default)]
    pub protocol: Located<ProtocolTable>,
    /// What must be carried; at least one, if there is no flow.
    #[serde(default)]
    pub transfer: Vec<Located<TransferTable>>,
    /// Traffic without an end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Located<FlowTable>>,
    /// What goes wrong, and when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<Located<FaultTable>>,
    /// The seeds to run, and when a run ends.
    #[serde(default)]
    pub run: RunTable,
    /// The values of keys that `chappe sweep` varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepTable>,
}
