//! Prometheus' text format, version 0.0.4.

use std::fmt::Write;

use super::table::{COUNTERS, GAUGES, Row, UNMATCHED};
use super::{PathStatus, PeerStatus, Status};
use crate::peer::State;

impl Status {
    /// All values in Prometheus' text format. Unknown values are omitted. Each sample is labelled with the device, so that one
    /// collector can read the files of several links.
    pub fn prometheus(&self) -> String {
        let mut page = Page::default();
        let device = ("device", &*self.device);
        page.family("mtu_bytes", "gauge", "Largest packet of the device");
        page.sample("mtu_bytes", &[device], self.mtu as f64);
        for ((name, count), (_, what)) in self.unmatched.iter().zip(UNMATCHED) {
            page.family(&format!("{name}_total"), "counter", what);
            page.sample(&format!("{name}_total"), &[device], *count as f64);
        }
        page.family(
            "state",
            "gauge",
            "1 for the present state of the peer, 0 for the others",
        );
        for peer in &self.peers {
            for state in State::ALL {
                let here = f64::from(u8::from(peer.state == state));
                let labels = [device, ("peer", &*peer.name), ("state", state.name())];
                page.sample("state", &labels, here);
            }
        }
        let gauges = GAUGES.iter().map(|gauge| (gauge.row, gauge.scale));
        self.rows(&mut page, gauges, "gauge", |peer, place| {
            peer.gauges.get(place).map_or(f64::NAN, |gauge| gauge.1)
        });
        let counters = COUNTERS.iter().map(|counter| (counter.row, 1.0));
        self.rows(&mut page, counters, "counter", |peer, place| {
            peer.counters.get(place).map_or(0.0, |count| count.1 as f64)
        });
        self.path_samples(&mut page);
        page.text
    }

    /// The paths of the peers that have several.
    fn path_samples(&self, page: &mut Page) {
        let rows: [PathRow; 6] = [
            (
                "path_used",
                "gauge",
                "1 if the path carries packets",
                |path| f64::from(u8::from(path.used)),
            ),
            (
                "path_round_trip_seconds",
                "gauge",
                "Smoothed round trip of a path",
                |path| path.gauge("round_trip_s"),
            ),
            (
                "path_loss_ratio",
                "gauge",
                "Recent share of lost frames out on a path",
                |path| path.gauge("loss_out_ratio"),
            ),
            (
                "path_pace_bytes_per_second",
                "gauge",
                "Pace of frames on a path",
                |path| path.gauge("pace_bps") / 8.0,
            ),
            (
                "path_sent_bytes_total",
                "counter",
                "Octets sent on a path",
                |path| path.octets_sent as f64,
            ),
            (
                "path_datagrams_received_total",
                "counter",
                "Datagrams received on a path",
                |path| path.datagrams_received as f64,
            ),
        ];
        let bonded = || self.peers.iter().filter(|peer| peer.paths.len() > 1);
        if bonded().next().is_none() {
            return;
        }
        for (name, kind, what, read) in rows {
            page.family(name, kind, what);
            for (peer, path) in
                bonded().flat_map(|peer| peer.paths.iter().map(move |path| (peer, path)))
            {
                let labels = [
                    ("device", &*self.device),
                    ("peer", &*peer.name),
                    ("path", &*path.name),
                ];
                page.sample(name, &labels, read(path));
            }
        }
    }

    fn rows(
        &self,
        page: &mut Page,
        rows: impl Iterator<Item = (Row, f64)>,
        kind: &str,
        value: impl Fn(&PeerStatus, usize) -> f64,
    ) {
        let mut before = "";
        for (place, (row, scale)) in rows.enumerate() {
            let end = if kind == "counter" { "_total" } else { "" };
            let name = format!("{}{end}", row.metric);
            if row.metric != before {
                page.family(&name, kind, row.what);
                before = row.metric;
            }
            for peer in &self.peers {
                let mut labels = vec![("device", &*self.device), ("peer", &*peer.name)];
                labels.extend(row.label);
                page.sample(&name, &labels, value(peer, place) * scale);
            }
        }
    }
}

/// Name, kind, help and value of a path's metric.
type PathRow = (
    &'static str,
    &'static str,
    &'static str,
    fn(&PathStatus) -> f64,
);

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, what: &str) {
        let what = what.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(
            self.text,
            "# HELP chappe_link_{name} {what}\n# TYPE chappe_link_{name} {kind}"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        if value.is_finite() {
            let labels: Vec<String> = labels
                .iter()
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                .collect();
            let _ = writeln!(
                self.text,
                "chappe_link_{name}{{{}}} {value}",
                labels.join(",")
            );
        }
    }
}

/// Escapes a label's value: backslash, quotation mark and line feed only.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Judgement;
    use chappe_core::Instant;

    fn status(peer: &str) -> Status {
        Status {
            at: Instant::ZERO,
            device: "chappe0".into(),
            mtu: 1500,
            unmatched: UNMATCHED.iter().map(|(name, _)| (*name, 7)).collect(),
            refusal: None,
            peers: vec![PeerStatus {
                name: peer.into(),
                state: State::Silent,
                trouble: None,
                paths: Vec::new(),
                endpoint: None,
                public: String::new(),
                handshake: None,
                coverage: Judgement::default(),
                gauges: GAUGES
                    .iter()
                    .map(|gauge| match gauge.row.key {
                        "round_trip_s" => (gauge.row.key, f64::NAN),
                        key => (key, 8.0),
                    })
                    .collect(),
                counters: COUNTERS
                    .iter()
                    .map(|counter| (counter.row.key, 1 << 53))
                    .collect(),
            }],
        }
    }

    #[test]
    fn samples_have_labels_and_base_units() {
        let text = status("hill").prometheus();
        for line in [
            "# TYPE chappe_link_loss_ratio gauge",
            "chappe_link_loss_ratio{device=\"chappe0\",peer=\"hill\",direction=\"out\"} 8",
            "chappe_link_goodput_bytes_per_second{device=\"chappe0\",peer=\"hill\",direction=\"in\"} 1",
            "# TYPE chappe_link_frames_sent_total counter",
            "chappe_link_frames_sent_total{device=\"chappe0\",peer=\"hill\",kind=\"repeat\"} 9007199254740992",
            "chappe_link_stranger_datagrams_total{device=\"chappe0\"} 7",
            "chappe_link_state{device=\"chappe0\",peer=\"hill\",state=\"silent\"} 1",
            "chappe_link_state{device=\"chappe0\",peer=\"hill\",state=\"up\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        // Unknown values are omitted.
        assert!(!text.contains("chappe_link_round_trip_seconds{"));
    }

    #[test]
    fn labels_are_escaped() {
        let text = status("a\"b\\c\nd\té").prometheus();
        assert!(text.contains("peer=\"a\\\"b\\\\c\\nd\té\"}"), "{text}");
        assert!(
            text.lines()
                .all(|line| line.starts_with("# ") || line.starts_with("chappe_"))
        );
    }

    /// Every family has its help and type exactly once, before its samples.
    #[test]
    fn families_are_declared_once() {
        let text = status("hill").prometheus();
        let mut declared = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let name = rest.split(' ').next().unwrap_or_default();
                assert!(!declared.contains(&name), "{name}");
                declared.push(name);
            } else if !line.starts_with("# HELP ") {
                let name = line.split('{').next().unwrap_or_default();
                assert_eq!(declared.last(), Some(&name));
            }
        }
        assert_eq!(text.matches("# HELP").count(), declared.len());
    }
}
