//! The source's rate limit: rate and tokens for one destination.

use chappe_core::{Duration, Instant};

use crate::baseline::fusion::OverheardTokens;
use crate::config::{AirtimeLaw, PriceLaw, QueueLaw, RateLaw};

/// Size of the token bucket: packets that may be sent at once after a pause. Prices of airtime have their own.
const BURST: f64 = 2.0;

/// Tokens that packets which go first may take in advance: a handful of flows that say little.
const AHEAD: f64 = 8.0;

/// The interval between packets, in times of `around`, that has the same cost whatever the fairness. 50 (ours: 20 packets a second at
/// 2 Mbit/s, in the middle of what meshes carry).
const UNIT: f64 = 50.0;

/// The rate at which a node may put its own packets for one destination into its queue.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    law: RateLaw,
    /// Tokens that the bucket holds.
    bucket: f64,
    /// The rate in packets a second.
    rate: f64,
    tokens: f64,
    counted: Instant,
    /// The queue at the last update.
    before: f64,
    /// Packets refused by the full queue since then.
    refused: u32,
    next_update: Instant,
    /// Replaces the fields above under [`RateLaw::Overheard`].
    overheard: Option<OverheardTokens>,
}

impl Rate {
    /// A source that begins at `now`.
    pub fn new(law: RateLaw, now: Instant) -> Rate {
        let (rate, next_update) = match law {
            RateLaw::Queue(law) => (law.start, now + law.interval),
            RateLaw::Price(law) => (law.gain, now + law.interval),
            RateLaw::Airtime(law) => (law.start, now + law.interval),
            RateLaw::Overheard(_) | RateLaw::Unlimited => (f64::MAX, Instant::MAX),
        };
        let overheard = match law {
            RateLaw::Overheard(law) => Some(OverheardTokens::new(law, now)),
            _ => None,
        };
        let bucket = match law {
            RateLaw::Airtime(law) => law.bucket,
            _ => BURST,
        };
        Rate {
            overheard,
            law,
            bucket,
            rate,
            tokens: 1.0,
            counted: now,
            before: 0.0,
            refused: 0,
            next_update,
        }
    }

    /// The rate in packets a second; [`f64::MAX`] without a limit.
    pub fn packets_per_second(&self) -> f64 {
        self.rate
    }

    /// Takes a token, or returns the instant of the next one.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        if let Some(overheard) = &mut self.overheard {
            return overheard.take(now);
        }
        if self.law == RateLaw::Unlimited {
            return Ok(());
        }
        self.fill(now);
        self.take_filled(now)
    }

    fn take_filled(&mut self, now: Instant) -> Result<(), Instant> {
        // Deadlines are rounded to nanoseconds: a token that is short by such an error counts as whole.
        if self.tokens >= 1.0 - 1e-6 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = Duration::from_secs_f64((1.0 - self.tokens) / self.rate.max(1e-3));
        Err(now + missing.max(Duration::from_nanos(1)))
    }

    /// Takes a token for a packet that goes first: up to `AHEAD` more than there are.
    pub fn take_ahead(&mut self, now: Instant) -> Result<(), Instant> {
        if self.overheard.is_some() || self.law == RateLaw::Unlimited {
            return self.take(now);
        }
        self.fill(now);
        self.tokens += AHEAD;
        let taken = self.take_filled(now);
        self.tokens -= AHEAD;
        taken
    }

    /// Adds the tokens of the time since the last call.
    fn fill(&mut self, now: Instant) {
        let span = now.saturating_since(self.counted).as_secs_f64();
        self.tokens = (self.tokens + self.rate * span).min(self.bucket);
        self.counted = now;
    }

    /// Counts a packet that the full queue refused.
    pub fn on_refused(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    /// When the rate is updated next.
    pub fn next_update(&self) -> Instant {
        self.next_update
    }

    /// Updates the rate from the source's own queue (in packets) and the cost of its path, if it is time.
    pub fn update(&mut self, now: Instant, queue: f64, cost: Option<f64>) {
        let interval = match self.law {
            RateLaw::Queue(law) => law.interval,
            RateLaw::Price(law) => law.interval,
            RateLaw::Airtime(law) => law.interval,
            RateLaw::Overheard(_) | RateLaw::Unlimited => return,
        };
        if now < self.next_update {
            return;
        }
        // Fills the bucket at the old rate before the rate changes.
        self.fill(now);
        let (span, growth) = (
            now.saturating_since(self.next_update) + interval,
            queue - self.before,
        );
        self.rate = match self.law {
            RateLaw::Queue(law) => adapt(&law, self.rate, growth, self.refused, queue, span),
            RateLaw::Price(law) => by_price(&law, queue),
            RateLaw::Airtime(law) => by_cost(&law, self.rate, cost, span),
            RateLaw::Overheard(_) | RateLaw::Unlimited => self.rate,
        };
        (self.before, self.refused, self.next_update) = (queue, 0, now + interval);
    }

    /// The next hop was overheard forwarding a packet of `source`.
    pub(crate) fn on_forwarded(&mut self, now: Instant, source: u16) {
        if let Some(overheard) = &mut self.overheard {
            overheard.on_forwarded(now, source);
        }
    }
}

//= dpclo III-A: the source's rate for the price of its own node (eq. 2)
/// The rate that maximises Chen and others' utility `gain * log(rate)` at this price, in packets a second. A queue below one
/// packet counts as one.
pub fn by_price(law: &PriceLaw, queue: f64) -> f64 {
    law.gain / queue.max(1.0)
}

/// The next rate in packets a second: the inverse of the path's cost to the power of one over `fairness`, but at most doubled in each
/// `double`. Without a known
/// cost the rate stays.
pub fn by_cost(law: &AirtimeLaw, rate: f64, cost: Option<f64>, span: Duration) -> f64 {
    let Some(cost) = cost else {
        return rate;
    };
    let doublings = span.as_secs_f64() / law.double.as_secs_f64().max(1e-3);
    // A rate of one packet in ten seconds still hears of lower prices.
    let unit = UNIT * law.around.as_secs_f64().max(1e-6);
    let fair = libm::pow(cost.max(1e-9) / unit, -1.0 / law.fairness) / unit;
    fair.clamp(0.1, rate * libm::exp2(doublings.min(10.0)))
}

//= dpclo IV-C: a queue that has not changed invites more; else the rate follows its growth
/// The next rate, packets a second. `growth` is that of the queue over `span`, `refused` counts packets that found it full.
///
/// A queue grows by arrivals less departures, so `rate - growth / span` is the service rate, reached in one step. The
/// paper's sign is lost in print; with the other one the rate moves away from the service rate.
pub fn adapt(
    law: &QueueLaw,
    rate: f64,
    growth: f64,
    refused: u32,
    queue: f64,
    span: Duration,
) -> f64 {
    let refused = if law.count_refused {
        f64::from(refused)
    } else {
        0.0
    };
    let growth = growth + refused;
    let change = growth / span.as_secs_f64().max(1e-3);
    // Queues are whole packets, so an unchanged one has a growth of exactly zero.
    let rate = match (growth == 0.0, law.plus) {
        (true, _) => rate + law.step,
        (false, false) => rate - change,
        (false, true) => rate + change,
    };
    let drained = law.drain.map_or(0.0, |drain| {
        (queue - drain.target).max(0.0) / drain.time.as_secs_f64().max(1e-3)
    });
    (rate - drained).clamp(law.floor, law.ceiling.max(law.floor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Drain;
    use chappe_core::{Purpose, Seed};

    /// Goal: a path that costs four times as much has a quarter of the rate if rates are proportionally fair, and half of it usually;
    /// costs in the middle of their range give the same.
    #[test]
    fn rates_fall_with_the_cost_as_fairness_says() {
        let usual = AirtimeLaw::DOT11B;
        let rate = |fairness, cost| {
            let law = AirtimeLaw { fairness, ..usual };
            by_cost(&law, 1e6, Some(cost), law.interval)
        };
        for (fairness, ratio) in [(1.0, 4.0), (2.0, 2.0), (4.0, libm::sqrt(2.0))] {
            let found = rate(fairness, 0.01) / rate(fairness, 0.04);
            assert!((found - ratio).abs() < 1e-9, "{fairness}: {found}");
            assert!((rate(fairness, UNIT * 1.01e-3) * UNIT * 1.01e-3 - 1.0).abs() < 1e-9);
        }
        assert!((rate(1.0, 0.02) - 50.0).abs() < 1e-9);
    }

    /// Goal: a source starts by doubling and ends at the inverse of its path's cost. Method: a cost that is known from the
    /// beginning, and one that rises.
    #[test]
    fn rates_double_up_to_the_inverse_of_the_cost() {
        let law = AirtimeLaw {
            fairness: 1.0,
            ..AirtimeLaw::DOT11B
        };
        let mut rate = Rate::new(RateLaw::Airtime(law), Instant::ZERO);
        let mut at = |ms: u64, cost| {
            rate.update(Instant::from_millis(ms), 0.0, cost);
            rate.packets_per_second()
        };
        assert_eq!(at(100, None), 20.0, "no route yet");
        (2..12).for_each(|n| {
            at(100 * n, Some(0.001));
        });
        let doubled = at(1200, Some(0.001));
        assert!((doubled / (20.0 * libm::exp2(0.55)) - 1.0).abs() < 1e-9);
        let last = (13..150).map(|n| at(100 * n, Some(0.001))).last();
        assert!((last.unwrap() - 1000.0).abs() < 1e-6);
        assert!((at(16_000, Some(0.05)) - 20.0).abs() < 1e-6, "at once");
        assert_eq!(at(16_100, Some(1e9)), 0.1);
    }

    /// The results of one run of the toy queue.
    #[derive(Debug)]
    struct Toy {
        /// Packets served a second.
        served: f64,
        /// Mean packets that wait.
        queue: f64,
        /// Packets that found the queue full, a second.
        refused: f64,
    }

    /// A source before a queue of 50 places that is served 100 times a second, after 100 s half as often, for 200 s in all.
    /// Packets come and are served in steps of a millisecond, at random with the present rate.
    fn toy(law: QueueLaw, seed: u64) -> Toy {
        let mut random = Seed(seed).stream(Purpose::Trial(3));
        let mut rate = Rate::new(RateLaw::Queue(law), Instant::ZERO);
        let (mut waiting, mut served, mut sum, mut refused) = (0u32, 0u32, 0u64, 0u32);
        for ms in 0..200_000u64 {
            let now = Instant::from_millis(ms);
            let service = if ms < 100_000 { 0.1 } else { 0.05 };
            if random.chance(rate.packets_per_second() / 1000.0) {
                match waiting < 50 {
                    true => waiting += 1,
                    false => {
                        refused += 1;
                        rate.on_refused();
                    }
                }
            }
            if random.chance(service) && waiting > 0 {
                waiting -= 1;
                served += 1;
            }
            sum += u64::from(waiting);
            rate.update(now, f64::from(waiting), None);
        }
        Toy {
            served: f64::from(served) / 200.0,
            queue: sum as f64 / 200_000.0,
            refused: f64::from(refused) / 200.0,
        }
    }

    /// The mean of several runs.
    fn mean(law: QueueLaw) -> Toy {
        let runs: [Toy; 10] = core::array::from_fn(|seed| toy(law, seed as u64));
        let mean = |of: fn(&Toy) -> f64| runs.iter().map(of).sum::<f64>() / 10.0;
        Toy {
            served: mean(|toy| toy.served),
            queue: mean(|toy| toy.queue),
            refused: mean(|toy| toy.refused),
        }
    }

    fn near(what: f64, reference: f64, share: f64) -> bool {
        (what - reference).abs() <= share * reference
    }

    /// Goal: the sign is minus. Method: a toy queue is compared with an independent one (58 packets a second served, 22
    /// waiting, 0.1 refused; with plus 40 waiting and 223 refused), whose arrivals were drawn in another way.
    #[test]
    fn minus_follows_the_service_rate_and_plus_diverges() {
        let minus = mean(QueueLaw::PAPER);
        assert!(near(minus.served, 58.0, 0.05), "{minus:?}");
        assert!(
            near(minus.queue, 22.0, 0.4) && minus.refused < 0.5,
            "{minus:?}"
        );
        let plus = mean(QueueLaw {
            plus: true,
            ..QueueLaw::PAPER
        });
        assert!(near(plus.queue, 40.0, 0.15), "{plus:?}");
        assert!(near(plus.refused, 223.0, 0.25), "{plus:?}");
    }

    /// The same toy: steps of 0.5, 2 and 10 serve 40, 58 and 72 packets a second with 4, 22 and 36 waiting.
    #[test]
    fn the_step_trades_speed_for_queue() {
        for (step, served, queue) in [(0.5, 40.0, 4.0), (10.0, 72.0, 36.0)] {
            let toy = mean(QueueLaw {
                step,
                ..QueueLaw::PAPER
            });
            assert!(near(toy.served, served, 0.06), "{step}: {toy:?}");
            assert!(near(toy.queue, queue, 0.45), "{step}: {toy:?}");
        }
    }

    /// What goes beyond the paper: a drain term leaves 2.3 waiting at about a tenth less, and a full queue that counts what it
    /// refuses refuses less.
    #[test]
    fn draining_empties_the_queue_and_refusals_count() {
        let drained = mean(QueueLaw {
            drain: Some(Drain {
                target: 3.0,
                time: Duration::from_secs(5),
            }),
            ..QueueLaw::PAPER
        });
        let plain = mean(QueueLaw::PAPER);
        assert!(near(drained.queue, 2.3, 0.3), "{drained:?}");
        assert!(
            near(drained.served, 0.9 * plain.served, 0.05),
            "{drained:?}"
        );
        let fast = |count_refused| {
            mean(QueueLaw {
                step: 10.0,
                count_refused,
                ..QueueLaw::PAPER
            })
        };
        let (deaf, counting) = (fast(false), fast(true));
        assert!(
            counting.refused * 10.0 < deaf.refused,
            "{deaf:?} {counting:?}"
        );
        assert!(
            near(counting.served, deaf.served, 0.05),
            "{deaf:?} {counting:?}"
        );
    }

    #[test]
    fn one_step_reaches_the_service_rate() {
        // 30 a second came, the queue grew by 5 in half a second: 20 a second were served.
        let half = Duration::from_millis(500);
        let next = |rate, growth| adapt(&QueueLaw::PAPER, rate, growth, 0, 5.0, half);
        assert_eq!(next(30.0, 5.0), 20.0);
        assert_eq!(next(30.0, -5.0), 40.0);
        assert_eq!(next(30.0, 0.0), 32.0);
        assert_eq!(next(3.0, 50.0), 1.0, "the floor");
    }

    #[test]
    fn the_price_sets_the_rate() {
        let law = PriceLaw {
            gain: 100.0,
            interval: Duration::from_millis(100),
        };
        assert_eq!(
            [0.0, 1.0, 4.0].map(|queue| by_price(&law, queue)),
            [100.0, 100.0, 25.0]
        );
        let mut rate = Rate::new(RateLaw::Price(law), Instant::ZERO);
        rate.update(Instant::from_millis(99), 10.0, None);
        assert_eq!(rate.packets_per_second(), 100.0, "not yet");
        rate.update(Instant::from_millis(100), 10.0, None);
        assert_eq!(rate.packets_per_second(), 10.0);
    }

    #[test]
    fn tokens_come_at_the_rate_and_do_not_pile_up() {
        let mut rate = Rate::new(RateLaw::Queue(QueueLaw::PAPER), Instant::ZERO);
        let mut taken = 0;
        let mut now = Instant::ZERO;
        while now < Instant::from_millis(10_000) {
            match rate.take(now) {
                Ok(()) => taken += 1,
                Err(until) => now = until,
            }
        }
        assert_eq!(taken, 50, "5 a second, the first at once");
        now += Duration::from_secs(100);
        assert!(rate.take(now).is_ok() && rate.take(now).is_ok() && rate.take(now).is_err());
        let mut unlimited = Rate::new(RateLaw::Unlimited, now);
        assert!((0..1000).all(|_| unlimited.take(now).is_ok()));
    }
}
