//! Expired deadlines: the only place where timers turn into action.

use chappe_core::{Duration, Instant};

use super::bits;
use super::clock::patience;
use super::congestion::Congestion;
use super::socket::Socket;
use super::state::Failure;
use super::timers::Timer;

impl<C: Congestion> Socket<'_, C> {
    /// Processes every expired deadline. Calling early changes nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.timers.turn(now);
        while let Some(timer) = self.timers.expire() {
            match timer {
                Timer::Retransmit => self.retransmission_timeout(),
                Timer::TailLossProbe => {
                    // The probe replaces the timeout, even if both are due (RFC 8985 7.3).
                    self.bits.set(bits::PROBE_NOW);
                    self.start_retransmit();
                }
                Timer::Reordering => {
                    self.detect_losses();
                    self.enter_recovery();
                    self.reduce_in_proportion(0);
                }
                Timer::DelayedAck => self.bits.set(bits::ACK_NOW),
                Timer::Persist => self.persist_timeout(),
                Timer::KeepAlive => self.keep_alive_timeout(),
                Timer::TimeWait => self.end(None),
            }
        }
    }

    /// Probes the window; the interval doubles (RFC 9293 3.8.6.1). A peer that does not answer at all, not even with a zero
    /// window, times out like one that does not acknowledge data.
    fn persist_timeout(&mut self) {
        if !self.may_retry(self.local.config.retries_max) {
            return;
        }
        self.bits.set(bits::PERSIST_NOW);
        let wait = self.timeout().min(self.local.config.persist_max);
        self.timers.start(Timer::Persist, wait.min(self.patience()));
    }

    /// Counts a retry, which doubles the timeout. False if there were `max` already or patience is at its end: then the connection is
    /// given up.
    #[inline(never)]
    pub(super) fn may_retry(&mut self, max: u8) -> bool {
        let may = self.retries < max && self.patience() != Duration::ZERO;
        if may {
            self.retries = self.retries.wrapping_add(1);
            self.backoff = self.backoff.saturating_add(1);
        } else {
            self.abandon();
        }
        may
    }

    /// How much longer data may wait for progress: zero when the user timeout has passed (RFC 9293 3.8.3).
    pub(super) fn patience(&self) -> Duration {
        match (
            self.local.config.uses_user_timeout(),
            self.flight.stalled_at,
        ) {
            (Duration::ZERO, _) | (_, 0) => Duration::MAX,
            (limit, since) => patience(self.now(), since, limit),
        }
    }

    /// Starts or restarts the retransmission timer (RFC 6298 5). The user timeout cuts it short.
    pub(super) fn start_retransmit(&mut self) {
        let wait = self.timeout().min(self.patience());
        self.timers.start(Timer::Retransmit, wait);
    }

    fn keep_alive_timeout(&mut self) {
        let Some(keep_alive) = self.local.config.uses_keep_alive() else {
            return;
        };
        if !self.flight.is_empty() || self.timers.runs(Timer::Persist) {
            // Those timers already test whether the peer is alive.
            self.timers.start(Timer::KeepAlive, keep_alive.interval);
        } else if self.retries >= keep_alive.probes {
            self.end(Some(Failure::TimedOut));
            self.bits.set(bits::RST_NOW);
        } else {
            self.retries = self.retries.saturating_add(1);
            self.bits.set(bits::KEEP_ALIVE_NOW);
            self.timers.start(Timer::KeepAlive, keep_alive.interval);
        }
    }
}
