//! Timers: when a report is due, and the probe timeout.

use chappe_core::{Duration, Wake};

use super::{ACK_DUE, Link, PROBE_MAX};
use crate::gilbert::Channel;

impl Link {
    /// The probe timeout (RFC 9002, 6.2.1). It doubles with each silent timeout that losses do not explain, and falls back once
    /// the peer is heard. RFC 9002 doubles it with every timeout; at half of all frames lost that would pause a live path.
    pub(super) fn pto(&self) -> Duration {
        let base = self.sender.rtt().pto(self.config().ack_delay);
        // A probe or its report is lost like any frame, and in a burst as often as the one before it. Only silence that this
        // does not explain means a dead path.
        let lasting = |channel: Channel| channel.loss.max(1.0 - 1.0 / channel.burst.max(1.0));
        let back = lasting(self.receiver.channel());
        // The channel to the peer is known from its reports alone, and the first counts are of what came through. So it is
        // assumed to be no better than the channel back.
        let out = lasting(self.sender.estimate().channel()).max(back);
        let lost = 1.0 - (1.0 - out) * (1.0 - back);
        let chance = (libm::log(0.01) / libm::log(lost.clamp(0.01, 0.9))) as u32;
        let doublings = self.contact.silent_timeouts.saturating_sub(chance).min(8);
        (base * (1 << doublings)).min(PROBE_MAX)
    }

    pub(super) fn ack_due(&self) -> Option<Wake> {
        self.ack_due_of(self.contact.at())
    }

    pub(super) fn ack_due_of(&self, path: usize) -> Option<Wake> {
        if self.turns() {
            return None;
        }
        let frames = self.receiver.frames.of(path);
        let since = frames.owed_since?;
        let config = self.config();
        let wait = match frames.owed >= config.ack_every || self.contact.of(path).hurried {
            true => Duration::ZERO,
            // At most half a round trip, so that on short paths the wait does not dominate; and half of that while
            // something is missing, since the sender waits for the report.
            false => {
                let half = self
                    .sender
                    .loss_of(path)
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
