//! Datagrams on their way to the kernel.
//!
//! Each round of the loop collects the datagrams of all peers and sends them together. Consecutive datagrams of equal
//! length to one destination form a run, which the kernel handles as one (UDP segmentation offload). The last datagram of
//! a run may be shorter.

use chappe_sys::{BATCH, Endpoint, Run};

/// Size of the outbox in octets: some 20 ms at 50 Mbit/s. That is far more than leaves in one round, and still fits the
/// processor's cache.
const OCTETS: usize = 1 << 17;
/// Longest datagram, which fills an IP packet.
const LONGEST: usize = 1 << 16;

/// The collected datagrams: their octets, concatenated, and the runs they form.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    octets: Vec<u8>,
    used: usize,
    runs: Vec<Same>,
    /// Runs that have left, and their octets.
    passed: usize,
    left: usize,
}

/// A run of datagrams of one length to one destination.
#[derive(Clone, Copy, Debug)]
struct Same {
    to: Endpoint,
    segment: usize,
    len: usize,
    count: usize,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            octets: vec![0; OCTETS],
            used: 0,
            runs: Vec::with_capacity(BATCH),
            passed: 0,
            left: 0,
        }
    }
}

impl Outbox {
    /// Whether it must be dispatched before the next datagram.
    pub fn is_full(&self) -> bool {
        self.used + LONGEST > OCTETS || self.runs.len() >= BATCH
    }

    /// Whether everything has left.
    pub fn is_empty(&self) -> bool {
        self.passed >= self.runs.len()
    }

    /// The room for the next datagram: enough for the longest, unless the outbox [`is_full`](Self::is_full).
    pub fn room(&mut self) -> &mut [u8] {
        self.octets.get_mut(self.used..).unwrap_or_default()
    }

    /// Adds the datagram of `len` octets that stands in the room. With `join` it continues the last run if it fits.
    pub fn add(&mut self, len: usize, to: Endpoint, join: bool) {
        self.used += len;
        let last = self
            .runs
            .last_mut()
            .filter(|last| join && last.takes(len, to));
        if let Some(last) = last {
            last.len += len;
            last.count += 1;
            return;
        }
        self.runs.push(Same {
            to,
            segment: len,
            len,
            count: 1,
        });
    }

    /// The runs that have not left yet.
    pub fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let mut rest = self.octets.get(self.left..).unwrap_or_default();
        let runs = self.runs.iter().skip(self.passed);
        runs.map(move |same| {
            let (octets, behind) = rest.split_at_checked(same.len).unwrap_or_default();
            rest = behind;
            Run {
                octets,
                segment: same.segment,
                to: same.to,
            }
        })
    }

    /// The number of datagrams that have not left yet.
    pub fn datagrams(&self) -> u64 {
        let runs = self.runs.iter().skip(self.passed);
        runs.map(|same| same.count as u64).sum()
    }

    /// Removes the first `runs`: they have left, or were refused.
    pub fn pass(&mut self, runs: usize) {
        let gone = self.runs.iter().skip(self.passed).take(runs);
        self.left += gone.map(|same| same.len).sum::<usize>();
        self.passed += runs;
    }

    /// Splits the first run into single datagrams; false if it is a single datagram already.
    pub fn cut_first(&mut self) -> bool {
        let Some(&first) = self.runs.get(self.passed).filter(|first| first.count > 1) else {
            return false;
        };
        let each = (0..first.count).map(|place| Same {
            len: first.segment.min(first.len - place * first.segment),
            count: 1,
            ..first
        });
        self.runs.splice(self.passed..=self.passed, each);
        true
    }

    /// Empties the outbox, whatever has left.
    pub fn clear(&mut self) {
        self.runs.clear();
        (self.used, self.passed, self.left) = (0, 0, 0);
    }
}

impl Same {
    /// Whether another datagram can continue the run.
    fn takes(&self, len: usize, to: Endpoint) -> bool {
        let whole = self.len == self.segment * self.count;
        let room = self.count < Run::COUNT && self.len + len <= Run::LEN;
        self.to == to && len <= self.segment && whole && room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: u8) -> Endpoint {
        Endpoint::Udp(([10, 0, 0, host], 1).into())
    }

    fn fill(outbox: &mut Outbox, datagrams: &[(usize, u8)], join: bool) {
        for (number, &(len, host)) in datagrams.iter().enumerate() {
            outbox.room()[..len].fill(number as u8);
            outbox.add(len, at(host), join);
        }
    }

    fn seen(outbox: &Outbox) -> Vec<(usize, usize, Endpoint)> {
        let runs = outbox.runs();
        runs.map(|run| (run.octets.len(), run.segment, run.to))
            .collect()
    }

    /// Goal: consecutive datagrams of equal length to one destination form a run, a shorter one ends it, and every octet
    /// stays in place, whatever has left and whatever was split.
    #[test]
    fn equal_datagrams_form_one_run() {
        let datagrams = [(100, 1), (100, 1), (40, 1), (100, 1), (100, 2), (120, 2)];
        let mut outbox = Outbox::default();
        fill(&mut outbox, &datagrams, true);
        let whole = [
            (240, 100, at(1)),
            (100, 100, at(1)),
            (100, 100, at(2)),
            (120, 120, at(2)),
        ];
        assert_eq!(seen(&outbox), whole);
        assert_eq!(outbox.datagrams(), 6);
        assert!(outbox.cut_first());
        let cut = seen(&outbox);
        assert_eq!(
            cut[..3].iter().map(|run| run.0).collect::<Vec<_>>(),
            [100, 100, 40]
        );
        assert_eq!(cut[3..], whole[1..]);
        outbox.pass(2);
        assert!(!outbox.cut_first());
        for (number, run) in (2..).zip(outbox.runs()) {
            assert!(run.octets.iter().all(|&octet| octet == number));
        }
        assert_eq!(outbox.datagrams(), 4);
        outbox.pass(4);
        assert!(outbox.is_empty());
        outbox.clear();
        fill(&mut outbox, &datagrams, false);
        assert_eq!(seen(&outbox).len(), 6);
    }

    /// Goal: a run never exceeds the kernel's limits, and the outbox reports when the longest datagram no longer fits.
    #[test]
    fn runs_and_outbox_are_bounded() {
        let mut outbox = Outbox::default();
        fill(&mut outbox, &[(10, 1); 65], true);
        assert_eq!(seen(&outbox)[0].0, 640);
        outbox.clear();
        fill(&mut outbox, &[(1400, 1); 47], true);
        assert_eq!(seen(&outbox)[0].0, 46 * 1400);
        assert!(outbox.is_full());
        outbox.clear();
        fill(&mut outbox, &[(10, 1); BATCH], false);
        assert!(outbox.is_full());
    }
}
