//! The largest datagram that the path carries: datagram packetization layer path MTU discovery (RFC 8899) on a session.
//!
//! A path whose MTU is smaller than configured often drops full datagrams in silence. So a session begins with datagrams of
//! 1200 octets, and padded probes look for larger ones: first the largest configured, which usually passes within one round
//! trip, then by halving. The peer answers each probe. Losses are no reason to give a size up: it is tried until chance explains
//! the silence with at most one in a thousand.
//!
//! When nothing is reported any more, a small probe is sent beside a full one. If only the small ones are answered, the path has
//! become narrower ("black hole", RFC 8899, 4.3).

use chappe_core::{Duration, Instant};

/// Datagram that a session begins with (RFC 8899, 5.1.2: BASE_PLPMTU).
const BASE: usize = 1200;
/// The smallest ever used: what every IPv4 host must accept (RFC 1122, 3.3.3: 576), less IPv6's and UDP's headers, so that it
/// suits both.
const LEAST: usize = 576 - 48;
/// Fewest probes of a size before it is given up (RFC 8899, 5.1.2: MAX_PROBES), and most.
const PROBES: u32 = 3;
const PROBES_MOST: u32 = 40;
/// Fewest probes of both sizes before one in doubt is given up.
const IN_DOUBT: u32 = 20;
/// Chance that losses alone explain the silence.
const CHANCE: f64 = 1e-3;
/// The same for a size in doubt, with which all that is under way is given up. A fast path that loses 30 % repeats some body six times
/// all the time, so that a size is in doubt every ten seconds: 3e7 times in ten years. And the most probes of it.
const CHANCE_IN_DOUBT: f64 = 1e-9;
const IN_DOUBT_MOST: u32 = 200;
/// Sizes closer than this are not told apart.
const NEAR: usize = 8;
/// Shortest wait for an answer beyond the round trip: the peer may be busy.
const GRACE: Duration = Duration::from_millis(50);
/// When a larger size is tried again (RFC 8899, 5.1.1: PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// Probe timeouts in a row without a report from which on the size is in doubt.
const DOUBT: u32 = 3;

/// How long a size that was in doubt is not doubted again.
const SURE: Duration = Duration::from_secs(10);

/// Octets of a probe or an answer behind the note that carries it: kind, number, size.
pub(crate) const TAIL: usize = 4;
const PROBE: u8 = 1;
const ANSWER: u8 = 2;

/// What is behind a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The datagram has this size: answer it.
    Probe(u16),
    /// A probe of this size has arrived.
    Answer(u16),
}

impl Tail {
    pub fn read(octets: &[u8]) -> Option<Tail> {
        match *octets {
            [PROBE, 0, high, low, ..] => Some(Tail::Probe(u16::from_be_bytes([high, low]))),
            [ANSWER, 0, high, low, ..] => Some(Tail::Answer(u16::from_be_bytes([high, low]))),
            _ => None,
        }
    }

    pub fn octets(self) -> [u8; TAIL] {
        let (kind, size) = match self {
            Tail::Probe(size) => (PROBE, size),
            Tail::Answer(size) => (ANSWER, size),
        };
        let [high, low] = size.to_be_bytes();
        [kind, 0, high, low]
    }
}

/// The search for the largest datagram to one peer.
#[derive(Clone, Debug)]
pub(crate) struct PathMtu {
    /// The largest that is configured.
    most: usize,
    /// The largest that is used, and the smallest that is known not to pass.
    limit: usize,
    beyond: usize,
    /// The size that is probed, how often it was, and when it is again; `None` if nothing is.
    probed: Option<(usize, u32)>,
    probe_at: Instant,
    /// Until when the size does not come into doubt again.
    sure_until: Instant,
    /// Answers to small probes while the present size is in doubt.
    doubt: Option<u32>,
    /// An answer that the peer is owed.
    owed: Option<u16>,
}

impl PathMtu {
    pub fn new(most: usize) -> PathMtu {
        PathMtu {
            most,
            limit: most.min(BASE),
            beyond: most + 1,
            probed: (most > BASE).then_some((most, 0)),
            probe_at: Instant::ZERO,
            sure_until: Instant::ZERO,
            doubt: None,
            owed: None,
        }
    }

    /// The largest datagram to send.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether the path is known to carry less than is configured.
    pub fn is_narrow(&self) -> bool {
        self.beyond <= self.most && self.probed.is_none()
    }

    /// Whether nothing is known yet of the largest size that is configured: usually it passes within a round trip.
    pub fn is_untried(&self) -> bool {
        self.limit < self.most && self.beyond > self.most
    }

    /// When the next probe or answer is due.
    pub fn due_at(&self) -> Option<Instant> {
        match self.owed {
            Some(_) => Some(Instant::ZERO),
            None => self
                .probed
                .map(|_| self.probe_at)
                .or(self.is_narrow().then_some(self.probe_at)),
        }
    }

    /// What to send now: behind a note, padded to so many octets of datagram. `round_trip`: smoothed; `lost`: share of probes
    /// or answers that are lost anyway.
    pub fn next(&mut self, now: Instant, round_trip: Duration, lost: f64) -> Option<(Tail, usize)> {
        if let Some(size) = self.owed.take() {
            return Some((Tail::Answer(size), 0));
        }
        if now < self.probe_at {
            return None;
        }
        if self.is_narrow() {
            self.beyond = self.most + 1;
            self.probed = Some((self.most, 0));
        }
        let tries = |chance: f64, most: u32| {
            let tries = (chance.ln() / lost.clamp(0.01, 0.9).ln()).ceil() as u32;
            tries.clamp(PROBES, most)
        };
        let tries = match self.doubt {
            // Half of them are small.
            Some(_) => (tries(CHANCE_IN_DOUBT, IN_DOUBT_MOST) * 2).max(IN_DOUBT),
            None => tries(CHANCE, PROBES_MOST),
        };
        let (size, sent) = self.probed?;
        if sent >= tries {
            self.fail(now, size, tries);
            return self.next_of_search(now, round_trip);
        }
        self.send(now, round_trip, (size, sent))
    }

    fn next_of_search(&mut self, now: Instant, round_trip: Duration) -> Option<(Tail, usize)> {
        let (size, sent) = self.probed?;
        self.send(now, round_trip, (size, sent))
    }

    fn send(
        &mut self,
        now: Instant,
        round_trip: Duration,
        (size, sent): (usize, u32),
    ) -> Option<(Tail, usize)> {
        self.probed = Some((size, sent + 1));
        self.probe_at = now + round_trip + GRACE;
        // While the size is in doubt, a small one goes with each.
        let size = match self.doubt {
            Some(_) if sent % 2 == 1 => LEAST,
            _ => size,
        };
        Some((Tail::Probe(size as u16), size))
    }

    /// All probes of a size were lost.
    fn fail(&mut self, now: Instant, size: usize, tries: u32) {
        if let Some(answers) = self.doubt {
            self.doubt = None;
            // If nothing is answered, the path is interrupted and says nothing of sizes.
            if answers >= tries / 10 && answers > 1 {
                self.limit = self.smaller();
                self.beyond = size;
            }
        } else {
            self.beyond = self.beyond.min(size);
        }
        self.search(now);
    }

    /// The largest size as long as it has not failed, then the next one between what passes and what does not.
    fn search(&mut self, now: Instant) {
        let next = match self.beyond > self.most {
            true => self.most,
            false => (self.limit + self.beyond) / 2,
        };
        self.probed = (self.beyond > self.limit + NEAR).then_some((next, 0));
        self.probe_at = if self.probed.is_some() {
            now
        } else {
            now + RAISE
        };
    }

    fn smaller(&self) -> usize {
        match self.limit > BASE {
            true => BASE,
            false => self.limit.min(LEAST),
        }
    }

    /// Takes what a note has brought; whether the largest datagram has changed.
    pub fn take(&mut self, now: Instant, tail: Tail) -> bool {
        let size = match tail {
            Tail::Probe(size) => {
                self.owed = Some(size);
                return false;
            }
            Tail::Answer(size) => usize::from(size),
        };
        match (&mut self.doubt, self.probed) {
            (Some(answers), _) if size < self.limit => *answers += 1,
            // What was in doubt passes.
            (Some(_), _) if size == self.limit => {
                self.doubt = None;
                self.search(now);
            }
            (None, Some((probed, _)))
                if size == probed && size > self.limit && size <= self.most =>
            {
                self.limit = size;
                self.search(now);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Reports have failed to come `timeouts` times, or a body is `stuck`: the size comes into doubt.
    pub fn doubt(&mut self, now: Instant, timeouts: u32, stuck: bool) {
        let doubtful = timeouts >= DOUBT || stuck;
        if doubtful && now >= self.sure_until && self.doubt.is_none() && self.limit > self.smaller()
        {
            self.sure_until = now + SURE;
            self.doubt = Some(0);
            (self.probed, self.probe_at) = (Some((self.limit, 0)), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: losses of 30 % each way make no path narrow, however often its size comes into doubt. Before, one doubt in 1,600 did, and
    /// what was under way was lost.
    #[test]
    fn losses_do_not_make_a_path_narrow() {
        let mut random = chappe_core::Seed(3).stream(chappe_core::Purpose::Trial(1));
        let lost = 1.0 - 0.7 * 0.7;
        let mut mtu = PathMtu::new(1472);
        (mtu.limit, mtu.probed) = (1472, None);
        let mut now = Instant::from_millis(1);
        for doubt in 0..20_000 {
            now += SURE;
            mtu.doubt(now, DOUBT, false);
            while mtu.doubt.is_some() {
                if let Some((Tail::Probe(size), _)) =
                    mtu.next(now, Duration::from_millis(100), lost)
                    && !random.chance(lost)
                {
                    mtu.take(now, Tail::Answer(size));
                }
                now = now.max(mtu.probe_at);
            }
            assert_eq!(mtu.limit(), 1472, "doubt {doubt}");
        }
    }

    /// Plays probes over a path that carries `carried` octets and loses a share of them: the size found, and the time it took.
    fn find(mut mtu: PathMtu, carried: usize, lost: f64, seed: u64) -> (PathMtu, Duration) {
        let mut random = chappe_core::Seed(seed).stream(chappe_core::Purpose::Trial(0));
        let round_trip = Duration::from_millis(20);
        let (mut now, begun) = (Instant::from_millis(1), Instant::from_millis(1));
        for _ in 0..4_000 {
            if mtu.probed.is_none() {
                break;
            }
            if let Some((Tail::Probe(size), padded)) = mtu.next(now, round_trip, lost) {
                assert_eq!(usize::from(size), padded);
                if padded <= carried && !random.chance(lost) {
                    mtu.take(now + round_trip, Tail::Answer(size));
                }
            }
            now += Duration::from_millis(10);
        }
        (mtu, now.saturating_since(begun))
    }

    #[test]
    fn the_largest_size_is_found() {
        for (carried, lost) in [
            (1472, 0.0),
            (1372, 0.0),
            (1280, 0.3),
            (1472, 0.5),
            (1205, 0.1),
        ] {
            let (mtu, took) = find(PathMtu::new(1472), carried, lost, 1);
            println!("{carried} {lost}: {} in {took:?}", mtu.limit());
            assert!(
                (carried - NEAR..=carried).contains(&mtu.limit()),
                "{}",
                mtu.limit()
            );
            assert_eq!(mtu.is_narrow(), carried < 1472);
        }
    }

    #[test]
    fn a_narrower_path_is_noticed_and_an_outage_is_not_one() {
        let (found, _) = find(PathMtu::new(1472), 1472, 0.0, 1);
        for (carried, limit) in [(1300, 1292..=1300), (900, 892..=900), (0, 1472..=1472)] {
            let mut mtu = found.clone();
            // As often as the timeouts go on.
            for second in 1..8 {
                mtu.doubt(Instant::from_millis(second * 40_000), 5, false);
                mtu.probe_at = Instant::ZERO;
                mtu = find(mtu, carried, 0.0, 2).0;
            }
            println!("{carried}: {}", mtu.limit());
            assert!(limit.contains(&mtu.limit()), "{carried}: {}", mtu.limit());
        }
    }

    /// A size that comes into doubt before the largest one was answered: once it is known to pass, the largest is tried first, as
    /// before. Halving instead takes some seconds on a lossy path, for which nothing else uses the path.
    #[test]
    fn a_doubt_does_not_end_the_first_try() {
        let mut mtu = PathMtu::new(1472);
        let now = Instant::from_millis(1);
        let round_trip = Duration::from_millis(20);
        let probed = |mtu: &mut PathMtu, now| mtu.next(now, round_trip, 0.2).map(|probe| probe.0);
        assert_eq!(probed(&mut mtu, now), Some(Tail::Probe(1472)));
        mtu.doubt(now, 0, true);
        assert_eq!(probed(&mut mtu, now), Some(Tail::Probe(1200)));
        mtu.take(now, Tail::Answer(1200));
        assert_eq!(probed(&mut mtu, now), Some(Tail::Probe(1472)));
        assert!(mtu.is_untried());
    }
}
