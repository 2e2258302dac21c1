//! Prices, classes and the number of next hops: pure computations.

use chappe_core::Class;

use crate::config::{KMax, NextHops, Priorities};

//= dpclo IV-D: the differential price (eq. 7)
/// The price of sending over a link: `(own - theirs + bias) / etx`, in packets per transmission.
///
/// `own` and `theirs` are queue lengths in packets. `bias` is V times the ETX by which the neighbour is nearer, 0 in the
/// paper. At a price of 0 or less nothing is sent, which is the hop-by-hop flow control.
pub fn price(own: f64, theirs: f64, bias: f64, etx: f64) -> f64 {
    // No link takes less than one transmission.
    (own - theirs + bias) / etx.max(1.0)
}

//= dpclo IV-F: three priorities by price; the fourth is for routing
/// The MAC's class for a packet of this price. `limit` is the queue limit in packets, so thresholds are shares of it.
pub fn class(price: f64, limit: u16, priorities: &Priorities) -> Class {
    let share = price / f64::from(limit.max(1));
    match share {
        share if share >= priorities.high => Class::Urgent,
        share if share >= priorities.medium => Class::Data,
        _ => Class::Background,
    }
}

//= dpclo IV-E: the upper limit of K
/// The upper limit of K for a number of neighbours, 1 to `most`.
pub fn k_max(next_hops: &NextHops, neighbours: usize, most: usize) -> usize {
    let share = next_hops.beta * neighbours as f64;
    let limit = match next_hops.limit {
        KMax::AtLeastTwo => (libm::ceil(share) as usize).max(2),
        KMax::Literal => libm::floor(share) as usize,
        KMax::Fixed(limit) => usize::from(limit),
    };
    limit.clamp(1, most.max(1))
}

//= dpclo IV-E: K grows when all next hops are full, and shrinks when all are empty
/// The next K, from the `queues` of the K next hops in use. Without next hops K stays.
pub fn next_k(k: usize, limit: usize, next_hops: &NextHops, queues: &[f64]) -> usize {
    // Between the watermarks K stays.
    let (above, below) = (
        queues.iter().all(|&queue| queue > next_hops.high),
        queues.iter().all(|&queue| queue < next_hops.low),
    );
    match (above, below) {
        _ if queues.is_empty() => k.min(limit),
        (true, _) => (k + 1).min(limit),
        (_, true) => k.saturating_sub(1).clamp(1, limit),
        _ => k.min(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn the_price_is_that_of_equation_7() {
        // A queue of 8 here; next hops with 2 at ETX 2, with 5 at ETX 1, with 9 at ETX 1.
        let prices = [(2.0, 2.0), (5.0, 1.0), (9.0, 1.0)].map(|(l, etx)| price(8.0, l, 0.0, etx));
        assert_eq!(prices, [3.0, 3.0, -1.0]);
        assert_eq!(price(8.0, 8.0, 0.0, 1.0), 0.0, "equal queues send nothing");
        assert_eq!(price(8.0, 8.0, 2.0 * 1.5, 1.5), 2.0, "unless it is nearer");
        assert_eq!(price(1.0, 0.0, 0.0, 0.0), 1.0, "no ETX below 1");
    }

    /// Goal: equal ETX prefers the shorter queue, equal queues the better link (the paper's two hints).
    #[test]
    fn prices_order_next_hops_as_the_paper_says() {
        for own in 1..20 {
            for theirs in 0..own {
                let (own, theirs) = (f64::from(own), f64::from(theirs));
                for etx in [1.0, 1.7, 5.0] {
                    assert!(price(own, theirs, 0.0, etx) > 0.0);
                    assert!(price(own, theirs, 0.0, etx) > price(own, theirs + 0.5, 0.0, etx));
                    assert!(price(own, theirs, 0.0, etx) > price(own, theirs, 0.0, etx + 0.1));
                }
            }
        }
    }

    #[test]
    fn prices_map_to_three_classes() {
        let table = Settings::paper().priorities;
        let class = |price| class(price, 10, &table);
        assert_eq!([5.0, 10.0].map(class), [Class::Urgent; 2]);
        assert_eq!([2.0, 4.9].map(class), [Class::Data; 2]);
        assert_eq!([0.1, 1.9].map(class), [Class::Background; 2]);
    }

    #[test]
    fn the_literal_limit_leaves_one_path() {
        let limits = |limit| {
            let next_hops = NextHops {
                limit,
                ..Settings::paper().next_hops
            };
            [0, 5, 13, 20, 39].map(|neighbours| k_max(&next_hops, neighbours, 8))
        };
        assert_eq!(limits(KMax::AtLeastTwo), [2, 2, 2, 2, 4]);
        assert_eq!(limits(KMax::Literal), [1, 1, 1, 2, 3]);
        assert_eq!(limits(KMax::Fixed(1)), [1; 5]);
        assert_eq!(limits(KMax::Fixed(99)), [8; 5]);
    }

    #[test]
    fn k_follows_the_watermarks() {
        let next_hops = Settings::paper().next_hops;
        let next = |k, queues: &[f64]| next_k(k, 3, &next_hops, queues);
        assert_eq!(next(1, &[7.1]), 2);
        assert_eq!(next(2, &[7.1, 7.0]), 2, "not all are above");
        assert_eq!(next(3, &[8.0, 8.0, 8.0]), 3, "the limit");
        assert_eq!(next(3, &[2.9, 0.0, 2.0]), 2);
        assert_eq!(next(3, &[2.9, 3.0, 2.0]), 3, "not all are below");
        assert_eq!(next(1, &[0.0]), 1);
        assert_eq!(next(2, &[]), 2);
    }
}
