//! How each peer does: as text for people, JSON for programs, metrics for Prometheus.

use std::fmt::Write;

use chappe_core::{Drop, Duration, Instant};

use crate::peer::{Peer, State};
use crate::tunnel::Tunnel;

/// Metres that light goes in a second.
const LIGHT: f64 = 299_792_458.0;

/// One moment of a tunnel.
#[derive(Clone, Debug)]
pub struct Status {
    /// The TUN device.
    pub device: String,
    /// Its MTU.
    pub mtu: usize,
    /// What belongs to no peer: name and count.
    pub strangers: Vec<(&'static str, u64)>,
    /// The peers.
    pub peers: Vec<PeerStatus>,
}

/// One moment of a peer.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Its name.
    pub name: String,
    /// How things stand.
    pub state: State,
    /// The last thing that went wrong, and what to do.
    pub trouble: Option<String>,
    /// Values that go up and down: name, what it is, value in SI units or shares.
    pub gauges: Vec<(&'static str, &'static str, f64)>,
    /// Values that only go up.
    pub counters: Vec<(&'static str, u64)>,
}

impl State {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Calling => "calling",
            State::Up => "up",
            State::Silent => "silent",
            State::Deaf => "deaf",
        }
    }
}

impl Status {
    /// The tunnel now.
    pub fn of(tunnel: &Tunnel, now: Instant) -> Status {
        let strangers = tunnel.strangers();
        Status {
            device: tunnel.device().to_owned(),
            mtu: tunnel.mtu(),
            strangers: vec![
                ("stranger_datagrams", strangers.datagrams),
                ("unrouted_packets", strangers.unrouted),
                ("not_ip_packets", strangers.not_ip),
                ("socket_full", strangers.socket_full),
                ("refused_datagrams", strangers.refused),
                ("loop_rounds", tunnel.rounds()),
            ],
            peers: tunnel
                .peers()
                .iter()
                .map(|peer| PeerStatus::of(peer, now))
                .collect(),
        }
    }

    /// One JSON document.
    pub fn json(&self) -> String {
        let mut text = format!("{{\"device\":{},\"mtu\":{}", quoted(&self.device), self.mtu);
        for (name, count) in &self.strangers {
            let _ = write!(text, ",\"{name}\":{count}");
        }
        let peers: Vec<String> = self.peers.iter().map(PeerStatus::json).collect();
        let _ = write!(text, ",\"peers\":[{}]}}", peers.join(","));
        text
    }

    /// Prometheus' text format, version 0.0.4.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        for (name, count) in &self.strangers {
            let _ = writeln!(
                text,
                "# TYPE chappe_link_{name}_total counter\nchappe_link_{name}_total {count}"
            );
        }
        let Some(first) = self.peers.first() else {
            return text;
        };
        for (place, (name, what, _)) in first.gauges.iter().enumerate() {
            let _ = writeln!(
                text,
                "# HELP chappe_link_{name} {what}\n# TYPE chappe_link_{name} gauge"
            );
            for peer in &self.peers {
                let value = peer.gauges.get(place).map_or(f64::NAN, |gauge| gauge.2);
                let _ = writeln!(
                    text,
                    "chappe_link_{name}{{peer={}}} {value}",
                    quoted(&peer.name)
                );
            }
        }
        for (place, (name, _)) in first.counters.iter().enumerate() {
            let _ = writeln!(text, "# TYPE chappe_link_{name}_total counter");
            for peer in &self.peers {
                let count = peer.counters.get(place).map_or(0, |counter| counter.1);
                let _ = writeln!(
                    text,
                    "chappe_link_{name}_total{{peer={}}} {count}",
                    quoted(&peer.name)
                );
            }
        }
        text
    }

    /// A few lines for people.
    pub fn text(&self) -> String {
        let mut text = format!("{}, MTU {}\n", self.device, self.mtu);
        for peer in &self.peers {
            let gauge = |name: &str| {
                peer.gauges
                    .iter()
                    .find(|gauge| gauge.0 == name)
                    .map_or(0.0, |gauge| gauge.2)
            };
            let percent = |name: &str| gauge(name) * 100.0;
            // Nothing has come back yet where it is not known.
            let or_dash = |name: &str, scale: f64, unit: &str| match gauge(name) {
                value if value.is_nan() => "-".to_owned(),
                value => format!("{:.1} {unit}", value * scale),
            };
            let mbit = |name: &str| gauge(name) / 1e6;
            let _ = writeln!(text, "\n  {}: {}", peer.name, peer.state.name());
            let _ = writeln!(
                text,
                "    goodput     {:.2} Mbit/s out, {:.2} in; the path out carries {:.2} at most ({:.2}, less its losses); {:.0} packets wait",
                mbit("goodput_out_bits_per_second"),
                mbit("goodput_in_bits_per_second"),
                mbit("bound_bits_per_second"),
                mbit("pace_bits_per_second"),
                gauge("queued_packets"),
            );
            let _ = writeln!(
                text,
                "    losses      {:.1} % out in runs of {:.1} frames, {:.1} % in; of all packets {:.2} % were late or lost in spite of it",
                percent("loss_out_ratio"),
                gauge("burst_out_frames"),
                percent("loss_in_ratio"),
                percent("residual_ratio"),
            );
            let _ = writeln!(
                text,
                "    overhead    {:.1} % of frames repeat or repair; no code needs less than {:.1} % for these losses",
                percent("overhead_ratio"),
                percent("overhead_bound_ratio"),
            );
            let _ = writeln!(
                text,
                "    round trip  {}, {} at least: the peer is no farther than {}",
                or_dash("round_trip_seconds", 1e3, "ms"),
                or_dash("round_trip_least_seconds", 1e3, "ms"),
                or_dash("distance_most_metres", 1e-3, "km"),
            );
            if let Some(trouble) = &peer.trouble {
                let _ = writeln!(text, "    {trouble}");
            }
        }
        text
    }
}

impl PeerStatus {
    fn of(peer: &Peer, now: Instant) -> PeerStatus {
        let (link, own) = (peer.link(), peer.counters());
        let (report, counters) = (link.report(), link.counters());
        let seconds = |span: Option<Duration>| span.map_or(f64::NAN, Duration::as_secs_f64);
        let state = peer.state(now);
        let trouble = match state {
            State::Deaf => Some(format!(
                "frames of {} come, but it reports none of ours: our direction is dead (a firewall, a route, or its receiver)",
                peer.config().name
            )),
            State::Silent => Some(format!(
                "nothing has come from {} for a while; it is being called",
                peer.config().name
            )),
            State::Waiting => Some(format!(
                "{} has no address here and has not said hello yet",
                peer.config().name
            )),
            State::Calling | State::Up => None,
        };
        PeerStatus {
            name: peer.config().name.clone(),
            state,
            trouble: peer.trouble().map(str::to_owned).or(trouble),
            gauges: vec![
                (
                    "up",
                    "Whether there is a session and frames come",
                    f64::from(u8::from(state == State::Up)),
                ),
                (
                    "loss_out_ratio",
                    "Share of frames to the peer that are lost",
                    report.channel.loss,
                ),
                (
                    "loss_in_ratio",
                    "Share of frames from the peer that are lost",
                    report.incoming.loss,
                ),
                (
                    "burst_out_frames",
                    "Mean run of losses to the peer",
                    report.channel.burst,
                ),
                (
                    "burst_in_frames",
                    "Mean run of losses from the peer",
                    report.incoming.burst,
                ),
                (
                    "overhead_ratio",
                    "Repeated and coded frames for each new one",
                    counters.overhead(),
                ),
                (
                    "overhead_bound_ratio",
                    "The least overhead that any code could have now",
                    report.channel.overhead_bound(0.0),
                ),
                (
                    "residual_ratio",
                    "Share of bodies that were late or lost",
                    counters.residual(),
                ),
                (
                    "round_trip_seconds",
                    "Smoothed round trip",
                    seconds(report.rtt.map(|rtt| rtt.0)),
                ),
                (
                    "round_trip_least_seconds",
                    "Least round trip",
                    seconds(report.rtt.map(|rtt| rtt.1)),
                ),
                (
                    "pace_bits_per_second",
                    "Pace of frames, headers included",
                    peer.rate().0 as f64,
                ),
                (
                    "bound_bits_per_second",
                    "What the path carries of it at most: the pace less the losses",
                    peer.rate().0 as f64 * (1.0 - report.channel.loss),
                ),
                (
                    "goodput_out_bits_per_second",
                    "Packets that left for the peer in the latest second",
                    peer.goodput().out,
                ),
                (
                    "goodput_in_bits_per_second",
                    "Packets that came from the peer in the latest second",
                    peer.goodput().back,
                ),
                (
                    "distance_most_metres",
                    "How far the peer can be at most: light in half the least round trip",
                    seconds(report.rtt.map(|rtt| rtt.1)) / 2.0 * LIGHT,
                ),
                ("open_bodies", "Bodies under way", f64::from(report.open)),
                (
                    "queued_packets",
                    "Packets of the host that wait",
                    peer.waiting() as f64,
                ),
                (
                    "held_bodies",
                    "Bodies received that wait for an older one",
                    report.held as f64,
                ),
            ],
            counters: vec![
                ("packets_offered", counters.offered),
                ("packets_refused", counters.refused),
                ("packets_expired", counters.expired),
                ("bodies", counters.bodies),
                ("repeats", counters.repeats),
                ("repairs", counters.repairs),
                ("notes", counters.notes),
                ("delivered", counters.delivered),
                ("late", counters.late),
                ("given_up", counters.given_up),
                ("lost_by_restart", counters.lost_by_restart),
                ("packets_received", counters.packets_received),
                ("recovered", counters.recovered),
                ("peer_restarts", counters.peer_restarts),
                ("duplicates", counters.drops.of(Drop::Duplicate)),
                ("sessions", own.sessions),
                ("forged", own.forged),
                ("replayed", own.repeated),
                ("wrong_key", own.wrong_key),
                ("wrong_version", own.wrong_version),
                ("strange", own.strange),
                ("moved", own.moved),
                ("foreign_source", own.foreign),
                ("not_taken", own.not_taken),
                ("queue_dropped", own.queue_dropped),
                ("unreadable", own.unreadable),
                ("host_full", own.host_full),
                ("datagrams_sent", own.datagrams_sent),
                ("octets_sent", own.octets_sent),
                ("datagrams_received", own.datagrams_received),
                ("octets_delivered", own.octets_delivered),
            ],
        }
    }

    fn json(&self) -> String {
        let mut text = format!(
            "{{\"peer\":{},\"state\":\"{}\"",
            quoted(&self.name),
            self.state.name()
        );
        if let Some(trouble) = &self.trouble {
            let _ = write!(text, ",\"trouble\":{}", quoted(trouble));
        }
        for (name, _, value) in &self.gauges {
            let _ = match value.is_finite() {
                true => write!(text, ",\"{name}\":{value}"),
                false => write!(text, ",\"{name}\":null"),
            };
        }
        for (name, count) in &self.counters {
            let _ = write!(text, ",\"{name}\":{count}");
        }
        text + "}"
    }
}

/// A string of JSON, which is one of Prometheus' labels as well.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            c if c < ' ' => _ = write!(quoted, "\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
