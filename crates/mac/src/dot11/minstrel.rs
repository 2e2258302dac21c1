//! Minstrel: which rates a unicast frame is tried at.
//!
//! Smithies' algorithm as Linux' mac80211 had it for 802.11a, b and g (described by Xia, Hart and Fu, "Evaluation of the Minstrel rate
//! adaptation algorithm in IEEE 802.11g WLANs", ICC 2013), here for the rates of HT as well. It counts what was acknowledged and never looks at signal strength:
//!
//! - Every 100 ms the share of acknowledged attempts at each rate enters a mean with a weight of a quarter.
//! - A rate's throughput is that share over the airtime of 1200 octets; below a share of 10 % it is none.
//! - A frame has a chain of rates: the best by throughput, the second best, the most reliable, the slowest. How often each is
//!   tried follows from its airtime: attempts with their windows stay within 6 ms, and are at most seven.
//! - One frame in ten looks around: another rate comes first in its chain, or second if it is slower than the best.
//! - A rate that nearly always or hardly ever succeeds is tried at most twice in a chain.
//!
//! When a chain has been used up the frame is given up: the chain takes the place of the retry limit.

use chappe_core::{Address, Duration, Instant, Mode, Rate, Stream};
use chappe_wire::dot11::{ACK_LEN, FCS_LEN};

use super::config::Config;

/// Neighbours remembered; the one that was sent to the longest ago makes room for another. A mesh's node has few next hops.
const NEIGHBOURS: usize = 16;
/// All families have at most as many rates.
const RATES: usize = 8;
/// How often the shares enter the means (mac80211: `update_interval`).
const WINDOW: Duration = Duration::from_millis(100);
/// Weight of what was before (mac80211: `EWMA_LEVEL`).
const OLD: f32 = 0.75;
/// One frame in so many looks around (mac80211: `lookaround_rate_mrr` of 10 %).
const LOOKAROUND: u32 = 10;
/// Octets of the frame by which rates are compared (mac80211).
const OCTETS: usize = 1200;
/// The most time for the attempts at one rate (mac80211: `segment_size`), and the most attempts (`max_retry`).
const SEGMENT: Duration = Duration::from_micros(6_000);
const TRIES_MAX: u8 = 7;
/// Shares beyond these are known well enough for two attempts.
const USEFUL: core::ops::RangeInclusive<f32> = 0.1..=0.95;

/// The rates that a frame is tried at, one after the other, with the number of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain([(Mode, u8); 4]);

impl Chain {
    /// The mode of the attempt after `failed` ones.
    pub fn mode(&self, failed: u8) -> Mode {
        let mut left = failed;
        for (mode, tries) in self.0 {
            if left < tries {
                return mode;
            }
            left -= tries;
        }
        let [.., (last, _)] = self.0;
        last
    }

    /// How many attempts the chain allows, at all its rates.
    pub fn tries(&self) -> u8 {
        self.0.iter().map(|(_, tries)| tries).sum()
    }
}

/// What is known of one rate to one neighbour.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    /// Since the last window ended.
    attempts: u16,
    successes: u16,
    /// Mean share of acknowledged attempts; nothing before the first window in which it was tried.
    share: Option<f32>,
}

/// What follows from a rate alone.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    airtime: Duration,
    tries: u8,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    address: Address,
    used: Instant,
    window_ends: Instant,
    tried: [Tried; RATES],
    best: usize,
    second: usize,
    reliable: usize,
    frames: u32,
    lookarounds: u32,
    /// The order in which rates are looked at, and the place in it.
    order: [u8; RATES],
    next: usize,
}

/// The rate control of one station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Minstrel {
    /// The family's rates up to the fastest allowed, slowest first.
    rates: &'static [Rate],
    /// The given mode: its preamble holds for all rates that have one.
    data: Mode,
    costs: [Cost; RATES],
    neighbours: [Option<Neighbour>; NEIGHBOURS],
}

impl Minstrel {
    /// Rates of the family of `config.data` up to it.
    pub fn new(config: &Config) -> Minstrel {
        let family = config.data.rate.family();
        let fastest = family.iter().position(|&rate| rate == config.data.rate);
        let rates = fastest
            .and_then(|fastest| family.get(..=fastest))
            .unwrap_or(family);
        let mut minstrel = Minstrel {
            rates,
            data: config.data,
            costs: [Cost::default(); RATES],
            neighbours: [None; NEIGHBOURS],
        };
        for place in 0..rates.len().min(RATES) {
            let mode = minstrel.mode(place);
            let cost = Cost {
                airtime: mode.airtime(OCTETS),
                tries: tries(mode, config),
            };
            if let Some(entry) = minstrel.costs.get_mut(place) {
                *entry = cost;
            }
        }
        minstrel
    }

    /// The rates for the next frame to a neighbour.
    pub fn chain(&mut self, now: Instant, to: Address, random: &mut Stream) -> Chain {
        let count = self.rates.len();
        let costs = self.costs;
        let Some(neighbour) = self.neighbour(now, to, random) else {
            return Chain([(self.data, TRIES_MAX); 4]);
        };
        neighbour.update(now, &costs, count);
        neighbour.used = now;
        neighbour.frames = neighbour.frames.saturating_add(1);
        let (best, second) = (neighbour.best, neighbour.second);
        let looked = neighbour.look_around(random, count);
        let airtime = |place: usize| costs.get(place).map_or(Duration::ZERO, |cost| cost.airtime);
        let (first, then) = match looked {
            None => (best, second),
            // A slower rate is only of use where the best one fails.
            Some(other) if airtime(other) > airtime(best) => (best, other),
            Some(other) => (other, best),
        };
        let places = [first, then, neighbour.reliable, 0];
        let tries = places.map(|place| neighbour.tries(place, &costs));
        let mut chain = [(self.data, 1); 4];
        for ((entry, place), tries) in chain.iter_mut().zip(places).zip(tries) {
            *entry = (self.mode(place), tries);
        }
        Chain(chain)
    }

    /// Attempts at a rate to a neighbour ended, so many of them well.
    pub fn note(&mut self, to: Address, rate: Rate, attempts: u16, successes: u16) {
        let Some(place) = self.rates.iter().position(|&other| other == rate) else {
            return;
        };
        let known = self.neighbours.iter_mut().flatten();
        let tried = known
            .filter(|neighbour| neighbour.address == to)
            .find_map(|neighbour| neighbour.tried.get_mut(place));
        if let Some(tried) = tried {
            tried.attempts = tried.attempts.saturating_add(attempts);
            tried.successes = tried.successes.saturating_add(successes);
        }
    }

    fn mode(&self, place: usize) -> Mode {
        let rate = self.rates.get(place).copied().unwrap_or(self.data.rate);
        match self.data == Mode::long(self.data.rate) {
            true => Mode::long(rate),
            false => Mode::short(rate),
        }
    }

    /// What is known of a neighbour; a new one replaces the one used the longest ago.
    fn neighbour(
        &mut self,
        now: Instant,
        to: Address,
        random: &mut Stream,
    ) -> Option<&mut Neighbour> {
        let is_it = |entry: &Option<Neighbour>| entry.is_some_and(|known| known.address == to);
        let place = self.neighbours.iter().position(is_it);
        let place = match place {
            Some(place) => place,
            None => {
                let age = |entry: &Option<Neighbour>| entry.map(|known| known.used);
                let mut places = 0..NEIGHBOURS;
                let oldest = places
                    .by_ref()
                    .min_by_key(|&place| self.neighbours.get(place).and_then(age))?;
                let count = self.rates.len();
                *self.neighbours.get_mut(oldest)? = Some(Neighbour::new(now, to, count, random));
                oldest
            }
        };
        self.neighbours.get_mut(place)?.as_mut()
    }
}

impl Neighbour {
    fn new(now: Instant, address: Address, count: usize, random: &mut Stream) -> Neighbour {
        let mut order = core::array::from_fn(|place| place as u8);
        if let Some(used) = order.get_mut(..count) {
            random.shuffle(used);
        }
        Neighbour {
            address,
            used: now,
            window_ends: now + WINDOW,
            tried: [Tried::default(); RATES],
            best: 0,
            second: 0,
            reliable: 0,
            frames: 0,
            lookarounds: 0,
            order,
            next: 0,
        }
    }

    /// The rate to look at with this frame, if it looks around.
    fn look_around(&mut self, random: &mut Stream, count: usize) -> Option<usize> {
        if count < 2 || self.lookarounds.saturating_mul(LOOKAROUND) >= self.frames {
            return None;
        }
        // Counts start over long before they are full.
        if self.frames >= 1 << 20 {
            (self.frames, self.lookarounds) = (0, 0);
        }
        for _ in 0..count {
            if self.next >= count {
                self.next = 0;
                random.shuffle(self.order.get_mut(..count)?);
            }
            let other = usize::from(*self.order.get(self.next)?);
            self.next += 1;
            if other != self.best {
                self.lookarounds += 1;
                return Some(other);
            }
        }
        None
    }

    /// How often a rate is tried in a chain.
    fn tries(&self, place: usize, costs: &[Cost; RATES]) -> u8 {
        let usual = costs.get(place).map_or(1, |cost| cost.tries);
        match self.tried.get(place).and_then(|tried| tried.share) {
            Some(share) if !USEFUL.contains(&share) => (usual / 2).clamp(1, 2),
            _ => usual.max(1),
        }
    }

    /// Ends a window that is over: means and the order of rates anew.
    fn update(&mut self, now: Instant, costs: &[Cost; RATES], count: usize) {
        if now < self.window_ends {
            return;
        }
        self.window_ends = now + WINDOW;
        for tried in &mut self.tried {
            if tried.attempts == 0 {
                continue;
            }
            let share = f32::from(tried.successes) / f32::from(tried.attempts);
            let mean = |old: f32| OLD * old + (1.0 - OLD) * share;
            tried.share = Some(tried.share.map_or(share, mean));
            (tried.attempts, tried.successes) = (0, 0);
        }
        let ranked = || self.tried.iter().zip(costs).take(count).enumerate();
        let (mut best, mut second, mut reliable) = ((0, -1.0), (0, -1.0), (0, (-1.0, -1.0)));
        for (place, (tried, cost)) in ranked() {
            let share = tried.share.unwrap_or(0.0);
            let throughput = match share < *USEFUL.start() {
                true => 0.0,
                false => share / cost.airtime.nanos().max(1) as f32,
            };
            if throughput > best.1 {
                (second, best) = (best, (place, throughput));
            } else if throughput > second.1 {
                second = (place, throughput);
            }
            // Among rates that hardly ever fail the fastest is the most reliable one.
            let rank = (share.min(*USEFUL.end()), throughput);
            if rank > reliable.1 {
                reliable = (place, rank);
            }
        }
        (self.best, self.second, self.reliable) = (best.0, second.0, reliable.0);
    }
}

/// How many attempts with their windows and acknowledgements fit into a segment.
fn tries(mode: Mode, config: &Config) -> u8 {
    let ack = config.answer_mode(mode).airtime(ACK_LEN + FCS_LEN) + config.sifs;
    let single = mode.airtime(OCTETS) + ack;
    let (mut spent, mut window, mut tries) = (single, config.cw_min, 1);
    while tries < TRIES_MAX {
        spent = spent + single + config.slot * u64::from(window) / 2;
        window = (window * 2 + 1).min(config.cw_max);
        if spent >= SEGMENT {
            break;
        }
        tries += 1;
    }
    tries
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use chappe_core::{Purpose, Seed};

    const TO: Address = Address::node(7);

    /// Sends `frames` frames, one each 2 ms from `from`, over a channel on which a rate succeeds with its probability.
    /// Returns how many attempts were made at each rate in the last half.
    fn send(
        minstrel: &mut Minstrel,
        random: &mut Stream,
        (from, frames): (u64, u64),
        chance: impl Fn(Rate) -> f64,
    ) -> Vec<(Rate, u32)> {
        let mut first = Vec::new();
        for frame in 0..frames {
            let now = Instant::from_micros((from + frame) * 2_000);
            let chain = minstrel.chain(now, TO, random);
            for failed in 0..chain.tries() {
                let rate = chain.mode(failed).rate;
                if frame >= frames / 2 && failed == 0 {
                    match first.iter_mut().find(|(other, _)| *other == rate) {
                        Some((_, count)) => *count += 1,
                        None => first.push((rate, 1)),
                    }
                }
                let success = random.chance(chance(rate));
                minstrel.note(TO, rate, 1, u16::from(success));
                if success {
                    break;
                }
            }
        }
        first
    }

    fn most(counts: &[(Rate, u32)]) -> Rate {
        counts
            .iter()
            .copied()
            .max_by_key(|(_, count)| *count)
            .unwrap()
            .0
    }

    /// The throughput at a rate over that at the best one, by shares and airtimes, worked out apart from the code under test.
    fn of_ideal(rate: Rate, rates: &[Rate], chance: impl Fn(Rate) -> f64) -> f64 {
        let throughput = |rate: Rate| chance(rate) / Mode::long(rate).airtime(1200).as_secs_f64();
        let best = rates.iter().copied().map(throughput).fold(0.0, f64::max);
        throughput(rate) / best
    }

    #[test]
    fn it_settles_on_the_best_rate_and_follows_a_step() {
        for (family, fastest) in [(&Rate::HT, Rate::Ht7), (&Rate::OFDM, Rate::Ofdm54)] {
            let config = Config {
                rate_control: super::super::RateControl::Minstrel,
                ..Config::of_rate(fastest)
            };
            let mut minstrel = Minstrel::new(&config);
            let mut random = Seed(3).stream(Purpose::Trial(0));
            let place = |rate: Rate| family.iter().position(|&other| other == rate).unwrap();
            // Good up to a rate, half of it lost there, nothing beyond; then the channel grows worse, and better.
            for (step, good) in [5usize, 2, 7, 0].into_iter().enumerate() {
                let chance = move |rate: Rate| match place(rate).cmp(&good) {
                    core::cmp::Ordering::Less => 0.98,
                    core::cmp::Ordering::Equal => 0.9,
                    // One lucky attempt at 65 Mbit/s outweighs all of 6.5: minstrel then errs for a window.
                    core::cmp::Ordering::Greater => 0.0,
                };
                let from = step as u64 * 4_000;
                let first = send(&mut minstrel, &mut random, (from, 4_000), chance);
                // Two rates can be equally good within the error of the mean shares.
                let is_best = |rate: Rate| of_ideal(rate, family, chance) > 0.98;
                let all: u32 = first.iter().map(|(_, count)| count).sum();
                let good = first.iter().filter(|(rate, _)| is_best(*rate));
                let good: u32 = good.map(|(_, count)| count).sum();
                // One frame in ten looks around, and slower rates only second.
                assert!(good * 100 >= all * 89, "{step}: {good} of {all}");
            }
        }
    }

    /// A rate above the given one is never tried.
    #[test]
    fn the_given_rate_is_the_fastest() {
        let mut minstrel = Minstrel::new(&Config::of_rate(Rate::Ofdm24));
        let mut random = Seed(4).stream(Purpose::Trial(0));
        let first = send(&mut minstrel, &mut random, (0, 2_000), |_| 1.0);
        assert!(first.iter().all(|(rate, _)| *rate <= Rate::Ofdm24));
        assert_eq!(most(&first), Rate::Ofdm24);
    }

    /// A chain falls back: best, second, most reliable, slowest.
    #[test]
    fn chains_end_at_the_slowest_rate() {
        let mut minstrel = Minstrel::new(&Config::of_rate(Rate::Ht7));
        let mut random = Seed(5).stream(Purpose::Trial(0));
        send(&mut minstrel, &mut random, (0, 2_000), |rate| match rate {
            Rate::Ht0 | Rate::Ht1 => 1.0,
            Rate::Ht4 => 0.5,
            _ => 0.0,
        });
        let chain = minstrel.chain(Instant::from_micros(5_000_000), TO, &mut random);
        let modes: Vec<_> = (0..chain.tries()).map(|n| chain.mode(n).rate).collect();
        assert_eq!(modes.last(), Some(&Rate::Ht0));
        assert!(
            modes.contains(&Rate::Ht4) && modes.contains(&Rate::Ht1),
            "{modes:?}"
        );
        assert_eq!(chain.mode(u8::MAX).rate, Rate::Ht0);
    }

    /// 16 neighbours and one more: the one used the longest ago is forgotten, nothing panics.
    #[test]
    fn old_neighbours_make_room() {
        let mut minstrel = Minstrel::new(&Config::of_rate(Rate::Ht7));
        let mut random = Seed(6).stream(Purpose::Trial(0));
        for node in 0..40 {
            let now = Instant::from_micros(u64::from(node) * 1_000);
            minstrel.chain(now, Address::node(node), &mut random);
        }
        let known = |node| {
            let is = |entry: &Neighbour| entry.address == Address::node(node);
            minstrel.neighbours.iter().flatten().any(is)
        };
        assert!((24..40).all(known) && !(0..24).any(known));
    }
}
