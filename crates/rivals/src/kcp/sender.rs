//! The sending half of KCP: a window of segments, each with its own retransmission timeout.

use alloc::vec;
use alloc::vec::Vec;

use super::config::{KcpConfig, KcpCounters, KcpRules};
use super::segment::before;
use crate::store::Store;

/// Longest timeout, ms (`IKCP_RTO_MAX`).
const RTO_MAX: u32 = 60_000;
/// Timeout until a round trip has been measured, ms (`IKCP_RTO_DEF`).
const RTO_FIRST: u32 = 200;
/// Most retransmissions of a segment because of skips; after that only its timeout counts (`IKCP_FASTACK_LIMIT`).
const SKIP_REPEATS_MAX: u32 = 5;

/// The sending half. Times are milliseconds modulo 2^32.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    bodies: Store,
    entries: Vec<Entry>,
    /// The oldest unacknowledged segment, the first one not sent yet, and the first one not written yet.
    una: u32,
    next: u32,
    end: u32,
    window: u32,
    /// Segments that the peer still accepts.
    pub remote_window: u16,
    /// Smoothed round trip and its variation, and the timeout that follows from them.
    rtt: Option<(u32, u32)>,
    rto: u32,
}

/// One flush: its time, and whether a single skip is enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flush {
    pub now: u32,
    pub early: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    acked: bool,
    /// Number of transmissions, the first included.
    sent: u32,
    /// Time of the last transmission, and of the next one if no acknowledgement comes.
    stamp: u32,
    due: u32,
    rto: u32,
    /// Acknowledgements of later segments since the last transmission.
    skips: u32,
}

impl Sender {
    pub fn new(config: &KcpConfig, longest: usize) -> Sender {
        // A second window of segments may wait behind the first, so that a flush finds data.
        let places = (2 * usize::from(config.send_window)).next_power_of_two();
        Sender {
            bodies: Store::new(places, longest),
            entries: vec![Entry::default(); places],
            una: 0,
            next: 0,
            end: 0,
            window: config.send_window.into(),
            remote_window: config.receive_window,
            rtt: None,
            rto: RTO_FIRST,
        }
    }

    fn place(&self, number: u32) -> usize {
        number as usize & self.entries.len().wrapping_sub(1)
    }

    fn entry(&mut self, number: u32) -> Option<&mut Entry> {
        let place = self.place(number);
        self.entries.get_mut(place)
    }

    /// Number of segments that can still be written.
    pub fn room(&self) -> usize {
        let used = self.end.wrapping_sub(self.una);
        (2 * self.window).saturating_sub(used) as usize
    }

    /// Whether any segment is unacknowledged or unsent.
    pub fn is_busy(&self) -> bool {
        self.end != self.una
    }

    /// Adds octets to the stream, at most one segment: fills the last one before it begins a new one. Returns the number
    /// of octets.
    pub fn write(&mut self, octets: &[u8], longest: usize) -> usize {
        // As `ikcp_send` does in stream mode, in a segment that has not been sent yet.
        let last = self.place(self.end.wrapping_sub(1));
        let filled = self.bodies.get(last).len();
        if self.end != self.next && filled < longest {
            let part = octets.get(..longest - filled).unwrap_or(octets);
            return match self.bodies.append(last, part) {
                true => part.len(),
                false => 0,
            };
        }
        let part = octets.get(..longest).unwrap_or(octets);
        let place = self.place(self.end);
        if part.is_empty() || self.room() == 0 || !self.bodies.put(place, &[part]) {
            return 0;
        }
        self.end = self.end.wrapping_add(1);
        part.len()
    }

    /// Takes the cumulative acknowledgement; true if it moves the window.
    pub fn on_una(&mut self, una: u32) -> bool {
        // A value beyond what was sent is invalid.
        let news = before(self.una, una) && !before(self.next, una);
        if news {
            self.una = una;
        }
        news
    }

    /// Whether a new segment may leave.
    pub fn opens(&self) -> bool {
        let window = self.window.min(self.remote_window.into());
        self.next != self.end && before(self.next, self.una.wrapping_add(window))
    }

    /// Takes the acknowledgement of one segment.
    pub fn on_ack(&mut self, number: u32) {
        if before(number, self.una) || !before(number, self.next) {
            return;
        }
        if let Some(entry) = self.entry(number) {
            entry.acked = true;
        }
        while before(self.una, self.next) && self.entry(self.una).is_some_and(|entry| entry.acked) {
            self.una = self.una.wrapping_add(1);
        }
    }

    /// Takes the newest acknowledgement of a datagram, for a segment sent at `stamp`. It skips every segment with a lower
    /// number that was sent no later: a later retransmission may still be on its way.
    pub fn on_skips(&mut self, newest: u32, stamp: u32) {
        if before(newest, self.una) || !before(newest, self.next) {
            return;
        }
        let mut number = self.una;
        while before(number, newest) {
            if let Some(entry) = self.entry(number)
                && !entry.acked
                && !before(stamp, entry.stamp)
            {
                entry.skips = entry.skips.saturating_add(1);
            }
            number = number.wrapping_add(1);
        }
    }

    /// Takes a round-trip sample as RFC 6298, 2, with the flush interval in place of the clock granularity.
    pub fn on_rtt(&mut self, sample: u32, config: &KcpConfig) {
        let sample = sample.min(RTO_MAX);
        let (smoothed, variation) = match self.rtt {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => (
                ((7 * smoothed + sample) / 8).max(1),
                (3 * variation + smoothed.abs_diff(sample)) / 4,
            ),
        };
        self.rtt = Some((smoothed, variation));
        let wait = smoothed + (4 * variation).max(config.interval_ms());
        self.rto = wait.clamp(config.rto_min(), RTO_MAX);
    }

    /// The next segment after `from` to send in this flush: its number and data. Marks it as sent.
    pub fn due(
        &mut self,
        from: Option<u32>,
        flush: Flush,
        config: &KcpConfig,
        counters: &mut KcpCounters,
    ) -> Option<(u32, &[u8])> {
        let mut number = from.map_or(self.una, |from| from.wrapping_add(1));
        while before(number, self.next) {
            let rto = self.rto;
            if let Some(entry) = self.entry(number)
                && entry.repeats(flush, rto, config, counters)
            {
                return Some((number, self.bodies.get(self.place(number))));
            }
            number = number.wrapping_add(1);
        }
        if !self.opens() {
            return None;
        }
        let rto = self.rto;
        // The other modes add an eighth to the first timeout (`rtomin` in `ikcp_flush`).
        let extra = match config.nodelay || config.rules == KcpRules::Go {
            true => 0,
            false => rto >> 3,
        };
        let now = flush.now;
        let first = Entry {
            sent: 1,
            stamp: now,
            due: now.wrapping_add(rto).wrapping_add(extra),
            rto,
            ..Entry::default()
        };
        let number = self.next;
        *self.entry(number)? = first;
        self.next = number.wrapping_add(1);
        counters.segments += 1;
        Some((number, self.bodies.get(self.place(number))))
    }

    #[cfg(test)]
    pub fn rto(&self) -> u32 {
        self.rto
    }
}

impl Entry {
    /// Whether to send it again now; if so, marks it as sent.
    fn repeats(
        &mut self,
        Flush { now, early }: Flush,
        rto: u32,
        config: &KcpConfig,
        counters: &mut KcpCounters,
    ) -> bool {
        if self.acked {
            return false;
        }
        let go = config.rules == KcpRules::Go;
        let often = config.resend > 0 && self.skips >= config.resend;
        let skipped = match go {
            true => often || early && self.skips > 0,
            false => often && self.sent <= SKIP_REPEATS_MAX,
        };
        let late = !before(now, self.due);
        if late && !(go && skipped) {
            // By half in the quick mode, else twofold; kcp-go adds steps of the present round trip's timeout.
            self.rto += match (config.nodelay, go) {
                (true, false) => self.rto / 2,
                (true, true) => rto / 2,
                (false, false) => self.rto.max(rto),
                (false, true) => rto,
            };
            self.rto = self.rto.min(RTO_MAX);
            counters.timeouts += 1;
        } else if skipped {
            if go {
                self.rto = rto;
            }
            counters.skipped += 1;
        } else {
            return false;
        }
        self.skips = 0;
        self.sent = self.sent.saturating_add(1);
        self.stamp = now;
        self.due = now.wrapping_add(self.rto);
        true
    }
}
