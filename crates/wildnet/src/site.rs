//! Radios that stand together and must send together: their common slot.
//!
//! Two radios of one node must not hear and send at the same time. So a site has one schedule: all its radios send in
//! one slot, then all listen. The slot's start follows from what the radios hear:
//!
//! ```text
//! t_recv(l)  start of the peer's slot on link l, from any frame of it: arrival - stamp; the least of the slot
//! start      = max over links l of  t_recv(l) + length of that slot
//! ```
//!
//! A link that heard nothing in a cycle goes on by its own clock. So no frame is needed to go on, only one now and then
//! against drift; and a loss idles nobody for longer than the clocks have drifted. Without any link that is heard, a
//! site says hello at random moments, and listens between.

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
    /// Whether slots follow the demand of both ends; if not, all have the usual length.
    pub by_demand: bool,
    /// Shortest slot when they do: two full frames of 802.11b with their gaps.
    pub least: Duration,
    /// Kept free at the end of a slot, for clocks and drivers that are not exact.
    pub guard: Duration,
    /// How frames are sent.
    pub mode: Mode,
    /// Before each frame, besides the back-off: AIFS of best effort 802.11e, 70 us.
    pub gap: Duration,
    /// Back-off drawn before each frame, 0 to this many steps: a card with its contention left on, CWmin 15.
    pub backoff: u8,
    /// Length of a back-off step.
    pub step: Duration,
    /// Who speaks when.
    pub turns: Turns,
}

/// What ends the peer's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Its clock, as known from its stamps: WiLDNet.
    Stamps,
    /// Its marker, or `timeout` quarters of a slot without one: 2P, with 5 quarters (Raman and Chebrolu 2005). After
    /// longer silence the wait is a random part of a slot longer.
    Markers {
        /// In quarters of a slot.
        timeout: u8,
    },
}

impl SlotConfig {
    /// 802.11b at 11 Mbit/s as a card does it that leaves its contention on (specs 3.1, set C: 1507 us for a packet of
    /// 1440 octets in UDP, 13 of them in 20 ms).
    pub const fn dot11b(length: Duration) -> SlotConfig {
        SlotConfig {
            length,
            by_demand: false,
            least: Duration::from_millis(3),
            guard: Duration::from_micros(100),
            mode: Mode {
                rate: Rate::Cck11,
                preamble: Preamble::Long,
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

    /// Mean time between two frames.
    pub fn mean_gap(&self) -> Duration {
        self.gap + self.step * self.backoff.into() / 2
    }
}

/// Cycles after which a link that hears nothing does not count any more: 2.6 s of 40 ms cycles. At 90 % frame loss
/// and 13 frames to a slot a cycle is silent with 25 %, so 64 in a row are out of the question.
const LIVE: u64 = 64;

/// One site. Each of its radios holds a copy; they share one schedule.
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

/// What one radio knows about its peer's slots, for all to see.
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

/// One of the site's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The site's count.
    pub index: u64,
    /// When it starts.
    pub start: Instant,
    /// How long it is.
    pub length: Duration,
}

fn load(cell: &Shared64) -> Duration {
    Duration::from_nanos(cell.get())
}

fn load_at(cell: &Shared64) -> Instant {
    Instant::from_nanos(cell.get())
}

impl Site {
    /// A site of `radios` radios, which has heard nothing. `random` decides when it says hello.
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

    /// How its radios take turns.
    pub fn config(&self) -> &SlotConfig {
        &self.shared.config
    }

    /// How many radios it has.
    pub fn radios(&self) -> usize {
        self.shared.links.len()
    }

    /// The latest slot that has begun; index 0: none has.
    pub fn turn(&self) -> Turn {
        Turn {
            index: self.shared.index.get(),
            start: load_at(&self.shared.start),
            length: load(&self.shared.length),
        }
    }

    /// When the next slot begins, as far as is known now.
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

    /// Begins the next slot if its time has come, and gives the latest one.
    pub fn advance(&self, now: Instant) -> Turn {
        let start = self.next_start();
        if start > now {
            return self.turn();
        }
        let index = self.shared.index.get() + 1;
        self.shared.index.set(index);
        self.shared.start.set(start.nanos());
        self.shared.length.set(self.length().nanos());
        self.turn()
    }

    /// Whether anything has been heard on a link lately.
    pub fn is_live(&self, radio: usize) -> bool {
        let index = self.shared.index.get();
        self.shared
            .links
            .get(radio)
            .is_some_and(|link| link.is_live(index))
    }

    /// The time of a cycle on a link, and the time to its peer, as far as known: half of what is left beside both slots.
    pub fn cycle(&self, radio: usize) -> (Duration, Duration) {
        let usual = self.shared.config.length * 2;
        let period = self
            .shared
            .links
            .get(radio)
            .map_or(usual, |link| load(&link.period));
        (period, period.saturating_sub(usual) / 2)
    }

    /// A radio heard a stamped frame: the peer's slot started at `start` by our clock.
    pub(crate) fn hear(&self, radio: usize, now: Instant, start: Instant, slot: &Slot) {
        let Some(link) = self.shared.links.get(radio) else {
            return;
        };
        let index = self.shared.index.get().max(1);
        link.peer_demand.set(slot.demand.nanos());
        let turn = self.turn();
        // A marker that comes in our own turn ends a turn that we have not waited for.
        if slot.marker && now >= turn.start + turn.length {
            link.marker.set(index);
            link.marker_at.set(now.nanos());
        }
        let known = load_at(&link.start);
        let heard_in = link.cycle.get();
        let number = u64::from(slot.number);
        link.length.set(slot.length.nanos());
        if heard_in != 0 && link.number.get() == number {
            //= wildnet 3.2: every frame tells the start again; queues only make it later, so the least counts
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
            // Cycles of unlike lengths and shifts of others make it vary; a wild value is not a cycle.
            if between > usual / 2 && between < usual * 2 {
                let new = (old * 3 + between) / 4;
                link.period.set(new.nanos());
            }
        }
        link.number.set(number);
        link.start.set(start.nanos());
        link.cycle.set(index);
    }

    /// How much a radio could send.
    pub(crate) fn set_demand(&self, radio: usize, demand: Duration) {
        if let Some(link) = self.shared.links.get(radio) {
            link.demand.set(demand.nanos());
        }
    }

    /// What all radios could send: the most that one could.
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
        // Who has just not been heard may have any plans: the usual length fits those of all.
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

    /// Nobody is heard: hello at a random moment, with at least a slot of silence to hear an answer in.
    fn hello_at(&self, turn: &Turn) -> Instant {
        let cycle = self.shared.config.length * 2;
        let wait = cycle.mul_f64(self.shared.random.fraction_at(turn.index));
        match turn.index {
            0 => Instant::ZERO + cycle + wait * 2,
            _ => turn.start + turn.length + cycle + wait,
        }
    }

    /// 2P: the peers' turn ends with the last of their markers, or when none came for too long.
    ///
    /// Two ends that send at once hear nothing of each other, and time out at once again. So after two silent turns the
    /// wait is drawn anew each time, up to a slot longer: who ends later is heard by the other, and they take turns again.
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

    /// When this link would have the site send next: after the peer's slot that follows ours.
    fn free_run(&self, turn: &Turn) -> Instant {
        let length = load(&self.length);
        let period = load(&self.period).max(Duration::from_micros(100));
        let heard = load_at(&self.start) + length;
        // The end of a slot of the peer that lies in our own turn, or just after, is not the one to wait for.
        let least = turn.start + turn.length + length / 2;
        let missing = least.saturating_since(heard);
        let cycles =
            missing.steps(period) + u64::from(!missing.nanos().is_multiple_of(period.nanos()));
        heard + period * cycles
    }
}
