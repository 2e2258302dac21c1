//! What a member hears of its neighbours' broadcasts, and tells them: the feedback of the [`throttle`](crate::throttle).
//!
//! The end of each broadcast and hello, under the seal:
//!
//! ```text
//!  0       2       4        6       8
//!  +-------+-------+--------+-------+-------+
//!  | stamp | about | latest | heard | delay |
//!  +-------+-------+--------+-------+-------+
//! ```
//!
//! `stamp` is the sender's clock in units of 0.1 ms. The rest is an *echo*: what the sender has heard of the neighbour `about` (none
//! from 65,280 on). `latest` and `heard` are the low bits of the latest counter and of the number of broadcasts heard, so that a lost
//! echo loses no count. `delay` is in milliseconds, 255 if unknown: how much longer frames took lately than at best. The two
//! clocks need not agree, since only differences count.

use std::collections::BTreeMap;

use chappe_core::{Duration, Instant};

use crate::backlog::PERIOD;
use crate::frame::ALL;

/// Octets of the stamp and the echo.
pub const ECHO: usize = 9;

/// The unit of stamps.
const TICK: Duration = Duration::from_micros(100);
/// The least delay is that of the last one to two times this long: BBR's window for the least round trip (10 s). Longer
/// windows would take the drift of clocks (100 ppm) for a queue.
const BASE: Duration = Duration::from_secs(10);
/// A host that has not read for longer is late: two or three slices of its scheduler (EEVDF: 3 ms each).
const LATE: Duration = Duration::from_millis(8);
/// An echo is due when this many broadcasts were heard since the last one.
const DUE: u64 = 16;
/// If its frames come faster than before, by this factor, it looks for the rate of the path and waits for the echo: then this many
/// frames are enough (RFC 9406, 4.3: N_RTT_SAMPLE), after a quarter of the usual time.
const FASTER: f64 = 1.5;
const SAMPLES: u64 = 8;
const SOON: Duration = Duration::from_nanos(PERIOD.nanos() / 4);
/// The delay's octet if there is none.
const UNKNOWN: u8 = u8::MAX;

/// The end of a broadcast or hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When the frame was sealed, by its sender's clock.
    pub stamp: u16,
    /// The neighbour that the rest is about, if there is one.
    pub about: Option<u16>,
    /// The low bits of the latest counter heard of it.
    pub latest: u16,
    /// The low bits of the number of its broadcasts heard.
    pub heard: u16,
    /// How much longer its frames took lately than at best, in ms.
    pub delay: Option<u8>,
}

impl Echo {
    /// The octets at the end of a frame.
    pub fn emit(&self) -> [u8; ECHO] {
        let mut octets = [0; ECHO];
        let fields = [
            self.stamp,
            self.about.unwrap_or(ALL),
            self.latest,
            self.heard,
        ];
        for (place, field) in octets.chunks_exact_mut(2).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        octets[ECHO - 1] = self.delay.unwrap_or(UNKNOWN);
        octets
    }

    /// The stamp and the echo in these octets; all values are legal.
    pub fn parse(octets: &[u8; ECHO]) -> Echo {
        let [s0, s1, a0, a1, l0, l1, h0, h1, delay] = *octets;
        Echo {
            stamp: u16::from_be_bytes([s0, s1]),
            about: Some(u16::from_be_bytes([a0, a1])).filter(|about| *about < ALL),
            latest: u16::from_be_bytes([l0, l1]),
            heard: u16::from_be_bytes([h0, h1]),
            delay: Some(delay).filter(|delay| *delay != UNKNOWN),
        }
    }
}

/// The stamp of a frame that leaves now.
pub fn stamp(now: Instant) -> u16 {
    now.saturating_since(Instant::ZERO).steps(TICK) as u16
}

/// What was heard of all neighbours.
#[derive(Debug, Default)]
pub struct Ears(BTreeMap<u16, Ear>);

/// What was heard of one neighbour.
#[derive(Debug)]
struct Ear {
    epoch: u16,
    latest: u64,
    heard: u64,
    /// What `heard` was in the latest echo, and when that was.
    echoed: (u64, Instant),
    /// Frames in a second, before that echo.
    usual: f64,
    /// The difference of the two clocks and the delay of the latest frame, in ticks.
    offset: i64,
    base: Least,
    recent: Least,
}

/// The least value of a time up to twice as long as a bucket.
#[derive(Debug)]
struct Least {
    bucket: Duration,
    since: Instant,
    now: i64,
    before: i64,
}

impl Least {
    fn new(bucket: Duration, since: Instant, value: i64) -> Least {
        Least {
            bucket,
            since,
            now: value,
            before: i64::MAX,
        }
    }

    fn note(&mut self, now: Instant, value: i64) {
        let passed = now.saturating_since(self.since);
        if passed >= self.bucket {
            self.before = match passed < self.bucket * 2 {
                true => self.now,
                false => i64::MAX,
            };
            (self.since, self.now) = (now, value);
        }
        self.now = self.now.min(value);
    }

    fn get(&self) -> i64 {
        self.now.min(self.before)
    }
}

impl Ears {
    /// Notes a new broadcast or hello of a life of `from`, stamped `at`. It may have waited here for up to `unread` while this host did
    /// not read.
    pub fn hear(
        &mut self,
        now: Instant,
        (from, epoch): (u16, u16),
        (counter, at): (u64, u16),
        unread: Duration,
    ) {
        let fresh = i64::from(stamp(now).wrapping_sub(at) as i16);
        let ear = self.0.entry(from);
        let ear = ear
            .and_modify(|ear| {
                if ear.epoch != epoch {
                    *ear = Ear::new(now, epoch, fresh);
                }
            })
            .or_insert_with(|| Ear::new(now, epoch, fresh));
        ear.heard += 1;
        ear.latest = ear.latest.max(counter);
        let change = (fresh as i16).wrapping_sub(ear.offset as i16);
        ear.offset += i64::from(change);
        ear.base.note(now, ear.offset);
        // A host that is busy with other programs is no queue on the path; if it cannot read at all, it says so by marks.
        let here = match unread > LATE {
            true => unread.steps(TICK) as i64,
            false => 0,
        };
        ear.recent
            .note(now, (ear.offset - here).max(ear.base.get()));
    }

    /// The end of a frame that leaves now: about the neighbour of whom most was heard since the latest echo.
    pub fn next(&mut self, now: Instant) -> Echo {
        let none = Echo {
            stamp: stamp(now),
            about: None,
            latest: 0,
            heard: 0,
            delay: None,
        };
        let most = self.0.iter_mut().max_by_key(|(_, ear)| ear.news());
        let Some((&about, ear)) = most.filter(|(_, ear)| ear.news() > 0) else {
            return none;
        };
        ear.usual = ear.frequency(now);
        ear.echoed = (ear.heard, now);
        Echo {
            about: Some(about),
            latest: ear.latest as u16,
            heard: ear.heard as u16,
            delay: Some(ear.delay()),
            ..none
        }
    }

    /// Whether a neighbour should get an echo although there is no other reason to send a frame.
    pub fn are_due(&self, now: Instant) -> bool {
        self.0.values().any(|ear| ear.is_due(now))
    }

    /// Forgets those who are no neighbours any more.
    pub fn keep(&mut self, neighbours: impl Fn(u16) -> bool) {
        self.0.retain(|from, _| neighbours(*from));
    }
}

impl Ear {
    fn new(now: Instant, epoch: u16, offset: i64) -> Ear {
        Ear {
            epoch,
            latest: 0,
            heard: 0,
            echoed: (0, now),
            usual: 0.0,
            offset,
            base: Least::new(BASE, now, offset),
            recent: Least::new(PERIOD, now, offset),
        }
    }

    fn news(&self) -> u64 {
        self.heard - self.echoed.0
    }

    /// Frames in a second since the latest echo.
    fn frequency(&self, now: Instant) -> f64 {
        let passed = now.saturating_since(self.echoed.1).max(TICK);
        self.news() as f64 / passed.as_secs_f64()
    }

    fn is_due(&self, now: Instant) -> bool {
        let passed = now.saturating_since(self.echoed.1);
        let faster = || passed >= SOON && self.frequency(now) >= FASTER * self.usual;
        self.news() >= DUE && passed >= PERIOD || self.news() >= SAMPLES && faster()
    }

    /// The least delay lately above the least of all, in ms. The least of a period shows a queue that stands, and not the jitter of
    /// hosts and channel access (RFC 8289, 4.2).
    fn delay(&self) -> u8 {
        let ticks = (self.recent.get() - self.base.get()).max(0);
        (ticks / 10).min(i64::from(UNKNOWN - 1)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn echoes_round_trip() {
        let mut echo = Echo {
            stamp: 0xfffe,
            about: Some(7),
            latest: 1,
            heard: 2,
            delay: Some(254),
        };
        assert_eq!(Echo::parse(&echo.emit()), echo);
        (echo.about, echo.delay) = (None, None);
        assert_eq!(Echo::parse(&echo.emit()), echo);
    }

    /// Clocks that disagree and wrap do not matter; a queue that stands does, jitter above it does not.
    #[test]
    fn the_delay_is_that_of_the_standing_queue() {
        let mut ears = Ears::default();
        for frame in 0..2000 {
            let (sent, jitter) = (ms(10 * frame), [0, 9, 4][frame as usize % 3]);
            let queue = if frame < 1000 { 0 } else { 30 };
            let arrives = sent + Duration::from_millis(80 + jitter + queue);
            let at = stamp(sent).wrapping_add(54_321);
            ears.hear(arrives, (1, 5), (frame, at), Duration::ZERO);
            let echo = ears.next(arrives);
            assert_eq!((echo.about, echo.heard), (Some(1), frame as u16 + 1));
            match frame {
                0..1000 => assert!(echo.delay < Some(5)),
                1030.. => assert_eq!(echo.delay, Some(30)),
                _ => {}
            }
        }
    }

    /// Goal: a host whose processor is busy with other programs does not look like a full path. Method: frames come each ms, and the host
    /// reads every 40 ms what has come.
    #[test]
    fn a_host_that_reads_late_is_no_queue() {
        let (mut ears, mut read) = (Ears::default(), ms(0));
        for frame in 0..4000u64 {
            // At first it reads in time, so that the least delay is known.
            let every = if frame < 1000 { 1 } else { 40 };
            let (sent, now) = (ms(frame), ms((frame / every + 1) * every + 5));
            ears.hear(
                now,
                (1, 5),
                (frame, stamp(sent)),
                now.saturating_since(read),
            );
            if (frame + 1) % every == 0 {
                read = now;
                assert!(ears.next(now).delay < Some(5));
            }
        }
    }

    /// Goal: one who doubles its rate learns of each step soon, and one who keeps it gets few echoes. Method: twenty seconds at 100
    /// frames a second, then the double of it four times, a second each; what is due is sent.
    #[test]
    fn a_neighbour_that_sends_faster_gets_echoes_soon() {
        let (mut ears, mut counter, mut at) = (Ears::default(), 0, 0.0);
        let mut steps = [(100.0, 20e3)].to_vec();
        steps.extend((1..5).map(|step| (100.0 * f64::from(1 << step), 1e3)));
        for (rate, lasts) in steps {
            let (begun, mut first, mut echoes) = (at, None, 0);
            while at < begun + lasts {
                (at, counter) = (at + 1e3 / rate, counter + 1);
                let now = Instant::from_micros((at * 1e3) as u64);
                ears.hear(now, (1, 5), (counter, stamp(now)), Duration::ZERO);
                if ears.are_due(now) {
                    ears.next(now);
                    first.get_or_insert(at - begun);
                    echoes += 1;
                }
            }
            let seconds = lasts / 1e3;
            println!(
                "{rate} frames/s: first echo after {first:?} ms, {echoes} echoes in {seconds} s"
            );
            assert!(first.unwrap() < 161.0 && f64::from(echoes) <= 11.0 * seconds + 1.0);
            assert!(
                rate < 200.0 || first.unwrap() < 100.0,
                "not sooner than without"
            );
        }
    }

    #[test]
    fn every_neighbour_gets_its_echo_and_a_new_life_starts_anew() {
        let mut ears = Ears::default();
        for frame in 0..DUE {
            ears.hear(ms(frame), (1, 5), (frame, 0), Duration::ZERO);
            ears.hear(ms(frame), (2, 5), (frame / 2, 0), Duration::ZERO);
        }
        ears.hear(ms(20), (1, 5), (90, 0), Duration::ZERO);
        assert!(!ears.are_due(ms(20)) && ears.are_due(ms(30)));
        let echo = ears.next(ms(110));
        assert_eq!((echo.about, echo.latest, echo.heard), (Some(1), 90, 17));
        assert_eq!(ears.next(ms(111)).about, Some(2));
        assert_eq!(ears.next(ms(112)).about, None);
        ears.hear(ms(120), (1, 6), (3, 0), Duration::ZERO);
        assert_eq!(ears.next(ms(120)).heard, 1);
        ears.keep(|from| from != 1);
        assert_eq!(ears.0.len(), 1);
    }
}
