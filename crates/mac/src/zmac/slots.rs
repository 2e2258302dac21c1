//! Time slots: their owners, and the colouring of a network with them.

use chappe_core::{Duration, Instant};

/// Owners two hops away that a schedule can hold. In 108 nodes of mean degree 11 there are up to 55 within two hops.
pub const TWO_HOP_MAX: usize = 64;

/// The time slots `number`, `number + frame`, `number + 2 frame`...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The first of them, below `frame`.
    pub number: u16,
    /// The period, a power of two.
    pub frame: u16,
}

/// The time slots that a node owns, and those that belong to nodes two hops away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The own slots; `None`: the node owns no slot.
    pub own: Option<Slot>,
    two_hop: [Option<Slot>; TWO_HOP_MAX],
    /// The barred ones of time slots 0 to 255, one bit each, by all owners whose period divides 256: a station asks at every change of the
    /// carrier.
    barred: [u64; ROUND / 64],
    /// Whether there are other owners.
    longer: bool,
}

/// Time slots of [`Schedule::barred`].
const ROUND: usize = 256;

impl Slot {
    /// Z-MAC's time frame rule: the period is the smallest power of two above `largest`, the largest slot number within two
    /// hops. Nodes within two hops of each other may take different periods and still never meet: each one's number is below
    /// both periods, so on the shorter one the two stand at different places.
    pub fn by_rule(number: u16, largest: u16) -> Slot {
        let frame = largest
            .max(number)
            .saturating_add(1)
            .checked_next_power_of_two()
            .unwrap_or(1 << 15);
        Slot { number, frame }
    }

    /// Whether time slot `index` is one of these.
    pub fn holds(self, index: u64) -> bool {
        let frame = u64::from(self.frame.max(1));
        // A division takes as long as all the rest.
        let place = match frame.is_power_of_two() {
            true => index & (frame - 1),
            false => index % frame,
        };
        place == u64::from(self.number)
    }
}

impl Schedule {
    /// A node that owns `own` and knows no node two hops away.
    pub const fn new(own: Option<Slot>) -> Schedule {
        Schedule {
            own,
            two_hop: [None; TWO_HOP_MAX],
            barred: [0; ROUND / 64],
            longer: false,
        }
    }

    /// A node that owns every time slot: no other node within two hops.
    pub const fn alone() -> Schedule {
        Schedule::new(Some(Slot {
            number: 0,
            frame: 1,
        }))
    }

    /// The schedule of node `node` in a coloured network: `slots[n]` is the number of node n's slot.
    pub fn of(node: usize, slots: &[u16], adjacent: impl Fn(usize, usize) -> bool) -> Schedule {
        let slot = |at: usize| {
            let near =
                (0..slots.len()).filter(|&n| n == at || within_two(at, n, slots.len(), &adjacent));
            let largest = near.filter_map(|n| slots.get(n)).max();
            Slot::by_rule(
                slots.get(at).copied().unwrap_or(0),
                largest.copied().unwrap_or(0),
            )
        };
        let mut schedule = Schedule::new(Some(slot(node)));
        for other in 0..slots.len() {
            let beyond = other != node && !adjacent(node, other);
            if beyond && within_two(node, other, slots.len(), &adjacent) {
                schedule.bar(slot(other));
            }
        }
        schedule
    }

    /// Records the slots of a node two hops away. False if there is no room.
    pub fn bar(&mut self, slot: Slot) -> bool {
        let Some(free) = self.two_hop.iter_mut().find(|place| place.is_none()) else {
            return false;
        };
        *free = Some(slot);
        let divides = ROUND.is_multiple_of(usize::from(slot.frame.max(1)));
        self.longer |= !divides;
        for index in (0..ROUND as u64).filter(|&index| divides && slot.holds(index)) {
            if let Some(bits) = self.barred.get_mut(index as usize / 64) {
                *bits |= 1 << (index % 64);
            }
        }
        true
    }

    /// Whether the node owns the time slot that `at` lies in.
    pub fn owns(&self, at: Instant, slot: Duration) -> bool {
        let index = index(at, slot);
        self.own.is_some_and(|own| own.holds(index))
    }

    /// Whether the time slot that `at` lies in belongs to a node two hops away, and not to this one.
    pub fn is_barred(&self, at: Instant, slot: Duration) -> bool {
        self.bars(index(at, slot))
    }

    fn bars(&self, index: u64) -> bool {
        let holds = |owner: &Option<Slot>| owner.is_some_and(|owner| owner.holds(index));
        let place = index as usize % ROUND;
        let bits = self.barred.get(place / 64).copied().unwrap_or(0);
        let barred = bits >> (place % 64) & 1 == 1 || self.longer && self.two_hop.iter().any(holds);
        barred && !holds(&self.own)
    }

    /// The earliest moment from `at` on that lies neither in a barred time slot nor less than `guard` before one.
    pub fn clear_from(&self, at: Instant, slot: Duration, guard: Duration) -> Instant {
        clear_from(at, slot, guard, |index| self.bars(index))
    }
}

/// The earliest moment from `at` on that lies neither in a time slot of which `bars` is true, nor less than `guard` before one.
pub(crate) fn clear_from(
    at: Instant,
    slot: Duration,
    guard: Duration,
    bars: impl Fn(u64) -> bool,
) -> Instant {
    let mut at = at;
    // Owners recur with their frames, so a bar that lasts longer than this is permanent.
    for _ in 0..1024 {
        let here = index(at, slot);
        if !bars(here) && !bars(index(at + guard, slot)) {
            return at;
        }
        at = Instant::ZERO + slot * (here.saturating_add(1));
    }
    at
}

fn index(at: Instant, slot: Duration) -> u64 {
    at.saturating_since(Instant::ZERO).steps(slot)
}

fn within_two(a: usize, b: usize, nodes: usize, adjacent: &impl Fn(usize, usize) -> bool) -> bool {
    a != b
        && (adjacent(a, b)
            || (0..nodes).any(|via| via != a && via != b && adjacent(a, via) && adjacent(via, b)))
}

/// Gives each node in `order` the smallest slot that no node within two hops has: the outcome of [`Drand`](super::Drand)
/// if the nodes decide in that order. Nodes that `order` omits keep their entry in `slots`.
///
/// O(n^3) calls of `adjacent`, which must be symmetric.
pub fn colour(order: &[usize], slots: &mut [u16], adjacent: impl Fn(usize, usize) -> bool) {
    let nodes = slots.len();
    for &node in order {
        if let Some(slot) = slots.get_mut(node) {
            *slot = u16::MAX;
        }
    }
    for &node in order {
        let taken = |number: u16| {
            (0..nodes).any(|other| {
                slots.get(other) == Some(&number) && within_two(node, other, nodes, &adjacent)
            })
        };
        let free = (0..u16::MAX).find(|&number| !taken(number));
        if let (Some(slot), Some(free)) = (slots.get_mut(node), free) {
            *slot = free;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use chappe_core::{Purpose, Seed};
    use std::vec::Vec;

    /// A - B - C - D: A and D share slot 0, and every frame has four slots.
    #[test]
    fn a_chain_of_four() {
        let adjacent = |a: usize, b: usize| a.abs_diff(b) == 1;
        let mut slots = [0; 4];
        colour(&[0, 1, 2, 3], &mut slots, adjacent);
        assert_eq!(slots, [0, 1, 2, 0]);
        let ms = |ms: u64| Instant::from_millis(ms);
        let slot = Duration::from_millis(10);
        let first = Schedule::of(0, &slots, adjacent);
        assert_eq!(
            first.own,
            Some(Slot {
                number: 0,
                frame: 4
            })
        );
        assert!(first.owns(ms(45), slot) && !first.owns(ms(55), slot));
        // Slot 2 is C's, two hops from A; D shares A's own and is too far to be barred.
        assert!(first.is_barred(ms(25), slot) && !first.is_barred(ms(5), slot));
        let guard = Duration::from_millis(2);
        assert_eq!(first.clear_from(ms(15), slot, guard), ms(15));
        assert_eq!(first.clear_from(ms(19), slot, guard), ms(30));
        assert_eq!(first.clear_from(ms(25), slot, guard), ms(30));
    }

    #[test]
    fn frames_are_powers_of_two_above_the_largest_slot() {
        for (largest, frame) in [
            (0, 1),
            (1, 2),
            (2, 4),
            (3, 4),
            (4, 8),
            (28, 32),
            (31, 32),
            (32, 64),
        ] {
            assert_eq!(Slot::by_rule(0, largest).frame, frame);
        }
        assert_eq!(Slot::by_rule(65_535, 65_535).frame, 1 << 15);
    }

    /// Goal: the bits of barred slots say what the owners say, whatever their periods. Method: random owners, some of periods that are
    /// longer than the bits or do not divide them, against each owner's own rule.
    #[test]
    fn bits_of_barred_slots_are_those_of_the_owners() {
        for seed in 0..50 {
            let mut random = Seed(seed).stream(Purpose::Trial(1));
            let periods = [1, 4, 32, 64, 256, 512, 1024, 12, 100];
            // Half of the schedules have only periods that divide the bits.
            let usable = if seed % 2 == 0 { 5 } else { periods.len() };
            let mut draw = || {
                let frame = periods[random.below(usable as u64) as usize];
                let number = random.below(u64::from(frame)) as u16;
                Slot { number, frame }
            };
            let own = Slot {
                number: 3,
                frame: 8,
            };
            let mut schedule = Schedule::new(Some(own));
            let mut owners = Vec::new();
            for _ in 0..12 {
                let owner = draw();
                let usual = owner.frame > 1 || seed % 5 == 0;
                if usual {
                    assert!(schedule.bar(owner));
                    owners.push(owner);
                }
            }
            let barred = |index| {
                owners
                    .iter()
                    .any(|owner| index % u64::from(owner.frame) == u64::from(owner.number))
            };
            for index in (0..3000).chain([u64::MAX - 1, 1 << 40]) {
                let expected = barred(index) && index % 8 != 3;
                assert_eq!(schedule.bars(index), expected, "seed {seed}, slot {index}");
            }
        }
    }

    /// Random networks: no two nodes within two hops ever own one time slot, though their frames differ in length.
    #[test]
    fn nodes_within_two_hops_share_no_slot() {
        for seed in 0..10 {
            let mut random = Seed(seed).stream(Purpose::Topology);
            let places: Vec<(f64, f64)> = (0..40)
                .map(|_| (random.fraction(), random.fraction()))
                .collect();
            let adjacent = |a: usize, b: usize| {
                let (p, q): ((f64, f64), (f64, f64)) = (places[a], places[b]);
                a != b && (p.0 - q.0).powi(2) + (p.1 - q.1).powi(2) < 0.04
            };
            let mut slots = [0; 40];
            let order: Vec<usize> = (0..40).collect();
            colour(&order, &mut slots, adjacent);
            let schedules: Vec<Schedule> =
                (0..40).map(|n| Schedule::of(n, &slots, adjacent)).collect();
            for a in 0..40 {
                for b in (0..a).filter(|&b| within_two(a, b, 40, &adjacent)) {
                    assert_ne!(slots[a], slots[b]);
                    let (p, q) = (schedules[a].own.unwrap(), schedules[b].own.unwrap());
                    assert!((0..256).all(|index| !(p.holds(index) && q.holds(index))));
                }
            }
        }
    }
}
