//! 802.11n and ac over distance: A-MPDUs and block ACKs of two stations under the DCF, and in slots.
//!
//! A model of its own, since the simulator's radios are 802.11b: times of frames after IEEE 802.11-2020 (clauses 17, 19 and
//! 21), carrier sense that is late by the way, and a wait for the block ACK that a register can bound. Errors of the radio
//! are left out: what is shown is what distance alone does.

use std::collections::VecDeque;

use chappe_core::{Duration, Purpose, Seed, Stream};
use chappe_lab::run::RunError;

use super::trial::{Experiment, LIGHT, Measured};

/// Octets of TCP payload in an MPDU, and of the MPDU as a subframe: 1500 of IP, 8 of LLC, 26 of QoS header, 4 of check
/// sequence, 4 of delimiter, padded to a multiple of four.
const PAYLOAD: u64 = 1448;
const SUBFRAME: u64 = 1544;
/// MPDUs that a block ACK tells of, and octets of an A-MPDU of 802.11n (9.7).
const BLOCK: u64 = 64;
const HT_OCTETS: u64 = 65_535;
/// Longest frame that drivers make, ns, preamble included (ath9k's table of 4 ms: 32,172 octets at 65 Mbit/s).
const LONGEST: u64 = 4_000_000;
/// 5 GHz: SIFS, slot, DIFS beside two slots, ns.
const SIFS: u64 = 16_000;
const SLOT: u64 = 9_000;
/// A block ACK of 32 octets at 24 Mbit/s: 20 us of preamble and three symbols of 4 us.
const BLOCK_ACK: u64 = 32_000;
/// How long after it should have begun a preamble is found at the latest: it takes 20 us (aPHY-RX-START-Delay).
const FIND: u64 = 20_000;
const CW_MIN: u32 = 15;
const CW_MAX: u32 = 1023;
/// Repetitions of an MPDU (dot11LongRetryLimit and dot11ShortRetryLimit are 4 and 7; drivers take the larger).
const RETRIES: u32 = 7;
/// Slots leave this free for clocks and drivers, as those of 802.11b do (`SlotConfig::guard`), ns.
const GUARD: u64 = 100_000;
/// A coverage class is 3 us of slot, for 450 m of distance (17.3.8.6; mac80211's `distance`).
const CLASS_KM: f64 = 0.45;
const CLASS: u64 = 3_000;

/// How data frames are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phy {
    /// Its name.
    pub name: &'static str,
    /// Bits of a symbol, and its length, ns.
    bits: u64,
    symbol: u64,
    /// Preamble, ns.
    preamble: u64,
    /// Most octets of an A-MPDU.
    octets: u64,
    /// The longest wait for a block ACK that ath9k's registers hold at this width (`dynack.c`), ns; at 80 MHz, which it
    /// has not, that of 40.
    pub register: u64,
}

/// Those of specs 2.3.
pub const PHYS: [Phy; 4] = [
    // One stream of 20 MHz: legacy preamble 20, HT-SIG 8, HT-STF 4, one HT-LTF 4.
    phy("MCS7 HT20 65", (260, 4_000), 36_000, HT_OCTETS, 600_000),
    phy("MCS15 HT20 130", (520, 4_000), 40_000, HT_OCTETS, 600_000),
    phy("MCS15 HT40 300", (1_080, 3_600), 40_000, HT_OCTETS, 300_000),
    // Legacy 20, VHT-SIG-A 8, STF 4, two LTF 8, SIG-B 4; its A-MPDUs may have a megabyte.
    phy("VHT80 MCS8 780", (2_808, 3_600), 44_000, 1 << 20, 300_000),
];

const fn phy(
    name: &'static str,
    (bits, symbol): (u64, u64),
    preamble: u64,
    octets: u64,
    register: u64,
) -> Phy {
    Phy {
        name,
        bits,
        symbol,
        preamble,
        octets,
        register,
    }
}

impl Phy {
    /// An A-MPDU of so many MPDUs on the air, ns: 16 bits of service and 6 of tail around it.
    fn airtime(&self, mpdus: u64) -> u64 {
        self.preamble + (8 * SUBFRAME * mpdus + 22).div_ceil(self.bits) * self.symbol
    }

    /// Most MPDUs of one.
    fn most(&self) -> u64 {
        let fits = |mpdus: &u64| mpdus * SUBFRAME <= self.octets && self.airtime(*mpdus) <= LONGEST;
        (1..=BLOCK).take_while(fits).last().unwrap_or(1)
    }

    /// What it sends, Mbit/s.
    pub fn rate(&self) -> f64 {
        1e3 * self.bits as f64 / self.symbol as f64
    }
}

/// Who waits how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The DCF with slots as long as the distance wants them: a coverage class for each 450 m.
    Stretched,
    /// The DCF with slots of 9 us at any distance, and a wait for block ACKs that follows the distance.
    Fixed,
    /// The same, the wait bounded by the register.
    Register,
    /// Slots of this length each way, or one way and a report back; block ACKs ride in them.
    Turns(Duration),
}

/// A run over one link, all but the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregate {
    /// How frames are sent.
    pub phy: Phy,
    /// Who sends when.
    pub access: Access,
    /// Length of the link.
    pub km: f64,
    /// Whether both ends always have something to send, or one.
    pub both: bool,
    /// For how long.
    pub time: Duration,
}

impl Aggregate {
    /// One way, ns.
    fn way(&self) -> u64 {
        (self.km * 1e12 / LIGHT).round() as u64
    }

    fn slot(&self) -> u64 {
        match self.access {
            Access::Stretched => SLOT + CLASS * (self.km / CLASS_KM).ceil() as u64,
            Access::Fixed | Access::Register | Access::Turns(_) => SLOT,
        }
    }

    fn difs(&self) -> u64 {
        SIFS + 2 * self.slot()
    }

    /// From the end of a frame until its block ACK counts as missing.
    fn patience(&self) -> u64 {
        let whole = 2 * self.way() + SIFS + SLOT + FIND;
        match self.access {
            Access::Register => whole.min(self.phy.register),
            _ => whole,
        }
    }

    /// One station that always has something to send and one that never has, without loss: the closed form, Mbit/s.
    pub fn alone(&self) -> f64 {
        let most = self.phy.most();
        let backoff = self.slot() * u64::from(CW_MIN) / 2;
        let exchange = self.difs() + backoff + self.phy.airtime(most) + SIFS + BLOCK_ACK;
        (8 * PAYLOAD * most) as f64 * 1e3 / (exchange + 2 * self.way()) as f64
    }

    /// What turns of `length` carry, Mbit/s of both ends together: A-MPDUs with a DIFS and a mean back-off before each, as
    /// cards send that only have their carrier sense turned off.
    fn turns(&self, length: u64) -> f64 {
        let gap = self.difs() + SLOT * u64::from(CW_MIN) / 2;
        let (mut left, mut mpdus) = (length.saturating_sub(GUARD), 0);
        while let Some(fit) = (1..=self.phy.most())
            .rev()
            .find(|fit| gap + self.phy.airtime(*fit) <= left)
        {
            left -= gap + self.phy.airtime(fit);
            mpdus += fit;
        }
        let (back, senders) = match self.both {
            true => (length, 2),
            false => (GUARD + gap + BLOCK_ACK, 1),
        };
        (8 * PAYLOAD * mpdus * senders) as f64 * 1e3 / (length + back + 2 * self.way()) as f64
    }
}

impl Experiment for Aggregate {
    fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        if let Access::Turns(length) = self.access {
            return Ok(Measured {
                bps: 1e6 * self.turns(length.nanos()),
                ..Measured::default()
            });
        }
        let mut air = Air {
            of: *self,
            stations: [0, 1].map(|place| Station::new(seed, place)),
            collisions: 0,
            exchanges: 0,
        };
        while air.step() < self.time.nanos() {}
        let delivered: u64 = air.stations.iter().map(|station| station.delivered).sum();
        Ok(Measured {
            bps: (8 * PAYLOAD * delivered) as f64 / self.time.as_secs_f64(),
            residual: air.collisions as f64 / air.exchanges.max(1) as f64,
            ..Measured::default()
        })
    }
}

/// One station that has something to send.
struct Station {
    random: Stream,
    cw: u32,
    /// Slots of back-off that are left.
    left: u64,
    /// Since when it has heard nothing, itself included.
    idle_from: u64,
    open: VecDeque<Mpdu>,
    next: u64,
    /// MPDUs that the other end has got.
    delivered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mpdu {
    number: u64,
    tries: u32,
    got: bool,
}

impl Station {
    fn new(seed: Seed, place: u32) -> Station {
        let mut station = Station {
            random: seed.stream(Purpose::Node(place)),
            cw: CW_MIN,
            left: 0,
            idle_from: 0,
            open: VecDeque::new(),
            next: 0,
            delivered: 0,
        };
        station.draw();
        station
    }

    fn draw(&mut self) {
        self.left = self.random.below(u64::from(self.cw) + 1);
    }

    /// Fills the window; how many MPDUs the next frame has.
    fn load(&mut self, most: u64) -> u64 {
        let base = self.open.front().map_or(self.next, |first| first.number);
        while (self.open.len() as u64) < most && self.next < base + BLOCK {
            self.open.push_back(Mpdu {
                number: self.next,
                tries: 0,
                got: false,
            });
            self.next += 1;
        }
        (self.open.len() as u64).min(most)
    }

    /// The other end has the first so many MPDUs.
    fn arrive(&mut self, mpdus: u64) {
        for mpdu in self.open.iter_mut().take(mpdus as usize) {
            self.delivered += u64::from(!mpdu.got);
            mpdu.got = true;
        }
    }

    fn acknowledged(&mut self) {
        self.open.retain(|mpdu| !mpdu.got);
        self.cw = CW_MIN;
        self.draw();
    }

    fn unacknowledged(&mut self, mpdus: u64) {
        for mpdu in self.open.iter_mut().take(mpdus as usize) {
            mpdu.tries += 1;
        }
        let before = self.open.len();
        self.open.retain(|mpdu| mpdu.tries <= RETRIES);
        // Who gives up begins anew (10.3.3).
        self.cw = match self.open.len() < before {
            true => CW_MIN,
            false => (2 * self.cw + 1).min(CW_MAX),
        };
        self.draw();
    }

    /// Something is heard from `at` on: whole slots that have passed do not come again.
    fn hear(&mut self, at: u64, difs: u64, slot: u64) {
        let counting = self.idle_from + difs;
        self.left -= (at.saturating_sub(counting) / slot).min(self.left);
    }
}

struct Air {
    of: Aggregate,
    stations: [Station; 2],
    collisions: u64,
    exchanges: u64,
}

impl Air {
    /// The next exchange, or two that destroy each other; returns when it began.
    fn step(&mut self) -> u64 {
        let (difs, slot, way) = (self.of.difs(), self.of.slot(), self.of.way());
        let ready = self
            .stations
            .each_ref()
            .map(|station| station.idle_from + difs + station.left * slot);
        let first = usize::from(self.of.both && ready[1] < ready[0]);
        let other = 1 - first;
        self.exchanges += 1;
        // Until the first one's frame gets there the other station believes the channel idle.
        if self.of.both && ready[other] <= ready[first] + way {
            self.collide(ready);
        } else {
            self.exchange(first, ready[first]);
        }
        ready[first]
    }

    fn collide(&mut self, begins: [u64; 2]) {
        let (most, way, patience) = (self.of.phy.most(), self.of.way(), self.of.patience());
        let loads = [0, 1].map(|place: usize| self.stations[place].load(most));
        let ends = [0, 1].map(|place| begins[place] + self.of.phy.airtime(loads[place]));
        for (place, station) in self.stations.iter_mut().enumerate() {
            station.unacknowledged(loads[place]);
            station.idle_from = (ends[place] + patience).max(ends[1 - place] + way);
        }
        self.collisions += 1;
    }

    fn exchange(&mut self, from: usize, begin: u64) {
        let (difs, slot, way) = (self.of.difs(), self.of.slot(), self.of.way());
        let patience = self.of.patience();
        let mpdus = self.stations[from].load(self.of.phy.most());
        let end = begin + self.of.phy.airtime(mpdus);
        let other = &mut self.stations[1 - from];
        other.hear(begin + way, difs, slot);
        other.idle_from = end + way + SIFS + BLOCK_ACK;
        let station = &mut self.stations[from];
        station.arrive(mpdus);
        let answer = end + 2 * way + SIFS;
        if answer + FIND <= end + patience {
            station.acknowledged();
            station.idle_from = answer + BLOCK_ACK;
            return;
        }
        station.unacknowledged(mpdus);
        station.idle_from = end + patience;
        // What comes too late is still heard, unless the station sends before it comes.
        if station.idle_from + difs + station.left * slot >= answer {
            station.hear(answer, difs, slot);
            station.idle_from = answer + BLOCK_ACK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(phy: Phy, access: Access, km: f64, both: bool) -> Aggregate {
        Aggregate {
            phy,
            access,
            km,
            both,
            time: Duration::from_secs(200),
        }
    }

    fn mbps(link: Aggregate) -> f64 {
        link.run(Seed(1)).unwrap().bps / 1e6
    }

    /// A-MPDUs as specified: 21 MPDUs in 4 ms at 65 Mbit/s, 42 in 64 KiB, 64 in a block ACK.
    #[test]
    fn frames_are_as_long_as_the_standard_says() {
        assert_eq!(PHYS.map(|phy| phy.most()), [20, 41, 42, 64]);
        assert_eq!(
            PHYS.map(|phy| phy.rate().round()),
            [65.0, 130.0, 300.0, 780.0]
        );
        // One MPDU at 65 Mbit/s: 12,374 bits are 48 symbols.
        assert_eq!(PHYS[0].airtime(1), 36_000 + 48 * 4_000);
    }

    /// Without a second sender the model is its closed form; with one, at no distance, it loses as two stations of the DCF do.
    #[test]
    fn one_sender_follows_the_closed_form() {
        for phy in PHYS {
            for access in [Access::Stretched, Access::Fixed] {
                for km in [1.0, 30.0, 100.0] {
                    let link = link(phy, access, km, false);
                    let (ours, form) = (mbps(link), link.alone());
                    assert!((ours / form - 1.0).abs() < 0.02, "{ours} {form}");
                }
            }
        }
        let near = link(PHYS[0], Access::Fixed, 0.0, true)
            .run(Seed(1))
            .unwrap();
        // Two stations whose windows are 15 collide in about a tenth of their attempts (Bianchi 2000, n = 2).
        assert!((0.05..0.13).contains(&near.residual), "{}", near.residual);
    }

    /// A block ACK that comes after the register's longest wait is none: what arrives is sent again and again.
    #[test]
    fn a_register_ends_the_reach() {
        let at = |km| mbps(link(PHYS[2], Access::Register, km, false));
        // (300 us less SIFS and 20 us to find a preamble) / 2 at the speed of light: 39.6 km.
        assert!(at(41.0) < 0.3 * at(39.0), "{} {}", at(39.0), at(41.0));
    }

    /// Collisions grow with the distance where slots do not, and stay as they are where they do.
    #[test]
    fn late_carrier_sense_costs() {
        let lost = |access, km| {
            link(PHYS[2], access, km, true)
                .run(Seed(1))
                .unwrap()
                .residual
        };
        let [near, far] = [1.0, 50.0].map(|km| lost(Access::Fixed, km));
        let stretched = lost(Access::Stretched, 50.0);
        println!("collisions: {near:.3} at 1 km, {far:.3} at 50 km, {stretched:.3} stretched");
        assert!(far > 1.5 * near && (stretched / near - 1.0).abs() < 0.25);
    }
}
