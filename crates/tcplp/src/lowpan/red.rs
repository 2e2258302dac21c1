//! Random early detection (RED) with ECN, for a relay's queue.
//!
//! S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on Networking
//! 1(4), 1993; ECN-capable packets are marked instead of dropped (RFC 3168). Integer arithmetic only.

use chappe_core::{Duration, Instant, Stream};

/// The thresholds of the average queue length, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Below this average every packet passes.
    pub min: u16,
    /// At this average and above every packet is marked, or dropped if it is not ECN-capable.
    pub max: u16,
    /// max_p: the probability of a mark just below `max`, in 1/256.
    pub probability: u8,
    /// The average moves by 1/2^weight of the distance with each arrival. The paper's 1/512 is for queues of hundreds of
    /// packets; a relay with a dozen frames needs 1/4 to 1/16.
    pub weight: u8,
    /// The transmission time of a frame, by which the average of an idle queue decays.
    pub service: Duration,
}

impl Thresholds {
    /// For a queue of `frames` at 802.15.4's 250 kb/s: thresholds at a quarter and three quarters, max_p of one in ten.
    pub const fn of(frames: u16) -> Thresholds {
        Thresholds {
            min: frames / 4,
            max: frames / 4 * 3,
            probability: 26,
            weight: 2,
            service: Duration::from_millis(7),
        }
    }
}

/// What to do with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Queue the packet unchanged.
    Pass,
    /// Mark it if it is ECN-capable, else drop it.
    Notify,
}

/// The average queue length, and the packets since the last mark.
#[derive(Clone, Copy, Debug, Default)]
pub struct Red {
    /// The average queue length, in 1/256 of a frame.
    average: u32,
    /// Packets since the last mark or drop.
    since: u32,
    /// Since when the queue has been empty.
    idle: Option<Instant>,
}

impl Red {
    /// The queue became empty at `now`.
    pub fn emptied(&mut self, now: Instant) {
        self.idle = Some(now);
    }

    /// The average queue length in whole frames, rounded down.
    pub fn average(&self) -> u32 {
        self.average >> 8
    }

    //= tcplp 8: random early detection at relays, marking where packets allow it
    /// Decides about a packet that arrives while `queue` frames wait.
    pub fn judge(
        &mut self,
        now: Instant,
        queue: usize,
        thresholds: &Thresholds,
        random: &mut Stream,
    ) -> Verdict {
        let weight = u32::from(thresholds.weight.min(16));
        if let Some(idle) = self.idle.take() {
            let steps = now.saturating_since(idle).steps(thresholds.service);
            for _ in 0..steps.min(64) {
                self.average -= self.average >> weight;
            }
            if steps > 64 {
                self.average = 0;
            }
        }
        let now = (queue.min(0xffff) as u32) << 8;
        self.average = match now >= self.average {
            true => self.average + ((now - self.average) >> weight),
            false => self.average - ((self.average - now) >> weight),
        };
        let min = u32::from(thresholds.min) << 8;
        let max = u32::from(thresholds.max).max(1) << 8;
        if self.average < min {
            self.since = 0;
            return Verdict::Pass;
        }
        if self.average >= max {
            self.since = 0;
            return Verdict::Notify;
        }
        // p_b = max_p (avg - min) / (max - min), in 1/65536; p_a = p_b / (1 - count p_b).
        let span = (max - min).max(1);
        let base = u64::from(thresholds.probability) * 256 * u64::from(self.average - min);
        let base = base / u64::from(span);
        let left = 65_536u64.saturating_sub(u64::from(self.since) * base);
        let notify = match left {
            0 => true,
            left => random.below(left) < base,
        };
        self.since = if notify {
            0
        } else {
            self.since.saturating_add(1)
        };
        match notify {
            true => Verdict::Notify,
            false => Verdict::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn share(queue: usize, packets: u32) -> f64 {
        let mut red = Red::default();
        let mut random = Seed(1).stream(Purpose::Node(1));
        let thresholds = Thresholds::of(16);
        let now = Instant::from_millis(1);
        let notices = (0..packets)
            .filter(|_| red.judge(now, queue, &thresholds, &mut random) == Verdict::Notify)
            .count();
        notices as f64 / f64::from(packets)
    }

    /// Below the first threshold nothing, above the second everything. Between them the count makes the distance
    /// between notices uniform over 1 ..= 1/p_b (section 7 of the paper), so 1 in (1/p_b + 1)/2.
    #[test]
    fn notices_are_as_frequent_as_stated() {
        assert_eq!(share(3, 10_000), 0.0);
        assert!(share(13, 10_000) > 0.99);
        let p = 26.0 / 256.0 / 2.0;
        let expected = 2.0 / (1.0 / p + 1.0);
        let found = share(8, 100_000);
        assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
    }

    #[test]
    fn an_idle_queue_forgets() {
        let mut red = Red::default();
        let mut random = Seed(1).stream(Purpose::Node(1));
        let thresholds = Thresholds::of(16);
        for _ in 0..50 {
            red.judge(Instant::ZERO, 12, &thresholds, &mut random);
        }
        assert!(red.average() >= 11);
        red.emptied(Instant::ZERO);
        red.judge(Instant::from_millis(70), 0, &thresholds, &mut random);
        assert_eq!(red.average(), 0);
    }
}
