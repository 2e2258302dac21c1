//! How often nodes tell each other of themselves, by how many there are.

use chappe_core::Duration;
use chappe_dpclo::{FirstProbes, Pace};

use crate::air::Air;

/// Probes of a neighbourhood may take this share of the channel, and updates half of it: 2 % of the air is the goal for all
/// control traffic at 200 nodes.
const PROBING: f64 = 0.01;
/// Nodes that sense each other in a mesh of 200, as dense as that of `examples/mesh-12.toml`: 41 in the mean; and no more than there
/// are nodes.
const AROUND_MAX: usize = 41;
/// The shortest interval between two probes: three make a link usable within a second.
const PROBE_LEAST: Duration = Duration::from_millis(250);
/// How long a node probes more often after its start: eight probes and more, of which three suffice.
const PROBE_FIRST: Duration = Duration::from_secs(2);
/// The first probes of a neighbourhood that starts together may take this share of the channel, unless it is so large that this would be
/// rarer than [`PROBE_LEAST`].
const PROBING_FIRST: f64 = 0.05;
/// The shortest interval between two of them. A link over which few of them arrive is late: with 250 ms and more the first answer over
/// three lossy hops took 1.7 s in the mean, and more than 3 s in 9 of 3000 runs (docs/studies/mesh.md).
const PROBE_FIRST_LEAST: Duration = Duration::from_millis(125);
/// Octets of a usual probe: its head, the counts of some neighbours, what this program adds.
const PROBE: usize = 120;
/// The shortest interval between two full updates: a lost one must not delay the first packet by more.
const UPDATE_LEAST: Duration = Duration::from_secs(1);
/// Octets of an update for each destination.
const ROUTE: usize = 8;
/// The shortest time between two updates (ours: three hops in which a change is passed on within a second).
const GAP_LEAST: Duration = Duration::from_millis(100);
/// Updates of changed routes for each full one.
const GAPS: u64 = 4;
/// How often more an update tells that a destination became reachable or unreachable, or answers a request. Over three hops that lose a
/// fifth the first answer took more than three seconds in 22 of 2000 runs with one, and in 8 with two (docs/studies/mesh.md).
const REACH_REPEATS: u8 = 2;

/// How often a node of a mesh of so many tells of itself.
pub(crate) fn pace(air: &Air, nodes: usize) -> Pace {
    let around = nodes.min(AROUND_MAX) as f64;
    let every = |octets: usize, share: f64| {
        Duration::from_secs_f64(around * air.exchange(octets).as_secs_f64() / share)
    };
    let probe = PROBE_LEAST.max(every(PROBE, PROBING));
    let update = every(ROUTE * nodes, PROBING / 2.0);
    // Updates of changed routes are short.
    let gap = GAP_LEAST.max(update / GAPS);
    Pace {
        probe,
        period: UPDATE_LEAST.max(update),
        gap,
        settle: gap * 2,
        // Longer than the longest time between two probes, in which it rides.
        patience: probe * 2,
        // Updates of a larger mesh fill their share of the air already.
        reach_repeats: match nodes <= AROUND_MAX {
            true => REACH_REPEATS,
            false => 0,
        },
    }
}

/// The first probes of a node, by the neighbours that it has heard.
pub(crate) fn first_probes(air: &Air) -> FirstProbes {
    let each = air.exchange(PROBE).as_secs_f64();
    FirstProbes {
        least: PROBE_FIRST_LEAST,
        each: Duration::from_secs_f64(each / PROBING_FIRST),
        most: PROBE_LEAST,
        lasts: PROBE_FIRST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Bitrate;

    fn air() -> Air {
        Air::dot11b(Bitrate(11_000_000))
    }

    #[test]
    fn a_larger_mesh_tells_less_often() {
        let paces = [2, 12, 41, 200].map(|nodes| pace(&air(), nodes));
        assert_eq!(
            (paces[0].probe, paces[0].period),
            (PROBE_LEAST, UPDATE_LEAST)
        );
        assert!(paces.is_sorted_by_key(|pace| (pace.probe, pace.period, pace.gap)));
        // 41 probes of a neighbourhood within their interval.
        let taken = 41.0 * air().exchange(PROBE).as_secs_f64() / paces[3].probe.as_secs_f64();
        assert!((taken / PROBING - 1.0).abs() < 1e-6, "{taken}");
        assert_eq!(paces.map(|pace| pace.reach_repeats), [2, 2, 2, 0]);
    }

    #[test]
    fn first_probes_are_rarer_beside_many() {
        let first = first_probes(&air());
        assert_eq!(first.interval(3), PROBE_FIRST_LEAST);
        let some = first.interval(12);
        assert!(PROBE_FIRST_LEAST < some && some < PROBE_LEAST, "{some:?}");
        assert_eq!(first.interval(60), PROBE_LEAST);
    }
}
