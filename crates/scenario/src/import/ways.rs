//! What orders to move make of a node: its way from place to place.

use std::ops::Range;

use chappe_core::Duration;
use chappe_sim::{AirTime, Position, Waypoint};

/// An order to move at a moment, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Order {
    at: f64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Go to a place, at so many metres per second.
    Go([f64; 2], f64),
    /// Have another coordinate at once.
    Jump(usize, f64),
}

impl Order {
    pub(super) fn go(at: f64, place: [f64; 2], speed: f64) -> Order {
        let what = What::Go(place, speed);
        Order { at, what }
    }

    pub(super) fn jump(at: f64, axis: usize, metres: f64) -> Order {
        let what = What::Jump(axis, metres);
        Order { at, what }
    }
}

/// A moment of the run, in seconds.
pub(super) fn moment(seconds: f64) -> AirTime {
    AirTime::ZERO + Duration::from_secs_f64(seconds)
}

/// The way of a node from `start` on. A new order ends the former one on its way; orders of one moment are carried out in the
/// order of the file.
pub(super) fn ways(start: [f64; 2], orders: &[(Order, Range<usize>)]) -> Vec<Waypoint> {
    let mut orders: Vec<Order> = orders.iter().map(|(order, _)| *order).collect();
    orders.sort_by(|a, b| a.at.total_cmp(&b.at));
    let at_zero = Going {
        from: (0.0, start),
        to: (0.0, start),
    };
    let (mut going, mut way) = (at_zero, vec![waypoint(0.0, start)]);
    for Order { at, what } in orders {
        let here = going.place(at);
        // On arrival before this order.
        if going.to.0 < at && going.to.0 > going.from.0 {
            way.push(waypoint(going.to.0, going.to.1));
        }
        if at > 0.0 {
            way.push(waypoint(at, here));
        }
        going = match what {
            What::Go(place, speed) => {
                let metres = libm::hypot(place[0] - here[0], place[1] - here[1]);
                // At no speed it stays where it is.
                let to = match speed > 0.0 {
                    true => (at + metres / speed, place),
                    false => (at, here),
                };
                let from = (at, here);
                Going { from, to }
            }
            What::Jump(axis, metres) => {
                let mut there = here;
                there[axis] = metres;
                way.push(waypoint(at, there));
                Going {
                    from: (at, there),
                    to: (at, there),
                }
            }
        };
    }
    if going.to.0 > going.from.0 {
        way.push(waypoint(going.to.0, going.to.1));
    }
    way.dedup();
    way
}

fn waypoint(seconds: f64, [x, y]: [f64; 2]) -> Waypoint {
    Waypoint {
        at: moment(seconds),
        place: Position::new(x, y),
    }
}

/// On the way from a moment and place to others.
struct Going {
    from: (f64, [f64; 2]),
    to: (f64, [f64; 2]),
}

impl Going {
    fn place(&self, at: f64) -> [f64; 2] {
        let ((from, here), (to, there)) = (self.from, self.to);
        if at >= to {
            return there;
        }
        let share = (at - from) / (to - from);
        [0, 1].map(|axis| here[axis] + (there[axis] - here[axis]) * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way as (seconds, x).
    fn way(orders: &[Order]) -> Vec<(f64, f64)> {
        let orders: Vec<_> = orders.iter().map(|order| (*order, 0..0)).collect();
        ways([0.0, 0.0], &orders)
            .iter()
            .map(|point| (point.at.as_secs_f64(), point.place.x))
            .collect()
    }

    #[test]
    fn orders_become_ways() {
        let go = |at, x, speed| Order::go(at, [x, 0.0], speed);
        type Case<'a> = (&'a [Order], &'a [(f64, f64)]);
        let cases: [Case; 6] = [
            (&[], &[(0.0, 0.0)]),
            (&[go(0.0, 10.0, 2.0)], &[(0.0, 0.0), (5.0, 10.0)]),
            // It waits after its arrival, in whatever order the file has it.
            (
                &[go(9.0, 0.0, 5.0), go(1.0, 10.0, 2.0)],
                &[
                    (0.0, 0.0),
                    (1.0, 0.0),
                    (6.0, 10.0),
                    (9.0, 10.0),
                    (11.0, 0.0),
                ],
            ),
            // It turns on the way.
            (
                &[go(0.0, 10.0, 1.0), go(4.0, 0.0, 2.0)],
                &[(0.0, 0.0), (4.0, 4.0), (6.0, 0.0)],
            ),
            // It stops on the way.
            (
                &[go(0.0, 10.0, 1.0), go(4.0, 99.0, 0.0)],
                &[(0.0, 0.0), (4.0, 4.0)],
            ),
            (
                &[go(0.0, 10.0, 1.0), Order::jump(5.0, 0, 70.0)],
                &[(0.0, 0.0), (5.0, 5.0), (5.0, 70.0)],
            ),
        ];
        for (orders, expected) in cases {
            assert_eq!(way(orders), expected, "{orders:?}");
        }
    }
}
