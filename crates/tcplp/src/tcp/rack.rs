//! RACK: a segment is lost when one sent sufficiently later was delivered (RFC 8985).
//!
//! Times are in microseconds. The reordering window is a quarter of the smallest round-trip time, and zero as long as no
//! reordering was seen and there is other evidence of loss. It grows in each round in which a D-SACK shows that it was too
//! small.

use super::Seq;
use super::clock::Stamp;
use super::flight::{Flight, LOST, Piece, RETRANSMITTED, SACKED};
use super::sack::DUP_THRESH;

/// RACK.reo_wnd_persist: recoveries after which a window grown by D-SACKs shrinks again (RFC 8985 6.2.4).
const PERSIST: u8 = 16;
/// RACK.reordering_seen, in the top bit of `persist`.
const REORDERING: u8 = 1 << 7;
/// The window has grown in this round (RACK.dsack_round is set).
const IN_ROUND: u8 = 1 << 6;
/// The rest of that octet: the recoveries left until the window shrinks.
const LEFT: u8 = IN_ROUND - 1;

/// The RACK variables of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rack {
    /// RACK.xmit_ts: when the most recently sent segment among those delivered was sent.
    sent_at: Stamp,
    /// RACK.end_seq: where that segment ends.
    end: Seq,
    /// RACK.rtt: its round-trip time, µs; 0 before the first.
    rtt: u32,
    /// SND.NXT when the window last grew: it grows once per round trip.
    round: Seq,
    /// RACK.reo_wnd_mult less one: the quarters of the smallest round trip by which the window has grown.
    multiplier: u8,
    /// Recoveries until the window shrinks again, and two flags in the top bits.
    persist: u8,
}

impl Rack {
    /// Whether reordering has been seen.
    pub fn reordering(&self) -> bool {
        self.persist & REORDERING != 0
    }

    /// A segment was delivered, by a cumulative or selective acknowledgement that arrived at `now`. `echo_age` is the age of
    /// the echoed timestamp in µs, if there is one. Returns the round-trip time, unless the acknowledgement may belong to
    /// an earlier copy (RFC 8985 6.2.2).
    pub(super) fn delivered(
        &mut self,
        piece: Piece,
        now: Stamp,
        echo_age: Option<u32>,
        min_rtt: u32,
    ) -> Option<u32> {
        let rtt = now.since(piece.at);
        if piece.is(RETRANSMITTED) {
            // The timestamp clock ticks in milliseconds: an echo within one tick proves nothing.
            // An answer that comes sooner than the smallest round trip belongs to an earlier copy too (RFC 8985 6.2.2).
            let earlier_copy = echo_age.is_some_and(|age| age > rtt.saturating_add(999));
            if earlier_copy || rtt < min_rtt {
                return None;
            }
        }
        let first = self.rtt == 0;
        // Zero stands for "nothing delivered yet".
        self.rtt = rtt.max(1);
        if first || self.sent_after(piece.at, piece.range.end) {
            (self.sent_at, self.end) = (piece.at, piece.range.end);
        }
        Some(rtt)
    }

    /// RACK_sent_after (RFC 8985 6.2.2): whether a segment sent at `at`, ending at `end`, was sent after the newest delivered
    /// one.
    fn sent_after(&self, at: Stamp, end: Seq) -> bool {
        at.after(self.sent_at) || at == self.sent_at && end.after(self.end)
    }

    /// A segment that was sent once was delivered below the highest delivered so far (RFC 8985 6.2.3).
    pub fn reordering_seen(&mut self) {
        self.persist |= REORDERING;
    }

    /// Adapts the window at an acknowledgement (RFC 8985 6.2.4). `duplicate`: it carries a D-SACK.
    pub fn adapt(&mut self, una: Seq, nxt: Seq, duplicate: bool) {
        if self.persist & IN_ROUND != 0 && una.at_or_after(self.round) {
            self.persist &= !IN_ROUND;
        }
        // Once per round trip: further D-SACKs of the same round report the same mistake.
        if duplicate && self.persist & IN_ROUND == 0 {
            self.round = nxt;
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = self.persist & REORDERING | IN_ROUND | PERSIST;
        }
    }

    /// A recovery ended: after sixteen of them without a D-SACK the window shrinks again.
    pub fn recovered(&mut self) {
        let (facts, left) = (self.persist & !LEFT, self.persist & LEFT);
        self.persist = facts | left.saturating_sub(1);
        if self.persist & LEFT == 0 {
            self.multiplier = 0;
        }
    }

    /// RACK.reo_wnd in µs, at most the smoothed round-trip time (RFC 8985 6.2.4).
    pub(super) fn window(
        &self,
        flight: &Flight<'_>,
        recovering: bool,
        min_rtt: u32,
        srtt: u32,
    ) -> u32 {
        let sacked = flight.pieces().filter(|piece| piece.is(SACKED)).count();
        // RFC 8985 6.2.4: without reordering, a recovery or DupThresh SACKed segments are evidence enough.
        if !self.reordering() && (recovering || sacked >= DUP_THRESH as usize) {
            return 0;
        }
        let steps = u32::from(self.multiplier).saturating_add(1);
        (min_rtt / 4).saturating_mul(steps).min(srtt)
    }

    /// How long after it was sent a segment is overdue, µs, if the reordering window is `window`.
    pub(super) fn overdue_after(&self, window: u32) -> u32 {
        self.rtt.saturating_add(window)
    }

    /// Marks every entry lost that was sent before the newest delivered one and is overdue by `window`. Returns whether one
    /// was marked, and in how many µs the last of the remaining ones will be overdue, if there are any.
    pub(super) fn mark_lost(
        &self,
        flight: &mut Flight<'_>,
        now: Stamp,
        window: u32,
    ) -> (bool, Option<u32>) {
        let (mut marked, mut wait) = (false, None);
        if self.rtt == 0 {
            return (false, None);
        }
        let overdue_after = self.overdue_after(window);
        flight.each(|piece, marks| {
            // What was sent after the newest delivered segment may still be on its way.
            let newer = self.sent_after(piece.at, piece.range.end)
                || (piece.at == self.sent_at && piece.range.end == self.end);
            if piece.is(SACKED | LOST) || newer {
                return;
            }
            let waited = now.since(piece.at);
            if waited >= overdue_after {
                *marks |= LOST;
                marked = true;
            } else {
                wait = wait.max(Some(overdue_after - waited));
            }
        });
        (marked, wait)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::Range;
    use super::super::flight::Sent;
    use super::*;
    use chappe_core::Instant;
    use std::vec;

    fn at(micros: u64) -> Stamp {
        Stamp::of(Instant::from_micros(micros))
    }

    /// Three segments sent 1 ms apart; the third is SACKed at 40 ms: its round trip is 38 ms.
    #[test]
    fn earlier_segments_are_lost_a_reordering_window_after_a_later_one_arrives() {
        let mut table = vec![Sent::default(); 8];
        let mut flight = Flight::new(&mut table);
        for n in 1..=3u32 {
            flight.push(Seq::new(n * 100), at(u64::from(n - 1) * 1000));
        }
        let mut rack = Rack::default();
        flight.sack(&[Range::new(Seq::new(200), Seq::new(300))], |piece| {
            assert_eq!(
                rack.delivered(piece, at(40_000), None, 38_000),
                Some(38_000)
            );
        });
        let window = rack.window(&flight, false, 38_000, 38_000);
        assert_eq!(window, 9_500);
        // The second segment, sent at 1 ms, is due at 1 + 38 + 9.5 ms.
        let (marked, wait) = rack.mark_lost(&mut flight, at(40_000), window);
        assert_eq!((marked, wait), (false, Some(8_500)));
        let (marked, wait) = rack.mark_lost(&mut flight, at(47_500), window);
        assert_eq!((marked, wait), (true, Some(1_000)));
        let (marked, wait) = rack.mark_lost(&mut flight, at(48_500), window);
        assert_eq!((marked, wait), (true, None));
    }

    #[test]
    fn an_echo_older_than_the_retransmission_does_not_count() {
        let mut table = vec![Sent::default(); 2];
        let mut flight = Flight::new(&mut table);
        flight.push(Seq::new(100), at(0));
        flight.retransmitted(Seq::new(0), at(50_000));
        let piece = flight.first().unwrap();
        let mut rack = Rack::default();
        assert_eq!(rack.delivered(piece, at(60_000), Some(60_000), 0), None);
        assert_eq!(
            rack.delivered(piece, at(60_000), Some(10_000), 0),
            Some(10_000)
        );
        assert_eq!(rack.delivered(piece, at(60_000), None, 38_000), None);
    }

    #[test]
    fn a_d_sack_widens_the_window_once_a_round() {
        let table: &mut [Sent] = &mut [];
        let flight = Flight::new(table);
        let mut rack = Rack::default();
        rack.reordering_seen();
        let una = Seq::new;
        rack.adapt(una(0), una(1000), true);
        rack.adapt(una(500), una(1500), true);
        assert_eq!(rack.window(&flight, false, 4_000, 10_000), 2_000);
        rack.adapt(una(1000), una(2000), true);
        assert_eq!(rack.window(&flight, false, 4_000, 10_000), 3_000);
        (0..16).for_each(|_| rack.recovered());
        assert_eq!(rack.window(&flight, false, 4_000, 10_000), 1_000);
    }
}
