//! Each example shows what its head says: who sent, what was lost on the way, what its faults did. By recordings of seed 1.
//!
//! The star and the chain of masts have a test in `lab-wildnet`, which looks at each instant. Networks without transfers have
//! their numbers in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;

use chappe_trace::Tables;

use crate::recording::{example, recorded, whole, words};
use crate::scratch::Scratch;

/// What a recording says of frames and of what became of them.
struct Air(Tables);

impl Air {
    /// Runs an example with changes and records it.
    fn of(name: &str, more: &[&str]) -> Air {
        let scratch = Scratch::new(&format!("example-{name}"));
        Air(recorded(&example(name), more, &scratch.0.join("trace")))
    }

    /// How many frames each node sent in a span of seconds.
    fn senders(&self, span: Range<f64>) -> BTreeMap<i64, usize> {
        let starts = whole(&self.0, "frames", "start_ns");
        let mut senders = BTreeMap::new();
        for (&node, &start) in whole(&self.0, "frames", "node").iter().zip(starts) {
            if span.contains(&(start as f64 * 1e-9)) {
                *senders.entry(node).or_insert(0) += 1;
            }
        }
        senders
    }

    /// The nodes that sent data in a span of seconds.
    fn carriers(&self, span: Range<f64>) -> BTreeSet<i64> {
        let starts = whole(&self.0, "frames", "start_ns");
        let nodes = whole(&self.0, "frames", "node");
        let kinds = words(&self.0, "frames", "kind");
        (0..nodes.len())
            .filter(|&row| kinds[row] == "data" && span.contains(&(starts[row] as f64 * 1e-9)))
            .map(|row| nodes[row])
            .collect()
    }

    /// How many frames of one node came to another in a span of seconds, and how many of these had one of the outcomes.
    fn outcomes(&self, from: i64, to: i64, span: Range<f64>, which: &[&str]) -> (usize, usize) {
        let starts = whole(&self.0, "receptions", "start_ns");
        let senders = whole(&self.0, "receptions", "from");
        let receivers = whole(&self.0, "receptions", "node");
        let (mut all, mut counted) = (0, 0);
        for (row, outcome) in words(&self.0, "receptions", "outcome")
            .into_iter()
            .enumerate()
        {
            let is_meant = (senders[row], receivers[row]) == (from, to);
            if is_meant && span.contains(&(starts[row] as f64 * 1e-9)) {
                all += 1;
                counted += usize::from(which.contains(&outcome));
            }
        }
        (all, counted)
    }

    /// The share of frames of one node at another that had an outcome. There must be some.
    fn share(&self, from: i64, to: i64, span: Range<f64>, which: &[&str]) -> f64 {
        let (all, counted) = self.outcomes(from, to, span, which);
        assert!(all > 50, "{from} to {to}: {all} frames");
        counted as f64 / all as f64
    }
}

const ALWAYS: Range<f64> = 0.0..f64::INFINITY;

#[test]
fn the_relay_of_the_line_crashes_and_restarts() {
    let air = Air::of("line", &[]);
    let sent = |span| air.senders(span).get(&4).copied().unwrap_or(0);
    assert!(sent(0.0..2.0) > 10 && sent(4.0..f64::INFINITY) > 10);
    assert_eq!(sent(2.001..4.0), 0);
    // The other relay goes on meanwhile.
    assert!(
        air.senders(2.001..4.0)
            .get(&2)
            .is_some_and(|&sent| sent > 10)
    );
}

#[test]
fn most_receivers_of_the_mesh_of_twelve_hear_less_than_half_of_the_source() {
    let air = Air::of("mesh-12", &[]);
    let sent = air.senders(ALWAYS)[&0];
    let heard = |&node: &i64| air.outcomes(0, node, ALWAYS, &["received"]).1;
    let less = [3, 6, 9, 11].iter().filter(|node| 2 * heard(node) < sent);
    assert_eq!(less.count(), 3);
}

/// Nodes that are neither source nor receiver send too, and most links lose a part of what is sent on them.
#[test]
fn the_multicast_is_relayed_over_lossy_links() {
    let air = Air::of("mesh-multicast", &["--set", "transfer.0.bytes=50 kB"]);
    assert!(air.senders(ALWAYS).len() > 10);
    let received = words(&air.0, "receptions", "outcome");
    let share = received.iter().filter(|&&what| what == "received").count() as f64;
    let share = share / received.len() as f64;
    assert!((0.1..0.95).contains(&share), "{share}");
}

#[test]
fn flows_cross_the_mesh_over_relays() {
    let air = Air::of("mesh-flows", &["--set", "run.limit=10 s"]);
    let mut relays = air.carriers(ALWAYS);
    relays.retain(|node| ![29, 17, 8, 21, 12].contains(node));
    assert!(relays.len() >= 5, "{relays:?}");
}

/// While nodes walk, others come to carry the flow.
#[test]
fn walkers_change_their_relays() {
    let air = Air::of("mesh-moving", &["--set", "run.limit=240 s"]);
    let starts = whole(&air.0, "frames", "start_ns");
    let last = starts.last().map_or(0.0, |&start| start as f64 * 1e-9);
    let (early, late) = (
        air.carriers(last - 240.0..last - 200.0),
        air.carriers(last - 40.0..last),
    );
    assert!(
        !early.is_empty() && !late.is_empty() && early != late,
        "{early:?} {late:?}"
    );
}

/// In a pipeline of synchronous transmitters several nodes begin frames in the same microsecond, on several channels.
#[test]
fn the_tunnel_is_a_pipeline_of_synchronous_transmitters() {
    let air = Air::of("p3-line", &[]);
    let starts = whole(&air.0, "frames", "start_ns");
    let channels: BTreeSet<i64> = whole(&air.0, "frames", "channel").iter().copied().collect();
    let together = starts
        .windows(2)
        .filter(|pair| (pair[1] - pair[0]).abs() < 1_000)
        .count();
    assert!(
        10 * together > starts.len(),
        "{together} of {}",
        starts.len()
    );
    assert!(channels.len() >= 3, "{channels:?}");
}

#[test]
fn motes_hear_their_neighbours_only() {
    let air = Air::of("lln-3-hops", &[]);
    let senders = air.senders(ALWAYS);
    assert!(
        (0..4).all(|node| senders.get(&node).is_some_and(|&sent| sent > 20)),
        "{senders:?}"
    );
    for (from, to) in [(0, 2), (2, 0), (1, 3), (3, 1), (0, 3), (3, 0)] {
        assert_eq!(air.outcomes(from, to, ALWAYS, &["received"]).1, 0);
    }
}

/// Radios 0 to 5 are those of three hops in order. What a radio sends comes when its peer listens: only the link's own loss is left.
#[test]
fn radios_of_masts_send_and_listen_together() {
    let air = Air::of("wildnet-3-hops", &["--set", "transfer.0.bytes=500 kB"]);
    for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)] {
        let fine = air.share(from, to, ALWAYS, &["received", "link"]);
        assert!(fine > 0.97, "{from} to {to}: {fine}");
    }
}

#[test]
fn the_link_of_60_km_loses_a_tenth() {
    let air = Air::of("wildnet-60km", &[]);
    for (from, to) in [(0, 1), (1, 0)] {
        let lost = air.share(from, to, ALWAYS, &["link"]);
        assert!((0.06..0.14).contains(&lost), "{from} to {to}: {lost}");
    }
}

/// Radios 0 and 1 are those of the first hop, 2 and 3 those of the second; 1 and 2 stand at the middle mast.
#[test]
fn each_fault_of_the_long_links_strikes() {
    let air = Air::of("wildnet-faults", &[]);
    let lost = |from, to, span| air.share(from, to, span, &["link"]);
    assert!((0.5..0.7).contains(&lost(0, 1, 2.0..5.0)));
    assert!(lost(0, 1, 5.0..6.0) < 0.15 && lost(0, 1, 0.0..2.0) < 0.15);
    assert!(lost(3, 2, 6.0..7.0) > 0.95 && lost(3, 2, 7.0..9.0) < 0.15);
    let mast = |span| {
        air.senders(span)
            .range(1..3)
            .map(|(_, sent)| sent)
            .sum::<usize>()
    };
    assert_eq!(mast(9.01..10.0), 0);
    assert!(mast(8.0..9.0) > 50 && mast(10.0..12.0) > 50);
}

#[test]
fn the_mesh_for_routers_is_that_for_files() {
    let network = |name: &str| {
        let text = fs::read_to_string(example(name)).unwrap();
        let from = text.find("[network]").unwrap();
        let to = text
            .find("[protocol]")
            .or_else(|| text.find("[run]"))
            .unwrap();
        text[from..to].trim().to_owned()
    };
    assert_eq!(network("mesh-12"), network("mesh-12-flows"));
}
