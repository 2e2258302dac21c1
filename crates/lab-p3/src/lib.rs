//! P³ in scenarios ([`P3`], [`prepare`], [`carry()`]), and its evaluation: Tables I to IV, Figures 5 to 7, the energy
//! comparison, equation 1, and what the paper does not have ([`PAPER`]).
//!
//! Nothing is tuned so that a number of P³ comes out. The one thing that is chosen by a result of the paper is how many
//! links are bad, and that result is its baseline's (`calibration`).

mod calibration;
pub mod campaign;
mod carry;
mod demo;
mod energy;
mod figure5;
mod figure6;
mod figure7;
mod large;
mod overhead;
mod paper;
pub mod pipeline;
mod plan;
mod prepare;
mod role;
mod route;
mod table1;
mod table2;
mod table3;
mod table4;

pub use carry::{RADIO_WATTS, carry, watched};
pub use demo::DEMO;
pub use paper::{PAPER, make};
pub use plan::{P3, SYSTEM, Variant, check, radio_bound_bps};
pub use prepare::{Knowledge, Prepared, Ratios, prepare};
pub use route::{Route, route};

/// Its line in the table of systems.
pub static P3_SYSTEM: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: plan::run,
    paper: Some(&PAPER),
    demo: Some(&DEMO),
};

#[cfg(test)]
mod tests;
