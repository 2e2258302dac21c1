//! A site: radios on one mast that must send at the same time, in a common slot.
//!
//! Of two radios on one mast, one cannot receive while the other sends. So a site has one schedule: all its radios send in
//! one slot, then all listen. The start of the slot follows from what the radios hear:
//!
//! ```text
//! t_recv(l)  start of the peer's slot on link l: the least arrival - stamp over the frames of that slot
//! start      = max over links l of  t_recv(l) + length of that slot
//! ```
//!
//! A link that heard nothing in a cycle continues by its own clock. So no single frame is needed, only one now and then
//! against clock drift, and a loss costs no more idle time than the drift since. A site that hears no link sends hellos
//! at random times and listens in between.

use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant, Mode, Preamble, Rate, Stream};

use chappe_wire::dot11::{DATA_HEADER_LEN, FCS_LEN};
use chappe_wire::llc;

use crate::header::Slot;
use crate::shared::Shared64;

/// Octets around a link's frame: 802.11 header, LLC and check sequence.
const AROUND: usize = DATA_HEADER_LEN + llc::LEN + FCS_LEN;

/// How the radios of a site take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotConfig {
    /// Usual length of a slot: 20 ms in most of the paper's measurements (4.2).
    pub length: Duration,
    /// Whether slot lengths follow the demand of both ends; if not, all slots have the usual length.
    pub by_demand: bool,
    /// Shortest slot by demand: two full frames of 802.11b with their gaps.
    pub least: Duration,
    /// Guard time at the end of a slot, against inexact clocks and drivers.
    pub guard: Duration,
    /// Rate and preamble of frames.
    pub mode: Mode,
    /// Time before each frame, without the back-off: AIFS of best effort in 802.11e, 70 us.
    pub gap: Duration,
    /// Most steps of the random back-off before each frame: CWmin 15 of a card with contention left on.
    pub backoff: u8,
    /// Length of one back-off step.
    pub step: Duration,
    /// How a site recognises that its turn has come.
    pub turns: Turns,
}

/// What ends the peer's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Its clock, as known from its stamps: WiLDNet.
    Stamps,
    /// The peer's marker, or `timeout` quarters of a slot without one: 2P, with 5 quarters (Raman and Chebrolu 2005). After
    /// two silent turns the wait is longer by a random part of a slot.
    Markers {
        /// In quarters of a slot.
        timeout: u8,
    },
}

impl SlotConfig {
    /// 802.11b at 11 Mbit/s on a card with contention left on (specs 3.1, set C: 1507 us for a packet with 1440 octets of UDP
    /// payload, 13 of them in 20 ms).
    pub const fn dot11b(length: Duration) -> SlotConfig {
        SlotConfig {
            length,
            by_demand: false,
            least: Duration::from_millis(3),
            guard: Duration::from_micros(100),
            mode: Mode {
                rate: Rate::Cck11,
                preamble: Preamble::Long,
                aggregate: false,
            },
            gap: Duration::from_micros(70),
            backoff: 15,
            step: Duration::from_micros(20),
            turns: Turns::Stamps,
        }
    }

    /// Time that a frame of the link takes on the air, with 802.11's header, LLC and check sequence around it.
    pub fn airtime(&self, frame: usize) -> Duration {
        self.mode.airtime(frame + AROUND)
    }

    /// Octets of the longest frame of the link that takes at most `time`, up to `frame_max`; 0 if none does.
    pub fn longest(&self, time: Duration, frame_max: usize) -> usize {
        let (mut fits, mut over) = (0, frame_max + 1);
        while over - fits > 1 {
            let middle = fits + (over - fits) / 2;
            match self.airtime(middle) <= time {
                true => fits = middle,
                false => over = middle,
            }
        }
        fits
    }

    /// Mean time between two frames: gap and half the largest back-off.
    pub fn mean_gap(&self) -> Duration {
        self.gap + self.step * self.backoff.into() / 2
    }
}

/// Silent cycles after which a link no longer counts: 2.6 s of 40 ms cycles. At 90 % frame loss and 13 frames a slot, a cycle
/// is silent with probability 25 %, so 64 in a row do not happen by chance.
const LIVE: u64 = 64;

/// The schedule of one site. Each of its radios holds a clone; all share one state.
#[derive(Clone, Debug)]
pub struct Site {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: SlotConfig,
    random: Stream,
    start: Shared64,
    length: Shared64,
    /// Slots begun; the first is 1.
    index: Shared64,
    links: Vec<LinkClock>,
}

/// What one radio knows about its peer's slots, shared with the other radios of the site.
#[derive(Debug, Default)]
struct LinkClock {
    /// Start and length of the peer's latest slot that was heard.
    start: Shared64,
    length: Shared64,
    /// In which of our cycles that was; 0: never.
    cycle: Shared64,
    /// From one start of the peer's to the next.
    period: Shared64,
    number: Shared64,
    peer_demand: Shared64,
    demand: Shared64,
    /// The cycle in which its marker came, and when (2P).
    marker: Shared64,
    marker_at: Shared64,
}

/// One slot of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Number of the slot, from 1; 0 before the first.
    pub index: u64,
    /// Start by the site's clock.
    pub start: Instant,
    /// Length of the slot.
    pub length: Duration,
}

fn load(cell: &Shared64) -> Duration {
    Duration::from_nanos(cell.get())
}

fn load_at(cell: &Shared64) -> Instant {
    Instant::from_nanos(cell.get())
}

impl Site {
    /// Makes a site of `radios` radios that has heard nothing. `random` determines when it sends hellos.
    pub fn new(config: SlotConfig, radios: usize, random: Stream) -> Site {
        let period = (config.length * 2).nanos();
        let clock = || LinkClock {
            period: Shared64::from(period),
            ..LinkClock::default()
        };
        Site {
            shared: Arc::new(Shared {
                config,
                random,
                start: Shared64::from(0),
                length: Shared64::from(0),
                index: Shared64::from(0),
                links: (0..radios).map(|_| clock()).collect(),
            }),
        }
    }

    /// The settings by which its radios take turns.
    pub fn config(&self) -> &SlotConfig {
        &self.shared.config
    }

    /// Number of radios of the site.
    pub fn radios(&self) -> usize {
        self.shared.links.len()
    }

    /// The latest slot that has begun; index 0 before the first.
    pub fn turn(&self) -> Turn {
        Turn {
            index: self.shared.index.get(),
            start: load_at(&self.shared.start),
            length: load(&self.shared.length),
        }
    }

    /// Start of the next slot, by what is known now.
    pub fn next_start(&self) -> Instant {
        let turn = self.turn();
        if let Turns::Markers { timeout } = self.shared.config.turns
            && turn.index > 0
        {
            return self.after_markers(&turn, timeout);
        }
        let live = self
            .shared
            .links
            .iter()
            .filter(|link| link.is_live(turn.index));
        //= wildnet 3.2: one slot for all radios of a node, after the last of its neighbours has ended
        let starts = live.map(|link| link.free_run(&turn));
        starts.max().unwrap_or_else(|| self.hello_at(&turn))
    }

    /// Begins every slot whose time has come; returns the latest one. Afterwards the next slot lies ahead.
    ///
    /// More than one is due if the driver was late, or if a stamp moved the peer's slot back by more than a cycle.
    pub fn advance(&self, now: Instant) -> Turn {
        for _ in 0..=LIVE {
            let start = self.next_start();
            if start > now {
                return self.turn();
            }
            self.begin(start);
        }
        // After so many missed slots nothing is left of the schedule. Whatever time has passed, this ends.
        if self.next_start() <= now {
            self.begin(now);
        }
        self.turn()
    }

    fn begin(&self, start: Instant) {
        let index = self.shared.index.get() + 1;
        self.shared.index.set(index);
        self.shared.start.set(start.nanos());
        self.shared.length.set(self.length().nanos());
    }

    /// Whether anything was heard on a link in the last 64 cycles.
    pub fn is_live(&self, radio: usize) -> bool {
        let index = self.shared.index.get();
        self.shared
            .links
            .get(radio)
            .is_some_and(|link| link.is_live(index))
    }

    /// Cycle time of a link, and the propagation delay to its peer: half of the cycle without both slots.
    pub fn cycle(&self, radio: usize) -> (Duration, Duration) {
        let usual = self.shared.config.length * 2;
        let period = self
            .shared
            .links
            .get(radio)
            .map_or(usual, |link| load(&link.period));
        (period, period.saturating_sub(usual) / 2)
    }

    /// Takes a stamped frame that a radio heard: the peer's slot started at `start` by our clock.
    pub(crate) fn hear(&self, radio: usize, now: Instant, start: Instant, slot: &Slot) {
        let Some(link) = self.shared.links.get(radio) else {
            return;
        };
        let index = self.shared.index.get().max(1);
        link.peer_demand.set(slot.demand.nanos());
        let turn = self.turn();
        // A marker during our own turn, or before the first one, ends a turn of the peer that we did not wait for. One from
        // before must not count for the first turn: this end would send two turns without a pause.
        if slot.marker && turn.index > 0 && now >= turn.start + turn.length {
            link.marker.set(index);
            link.marker_at.set(now.nanos());
        }
        let known = load_at(&link.start);
        let heard_in = link.cycle.get();
        let number = u64::from(slot.number);
        link.length.set(slot.length.nanos());
        if heard_in != 0 && link.number.get() == number {
            //= wildnet 3.2: every frame gives the start again; queues only make it later, so the least counts
            if start < known {
                link.start.set(start.nanos());
            }
            link.cycle.set(index);
            return;
        }
        let cycles = number.wrapping_sub(link.number.get()) & 0xffff;
        if heard_in != 0 && (1..=LIVE).contains(&cycles) {
            let between = start.saturating_since(known) / cycles;
            let (old, usual) = (load(&link.period), self.shared.config.length * 2);
            // Slots by demand and shifts of other links make it vary; a value off by more than a factor of two is no cycle.
            if between > usual / 2 && between < usual * 2 {
                let new = (old * 3 + between) / 4;
                link.period.set(new.nanos());
            }
        }
        link.number.set(number);
        link.start.set(start.nanos());
        link.cycle.set(index);
    }

    /// Sets how long a slot a radio could fill.
    pub(crate) fn set_demand(&self, radio: usize, demand: Duration) {
        if let Some(link) = self.shared.links.get(radio) {
            link.demand.set(demand.nanos());
        }
    }

    /// The longest slot that any radio could fill.
    pub(crate) fn demand(&self) -> Duration {
        let demands = self.shared.links.iter().map(|link| load(&link.demand));
        demands.max().unwrap_or(Duration::ZERO)
    }

    // Ours: a slot grows at the cost of a peer that has little to send
    fn length(&self) -> Duration {
        let SlotConfig {
            length,
            least,
            by_demand,
            ..
        } = self.shared.config;
        let index = self.shared.index.get();
        // A peer that was not heard in the last cycle may plan any length; the usual one fits every plan.
        let heard = |link: &LinkClock| link.cycle.get() + 1 >= index;
        if !by_demand || !self.shared.links.iter().all(heard) {
            return length;
        }
        let (ours, peers) = self.demands();
        let both = length * 2;
        match (ours > length, peers > length) {
            (true, false) => ours.min(both.saturating_sub(peers.max(least))),
            (false, true) => ours.max(least),
            _ => length,
        }
    }

    fn demands(&self) -> (Duration, Duration) {
        let peers = self.shared.links.iter().map(|link| load(&link.peer_demand));
        (self.demand(), peers.max().unwrap_or(Duration::ZERO))
    }

    /// Time of the next hello while no link is heard: random, with at least a slot of silence in which to hear an answer.
    fn hello_at(&self, turn: &Turn) -> Instant {
        let cycle = self.shared.config.length * 2;
        let wait = cycle.mul_f64(self.shared.random.fraction_at(turn.index));
        match turn.index {
            0 => Instant::ZERO + cycle + wait * 2,
            _ => turn.start + turn.length + cycle + wait,
        }
    }

    /// 2P: the peers' turn ends with the last of their markers, or after a timeout without one.
    ///
    /// Two ends that send at the same time do not hear each other, and time out together again. So after two silent turns each
    /// wait is random, up to a slot longer. The end that sends later is then heard by the other, and they take turns again.
    fn after_markers(&self, turn: &Turn, timeout: u8) -> Instant {
        let links = &self.shared.links;
        let all = links.iter().all(|link| link.marker.get() == turn.index);
        let end = turn.start + turn.length;
        if all {
            let last = links.iter().map(|link| load_at(&link.marker_at)).max();
            return last.unwrap_or(turn.start).max(end);
        }
        let slot = self.shared.config.length;
        let silent = |link: &LinkClock| link.cycle.get() + 2 <= turn.index;
        let longer = match links.iter().any(silent) {
            true => slot.mul_f64(self.shared.random.fraction_at(turn.index)),
            false => Duration::ZERO,
        };
        end + slot * timeout.into() / 4 + longer
    }
}

impl LinkClock {
    fn is_live(&self, index: u64) -> bool {
        let heard = self.cycle.get();
        heard != 0 && index.saturating_sub(heard) <= LIVE
    }

    /// When the site should send next for this link: after the peer's slot that follows ours.
    fn free_run(&self, turn: &Turn) -> Instant {
        let length = load(&self.length);
        let period = load(&self.period).max(Duration::from_micros(100));
        let heard = load_at(&self.start) + length;
        // A slot of the peer that ends within our own turn, or less than half a slot after, is the one before it.
        let least = turn.start + turn.length + length / 2;
        let missing = least.saturating_since(heard);
        let cycles =
            missing.steps(period) + u64::from(!missing.nanos().is_multiple_of(period.nanos()));
        heard + period * cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    const SLOT: Duration = Duration::from_millis(20);

    fn site(turns: Turns) -> Site {
        let config = SlotConfig {
            turns,
            ..SlotConfig::dot11b(SLOT)
        };
        Site::new(config, 1, Seed(1).stream(Purpose::Node(0)))
    }

    fn slot(number: u16, length: Duration) -> Slot {
        Slot {
            number,
            since: Some(Duration::ZERO),
            length,
            demand: Duration::ZERO,
            marker: false,
        }
    }

    /// A stamp shortens the peer's slot after the fact, so that two of this site's slots have been missed. The next one must
    /// not lie in the past: the driver would wake the node at once and again.
    #[test]
    fn a_stamp_that_moves_the_schedule_back_leaves_no_slot_in_the_past() {
        let site = site(Turns::Stamps);
        let first = site.next_start();
        assert_eq!(site.advance(first).start, first);
        let peers = first + SLOT;
        site.hear(0, peers, peers, &slot(1, Duration::from_millis(65)));
        assert_eq!(site.next_start(), peers + Duration::from_millis(65));
        let now = peers + Duration::from_millis(64);
        site.hear(0, now, peers, &slot(1, Duration::ZERO));
        assert!(site.next_start() < now);
        let turn = site.advance(now);
        assert!(turn.start <= now && site.next_start() > now, "{turn:?}");
    }

    /// A driver that stood still for a year gets a slot ahead of it by one call.
    #[test]
    fn a_driver_that_was_late_by_a_year_gets_a_slot_ahead() {
        for turns in [Turns::Stamps, Turns::Markers { timeout: 5 }] {
            let site = site(turns);
            let first = site.next_start();
            site.advance(first);
            site.hear(0, first + SLOT, first + SLOT, &slot(1, SLOT));
            let late = first + Duration::from_secs(365 * 86_400);
            let turn = site.advance(late);
            assert!(turn.start <= late && site.next_start() > late, "{turn:?}");
        }
    }
}
