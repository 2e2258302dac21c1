//! The table of all values of a peer, with their names, units and meanings.
//!
//! JSON keys end in the unit, as everywhere in Chappe (`_s`, `_bps`, `_m`). Prometheus names follow its conventions: base
//! units (seconds, bytes, metres, ratios from 0 to 1), `_total` at the end of counters, and one name with labels for values
//! that can be added.

use chappe_core::{DropReason, Duration, SPEED_OF_LIGHT};
use chappe_wildnet::{Counters, Report};

use crate::coverage::Judgement;
use crate::peer::{Peer, PeerCounters, State};

/// The sources of the values.
pub(super) struct Facts<'a> {
    pub peer: &'a Peer,
    pub own: &'a PeerCounters,
    pub report: Report,
    pub link: &'a Counters,
    pub state: State,
    pub coverage: &'a Judgement,
}

/// The names and the meaning of a value.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The key in JSON.
    pub key: &'static str,
    /// The name in Prometheus without the prefix `chappe_link_`. Rows with the same name must be adjacent.
    pub metric: &'static str,
    /// The label that distinguishes rows with the same name, and its value.
    pub label: Option<(&'static str, &'static str)>,
    /// The help text in Prometheus.
    pub what: &'static str,
}

/// A value that goes up and down.
pub(super) struct Gauge {
    pub row: Row,
    /// Prometheus' value for a JSON value of 1.
    pub scale: f64,
    pub read: fn(&Facts<'_>) -> f64,
}

/// A value that only goes up.
pub(super) struct Counter {
    pub row: Row,
    pub read: fn(&Facts<'_>) -> u64,
}

type Label = Option<(&'static str, &'static str)>;

const fn row(key: &'static str, metric: &'static str, label: Label, what: &'static str) -> Row {
    Row {
        key,
        metric,
        label,
        what,
    }
}

const fn gauge(
    (key, metric, label): (&'static str, &'static str, Label),
    what: &'static str,
    read: fn(&Facts<'_>) -> f64,
) -> Gauge {
    Gauge {
        row: row(key, metric, label, what),
        scale: 1.0,
        read,
    }
}

/// A rate: bits per second in JSON, bytes per second in Prometheus.
const fn rate(
    (key, metric, label): (&'static str, &'static str, Label),
    what: &'static str,
    read: fn(&Facts<'_>) -> f64,
) -> Gauge {
    Gauge {
        row: row(key, metric, label, what),
        scale: 0.125,
        read,
    }
}

const fn count(
    (key, metric, label): (&'static str, &'static str, Label),
    what: &'static str,
    read: fn(&Facts<'_>) -> u64,
) -> Counter {
    Counter {
        row: row(key, metric, label, what),
        read,
    }
}

const OUT: Label = Some(("direction", "out"));
const IN: Label = Some(("direction", "in"));

const fn kind(name: &'static str) -> Label {
    Some(("kind", name))
}

const fn reason(name: &'static str) -> Label {
    Some(("reason", name))
}

fn seconds(span: Option<Duration>) -> f64 {
    span.map_or(f64::NAN, Duration::as_secs_f64)
}

fn class(class: Option<u8>) -> f64 {
    class.map_or(f64::NAN, f64::from)
}

/// Values that go up and down.
pub(super) const GAUGES: &[Gauge] = &[
    gauge(
        ("up", "up", None),
        "1 if there is a session and frames arrive, else 0",
        |f| f64::from(u8::from(f.state == State::Up)),
    ),
    gauge(
        ("loss_out_ratio", "loss_ratio", OUT),
        "Recent share of lost frames",
        |f| f.report.channel.loss,
    ),
    gauge(
        ("loss_in_ratio", "loss_ratio", IN),
        "Recent share of lost frames",
        |f| f.report.incoming.loss,
    ),
    gauge(
        ("burst_out_frames", "burst_frames", OUT),
        "Mean length of a burst of losses",
        |f| f.report.channel.burst,
    ),
    gauge(
        ("burst_in_frames", "burst_frames", IN),
        "Mean length of a burst of losses",
        |f| f.report.incoming.burst,
    ),
    gauge(
        ("overhead_ratio", "overhead_ratio", None),
        "Repeats and repairs per new frame, since the start",
        |f| f.link.overhead(),
    ),
    gauge(
        ("overhead_bound_ratio", "overhead_bound_ratio", None),
        "The least overhead of any code at the present loss",
        |f| f.report.channel.overhead_bound(0.0),
    ),
    gauge(
        ("residual_ratio", "residual_ratio", None),
        "Share of bodies late or lost after recovery, since the start",
        |f| f.link.residual(),
    ),
    gauge(
        ("round_trip_s", "round_trip_seconds", None),
        "Smoothed round trip",
        |f| seconds(f.report.rtt.map(|rtt| rtt.0)),
    ),
    gauge(
        ("round_trip_least_s", "round_trip_least_seconds", None),
        "Least round trip",
        |f| seconds(f.report.rtt.map(|rtt| rtt.1)),
    ),
    rate(
        ("pace_bps", "pace_bytes_per_second", None),
        "Pace of frames, headers included",
        |f| f.peer.rate().0 as f64,
    ),
    rate(
        ("bound_bps", "bound_bytes_per_second", None),
        "Upper bound on the goodput: the pace less the losses",
        |f| f.peer.rate().0 as f64 * (1.0 - f.report.channel.loss),
    ),
    rate(
        ("goodput_out_bps", "goodput_bytes_per_second", OUT),
        "Host packets carried in the latest second",
        |f| f.peer.goodput().out,
    ),
    rate(
        ("goodput_in_bps", "goodput_bytes_per_second", IN),
        "Host packets carried in the latest second",
        |f| f.peer.goodput().back,
    ),
    gauge(
        ("path_mtu_octets", "path_mtu_bytes", None),
        "Largest packet that the path to the peer carries, as far as found, IP header included",
        |f| (f.peer.datagram_max() + f.peer.config().below.saturating_sub(14)) as f64,
    ),
    gauge(
        ("open_bodies", "open_bodies", None),
        "Bodies in flight (a body carries one or several packets)",
        |f| f64::from(f.report.open),
    ),
    gauge(
        ("queued_packets", "queued_packets", None),
        "Queued packets of the host",
        |f| f.peer.waiting() as f64,
    ),
    gauge(
        ("held_bodies", "held_bodies", None),
        "Received bodies that wait for an older one",
        |f| f.report.held as f64,
    ),
    gauge(
        ("distance_m", "distance_metres", None),
        "Configured distance of the peer",
        |f| f.coverage.distance.unwrap_or(f64::NAN),
    ),
    gauge(
        ("distance_most_m", "distance_most_metres", None),
        "Upper bound on the distance: light in half the least round trip",
        |f| seconds(f.report.rtt.map(|rtt| rtt.1)) / 2.0 * SPEED_OF_LIGHT,
    ),
    gauge(
        ("coverage_class", "coverage_class", None),
        "Coverage class of the 802.11 card towards the peer, in steps of 450 m",
        |f| class(f.coverage.radio().map(|radio| radio.coverage_class)),
    ),
    gauge(
        ("coverage_class_needed", "coverage_class_needed", None),
        "Smallest coverage class for the configured distance",
        |f| class(f.coverage.needed()),
    ),
];

/// Values that only go up.
pub(super) const COUNTERS: &[Counter] = &[
    count(
        ("bodies", "frames_sent", kind("new")),
        "Frames sent: new bodies, repeated bodies, planned repairs, repairs in idle airtime, and frames without a body",
        |f| f.link.bodies,
    ),
    count(
        ("repeats", "frames_sent", kind("repeat")),
        "Repeated bodies",
        |f| f.link.repeats,
    ),
    count(
        ("repairs", "frames_sent", kind("repair")),
        "Planned repairs",
        |f| f.link.repairs,
    ),
    count(
        ("fills", "frames_sent", kind("fill")),
        "Repairs in idle airtime",
        |f| f.link.fills,
    ),
    count(
        ("notes", "frames_sent", kind("note")),
        "Frames without a body: reports and keepalives",
        |f| f.link.notes,
    ),
    count(
        ("twins", "frames_sent", kind("twin")),
        "Bodies sent on a further path: copies of classes that take every path, and probes of a path in doubt",
        |f| f.link.twins,
    ),
    count(
        ("doubts", "path_doubts", None),
        "Times that a path had stopped as far as reports on the others showed",
        |f| f.link.doubts,
    ),
    count(
        ("copies", "frames_with_copies_sent", None),
        "Frames that carried copies of small bodies",
        |f| f.link.copies,
    ),
    count(
        ("delivered", "bodies_delivered", None),
        "Bodies that the peer reported as received",
        |f| f.link.delivered,
    ),
    count(
        ("late", "bodies_late", None),
        "Delivered bodies that missed the deadline of their class",
        |f| f.link.late,
    ),
    count(
        ("given_up", "bodies_given_up", None),
        "Bodies given up: retries or deadline exhausted",
        |f| f.link.given_up,
    ),
    count(
        ("lost_by_restart", "bodies_lost_by_restart", None),
        "Bodies whose fate is unknown because the peer restarted",
        |f| f.link.lost_by_restart,
    ),
    count(
        ("recovered", "bodies_recovered", None),
        "Bodies recovered from repairs",
        |f| f.link.recovered,
    ),
    count(
        ("duplicates", "bodies_duplicate", None),
        "Bodies received more than once",
        |f| f.link.drops.of(DropReason::Duplicate),
    ),
    count(
        ("sessions", "sessions", None),
        "Sessions established",
        |f| f.own.sessions,
    ),
    count(
        ("peer_restarts", "peer_restarts", None),
        "Restarts of the peer",
        |f| f.link.peer_restarts,
    ),
    count(
        ("moved", "peer_moves", None),
        "Changes of the peer's address",
        |f| f.own.moved,
    ),
    count(
        ("datagrams_sent", "datagrams_sent", None),
        "Datagrams sent",
        |f| f.own.datagrams_sent,
    ),
    count(
        ("datagrams_received", "datagrams_received", None),
        "Datagrams received",
        |f| f.own.datagrams_received,
    ),
    count(
        ("octets_sent", "sent_bytes", None),
        "Octets of datagrams sent, with the headers of the layers below",
        |f| f.own.octets_sent,
    ),
    count(
        ("octets_delivered", "delivered_bytes", None),
        "Octets of packets delivered to the host",
        |f| f.own.octets_delivered,
    ),
    count(
        ("forged", "datagrams_dropped", reason("forged")),
        "Dropped datagrams: forged, replayed, of another key or version, or of an unknown form or session",
        |f| f.own.forged,
    ),
    count(
        ("replayed", "datagrams_dropped", reason("replayed")),
        "Replayed or duplicate datagrams",
        |f| f.own.repeated,
    ),
    count(
        ("strange", "datagrams_dropped", reason("strange")),
        "Datagrams of an unknown form, or for a session that has ended",
        |f| f.own.strange,
    ),
    count(
        ("queue_dropped", "packets_dropped", reason("queue_full")),
        "Dropped packets: queue full (which slows senders down), deadline passed, refused by the recovery, too long, source not in the peer's networks, impossible to reassemble, or no room in the host",
        |f| f.own.queue_dropped,
    ),
    count(
        ("packets_expired", "packets_dropped", reason("expired")),
        "Containers of packets that were never sent because their deadline passed in the queue",
        |f| f.link.expired,
    ),
    count(
        ("packets_refused", "packets_dropped", reason("refused")),
        "Containers of packets that the recovery refused",
        |f| f.link.refused,
    ),
    count(
        ("not_taken", "packets_dropped", reason("too_long")),
        "Packets of the host that were too long",
        |f| f.own.not_taken,
    ),
    count(
        (
            "foreign_source",
            "packets_dropped",
            reason("foreign_source"),
        ),
        "Packets from the peer whose source is not in its `networks`",
        |f| f.own.foreign,
    ),
    count(
        ("unreadable", "packets_dropped", reason("unreadable")),
        "Packets from the peer that could not be reassembled",
        |f| f.own.unreadable,
    ),
    count(
        ("host_full", "packets_dropped", reason("host_full")),
        "Packets from the peer for which the host had no room",
        |f| f.own.host_full,
    ),
];

/// Counters that belong to no peer: name in JSON and help text.
pub(super) const UNMATCHED: &[(&str, &str)] = &[
    (
        "stranger_datagrams",
        "Datagrams that match no session and no peer",
    ),
    (
        "wrong_key_datagrams",
        "Calls and answers of hosts that do not know this host's public key",
    ),
    (
        "unknown_key_calls",
        "Calls of hosts whose public key is no peer's",
    ),
    (
        "wrong_version_datagrams",
        "Calls and answers of another protocol version",
    ),
    (
        "held_off_calls",
        "Calls that were not opened since too many came: answered by a cookie, or dropped",
    ),
    (
        "unrouted_packets",
        "Packets of the host whose destination is in no peer's networks",
    ),
    ("not_ip_packets", "Packets of the host that are not IP"),
    (
        "socket_full",
        "Datagrams dropped because the socket buffer was full",
    ),
    (
        "refused_datagrams",
        "Datagrams that the kernel refused to send",
    ),
    ("loop_rounds", "Rounds of the event loop"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> impl Iterator<Item = Row> {
        let gauges = GAUGES.iter().map(|gauge| gauge.row);
        gauges.chain(COUNTERS.iter().map(|counter| counter.row))
    }

    #[test]
    fn keys_are_unique_and_metrics_are_grouped() {
        let mut keys: Vec<_> = rows().map(|row| row.key).collect();
        keys.sort_unstable();
        assert!(keys.windows(2).all(|two| two[0] != two[1]));
        let mut names: Vec<_> = rows().map(|row| row.metric).collect();
        names.dedup();
        let together = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), together, "a name stands in two places");
    }

    /// Base units only (prometheus.io, "Metric and label naming"), and labels where a name occurs more than once.
    #[test]
    fn metric_names_follow_the_conventions() {
        for row in rows() {
            let name = row.metric;
            let plain = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
            assert!(
                name.chars().all(plain) && !name.ends_with("_total"),
                "{name}"
            );
            for unit in ["bits", "octets", "kilo", "milli", "percent", "_ms"] {
                assert!(!name.contains(unit), "{name}");
            }
            let same = rows().filter(|other| other.metric == name);
            let labels: Vec<_> = same.map(|other| other.label).collect();
            assert!(
                labels.len() == 1 || labels.iter().all(Option::is_some),
                "{name}"
            );
        }
    }
}
