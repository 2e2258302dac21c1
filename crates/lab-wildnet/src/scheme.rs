//! How a link is shared and repaired: the DCF or slots, their parameters, and the kind of traffic.

use chappe_core::{Duration, Mode, Preamble, Rate, SPEED_OF_LIGHT};
use chappe_mac::dot11;
use chappe_rivals::KcpConfig;
use chappe_wildnet::baseline::two_phase;
use chappe_wildnet::{Config, Recovery, Service, SlotConfig};

/// The longest ACK timeout of a card, in s: a register of 14 bits at 22 MHz (from MadWiFi).
const ACK_WAIT_MAX: f64 = 16_383.0 / 22e6;

/// Channel access and recovery of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// The DCF. Frames are unicast and acknowledged, or broadcast where `retries` is absent.
    Csma {
        /// The most retransmissions of a frame. If absent, frames are neither acknowledged nor repeated.
        retries: Option<u8>,
        /// Preamble and contention parameters.
        card: Card,
    },
    /// Slots, in which one end sends at a time.
    Slots {
        /// Length of a slot, guard included.
        slot: Duration,
        /// How losses are recovered.
        recovery: Recovery,
        /// Order, deadline and residual loss of all traffic classes.
        service: Service,
        /// How the ends share the time.
        form: SlotForm,
    },
}

/// How two ends share the time by slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotForm {
    /// Both ends have slots of one length, as in the paper.
    Even,
    /// Slots follow the demand, small packets share frames, and packets are cut to fill them: the improved variant.
    Demand,
    /// Slots end with marker frames: 2P.
    Markers,
}

/// Preamble and contention parameters of a card, as four sets of reference calculations name them.
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
    /// The paper's 802.11: two retransmissions. Its TCP throughput fits cards with short preambles (set D).
    pub const CSMA: Scheme = Scheme::Csma {
        retries: Some(2),
        card: Card::Short,
    };

    /// The same with long preambles, which frames in slots have (set A).
    pub const CSMA_LONG: Scheme = Scheme::Csma {
        retries: Some(2),
        card: Card::Long,
    };

    /// WiLDNet's bulk acknowledgements in slots of 20 ms, with unlimited retransmissions.
    pub const WILDNET: Scheme =
        Scheme::slots(20, Recovery::Acks, Service::retries(None), SlotForm::Even);

    /// The improved variant: one controller, repairs in unused slot time, slots by demand.
    pub const IMPROVED: Scheme = Scheme::slots(
        20,
        Recovery::Improved { fill: true },
        Service::RELIABLE,
        SlotForm::Demand,
    );

    /// Slots without any recovery.
    pub const BARE_SLOTS: Scheme = Scheme::slots(
        20,
        Recovery::None,
        Service::retries(Some(0)),
        SlotForm::Even,
    );

    /// 2P with slots of 20 ms.
    pub const TWO_PHASE: Scheme = Scheme::slots(
        20,
        Recovery::None,
        Service::retries(Some(0)),
        SlotForm::Markers,
    );

    /// Slots of `millis` milliseconds.
    pub const fn slots(
        millis: u64,
        recovery: Recovery,
        service: Service,
        form: SlotForm,
    ) -> Scheme {
        Scheme::Slots {
            slot: Duration::from_millis(millis),
            recovery,
            service,
            form,
        }
    }

    /// Configurations of the slots and of the link in them; `None` for the DCF.
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
            bundle: form == SlotForm::Demand,
            fragments: form == SlotForm::Demand,
            ..Config::slots()
        };
        let slots = SlotConfig {
            by_demand: form == SlotForm::Demand,
            ..SlotConfig::dot11b(slot)
        };
        Some(match form {
            SlotForm::Markers => (two_phase(slot).0, config),
            SlotForm::Even | SlotForm::Demand => (slots, config),
        })
    }

    /// Configuration of the DCF, where the longest link has `km` kilometres; `None` for slots.
    pub fn dcf(&self, km: f64) -> Option<dot11::Config> {
        let &Scheme::Csma { retries, card } = self else {
            return None;
        };
        let preamble = match card {
            Card::Short => Preamble::Short,
            Card::Long | Card::Wmm => Preamble::Long,
        };
        let mode = |rate| Mode {
            rate,
            preamble,
            aggregate: false,
        };
        let wmm = card == Card::Wmm;
        let base = dot11::Config::dot11b(Rate::Cck11);
        // The ACK timeout follows the distance up to the limit of the register. It includes SIFS and a slot.
        let most = (ACK_WAIT_MAX - (base.sifs + base.slot).as_secs_f64()) / 2.0;
        let delay = km * 1e3 / SPEED_OF_LIGHT;
        Some(dot11::Config {
            data: mode(Rate::Cck11),
            control: mode(Rate::Dsss2),
            cw_min: if wmm { 15 } else { 31 },
            aifsn: if wmm { 3 } else { 2 },
            // The MAC counts attempts, not retransmissions.
            retry_short: retries.map_or(1, |retries| retries.saturating_add(1)),
            propagation_max: Duration::from_nanos((delay.min(most) * 1e9).round() as u64),
            stretch_slot: false,
            ..base
        })
    }
}

/// The traffic of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// UDP that always has a datagram ready.
    Udp,
    /// UDP at a steady rate of payload, in bit/s.
    Steady(f64),
    /// TCP that always has data.
    Tcp,
    /// A byte stream over KCP instead of TCP.
    Kcp(KcpConfig),
    /// Pings from the first end to the last and back.
    Ping {
        /// Whether UDP that always has a datagram ready shares the link.
        beside: bool,
        /// Whether pings have a separate traffic class.
        apart: bool,
    },
}
