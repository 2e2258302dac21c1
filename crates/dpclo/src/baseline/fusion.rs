//! Fusion (Hull, Jamieson, Balakrishnan, SenSys 2004): hop-by-hop flow control by one bit, and sources that send when they
//! overhear their parent forwarding.
//!
//! The router's rule (`Scheme::Fusion`): one queue in order of arrival, the best route only. A node whose queue is nearly full
//! sets a bit in every packet and competes in a higher class. A node that receives that bit from its next hop stops after one
//! more packet, which carries the congestion further up.

use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use crate::config::OverhearLaw;

/// The congestion bits in the neighbours' last packets.
#[derive(Clone, Debug)]
pub(crate) struct CongestionBits {
    bits: Vec<Bit>,
    /// How long a bit is valid unless it is received again.
    life: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bit {
    set: bool,
    heard: Instant,
    /// One more packet may be sent.
    grace: bool,
}

impl CongestionBits {
    pub fn new(neighbours: u8, life: Duration) -> CongestionBits {
        let bits = alloc::vec![Bit::default(); usize::from(neighbours)];
        CongestionBits { bits, life }
    }

    //= dpclo II: Fusion's hop-by-hop flow control
    /// A neighbour's packet was received or overheard.
    pub fn on_packet(&mut self, now: Instant, neighbour: u8, set: bool) {
        if let Some(bit) = self.bits.get_mut(usize::from(neighbour)) {
            let first = set && !bit.set;
            *bit = Bit {
                set,
                heard: now,
                grace: first || set && bit.grace,
            };
        }
    }

    /// Whether a packet may be sent to a neighbour.
    pub fn allows(&self, now: Instant, neighbour: u8) -> bool {
        let bit = self.bits.get(usize::from(neighbour));
        bit.is_none_or(|bit| {
            let holds = bit.set && now.saturating_since(bit.heard) <= self.life;
            !holds || bit.grace
        })
    }

    /// A packet was sent to a neighbour: uses up the one more packet.
    pub fn sent(&mut self, neighbour: u8) {
        if let Some(bit) = self.bits.get_mut(usize::from(neighbour)) {
            bit.grace = false;
        }
    }
}

/// Most sources of a parent that are distinguished.
const SOURCES: usize = 16;
/// How long a source counts as active after its last packet (ours).
const REMEMBERED: Duration = Duration::from_secs(10);

//= dpclo II: Fusion's sources send as often as their parent forwards for each source
/// Tokens earned by overhearing: one for each N packets that the parent forwards, N being the number of its sources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverheardTokens {
    law: OverhearLaw,
    tokens: f64,
    counted: Instant,
    heard: [Option<(u16, Instant)>; SOURCES],
}

impl OverheardTokens {
    pub fn new(law: OverhearLaw, now: Instant) -> OverheardTokens {
        OverheardTokens {
            law,
            tokens: law.most,
            counted: now,
            heard: [None; SOURCES],
        }
    }

    /// The parent was overheard sending a packet of `source`. The destination itself forwards nothing; there, each own packet
    /// that it acknowledged counts.
    pub fn on_forwarded(&mut self, now: Instant, source: u16) {
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

    /// Takes a token, or returns the instant of the next one if nothing is overheard.
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
        let mut bits = CongestionBits::new(2, Duration::from_secs(1));
        assert!(bits.allows(NOW, 0));
        bits.on_packet(NOW, 0, true);
        assert!(
            bits.allows(NOW, 0),
            "one more, so that the congestion becomes known"
        );
        bits.sent(0);
        assert!(!bits.allows(NOW, 0) && bits.allows(NOW, 1));
        bits.on_packet(NOW, 0, true);
        assert!(!bits.allows(NOW, 0), "heard again is not heard first");
        assert!(!bits.allows(NOW + Duration::from_secs(1), 0));
        assert!(bits.allows(NOW + Duration::from_millis(1001), 0));
        bits.on_packet(NOW, 0, false);
        assert!(bits.allows(NOW, 0));
    }

    #[test]
    fn tokens_come_with_every_nth_packet_of_the_parent() {
        let law = OverhearLaw {
            most: 2.0,
            floor: 0.001,
        };
        let mut turns = OverheardTokens::new(law, NOW);
        assert!(turns.take(NOW).is_ok() && turns.take(NOW).is_ok());
        let mut taken = 0;
        for n in 0..30 {
            turns.on_forwarded(NOW, n % 3);
            taken += u32::from(turns.take(NOW).is_ok());
        }
        // 1 + 1/2 until all three are known, then 28 thirds: 10.8.
        assert_eq!(taken, 10);
        let until = turns.take(NOW).unwrap_err();
        assert!(turns.take(until).is_ok(), "the floor ends any silence");
    }
}
