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
//! echo loses no count. `delay` is in units of 2 ms, 127 if unknown: how much longer frames took lately than at best. The two
//! clocks need not agree, since only differences count. Its highest bit asks the neighbours for their echoes soon.

use std::collections::BTreeMap;

use chappe_core::{Duration, Instant};

use crate::backlog::PERIOD;
use crate::frame::ALL;

/// Octets of the stamp and the echo.
pub const ECHO: usize = 9;

/// The unit of stamps.
const TICK: Duration = Duration::from_micros(100);
/// The least delay is that of the last one to two times this long: a minute, as LEDBAT's history has it (RFC 6817, 4.1). In 10 s, which is BBR's
/// window, a queue that another flow keeps filled would become the least delay.
const BASE: Duration = Duration::from_secs(60);
/// What two clocks drift apart at most: 100 ppm, a tick in this time. So much more delay is no queue.
const DRIFT: Duration = Duration::from_secs(1);
/// A host that has not read for longer is late: two or three slices of its scheduler (EEVDF: 3 ms each).
const LATE: Duration = Duration::from_millis(8);
/// An echo is due when this many broadcasts were heard since the last one.
const DUE: u64 = 16;
/// If the neighbour asks for it, this many are enough (RFC 9406, 4.3: N_RTT_SAMPLE), after the time in which a busy host reads.
const SAMPLES: u64 = 8;
pub const SOON: Duration = LATE;
/// After so many times that long fewer are enough: the neighbour may wait.
const SAMPLES_LATE: u64 = 4;
/// The unit of the delay's octet in ms, its value if there is none, and its bit that asks for echoes.
pub const GRAIN: u8 = 2;
const UNKNOWN: u8 = 0x7f;
const ASKS: u8 = 0x80;

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
    /// How much longer its frames took lately than at best, in ms: an even number, 252 at most.
    pub delay: Option<u8>,
    /// Whether the sender of the frame waits for echoes of its own frames.
    pub asks: bool,
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
        let delay = self.delay.map(|delay| (delay / GRAIN).min(UNKNOWN - 1));
        octets[ECHO - 1] = delay.unwrap_or(UNKNOWN) | if self.asks { ASKS } else { 0 };
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
            delay: Some(delay & !ASKS)
                .filter(|delay| *delay != UNKNOWN)
                .map(|delay| delay * GRAIN),
            asks: delay & ASKS != 0,
        }
    }
}

/// The stamp of a frame that leaves now.
pub fn stamp(now: Instant) -> u16 {
    now.saturating_since(Instant::ZERO).steps(TICK) as u16
}

/// By how many ticks two clocks may have drifted apart since the start.
fn drift(now: Instant) -> i64 {
    now.saturating_since(Instant::ZERO).steps(DRIFT) as i64
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
    /// Whether its latest frame asked for an echo.
    asks: bool,
    /// The difference of the two clocks and the delay of the latest frame, in ticks.
    offset: i64,
    base: Least,
    recent: Least,
    /// The least of that since the latest echo.
    fresh: i64,
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
    /// Notes a new broadcast or hello of a life of `from`, stamped `at`, and whether it asks for an echo. It may have waited here for up
    /// to `unread` while this host did not read.
    pub fn hear(
        &mut self,
        now: Instant,
        (from, epoch): (u16, u16),
        (counter, at, asks): (u64, u16, bool),
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
        ear.asks = asks;
        ear.latest = ear.latest.max(counter);
        let change = (fresh as i16).wrapping_sub(ear.offset as i16);
        ear.offset += i64::from(change);
        ear.base.note(now, ear.offset - drift(now));
        // A host that is busy with other programs is no queue on the path; if it cannot read at all, it says so by marks.
        let here = match unread > LATE {
            true => unread.steps(TICK) as i64,
            false => 0,
        };
        let waited = (ear.offset - here).max(ear.base.get() + drift(now));
        ear.recent.note(now, waited);
        ear.fresh = ear.fresh.min(waited);
    }

    /// The end of a frame that leaves now: about the neighbour of whom most was heard since the latest echo.
    pub fn next(&mut self, now: Instant) -> Echo {
        let none = Echo {
            stamp: stamp(now),
            about: None,
            latest: 0,
            heard: 0,
            delay: None,
            asks: false,
        };
        let most = self.0.iter_mut().max_by_key(|(_, ear)| ear.news());
        let Some((&about, ear)) = most.filter(|(_, ear)| ear.news() > 0) else {
            return none;
        };
        let delay = ear.delay(now);
        (ear.echoed, ear.fresh) = ((ear.heard, now), i64::MAX);
        Echo {
            about: Some(about),
            latest: ear.latest as u16,
            heard: ear.heard as u16,
            delay: Some(delay),
            ..none
        }
    }

    /// Whether a neighbour should get an echo although there is no other reason to send a frame.
    pub fn are_due(&self, now: Instant) -> bool {
        self.0.values().any(|ear| ear.is_due(now))
    }

    /// Whether a neighbour that waits for an echo should get it.
    pub fn are_asked(&self, now: Instant) -> bool {
        self.0.values().any(|ear| ear.is_asked(now))
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
            asks: false,
            offset,
            base: Least::new(BASE, now, offset - drift(now)),
            recent: Least::new(PERIOD, now, offset),
            fresh: i64::MAX,
        }
    }

    fn news(&self) -> u64 {
        self.heard - self.echoed.0
    }

    fn is_due(&self, now: Instant) -> bool {
        let passed = now.saturating_since(self.echoed.1);
        self.news() >= DUE && passed >= PERIOD || self.is_asked(now)
    }

    fn is_asked(&self, now: Instant) -> bool {
        let passed = now.saturating_since(self.echoed.1);
        let enough = self.news() >= SAMPLES || self.news() > 0 && passed >= SOON * SAMPLES_LATE;
        self.asks && enough && passed >= SOON
    }

    /// The least delay lately above the least of all, in ms. The least of a period shows a queue that stands, and not the jitter of
    /// hosts and channel access (RFC 8289, 4.2). One that asks decides by itself how long a queue must stand.
    fn delay(&self, now: Instant) -> u8 {
        let least = match self.asks && self.news() >= SAMPLES {
            true => self.fresh,
            false => self.recent.get(),
        };
        let ticks = (least - self.base.get() - drift(now)).max(0);
        (ticks / 10).min(i64::from(u8::MAX)) as u8
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
            delay: Some(252),
            asks: true,
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
            ears.hear(arrives, (1, 5), (frame, at, false), Duration::ZERO);
            let echo = ears.next(arrives);
            assert_eq!((echo.about, echo.heard), (Some(1), frame as u16 + 1));
            match frame {
                0..1000 => assert!(echo.delay < Some(5)),
                // The clocks may have drifted apart since.
                1030.. => assert!((Some(28)..=Some(30)).contains(&echo.delay)),
                _ => {}
            }
        }
    }

    /// Goal: a queue that another flow keeps filled for a minute is still one, and two clocks that drift apart are none. Method: the queue is
    /// empty for a second only; then no queue, and a clock that goes wrong by 100 ppm for five minutes.
    #[test]
    fn a_queue_that_stands_for_a_minute_is_still_one() {
        for (queue, drifts, seconds, delays) in [(40, false, 60, 34..=40), (0, true, 300, 0..=1)] {
            let mut ears = Ears::default();
            for frame in 0..seconds * 100 {
                let sent = ms(10 * frame);
                let wait = if frame < 100 { 0 } else { queue };
                let arrives = sent + Duration::from_millis(20 + wait);
                let wrong = if drifts { frame / 100 } else { 0 };
                let at = stamp(sent).wrapping_sub(wrong as u16);
                ears.hear(arrives, (1, 5), (frame, at, false), Duration::ZERO);
                let delay = ears.next(arrives).delay.unwrap();
                assert!(frame < 130 || delays.contains(&delay), "{frame}: {delay}");
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
                (frame, stamp(sent), false),
                now.saturating_since(read),
            );
            if (frame + 1) % every == 0 {
                read = now;
                assert!(ears.next(now).delay < Some(5));
            }
        }
    }

    /// Goal: one who asks gets echoes soon, however fast it sends, and others get few. Method: twenty frames a second up to 10,000, for
    /// a second each; what is due is sent.
    #[test]
    fn a_neighbour_that_asks_gets_echoes_soon() {
        let (mut ears, mut counter, mut at) = (Ears::default(), 0, 0.0);
        for rate in [20.0f64, 1000.0, 10_000.0] {
            for asks in [false, true] {
                let (begun, mut echoes) = (at, 0);
                while at < begun + 1e3 {
                    (at, counter) = (at + 1e3 / rate, counter + 1);
                    let now = Instant::from_micros((at * 1e3) as u64);
                    ears.hear(now, (1, 5), (counter, stamp(now), asks), Duration::ZERO);
                    assert!(asks || !ears.are_asked(now));
                    if ears.are_due(now) {
                        ears.next(now);
                        echoes += 1;
                    }
                }
                println!("{rate} frames/s, asks {asks}: {echoes} echoes in a second");
                let most = match asks {
                    true => (rate / 8.0).clamp(20.0, 125.0),
                    false => (rate / 16.0).min(10.0),
                };
                assert!((most * 0.7 - 1.0..=most + 1.0).contains(&f64::from(echoes)));
            }
        }
    }

    #[test]
    fn every_neighbour_gets_its_echo_and_a_new_life_starts_anew() {
        let mut ears = Ears::default();
        for frame in 0..DUE {
            ears.hear(ms(frame), (1, 5), (frame, 0, false), Duration::ZERO);
            ears.hear(ms(frame), (2, 5), (frame / 2, 0, false), Duration::ZERO);
        }
        ears.hear(ms(20), (1, 5), (90, 0, false), Duration::ZERO);
        assert!(!ears.are_due(ms(99)) && ears.are_due(ms(100)));
        let echo = ears.next(ms(110));
        assert_eq!((echo.about, echo.latest, echo.heard), (Some(1), 90, 17));
        assert_eq!(ears.next(ms(111)).about, Some(2));
        assert_eq!(ears.next(ms(112)).about, None);
        ears.hear(ms(120), (1, 6), (3, 0, false), Duration::ZERO);
        assert_eq!(ears.next(ms(120)).heard, 1);
        ears.keep(|from| from != 1);
        assert_eq!(ears.0.len(), 1);
    }
}
