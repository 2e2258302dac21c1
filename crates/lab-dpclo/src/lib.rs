//! DPCLO: a mesh of routers that decide by queue differences, and the paper's evaluation of it (V).

pub mod access;
mod carry;
mod figure2;
mod figure5;
mod figure7;
mod figure8;
mod load;
pub mod mesh;
mod optimum;
mod paper;
mod plan;
mod scene;
mod sheet;
mod station;
mod streams;
mod trial;

pub use paper::PAPER;
pub use plan::{Dpclo, SYSTEM, Variant};

/// Its line in the table of systems.
pub static DPCLO: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: plan::run,
    paper: Some(&PAPER),
    demo: None,
};

#[cfg(test)]
mod tests;
