//! Recovery from loss: when it begins and ends, how much it may send meanwhile, and how it is undone.
//!
//! ```text
//!            lost segment seen              all sent before it acknowledged
//!   Open ------------------------> Fast ------------------------------------> Open
//!    |  mark echoed (RFC 3168)      |
//!    +-------> Reduced --> Open     |  timeout
//!    +------------------------------+------> Loss --> Open
//! ```

use chappe_core::Instant;

use super::clock::{Stamp, span};
use super::congestion::{Congestion, share};
use super::flight::{LOST, SACKED};
use super::socket::Socket;
use super::state::{Failure, State};
use super::timers::Timer;
use super::{Seq, bits, sack};

/// What the sender is doing about congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: slow start or congestion avoidance.
    #[default]
    Open,
    /// The window was reduced after a mark, or a loss that a probe repaired; once a round trip.
    Reduced,
    /// Fast recovery (RFC 6582, RFC 6675).
    Fast,
    /// Recovery from a timeout, in slow start.
    Loss,
}

/// What recovery remembers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// The `recover` of RFC 6582: recovery ends when this is acknowledged.
    pub recover: Seq,
    /// Octets delivered and sent since recovery began, and in flight then (RFC 6937 3).
    delivered: u32,
    pub(super) sent: u32,
    flight: u32,
    /// Window and threshold to return to if the reduction was spurious.
    undo_cwnd: u32,
    undo_ssthresh: u32,
    /// TSval of the first retransmission (RFC 3522 3.2).
    pub(super) stamp: u32,
    /// Retransmissions that no D-SACK has answered.
    pub(super) undo_left: u16,
    /// Duplicate acknowledgements, without SACK.
    pub duplicates: u8,
    /// The phase.
    pub phase: Phase,
}

impl Recovery {
    /// At the start of a connection.
    pub fn new(iss: Seq) -> Recovery {
        Recovery {
            recover: iss,
            ..Recovery::default()
        }
    }
}

impl<C: Congestion> Socket<'_, C> {
    /// FlightSize: sent and not acknowledged.
    pub(super) fn flight_size(&self) -> u32 {
        self.snd_nxt.since(self.flight.una())
    }

    /// One reduction, when `flight` octets were in flight: of these never more count than the window, so that the
    /// segments of limited transmit do not (RFC 3042 2, RFC 5681 3.1).
    fn reduce(&mut self, flight: u32) {
        let flight = flight.min(self.window.cwnd);
        self.window.ssthresh = self.congestion.reduced(flight, self.segment_size());
        self.window.acked = 0;
    }

    fn remember_for_undo(&mut self) {
        self.recovery.undo_cwnd = self.window.cwnd;
        self.recovery.undo_ssthresh = self.window.ssthresh;
        self.recovery.undo_left = 0;
        self.bits.clear(bits::STAMPED);
        self.bits.put(bits::UNDO, self.local.config.undo);
    }

    /// A mark was echoed, or a probe repaired a loss that nobody saw: one reduction, no retransmission. `flight` is what
    /// was in flight before the acknowledgement that says so.
    pub(super) fn reduce_once(&mut self, flight: u32) {
        self.reduce(flight);
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.recovery.phase = Phase::Reduced;
        self.recovery.recover = self.snd_nxt;
        self.bits.clear(bits::UNDO);
        self.bits.put(bits::SAY_REDUCED, self.bits.has(bits::ECN));
    }

    /// Segments have been marked lost: starts fast recovery, unless some recovery is under way.
    pub(super) fn enter_recovery(&mut self) {
        if matches!(self.recovery.phase, Phase::Fast | Phase::Loss) || !self.flight.any(LOST) {
            return;
        }
        if self.recovery.phase == Phase::Open {
            self.remember_for_undo();
            self.reduce(self.flight_size());
            self.bits.put(bits::SAY_REDUCED, self.bits.has(bits::ECN));
        }
        let recovery = &mut self.recovery;
        recovery.phase = Phase::Fast;
        recovery.recover = self.snd_nxt;
        (recovery.delivered, recovery.sent) = (0, 0);
        recovery.flight = self.snd_nxt.since(self.flight.una()).max(1);
        if !self.prr() {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
        self.bits.set(bits::FORCE);
        self.timers.stop(Timer::Probe);
        self.counters.recoveries = self.counters.recoveries.saturating_add(1);
    }

    fn prr(&self) -> bool {
        self.local.config.prr && self.window.ssthresh != u32::MAX
    }

    /// An acknowledgement during fast recovery delivered this many octets: how much may go out now (RFC 6937 3.1,
    /// with the slow-start reduction bound).
    pub(super) fn reduce_in_proportion(&mut self, delivered: u32) {
        if self.recovery.phase != Phase::Fast || !self.prr() {
            return;
        }
        let (mss, pipe) = (self.segment_size(), self.pipe());
        let ssthresh = self.window.ssthresh;
        let recovery = &mut self.recovery;
        recovery.delivered = recovery.delivered.saturating_add(delivered);
        let mut quota = if pipe > ssthresh {
            let share = share(recovery.delivered, ssthresh, recovery.flight);
            share.saturating_sub(recovery.sent)
        } else {
            let owed = recovery.delivered.saturating_sub(recovery.sent);
            let limit = owed.max(delivered).saturating_add(mss);
            (ssthresh - pipe).min(limit)
        };
        if recovery.sent == 0 {
            quota = quota.max(mss);
        }
        self.window.cwnd = pipe.saturating_add(quota);
    }

    /// Ends a recovery whose `recover` has been acknowledged.
    pub(super) fn leave_recovery(&mut self) {
        if self.recovery.phase == Phase::Open || self.flight.una().before(self.recovery.recover) {
            return;
        }
        if self.recovery.phase == Phase::Fast && self.window.ssthresh != u32::MAX {
            self.window.cwnd = self.window.ssthresh;
            self.window.acked = 0;
        }
        if self.recovery.phase != Phase::Reduced {
            self.rack.recovered();
        }
        self.recovery.phase = Phase::Open;
        self.recovery.duplicates = 0;
    }

    /// The last reduction was spurious: window and threshold go back to what they were (RFC 4015 3.2, RFC 3708).
    pub(super) fn undo(&mut self) {
        self.window.cwnd = self.window.cwnd.max(self.recovery.undo_cwnd);
        self.window.ssthresh = self.recovery.undo_ssthresh;
        self.flight.clear(LOST);
        self.recovery.phase = Phase::Open;
        self.recovery.duplicates = 0;
        self.bits
            .clear(bits::UNDO | bits::FORCE | bits::SAY_REDUCED);
        self.counters.undone = self.counters.undone.saturating_add(1);
    }

    /// A segment left once more: what undo needs to know of it.
    pub(super) fn note_retransmission(&mut self, now: Instant) {
        self.counters.retransmits = self.counters.retransmits.saturating_add(1);
        self.recovery.undo_left = self.recovery.undo_left.saturating_add(1);
        if !self.bits.has(bits::STAMPED) {
            self.bits.set(bits::STAMPED);
            self.recovery.stamp = self.timestamp(now);
        }
    }

    /// Marks what must be lost by the evidence so far, and starts the reordering timer for what may be lost soon.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        if !self.bits.has(bits::SACK) {
            return;
        }
        if !self.local.config.rack {
            let mss = self.segment_size();
            sack::mark_lost(&mut self.flight, mss);
            return;
        }
        let window = self.reordering_window();
        let stamp = Stamp::of(now);
        let (_, wait) = self.rack.mark_lost(&mut self.flight, stamp, window);
        match wait {
            Some(micros) => {
                self.timers.start(Timer::Reorder, now + span(micros));
            }
            None => self.timers.stop(Timer::Reorder),
        }
    }

    fn reordering_window(&self) -> u32 {
        let recovering = matches!(self.recovery.phase, Phase::Fast | Phase::Loss);
        let (min, smoothed) = (self.rtt.min(), self.rtt.smoothed());
        self.rack.window(&self.flight, recovering, min, smoothed)
    }

    /// The retransmission timer fired (RFC 6298 5.4 to 5.6, RFC 5681 3.1).
    pub(super) fn retransmission_timeout(&mut self, now: Instant) {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        let max = match opening {
            true => self.local.config.syn_retries_max,
            false => self.local.config.retries_max,
        };
        if self.retries >= max {
            self.abandon();
            return;
        }
        self.retries = self.retries.saturating_add(1);
        self.counters.timeouts = self.counters.timeouts.saturating_add(1);
        self.backoff = self.backoff.saturating_add(1);
        self.timers.start(Timer::Retransmit, now + self.timeout());
        if opening {
            self.bits.set(bits::SYN_NOW | bits::SYN_RETRANSMITTED);
            return;
        }
        self.mark_lost_on_timeout(now);
        // RFC 5681: a segment that times out again halves nothing again.
        if self.recovery.phase != Phase::Loss || self.retries == 1 {
            if self.recovery.phase == Phase::Open {
                self.remember_for_undo();
            } else {
                self.bits.clear(bits::UNDO);
            }
            self.reduce(self.flight_size());
        }
        if self.window.ssthresh != u32::MAX {
            self.window.cwnd = self.segment_size();
        }
        self.recovery.phase = Phase::Loss;
        self.recovery.recover = self.snd_nxt;
        self.recovery.duplicates = 0;
        self.timers.stop(Timer::Probe);
        self.timers.stop(Timer::Reorder);
        self.bits.clear(bits::PROBED_TAIL | bits::PROBE_NOW);
        self.bits.set(bits::FORCE);
        self.bits.put(bits::SAY_REDUCED, self.bits.has(bits::ECN));
    }

    fn mark_lost_on_timeout(&mut self, now: Instant) {
        // A first segment that was SACKed and then never acknowledged: the peer reneged (RFC 2018 8).
        if self.flight.first().is_some_and(|piece| piece.is(SACKED)) {
            self.flight.clear(SACKED);
        }
        if self.bits.has(bits::SACK) && self.local.config.rack {
            let window = self.reordering_window();
            let stamp = Stamp::of(now);
            self.rack
                .mark_lost_on_timeout(&mut self.flight, stamp, window);
        } else {
            self.flight.each(|piece, marks| {
                if !piece.is(SACKED) {
                    *marks |= LOST;
                }
            });
        }
    }

    /// The peer does not answer any more.
    pub(super) fn abandon(&mut self) {
        let known = !matches!(self.state, State::SynSent | State::SynReceived);
        self.end(Some(Failure::TimedOut));
        if known {
            self.bits.set(bits::RST_NOW);
        }
    }
}
