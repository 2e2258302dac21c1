//! Loss recovery: when it begins and ends, how much it may send meanwhile, and how it is undone.

use super::clock::span;
use super::congestion::{Congestion, share};
use super::flight::{LOST, SACKED};
use super::recovery::Phase;
use super::socket::{Socket, count};
use super::state::{Failure, State};
use super::timers::Timer;
use super::{bits, sack};

impl<C: Congestion> Socket<'_, C> {
    /// FlightSize (RFC 5681 2): octets sent and not acknowledged.
    pub(super) fn flight_size(&self) -> u32 {
        self.snd_nxt.since(self.flight.una())
    }

    /// Reduces ssthresh when `flight` octets were in flight. At most cwnd of them count, so that the segments of limited
    /// transmit do not (RFC 3042 2, RFC 5681 3.1).
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
        self.bits.put(bits::UNDO, self.local.config.uses_undo());
    }

    /// Reduces the window once, without a retransmission: after an ECN echo, or when a probe repaired a loss. `flight` is
    /// FlightSize before the acknowledgement that reported it.
    pub(super) fn reduce_once(&mut self, flight: u32) {
        self.reduce(flight);
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.recovery.phase = Phase::Reduced;
        self.recovery.recover = self.snd_nxt;
        self.bits.clear(bits::UNDO);
        self.bits.put(bits::SEND_CWR, self.bits.has(bits::ECN));
    }

    /// Starts fast recovery if segments are marked lost, unless a recovery is under way.
    pub(super) fn enter_recovery(&mut self) {
        if matches!(self.recovery.phase, Phase::Fast | Phase::Loss) || !self.flight.any(LOST) {
            return;
        }
        // In Reduced, ssthresh was lowered within this round trip already: once is enough (RFC 3168 6.1.2).
        if self.recovery.phase == Phase::Open {
            self.remember_for_undo();
            self.reduce(self.flight_size());
            self.bits.put(bits::SEND_CWR, self.bits.has(bits::ECN));
        }
        let recovery = &mut self.recovery;
        recovery.phase = Phase::Fast;
        recovery.recover = self.snd_nxt;
        (recovery.delivered, recovery.sent) = (0, 0);
        // RecoverFS, a divisor in `reduce_in_proportion`: never zero.
        recovery.flight = self.snd_nxt.since(self.flight.una()).max(1);
        // With PRR, cwnd falls with each acknowledgement instead.
        if !self.prr() {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
        self.bits.set(bits::FORCE);
        self.timers.stop(Timer::TailLossProbe);
        count(&mut self.counters.recoveries);
    }

    fn prr(&self) -> bool {
        self.local.config.uses_prr() && self.window.ssthresh != u32::MAX
    }

    /// Proportional rate reduction: sets cwnd after an acknowledgement during fast recovery that delivered this many octets
    /// (RFC 6937 3.1, with the slow-start reduction bound).
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
        // The first retransmission of a recovery goes out at once (RFC 6675 5 step 4.3).
        if recovery.sent == 0 {
            quota = quota.max(mss);
        }
        self.window.cwnd = pipe.saturating_add(quota);
    }

    /// Ends the recovery once `recover` is acknowledged.
    pub(super) fn leave_recovery(&mut self) {
        if self.recovery.phase == Phase::Open || self.flight.una().before(self.recovery.recover) {
            return;
        }
        // `Unlimited` keeps ssthresh at u32::MAX: there is no window to return to.
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

    /// The last reduction was spurious: restores cwnd and ssthresh (RFC 4015 3.2, RFC 3708).
    pub(super) fn undo(&mut self) {
        self.window.cwnd = self.window.cwnd.max(self.recovery.undo_cwnd);
        self.window.ssthresh = self.recovery.undo_ssthresh;
        // Nothing was lost after all.
        self.flight.clear(LOST);
        self.recovery.phase = Phase::Open;
        self.recovery.duplicates = 0;
        self.bits.clear(bits::UNDO | bits::FORCE | bits::SEND_CWR);
        count(&mut self.counters.undone);
    }

    /// Counts a retransmission, and records what undo needs to know of it.
    pub(super) fn note_retransmission(&mut self) {
        count(&mut self.counters.retransmits);
        count(&mut self.recovery.undo_left);
        if !self.bits.has(bits::STAMPED) {
            self.bits.set(bits::STAMPED);
            self.recovery.stamp = self.timestamp();
        }
    }

    /// Marks segments lost by the evidence so far, and starts the reordering timer for those that may be lost soon.
    pub(super) fn detect_losses(&mut self) {
        if !self.bits.has(bits::SACK) {
            return;
        }
        if !self.local.config.uses_rack() {
            let mss = self.segment_size();
            sack::mark_lost(&mut self.flight, mss);
            return;
        }
        let window = self.reordering_window();
        let stamp = self.stamp();
        let (_, wait) = self.rack.mark_lost(&mut self.flight, stamp, window);
        match wait {
            Some(micros) => {
                self.timers.start(Timer::Reordering, span(micros));
            }
            None => self.timers.stop(Timer::Reordering),
        }
    }

    fn reordering_window(&self) -> u32 {
        let recovering = matches!(self.recovery.phase, Phase::Fast | Phase::Loss);
        let (min, smoothed) = (self.rtt.min(), self.rtt.smoothed());
        self.rack.window(&self.flight, recovering, min, smoothed)
    }

    /// The retransmission timer expired (RFC 6298 5.4 to 5.6, RFC 5681 3.1).
    pub(super) fn retransmission_timeout(&mut self) {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        let max = match opening {
            true => self.local.config.syn_retries_max,
            false => self.local.config.retries_max,
        };
        if !self.may_retry(max) {
            return;
        }
        count(&mut self.counters.timeouts);
        self.start_retransmit();
        if opening {
            self.bits.set(bits::SYN_NOW | bits::SYN_RETRANSMITTED);
            return;
        }
        self.mark_lost_on_timeout();
        // RFC 5681 3.1: ssthresh is not lowered again when a retransmitted segment times out.
        if self.recovery.phase != Phase::Loss || self.retries == 1 {
            if self.recovery.phase == Phase::Open {
                self.remember_for_undo();
            } else {
                self.bits.clear(bits::UNDO);
            }
            self.reduce(self.flight_size());
        }
        // The loss window of RFC 5681 3.1: one full-sized segment.
        if self.window.ssthresh != u32::MAX {
            self.window.cwnd = self.segment_size();
        }
        self.recovery.phase = Phase::Loss;
        self.recovery.recover = self.snd_nxt;
        self.recovery.duplicates = 0;
        self.timers.stop(Timer::TailLossProbe);
        self.timers.stop(Timer::Reordering);
        self.bits.clear(bits::PROBED_TAIL | bits::PROBE_NOW);
        self.bits.set(bits::FORCE);
        self.bits.put(bits::SEND_CWR, self.bits.has(bits::ECN));
    }

    /// At a retransmission timeout the first entry is lost, and every other that is overdue (RFC 8985 6.3).
    fn mark_lost_on_timeout(&mut self) {
        // The first segment was SACKed and is still not acknowledged: the peer reneged (RFC 2018 8).
        if cfg!(feature = "sack") && self.flight.first().is_some_and(|piece| piece.is(SACKED)) {
            self.flight.clear(SACKED);
        }
        // Without RACK everything is.
        let mut overdue_after = 0;
        if self.bits.has(bits::SACK) && self.local.config.uses_rack() {
            overdue_after = self.rack.overdue_after(self.reordering_window());
        }
        let (stamp, una) = (self.stamp(), self.flight.una());
        self.flight.each(|piece, marks| {
            let first = piece.range.start == una;
            if !piece.is(SACKED) && (first || stamp.since(piece.at) >= overdue_after) {
                *marks |= LOST;
            }
        });
    }

    /// Gives the connection up after too many retries (R2 of RFC 9293 3.8.3). In a synchronised state the peer gets a reset.
    pub(super) fn abandon(&mut self) {
        let known = !matches!(self.state, State::SynSent | State::SynReceived);
        self.end(Some(Failure::TimedOut));
        if known {
            self.bits.set(bits::RST_NOW);
        }
    }
}
