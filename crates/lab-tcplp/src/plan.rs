//! A scenario's settings for TCPlp: the keys of its file, their checks, and the parameters that follow.

use std::sync::Arc;

use chappe_bound::closed::lowpan::{Frame, Segments, on_the_air};
use chappe_core::{Address, Duration, Mode};
use chappe_lab::run::RunError;
use chappe_lab::system::settings;
use chappe_mac::dot15d4::{self, Sleep};
use chappe_scenario::format::{Located, Receivers};
use chappe_scenario::quantity::{Size, Time};
use chappe_scenario::system::span_of;
use chappe_scenario::{
    self as scenario, CheckedScenario, InputError, Keys, Plan, Radios, Settings, System, Variants,
};
use chappe_tcplp::baseline::one_segment;
use chappe_tcplp::lowpan;
use chappe_tcplp::tcp;
use chappe_wire::dot15d4::{FCS_LEN, PSDU_MAX};
use chappe_wire::{ipv6, sixlowpan::frag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::addresses::CONTEXTS;
use super::frames::Form;
use super::role::Sensing;
use super::station::SOCKETS;
use super::transport::{MSS, Transport, WINDOW};
use super::tree::tree;

/// What scenarios can say about TCPlp.
pub static SYSTEM: System = System {
    name: "tcplp",
    title: "TCPlp",
    about: "TCP between motes over 6LoWPAN, relayed along a tree to a border router",
    variants: &[
        scenario::Variant::new("paper", "TCPlp"),
        scenario::Variant::new("one-segment", "one-segment TCP"),
        scenario::Variant::new("improved", "TCPlp, improved"),
    ],
    keys: Keys::of::<TcplpKeys>(),
    may_move: false,
    has_mac: false,
    has_priorities: false,
    carries_flows: false,
    has_link_loss: false,
    radios: Radios::Dot15d4,
    profile: "at86rf233-indoor",
    nodes_max: (65_000, "802.15.4 names nodes by two octets"),
    shares_ends: true,
    plan: |scenario| Ok(Arc::new(Tcplp::new(scenario)?)),
};

/// TCPlp's keys of `[protocol]`. The default of each is the paper's value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcplpKeys {
    /// TCP's buffers in segments, each way; 4 in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Located<usize>>,
    /// Frames that a full TCP segment takes; 5 in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_frames: Option<Located<usize>>,
    /// The longest random pause before a node repeats a frame: d, 40 ms in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_delay: Option<Located<Time>>,
    /// Further attempts at sending a frame; the standard allows up to 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_retries: Option<Located<usize>>,
    /// Time to copy a frame into the radio; 0.96 ms on the paper's, zero on a radio that reads memory directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_load: Option<Located<Time>>,
    /// Full segments after which a receiver acknowledges at once; 2 in the paper. It does so too when half its buffer is free
    /// again, so 4 needs a window of 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_every: Option<Located<usize>>,
    /// The longest that an acknowledgement waits for a further segment; 100 ms in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<Located<Time>>,
    /// How headers are compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Located<Headers>>,
    /// Nodes without children sleep, and ask for their frames this often while they expect nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Located<Time>>,
    /// Data in one reading, where the source makes readings; 82 B in the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Located<Size>>,
    /// The source makes a reading this often, until it has made as many as the transfer is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Located<Time>>,
    /// Readings that are sent together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Located<usize>>,
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

/// The forms of TCPlp and its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// TCPlp as in the paper: addresses in line, pauses of up to 40 ms before a link retry.
    Paper,
    /// One segment in flight, as in uIP: the paper's baseline.
    OneSegment,
    /// TCPlp with what the paper does not have: a shared context for addresses, compressed TCP headers, paced sources
    /// instead of pauses before link retries, the standard's most link retries, acknowledgements that wait for a second segment
    /// over several hops, and data requests whose interval grows while the parent holds no frames.
    Improved,
}

impl Variants for Variant {
    const SYSTEM: &'static System = &SYSTEM;
    const ALL: &'static [Variant] = &[Variant::Paper, Variant::OneSegment, Variant::Improved];
}

/// The settings of TCPlp in one scenario.
#[derive(Clone, Debug)]
pub struct Tcplp {
    /// The form of the protocol.
    pub variant: Variant,
    /// The link layer of all nodes.
    pub mac: dot15d4::Config,
    /// TCP of all nodes.
    pub tcp: tcp::Config,
    /// Buffers, in segments each way.
    pub window: usize,
    /// Frames of a full segment.
    pub segment_frames: usize,
    /// Whether nodes share a context for their prefix.
    pub contexts: bool,
    /// Whether both ends of the mesh compress TCP headers too.
    pub short: bool,
    /// Whether sources pause after each frame until it is out of their way.
    pub paced: bool,
    /// The interval of data requests of nodes without children while they expect nothing; `None` if no node sleeps.
    pub sleep: Option<Duration>,
    /// How long acknowledgements of nodes that sleep may wait; those of others wait for `tcp.delayed_ack`.
    pub leaf_ack_delay: Duration,
    /// The readings of the source; `None` for an object that exists from the start.
    pub sensing: Option<Sensing>,
}

/// Frames of a full segment (paper 6.1).
const SEGMENT_FRAMES: usize = 5;
/// The largest window in segments, so that it needs no window scaling.
const WINDOW_MAX: usize = 48;
/// The most frames of a segment, so that its packet fits IPv6's minimum MTU.
const FRAMES_MAX: usize = 12;
/// The longest delay of an acknowledgement in seconds (RFC 9293, 3.8.6.3).
const ACK_DELAY_MAX: f64 = 0.5;
/// Octets of compressed headers in a first fragment: base 2, traffic class 1, next header 1, and both addresses, in line or as
/// a node's two octets and a host's eight.
const HEADERS_IN_LINE: usize = 2 + 1 + 1 + 32;
const HEADERS_IN_CONTEXT: usize = 2 + 1 + 1 + 2 + 8;
/// TCP's header with timestamps, and its short form (`chappe_wire::sixlowpan::tcphc`).
const TCP_HEADER: usize = 20 + 12;
const TCP_HEADER_SHORT: usize = 11;
/// IPv6's and TCP's headers before compression, options apart.
const HEADERS: usize = ipv6::HEADER_LEN + 20;

/// The largest even TCP segment size (payload and options) whose packet takes `frames` frames of `frame_max` octets. The
/// other end may be a host outside the mesh.
pub fn mss(frames: usize, frame_max: usize, (contexts, short): (bool, bool)) -> u16 {
    let headers = match contexts {
        true => HEADERS_IN_CONTEXT,
        false => HEADERS_IN_LINE,
    };
    let (headers, expanded) = match short {
        true => (headers + TCP_HEADER_SHORT, ipv6::HEADER_LEN + TCP_HEADER),
        false => (headers, ipv6::HEADER_LEN),
    };
    // Fragments end at multiples of 8 octets of the packet before compression (RFC 4944, 5.3).
    let first = expanded + frame_max.saturating_sub(frag::FIRST_LEN + headers);
    let further = frame_max.saturating_sub(frag::FURTHER_LEN);
    let packet = match frames {
        0 | 1 => expanded + frame_max.saturating_sub(headers),
        _ => (first & !7) + (frames - 2) * (further & !7) + further,
    };
    let packet = packet.min(ipv6::MTU_MIN);
    (packet.saturating_sub(HEADERS) & !1) as u16
}

impl Tcplp {
    /// The default parameters of one variant.
    pub fn paper(variant: Variant) -> Tcplp {
        let mut mac = dot15d4::Config::HAMILTON;
        let mut tcp = Transport::tcplp(MSS, WINDOW).config;
        if variant == Variant::OneSegment {
            tcp = one_segment::CONFIG;
        }
        let leaf_ack_delay = tcp.delayed_ack;
        let improved = variant == Variant::Improved;
        if improved {
            // The longest delay that the peer's tail loss probes allow for (RFC 8985, 7.2). A segment of five frames takes 100 ms
            // and more over three hops, so TCPlp's 100 ms end before the second segment. A leaf keeps these: it gets segments
            // further apart than either delay, so a longer one only adds to them.
            tcp.delayed_ack = tcp.probe_ack_delay;
            mac.retries = 7;
            // The standard's pause: none. TCPlp's (7.1) keeps a source off the frames of a relay two hops on, and a paced source
            // is off them already, so the pause only stops the row.
            mac.retry_delay = dot15d4::Config::STANDARD.retry_delay;
        }
        let mut own = Tcplp {
            variant,
            mac,
            tcp,
            window: if variant == Variant::OneSegment {
                1
            } else {
                WINDOW
            },
            segment_frames: SEGMENT_FRAMES,
            contexts: improved,
            short: improved,
            paced: improved,
            sleep: None,
            leaf_ack_delay,
            sensing: None,
        };
        own.fit();
        own
    }

    /// Sets the MSS to the largest that its frames hold.
    fn fit(&mut self) {
        let frame_max = self.mac.caps(0).frame_max;
        // Only headers with timestamps have a short form.
        self.short &= self.tcp.timestamps;
        self.tcp.mss = mss(self.segment_frames, frame_max, (self.contexts, self.short));
    }

    fn new(checked: &CheckedScenario<'_>) -> Result<Tcplp, InputError> {
        let (protocol, check) = (checked.keys::<TcplpKeys>(), checked.check);
        let mut own = Tcplp::paper(Variant::of(checked.variant));
        if let Some(window) = &protocol.window {
            own.window = within(checked, window, 1..=WINDOW_MAX, "segments of buffer")?;
            if own.variant == Variant::OneSegment && own.window > 1 {
                let message = "one-segment TCP has a buffer of one segment";
                let error = check.at(window, "no use here", message);
                return Err(error.help("omit it, or use the variant \"paper\""));
            }
        }
        if let Some(frames) = &protocol.segment_frames {
            own.segment_frames = within(checked, frames, 1..=FRAMES_MAX, "frames a segment")?;
        }
        if let Some(retries) = &protocol.frame_retries {
            own.mac.retries = within(checked, retries, 0..=7, "further attempts")? as u8;
        }
        if let Some(delay) = &protocol.retry_delay {
            own.mac.retry_delay = span(checked, delay, 1.0)?;
        }
        if let Some(each) = &protocol.ack_every {
            let most = 1..=WINDOW_MAX / 2;
            own.tcp.ack_every = within(checked, each, most, "segments an ACK")? as u8;
        }
        if let Some(delay) = &protocol.ack_delay {
            let delay = span(checked, delay, ACK_DELAY_MAX)?;
            own.tcp.delayed_ack = delay;
            own.leaf_ack_delay = delay;
            own.tcp.probe_ack_delay = own.tcp.probe_ack_delay.max(delay);
        }
        if let Some(load) = &protocol.frame_load {
            let usual = own.mac.load;
            own.mac.load = span(checked, load, 0.1)?;
            // A sleepy child also waits while its parent loads the frame, or it sleeps again before each one. The standard
            // leaves macMaxFrameTotalWaitTime to the layer above (table 8-94); the platform's value covers the usual load.
            own.mac.data_wait += own.mac.load.saturating_sub(usual);
        }
        if let Some(headers) = &protocol.headers {
            own.contexts = **headers != Headers::InLine;
            own.short = **headers == Headers::Short;
        }
        if let Some(sleep) = &protocol.sleep {
            let every = span(checked, sleep, 3600.0)?;
            if every < SLEEP_LEAST {
                let message = format!("a leaf cannot ask for frames every {}", **sleep);
                let error = check.at(sleep, "too often", message);
                return Err(error.help("20 ms or more: a data request takes some 10 ms"));
            }
            own.sleep = Some(every);
        }
        own.sensing = sensing(checked)?;
        ends(checked)?;
        own.fit();
        Ok(own)
    }

    /// The settings of a plan. A plan of another system is a defect of the caller.
    pub fn of(plan: &Plan) -> Result<&Tcplp, RunError> {
        settings(plan)
    }

    /// How a leaf with this parent sleeps; `None` if no node sleeps.
    pub fn sleep_under(&self, parent: usize) -> Option<Sleep> {
        let base = self.sleep?;
        let tcplp = Sleep::tcplp(Address::node(parent as u16));
        Some(Sleep {
            base,
            short: tcplp.short.min(base),
            growth: if self.variant == Variant::Improved {
                2
            } else {
                tcplp.growth
            },
            ..tcplp
        })
    }

    /// The pause of a source after each of its frames, in a tree of this depth.
    pub fn pace(&self, depth: usize) -> Duration {
        if !self.paced {
            return Duration::ZERO;
        }
        let mac = &self.mac;
        let lead = mac.load + mac.unit_backoff * 7 / 2 + mac.cca_time + mac.turnaround;
        let frame = lead + exchange(PSDU_MAX, mac);
        lowpan::Config::pace_over(depth.min(255) as u8, frame, lead)
    }

    fn form(&self) -> Form {
        Form {
            mac: self.mac,
            contexts: if self.contexts { &CONTEXTS } else { &[] },
            ecn: self.tcp.ecn,
            headers: self.short,
            ..Form::TCPLP
        }
    }

    /// Octets of TCP's options in each segment.
    fn options(&self) -> usize {
        if self.tcp.timestamps { 12 } else { 0 }
    }

    /// Octets of the frames of a segment without data.
    fn acknowledgement(&self) -> Vec<usize> {
        self.form().octets(20 + self.options())
    }

    /// Octets of the shortest frame that carries TCP: no packet takes less.
    pub(super) fn least_frame(&self) -> usize {
        self.acknowledgement().into_iter().min().unwrap_or(0)
    }

    /// The upper bound of goodput over `hops` hops for any channel access, in bits of the object per second: [`on_the_air`]
    /// with these segments and one ACK per window.
    pub fn bound_bps(&self, hops: usize) -> f64 {
        let frames = self.form().octets(20 + usize::from(self.tcp.mss));
        let ack = self.acknowledgement();
        let sum = |octets: &[usize]| octets.iter().sum::<usize>() as f64;
        let segments = Segments {
            // The mean suffices, since a frame's time is linear in its octets.
            frames: sum(&frames) / frames.len().max(1) as f64,
            count: frames.len() as f64,
            payload: usize::from(self.tcp.mss).saturating_sub(self.options()) as f64,
            each: self.window.max(self.tcp.ack_every.into()) as f64,
            ack: sum(&ack),
        };
        let frame = Frame::dot15d4(self.mac.load.as_secs_f64());
        on_the_air(&frame, &segments, hops)
    }
}

/// The shortest interval of data requests. A leaf with a shorter one would never sleep.
const SLEEP_LEAST: Duration = Duration::from_millis(20);

/// The time of a frame of `octets` (check sequence included) and its acknowledgement of 5 octets.
pub(super) fn exchange(octets: usize, mac: &dot15d4::Config) -> Duration {
    let mode = dot15d4::Config::MODE;
    mode.airtime(octets) + mac.turnaround + mode.airtime(3 + FCS_LEN)
}

fn within(
    checked: &CheckedScenario<'_>,
    value: &Located<usize>,
    range: std::ops::RangeInclusive<usize>,
    what: &str,
) -> Result<usize, InputError> {
    if range.contains(&**value) {
        return Ok(**value);
    }
    let message = format!("{} {what}", **value);
    let error = checked.check.at(value, "out of range", message);
    Err(error.help(format!("{} to {}", range.start(), range.end())))
}

fn span(
    checked: &CheckedScenario<'_>,
    time: &Located<chappe_scenario::quantity::Time>,
    most: f64,
) -> Result<Duration, InputError> {
    if time.value() > most {
        let message = format!("{} is too long", **time);
        let error = checked.check.at(time, "out of range", message);
        return Err(error.help(format!("at most {most} s")));
    }
    checked.check.time(time)
}

/// The readings, if `every` is given. `reading` and `batch` need it.
fn sensing(checked: &CheckedScenario<'_>) -> Result<Option<Sensing>, InputError> {
    let (protocol, check) = (checked.keys::<TcplpKeys>(), checked.check);
    let Some(every) = &protocol.every else {
        let lonely = span_of(&protocol.reading).or(span_of(&protocol.batch));
        return match lonely {
            None => Ok(None),
            Some(place) => {
                let message = "`every` says how often readings are made, and it is missing";
                Err(check
                    .error(place, "no use alone", message)
                    .help("add every = \"1 s\""))
            }
        };
    };
    let every_span = span(checked, every, 86_400.0)?;
    if every_span < Duration::from_millis(1) {
        let message = format!("{} is too short an interval for readings", **every);
        return Err(check.at(every, "too often", message).help("1 ms or more"));
    }
    let octets = protocol
        .reading
        .as_ref()
        .map_or(READING, |reading| reading.value() as usize);
    if let Some(reading) = protocol
        .reading
        .as_ref()
        .filter(|_| !(1..=1 << 20).contains(&octets))
    {
        let message = format!("a reading of {}", **reading);
        return Err(check
            .at(reading, "out of range", message)
            .help("1 B to 1 MiB"));
    }
    let batch = match &protocol.batch {
        Some(batch) => within(checked, batch, 1..=1_000_000, "readings in a batch")?,
        None => 1,
    };
    Ok(Some(Sensing {
        octets,
        every: every_span,
        batch,
    }))
}

/// Octets of a reading (paper 8.2).
const READING: usize = 82;

/// Refuses scenarios in which a host needs more than [`SOCKETS`] sockets.
fn ends(checked: &CheckedScenario<'_>) -> Result<(), InputError> {
    let mut taken = std::collections::BTreeMap::<usize, usize>::new();
    for transfer in &checked.scenario.transfer {
        let receivers = &transfer.receivers;
        let source = transfer.source.as_ref().map(|source| **source);
        let (named, count) = match &**receivers {
            Receivers::Nodes(nodes) => (&nodes[..], nodes.len()),
            Receivers::Count(count) => (&[][..], *count),
        };
        let mut full = count > SOCKETS;
        for node in named.iter().copied() {
            let taken = taken.entry(node).or_default();
            *taken += 1;
            full |= *taken > SOCKETS;
        }
        if let Some(source) = source {
            let taken = taken.entry(source).or_default();
            *taken += count;
            full |= *taken > SOCKETS;
        }
        if full {
            let message = format!("a node has at most {SOCKETS} connections");
            let error = checked.check.at(receivers, "one too many", message);
            return Err(
                error.help("spread the transfers over more nodes, or over several scenarios")
            );
        }
    }
    Ok(())
}

impl Settings for Tcplp {
    fn variant(&self) -> &'static scenario::Variant {
        self.variant.row()
    }

    fn label(&self) -> String {
        format!(
            "{} (802.15.4, 250 kbit/s; segments of {} frames, {} in flight)",
            self.variant.label(),
            self.segment_frames,
            self.window
        )
    }

    fn frame(&self) -> (Mode, usize) {
        (dot15d4::Config::MODE, PSDU_MAX)
    }

    /// A segment is lost if one of its frames and all their further attempts are.
    fn unrepaired(&self, frame_loss: f64) -> f64 {
        let lost = frame_loss.powi(1 + i32::from(self.mac.retries));
        1.0 - (1.0 - lost).powi(self.segment_frames as i32)
    }

    /// Packets go along the tree.
    fn links(&self, nodes: usize, delivery: &[f64]) -> Option<Vec<(usize, usize)>> {
        let parents = tree(nodes, delivery);
        let parents = parents.into_iter().enumerate();
        Some(parents.filter_map(|(node, up)| Some((node, up?))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's segment of five frames with addresses in line has 462 octets of payload besides timestamps.
    #[test]
    fn segments_fill_their_frames() {
        let (in_line, contexts, short) = ((false, false), (true, false), (true, true));
        assert_eq!(mss(5, 116, in_line), 474);
        assert_eq!(mss(5, 116, contexts), 498);
        assert!(mss(5, 116, short) >= mss(5, 116, contexts) + 16);
        assert_eq!(mss(1, 116, in_line), 60);
        assert_eq!(mss(FRAMES_MAX, 116, contexts), 1220);
        for frames in 2..FRAMES_MAX {
            assert!(mss(frames, 116, short) > mss(frames - 1, 116, short));
        }
    }

    /// Over one hop the sender's load and back-off limit goodput, over three hops the medium does. Shorter headers raise the
    /// bound.
    #[test]
    fn bounds_follow_segments_and_hops() {
        let paper = Tcplp::paper(Variant::Paper);
        let (one, three) = (paper.bound_bps(1), paper.bound_bps(3));
        assert!((95e3..110e3).contains(&one), "{one}");
        assert!(three < one / 1.9 && three > one / 3.0, "{three}");
        assert!(Tcplp::paper(Variant::Improved).bound_bps(1) > one);
    }
}
