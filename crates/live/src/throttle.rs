//! The closed loop of the pace: how much of its ceiling a member uses, by what its neighbours can take.
//!
//! A broadcast is not confirmed, and links lose frames for other reasons than congestion. So a host that cannot read what
//! arrives must say so: every frame that it sends carries a mark while its receive queue stands ([`Backlog`]). Those who hear
//! marks slow down ([`Throttle`]), as a sender does whose router marks packets (ECN, RFC 3168). The share of marked frames
//! decides how much (DCTCP, RFC 8257); of several neighbours the one with the most marks counts, as TFMCC's receiver with the
//! lowest rate does (RFC 4654). Members with the same ceiling end at the same rate, since all rise by the same steps and fall in
//! proportion (Chiu and Jain, 1989).

use std::collections::BTreeMap;

use chappe_core::{Bitrate, Duration, Instant};

/// How long a queue must stand before it counts, and the time between two steps: CoDel's interval, the longest usual round trip
/// (RFC 8289, 3.2).
const PERIOD: Duration = Duration::from_millis(100);
/// By how much the rate rises in a period: a frame of 1500 octets, as TCP's in a round trip of that length (RFC 5681), so that
/// TCP gets its share. In bits per second.
const STEP: u64 = 1500 * 8 * (1_000_000_000 / PERIOD.nanos());
/// After this many periods without a mark the step doubles: whoever caused the marks is gone.
const CALM: u32 = 10;
/// The least rate, as a share of the ceiling: a member is never silent.
const LEAST: u64 = 64;
/// What remains of the rate when the own send queue is full: a queue of this host, which is short (RFC 8511, 4.1: 0.85).
const BLOCKED: f64 = 0.85;

/// Whether this host falls behind with reading: its receive queue was not empty for a [`PERIOD`], or has lost frames within one.
#[derive(Debug, Default)]
pub struct Backlog {
    /// Since when frames wait that were there before the latest read.
    since: Option<Instant>,
    /// When the queue last lost frames.
    lost: Option<Instant>,
    /// The kernel's count of lost frames, and when that was looked at.
    count: Option<u32>,
    looked: Option<Instant>,
}

impl Backlog {
    /// Whether no look has shown for a period how many frames the kernel has lost. A look costs a call of the system.
    pub fn is_unknown(&self, now: Instant) -> bool {
        let old = |at: Instant| now.saturating_since(at) >= PERIOD;
        self.looked.is_none_or(old)
    }

    /// Notes a read of the queue: whether it emptied it, and, if that was looked at, the kernel's count of lost frames, if it has
    /// one. Returns how many were lost since the last look.
    pub fn read(&mut self, now: Instant, emptied: bool, look: Option<Option<u32>>) -> u32 {
        self.since = match emptied {
            true => None,
            false => self.since.or(Some(now)),
        };
        let Some(count) = look else { return 0 };
        self.looked = Some(now);
        let before = self.count.or(count);
        let lost = count
            .zip(before)
            .map_or(0, |(count, before)| count.wrapping_sub(before));
        if lost > 0 {
            self.lost = Some(now);
        }
        self.count = count;
        lost
    }

    /// Whether the neighbours should send less.
    pub fn stands(&self, now: Instant) -> bool {
        let old = |since: Instant| now.saturating_since(since) >= PERIOD;
        self.since.is_some_and(old) || self.lost.is_some_and(|at| !old(at))
    }
}

/// The rate of a member between a step and its ceiling.
#[derive(Debug)]
pub struct Throttle {
    ceiling: u64,
    rate: u64,
    least: u64,
    ends: Instant,
    /// Frames heard of each neighbour in this period, and how many of them were marked.
    heard: BTreeMap<u16, (u32, u32)>,
    blocked: bool,
    /// Periods since the rate fell.
    calm: u32,
}

impl Throttle {
    /// A throttle that is open. Without a ceiling it does nothing.
    pub fn new(ceiling: Option<Bitrate>) -> Throttle {
        let ceiling = ceiling.map_or(0, |rate| rate.0);
        Throttle {
            ceiling,
            rate: ceiling,
            least: ceiling,
            ends: Instant::ZERO + PERIOD,
            heard: BTreeMap::new(),
            blocked: false,
            calm: 0,
        }
    }

    /// Notes a frame of a neighbour.
    pub fn hear(&mut self, from: u16, marked: bool) {
        let (all, with) = self.heard.entry(from).or_default();
        *all = all.saturating_add(1);
        *with = with.saturating_add(u32::from(marked));
    }

    /// Notes that the kernel's send queue was full.
    pub fn block(&mut self) {
        self.blocked = true;
    }

    /// The rate from now on.
    pub fn rate(&mut self, now: Instant) -> Bitrate {
        if now >= self.ends {
            self.step();
            // Nothing was sent in periods that passed unnoticed: they are no reason to rise.
            self.ends = now + PERIOD;
        }
        Bitrate(self.rate)
    }

    /// The lowest rate so far.
    pub fn least(&self) -> Bitrate {
        Bitrate(self.least)
    }

    fn step(&mut self) {
        let share = |&(all, with): &(u32, u32)| f64::from(with) / f64::from(all.max(1));
        let most = self.heard.values().map(share).fold(0.0, f64::max);
        let marks = 1.0 - most / 2.0;
        let factor = match self.blocked {
            true => marks.min(BLOCKED),
            false => marks,
        };
        if factor < 1.0 {
            self.calm = 0;
            let least = self.ceiling / LEAST;
            self.rate = ((self.rate as f64 * factor) as u64).max(least);
        } else {
            let step = STEP << (self.calm / CALM).min(16);
            self.calm = self.calm.saturating_add(1);
            self.rate = self.rate.saturating_add(step).min(self.ceiling);
        }
        self.least = self.least.min(self.rate);
        (self.blocked, _) = (false, self.heard.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CEILING: u64 = 64_000_000;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_queue_counts_when_it_stands_or_overflows() {
        let mut backlog = Backlog::default();
        backlog.read(ms(0), false, Some(Some(7)));
        assert!(!backlog.stands(ms(99)) && backlog.stands(ms(100)));
        backlog.read(ms(110), true, Some(Some(7)));
        assert!(!backlog.stands(ms(300)));
        assert_eq!(backlog.read(ms(300), true, Some(Some(9))), 2);
        assert!(backlog.stands(ms(350)) && !backlog.stands(ms(400)));
        // The kernel's count wraps.
        backlog.read(ms(500), true, Some(Some(u32::MAX)));
        assert_eq!(backlog.read(ms(500), true, Some(Some(2))), 3);
    }

    /// Goal: the kernel is asked for its count once in a period, and what it lost meanwhile is found then.
    #[test]
    fn lost_frames_are_found_by_the_next_look() {
        let mut backlog = Backlog::default();
        assert!(backlog.is_unknown(ms(0)));
        backlog.read(ms(0), true, Some(Some(7)));
        assert!(!backlog.is_unknown(ms(99)));
        assert_eq!(backlog.read(ms(50), true, None), 0);
        assert!(backlog.is_unknown(ms(100)));
        assert_eq!(backlog.read(ms(100), true, Some(Some(9))), 2);
        assert!(backlog.stands(ms(150)) && !backlog.is_unknown(ms(150)));
    }

    /// A receiver that handles `capacity` bits per second, of what members send to it at their rates. Its queue is read each
    /// millisecond, and its frames, one in 10 ms, reach the members 5 ms later.
    struct Receiver {
        backlog: Backlog,
        queue: f64,
        marks: Vec<(Instant, bool)>,
    }

    impl Receiver {
        fn new() -> Receiver {
            Receiver {
                backlog: Backlog::default(),
                queue: 0.0,
                marks: Vec::new(),
            }
        }

        /// One millisecond. Returns the mark that members hear, if they hear a frame.
        fn turn(&mut self, now: Instant, offered: u64, capacity: u64) -> Option<bool> {
            self.queue = (self.queue + (offered as f64 - capacity as f64) / 1e3).max(0.0);
            self.backlog.read(now, self.queue == 0.0, None);
            if (now.nanos() / 1_000_000).is_multiple_of(10) {
                let at = now + Duration::from_millis(5);
                self.marks.push((at, self.backlog.stands(now)));
            }
            let due = self.marks.first().is_some_and(|(at, _)| *at <= now);
            due.then(|| self.marks.remove(0).1)
        }
    }

    /// Goal: the rate follows a receiver's capacity down and up again, and neither collapses nor overloads it. Method: steps of
    /// capacity in virtual time; what is sent and what waits, over the last ten of each twenty seconds.
    #[test]
    fn the_rate_follows_steps_of_capacity() {
        let (mut throttle, mut receiver) = (Throttle::new(Some(Bitrate(CEILING))), Receiver::new());
        for (phase, capacity) in [2 * CEILING, CEILING / 2, CEILING / 8, 2 * CEILING]
            .into_iter()
            .enumerate()
        {
            let (mut sent, mut longest) = (0.0, 0.0f64);
            for millis in 0..20_000 {
                let now = ms(phase as u64 * 20_000 + millis);
                let rate = throttle.rate(now).0;
                if let Some(mark) = receiver.turn(now, rate, capacity) {
                    throttle.hear(1, mark);
                }
                if millis >= 10_000 {
                    sent += rate as f64 / 1e3;
                    longest = longest.max(receiver.queue);
                }
            }
            let (used, most) = (sent / 10.0, capacity.min(CEILING) as f64);
            assert!(
                used > 0.6 * most && used < 1.05 * most,
                "{capacity}: {used}"
            );
            // What waits is handled within half a second.
            assert!(longest < capacity as f64 / 2.0, "{capacity}: {longest}");
        }
        assert!(throttle.least().0 >= CEILING / LEAST);
    }

    /// Goal: members get equal shares of a receiver, whatever they begin with, also beside a flow that behaves like TCP: it
    /// halves its rate on marks, once in a round trip of 100 ms, and otherwise adds a frame in each (RFC 5681, RFC 3168).
    #[test]
    fn members_and_a_tcp_like_flow_share() {
        let mut members = [(); 3].map(|()| Throttle::new(Some(Bitrate(CEILING))));
        members[0].rate = CEILING / 20;
        let (mut tcp, mut marked, mut receiver) = (1e6, false, Receiver::new());
        let mut sent = [0.0; 4];
        for millis in 0..200_000 {
            let now = ms(millis);
            let rates: Vec<u64> = members
                .iter_mut()
                .map(|member| member.rate(now).0)
                .collect();
            let offered = rates.iter().sum::<u64>() + tcp as u64;
            if let Some(mark) = receiver.turn(now, offered, CEILING) {
                members.iter_mut().for_each(|member| member.hear(1, mark));
                marked |= mark;
            }
            if millis % 100 == 0 {
                tcp = match std::mem::take(&mut marked) {
                    true => tcp / 2.0,
                    false => tcp + 12_000.0 * 10.0,
                };
            }
            if millis >= 100_000 {
                for (sum, rate) in sent
                    .iter_mut()
                    .zip(rates.iter().map(|&rate| rate as f64).chain([tcp]))
                {
                    *sum += rate / 1e3 / 100.0;
                }
            }
        }
        let [a, b, c, tcp] = sent;
        let equal = |x: f64, y: f64| x / y < 1.1 && y / x < 1.1;
        assert!(equal(a, b) && equal(b, c), "{sent:?}");
        assert!(a < 4.0 * tcp && tcp < 4.0 * a, "{sent:?}");
        assert!(sent.iter().sum::<f64>() > 0.6 * CEILING as f64, "{sent:?}");
    }

    #[test]
    fn a_full_send_queue_slows_a_little_and_no_ceiling_means_no_limit() {
        let mut throttle = Throttle::new(Some(Bitrate(CEILING)));
        throttle.block();
        assert_eq!(throttle.rate(ms(100)).0, CEILING / 100 * 85);
        for period in 2..60 {
            throttle.rate(ms(100 * period));
        }
        assert_eq!(throttle.rate(ms(6000)).0, CEILING);
        let mut open = Throttle::new(None);
        open.hear(1, true);
        assert_eq!(open.rate(ms(100)), Bitrate(0));
    }
}
