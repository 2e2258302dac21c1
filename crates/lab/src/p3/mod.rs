//! P³ in scenarios ([`P3`], [`prepare`], [`carry()`]).

mod carry;
mod plan;
mod prepare;
mod role;
mod route;

pub use carry::{Attempt, RADIO_WATTS, carry, watched};
pub use plan::{P3, SYSTEM, Variant, check, radio_bound_bps};
pub use prepare::{Knowledge, Prepared, Ratios, prepare};
pub use route::{Route, route};
