//! Stamps: how old reports are when they arrive.

use chappe_core::{Duration, Instant};

use super::Group;
use crate::improved::header::{STAMP, Times};

/// Stamps older than this are neither echoed nor compared: a sixteenth of the time after which they wrap.
const FRESH: Duration = Duration::from_secs(1);

impl Group {
    /// The stamps of a frame that is written now. Each frame echoes the next neighbour's stamp, in turn.
    pub(super) fn times(&mut self, now: Instant) -> Option<Times> {
        if !self.settings.timed {
            return None;
        }
        let since = now.saturating_before(FRESH);
        let fresh = |&(node, _, heard): &(u16, u16, Instant)| node != self.me && heard >= since;
        let stamps = self
            .neighbours
            .iter()
            .filter_map(|(node, known)| known.stamp.map(|(stamp, heard)| (node, stamp, heard)));
        // The next larger node number after the one echoed last, then from the start: each neighbour gets its turn.
        let mut fresh = stamps.filter(fresh);
        let first = fresh.next();
        let next = match first {
            Some((node, ..)) if node > self.echoed => first,
            _ => fresh.find(|(node, ..)| *node > self.echoed).or(first),
        };
        let stamp = stamp(now);
        let Some((of, theirs, heard)) = next else {
            let (of, echo) = (self.me, 0);
            return Some(Times { stamp, of, echo });
        };
        self.echoed = of;
        let waited = now.saturating_since(heard).steps(STAMP) as u16;
        // With the wait added, the time that the stamp spent here does not count as the age of a report.
        let echo = theirs.wrapping_add(waited);
        Some(Times { stamp, of, echo })
    }

    /// Whether a later frame of `from` arrived before this one, whose report is then out of date.
    pub(super) fn is_overtaken(&self, now: Instant, from: u16, times: Option<&Times>) -> bool {
        let since = now.saturating_before(FRESH);
        let known = self.neighbours.get(from).and_then(|known| known.stamp);
        let latest = known.filter(|&(_, heard)| heard >= since);
        let pair = times.filter(|_| self.settings.timed).zip(latest);
        pair.is_some_and(|(times, (latest, _))| {
            (-OVERTAKEN..0).contains(&later(times.stamp, latest))
        })
    }

    /// Measures the age of the report of `from`: against this node's own stamp if the frame echoes it, or else against the
    /// stamp of another neighbour that both have heard.
    pub(super) fn measure(&mut self, now: Instant, from: u16, times: Option<&Times>) {
        let Some(times) = times.filter(|_| self.settings.timed) else {
            return;
        };
        let own = times.of == self.me;
        let age = match own {
            true => Some(later(stamp(now), times.echo).into()),
            false => self.age_of(now, from, times),
        };
        let Some(neighbour) = self.neighbours.get_mut(from) else {
            return;
        };
        neighbour.stamp = Some((times.stamp, now));
        if let Some(age) = age {
            // Negative if `from` has handled a frame of the other neighbour that has not arrived here yet.
            let age = STAMP * u64::try_from(age).unwrap_or(0);
            match own {
                true => neighbour.own.lag.measure(age),
                false => neighbour.overheard.lag.measure(age),
            }
        }
    }

    /// How long ago this node heard the frame of another neighbour that `from` had handled last, in stamps.
    fn age_of(&self, now: Instant, from: u16, times: &Times) -> Option<i64> {
        let other = self.neighbours.get(times.of);
        let (theirs, heard) = other.and_then(|other| other.stamp)?;
        if times.of == from || heard < now.saturating_before(FRESH) {
            return None;
        }
        let waited = now.saturating_since(heard).steps(STAMP) as i64;
        Some(waited - i64::from(later(times.echo, theirs)))
    }

    /// How long it takes until a neighbour's reports cover this node's frames; zero if nothing is measured.
    pub(super) fn lag(&self, node: u16) -> Duration {
        let neighbour = self.neighbours.get(node).filter(|_| self.settings.timed);
        neighbour.map_or(Duration::ZERO, |known| known.own.lag.span())
    }
}

/// A frame whose stamp is earlier than the latest by at most this was overtaken, in [`STAMP`]: 1 s. An even earlier stamp is
/// that of a restarted node.
const OVERTAKEN: i16 = 4000;

fn stamp(now: Instant) -> u16 {
    now.saturating_since(Instant::ZERO).steps(STAMP) as u16
}

/// How much later a stamp is than another, modulo 2^16.
fn later(stamp: u16, than: u16) -> i16 {
    stamp.wrapping_sub(than) as i16
}
