//! WiLDNet
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

extern crate alloc;

mod blocks;
mod config;
mod counters;
mod decoder;
mod estimate;
pub mod gilbert;
pub mod header;
mod link;
mod policies;
pub mod policy;
mod radio;
mod receiver;
mod sender;
mod site;
mod store;
pub mod targets;

pub use config::{Config, ConfigError, FLOWS, Order, Recovery, Redundancy, SERVICES, Service};
pub use counters::Counters;
pub use estimate::{Estimate, Totals};
pub use link::{Heard, Link, Opportunity, Report};
pub use radio::{Radio, SlotCounters};
pub use receiver::Delivery;
pub use site::{Site, SlotConfig, Turn, Turns};
