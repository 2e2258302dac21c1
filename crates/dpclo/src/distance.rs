//! The order of distances that keeps routes free of loops.
//!
//! A node may only use a neighbour whose advertised distance is better than every distance that the node itself has
//! advertised to this destination: the feasibility condition of RFC 8966, 2.4 and 3.5.1 (after EIGRP's and DSDV's). What a
//! node has advertised only improves. So along next hops it improves strictly, and no path returns to where it has been,
//! however old or incomplete the information is. The proof needs that a node does not forget what it has advertised: after a
//! restart a loop is possible until the destination's next sequence number.

use crate::header::Metric;

/// A distance to a destination: smaller metrics are better, and a newer sequence number makes any metric better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distance {
    /// The destination's sequence number.
    pub seq: u16,
    /// The path length; [`Metric::NONE`] before anything was advertised.
    pub metric: Metric,
}

impl Distance {
    /// That of a node that has advertised nothing: any route is better.
    pub const NONE: Distance = Distance {
        seq: 0,
        metric: Metric::NONE,
    };

    /// Whether this distance is strictly better than another.
    pub fn is_better_than(self, other: Distance) -> bool {
        if !other.metric.exists() {
            return self.metric.exists();
        }
        newer(self.seq, other.seq) || self.seq == other.seq && self.metric < other.metric
    }

    /// Takes the better of this and the distance that is being advertised. True if that is another one.
    pub fn advertise(&mut self, seq: u16, metric: Metric) -> bool {
        let new = Distance { seq, metric };
        let better = new.is_better_than(*self);
        if better {
            *self = new;
        }
        better
    }
}

/// Whether one sequence number follows another: less than half the number space ahead.
pub(crate) fn newer(seq: u16, than: u16) -> bool {
    let ahead = seq.wrapping_sub(than);
    ahead != 0 && ahead < 0x8000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(seq: u16, metric: u16) -> Distance {
        Distance {
            seq,
            metric: Metric(metric),
        }
    }

    #[test]
    fn newer_numbers_and_shorter_paths_are_better() {
        let rows = [
            (distance(2, 9), Distance::NONE, true),
            (Distance::NONE, Distance::NONE, false),
            (distance(4, 900), distance(2, 1), true),
            (distance(2, 1), distance(4, 900), false),
            (distance(2, 5), distance(2, 6), true),
            (distance(2, 6), distance(2, 6), false),
            (distance(0, 6), distance(0xfffe, 6), true),
        ];
        for (one, other, want) in rows {
            assert_eq!(one.is_better_than(other), want, "{one:?} {other:?}");
        }
    }

    #[test]
    fn what_was_advertised_only_improves() {
        let mut own = Distance::NONE;
        for (seq, metric, want) in [
            (2, 7, (2, 7)),
            (2, 9, (2, 7)),
            (2, 6, (2, 6)),
            (4, 30, (4, 30)),
        ] {
            own.advertise(seq, Metric(metric));
            assert_eq!((own.seq, own.metric.0), want);
        }
    }
}
