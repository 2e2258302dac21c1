//! One run over one long link: what carries it, how far, through which loss, and what came out.

use chappe_core::{Duration, Mode, Preamble, Rate, Seed};
use chappe_lab::run::RunError;
use chappe_mac::dot11;
use chappe_rivals::KcpConfig;
use chappe_wildnet::baseline::two_phase;
use chappe_wildnet::{Config, Recovery, Service, SlotConfig};

use super::masts::{Hop, Masts};

/// Metres per second.
pub const LIGHT: f64 = 299_792_458.0;
/// The longest time that a card waits for an ACK to begin: a register of 14 bits at 22 MHz (specs 3.1, from MadWiFi).
const ACK_WAIT_MAX: f64 = 16_383.0 / 22e6;

/// What carries the traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// The DCF. With `retries`, each frame is confirmed and repeated so often; without, none is.
    Csma {
        /// Repetitions.
        retries: Option<u8>,
        /// Which card: see [`Card`].
        card: Card,
    },
    /// Slots of this length, with this recovery and this promise.
    Slots {
        /// Length.
        slot: Duration,
        /// How losses are recovered.
        recovery: Recovery,
        /// For all traffic.
        service: Service,
        /// Who sends when.
        form: Form,
    },
}

/// How slots are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Both ends have slots of one length, as in the paper.
    Even,
    /// Slots follow the demand, and small packets share frames.
    Demand,
    /// Slots end with markers: 2P.
    Markers,
}

/// How a card contends (specs 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Card {
    /// Set A: long preamble, DIFS 50 us, CWmin 31.
    Long,
    /// Set C: long preamble, AIFS 70 us, CWmin 15, as frames of 802.11e's best effort.
    Wmm,
    /// Set D: short preamble, DIFS 50 us, CWmin 31.
    Short,
}

impl Scheme {
    /// What the paper compares with: two repetitions. TCP fits cards with short preambles (specs 3.1, set D).
    pub const CSMA: Scheme = Scheme::Csma {
        retries: Some(2),
        card: Card::Short,
    };

    /// The same with the long preambles that frames in slots have (set A).
    pub const CSMA_LONG: Scheme = Scheme::Csma {
        retries: Some(2),
        card: Card::Long,
    };

    /// WiLDNet's bulk acknowledgements in slots of 20 ms, without a limit to repetitions.
    pub const WILDNET: Scheme =
        Scheme::slots(20, Recovery::Acks, Service::retries(None), Form::Even);

    /// Ours: one controller, repairs in unused time, slots by demand.
    pub const IMPROVED: Scheme = Scheme::slots(
        20,
        Recovery::Improved { fill: true },
        Service::RELIABLE,
        Form::Demand,
    );

    /// Slots without any recovery.
    pub const BARE_SLOTS: Scheme =
        Scheme::slots(20, Recovery::None, Service::retries(Some(0)), Form::Even);

    /// 2P with slots of 20 ms.
    pub const TWO_PHASE: Scheme =
        Scheme::slots(20, Recovery::None, Service::retries(Some(0)), Form::Markers);

    /// Slots of so many milliseconds.
    pub const fn slots(millis: u64, recovery: Recovery, service: Service, form: Form) -> Scheme {
        Scheme::Slots {
            slot: Duration::from_millis(millis),
            recovery,
            service,
            form,
        }
    }

    /// What its slots and links are made from, if it has slots.
    pub fn slot_configs(&self) -> Option<(SlotConfig, Config)> {
        let &Scheme::Slots {
            slot,
            recovery,
            service,
            form,
        } = self
        else {
            return None;
        };
        let config = Config {
            recovery,
            services: [service; 4],
            bundle: form == Form::Demand,
            ..Config::slots()
        };
        let slots = SlotConfig {
            by_demand: form == Form::Demand,
            ..SlotConfig::dot11b(slot)
        };
        Some(match form {
            Form::Markers => (two_phase(slot).0, config),
            Form::Even | Form::Demand => (slots, config),
        })
    }

    /// What its contention is made from over the longest of its links, if it contends.
    pub fn dcf(&self, km: f64) -> Option<dot11::Config> {
        let &Scheme::Csma { retries, card } = self else {
            return None;
        };
        let preamble = match card {
            Card::Short => Preamble::Short,
            Card::Long | Card::Wmm => Preamble::Long,
        };
        let mode = |rate| Mode { rate, preamble };
        let wmm = card == Card::Wmm;
        let base = dot11::Config::dot11b(Rate::Cck11);
        // The wait for an ACK follows the distance as far as the register goes; SIFS and a slot are in it.
        let most = (ACK_WAIT_MAX - (base.sifs + base.slot).as_secs_f64()) / 2.0;
        let delay = km * 1e3 / LIGHT;
        Some(dot11::Config {
            data: mode(Rate::Cck11),
            control: mode(Rate::Dsss2),
            cw_min: if wmm { 15 } else { 31 },
            aifsn: if wmm { 3 } else { 2 },
            retry_short: retries.map_or(1, |retries| retries + 1),
            propagation_max: Duration::from_nanos((delay.min(most) * 1e9).round() as u64),
            stretch_slot: false,
            ..base
        })
    }
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// UDP, as much as there is room for.
    Udp,
    /// UDP at this rate of payload, bit/s.
    Steady(f64),
    /// TCP.
    Tcp,
    /// A stream over KCP, which takes the place of TCP.
    Kcp(KcpConfig),
    /// Pings from the first end to the last and back.
    Ping {
        /// Beside UDP, as much as there is room for.
        beside: bool,
        /// In a class of their own.
        apart: bool,
    },
}

/// A run over one link, all but the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// What carries the traffic.
    pub scheme: Scheme,
    /// Length of the link.
    pub km: f64,
    /// Share of frames lost, each for itself, both ways.
    pub loss: f64,
    /// What is sent.
    pub load: Load,
    /// Whether both ends send.
    pub both: bool,
    /// For how long it is counted.
    pub time: Duration,
}

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Payload delivered at all ends together, bit/s.
    pub bps: f64,
    /// Mean delay of what was delivered, s (UDP); of pings there and back.
    pub delay: f64,
    /// Its 99th percentile.
    pub p99: f64,
    /// Mean difference of the delays of two datagrams that arrive one after the other, s: what RFC 3550's estimate
    /// (6.4.1), which iperf prints, tends to.
    pub jitter: f64,
    /// Share of what was offered that never came (UDP).
    pub residual: f64,
    /// Share of what was offered that came later than the class's deadline, or never (UDP; no deadline: never); of pings
    /// those that took longer than two cycles.
    pub late: f64,
    /// Share of the datagrams taken by a contending MAC that never came, since the start.
    pub undelivered: f64,
    /// Frames sent for each packet, less one (slots).
    pub overhead: f64,
    /// Share of settled bodies that were given up (slots).
    pub given_up: f64,
    /// The longest time from the end of the first mast's slot to its next one, less a slot's length, s (slots, several
    /// hops).
    pub idle: f64,
    /// Frames whose preamble an interferer hid, and frames that it destroyed, of those that the receiver lost.
    pub hidden: u64,
    /// See `hidden`.
    pub destroyed: u64,
}

/// Something that is run over many seeds.
pub trait Experiment: Sync {
    /// Runs it.
    fn run(&self, seed: Seed) -> Result<Measured, RunError>;
}

impl Experiment for Trial {
    fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        self.masts().run(seed)
    }
}

impl Trial {
    /// The same as a line of one hop.
    pub fn masts(&self) -> Masts {
        Masts {
            both: self.both,
            gain: Masts::EMULATED,
            ..Masts::line(
                self.scheme,
                vec![Hop::new(self.km, self.loss)],
                self.load,
                self.time,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(scheme: Scheme, km: f64, load: Load) -> f64 {
        let trial = Trial {
            scheme,
            km,
            loss: 0.0,
            load,
            both: false,
            time: Duration::from_secs(2),
        };
        trial.run(Seed(1)).expect("a sound world").bps / 1e6
    }

    /// Closed forms of stop and wait: 1440 * 8 bits in gap, mean back-off, frame and, with one, SIFS, ACK and the way
    /// there and back (specs 3.1): 7.65 Mbit/s without ACK (set C), 6.05 and 5.15 with it at 0 and 50 km (set A).
    #[test]
    fn plain_802_11_follows_its_arithmetic() {
        let csma = |retries, card| Scheme::Csma { retries, card };
        let near = |mbps: f64, expected: f64| (mbps / expected - 1.0).abs() < 0.02;
        let free = mbps(csma(None, Card::Wmm), 100.0, Load::Udp);
        let [short, long] = [0.0, 50.0].map(|km| mbps(csma(Some(2), Card::Long), km, Load::Udp));
        assert!(near(free, 7.65), "{free}");
        assert!(near(short, 6.05) && near(long, 5.15), "{short} {long}");
    }

    /// TCP over slots reaches nine tenths of what the slots hold, whatever the distance; plain 802.11 breaks down where
    /// ACKs come too late.
    #[test]
    fn slots_carry_tcp_where_plain_802_11_cannot() {
        let plain = Scheme::Csma {
            retries: Some(2),
            card: Card::Short,
        };
        let [near, far] = [8.0, 150.0].map(|km| mbps(plain, km, Load::Tcp));
        let [near_slots, far_slots] = [8.0, 150.0].map(|km| mbps(Scheme::WILDNET, km, Load::Tcp));
        assert!(near > near_slots && far < far_slots / 2.0, "{near} {far}");
        assert!(near_slots > 0.88 * 3.76 && far_slots > 0.96 * near_slots);
    }
}
