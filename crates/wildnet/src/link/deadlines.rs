//! When something is due although nothing comes: reports, and probes into silence.

use chappe_core::{Duration, Wake};

use super::{ACK_DUE, Link, PROBE_MAX};
use crate::gilbert::Channel;

impl Link {
    /// How long to wait for a report (RFC 9002, 6.2.1), doubled with each silence that losses do not explain, until
    /// the peer is heard.
    pub(super) fn pto(&self) -> Duration {
        let base = self.sender.rtt().pto(self.config().ack_delay);
        // A probe or its report is lost as often as anything, and in a burst as often as the one before. Only what that
        // does not explain means a dead path.
        let lasting = |channel: Channel| channel.loss.max(1.0 - 1.0 / channel.burst.max(1.0));
        let back = lasting(self.receiver.channel());
        // The way out is known from reports alone, and what is counted at first is what came through: it is taken for no
        // better than the way back.
        let out = lasting(self.sender.estimate().channel()).max(back);
        let lost = 1.0 - (1.0 - out) * (1.0 - back);
        let chance = (libm::log(0.01) / libm::log(lost.clamp(0.01, 0.9))) as u32;
        let doublings = self.silent_timeouts.saturating_sub(chance).min(8);
        (base * (1 << doublings)).min(PROBE_MAX)
    }

    pub(super) fn ack_due(&self) -> Option<Wake> {
        if self.turns() {
            return None;
        }
        let since = self.receiver.owed_since?;
        let config = self.config();
        let wait = match self.receiver.owed >= config.ack_every || self.hurried {
            true => Duration::ZERO,
            // Half a round trip at most, so that on short paths reports are not what takes time; and half of that
            // while something is missing, which the sender waits to learn.
            false => {
                let half = self
                    .sender
                    .rtt()
                    .least()
                    .map_or(Duration::MAX, |least| least / 2);
                let wait = config.ack_delay.min(half);
                if self.receiver.bitmap_len() > 0 {
                    wait / 2
                } else {
                    wait
                }
            }
        };
        Some(Wake {
            at: since + wait,
            why: ACK_DUE,
        })
    }
}
