//! How nodes move: along straight lines, at constant speed, from place to place.

use std::sync::Arc;

use chappe_core::{Purpose, Seed, Stream};

use crate::position::distance;
use crate::{AirTime, Error, Position};

/// A node is at a place at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// When the node is there.
    pub at: AirTime,
    /// Where the node is then.
    pub place: Position,
}

/// How all nodes of a network move: a track for each. It is read forwards in time.
#[derive(Clone, Debug)]
pub struct Motion {
    tracks: Vec<Track>,
    /// Metres per second that no node exceeds; infinite if one jumps.
    fastest: f64,
}

/// The way of one node: the line that it is on, and where the next ones come from.
#[derive(Clone, Debug)]
struct Track {
    from: Waypoint,
    to: Waypoint,
    next: Next,
}

#[derive(Clone, Debug)]
enum Next {
    /// The waypoints of a trace from this one on.
    Given(Arc<[Waypoint]>, usize),
    /// Drawn by random waypoint.
    Drawn(Walk),
}

impl Motion {
    /// Nodes that follow given waypoints: a node stands at its first one until then, moves from one to the next along a straight
    /// line, and stays at the last. Two waypoints of one moment are a jump.
    ///
    /// # Errors
    ///
    /// A node has no waypoint, its times go back, or a place is no number.
    pub fn given(waypoints: Vec<Vec<Waypoint>>) -> Result<Motion, Error> {
        let mut fastest: f64 = 0.0;
        let mut tracks = Vec::with_capacity(waypoints.len());
        for own in waypoints {
            let Some(&first) = own.first() else {
                return Err(Error::Motion("a node has no place"));
            };
            for pair in own.windows(2) {
                fastest = fastest.max(speed(pair[0], pair[1])?);
            }
            if !is_finite(first.place) {
                return Err(Error::Motion("a place is not a finite number"));
            }
            tracks.push(Track {
                from: first,
                to: first,
                next: Next::Given(own.into(), 1),
            });
        }
        Ok(Motion { tracks, fastest })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.tracks.len()
    }

    /// Where the nodes stand at the start.
    pub fn start(&self) -> Vec<Position> {
        let mut now = self.clone();
        (0..self.nodes())
            .map(|node| now.place(node, AirTime::ZERO))
            .collect()
    }

    /// Metres per second that no node exceeds; infinite if one jumps from a place to another.
    pub fn fastest(&self) -> f64 {
        self.fastest
    }

    /// The waypoints that each node was given; none for drawn ones.
    pub fn waypoints(&self) -> impl Iterator<Item = &[Waypoint]> {
        self.tracks.iter().map(|track| match &track.next {
            Next::Given(waypoints, _) => &waypoints[..],
            Next::Drawn(_) => &[],
        })
    }

    /// Where a node is. Moments must not go back between calls for one node. Panics if there is no such node.
    pub fn place(&mut self, node: usize, at: AirTime) -> Position {
        self.tracks[node].place(at)
    }
}

/// Metres per second from one waypoint to the next.
fn speed(from: Waypoint, to: Waypoint) -> Result<f64, Error> {
    if !is_finite(to.place) {
        return Err(Error::Motion("a place is not a finite number"));
    }
    if to.at < from.at {
        return Err(Error::Motion("the times of a node go back"));
    }
    let metres = distance(from.place, to.place);
    match metres == 0.0 {
        true => Ok(0.0),
        false => Ok(metres / to.at.saturating_since(from.at).as_secs_f64()),
    }
}

fn is_finite(place: Position) -> bool {
    (place.x + place.y + place.z).is_finite()
}

impl Track {
    fn place(&mut self, at: AirTime) -> Position {
        while at >= self.to.at {
            let next = match &mut self.next {
                Next::Given(waypoints, next) => {
                    let waypoint = waypoints.get(*next).copied();
                    *next += 1;
                    waypoint
                }
                Next::Drawn(walk) => Some(walk.next(self.to)),
            };
            let Some(next) = next else {
                return self.to.place;
            };
            self.from = std::mem::replace(&mut self.to, next);
        }
        let (from, to) = (self.from, self.to);
        // Before the first waypoint both are that one.
        if at <= from.at {
            return from.place;
        }
        let span = to.at.saturating_since(from.at).as_secs_f64();
        let share = at.saturating_since(from.at).as_secs_f64() / span;
        let between = |from: f64, to: f64| from + (to - from) * share;
        Position {
            x: between(from.place.x, to.place.x),
            y: between(from.place.y, to.place.y),
            z: between(from.place.z, to.place.z),
        }
    }
}

/// Random waypoint (D. Johnson, D. Maltz: Dynamic Source Routing in Ad Hoc Wireless Networks, 1996): a node goes to a uniform
/// place at a uniform speed, stays, and goes on.
///
/// A run begins in the law's stationary state (W. Navidi, T. Camp: Stationary Distributions for the Random Waypoint Mobility
/// Model, 2004). From uniform places at uniform speeds, nodes would become slower for hundreds of seconds and gather in the
/// middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomWaypoint {
    /// Width and depth of the rectangle, in metres.
    pub area: [f64; 2],
    /// Least and greatest speed in metres per second. The least must be above zero: a node with a speed of almost nothing never
    /// arrives, and the mean speed falls without end (J. Yoon, M. Liu, B. Noble: Random Waypoint Considered Harmful, 2003).
    pub speed: [f64; 2],
    /// Shortest and longest stay at a place, in seconds.
    pub pause: [f64; 2],
}

impl RandomWaypoint {
    /// The motion of `nodes` nodes under a seed. The way of a node does not depend on how many others there are.
    ///
    /// # Errors
    ///
    /// An area or a least speed that is not above zero, or a range that begins after its end.
    pub fn motion(&self, nodes: usize, seed: Seed) -> Result<Motion, Error> {
        let [least, greatest] = self.speed;
        let [shortest, longest] = self.pause;
        let areas = self.area.iter().all(|&side| side > 0.0 && side < 1e9);
        let speeds = least > 0.0 && least <= greatest && greatest.is_finite();
        let pauses = shortest >= 0.0 && shortest <= longest && longest.is_finite();
        if !(areas && speeds && pauses) {
            return Err(Error::Motion(
                "random waypoint needs an area and speeds above zero, and ranges in order",
            ));
        }
        let tracks = (0..nodes as u32).map(|node| self.track(seed.stream(Purpose::Motion(node))));
        Ok(Motion {
            tracks: tracks.collect(),
            fastest: greatest,
        })
    }

    /// A node in the stationary state.
    fn track(&self, random: Stream) -> Track {
        let mut walk = Walk {
            law: *self,
            random,
            stays: false,
        };
        let mean_pause = (self.pause[0] + self.pause[1]) / 2.0;
        let mean_travel = mean_distance(self.area) * mean_slowness(self.speed);
        let paused = walk.random.fraction() * (mean_pause + mean_travel) <= mean_pause;
        let (from, to) = match paused && mean_pause > 0.0 {
            true => walk.stay(),
            false => walk.on_the_way(),
        };
        let next = Next::Drawn(walk);
        Track { from, to, next }
    }
}

/// The mean distance between two uniform places of a rectangle (B. Ghosh, 1951).
fn mean_distance([a, b]: [f64; 2]) -> f64 {
    let d = libm::sqrt(a * a + b * b);
    let corners = a * a * a / (b * b) + b * b * b / (a * a);
    let diagonal = d * (3.0 - a * a / (b * b) - b * b / (a * a));
    let sides = b * b / a * libm::acosh(d / b) + a * a / b * libm::acosh(d / a);
    (corners + diagonal) / 15.0 + sides / 6.0
}

/// The mean of one over the speed.
fn mean_slowness([least, greatest]: [f64; 2]) -> f64 {
    match greatest > least {
        true => libm::log(greatest / least) / (greatest - least),
        false => 1.0 / least,
    }
}

/// The draws of one node.
#[derive(Clone, Debug)]
struct Walk {
    law: RandomWaypoint,
    random: Stream,
    /// Whether the node stays next, where it has arrived.
    stays: bool,
}

impl Walk {
    fn uniform(&mut self, [least, greatest]: [f64; 2]) -> f64 {
        least + (greatest - least) * self.random.fraction()
    }

    fn place(&mut self) -> Position {
        let [width, depth] = self.law.area;
        let x = self.random.fraction() * width;
        Position::new(x, self.random.fraction() * depth)
    }

    /// The waypoint after `here`.
    fn next(&mut self, here: Waypoint) -> Waypoint {
        let stay = match std::mem::replace(&mut self.stays, false) {
            true => self.uniform(self.law.pause),
            false => 0.0,
        };
        if stay > 0.0 {
            return after(here, stay, here.place);
        }
        self.stays = true;
        let (place, speed) = (self.place(), self.uniform(self.law.speed));
        after(here, distance(here.place, place) / speed, place)
    }

    /// Amid a stay at the start: long ones are met more often, at any of their moments.
    fn stay(&mut self) -> (Waypoint, Waypoint) {
        let [shortest, longest] = self.law.pause.map(|pause| pause * pause);
        let pause = libm::sqrt(self.uniform([shortest, longest]));
        let start = Waypoint {
            at: AirTime::ZERO,
            place: self.place(),
        };
        let rest = pause * self.random.fraction();
        (start, after(start, rest, start.place))
    }

    /// Amid a way at the start: long ways and slow speeds are met more often.
    fn on_the_way(&mut self) -> (Waypoint, Waypoint) {
        let [width, depth] = self.law.area;
        let diagonal = libm::sqrt(width * width + depth * depth);
        let (from, to) = loop {
            let (from, to) = (self.place(), self.place());
            if self.random.fraction() * diagonal <= distance(from, to) {
                break (from, to);
            }
        };
        let [least, greatest] = self.law.speed;
        let speed = least * libm::pow(greatest / least, self.random.fraction());
        let share = self.random.fraction();
        let place = Position::new(
            from.x + (to.x - from.x) * share,
            from.y + (to.y - from.y) * share,
        );
        self.stays = true;
        let start = Waypoint {
            at: AirTime::ZERO,
            place,
        };
        (start, after(start, distance(place, to) / speed, to))
    }
}

/// The waypoint at `place` this many seconds later, at least a nanosecond: time goes on.
fn after(here: Waypoint, seconds: f64, place: Position) -> Waypoint {
    let nanos = libm::ceil(seconds * 1e9).max(1.0);
    Waypoint {
        at: AirTime::from_nanos(here.at.nanos().saturating_add(nanos as u64)),
        place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waypoint(seconds: u64, x: f64, y: f64) -> Waypoint {
        Waypoint {
            at: AirTime::from_secs(seconds),
            place: Position::new(x, y),
        }
    }

    #[test]
    fn nodes_follow_their_waypoints() {
        let way = vec![
            waypoint(10, 0.0, 0.0),
            waypoint(20, 100.0, 50.0),
            waypoint(20, 7.0, 7.0),
            waypoint(30, 7.0, 7.0),
        ];
        let mut motion = Motion::given(vec![way, vec![waypoint(0, 3.0, 4.0)]]).unwrap();
        assert_eq!(motion.fastest(), f64::INFINITY);
        let cases = [
            (0, 0.0, 0.0),
            (10, 0.0, 0.0),
            (15, 50.0, 25.0),
            (20, 7.0, 7.0),
            (25, 7.0, 7.0),
            (99, 7.0, 7.0),
        ];
        for (seconds, x, y) in cases {
            let place = motion.place(0, AirTime::from_secs(seconds));
            assert_eq!(place, Position::new(x, y), "{seconds} s");
        }
        assert_eq!(motion.place(1, AirTime::MAX), Position::new(3.0, 4.0));
    }

    #[test]
    fn impossible_ways_are_refused() {
        let back = vec![waypoint(2, 0.0, 0.0), waypoint(1, 0.0, 0.0)];
        for ways in [
            vec![vec![]],
            vec![back],
            vec![vec![waypoint(0, f64::NAN, 0.0)]],
        ] {
            assert!(Motion::given(ways).is_err());
        }
        let law = RandomWaypoint {
            area: [100.0, 100.0],
            speed: [1.0, 2.0],
            pause: [0.0, 0.0],
        };
        assert!(law.motion(3, Seed(1)).is_ok());
        let still = RandomWaypoint {
            speed: [0.0, 2.0],
            ..law
        };
        let reversed = RandomWaypoint {
            pause: [3.0, 2.0],
            ..law
        };
        assert!(still.motion(3, Seed(1)).is_err() && reversed.motion(3, Seed(1)).is_err());
    }

    /// Mean distances of a square and of a long rectangle, by the closed form and by draws.
    #[test]
    fn the_mean_distance_is_that_of_draws() {
        assert!((mean_distance([1.0, 1.0]) - 0.521_405).abs() < 1e-6);
        let mut random = Seed(1).stream(Purpose::Trial(0));
        let n = 200_000;
        let mut drawn = || Position::new(random.fraction() * 900.0, random.fraction() * 200.0);
        let sum: f64 = (0..n).map(|_| distance(drawn(), drawn())).sum();
        let mean = mean_distance([900.0, 200.0]);
        assert!((sum / f64::from(n) / mean - 1.0).abs() < 0.01, "{mean}");
    }

    /// Goal: a run begins as it goes on. Method: over 4,000 nodes, the shares that stand still and that are in the middle
    /// quarter, and the mean speed, are the same at the start and an hour later, within four standard deviations.
    #[test]
    fn a_walk_begins_in_its_stationary_state() {
        let law = RandomWaypoint {
            area: [1000.0, 600.0],
            speed: [0.5, 20.0],
            pause: [0.0, 60.0],
        };
        let nodes = 4000;
        let mut motion = law.motion(nodes, Seed(4)).unwrap();
        let mut look = |at: u64| {
            let (mut still, mut middle, mut metres) = (0.0, 0.0, 0.0);
            for node in 0..nodes {
                let here = motion.place(node, AirTime::from_secs(at));
                let soon = motion.place(node, AirTime::from_millis(at * 1000 + 10));
                let moved = distance(here, soon);
                still += f64::from(u8::from(moved == 0.0));
                let inside = (here.x - 500.0).abs() < 250.0 && (here.y - 300.0).abs() < 150.0;
                middle += f64::from(u8::from(inside));
                metres += moved;
            }
            let n = nodes as f64;
            [still / n, middle / n, metres / n / 0.01]
        };
        let (start, later) = (look(0), look(3600));
        // Shares of 0.2 to 0.5 of 4,000 differ by 0.011 (one deviation), speeds with a deviation of 5 m/s by 0.11.
        for (place, four) in [(0, 0.044), (1, 0.044), (2, 0.44)] {
            let difference = (start[place] - later[place]).abs();
            assert!(difference < four, "{start:?} {later:?}");
        }
        // A quarter of the area would be in the middle if places were uniform.
        assert!(start[1] > 0.3, "{start:?}");
    }

    /// The way of a node does not change when others are added, and stays inside.
    #[test]
    fn ways_belong_to_their_node() {
        let law = RandomWaypoint {
            area: [300.0, 200.0],
            speed: [1.0, 30.0],
            pause: [0.0, 5.0],
        };
        let (mut few, mut many) = (
            law.motion(3, Seed(9)).unwrap(),
            law.motion(9, Seed(9)).unwrap(),
        );
        for second in 0..500 {
            let at = AirTime::from_secs(second);
            let place = few.place(2, at);
            assert_eq!(place, many.place(2, at));
            assert!((0.0..=300.0).contains(&place.x) && (0.0..=200.0).contains(&place.y));
        }
    }
}
