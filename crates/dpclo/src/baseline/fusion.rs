//! Fusion (Hull, Jamieson, Balakrishnan, SenSys 2004): hop-by-hop flow control by one bit, and sources that send when they
//! hear their parent forward.
//!
//! The router's rule (`Scheme::Fusion`): one queue in order of arrival, the best route only; a node whose queue has hardly any
//! room left sets a bit in every packet and competes in a higher class; who hears that bit from its next hop stops, after
//! one more packet, so that the congestion becomes known further up.

use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use crate::config::TurnLaw;

/// What the neighbours' last packets said of their queues.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    bits: Vec<Bit>,
    /// How long a bit holds that is not heard again.
    life: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bit {
    set: bool,
    heard: Instant,
    /// One packet may still go.
    grace: bool,
}

impl Bits {
    pub fn new(neighbours: u8, life: Duration) -> Bits {
        let bits = alloc::vec![Bit::default(); usize::from(neighbours)];
        Bits { bits, life }
    }

    //= dpclo II: Fusion's hop-by-hop flow control
    /// A neighbour's packet was heard.
    pub fn hear(&mut self, now: Instant, neighbour: u8, set: bool) {
        if let Some(bit) = self.bits.get_mut(usize::from(neighbour)) {
            let first = set && !bit.set;
            *bit = Bit {
                set,
                heard: now,
                grace: first || set && bit.grace,
            };
        }
    }

    /// Whether a packet may go to a neighbour.
    pub fn allows(&self, now: Instant, neighbour: u8) -> bool {
        let bit = self.bits.get(usize::from(neighbour));
        bit.is_none_or(|bit| {
            let holds = bit.set && now.saturating_since(bit.heard) <= self.life;
            !holds || bit.grace
        })
    }

    /// A packet went to a neighbour: the one that may still go has gone.
    pub fn sent(&mut self, neighbour: u8) {
        if let Some(bit) = self.bits.get_mut(usize::from(neighbour)) {
            bit.grace = false;
        }
    }
}

/// Sources that a parent is told apart by.
const SOURCES: usize = 16;
/// How long a source counts after its last packet (ours).
const REMEMBERED: Duration = Duration::from_secs(10);

//= dpclo II: Fusion's sources send as often as their parent forwards for each source
/// Tokens earned by listening: one for each N packets that the parent forwards, N the number of sources it forwards for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    law: TurnLaw,
    tokens: f64,
    counted: Instant,
    heard: [Option<(u16, Instant)>; SOURCES],
}

impl Turns {
    pub fn new(law: TurnLaw, now: Instant) -> Turns {
        Turns {
            law,
            tokens: law.most,
            counted: now,
            heard: [None; SOURCES],
        }
    }

    /// The parent was heard sending a packet of `source`. The destination itself sends nothing on: there, each own packet that
    /// it confirmed counts.
    pub fn hear(&mut self, now: Instant, source: u16) {
        let fresh = |known: &Option<(u16, Instant)>| {
            known.filter(|&(_, heard)| now.saturating_since(heard) <= REMEMBERED)
        };
        let known = self
            .heard
            .iter()
            .position(|slot| slot.is_some_and(|(node, _)| node == source));
        let place = known.or_else(|| self.heard.iter().position(|slot| fresh(slot).is_none()));
        if let Some(slot) = place.and_then(|place| self.heard.get_mut(place)) {
            *slot = Some((source, now));
        }
        let sources = self.heard.iter().filter_map(fresh).count().max(1);
        self.tokens = (self.tokens + 1.0 / sources as f64).min(self.law.most);
    }

    /// Takes a token, or says when there will be one if nothing is heard.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let span = now.saturating_since(self.counted).as_secs_f64();
        self.tokens = (self.tokens + self.law.floor * span).min(self.law.most);
        self.counted = now;
        if self.tokens >= 1.0 - 1e-6 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = Duration::from_secs_f64((1.0 - self.tokens) / self.law.floor.max(1e-3));
        Err(now + missing.max(Duration::from_nanos(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(5000);

    #[test]
    fn a_bit_stops_after_one_packet_and_for_a_second() {
        let mut bits = Bits::new(2, Duration::from_secs(1));
        assert!(bits.allows(NOW, 0));
        bits.hear(NOW, 0, true);
        assert!(
            bits.allows(NOW, 0),
            "one more, so that the congestion becomes known"
        );
        bits.sent(0);
        assert!(!bits.allows(NOW, 0) && bits.allows(NOW, 1));
        bits.hear(NOW, 0, true);
        assert!(!bits.allows(NOW, 0), "heard again is not heard first");
        assert!(!bits.allows(NOW + Duration::from_secs(1), 0));
        assert!(bits.allows(NOW + Duration::from_millis(1001), 0));
        bits.hear(NOW, 0, false);
        assert!(bits.allows(NOW, 0));
    }

    #[test]
    fn tokens_come_with_every_nth_packet_of_the_parent() {
        let law = TurnLaw {
            most: 2.0,
            floor: 0.001,
        };
        let mut turns = Turns::new(law, NOW);
        assert!(turns.take(NOW).is_ok() && turns.take(NOW).is_ok());
        let mut taken = 0;
        for n in 0..30 {
            turns.hear(NOW, n % 3);
            taken += u32::from(turns.take(NOW).is_ok());
        }
        // 1 + 1/2 until all three are known, then 28 thirds: 10.8.
        assert_eq!(taken, 10);
        let until = turns.take(NOW).unwrap_err();
        assert!(turns.take(until).is_ok(), "the floor ends any silence");
    }
}
