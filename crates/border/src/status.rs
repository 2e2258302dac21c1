//! The status of a border router and its network, as text and as JSON. SI units, stated in the names.

use std::collections::BTreeMap;
use std::fmt::Write;

use chappe_core::Instant;
use chappe_sim::Recorder;
use serde::Serialize;

use crate::daemon::{Border, LATENESS_LIMIT};
use crate::gateway::GatewayCounters;

/// A snapshot of the border router and its network.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Seconds since the network was started.
    pub seconds: f64,
    /// Packets between kernel and mesh.
    pub gateway: GatewayCounters,
    /// The lateness of the event loop.
    pub lateness: Late,
    /// One entry for each node, by number.
    pub nodes: Vec<NodeStatus>,
    /// Frames on the air.
    pub frames: u64,
    /// Frames lost at receivers, by reason.
    pub lost: BTreeMap<String, u64>,
}

/// The lateness of the event loop: from when an event was due on the air until the kernel had the resulting packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Late {
    /// Whether the 99th percentile is within the limit. Otherwise speeds and delays are not valid.
    pub valid: bool,
    /// The number of turns measured.
    pub turns: u64,
    /// The median in seconds.
    pub p50_s: f64,
    /// The 99th percentile in seconds.
    pub p99_s: f64,
    /// The maximum in seconds.
    pub max_s: f64,
    /// The limit of the 99th percentile: [`LATENESS_LIMIT`](crate::LATENESS_LIMIT).
    pub limit_p99_s: f64,
}

/// The status of one node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// The number of the node in the scenario.
    pub node: usize,
    /// Its IPv6 address as text.
    pub address: String,
    /// Hops to the border; null if the node is cut off.
    pub hops: Option<usize>,
    /// The next hop towards the border.
    pub parent: Option<usize>,
    /// The radio's duty cycle, 0 to 1.
    pub radio_duty: f64,
    /// Data frames sent, retransmissions by the MAC included.
    pub data_frames: u64,
    /// Of `data_frames`, the retransmissions.
    pub retries: u64,
    /// Frames that the MAC gave up after all attempts.
    pub failed: u64,
    /// Frames forwarded for other nodes.
    pub forwarded: u32,
    /// Forwarded packets that RED marked CE.
    pub marked: u32,
    /// Losses of the 6LoWPAN interface, for all reasons.
    pub lost: u64,
    /// Requests answered by HTTP and CoAP.
    pub requests: u32,
    /// Octets that the sinks discarded.
    pub sunk_bytes: u64,
    /// Lines that it reported as a client ([`Network::reports`](crate::Network::reports)).
    pub reported_lines: u32,
    /// Connections that are open.
    pub open: u32,
    /// TCP retransmissions on the present connections.
    pub retransmits: u64,
    /// Packets that the host dropped: malformed, for closed ports, pings too large to answer.
    pub dropped: u32,
    /// Of `dropped`, the pings with more than 64 octets, which the mote refuses.
    pub large_pings: u32,
    /// SYNs answered by a cookie, since all sockets were half-open.
    pub cookies: u32,
}

impl Status {
    /// The present status of a border.
    pub fn of<R: Recorder>(border: &Border<R>) -> Status {
        let now = border.clock().now();
        let lateness = border.lateness();
        let air = border.air();
        let gateway = border.station(border.network().border).gateway();
        let lost = air.lost.iter().filter(|(_, count)| *count > 0);
        Status {
            seconds: now.as_secs_f64(),
            gateway: gateway
                .map(|gateway| *gateway.counters())
                .unwrap_or_default(),
            lateness: Late {
                valid: lateness.quantile(0.99) <= LATENESS_LIMIT,
                turns: lateness.samples(),
                p50_s: lateness.quantile(0.5).as_secs_f64(),
                p99_s: lateness.quantile(0.99).as_secs_f64(),
                max_s: lateness.max().as_secs_f64(),
                limit_p99_s: LATENESS_LIMIT.as_secs_f64(),
            },
            nodes: (0..border.network().nodes())
                .map(|node| self::node(border, node, now))
                .collect(),
            frames: air.frames,
            lost: lost.map(|(why, count)| (why.to_string(), count)).collect(),
        }
    }

    /// One line, for a terminal that rewrites it.
    pub fn line(&self) -> String {
        let sum = |of: fn(&NodeStatus) -> u64| self.nodes.iter().map(of).sum::<u64>();
        let (frames, retries) = (sum(|node| node.data_frames), sum(|node| node.retries));
        let open = sum(|node| node.open.into());
        format!(
            "{:.0} s  in {} packets, out {}  {frames} frames, {:.0} % again  {open} connections  late {:.1} ms (99 %)",
            self.seconds,
            self.gateway.to_mesh,
            self.gateway.to_kernel,
            retries as f64 * 100.0 / frames.max(1) as f64,
            self.lateness.p99_s * 1e3,
        )
    }

    /// Several lines, for the end of a run.
    pub fn text(&self) -> String {
        let gateway = &self.gateway;
        let lost = [
            ("queue full", gateway.queue_full),
            ("early", gateway.early),
            ("kernel full", gateway.kernel_full),
            ("malformed", gateway.malformed),
            ("not forwarded", gateway.not_forwarded),
            ("refused", gateway.refused),
        ];
        let mut why = String::new();
        for (what, count) in lost.into_iter().filter(|(_, count)| *count > 0) {
            let comma = if why.is_empty() { ": " } else { ", " };
            let _ = write!(why, "{comma}{count} {what}");
        }
        let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
        let mut text = format!(
            "{:.1} s: {} packets ({} B) into the mesh, {} ({} B) out of it{why}\n",
            self.seconds,
            gateway.to_mesh,
            gateway.bytes_to_mesh,
            gateway.to_kernel,
            gateway.bytes_to_kernel,
        );
        for node in &self.nodes {
            let _ = writeln!(
                text,
                "n{}: radio on {:.1} %, {} data frames ({} again, {} given up), {} passed on, {} requests, {} B taken",
                node.node,
                node.radio_duty * 100.0,
                node.data_frames,
                node.retries,
                node.failed,
                node.forwarded,
                node.requests,
                node.sunk_bytes,
            );
        }
        let late = &self.lateness;
        let _ = writeln!(
            text,
            "lateness: half under {}, 99 % under {}, at most {} ({} turns)",
            ms(late.p50_s),
            ms(late.p99_s),
            ms(late.max_s),
            late.turns
        );
        text
    }

    /// Why speeds and delays of the run are not valid; `None` if they are.
    pub fn verdict(&self) -> Option<String> {
        (!self.lateness.valid).then(|| {
            format!(
                "the simulated radios were late: 99 % of the turns took up to {:.2} ms, the limit is {:.0} ms, so speeds and delays are not valid",
                self.lateness.p99_s * 1e3,
                self.lateness.limit_p99_s * 1e3
            )
        })
    }
}

fn node<R: Recorder>(border: &Border<R>, node: usize, now: Instant) -> NodeStatus {
    let (network, station) = (border.network(), border.station(node));
    let path = network.path(node);
    let (mac, (lowpan, losses)) = (station.mac(), station.lowpan());
    let host = station.host();
    let served = host.map(|host| host.app().served()).unwrap_or_default();
    let counters = host.map(|host| *host.counters()).unwrap_or_default();
    let retransmits = host.map_or(0, |host| {
        let all = host.sockets().iter();
        all.map(|socket| u64::from(socket.info().counters.retransmits))
            .sum()
    });
    NodeStatus {
        node,
        address: network.address(node).to_string(),
        hops: path.as_ref().map(|path| path.len() - 1),
        parent: network.parents.get(node).copied().flatten(),
        radio_duty: station.radio_on(now).as_secs_f64() / now.as_secs_f64().max(1e-9),
        data_frames: mac.data_sent,
        retries: mac.retries,
        failed: mac.failed,
        forwarded: lowpan.frames_forwarded,
        marked: lowpan.marked,
        lost: losses.total().into(),
        requests: served.requests,
        sunk_bytes: served.sunk,
        reported_lines: served.lines,
        open: served.open,
        retransmits,
        dropped: counters.dropped,
        large_pings: counters.large_pings,
        cookies: counters.cookies,
    }
}
