//! Two stations with A-MPDUs and block ACKs: an event model of the DCF, and closed forms for one sender and for slots.
//!
//! Times are in ns. Each step of the model is one exchange, or a collision of two. Carrier sense is delayed by propagation:
//! a station that starts before the other's frame has arrived collides with it. An ACK timeout may be bounded by a register.

use std::collections::VecDeque;

use chappe_core::{Duration, Purpose, SPEED_OF_LIGHT, Seed, Stream};
use chappe_lab::run::RunError;

use super::phy::{BLOCK, PAYLOAD, Phy};
use crate::experiment::{Experiment, Measured};

/// SIFS at 5 GHz.
const SIFS: u64 = 16_000;
/// The slot time at 5 GHz.
const SLOT: u64 = 9_000;
/// A block ACK of 32 octets at 24 Mbit/s: 20 us of preamble and three symbols of 4 us.
const BLOCK_ACK: u64 = 32_000;
/// How long a receiver needs to detect a preamble: 20 us (aPHY-RX-START-Delay).
const FIND: u64 = 20_000;
const CW_MIN: u32 = 15;
const CW_MAX: u32 = 1023;
/// Retransmissions of an MPDU (dot11LongRetryLimit and dot11ShortRetryLimit are 4 and 7; drivers take the larger).
const RETRIES: u32 = 7;
/// The guard of slots for clocks and drivers, as for 802.11b (`SlotConfig::guard`).
const GUARD: u64 = 100_000;
/// A coverage class adds 3 us of slot time for 450 m of distance (17.3.8.6; mac80211's `distance`).
const CLASS_KM: f64 = 0.45;
const CLASS: u64 = 3_000;

/// Channel access, and with it the slot time and the ACK timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The DCF with a slot time stretched to the distance: a coverage class for each 450 m.
    Stretched,
    /// The DCF with a slot time of 9 us at any distance. Only the ACK timeout follows the distance.
    Fixed,
    /// Like `Fixed`, with the ACK timeout bounded by the register.
    Register,
    /// Slots of this length each way, or one way with a report back. They carry the block ACKs.
    Turns(Duration),
}

/// A trial over one link of 802.11n or ac.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmpduLink {
    /// Rate and format of frames.
    pub phy: Phy,
    /// The channel access of both stations.
    pub access: Access,
    /// Length of the link in km.
    pub km: f64,
    /// Whether both ends always have data, or only the first.
    pub both: bool,
    /// How long the run is measured.
    pub time: Duration,
}

impl AmpduLink {
    /// The one-way propagation delay.
    fn propagation(&self) -> u64 {
        (self.km * 1e12 / SPEED_OF_LIGHT).round() as u64
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

    /// The ACK timeout, from the end of a frame.
    fn ack_timeout(&self) -> u64 {
        let whole = 2 * self.propagation() + SIFS + SLOT + FIND;
        match self.access {
            Access::Register => whole.min(self.phy.register),
            _ => whole,
        }
    }

    /// The closed form for one sender without loss, in Mbit/s.
    pub fn closed_form(&self) -> f64 {
        let most = self.phy.most();
        let backoff = self.slot() * u64::from(CW_MIN) / 2;
        let exchange = self.difs() + backoff + self.phy.airtime(most) + SIFS + BLOCK_ACK;
        (8 * PAYLOAD * most) as f64 * 1e3 / (exchange + 2 * self.propagation()) as f64
    }

    /// Throughput of slots of `length`, in Mbit/s of both ends together. Before each A-MPDU stand a DIFS and a mean back-off,
    /// because a card whose carrier sense is switched off still waits for them.
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
        (8 * PAYLOAD * mpdus * senders) as f64 * 1e3
            / (length + back + 2 * self.propagation()) as f64
    }
}

impl Experiment for AmpduLink {
    fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        if let Access::Turns(length) = self.access {
            return Ok(Measured {
                bps: 1e6 * self.turns(length.nanos()),
                ..Measured::default()
            });
        }
        let mut air = Air {
            link: *self,
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

/// A station under the DCF.
struct Station {
    random: Stream,
    cw: u32,
    /// The back-off counter, in slots.
    left: u64,
    /// When the channel last became idle for this station, its own frames included.
    idle_from: u64,
    open: VecDeque<Mpdu>,
    next: u64,
    /// Different MPDUs that the peer has received.
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

    /// Fills the window, and returns the MPDUs of the next frame.
    fn load(&mut self, most: u64) -> u64 {
        // A block ACK reports 64 numbers from the oldest open MPDU on, which bounds the window.
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

    /// The peer receives the first `mpdus` MPDUs.
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
        // CW is reset when an MPDU reaches its retry limit (10.3.3).
        self.cw = match self.open.len() < before {
            true => CW_MIN,
            false => (2 * self.cw + 1).min(CW_MAX),
        };
        self.draw();
    }

    /// The channel becomes busy at `at`: the back-off keeps only the slots that had not elapsed (10.3.4.3).
    fn hear(&mut self, at: u64, difs: u64, slot: u64) {
        // The counter starts only after a DIFS of idle channel.
        let counting = self.idle_from + difs;
        self.left -= (at.saturating_sub(counting) / slot).min(self.left);
    }
}

struct Air {
    link: AmpduLink,
    stations: [Station; 2],
    collisions: u64,
    exchanges: u64,
}

impl Air {
    /// Simulates the next exchange or collision, and returns when it began.
    fn step(&mut self) -> u64 {
        let (difs, slot, propagation) =
            (self.link.difs(), self.link.slot(), self.link.propagation());
        let ready = self
            .stations
            .each_ref()
            .map(|station| station.idle_from + difs + station.left * slot);
        let first = usize::from(self.link.both && ready[1] < ready[0]);
        let other = 1 - first;
        self.exchanges += 1;
        // Carrier sense is delayed by propagation: until the first frame arrives, the other station senses an idle channel.
        if self.link.both && ready[other] <= ready[first] + propagation {
            self.collide(ready);
        } else {
            self.exchange(first, ready[first]);
        }
        ready[first]
    }

    fn collide(&mut self, begins: [u64; 2]) {
        let (most, propagation, ack_timeout) = (
            self.link.phy.most(),
            self.link.propagation(),
            self.link.ack_timeout(),
        );
        let loads = [0, 1].map(|place: usize| self.stations[place].load(most));
        let ends = [0, 1].map(|place| begins[place] + self.link.phy.airtime(loads[place]));
        for (place, station) in self.stations.iter_mut().enumerate() {
            station.unacknowledged(loads[place]);
            station.idle_from = (ends[place] + ack_timeout).max(ends[1 - place] + propagation);
        }
        self.collisions += 1;
    }

    fn exchange(&mut self, from: usize, begin: u64) {
        let (difs, slot, propagation) =
            (self.link.difs(), self.link.slot(), self.link.propagation());
        let ack_timeout = self.link.ack_timeout();
        let mpdus = self.stations[from].load(self.link.phy.most());
        let end = begin + self.link.phy.airtime(mpdus);
        let other = &mut self.stations[1 - from];
        other.hear(begin + propagation, difs, slot);
        other.idle_from = end + propagation + SIFS + BLOCK_ACK;
        let station = &mut self.stations[from];
        station.arrive(mpdus);
        let answer = end + 2 * propagation + SIFS;
        if answer + FIND <= end + ack_timeout {
            station.acknowledged();
            station.idle_from = answer + BLOCK_ACK;
            return;
        }
        station.unacknowledged(mpdus);
        station.idle_from = end + ack_timeout;
        // A block ACK after the timeout still makes the channel busy, unless the station sends before it arrives.
        if station.idle_from + difs + station.left * slot >= answer {
            station.hear(answer, difs, slot);
            station.idle_from = answer + BLOCK_ACK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phy::PHYS;
    use super::*;

    fn link(phy: Phy, access: Access, km: f64, both: bool) -> AmpduLink {
        AmpduLink {
            phy,
            access,
            km,
            both,
            time: Duration::from_secs(200),
        }
    }

    fn mbps(link: AmpduLink) -> f64 {
        link.run(Seed(1)).unwrap().bps / 1e6
    }

    /// One sender agrees with the closed form. Two at no distance collide as often as two DCF stations do.
    #[test]
    fn one_sender_agrees_with_the_closed_form() {
        for phy in PHYS {
            for access in [Access::Stretched, Access::Fixed] {
                for km in [1.0, 30.0, 100.0] {
                    let link = link(phy, access, km, false);
                    let (ours, form) = (mbps(link), link.closed_form());
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

    /// A block ACK that arrives after the register's longest timeout is not recognised, so delivered frames are repeated.
    #[test]
    fn the_ack_timeout_register_bounds_the_distance() {
        let at = |km| mbps(link(PHYS[2], Access::Register, km, false));
        // (300 us less SIFS and 20 us to find a preamble) / 2 at the speed of light: 39.6 km.
        assert!(at(41.0) < 0.3 * at(39.0), "{} {}", at(39.0), at(41.0));
    }

    /// Collisions grow with distance where the slot time is fixed, and stay level where it is stretched.
    #[test]
    fn delayed_carrier_sense_causes_collisions() {
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
