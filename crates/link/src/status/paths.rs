//! The status of the paths to a peer.

use std::fmt::Write;

use chappe_core::Instant;

use super::{PeerStatus, gauge_of, quoted, write_gauges, write_texts};
use crate::peer::{Peer, State};

/// A snapshot of one path to a peer.
#[derive(Clone, Debug)]
pub struct PathStatus {
    /// The name of the path in the file.
    pub name: String,
    /// The state of its session.
    pub state: State,
    /// Where the peer was heard last on it, or is called.
    pub endpoint: Option<String>,
    /// The interface that it is bound to.
    pub interface: Option<String>,
    /// Whether it is used only while no other path works.
    pub reserve: bool,
    /// Whether it carries packets at present.
    pub used: bool,
    /// Gauges: name in JSON, and value in the unit at the end of the name; NaN if it is unknown.
    pub gauges: Vec<(&'static str, f64)>,
    /// Octets sent on it, with the headers of the layers below.
    pub octets_sent: u64,
    /// Datagrams received on it.
    pub datagrams_received: u64,
}

impl PathStatus {
    /// The paths of a peer.
    pub(super) fn all(peer: &Peer, now: Instant) -> Vec<PathStatus> {
        let paths = (0..peer.paths()).filter_map(|path| Some((path, peer.path(path)?)));
        paths
            .map(|(path, config)| {
                let report = peer.link().report_of(path);
                let round_trip = report.rtt.map_or([f64::NAN; 2], |(smoothed, least)| {
                    [smoothed, least].map(|span| span.as_secs_f64())
                });
                let (octets_sent, datagrams_received) = peer.path_traffic(path);
                let up = peer.state_of(now, path) == State::Up;
                PathStatus {
                    name: config.name.clone(),
                    state: peer.state_of(now, path),
                    endpoint: peer.endpoint_of(path).map(|at| at.to_string()),
                    interface: config.interface.clone(),
                    reserve: config.reserve,
                    used: up && peer.is_used(now, path),
                    gauges: vec![
                        ("round_trip_s", round_trip[0]),
                        ("round_trip_least_s", round_trip[1]),
                        ("loss_out_ratio", report.channel.loss),
                        ("loss_in_ratio", report.incoming.loss),
                        ("pace_bps", peer.rate_of(path).0 as f64),
                        ("cost_s", config.cost.as_secs_f64()),
                    ],
                    octets_sent,
                    datagrams_received,
                }
            })
            .collect()
    }

    /// A gauge by its name in JSON; NaN if it is unknown.
    pub fn gauge(&self, key: &str) -> f64 {
        gauge_of(&self.gauges, key)
    }

    /// How it is used, as one word.
    fn usage(&self) -> &'static str {
        match (self.used, self.reserve) {
            (true, _) => "used",
            (false, true) => "reserve",
            (false, false) => "unused",
        }
    }

    /// One line for the terminal.
    pub(super) fn line(&self) -> String {
        let round_trip = match self.gauge("round_trip_s") {
            seconds if seconds.is_finite() => format!("{:.1} ms", seconds * 1e3),
            _ => "no round trip yet".to_owned(),
        };
        format!(
            "{}: {}, {}, {:.2} Mbit/s, {:.1} % lost out, {round_trip}",
            self.name,
            self.state.name(),
            self.usage(),
            self.gauge("pace_bps") / 1e6,
            self.gauge("loss_out_ratio") * 100.0,
        )
    }

    pub(super) fn json(&self) -> String {
        let mut text = format!(
            "{{\"path\":{},\"state\":\"{}\",\"used\":{},\"reserve\":{}",
            quoted(&self.name),
            self.state.name(),
            self.used,
            self.reserve
        );
        let texts = [
            ("endpoint", self.endpoint.as_deref()),
            ("interface", self.interface.as_deref()),
        ];
        write_texts(&mut text, &texts);
        write_gauges(&mut text, &self.gauges);
        let _ = write!(
            text,
            ",\"octets_sent\":{},\"datagrams_received\":{}}}",
            self.octets_sent, self.datagrams_received
        );
        text
    }
}

impl PeerStatus {
    /// The paths as a table below that of the peers.
    pub(super) fn path_table(&self) -> String {
        let mut text = format!(
            "\n{:<16} {:<8} {:<8} {:<28} {:>9} {:>13} {:>12} {:>12}\n",
            format!("path to {}", self.name),
            "state",
            "use",
            "endpoint",
            "rtt",
            "loss out/in",
            "rate",
            "sent"
        );
        for path in &self.paths {
            let of = |key: &str, factor: f64, digits: usize| match path.gauge(key) * factor {
                value if value.is_finite() => format!("{value:.digits$}"),
                _ => "-".to_owned(),
            };
            let _ = writeln!(
                text,
                "{:<16} {:<8} {:<8} {:<28} {:>9} {:>13} {:>12} {:>12}",
                path.name,
                path.state.name(),
                path.usage(),
                path.endpoint.as_deref().unwrap_or("-"),
                of("round_trip_s", 1e3, 1) + " ms",
                format!(
                    "{}/{} %",
                    of("loss_out_ratio", 100.0, 1),
                    of("loss_in_ratio", 100.0, 1)
                ),
                of("pace_bps", 1e-6, 2) + " Mbit/s",
                format!("{:.2} MB", path.octets_sent as f64 / 1e6),
            );
        }
        text
    }
}
