//! The report of an emulation, as text and as JSON.

use std::collections::BTreeMap;

use chappe_core::{Address, Instant};
use chappe_emu::{BridgeCounters, INTERFACE, Lateness};
use chappe_figures::table::{Table, count};
use chappe_lab_emu::Emulation;
use serde::Serialize;

use super::running::Running;
use crate::terminal::{self, Stream};

/// The report, in the layout of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    chappe: &'static str,
    scenario: String,
    seed: u64,
    seconds: f64,
    mtu: usize,
    /// Exit code of the program, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    lateness: Late,
    nodes: Vec<Node>,
    air: Air,
}

/// Delay from the due time of an event on the air until the hosts have its results.
#[derive(Clone, Copy, Debug, Serialize)]
struct Late {
    valid: bool,
    turns: u64,
    p50_s: f64,
    p99_s: f64,
    max_s: f64,
    /// Time beyond the limit, summed over all turns.
    behind_s: f64,
    limit_p99_s: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Node {
    node: usize,
    address: String,
    hardware: String,
    frames_from_host: u64,
    frames_to_host: u64,
    bytes_to_host: u64,
    acknowledged: u64,
    given_up: u64,
    broadcasts: u64,
    retries: u64,
    airtime_s: f64,
    lost: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug, Serialize)]
struct Air {
    frames: u64,
    receptions: u64,
    lost: BTreeMap<String, u64>,
}

impl Report {
    pub fn of(emulation: &Emulation, emulator: &mut Running, exit_code: Option<u8>) -> Report {
        let bridges = emulator.bridges();
        let node = |(node, bridge): (usize, &BridgeCounters)| {
            self::node(emulation, emulator, node, bridge)
        };
        let nodes = bridges.iter().enumerate().map(node).collect();
        let air = emulator.air();
        let lost = air.lost.iter().filter(|(_, count)| *count > 0);
        Report {
            chappe: env!("CARGO_PKG_VERSION"),
            scenario: emulation.title.clone(),
            seed: emulation.seed,
            seconds: emulator.clock().now().as_secs_f64(),
            mtu: emulation.mtu,
            exit_code,
            lateness: Late::of(emulator.lateness(), emulator.clock().now()),
            nodes,
            air: Air {
                frames: air.frames,
                receptions: air.receptions,
                lost: lost.map(|(why, count)| (why.to_string(), count)).collect(),
            },
        }
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The report as a few lines of text.
    pub fn text(&self) -> String {
        let sum = |of: fn(&Node) -> u64| self.nodes.iter().map(of).sum::<u64>();
        let full = |lost: &Node| lost.lost.values().sum();
        let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
        format!(
            "{:.1} s: {} frames on the air ({} retries), {} packets to hosts, {} given up by the MAC, {} lost above it\n\
             lateness: half under {}, 99 % under {}, at most {} ({} turns)\n",
            self.seconds,
            count(self.air.frames as f64),
            count(sum(|node| node.retries) as f64),
            count(sum(|node| node.frames_to_host) as f64),
            count(sum(|node| node.given_up) as f64),
            count(sum(full) as f64),
            ms(self.lateness.p50_s),
            ms(self.lateness.p99_s),
            ms(self.lateness.max_s),
            count(self.lateness.turns as f64),
        )
    }

    /// The 99th percentile of the lateness in seconds, and whether it is within the limits.
    pub fn lateness(&self) -> (f64, bool) {
        (self.lateness.p99_s, self.lateness.valid)
    }

    /// Frames that were dropped at a full queue.
    pub fn queue_full(&self) -> u64 {
        let full = |node: &Node| node.lost.get("queue_full").copied().unwrap_or(0);
        self.nodes.iter().map(full).sum()
    }

    /// Why the results are not valid, if they are not.
    pub fn verdict(&self) -> Option<String> {
        let late = &self.lateness;
        let limit = late.limit_p99_s * 1e3;
        (!late.valid).then(|| {
            format!(
                "the emulator was late: 99 % of its turns took up to {:.2} ms, where {limit:.0} ms are the limit, and it was \
                 later than that for {:.0} ms of {:.1} s, where {:.0} % are the limit, so these results are not valid",
                late.p99_s * 1e3,
                late.behind_s * 1e3,
                self.seconds,
                Lateness::SHARE * 100.0,
            )
        })
    }
}

impl Late {
    fn of(lateness: &Lateness, now: Instant) -> Late {
        Late {
            valid: lateness.is_valid(now.saturating_since(Instant::ZERO)),
            turns: lateness.samples(),
            p50_s: lateness.quantile(0.5).as_secs_f64(),
            p99_s: lateness.quantile(0.99).as_secs_f64(),
            max_s: lateness.max().as_secs_f64(),
            behind_s: lateness.behind().as_secs_f64(),
            limit_p99_s: Lateness::LIMIT.as_secs_f64(),
        }
    }
}

fn node(emulation: &Emulation, emulator: &Running, node: usize, bridge: &BridgeCounters) -> Node {
    let lost = bridge.lost;
    let lost = [
        ("queue_full", lost.queue_full),
        ("strange", lost.strange),
        ("too_long", lost.too_long),
        ("malformed", lost.malformed),
        ("host_full", lost.host_full),
    ];
    let air = emulator.air().nodes.get(node).copied().unwrap_or_default();
    Node {
        node,
        address: emulation.ipv4(node).to_string(),
        hardware: hardware(node),
        frames_from_host: bridge.from_host,
        frames_to_host: bridge.to_host,
        bytes_to_host: bridge.octets_to_host,
        acknowledged: bridge.acknowledged,
        given_up: bridge.given_up,
        broadcasts: bridge.unconfirmed,
        retries: emulator.station(node).mac.counters().retries,
        airtime_s: air.airtime.as_secs_f64(),
        lost: lost.into_iter().collect(),
    }
}

fn hardware(node: usize) -> String {
    let octets = Address::node(node as u16).to_eui48();
    octets.map(|octet| format!("{octet:02x}")).join(":")
}

/// The table of nodes: address, neighbours with delivery ratios, and a command to run a program there.
pub fn places(emulation: &Emulation, pid: u32) -> String {
    let mut table = Table::new()
        .words("node")
        .words("address")
        .words("hardware")
        .words("neighbours (delivery ratio)")
        .words("run a program there");
    for node in 0..emulation.nodes() {
        let neighbours = emulation.neighbours(node);
        let neighbours = neighbours.map(|(to, prr)| format!("n{to} {prr:.2}"));
        table.row([
            format!("n{node}"),
            emulation.ipv4(node).to_string(),
            hardware(node),
            neighbours.collect::<Vec<_>>().join("  "),
            format!("chappe emu exec {node} -- COMMAND"),
        ]);
    }
    let table = table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    format!(
        "{}\n{} nodes, seed {}, process {pid}; interface {INTERFACE}, MTU {}\n\n{table}",
        emulation.title,
        emulation.nodes(),
        emulation.seed,
        emulation.mtu,
    )
}
