//! Systems that the paper compares WiLDNet with.
//!
//! | baseline | where |
//! |---|---|
//! | 802.11 with its own acknowledgements | `chappe_mac::dot11` |
//! | 2P: slots that end with a marker, without retransmission | [`two_phase`], over [`Turns::Markers`] |
//! | a static x:y code, as tunnels with a fixed redundancy have it | [`fixed_code`], over [`Redundancy::Fixed`] |
//! | Snoop: recovery by a router that reads TCP | [`Snoop`] |
//!
//! KCP, which tunnels use today, is no baseline of the paper: it is in the crate `chappe-rivals`.

mod snoop;

use chappe_core::Duration;

use crate::config::{Config, Recovery, Redundancy, SERVICES, Service};
use crate::site::{SlotConfig, Turns};

pub use snoop::{Snoop, SnoopConfig, SnoopCounters};

/// 2P (Raman and Chebrolu 2005): both ends send in turns of `length`, and each turn ends with a marker. An end that misses
/// it waits for a quarter of a slot longer. Nothing is sent again.
pub const fn two_phase(length: Duration) -> (SlotConfig, Config) {
    let slots = SlotConfig {
        turns: Turns::Markers { timeout: 5 },
        ..SlotConfig::dot11b(length)
    };
    let config = Config {
        recovery: Recovery::None,
        services: [Service::retries(Some(0)); SERVICES],
        ..Config::slots()
    };
    (slots, config)
}

/// A static code: `parity` repairs for each `data` packets, whatever the loss. Nothing is sent again.
pub const fn fixed_code(data: u8, parity: u8) -> Recovery {
    Recovery::Blocks {
        rule: Redundancy::Fixed { data, parity },
        repeat: false,
    }
}
