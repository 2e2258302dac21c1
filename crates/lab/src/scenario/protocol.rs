//! `[protocol]`: what carries the data.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::Located;
use crate::quantity::{Size, Time};
use crate::system::span_of;

/// What carries the data, and its parameters. What is left out is as in the system's paper. A key that only other
/// systems read is refused; each system says which keys it reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Which system; `pacifier` if left out. Files of version 0.1 call it `name`.
    #[serde(alias = "name", skip_serializing_if = "Option::is_none")]
    pub system: Option<Located<SystemName>>,
    /// Which form of it: the paper's if left out, one of the paper's baselines, or an improved one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Located<VariantName>>,
    /// Pacifier's share between the best child (0) and every child (1) in the transmission credits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knob: Option<Located<f64>>,
    /// MORE drops forwarders with less than this share of all transmissions, or `"tuned"`: the largest share from
    /// 0.10 down in steps of 0.01 that leaves no receiver without a forwarder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<Located<Prune>>,
    /// Packets coded together; with TCPlp, readings that are sent together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Located<usize>>,
    /// Data in one packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Located<Size>>,
    /// How the nodes learn the delivery ratios of their links; `probed` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Located<LinkKnowledge>>,
    /// How long probes are sent before the transfer, one a second from each node; with DPCLO before the first flow, 60 s if
    /// left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probing: Option<Located<Time>>,
    /// An acknowledgement is sent again after this many frames overheard from its next hop that do not confirm it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_overheard_next_hop: Option<Located<u32>>,
    /// An acknowledgement is sent again after this many frames overheard from other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_overheard_other: Option<Located<u32>>,
    /// Beacons that each node sends on each channel when links are measured (P³'s N_b).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beacons: Option<Located<u32>>,
    /// Least number of node-distinct paths that are looked for (P³'s N).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Located<usize>>,
    /// Whether unused nodes with links to the stages before and after one join it; the paper's evaluation had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_nodes: Option<Located<bool>>,
    /// New packets of a long object in one round; small devices need fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<Located<u16>>,
    /// TCP's buffers in segments, each way; 4 in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Located<usize>>,
    /// Frames that a full TCP segment takes; 5 in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_frames: Option<Located<usize>>,
    /// The longest random pause before a frame is sent again: d, 40 ms in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_delay: Option<Located<Time>>,
    /// Further attempts at sending a frame; the standard allows up to 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_retries: Option<Located<usize>>,
    /// Time to copy a frame into the radio; 0.96 ms on the paper's, zero on a radio that reads memory by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_load: Option<Located<Time>>,
    /// How headers are compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Located<Headers>>,
    /// Nodes on which no other hangs sleep, and ask for their frames this often while they expect nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Located<Time>>,
    /// Data in one reading, where the source makes readings; 82 B in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Located<Size>>,
    /// The source makes a reading this often, until it has made as many as the transfer is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Located<Time>>,
    /// Length of a slot (WiLDNet); 20 ms if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Located<Time>>,
    /// Share of frames that each link loses beside what its radios do (WiLDNet): interference that nobody models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_loss: Option<Located<f64>>,
    /// Packets that may wait in a node for one destination, or for all where a system has one queue (DPCLO).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Located<u16>>,
    /// Most next hops for one destination (DPCLO); a tenth of the neighbours and two at least, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_hops: Option<Located<u8>>,
}

impl Protocol {
    /// All keys beside `system` and `variant`.
    pub const KEYS: [&'static str; 25] = [
        "knob",
        "prune",
        "batch",
        "payload",
        "links",
        "probing",
        "ack_overheard_next_hop",
        "ack_overheard_other",
        "beacons",
        "paths",
        "extra_nodes",
        "segment",
        "window",
        "segment_frames",
        "retry_delay",
        "frame_retries",
        "frame_load",
        "headers",
        "sleep",
        "reading",
        "every",
        "slot",
        "frame_loss",
        "queue",
        "next_hops",
    ];

    /// Those that the scenario gives, and where.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, Range<usize>)> {
        // Every key is named here: a new one that is not does not compile.
        let Protocol {
            system: _,
            variant: _,
            knob,
            prune,
            batch,
            payload,
            links,
            probing,
            ack_overheard_next_hop,
            ack_overheard_other,
            beacons,
            paths,
            extra_nodes,
            segment,
            window,
            segment_frames,
            retry_delay,
            frame_retries,
            frame_load,
            headers,
            sleep,
            reading,
            every,
            slot,
            frame_loss,
            queue,
            next_hops,
        } = self;
        let spans = [
            span_of(knob),
            span_of(prune),
            span_of(batch),
            span_of(payload),
            span_of(links),
            span_of(probing),
            span_of(ack_overheard_next_hop),
            span_of(ack_overheard_other),
            span_of(beacons),
            span_of(paths),
            span_of(extra_nodes),
            span_of(segment),
            span_of(window),
            span_of(segment_frames),
            span_of(retry_delay),
            span_of(frame_retries),
            span_of(frame_load),
            span_of(headers),
            span_of(sleep),
            span_of(reading),
            span_of(every),
            span_of(slot),
            span_of(frame_loss),
            span_of(queue),
            span_of(next_hops),
        ];
        let all = Protocol::KEYS.into_iter().zip(spans);
        all.filter_map(|(key, span)| Some((key, span?)))
    }
}

/// The name of a system. Whether there is such a one is checked when the plan is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SystemName(String);

impl Deref for SystemName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for SystemName {
    fn schema_name() -> Cow<'static, str> {
        "SystemName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Which system carries the data.", "type": "string" })
    }
}

/// The name of a system's variant. Whether the system has it is checked when the plan is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VariantName(String);

impl Deref for VariantName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for VariantName {
    fn schema_name() -> Cow<'static, str> {
        "VariantName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "A form of the system.", "type": "string" })
    }
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

/// How headers of packets are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Headers {
    /// In line: 32 octets of a packet's first frame, as in TCPlp's evaluation.
    InLine,
    /// By a prefix that all nodes know (RFC 6282's contexts).
    Contexts,
    /// The same, and TCP headers by what both ends of the mesh remember of each connection.
    Short,
}

/// How the nodes learn the delivery ratios of their links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKnowledge {
    /// By probes on the same air, before the transfer.
    #[default]
    Probed,
    /// They are told the true ratios, which no real network can know.
    True,
}
