//! Which of two policies a block follows, so that a class loses what it may and hardly less.
//!
//! A policy adds whole repairs, so the cheapest one that meets a promise leaves less than it has to. With few packets in a slot that is
//! half of it. The blocks of a class take turns between that policy and the next cheaper one ([`Mixture`](crate::policy::Mixture)). But only as
//! long as the class has lost no more than promised: a turn is not worth what a wrong estimate costs.

use crate::config::SERVICES;

/// The fractional part of the golden ratio: multiples of it are spread evenly at any length (Weyl's sequence).
const GOLDEN: f64 = 0.618_033_988_749_894_9;
/// Losses that a class saves up at most: with many, a good hour would be followed by a bad minute.
const CREDIT_MAX: f64 = 2.0;
/// Most losses that a class makes up for: a second without a frame at 100 packets a second.
const DEBT_MAX: f64 = 100.0;

/// For each class, its losses beside what is promised, and the turn of its latest block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    classes: [Class; SERVICES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// By how many losses it is better than promised; negative if it is worse.
    credit: f64,
    turn: f64,
}

impl Turns {
    /// A body of a class that may lose the share `residual` is settled: whether it was lost or came too late.
    pub fn settle(&mut self, service: usize, residual: f64, missed: bool) {
        if let Some(class) = self.classes.get_mut(service) {
            let loss = if missed { 1.0 } else { 0.0 };
            class.credit = (class.credit + residual - loss).clamp(-DEBT_MAX, CREDIT_MAX);
        }
    }

    /// The turn of a class's next block, from 0 to 1; 0 while it has lost more than promised.
    pub fn next(&mut self, service: usize) -> f64 {
        match self.classes.get_mut(service) {
            Some(class) if class.credit >= 0.0 => {
                class.turn = (class.turn + GOLDEN) % 1.0;
                class.turn
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A share of the turns lies above any bound, none does after a loss, until as many bodies have arrived as pay for it.
    #[test]
    fn turns_end_with_the_credit() {
        let mut turns = Turns::default();
        let above = (0..1000).filter(|_| turns.next(0) >= 0.7).count();
        assert!((295..=305).contains(&above), "{above}");
        turns.settle(0, 0.01, true);
        let settled = (0..).take_while(|_| {
            turns.settle(0, 0.01, false);
            turns.next(0) == 0.0
        });
        assert_eq!(settled.count(), 98);
        // Another class has its own; what was saved up pays for two losses, not for three.
        assert!(turns.next(1) > 0.0);
        (0..1000).for_each(|_| turns.settle(0, 0.01, false));
        let after = |turns: &mut Turns| {
            turns.settle(0, 0.01, true);
            turns.next(0) > 0.0
        };
        assert_eq!([(); 3].map(|()| after(&mut turns)), [true, true, false]);
    }
}
