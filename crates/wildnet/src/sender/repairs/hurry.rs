//! Repairs that hurry an urgent packet: with its first round, although its deadline leaves time for another one.
//!
//! A class that drops what is late is for packets that are waited for: a ping, a keystroke, voice. Its plan keeps the promise as cheaply as
//! it can, which is by repetition wherever the deadline allows a further round. So on a short path that loses 15 % one packet in seven came a
//! round trip later than it could have. Such packets are small and few, and so are repairs for them. They are sent at once while
//! they take hardly any of what is sent altogether.

use crate::config::Service;
use crate::header::COVER;

/// Share of a class's packets that may need another round. The delay of what is waited for is usually given as what 95 of 100 stay below.
const LEFT: f64 = 0.05;
/// Share of all octets that these repairs may take: as many as copies of what was lost several times (`insistence.rs`). The overhead is
/// to stay within a percent of the bound (specs 2.2).
const COST: f64 = 0.01;
/// Octets that may be saved up: two full frames. A burst of urgent packets should not delay others by more.
const SAVED: f64 = 3_000.0;

/// What may still be spent on urgent packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hurry {
    /// Octets of repairs that may still leave.
    credit: f64,
    /// Octets of the longest body of the open block.
    longest: usize,
}

impl Hurry {
    /// A frame of `len` octets has left.
    pub fn earn(&mut self, len: usize) {
        self.credit = (self.credit + COST * len as f64).min(SAVED);
    }

    /// A body of `len` octets joins the open block, or is the first of a new one.
    pub fn on_new(&mut self, len: usize, first: bool) {
        self.longest = if first { len } else { self.longest.max(len) };
    }

    /// What a class is to get in its first round, in place of its promise.
    pub fn goal(service: Service) -> Service {
        Service {
            residual: service.residual.max(LEFT),
            ..service
        }
    }

    /// Pays for as many of `wanted` repairs of the open block as there is credit for. `around`: octets of a frame beside the body.
    pub fn pay(&mut self, wanted: usize, around: usize) -> usize {
        let each = (self.longest + COVER + around) as f64;
        let paid = wanted.min((self.credit / each) as usize);
        self.credit -= paid as f64 * each;
        paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside a transfer each ping gets what it needs; a class that fills the link gets a percent.
    #[test]
    fn repairs_take_a_percent_at_most() {
        let mut hurry = Hurry::default();
        hurry.on_new(90, true);
        assert_eq!(hurry.pay(7, 30), 0);
        for _ in 0..83 {
            hurry.earn(1_500);
        }
        assert_eq!(hurry.pay(7, 30), 7);
        let (mut sent, mut repairs) = (0, 0);
        for _ in 0..10_000 {
            hurry.on_new(1_000, true);
            let more = hurry.pay(2, 30) * (1_000 + COVER + 30);
            (sent, repairs) = (sent + 1_030, repairs + more);
            hurry.earn(1_030);
        }
        let share = repairs as f64 / sent as f64;
        assert!((0.009..=0.0101).contains(&share), "{share}");
    }
}
