//! The status of a tunnel, as text, as JSON and as Prometheus metrics.

mod paths;
mod prometheus;
mod table;
mod text;

use std::fmt::Write;

use chappe_core::Instant;

use crate::coverage::Judgement;
use crate::peer::{Peer, State};
use crate::tunnel::Tunnel;
pub use paths::PathStatus;
use table::{COUNTERS, Facts, GAUGES};

/// A snapshot of a tunnel.
#[derive(Clone, Debug)]
pub struct Status {
    /// The time on the tunnel's clock.
    pub at: Instant,
    /// The name of the TUN device.
    pub device: String,
    /// The device's MTU in octets.
    pub mtu: usize,
    /// Counters that belong to no peer: name in JSON and value.
    pub unmatched: Vec<(&'static str, u64)>,
    /// The error message of the kernel's last refusal to send.
    pub refusal: Option<String>,
    /// The status of each peer.
    pub peers: Vec<PeerStatus>,
}

/// A snapshot of a peer.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// The configured name of the peer.
    pub name: String,
    /// The state of its session.
    pub state: State,
    /// The present problem, with what to do.
    pub trouble: Option<String>,
    /// Where it was heard last, or is called.
    pub endpoint: Option<String>,
    /// The public key by which it is known.
    pub public: String,
    /// Seconds since the latest handshake.
    pub handshake: Option<f64>,
    /// The egress of its frames, and whether a radio there waits long enough.
    pub coverage: Judgement,
    /// Gauges: name in JSON, and value in the unit at the end of the name; NaN if it is unknown.
    pub gauges: Vec<(&'static str, f64)>,
    /// Counters: name in JSON and value.
    pub counters: Vec<(&'static str, u64)>,
    /// Each of its paths.
    pub paths: Vec<PathStatus>,
}

impl State {
    const ALL: [State; 5] = [
        State::Waiting,
        State::Calling,
        State::Up,
        State::Silent,
        State::Deaf,
    ];

    /// The state as one word, as in JSON.
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
    /// Takes a snapshot of the tunnel.
    pub fn of(tunnel: &Tunnel, now: Instant) -> Status {
        let unmatched = tunnel.unmatched();
        Status {
            at: now,
            device: tunnel.device().to_owned(),
            mtu: tunnel.mtu(),
            unmatched: vec![
                ("stranger_datagrams", unmatched.datagrams),
                ("wrong_key_datagrams", unmatched.wrong_key),
                ("unknown_key_calls", unmatched.unknown_key),
                ("wrong_version_datagrams", unmatched.wrong_version),
                ("held_off_calls", unmatched.held_off),
                ("unrouted_packets", unmatched.unrouted),
                ("not_ip_packets", unmatched.not_ip),
                ("socket_full", unmatched.socket_full),
                ("refused_datagrams", unmatched.refused),
                ("loop_rounds", tunnel.rounds()),
            ],
            refusal: tunnel.last_refusal().map(str::to_owned),
            peers: tunnel
                .judged(now)
                .map(|(peer, coverage, hint)| PeerStatus::of(peer, coverage, hint, now))
                .collect(),
        }
    }

    /// The status as one JSON document on one line.
    pub fn json(&self) -> String {
        let mut text = format!(
            "{{\"at_s\":{:.3},\"device\":{},\"mtu\":{}",
            self.at.as_secs_f64(),
            quoted(&self.device),
            self.mtu
        );
        for (name, count) in &self.unmatched {
            let _ = write!(text, ",\"{name}\":{count}");
        }
        if let Some(refusal) = &self.refusal {
            let _ = write!(text, ",\"refusal\":{}", quoted(refusal));
        }
        let peers: Vec<String> = self.peers.iter().map(PeerStatus::json).collect();
        let _ = write!(text, ",\"peers\":[{}]}}", peers.join(","));
        text
    }
}

impl Status {
    /// The peers as a table, and below it what is wrong.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<16} {:<8} {:<28} {:>9} {:>13} {:>12} {:>15} {:>10}\n",
            "peer",
            "state",
            "endpoint",
            "rtt",
            "loss out/in",
            "rate",
            "goodput out/in",
            "handshake"
        );
        for peer in &self.peers {
            let of = |key: &str, factor: f64, digits: usize| match peer.gauge(key) * factor {
                value if value.is_finite() => format!("{value:.digits$}"),
                _ => "-".to_owned(),
            };
            let handshake = peer
                .handshake
                .map_or("-".into(), |age| format!("{age:.0} s ago"));
            let _ = writeln!(
                text,
                "{:<16} {:<8} {:<28} {:>9} {:>13} {:>12} {:>15} {:>10}",
                peer.name,
                peer.state.name(),
                peer.endpoint.as_deref().unwrap_or("-"),
                of("round_trip_s", 1e3, 1) + " ms",
                format!(
                    "{}/{} %",
                    of("loss_out_ratio", 100.0, 1),
                    of("loss_in_ratio", 100.0, 1)
                ),
                of("pace_bps", 1e-6, 2) + " Mbit/s",
                format!(
                    "{}/{} M",
                    of("goodput_out_bps", 1e-6, 2),
                    of("goodput_in_bps", 1e-6, 2)
                ),
                handshake,
            );
        }
        for peer in &self.peers {
            if peer.paths.len() > 1 {
                text += &peer.path_table();
            }
        }
        for peer in &self.peers {
            if let Some(trouble) = &peer.trouble {
                let _ = writeln!(text, "{}: {trouble}", peer.name);
            }
        }
        text
    }
}

impl PeerStatus {
    fn of(peer: &Peer, coverage: Judgement, hint: Option<String>, now: Instant) -> PeerStatus {
        let facts = Facts {
            peer,
            own: peer.counters(),
            report: peer.report(now),
            link: peer.link().counters(),
            state: peer.state(now),
            coverage: &coverage,
        };
        let name = &peer.config().name;
        let own = match facts.state {
            State::Deaf => Some(format!(
                "frames of {name} arrive, but it reports none of ours: the outgoing direction is dead; check firewall, route, and the other host"
            )),
            State::Silent => Some(format!(
                "nothing has arrived from {name} for a while; calling it"
            )),
            State::Waiting => Some(format!(
                "{name} has no `endpoint` here and has not called yet"
            )),
            State::Calling | State::Up => None,
        };
        // A hint explains the state better than the state itself does.
        let trouble = hint.or_else(|| peer.unproved(now));
        let trouble = trouble.or(peer.trouble().map(str::to_owned)).or(own);
        let trouble = trouble.or_else(|| peer.expiry(now));
        let trouble = trouble.or_else(|| peer.narrowness());
        PeerStatus {
            name: name.clone(),
            state: facts.state,
            trouble,
            endpoint: peer.endpoint().map(|at| at.to_string()),
            public: peer.config().public.to_string(),
            handshake: peer
                .session_since()
                .map(|since| now.saturating_since(since).as_secs_f64()),
            gauges: GAUGES
                .iter()
                .map(|gauge| (gauge.row.key, (gauge.read)(&facts)))
                .collect(),
            counters: COUNTERS
                .iter()
                .map(|counter| (counter.row.key, (counter.read)(&facts)))
                .collect(),
            coverage,
            paths: PathStatus::all(peer, now),
        }
    }

    /// A gauge by its name in JSON; NaN if it is unknown.
    pub fn gauge(&self, key: &str) -> f64 {
        gauge_of(&self.gauges, key)
    }

    /// A counter by its name in JSON; 0 if there is none.
    pub fn counter(&self, key: &str) -> u64 {
        let found = self.counters.iter().find(|counter| counter.0 == key);
        found.map_or(0, |counter| counter.1)
    }

    fn json(&self) -> String {
        let mut text = format!(
            "{{\"peer\":{},\"state\":\"{}\"",
            quoted(&self.name),
            self.state.name()
        );
        let advice = self.coverage.is_bad().then(|| self.coverage.to_string());
        let _ = match self.handshake {
            Some(seconds) => write!(text, ",\"handshake_age_s\":{seconds:.3}"),
            None => write!(text, ",\"handshake_age_s\":null"),
        };
        let texts = [
            ("public_key", Some(&*self.public)),
            ("endpoint", self.endpoint.as_deref()),
            ("trouble", self.trouble.as_deref()),
            ("interface", self.coverage.interface()),
            ("phy", self.coverage.radio().map(|radio| &*radio.phy)),
            ("coverage", Some(self.coverage.verdict().name())),
            ("coverage_advice", advice.as_deref()),
        ];
        write_texts(&mut text, &texts);
        write_gauges(&mut text, &self.gauges);
        for (key, count) in &self.counters {
            let _ = write!(text, ",\"{key}\":{count}");
        }
        let paths: Vec<String> = self.paths.iter().map(PathStatus::json).collect();
        let _ = write!(text, ",\"paths\":[{}]", paths.join(","));
        text + "}"
    }
}

/// Writes members of a JSON object; what is unknown is null.
fn write_texts(text: &mut String, members: &[(&str, Option<&str>)]) {
    for (key, value) in members {
        let _ = match value {
            Some(value) => write!(text, ",\"{key}\":{}", quoted(value)),
            None => write!(text, ",\"{key}\":null"),
        };
    }
}

/// Writes gauges as members of a JSON object; what is unknown is null.
fn write_gauges(text: &mut String, gauges: &[(&'static str, f64)]) {
    for (key, value) in gauges {
        let _ = match value.is_finite() {
            true => write!(text, ",\"{key}\":{value}"),
            false => write!(text, ",\"{key}\":null"),
        };
    }
}

/// A gauge by its name in JSON; NaN if it is unknown.
fn gauge_of(gauges: &[(&'static str, f64)], key: &str) -> f64 {
    let found = gauges.iter().find(|gauge| gauge.0 == key);
    found.map_or(f64::NAN, |gauge| gauge.1)
}

/// Quotes and escapes a JSON string.
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Goal: docs/link.md lists every key of the JSON document. Method: the first column of its tables.
    #[test]
    fn the_page_lists_all_keys() {
        let page = include_str!("../../../docs/link.md");
        let listed = |key: &str| page.contains(&format!("| `{key}` |"));
        let keys = GAUGES.iter().map(|gauge| gauge.row.key);
        for key in keys.chain(COUNTERS.iter().map(|counter| counter.row.key)) {
            assert!(listed(key), "docs/link.md does not list `{key}`");
        }
    }

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}"), "\"a\\\"b\\\\c\\nd\\u0001\"");
    }
}
