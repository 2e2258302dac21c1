//! KCP's sending half: a window of segments, each with a clock of its own.

use alloc::vec;
use alloc::vec::Vec;

use super::{KcpConfig, KcpCounters, Rules};
use crate::header::before;
use crate::store::Store;

/// Longest wait for an acknowledgement, ms (`IKCP_RTO_MAX`).
const RTO_MAX: u32 = 60_000;
/// Until a round trip is known (`IKCP_RTO_DEF`).
const RTO_FIRST: u32 = 200;
/// Times that skips make a segment be sent again; after that only its clock does (`IKCP_FASTACK_LIMIT`).
const SKIP_REPEATS_MAX: u32 = 5;

/// The sending half. Times are milliseconds modulo 2^32.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    bodies: Store,
    entries: Vec<Entry>,
    /// The oldest that is not acknowledged, the first that was never sent, the first that is not written.
    una: u32,
    next: u32,
    end: u32,
    window: u32,
    /// What the peer still takes.
    pub remote_window: u16,
    /// Smoothed round trip and its variation, and the wait that follows from them.
    rtt: Option<(u32, u32)>,
    rto: u32,
}

/// One flush: when, and whether a single skip is enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flush {
    pub now: u32,
    pub early: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    acked: bool,
    /// Transmissions.
    sent: u32,
    /// When the last one was, and when the next one is due.
    stamp: u32,
    due: u32,
    rto: u32,
    /// Acknowledgements of later segments since the last transmission.
    skips: u32,
}

impl Sender {
    pub fn new(config: &KcpConfig, longest: usize) -> Sender {
        // As much again may wait behind the window.
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

    /// Segments that can still be written.
    pub fn room(&self) -> usize {
        let used = self.end.wrapping_sub(self.una);
        (2 * self.window).saturating_sub(used) as usize
    }

    /// Whether anything is not acknowledged.
    pub fn is_busy(&self) -> bool {
        self.end != self.una
    }

    /// Adds octets to the stream, at most those of one segment: the last one is filled before a new one begins. Returns
    /// how many.
    pub fn write(&mut self, octets: &[u8], longest: usize) -> usize {
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

    /// Everything before `una` has arrived; true if that is news.
    pub fn on_una(&mut self, una: u32) -> bool {
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

    /// This segment has arrived.
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

    /// A datagram acknowledged `newest`, which was sent at `stamp`: whatever was sent no later and has a lower number was
    /// skipped once more.
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

    /// A round trip took so long (as RFC 6298, but for the flush interval in place of the clock's tick).
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

    /// The next segment at or after `from` that is to leave now, marked as sent: its number and data.
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
        // The quick mode does not wait for more than the round trip's own spread.
        let extra = match config.nodelay || config.rules == Rules::Go {
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
    /// Whether it is to be sent again now; marked if so.
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
        let go = config.rules == Rules::Go;
        let often = config.resend > 0 && self.skips >= config.resend;
        let skipped = match go {
            true => often || early && self.skips > 0,
            false => often && self.sent <= SKIP_REPEATS_MAX,
        };
        let late = !before(now, self.due);
        if late && !(go && skipped) {
            // Half as much again in the quick mode, twice as much otherwise; kcp-go adds what the round trip says now.
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
